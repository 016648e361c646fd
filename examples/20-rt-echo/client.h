/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client.h: the load generator. Thread: main.
 */

#ifndef ECHO_CLIENT_H
#define ECHO_CLIENT_H

#include "end.h"

struct client {
	struct end end; /* first: a worker's end leads here */
	/* the server's, set before the workers run */
	const char *address;
	uint16_t port;
};

/* NULL: one line on stderr said why. */
struct client *client_new(const struct options *options, struct rpma_rt *rt,
			  struct rpma_peer *peer, unsigned first_id);
/* Begins all connections; they start sending when told COMMAND_GO. */
bool client_connect(struct client *client, const char *address, uint16_t port);
bool client_is_connected(const struct client *client);
/* After end_join(). */
void client_delete(struct client **client_ptr);

#endif /* ECHO_CLIENT_H */
