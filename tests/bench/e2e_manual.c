/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The form of manual mode: each thread runs a poller and polls a queue. */

#include "e2e_rt.h"

static void open_manual(struct e2e *e2e)
{
	e2e_rt_open(e2e, RPMA_RT_MODE_MANUAL);
	e2e_rt_queues(e2e);
	e2e_rt_connect(e2e, e2e_rt_post);
}

static void run_manual(struct e2e *e2e, struct e2e_thread *thread)
{
	int got;

	MUST(rpma_rt_poller_attach(e2e_rt.world.rt, thread->number));
	e2e_begin(e2e, thread);
	do {
		e2e_post_all(thread, e2e_rt_post);
		do {
			got = e2e_rt_wait(thread->form);
		} while (e2e_polls_again(e2e, got));
	} while (!e2e_is_over(e2e, thread));
}

const struct e2e_form e2e_manual = {
	.name = "manual",
	.open = open_manual,
	.run = run_manual,
};
