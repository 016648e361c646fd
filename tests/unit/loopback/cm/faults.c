/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* faults.c -- failing calls, lost events and messages. */

#include "fixture.h"

#include <infiniband/verbs.h>
#include <stdio.h>

/* a call fails as the rule says, and changes nothing */
PAIR_TEST(call__rule_ERRNO)
{
	struct rdma_conn_param param = {.qp_num = 1};

	add_rule("call:verb=rdma_connect,errno=ENOMEM,count=1");
	assert_fails(rdma_connect(p->client, &param), ENOMEM);
	assert_int_equal(rpma_loopback_fault_count(), 1);
	assert_int_equal(rdma_connect(p->client, &param), 0);
}

/* the address or the route cannot be resolved, for the reason given */
TEST_WITH(resolve__rule_ERROR_event, reset, reset)
{
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch);

	add_rule("call:verb=cm.resolve_addr,errno=ETIMEDOUT,count=1;"
		 "call:verb=cm.resolve_route,errno=EHOSTUNREACH,count=1");
	assert_int_equal(rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
	take_status(ch, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_int_equal(rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
	take_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, TIMEOUT_MS), 0);
	take_status(ch, RDMA_CM_EVENT_ROUTE_ERROR, -EHOSTUNREACH);
	assert_int_equal(rdma_resolve_route(id, TIMEOUT_MS), 0);
	take_event(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* a lost request: no listener answers */
PAIR_TEST(request__lost_UNREACHABLE)
{
	struct rdma_cm_id *id;

	add_rule("event:of=cm.msg_req,action=drop");
	assert_int_equal(rdma_connect(p->client, NULL), 0);
	take_status(p->cch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_quiet(p->lch);
	drop_qp(p->client, p->ccq);
	rdma_destroy_id(p->client);
	/* and the synchronous way */
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	p->client = id;
	assert_int_equal(rdma_resolve_addr(id, NULL,
					   &p->listener->route.addr.src_addr,
					   TIMEOUT_MS),
			 0);
	assert_int_equal(rdma_resolve_route(id, TIMEOUT_MS), 0);
	p->ccq = add_qp(id);
	assert_fails(rdma_connect(id, NULL), ETIMEDOUT);
}

/* a lost answer: the server cannot reach the client, which gets an event */
REQUEST_TEST(answer__lost_UNREACHABLE)
{
	add_rule("event:of=cm.msg_rep,action=drop");
	assert_int_equal(rdma_accept(p->server, NULL), 0);
	take_status(p->lch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	take_status(p->cch, RDMA_CM_EVENT_REJECTED, 4);
}

/* a lost confirmation: the server never is ESTABLISHED, but disconnected */
REQUEST_TEST(ready__lost_DISCONNECTED)
{
	add_rule("event:of=cm.msg_rtu,action=drop");
	assert_int_equal(rdma_accept(p->server, NULL), 0);
	take_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	assert_quiet(p->lch);
	assert_int_equal(rdma_disconnect(p->client), 0);
	take_event(p->lch, RDMA_CM_EVENT_DISCONNECTED);
}

/* A server that has no confirmation yet, perhaps a message already, leaves:
 * the client, which is ESTABLISHED, gets an event. */
TEST_WITH(ready__lost_and_server_destroyed_REJECTED, reset, reset)
{
	struct pair p;

	pair_request(&p);
	add_rule("event:of=cm.msg_rtu,action=drop");
	assert_int_equal(rdma_accept(p.server, NULL), 0);
	take_event(p.cch, RDMA_CM_EVENT_ESTABLISHED);
	drop_qp(p.server, p.scq);
	assert_int_equal(rdma_destroy_id(p.server), 0);
	p.server = NULL;
	take_status(p.cch, RDMA_CM_EVENT_REJECTED, 28);
	assert_int_equal(state_of(p.client), IBV_QPS_ERR);
	take_event(p.cch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	pair_teardown(&p);
}

/* a lost disconnect: the sender gets an event for the missing answer */
CONNECTED_TEST(disconnect__lost_ETIMEDOUT)
{
	add_rule("event:of=cm.msg_dreq,action=drop,count=1");
	assert_int_equal(rdma_disconnect(p->client), 0);
	take_status(p->cch, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	assert_quiet(p->lch);
	/* the other side notices without help */
	assert_int_equal(rdma_disconnect(p->server), 0);
	take_event(p->lch, RDMA_CM_EVENT_DISCONNECTED);
}

/* every message twice: no difference is visible */
TEST_WITH(messages__doubled_SAME, reset, reset)
{
	static const char *const messages[] = {"req", "mra",  "rep", "rtu",
					       "rej", "dreq", "drep"};
	struct pair p;

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		char rule[64];

		snprintf(rule, sizeof(rule), "event:of=cm.msg_%s,action=double",
			 messages[i]);
		add_rule(rule);
	}
	pair_connect(&p);
	assert_int_equal(rdma_disconnect(p.client), 0);
	take_event(p.lch, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(p.server), 0);
	take_event(p.cch, RDMA_CM_EVENT_DISCONNECTED);
	take_event(p.lch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	take_event(p.cch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_quiet(p.lch);
	assert_quiet(p.cch);
	pair_teardown(&p);
}

/* ESTABLISHED twice: the QP stays unchanged */
REQUEST_TEST(established__doubled_TWICE)
{
	add_rule("event:of=cm.established,action=double");
	assert_int_equal(rdma_accept(p->server, NULL), 0);
	take_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(p->lch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(p->lch, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(state_of(p->client), IBV_QPS_RTS);
	assert_quiet(p->cch);
}

/* ESTABLISHED late: DISCONNECTED does not overtake ESTABLISHED */
REQUEST_TEST(established__late_IN_ORDER)
{
	add_rule("event:of=cm.established,action=late,delay_us=20000,nth=2");
	assert_int_equal(rdma_accept(p->server, NULL), 0);
	take_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_disconnect(p->client), 0);
	take_event(p->lch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(p->lch, RDMA_CM_EVENT_DISCONNECTED);
}

/* a late event of an identifier destroyed meanwhile never comes */
TEST_WITH(resolved__late_destroyed_QUIET, reset, reset)
{
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch);
	struct rdma_cm_id *other = new_id(ch);

	add_rule("event:of=cm.addr_resolved,action=late,delay_us=10000");
	assert_int_equal(rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
	assert_int_equal(rdma_resolve_addr(other, NULL, SA(addr), TIMEOUT_MS),
			 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	take_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_quiet(ch);
	rdma_destroy_id(other);
	rdma_destroy_event_channel(ch);
}

/* the QP cannot be moved on: CONNECT_ERROR; as with librdmacm the server is
 * refused only when the identifier is destroyed, and until then the handshake
 * goes on */
REQUEST_TEST(response__qp_fails_CONNECT_ERROR)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	assert_int_equal(rdma_accept(p->server, NULL), 0);
	add_rule("call:verb=ibv_modify_qp,errno=EIO,count=1");
	take_status(p->cch, RDMA_CM_EVENT_CONNECT_ERROR, -1);
	assert_int_equal(state_of(p->client), IBV_QPS_ERR);
	assert_quiet(p->lch);
	assert_int_equal(rdma_init_qp_attr(p->client, &attr, &mask), 0);
	assert_quiet(p->cch);
	drop_qp(p->client, p->ccq);
	assert_int_equal(rdma_destroy_id(p->client), 0);
	p->client = NULL;
	take_status(p->lch, RDMA_CM_EVENT_REJECTED, 28);
}

/* accept: the QP cannot be moved on; the request can still be refused */
REQUEST_TEST(accept__qp_fails_EIO)
{
	add_rule("call:verb=ibv_modify_qp,errno=EIO,count=1");
	assert_fails(rdma_accept(p->server, NULL), EIO);
	assert_quiet(p->cch);
	assert_int_equal(rdma_reject(p->server, NULL, 0), 0);
	take_status(p->cch, RDMA_CM_EVENT_REJECTED, 28);
}

/* create_qp: the QP cannot be initialised, nothing of the QP is left */
TEST_WITH(create_qp__init_fails_EIO, reset, reset)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_client(ch, 1);

	add_rule("call:verb=ibv_modify_qp,errno=EIO,count=1");
	assert_fails(rdma_create_qp(id, NULL, &attr), EIO);
	assert_null(id->qp);
	assert_null(id->send_cq);
	assert_null(id->recv_cq);
	add_rule("call:verb=ibv_create_cq,errno=ENOMEM,nth=2");
	assert_fails(rdma_create_qp(id, NULL, &attr), ENOMEM);
	assert_null(id->recv_cq_channel);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

TEST_MAIN()
