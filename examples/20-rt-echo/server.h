/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server.h: accepts connections and sends every message back. Thread: main.
 */

#ifndef ECHO_SERVER_H
#define ECHO_SERVER_H

#include "end.h"

struct server {
	struct end end;
	struct rpma_rt_queue *requests; /* consumed by main */
	struct rpma_rt_listener *listener;
	uint16_t port; /* of the listener */
	unsigned next_worker;
	bool is_stopping;
	/* by number of the link: the connection, also after the connection is
	 * gone */
	const struct rpma_rt_conn *handles[TICKET_LINKS];
};

/*
 * Makes a server listening on address; returns NULL after a message on stderr.
 */
struct server *server_new(const struct options *options, const char *address,
			  struct rpma_rt *rt, struct rpma_peer *peer,
			  unsigned first_id);
/* Takes connection requests; waits up to timeout_ms for the first. */
void server_accept(struct server *server, int timeout_ms);
/* Stops taking requests; workers finish outstanding work and close. */
void server_stop(struct server *server);
/* Deletes a server, after end_join(). */
void server_delete(struct server **server_ptr);

#endif /* ECHO_SERVER_H */
