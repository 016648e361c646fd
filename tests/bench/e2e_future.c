/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The form of futures, in manual mode: each receive has a future, and a thread
 * polls the oldest future of each end, and the next while they are complete.
 */

#include "e2e_rt.h"

#include <string.h>

static bool post_future(struct e2e_end *end)
{
	while (e2e_posts_recvs(end)) {
		if (!e2e_rt_post_recvs(end, end->extra))
			return false;
	}
	return e2e_rt_post(end);
}

/* Fetches the handles of the oldest futures: with many ends they are in no near
 * cache. */
static void foresee_futures(const struct e2e_end *end)
{
	const struct rpma_rt_future *futures = end->extra;

	__builtin_prefetch(&futures[end->got % end->in_count]);
}

static void poll_futures(struct e2e_end *end)
{
	struct rpma_rt_future *futures = end->extra;
	struct rpma_rt_completion items[E2E_BATCH];
	uint32_t first, due;
	int most, taken;
	int i;

	while (end->got < end->received) {
		first = (uint32_t)(end->got % end->in_count);
		due = (uint32_t)(end->received - end->got);
		if (due > end->in_count - first)
			due = end->in_count - first;
		most = e2e_batch(due);
		taken = rpma_rt_futures_take(&futures[first], most, items);
		if (taken < 0)
			bench_fail(rpma_rt_err_2str(taken));
		for (i = 0; i < taken; i++) {
			if (!rpma_rt_completion_is_ok(&items[i]))
				bench_fail("a receive has failed");
			e2e_got(end);
		}
		if (taken < most)
			return;
	}
}

/* Makes the handles of an end: what different threads write lies apart. */
static struct rpma_rt_future *make_futures(uint32_t count)
{
	size_t size = (count * sizeof(struct rpma_rt_future) + 127) / 128 * 128;
	struct rpma_rt_future *futures = aligned_alloc(128, size);

	CHECK(futures);
	memset(futures, 0, size);
	return futures;
}

static void open_futures(struct e2e *e2e)
{
	uint32_t i;

	e2e_rt_open(e2e, RPMA_RT_MODE_MANUAL);
	e2e_rt_queues(e2e);
	e2e_rt.cfg.futures = e2e_recvs(e2e);
	for (i = 0; i < 2 * e2e->conns; i++) {
		e2e->ends[i].extra = make_futures(e2e->ends[i].in_count);
	}
	e2e_rt_connect(e2e, post_future);
}

static void run_futures(struct e2e *e2e, struct e2e_thread *thread)
{
	uint32_t i;
	int done;
	int got;

	MUST(rpma_rt_poller_attach(e2e_rt.world.rt, thread->number));
	e2e_begin(e2e, thread);
	do {
		e2e_post_all(thread, post_future);
		done = 0;
		do {
			got = e2e_rt_round(thread);
			done += got;
		} while (e2e_polls_again(e2e, got));
		/* futures complete, and items come, in rounds of this thread
		 * only */
		if (done == 0)
			continue;
		for (i = 0; i < thread->end_count; i++) {
			if (i + 1 < thread->end_count)
				foresee_futures(thread->ends[i + 1]);
			poll_futures(thread->ends[i]);
		}
		e2e_rt_poll(thread->form);
	} while (!e2e_is_over(e2e, thread));
}

const struct e2e_form e2e_future = {
	.name = "future",
	.open = open_futures,
	.run = run_futures,
};
