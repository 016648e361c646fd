/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedule.c -- ready tasks, and deadlines; see schedule.h.
 */

#include "poller/schedule.h"

#include "base/clock.h"
#include "base/lang.h"
#include "poller/poller.h"

#define ROUNDS_PER_CLOCK 64

void rt_schedule_init(struct rt_poller *poller)
{
	poller->schedule = (struct rt_schedule){0};
	CDS_INIT_LIST_HEAD(&poller->schedule.ready);
	CDS_INIT_LIST_HEAD(&poller->schedule.deferred);
}

void rt_schedule_cancel(struct rt_poller *poller, struct rt_task *task)
{
	if (rt_heap_has(&poller->schedule.timed, &task->timer))
		rt_heap_remove(&poller->schedule.timed, &task->timer);
	cds_list_del_init(&task->link);
}

void rt_schedule_ready(struct rt_poller *poller, struct rt_task *task)
{
	rt_schedule_cancel(poller, task);
	cds_list_add_tail(&task->link, &poller->schedule.ready);
	rt_poller_disturb(poller);
}

void rt_schedule_ready_all(struct rt_poller *poller, struct cds_list_head *list)
{
	struct cds_list_head *ready = &poller->schedule.ready;

	/* behind the last ready task; the tasks keep their deadlines until they
	 * run */
	cds_list_splice(list, ready->prev);
	CDS_INIT_LIST_HEAD(list);
	rt_poller_disturb(poller);
}

void rt_schedule_at(struct rt_poller *poller, struct rt_task *task,
		    uint64_t deadline_ns)
{
	struct rt_heap *timed = &poller->schedule.timed;

	if (rt_heap_has(timed, &task->timer))
		rt_heap_remove(timed, &task->timer);
	rt_heap_insert(timed, &task->timer, deadline_ns);
	rt_poller_disturb(poller);
}

void rt_schedule_wait(struct rt_task *task, struct cds_list_head *list)
{
	cds_list_del(&task->link);
	cds_list_add_tail(&task->link, list);
}

/* Returns the number of the round. */
static uint32_t schedule_round_of(const struct rt_poller *poller)
{
	/* relaxed: written by the thread inside */
	return atomic_load_explicit(&poller->owned.turns, memory_order_relaxed);
}

void rt_schedule_defer(struct rt_poller *poller, struct rt_task *task)
{
	task->deferred_at = schedule_round_of(poller);
	rt_schedule_wait(task, &poller->schedule.deferred);
	rt_poller_disturb(poller);
}

static void schedule_run_first_deferred(struct rt_poller *poller)
{
	struct rt_task *task = cds_list_first_entry(&poller->schedule.deferred,
						    struct rt_task, link);

	cds_list_del_init(&task->link);
	task->run(task, poller);
}

void rt_schedule_run_deferred(struct rt_poller *poller)
{
	/* no task defers itself again, so the loop ends */
	while (rt_schedule_has_deferred(&poller->schedule))
		schedule_run_first_deferred(poller);
}

static bool schedule_is_overdue(const struct rt_poller *poller)
{
	const struct rt_schedule *schedule = &poller->schedule;
	const struct rt_task *first =
		cds_list_first_entry(&schedule->deferred, struct rt_task, link);

	return schedule->idle_rounds >= 2 ||
	       schedule_round_of(poller) - first->deferred_at >=
		       RT_SCHEDULE_DEFER_ROUNDS;
}

void rt_schedule_run_overdue(struct rt_poller *poller, bool is_idle)
{
	struct rt_schedule *schedule = &poller->schedule;
	int i;

	schedule->idle_rounds = is_idle ? schedule->idle_rounds + 1 : 0;
	schedule->is_overdue = true;
	for (i = 0;
	     i < RT_SCHEDULE_UNITS && rt_schedule_has_deferred(schedule) &&
	     schedule_is_overdue(poller);
	     i++)
		schedule_run_first_deferred(poller);
	schedule->is_overdue = false;
}

/* Makes tasks ready whose deadline has passed, as many as a round can run. */
static void schedule_take_due(struct rt_poller *poller)
{
	struct rt_heap *timed = &poller->schedule.timed;
	uint64_t now = rt_now_ns();
	int i;

	for (i = 0; i < RT_SCHEDULE_UNITS && timed->first != NULL &&
		    timed->first->key <= now;
	     i++)
		rt_schedule_ready(poller,
				  RT_FROM(struct rt_task, timer, timed->first));
}

int rt_schedule_run(struct rt_poller *poller, bool is_idle)
{
	struct rt_schedule *schedule = &poller->schedule;
	CDS_LIST_HEAD(batch);
	struct rt_task *task;
	int units = 0;
	int ran;

	if (schedule->timed.first != NULL &&
	    (is_idle || ++schedule->rounds % ROUNDS_PER_CLOCK == 0))
		schedule_take_due(poller);
	if (cds_list_empty(&schedule->ready))
		return 0;
	/* each task runs at most once: a task that becomes ready again joins
	 * the next round */
	cds_list_splice(&schedule->ready, &batch);
	CDS_INIT_LIST_HEAD(&schedule->ready);
	while (!cds_list_empty(&batch) && units < RT_SCHEDULE_UNITS) {
		task = cds_list_first_entry(&batch, struct rt_task, link);
		rt_schedule_cancel(poller, task);
		ran = task->run(task, poller); /* run() may free the task */
		units += ran > 0 ? ran : 1;
	}
	/* in front of the tasks that became ready meanwhile */
	cds_list_splice(&batch, &schedule->ready);
	return units;
}

uint64_t rt_schedule_next_ns(const struct rt_poller *poller)
{
	const struct rt_schedule *schedule = &poller->schedule;

	if (schedule->ready.next != &schedule->ready)
		return 0;
	return schedule->timed.first ? schedule->timed.first->key : UINT64_MAX;
}

int rt_schedule_sleep_ms(const struct rt_poller *poller, int most_ms)
{
	uint64_t deadline = rt_schedule_next_ns(poller);
	uint64_t now;
	uint64_t left;

	if (deadline == UINT64_MAX)
		return most_ms;
	now = rt_now_ns();
	left = deadline > now ? (deadline - now) / 1000000 + 1 : 0;
	return most_ms < 0 || left < (uint64_t)most_ms ? (int)left : most_ms;
}
