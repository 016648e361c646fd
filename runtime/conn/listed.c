/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listed.c -- see listed.h. The directory's lock is held while a dump copies,
 * so no poller takes it: what a function of the program put last is left on a
 * stack, for the next thread that lists a connection or deletes the runtime.
 * doc/protocols/directory.md.
 */

#include "conn/listed.h"

#include <pthread.h>

#include "base/runtime.h"
#include "base/self.h"
#include "conn/conn.h"

/* REQUIRES: the directory's lock, both */
static void link_conn(struct rpma_rt_conn **list, struct rpma_rt_conn *conn)
{
	conn->prev = NULL;
	conn->next = *list;
	if (*list != NULL)
		(*list)->prev = conn;
	*list = conn;
}

static void unlink_conn(struct rpma_rt_conn **list, struct rpma_rt_conn *conn)
{
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		*list = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
}

void rt_listed_add(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	pthread_mutex_lock(&rt->directory);
	link_conn(&rt->conns, conn);
	pthread_mutex_unlock(&rt->directory);
}

void rt_listed_end(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	pthread_mutex_lock(&rt->directory);
	unlink_conn(&rt->conns, conn);
	link_conn(&rt->ended, conn);
	pthread_mutex_unlock(&rt->directory);
}

static void leave(struct rpma_rt_conn *conn)
{
	/* relaxed: the compare-and-swap decides */
	struct rpma_rt_conn *first =
		atomic_load_explicit(&conn->rt->left, memory_order_relaxed);

	do {
		conn->poll.left_next = first;
		/* release: pairs with the acquire in rt_listed_take_left() */
	} while (!atomic_compare_exchange_weak_explicit(
		&conn->rt->left, &first, conn, memory_order_release,
		memory_order_relaxed));
}

bool rt_listed_remove(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	/* or its futures are to be given back, under the runtime's lock, which
	 * the caller may have */
	if (rt_self_is_poller() ||
	    conn->side[RPMA_RT_SEND_SIDE].futures != NULL) {
		leave(conn);
		return false;
	}
	pthread_mutex_lock(&rt->directory);
	unlink_conn(&rt->ended, conn);
	pthread_mutex_unlock(&rt->directory);
	return true;
}

struct rpma_rt_conn *rt_listed_take_left(struct rpma_rt *rt)
{
	struct rpma_rt_conn *first;
	struct rpma_rt_conn *conn;

	/* relaxed: a hint; the exchange orders */
	if (atomic_load_explicit(&rt->left, memory_order_relaxed) == NULL)
		return NULL;
	/* acquire: pairs with leave(): what their last holders did */
	first = atomic_exchange_explicit(&rt->left, NULL, memory_order_acquire);
	pthread_mutex_lock(&rt->directory);
	for (conn = first; conn != NULL; conn = conn->poll.left_next)
		unlink_conn(&rt->ended, conn);
	pthread_mutex_unlock(&rt->directory);
	return first;
}
