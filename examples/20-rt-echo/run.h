/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.h: the ends of this process from start to the end of draining. Thread:
 * main.
 */

#ifndef ECHO_RUN_H
#define ECHO_RUN_H

#include "client.h"
#include "device.h"
#include "server.h"

struct echo {
	const struct options *options;
	struct device device;
	/* one for both ends; in manual mode one for each end, the second for
	 * the client */
	struct rpma_rt *rts[2];
	struct server *server; /* NULL: only a client */
	struct client *client; /* NULL: only a server */
};

/* Finishes the run, from a signal handler; the second call exits at once. */
void echo_interrupt(void);

/*
 * Opens everything. Returns false after a message on stderr; echo_close() is
 * needed in either case.
 */
bool echo_open(struct echo *echo, const struct options *options);
/* Runs, drains, prints the tables. Returns true if no check failed. */
bool echo_run(struct echo *echo);
/* Closes everything. Returns false if a resource could not be freed. */
bool echo_close(struct echo *echo);

#endif /* ECHO_RUN_H */
