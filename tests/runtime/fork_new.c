/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fork_new.c -- the child of a process with a busy runtime makes a runtime
 * of its own, after a fork in each kind of thread: of the program, a poller
 * inside the function of a route, the event thread inside the handler. Calls on
 * objects from before are refused there, also calls that wait. The parent goes
 * on.
 */

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"
#include "stage.h"

/* a child that hangs is a failure, not a wait */
#define CHILD_SECONDS 300

#define FORKED(expr) CHECK((expr) == RPMA_RT_E_FORKED)

/* what was made before the fork */
struct old {
	struct stage s;
	struct world_pair pair;
	struct rpma_rt_route *route; /* of the passive end, to hear() */
	_Atomic pid_t forked;	     /* by a thread of the runtime */
};

/* Calls that wait, and would be refused to a poller's thread. */
static void old_is_refused(struct old *o)
{
	struct rpma_rt_conn *conn = o->pair.active;
	struct rpma_rt *rt = o->s.world.rt;
	struct rpma_rt_completion item;
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;

	FORKED(rpma_rt_queue_wait(o->s.aq, &item, 1, -1));
	FORKED(rpma_rt_queue_new(rt, NULL, &queue));
	FORKED(rpma_rt_queue_delete(&o->s.aq));
	FORKED(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, o->s.aq, &route));
	FORKED(rpma_rt_conn_close(conn));
	FORKED(rpma_rt_stop(rt));
	FORKED(rpma_rt_delete(&rt));
}

/* Everything anew, from the device on. */
static void new_runtime(enum rpma_rt_mode mode)
{
	const struct stage_cfg cfg = {.pollers = 2, .mode = mode, .depth = 8};
	struct world_pair pair;
	struct stage s;
	uint64_t i;

	stage_open(&s, &cfg);
	stage_connect(&s, &pair);
	for (i = 0; i < 10; i++)
		stage_ping(&s, &pair, i);
	stage_disconnect(&s, &pair);
	stage_close(&s);
}

_Noreturn static void child(struct old *o)
{
	alarm(CHILD_SECONDS);
	old_is_refused(o);
	new_runtime(RPMA_RT_MODE_EVENT);
	new_runtime(RPMA_RT_MODE_ADAPTIVE);
	old_is_refused(o); /* no less than before */
	exit(0);
}

static pid_t fork_child(struct old *o)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		child(o);
	return pid;
}

static void child_was_well(struct old *o, pid_t pid)
{
	int status;

	/* the parent goes on at once, and afterwards */
	stage_ping(&o->s, &o->pair, 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stage_ping(&o->s, &o->pair, 2);
}

static void fork_on_runtime_thread(struct old *o)
{
	/* release: pairs with the acquire in wait_for_fork() */
	atomic_store_explicit(&o->forked, fork_child(o), memory_order_release);
}

static void wait_for_fork(struct old *o)
{
	uint64_t end = world_now_ms() + WORLD_PATIENCE_MS;
	pid_t pid;

	do {
		CHECK(world_now_ms() < end);
		usleep(1000);
		/* acquire: pairs with the release of the thread that forked */
		pid = atomic_load_explicit(&o->forked, memory_order_acquire);
	} while (pid == 0);
	/* relaxed: no other thread until the next one */
	atomic_store_explicit(&o->forked, 0, memory_order_relaxed);
	child_was_well(o, pid);
}

/* ---------------------------------------------- the thread that forks --- */

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	if (cmpl->kind == RPMA_RT_COMPLETION && cmpl->status == IBV_WC_SUCCESS)
		fork_on_runtime_thread(arg);
}

static void fork_in_route(struct old *o)
{
	struct rpma_rt_recv_wr recv = {
		.route = o->route, .dst = o->s.mr, .len = 8};

	MUST(world_post_recv(o->pair.passive, &recv));
	MUST(rpma_rt_send(o->pair.active, o->s.mr, 0, 8,
			  RPMA_F_COMPLETION_ALWAYS, 7));
	stage_completion(o->s.aq, 7, IBV_WC_SUCCESS);
	wait_for_fork(o);
}

static void on_async(struct ibv_context *ibv_ctx,
		     const struct ibv_async_event *event, void *arg)
{
	(void)ibv_ctx;
	if (event->event_type == IBV_EVENT_GID_CHANGE)
		fork_on_runtime_thread(arg);
}

static void fork_in_handler(struct old *o)
{
	CHECK(loop_get()->raise(IBV_EVENT_GID_CHANGE, o->s.world.ibv_ctx) == 0);
	wait_for_fork(o);
}

static void open_old(struct old *o)
{
	struct stage_cfg cfg = {.pollers = 1,
				.mode = RPMA_RT_MODE_ADAPTIVE,
				.depth = 8,
				.async_fn = on_async,
				.async_arg = o};

	/* relaxed: no other thread yet */
	atomic_store_explicit(&o->forked, 0, memory_order_relaxed);
	stage_open(&o->s, &cfg);
	stage_connect(&o->s, &o->pair);
	MUST(rpma_rt_route_open_callback(o->pair.passive, RPMA_RT_RECV_SIDE,
					 hear, o, &o->route));
}

int main(void)
{
	struct old o;
	int i;

	if (loop_get() == NULL) {
		printf("other devices want ibv_fork_init(): not tested\n");
		return 77;
	}
	open_old(&o);
	for (i = 0; i < 2; i++) {
		child_was_well(&o, fork_child(&o));
		fork_in_route(&o);
		fork_in_handler(&o);
	}
	stage_disconnect(&o.s, &o.pair);
	stage_close(&o.s);
	printf("ok\n");
	return 0;
}
