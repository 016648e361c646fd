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
	struct rpma_rt_queue *requests; /* main consumes it */
	struct rpma_rt_listener *listener;
	uint16_t port; /* it listens on */
	unsigned next_worker;
	bool is_stopping;
	/* of each link's number: its connection, also when that is gone */
	const struct rpma_rt_conn *handles[TICKET_LINKS];
};

/* Listens on address. NULL: one line on stderr said why. */
struct server *server_new(const struct options *options, const char *address,
			  struct rpma_rt *rt, struct rpma_peer *peer,
			  unsigned first_id);
/* Takes connection requests; waits up to timeout_ms for the first. */
void server_accept(struct server *server, int timeout_ms);
/* No more requests; workers finish what is outstanding and close. */
void server_stop(struct server *server);
/* After end_join(). */
void server_delete(struct server **server_ptr);

#endif /* ECHO_SERVER_H */
