/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.h: the ends of this process from start to drained. Thread: main.
 */

#ifndef ECHO_RUN_H
#define ECHO_RUN_H

#include "client.h"
#include "device.h"
#include "server.h"

struct echo {
	const struct options *options;
	struct device device;
	/* one for both ends; in manual mode one each, the client's second */
	struct rpma_rt *rts[2];
	struct server *server; /* NULL: only a client */
	struct client *client; /* NULL: only a server */
};

/* From a signal handler: finish; the second time: exit now. */
void echo_interrupt(void);

/* false: one line on stderr said why; close it all the same. */
bool echo_open(struct echo *echo, const struct options *options);
/* Runs, drains, prints the tables. true: all is well. */
bool echo_run(struct echo *echo);
/* false: something was not given back. */
bool echo_close(struct echo *echo);

#endif /* ECHO_RUN_H */
