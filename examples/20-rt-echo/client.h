/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client.h: the load generator. Thread: main.
 */

#ifndef ECHO_CLIENT_H
#define ECHO_CLIENT_H

#include "end.h"

struct client {
	struct end end; /* first: the end of a worker leads here */
	/* of the server, set before the workers run */
	const char *address;
	uint16_t port;
};

/* Makes a client; returns NULL after a message on stderr. */
struct client *client_new(const struct options *options, struct rpma_rt *rt,
			  struct rpma_peer *peer, unsigned first_id);
/* Starts all connections, which send after COMMAND_GO. */
bool client_connect(struct client *client, const char *address, uint16_t port);
bool client_is_connected(const struct client *client);
/* Deletes a client, after end_join(). */
void client_delete(struct client **client_ptr);

#endif /* ECHO_CLIENT_H */
