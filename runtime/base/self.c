/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* self.c -- see self.h. */

#include "base/self.h"

#include <stddef.h>

static _Thread_local struct rt_poller *poller_of_thread;
static _Thread_local bool is_events;

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
