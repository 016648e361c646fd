/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* gate.c -- waits for the thread that is inside a verb; see gate.h. */

#include "conn/gate.h"

#include <sched.h>
#include <time.h>

#include "base/cancel.h"

/* how a thread waits for another one's verb: looks, then yields, then sleeps,
 * since a thread that does not run will not for a while */
#define LOOKS	 100
#define YIELDS	 100
#define SLEEP_NS 50000

static void wait_step(uint32_t *looks)
{
	const struct timespec nap = {.tv_nsec = SLEEP_NS};

	if (++*looks < LOOKS)
		rt_cpu_relax();
	else if (*looks < LOOKS + YIELDS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

/* Until none of these bits is set. Without a bound: a thread that is stopped
 * inside a verb may be for long. */
static void wait_for(const struct rt_gate *gate, uint64_t bits)
{
	uint32_t looks = 0;

	/* acquire [TURN-1]: ledger and line, of the thread that has left */
	while (rt_turn_look(&gate->turn) & bits)
		wait_step(&looks);
}

void rt_gate_close(struct rt_gate *gate)
{
	RT_NOT_CANCELLED;

	rt_turn_close(&gate->turn);
	/* a thread that paused the gate before reads the ledger */
	wait_for(gate, RT_TURN_HELD | RT_TURN_PAUSED);
}

void rt_gate_pause(struct rt_gate *gate)
{
	RT_NOT_CANCELLED;

	while (!rt_turn_pause(&gate->turn))
		wait_for(gate, RT_TURN_PAUSED);
	wait_for(gate, RT_TURN_HELD);
}

bool rt_gate_resume(struct rt_gate *gate, bool routes_moved)
{
	return rt_turn_resume(&gate->turn, routes_moved);
}
