/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Tasks of a poller: their order, how many a round, what makes them ready. */

#include <string.h>

#include "rt_fake.h"
#include "base/clock.h"
#include "poller/round.h"
#include "poller/schedule.h"

#define TASKS (3 * RT_SCHEDULE_UNITS)

struct job {
	struct rt_task task;
	int runs;
	int units;    /* of a run */
	bool repeats; /* is ready again at once */
	int place;    /* of its last run among all */
};

static struct job jobs[TASKS];
static int ran; /* of all jobs */

static int job_run(struct rt_task *task, struct rt_poller *poller)
{
	struct job *job = (struct job *)task;

	job->runs++;
	job->place = ran++;
	if (job->repeats)
		rt_schedule_ready(poller, task);
	return job->units;
}

static struct rt_poller *begin(struct fake *f)
{
	int i;

	memset(jobs, 0, sizeof(jobs));
	ran = 0;
	for (i = 0; i < TASKS; i++)
		rt_task_init(&jobs[i].task, job_run);
	return f->poller;
}

FAKE_TEST(ready__oldest_first_so_many_a_round)
{
	struct rt_poller *poller = begin(f);
	int i;

	for (i = 0; i < TASKS; i++)
		rt_schedule_ready(poller, &jobs[i].task);
	for (i = 0; i < 3; i++)
		assert_int_equal(rt_schedule_run(poller, true),
				 RT_SCHEDULE_UNITS);
	assert_int_equal(rt_schedule_run(poller, true), 0);
	for (i = 0; i < TASKS; i++)
		assert_int_equal(jobs[i].place, i);
}

/* A round that has looked for everything looks at no task, until there is a
 * task again. */
FAKE_TEST(round__quiet_RUNS_THE_NEXT_TASK)
{
	struct rt_poller *poller = begin(f);
	CDS_LIST_HEAD(list);
	int i;

	for (i = 0; i < 3; i++) {
		do
			rt_round_run(poller, RT_BATCH);
		while (!poller->quiet);
		if (i == 0) {
			rt_schedule_ready(poller, &jobs[i].task);
		} else if (i == 1) {
			rt_schedule_at(poller, &jobs[i].task, rt_now_ns());
		} else {
			rt_schedule_wait(&jobs[i].task, &list);
			rt_schedule_ready_all(poller, &list);
		}
		rt_round_run(poller, RT_BATCH);
		assert_int_equal(jobs[i].runs, 1);
	}
}

FAKE_TEST(ready__long_runs_end_the_round)
{
	struct rt_poller *poller = begin(f);
	int i;

	for (i = 0; i < 3; i++) {
		jobs[i].units = RT_SCHEDULE_UNITS - 1;
		rt_schedule_ready(poller, &jobs[i].task);
	}
	assert_int_equal(rt_schedule_run(poller, true),
			 2 * (RT_SCHEDULE_UNITS - 1));
	assert_int_equal(jobs[2].runs, 0);
	rt_schedule_run(poller, true);
	assert_int_equal(jobs[2].runs, 1);
}

FAKE_TEST(ready__again_in_the_next_round_behind_the_others)
{
	struct rt_poller *poller = begin(f);

	jobs[0].repeats = true;
	rt_schedule_ready(poller, &jobs[0].task);
	rt_schedule_ready(poller, &jobs[1].task);
	rt_schedule_ready(poller, &jobs[1].task); /* twice is once */
	assert_int_equal(rt_schedule_run(poller, true), 2);
	assert_true(rt_schedule_next_ns(poller) == 0);
	jobs[0].repeats = false;
	rt_schedule_ready(poller, &jobs[2].task);
	assert_int_equal(rt_schedule_run(poller, true), 2);
	assert_int_equal(jobs[0].runs, 2);
	assert_int_equal(jobs[1].runs, 1);
	assert_true(jobs[0].place < jobs[2].place);
	assert_true(rt_schedule_next_ns(poller) == UINT64_MAX);
}

FAKE_TEST(timed__runs_when_due_or_made_ready)
{
	const uint64_t hour_ns = UINT64_C(3600000000000);
	struct rt_poller *poller = begin(f);
	uint64_t now = rt_now_ns();

	rt_schedule_at(poller, &jobs[0].task, now + hour_ns);
	rt_schedule_at(poller, &jobs[1].task, now - 1);
	rt_schedule_at(poller, &jobs[2].task, now - 2);
	rt_schedule_at(poller, &jobs[3].task, now - 3);
	rt_schedule_at(poller, &jobs[3].task, now + 2 * hour_ns); /* later */
	rt_schedule_cancel(poller, &jobs[1].task);
	assert_int_equal(rt_schedule_run(poller, true), 1);
	assert_int_equal(jobs[2].runs, 1);
	assert_true(rt_schedule_next_ns(poller) == now + hour_ns);
	rt_schedule_ready(poller, &jobs[0].task);
	assert_int_equal(rt_schedule_run(poller, true), 1);
	assert_int_equal(jobs[0].runs, 1);
	assert_true(rt_schedule_next_ns(poller) == now + 2 * hour_ns);
	rt_schedule_cancel(poller, &jobs[3].task);
	assert_true(rt_schedule_next_ns(poller) == UINT64_MAX);
}

/* A busy poller reads the clock now and then, an idle one in each round. */
FAKE_TEST(timed__in_busy_rounds_too)
{
	struct rt_poller *poller = begin(f);
	int rounds = 0;

	rt_schedule_at(poller, &jobs[0].task, 1);
	while (rt_schedule_run(poller, false) == 0)
		rounds++;
	assert_in_range(rounds, 1, 1000);
	rt_schedule_at(poller, &jobs[0].task, 1);
	assert_int_equal(rt_schedule_run(poller, true), 1);
}

FAKE_TEST(wait__list_at_once_with_or_without_deadline)
{
	struct rt_poller *poller = begin(f);
	struct cds_list_head list;

	CDS_INIT_LIST_HEAD(&list);
	rt_schedule_ready(poller, &jobs[3].task);
	rt_schedule_wait(&jobs[0].task, &list);
	rt_schedule_wait(&jobs[1].task, &list);
	rt_schedule_at(poller, &jobs[1].task, UINT64_MAX - 1);
	rt_schedule_wait(&jobs[2].task, &list);
	rt_schedule_cancel(poller, &jobs[2].task);
	rt_schedule_ready_all(poller, &list);
	assert_true(cds_list_empty(&list));
	rt_schedule_ready_all(poller, &list); /* nothing */
	assert_int_equal(rt_schedule_run(poller, true), 3);
	assert_true(jobs[3].place < jobs[0].place);
	assert_true(jobs[0].place < jobs[1].place);
	assert_int_equal(jobs[2].runs, 0);
	/* its deadline went with it */
	assert_true(rt_schedule_next_ns(poller) == UINT64_MAX);
	/* the one that is due first leaves the list */
	rt_schedule_at(poller, &jobs[0].task, 1);
	rt_schedule_wait(&jobs[0].task, &list);
	assert_int_equal(rt_schedule_run(poller, true), 1);
	assert_true(cds_list_empty(&list));
}

TEST_MAIN()
