/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Waiting for completions of a connection as if the connection had a single CQ.
 */

#include "legacy.h"
#include "log.h"

int rpma_conn_prepare_completions(const struct rpma_conn *conn)
{
	struct rpma_cq *cq = NULL;
	int ret = rpma__legacy_cq(conn, &cq);

	return ret ? ret : rpma_cq_wait(cq);
}

int rpma_conn_completion_wait(struct rpma_conn *conn)
{
	return rpma_conn_prepare_completions(conn);
}

int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd)
{
	struct rpma_cq *cq = NULL;
	int ret;

	if (fd == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", fd);
	ret = rpma__legacy_cq(conn, &cq);
	return ret ? ret : rpma_cq_get_fd(cq, fd);
}
