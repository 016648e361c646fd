/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedules.c -- small cases in every order that the deterministic scheduler
 * can make of them.
 */

#include "fixture.h"

#include <infiniband/verbs.h>
#include <string.h>

/* ---- a client comes and goes, a server accepts and goes ----------------- */

struct meeting {
	struct rdma_event_channel *lch;
	struct rdma_event_channel *cch;
	struct rdma_cm_id *listener;
	int client_saw; /* the last event */
	int server_saw;
};

static void meet(void *arg)
{
	struct meeting *m = arg;

	m->lch = new_channel();
	m->cch = new_channel();
	m->listener = new_listener(m->lch, 0);
}

static int read_one(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *event;
	int type;

	assert_int_equal(rdma_get_cm_event(ch, &event), 0);
	type = event->event;
	rdma_ack_cm_event(event);
	return type;
}

static void client_parts(void *arg)
{
	struct rdma_conn_param param = {.qp_num = 1};
	struct meeting *m = arg;
	struct rdma_cm_id *id = new_client(m->cch, port_of(m->listener));

	assert_int_equal(rdma_connect(id, &param), 0);
	m->client_saw = read_one(m->cch);
	if (m->client_saw == RDMA_CM_EVENT_CONNECT_RESPONSE &&
	    !rdma_establish(id))
		rdma_disconnect(id);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void server_parts(void *arg)
{
	struct rdma_conn_param param = {.qp_num = 2};
	struct meeting *m = arg;
	struct rdma_cm_event *event =
		next_event(m->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(rdma_accept(id, &param), 0);
	m->server_saw = read_one(m->lch);
	if (m->server_saw == RDMA_CM_EVENT_ESTABLISHED)
		m->server_saw = read_one(m->lch);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static int has_parted(void *arg)
{
	struct meeting *m = arg;
	int ok = m->client_saw == RDMA_CM_EVENT_CONNECT_RESPONSE &&
		 m->server_saw == RDMA_CM_EVENT_DISCONNECTED;

	assert_quiet(m->lch);
	assert_quiet(m->cch);
	rdma_destroy_id(m->listener);
	rdma_destroy_event_channel(m->cch);
	rdma_destroy_event_channel(m->lch);
	return !ok;
}

/* every schedule: both sides see the same story */
TEST_WITH(meet__connect_and_part_ALL_SCHEDULES, reset, reset)
{
	struct meeting m;
	const struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {client_parts, server_parts},
		.setup = meet,
		.check = has_parted,
		.arg = &m,
	};
	struct rpma_loopback_sched_result result;

	memset(&m, 0, sizeof(m));
	assert_int_equal(rpma_loopback_sched_run(&sched, &result), 0);
	assert_true(result.complete);
	print_message("%u schedules\n", result.runs);
}

/* ---- an identifier migrates while its event is read and acknowledged ----- */

struct move {
	struct rdma_event_channel *from;
	struct rdma_event_channel *to;
	struct rdma_cm_id *id;
	int acked;
	int early; /* migrated before that */
};

static void before_move(void *arg)
{
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct move *m = arg;

	m->from = new_channel();
	m->to = new_channel();
	m->id = new_id(m->from);
	m->acked = 0;
	m->early = 0;
	set_nonblock(m->from);
	assert_int_equal(rdma_resolve_addr(m->id, NULL, SA(addr), TIMEOUT_MS),
			 0);
}

static void read_if_there(void *arg)
{
	struct rdma_cm_event *event;
	struct move *m = arg;

	if (rdma_get_cm_event(m->from, &event)) {
		m->acked = -1; /* it has moved */
		return;
	}
	rpma_loopback_sched_point("the event is being worked on");
	m->acked = 1;
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

static void move(void *arg)
{
	struct move *m = arg;

	assert_int_equal(rdma_migrate_id(m->id, m->to), 0);
	m->early = !m->acked && !is_readable(m->to);
}

static int has_moved(void *arg)
{
	struct move *m = arg;
	bool moved = is_readable(m->to);
	int bad = m->early || moved != (m->acked == -1);

	assert_int_equal(rdma_destroy_id(m->id), 0);
	rdma_destroy_event_channel(m->from);
	rdma_destroy_event_channel(m->to);
	return bad;
}

/* every schedule: the event is read before, or moved, never in between */
TEST_WITH(migrate__read_and_ack_ALL_SCHEDULES, reset, reset)
{
	struct move m;
	const struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {read_if_there, move},
		.setup = before_move,
		.check = has_moved,
		.arg = &m,
	};
	struct rpma_loopback_sched_result result;

	assert_int_equal(rpma_loopback_sched_run(&sched, &result), 0);
	assert_true(result.complete);
	print_message("%u schedules\n", result.runs);
}

TEST_MAIN()
