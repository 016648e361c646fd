/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * messages.h -- a stage for futures of the next item: numbered messages of a
 * peer, from a pool, to a connection without a queue or to an SRQ shared by
 * such connections; or numbered requests of peers, to a listener without a
 * queue.
 */

#ifndef MESSAGES_H
#define MESSAGES_H

#include <stdbool.h>

#include "stage.h"

#define MESSAGES_DEPTH	 16 /* of queues, and of the SRQ */
#define MESSAGES_FUTURES 8
#define MESSAGES_SLOTS	 64
#define MESSAGES_PATIENT WORLD_PATIENCE_MS

#define MESSAGES_REQUESTS 32 /* the most requests of a listener */

/* where items come from */
enum messages_of { MESSAGES_OF_CONN, MESSAGES_OF_SRQ, MESSAGES_OF_LISTENER };

struct messages {
	struct stage s;
	enum messages_of of;
	struct world_pair pair; /* the active end gets messages */
	struct rpma_rt_pool *pool;
	struct rpma_rt_srq *srq; /* NULL: the receives are the connection's */
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *peers[MESSAGES_REQUESTS]; /* the peers */
	uint32_t sent; /* the number of the next item: in imm, private data */
	uint32_t seed;
};

void messages_open(struct messages *m, enum rpma_rt_mode mode,
		   enum messages_of of);
/* SRQ and pool go, and the stage; no connection is left. */
void messages_end(struct messages *m);
/* Makes another pool of the same shape. */
struct rpma_rt_pool *messages_pool(struct messages *m);
/*
 * Makes another SRQ of the pool, with so many futures. queue NULL: without a
 * queue
 */
struct rpma_rt_srq *messages_srq(struct messages *m,
				 struct rpma_rt_queue *queue, uint32_t futures);

/*
 * Makes a pair whose active end gets messages by futures; user is the user
 * pointer of the active end.
 */
void messages_pair(struct messages *m, void *user, struct world_pair *pair);
/* The source of m begins; numbers begin at 0. */
void messages_join(struct messages *m);
/* The peer ends the source, except for its handle: the passive end goes, and
 * CLOSED of the other end has been seen (an SRQ ends when deleted); or the
 * listener drains. */
void messages_close(struct messages *m, struct world_pair *pair);
/* The source's handle goes. */
void messages_let_go(struct messages *m);
/* Closes everything. */
void messages_part(struct messages *m, struct world_pair *pair);
/* Closes the peers of a listener, which were refused or closed. */
void messages_forget_peers(struct messages *m);
/*
 * messages_futures() is the limit of held futures; messages_last() is the event
 * after the last item.
 */
uint32_t messages_futures(const struct messages *m);
enum rpma_rt_event messages_last(const struct messages *m);
/* Waits for an event by a future, which is dropped. */
struct rpma_rt_completion messages_event(struct rpma_rt_conn *conn,
					 enum rpma_rt_event event);

/* Posts a message with the number and the context (the next message has the
 * context 0), and waits until so many have arrived. */
void messages_send(struct messages *m, struct world_pair *pair, uint32_t number,
		   uint64_t context);
void messages_post(struct messages *m, struct world_pair *pair);
void messages_tell(struct messages *m, int count);
/* Posts messages whose first go to waiting futures: requests come in this order
 * only if each has arrived before the next is sent. */
void messages_tell_to(struct messages *m, int count,
		      struct rpma_rt_future *const *futures, int waiting);

/* 0 or an error. */
int messages_ask(const struct messages *m, struct rpma_rt_future *future);
struct rpma_rt_future messages_next(const struct messages *m);
void messages_drop(struct rpma_rt_future *future);
/* Asserts that the future has an unread item. */
void messages_has(struct rpma_rt_future *future);
/* The number of the item. */
uint32_t messages_number(const struct messages *m,
			 const struct rpma_rt_completion *cmpl);
/* Asserts that the result is the item with the number: releases a lease, or
 * refuses a request. */
void messages_is(const struct messages *m,
		 const struct rpma_rt_completion *cmpl, uint32_t number);
/*
 * Asserts that the future, or the next future, brings the number; drops the
 * future.
 */
void messages_brings(const struct messages *m, struct rpma_rt_future *future,
		     uint32_t number);
void messages_take(struct messages *m, uint32_t number);
/*
 * Asserts that the future brings the event, which is no success; drops the
 * future.
 */
void messages_is_over(struct rpma_rt_future *future, enum rpma_rt_event event);

#endif /* MESSAGES_H */
