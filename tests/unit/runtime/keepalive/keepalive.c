/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Keep-alive, with the deadlines moved by hand instead of the clock. */

#include <poll.h>
#include <string.h>

#include "rt_fake.h"
#include "poller/round.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

#define ALWAYS	RPMA_F_COMPLETION_ALWAYS
#define HOUR_MS 3600000

/* Its next look is due. */
static void let_time_pass(struct fake *f, struct rpma_rt_conn *conn)
{
	rt_schedule_ready(f->poller, &conn->poll.keepalive->task);
	fake_round(f);
}

/* What it had completed before its first look is known. */
static struct rpma_rt_conn *watched(struct fake *f)
{
	struct rpma_rt_conn *conn;

	f->rt_cfg.keepalive_ms = HOUR_MS;
	conn = fake_established(f);
	let_time_pass(f, conn);
	return conn;
}

static uint32_t posted(const struct rpma_rt_conn *conn)
{
	return fake_qp(conn)->sq_count;
}

static void complete(struct rpma_rt_conn *conn, enum ibv_wc_status status)
{
	fake_wc(conn->cq, rt_wr_id_internal(RT_KEEPALIVE, conn->slot), status,
		IBV_WC_RDMA_WRITE, conn->qp_num);
}

FAKE_TEST(off__nothing)
{
	struct rpma_rt_conn *conn = fake_established(f);

	assert_int_equal(conn->cq_user.room, FAKE_SQ + FAKE_RQ + 2);
	assert_true(rt_schedule_next_ns(f->poller) == UINT64_MAX);
	fake_bury(f, &conn);
}

FAKE_TEST(room__one_more)
{
	struct rpma_rt_conn *conn;
	uint32_t sq;

	f->rt_cfg.keepalive_ms = HOUR_MS;
	conn = fake_request(f);
	assert_int_equal(conn->cq_user.room, FAKE_SQ + FAKE_RQ + 3);
	ok(rpma_conn_cfg_get_sq_size(conn->setup->cfg, &sq));
	assert_int_equal(sq, FAKE_SQ + 2);
	fake_bury(f, &conn);
}

FAKE_TEST(idle__one_under_way_at_most)
{
	struct rpma_rt_conn *conn = watched(f);

	fake_round(f);
	assert_int_equal(posted(conn), 0);
	let_time_pass(f, conn);
	assert_int_equal(posted(conn), 1);
	assert_int_equal(fake_sq_id(conn, 0),
			 rt_wr_id_internal(RT_KEEPALIVE, conn->slot));
	assert_true(fake_qp(conn)->signaled[0]);
	let_time_pass(f, conn);
	assert_int_equal(posted(conn), 1);
	complete(conn, IBV_WC_SUCCESS);
	fake_round(f);
	let_time_pass(f, conn); /* that it has answered counts */
	assert_int_equal(posted(conn), 1);
	let_time_pass(f, conn);
	assert_int_equal(posted(conn), 2);
	complete(conn, IBV_WC_SUCCESS);
	fake_round(f);
	/* and the application hears nothing of it */
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_bury(f, &conn);
}

FAKE_TEST(busy__none)
{
	struct rpma_rt_conn *conn = watched(f);
	uint32_t i;

	for (i = 0; i < 3; i++) {
		ok(fake_send(conn, i, ALWAYS));
		fake_sent(conn, i, IBV_WC_SUCCESS);
		fake_round(f);
		let_time_pass(f, conn);
	}
	assert_int_equal(posted(conn), 3); /* the sends */
	assert_int_equal(fake_take(f, f->queue), 3);
	fake_bury(f, &conn);
}

/* Closed while one is under way: it is flushed, behind the marker. */
FAKE_TEST(closed__flushed_one_means_nothing)
{
	struct rpma_rt_conn *conn = watched(f);
	uint64_t stale = 0;

	let_time_pass(f, conn);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_markers(conn);
	complete(conn, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_LOCAL);
	/* relaxed: no other thread */
	stale = atomic_load_explicit(&f->poller->stats.stale,
				     memory_order_relaxed);
	assert_int_equal(stale, 0);
	ok(rpma_rt_conn_unref(&conn));
}

/* The device refuses it: again after a period, and the connection lives. */
FAKE_TEST(refused__again_later)
{
	struct rpma_rt_conn *conn = watched(f);

	fake_fail("post_send", 1, 12);
	let_time_pass(f, conn);
	assert_int_equal(posted(conn), 0);
	fake_round(f);
	assert_int_equal(posted(conn), 0);
	let_time_pass(f, conn);
	assert_int_equal(posted(conn), 1);
	fake_bury(f, &conn);
}

/* Each its own; they end in any order. */
FAKE_TEST(several__each_its_own)
{
	struct rpma_rt_conn *conns[3];
	int i;

	for (i = 0; i < 3; i++)
		conns[i] = watched(f);
	let_time_pass(f, conns[1]);
	for (i = 0; i < 3; i++)
		assert_int_equal(posted(conns[i]), i == 1);
	fake_bury(f, &conns[1]);
	fake_bury(f, &conns[0]);
	assert_true(rt_schedule_next_ns(f->poller) != UINT64_MAX);
	fake_bury(f, &conns[2]);
	assert_true(rt_schedule_next_ns(f->poller) == UINT64_MAX);
}

FAKE_TEST(manual__the_backstop_too)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct pollfd fd = {.fd = f->poller->epfd, .events = POLLIN};
	uint64_t recovered;

	f->rt->cfg.backstop_ms = 1;
	ok(fake_recv(conn, 1));
	assert_true(rt_arm_poller(f->poller));
	fake_received(conn, 0, IBV_WC_SUCCESS); /* and its event is lost */
	assert_int_equal(poll(&fd, 1, 300000), 1);
	rt_channel_wake(f->poller);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	/* relaxed: no other thread */
	recovered = atomic_load_explicit(
		&f->poller->stats.lost_events_recovered, memory_order_relaxed);
	assert_int_equal(recovered, 1);
	fake_bury(f, &conn);
}

TEST_MAIN()
