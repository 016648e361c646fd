/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* self.c -- see self.h. */

#include "base/self.h"

#include <stdatomic.h>
#include <stddef.h>

static _Thread_local struct rt_poller *poller_of_thread;
static _Thread_local bool is_events;
static _Thread_local uint64_t number; /* 0: not asked for yet */

static _Atomic uint64_t last_number;

struct rt_poller *rt_self_poller(void)
{
	return poller_of_thread;
}

void rt_self_set_poller(struct rt_poller *poller)
{
	poller_of_thread = poller;
}

bool rt_self_is_poller(void)
{
	return poller_of_thread != NULL;
}

uint64_t rt_self_number(void)
{
	if (number == 0)
		/* relaxed: just a number */
		number = atomic_fetch_add_explicit(&last_number, 1,
						   memory_order_relaxed) +
			 1;
	return number;
}

bool rt_self_is_events(void)
{
	return is_events;
}

void rt_self_set_events(void)
{
	is_events = true;
}

void rt_self_forked(void)
{
	poller_of_thread = NULL;
	is_events = false;
}
