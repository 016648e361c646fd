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

static void disconnect__by_the_client_seen_by_both(void **state)
{
	struct cm_link *l = cm_link_new();

	(void)state;
	cm_hang_up(l);
	assert_int_equal(l->client.id->qp->state, IBV_QPS_ERR);
}

static void disconnect__by_the_server_seen_by_both(void **state)
{
	struct cm_link *l = cm_link_new();

	(void)state;
	assert_int_equal(rdma_disconnect(l->server.id), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void disconnect__by_both_one_event_each(void **state)
{
	struct cm_link *l = cm_link_new();

	(void)state;
	assert_int_equal(rdma_disconnect(l->server.id), 0);
	assert_int_equal(rdma_disconnect(l->client.id), 0);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
}

/* The second may say that there is no connection; it does no harm. */
static void disconnect__twice_one_event(void **state)
{
	struct cm_link *l = cm_link_new();
	struct cm_seen seen;

	(void)state;
	cm_hang_up(l);
	if (rdma_disconnect(l->client.id))
		assert_int_equal(errno, EINVAL);
	if (rdma_disconnect(l->server.id))
		assert_int_equal(errno, EINVAL);
	seen = cm_next(l->client.channel);
	assert_int_equal(seen.type, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static void disconnect__not_connected_EINVAL(void **state)
{
	struct cm_link *l = cm_link_init();

	(void)state;
	assert_int_equal(rdma_disconnect(l->client.id), -1);
	assert_int_equal(errno, EINVAL);
}

static void disconnect__then_TIMEWAIT_EXIT(void **state)
{
	struct cm_link *l = cm_link_new();

	(void)state;
	cm_hang_up(l);
	cm_expect(l->client.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	cm_expect(l->server.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static void disconnect__flushes_receives(void **state)
{
	struct cm_link *l = cm_link_new();

	(void)state;
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

static void destroy__of_a_new_id(void **state)
{
	(void)state;
	assert_int_equal(fx_destroy(cm_id(cm_channel())), 0);
	assert_int_equal(fx_destroy(cm_id(NULL)), 0);
}

static void destroy__while_resolving(void **state)
{
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct sockaddr_in addr = cm_addr(cm_port(listener));

	(void)state;
	for (int i = 0; i < 20; ++i) {
		struct rdma_cm_id *id = cm_id(cm_channel());

		assert_int_equal(rdma_resolve_addr(id, NULL,
						   (struct sockaddr *)&addr,
						   1000),
				 0);
		assert_int_equal(fx_destroy(id), 0);
	}
}

static void destroy__withdraws_unread_events(void **state)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct sockaddr_in addr = cm_addr(cm_port(listener));
	struct rdma_cm_id *id = cm_id(ch);

	(void)state;
	assert_int_equal(
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000), 0);
	fx_wait_readable(ch->fd, "the end of the resolution");
	assert_int_equal(fx_destroy(id), 0);
	assert_false(fx_readable(ch->fd));
}

static void destroy__resolved(void **state)
{
	struct cm_link *l = cm_link_init();

	(void)state;
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

static void destroy__client_with_request_sent(void **state)
{
	struct cm_link *l = cm_link_init();

	(void)state;
	cm_request(l, NULL, 0);
	cm_destroy(&l->client);
	/* rdma_cm leaves open whether the server sees it before it answers */
	assert_int_equal(fx_destroy(l->server.id), 0);
}

static void accept__of_a_client_that_is_gone(void **state)
{
	struct cm_link *l = cm_link_init();
	struct rdma_conn_param param = cm_param(NULL, 0);

	(void)state;
	cm_request(l, NULL, 0);
	cm_make_qp(&l->server);
	cm_destroy(&l->client);
	if (rdma_accept(l->server.id, &param) == 0)
		is_over(l->server.channel);
}

static void destroy__request_not_answered(void **state)
{
	struct cm_link *l = cm_link_init();

	(void)state;
	cm_request(l, NULL, 0);
	assert_int_equal(fx_destroy(l->server.id), 0);
	is_over(l->client.channel);
}

static void destroy__request_rejected(void **state)
{
	struct cm_link *l = cm_link_init();

	(void)state;
	cm_request(l, NULL, 0);
	assert_int_equal(rdma_reject(l->server.id, NULL, 0), 0);
	assert_int_equal(fx_destroy(l->server.id), 0);
	cm_expect(l->client.channel, RDMA_CM_EVENT_REJECTED);
	cm_destroy(&l->client);
}

static void destroy__accepted_not_yet_established(void **state)
{
	struct cm_link *l = cm_link_init();
	struct cm_seen seen;

	(void)state;
	cm_request(l, NULL, 0);
	cm_make_qp(&l->server);
	cm_accept(l, NULL, 0);
	cm_destroy(&l->server);
	seen = cm_next(l->client.channel);
	if (seen.type == RDMA_CM_EVENT_ESTABLISHED)
		is_over(l->client.channel);
}

static void destroy__client_connected_peer_DISCONNECTED(void **state)
{
	struct cm_link *l = cm_link_new();

	(void)state;
	cm_destroy(&l->client);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void destroy__server_connected_peer_DISCONNECTED(void **state)
{
	struct cm_link *l = cm_link_new();

	(void)state;
	cm_destroy(&l->server);
	cm_expect(l->client.channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void destroy__qp_first_then_disconnect(void **state)
{
	struct cm_link *l = cm_link_new();

	(void)state;
	assert_int_equal(fx_destroy(&l->client), 0);
	assert_null(l->client.id->qp);
	rdma_disconnect(l->client.id);
	cm_expect(l->server.channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void destroy__with_messages_under_way(void **state)
{
	(void)state;
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

static void destroy__waits_for_acknowledgement(void **state)
{
	struct rdma_cm_id *listener = cm_listen(cm_channel());
	struct sockaddr_in addr = cm_addr(cm_port(listener));
	struct rdma_cm_id *id = cm_id(cm_channel());
	struct destroyer destroyer = {.id = id};
	struct fx_deadline d = fx_deadline();
	struct rdma_cm_event *event;
	pthread_t t;

	(void)state;
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

static void reconnect__many_times(void **state)
{
	(void)state;
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FX_TEST(disconnect__by_the_client_seen_by_both),
		FX_TEST(disconnect__by_the_server_seen_by_both),
		FX_TEST(disconnect__by_both_one_event_each),
		FX_TEST(disconnect__twice_one_event),
		FX_TEST(disconnect__not_connected_EINVAL),
		FX_TEST(disconnect__then_TIMEWAIT_EXIT),
		FX_TEST(disconnect__flushes_receives),
		FX_TEST(destroy__of_a_new_id),
		FX_TEST(destroy__while_resolving),
		FX_TEST(destroy__withdraws_unread_events),
		FX_TEST(destroy__resolved),
		FX_TEST(destroy__client_with_request_sent),
		FX_TEST(accept__of_a_client_that_is_gone),
		FX_TEST(destroy__request_not_answered),
		FX_TEST(destroy__request_rejected),
		FX_TEST(destroy__accepted_not_yet_established),
		FX_TEST(destroy__client_connected_peer_DISCONNECTED),
		FX_TEST(destroy__server_connected_peer_DISCONNECTED),
		FX_TEST(destroy__qp_first_then_disconnect),
		FX_TEST(destroy__with_messages_under_way),
		FX_TEST(destroy__waits_for_acknowledgement),
		FX_TEST(reconnect__many_times),
	};

	return fx_main(argc, argv, "cm_teardown", tests, FX_COUNT(tests));
}
