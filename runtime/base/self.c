/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* self.c -- see self.h. */

#include "base/self.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local struct rt_self rt_self;

static _Atomic uint64_t last_number;

uint64_t rt_self_new_number(void)
{
	/* relaxed: just a number */
	rt_self.number = atomic_fetch_add_explicit(&last_number, 1,
						   memory_order_relaxed) +
			 1;
	return rt_self.number;
}

uint32_t rt_self_ask_tid(void)
{
	rt_self.tid = (uint32_t)syscall(SYS_gettid);
	return rt_self.tid;
}

void rt_self_set_events(void)
{
	rt_self.is_events = true;
}

void rt_self_forked(void)
{
	rt_self.poller = NULL;
	rt_self.tid = 0;
	rt_self.is_events = false;
}
