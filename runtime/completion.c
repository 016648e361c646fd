/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * completion.c -- converts a completion into a work completion of verbs, and
 * into text; texts of errors.
 */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rpma_rt.h"

static_assert(sizeof(struct rpma_rt_completion) == 32, "two a cache line");

void rpma_rt_completion_to_wc(const struct rpma_rt_completion *cmpl,
			      struct ibv_wc *wc)
{
	assert(cmpl != NULL && wc != NULL);
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cmpl->context;
	wc->status = (enum ibv_wc_status)cmpl->status;
	wc->opcode = (enum ibv_wc_opcode)cmpl->opcode;
	wc->qp_num = cmpl->qp_num;
	if (cmpl->status != IBV_WC_SUCCESS) {
		wc->vendor_err = cmpl->imm;
		return;
	}
	wc->byte_len = cmpl->byte_len;
	wc->imm_data = cmpl->imm;
	wc->wc_flags = cmpl->flags & (RPMA_RT_C_WITH_IMM | RPMA_RT_C_WITH_INV);
}

/* ----------------------------------------------------------------- text --- */

static const char *opcode_2str(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WC_SEND:
		return "send";
	case IBV_WC_RDMA_WRITE:
		return "write";
	case IBV_WC_RDMA_READ:
		return "read";
	case IBV_WC_COMP_SWAP:
		return "compare and swap";
	case IBV_WC_FETCH_ADD:
		return "fetch and add";
	case IBV_WC_RECV:
		return "receive";
	case IBV_WC_RECV_RDMA_WITH_IMM:
		return "receive of a write";
	default:
		return "operation";
	}
}

static const char *event_2str(uint8_t event)
{
	switch (event) {
	case RPMA_RT_EVENT_REQUEST:
		return "request";
	case RPMA_RT_EVENT_READY:
		return "ready";
	case RPMA_RT_EVENT_ESTABLISHED:
		return "established";
	case RPMA_RT_EVENT_CLOSED:
		return "closed";
	case RPMA_RT_EVENT_ROUTE_CLOSED:
		return "route closed";
	case RPMA_RT_EVENT_SRQ_LIMIT:
		return "SRQ limit";
	case RPMA_RT_EVENT_SRQ_CLOSED:
		return "SRQ closed";
	case RPMA_RT_EVENT_LISTENER_CLOSED:
		return "listener closed";
	case RPMA_RT_EVENT_SRQ_FAILED:
		return "SRQ failed";
	case RPMA_RT_EVENT_POOL_CLOSED:
		return "pool closed";
	default:
		return "unknown";
	}
}

static const char *side_2str(uint8_t side)
{
	switch (side) {
	case RPMA_RT_SEND_SIDE:
		return "sends";
	case RPMA_RT_RECV_SIDE:
		return "receives";
	default:
		return "SRQ";
	}
}

/* Is the status of that event an enum rpma_rt_reason? */
static bool has_reason(const struct rpma_rt_completion *cmpl)
{
	return cmpl->opcode == RPMA_RT_EVENT_CLOSED ||
	       cmpl->opcode == RPMA_RT_EVENT_LISTENER_CLOSED ||
	       cmpl->opcode == RPMA_RT_EVENT_SRQ_FAILED ||
	       cmpl->opcode == RPMA_RT_EVENT_POOL_CLOSED;
}

/* What the status does not say. */
static const char *outcome_2str(uint8_t flags)
{
	if (flags & RPMA_RT_C_NOT_POSTED)
		return " (not posted)";
	return flags & RPMA_RT_C_SYNTHESIZED ? " (synthesized)" : "";
}

char *rpma_rt_completion_2str(const struct rpma_rt_completion *cmpl, char *buf,
			      size_t len)
{
	assert(cmpl != NULL && buf != NULL);
	switch (cmpl->kind) {
	case RPMA_RT_COMPLETION:
		snprintf(buf, len,
			 "%s of QP %" PRIu32 ": %s%s, context %#" PRIx64
			 ", %" PRIu32 " bytes, imm %#" PRIx32,
			 opcode_2str(cmpl->opcode), cmpl->qp_num,
			 ibv_wc_status_str((enum ibv_wc_status)cmpl->status),
			 outcome_2str(cmpl->flags), cmpl->context,
			 cmpl->byte_len, cmpl->imm);
		break;
	case RPMA_RT_EVENT:
		snprintf(buf, len,
			 "event of QP %" PRIu32 ": %s%s%s, status %" PRId32,
			 cmpl->qp_num, event_2str(cmpl->opcode),
			 has_reason(cmpl) ? ", " : "",
			 has_reason(cmpl)
				 ? rpma_rt_reason_2str(
					   (enum rpma_rt_reason)cmpl->status)
				 : "",
			 (int32_t)cmpl->imm);
		break;
	case RPMA_RT_MESSAGE:
		snprintf(buf, len,
			 "message: context %#" PRIx64 ", %" PRIu32
			 " bytes, imm %#" PRIx32,
			 cmpl->context, cmpl->byte_len, cmpl->imm);
		break;
	case RPMA_RT_WRITABLE:
		snprintf(buf, len, "writable of QP %" PRIu32 ": %s",
			 cmpl->qp_num, side_2str(cmpl->opcode));
		break;
	default:
		snprintf(buf, len, "no item: kind %d", cmpl->kind);
	}
	return buf;
}
