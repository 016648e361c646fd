/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* removal.c -- a device is pulled from under its identifiers. */

#include "fixture.h"

static int put_back(void **state)
{
	rpma_loopback_restore_device(0);
	return reset(state);
}

/* remove: every identifier of the device is told, once */
TEST_WITH(remove__connected_DEVICE_REMOVAL, reset, put_back)
{
	struct pair p;

	pair_connect(&p);
	assert_int_equal(rpma_loopback_remove_device(0), 0);
	take_event(p.cch, RDMA_CM_EVENT_DEVICE_REMOVAL);
	assert_quiet(p.cch);
	/* the listener and the server, in any order */
	take_event(p.lch, RDMA_CM_EVENT_DEVICE_REMOVAL);
	take_event(p.lch, RDMA_CM_EVENT_DEVICE_REMOVAL);
	assert_quiet(p.lch);
	pair_teardown(&p);
}

/* remove: all that can be done with an identifier then is to destroy it */
TEST_WITH(remove__calls_ENXIO, reset, put_back)
{
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_conn_param param = {.qp_num = 1};
	struct pair p;

	pair_request(&p);
	assert_int_equal(rpma_loopback_remove_device(0), 0);
	drop_qp(p.client, p.ccq);
	drop_qp(p.server, p.scq);
	assert_fails(rdma_bind_addr(p.client, SA(addr)), EADDRNOTAVAIL);
	assert_fails(rdma_resolve_route(p.client, TIMEOUT_MS), ENXIO);
	assert_fails(rdma_connect(p.client, &param), ENXIO);
	assert_fails(rdma_accept(p.server, &param), ENXIO);
	assert_fails(rdma_reject(p.server, NULL, 0), ENXIO);
	assert_fails(rdma_establish(p.client), ENXIO);
	assert_fails(rdma_disconnect(p.client), ENXIO);
	assert_fails(rdma_listen(p.listener, 0), ENXIO);
	pair_teardown(&p);
}

/* remove: a request that is not accepted yet gets no event */
TEST_WITH(remove__unaccepted_QUIET, reset, put_back)
{
	struct pair p;

	pair_request(&p);
	assert_int_equal(rpma_loopback_remove_device(0), 0);
	take_event(p.lch, RDMA_CM_EVENT_DEVICE_REMOVAL); /* the listener */
	assert_quiet(p.lch);
	take_event(p.cch, RDMA_CM_EVENT_DEVICE_REMOVAL);
	pair_teardown(&p);
}

/* remove: the peer on another device sees a disconnect */
TEST_WITH(remove__peer_elsewhere_DISCONNECTED, reset, put_back)
{
	struct sockaddr_in src = v4("127.0.1.1", 0);
	struct sockaddr_in dst;
	struct rdma_cm_event *event;
	struct ibv_context **devs;
	struct pair p;
	int n;

	devs = rdma_get_devices(&n);
	rdma_free_devices(devs);
	if (n < 2) {
		print_message("one device only: RPMA_LOOPBACK_DEVICES=2\n");
		skip();
	}
	pair_setup(&p);
	drop_qp(p.client, p.ccq);
	assert_int_equal(rdma_destroy_id(p.client), 0);
	p.client = new_id(p.cch);
	dst = v4("127.0.0.1", port_of(p.listener));
	assert_int_equal(
		rdma_resolve_addr(p.client, SA(src), SA(dst), TIMEOUT_MS), 0);
	take_event(p.cch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_not_equal(p.client->verbs, p.listener->verbs);
	assert_int_equal(rdma_resolve_route(p.client, TIMEOUT_MS), 0);
	take_event(p.cch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	p.ccq = add_qp(p.client);
	assert_int_equal(rdma_connect(p.client, NULL), 0);
	event = next_event(p.lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p.server = event->id;
	rdma_ack_cm_event(event);
	p.scq = add_qp(p.server);
	assert_int_equal(rdma_accept(p.server, NULL), 0);
	take_event(p.cch, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rpma_loopback_remove_device(0), 0);
	take_event(p.cch, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(p.client), 0);
	take_event(p.cch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	pair_teardown(&p);
}

/* restore: the device can be used again */
TEST_WITH(restore__new_connection_ESTABLISHED, reset, put_back)
{
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id;
	struct pair p;

	id = new_id(ch);
	assert_int_equal(rpma_loopback_remove_device(0), 0);
	assert_fails(rdma_bind_addr(id, SA(addr)), EADDRNOTAVAIL);
	assert_int_equal(rpma_loopback_restore_device(0), 0);
	assert_int_equal(rdma_bind_addr(id, SA(addr)), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
	pair_connect(&p);
	pair_teardown(&p);
}

TEST_MAIN()
