/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.c: memory of a connection, and posting in batches.
 */

#include "link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define POST_BATCH 32

/*
 * Takes a free number; only main fills a free number, so no exchange is needed.
 */
static bool take_number(struct link *link)
{
	struct end *end = link->end;

	for (unsigned i = 0; i < TICKET_LINKS; i++) {
		/* acquire: pairs with the release in link_delete(): the worker
		 * of the old link has finished with the number */
		if (atomic_load_explicit(&end->links[i], memory_order_acquire))
			continue;
		link->index = i;
		/* relaxed: a worker learns of the link through its queue */
		atomic_store_explicit(&end->links[i], link,
				      memory_order_relaxed);
		atomic_fetch_add_explicit(&end->open, 1, memory_order_relaxed);
		return true;
	}
	errno = ENFILE;
	return false;
}

static void give_number(struct link *link)
{
	/* release: pairs with the acquire in take_number() */
	atomic_store_explicit(&link->end->links[link->index], NULL,
			      memory_order_release);
	/* release: when main sees 0, main may fini the end (acquire there) */
	atomic_fetch_sub_explicit(&link->end->open, 1, memory_order_release);
}

static bool alloc_slots(struct link *link)
{
	size_t slots = (size_t)link->receives + link->depth;

	link->memory_size = slots * link->size;
	void *memory = mmap(NULL, link->memory_size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	link->memory = memory;
	link->repost = calloc(link->receives, sizeof(*link->repost));
	link->pending = calloc(link->receives, sizeof(*link->pending));
	link->since_ns = calloc(link->depth, sizeof(*link->since_ns));
	return link->repost && link->pending && link->since_ns &&
	       tally_init(&link->recv_tally, link->receives) &&
	       tally_init(&link->send_tally, link->depth);
}

static void free_slots(struct link *link)
{
	tally_fini(&link->send_tally);
	tally_fini(&link->recv_tally);
	free(link->since_ns);
	free(link->pending);
	free(link->repost);
	if (link->memory)
		munmap(link->memory, link->memory_size);
}

struct link *link_new(struct end *end, const struct link_cfg *cfg)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->end = end;
	link->connection = cfg->connection;
	link->size = cfg->size;
	link->depth = cfg->depth;
	link->seed = cfg->seed;
	link->total = cfg->total;
	link->receives = cfg->depth + RECEIVE_SLACK;
	if (!alloc_slots(link))
		goto err_free;
	if (rpma_mr_reg(end->peer, link->memory, link->memory_size,
			RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &link->mr))
		goto err_free;
	if (!take_number(link))
		goto err_dereg;
	/* every receive slot is to be posted, the lowest first */
	for (uint32_t i = link->receives; i-- > 0;)
		link->repost[link->repost_count++] = i;
	/* relaxed: only main compares the sum */
	atomic_fetch_add_explicit(&end->memory, link->memory_size,
				  memory_order_relaxed);
	return link;

err_dereg:
	rpma_mr_dereg(&link->mr);
err_free:
	free_slots(link);
	free(link);
	return NULL;
}

static void detach(struct link *link)
{
	struct worker *worker = link->worker;

	if (!worker || !link->is_taken)
		return;
	if (link->next)
		link->next->prev = link->prev;
	if (link->prev)
		link->prev->next = link->next;
	else
		worker->links = link->next;
	for (struct link **at = &worker->dirty; *at; at = &(*at)->next_dirty) {
		if (*at == link) {
			*at = link->next_dirty;
			break;
		}
	}
}

void link_delete(struct link *link)
{
	detach(link);
	if (link->conn)
		rpma_rt_conn_unref(&link->conn);
	rpma_mr_dereg(&link->mr);
	/* relaxed: as in link_new() */
	atomic_fetch_sub_explicit(&link->end->memory, link->memory_size,
				  memory_order_relaxed);
	give_number(link);
	free_slots(link);
	free(link);
}

void link_attach(struct link *link, struct worker *worker)
{
	link->worker = worker;
	link->is_taken = true;
	link->prev = NULL;
	link->next = worker->links;
	if (link->next)
		link->next->prev = link;
	worker->links = link;
	count(&worker->stats.links, 1);
}

void link_touch(struct link *link)
{
	if (link->is_dirty)
		return;
	link->is_dirty = true;
	link->next_dirty = link->worker->dirty;
	link->worker->dirty = link;
}

uint8_t *link_recv_slot(struct link *link, uint32_t slot)
{
	return link->memory + (size_t)slot * link->size;
}

static size_t send_offset(const struct link *link, uint32_t slot)
{
	return (size_t)(link->receives + slot) * link->size;
}

void link_release(struct link *link, uint32_t slot)
{
	link->repost[link->repost_count++] = slot;
}

uint8_t *link_stage(struct link *link, uint32_t *slot)
{
	uint32_t next = (uint32_t)((link->sent + link->staged) % link->depth);

	/* the device may still read the previous send in this slot */
	if (link->staged == link->depth ||
	    tally_is_out(&link->send_tally, next))
		return NULL;
	link->staged++;
	*slot = next;
	return link->memory + send_offset(link, next);
}

static uint64_t context_of(const struct link *link, bool is_recv, uint32_t slot)
{
	const struct tally *tally =
		is_recv ? &link->recv_tally : &link->send_tally;
	struct ticket ticket = {
		.is_recv = is_recv,
		.worker = link->worker->id,
		.link = link->index,
		.turn = tally_turn(tally, slot),
		.slot = slot,
	};

	return ticket_pack(&ticket);
}

/* Handles the result of a post. Returns true to go on with the next batch. */
static bool judge(struct link *link, int ret, bool *is_blocked)
{
	if (ret >= 0 && rpma_rt_again_reason() == RPMA_RT_AGAIN_NONE)
		return true;
	if (ret >= 0 || ret == RPMA_E_AGAIN) {
		*is_blocked = true; /* RPMA_RT_WRITABLE follows */
		return false;
	}
	/* closed: every completion, and then CLOSED, will arrive */
	if (ret != RPMA_RT_E_CLOSED) {
		end_fail(link->end, "connection %u: cannot post: %s",
			 link->connection, rpma_rt_err_2str(ret));
		link_close(link);
	}
	return false;
}

static void post_receives(struct link *link)
{
	struct rpma_rt_recv_wr wrs[POST_BATCH];

	while (link->repost_count && !link->is_recv_blocked) {
		uint32_t *slots = link->repost + link->repost_count - 1;
		int n = 0;

		for (; n < POST_BATCH && (uint32_t)n < link->repost_count;
		     n++) {
			uint32_t slot = *(slots - n);
			rpma_rt_prep_recv(&wrs[n], link->mr,
					  (size_t)slot * link->size, link->size,
					  context_of(link, true, slot));
		}
		int ret = rpma_rt_post_recv(link->conn, wrs, n);
		int posted = ret < 0 ? 0 : ret;
		for (int i = 0; i < posted; i++)
			tally_post(&link->recv_tally, *(slots - i));
		link->repost_count -= (uint32_t)posted;
		count(&link->worker->stats.posted, (uint64_t)posted);
		if (!judge(link, ret, &link->is_recv_blocked))
			return;
	}
}

static void post_sends(struct link *link)
{
	struct rpma_rt_wr wrs[POST_BATCH];

	while (link->staged && !link->is_send_blocked) {
		int n = 0;

		for (; n < POST_BATCH && (uint32_t)n < link->staged; n++) {
			uint32_t slot = (uint32_t)((link->sent + (unsigned)n) %
						   link->depth);
			rpma_rt_prep_send(&wrs[n], link->mr,
					  send_offset(link, slot), link->size,
					  RPMA_F_COMPLETION_ALWAYS,
					  context_of(link, false, slot));
		}
		int ret = rpma_rt_post_send(link->conn, wrs, n);
		int posted = ret < 0 ? 0 : ret;
		for (int i = 0; i < posted; i++)
			tally_post(&link->send_tally,
				   (uint32_t)(link->sent++ % link->depth));
		link->staged -= (uint32_t)posted;
		count(&link->worker->stats.posted, (uint64_t)posted);
		if (!judge(link, ret, &link->is_send_blocked))
			return;
	}
}

void link_post(struct link *link)
{
	if (link->is_closing || link->is_closed || !link->conn)
		return;
	post_receives(link);
	if (link->is_up && !link->is_closing)
		post_sends(link);
}

void link_close(struct link *link)
{
	if (link->is_closing || !link->conn)
		return;
	link->is_closing = true;
	int ret = rpma_rt_conn_close(link->conn);
	if (ret)
		end_fail(link->end, "connection %u: cannot close: %s",
			 link->connection, rpma_rt_err_2str(ret));
}
