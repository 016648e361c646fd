/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Binding and listening: ports chosen and given, taken ones, wildcards, a
 * backlog, endpoints made in one call, ids moved to another channel.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "cm.h"

static int bind_to(struct rdma_cm_id *id, uint16_t port)
{
	struct sockaddr_in addr = cm_addr(port);

	return rdma_bind_addr(id, (struct sockaddr *)&addr);
}

static int bind_any(struct rdma_cm_id *id, uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_port = htons(port)};

	return rdma_bind_addr(id, (struct sockaddr *)&addr);
}

FX_TEST(bind__to_the_device_fills_the_id)
{
	struct rdma_cm_id *id = cm_id(cm_channel());

	assert_int_equal(bind_to(id, 0), 0);
	assert_non_null(id->verbs);
	assert_int_not_equal(cm_port(id), 0);
}

FX_TEST(bind__to_any_leaves_the_device_open)
{
	struct rdma_cm_id *id = cm_id(cm_channel());

	assert_int_equal(bind_any(id, 0), 0);
	assert_null(id->verbs);
	assert_int_not_equal(cm_port(id), 0);
}

FX_TEST(bind__port_0_gives_different_ports)
{
	struct rdma_cm_id *one = cm_id(cm_channel());
	struct rdma_cm_id *two = cm_id(cm_channel());

	assert_int_equal(bind_to(one, 0), 0);
	assert_int_equal(bind_to(two, 0), 0);
	assert_int_not_equal(cm_port(one), cm_port(two));
}

FX_TEST(bind__taken_EADDRINUSE)
{
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct rdma_cm_id *id = cm_id(cm_channel());

	assert_int_equal(bind_to(id, cm_port(listener)), -1);
	assert_int_equal(errno, EADDRINUSE);
	/* taken at one of the addresses that this would be */
	assert_int_equal(bind_any(id, cm_port(listener)), -1);
	assert_true(errno == EADDRINUSE || errno == EADDRNOTAVAIL);
}

FX_TEST(bind__free_again_after_destroy)
{
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct rdma_cm_id *id = cm_id(cm_channel());
	uint16_t port = cm_port(listener);

	assert_int_equal(fx_destroy(listener), 0);
	assert_int_equal(bind_to(id, port), 0);
	assert_int_equal(cm_port(id), port);
}

FX_TEST(bind__twice_EINVAL)
{
	struct rdma_cm_id *id = cm_id(cm_channel());

	assert_int_equal(bind_to(id, 0), 0);
	assert_int_equal(bind_to(id, 0), -1);
	assert_int_equal(errno, EINVAL);
}

FX_TEST(bind__to_an_address_of_nobody_fails)
{
	struct rdma_cm_id *id = cm_id(cm_channel());
	struct sockaddr_in addr = {.sin_family = AF_INET};

	inet_aton("203.0.113.77", &addr.sin_addr);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), -1);
	assert_true(errno == ENODEV || errno == EADDRNOTAVAIL);
}

FX_TEST(listen__twice_EINVAL)
{
	struct rdma_cm_id *id = cm_listen(cm_channel());

	assert_int_equal(rdma_listen(id, 1), -1);
	assert_int_equal(errno, EINVAL);
}

/* Connects to the port and expects the request at the listener. */
static void reaches(struct rdma_cm_id *listener, uint16_t port)
{
	struct cm_link *l = fx_alloc(sizeof(*l));

	l->server.channel = listener->channel;
	l->client.channel = cm_channel();
	l->listener = listener;
	l->client.id = cm_id(l->client.channel);
	cm_resolve(l->client.id, port);
	cm_make_qp(&l->client);
	cm_request(l, NULL, 0);
	cm_make_qp(&l->server);
	cm_accept(l, NULL, 0);
	cm_established(l);
	cm_check(l);
	cm_hang_up(l);
	/* or their TIMEWAIT_EXIT would come between the next one's events */
	cm_destroy(&l->server);
	cm_destroy(&l->client);
}

FX_TEST(listen__on_any_address_is_reached)
{
	struct rdma_cm_id *id = cm_id(cm_channel());

	assert_int_equal(bind_any(id, 0), 0);
	assert_int_equal(rdma_listen(id, 4), 0);
	reaches(id, cm_port(id));
}

FX_TEST(listen__many_clients_one_listener)
{
	struct rdma_cm_id *id = cm_listen(cm_channel());

	for (int i = 0; i < 5; ++i)
		reaches(id, cm_port(id));
}

FX_TEST(listeners__on_two_ports_get_their_own)
{
	struct rdma_cm_id *one = cm_listen(cm_channel());
	struct rdma_cm_id *two = cm_listen(cm_channel());

	reaches(two, cm_port(two));
	reaches(one, cm_port(one));
	assert_false(fx_readable(one->channel->fd));
	assert_false(fx_readable(two->channel->fd));
}

FX_TEST(backlog__requests_wait_to_be_read)
{
	enum { N = 5 };
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *listener = cm_listen(ch);
	struct cm_end *ends = fx_alloc(N * sizeof(*ends));
	struct rdma_conn_param param = cm_param(NULL, 0);

	for (int i = 0; i < N; ++i) {
		ends[i].id = cm_id(cm_channel());
		cm_resolve(ends[i].id, cm_port(listener));
		cm_make_qp(&ends[i]);
		assert_int_equal(rdma_connect(ends[i].id, &param), 0);
	}
	for (int i = 0; i < N; ++i) {
		struct cm_seen seen =
			cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);

		cm_keep_id(seen.id);
		assert_int_equal(rdma_reject(seen.id, NULL, 0), 0);
	}
	for (int i = 0; i < N; ++i)
		cm_expect(ends[i].id->channel, RDMA_CM_EVENT_REJECTED);
}

FX_TEST(destroy_listener__rejects_what_nobody_read)
{
	struct cm_link *l = cm_link_init();
	struct rdma_conn_param param = cm_param(NULL, 0);

	assert_int_equal(rdma_connect(l->client.id, &param), 0);
	fx_wait_readable(l->server.channel->fd, "the request");
	assert_int_equal(fx_destroy(l->listener), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_REJECTED);
	assert_false(fx_readable(l->server.channel->fd));
}

FX_TEST(destroy_listener__leaves_its_connections)
{
	struct cm_link *l = cm_link_new();

	assert_int_equal(fx_destroy(l->listener), 0);
	cm_check(l);
	cm_hang_up(l);
}

FX_TEST(destroy_listener__leaves_a_request_taken)
{
	struct cm_link *l = cm_link_init();

	cm_request(l, NULL, 0);
	assert_int_equal(fx_destroy(l->listener), 0);
	cm_make_qp(&l->server);
	cm_accept(l, NULL, 0);
	cm_established(l);
	cm_check(l);
}

FX_TEST(migrate__moves_unread_events)
{
	struct rdma_event_channel *ch = cm_channel();
	struct cm_link *l = cm_link_new();
	struct cm_seen seen;

	assert_int_equal(rdma_disconnect(l->client.id), 0);
	fx_wait_readable(l->server.channel->fd, "the disconnection");
	assert_int_equal(rdma_migrate_id(l->server.id, ch), 0);
	assert_ptr_equal(l->server.id->channel, ch);
	seen = cm_expect(ch, RDMA_CM_EVENT_DISCONNECTED);
	assert_ptr_equal(seen.id, l->server.id);
	assert_false(fx_readable(l->server.channel->fd));
}

FX_TEST(migrate__of_a_connection_in_use)
{
	struct rdma_event_channel *others[4] = {cm_channel(), cm_channel(),
						cm_channel(), cm_channel()};
	struct cm_link *l = cm_link_new();

	for (int i = 0; i < 4; ++i) {
		l->client.channel = others[i];
		assert_int_equal(
			rdma_migrate_id(l->client.id, l->client.channel), 0);
		cm_check(l);
	}
	cm_hang_up(l);
}

FX_TEST(migrate__request_away_from_its_listener)
{
	struct rdma_event_channel *ch = cm_channel();
	struct cm_link *l = cm_link_init();

	cm_request(l, NULL, 0);
	l->server.channel = ch;
	assert_int_equal(rdma_migrate_id(l->server.id, l->server.channel), 0);
	cm_make_qp(&l->server);
	cm_accept(l, NULL, 0);
	cm_established(l);
	cm_hang_up(l);
	assert_false(fx_readable(l->listener->channel->fd));
}

/* To no channel: the id becomes synchronous, the old one can go. */
FX_TEST(migrate__to_no_channel_and_back)
{
	struct cm_link *l = cm_link_new();

	assert_int_equal(rdma_migrate_id(l->client.id, NULL), 0);
	assert_int_equal(rdma_migrate_id(l->client.id, l->client.channel), 0);
	assert_ptr_equal(l->client.id->channel, l->client.channel);
	cm_hang_up(l);
}

static int undo_ep(void *p)
{
	rdma_destroy_ep(p);
	return 0;
}

static struct rdma_cm_id *passive_ep(struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
				      .ai_port_space = RDMA_PS_TCP};
	char text[INET_ADDRSTRLEN];
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	inet_ntop(AF_INET, &dut.addr.sin_addr, text, sizeof(text));
	assert_int_equal(rdma_getaddrinfo(text, "0", &hints, &res), 0);
	assert_int_equal(rdma_create_ep(&id, res, NULL, attr), 0);
	rdma_freeaddrinfo(res);
	fx_keep(id, undo_ep);
	return id;
}

FX_TEST(create_ep__passive_listens)
{
	struct rdma_cm_id *id = passive_ep(NULL);

	assert_int_not_equal(cm_port(id), 0);
	assert_int_equal(rdma_listen(id, 1), 0);
}

FX_TEST(create_ep__active_is_resolved)
{
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {4, 4, 1, 1, 0}};
	char text[INET_ADDRSTRLEN];
	char port[8];
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	inet_ntop(AF_INET, &dut.addr.sin_addr, text, sizeof(text));
	snprintf(port, sizeof(port), "%u", cm_port(listener));
	assert_int_equal(rdma_getaddrinfo(text, port, &hints, &res), 0);
	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	fx_keep(id, undo_ep);
	assert_non_null(id->verbs);
	assert_non_null(id->pd);
	assert_non_null(id->qp);
	assert_non_null(id->send_cq);
	assert_non_null(id->recv_cq);
}

struct ep_client {
	uint16_t port;
	const char *failed; /* the step, or NULL */
};

/* Connects and disconnects without channels; reports instead of asserting. */
static void *run_ep_client(void *arg)
{
	struct ep_client *c = arg;
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {4, 4, 1, 1, 0}};
	char text[INET_ADDRSTRLEN];
	char port[8];
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	inet_ntop(AF_INET, &dut.addr.sin_addr, text, sizeof(text));
	snprintf(port, sizeof(port), "%u", c->port);
	c->failed = "rdma_getaddrinfo";
	if (rdma_getaddrinfo(text, port, &hints, &res))
		return NULL;
	c->failed =
		rdma_create_ep(&id, res, NULL, &attr) ? "rdma_create_ep" : NULL;
	rdma_freeaddrinfo(res);
	if (c->failed)
		return NULL;
	if (rdma_connect(id, NULL))
		c->failed = "rdma_connect";
	else if (rdma_disconnect(id))
		c->failed = "rdma_disconnect";
	rdma_destroy_ep(id);
	return NULL;
}

FX_TEST(synchronous_endpoints__connect)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {4, 4, 1, 1, 0}};
	struct rdma_cm_id *listener = passive_ep(&attr);
	struct ep_client client = {0};
	struct rdma_cm_id *id;
	pthread_t t;

	assert_int_equal(rdma_listen(listener, 1), 0);
	client.port = cm_port(listener);
	assert_int_equal(pthread_create(&t, NULL, run_ep_client, &client), 0);
	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_non_null(id->qp);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	rdma_destroy_ep(id);
	if (client.failed)
		fail_msg("the client: %s", client.failed);
}

FX_MAIN("cm_listen")
