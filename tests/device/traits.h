/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Differences between devices that are both right. Every field is a row of
 * DIFFERENCES.md; a test asks the field, not the name of a device.
 */

#ifndef DEVICE_TRAITS_H
#define DEVICE_TRAITS_H

#include <stdbool.h>
#include <infiniband/verbs.h>

struct traits {
	const char *prefix; /* of the names of such devices */
	/* groups of tests skipped where the kernel, 1000 * major + minor, is
	 * older; up to NULL. NULL: the device has no kernel */
	const char *const *groups_of_kernel;
	int kernel;
	/* an overrun CQ gives nothing any more */
	bool overrun_kills_cq;
	/* a failing QP of an SRQ raises QP_LAST_WQE_REACHED */
	bool last_wqe_event;
	/* any failed WR wakes a CQ armed for solicited completions */
	bool error_is_solicited;
	bool datagram_kind_in_sl;
	/* the call refuses a post in a state that forbids the post */
	bool post_checks_state;
	/* the call refuses a post with an unknown opcode */
	bool post_checks_opcode;
	/* modify refuses a P_Key index and a responder depth beyond the
	 * device */
	bool checks_all_values;
	/* a QP without work is drained as soon as the QP is in SQD */
	bool sqd_is_drained_at_once;
	/* inline data given to ibv_wr_* is sent */
	bool wr_inline;
	/* ibv_next_poll at the end of the queue leaves the batch to
	 * ibv_end_poll */
	bool next_poll_keeps_batch;
	/* rdma_cm refuses a step for which an id is not ready */
	bool cm_checks_state;
	/* the accepting side gets ESTABLISHED before DISCONNECTED */
	bool established_comes_first;
	/* a QP listens only to its connected QP */
	bool checks_source_qp;
	/* a remote access error raises an event at the responder's QP */
	bool access_event;
	/* the first message to a QP in RTR raises COMM_EST */
	bool comm_est_event;
	/* a window ends at the end of its bind, not of its region */
	bool window_has_bounds;
	/* a zero-based region counts from 0 */
	bool zero_based_regions;
	/* a Q_Key with its highest bit stands for the Q_Key of the sender */
	bool controlled_qkey;
	/* a bad rkey in a SEND_WITH_INV is reported to the sender */
	bool bad_invalidate_is_told;
	/* the completion of a receive has the invalidated rkey */
	bool invalidated_is_told;
	/* a QP attached to a group hears the group */
	bool hears_by_attach;
	/* an unreliable connection has SEND_WITH_INV */
	bool uc_invalidates;
	/* a failed send of UC or UD ends only its send queue, in SQE */
	bool has_sqe;
	/* ordinary memory can be registered for flushes that survive */
	bool any_memory_persists;
	/* a flush needs a resource of the responder, as a read does */
	bool flush_is_counted;
	/* a change of the table of GIDs raises GID_CHANGE */
	bool gid_event;
	/* memory that the program unmapped before ibv_dereg_mr() is still
	 * there, for the device */
	bool unmapped_memory_stays;
	/* errno when there can be no more objects of a kind */
	int full;
	/* status of a WR that may not read its own bytes */
	enum ibv_wc_status bad_gather;
	/* status of a receive WR whose lkey names nothing */
	enum ibv_wc_status bad_recv_lkey;
	/* status of a receive WR shorter than its message */
	enum ibv_wc_status short_recv;
	/* status of the message too long for the receive */
	enum ibv_wc_status too_long;
};

extern const struct traits device_traits[];
extern const unsigned device_traits_count;

#endif
