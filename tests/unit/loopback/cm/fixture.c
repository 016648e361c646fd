/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* fixture.c -- see fixture.h */

#include "fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <string.h>

struct sockaddr_in v4(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};

	assert_int_equal(inet_pton(AF_INET, ip, &sin.sin_addr), 1);
	return sin;
}

struct sockaddr_in6 v6(const char *ip, uint16_t port)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
	};

	assert_int_equal(inet_pton(AF_INET6, ip, &sin6.sin6_addr), 1);
	return sin6;
}

struct rdma_event_channel *new_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	assert_non_null(ch);
	return ch;
}

void set_nonblock(const struct rdma_event_channel *ch)
{
	int flags = fcntl(ch->fd, F_GETFL);

	assert_int_equal(fcntl(ch->fd, F_SETFL, flags | O_NONBLOCK), 0);
}

bool is_readable(const struct rdma_event_channel *ch)
{
	struct pollfd pfd = {.fd = ch->fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

void assert_quiet(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *event = NULL;

	set_nonblock(ch);
	assert_fails(rdma_get_cm_event(ch, &event), EAGAIN);
	assert_null(event);
}

struct rdma_cm_event *next_event(struct rdma_event_channel *ch,
				 enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(ch, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

void take_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	take_status(ch, type, 0);
}

void take_status(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
		 int status)
{
	struct rdma_cm_event *event = next_event(ch, type);

	assert_int_equal(event->status, status);
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

struct rdma_cm_id *new_id(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

struct rdma_cm_id *new_listener(struct rdma_event_channel *ch, int backlog)
{
	struct rdma_cm_id *id = new_id(ch);
	struct sockaddr_in addr = v4("127.0.0.1", 0);

	assert_int_equal(rdma_bind_addr(id, SA(addr)), 0);
	assert_int_equal(rdma_listen(id, backlog), 0);
	return id;
}

uint16_t port_of(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

struct rdma_cm_id *new_client(struct rdma_event_channel *ch, uint16_t port)
{
	struct sockaddr_in addr = v4("127.0.0.1", port);
	struct rdma_cm_id *id = new_id(ch);

	assert_int_equal(rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
	take_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, TIMEOUT_MS), 0);
	take_event(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

struct ibv_cq *add_qp(struct rdma_cm_id *id)
{
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {4, 4, 1, 1, 8},
	};

	assert_non_null(cq);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	return cq;
}

void drop_qp(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	rdma_destroy_qp(id);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

enum ibv_qp_state state_of(const struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void pair_setup(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	p->lch = new_channel();
	p->cch = new_channel();
	p->listener = new_listener(p->lch, 0);
	p->client = new_client(p->cch, port_of(p->listener));
	p->ccq = add_qp(p->client);
}

void pair_request(struct pair *p)
{
	struct rdma_conn_param param = {
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	struct rdma_cm_event *event;

	pair_setup(p);
	assert_int_equal(rdma_connect(p->client, &param), 0);
	event = next_event(p->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = event->id;
	assert_ptr_equal(event->listen_id, p->listener);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	p->scq = add_qp(p->server);
}

void pair_connect(struct pair *p)
{
	pair_request(p);
	assert_int_equal(rdma_accept(p->server, NULL), 0);
	take_event(p->cch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(p->lch, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(state_of(p->client), IBV_QPS_RTS);
	assert_int_equal(state_of(p->server), IBV_QPS_RTS);
}

static void delete_id(struct rdma_cm_id **id, struct ibv_cq *cq)
{
	if (!*id)
		return;
	if ((*id)->qp)
		drop_qp(*id, cq);
	assert_int_equal(rdma_destroy_id(*id), 0);
	*id = NULL;
}

void pair_teardown(struct pair *p)
{
	delete_id(&p->client, p->ccq);
	delete_id(&p->server, p->scq);
	delete_id(&p->listener, NULL);
	rdma_destroy_event_channel(p->cch);
	rdma_destroy_event_channel(p->lch);
}

void add_rule(const char *rule)
{
	assert_int_equal(rpma_loopback_fault(rule), 0);
}

int reset(void **state)
{
	(void)state;
	rpma_loopback_fault_clear();
	rpma_loopback_set_hook(NULL, NULL);
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_WARN);
	return 0;
}

static struct pair the_pair;

static int pair_begin(void **state, void (*begin)(struct pair *p))
{
	int ret = reset(state);

	begin(&the_pair);
	*state = &the_pair;
	return ret;
}

int pair_is_set_up(void **state)
{
	return pair_begin(state, pair_setup);
}

int pair_has_asked(void **state)
{
	return pair_begin(state, pair_request);
}

int pair_is_connected(void **state)
{
	return pair_begin(state, pair_connect);
}

int pair_goes(void **state)
{
	pair_teardown(*state);
	return reset(state);
}
