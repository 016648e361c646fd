/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * name.h -- the name of a connection in the log and in a dump.
 */

#ifndef RT_CONN_NAME_H
#define RT_CONN_NAME_H

#include "conn/conn.h"

/* Sets the connection's number in this process, and the name made of that. Any
 * thread, before another thread can see the connection. */
void rt_name_init(struct rpma_rt_conn *conn);
/* Any thread that holds the connection; name has room for every one. */
void rt_name_copy(struct rpma_rt_conn *conn, char *name);

/* The calling thread has the name, or the directory's lock. */
static inline const char *rt_name_of(const struct rpma_rt_conn *conn)
{
	return conn->is_named ? conn->name.given : conn->name.text;
}

#endif /* RT_CONN_NAME_H */
