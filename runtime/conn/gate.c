/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* gate.c -- waits for the thread that is inside a verb; see gate.h. */

#include "conn/gate.h"

void rt_gate_close(struct rt_gate *gate)
{
	rt_turn_close(&gate->turn);
	/* a thread that paused the gate before reads the ledger */
	rt_turn_await(&gate->turn, RT_TURN_HELD | RT_TURN_PAUSED);
}

void rt_gate_pause(struct rt_gate *gate)
{
	while (!rt_turn_pause(&gate->turn))
		rt_turn_await(&gate->turn, RT_TURN_PAUSED);
	rt_turn_await(&gate->turn, RT_TURN_HELD);
}

bool rt_gate_resume(struct rt_gate *gate)
{
	return rt_turn_resume(&gate->turn);
}
