/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * processes.c -- two processes, of which one listens at a port: the other's
 * connection fails, and the log says why. Queue pairs are in remote.c.
 */

#include "two.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

enum { LISTENER, CLIENT };

static uint32_t exchange(const struct two_process *self, uint32_t mine)
{
	uint32_t other;

	two_swap(self, &mine, &other, sizeof(mine));
	return other;
}

/* The event that comes next on the id's channel, acknowledged. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	assert_int_equal(rdma_get_cm_event(id->channel, &event), 0);
	type = event->event;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return type;
}

static void listen_until_refused(const struct two_process *self,
				 struct rdma_cm_id *id)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
	assert_int_equal(rdma_listen(id, 1), 0);
	exchange(self, ntohs(rdma_get_src_port(id)));
	exchange(self, 0);
}

static void connect_to_listener(const struct two_process *self,
				struct rdma_cm_id *id)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	struct rdma_conn_param param = {.qp_num = 77};

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)exchange(self, 0));
	assert_int_equal(
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000), 0);
	assert_int_equal(next_event(id), RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_int_equal(next_event(id), RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(next_event(id), RDMA_CM_EVENT_REJECTED);
	exchange(self, 0);
}

static void listen_or_connect(const struct two_process *self)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	assert_non_null(channel);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	if (self->number == LISTENER)
		listen_until_refused(self, id);
	else
		connect_to_listener(self, id);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void port__of_another_process_REFUSED_AND_SAYS_WHY(void **state)
{
	struct two_process p[2] = {0};

	(void)state;
	two_run(p, listen_or_connect);
	assert_int_equal(
		two_count(&p[CLIENT],
			  "nobody in this process listens at 127.0.0.1"),
		1);
	assert_int_equal(two_count(&p[CLIENT], "have to be in one process"), 1);
	assert_string_equal(p[LISTENER].said, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(port__of_another_process_REFUSED_AND_SAYS_WHY),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
