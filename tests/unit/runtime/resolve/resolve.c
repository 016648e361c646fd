/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Names and numbers. The name server is a fake and answers on demand: while a
 * question is open everything else goes on.
 */

#include <netdb.h>
#include <semaphore.h>
#include <string.h>

#include "conn/resolve.h"
#include "rt_fake.h"

static struct {
	sem_t asked;
	sem_t answer;
	int result;
	int questions;
} server;

int __real_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **info);
int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **info);

int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **info)
{
	assert_string_equal(node, "host.example");
	server.questions++;
	sem_post(&server.asked);
	sem_wait(&server.answer);
	return server.result
		       ? server.result
		       : __real_getaddrinfo("192.0.2.1", service, hints, info);
}

static int setup(void **state)
{
	sem_init(&server.asked, 0, 0);
	sem_init(&server.answer, 0, 0);
	server.result = 0;
	server.questions = 0;
	return fake_setup(state);
}

static struct rpma_rt_conn *begun(struct fake *f)
{
	struct rpma_rt_conn *conn;

	ok(rpma_rt_conn_new(f->rt, "host.example", "4711", &f->rt_cfg, &conn));
	return conn;
}

static void expect_closed(struct fake *f, struct rpma_rt_conn **conn,
			  enum rpma_rt_reason reason)
{
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[0].status, reason);
	ok(rpma_rt_conn_unref(conn));
}

static void is_numeric__numbers_only(void **state)
{
	(void)state;
	assert_true(rt_resolve_is_numeric("127.0.0.1", "1"));
	assert_true(rt_resolve_is_numeric("::1", "65535"));
	assert_false(rt_resolve_is_numeric("::1", "http"));
	assert_false(rt_resolve_is_numeric("::1", ""));
	assert_false(rt_resolve_is_numeric("host.example", "1"));
	assert_false(rt_resolve_is_numeric("", "1"));
	assert_false(rt_resolve_is_numeric("127.1", "1"));
	assert_false(rt_resolve_is_numeric("fe80::1%lo", "1"));
}

static void name__becomes_a_number(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = begun(f);

	assert_true(f->rt->has_resolver);
	sem_wait(&server.asked);
	fake_finish_down(f);
	fake_forget_trace();
	sem_post(&server.answer);
	rt_resolve_stop(f->rt); /* waits for the answer */
	fake_finish_down(f);
	assert_string_equal(conn->setup->addr, "192.0.2.1");
	assert_string_equal(conn->setup->port, "4711");
	assert_string_equal(fake_trace(), "req_new_async");
	fake_bury(f, &conn);
}

/* The server is silent; a connection made by numbers lives and ends. So does
 * the one that waits, and its name is not asked for once it is closed. */
static void name__nobody_waits_for_it(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *first = begun(f);
	struct rpma_rt_conn *second = begun(f);
	struct rpma_rt_conn *other = fake_established(f);

	sem_wait(&server.asked);
	fake_bury(f, &other);
	ok(rpma_rt_conn_close(first));
	expect_closed(f, &first, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_close(second));
	expect_closed(f, &second, RPMA_RT_REASON_LOCAL);
	assert_int_equal(f->rt->in_use, 0);
	fake_forget_trace();
	sem_post(&server.answer);
	rt_resolve_stop(f->rt);
	fake_finish_down(f); /* the answers come to nothing */
	assert_string_equal(fake_trace(), "");
	assert_int_equal(server.questions, 1);
}

static void name__unknown_UNREACHABLE(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = begun(f);

	server.result = EAI_NONAME;
	fake_logged();
	sem_post(&server.answer);
	rt_resolve_stop(f->rt);
	assert_true(fake_said("host.example"));
	assert_true(fake_said("4711"));
	assert_true(fake_said(gai_strerror(EAI_NONAME)));
	expect_closed(f, &conn, RPMA_RT_REASON_UNREACHABLE);
	assert_int_equal(fake_logged(), 1);
}

static void name__no_thread_refused(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = NULL;
	int memory = fake_memory();

	fake_fail("pthread_create", 1, 11);
	assert_int_equal(
		rpma_rt_conn_new(f->rt, "host.example", "1", &f->rt_cfg, &conn),
		RPMA_E_PROVIDER);
	assert_null(conn);
	assert_int_equal(fake_memory(), memory);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(is_numeric__numbers_only),
		TEST(name__becomes_a_number),
		TEST(name__nobody_waits_for_it),
		TEST(name__unknown_UNREACHABLE),
		TEST(name__no_thread_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
