/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The end of connections: disconnecting from either side, ids destroyed in
 * every state and in every order, events that hold an id back.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "cm.h"

FX_TEST(disconnect__by_the_client_seen_by_both)
{
	struct cm_link *l = cm_link_new();

	cm_hang_up(l);
	assert_int_equal(l->client.id->qp->state, IBV_QPS_ERR);
}

FX_TEST(disconnect__by_the_server_seen_by_both)
{
	struct cm_link *l = cm_link_new();

	assert_int_equal(rdma_disconnect(l->server.id), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
}

FX_TEST(disconnect__by_both_one_event_each)
{
	struct cm_link *l = cm_link_new();

	assert_int_equal(rdma_disconnect(l->server.id), 0);
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
}

/* The second may say that there is no connection; it does no harm. */
FX_TEST(disconnect__twice_one_event)
{
	struct cm_link *l = cm_link_new();
	struct cm_seen seen;

	cm_hang_up(l);
	if (rdma_disconnect(l->client.id))
		assert_int_equal(errno, EINVAL);
	if (rdma_disconnect(l->server.id))
		assert_int_equal(errno, EINVAL);
	seen = cm_next(l->client.channel);
	assert_int_equal(seen.type, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

FX_TEST(disconnect__not_connected_EINVAL)
{
	struct cm_link *l = cm_link_init();

	assert_int_equal(rdma_disconnect(l->client.id), -1);
	assert_int_equal(errno, EINVAL);
}

FX_TEST(disconnect__then_TIMEWAIT_EXIT)
{
	struct cm_link *l = cm_link_new();

	cm_hang_up(l);
	cm_expect(l->client.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	cm_expect(l->server.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

FX_TEST(disconnect__flushes_receives)
{
	struct cm_link *l = cm_link_new();

	for (uint64_t i = 0; i < 4; ++i) {
		cm_post_recv(&l->client, i);
		cm_post_recv(&l->server, i);
	}
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	for (uint64_t i = 0; i < 4; ++i)
		fx_expect(l->client.cq, i, IBV_WC_WR_FLUSH_ERR);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(l->server.id), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
	for (uint64_t i = 0; i < 4; ++i)
		fx_expect(l->server.cq, i, IBV_WC_WR_FLUSH_ERR);
}

FX_TEST(destroy__of_a_new_id)
{
	assert_int_equal(fx_destroy(cm_id(cm_channel())), 0);
	assert_int_equal(fx_destroy(cm_id(NULL)), 0);
}

FX_TEST(destroy__while_resolving)
{
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct sockaddr_in addr = cm_addr(cm_port(listener));

	for (int i = 0; i < 20; ++i) {
		struct rdma_cm_id *id = cm_id(cm_channel());

		assert_int_equal(rdma_resolve_addr(id, NULL,
						   (struct sockaddr *)&addr,
						   1000),
				 0);
		assert_int_equal(fx_destroy(id), 0);
	}
}

FX_TEST(destroy__withdraws_unread_events)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct sockaddr_in addr = cm_addr(cm_port(listener));
	struct rdma_cm_id *id = cm_id(ch);

	assert_int_equal(
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000), 0);
	fx_wait_readable(ch->fd, "the end of the resolution");
	assert_int_equal(fx_destroy(id), 0);
	assert_false(fx_readable(ch->fd));
}

FX_TEST(destroy__resolved)
{
	struct cm_link *l = cm_link_init();

	cm_destroy(&l->client);
}

static void is_over(struct rdma_event_channel *ch)
{
	struct cm_seen seen = cm_next(ch);

	if (seen.type != RDMA_CM_EVENT_REJECTED &&
	    seen.type != RDMA_CM_EVENT_DISCONNECTED &&
	    seen.type != RDMA_CM_EVENT_CONNECT_ERROR &&
	    seen.type != RDMA_CM_EVENT_UNREACHABLE)
		fail_msg("%s", rdma_event_str(seen.type));
}

FX_TEST(destroy__client_with_request_sent)
{
	struct cm_link *l = cm_link_init();

	cm_request(l, NULL, 0);
	cm_destroy(&l->client);
	/* rdma_cm leaves open whether the server sees it before it answers */
	assert_int_equal(fx_destroy(l->server.id), 0);
}

FX_TEST(accept__of_a_client_that_is_gone)
{
	struct cm_link *l = cm_link_init();
	struct rdma_conn_param param = cm_param(NULL, 0);

	cm_request(l, NULL, 0);
	cm_make_qp(&l->server);
	cm_destroy(&l->client);
	if (rdma_accept(l->server.id, &param) == 0)
		is_over(l->server.channel);
}

FX_TEST(destroy__request_not_answered)
{
	struct cm_link *l = cm_link_init();

	cm_request(l, NULL, 0);
	assert_int_equal(fx_destroy(l->server.id), 0);
	is_over(l->client.channel);
}

FX_TEST(destroy__request_rejected)
{
	struct cm_link *l = cm_link_init();

	cm_request(l, NULL, 0);
	assert_int_equal(rdma_reject(l->server.id, NULL, 0), 0);
	assert_int_equal(fx_destroy(l->server.id), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_REJECTED);
	cm_destroy(&l->client);
}

FX_TEST(destroy__accepted_not_yet_established)
{
	struct cm_link *l = cm_link_init();
	struct cm_seen seen;

	cm_request(l, NULL, 0);
	cm_make_qp(&l->server);
	cm_accept(l, NULL, 0);
	cm_destroy(&l->server);
	seen = cm_next(l->client.channel);
	if (seen.type == RDMA_CM_EVENT_ESTABLISHED)
		is_over(l->client.channel);
}

FX_TEST(destroy__client_connected_peer_DISCONNECTED)
{
	struct cm_link *l = cm_link_new();

	cm_destroy(&l->client);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
}

FX_TEST(destroy__server_connected_peer_DISCONNECTED)
{
	struct cm_link *l = cm_link_new();

	cm_destroy(&l->server);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
}

FX_TEST(destroy__qp_first_then_disconnect)
{
	struct cm_link *l = cm_link_new();

	assert_int_equal(fx_destroy(&l->client), 0);
	assert_null(l->client.id->qp);
	rdma_disconnect(l->client.id);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
}

FX_TEST(destroy__with_messages_under_way)
{
	for (int i = 0; i < 5; ++i) {
		size_t mark = fx_mark();
		struct cm_link *l = cm_link_new();

		for (uint64_t j = 0; j < 8; ++j) {
			cm_post_recv(&l->server, j);
			cm_post_send(&l->client, j);
		}
		if (i & 1)
			cm_destroy(&l->client);
		else
			cm_destroy(&l->server);
		fx_release(mark);
	}
}

struct destroyer {
	struct rdma_cm_id *id;
	int ret;
	atomic_bool done;
};

static void *destroy_id(void *arg)
{
	struct destroyer *d = arg;

	d->ret = rdma_destroy_id(d->id);
	/* release: the result; pairs with the acquire in the test */
	atomic_store_explicit(&d->done, true, memory_order_release);
	return NULL;
}

FX_TEST(destroy__waits_for_acknowledgement)
{
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct sockaddr_in addr = cm_addr(cm_port(listener));
	struct rdma_cm_id *id = cm_id(cm_channel());
	struct destroyer destroyer = {.id = id};
	struct fx_deadline d = fx_deadline();
	struct rdma_cm_event *event;
	pthread_t t;

	assert_int_equal(
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000), 0);
	assert_int_equal(rdma_get_cm_event(id->channel, &event), 0);
	fx_forget(id);
	assert_int_equal(pthread_create(&t, NULL, destroy_id, &destroyer), 0);
	/* long enough that a destroy which does not wait would be noticed */
	usleep(50000);
	assert_false(
		atomic_load_explicit(&destroyer.done, memory_order_acquire));
	assert_int_equal(rdma_ack_cm_event(event), 0);
	while (!atomic_load_explicit(&destroyer.done, memory_order_acquire))
		fx_check(&d, "the end of the destruction");
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(destroyer.ret, 0);
}

FX_TEST(reconnect__many_times)
{
	for (int i = 0; i < 20; ++i) {
		size_t mark = fx_mark();
		struct cm_link *l = cm_link_new();

		cm_check(l);
		if (i & 1)
			cm_hang_up(l);
		if (i & 2)
			cm_destroy(&l->server);
		fx_release(mark);
	}
}

FX_MAIN("cm_teardown")
