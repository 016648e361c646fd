/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Taking completions one by one, as the struct of librpma in place of struct
 * ibv_wc. A native flush completes as a read, a native atomic write as a write,
 * as on a device without the native operations: old programs know no other
 * names. A completion without a name in enum rpma_op is taken too, and is an
 * error.
 */

#include "legacy.h"

#include <arpa/inet.h>

#include "log.h"
#include "verbs_compat.h"

static int completion_op_from_opcode(enum ibv_wc_opcode opcode,
				     enum rpma_op *op)
{
	switch (rpma__wc_emulated(opcode)) {
	case IBV_WC_RDMA_READ:
		*op = RPMA_OP_READ;
		return 0;
	case IBV_WC_RDMA_WRITE:
		*op = RPMA_OP_WRITE;
		return 0;
	case IBV_WC_SEND:
		*op = RPMA_OP_SEND;
		return 0;
	case IBV_WC_RECV:
		*op = RPMA_OP_RECV;
		return 0;
	case IBV_WC_RECV_RDMA_WITH_IMM:
		*op = RPMA_OP_RECV_RDMA_WITH_IMM;
		return 0;
	default:
		RPMA_LOG_ERROR("opcode %d has no name in enum rpma_op",
			       (int)opcode);
		return RPMA_E_NOSUPP;
	}
}

static bool completion_has_imm(const struct ibv_wc *wc)
{
	return (wc->opcode & IBV_WC_RECV) && (wc->wc_flags & IBV_WC_WITH_IMM);
}

/*
 * Converts a work completion. After a failure neither opcode nor length is
 * valid.
 */
static int completion_from_wc(const struct ibv_wc *wc,
			      struct rpma_completion *cmpl)
{
	int ret;

	if (wc->status == IBV_WC_SUCCESS) {
		ret = completion_op_from_opcode(wc->opcode, &cmpl->op);
		if (ret)
			return ret;
		cmpl->byte_len = wc->byte_len;
		cmpl->flags = wc->wc_flags;
		if (completion_has_imm(wc))
			cmpl->imm = ntohl(wc->imm_data);
	} else {
		RPMA_LOG_WARNING("operation 0x%llx failed: %s",
				 (unsigned long long)wc->wr_id,
				 ibv_wc_status_str(wc->status));
	}
	cmpl->op_context = (void *)(uintptr_t)wc->wr_id;
	cmpl->op_status = wc->status;
	return 0;
}

int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl)
{
	struct ibv_wc wc;
	int ret;

	if (cmpl == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", cmpl);
	ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
	if (ret)
		return ret;
	return completion_from_wc(&wc, cmpl);
}

int rpma_conn_next_completion(const struct rpma_conn *conn,
			      struct rpma_completion *cmpl)
{
	struct rpma_cq *cq = NULL;
	int ret;

	if (cmpl == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", cmpl);
	ret = rpma__legacy_cq(conn, &cq);
	return ret ? ret : rpma_cq_get_completion(cq, cmpl);
}

int rpma_conn_completion_get(struct rpma_conn *conn,
			     struct rpma_completion *cmpl)
{
	return rpma_conn_next_completion(conn, cmpl);
}
