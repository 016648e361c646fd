/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* address.c -- binding, ports, listeners, resolving. */

#include "fixture.h"

#include <string.h>

#define NOT_OF_THIS_MACHINE "192.0.2.1"

struct two {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *a;
	struct rdma_cm_id *b;
};

static struct two two_setup(void)
{
	struct two t = {.ch = new_channel()};

	t.a = new_id(t.ch);
	t.b = new_id(t.ch);
	return t;
}

static void two_teardown(struct two *t)
{
	assert_int_equal(rdma_destroy_id(t->a), 0);
	assert_int_equal(rdma_destroy_id(t->b), 0);
	rdma_destroy_event_channel(t->ch);
}

/* bind: devices are chosen by address, and v4-mapped is IPv4 */
TEST_WITH(bind__addresses_MAPPED, reset, reset)
{
	struct sockaddr_in v4_0 = v4("127.0.0.5", 0);
	struct sockaddr_in6 mapped = v6("::ffff:127.0.0.1", 0);
	struct two t = two_setup();

	assert_int_equal(rdma_bind_addr(t.a, SA(v4_0)), 0);
	assert_int_equal(rdma_bind_addr(t.b, SA(mapped)), 0);
	assert_ptr_equal(t.a->verbs, t.b->verbs);
	two_teardown(&t);
}

TEST_WITH(bind__bad_address_ERROR, reset, reset)
{
	struct sockaddr_in far = v4(NOT_OF_THIS_MACHINE, 0);
	struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct two t = two_setup();

	assert_fails(rdma_bind_addr(t.a, SA(far)), EADDRNOTAVAIL);
	assert_fails(rdma_bind_addr(t.a, &unknown), EINVAL);
	assert_fails(rdma_bind_addr(t.a, NULL), EINVAL);
	two_teardown(&t);
}

/* bind: one address and port once, other addresses as well */
TEST_WITH(bind__port_taken_EADDRINUSE, reset, reset)
{
	struct sockaddr_in one = v4("127.0.0.1", 7300);
	struct sockaddr_in other = v4("127.0.0.2", 7300);
	struct sockaddr_in any = v4("0.0.0.0", 7300);
	struct sockaddr_in6 any6 = v6("::", 7300);
	struct two t = two_setup();

	assert_int_equal(rdma_bind_addr(t.a, SA(one)), 0);
	assert_fails(rdma_bind_addr(t.b, SA(one)), EADDRINUSE);
	/* the kernel has another name for this one */
	assert_fails(rdma_bind_addr(t.b, SA(any)), EADDRNOTAVAIL);
	assert_fails(rdma_bind_addr(t.b, SA(any6)), EADDRNOTAVAIL);
	assert_int_equal(rdma_bind_addr(t.b, SA(other)), 0);
	two_teardown(&t);
	t = two_setup();
	assert_int_equal(rdma_bind_addr(t.a, SA(one)), 0);
	two_teardown(&t);
}

/* bind: an IPv6 wildcard for IPv6 only leaves IPv4 alone */
TEST_WITH(bind__afonly_SUCCESS, reset, reset)
{
	struct sockaddr_in any = v4("0.0.0.0", 7300);
	struct sockaddr_in6 any6 = v6("::", 7300);
	struct two t = two_setup();
	int on = 1;

	assert_int_equal(rdma_bind_addr(t.a, SA(any)), 0);
	assert_int_equal(rdma_set_option(t.b, RDMA_OPTION_ID,
					 RDMA_OPTION_ID_AFONLY, &on,
					 sizeof(on)),
			 0);
	assert_int_equal(rdma_bind_addr(t.b, SA(any6)), 0);
	two_teardown(&t);
}

/* bind: with REUSEADDR two may bind, but one only listens */
TEST_WITH(listen__reuseaddr_EADDRINUSE, reset, reset)
{
	struct sockaddr_in one = v4("127.0.0.1", 7300);
	struct two t = two_setup();
	int on = 1;

	assert_int_equal(rdma_set_option(t.a, RDMA_OPTION_ID,
					 RDMA_OPTION_ID_REUSEADDR, &on,
					 sizeof(on)),
			 0);
	assert_int_equal(rdma_set_option(t.b, RDMA_OPTION_ID,
					 RDMA_OPTION_ID_REUSEADDR, &on,
					 sizeof(on)),
			 0);
	assert_int_equal(rdma_bind_addr(t.a, SA(one)), 0);
	assert_int_equal(rdma_bind_addr(t.b, SA(one)), 0);
	assert_fails(rdma_listen(t.a, 0), EADDRINUSE);
	assert_int_equal(rdma_destroy_id(t.b), 0);
	assert_int_equal(rdma_listen(t.a, 0), 0);
	t.b = new_id(t.ch);
	two_teardown(&t);
}

/* listen: in the states where it means something */
TEST_WITH(listen__states_CHECKED, reset, reset)
{
	struct two t = two_setup();

	/* unbound: the wildcard and a free port */
	assert_int_equal(rdma_listen(t.a, 0), 0);
	assert_int_not_equal(rdma_get_src_port(t.a), 0);
	assert_fails(rdma_listen(t.a, 0), EINVAL);
	assert_int_equal(rdma_destroy_id(t.b), 0);
	t.b = new_client(t.ch, 1);
	assert_fails(rdma_listen(t.b, 0), EINVAL);
	two_teardown(&t);
}

static bool connects_to(const struct sockaddr *addr)
{
	struct rdma_conn_param param = {.qp_num = 1};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch);
	bool refused;

	assert_int_equal(rdma_resolve_addr(id, NULL, (void *)addr, TIMEOUT_MS),
			 0);
	take_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, TIMEOUT_MS), 0);
	take_event(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(id, &param), 0);
	refused = is_readable(ch);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
	return !refused;
}

/* listen: the listener that answers on each address */
TEST_WITH(listen__addresses_MATCHED, reset, reset)
{
	struct sockaddr_in any = v4("0.0.0.0", 7300);
	struct sockaddr_in6 any6 = v6("::", 7301);
	struct two t = two_setup();
	struct sockaddr_in to;
	struct sockaddr_in6 to6;

	assert_int_equal(rdma_bind_addr(t.a, SA(any)), 0);
	assert_int_equal(rdma_listen(t.a, 0), 0);
	assert_int_equal(rdma_bind_addr(t.b, SA(any6)), 0);
	assert_int_equal(rdma_listen(t.b, 0), 0);
	to = v4("127.0.0.1", 7300);
	assert_true(connects_to(SA(to)));
	to = v4("127.0.0.9", 7300);
	assert_true(connects_to(SA(to)));
	to6 = v6("::ffff:127.0.0.1", 7300);
	assert_true(connects_to(SA(to6)));
	to6 = v6("::1", 7300);
	assert_false(connects_to(SA(to6)));
	to = v4("127.0.0.1", 7301);
	assert_true(connects_to(SA(to)));
	to6 = v6("::1", 7301);
	assert_true(connects_to(SA(to6)));
	to = v4("127.0.0.1", 7302);
	assert_false(connects_to(SA(to)));
	two_teardown(&t);
}

/* resolve_addr: fills what can be known */
TEST_WITH(resolve__local_FILLED, reset, reset)
{
	struct sockaddr_in src = v4("127.0.0.3", 0);
	struct sockaddr_in dst = v4("127.0.0.1", 9);
	struct two t = two_setup();
	struct rdma_addr *addr = &t.a->route.addr;

	assert_int_equal(rdma_resolve_addr(t.a, SA(src), SA(dst), TIMEOUT_MS),
			 0);
	take_event(t.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_non_null(t.a->verbs);
	assert_int_equal(addr->src_sin.sin_addr.s_addr, src.sin_addr.s_addr);
	assert_int_not_equal(rdma_get_src_port(t.a), 0);
	assert_memory_equal(&addr->dst_sin, &dst, sizeof(dst));
	assert_int_equal(rdma_get_dst_port(t.a), htons(9));
	assert_int_equal(rdma_resolve_route(t.a, TIMEOUT_MS), 0);
	take_event(t.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(t.a->route.num_paths, 1);
	assert_non_null(t.a->route.path_rec);
	two_teardown(&t);
}

/* resolve_addr: the wildcard is this machine */
TEST_WITH(resolve__wildcard_LOOPBACK, reset, reset)
{
	struct sockaddr_in any = v4("0.0.0.0", 9);
	struct sockaddr_in want = v4("127.0.0.1", 9);
	struct sockaddr_in6 any6 = v6("::", 9);
	struct sockaddr_in6 want6 = v6("::1", 9);
	struct two t = two_setup();

	assert_int_equal(rdma_resolve_addr(t.a, NULL, SA(any), TIMEOUT_MS), 0);
	take_event(t.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_memory_equal(&t.a->route.addr.dst_sin, &want, sizeof(want));
	assert_int_equal(rdma_resolve_addr(t.b, NULL, SA(any6), TIMEOUT_MS), 0);
	take_event(t.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_memory_equal(&t.b->route.addr.dst_sin6, &want6, sizeof(want6));
	two_teardown(&t);
}

/* resolve_addr: elsewhere is nowhere; one may try another address */
TEST_WITH(resolve__far_ADDR_ERROR, reset, reset)
{
	struct sockaddr_in far = v4(NOT_OF_THIS_MACHINE, 9);
	struct sockaddr_in near = v4("127.0.0.1", 9);
	struct two t = two_setup();

	assert_int_equal(rdma_resolve_addr(t.a, NULL, SA(far), TIMEOUT_MS), 0);
	take_status(t.ch, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	assert_null(t.a->verbs);
	assert_fails(rdma_resolve_route(t.a, TIMEOUT_MS), EINVAL);
	assert_int_equal(rdma_resolve_addr(t.a, NULL, SA(near), TIMEOUT_MS), 0);
	take_event(t.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	two_teardown(&t);
}

/* resolve: out of order, or with what makes no sense */
TEST_WITH(resolve__misuse_EINVAL, reset, reset)
{
	struct sockaddr_in dst = v4("127.0.0.1", 9);
	struct sockaddr_in6 src = v6("::1", 0);
	struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct two t = two_setup();

	assert_fails(rdma_resolve_addr(t.a, NULL, NULL, TIMEOUT_MS), EINVAL);
	assert_fails(rdma_resolve_addr(t.a, NULL, &unknown, TIMEOUT_MS),
		     EINVAL);
	assert_fails(rdma_resolve_addr(t.a, SA(src), SA(dst), TIMEOUT_MS),
		     EINVAL);
	assert_fails(rdma_resolve_route(t.a, TIMEOUT_MS), EINVAL);
	assert_int_equal(rdma_destroy_id(t.a), 0);
	t.a = new_client(t.ch, 9);
	assert_fails(rdma_resolve_addr(t.a, NULL, SA(dst), TIMEOUT_MS), EINVAL);
	assert_fails(rdma_resolve_route(t.a, TIMEOUT_MS), EINVAL);
	assert_fails(rdma_resolve_route(t.b, 0), EINVAL);
	assert_fails(rdma_connect(t.b, NULL), EINVAL);
	two_teardown(&t);
}

/* resolve: a synchronous one returns the reason */
TEST_WITH(resolve__far_sync_EHOSTUNREACH, reset, reset)
{
	struct sockaddr_in far = v4(NOT_OF_THIS_MACHINE, 9);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_fails(rdma_resolve_addr(id, NULL, SA(far), TIMEOUT_MS),
		     EHOSTUNREACH);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(rdma_destroy_id(id), 0);
}

TEST_MAIN()
