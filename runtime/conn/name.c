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
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/refuse.h"
#include "base/runtime.h"
#include "conn/conn.h"

static _Atomic uint32_t last_number;

void rt_name_init(struct rpma_rt_conn *conn)
{
	/* relaxed: just a number */
	conn->number = atomic_fetch_add_explicit(&last_number, 1,
						 memory_order_relaxed) +
		       1;
	snprintf(conn->name.text, sizeof(conn->name.text), "conn %" PRIu32,
		 conn->number);
}

void rt_name_copy(struct rpma_rt_conn *conn, char *name)
{
	pthread_mutex_lock(&conn->rt->directory);
	strcpy(name, rt_name_of(conn));
	pthread_mutex_unlock(&conn->rt->directory);
}

/* The name goes into a line of the log and into a dump as it is. */
static int check_name(const char *name, size_t len)
{
	size_t i;

	if (len == 0 || len > RPMA_RT_NAME_MAX)
		return RT_REFUSE(
			RPMA_E_INVAL, "name is %s: give 1 to %d characters",
			len == 0 ? "empty" : "too long", RPMA_RT_NAME_MAX);
	for (i = 0; i < len; i++) {
		if (name[i] >= ' ' && name[i] <= '~')
			continue;
		return RT_REFUSE(
			RPMA_E_INVAL,
			"name[%zu] is %d: no printable ASCII character", i,
			name[i]);
	}
	return 0;
}

int rpma_rt_conn_set_name(struct rpma_rt_conn *conn, const char *name)
{
	char *given;
	size_t len;
	int ret;

	ret = RT_REFUSE_NULL(conn, name);
	if (ret == 0)
		ret = RT_REFUSE_WAIT(conn->rt);
	if (ret)
		return ret;
	/* relaxed: the calling thread's own doing */
	if (atomic_load_explicit(&conn->reached, memory_order_relaxed) &
	    RT_REACHED_DECISION)
		return RT_REFUSE(RPMA_E_INVAL,
				 "\"%s\" was connected or rejected: give it "
				 "its name before that",
				 rt_name_of(conn));
	len = strnlen(name, RPMA_RT_NAME_MAX + 1);
	ret = check_name(name, len);
	if (ret)
		return ret;
	if (conn->is_named)
		given = conn->name.given;
	else
		given = malloc(RPMA_RT_NAME_MAX + 1);
	if (given == NULL)
		return RT_REFUSED(RPMA_E_NOMEM, "the name is as before");
	pthread_mutex_lock(&conn->rt->directory);
	memcpy(given, name, len);
	given[len] = '\0';
	conn->name.given = given;
	conn->is_named = true;
	pthread_mutex_unlock(&conn->rt->directory);
	return 0;
}

const char *rpma_rt_conn_get_name(const struct rpma_rt_conn *conn)
{
	return conn == NULL ? NULL : rt_name_of(conn);
}
