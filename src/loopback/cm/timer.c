/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * timer.c -- waits that end by a timer. All waits of a kind take the same time,
 * so appending keeps a list per kind in order of time; a job of the service
 * thread looks at the first. Everything is under the lock, except that the job
 * takes the lock.
 */

#include "cm/timer.h"

#include "base/clock.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/service.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/table.h"

#define MS 1000000ull

/*
 * A kernel gives up on a silent peer after about a minute, and on a disconnect
 * too; but there a cable was pulled, here the peer forgot to answer, and a test
 * should see the difference.
 */
static const uint64_t duration[LB_CM_TIMERS] = {
	[LB_CM_TIMER_ANSWER] = 60000 * MS,
	[LB_CM_TIMER_DREQ] = 4000 * MS,
	[LB_CM_TIMER_TIMEWAIT] = 20 * MS,
};

static struct lb_list lists[LB_CM_TIMERS] = {
	{&lists[0], &lists[0]},
	{&lists[1], &lists[1]},
	{&lists[2], &lists[2]},
};
static bool armed[LB_CM_TIMERS]; /* a job is posted */

static struct lb_cm_id *first_of(enum lb_cm_timer kind)
{
	if (lb_list_is_empty(&lists[kind]))
		return NULL;
	return lb_entry(lists[kind].next, struct lb_cm_id, timer_node);
}

static void job(void *arg);

/* [lock] Have the job run when the first of the list is due. */
static void arm(enum lb_cm_timer kind, uint64_t now)
{
	const struct lb_cm_id *first = first_of(kind);
	uint64_t delay;

	if (armed[kind] || !first)
		return;
	delay = first->deadline > now ? first->deadline - now : 0;
	armed[kind] = !lb_service_post(job, &lists[kind], delay);
}

static void job(void *arg)
{
	enum lb_cm_timer kind =
		(enum lb_cm_timer)((struct lb_list *)arg - lists);
	uint64_t now = lb_clock_now();
	struct lb_cm_id *id;

	lb_cm_lock();
	armed[kind] = false;
	while ((id = first_of(kind)) && id->deadline <= now) {
		lb_list_del(&id->timer_node);
		id->on_timer(id);
	}
	arm(kind, now);
	lb_cm_unlock();
	lb_cm_flush();
}

void lb_cm_timer_forked(void)
{
	int i;

	for (i = 0; i < LB_CM_TIMERS; i++)
		armed[i] = false; /* the jobs belong to the parent */
}

void lb_cm_timer_stop(struct lb_cm_id *id)
{
	lb_list_del(&id->timer_node);
}

/*
 * Under the deterministic scheduler time is free. A wait for the peer would end
 * before the peer has had a chance, so such a wait does not end; TIMEWAIT,
 * without a peer, is over at once. No job is left to the next run.
 */
static void start_scheduled(struct lb_cm_id *id)
{
	if (id->timer == LB_CM_TIMER_TIMEWAIT)
		id->on_timer(id);
}

void lb_cm_timer_start(struct lb_cm_id *id, enum lb_cm_timer kind,
		       void (*fn)(struct lb_cm_id *id))
{
	uint64_t now = lb_clock_now();

	lb_cm_timer_stop(id);
	id->timer = kind;
	id->on_timer = fn;
	if (lb_hook_is_scheduled()) {
		start_scheduled(id);
		return;
	}
	id->deadline = now + duration[kind];
	lb_list_push(&lists[kind], &id->timer_node);
	arm(kind, now);
}
