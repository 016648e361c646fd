/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Taking completions for programs built with librpma 0.9, whose struct is
 * shorter and whose enum rpma_op knows no write with immediate data.
 */

#include "legacy.h"

#include <assert.h>

#include "log.h"

static_assert(sizeof(void *) != 8 || sizeof(struct rpma__completion_0_9) == 24,
	      "the struct of 0.9 had 24 bytes");
static_assert(sizeof(void *) != 8 || sizeof(struct rpma_completion) == 32,
	      "the struct of 0.10 had 32 bytes");

int rpma__conn_next_completion_0_9(const struct rpma_conn *conn,
				   struct rpma__completion_0_9 *cmpl)
{
	struct rpma_completion newer;
	bool success;
	int ret;

	if (cmpl == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", cmpl);
	ret = rpma_conn_next_completion(conn, &newer);
	if (ret)
		return ret;

	success = newer.op_status == IBV_WC_SUCCESS;
	if (success && newer.op == RPMA_OP_RECV_RDMA_WITH_IMM) {
		RPMA_LOG_ERROR("release 0.9 has no name for a write with "
			       "immediate data");
		return RPMA_E_NOSUPP;
	}
	cmpl->op_context = newer.op_context;
	cmpl->op_status = newer.op_status;
	if (success) {
		cmpl->op = newer.op;
		cmpl->byte_len = newer.byte_len;
	}
	return 0;
}

int rpma__conn_completion_get_0_9(struct rpma_conn *conn,
				  struct rpma__completion_0_9 *cmpl)
{
	return rpma__conn_next_completion_0_9(conn, cmpl);
}
