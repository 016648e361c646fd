/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hook.c -- calls the hook of the test, and the attached scheduler, at the
 * points named in rpma_loopback.h. Without hook and scheduler, a hook point
 * costs one load.
 */

#include "base/hook.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/base.h"
#include "rpma_loopback.h"

_Atomic uint32_t lb_hook_users;

static _Atomic(const struct lb_scheduler *) attached;
static _Atomic(rpma_loopback_hook_fn) hook_fn;
static void *hook_arg; /* written while no thread is in lb_hook_call() */
static _Atomic uint32_t users;
static pthread_mutex_t setting = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned depth; /* hooks of this thread call verbs */

/* --- the scheduler */

static const struct lb_scheduler *scheduler(void)
{
	/* acquire: pairs with the release in lb_hook_attach() */
	return atomic_load_explicit(&attached, memory_order_acquire);
}

void lb_hook_attach(const struct lb_scheduler *to)
{
	/* release: pairs with the acquire in scheduler() */
	atomic_store_explicit(&attached, to, memory_order_release);
	/* relaxed: the threads of the scheduler are created later */
	atomic_fetch_add_explicit(&lb_hook_users, 1, memory_order_relaxed);
}

/*
 * The table stays: a thread of a failed run may still be in the table, and the
 * scheduler tells its threads from others.
 */
void lb_hook_detach(void)
{
	/* relaxed: the threads have ended, or never run again */
	atomic_fetch_sub_explicit(&lb_hook_users, 1, memory_order_relaxed);
}

bool lb_hook_is_scheduled(void)
{
	return scheduler() && scheduler()->is_scheduled();
}

bool lb_hook_block(bool (*pred)(void *arg), void *arg)
{
	return scheduler() && scheduler()->block(pred, arg);
}

/* --- the points */

void lb_hook_call(enum rpma_loopback_point point, const void *object)
{
	rpma_loopback_hook_fn fn;

	if (depth)
		return;
	if (scheduler())
		scheduler()->yield(point);
	/* seq_cst, both, here and in set_hook(): announce, then look */
	atomic_fetch_add_explicit(&users, 1, memory_order_seq_cst);
	fn = atomic_load_explicit(&hook_fn, memory_order_seq_cst);
	if (fn) {
		depth++;
		fn(point, object, hook_arg);
		depth--;
	}
	/* release: pairs with the acquire in set_hook() */
	atomic_fetch_sub_explicit(&users, 1, memory_order_release);
}

LB_EXPORT void rpma_loopback_set_hook(rpma_loopback_hook_fn hook, void *arg)
{
	pthread_mutex_lock(&setting);
	/* seq_cst: pairs with lb_hook_call(), which announces, then looks */
	if (atomic_exchange_explicit(&hook_fn, NULL, memory_order_seq_cst))
		/* relaxed: a hint to look at hook_fn */
		atomic_fetch_sub_explicit(&lb_hook_users, 1,
					  memory_order_relaxed);
	/* acquire: pairs with the release in lb_hook_call(); seq_cst: above */
	while (atomic_load_explicit(&users, memory_order_seq_cst))
		sched_yield();
	hook_arg = arg;
	/* seq_cst: above; a thread that sees the hook sees the argument */
	atomic_store_explicit(&hook_fn, hook, memory_order_seq_cst);
	if (hook)
		/* relaxed: a hint to look at hook_fn */
		atomic_fetch_add_explicit(&lb_hook_users, 1,
					  memory_order_relaxed);
	pthread_mutex_unlock(&setting);
}

LB_EXPORT const char *rpma_loopback_point_name(enum rpma_loopback_point point)
{
	static const char *const names[RPMA_LOOPBACK_POINTS] = {
		[RPMA_LOOPBACK_POST_SEND] = "post_send",
		[RPMA_LOOPBACK_POST_SEND_DONE] = "post_send_done",
		[RPMA_LOOPBACK_POST_RECV] = "post_recv",
		[RPMA_LOOPBACK_POST_RECV_DONE] = "post_recv_done",
		[RPMA_LOOPBACK_POLL] = "poll",
		[RPMA_LOOPBACK_POLL_DONE] = "poll_done",
		[RPMA_LOOPBACK_ARM] = "arm",
		[RPMA_LOOPBACK_ARM_DONE] = "arm_done",
		[RPMA_LOOPBACK_GET_EVENT] = "get_event",
		[RPMA_LOOPBACK_GET_EVENT_DONE] = "get_event_done",
		[RPMA_LOOPBACK_ACK] = "ack",
		[RPMA_LOOPBACK_ACK_DONE] = "ack_done",
		[RPMA_LOOPBACK_MODIFY] = "modify",
		[RPMA_LOOPBACK_MODIFY_DONE] = "modify_done",
		[RPMA_LOOPBACK_DESTROY] = "destroy",
		[RPMA_LOOPBACK_DESTROY_DONE] = "destroy_done",
		[RPMA_LOOPBACK_DELIVER] = "deliver",
		[RPMA_LOOPBACK_DELIVER_DONE] = "deliver_done",
		[RPMA_LOOPBACK_CM_CALL] = "cm_call",
		[RPMA_LOOPBACK_CM_CALL_DONE] = "cm_call_done",
		[RPMA_LOOPBACK_CM_EVENT] = "cm_event",
		[RPMA_LOOPBACK_CM_EVENT_DONE] = "cm_event_done",
	};

	return (unsigned)point < RPMA_LOOPBACK_POINTS ? names[point] : "?";
}
