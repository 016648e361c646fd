/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * datagrams.c -- identifiers of datagrams as only this device shows them: lost
 * messages, doubled and lost joins, a group that spans devices, leaving while
 * another thread reads the event.
 */

#include "fixture.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <string.h>

static struct rdma_cm_id *ud_id(struct rdma_event_channel *ch, const char *ip)
{
	struct sockaddr_in addr = v4(ip, 0);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(id, SA(addr)), 0);
	return id;
}

static struct ibv_cq *add_ud_qp(struct rdma_cm_id *id)
{
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD,
					.send_cq = cq,
					.recv_cq = cq,
					.cap = {4, 4, 1, 1, 16}};

	assert_non_null(cq);
	assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
	return cq;
}

/* Resolved to the listener, address and route. */
static struct rdma_cm_id *ud_client(struct rdma_event_channel *ch,
				    struct rdma_cm_id *listener)
{
	struct rdma_cm_id *id = ud_id(ch, "127.0.0.1");

	assert_int_equal(rdma_resolve_addr(id, NULL,
					   &listener->route.addr.src_addr,
					   TIMEOUT_MS),
			 0);
	take_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, TIMEOUT_MS), 0);
	take_event(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/* a lost message of either direction: nobody there, for the client only */
TEST_WITH(message__lost_UNREACHABLE, reset, reset)
{
	struct rdma_event_channel *lch = new_channel();
	struct rdma_event_channel *cch = new_channel();
	struct rdma_cm_id *listener = ud_id(lch, "127.0.0.1");
	struct rdma_conn_param param = {.qp_num = 7};
	struct rdma_cm_event *event;
	struct rdma_cm_id *client, *server;

	assert_int_equal(rdma_listen(listener, 1), 0);
	client = ud_client(cch, listener);
	add_rule("event:of=cm.msg_req,action=drop,count=1");
	assert_int_equal(rdma_connect(client, &param), 0);
	take_status(cch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_quiet(lch);
	rdma_destroy_id(client);
	client = ud_client(cch, listener);
	assert_int_equal(rdma_connect(client, &param), 0);
	event = next_event(lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rdma_ack_cm_event(event);
	add_rule("event:of=cm.msg_rep,action=drop,count=1");
	assert_int_equal(rdma_accept(server, &param), 0);
	take_status(cch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_fails(rdma_accept(server, &param), EINVAL);
	assert_quiet(lch);
	rdma_destroy_id(server);
	rdma_destroy_id(client);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(cch);
	rdma_destroy_event_channel(lch);
}

/* a queue pair made by hand is named by the parameter */
TEST_WITH(accept__without_a_qp_TELLS_ITS_NUMBER, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *listener = ud_id(ch, "127.0.0.1");
	struct rdma_conn_param param = {.qp_num = 0x1234};
	struct rdma_cm_event *event;
	struct rdma_cm_id *client, *server;

	assert_int_equal(rdma_listen(listener, 1), 0);
	client = ud_client(ch, listener);
	assert_int_equal(rdma_connect(client, NULL), 0);
	event = next_event(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_accept(server, &param), 0);
	event = next_event(ch, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.ud.qp_num, 0x1234);
	rdma_ack_cm_event(event);
	rdma_destroy_id(server);
	rdma_destroy_id(client);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(ch);
}

/* an event that comes twice attaches once, one that is lost never */
TEST_WITH(join__doubled_or_lost, reset, reset)
{
	struct sockaddr_in group = v4("239.1.1.1", 0);
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = ud_id(ch, "127.0.0.1");
	struct ibv_cq *cq = add_ud_qp(id);

	add_rule("event:of=cm.multicast_join,action=double,count=1");
	assert_int_equal(rdma_join_multicast(id, SA(group), NULL), 0);
	take_event(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	take_event(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(rdma_leave_multicast(id, SA(group)), 0);
	add_rule("event:of=cm.multicast_join,action=drop,count=1");
	assert_int_equal(rdma_join_multicast(id, SA(group), NULL), 0);
	assert_quiet(ch);
	assert_int_equal(rdma_leave_multicast(id, SA(group)), 0);
	/* it could not be destroyed if it were attached */
	drop_qp(id, cq);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* a join whose QP cannot be attached says so */
TEST_WITH(join__attach_fails_MULTICAST_ERROR, reset, reset)
{
	struct sockaddr_in group = v4("239.1.1.1", 0);
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = ud_id(ch, "127.0.0.1");
	struct ibv_cq *cq = add_ud_qp(id);

	add_rule("call:verb=ibv_attach_mcast,errno=ENOMEM,count=1");
	assert_int_equal(rdma_join_multicast(id, SA(group), NULL), 0);
	take_status(ch, RDMA_CM_EVENT_MULTICAST_ERROR, -1);
	assert_int_equal(rdma_leave_multicast(id, SA(group)), 0);
	drop_qp(id, cq);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* one to send only is told where, and hears nothing */
TEST_WITH(join__to_send_only_IS_NO_MEMBER, reset, reset)
{
	struct sockaddr_in group = v4("239.1.1.1", 0);
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = SA(group),
	};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = ud_id(ch, "127.0.0.1");
	struct ibv_cq *cq = add_ud_qp(id);

	assert_int_equal(rdma_join_multicast_ex(id, &attr, NULL), 0);
	take_event(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	drop_qp(id, cq);
	assert_int_equal(rdma_leave_multicast(id, SA(group)), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

TEST_WITH(join__synchronous_or_ipv6, reset, reset)
{
	struct sockaddr_in src = v4("127.0.0.1", 0);
	struct sockaddr_in6 group = v6("ff15::7", 0);
	struct rdma_cm_id *id;
	struct ibv_cq *cq;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(id, SA(src)), 0);
	cq = add_ud_qp(id);
	assert_int_equal(rdma_join_multicast(id, SA(group), NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_memory_equal(&id->event->param.ud.ah_attr.grh.dgid,
			    &group.sin6_addr, 16);
	assert_int_equal(rdma_ack_cm_event(id->event), 0);
	id->event = NULL;
	assert_int_equal(rdma_leave_multicast(id, SA(group)), 0);
	drop_qp(id, cq);
	rdma_destroy_id(id);
}

/* --- leaving against reading */

struct race {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct sockaddr_in group;
	struct ibv_cq *cq;
	int left;
};

static void race_setup(void *arg)
{
	struct race *r = arg;

	r->group = v4("239.1.1.1", 0);
	r->ch = new_channel();
	set_nonblock(r->ch);
	r->id = ud_id(r->ch, "127.0.0.1");
	r->cq = add_ud_qp(r->id);
	assert_int_equal(rdma_join_multicast(r->id, SA(r->group), NULL), 0);
}

static void read_it(void *arg)
{
	struct race *r = arg;
	struct rdma_cm_event *event;

	if (!rdma_get_cm_event(r->ch, &event))
		rdma_ack_cm_event(event);
}

static void leave_it(void *arg)
{
	struct race *r = arg;

	r->left = rdma_leave_multicast(r->id, SA(r->group));
}

static int race_check(void *arg)
{
	const union ibv_gid gid = {.raw = {[10] = 0xff, 0xff, 239, 1, 1, 1}};
	struct race *r = arg;
	int ret = r->left || ibv_detach_mcast(r->id->qp, &gid, 0) != EINVAL;

	drop_qp(r->id, r->cq);
	rdma_destroy_id(r->id);
	rdma_destroy_event_channel(r->ch);
	return ret;
}

/* whatever the order, the QP is not attached afterwards */
TEST_WITH(leave__while_the_event_is_read, reset, reset)
{
	struct race r = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {read_it, leave_it},
		.setup = race_setup,
		.check = race_check,
		.arg = &r,
		.max_preemptions = 2,
	};

	assert_int_equal(rpma_loopback_sched_run(&sched, NULL), 0);
}

TEST_MAIN()
