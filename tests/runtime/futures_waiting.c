/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures_waiting.c -- work requests in line, with a future and without: taken
 * up to the limit, posted in order; work requests with a future, cancelled or
 * dropped before, have no effect; a link waits as a whole; the memory of the
 * caller belongs to the caller again when the post returns; when the connection
 * ends, the line was not posted. The peer posts no receive as long as the send
 * queue is to stay full. Last, two threads that cancel and drop at any step,
 * and a thread without futures that waits for WRITABLE after a refusal; and a
 * poller that goes from the poster to another thread and back.
 *
 * usage: runtime_futures_waiting [messages of a thread [seed]]
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH	4
#define FUTURES 64
#define WAITING 16
#define LANE	64
#define LED	(LANE + WAITING) /* more than the lane holds */
#define LEN	8u
#define PATIENT WORLD_PATIENCE_MS

struct scene {
	struct stage s;
	struct world_pair pair;
};

/* the poller's thread, and the posters */
enum kind {
	THREAD, /* a poller with a thread */
	ASLEEP, /* by hand, and the poller sleeps */
	MANUAL
};

static void open_stage(struct scene *c, enum kind kind)
{
	enum rpma_rt_mode mode = kind == THREAD	  ? RPMA_RT_MODE_ADAPTIVE
				 : kind == ASLEEP ? RPMA_RT_MODE_EVENT
						  : RPMA_RT_MODE_MANUAL;
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};

	stage_open(&c->s, &cfg);
	if (mode == RPMA_RT_MODE_MANUAL)
		MUST(rpma_rt_poller_attach(c->s.world.rt, 0));
	c->s.cfg->rq_size = 2 * FUTURES;
	c->s.cfg->futures = FUTURES;
	c->s.cfg->waiting = WAITING;
	c->s.cfg->max_inline = 32;
	c->s.cfg->max_sge = 2;
}

static void open_scene(struct scene *c, enum kind kind)
{
	open_stage(c, kind);
	stage_connect(&c->s, &c->pair);
}

static void close_scene(struct scene *c)
{
	stage_disconnect(&c->s, &c->pair);
	stage_close(&c->s);
}

/* ------------------------------------------------------------- posting --- */

/* Sends a message with the number, which is its context, too. */
static int try_send(struct scene *c, uint32_t number,
		    struct rpma_rt_future *future, uint32_t flags)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send_with_imm(&wr, c->s.mr, 0, LEN, number, flags, number);
	wr.future = future;
	return rpma_rt_post_send(c->pair.active, &wr, 1);
}

static void send_some(struct scene *c, uint32_t first,
		      struct rpma_rt_future *futures, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		MUST_ANSWER(1, try_send(c, first + i, &futures[i], 0));
}

static void post_receives(struct scene *c, uint32_t count)
{
	struct rpma_rt_recv_wr wr;
	uint32_t i;

	for (i = 0; i < count; i++) {
		rpma_rt_prep_recv(&wr, c->s.mr, 64, LEN, i);
		MUST(world_post_recv(c->pair.passive, &wr));
	}
}

/* Takes the next message, with the number. */
static void take_message(struct scene *c, uint32_t number)
{
	struct rpma_rt_completion item = world_next(c->s.pq);
	uint32_t imm;

	CHECK(item.kind == RPMA_RT_COMPLETION && item.status == IBV_WC_SUCCESS);
	CHECK(rpma_rt_completion_imm(&item, &imm) && imm == number);
}

static void take_writable(struct scene *c)
{
	struct rpma_rt_completion item = world_next(c->s.aq);

	CHECK(item.kind == RPMA_RT_WRITABLE && item.opcode == 0);
}

/* As many as there are. */
static void take_writables(struct scene *c)
{
	struct rpma_rt_completion item;

	while (rpma_rt_queue_wait(c->s.aq, &item, 1, 2) == 1)
		CHECK(item.kind == RPMA_RT_WRITABLE);
}

static void check_empty(struct scene *c)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(0, rpma_rt_queue_wait(c->s.aq, &item, 1, 2));
	MUST_ANSWER(0, rpma_rt_queue_wait(c->s.pq, &item, 1, 2));
}

static void take_results(struct rpma_rt_future *futures, uint32_t first,
			 uint32_t count)
{
	struct rpma_rt_completion cmpl;
	uint32_t i;

	for (i = 0; i < count; i++) {
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[i], &cmpl, PATIENT));
		CHECK(rpma_rt_completion_is_ok(&cmpl));
		CHECK(cmpl.context == first + i);
		MUST(rpma_rt_future_drop(&futures[i]));
	}
}

/* ------------------------------------------------------------ in order --- */

/* Every third message is without a future. */
static void wait__in_order_whatever_has_a_future(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH + WAITING + 1];
	const uint32_t all = DEPTH + WAITING;
	struct rpma_rt_completion cmpl;
	uint32_t i;

	for (i = 0; i < all; i++)
		MUST_ANSWER(1, try_send(c, i, i % 3 ? &futures[i] : NULL, 0));
	MUST_ANSWER(RPMA_E_AGAIN, try_send(c, all, &futures[all], 0));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
	MUST_ANSWER(RPMA_E_AGAIN, try_send(c, all, NULL, 0));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
	for (i = 0; i < all; i++) {
		if (i % 3)
			MUST_ANSWER(0, rpma_rt_future_poll(&futures[i], &cmpl));
	}
	post_receives(c, 1);
	take_message(c, 0);
	cmpl = stage_completion(c->s.aq, 0, IBV_WC_SUCCESS);
	take_writable(c);
	/* there is a place, behind all of them */
	MUST_ANSWER(1, try_send(c, all, NULL, 0));
	post_receives(c, all);
	for (i = 1; i <= all; i++)
		take_message(c, i);
	for (i = 1; i <= all; i++) {
		if (i < all && i % 3)
			take_results(&futures[i], i, 1);
		else
			stage_completion(c->s.aq, i, IBV_WC_SUCCESS);
	}
	check_empty(c);
}

/* In a single call: as many as there is room for, and as may wait. */
static void wait__of_one_call(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH + WAITING + 2];
	struct rpma_rt_wr wr[DEPTH + WAITING + 2];
	const int all = DEPTH + WAITING;
	int i;

	for (i = 0; i < all + 2; i++) {
		rpma_rt_prep_send_with_imm(&wr[i], c->s.mr, 0, LEN, (uint32_t)i,
					   0, (uint64_t)i);
		wr[i].future = &futures[i];
	}
	wr[all + 1].op = 0; /* before anything is posted, or waits */
	CHECK(rpma_rt_post_send(c->pair.active, wr, all + 2) == RPMA_E_INVAL);
	MUST_ANSWER(all, rpma_rt_post_send(c->pair.active, wr, all + 1));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
	post_receives(c, (uint32_t)all);
	for (i = 0; i < all; i++)
		take_message(c, (uint32_t)i);
	take_results(futures, 0, (uint32_t)all);
	take_writable(c);
	check_empty(c);
}

static void recv__waits_too(struct scene *c)
{
	struct rpma_rt_future futures[2 * FUTURES];
	struct rpma_rt_completion cmpl;
	struct rpma_rt_recv_wr wr;
	int ret = 1;
	int n = 0;
	int i;

	for (i = 0; i < 2 * FUTURES - 8; i++) { /* all but eight */
		rpma_rt_prep_recv(&wr, c->s.mr, 64, LEN, 0);
		MUST(world_post_recv(c->pair.passive, &wr));
	}
	while (ret == 1) {
		rpma_rt_prep_recv(&wr, c->s.mr, 64, LEN, (uint64_t)n);
		wr.future = &futures[n];
		ret = rpma_rt_post_recv(c->pair.passive, &wr, 1);
		n += ret == 1;
	}
	CHECK(ret == RPMA_E_AGAIN && n == 8 + WAITING);
	for (i = 0; i < 2 * FUTURES - 8 + n; i++) {
		MUST_ANSWER(1, try_send(c, (uint32_t)i, NULL, 0));
		stage_completion(c->s.aq, (uint64_t)i, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 2 * FUTURES - 8; i++) {
		cmpl = world_next(c->s.pq);
		if (cmpl.kind == RPMA_RT_WRITABLE)
			cmpl = world_next(c->s.pq);
		CHECK(cmpl.kind == RPMA_RT_COMPLETION);
	}
	for (i = 0; i < n; i++) {
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[i], &cmpl, PATIENT));
		CHECK(cmpl.status == IBV_WC_SUCCESS);
		CHECK(cmpl.context == (uint64_t)i);
		CHECK(ntohl(cmpl.imm) == (uint32_t)(2 * FUTURES - 8 + i));
		MUST(rpma_rt_future_drop(&futures[i]));
	}
	check_empty(c);
}

/* -------------------------------------------------- cancelled, dropped --- */

static void cancel__NOT_POSTED(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH + 3];
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	int i;

	send_some(c, 0, futures, DEPTH + 3);
	for (i = 0; i < 2; i++) {
		MUST(rpma_rt_future_cancel(&futures[DEPTH], &cancelled));
		CHECK(cancelled == RPMA_RT_CANCELLED_NOT_POSTED);
	}
	MUST_ANSWER(1, rpma_rt_future_wait(&futures[DEPTH], &cmpl, PATIENT));
	CHECK(cmpl.context == DEPTH && cmpl.opcode == IBV_WC_SEND);
	CHECK(cmpl.flags == (RPMA_RT_C_DETACHED | RPMA_RT_C_NOT_POSTED));
	MUST(rpma_rt_future_drop(&futures[DEPTH]));
	MUST(rpma_rt_future_drop(&futures[DEPTH + 1]));
	post_receives(c, DEPTH + 1);
	for (i = 0; i < DEPTH; i++)
		take_message(c, (uint32_t)i);
	take_message(c, DEPTH + 2);
	take_results(futures, 0, DEPTH);
	take_results(&futures[DEPTH + 2], DEPTH + 2, 1);
	check_empty(c);
}

/* Cancelled work requests take no room from others. */
static void cancel__again_and_again(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH + WAITING - 1];
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future other;
	int i;

	send_some(c, 0, futures, DEPTH + WAITING - 1);
	for (i = 0; i < 20 * WAITING; i++) {
		while (try_send(c, 1000, &other, 0) != 1) {
			/* the slot of another message, or its place in line, is
			 * free in a moment */
			CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_FUTURES ||
			      rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
			MUST_ANSWER(0,
				    rpma_rt_future_wait(&futures[0], &cmpl, 1));
		}
		MUST(rpma_rt_future_cancel(&other, &cancelled));
		CHECK(cancelled == RPMA_RT_CANCELLED_NOT_POSTED);
		MUST(rpma_rt_future_drop(&other));
	}
	post_receives(c, DEPTH + WAITING - 1);
	for (i = 0; i < DEPTH + WAITING - 1; i++)
		take_message(c, (uint32_t)i);
	take_results(futures, 0, DEPTH + WAITING - 1);
	take_writables(c);
}

/* A refused poster gets WRITABLE with the next completion, and a place taken
 * back is a place. */
static void cancel__others_are_told(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH + WAITING];
	const uint32_t all = DEPTH + WAITING;
	enum rpma_rt_cancelled cancelled;
	uint32_t i;

	send_some(c, 0, futures, all);
	MUST_ANSWER(RPMA_E_AGAIN, try_send(c, 50, NULL, 0));
	for (i = DEPTH; i < all; i++) {
		MUST(rpma_rt_future_cancel(&futures[i], &cancelled));
		CHECK(cancelled == RPMA_RT_CANCELLED_NOT_POSTED);
		MUST(rpma_rt_future_drop(&futures[i]));
	}
	post_receives(c, DEPTH + 1);
	take_message(c, 0);
	take_writable(c);
	MUST_ANSWER(1, try_send(c, 50, NULL, 0));
	for (i = 1; i < DEPTH; i++)
		take_message(c, i);
	take_message(c, 50);
	take_results(futures, 0, DEPTH);
	stage_completion(c->s.aq, 50, IBV_WC_SUCCESS);
	check_empty(c);
}

static _Atomic int calls;

static void on_result(const struct rpma_rt_completion *cmpl, void *arg)
{
	CHECK(cmpl->context == *(uint32_t *)arg);
	/* release: the arguments of the call */
	atomic_fetch_add_explicit(&calls, 1, memory_order_release);
}

static void then__called_when_posted(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH + 2];
	struct rpma_rt_completion cmpl;
	uint32_t context = DEPTH;
	int i;

	/* relaxed: no function is due */
	atomic_store_explicit(&calls, 0, memory_order_relaxed);
	send_some(c, 0, futures, DEPTH + 2);
	MUST(rpma_rt_future_then(&futures[DEPTH], on_result, &context));
	MUST(rpma_rt_future_then(&futures[DEPTH + 1], on_result, &context));
	MUST_ANSWER(0, rpma_rt_future_drop(&futures[DEPTH + 1]));
	post_receives(c, DEPTH + 1);
	for (i = 0; i <= DEPTH; i++)
		take_message(c, (uint32_t)i);
	/* acquire: pairs with on_result() */
	while (atomic_load_explicit(&calls, memory_order_acquire) < 1)
		MUST_ANSWER(0, rpma_rt_queue_wait(c->s.aq, &cmpl, 1, 1));
	MUST_ANSWER(1, rpma_rt_future_drop(&futures[DEPTH]));
	take_results(futures, 0, DEPTH);
	check_empty(c);
	/* relaxed: likewise */
	CHECK(atomic_load_explicit(&calls, memory_order_relaxed) == 1);
}

/* ---------------------------------------------------------------- links --- */

static int post_link(struct scene *c, uint32_t number,
		     struct rpma_rt_future *future, uint32_t first_flags)
{
	struct rpma_rt_wr wr[2];

	rpma_rt_prep_write(&wr[0], c->s.remote, 512 + 8 * number, c->s.mr, 256,
			   LEN, first_flags, 0);
	rpma_rt_prep_send_with_imm(&wr[1], c->s.mr, 0, LEN, number, 0, number);
	wr[1].future = future;
	return rpma_rt_post_send(c->pair.active, wr, 2);
}

static void link__waits_as_one(struct scene *c)
{
	const uint32_t part = RPMA_RT_F_LINKED | RPMA_RT_F_PART;
	struct rpma_rt_future futures[DEPTH + 2];
	enum rpma_rt_cancelled cancelled;
	int i;

	memcpy(c->s.memory + 256, "written", 8);
	send_some(c, 0, futures, DEPTH - 1);
	/* room for a single work request, so not for the link */
	MUST_ANSWER(2, post_link(c, 10, &futures[DEPTH], part));
	MUST_ANSWER(2, post_link(c, 11, &futures[DEPTH + 1], part));
	/* nothing overtakes the link, though there is room for one */
	MUST_ANSWER(1, try_send(c, 99, NULL, 0));
	MUST(rpma_rt_future_cancel(&futures[DEPTH], &cancelled));
	CHECK(cancelled == RPMA_RT_CANCELLED_NOT_POSTED);
	MUST(rpma_rt_future_drop(&futures[DEPTH]));
	post_receives(c, DEPTH + 1);
	for (i = 0; i < DEPTH - 1; i++)
		take_message(c, (uint32_t)i);
	take_message(c, 11);
	take_message(c, 99);
	take_results(futures, 0, DEPTH - 1);
	take_results(&futures[DEPTH + 1], 11, 1);
	stage_completion(c->s.aq, 99, IBV_WC_SUCCESS);
	CHECK(memcmp(c->s.memory + 512 + 88, "written", 8) == 0);
	CHECK(c->s.memory[512 + 80] == 0 && c->s.memory[512 + 96] == 0);
	check_empty(c);
}

/* A link with more than one outcome waits too. A part of its outcomes cannot be
 * taken back, so nothing of the link can. */
static void link__of_two_outcomes_is_not_taken_back(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH];
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	int i;

	send_some(c, 0, futures, DEPTH);
	MUST_ANSWER(2, post_link(c, 12, &future,
				 RPMA_RT_F_LINKED | RPMA_F_COMPLETION_ALWAYS));
	MUST(rpma_rt_future_cancel(&future, &cancelled));
	CHECK(cancelled == RPMA_RT_CANCELLED_DETACHED);
	post_receives(c, DEPTH + 1);
	for (i = 0; i < DEPTH; i++)
		take_message(c, (uint32_t)i);
	take_message(c, 12);
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	CHECK(cmpl.flags & RPMA_RT_C_DETACHED);
	MUST(rpma_rt_future_drop(&future));
	take_results(futures, 0, DEPTH);
	stage_completion(c->s.aq, 0, IBV_WC_SUCCESS);
	check_empty(c);
}

/* ------------------------------------------------ borrowed for the call --- */

/* Inline bytes, pieces and the work request itself are the caller's again when
 * the post returns, in line or not. */
static void borrowed__copied_before_the_post_returns(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH];
	struct rpma_sge pieces[2];
	struct rpma_rt_wr wr;
	int i;

	send_some(c, 0, futures, DEPTH);
	memcpy(c->s.memory + 256, "inlined!", 8);
	rpma_rt_prep_write(&wr, c->s.remote, 1024, c->s.mr, 256, 8,
			   RPMA_RT_F_INLINE, 60);
	MUST_ANSWER(1, rpma_rt_post_send(c->pair.active, &wr, 1));
	memset(c->s.memory + 256, 0, 8);
	memset(&wr, 0xff, sizeof(wr));
	memcpy(c->s.memory + 320, "pieces", 6);
	pieces[0] = (struct rpma_sge){.mr = c->s.mr, .offset = 320, .len = 3};
	pieces[1] = (struct rpma_sge){.mr = c->s.mr, .offset = 323, .len = 3};
	wr = (struct rpma_rt_wr){.op = RPMA_RT_OP_WRITE,
				 .flags = RPMA_F_COMPLETION_ALWAYS,
				 .context = 61,
				 .pieces = pieces,
				 .piece_count = 2,
				 .remote = c->s.remote,
				 .remote_offset = 1040};
	MUST_ANSWER(1, rpma_rt_post_send(c->pair.active, &wr, 1));
	memset(pieces, 0xff, sizeof(pieces));
	memset(&wr, 0xff, sizeof(wr));
	CHECK(c->s.memory[1024] == 0 && c->s.memory[1040] == 0);
	post_receives(c, DEPTH);
	for (i = 0; i < DEPTH; i++)
		take_message(c, (uint32_t)i);
	take_results(futures, 0, DEPTH);
	stage_completion(c->s.aq, 60, IBV_WC_SUCCESS);
	stage_completion(c->s.aq, 61, IBV_WC_SUCCESS);
	CHECK(memcmp(c->s.memory + 1024, "inlined!", 8) == 0);
	CHECK(memcmp(c->s.memory + 1040, "pieces", 6) == 0);
	memset(c->s.memory + 1024, 0, 32);
	check_empty(c);
}

/* -------------------------------------------------------------- backlog --- */

/*
 * The queue of the connection is over its limit: posts are refused until the
 * backlog clears.
 */
static void backlog__refused_until_it_eases(enum kind kind)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_completion items[64];
	struct rpma_rt_future future;
	struct rpma_rt_queue *aq;
	struct scene c;
	uint32_t sent = 0;
	uint32_t i;

	open_stage(&c, kind);
	aq = c.s.aq;
	cfg.lane_size = 64;
	cfg.backlog_limit = 1;
	MUST(rpma_rt_queue_new(c.s.world.rt, &cfg, &c.s.aq));
	stage_connect(&c.s, &c.pair);
	post_receives(&c, 2 * FUTURES);
	while (try_send(&c, sent, NULL, 0) == 1 ||
	       rpma_rt_again_reason() != RPMA_RT_AGAIN_BACKLOG) {
		sent += rpma_rt_again_reason() == RPMA_RT_AGAIN_NONE;
		CHECK(sent < 2 * FUTURES - 2);
		if (kind == MANUAL)
			CHECK(rpma_rt_poller_run(c.s.world.rt, 0, 64) >= 0);
	}
	/* a dropped future would deliver there */
	MUST_ANSWER(RPMA_E_AGAIN, try_send(&c, 1000, &future, 0));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG);
	for (i = 0; i < sent;) {
		int n = rpma_rt_queue_wait(c.s.aq, items, 64, PATIENT);
		int k;

		CHECK(n > 0);
		for (k = 0; k < n; k++)
			i += items[k].kind == RPMA_RT_COMPLETION;
	}
	while (try_send(&c, 1000, &future, 0) != 1) {
		CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG);
		take_writable(&c);
	}
	take_results(&future, 1000, 1);
	for (i = 0; i < sent; i++)
		take_message(&c, i);
	take_message(&c, 1000);
	MUST(rpma_rt_conn_close(c.pair.active));
	while (rpma_rt_queue_wait(c.s.aq, items, 1, PATIENT) != 1 ||
	       items[0].kind != RPMA_RT_EVENT)
		;
	do
		items[0] = world_next(c.s.pq);
	while (items[0].kind != RPMA_RT_EVENT);
	world_unref(&c.pair);
	MUST(rpma_rt_queue_delete(&c.s.aq));
	c.s.aq = aq;
	stage_close(&c.s);
}

/* ----------------------------------------------------------------- ends --- */

static void close__NOT_POSTED(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH + 3];
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	int i;

	send_some(c, 0, futures, DEPTH + 3);
	MUST(rpma_rt_future_cancel(&futures[DEPTH + 1], &cancelled));
	MUST(rpma_rt_conn_close(c->pair.active));
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	for (i = 0; i < DEPTH + 3; i++) {
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[i], &cmpl, PATIENT));
		CHECK(cmpl.context == (uint64_t)i);
		CHECK(cmpl.status != IBV_WC_SUCCESS);
		CHECK(!!(cmpl.flags & RPMA_RT_C_NOT_POSTED) == (i >= DEPTH));
		CHECK(!(cmpl.flags & RPMA_RT_C_SYNTHESIZED) || i < DEPTH);
		MUST(rpma_rt_future_drop(&futures[i]));
	}
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&c->pair);
	stage_close(&c->s);
}

static void stop__NOT_POSTED(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH + 2];
	struct rpma_rt_completion cmpl;

	send_some(c, 0, futures, DEPTH + 2);
	MUST(rpma_rt_future_drop(&futures[0]));
	MUST(rpma_rt_future_drop(&futures[1]));
	MUST(rpma_rt_future_drop(&futures[2]));
	MUST(rpma_rt_future_drop(&futures[3]));
	MUST(rpma_rt_stop(c->s.world.rt));
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST_ANSWER(1, rpma_rt_future_poll(&futures[DEPTH], &cmpl));
	CHECK(cmpl.flags == RPMA_RT_C_NOT_POSTED);
	MUST(rpma_rt_future_drop(&futures[DEPTH]));
	MUST(rpma_rt_future_drop(&futures[DEPTH + 1]));
	world_unref(&c->pair);
	stage_close(&c->s);
}

/* Rounds until there is nothing to do. */
static void run_rounds(struct scene *c)
{
	int ret;

	do
		ret = rpma_rt_poller_run(c->s.world.rt, 0, 64);
	while (ret > 0);
	CHECK(ret == 0);
}

static int send_by(struct scene *c, struct rpma_rt_route *route,
		   uint32_t number)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send_with_imm(&wr, c->s.mr, 0, LEN, number, 0, number);
	wr.route = route;
	return rpma_rt_post_send(c->pair.active, &wr, 1);
}

/* Sends messages by the route, each received, until its consumer is behind;
 * returns how many. */
static uint32_t fill_backlog(struct scene *c, struct rpma_rt_route *route)
{
	uint32_t sent = 0;

	post_receives(c, 1);
	for (;;) {
		if (send_by(c, route, sent) == 1) {
			take_message(c, sent++);
			post_receives(c, 1);
			CHECK(sent < 2 * FUTURES);
		} else if (rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG) {
			return sent;
		}
		run_rounds(c);
	}
}

static struct rpma_rt_queue *narrow_queue(struct scene *c)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;

	cfg.lane_size = LANE;
	cfg.backlog_limit = 1;
	MUST(rpma_rt_queue_new(c->s.world.rt, &cfg, &queue));
	return queue;
}

/* The end of both connections, whatever else is in the queues. */
static void end_pair(struct scene *c, struct rpma_rt_queue *aq)
{
	struct rpma_rt_completion item;

	MUST(rpma_rt_conn_close(c->pair.active));
	do
		item = world_next(aq);
	while (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	do
		item = world_next(c->s.pq);
	while (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	world_unref(&c->pair);
}

/* The consumer of a route has caught up: a refused poster of the route gets
 * WRITABLE, though others stand in line. */
static void backlog__answered_beside_a_line(void)
{
	struct rpma_rt_future futures[DEPTH + 2];
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;
	struct scene c;
	uint32_t sent;

	open_scene(&c, MANUAL);
	queue = narrow_queue(&c);
	MUST(rpma_rt_route_open(c.pair.active, RPMA_RT_SEND_SIDE, queue,
				&route));
	sent = fill_backlog(&c, route);
	/* the remaining receive is for the first of these; the last waits */
	send_some(&c, 0, futures, DEPTH + 2);
	take_message(&c, 0);
	for (; sent > 0; sent--)
		CHECK(world_next(queue).kind == RPMA_RT_COMPLETION);
	take_writable(&c);
	post_receives(&c, DEPTH + 1);
	take_results(futures, 0, DEPTH + 2);
	end_pair(&c, c.s.aq);
	CHECK(world_next(queue).opcode == RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_queue_delete(&queue));
	stage_close(&c.s);
}

/* Fills the queue and the line; the result of each future is led to the
 * connection's queue. */
static void fill_line(struct scene *c, struct rpma_rt_future *futures)
{
	uint32_t i;

	for (i = 0; i < DEPTH + WAITING; i++) {
		MUST_ANSWER(1, try_send(c, i, &futures[i], 0));
		MUST(rpma_rt_future_deliver(&futures[i], NULL));
	}
	MUST_ANSWER(RPMA_E_AGAIN, try_send(c, i, NULL, 0));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
}

/* Takes everything in the queue of the active end, CLOSED last: items
 * completions, of which not_posted say NOT_POSTED. */
static void take_all(struct scene *c, uint32_t items, uint32_t not_posted)
{
	struct rpma_rt_completion item;

	do {
		item = world_next(c->s.aq);
		if (item.kind != RPMA_RT_COMPLETION)
			continue;
		items--;
		if (item.flags & RPMA_RT_C_NOT_POSTED)
			not_posted--;
	} while (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	CHECK(items == 0 && not_posted == 0);
}

/* A queue whose consumer is behind has room for every item of a connection: for
 * results led to the queue, for work requests flushed by the close, for the
 * line, which was not posted, and for CLOSED. */
static void close__room_for_every_item(void)
{
	struct rpma_rt_future futures[LED + DEPTH + WAITING];
	struct rpma_rt_completion item;
	struct rpma_rt_queue *aq;
	struct scene c;
	uint32_t i;

	open_stage(&c, MANUAL);
	aq = c.s.aq;
	c.s.cfg->futures = LED + DEPTH + WAITING;
	c.s.aq = narrow_queue(&c);
	stage_connect(&c.s, &c.pair);
	for (i = 0; i < LED; i++) {
		post_receives(&c, 1);
		MUST_ANSWER(1, try_send(&c, i, &futures[i], 0));
		take_message(&c, i);
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[i], &item, PATIENT));
	}
	fill_line(&c, &futures[LED]);
	for (i = 0; i < LED; i++) {
		MUST(rpma_rt_future_deliver(&futures[i], NULL));
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[i], &item, PATIENT));
		CHECK(rpma_rt_future_drop(&futures[i]) >= 0);
	}
	run_rounds(&c);
	MUST(rpma_rt_conn_close(c.pair.active));
	take_all(&c, LED + DEPTH + WAITING, WAITING);
	for (i = 0; i < DEPTH + WAITING; i++)
		CHECK(rpma_rt_future_drop(&futures[LED + i]) >= 0);
	do
		item = world_next(c.s.pq);
	while (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	world_unref(&c.pair);
	MUST(rpma_rt_queue_delete(&c.s.aq));
	c.s.aq = aq;
	stage_close(&c.s);
}

static int (*device_post)(struct ibv_qp *qp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad);
static struct rpma_rt_future *dropped; /* inside the verb; NULL: no future */
static int cuts;

/* The device takes the first part of a link and refuses the rest. */
static int post_and_cut(struct ibv_qp *qp, struct ibv_send_wr *wr,
			struct ibv_send_wr **bad)
{
	struct ibv_send_wr *rest = wr->next;

	if (rest == NULL)
		return device_post(qp, wr, bad);
	wr->next = NULL;
	CHECK(device_post(qp, wr, bad) == 0);
	wr->next = rest;
	if (dropped != NULL)
		MUST(rpma_rt_future_drop(dropped));
	cuts++;
	*bad = rest;
	return ENOMEM;
}

/* the end of the future */
enum end { CANCELLED, DROPPED, AWAITED };

/* A link that waited, of which the device takes a part: the posted part has its
 * effect, so the link cannot be taken back, and its outcome is unknown; nothing
 * of the link stays held. */
static void verb_fails__cut_link_is_over(enum end end)
{
	const uint32_t part = RPMA_RT_F_LINKED | RPMA_RT_F_PART;
	struct rpma_rt_future futures[DEPTH];
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	struct ibv_context *ibv_ctx;
	struct scene c;
	int i;

	/* as long as a thread posts to the queue pair */
	open_stage(&c, MANUAL);
	ibv_ctx = c.s.world.ibv_ctx;
	device_post = ibv_ctx->ops.post_send;
	ibv_ctx->ops.post_send = post_and_cut;
	stage_connect(&c.s, &c.pair);
	send_some(&c, 0, futures, DEPTH);
	MUST_ANSWER(2, post_link(&c, 10, &future, part));
	dropped = end == DROPPED ? &future : NULL;
	cuts = 0;
	post_receives(&c, DEPTH);
	while (cuts == 0)
		CHECK(rpma_rt_poller_run(c.s.world.rt, 0, 64) >= 0);
	if (end == CANCELLED) {
		MUST(rpma_rt_future_cancel(&future, &cancelled));
		CHECK(cancelled == RPMA_RT_CANCELLED_DETACHED);
	}
	if (end != DROPPED) {
		MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
		CHECK(cmpl.context == 10);
		CHECK(cmpl.flags == (end == CANCELLED ? RPMA_RT_C_DETACHED
						      : RPMA_RT_C_SYNTHESIZED));
		MUST(rpma_rt_future_drop(&future));
	}
	for (i = 0; i < DEPTH; i++) {
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[i], &cmpl, PATIENT));
		MUST(rpma_rt_future_drop(&futures[i]));
	}
	end_pair(&c, c.s.aq);
	ibv_ctx->ops.post_send = device_post;
	stage_close(&c.s); /* BUSY, if the link were held */
}

/* ----------------------------------------------------------------- race --- */

#define HELD	16
#define THREADS 3 /* the last thread posts without futures */

struct race {
	struct scene c;
	uint32_t messages;
	_Atomic uint32_t ended; /* threads that have posted everything */
	_Atomic uint8_t *sent;	/* by number: was posted */
};

struct racer {
	struct race *race;
	pthread_t thread;
	uint32_t index;
	uint32_t seed;
};

/*
 * Returns true if the message was posted, and is over; false if the message was
 * taken back.
 */
static bool finish(struct racer *racer, struct rpma_rt_future *future)
{
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	bool is_posted = true;

	if (world_roll(&racer->seed, 3) == 0) {
		MUST(rpma_rt_future_cancel(future, &cancelled));
		is_posted = cancelled != RPMA_RT_CANCELLED_NOT_POSTED;
	}
	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, PATIENT));
	CHECK(!(cmpl.flags & RPMA_RT_C_NOT_POSTED) == is_posted);
	CHECK(is_posted || (cmpl.flags & RPMA_RT_C_DETACHED));
	MUST(rpma_rt_future_drop(future));
	return is_posted;
}

static void *race_main(void *arg)
{
	struct racer *racer = arg;
	struct race *race = racer->race;
	struct rpma_rt_future futures[HELD];
	uint32_t numbers[HELD];
	uint32_t count = 0;
	uint32_t n = 0;
	uint32_t i;
	int ret;

	while (n < race->messages || count > 0) {
		if (n < race->messages && count < HELD &&
		    world_roll(&racer->seed, 3) != 0) {
			numbers[count] = n * THREADS + racer->index;
			ret = try_send(&race->c, numbers[count],
				       &futures[count], 0);
			if (ret == 1) {
				count++;
				n++;
				continue;
			}
			CHECK(ret == RPMA_E_AGAIN);
			sched_yield();
		}
		if (count == 0)
			continue;
		i = world_roll(&racer->seed, count);
		/* relaxed: read after the join */
		atomic_store_explicit(&race->sent[numbers[i]],
				      finish(racer, &futures[i]),
				      memory_order_relaxed);
		futures[i] = futures[--count];
		numbers[i] = numbers[count];
	}
	/* relaxed: the futures are over, so the messages have arrived */
	atomic_fetch_add_explicit(&race->ended, 1, memory_order_relaxed);
	return NULL;
}

static void *plain_main(void *arg)
{
	struct racer *racer = arg;
	struct race *race = racer->race;
	struct rpma_rt_completion item;
	uint32_t taken = 0;
	uint32_t n = 0;

	while (taken < race->messages) {
		if (n < race->messages &&
		    try_send(&race->c, n * THREADS + racer->index, NULL, 0) ==
			    1) {
			/* relaxed: read after the join */
			atomic_store_explicit(
				&race->sent[n * THREADS + racer->index], true,
				memory_order_relaxed);
			n++;
			continue;
		}
		/* a refusal is followed by WRITABLE, whoever waits for room */
		do {
			item = world_next(race->c.s.aq);
			taken += item.kind == RPMA_RT_COMPLETION;
		} while (n < race->messages && item.kind != RPMA_RT_WRITABLE);
	}
	/* relaxed: the completions came, so the messages have arrived */
	atomic_fetch_add_explicit(&race->ended, 1, memory_order_relaxed);
	return NULL;
}

/* Posts a receive for each message taken; the numbers of each thread rise. */
static void receive_all(struct race *race, uint8_t *got)
{
	struct rpma_rt_completion item;
	uint32_t last[THREADS] = {0};
	uint32_t imm;
	int n;

	post_receives(&race->c, FUTURES);
	for (;;) {
		/* relaxed: another look follows */
		bool is_over =
			atomic_load_explicit(&race->ended,
					     memory_order_relaxed) == THREADS;

		n = rpma_rt_queue_wait(race->c.s.pq, &item, 1,
				       is_over ? 10 : 1);
		if (n == 0 && is_over)
			return;
		if (n == 0)
			continue;
		CHECK(n == 1 && item.status == IBV_WC_SUCCESS);
		CHECK(rpma_rt_completion_imm(&item, &imm));
		CHECK(imm < race->messages * THREADS && got[imm] == 0);
		CHECK(imm >= last[imm % THREADS]);
		last[imm % THREADS] = imm;
		got[imm] = 1;
		post_receives(&race->c, 1);
	}
}

static void race__each_once_or_taken_back(uint32_t messages, uint32_t seed)
{
	const uint32_t all = messages * THREADS;
	struct racer racers[THREADS];
	struct race race = {.messages = messages};
	uint8_t *got = calloc(all, 1);
	uint32_t i;

	race.sent = calloc(all, sizeof(*race.sent));
	CHECK(got && race.sent);
	open_scene(&race.c, THREAD);
	for (i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){
			.race = &race, .index = i, .seed = seed + i};
		CHECK(pthread_create(&racers[i].thread, NULL,
				     i == THREADS - 1 ? plain_main : race_main,
				     &racers[i]) == 0);
	}
	receive_all(&race, got);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(racers[i].thread, NULL) == 0);
	for (i = 0; i < all; i++)
		/* relaxed: joined */
		CHECK(got[i] == atomic_load_explicit(&race.sent[i],
						     memory_order_relaxed));
	take_writables(&race.c);
	MUST(rpma_rt_conn_close(race.c.pair.active));
	world_event(race.c.s.aq, RPMA_RT_EVENT_CLOSED);
	while (world_next(race.c.s.pq).kind != RPMA_RT_EVENT)
		;
	world_unref(&race.c.pair);
	stage_close(&race.c.s);
	free(race.sent);
	free(got);
}

/* ------------------------------------------------ a moving poller --- */

struct mover {
	struct scene c;
	_Atomic bool may_run;
	_Atomic bool is_over;
};

static void run_or_leave(struct scene *c)
{
	int ret = rpma_rt_poller_run(c->s.world.rt, 0, 64);

	CHECK(ret >= 0 || ret == RPMA_RT_E_BUSY);
}

static void *move_main(void *arg)
{
	struct mover *mover = arg;

	/* relaxed, both: another look follows */
	while (!atomic_load_explicit(&mover->is_over, memory_order_relaxed)) {
		if (atomic_load_explicit(&mover->may_run, memory_order_relaxed))
			run_or_leave(&mover->c);
		sched_yield();
	}
	return NULL;
}

/* Takes everything in the queues: messages in order, and posts a receive for
 * each. */
static uint32_t take_in_order(struct scene *c, uint32_t next)
{
	struct rpma_rt_completion item;
	uint32_t imm;

	while (rpma_rt_queue_poll(c->s.aq, &item, 1) == 1)
		CHECK(item.kind == RPMA_RT_WRITABLE);
	while (rpma_rt_queue_poll(c->s.pq, &item, 1) == 1) {
		CHECK(item.status == IBV_WC_SUCCESS);
		CHECK(rpma_rt_completion_imm(&item, &imm) && imm == next);
		next++;
		post_receives(c, 1);
	}
	return next;
}

/* Sends messages with futures, as many as are accepted; then others until the
 * last future is complete, while another thread runs the poller. Returns the
 * number of the next message. */
static uint32_t send_beside(struct mover *mover, uint32_t sent,
			    uint32_t *received)
{
	struct rpma_rt_future futures[WAITING];
	struct rpma_rt_completion cmpl;
	struct scene *c = &mover->c;
	const uint32_t first = sent;
	uint32_t count = 0;

	while (count < WAITING && try_send(c, sent, &futures[count], 0) == 1) {
		count++;
		sent++;
	}
	MUST(rpma_rt_poller_release(c->s.world.rt, 0));
	/* relaxed: a hint, as below */
	atomic_store_explicit(&mover->may_run, true, memory_order_relaxed);
	while (count > 0 &&
	       rpma_rt_future_poll(&futures[count - 1], &cmpl) == 0) {
		if (try_send(c, sent, NULL, RPMA_F_COMPLETION_ON_ERROR) == 1)
			sent++;
		else
			sched_yield(); /* the other may need this processor */
		*received = take_in_order(c, *received);
	}
	atomic_store_explicit(&mover->may_run, false, memory_order_relaxed);
	take_results(futures, first, count);
	return sent;
}

/* The poller goes from the poster to another thread, whose rounds post the
 * line, beside the posts. Each message comes once, in order. */
static void race__a_poller_that_moves(uint32_t messages)
{
	struct mover mover = {.is_over = false};
	struct scene *c = &mover.c;
	uint32_t received = 0;
	uint32_t sent = 0;
	pthread_t thread;

	open_scene(c, MANUAL);
	post_receives(c, FUTURES);
	/* a poller where another thread is inside is an error, in words */
	MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
	CHECK(pthread_create(&thread, NULL, move_main, &mover) == 0);
	while (sent < messages) {
		MUST(rpma_rt_poller_attach(c->s.world.rt, 0));
		sent = send_beside(&mover, sent, &received);
	}
	/* relaxed: the join orders the rest */
	atomic_store_explicit(&mover.is_over, true, memory_order_relaxed);
	CHECK(pthread_join(thread, NULL) == 0);
	MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
				    RPMA_LOG_LEVEL_WARNING));
	MUST(rpma_rt_poller_attach(c->s.world.rt, 0));
	do {
		run_or_leave(c);
		received = take_in_order(c, received);
	} while (received < sent);
	end_pair(c, c->s.aq);
	stage_close(&c->s);
}

static void run_all(enum kind kind)
{
	static void (*const cases[])(struct scene *c) = {
		wait__in_order_whatever_has_a_future,
		wait__of_one_call,
		cancel__NOT_POSTED,
		cancel__again_and_again,
		cancel__others_are_told,
		then__called_when_posted,
		link__waits_as_one,
		link__of_two_outcomes_is_not_taken_back,
		borrowed__copied_before_the_post_returns,
		recv__waits_too,
	};
	struct scene c;
	size_t i;

	open_scene(&c, kind);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cases[i](&c);
	close_scene(&c);
	open_scene(&c, kind);
	close__NOT_POSTED(&c);
	open_scene(&c, kind);
	stop__NOT_POSTED(&c);
	backlog__refused_until_it_eases(kind);
}

int main(int argc, char *argv[])
{
	uint32_t messages = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000;
	uint32_t seed = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;

	run_all(THREAD);
	run_all(ASLEEP);
	run_all(MANUAL);
	backlog__answered_beside_a_line();
	close__room_for_every_item();
	verb_fails__cut_link_is_over(CANCELLED);
	verb_fails__cut_link_is_over(DROPPED);
	verb_fails__cut_link_is_over(AWAITED);
	printf("seed %u\n", seed);
	race__each_once_or_taken_back(messages, seed);
	race__a_poller_that_moves(messages);
	return 0;
}
