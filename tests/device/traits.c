/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The table of differences, in the form the tests read. DIFFERENCES.md says
 * for each why both behaviours are allowed.
 */

#include <errno.h>
#include "traits.h"

/* 6.1 answers some of their calls otherwise */
static const char *const rxe_groups[] = {"query",	"memory", "arm",
					 "transitions", "errors", NULL};

const struct traits device_traits[] = {
	{
		.prefix = "loop",
		.overrun_kills_cq = true,
		.last_wqe_event = true,
		.error_is_solicited = true,
		.datagram_kind_in_sl = true,
		.post_checks_state = true,
		.post_checks_opcode = true,
		.checks_all_values = true,
		.sqd_is_drained_at_once = true,
		.wr_inline = true,
		.next_poll_keeps_batch = true,
		.cm_checks_state = true,
		.established_comes_first = true,
		.checks_source_qp = true,
		.access_event = true,
		.comm_est_event = true,
		.window_has_bounds = true,
		.zero_based_regions = true,
		.controlled_qkey = true,
		.bad_invalidate_is_told = true,
		.invalidated_is_told = true,
		.hears_by_attach = true,
		.uc_invalidates = true,
		.has_sqe = true,
		.any_memory_persists = true,
		.flush_is_counted = true,
		.gid_event = false,
		.unmapped_memory_stays = false,
		.full = ENOMEM,
		.bad_gather = IBV_WC_LOC_PROT_ERR,
		.bad_recv_lkey = IBV_WC_LOC_PROT_ERR,
		.short_recv = IBV_WC_LOC_LEN_ERR,
		.too_long = IBV_WC_REM_INV_REQ_ERR,
	},
	{
		.prefix = "rxe",
		.groups_of_kernel = rxe_groups,
		.kernel = 6012,
		.overrun_kills_cq = false,
		.last_wqe_event = false,
		.error_is_solicited = false,
		.datagram_kind_in_sl = false,
		.post_checks_state = false,
		.post_checks_opcode = false,
		.checks_all_values = false,
		.sqd_is_drained_at_once = false,
		.wr_inline = false,
		.next_poll_keeps_batch = false,
		.cm_checks_state = false,
		.established_comes_first = false,
		.checks_source_qp = false,
		.access_event = false,
		.comm_est_event = false,
		.window_has_bounds = false,
		.zero_based_regions = false,
		.controlled_qkey = false,
		.bad_invalidate_is_told = false,
		.invalidated_is_told = false,
		.hears_by_attach = false,
		.uc_invalidates = false,
		.has_sqe = false,
		.any_memory_persists = false,
		.flush_is_counted = false,
		.gid_event = true,
		.unmapped_memory_stays = true,
		.full = EINVAL,
		.bad_gather = IBV_WC_WR_FLUSH_ERR,
		.bad_recv_lkey = IBV_WC_LOC_QP_OP_ERR,
		.short_recv = IBV_WC_LOC_QP_OP_ERR,
		.too_long = IBV_WC_REM_OP_ERR,
	},
};

const unsigned device_traits_count =
	sizeof(device_traits) / sizeof(device_traits[0]);
