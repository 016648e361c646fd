/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The table of differences, in the form the tests read. DIFFERENCES.md says
 * for each why both behaviours are allowed.
 */

#include "traits.h"

const struct traits device_traits[] = {
	{
		.prefix = "loop",
		.overrun_kills_cq = true,
		.last_wqe_event = true,
		.send_error_is_solicited = true,
		.post_checks_state = true,
		.post_checks_opcode = true,
		.responder_fails = true,
		.checks_source_qp = true,
		.access_event = true,
		.comm_est_event = true,
		.bad_lkey = IBV_WC_LOC_PROT_ERR,
		.bad_recv_lkey = IBV_WC_LOC_PROT_ERR,
		.short_recv = IBV_WC_LOC_LEN_ERR,
		.qp_access = IBV_WC_REM_ACCESS_ERR,
	},
	{
		.prefix = "rxe",
		.overrun_kills_cq = false,
		.last_wqe_event = false,
		.send_error_is_solicited = false,
		.post_checks_state = false,
		.post_checks_opcode = false,
		.responder_fails = true,
		.checks_source_qp = false,
		.access_event = false,
		.comm_est_event = true,
		.bad_lkey = IBV_WC_LOC_QP_OP_ERR,
		.bad_recv_lkey = IBV_WC_LOC_QP_OP_ERR,
		.short_recv = IBV_WC_REM_INV_REQ_ERR,
		.qp_access = IBV_WC_REM_INV_REQ_ERR,
	},
};

const unsigned device_traits_count =
	sizeof(device_traits) / sizeof(device_traits[0]);
