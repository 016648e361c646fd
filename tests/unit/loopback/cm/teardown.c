/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* teardown.c -- every way a connection, or an attempt to connect, ends. */

#include "fixture.h"

#include <infiniband/verbs.h>

#define STATUS_CONSUMER 28

/* disconnect: at any later time without effect, successfully */
TEST_WITH(disconnect__again_SUCCESS, reset, reset)
{
	struct pair p;

	pair_connect(&p);
	assert_int_equal(rdma_disconnect(p.client), 0);
	assert_int_equal(rdma_disconnect(p.client), 0);
	take_event(p.lch, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(p.server), 0);
	assert_int_equal(rdma_disconnect(p.server), 0);
	take_event(p.cch, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(p.client), 0);
	take_event(p.cch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(rdma_disconnect(p.client), 0);
	assert_quiet(p.cch);
	pair_teardown(&p);
}

/* disconnect: both at once */
TEST_WITH(disconnect__crossing_DISCONNECTED_once, reset, reset)
{
	struct pair p;

	pair_connect(&p);
	/* the message is late, so that the other message crosses */
	add_rule("event:of=cm.msg_dreq,action=late,delay_us=20000");
	assert_int_equal(rdma_disconnect(p.client), 0);
	assert_int_equal(rdma_disconnect(p.server), 0);
	take_event(p.lch, RDMA_CM_EVENT_DISCONNECTED);
	take_event(p.cch, RDMA_CM_EVENT_DISCONNECTED);
	assert_quiet(p.lch);
	assert_quiet(p.cch);
	pair_teardown(&p);
}

/* disconnect: before the answer there is nothing to end */
TEST_WITH(disconnect__unaccepted_SUCCESS, reset, reset)
{
	struct pair p;

	pair_request(&p);
	assert_int_equal(rdma_disconnect(p.server), 0);
	assert_int_equal(rdma_disconnect(p.client), 0);
	assert_quiet(p.cch);
	pair_teardown(&p);
}

/* destroy: destroying an id after a disconnect answers the disconnect */
TEST_WITH(destroy__disconnected_peer_DISCONNECTED, reset, reset)
{
	struct pair p;

	pair_connect(&p);
	assert_int_equal(rdma_disconnect(p.client), 0);
	drop_qp(p.server, p.scq);
	/* DISCONNECTED is never read */
	assert_int_equal(rdma_destroy_id(p.server), 0);
	p.server = NULL;
	assert_quiet(p.lch);
	take_event(p.cch, RDMA_CM_EVENT_DISCONNECTED);
	pair_teardown(&p);
}

/* destroy: a request that was read but not answered */
TEST_WITH(destroy__request_peer_REJECTED_28, reset, reset)
{
	struct pair p;

	pair_request(&p);
	drop_qp(p.server, p.scq);
	assert_int_equal(rdma_destroy_id(p.server), 0);
	p.server = NULL;
	take_status(p.cch, RDMA_CM_EVENT_REJECTED, STATUS_CONSUMER);
	pair_teardown(&p);
}

/* destroy: the client goes before the accept: no event, accept fails */
TEST_WITH(destroy__client_then_accept_EINVAL, reset, reset)
{
	struct pair p;

	pair_request(&p);
	drop_qp(p.client, p.ccq);
	assert_int_equal(rdma_destroy_id(p.client), 0);
	p.client = NULL;
	assert_quiet(p.lch);
	assert_fails(rdma_accept(p.server, NULL), EINVAL);
	assert_quiet(p.lch);
	pair_teardown(&p);
}

/* destroy: the client goes with the answer unread */
TEST_WITH(destroy__client_answered_REJECTED_28, reset, reset)
{
	struct pair p;

	pair_request(&p);
	assert_int_equal(rdma_accept(p.server, NULL), 0);
	drop_qp(p.client, p.ccq);
	assert_int_equal(rdma_destroy_id(p.client), 0);
	p.client = NULL;
	take_status(p.lch, RDMA_CM_EVENT_REJECTED, STATUS_CONSUMER);
	assert_int_equal(state_of(p.server), IBV_QPS_ERR);
	pair_teardown(&p);
}

/* destroy: the server goes with its answer unread */
TEST_WITH(destroy__server_answered_CONNECT_ERROR, reset, reset)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct pair p;
	int mask;

	pair_request(&p);
	assert_int_equal(rdma_accept(p.server, NULL), 0);
	drop_qp(p.server, p.scq);
	assert_int_equal(rdma_destroy_id(p.server), 0);
	p.server = NULL;
	take_status(p.cch, RDMA_CM_EVENT_CONNECT_ERROR, -1);
	assert_int_equal(state_of(p.client), IBV_QPS_ERR);
	/* the handshake is over */
	assert_int_equal(rdma_init_qp_attr(p.client, &attr, &mask), -1);
	assert_int_equal(errno, EINVAL);
	/* the following refusal is not reported as well */
	assert_quiet(p.cch);
	pair_teardown(&p);
}

/* destroy: with a QP is a misuse, but not the end */
TEST_WITH(destroy__with_qp_MISUSE, reset, reset)
{
	struct rpma_loopback_stats before, after;
	struct ibv_qp *qp;
	struct pair p;

	pair_setup(&p);
	qp = p.client->qp;
	rpma_loopback_get_stats(&before);
	assert_int_equal(rdma_destroy_id(p.client), 0);
	rpma_loopback_get_stats(&after);
	assert_int_equal(after.misuses, before.misuses + 1);
	p.client = NULL;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(p.ccq), 0);
	pair_teardown(&p);
}

/*
 * destroy_event_channel: its identifiers are cut off, and can be destroyed
 * later
 */
TEST_WITH(destroy_channel__id_alive_peer_DISCONNECTED, reset, reset)
{
	struct pair p;

	pair_connect(&p);
	rdma_destroy_event_channel(p.cch);
	take_event(p.lch, RDMA_CM_EVENT_DISCONNECTED);
	drop_qp(p.client, p.ccq);
	assert_int_equal(rdma_destroy_id(p.client), 0);
	p.client = NULL;
	p.cch = new_channel();
	pair_teardown(&p);
}

/* destroy_event_channel: requests on the channel are refused */
TEST_WITH(destroy_channel__requests_REJECTED_28, reset, reset)
{
	struct pair p;

	pair_setup(&p);
	assert_int_equal(rdma_connect(p.client, NULL), 0);
	rdma_destroy_event_channel(p.lch);
	take_status(p.cch, RDMA_CM_EVENT_REJECTED, STATUS_CONSUMER);
	p.lch = new_channel();
	pair_teardown(&p);
}

TEST_MAIN()
