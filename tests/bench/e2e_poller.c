/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The form of busy pollers: each has a worker, which polls a queue. */

#include "e2e_rt.h"

static void open_poller(struct e2e *e2e)
{
	e2e_rt_open(e2e, RPMA_RT_MODE_BUSY);
	e2e_rt_queues(e2e);
	e2e_rt_connect(e2e, e2e_rt_post);
}

static void run_worker(struct e2e *e2e, struct e2e_thread *thread)
{
	e2e_begin(e2e, thread);
	do {
		e2e_post_all(thread, e2e_rt_post);
		e2e_rt_poll(thread->form);
	} while (!e2e_is_over(e2e, thread));
}

const struct e2e_form e2e_poller = {
	.name = "poller",
	.has_pollers = true,
	.open = open_poller,
	.run = run_worker,
};
