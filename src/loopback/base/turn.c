/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* turn.c -- when a thread that polls in vain offers its CPU. */

#include "base/turn.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define FIRST_NS    8000u
#define MIN_NS	    1000u
#define MAX_NS	    64000u
#define SWITCH_NS   1000u /* an offer that takes so long was taken */
#define KEPT_MAX_NS 1024000u
#define LONG_MAX_NS 16000000u
#define SLICE_NS    100000u /* the least that the kernel knows */
#define LONG_NS	    300000u /* so long: by a thread that does not give back */

_Thread_local struct lb_turn lb_turn_mine;
_Atomic uint32_t lb_turn_others;

static void double_patience(struct lb_turn *turn, uint64_t max)
{
	turn->patience *= 2;
	if (turn->patience > max)
		turn->patience = max;
}

void lb_turn_found(struct lb_turn *turn)
{
	if (turn->is_taken && !turn->is_long)
		turn->patience = MIN_NS;
	else if (turn->is_taken) /* it may have come from another CPU */
		double_patience(turn, KEPT_MAX_NS);
	turn->is_taken = false;
	turn->empty = 0;
	turn->since = 0;
}

void lb_turn_set_slice(bool is_short)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof(attr), .runtime = is_short ? SLICE_NS : 0};

	if (sched_getscheduler(0) != SCHED_OTHER)
		return;
	attr.nice = getpriority(PRIO_PROCESS, 0);
	/* not before Linux 6.12, and then nothing changes */
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void offer(struct lb_turn *turn, uint64_t now)
{
	sched_yield();
	turn->since = lb_clock_real_now();
	turn->is_taken = turn->since - now >= SWITCH_NS;
	turn->is_long = turn->since - now >= LONG_NS;
	if (!turn->is_taken)
		double_patience(turn, MAX_NS);
}

void lb_turn_empty(struct lb_turn *turn)
{
	uint64_t now;

	if (turn->is_taken) {
		/* somebody ran, and brought nothing */
		turn->is_taken = false;
		if (turn->is_long)
			double_patience(turn, LONG_MAX_NS);
		return;
	}
	now = lb_clock_real_now();
	if (!turn->patience)
		turn->patience = FIRST_NS;
	if (!turn->since)
		turn->since = now;
	else if (now - turn->since >= turn->patience)
		offer(turn, now);
}

bool lb_turn_waited(struct lb_turn *turn, bool found)
{
	if (found)
		lb_turn_found(turn);
	else
		lb_turn_empty(turn);
	if (!turn->is_taken || !turn->is_long)
		return false;
	*turn = (struct lb_turn){0};
	return true;
}
