/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * What the calls from before 1.0 share. releases.txt lists which release had
 * which call; the version nodes are made from it.
 */

#ifndef RPMA_LEGACY_H
#define RPMA_LEGACY_H 1

#include "conn.h"
#include "librpma_legacy.h"
#include "log.h"

/* struct rpma_completion as 0.9 had it: its callers have no room for more. */
struct rpma__completion_0_9 {
	void *op_context;
	enum rpma_op op; /* without RPMA_OP_RECV_RDMA_WITH_IMM */
	uint32_t byte_len;
	enum ibv_wc_status op_status;
};

/*
 * The CQ that calls on a connection are about. E_INVAL: NULL. E_FORKED.
 * E_SHARED_CHANNEL: it is claimed, and its completions are its owner's.
 */
static inline int rpma__legacy_cq(const struct rpma_conn *conn,
				  struct rpma_cq **cq_ptr)
{
	if (!rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", conn);
	if (rpma__claim_is_held(&conn->claim))
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "conn is claimed: its completions are its "
				   "owner's");
	*cq_ptr = conn->cq;
	return 0;
}

/* In the node of 0.9 as rpma_conn_completion_get, _next_completion. */
int rpma__conn_completion_get_0_9(struct rpma_conn *conn,
				  struct rpma__completion_0_9 *cmpl);
int rpma__conn_next_completion_0_9(const struct rpma_conn *conn,
				   struct rpma__completion_0_9 *cmpl);

#endif /* RPMA_LEGACY_H */
