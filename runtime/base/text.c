/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* text.c -- names of the numbers in the public header (errors, reasons), and
 * names of the statuses of verbs. */

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "rpma_rt.h"

/* ----------------------------------------------------------------- text --- */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define NAME(table, i)                                                 \
	((size_t)(i) < COUNT(table) && (table)[i] != NULL ? (table)[i] \
							  : "unknown")

const char *rpma_rt_err_2str(int ret)
{
	switch (ret) {
	case RPMA_RT_E_CLOSED:
		return "Closed or closing";
	case RPMA_RT_E_FORKED:
		return "Made before fork()";
	case RPMA_RT_E_THREAD:
		return "A call that may wait, on a thread that may not";
	case RPMA_RT_E_BUSY:
		return "Still used, or another thread is inside";
	case RPMA_RT_E_FAILED:
		return "Too many of the operations failed";
	default:
		return rpma_err_2str(ret);
	}
}

const char *rpma_rt_reason_2str(enum rpma_rt_reason reason)
{
	static const char *const names[] = {
		[RPMA_RT_REASON_LOCAL] = "local",
		[RPMA_RT_REASON_DISCONNECTED] = "disconnected",
		[RPMA_RT_REASON_REJECTED] = "rejected",
		[RPMA_RT_REASON_UNREACHABLE] = "unreachable",
		[RPMA_RT_REASON_ERROR] = "error",
		[RPMA_RT_REASON_DEVICE] = "device",
		[RPMA_RT_REASON_FAILED] = "failed",
		[RPMA_RT_REASON_STOPPED] = "stopped",
	};

	return NAME(names, reason);
}

const char *rpma_rt_status_2str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "IBV_WC_SUCCESS",
		[IBV_WC_LOC_LEN_ERR] = "IBV_WC_LOC_LEN_ERR, longer than the "
				       "receive or than the device can",
		[IBV_WC_LOC_QP_OP_ERR] = "IBV_WC_LOC_QP_OP_ERR, not possible "
					 "on this queue pair",
		[IBV_WC_LOC_EEC_OP_ERR] = "IBV_WC_LOC_EEC_OP_ERR",
		[IBV_WC_LOC_PROT_ERR] = "IBV_WC_LOC_PROT_ERR, memory of this "
					"side is not registered for it",
		[IBV_WC_WR_FLUSH_ERR] = "IBV_WC_WR_FLUSH_ERR, the connection "
					"ended before it was done",
		[IBV_WC_MW_BIND_ERR] = "IBV_WC_MW_BIND_ERR",
		[IBV_WC_BAD_RESP_ERR] = "IBV_WC_BAD_RESP_ERR",
		[IBV_WC_LOC_ACCESS_ERR] = "IBV_WC_LOC_ACCESS_ERR, memory of "
					  "this side does not allow it",
		[IBV_WC_REM_INV_REQ_ERR] = "IBV_WC_REM_INV_REQ_ERR, the peer "
					   "takes no such request, or has too "
					   "short a receive",
		[IBV_WC_REM_ACCESS_ERR] = "IBV_WC_REM_ACCESS_ERR, memory of "
					  "the peer does not allow it",
		[IBV_WC_REM_OP_ERR] = "IBV_WC_REM_OP_ERR, the peer could not "
				      "do it",
		[IBV_WC_RETRY_EXC_ERR] = "IBV_WC_RETRY_EXC_ERR, the peer does "
					 "not answer",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "IBV_WC_RNR_RETRY_EXC_ERR, the "
					     "peer had posted no receive",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "IBV_WC_LOC_RDD_VIOL_ERR",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "IBV_WC_REM_INV_RD_REQ_ERR",
		[IBV_WC_REM_ABORT_ERR] = "IBV_WC_REM_ABORT_ERR",
		[IBV_WC_INV_EECN_ERR] = "IBV_WC_INV_EECN_ERR",
		[IBV_WC_INV_EEC_STATE_ERR] = "IBV_WC_INV_EEC_STATE_ERR",
		[IBV_WC_FATAL_ERR] = "IBV_WC_FATAL_ERR",
		[IBV_WC_RESP_TIMEOUT_ERR] = "IBV_WC_RESP_TIMEOUT_ERR",
		[IBV_WC_GENERAL_ERR] = "IBV_WC_GENERAL_ERR, the outcome is not "
				       "known",
		[IBV_WC_TM_ERR] = "IBV_WC_TM_ERR",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "IBV_WC_TM_RNDV_INCOMPLETE",
	};

	return NAME(names, status);
}

const char *rpma_rt_again_2str(enum rpma_rt_again reason)
{
	static const char *const names[] = {
		[RPMA_RT_AGAIN_NONE] = "none",
		[RPMA_RT_AGAIN_CREDIT] =
			"credit: as many work requests are in flight and in "
			"line as there are places; take completions, WRITABLE "
			"comes",
		[RPMA_RT_AGAIN_BACKLOG] =
			"backlog: the queue that the completion is for is not "
			"emptied; poll it, WRITABLE comes",
		[RPMA_RT_AGAIN_NOT_YET] =
			"not yet: receives may be posted from READY or REQUEST "
			"on, other work requests from ESTABLISHED on",
		[RPMA_RT_AGAIN_FUTURES] =
			"futures: all that rpma_rt_conn_cfg.futures allows are "
			"held; drop some; WRITABLE comes only for those that "
			"were dropped before they were complete",
	};

	return NAME(names, reason);
}

/* ----------------------------------------------------------- completion --- */

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

static const char *text_opcode_2str(uint8_t opcode)
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

static const char *text_event_2str(uint8_t event)
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

static const char *text_side_2str(uint8_t side)
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

/* Returns whether the status of the event is an enum rpma_rt_reason. */
static bool text_has_reason(const struct rpma_rt_completion *cmpl)
{
	return cmpl->opcode == RPMA_RT_EVENT_CLOSED ||
	       cmpl->opcode == RPMA_RT_EVENT_LISTENER_CLOSED ||
	       cmpl->opcode == RPMA_RT_EVENT_SRQ_FAILED ||
	       cmpl->opcode == RPMA_RT_EVENT_POOL_CLOSED;
}

/* Returns the part of the outcome that the status does not say. */
static const char *text_outcome_2str(uint8_t flags)
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
			 text_opcode_2str(cmpl->opcode), cmpl->qp_num,
			 ibv_wc_status_str((enum ibv_wc_status)cmpl->status),
			 text_outcome_2str(cmpl->flags), cmpl->context,
			 cmpl->byte_len, cmpl->imm);
		break;
	case RPMA_RT_EVENT:
		snprintf(buf, len,
			 "event of QP %" PRIu32 ": %s%s%s, status %" PRId32,
			 cmpl->qp_num, text_event_2str(cmpl->opcode),
			 text_has_reason(cmpl) ? ", " : "",
			 text_has_reason(cmpl)
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
			 cmpl->qp_num, text_side_2str(cmpl->opcode));
		break;
	default:
		snprintf(buf, len, "no item: kind %d", cmpl->kind);
	}
	return buf;
}
