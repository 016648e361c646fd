/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Where devices may differ and both be right. Every field is a row of
 * DIFFERENCES.md; a test asks its field instead of the name of a device.
 */

#ifndef DEVICE_TRAITS_H
#define DEVICE_TRAITS_H

#include <stdbool.h>
#include <infiniband/verbs.h>

struct traits {
	const char *prefix; /* of the names of such devices */
	/* an overrun CQ gives nothing any more */
	bool overrun_kills_cq;
	/* a QP of an SRQ that fails raises QP_LAST_WQE_REACHED */
	bool last_wqe_event;
	/* a failed send WR wakes a CQ armed for solicited completions */
	bool send_error_is_solicited;
	/* a post in a state that forbids it is refused by the call */
	bool post_checks_state;
	/* a post of an opcode that is none is refused by the call */
	bool post_checks_opcode;
	/* a remote access error fails the responder's QP too */
	bool responder_fails;
	/* a QP listens only to the QP it is connected to */
	bool checks_source_qp;
	/* a remote access error raises an event at the responder's QP */
	bool access_event;
	/* the first message to a QP in RTR raises COMM_EST */
	bool comm_est_event;
	/* status of a WR whose lkey names nothing */
	enum ibv_wc_status bad_lkey;
	/* status of a receive WR whose lkey names nothing */
	enum ibv_wc_status bad_recv_lkey;
	/* status of a receive WR shorter than its message */
	enum ibv_wc_status short_recv;
	/* status at the initiator if the QP's access flags forbid it */
	enum ibv_wc_status qp_access;
};

extern const struct traits device_traits[];
extern const unsigned device_traits_count;

#endif
