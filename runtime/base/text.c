/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* text.c -- names of what the public header numbers: errors, reasons, and of
 * the statuses of verbs. */

#include <stddef.h>

#include "rpma_rt.h"

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
