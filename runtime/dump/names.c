/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * names.c -- the names of the counters, states and reasons of a dump, in
 * tables, so that all forms have all of them. Pure functions.
 */

#include "dump/names.h"

#include <stddef.h>

#include <infiniband/verbs.h>

#include "base/turn.h"

#define P(name, help) \
	{#name, offsetof(struct rpma_rt_poller_stats, name), false, help}
const struct rt_dump_field rt_dump_poller_fields[RT_DUMP_POLLER_FIELDS] = {
	P(polls, "Calls of ibv_poll_cq."),
	P(empty_polls, "Those that found nothing."),
	P(completions, "Work completions taken from CQs."),
	P(delivered, "Items written to lanes."),
	P(batches, "Lane publications."),
	P(doorbells, "Consumers woken."),
	P(sleeps, "Sleeps."),
	P(events, "Completion events read."),
	P(acks, "Calls of ibv_ack_cq_events."),
	P(spilled, "Items that found their lane full."),
	P(lost, "Items without room anywhere."),
	P(stale, "Completions of no open route."),
	P(lost_events_recovered, "Completions found by the back-stop alone."),
	P(keepalives, "Writes of keep-alive posted."),
	P(last_wqe_missing, "Ends of SRQ users without LAST_WQE_REACHED."),
	P(spinning_ns, "Nanoseconds idle and awake, with timing."),
	P(sleeping_ns, "Nanoseconds asleep, with timing."),
};
#undef P

#define Q(name, help) \
	{#name, offsetof(struct rpma_rt_queue_stats, name), false, help}
const struct rt_dump_field rt_dump_queue_fields[RT_DUMP_QUEUE_FIELDS] = {
	Q(polls, "Calls of rpma_rt_queue_poll."),
	Q(waits, "Calls of rpma_rt_queue_wait."),
	Q(empty, "Calls that found nothing."),
	Q(busy, "Times that another worker was inside."),
	Q(batches, "Calls that found something."),
	Q(taken, "Items taken."),
	Q(messages, "Messages pushed."),
	Q(sleeps, "Sleeps on the futex."),
	Q(wakes, "Sleepers woken."),
	{"backlog", offsetof(struct rpma_rt_queue_stats, backlog), true,
	 "Items inside."},
};
#undef Q

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const states[RT_DUMP_STATES] = {
	[RT_CONN_RESOLVING] = "resolving",
	[RT_CONN_READY] = "ready",
	[RT_CONN_CONNECTING] = "connecting",
	[RT_CONN_ESTABLISHED] = "established",
	[RT_CONN_DRAINING] = "draining",
	[RT_CONN_SWEEPING] = "sweeping",
	[RT_CONN_DELETING] = "deleting",
};

#define NAME(table, i) \
	((i) < COUNT(table) && (table)[i] != NULL ? (table)[i] : "other")

const char *rt_dump_state(uint32_t state)
{
	return NAME(states, state);
}

const char *rt_dump_gate(uint32_t gate)
{
	if (gate & RT_TURN_CLOSED)
		return "closed";
	if (gate & RT_TURN_DRAINED)
		return "draining";
	return gate & RT_TURN_OPEN ? "open" : "not yet";
}

const char *rt_dump_reason(uint32_t reason)
{
	return rpma_rt_reason_2str((enum rpma_rt_reason)reason);
}

void rt_dump_text(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text >= ' ' && *text <= '~' ? *text : '?', out);
	}
	fputc('"', out);
}

const char *rt_dump_opcode(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WC_SEND:
		return "send";
	case IBV_WC_RDMA_WRITE:
		return "write";
	case IBV_WC_RDMA_READ:
		return "read";
	case IBV_WC_RECV:
		return "recv";
	default:
		return "other";
	}
}
