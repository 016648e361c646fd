/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * both.h: the common start and end of small examples of the runtime, with both
 * ends of all connections in one process: a peer, a page of memory for
 * messages, a runtime, a listener on a free port.
 */

#ifndef EXAMPLES_BOTH_H
#define EXAMPLES_BOTH_H

#include <stdbool.h>

#include "try.h"

#define MESSAGE 64 /* bytes */

/* An end of a connection; the user pointer of all items of the end. */
struct end {
	struct rpma_rt_conn *conn;
	size_t in;  /* in the page: for receives, */
	size_t out; /* and for sends */
	int number;
	bool is_closed;
};

struct both {
	const char *address;
	char port[8];
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	char *page;
	size_t used;	  /* bytes of the page */
	uint32_t futures; /* of each connection and side */
	struct rpma_rt *rt;
	struct rpma_rt_listener *listener;
	struct rpma_rt_pool *pool; /* source of the receives; NULL: the program
				    * posts receives */
};

/* Prints the usage unless the program has exactly one argument. */
int both_usage(int argc, char **argv);

/*
 * Opens everything; cfg may be NULL. After a failure, too, both_close() frees
 * everything.
 */
int both_open(struct both *both, const char *address,
	      const struct rpma_rt_cfg *cfg);
/*
 * both_stop() stops the runtime; both_close() frees everything but queues and
 * handles, which the program frees before.
 */
int both_stop(struct both *both);
void both_close(struct both *both);

/* Listens; requests come to the queue, or, if queue is NULL, are futures. */
int both_listen(struct both *both, struct rpma_rt_queue *queue);
/* Starts a connection to the listener; items come to the queue, or by
 * futures. */
int both_connect(struct both *both, struct rpma_rt_queue *queue,
		 struct end *end);

/* Refuses a request of another client. */
int both_refuse(struct rpma_rt_conn *conn);

/* Assigns places in the page to the end. */
void end_init(struct both *both, struct end *end, int number);
/* Handles READY: posts a receive, unless there is a pool, then connects. */
int end_connect(struct both *both, struct end *end);
/*
 * Handles REQUEST: gives the connection to the end, posts a receive, accepts.
 */
int end_accept(struct both *both, struct end *end, struct rpma_rt_conn *conn);
/*
 * Handles READY by end_connect(), and notes CLOSED; other events need nothing.
 */
int end_event(struct both *both, const struct rpma_rt_completion *event);
/* Posts a receive for the next message. */
int end_receive(struct both *both, struct end *end);
/*
 * Sends the text: at once or, if the post is refused for now, by
 * end_send_again().
 */
int end_send(struct both *both, struct end *end, const char *text);
/* Sends the text of end_send() again, after WRITABLE. A message may arrive
 * before ESTABLISHED, and before ESTABLISHED nothing can be sent. */
int end_send_again(struct both *both, struct end *end);
const char *end_heard(const struct both *both, const struct end *end);

#endif /* EXAMPLES_BOTH_H */
