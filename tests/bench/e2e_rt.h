/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * e2e_rt.h -- shared by the forms on rpma_rt.h: a runtime, connections, posts,
 * the items of a queue.
 */

#ifndef BENCH_E2E_RT_H
#define BENCH_E2E_RT_H

#include "e2e.h"
#include "world.h"

/* The work requests of a thread, made once, as the bare form's are: where the
 * bytes are changes, and the future of a receive. */
struct E2E_APART e2e_rt_wrs {
	struct rpma_rt_wr sends[E2E_BATCH];
	struct rpma_rt_recv_wr recvs[E2E_BATCH];
};

struct e2e_rt {
	struct world world;
	bool is_manual;
	struct rpma_mr_local *mr;
	char *memory;
	struct rpma_rt_queue *setup; /* until the connections are there */
	struct rpma_rt_conn_cfg cfg;
};

extern struct e2e_rt e2e_rt;

/* Makes a runtime with a poller for each thread: of manual mode, or, for a form
 * that has pollers, busy and on the first CPUs. */
void e2e_rt_open(struct e2e *e2e, enum rpma_rt_mode mode);
/* Connects all, when each thread's form is the queue of its connections. The
 * pollers belong to no thread afterwards. */
void e2e_rt_connect(struct e2e *e2e, bool (*post)(struct e2e_end *end));
/* Makes a queue for each thread. */
void e2e_rt_queues(struct e2e *e2e);

/* Returns false for a post that was refused for now. */
static inline bool e2e_rt_taken(int taken)
{
	if (__builtin_expect(taken > 0, 1))
		return true;
	if (taken != RPMA_E_AGAIN)
		bench_fail(rpma_rt_err_2str(taken));
	return false;
}

static inline struct e2e_rt_wrs *e2e_rt_wrs_of(const struct e2e_end *end)
{
	return (struct e2e_rt_wrs *)end->thread->wrs;
}

static inline bool e2e_rt_post_sends(struct e2e_end *end)
{
	struct rpma_rt_wr *wrs = e2e_rt_wrs_of(end)->sends;
	int count = e2e_batch(end->sends);
	int taken;
	int i;

	for (i = 0; i < count; i++)
		wrs[i].local_offset =
			(size_t)(e2e_out(end, end->sent + (unsigned)i) -
				 e2e_rt.memory);
	taken = rpma_rt_post_send(end->handle, wrs, count);
	if (!e2e_rt_taken(taken))
		return false;
	end->sent += (unsigned)taken;
	end->sends -= (unsigned)taken;
	return true;
}

/* futures: of the receives, as many as end->in_count; NULL: no futures */
static inline bool e2e_rt_post_recvs(struct e2e_end *end,
				     struct rpma_rt_future *futures)
{
	struct rpma_rt_recv_wr *wrs = e2e_rt_wrs_of(end)->recvs;
	int count = e2e_batch(end->recvs);
	uint64_t number;
	int taken;
	int i;

	for (i = 0; i < count; i++) {
		number = end->received + (unsigned)i;
		wrs[i].offset = (size_t)(e2e_in(end, number) - e2e_rt.memory);
		if (futures != NULL)
			wrs[i].future = &futures[number % end->in_count];
	}
	taken = rpma_rt_post_recv(end->handle, wrs, count);
	if (!e2e_rt_taken(taken))
		return false;
	end->received += (unsigned)taken;
	end->recvs -= (unsigned)taken;
	return true;
}

static inline bool e2e_rt_post(struct e2e_end *end)
{
	while (e2e_posts_recvs(end)) {
		if (!e2e_rt_post_recvs(end, NULL))
			return false;
	}
	while (end->sends > 0) {
		if (!e2e_rt_post_sends(end))
			return false;
	}
	return true;
}

/* An item of the queue of a thread. */
static inline void e2e_rt_item(const struct rpma_rt_completion *item)
{
	if (__builtin_expect(rpma_rt_completion_is_ok(item), 1))
		e2e_got((struct e2e_end *)item->user);
	else if (item->kind != RPMA_RT_WRITABLE) /* posts are tried anyway */
		bench_fail("a connection has ended");
}

/* Takes the items of the queue of the thread. */
static inline void e2e_rt_poll(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion items[E2E_BATCH];
	int got = rpma_rt_queue_poll(queue, items, E2E_BATCH);
	int i;

	if (got < 0)
		bench_fail(rpma_rt_err_2str(got));
	for (i = 0; i < got; i++)
		e2e_rt_item(&items[i]);
}

/* Runs a round of the thread's only poller, and takes the items of the queue of
 * the thread, in manual mode. Returns the number of items. */
static inline int e2e_rt_wait(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion items[E2E_BATCH];
	int got = rpma_rt_queue_wait(queue, items, E2E_BATCH, 0);
	int i;

	if (got < 0)
		bench_fail(rpma_rt_err_2str(got));
	for (i = 0; i < got; i++)
		e2e_rt_item(&items[i]);
	return got;
}

/* Runs a round of the thread's own poller, in manual mode. Returns the number
 * of handled items. */
static inline int e2e_rt_round(const struct e2e_thread *thread)
{
	int ret =
		rpma_rt_poller_run(e2e_rt.world.rt, thread->number, E2E_BATCH);

	if (__builtin_expect(ret < 0, 0))
		bench_fail(rpma_rt_err_2str(ret));
	return ret;
}

#endif /* BENCH_E2E_RT_H */
