/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * item.h -- the items of a connection besides completions: events about itself,
 * and WRITABLE. Runs on its poller.
 */

#ifndef RT_CONN_ITEM_H
#define RT_CONN_ITEM_H

#include "conn/conn.h"

/* The user pointer of the connection's completions. */
void *rt_item_user(const struct rpma_rt_conn *conn);
struct rpma_rt_completion rt_item_event(const struct rpma_rt_conn *conn,
					enum rpma_rt_event event);
struct rpma_rt_completion rt_item_writable(const struct rpma_rt_conn *conn,
					   int side);
/* To the connection's own queue, if it has one: an item, an event. */
void rt_item_write(struct rpma_rt_conn *conn,
		   const struct rpma_rt_completion *item);
void rt_item_write_event(struct rpma_rt_conn *conn, enum rpma_rt_event event);

#endif /* RT_CONN_ITEM_H */
