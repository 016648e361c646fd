/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight.c -- manual mode: a wait takes the completions of its round without
 * the lane. Order and number of completions, mixed with polls, messages, a
 * second lane, functions that take from the same queue; other queues, errors,
 * other owners of the poller, refused posters, statistics, a stop.
 *
 * usage: runtime_straight [posts beside the rounds, and nothing else]
 */

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH 128
/* after so many waits that found nothing every CQ rests */
#define RESTS 1000
/* the CQ of each end of a connection: both have one, or each has its own */
#define ONE_CQ	0
#define TWO_CQS 1
/* context of a completion of the second poller */
#define NOT_MINE (UINT64_C(1) << 40)

/* of the mixed load; an emulated machine, or a sanitizer, has a fraction of the
 * speed */
static uint32_t turns = 3000;

struct straight {
	struct stage s;
	struct world_pair pair;
};

/* Returns whether the device completes a work request inside the post: then the
 * next poll finds the completion. */
static bool is_inline(void)
{
	const char *mode = getenv("RPMA_LOOPBACK_MODE");

	return mode != NULL && strcmp(mode, "inline") == 0;
}

static void set_up(struct straight *t, int pollers, uint32_t cq_size)
{
	const struct stage_cfg cfg = {.pollers = pollers,
				      .mode = RPMA_RT_MODE_MANUAL,
				      .depth = DEPTH,
				      .cq_size = cq_size};

	memset(t, 0, sizeof(*t));
	stage_open(&t->s, &cfg);
	t->s.cfg->futures = 1;
	stage_connect(&t->s, &t->pair);
}

static void tear_down(struct straight *t)
{
	stage_disconnect(&t->s, &t->pair);
	stage_close(&t->s);
}

/* A write, completed in the active end's queue. */
static void post_write(struct straight *t, const struct rpma_rt_route *route,
		       uint32_t flags, uint64_t context)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_write(&wr, t->s.remote, 0, t->s.mr, 64, 8, flags, context);
	wr.route = route;
	MUST(world_post_send(t->pair.active, &wr));
}

static void post_writes(struct straight *t, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, from);
}

/* A message of the passive end, completed at the active end only. */
static void answer(struct straight *t)
{
	MUST(rpma_rt_send(t->pair.passive, t->s.mr, 64, 8,
			  RPMA_F_COMPLETION_ON_ERROR, 0));
}

static void post_answer(struct straight *t, uint64_t context)
{
	MUST(rpma_rt_recv(t->pair.active, t->s.mr, 0, 8, context));
	answer(t);
}

/* A receive whose message a round writes into the lane: its future was
 * dropped. */
static void post_dropped(struct straight *t, uint64_t context)
{
	struct rpma_rt_future future;
	const struct rpma_rt_recv_wr wr = {.dst = t->s.mr,
					   .len = 8,
					   .context = context,
					   .future = &future};

	MUST(world_post_recv(t->pair.active, &wr));
	MUST(rpma_rt_future_drop(&future));
	/* the poller takes the request of the holder */
	while (rpma_rt_poller_run(t->s.world.rt, 0, 1) > 0)
		;
}

/* The next item is the completion with the context. */
static void take(struct rpma_rt_queue *queue, uint64_t context)
{
	struct rpma_rt_completion item = world_next(queue);

	CHECK(item.kind == RPMA_RT_COMPLETION && item.status == 0);
	CHECK(item.context == context);
}

static uint64_t polls_of(struct straight *t, uint32_t poller)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(t->s.world.rt, poller, &stats,
				      sizeof(stats)));
	return stats.polls;
}

static uint64_t backlog_of(struct rpma_rt_queue *queue)
{
	struct rpma_rt_queue_stats stats;

	MUST(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)));
	return stats.backlog;
}

/* ---------------------------------------------------------- everything --- */

struct mixed {
	struct straight t;
	struct rpma_rt_queue_stats calls; /* of this thread, on the queue */
	uint64_t posted[2];		  /* writes, messages of the queue */
	uint64_t got[2];
	uint64_t received; /* of the other queue */
	uint32_t seed;
};

static void take_items(struct mixed *m, const struct rpma_rt_completion *items,
		       int got)
{
	int which;
	int i;

	CHECK(got >= 0);
	m->calls.taken += (uint64_t)got;
	m->calls.empty += got == 0;
	for (i = 0; i < got; i++) {
		which = items[i].kind == RPMA_RT_MESSAGE;
		CHECK(which || items[i].kind == RPMA_RT_COMPLETION);
		CHECK(items[i].status == 0);
		CHECK(items[i].context == m->got[which]++);
	}
}

static void mixed_take(struct mixed *m)
{
	struct rpma_rt_completion items[64];
	int max = 1 + (int)world_roll(&m->seed, 64);
	bool busy;

	switch (world_roll(&m->seed, 5)) {
	case 0:
		m->calls.polls++;
		take_items(m, items, rpma_rt_queue_poll(m->t.s.aq, items, max));
		break;
	case 1:
		CHECK(rpma_rt_poller_run(m->t.s.world.rt, 0, (uint32_t)max) >=
		      0);
		break;
	case 2:
		m->calls.polls++;
		take_items(m, items,
			   rpma_rt_poller_take(m->t.s.world.rt, 0, m->t.s.aq,
					       items, max, &busy));
		break;
	default:
		m->calls.waits++;
		take_items(m, items,
			   rpma_rt_queue_wait(m->t.s.aq, items, max, 0));
		break;
	}
}

/* Messages to the other queue, whose own waits find the writes in turn. */
static void mixed_take_other(struct mixed *m)
{
	struct rpma_rt_completion items[16];
	int got = rpma_rt_queue_wait(m->t.s.pq, items, 16, 0);
	int i;

	CHECK(got >= 0);
	for (i = 0; i < got; i++) {
		CHECK(items[i].context == m->received++);
		MUST(rpma_rt_recv(m->t.pair.passive, m->t.s.mr, 0, 8,
				  m->received + 63));
	}
}

static void mixed_post(struct mixed *m)
{
	const struct rpma_rt_completion item = {.context = m->posted[1]};
	uint32_t count = world_roll(&m->seed, 40);
	int ret;

	for (; count > 0; count--) {
		ret = rpma_rt_write(m->t.pair.active, m->t.s.remote, 0,
				    m->t.s.mr, 64, 8, RPMA_F_COMPLETION_ALWAYS,
				    m->posted[0]);
		if (ret == RPMA_E_AGAIN)
			break;
		MUST(ret);
		m->posted[0]++;
	}
	if (world_roll(&m->seed, 4) == 0) {
		MUST(rpma_rt_queue_push(m->t.s.aq, &item));
		m->posted[1]++;
	}
}

/* Everything comes once, in order, and is counted once. */
static void wait__mixed_with_everything_ONCE_IN_ORDER(uint32_t cq_size)
{
	struct rpma_rt_poller_stats before, after;
	struct rpma_rt_queue_stats was, is;
	struct mixed m = {.seed = 7};
	struct stage *s = &m.t.s;
	uint64_t silent;
	int i;

	set_up(&m.t, 1, cq_size);
	MUST(rpma_rt_poller_attach(s->world.rt, 0));
	for (i = 0; i < 64; i++)
		MUST(rpma_rt_recv(m.t.pair.passive, s->mr, 0, 8, (uint64_t)i));
	MUST(rpma_rt_poller_get_stats(s->world.rt, 0, &before, sizeof(before)));
	MUST(rpma_rt_queue_get_stats(s->aq, &was, sizeof(was)));
	for (i = 0; i < (int)turns; i++) {
		/* the line is never full, so no WRITABLE comes */
		if (m.posted[0] - m.got[0] < DEPTH / 2)
			mixed_post(&m);
		mixed_take(&m);
	}
	while (m.got[0] < m.posted[0] || m.got[1] < m.posted[1])
		mixed_take(&m);
	MUST(rpma_rt_poller_get_stats(s->world.rt, 0, &after, sizeof(after)));
	MUST(rpma_rt_queue_get_stats(s->aq, &is, sizeof(is)));
	CHECK(is.polls - was.polls == m.calls.polls);
	CHECK(is.waits - was.waits == m.calls.waits);
	CHECK(is.empty - was.empty == m.calls.empty);
	CHECK(is.taken - was.taken == m.calls.taken);
	CHECK(is.batches - was.batches ==
	      m.calls.polls + m.calls.waits - m.calls.empty);
	CHECK(is.backlog == 0);
	CHECK(after.completions - before.completions == m.posted[0]);
	CHECK(after.delivered - before.delivered == m.posted[0]);
	/* and with the other queue in each round */
	for (silent = 0; silent < turns; silent++) {
		MUST(rpma_rt_send(m.t.pair.active, s->mr, 64, 8,
				  RPMA_F_COMPLETION_ALWAYS, m.posted[0]++));
		while (m.got[0] < m.posted[0])
			mixed_take(&m);
		mixed_take_other(&m);
	}
	while (m.received < turns)
		mixed_take_other(&m);
	MUST(rpma_rt_conn_close(m.t.pair.active));
	world_until_closed(s->aq);
	world_until_closed(s->pq);
	world_unref(&m.t.pair);
	stage_close(s);
}

/* ----------------------------------------------------- what goes first --- */

static void wait__items_in_the_lane_FIRST(struct straight *t)
{
	struct rpma_rt_completion items[4];

	post_writes(t, 0, 2);
	while (rpma_rt_poller_run(t->s.world.rt, 0, 1) == 0)
		;
	post_writes(t, 2, 4);
	take(t->s.aq, 0);
	take(t->s.aq, 1);
	take(t->s.aq, 2);
	take(t->s.aq, 3);
	MUST(rpma_rt_queue_wait(t->s.aq, items, 4, 0));
}

/* A message does not wait for a pause of completions. */
static void wait__message_BESIDE_COMPLETIONS(struct straight *t)
{
	const struct rpma_rt_completion pushed = {.context = 99};
	struct rpma_rt_completion item;
	uint64_t posted = 0;
	uint64_t got = 0;
	int i;

	post_writes(t, 0, 32);
	posted = 32;
	MUST(rpma_rt_queue_push(t->s.aq, &pushed));
	for (i = 0;; i++) {
		CHECK(i < 8);
		post_writes(t, posted, posted + 1);
		posted++;
		item = world_next(t->s.aq);
		if (item.kind == RPMA_RT_MESSAGE)
			break;
		CHECK(item.context == got++);
	}
	while (got < posted)
		take(t->s.aq, got++);
}

/* From here on the send side has groups of work requests without completions:
 * its completions take another way through a round than those of receives. */
static void make_groups(struct straight *t)
{
	post_write(t, NULL, RPMA_F_COMPLETION_ON_ERROR, 0);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 1);
	take(t->s.aq, 1);
}

static void take_four(struct straight *t)
{
	struct rpma_rt_completion items[8];
	int got = 0;
	int i;

	while (got < 4) {
		i = rpma_rt_queue_wait(t->s.aq, items + got, 8 - got, -1);
		CHECK(i > 0);
		got += i;
	}
	/* of each side in order; of a device that completes inside the post, of
	 * both */
	for (i = 0; is_inline() && i < 4; i++)
		CHECK(items[i].context == (uint64_t)i);
}

/* Successes of groups beside others, and an item that the round writes into the
 * lane: what comes behind this item goes into the lane, too. */
static void wait__other_items_of_the_round_IN_ORDER(struct straight *t)
{
	post_answer(t, 0);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 1);
	post_answer(t, 2);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 3);
	take_four(t);
	post_dropped(t, 1);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 0);
	answer(t);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 2);
	post_answer(t, 3);
	take_four(t);
}

/* Completions with silent work requests between them fill the caller's array,
 * and no place behind the array; what an earlier round wrote into the lane
 * comes first, without another round. */
static void wait__room_of_the_caller_KEPT(struct straight *t)
{
	struct rpma_rt_completion items[9];
	uint64_t polls;
	uint64_t got;
	int count;
	int max;
	int i;

	for (max = 1; max <= 8; max++) {
		for (i = 0; i < 16; i++) {
			post_write(t, NULL, RPMA_F_COMPLETION_ON_ERROR, 0);
			post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS,
				   (uint64_t)i);
		}
		while (backlog_of(t->s.aq) == 0)
			CHECK(rpma_rt_poller_run(t->s.world.rt, 0, 3) >= 0);
		for (got = 0; got < 16; got += (uint64_t)count) {
			items[max].context = NOT_MINE;
			polls = polls_of(t, 0);
			count = rpma_rt_queue_wait(t->s.aq, items, max, -1);
			CHECK(count > 0 && count <= max);
			CHECK(items[max].context == NOT_MINE);
			CHECK(got > 0 || polls_of(t, 0) == polls);
			for (i = 0; i < count; i++)
				CHECK(items[i].context == got + (uint64_t)i);
		}
	}
}

/* Waits alone, which do not block, find a message whose CQ has rested. */
static void wait__resting_cq_FOUND(struct straight *t)
{
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < RESTS; i++)
		MUST(rpma_rt_queue_wait(t->s.pq, &item, 1, 0));
	MUST(rpma_rt_recv(t->pair.passive, t->s.mr, 0, 8, 6));
	MUST(rpma_rt_send(t->pair.active, t->s.mr, 64, 8,
			  RPMA_F_COMPLETION_ON_ERROR, 0));
	while ((i = rpma_rt_queue_wait(t->s.pq, &item, 1, 0)) == 0)
		;
	CHECK(i == 1 && item.context == 6);
}

/* The device has taken silent work requests that complete all the same. */
static void wait__silent_completions_in_front_FOUND(struct straight *t)
{
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < DEPTH - 1; i++)
		post_write(t, NULL, RPMA_F_COMPLETION_ON_ERROR, 0);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 5);
	MUST_ANSWER(
		1, rpma_rt_queue_wait(t->s.aq, &item, 1, is_inline() ? 0 : -1));
	CHECK(item.context == 5);
}

/* The thread armed another queue of the round, and may sleep on its descriptor
 * next. */
static void wait__other_queue_armed_READABLE(struct straight *t)
{
	struct rpma_rt_completion item;
	struct pollfd fd = {.events = POLLIN};

	MUST(rpma_rt_queue_get_fd(t->s.aq, &fd.fd));
	/* the thread runs the poller, too */
	CHECK(rpma_rt_poller_run(t->s.world.rt, 0, 1) >= 0);
	MUST(rpma_rt_queue_arm(t->s.aq));
	post_writes(t, 0, 1);
	while (rpma_rt_queue_wait(t->s.pq, &item, 1, 0) == 0 &&
	       poll(&fd, 1, 0) == 0)
		CHECK(!is_inline());
	take(t->s.aq, 0);
}

/* ----------------------------------------------------------- functions --- */

struct function {
	struct straight *t;
	struct rpma_rt_route *route;
	uint64_t calls;
	uint64_t again; /* so many calls post again */
	bool takes;
	uint64_t got; /* contexts taken in order, inside and outside */
};

static void called(const struct rpma_rt_completion *item, void *arg)
{
	struct function *f = arg;
	struct rpma_rt_completion got;
	int ret;
	int i;

	if (item->kind != RPMA_RT_COMPLETION)
		return;
	CHECK(item->status == 0);
	f->calls++;
	if (f->again > 0) {
		f->again--;
		post_write(f->t, f->route, RPMA_F_COMPLETION_ALWAYS, 0);
	}
	/* as a loop does before a sleep on the descriptor, after a call that
	 * may not be made here */
	if (f->takes)
		MUST_ANSWER(RPMA_RT_E_THREAD,
			    rpma_rt_queue_wait(f->t->s.aq, &got, 1, 0));
	for (i = 0; f->takes; i++) {
		CHECK(i < 100);
		while (rpma_rt_queue_poll(f->t->s.aq, &got, 1) == 1)
			CHECK(got.context == f->got++);
		ret = rpma_rt_queue_arm(f->t->s.aq);
		if (ret == 0)
			break;
		MUST_ANSWER(1, ret);
	}
}

/* A function that takes from the queue for which the caller waits finds nothing
 * that comes after what the wait returns. */
static void wait__function_takes_from_the_queue_IN_ORDER(struct function *f)
{
	struct straight *t = f->t;
	struct rpma_rt_completion items[8];
	struct pollfd fd = {.events = POLLIN};
	bool was_behind = false;
	int ret;
	int i;

	MUST(rpma_rt_queue_get_fd(t->s.aq, &fd.fd));
	f->calls = f->got = 0;
	f->takes = true;
	post_dropped(t, 1);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 0);
	answer(t);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 2);
	post_write(t, f->route, RPMA_F_COMPLETION_ALWAYS, 0);
	post_answer(t, 3);
	while (f->got < 4 || f->calls < 1) {
		ret = rpma_rt_queue_wait(t->s.aq, items, 8, 0);
		CHECK(ret >= 0);
		for (i = 0; i < ret; i++)
			CHECK(items[i].context == f->got++);
		/* the function armed the descriptor */
		if (f->calls == 1 && f->got < 4) {
			CHECK(poll(&fd, 1, 0) == 1);
			was_behind = true;
		}
	}
	CHECK(was_behind);
	f->takes = false;
}

/* A function may not wait, also where nothing is behind its completion. */
static void wait__by_a_function_REFUSED(struct function *f)
{
	struct straight *t = f->t;
	struct rpma_rt_completion items[8];

	f->calls = f->got = 0;
	f->takes = true;
	post_write(t, f->route, RPMA_F_COMPLETION_ALWAYS, 0);
	while (f->calls < 1)
		MUST(rpma_rt_queue_wait(t->s.aq, items, 8, 0));
	f->takes = false;
}

/* More calls than a round collects: the batch ends early. */
static void wait__batch_ends_early_IN_ORDER(struct function *f)
{
	struct straight *t = f->t;
	struct rpma_rt_completion items[64];
	int got = 0;
	int ret;
	int i;

	f->calls = 0;
	for (i = 0; i < 64; i++)
		post_write(t, f->route, RPMA_F_COMPLETION_ALWAYS, 0);
	post_write(t, NULL, RPMA_F_COMPLETION_ALWAYS, 0);
	post_write(t, f->route, RPMA_F_COMPLETION_ALWAYS, 0);
	post_answer(t, 1);
	while (got < 2 || f->calls < 65) {
		ret = rpma_rt_queue_wait(t->s.aq, items + got, 64 - got, 0);
		CHECK(ret >= 0);
		got += ret;
	}
	CHECK(got == 2 && items[0].context == 0 && items[1].context == 1);
}

/* Functions that post again and again do not keep the caller in a wait. */
static void wait__functions_post_again_RETURNS(struct function *f)
{
	struct rpma_rt_completion items[64];
	int i;

	f->calls = 0;
	f->again = 5000;
	for (i = 0; i < 100; i++)
		post_write(f->t, f->route, RPMA_F_COMPLETION_ALWAYS, 0);
	MUST(rpma_rt_queue_wait(f->t->s.aq, items, 64, 0));
	CHECK(f->calls <= 200);
	while (f->calls < 5100)
		MUST(rpma_rt_queue_wait(f->t->s.aq, items, 64, 0));
}

static void functions(struct straight *t)
{
	struct function f = {.t = t};

	MUST(rpma_rt_route_open_callback(t->pair.active, RPMA_RT_SEND_SIDE,
					 called, &f, &f.route));
	if (is_inline()) {
		wait__function_takes_from_the_queue_IN_ORDER(&f);
		wait__by_a_function_REFUSED(&f);
		wait__batch_ends_early_IN_ORDER(&f);
		wait__functions_post_again_RETURNS(&f);
	}
	MUST(rpma_rt_route_close(f.route, NULL));
	/* ROUTE_CLOSED goes to the function */
	while (rpma_rt_poller_run(t->s.world.rt, 0, 32) > 0)
		;
}

/* ----------------------------------------------------- several pollers --- */

/* A second lane: its poller belongs to nobody, and waits run it. */
static void wait__second_lane_RUN_TOO(void)
{
	struct rpma_rt_completion item = {.context = 0};
	struct straight t;
	struct world_pair other;
	uint64_t posted = 1;
	uint64_t got = 1;
	int i;

	set_up(&t, 2, ONE_CQ);
	MUST(rpma_rt_poller_attach(t.s.world.rt, 0));
	post_writes(&t, 0, 1);
	take(t.s.aq, 0);
	world_connect(&t.s.world, t.s.cfg, 1, t.s.aq, t.s.pq, &other);
	MUST(rpma_rt_write(other.active, t.s.remote, 0, t.s.mr, 64, 8,
			   RPMA_F_COMPLETION_ALWAYS, NOT_MINE));
	for (i = 0; item.context != NOT_MINE; i++) {
		CHECK(i < 10000000);
		if (posted - got < 8) {
			post_writes(&t, posted, posted + 1);
			posted++;
		}
		if (rpma_rt_queue_wait(t.s.aq, &item, 1, 0) == 1 &&
		    item.context != NOT_MINE)
			CHECK(item.context == got++);
	}
	while (got < posted)
		take(t.s.aq, got++);
	stage_disconnect(&t.s, &other);
	tear_down(&t);
}

/* A thread with two pollers runs both, whatever the queue. */
static void wait__two_pollers_BOTH_RUN(void)
{
	struct rpma_rt_completion item;
	struct straight t;
	uint64_t polls;
	struct world_pair other;

	set_up(&t, 2, ONE_CQ);
	/* the second poller has a CQ, and queues of its own */
	world_connect(&t.s.world, t.s.cfg, 1, t.s.pq, t.s.pq, &other);
	MUST(rpma_rt_poller_attach(t.s.world.rt, 0));
	MUST(rpma_rt_poller_attach(t.s.world.rt, 1));
	/* both have had a first round */
	post_writes(&t, 0, 1);
	take(t.s.aq, 0);
	polls = polls_of(&t, 1);
	post_writes(&t, 1, 2);
	while (rpma_rt_queue_wait(t.s.aq, &item, 1, 0) == 0)
		;
	CHECK(item.context == 1);
	CHECK(polls_of(&t, 1) > polls);
	/* and again with one */
	MUST(rpma_rt_poller_release(t.s.world.rt, 1));
	post_writes(&t, 2, 3);
	take(t.s.aq, 2);
	MUST(rpma_rt_conn_close(other.active));
	world_event(t.s.pq, RPMA_RT_EVENT_CLOSED);
	world_event(t.s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&other);
	tear_down(&t);
}

/* -------------------------------------------------------- other owners --- */

struct former {
	struct straight t;
	pthread_key_t key;
	sem_t ended;
	sem_t posted;
	int got;
};

/* Runs behind the end of the thread as an owner. */
static void former_waits(void *arg)
{
	struct former *f = arg;
	struct rpma_rt_completion item;

	sem_post(&f->ended);
	sem_wait(&f->posted);
	f->got = rpma_rt_queue_wait(f->t.s.aq, &item, 1, 0);
}

static void *former_main(void *arg)
{
	struct former *f = arg;
	struct rpma_rt_completion item;

	MUST(rpma_rt_poller_attach(f->t.s.world.rt, 0));
	CHECK(pthread_setspecific(f->key, f) == 0);
	post_writes(&f->t, 0, 1);
	MUST_ANSWER(1, rpma_rt_queue_wait(f->t.s.aq, &item, 1, -1));
	return NULL;
}

/* The poller has another owner, who runs no round meanwhile. */
static void wait__former_owner_TAKES_NOTHING(void)
{
	struct former f;
	pthread_t thread;

	set_up(&f.t, 1, ONE_CQ);
	sem_init(&f.ended, 0, 0);
	sem_init(&f.posted, 0, 0);
	/* behind the key of the library */
	CHECK(pthread_key_create(&f.key, former_waits) == 0);
	CHECK(pthread_create(&thread, NULL, former_main, &f) == 0);
	sem_wait(&f.ended);
	MUST(rpma_rt_poller_attach(f.t.s.world.rt, 0));
	/* a first round: the poller is entered by its owner only */
	CHECK(rpma_rt_poller_run(f.t.s.world.rt, 0, 1) >= 0);
	post_writes(&f.t, 1, 2);
	sem_post(&f.posted);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(f.got == 0);
	take(f.t.s.aq, 1);
	pthread_key_delete(f.key);
	sem_destroy(&f.ended);
	sem_destroy(&f.posted);
	tear_down(&f.t);
}

struct poster {
	struct straight t;
	uint64_t posts;
	_Atomic uint64_t told; /* number of WRITABLE */
};

/* Posts as long as there is room, and then when told. */
static void *poster_main(void *arg)
{
	struct poster *p = arg;
	uint64_t told = 0;
	uint64_t i;
	int ret;

	for (i = 0; i < p->posts;) {
		ret = rpma_rt_write(p->t.pair.active, p->t.s.remote, 0,
				    p->t.s.mr, 64, 8, RPMA_F_COMPLETION_ALWAYS,
				    i);
		if (ret == 0) {
			i++;
			continue;
		}
		CHECK(ret == RPMA_E_AGAIN);
		told++;
		/* acquire: pairs with the release in the consumer's loop */
		while (atomic_load_explicit(&p->told, memory_order_acquire) <
		       told)
			;
	}
	return NULL;
}

/* A poster that is refused beside the round is told. */
static void wait__refused_poster_beside_TOLD(uint64_t posts)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = 1};
	struct poster p = {.posts = posts};
	struct rpma_rt_completion item;
	pthread_t thread;
	uint64_t next;
	int got;

	stage_open(&p.t.s, &cfg);
	p.t.s.cfg->waiting = RPMA_RT_NO_WAITING;
	stage_connect(&p.t.s, &p.t.pair);
	MUST(rpma_rt_poller_attach(p.t.s.world.rt, 0));
	CHECK(pthread_create(&thread, NULL, poster_main, &p) == 0);
	for (next = 0; next < posts;) {
		got = rpma_rt_queue_wait(p.t.s.aq, &item, 1, 0);
		CHECK(got >= 0);
		if (got == 0)
			continue;
		if (item.kind == RPMA_RT_WRITABLE)
			/* release: pairs with the acquire in poster_main() */
			atomic_fetch_add_explicit(&p.told, 1,
						  memory_order_release);
		else
			CHECK(item.context == next++);
	}
	CHECK(pthread_join(thread, NULL) == 0);
	tear_down(&p.t);
}

/* ---------------------------------------------------------------- stop --- */

struct stopped {
	struct straight t;
	sem_t begun;
	uint64_t taken;
};

static void *stopped_main(void *arg)
{
	struct stopped *st = arg;
	struct rpma_rt_completion items[8];
	int got = 0;
	int i;

	MUST(rpma_rt_poller_attach(st->t.s.world.rt, 0));
	for (i = 0; got >= 0; i++) {
		if (rpma_rt_write(st->t.pair.active, st->t.s.remote, 0,
				  st->t.s.mr, 64, 8, RPMA_F_COMPLETION_ALWAYS,
				  (uint64_t)i) == 0)
			st->taken++;
		got = rpma_rt_queue_wait(st->t.s.aq, items, 8, i % 2);
		if (i == 10)
			sem_post(&st->begun);
		for (; got > 0; got--)
			st->taken -= items[got - 1].kind == RPMA_RT_COMPLETION;
	}
	CHECK(got == RPMA_RT_E_CLOSED);
	return NULL;
}

static void wait__stop_beside_CLOSED(void)
{
	struct rpma_rt_completion item;
	struct stopped st = {.taken = 0};
	pthread_t thread;

	set_up(&st.t, 1, ONE_CQ);
	sem_init(&st.begun, 0, 0);
	CHECK(pthread_create(&thread, NULL, stopped_main, &st) == 0);
	sem_wait(&st.begun);
	MUST(rpma_rt_stop(st.t.s.world.rt));
	CHECK(pthread_join(thread, NULL) == 0);
	/* each post has completed once */
	CHECK(st.taken == 0);
	while (rpma_rt_queue_poll(st.t.s.pq, &item, 1) == 1)
		;
	world_unref(&st.t.pair);
	sem_destroy(&st.begun);
	stage_close(&st.t.s);
}

/* -------------------------------------------------------------- errors --- */

/* A failure in the middle: what comes before the failure has succeeded, what
 * comes behind is flushed, and CLOSED is last. */
static void wait__failure_in_the_middle_ONCE_IN_ORDER(void)
{
	struct rpma_rt_completion items[8];
	struct rpma_mr_remote *vanished;
	struct straight t;
	bool is_closed = false;
	uint64_t next = 0;
	int got;
	int i;
	int k;

	set_up(&t, 1, ONE_CQ);
	MUST(rpma_rt_poller_attach(t.s.world.rt, 0));
	vanished = stage_vanished(&t.s);
	post_writes(&t, 0, 10);
	MUST(rpma_rt_write(t.pair.active, vanished, 0, t.s.mr, 64, 8,
			   RPMA_F_COMPLETION_ALWAYS, 10));
	for (i = 11; i < 20; i++)
		if (rpma_rt_write(t.pair.active, t.s.remote, 0, t.s.mr, 64, 8,
				  RPMA_F_COMPLETION_ALWAYS, (uint64_t)i))
			break;
	while (!is_closed) {
		got = rpma_rt_queue_wait(t.s.aq, items, 1 + (int)(next % 8),
					 -1);
		CHECK(got > 0);
		for (k = 0; k < got; k++) {
			CHECK(!is_closed);
			is_closed = items[k].kind == RPMA_RT_EVENT;
			if (is_closed)
				break;
			CHECK(items[k].context == next);
			CHECK((items[k].status == 0) == (next < 10));
			next++;
		}
	}
	CHECK(items[k].opcode == RPMA_RT_EVENT_CLOSED && k == got - 1);
	CHECK(next == (uint64_t)i);
	world_event(t.s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&t.pair);
	MUST(rpma_mr_remote_delete(&vanished));
	stage_close(&t.s);
}

static void one_poller(uint32_t cq_size)
{
	struct straight t;

	wait__mixed_with_everything_ONCE_IN_ORDER(cq_size);
	set_up(&t, 1, cq_size);
	MUST(rpma_rt_poller_attach(t.s.world.rt, 0));
	wait__items_in_the_lane_FIRST(&t);
	wait__message_BESIDE_COMPLETIONS(&t);
	make_groups(&t);
	wait__other_items_of_the_round_IN_ORDER(&t);
	wait__silent_completions_in_front_FOUND(&t);
	wait__room_of_the_caller_KEPT(&t);
	wait__resting_cq_FOUND(&t);
	wait__other_queue_armed_READABLE(&t);
	functions(&t);
	tear_down(&t);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		wait__refused_poster_beside_TOLD(strtoul(argv[1], NULL, 10));
		return 0;
	}
#ifdef __SANITIZE_THREAD__
	turns = 1000;
#endif
	if (getenv("RPMA_TEST_VM"))
		turns = 500;
	wait__refused_poster_beside_TOLD(turns);
	one_poller(ONE_CQ);
	one_poller(TWO_CQS);
	wait__second_lane_RUN_TOO();
	wait__two_pollers_BOTH_RUN();
	wait__former_owner_TAKES_NOTHING();
	wait__stop_beside_CLOSED();
	wait__failure_in_the_middle_ONCE_IN_ORDER();
	puts("ok");
	return 0;
}
