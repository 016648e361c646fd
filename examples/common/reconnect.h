/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reconnect.h: a connection that is made again when the connection has ended,
 * after a pause that doubles with each failure. Meant to be copied: needs
 * reconnect.c, futures.h and clock.h.
 *
 * A pause is between half of the current length and all of the length, by
 * chance, so that the clients of a server that ended do not come back at the
 * same moment. A program with a queue calls reconnect_event() and
 * reconnect_tick(), a program of futures reconnect_poll(). Thread: the consumer
 * of the queue, or a single thread.
 */

#ifndef EXAMPLES_RECONNECT_H
#define EXAMPLES_RECONNECT_H

#include <rpma_rt.h>

#define RECONNECT_NEVER UINT64_MAX

/* The program fills the first part, the rest is zero. */
struct reconnect {
	struct rpma_rt *rt;
	const char *address, *port;
	struct rpma_rt_conn_cfg cfg; /* user: in each item */
	struct rpma_conn_private_data pdata;
	uint32_t first_ms, most_ms; /* pauses */
	uint64_t random;	    /* a seed, of each client another */

	struct rpma_rt_conn *conn; /* NULL: none; can be used while is_up */
	bool is_up;
	bool is_ending;
	uint32_t pause_ms;
	uint64_t retry_ns; /* when to connect, RECONNECT_NEVER: not now */
	/* futures of reconnect_poll(), to wait for the next event */
	struct rpma_rt_future step, closed;
};

enum reconnect_change {
	RECONNECT_NOTHING,
	RECONNECT_UP,  /* established: the handle can send */
	RECONNECT_DOWN /* ended: no request is answered any more */
};

/* Handles an event of the connection. */
enum reconnect_change reconnect_event(struct reconnect *reconnect,
				      const struct rpma_rt_completion *event,
				      uint64_t now_ns);
/* Connects if the time has come; returns when to call again. */
uint64_t reconnect_tick(struct reconnect *reconnect, uint64_t now_ns);
/*
 * Does the work of both calls above, by futures; to be called at retry_ns if
 * there is no connection. RECONNECT_DOWN: *closed is the result of
 * RPMA_RT_EVENT_CLOSED, also of a connection that was never up, and the program
 * calls reconnect_leave().
 */
enum reconnect_change reconnect_poll(struct reconnect *reconnect,
				     uint64_t now_ns,
				     struct rpma_rt_completion *closed);
/* Gives the handle of an ended connection back, behind everything that the
 * program holds of the connection. */
void reconnect_leave(struct reconnect *reconnect, uint64_t now_ns);
/* Closes the connection, and makes no other. */
void reconnect_end(struct reconnect *reconnect);

#endif /* EXAMPLES_RECONNECT_H */
