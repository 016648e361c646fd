/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* teardown.c -- every way a connection, or an attempt to connect, ends. */

#include "fixture.h"

#include <infiniband/verbs.h>

#define STATUS_CONSUMER 28

/* disconnect: at any later time without effect, successfully */
CONNECTED_TEST(disconnect__again_SUCCESS)
{
	assert_int_equal(rdma_disconnect(p->client), 0);
	assert_int_equal(rdma_disconnect(p->client), 0);
	take_event(p->lch, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(p->server), 0);
	assert_int_equal(rdma_disconnect(p->server), 0);
	take_event(p->cch, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(p->client), 0);
	take_event(p->cch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(rdma_disconnect(p->client), 0);
	assert_quiet(p->cch);
}

/* disconnect: both at once */
CONNECTED_TEST(disconnect__crossing_DISCONNECTED_once)
{
	/* the message is late, so that the other message crosses */
	add_rule("event:of=cm.msg_dreq,action=late,delay_us=20000");
	assert_int_equal(rdma_disconnect(p->client), 0);
	assert_int_equal(rdma_disconnect(p->server), 0);
	take_event(p->lch, RDMA_CM_EVENT_DISCONNECTED);
	take_event(p->cch, RDMA_CM_EVENT_DISCONNECTED);
	assert_quiet(p->lch);
	assert_quiet(p->cch);
}

/* disconnect: before the answer there is nothing to end */
REQUEST_TEST(disconnect__unaccepted_SUCCESS)
{
	assert_int_equal(rdma_disconnect(p->server), 0);
	assert_int_equal(rdma_disconnect(p->client), 0);
	assert_quiet(p->cch);
}

/* destroy: destroying an id after a disconnect answers the disconnect */
CONNECTED_TEST(destroy__disconnected_peer_DISCONNECTED)
{
	assert_int_equal(rdma_disconnect(p->client), 0);
	drop_qp(p->server, p->scq);
	/* DISCONNECTED is never read */
	assert_int_equal(rdma_destroy_id(p->server), 0);
	p->server = NULL;
	assert_quiet(p->lch);
	take_event(p->cch, RDMA_CM_EVENT_DISCONNECTED);
}

/* destroy: a request that was read but not answered */
REQUEST_TEST(destroy__request_peer_REJECTED_28)
{
	drop_qp(p->server, p->scq);
	assert_int_equal(rdma_destroy_id(p->server), 0);
	p->server = NULL;
	take_status(p->cch, RDMA_CM_EVENT_REJECTED, STATUS_CONSUMER);
}

/* destroy: the client goes before the accept: no event, accept fails */
REQUEST_TEST(destroy__client_then_accept_EINVAL)
{
	drop_qp(p->client, p->ccq);
	assert_int_equal(rdma_destroy_id(p->client), 0);
	p->client = NULL;
	assert_quiet(p->lch);
	assert_fails(rdma_accept(p->server, NULL), EINVAL);
	assert_quiet(p->lch);
}

/* destroy: the client goes with the answer unread */
REQUEST_TEST(destroy__client_answered_REJECTED_28)
{
	assert_int_equal(rdma_accept(p->server, NULL), 0);
	drop_qp(p->client, p->ccq);
	assert_int_equal(rdma_destroy_id(p->client), 0);
	p->client = NULL;
	take_status(p->lch, RDMA_CM_EVENT_REJECTED, STATUS_CONSUMER);
	assert_int_equal(state_of(p->server), IBV_QPS_ERR);
}

/* destroy: the server goes with its answer unread */
REQUEST_TEST(destroy__server_answered_CONNECT_ERROR)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	assert_int_equal(rdma_accept(p->server, NULL), 0);
	drop_qp(p->server, p->scq);
	assert_int_equal(rdma_destroy_id(p->server), 0);
	p->server = NULL;
	take_status(p->cch, RDMA_CM_EVENT_CONNECT_ERROR, -1);
	assert_int_equal(state_of(p->client), IBV_QPS_ERR);
	/* the handshake is over */
	assert_int_equal(rdma_init_qp_attr(p->client, &attr, &mask), -1);
	assert_int_equal(errno, EINVAL);
	/* the following refusal is not reported as well */
	assert_quiet(p->cch);
}

/* destroy: with a QP is a misuse, but not the end */
PAIR_TEST(destroy__with_qp_MISUSE)
{
	struct rpma_loopback_stats before, after;
	struct ibv_qp *qp;

	qp = p->client->qp;
	rpma_loopback_get_stats(&before);
	assert_int_equal(rdma_destroy_id(p->client), 0);
	rpma_loopback_get_stats(&after);
	assert_int_equal(after.misuses, before.misuses + 1);
	p->client = NULL;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(p->ccq), 0);
}

/*
 * destroy_event_channel: its identifiers are cut off, and can be destroyed
 * later
 */
CONNECTED_TEST(destroy_channel__id_alive_peer_DISCONNECTED)
{
	rdma_destroy_event_channel(p->cch);
	take_event(p->lch, RDMA_CM_EVENT_DISCONNECTED);
	drop_qp(p->client, p->ccq);
	assert_int_equal(rdma_destroy_id(p->client), 0);
	p->client = NULL;
	p->cch = new_channel();
}

/* destroy_event_channel: requests on the channel are refused */
PAIR_TEST(destroy_channel__requests_REJECTED_28)
{
	assert_int_equal(rdma_connect(p->client, NULL), 0);
	rdma_destroy_event_channel(p->lch);
	take_status(p->cch, RDMA_CM_EVENT_REJECTED, STATUS_CONSUMER);
	p->lch = new_channel();
}

TEST_MAIN()
