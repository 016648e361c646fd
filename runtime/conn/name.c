/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * name.c -- the name of a connection in the log and in a dump. A dump reads the
 * name under the directory's lock, so it is written under that; from connect on
 * it stays. Thread: the owner of the handle.
 */

#include "conn/name.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "conn/conn.h"

static _Atomic uint32_t last_number;

void rt_name_init(struct rpma_rt_conn *conn)
{
	/* relaxed: just a number */
	conn->number = atomic_fetch_add_explicit(&last_number, 1,
						 memory_order_relaxed) +
		       1;
	snprintf(conn->name, sizeof(conn->name), "conn %" PRIu32, conn->number);
}

void rt_name_copy(struct rpma_rt_conn *conn, char *name)
{
	pthread_mutex_lock(&conn->rt->directory);
	memcpy(name, conn->name, sizeof(conn->name));
	pthread_mutex_unlock(&conn->rt->directory);
}

/* The name goes into a line of the log and into a dump as it is. */
static int check_name(const char *name, size_t len)
{
	size_t i;

	if (len == 0 || len > RPMA_RT_NAME_MAX) {
		RT_LOG_ERROR("a connection's name has 1 to %d characters",
			     RPMA_RT_NAME_MAX);
		return RPMA_E_INVAL;
	}
	for (i = 0; i < len; i++) {
		if (name[i] >= ' ' && name[i] <= '~')
			continue;
		RT_LOG_ERROR("character %zu of a connection's name is %d: no "
			     "printable ASCII character",
			     i, name[i]);
		return RPMA_E_INVAL;
	}
	return 0;
}

int rpma_rt_conn_set_name(struct rpma_rt_conn *conn, const char *name)
{
	size_t len;
	int ret;

	if (conn == NULL || name == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check_wait(conn->rt);
	if (ret)
		return ret;
	/* relaxed: the calling thread's own doing */
	if (atomic_load_explicit(&conn->reached, memory_order_relaxed) &
	    RT_REACHED_DECISION)
		return RPMA_E_INVAL;
	len = strnlen(name, RPMA_RT_NAME_MAX + 1);
	ret = check_name(name, len);
	if (ret)
		return ret;
	pthread_mutex_lock(&conn->rt->directory);
	memcpy(conn->name, name, len);
	conn->name[len] = '\0';
	conn->is_named = true;
	pthread_mutex_unlock(&conn->rt->directory);
	return 0;
}

const char *rpma_rt_conn_get_name(const struct rpma_rt_conn *conn)
{
	return conn == NULL ? NULL : conn->name;
}
