/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Common parts of the calls from before 1.0. releases.txt lists the calls of
 * each release; the version nodes are generated from the list.
 */

#ifndef RPMA_LEGACY_H
#define RPMA_LEGACY_H 1

#include "conn.h"
#include "librpma_legacy.h"
#include "log.h"

/*
 * struct rpma_completion of release 0.9: callers of 0.9 have no room for more.
 */
struct rpma__completion_0_9 {
	void *op_context;
	enum rpma_op op; /* without RPMA_OP_RECV_RDMA_WITH_IMM */
	uint32_t byte_len;
	enum ibv_wc_status op_status;
};

/*
 * Returns the CQ of a connection for the calls from before 1.0. Fails with
 * E_INVAL if conn is NULL, with E_FORKED in a child, and with E_SHARED_CHANNEL
 * if the connection is claimed: the completions then belong to the owner.
 */
static inline int rpma__legacy_cq(const struct rpma_conn *conn,
				  struct rpma_cq **cq_ptr)
{
	if (!rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", conn);
	if (rpma__claim_is_held(&conn->claim))
		return RPMA_REFUSE(
			RPMA_E_SHARED_CHANNEL,
			"conn is claimed: the completions belong to the owner");
	*cq_ptr = conn->cq;
	return 0;
}

/*
 * rpma_conn_completion_get() and rpma_conn_next_completion() in the node of
 * 0.9.
 */
int rpma__conn_completion_get_0_9(struct rpma_conn *conn,
				  struct rpma__completion_0_9 *cmpl);
int rpma__conn_next_completion_0_9(const struct rpma_conn *conn,
				   struct rpma__completion_0_9 *cmpl);

#endif /* RPMA_LEGACY_H */
