/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wrong_conn.c -- see wrong.h: connections, from a request that is
 * not answered to an end that does not come.
 */

#include "dump/wrong.h"

#include <stdio.h>

#include <infiniband/verbs.h>

#include "dump/names.h"

/* ---------------------------------------------------------- the way up --- */

static void judge_handshake(struct rt_dump *dump,
			    const struct rt_dump_conn *conn, const char *object)
{
	uint32_t ms = conn->state_ms;

	if (ms < RT_DUMP_YOUNG_MS)
		return;
	if (conn->state != RT_CONN_READY || conn->is_decided)
		rt_dump_wrong_add(dump, RT_DUMP_NO_ANSWER, object, ms,
				  "its peer has not answered for %u.%u s: does "
				  "a program listen there, and answer its "
				  "requests?",
				  RT_DUMP_SECONDS(ms));
	else if (conn->passive)
		rt_dump_wrong_add(dump, RT_DUMP_REQUEST_IGNORED, object, ms,
				  "the request of a peer is not answered for "
				  "%u.%u s: take RPMA_RT_EVENT_REQUEST %s and "
				  "call rpma_rt_conn_accept() or "
				  "rpma_rt_conn_reject()",
				  RT_DUMP_SECONDS(ms),
				  conn->queue != 0
					  ? "from its queue"
					  : "by rpma_rt_next_future()");
	else
		rt_dump_wrong_add(dump, RT_DUMP_CONNECT_MISSING, object, ms,
				  "it has been ready for %u.%u s: take "
				  "RPMA_RT_EVENT_READY %s and call "
				  "rpma_rt_conn_connect()",
				  RT_DUMP_SECONDS(ms),
				  conn->queue != 0
					  ? "from its queue"
					  : "by rpma_rt_conn_future()");
}

/* --------------------------------------------------------- established --- */

/* The send that is out: only if its poller would have taken its completion. */
static void judge_sends(struct rt_dump *dump, const struct rt_dump_conn *conn,
			const char *object)
{
	const struct rt_dump_side *side = &conn->side[RPMA_RT_SEND_SIDE];
	uint32_t ms = side->waiting_ms;

	if (!side->has_waiting || ms < RT_DUMP_YOUNG_MS ||
	    conn->is_backlogged ||
	    !rt_dump_wrong_runs(&dump->pollers[conn->poller]))
		return;
	if (side->waiting_opcode == IBV_WC_SEND)
		rt_dump_wrong_add(dump, RT_DUMP_SEND_WAITS, object, ms,
				  "a message to its peer waits for %u.%u s: "
				  "the peer has posted no receive for it, or "
				  "does not answer any more",
				  RT_DUMP_SECONDS(ms));
	else
		rt_dump_wrong_add(dump, RT_DUMP_SEND_WAITS, object, ms,
				  "a %s waits for %u.%u s: the device of its "
				  "peer does not answer",
				  rt_dump_opcode(side->waiting_opcode),
				  RT_DUMP_SECONDS(ms));
}

/* Since when the side has been as it is. */
static uint32_t idle_ms(const struct rt_dump_conn *conn, int side)
{
	uint32_t ms = conn->state_ms;

	if (conn->side[side].retired != 0 && conn->side[side].retired_ms < ms)
		ms = conn->side[side].retired_ms;
	return ms;
}

static bool is_untouched(const struct rt_dump_side *side)
{
	return side->outstanding == 0 && side->in_line == 0 &&
	       side->retired == 0;
}

/* Has it had as many as its queue holds? Then messages come in a stream, and
 * not only to begin with. */
static bool is_stream(const struct rt_dump_side *side)
{
	return side->depth > 1 ? side->retired >= side->depth
			       : side->retired > side->depth;
}

static void judge_receives(struct rt_dump *dump,
			   const struct rt_dump_conn *conn, const char *object)
{
	const struct rt_dump_side *side = &conn->side[RPMA_RT_RECV_SIDE];
	uint32_t ms = idle_ms(conn, RPMA_RT_RECV_SIDE);

	if (conn->has_srq || side->outstanding > 0 || side->in_line > 0 ||
	    ms < RT_DUMP_YOUNG_MS)
		return;
	if (is_stream(side))
		rt_dump_wrong_add(dump, RT_DUMP_RECEIVES_MISSING, object, ms,
				  "its receives are used up, and none was "
				  "posted for %u.%u s: a peer that sends waits "
				  "until one is: post one for each that "
				  "completes",
				  RT_DUMP_SECONDS(ms));
	else if (side->depth > 1 && is_untouched(side) &&
		 is_untouched(&conn->side[RPMA_RT_SEND_SIDE]))
		rt_dump_wrong_add(dump, RT_DUMP_RECEIVES_MISSING, object, ms,
				  "nothing was ever posted on it, %u.%u s "
				  "after it was established: a peer that sends "
				  "waits for a receive. Post some; if no "
				  "messages come, an rq_size of 1 says so",
				  RT_DUMP_SECONDS(ms));
}

static void judge_credit(struct rt_dump *dump, const struct rt_dump_conn *conn,
			 const char *object)
{
	const struct rt_dump_side *side = &conn->side[RPMA_RT_SEND_SIDE];
	uint32_t ms = idle_ms(conn, RPMA_RT_SEND_SIDE);

	if (!(side->want & RT_WANT_CREDIT) || ms < RT_DUMP_YOUNG_MS ||
	    conn->is_backlogged ||
	    !rt_dump_wrong_runs(&dump->pollers[conn->poller]))
		return;
	rt_dump_wrong_add(dump, RT_DUMP_CREDIT_USED_UP, object, ms,
			  "its %u sends are all out, a post was refused, and "
			  "none has completed for %u.%u s: see why its peer "
			  "does not answer",
			  side->depth, RT_DUMP_SECONDS(ms));
}

/* ------------------------------------------------------------- closing --- */

static const char *why_closing(const struct rt_dump_conn *conn)
{
	if (conn->state < RT_CONN_SWEEPING &&
	    (conn->side[0].is_inside || conn->side[1].is_inside))
		return "a thread is inside a post on it and does not come out: "
		       "look at the stacks of those that post";
	switch (conn->state) {
	case RT_CONN_DRAINING:
		return "its work requests do not come back: they are given up "
		       "after teardown_ms";
	case RT_CONN_SWEEPING:
		return "the device has not destroyed its queue pair yet";
	case RT_CONN_DELETING:
		return "the device has not destroyed its id yet, or its poller "
		       "does not run";
	default:
		return conn->is_drained
			       ? "it is drained, and what was posted does not "
				 "complete: call rpma_rt_conn_close(), or give "
				 "the drain a time"
			       : "the control thread of its device has not "
				 "come to it: a call of the device blocks";
	}
}

static void judge_closing(struct rt_dump *dump, const struct rt_dump_conn *conn,
			  const char *object)
{
	if (conn->closing_ms >= RT_DUMP_YOUNG_MS)
		rt_dump_wrong_add(
			dump, RT_DUMP_CLOSING_LONG, object, conn->closing_ms,
			"it has been closing for %u.%u s: %s",
			RT_DUMP_SECONDS(conn->closing_ms), why_closing(conn));
}

void rt_dump_wrong_conn(struct rt_dump *dump, const struct rt_dump_conn *conn)
{
	char object[RT_DUMP_LABEL];

	if (conn->is_ended)
		return;
	snprintf(object, sizeof(object), "connection \"%s\"%s%s", conn->name,
		 conn->peer[0] != '\0' ? " with " : "", conn->peer);
	if (conn->is_closing) {
		judge_closing(dump, conn, object);
	} else if (conn->state != RT_CONN_ESTABLISHED) {
		judge_handshake(dump, conn, object);
	} else {
		judge_sends(dump, conn, object);
		judge_receives(dump, conn, object);
		judge_credit(dump, conn, object);
	}
}
