/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listed.h -- the runtime's lists of connections: those that are not DONE, and
 * those that are, as long as the program holds them.
 */

#ifndef RT_CONN_LISTED_H
#define RT_CONN_LISTED_H

#include <stdbool.h>

struct rpma_rt;
struct rpma_rt_conn;

/* REQUIRES: the runtime's lock, both */
void rt_listed_add(struct rpma_rt_conn *conn);
/* It is DONE: a dump does not look at what it names any more. */
void rt_listed_end(struct rpma_rt_conn *conn);

/* The last holder has put it. True: the caller frees it; false, on a poller:
 * a later call of rt_listed_take_left() returns it. */
bool rt_listed_remove(struct rpma_rt_conn *conn);
/* Connections that are left to be freed, linked by left_next; NULL: none. Not
 * on a poller. */
struct rpma_rt_conn *rt_listed_take_left(struct rpma_rt *rt);

#endif /* RT_CONN_LISTED_H */
