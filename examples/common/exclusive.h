/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * exclusive.h: a server with a single client, which is always the last client
 * that was let in, such as the writer of a log or the owner of a lock. The next
 * client is accepted when the queue pair of the former client is destroyed: so
 * after the accept nothing of the former client arrives, not even what is still
 * on the network. Meant to be copied: needs nothing but this file. Thread: the
 * consumer of the queue.
 */

#ifndef EXAMPLES_EXCLUSIVE_H
#define EXAMPLES_EXCLUSIVE_H

#include <rpma_rt.h>

/* Begins as zeros. */
struct exclusive {
	struct rpma_rt_conn *client; /* accepted, until CLOSED */
	struct rpma_rt_conn *next;   /* waits for that CLOSED */
};

/* Makes the connection of a request the next client, and closes the present
 * client. Returns a connection that the program has to reject, because the
 * connection was to be next and has waited in vain; or NULL. */
static inline struct rpma_rt_conn *exclusive_admit(struct exclusive *exclusive,
						   struct rpma_rt_conn *conn)
{
	struct rpma_rt_conn *late = exclusive->next;

	exclusive->next = conn;
	if (exclusive->client != NULL)
		rpma_rt_conn_close(exclusive->client);
	return late;
}

/* Returns the connection that the program has to accept now, or NULL. To be
 * called after each of the other two. */
static inline struct rpma_rt_conn *exclusive_take(struct exclusive *exclusive)
{
	if (exclusive->client != NULL || exclusive->next == NULL)
		return NULL;
	exclusive->client = exclusive->next;
	exclusive->next = NULL;
	return exclusive->client;
}

/* Handles RPMA_RT_EVENT_CLOSED of any connection, and gives the handle back. */
static inline void exclusive_closed(struct exclusive *exclusive,
				    struct rpma_rt_conn *conn)
{
	if (conn == exclusive->next)
		exclusive->next = NULL;
	if (conn == exclusive->client)
		exclusive->client = NULL;
	rpma_rt_conn_unref(&conn);
}

#endif /* EXAMPLES_EXCLUSIVE_H */
