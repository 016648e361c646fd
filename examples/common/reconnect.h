/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reconnect.h: a connection that is made again when the connection has ended,
 * after a pause that doubles with each failure. Meant to be copied: needs
 * reconnect.c and nothing else.
 *
 * A pause is between half of the current length and all of the length, by
 * chance, so that the clients of a server that ended do not come back at the
 * same moment. Thread: the consumer of the queue.
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
/* Closes the connection, and makes no other. */
void reconnect_end(struct reconnect *reconnect);

#endif /* EXAMPLES_RECONNECT_H */
