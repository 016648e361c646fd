/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* reconnect.c: see reconnect.h. */

#include "reconnect.h"

#include "clock.h"
#include "futures.h"

/* Chooses the time of the next try, and doubles the pause. */
static void pause_before(struct reconnect *r, uint64_t now_ns)
{
	uint32_t half = r->pause_ms / 2;

	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	r->retry_ns =
		now_ns + (half + (r->random >> 33) % (half + 1)) * CLOCK_MS;
	r->pause_ms =
		r->pause_ms < r->most_ms / 2 ? 2 * r->pause_ms : r->most_ms;
	if (r->is_ending)
		r->retry_ns = RECONNECT_NEVER;
}

enum reconnect_change reconnect_event(struct reconnect *r,
				      const struct rpma_rt_completion *event,
				      uint64_t now_ns)
{
	bool was_up = r->is_up;

	switch (rpma_rt_completion_event(event)) {
	case RPMA_RT_EVENT_READY:
		if (rpma_rt_conn_connect(r->conn, &r->pdata))
			rpma_rt_conn_close(r->conn);
		return RECONNECT_NOTHING;
	case RPMA_RT_EVENT_ESTABLISHED:
		r->is_up = true;
		r->pause_ms = r->first_ms;
		return RECONNECT_UP;
	case RPMA_RT_EVENT_CLOSED:
		reconnect_leave(r, now_ns);
		return was_up ? RECONNECT_DOWN : RECONNECT_NOTHING;
	default:
		return RECONNECT_NOTHING;
	}
}

uint64_t reconnect_tick(struct reconnect *r, uint64_t now_ns)
{
	if (r->conn != NULL || r->is_ending)
		return RECONNECT_NEVER;
	if (now_ns < r->retry_ns)
		return r->retry_ns;
	if (r->pause_ms == 0)
		r->pause_ms = r->first_ms;
	if (rpma_rt_conn_new(r->rt, r->address, r->port, &r->cfg, &r->conn) ==
	    0)
		return RECONNECT_NEVER;
	pause_before(r, now_ns);
	return r->retry_ns;
}

/* Asks for the futures of a connection. Without a future of CLOSED nobody would
 * see the end, so the connection ends at once. */
static void ask(struct reconnect *r, uint64_t now_ns)
{
	if (rpma_rt_conn_future(r->conn, RPMA_RT_EVENT_CLOSED, &r->closed)) {
		rpma_rt_conn_close(r->conn);
		reconnect_leave(r, now_ns);
	} else if (rpma_rt_conn_future(r->conn, RPMA_RT_EVENT_READY,
				       &r->step)) {
		rpma_rt_conn_close(r->conn);
	}
}

enum reconnect_change reconnect_poll(struct reconnect *r, uint64_t now_ns,
				     struct rpma_rt_completion *closed)
{
	struct rpma_rt_completion event;

	if (r->conn == NULL) {
		reconnect_tick(r, now_ns);
		if (r->conn != NULL)
			ask(r, now_ns);
		return RECONNECT_NOTHING;
	}
	if (rpma_rt_future_poll(&r->closed, closed) == 1)
		return RECONNECT_DOWN;
	if (!future_is_held(&r->step) ||
	    rpma_rt_future_poll(&r->step, &event) != 1)
		return RECONNECT_NOTHING;
	rpma_rt_future_drop(&r->step);
	if (rpma_rt_completion_event(&event) == RPMA_RT_EVENT_CLOSED)
		return RECONNECT_NOTHING; /* the future of CLOSED follows */
	if (reconnect_event(r, &event, now_ns) == RECONNECT_UP)
		return RECONNECT_UP;
	if (rpma_rt_conn_future(r->conn, RPMA_RT_EVENT_ESTABLISHED, &r->step))
		rpma_rt_conn_close(r->conn);
	return RECONNECT_NOTHING;
}

void reconnect_leave(struct reconnect *r, uint64_t now_ns)
{
	rpma_rt_future_drop(&r->step); /* may be zero */
	rpma_rt_future_drop(&r->closed);
	r->is_up = false;
	rpma_rt_conn_unref(&r->conn);
	pause_before(r, now_ns);
}

void reconnect_end(struct reconnect *r)
{
	r->is_ending = true;
	if (r->conn != NULL)
		rpma_rt_conn_close(r->conn);
}
