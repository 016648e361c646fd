/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedule.h -- the work of a poller besides completions: ready tasks, in the
 * order in which they became ready, tasks with a deadline, and deferred tasks.
 * A round runs RT_SCHEDULE_UNITS of work and leaves further tasks to the next
 * rounds, so that thousands of dying connections make no round long; but all
 * deferred tasks where no later round would do. Runs on the poller.
 * doc/protocols/connection.md; deferred tasks: pool.md.
 */

#ifndef RT_POLLER_SCHEDULE_H
#define RT_POLLER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

#include "base/heap.h"

struct rt_poller;

/* units of work in a round, and the most in a single run of a task. A unit is
 * an item written or a route closed; each run counts as a unit at least */
#define RT_SCHEDULE_UNITS 64
/* most rounds for which a task is deferred */
#define RT_SCHEDULE_DEFER_ROUNDS 16

/* a task; a member of the object that the task works for. A task waits in a
 * list, in the heap of deadlines, or in both (the first to come runs the task),
 * or is idle */
struct rt_task {
	/* runs the task and returns the number of units; may make the task
	 * ready again */
	int (*run)(struct rt_task *task, struct rt_poller *poller);
	/* in the list of ready tasks, or in a list of waiting tasks */
	struct cds_list_head link;
	union {
		struct rt_heap_node timer; /* key: the deadline */
		/* of a task in a CQ's list, which is in no heap: see
		 * rt_cq.sweeping */
		uint64_t until_taken;
		/* the round in which a task was deferred, which is in no heap
		 * then */
		uint32_t deferred_at;
	};
};

/* the tasks of a poller */
struct rt_schedule {
	struct cds_list_head ready;
	struct rt_heap timed;
	uint32_t rounds; /* counted to read the clock now and then */
	/* deferred tasks, the task that was deferred first in front */
	struct cds_list_head deferred;
	uint32_t idle_rounds; /* in a row */
	/* the deferred tasks that run were deferred for too long */
	bool is_overdue;
};

static inline void rt_task_init(struct rt_task *task,
				int (*run)(struct rt_task *task,
					   struct rt_poller *poller))
{
	*task = (struct rt_task){.run = run};
	CDS_INIT_LIST_HEAD(&task->link);
}

static inline bool rt_schedule_has_ready(const struct rt_schedule *schedule)
{
	return schedule->ready.next != &schedule->ready;
}

/* Returns whether a task is ready or has a deadline. */
static inline bool rt_schedule_has_tasks(const struct rt_schedule *schedule)
{
	return rt_schedule_has_ready(schedule) || schedule->timed.first != NULL;
}

static inline bool rt_schedule_has_deferred(const struct rt_schedule *schedule)
{
	return schedule->deferred.next != &schedule->deferred;
}

void rt_schedule_init(struct rt_poller *poller);

/* Makes the task ready, wherever the task waited: it runs in this round or in a
 * later round. */
void rt_schedule_ready(struct rt_poller *poller, struct rt_task *task);
/* Makes all tasks of the list ready; the list is empty afterwards. Takes the
 * same time for any number of tasks, because the list is spliced. */
void rt_schedule_ready_all(struct rt_poller *poller,
			   struct cds_list_head *list);
/* Sets the task's deadline, by the monotonic clock, in place of a former
 * deadline. */
void rt_schedule_at(struct rt_poller *poller, struct rt_task *task,
		    uint64_t deadline_ns);
/* Puts the task into the list, to wait there also, until rt_schedule_ready() or
 * _ready_all(). */
void rt_schedule_wait(struct rt_task *task, struct cds_list_head *list);
/* Defers the task: an owner that has use for the task cancels the task, and
 * does the work. */
void rt_schedule_defer(struct rt_poller *poller, struct rt_task *task);
/* Runs all deferred tasks. */
void rt_schedule_run_deferred(struct rt_poller *poller);
/* Ends a round that leaves deferred tasks alone, but for overdue tasks: all
 * tasks from the second idle round in a row on, or else the tasks that were
 * deferred for RT_SCHEDULE_DEFER_ROUNDS rounds; RT_SCHEDULE_UNITS tasks in a
 * round. */
void rt_schedule_run_overdue(struct rt_poller *poller, bool is_idle);
/* Cancels the task: it does not run. */
void rt_schedule_cancel(struct rt_poller *poller, struct rt_task *task);

/* Runs tasks that are ready or due; returns the units of work. Where there are
 * deadlines, reads the clock in idle rounds and in a few of the other
 * rounds. */
int rt_schedule_run(struct rt_poller *poller, bool is_idle);
/* Returns the next deadline; 0: tasks are ready; UINT64_MAX: no task is ready
 * or has a deadline. */
uint64_t rt_schedule_next_ns(const struct rt_poller *poller);
/* Returns for how many milliseconds the poller may sleep before the next
 * deadline, at most most_ms; -1: until the poller is woken. */
int rt_schedule_sleep_ms(const struct rt_poller *poller, int most_ms);

#endif /* RT_POLLER_SCHEDULE_H */
