/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Names and numbers. The name server is a fake and answers on demand: while a
 * question is open everything else goes on. Look-ups have threads of their own,
 * all else is run by hand.
 */

#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "conn/resolve.h"
#include "rt_fake.h"

#define LONG_MS 600000

static struct {
	sem_t asked;
	sem_t answer;
	sem_t over; /* posted when a look-up no longer uses this struct */
	int result;
	int errnum;		  /* of EAI_SYSTEM */
	const char *const *addrs; /* of host.example */
	_Atomic int questions;
} server;

static const char *const one_addr[] = {"192.0.2.1", NULL};
static const char *const three_addrs[] = {"192.0.2.1", "2001:db8::2",
					  "192.0.2.3", NULL};

int __real_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **info);
int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **info);

static int answer(const char *service, const struct addrinfo *hints,
		  struct addrinfo **info)
{
	const char *const *addr = server.addrs;

	errno = server.errnum;
	if (server.result)
		return server.result;
	for (*info = NULL; *addr != NULL; addr++) {
		ok(__real_getaddrinfo(*addr, service, hints, info));
		info = &(*info)->ai_next;
	}
	return 0;
}

int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **info)
{
	int ret;

	assert_string_equal(node, "host.example");
	/* relaxed: the answer, once taken, orders the count */
	atomic_fetch_add_explicit(&server.questions, 1, memory_order_relaxed);
	sem_post(&server.asked);
	sem_wait(&server.answer);
	ret = answer(service, hints, info);
	sem_post(&server.over);
	return ret;
}

static int questions(void)
{
	/* relaxed: as above */
	return atomic_load_explicit(&server.questions, memory_order_relaxed);
}

static int setup(void **state)
{
	struct fake *f;
	int ret;

	sem_init(&server.asked, 0, 0);
	sem_init(&server.answer, 0, 0);
	sem_init(&server.over, 0, 0);
	server.result = 0;
	server.errnum = 0;
	server.addrs = one_addr;
	/* relaxed: no other thread */
	atomic_store_explicit(&server.questions, 0, memory_order_relaxed);
	ret = fake_setup(state);
	f = *state;
	f->rt_cfg.timeout_ms = LONG_MS;
	return ret;
}

static int threads_before;

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

/* The thread of an abandoned look-up frees the look-up. */
static int teardown(void **state)
{
	int i;

	while (threads() > threads_before)
		sched_yield();
	for (i = 0; i < questions(); i++)
		sem_wait(&server.over);
	return fake_teardown(state);
}

static struct rpma_rt_conn *begun(struct fake *f)
{
	struct rpma_rt_conn *conn;

	ok(rpma_rt_conn_new(f->rt, "host.example", "4711", &f->rt_cfg, &conn));
	fake_finish_down(f);
	return conn;
}

/* The answer comes to the control thread's inbox, and is handled there. */
static void answered(struct fake *f)
{
	sem_post(&server.answer);
	while (rt_thread_is_idle(&f->device->control))
		sched_yield();
	fake_finish_down(f);
}

static void expect_closed(struct fake *f, struct rpma_rt_conn **conn,
			  enum rpma_rt_reason reason, int err)
{
	int value;

	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[0].status, reason);
	assert_int_equal(rpma_rt_completion_detail(&f->items[0], &value),
			 err ? RPMA_RT_DETAIL_ERRNO : RPMA_RT_DETAIL_NONE);
	assert_int_equal(value, err);
	ok(rpma_rt_conn_unref(conn));
}

static int timeout_of(const struct rpma_rt_conn *conn)
{
	int ms;

	ok(rpma_conn_cfg_get_timeout(conn->setup->cfg, &ms));
	return ms;
}

TEST_WITH(is_numeric__numbers_only, setup, teardown)
{
	assert_true(rt_resolve_is_numeric("127.0.0.1", "1"));
	assert_true(rt_resolve_is_numeric("127.1", "1"));
	assert_true(rt_resolve_is_numeric("0x7f000001", "1"));
	assert_true(rt_resolve_is_numeric("::1", "65535"));
	assert_true(rt_resolve_is_numeric("fe80::1%lo", "1"));
	assert_true(rt_resolve_is_numeric("::ffff:192.0.2.1", "1"));
	assert_false(rt_resolve_is_numeric("::1", "http"));
	assert_false(rt_resolve_is_numeric("::1", ""));
	assert_false(rt_resolve_is_numeric("host.example", "1"));
	assert_false(rt_resolve_is_numeric("", "1"));
	assert_false(rt_resolve_is_numeric("dead.beef", "1"));
	assert_false(rt_resolve_is_numeric("127.0.0.1 ", "1"));
	assert_false(rt_resolve_is_numeric("127.0.0.1%lo", "1"));
	assert_false(rt_resolve_is_numeric(
		"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111", "1"));
}

/* The server is silent; a connection made by numbers lives and ends. So does
 * the connection to the name, and the answer comes to nothing. */
TEST_WITH(name__nobody_waits_for_it, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *first = begun(f);
	struct rpma_rt_conn *second = begun(f);
	struct rpma_rt_conn *other = fake_established(f);

	sem_wait(&server.asked);
	sem_wait(&server.asked); /* they do not wait for each other either */
	fake_bury(f, &other);
	ok(rpma_rt_conn_close(first));
	expect_closed(f, &first, RPMA_RT_REASON_LOCAL, 0);
	/* answered, and closed before the control thread knows */
	sem_post(&server.answer);
	sem_post(&server.answer);
	while (rt_thread_is_idle(&f->device->control))
		sched_yield();
	fake_forget_trace();
	rt_conn_die_control(second, RPMA_RT_REASON_LOCAL, 0);
	expect_closed(f, &second, RPMA_RT_REASON_LOCAL, 0);
	assert_int_equal(f->rt->in_use, 0);
	assert_null(strstr(fake_trace(), "req_new_async"));
}

TEST_WITH(name__closed_before_it_begins_NOBODY_IS_ASKED, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	ok(rpma_rt_conn_new(f->rt, "host.example", "4711", &f->rt_cfg, &conn));
	rt_conn_die_control(conn, RPMA_RT_REASON_LOCAL, 0);
	expect_closed(f, &conn, RPMA_RT_REASON_LOCAL, 0);
	assert_int_equal(questions(), 0);
}

TEST_WITH(name__unknown_UNREACHABLE, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = begun(f);

	server.result = EAI_NONAME;
	fake_logged();
	answered(f);
	assert_true(fake_said("host.example"));
	assert_true(fake_said("4711"));
	assert_true(fake_said(gai_strerror(EAI_NONAME)));
	expect_closed(f, &conn, RPMA_RT_REASON_UNREACHABLE, 0);
	assert_int_equal(fake_logged(), 1);
}

/* An error that says nothing about the name. */
TEST_WITH(name__trouble_of_this_machine_FAILED, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = begun(f);

	server.result = EAI_SYSTEM;
	server.errnum = EMFILE;
	answered(f);
	assert_true(fake_said(strerror(EMFILE)));
	expect_closed(f, &conn, RPMA_RT_REASON_FAILED, EMFILE);
	server.result = EAI_MEMORY;
	conn = begun(f);
	answered(f);
	expect_closed(f, &conn, RPMA_RT_REASON_FAILED, ENOMEM);
}

TEST_WITH(name__no_thread_FAILED, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	fake_fail("pthread_create", 1, EAGAIN);
	conn = begun(f);
	assert_true(fake_said("host.example"));
	assert_true(fake_said(strerror(EAGAIN)));
	expect_closed(f, &conn, RPMA_RT_REASON_FAILED, EAGAIN);
}

/* Up to the look-up, which is the eighth piece. */
TEST_WITH(name__no_memory_NOMEM, setup, teardown)
{
	struct fake *f = *state;
	int memory = fake_memory();
	struct rpma_rt_conn *conn = NULL;
	int n;

	for (n = 1; n <= 8; n++) {
		fake_fail("malloc", n, 1);
		assert_int_equal(rpma_rt_conn_new(f->rt, "host.example", "1",
						  &f->rt_cfg, &conn),
				 RPMA_E_NOMEM);
		assert_null(conn);
		assert_int_equal(fake_memory(), memory);
	}
}

TEST_WITH(limit__the_answer_comes_NO_TIMER, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = begun(f);

	assert_true(rt_thread_run_timers(&f->device->control) > 0);
	answered(f);
	assert_int_equal(rt_thread_run_timers(&f->device->control), -1);
	fake_bury(f, &conn);
}

TEST_WITH(addresses__each_is_tried_with_its_share, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn;
	int third;

	server.addrs = three_addrs;
	conn = begun(f);
	answered(f);
	assert_string_equal(conn->setup->addr, "192.0.2.1");
	/* two steps of three addresses, but for the time of the look-up */
	assert_in_range(timeout_of(conn), 1, LONG_MS / 6);
	third = timeout_of(conn);
	fake_forget_trace();
	fake_conn_event(conn, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_string_equal(fake_trace(),
			    "req_advance req_delete req_new_async");
	assert_string_equal(conn->setup->addr, "2001:db8::2");
	/* time left by the first address goes to the others */
	assert_in_range(timeout_of(conn), third, LONG_MS / 4);
	fake_conn_event(conn, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_conn_event(conn, RDMA_CM_EVENT_ROUTE_ERROR, -EHOSTUNREACH);
	assert_string_equal(conn->setup->addr, "192.0.2.3");
	assert_in_range(timeout_of(conn), third, LONG_MS / 2);
	fake_conn_event(conn, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_conn_event(conn, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_READY);
	fake_bury(f, &conn);
}

/* Another address would not help. */
TEST_WITH(addresses__device_fails_NO_NEXT, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	server.addrs = three_addrs;
	conn = begun(f);
	answered(f);
	fake_conn_event(conn, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_closed(f, &conn, RPMA_RT_REASON_DEVICE, 0);
}

/* An id not yet destroyed may still name the connection. */
TEST_WITH(addresses__the_id_stays_THE_NEXT, setup, teardown)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	server.addrs = three_addrs;
	conn = begun(f);
	answered(f);
	fake_fail("req_delete", 1, RPMA_E_PROVIDER);
	fake_conn_event(conn, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_ptr_equal(f->device->cm->kept, &conn->target);
	assert_string_equal(conn->setup->addr, "2001:db8::2");
	rt_conn_die_control(conn, RPMA_RT_REASON_LOCAL, 0);
	expect_closed(f, &conn, RPMA_RT_REASON_LOCAL, 0);
	rt_cm_end_control(f->device->cm);
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	pthread_t thread;

	/* a sanitizer's own thread comes with the first of the program's */
	assert_false(pthread_create(&thread, NULL, nothing, NULL));
	pthread_join(thread, NULL);
	threads_before = threads();
	return tests_run(NULL, NULL);
}
