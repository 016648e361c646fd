/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * keepalive.c -- keep-alive on a device: idle connections stay and their peers
 * notice nothing; a silent peer ends in CLOSED with the reason ERROR; without
 * keep-alive nothing is posted. With threads, and by hand.
 */

#include <poll.h>
#include <string.h>

#include "loop.h"
#include "stage.h"

#define PERIOD_MS 20

static uint64_t keepalives(const struct stage *s)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(s->world.rt, 0, &stats, sizeof(stats)));
	CHECK(stats.stale == 0);
	return stats.keepalives;
}

/* Runs the poller, or lets its thread run, until the queue has an item, or so
 * many keep-alive requests were posted, which returns false. */
static bool wait_for(struct stage *s, bool manual, uint64_t posted,
		     struct rpma_rt_completion *item)
{
	struct pollfd fd = {.events = POLLIN};
	uint64_t start = world_now_ms();

	if (manual)
		MUST(rpma_rt_poller_get_fd(s->world.rt, 0, &fd.fd));
	while (keepalives(s) < posted) {
		CHECK(world_now_ms() - start < WORLD_PATIENCE_MS);
		if (!manual) {
			if (rpma_rt_queue_wait(s->aq, item, 1, PERIOD_MS) > 0)
				return true;
			continue;
		}
		if (rpma_rt_poller_arm(s->world.rt, 0) == 0)
			CHECK(poll(&fd, 1, WORLD_PATIENCE_MS) == 1);
		CHECK(rpma_rt_poller_run(s->world.rt, 0, 32) >= 0);
		if (rpma_rt_queue_poll(s->aq, item, 1) > 0)
			return true;
	}
	return false;
}

/* The next item of the active ends. */
static struct rpma_rt_completion next(struct stage *s, bool manual)
{
	struct rpma_rt_completion item;

	CHECK(wait_for(s, manual, UINT64_MAX, &item));
	return item;
}

/* A peer without a runtime, which can be silenced unnoticed. */
struct other {
	struct rpma_ep *ep;
	struct rpma_conn *conn;
};

static void other_listen(struct other *o, struct stage *s)
{
	uint16_t port;

	MUST(rpma_ep_listen_ex(s->world.peer, s->world.addr, "0", 1, NULL, NULL,
			       &o->ep));
	MUST(rpma_ep_get_port(o->ep, &port));
	snprintf(s->world.port, sizeof(s->world.port), "%u", port);
}

static void other_accept(struct other *o)
{
	enum rpma_conn_event event;
	struct rpma_conn_req *req;

	MUST(rpma_ep_next_conn_req(o->ep, NULL, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &o->conn));
	MUST(rpma_conn_next_event(o->conn, &event));
	CHECK(event == RPMA_CONN_ESTABLISHED);
}

/*
 * Makes the peer silent: from here on the peer answers nothing, and sends
 * nothing.
 */
static void other_fall_silent(struct other *o)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp *qp;

	MUST(rpma_conn_get_qp(o->conn, &qp));
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

static void other_close(struct other *o)
{
	MUST(rpma_conn_delete(&o->conn));
	MUST(rpma_ep_shutdown(&o->ep));
}

static struct rpma_rt_conn *connect_to(struct other *o, struct stage *s,
				       bool manual, uint32_t period_ms)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_conn_cfg *more;
	struct rpma_rt_conn *conn;

	MUST(rpma_conn_cfg_new(&more));
	/* a device gives up on a peer soon: some 4 * 4 ms */
	MUST(rpma_conn_cfg_set_retry_count(more, 3));
	cfg.more = more;
	cfg.ack_timeout = 10;
	cfg.keepalive_ms = period_ms;
	other_listen(o, s);
	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, &cfg, 0, s->aq, NULL, &conn));
	MUST(rpma_conn_cfg_delete(&more));
	CHECK(next(s, manual).opcode == RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(conn, NULL));
	other_accept(o);
	CHECK(next(s, manual).opcode == RPMA_RT_EVENT_ESTABLISHED);
	return conn;
}

static void expect_closed(struct stage *s, bool manual,
			  struct rpma_rt_conn **conn,
			  enum rpma_rt_reason reason)
{
	struct rpma_rt_completion item = next(s, manual);

	CHECK(item.kind == RPMA_RT_EVENT);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	CHECK(item.status == reason);
	MUST(rpma_rt_conn_unref(conn));
}

/* Silence: several keep-alive requests, no item; then the peer goes. */
static void idle_then_silent(struct stage *s, bool manual)
{
	struct rpma_rt_completion item;
	struct other other = {0};
	struct rpma_rt_conn *conn = connect_to(&other, s, manual, PERIOD_MS);

	CHECK(!wait_for(s, manual, keepalives(s) + 3, &item));
	other_fall_silent(&other);
	expect_closed(s, manual, &conn, RPMA_RT_REASON_ERROR);
	other_close(&other);
}

/* A watched connection beside an unwatched connection: only the first posts.
 * When the peers go silent, only the first notices. */
static void off(struct stage *s, bool manual)
{
	struct rpma_rt_completion item;
	struct other plain = {0};
	struct rpma_rt_conn *conn = connect_to(&plain, s, manual, 0);
	uint64_t before = keepalives(s);

	idle_then_silent(s, manual);
	CHECK(keepalives(s) > before);
	before = keepalives(s);
	other_fall_silent(&plain);
	/* whatever its poller does for others, nothing is posted on the
	 * connection */
	idle_then_silent(s, manual);
	MUST(rpma_rt_conn_close(conn));
	expect_closed(s, manual, &conn, RPMA_RT_REASON_LOCAL);
	before = keepalives(s);
	CHECK(rpma_rt_queue_poll(s->aq, &item, 1) == 0);
	CHECK(keepalives(s) == before);
	other_close(&plain);
}

static void run(enum rpma_rt_mode mode)
{
	const struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = 8};
	bool manual = mode == RPMA_RT_MODE_MANUAL;
	struct stage s;

	stage_open(&s, &cfg);
	idle_then_silent(&s, manual);
	off(&s, manual);
	stage_close(&s);
}

int main(void)
{
	run(RPMA_RT_MODE_EVENT);
	run(RPMA_RT_MODE_ADAPTIVE);
	run(RPMA_RT_MODE_MANUAL);
	printf("ok\n");
	return 0;
}
