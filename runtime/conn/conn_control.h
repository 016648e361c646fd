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

enum rt_conn_state {
	RT_CONN_RESOLVING,
	RT_CONN_READY,
	RT_CONN_CONNECTING,
	RT_CONN_ESTABLISHED,
	RT_CONN_DRAINING,
	RT_CONN_SWEEPING,
	RT_CONN_DELETING
};

enum rt_qp_state { RT_QP_NONE, RT_QP_ALIVE, RT_QP_DESTROYED };

/* how the way to established ended */
enum rt_handshake {
	RT_HANDSHAKE_NONE, /* it has not, or failed */
	RT_HANDSHAKE_ESTABLISHED,
	RT_HANDSHAKE_REJECTED, /* by the application: pdata_out is for that */
	RT_HANDSHAKE_UNHEARD   /* the application never knew: no CLOSED */
};

struct rt_conn_control {
	enum rt_conn_state state;
	/* why the connection dies; the poller reads both from HANDOVER on */
	enum rpma_rt_reason reason;
	uint32_t cm_status;
	/* of the event with which the peer left, until it dies of that */
	bool has_left;
	enum rpma_rt_reason left_reason;
	uint32_t left_status;
	uint32_t markers_due;	/* bits: 1 << enum rpma_rt_side; likewise */
	bool is_draining;	/* its SQ marker is posted, its gates closed */
	_Atomic uint32_t shown; /* state | reason << 8, for the directory */
	struct rpma_conn_req *req;
	enum rt_qp_state qp_state;
	struct rt_async_object async; /* of the queue pair */
	enum rt_handshake handshake;
	/* to the destroyer, which has rpma_rt_conn.conn and req from then until
	 * it answers with a bit */
	struct rt_msg destroy_msg;
	bool id_stays; /* the destroyer's answer: the device kept the id */
};

#endif /* RT_CONN_CONN_CONTROL_H */
