/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * error.c -- a work request that fails: it and everything behind it gets
 * exactly one completion, with its context and opcode, also those that want
 * one on an error only; what was before succeeded; others live on.
 */

#include "stage.h"

#define DEPTH  32
#define BEFORE 6 /* work requests that succeed */
#define BEHIND 9 /* that are flushed */
#define RECVS  5

/* every second one wants a completion on an error only */
static int flags_of(int i)
{
	return i % 2 ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS;
}

static void post_all(struct stage *s, struct rpma_rt_conn *conn,
		     struct rpma_mr_remote *bad, int bad_flags)
{
	struct rpma_rt_wr wrs[BEFORE + 1 + BEHIND];
	const int count = BEFORE + 1 + BEHIND;
	int i;

	for (i = 0; i < count; i++)
		wrs[i] = (struct rpma_rt_wr){
			.op = RPMA_RT_OP_WRITE,
			.flags = i == BEFORE ? bad_flags : flags_of(i),
			.context = (uint64_t)i,
			.local = s->mr,
			.remote = i == BEFORE ? bad : s->remote,
			.remote_offset = 2048,
			.len = 8,
		};
	for (i = 0; i < RECVS; i++)
		MUST(rpma_rt_recv(conn, s->mr, 0, 64, 100 + (uint64_t)i));
	/* one doorbell: nothing can be refused half way */
	MUST_ANSWER(count, rpma_rt_post_send(conn, wrs, count));
}

/* The other end fails too, and leaves: which of the two is seen first is
 * open. */
static void check_reason(const struct rpma_rt_completion *closed)
{
	CHECK(closed->status == RPMA_RT_REASON_ERROR ||
	      closed->status == RPMA_RT_REASON_DISCONNECTED);
}

/* Sends in order, receives in order; the two sides in any. */
static void expect_all(struct stage *s, struct world_pair *pair)
{
	struct rpma_rt_completion item;
	uint64_t next_recv = 100;
	uint64_t next = 0;

	for (;;) {
		item = world_next(s->aq);
		if (item.kind == RPMA_RT_EVENT)
			break;
		CHECK(item.kind == RPMA_RT_COMPLETION);
		if (item.context >= 100) {
			CHECK(item.context == next_recv++);
			CHECK(item.opcode == IBV_WC_RECV);
			CHECK(item.status == IBV_WC_WR_FLUSH_ERR);
			continue;
		}
		/* a success that wanted no completion */
		if (next < BEFORE &&
		    flags_of((int)next) == RPMA_F_COMPLETION_ON_ERROR)
			next++;
		CHECK(item.context == next);
		CHECK(item.opcode == IBV_WC_RDMA_WRITE);
		CHECK(item.flags == 0);
		if (next < BEFORE)
			CHECK(item.status == IBV_WC_SUCCESS);
		else if (next == BEFORE)
			CHECK(item.status == IBV_WC_REM_ACCESS_ERR);
		else
			CHECK(item.status == IBV_WC_WR_FLUSH_ERR);
		next++;
	}
	CHECK(next == BEFORE + 1 + BEHIND);
	CHECK(next_recv == 100 + RECVS);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	check_reason(&item);
	CHECK(item.context == (uintptr_t)pair->active);
}

static void write__bad_rkey(struct stage *s, const struct world_pair *other,
			    int bad_flags)
{
	struct rpma_mr_remote *bad = stage_vanished(s);
	struct rpma_rt_completion item;
	struct world_pair pair;
	int i;

	stage_connect(s, &pair);
	/* the other end has receives out: they come back too */
	for (i = 0; i < RECVS; i++)
		MUST(rpma_rt_recv(pair.passive, s->mr, 0, 64, (uint64_t)i));
	post_all(s, pair.active, bad, bad_flags);
	expect_all(s, &pair);
	CHECK(rpma_rt_send(pair.active, s->mr, 0, 8, RPMA_F_COMPLETION_ALWAYS,
			   0) == RPMA_RT_E_CLOSED);
	for (i = 0; i < RECVS; i++)
		stage_completion(s->pq, (uint64_t)i, IBV_WC_WR_FLUSH_ERR);
	item = world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	check_reason(&item);
	world_unref(&pair);
	MUST(rpma_mr_remote_delete(&bad));
	for (i = 0; i < 50; i++) /* on the same poller and CQ */
		stage_ping(s, other, (uint64_t)i);
}

/* Many times what the queue holds, none with a completion: room comes back,
 * and whoever was refused is told. */
static void write__silent_never_stuck(struct stage *s)
{
	struct world_pair pair;
	int posted = 0;
	int ret;

	stage_connect(s, &pair);
	while (posted < 20 * DEPTH) {
		ret = rpma_rt_write(pair.active, s->remote, 2048, s->mr, 0, 8,
				    RPMA_F_COMPLETION_ON_ERROR, 5);
		if (ret == RPMA_E_AGAIN) {
			CHECK(world_next(s->aq).kind == RPMA_RT_WRITABLE);
			continue;
		}
		MUST(ret);
		posted++;
	}
	MUST(rpma_rt_conn_close(pair.active));
	/* a refusal that was answered in vain, the last ones: flushed */
	while (world_next(s->aq).kind != RPMA_RT_EVENT)
		;
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&pair);
}

int main(void)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct world_pair other;
	struct rpma_rt_poller_stats stats;
	struct stage s;

	stage_open(&s, &cfg);
	stage_connect(&s, &other);
	write__bad_rkey(&s, &other, RPMA_F_COMPLETION_ALWAYS);
	write__bad_rkey(&s, &other, RPMA_F_COMPLETION_ON_ERROR);
	write__bad_rkey(&s, &other, RPMA_F_COMPLETION_ALWAYS);
	write__silent_never_stuck(&s);
	stage_disconnect(&s, &other);
	MUST(rpma_rt_poller_get_stats(s.world.rt, 0, &stats, sizeof(stats)));
	CHECK(stats.stale == 0);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
