/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn_control.h -- the part of a connection that belongs to the control
 * thread (control.c). doc/protocols/connection.md.
 */

#ifndef RT_CONN_CONN_CONTROL_H
#define RT_CONN_CONN_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/inbox.h"
#include "events/async.h"

enum __attribute__((packed)) rt_conn_state {
	RT_CONN_RESOLVING,
	RT_CONN_READY,
	RT_CONN_CONNECTING,
	RT_CONN_ESTABLISHED,
	RT_CONN_DRAINING,
	RT_CONN_SWEEPING,
	RT_CONN_DELETING
};

enum __attribute__((packed)) rt_qp_state {
	RT_QP_NONE,
	RT_QP_ALIVE,
	RT_QP_DESTROYED
};

/* how the way to established ended */
enum __attribute__((packed)) rt_handshake {
	RT_HANDSHAKE_NONE, /* it has not, or failed */
	RT_HANDSHAKE_ESTABLISHED,
	RT_HANDSHAKE_REJECTED, /* by the application: pdata_out is for that */
	RT_HANDSHAKE_UNHEARD   /* the application never knew: no CLOSED */
};

/* what a dying connection waits for: its markers, by 1 << enum rpma_rt_side,
 * and, of one that uses an SRQ, the device's LAST_WQE_REACHED */
#define RT_MARK_LAST_WQE (1u << 2)

struct rt_conn_control {
	enum rt_conn_state state;
	enum rt_qp_state qp_state;
	enum rt_handshake handshake;
	/* nothing more is published; then the SQ marker is posted, and both
	 * sides are closed */
	bool is_draining : 1;
	bool has_marker : 1;
	bool is_pinned : 1; /* its end waits for threads that have slots */
	/* why the connection dies, an enum rpma_rt_reason, and what it waits
	 * for, RT_MARK_* or 1 << side: the poller reads the three from HANDOVER
	 * on */
	uint8_t reason;
	uint8_t markers_due;
	bool id_stays; /* the destroyer's answer: the device kept the id */
	/* the peer did: reason and cm_status are those, until it dies of that
	 * or of something else */
	bool has_left;
	uint32_t cm_status;
	_Atomic uint32_t shown;	   /* state | reason << 8, for the directory */
	_Atomic uint32_t shown_ms; /* since when in that state */
	/* of its asynchronous events, those that end nothing: bits */
	_Atomic uint32_t heard;
	union {
		/* of the queue pair, until that is to be destroyed */
		struct rt_async_object async;
		/* then, to the destroyer, which has rpma_rt_conn.conn and the
		 * setup's req until it answers with a bit */
		struct rt_msg destroy_msg;
	};
};

#endif /* RT_CONN_CONN_CONTROL_H */
