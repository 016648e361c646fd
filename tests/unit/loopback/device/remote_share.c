/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote_share.c -- two processes that share one CPU and poll: a thread that
 * finds nothing gives the CPU up. Polls are counted, not time: a process that
 * keeps the CPU polls for a whole slice of the scheduler before the other one
 * can answer.
 */

#include "meet.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define EXCHANGES 101
#define FEW	  10000 /* polls; in a slice there are ten times as many */

/* The process runs on one CPU, and before other programs if it may. */
static void share_cpu(void)
{
	cpu_set_t cpus, one;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	setpriority(PRIO_PROCESS, 0, -20);
}

/* Polls until there is a completion; returns how often that was in vain. */
static int poll_one(struct meet *m, struct ibv_wc *wc)
{
	int empty = 0;

	while (!ibv_poll_cq(m->end.cq, 1, wc))
		empty++;
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	return empty;
}

static int is_less(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A message there, and one back. */
static int exchange(struct meet *m, int is_first)
{
	int empty = 0, left = 2;
	struct ibv_wc wc;

	assert_int_equal(meet_recv(m, 1, 64, 8), 0);
	two_wait(m->self);
	if (is_first)
		meet_post(m, IBV_WR_SEND, 2, 0, 8, 0, 0);
	while (left--) {
		empty += poll_one(m, &wc);
		if (wc.opcode == IBV_WC_RECV && !is_first)
			meet_post(m, IBV_WR_SEND, 2, 0, 8, 0, 0);
	}
	return empty;
}

static void pollers(const struct two_process *self)
{
	const struct meet_opts opts = {.rnr_retry = 7};
	int empty[EXCHANGES];
	struct meet m;

	share_cpu();
	meet_begin(&m, self, &opts);
	for (int i = 0; i < EXCHANGES; i++)
		empty[i] = exchange(&m, !self->number);
	two_wait(self);
	qsort(empty, EXCHANGES, sizeof(*empty), is_less);
	assert_in_range(empty[EXCHANGES / 2], 0, FEW);
	meet_end(&m);
}

TEST(poll__other_process_on_the_same_CPU_GIVES_UP)
{
	struct two_process p[2] = {{0}};

	two_run(p, pollers);
}

TEST_MAIN()
