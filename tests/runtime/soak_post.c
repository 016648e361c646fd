/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak_post.c -- the posts of the soak, from any thread: each work request gets
 * a record before the post, and a buffer that no code may read after its
 * completion was taken.
 */

#include "soak.h"

#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define GIVE(p, size) __asan_unpoison_memory_region(p, size)
#define TAKE(p, size) __asan_poison_memory_region(p, size)
#elif defined(__has_include) && __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define GIVE(p, size) (void)VALGRIND_MAKE_MEM_DEFINED(p, size)
#define TAKE(p, size) (void)VALGRIND_MAKE_MEM_NOACCESS(p, size)
#else
#define GIVE(p, size) ((void)(p), (void)(size))
#define TAKE(p, size) ((void)(p), (void)(size))
#endif

#define SIDE_SIZE ((size_t)SOAK_SLOTS * SOAK_BLOCK)
#define END_SIZE  (2 * SIDE_SIZE + SOAK_WORDS)

/* the second half of the words is the destination of writes */
#define WRITE_TO (SOAK_WORDS / 2)

struct batch {
	uint32_t first;
	int count;
	struct rpma_rt_wr wrs[SOAK_BATCH];
	struct rpma_rt_recv_wr recvs[SOAK_BATCH];
};

/* --- memory */

size_t soak_block(const struct soak_end *end, int side, uint32_t slot)
{
	return (size_t)end->index * END_SIZE + (size_t)side * SIDE_SIZE +
	       (size_t)slot * SOAK_BLOCK;
}

size_t soak_words(const struct soak_end *end)
{
	return (size_t)end->index * END_SIZE + 2 * SIDE_SIZE;
}

void soak_give(const void *p, size_t size)
{
	GIVE(p, size);
}

void soak_take(const void *p, size_t size)
{
	TAKE(p, size);
}

/* A free buffer of the side, or SOAK_SLOTS. */
static uint32_t take_slot(struct soak_side *side)
{
	uint64_t slots;
	uint32_t slot;

	/* relaxed: the exchange acquires */
	slots = atomic_load_explicit(&side->slots, memory_order_relaxed);
	do {
		if (slots == 0)
			return SOAK_SLOTS;
		slot = (uint32_t)__builtin_ctzll(slots);
		/* acquire: pairs with the release of the former holder */
	} while (!atomic_compare_exchange_weak_explicit(
		&side->slots, &slots, slots & (slots - 1), memory_order_acquire,
		memory_order_relaxed));
	return slot;
}

static void return_slot(struct soak_side *side, uint32_t slot)
{
	if (slot < SOAK_SLOTS)
		/* release: pairs with the acquire in take_slot() */
		atomic_fetch_or_explicit(&side->slots, UINT64_C(1) << slot,
					 memory_order_release);
}

/* --- sequence numbers; in an ordered end under the side's lock */

static int take_numbers(struct soak_end *end, struct soak_side *side, int n,
			uint32_t *first)
{
	/* relaxed, all: only the numbers count */
	uint32_t next = atomic_load_explicit(&side->next, memory_order_relaxed);

	do {
		if (next + (uint32_t)n > side->cap)
			n = (int)(side->cap - next);
		if (n <= 0)
			return 0;
		if (end->ordered)
			break; /* taken when the post took them */
	} while (!atomic_compare_exchange_weak_explicit(
		&side->next, &next, next + (uint32_t)n, memory_order_relaxed,
		memory_order_relaxed));
	*first = next;
	return n;
}

static uint64_t context_of(const struct soak_end *end, int side, uint32_t seq)
{
	return ((uint64_t)end->index << 39) |
	       ((uint64_t)(end->gen & 0x3ff) << 29) | ((uint64_t)side << 28) |
	       seq;
}

/* --- building */

static int pick_route(struct soak_side *side, uint64_t *random)
{
	/* acquire: pairs with the release in soak_end_open_route() */
	int count =
		atomic_load_explicit(&side->routes_count, memory_order_acquire);

	return (int)soak_random(random, (uint32_t)count);
}

static enum rpma_rt_op pick_op(uint64_t *random)
{
	static const enum rpma_rt_op ops[] = {
		RPMA_RT_OP_SEND,	   RPMA_RT_OP_SEND,
		RPMA_RT_OP_SEND,	   RPMA_RT_OP_SEND_WITH_IMM,
		RPMA_RT_OP_WRITE_WITH_IMM, RPMA_RT_OP_WRITE,
		RPMA_RT_OP_WRITE,	   RPMA_RT_OP_READ};

	return ops[soak_random(random, 8)];
}

static bool is_message(int op)
{
	return op == RPMA_RT_OP_SEND || op == RPMA_RT_OP_SEND_WITH_IMM ||
	       op == RPMA_RT_OP_WRITE_WITH_IMM;
}

static void fill_message(const struct soak_end *end, char *block,
			 uint32_t number)
{
	const uint32_t words[] = {number, end->pair_gen, (uint32_t)end->index,
				  ~number};

	memcpy(block, words, sizeof(words));
}

static void mark_out(struct soak_end *end, int which, uint32_t seq)
{
	/* relaxed: handed on by the post */
	if (atomic_exchange_explicit(&end->side[which].recs[seq].state,
				     SOAK_OUT,
				     memory_order_relaxed) != SOAK_IDLE)
		soak_wrong(end, which, seq, -1, "numbered twice: the test");
}

/* Prepares a send in wr and its record. Returns false without a buffer. */
static bool build_send(struct soak_end *end, uint32_t seq, uint32_t number,
		       uint64_t *random, struct rpma_rt_wr *wr)
{
	struct soak_side *side = &end->side[RPMA_RT_SEND_SIDE];
	struct soak_rec *rec = &side->recs[seq];
	char *memory = end->epoch->memory;
	int route = pick_route(side, random);

	rec->on_error = soak_random(random, 8) == 0;
	rec->op = rec->on_error ? RPMA_RT_OP_WRITE : pick_op(random);
	rec->route = (uint8_t)route;
	rec->slot = SOAK_SLOTS;
	*wr = (struct rpma_rt_wr){
		.op = rec->op,
		.flags = rec->on_error ? RPMA_F_COMPLETION_ON_ERROR
				       : RPMA_F_COMPLETION_ALWAYS,
		.context = context_of(end, RPMA_RT_SEND_SIDE, seq),
		.route = side->routes[route].handle,
		.local = end->epoch->mr,
		.local_offset = soak_words(end),
		.remote = end->epoch->remote,
		.remote_offset = soak_words(end),
		.len = WRITE_TO,
		.imm = number,
	};
	if (rec->op != RPMA_RT_OP_READ)
		wr->remote_offset += WRITE_TO;
	if (!rec->on_error) {
		rec->slot = (uint8_t)take_slot(side);
		if (rec->slot == SOAK_SLOTS)
			return false;
		wr->local_offset =
			soak_block(end, RPMA_RT_SEND_SIDE, rec->slot);
		soak_give(memory + wr->local_offset, SOAK_BLOCK);
		fill_message(end, memory + wr->local_offset, number);
	}
	mark_out(end, RPMA_RT_SEND_SIDE, seq);
	return true;
}

static bool build_recv(struct soak_end *end, uint32_t seq, uint64_t *random,
		       struct rpma_rt_recv_wr *wr)
{
	struct soak_side *side = &end->side[RPMA_RT_RECV_SIDE];
	struct soak_rec *rec = &side->recs[seq];
	int route = pick_route(side, random);

	rec->on_error = false;
	rec->route = (uint8_t)route;
	rec->slot = (uint8_t)take_slot(side);
	if (rec->slot == SOAK_SLOTS)
		return false;
	*wr = (struct rpma_rt_recv_wr){
		.context = context_of(end, RPMA_RT_RECV_SIDE, seq),
		.route = side->routes[route].handle,
		.dst = end->epoch->mr,
		.offset = soak_block(end, RPMA_RT_RECV_SIDE, rec->slot),
		.len = SOAK_BLOCK,
	};
	soak_give(end->epoch->memory + wr->offset, SOAK_BLOCK);
	mark_out(end, RPMA_RT_RECV_SIDE, seq);
	return true;
}

/* As many as numbers and buffers allow, up to n. */
static void build(struct soak_end *end, int which, int n, uint64_t *random,
		  struct batch *batch)
{
	struct soak_side *side = &end->side[which];
	uint32_t number;
	uint32_t seq;
	bool done;
	int i;

	batch->count = 0;
	n = take_numbers(end, side, n, &batch->first);
	number = end->ordered ? side->messages : batch->first;
	for (i = 0; i < n; i++) {
		seq = batch->first + (uint32_t)i;
		done = which == RPMA_RT_SEND_SIDE
			       ? build_send(end, seq, number, random,
					    &batch->wrs[i])
			       : build_recv(end, seq, random, &batch->recvs[i]);
		if (!done)
			break;
		if (which == RPMA_RT_SEND_SIDE &&
		    is_message(side->recs[seq].op))
			number++;
		batch->count++;
	}
	for (; i < n && !end->ordered; i++)
		/* relaxed: no other thread has the records */
		atomic_store_explicit(
			&side->recs[batch->first + (uint32_t)i].state,
			SOAK_REFUSED, memory_order_relaxed);
}

/* --- posting */

/*
 * Takes refused work requests back: they never complete; record and buffer are
 * free.
 */
static void take_back(struct soak_end *end, int which,
		      const struct batch *batch, int posted)
{
	struct soak_side *side = &end->side[which];
	struct soak_rec *rec;
	uint32_t seq;
	int i;

	for (i = posted; i < batch->count; i++) {
		seq = batch->first + (uint32_t)i;
		rec = &side->recs[seq];
		/* relaxed: no other thread has the record, or the test fails */
		if (atomic_exchange_explicit(&rec->state,
					     end->ordered ? SOAK_IDLE
							  : SOAK_REFUSED,
					     memory_order_relaxed) != SOAK_OUT)
			soak_wrong(end, which, seq, -1,
				   "completed, and yet its post was refused");
		if (rec->slot < SOAK_SLOTS)
			soak_take(end->epoch->memory +
					  soak_block(end, which, rec->slot),
				  SOAK_BLOCK);
		return_slot(side, rec->slot);
	}
}

static void count_posted(struct soak_end *end, int which,
			 const struct batch *batch, int posted)
{
	struct soak_side *side = &end->side[which];
	int i;

	/* relaxed, all: counts */
	atomic_fetch_add_explicit(&end->epoch->posted, (uint64_t)posted,
				  memory_order_relaxed);
	if (!end->ordered)
		return;
	atomic_store_explicit(&side->next, batch->first + (uint32_t)posted,
			      memory_order_relaxed);
	for (i = 0; which == RPMA_RT_SEND_SIDE && i < posted; i++)
		side->messages += is_message(batch->wrs[i].op);
}

static int post(struct soak_end *end, int which, const struct batch *batch)
{
	struct rpma_rt_conn *conn = soak_conn(end);
	int posted;
	int ret;

	if (which == RPMA_RT_SEND_SIDE)
		ret = rpma_rt_post_send(conn, batch->wrs, batch->count);
	else
		ret = rpma_rt_post_recv(conn, batch->recvs, batch->count);
	posted = ret < 0 ? 0 : ret;
	/* before the records go back: they may be another's next */
	count_posted(end, which, batch, posted);
	take_back(end, which, batch, posted);
	if (ret == batch->count)
		return 0;
	if (ret >= 0 && rpma_rt_again_reason() == RPMA_RT_AGAIN_NONE) {
		/* a verb refused a chain before the last */
		if (end->epoch->trouble != SOAK_NONE)
			return RPMA_RT_E_CLOSED;
		soak_wrong(end, which, batch->first, -1, "not all were posted");
	}
	if (ret >= 0)
		ret = RPMA_E_AGAIN;
	if (ret == RPMA_E_AGAIN)
		/* relaxed: a count */
		atomic_fetch_add_explicit(
			&end->epoch->sum->refused[rpma_rt_again_reason()], 1,
			memory_order_relaxed);
	return ret;
}

/*
 * Marks a side without a free buffer: the thread that frees a buffer posts.
 * Returns false if a buffer came.
 */
static bool starve(struct soak_side *side)
{
	/* seq_cst, all, here and in soak_item.c: two threads set a word each
	 * and read the word of the other: at least one thread sees the other
	 * word set */
	atomic_store_explicit(&side->starved, true, memory_order_seq_cst);
	if (atomic_load_explicit(&side->slots, memory_order_seq_cst) == 0)
		return true;
	return !atomic_exchange_explicit(&side->starved, false,
					 memory_order_seq_cst);
}

static bool is_over(const struct soak_end *end)
{
	const struct soak_epoch *epoch = end->epoch;

	/* relaxed, both: a few more do not matter */
	return atomic_load_explicit(&epoch->closing, memory_order_relaxed) ||
	       atomic_load_explicit(&epoch->posted, memory_order_relaxed) >=
		       epoch->target;
}

static void pump(struct soak_end *end, int which, uint64_t *random, int *ret)
{
	struct soak_side *side = &end->side[which];
	struct batch batch;

	*ret = 0;
	while (*ret == 0 && !is_over(end)) {
		build(end, which, 1 + (int)soak_random(random, SOAK_BATCH),
		      random, &batch);
		if (batch.count > 0) {
			*ret = post(end, which, &batch);
			continue;
		}
		/* relaxed: a hint */
		if (atomic_load_explicit(&side->next, memory_order_relaxed) >=
			    side->cap ||
		    starve(side))
			break;
	}
}

void soak_pump(struct soak_end *end, int which, uint64_t *random)
{
	struct soak_side *side = &end->side[which];
	int ret;

	/* acquire: pairs with the release in soak_item.c */
	if (which == RPMA_RT_SEND_SIDE &&
	    !atomic_load_explicit(&end->established, memory_order_acquire))
		return;
	if (end->ordered)
		pthread_mutex_lock(&side->lock);
	pump(end, which, random, &ret);
	if (end->ordered)
		pthread_mutex_unlock(&side->lock);
	/* relaxed: a hint */
	if (atomic_load_explicit(&side->next, memory_order_relaxed) >=
	    side->cap)
		soak_trigger(end, random);
	if (ret == RPMA_E_NOMEM)
		soak_end_close(end); /* nothing may be left to wait for */
	else if (ret && ret != RPMA_E_AGAIN && ret != RPMA_RT_E_CLOSED)
		soak_wrong(end, which, 0, -1, rpma_rt_err_2str(ret));
}

/* --- the end's end */

/* Posts a single send; nowhere: with an invalid remote address. */
static int post_one(struct soak_end *end, bool nowhere, uint64_t *random)
{
	struct soak_side *side = &end->side[RPMA_RT_SEND_SIDE];
	struct batch batch;
	int ret = RPMA_E_AGAIN;

	if (end->ordered)
		pthread_mutex_lock(&side->lock);
	build(end, RPMA_RT_SEND_SIDE, 1, random, &batch);
	if (batch.count == 1) {
		if (nowhere) {
			batch.wrs[0].op = RPMA_RT_OP_WRITE;
			batch.wrs[0].remote = end->epoch->nowhere;
			side->recs[batch.first].op = RPMA_RT_OP_WRITE;
		}
		ret = post(end, RPMA_RT_SEND_SIDE, &batch);
	}
	if (end->ordered)
		pthread_mutex_unlock(&side->lock);
	return ret;
}

void soak_trigger(struct soak_end *end, uint64_t *random)
{
	struct soak_epoch *epoch = end->epoch;
	struct soak_end *peer;

	/* relaxed: only the first caller matters */
	if (atomic_exchange_explicit(&end->triggered, true,
				     memory_order_relaxed))
		return;
	switch (end->cause) {
	case SOAK_CLOSE_PEER:
	case SOAK_CLOSE_BOTH:
		peer = soak_end_peer(end);
		if (peer == NULL || end->cause == SOAK_CLOSE_BOTH)
			soak_end_close(end);
		if (peer != NULL) {
			soak_end_close(peer);
			soak_end_put(peer);
		}
		return;
	case SOAK_BAD_WRITE:
		if (post_one(end, true, random))
			soak_end_close(end);
		return;
	case SOAK_FATAL:
		if (epoch->loop == NULL ||
		    !soak_trouble_fatal(end, post_one, random))
			soak_end_close(end);
		return;
	case SOAK_BREAK_CQ:
		/* relaxed: a count */
		if (atomic_fetch_sub_explicit(&epoch->breaks_left, 1,
					      memory_order_relaxed) > 0)
			atomic_fetch_add_explicit(&epoch->breaks, 1,
						  memory_order_relaxed);
		soak_end_close(end);
		return;
	default:
		soak_end_close(end);
	}
}
