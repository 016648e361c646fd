/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * What the arguments cannot be blamed for: no memory, a call of the system that
 * fails, a queue whose consumer is behind, another thread inside; see
 * bad_input.c. Each call is made with every piece of memory missing in turn.
 */

#include "bad_input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* One call; afterwards, if it succeeded, its undoing. */
typedef int bad_call(struct fake *f, struct rpma_rt_conn *conn);

static int new_runtime(struct fake *f, struct rpma_rt_conn *conn)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt = NULL;
	int ret;

	(void)f;
	(void)conn;
	cfg.mode = RPMA_RT_MODE_MANUAL;
	ret = rpma_rt_new(&cfg, &rt);
	if (ret == 0)
		ok(rpma_rt_delete(&rt));
	return ret;
}

static int new_queue(struct fake *f, struct rpma_rt_conn *conn)
{
	struct rpma_rt_queue *queue = NULL;
	int ret = rpma_rt_queue_new(f->rt, NULL, &queue);

	(void)conn;
	if (ret == 0)
		ok(rpma_rt_queue_delete(&queue));
	return ret;
}

static int push(struct fake *f, struct rpma_rt_conn *conn)
{
	int ret = rpma_rt_queue_push(f->queue, &(struct rpma_rt_completion){0});

	(void)conn;
	if (ret == 0)
		fake_take(f, f->queue);
	return ret;
}

static int get_fd(struct fake *f, struct rpma_rt_conn *conn)
{
	struct rpma_rt_queue *queue = NULL;
	int ret;
	int fd;

	(void)conn;
	ok(rpma_rt_queue_new(f->rt, NULL, &queue));
	ret = rpma_rt_queue_get_fd(queue, &fd);
	ok(rpma_rt_queue_delete(&queue));
	return ret;
}

static int new_srq(struct fake *f, struct rpma_rt_conn *conn)
{
	const struct rpma_rt_srq_cfg cfg = bad_srq_cfg(f->queue);
	struct rpma_rt_srq *srq = NULL;
	int ret = rpma_rt_srq_new(f->rt, &cfg, &srq);

	(void)conn;
	if (ret == 0)
		bad_srq_end(f, srq);
	return ret;
}

static int new_pool(struct fake *f, struct rpma_rt_conn *conn)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool = NULL;
	int ret;

	(void)conn;
	cfg.peer = &fake_peer;
	cfg.count = 2;
	ret = rpma_rt_pool_new(f->rt, &cfg, &pool);
	if (ret == 0)
		ok(rpma_rt_pool_delete(&pool));
	return ret;
}

/* a runtime for shards, and a shard that has sent nothing to shards 1 and 2 */
static struct rpma_rt *manual;
static struct rpma_rt_shard *sender;

static int new_shards(struct fake *f, struct rpma_rt_conn *conn)
{
	const struct rpma_rt_shards_cfg cfg = fake_shards_cfg();
	struct rpma_rt_shards *shards = NULL;
	int ret = rpma_rt_shards_new(manual, &cfg, &shards);

	(void)f;
	(void)conn;
	if (ret == 0)
		ok(rpma_rt_shards_delete(&shards));
	return ret;
}

static int post_to_shard(struct fake *f, struct rpma_rt_conn *conn)
{
	(void)f;
	(void)conn;
	return rpma_rt_shard_post(sender, 1,
				  &(struct rpma_rt_shard_message){0});
}

static int ask_shard(struct fake *f, struct rpma_rt_conn *conn)
{
	(void)f;
	(void)conn;
	return rpma_rt_shard_request(sender, 2,
				     &(struct rpma_rt_shard_message){0});
}

static int new_conn(struct fake *f, struct rpma_rt_conn *conn)
{
	struct rpma_rt_conn *other = NULL;
	int ret = rpma_rt_conn_new(f->rt, "::1", "1", &f->rt_cfg, &other);

	(void)conn;
	if (ret == 0)
		fake_bury(f, &other);
	return ret;
}

static int listen_once(struct fake *f, struct rpma_rt_conn *conn)
{
	struct rpma_rt_listener *listener = NULL;
	int ret = rpma_rt_listen(f->rt, "::1", "1", &f->rt_cfg, &listener);

	(void)conn;
	if (ret == 0)
		ok(rpma_rt_listener_delete(&listener));
	fake_take(f, f->queue);
	return ret;
}

static int open_route(struct fake *f, struct rpma_rt_conn *conn)
{
	struct rpma_rt_route *route = NULL;
	int ret = rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, f->queue, &route);

	return ret ? ret : rpma_rt_route_close(route, NULL);
}

static int open_function(struct fake *f, struct rpma_rt_conn *conn)
{
	struct rpma_rt_route *route = NULL;
	int ret = rpma_rt_route_open_callback(conn, RPMA_RT_SEND_SIDE, bad_hear,
					      NULL, &route);

	(void)f;
	return ret ? ret : rpma_rt_route_close(route, NULL);
}

/* between these two */
static struct rpma_rt_queue *second;

static int set_queue(struct fake *f, struct rpma_rt_conn *conn)
{
	bool is_there = conn->own[RPMA_RT_SEND_SIDE].queue == second;

	return rpma_rt_conn_set_queue(conn, is_there ? f->queue : second);
}

static int dump(struct fake *f, struct rpma_rt_conn *conn)
{
	int fd = open("/dev/null", O_WRONLY);
	int ret = rpma_rt_dump(f->rt, fd, RPMA_RT_DUMP_JSON);

	(void)conn;
	close(fd);
	return ret;
}

/* The nth of these fails, for each n: refused in these words, or not at all
 * where it was not needed. */
static void fail_each(struct fake *f, struct rpma_rt_conn *conn, bad_call *call,
		      const char *name, const char *what, int value,
		      int expected, const char *words)
{
	int nth;
	int ret;

	for (nth = 1;; nth++) {
		fake_fail(what, nth, value);
		sweep_begin(name);
		ret = call(f, conn);
		if (!fake_failed())
			break;
		if (ret != 0) {
			assert_int_equal(ret, expected);
			sweep_log(name, nth, ret, words);
		}
	}
	ok(ret);
	assert_true(nth > 1);
}

void no_memory(void **state)
{
	static const struct {
		bad_call *call;
		const char *name;
	} calls[] = {
		{new_runtime, "rpma_rt_new"},
		{new_queue, "rpma_rt_queue_new"},
		{push, "rpma_rt_queue_push"},
		{new_srq, "rpma_rt_srq_new"},
		{new_pool, "rpma_rt_pool_new"},
		{new_conn, "rpma_rt_conn_new"},
		{listen_once, "rpma_rt_listen"},
		{open_route, "rpma_rt_route_open"},
		{open_function, "rpma_rt_route_open_callback"},
		{set_queue, "rpma_rt_conn_set_queue"},
		{dump, "rpma_rt_dump"},
	};
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	size_t i;

	ok(rpma_rt_queue_new(f->rt, NULL, &second));
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		fail_each(f, conn, calls[i].call, calls[i].name, "malloc",
			  ENOMEM, RPMA_E_NOMEM, "memory");
	ok(rpma_rt_conn_set_queue(conn, f->queue));
	fake_take(f, f->queue);
	fake_bury(f, &conn);
	fake_take(f, second);
	ok(rpma_rt_queue_delete(&second));
}

void no_resources_for_shards(void **state)
{
	const struct rpma_rt_shards_cfg cfg = fake_shards_cfg();
	struct rpma_rt_cfg rt_cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt_shards *shards = NULL;
	struct fake *f = *state;

	rt_cfg.mode = RPMA_RT_MODE_MANUAL;
	rt_cfg.pollers = 3;
	ok(rpma_rt_new(&rt_cfg, &manual));
	fail_each(f, NULL, new_shards, "rpma_rt_shards_new", "malloc", ENOMEM,
		  RPMA_E_NOMEM, "memory");
	fail_each(f, NULL, new_shards, "rpma_rt_shards_new", "eventfd", EMFILE,
		  RPMA_E_PROVIDER, "eventfd() failed|Too many open files");
	fail_each(f, NULL, new_shards, "rpma_rt_shards_new", "epoll_ctl",
		  ENOSPC, RPMA_E_PROVIDER, "epoll_ctl() failed");
	ok(rpma_rt_shards_new(manual, &cfg, &shards));
	ok(rpma_rt_shards_get(shards, 0, &sender));
	fail_each(f, NULL, post_to_shard, "rpma_rt_shard_post", "malloc",
		  ENOMEM, RPMA_E_NOMEM, "memory");
	fail_each(f, NULL, ask_shard, "rpma_rt_shard_request", "malloc", ENOMEM,
		  RPMA_E_NOMEM, "memory");
	ok(rpma_rt_shards_delete(&shards));
	ok(rpma_rt_delete(&manual));
}

void system_refuses(void **state)
{
	static const char *const calls[] = {"eventfd", "epoll_create1",
					    "epoll_ctl"};
	struct fake *f = *state;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		fail_each(f, NULL, new_runtime, "rpma_rt_new", calls[i], EMFILE,
			  RPMA_E_PROVIDER, calls[i]);
	fail_each(f, NULL, get_fd, "rpma_rt_queue_get_fd", "eventfd", EMFILE,
		  RPMA_E_PROVIDER, "eventfd() failed|Too many open files");
	fail_each(f, NULL, new_conn, "rpma_rt_conn_new", "ibv_query_device",
		  EIO, RPMA_E_PROVIDER, "ibv_query_device()");
	fail_each(f, NULL, dump, "rpma_rt_dump", "pthread_mutex_clocklock",
		  ETIMEDOUT, RPMA_RT_E_BUSY, "another thread");
}
