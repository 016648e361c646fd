/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedule.h -- the work of a poller besides completions: tasks that are ready,
 * in the order in which they became so, and tasks that have a deadline. A
 * round runs RT_SCHEDULE_UNITS of work and leaves the rest to the next ones,
 * so that thousands of dying connections make no round long. Runs on the
 * poller. doc/protocols/connection.md.
 */

#ifndef RT_POLLER_SCHEDULE_H
#define RT_POLLER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

#include "base/heap.h"

struct rt_poller;

/* of work in a round, and in one run of a task at most: an item written, a
 * route closed; at least one for each run */
#define RT_SCHEDULE_UNITS 64

/* a member of what it is a task of; it waits in a list, in the heap of
 * deadlines, in both (what comes first runs it), or is idle */
struct rt_task {
	/* how many units it was; it may ask to be run again */
	int (*run)(struct rt_task *task, struct rt_poller *poller);
	struct cds_list_head
		link; /* among the ready, or in a list to wait in */
	union {
		struct rt_heap_node timer; /* its key: the deadline */
		/* in a CQ's list, and in no heap: see rt_cq.sweeping */
		uint64_t until_taken;
	};
};

/* a poller's */
struct rt_schedule {
	struct cds_list_head ready;
	struct rt_heap timed;
	uint32_t rounds; /* for the clock */
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

/* Is nothing ready and nothing waits for the clock? */
static inline bool rt_schedule_is_empty(const struct rt_schedule *schedule)
{
	return !rt_schedule_has_ready(schedule) &&
	       schedule->timed.first == NULL;
}

void rt_schedule_init(struct rt_poller *poller);

/* The task runs in this round or one of the next, wherever it waited before. */
void rt_schedule_ready(struct rt_poller *poller, struct rt_task *task);
/* All tasks of that list become ready; the list is empty then. Takes the same
 * time for any number of them: the list is spliced. */
void rt_schedule_ready_all(struct rt_poller *poller,
			   struct cds_list_head *list);
/* Sets the task's deadline, by the monotonic clock, instead of a former one. */
void rt_schedule_at(struct rt_poller *poller, struct rt_task *task,
		    uint64_t deadline_ns);
/* The task also waits in that list, until rt_schedule_ready() or _ready_all().
 */
void rt_schedule_wait(struct rt_task *task, struct cds_list_head *list);
/* Cancels the task: it does not run. */
void rt_schedule_cancel(struct rt_poller *poller, struct rt_task *task);

/* Runs what is ready or due; units. The clock is read if there are deadlines,
 * in idle rounds and in one of many others. */
int rt_schedule_run(struct rt_poller *poller, bool is_idle);
/* The next deadline; 0: some are ready, UINT64_MAX: none at all. */
uint64_t rt_schedule_next_ns(const struct rt_poller *poller);
/* How long the poller may sleep before the next deadline, and no longer than
 * most_ms, in milliseconds; -1: until it is woken. */
int rt_schedule_sleep_ms(const struct rt_poller *poller, int most_ms);

#endif /* RT_POLLER_SCHEDULE_H */
