/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak_end.c -- the ends of connections: records, holders, and the judgement
 * when the last item of an end has been taken.
 */

#include "soak.h"

#include <string.h>

#define NEVER_CLOSED (-1)

/* --- creation */

static void draw_side(struct soak_end *end, int which, uint64_t *random)
{
	struct soak_side *side = &end->side[which];
	uint32_t life = end->epoch->life;

	pthread_mutex_init(&side->lock, NULL);
	side->cap = life + soak_random(random, life);
	/* receives never run out before the sends of the peer */
	if (which == RPMA_RT_RECV_SIDE)
		side->cap = 2 * life + 2 * SOAK_SLOTS;
	side->recs = calloc(side->cap, sizeof(*side->recs));
	CHECK(side->recs);
	/* relaxed, all: no other thread knows the end yet */
	atomic_store_explicit(&side->first_error, side->cap,
			      memory_order_relaxed);
	atomic_store_explicit(&side->routes_count, 1, memory_order_relaxed);
	atomic_store_explicit(&side->slots,
			      end->by_writable
				      ? UINT64_MAX
				      : UINT64_MAX >> soak_random(random, 60),
			      memory_order_relaxed);
	side->routes[0].queue = end->own_queue;
}

static void draw(struct soak_end *end, uint64_t *random)
{
	int i;

	/* both ends alike, because each end judges the messages of the other */
	end->ordered = end->pair_gen % 4 != 0;
	end->by_writable = soak_random(random, 3) == 0;
	end->cause = (enum soak_cause)soak_random(random, SOAK_CAUSES);
	end->when = 1 + soak_random(random, 4 * end->epoch->life);
	end->own_queue = (int)soak_random(random, SOAK_QUEUES);
	end->lasts = 1u << end->own_queue;
	/* relaxed: no other thread knows the end yet */
	atomic_store_explicit(&end->reason, NEVER_CLOSED, memory_order_relaxed);
	pthread_mutex_init(&end->lock, NULL);
	for (i = 0; i < 2; i++)
		draw_side(end, i, random);
}

/* A free record, marked used; REQUIRES: the epoch's lock. */
static struct soak_end *take_record(struct soak_epoch *epoch)
{
	struct soak_end *end;
	uint32_t gen;
	int i;

	for (i = 0; i < SOAK_ENDS; i++) {
		end = &epoch->ends[i];
		if (end->used)
			continue;
		gen = end->gen + 1;
		memset(end, 0, sizeof(*end));
		end->gen = gen;
		end->index = i;
		end->used = true;
		return end;
	}
	return NULL;
}

struct soak_end *soak_end_new(struct soak_epoch *epoch, int site,
			      struct soak_pair *pair, uint32_t gen,
			      bool passive)
{
	struct soak_end *end;

	pthread_mutex_lock(&epoch->lock);
	end = take_record(epoch);
	if (end != NULL) {
		/* relaxed: published by the lock */
		atomic_store_explicit(&end->refs, 2, memory_order_relaxed);
		end->epoch = epoch;
		end->site = site;
		end->passive = passive;
		end->pair_gen = gen;
		if (pair->used && pair->gen == gen) {
			end->pair = pair;
			pair->ends[passive] = end;
		}
		draw(end, &epoch->draws);
		epoch->alive++;
	}
	pthread_mutex_unlock(&epoch->lock);
	return end;
}

struct rpma_rt_conn *soak_conn(const struct soak_end *end)
{
	/* acquire: pairs with the release in soak_learn() */
	return atomic_load_explicit(&end->conn, memory_order_acquire);
}

void soak_learn(struct soak_end *end, struct rpma_rt_conn *conn)
{
	/* release: pairs with the acquire in soak_conn() */
	atomic_store_explicit(&end->conn, conn, memory_order_release);
}

/* --- judgement */

static void judge_rec(struct soak_end *end, int which, uint32_t seq)
{
	struct soak_side *side = &end->side[which];
	const struct soak_rec *rec = &side->recs[seq];

	/* relaxed, both: every item of the end was taken before */
	if (atomic_load_explicit(&rec->state, memory_order_relaxed) != SOAK_OUT)
		return;
	if (!rec->on_error)
		soak_wrong(end, which, seq, -1, "never completed");
	if (end->ordered && seq > atomic_load_explicit(&side->first_error,
						       memory_order_relaxed))
		soak_wrong(end, which, seq, -1,
			   "behind an error, and reported nothing");
	/* relaxed: a count */
	atomic_fetch_add_explicit(&end->epoch->sum->silent, 1,
				  memory_order_relaxed);
}

static void judge(struct soak_end *end)
{
	uint32_t next;
	uint32_t seq;
	int i;

	/* relaxed, all: the last holder has seen the stores of the others */
	if (atomic_load_explicit(&end->reason, memory_order_relaxed) ==
	    NEVER_CLOSED)
		soak_wrong(end, -1, 0, -1, "let go before CLOSED");
	if (atomic_load_explicit(&end->lasts_seen, memory_order_relaxed) !=
	    end->lasts)
		soak_wrong(end, -1, 0, -1, "a last item did not come");
	for (i = 0; i < 2; i++) {
		next = atomic_load_explicit(&end->side[i].next,
					    memory_order_relaxed);
		for (seq = 0; seq < next; seq++)
			judge_rec(end, i, seq);
	}
}

static void release(struct soak_end *end)
{
	struct soak_epoch *epoch = end->epoch;
	int i;

	pthread_mutex_destroy(&end->lock);
	for (i = 0; i < 2; i++) {
		pthread_mutex_destroy(&end->side[i].lock);
		free(end->side[i].recs);
	}
	pthread_mutex_lock(&epoch->lock);
	if (end->pair != NULL) {
		end->pair->ends[end->passive] = NULL;
		if (end->pair->ends[!end->passive] == NULL)
			end->pair->used = false;
	}
	end->used = false;
	epoch->alive--;
	pthread_mutex_unlock(&epoch->lock);
	soak_alive();
}

void soak_end_undo(struct soak_end *end)
{
	release(end);
}

void soak_end_put(struct soak_end *end)
{
	struct rpma_rt_conn *conn;

	/* acq_rel: the last holder sees the stores of every other holder */
	if (atomic_fetch_sub_explicit(&end->refs, 1, memory_order_acq_rel) != 1)
		return;
	judge(end);
	conn = soak_conn(end);
	MUST(rpma_rt_conn_unref(&conn));
	release(end);
}

/* --- finding; REQUIRES: the epoch's lock */

/* Takes a reference, unless the last holder is gone already. */
static struct soak_end *hold(struct soak_end *end)
{
	uint32_t refs;

	if (end == NULL || !end->used)
		return NULL;
	/* relaxed, all: the lock keeps the record */
	refs = atomic_load_explicit(&end->refs, memory_order_relaxed);
	do {
		if (refs == 0)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&end->refs, &refs, refs + 1, memory_order_relaxed,
		memory_order_relaxed));
	return end;
}

struct soak_end *soak_end_at(struct soak_epoch *epoch, int index)
{
	struct soak_end *end;

	pthread_mutex_lock(&epoch->lock);
	end = hold(&epoch->ends[index]);
	pthread_mutex_unlock(&epoch->lock);
	return end;
}

struct soak_end *soak_end_any(struct soak_epoch *epoch, uint64_t *random)
{
	struct soak_end *end = NULL;
	uint32_t start = soak_random(random, SOAK_ENDS);
	uint32_t i;

	pthread_mutex_lock(&epoch->lock);
	for (i = 0; i < SOAK_ENDS && end == NULL; i++) {
		end = &epoch->ends[(start + i) % SOAK_ENDS];
		if (soak_conn(end))
			end = hold(end);
		else
			end = NULL;
	}
	pthread_mutex_unlock(&epoch->lock);
	return end;
}

struct soak_end *soak_end_peer(struct soak_end *end)
{
	struct soak_epoch *epoch = end->epoch;
	struct soak_end *peer = NULL;

	pthread_mutex_lock(&epoch->lock);
	if (end->pair != NULL)
		peer = hold(end->pair->ends[!end->passive]);
	pthread_mutex_unlock(&epoch->lock);
	if (peer != NULL && !soak_conn(peer)) {
		soak_end_put(peer);
		return NULL;
	}
	return peer;
}

struct soak_end *soak_end_of(struct soak_epoch *epoch,
			     const struct rpma_rt_conn *conn)
{
	struct soak_end *end = NULL;
	int i;

	pthread_mutex_lock(&epoch->lock);
	for (i = 0; i < SOAK_ENDS && end == NULL; i++) {
		if (epoch->ends[i].used && soak_conn(&epoch->ends[i]) == conn)
			end = hold(&epoch->ends[i]);
	}
	pthread_mutex_unlock(&epoch->lock);
	return end;
}

/* --- actions on an end */

void soak_end_close(struct soak_end *end)
{
	struct rpma_rt_conn *conn = soak_conn(end);

	if (conn != NULL)
		MUST(rpma_rt_conn_close(conn));
}

/* On the poller. */
static void call(const struct rpma_rt_completion *item, void *arg)
{
	struct soak_queue *fn = arg;

	/* relaxed: a count */
	atomic_fetch_add_explicit(&fn->epoch->sum->called, 1,
				  memory_order_relaxed);
	soak_item(fn, item);
}

/* Draws a queue, or the function of the side, which has a single route. */
static int draw_dest(const struct soak_end *end, int which, uint64_t *random)
{
	int queue = (int)soak_random(random, SOAK_QUEUES);
	int fn = SOAK_QUEUES + which;

	if (soak_random(random, 3) != 0 || (end->lasts & (1u << fn)))
		return queue;
	return fn;
}

static int open_route(struct soak_end *end, int which, int dest,
		      uint64_t *random, struct rpma_rt_route **handle)
{
	const struct soak_site *site = &end->epoch->sites[end->site];
	struct soak_queue *fn = &end->fns[which];

	if (dest < SOAK_QUEUES)
		return rpma_rt_route_open(soak_conn(end),
					  (enum rpma_rt_side)which,
					  site->queues[dest].queue, handle);
	fn->epoch = end->epoch;
	fn->site = end->site;
	fn->index = dest;
	fn->random = soak_random(random, UINT32_MAX);
	return rpma_rt_route_open_callback(
		soak_conn(end), (enum rpma_rt_side)which, call, fn, handle);
}

void soak_end_open_route(struct soak_end *end, int which, uint64_t *random)
{
	struct soak_side *side = &end->side[which];
	int queue;
	struct soak_route *route;
	bool is_new;
	int count;
	int ret;

	pthread_mutex_lock(&end->lock);
	/* relaxed: changed under this lock only */
	count = atomic_load_explicit(&side->routes_count, memory_order_relaxed);
	if (count == SOAK_ROUTES)
		goto unlock;
	queue = draw_dest(end, which, random);
	is_new = !(end->lasts & (1u << queue));
	if (is_new) {
		end->lasts |= 1u << queue;
		/* relaxed: the caller holds the end; a reference for
		 * ROUTE_CLOSED */
		atomic_fetch_add_explicit(&end->refs, 1, memory_order_relaxed);
	}
	route = &side->routes[count];
	route->queue = queue;
	ret = open_route(end, which, queue, random, &route->handle);
	if (ret == 0) {
		/* release: pairs with the acquire in pick_route() */
		atomic_store_explicit(&side->routes_count, count + 1,
				      memory_order_release);
	} else if (is_new) {
		end->lasts &= ~(1u << queue);
		/* relaxed: the caller holds the end */
		atomic_fetch_sub_explicit(&end->refs, 1, memory_order_relaxed);
	}
	if (ret && ret != RPMA_RT_E_CLOSED && ret != RPMA_RT_E_BUSY &&
	    ret != RPMA_E_NOMEM)
		soak_wrong(end, which, 0, queue, rpma_rt_err_2str(ret));
unlock:
	pthread_mutex_unlock(&end->lock);
}

/* --- to find a hang */

static void print_end(const struct soak_end *end)
{
	const struct soak_side *side;
	uint32_t out;
	uint32_t next;
	uint32_t seq;
	int i;

	/* relaxed, all: a picture of a hang */
	fprintf(stderr,
		"end %d.%u %s cause %d refs %u lasts %#x of %#x reason %d%s%s:",
		end->index, end->gen, end->passive ? "passive" : "active",
		end->cause,
		atomic_load_explicit(&end->refs, memory_order_relaxed),
		atomic_load_explicit(&end->lasts_seen, memory_order_relaxed),
		end->lasts,
		atomic_load_explicit(&end->reason, memory_order_relaxed),
		atomic_load_explicit(&end->established, memory_order_relaxed)
			? " established"
			: "",
		atomic_load_explicit(&end->triggered, memory_order_relaxed)
			? " triggered"
			: "");
	for (i = 0; i < 2; i++) {
		side = &end->side[i];
		/* relaxed, both: as above */
		next = atomic_load_explicit(&side->next, memory_order_relaxed);
		out = 0;
		for (seq = 0; seq < next; seq++)
			out += atomic_load_explicit(&side->recs[seq].state,
						    memory_order_relaxed) ==
			       SOAK_OUT;
		fprintf(stderr, " %s %u posted %u out", i ? "recv" : "send",
			next, out);
	}
	fprintf(stderr, "\n");
}

void soak_ends_print(struct soak_epoch *epoch)
{
	int i;

	for (i = 0; i < SOAK_ENDS; i++) {
		if (epoch->ends[i].used)
			print_end(&epoch->ends[i]);
	}
}
