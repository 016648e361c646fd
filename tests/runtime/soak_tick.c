/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak_tick.c -- a completion is ticked off in the record of its work request
 * and judged: its queue, order, content, opcode. Runs on the consumer of the
 * queue.
 */

#include "soak.h"

#include <arpa/inet.h>
#include <string.h>

static struct soak_end *end_of_context(struct soak_epoch *epoch,
				       const struct rpma_rt_completion *c)
{
	struct soak_end *end = &epoch->ends[(c->context >> 39) % SOAK_ENDS];

	if (!end->used || ((c->context >> 29) & 0x3ff) != (end->gen & 0x3ff))
		soak_wrong(end, (int)(c->context >> 28) & 1,
			   (uint32_t)c->context & 0xfffffff, -1,
			   "completed after CLOSED, or of nobody");
	if (c->user != end)
		soak_wrong(end, -1, 0, -1, "not its user pointer");
	return end;
}

/* not from the device */
#define MADE_UP (RPMA_RT_C_SYNTHESIZED | RPMA_RT_C_NOT_POSTED)

static uint8_t opcode_of(int which, const struct soak_rec *rec)
{
	if (which == RPMA_RT_RECV_SIDE)
		return IBV_WC_RECV;
	switch (rec->op) {
	case RPMA_RT_OP_WRITE:
	case RPMA_RT_OP_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case RPMA_RT_OP_READ:
		return IBV_WC_RDMA_READ;
	default:
		return IBV_WC_SEND;
	}
}

static const char *wrong_message(const struct soak_end *end, uint32_t seq,
				 const struct rpma_rt_completion *c,
				 const char *block)
{
	uint32_t words[4];

	if (c->byte_len != SOAK_BLOCK)
		return "not its length";
	if (c->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		words[0] = ntohl(c->imm);
		if (!(c->flags & RPMA_RT_C_WITH_IMM))
			return "without its immediate data";
	} else {
		memcpy(words, block, sizeof(words));
		if (words[3] != ~words[0] || words[1] != end->pair_gen)
			return "not a message for it";
		if ((c->flags & RPMA_RT_C_WITH_IMM) &&
		    ntohl(c->imm) != words[0])
			return "not its immediate data";
	}
	/* the n-th receive has the n-th message */
	if (end->ordered && words[0] != seq)
		return "a message out of order";
	return NULL;
}

/* What is wrong with a success, or NULL. */
static const char *wrong_success(struct soak_end *end, int which, uint32_t seq,
				 const struct soak_rec *rec,
				 const struct rpma_rt_completion *c)
{
	const char *memory = end->epoch->memory;
	const char *block = memory + soak_block(end, which, rec->slot);

	if (rec->on_error)
		return "reported a success, but wanted errors only";
	if (which == RPMA_RT_RECV_SIDE) {
		if (c->opcode != IBV_WC_RECV &&
		    c->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
			return "not its opcode";
		return wrong_message(end, seq, c, block);
	}
	if (c->opcode != opcode_of(which, rec))
		return "not its opcode";
	if (rec->op == RPMA_RT_OP_READ &&
	    memcmp(block, memory + soak_words(end), SOAK_WORDS / 2) != 0)
		return "did not read what was there";
	return NULL;
}

static const char *wrong_error(int which, const struct soak_rec *rec,
			       const struct rpma_rt_completion *c)
{
	if (c->opcode != opcode_of(which, rec))
		return "not its opcode";
	if ((c->flags & MADE_UP) == MADE_UP)
		return "synthesized, though it was not posted";
	if ((c->flags & MADE_UP) && c->status != IBV_WC_GENERAL_ERR)
		return "made up, with a status of the device";
	if (c->byte_len != 0)
		return "an error with a length";
	return NULL;
}

/* Order of one side in one queue. */
static const char *wrong_order(const struct soak_end *end,
			       struct soak_seen *seen, uint32_t seq,
			       const struct rpma_rt_completion *c)
{
	if (seen->made_up && !(c->flags & MADE_UP))
		return "of the device, behind one that is made up";
	seen->made_up = c->flags & MADE_UP;
	if (!end->ordered)
		return NULL;
	if (seq < seen->next)
		return "out of order";
	seen->next = seq + 1;
	if (seen->error && c->status == IBV_WC_SUCCESS)
		return "succeeded behind an error";
	seen->error = c->status != IBV_WC_SUCCESS;
	return NULL;
}

static void note_error(struct soak_end *end, struct soak_side *side,
		       uint32_t seq, const struct rpma_rt_completion *c)
{
	struct soak_sum *sum = end->epoch->sum;
	uint32_t first;

	/* relaxed, all: a minimum, and counts */
	if (c->flags & RPMA_RT_C_SYNTHESIZED) {
		atomic_fetch_add_explicit(&sum->synthesized, 1,
					  memory_order_relaxed);
		return;
	}
	atomic_fetch_add_explicit(c->flags & RPMA_RT_C_NOT_POSTED
					  ? &sum->not_posted
					  : &sum->errors,
				  1, memory_order_relaxed);
	first = atomic_load_explicit(&side->first_error, memory_order_relaxed);
	while (seq < first &&
	       !atomic_compare_exchange_weak_explicit(
		       &side->first_error, &first, seq, memory_order_relaxed,
		       memory_order_relaxed))
		;
}

static void tick(struct soak_queue *queue, struct soak_end *end, int which,
		 uint32_t seq, const struct rpma_rt_completion *c)
{
	struct soak_side *side = &end->side[which];
	struct soak_rec *rec = &side->recs[seq];
	const char *wrong;

	/* relaxed: what was posted comes with its completion */
	if (seq >= side->cap ||
	    atomic_exchange_explicit(&rec->state, SOAK_DONE,
				     memory_order_relaxed) != SOAK_OUT)
		soak_wrong(end, which, seq, queue->index,
			   "completed twice, or was never posted");
	if (side->routes[rec->route].queue != queue->index ||
	    queue->site != end->site)
		soak_wrong(end, which, seq, queue->index, "not its queue");
	wrong = wrong_order(end, &side->seen[queue->index], seq, c);
	if (wrong == NULL)
		wrong = c->status == IBV_WC_SUCCESS
				? wrong_success(end, which, seq, rec, c)
				: wrong_error(which, rec, c);
	if (wrong != NULL)
		soak_wrong(end, which, seq, queue->index, wrong);
	if (c->status != IBV_WC_SUCCESS)
		note_error(end, side, seq, c);
}

/* Its buffer is nobody's from here. True: a post waits for one. */
static bool free_buffer(struct soak_end *end, int which,
			const struct soak_rec *rec)
{
	struct soak_side *side = &end->side[which];

	if (rec->slot == SOAK_SLOTS)
		return false;
	soak_take(end->epoch->memory + soak_block(end, which, rec->slot),
		  SOAK_BLOCK);
	/* seq_cst, both: pairs with starve() in soak_post.c */
	atomic_fetch_or_explicit(&side->slots, UINT64_C(1) << rec->slot,
				 memory_order_seq_cst);
	return atomic_exchange_explicit(&side->starved, false,
					memory_order_seq_cst);
}

void soak_completion(struct soak_queue *queue,
		     const struct rpma_rt_completion *c)
{
	struct soak_epoch *epoch = queue->epoch;
	struct soak_end *end = end_of_context(epoch, c);
	int which = (int)(c->context >> 28) & 1;
	uint32_t seq = (uint32_t)c->context & 0xfffffff;
	bool waited;

	tick(queue, end, which, seq, c);
	waited = free_buffer(end, which, &end->side[which].recs[seq]);
	/* relaxed, both: counts */
	atomic_fetch_add_explicit(&epoch->sum->ticked, 1, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&end->completions, 1,
				      memory_order_relaxed) +
		    1 ==
	    end->when)
		soak_trigger(end, &queue->random);
	if (waited || !end->by_writable)
		soak_pump(end, which, &queue->random);
}
