/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Adopted CQs on a made-up device: raw, acknowledged exactly, backlog. */

#include <fcntl.h>

#include "adopt.h"
#include "rt_fake.h"
#include "poller/round.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

/* a connection made elsewhere: a CQ, an RCQ, a channel for both */
struct plain {
	struct rpma_channel *channel;
	struct rpma_conn conn;
};

static void plain_open(struct plain *p)
{
	*p = (struct plain){0};
	ok(rpma_channel_new(&fake_ctx, &p->channel));
	ok(rpma_cq_new(&fake_ctx, 8, p->channel, 0, NULL, &p->conn.cq));
	ok(rpma_cq_new(&fake_ctx, 8, p->channel, 0, NULL, &p->conn.rcq));
}

/* Closes a connection; also finds events acknowledged not at all or twice. */
static void plain_close(struct plain *p)
{
	ok(rpma_cq_delete(&p->conn.rcq));
	ok(rpma_cq_delete(&p->conn.cq));
	ok(rpma_channel_delete(&p->channel));
}

static struct rpma_rt_adopted *adopted(struct fake *f, struct plain *p)
{
	struct rpma_rt_adopted *adopted;

	ok(rpma_rt_adopt(f->rt, &p->conn, 0, f->queue, f, &adopted));
	return adopted;
}

static void complete(struct rpma_cq *cq, uint64_t wr_id,
		     enum ibv_wc_status status)
{
	cq->wcs[cq->tail++ % FAKE_QUEUE] =
		(struct ibv_wc){.wr_id = wr_id,
				.status = status,
				.opcode = status ? IBV_WC_DRIVER1 : IBV_WC_RECV,
				.byte_len = 100,
				.imm_data = 1234,
				.vendor_err = 77,
				.wc_flags = IBV_WC_WITH_IMM,
				.qp_num = 5};
}

static void event_of(struct plain *p, struct rpma_cq *cq)
{
	p->channel->events[p->channel->tail++ % FAKE_QUEUE] = cq;
}

FAKE_TEST(adopt__each_failure_nothing_left)
{
	static const struct {
		const char *call;
		int nth;
		int value;
		int ret;
	} cases[] = {
		{"malloc", 1, 1, RPMA_E_NOMEM},
		{"cq_claim", 1, RPMA_E_AGAIN, RPMA_RT_E_BUSY},
		{"cq_claim", 2, RPMA_E_AGAIN, RPMA_RT_E_BUSY},
		{"fcntl", 1, 9, RPMA_E_PROVIDER},
		{"fcntl", 2, 9, RPMA_E_PROVIDER},
		{"epoll_ctl", 1, 9, RPMA_E_PROVIDER},
		{"malloc", 2, 1, RPMA_E_NOMEM}, /* the lane */
	};
	struct rpma_rt_adopted *out = NULL;
	struct plain p;
	int memory;
	size_t i;

	plain_open(&p);
	memory = fake_memory();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake_fail(cases[i].call, cases[i].nth, cases[i].value);
		assert_int_equal(
			rpma_rt_adopt(f->rt, &p.conn, 0, f->queue, f, &out),
			cases[i].ret);
		assert_true(fake_failed());
		assert_null(out);
		assert_null(p.conn.cq->owner);
		assert_null(p.conn.rcq->owner);
		assert_int_equal(fake_memory(), memory);
	}
	ok(rpma_rt_queue_close(f->queue));
	assert_int_equal(rpma_rt_adopt(f->rt, &p.conn, 0, f->queue, f, &out),
			 RPMA_RT_E_CLOSED);
	f->rt->stopping = true;
	assert_int_equal(rpma_rt_adopt(f->rt, &p.conn, 0, f->queue, f, &out),
			 RPMA_RT_E_CLOSED);
	f->rt->stopping = false;
	plain_close(&p);
}

/* The poller has no memory for further CQs. */
FAKE_TEST(adopt__no_place_on_its_poller_NOMEM)
{
	struct rpma_rt_adopted *a[2];
	struct rpma_rt_adopted *out = NULL;
	struct plain p[3];
	int memory;
	int i;

	for (i = 0; i < 3; i++)
		plain_open(&p[i]);
	for (i = 0; i < 2; i++)
		a[i] = adopted(f, &p[i]);
	assert_int_equal(f->poller->cqs_count, f->poller->cqs_max);
	memory = fake_memory();
	fake_fail("malloc", 2, 1); /* after the record of the adopted CQ */
	assert_int_equal(rpma_rt_adopt(f->rt, &p[2].conn, 0, f->queue, f, &out),
			 RPMA_E_NOMEM);
	assert_true(fake_failed());
	assert_null(out);
	assert_null(p[2].conn.cq->owner);
	assert_int_equal(fake_memory(), memory);
	assert_int_equal(f->poller->cqs_count, 4);
	complete(p[1].conn.rcq, 9, IBV_WC_SUCCESS);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	for (i = 0; i < 2; i++)
		ok(rpma_rt_adopted_release(&a[i]));
	for (i = 0; i < 3; i++)
		plain_close(&p[i]);
}

/* Nothing of the wr_id is believed, and nothing of an error but four fields. */
FAKE_TEST(poll__raw)
{
	/* as a marker, a keep-alive, a stale tag would look */
	static const uint64_t ids[] = {0, ~UINT64_C(0),
				       UINT64_C(1) << RT_KIND_SHIFT | 1,
				       UINT64_C(300) << RT_ROUTE_SHIFT | 7};
	struct rpma_rt_adopted *a;
	struct plain p;
	int i;

	plain_open(&p);
	a = adopted(f, &p);
	for (i = 0; i < 4; i++)
		complete(p.conn.cq, ids[i], IBV_WC_SUCCESS);
	fake_finish_down(f);
	complete(p.conn.rcq, 9, IBV_WC_REM_OP_ERR);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 5);
	for (i = 0; i < 4; i++) {
		assert_true(f->items[i].context == ids[i]);
		assert_int_equal(f->items[i].opcode, IBV_WC_RECV);
		assert_int_equal(f->items[i].byte_len, 100);
		assert_int_equal(f->items[i].imm, 1234);
		assert_int_equal(f->items[i].flags, RPMA_RT_C_WITH_IMM);
		assert_int_equal(f->items[i].qp_num, 5);
		assert_ptr_equal(f->items[i].user, f);
	}
	assert_int_equal(f->items[4].status, IBV_WC_REM_OP_ERR);
	assert_int_equal(f->items[4].opcode, RPMA_RT_OPCODE_UNKNOWN);
	assert_int_equal(f->items[4].byte_len, 0);
	assert_int_equal(f->items[4].imm, 77);
	assert_int_equal(f->items[4].flags, 0);
	ok(rpma_rt_adopted_release(&a));
	plain_close(&p);
}

/*
 * Release acknowledges the events that were read; other events belong to the
 * program.
 */
FAKE_TEST(release__acknowledged_exactly_and_armed)
{
	struct rpma_rt_adopted *a;
	struct plain p;
	int flags;
	int i;

	plain_open(&p);
	flags = fcntl(p.channel->ibv.fd, F_GETFL);
	a = adopted(f, &p);
	assert_true(fcntl(p.channel->ibv.fd, F_GETFL) & O_NONBLOCK);
	fake_round(f);
	for (i = 0; i < RT_ACK_BATCH + 3; i++)
		event_of(&p, p.conn.cq);
	event_of(&p, p.conn.rcq);
	assert_int_equal(rt_channel_wake(f->poller), RT_ACK_BATCH + 4);
	assert_int_equal(p.conn.cq->acked, RT_ACK_BATCH);
	assert_int_equal(p.conn.rcq->acked, 0);
	p.conn.cq->arms = 0;
	event_of(&p, p.conn.cq); /* not read any more */
	ok(rpma_rt_adopted_release(&a));
	assert_int_equal(p.conn.cq->acked, RT_ACK_BATCH + 3);
	assert_int_equal(p.conn.rcq->acked, 1);
	assert_int_equal(p.conn.cq->arms, 1);
	assert_null(p.conn.cq->owner);
	assert_int_equal(fcntl(p.channel->ibv.fd, F_GETFL), flags);
	assert_int_equal(f->poller->cqs_count, 0);
	assert_null(f->poller->reading);
	plain_close(&p);
}

/*
 * Arms and polls the CQ with the others: finds a completion that arrives while
 * the CQ is armed.
 */
FAKE_TEST(arm__between_poll_and_arm_found)
{
	struct rpma_rt_adopted *a;
	struct plain p;

	plain_open(&p);
	a = adopted(f, &p);
	fake_finish_down(f);
	p.conn.rcq->on_arm = true;
	p.conn.rcq->wc_on_arm = (struct ibv_wc){.wr_id = 3};
	assert_false(rt_arm_poller(f->poller));
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_true(rt_arm_poller(f->poller));
	rt_channel_wake(f->poller);
	ok(rpma_rt_adopted_release(&a));
	plain_close(&p);
}

/* Completions wait in the CQ while the consumer is behind; all arrive, in
 * order, and the reserved spill suffices. */
FAKE_TEST(poll__backlogged_left_in_the_cq)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;
	struct rpma_rt_adopted *a;
	struct plain p;
	uint64_t i;
	int total = 0;
	int got;
	int n;

	plain_open(&p);
	cfg.lane_size = 64;
	cfg.backlog_limit = 4;
	ok(rpma_rt_queue_new(f->rt, &cfg, &queue));
	ok(rpma_rt_adopt(f->rt, &p.conn, 0, queue, NULL, &a));
	for (i = 0; i < 300; i++)
		complete(p.conn.cq, i, IBV_WC_SUCCESS);
	fake_finish_down(f);
	/* most are where they were, and no event is asked for of them */
	assert_true(p.conn.cq->tail - p.conn.cq->head > 150);
	p.conn.cq->arms = 0;
	assert_true(rt_arm_poller(f->poller));
	rt_channel_wake(f->poller);
	assert_int_equal(p.conn.cq->arms, 0);
	while (total < 300) {
		got = rpma_rt_queue_poll(queue, f->items, FAKE_QUEUE);
		for (n = 0; n < got; n++)
			assert_int_equal(f->items[n].context, total + n);
		total += got;
		fake_finish_down(f);
	}
	assert_true(rt_arm_poller(f->poller));
	rt_channel_wake(f->poller);
	assert_int_equal(p.conn.cq->arms, 1);
	ok(rpma_rt_adopted_release(&a));
	ok(rpma_rt_queue_delete(&queue));
	plain_close(&p);
}

FAKE_TEST(poll__a_broken_cq_is_left_alone)
{
	struct rpma_rt_adopted *a;
	struct plain p;

	plain_open(&p);
	a = adopted(f, &p);
	p.conn.cq->poll_answer = -5;
	complete(p.conn.rcq, 1, IBV_WC_SUCCESS);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	p.conn.cq->poll_answer = 0;
	complete(p.conn.cq, 2, IBV_WC_SUCCESS);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 0);
	ok(rpma_rt_adopted_release(&a));
	plain_close(&p);
}

/* A budget of 1 serves both kinds of CQs. */
FAKE_TEST(poll__small_budget_starves_nobody)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_adopted *a;
	struct plain p;
	uint64_t i;
	int raw = 0;

	plain_open(&p);
	a = adopted(f, &p);
	for (i = 0; i < 6; i++) {
		ok(fake_recv(conn, 1000 + i));
		fake_received(conn, (uint32_t)i, IBV_WC_SUCCESS);
		complete(p.conn.cq, i, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 6; i++)
		assert_int_equal(rt_round_run(f->poller, 1), 1);
	assert_int_equal(fake_take(f, f->queue), 6);
	for (i = 0; i < 6; i++)
		raw += f->items[i].context < 1000;
	assert_in_range(raw, 1, 5);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 6);
	ok(rpma_rt_adopted_release(&a));
	plain_close(&p);
	fake_bury(f, &conn);
}

/* Nor do several of them starve each other, nor CQ and RCQ. */
FAKE_TEST(poll__small_budget_by_turns)
{
	struct rpma_rt_adopted *a[2];
	struct plain p[2];
	bool seen[2][2] = {{false}};
	uint64_t i;
	int n;

	for (n = 0; n < 2; n++) {
		plain_open(&p[n]);
		a[n] = adopted(f, &p[n]);
		for (i = 0; i < 8; i++) {
			complete(p[n].conn.cq, (uint64_t)n << 1, 0);
			complete(p[n].conn.rcq, (uint64_t)n << 1 | 1, 0);
		}
	}
	for (i = 0; i < 8; i++)
		assert_int_equal(rt_round_run(f->poller, 1), 1);
	n = fake_take(f, f->queue);
	while (n-- > 0)
		seen[f->items[n].context >> 1][f->items[n].context & 1] = true;
	assert_true(seen[0][0] && seen[0][1] && seen[1][0] && seen[1][1]);
	for (n = 0; n < 2; n++) {
		ok(rpma_rt_adopted_release(&a[n]));
		plain_close(&p[n]);
	}
}

TEST_MAIN()
