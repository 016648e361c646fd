/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * both.h: the beginning and the end of the runtime's small examples, with both
 * ends of all connections in one process: a peer, a page of memory for
 * messages, a runtime, a listener on a free port.
 */

#ifndef EXAMPLES_BOTH_H
#define EXAMPLES_BOTH_H

#include <stdbool.h>

#include <rpma_rt.h>

#define MESSAGE 64 /* bytes */

/* One end of a connection; the user pointer of everything that comes of it. */
struct end {
	struct rpma_rt_conn *conn;
	size_t in;  /* of the page: where it receives, */
	size_t out; /* and sends from */
	int number;
	bool is_closed;
};

struct both {
	const char *address;
	char port[8];
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	char *page;
	size_t used;	  /* of the page */
	uint32_t futures; /* of each connection and side */
	struct rpma_rt *rt;
	struct rpma_rt_listener *listener;
	struct rpma_rt_pool *pool; /* the receives come from it; NULL: none */
};

/* Says on stderr what failed if ret is negative, and passes ret on. */
int rt_check(const char *what, int ret);
#define TRY(call) rt_check(#call, call)

/* Says how the program is called, if it is not. */
int both_usage(int argc, char **argv);

/* cfg may be NULL; whatever is there is freed by both_close(). */
int both_open(struct both *both, const char *address,
	      const struct rpma_rt_cfg *cfg);
/* Stops the runtime and frees all but queues and handles: those before. */
int both_stop(struct both *both);
void both_close(struct both *both);

/* Requests come to that queue; NULL: they are futures. */
int both_listen(struct both *both, struct rpma_rt_queue *queue);
/* Begins a connection to the listener; what comes of it comes to queue, or by
 * futures. */
int both_connect(struct both *both, struct rpma_rt_queue *queue,
		 struct end *end);

/* One request too many: somebody else's. */
int both_refuse(struct rpma_rt_conn *conn);

/* Gives the end its places in the page. */
void end_init(struct both *both, struct end *end, int number);
/* READY: a receive first, unless a pool has them, then connect. */
int end_connect(struct both *both, struct end *end);
/* REQUEST: the same for a connection that becomes this end's. */
int end_accept(struct both *both, struct end *end, struct rpma_rt_conn *conn);
/* The same for READY; CLOSED is noted; other events need nothing. */
int end_event(struct both *both, const struct rpma_rt_completion *event);
/* The next message is received, */
int end_receive(struct both *both, struct end *end);
/* this text sent: at once, or, where the post is refused for now, */
int end_send(struct both *both, struct end *end, const char *text);
/* when WRITABLE has come. A message can be here before our ESTABLISHED, and
 * before that nothing can be sent. */
int end_send_again(struct both *both, struct end *end);
const char *end_heard(const struct both *both, const struct end *end);

#endif /* EXAMPLES_BOTH_H */
