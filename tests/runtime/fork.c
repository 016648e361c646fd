/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fork.c -- a fork while a thread of the parent is blocked in
 * rpma_rt_queue_wait(). In the child each call on an object from before the
 * fork answers RPMA_RT_E_FORKED, none hangs, and the child can exit without
 * joining a thread. The parent goes on.
 */

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

/* a child that hangs is a failure, not a wait */
#define CHILD_SECONDS 300

#if defined(__SANITIZE_ADDRESS__)
static bool is_child;

/* The leak checker stops threads first, in a child also those that are not
 * there, and waits for the locks that they held. Asked by it at exit. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_child;
}
#endif

/* what was made before the fork */
struct old {
	struct stage s;
	struct world_pair pair;
	struct rpma_rt_queue *waited; /* a thread sleeps on it */
	struct rpma_rt_listener *listener;
	struct rpma_rt *manual;
};

#define FORKED(expr) CHECK((expr) == RPMA_RT_E_FORKED)

static void old_runtime(struct old *o)
{
	struct rpma_rt_poller_stats stats;
	struct rpma_rt *rt = o->s.world.rt;
	struct rpma_rt_queue *queue;
	int value;

	FORKED(rpma_rt_poller_get_stats(rt, 0, &stats, sizeof(stats)));
	FORKED(rpma_rt_poller_run(o->manual, 0, 1));
	FORKED(rpma_rt_poller_arm(o->manual, 0));
	FORKED(rpma_rt_poller_get_fd(o->manual, 0, &value));
	FORKED(rpma_rt_queue_new(rt, NULL, &queue));
	FORKED(rpma_rt_dump(rt, 1, RPMA_RT_DUMP_HUMAN));
	FORKED(rpma_rt_stop(rt));
	FORKED(rpma_rt_stop(o->manual));
	FORKED(rpma_rt_delete(&rt));
	CHECK(rt != NULL);
}

static void old_queues(struct old *o)
{
	struct rpma_rt_queue *queues[2] = {o->s.aq, o->waited};
	struct rpma_rt_completion item;
	int value;
	int i;

	for (i = 0; i < 2; i++) {
		FORKED(rpma_rt_queue_poll(queues[i], &item, 1));
		FORKED(rpma_rt_queue_wait(queues[i], &item, 1, -1));
		FORKED(rpma_rt_queue_get_fd(queues[i], &value));
		FORKED(rpma_rt_queue_arm(queues[i]));
		FORKED(rpma_rt_queue_push(
			queues[i], &(struct rpma_rt_completion){.context = 1}));
		FORKED(rpma_rt_queue_close(queues[i]));
		FORKED(rpma_rt_queue_delete(&queues[i]));
		CHECK(queues[i] != NULL);
	}
}

static void old_listening(struct old *o)
{
	struct rpma_rt_listener *listener = o->listener;
	struct world *w = &o->s.world;
	struct rpma_rt_conn *conn;
	uint16_t port;

	FORKED(rpma_rt_listener_get_port(listener, &port));
	FORKED(rpma_rt_listener_delete(&listener));
	FORKED(world_listen_at(w->rt, w->peer, w->addr, "0", 1, NULL, 0,
			       o->s.pq, NULL, &listener));
	FORKED(world_conn_new(w->rt, w->peer, w->addr, w->port, NULL, 0,
			      o->s.aq, NULL, &conn));
}

static void old_connection(struct old *o)
{
	struct rpma_rt_recv_wr recv = {.dst = o->s.mr, .len = 8};
	struct rpma_rt_wr send = {.op = RPMA_RT_OP_SEND,
				  .flags = RPMA_F_COMPLETION_ALWAYS};
	struct rpma_rt_conn *conn = o->pair.active;
	struct rpma_conn_private_data pdata;
	struct rpma_rt_route *route;
	uint32_t qp_num;
	void *user;
	int value;

	FORKED(rpma_rt_conn_ref(conn));
	FORKED(rpma_rt_conn_get_private_data(conn, &pdata));
	FORKED(rpma_rt_conn_get_qp_num(conn, &qp_num));
	FORKED(rpma_rt_conn_get_poller(conn, &value));
	FORKED(rpma_rt_conn_get_user(conn, &user));
	FORKED(rpma_rt_conn_set_user(conn, NULL));
	FORKED(rpma_rt_conn_set_queue(conn, o->s.aq));
	FORKED(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, o->s.pq, &route));
	FORKED(rpma_rt_conn_connect(conn, NULL));
	FORKED(rpma_rt_conn_reject(o->pair.passive, NULL));
	FORKED(rpma_rt_post_send(conn, &send, 1));
	FORKED(rpma_rt_post_recv(conn, &recv, 1));
	FORKED(rpma_rt_send(conn, o->s.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, 1));
	FORKED(rpma_rt_recv(conn, o->s.mr, 0, 8, 1));
	FORKED(rpma_rt_write(conn, o->s.remote, 0, o->s.mr, 0, 8,
			     RPMA_F_COMPLETION_ALWAYS, 1));
	FORKED(rpma_rt_read(conn, o->s.mr, 0, o->s.remote, 0, 8,
			    RPMA_F_COMPLETION_ALWAYS, 1));
	FORKED(rpma_rt_conn_close(conn));
	FORKED(rpma_rt_conn_unref(&conn));
	CHECK(conn != NULL);
}

_Noreturn static void child(struct old *o)
{
	alarm(CHILD_SECONDS);
#if defined(__SANITIZE_ADDRESS__)
	is_child = true;
#endif
	old_runtime(o);
	old_queues(o);
	old_listening(o);
	old_connection(o);
	exit(0);
}

static void *wait_on(void *arg)
{
	struct rpma_rt_completion item = world_next(arg);

	CHECK(item.kind == RPMA_RT_MESSAGE && item.context == 4711);
	return NULL;
}

static void fork_once(struct old *o)
{
	pthread_t waiter;
	int status;
	pid_t pid;

	CHECK(pthread_create(&waiter, NULL, wait_on, o->waited) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(o);
	/* the parent goes on at once */
	stage_ping(&o->s, &o->pair, 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stage_ping(&o->s, &o->pair, 2);
	MUST(rpma_rt_queue_push(o->waited,
				&(struct rpma_rt_completion){.context = 4711}));
	CHECK(pthread_join(waiter, NULL) == 0);
}

static struct rpma_rt *manual_runtime(void)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	MUST(rpma_rt_new(&cfg, &rt));
	return rt;
}

int main(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = 8};
	struct old o;
	int i;

	stage_open(&o.s, &cfg);
	stage_connect(&o.s, &o.pair);
	MUST(rpma_rt_queue_new(o.s.world.rt, NULL, &o.waited));
	o.listener = world_listen(&o.s.world, o.s.cfg, o.s.pq);
	o.manual = manual_runtime();
	for (i = 0; i < 3; i++)
		fork_once(&o);
	MUST(rpma_rt_delete(&o.manual));
	world_unlisten(&o.listener, o.s.pq);
	MUST(rpma_rt_queue_delete(&o.waited));
	stage_disconnect(&o.s, &o.pair);
	stage_close(&o.s);
	printf("ok\n");
	return 0;
}
