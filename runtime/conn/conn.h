/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.h -- a runtime connection, from request to deletion.
 *
 * Three threads have a part of it each: posters (gate.h), the poller
 * (conn_poller.h), the control thread (conn_control.h). They talk by two bit
 * masks. States, owners, order of death: doc/protocols/connection.md.
 */

#ifndef RT_CONN_CONN_H
#define RT_CONN_CONN_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rpma_rt.h"
#include "base/from.h"
#include "base/inbox.h"
#include "base/order.h"
#include "cm/cm.h"
#include "conn/conn_control.h"
#include "conn/conn_poller.h"
#include "conn/gate.h"
#include "poller/cq_pool.h"
#include "poller/route.h"
#include "poller/side.h"

struct rt_cq;
struct rt_device;
struct rt_listener_poller;
struct rt_poller;

#define RT_CONN_EVENTS	8 /* items besides completions that it may write */
#define RT_ROUTE_EVENTS 2

#define RT_DRAIN_MS_MAX 600000

/* bits for the control thread */
enum rt_ctl_bit {
	RT_CTL_CONNECT = 1 << 0,
	RT_CTL_REJECT = 1 << 1,
	RT_CTL_CLOSE = 1 << 2,
	RT_CTL_BROKEN = 1 << 3,
	RT_CTL_DRAINED = 1 << 4,
	RT_CTL_SWEPT = 1 << 5,
	RT_CTL_DELETED = 1 << 6,
	RT_CTL_DONE = 1 << 7,
	RT_CTL_FATAL = 1 << 8,	    /* the device reports its queue pair */
	RT_CTL_DEVICE = 1 << 9,	    /* its CQ, or the device, failed */
	RT_CTL_STOP = 1 << 10,	    /* the runtime stops */
	RT_CTL_DESTROYED = 1 << 11, /* its queue pair is gone */
	RT_CTL_LEFT = 1 << 12,	    /* the peer has, see rt_conn_control */
	RT_CTL_REFUSED = 1 << 13,   /* a verb refused a post */
	RT_CTL_DRAIN = 1 << 14,	    /* no post any more; what is out ends */
	RT_CTL_EMPTY = 1 << 15	    /* that has ended, or took too long */
};

/* bits for the poller, in the order of life */
enum rt_poll_bit {
	RT_POLL_OPEN = 1 << 0,
	RT_POLL_BIND = 1 << 1,
	RT_POLL_READY = 1 << 2,
	RT_POLL_ESTABLISHED = 1 << 3,
	RT_POLL_HANDOVER = 1 << 4,
	RT_POLL_GONE = 1 << 5,
	RT_POLL_LAST = 1 << 6,
	RT_POLL_DRAIN = 1 << 7 /* before HANDOVER: a time for it has begun */
};

/* a call that changes it; see change.c */
enum rt_change {
	RT_CHANGE_NONE,
	RT_CHANGE_BUSY,	     /* one is under way, and keeps it from DONE */
	RT_CHANGE_BUSY_DONE, /* likewise, and DONE has come */
	RT_CHANGE_CLOSED     /* no further one */
};

/* steps of its life that calls on it check: bits of conn.reached */
enum rt_reached {
	RT_REACHED_READY = 1 << 0,   /* READY / REQUEST is on its way */
	RT_REACHED_POST = 1 << 1,    /* one was tried: its queue is finished */
	RT_REACHED_DECISION = 1 << 2 /* connect or reject was called */
};

struct rpma_rt_conn {
	/* never changes; target first: a CM id's context points here */
	struct rt_cm_target target;
	struct rpma_rt *rt;
	struct rpma_peer *peer;
	struct rt_device *device; /* whose control thread leads it */
	struct rt_poller *poller;
	struct rt_cq *cq;
	struct rpma_conn_cfg *cfg;
	uint32_t max_sge;    /* pieces of a work request */
	uint32_t max_inline; /* bytes of one */
	uint32_t slot;
	uint32_t number;	   /* in this process */
	struct rt_cq_user cq_user; /* its room in cq */
	struct rpma_rt_srq *srq;   /* NULL: it has receives of its own */
	bool passive;
	/* passive: its listener's on its poller, until REQUEST is written */
	struct rt_listener_poller *part;
	uint32_t listener; /* passive: its listener's number; 0: none */
	char *addr;	   /* active: where to */
	char *port;

	/* posters', by enum rpma_rt_side; and the poller's part of each */
	struct rt_gate gate[2];
	struct rt_side side[2];

	/* written by the control thread: qp and qp_num before BIND, conn before
	 * the send gate opens, pdata_in before pdata_valid */
	struct ibv_qp *qp; /* posters: under a gate's lock, while it is open */
	uint32_t qp_num;
	struct rpma_conn *conn;
	uint8_t pdata_in[256];
	uint8_t pdata_in_len;
	struct sockaddr_storage peer_addr; /* before REACHED_READY */
	_Atomic bool pdata_valid;

	/* the application's */
	struct rpma_rt_route *own[2];
	_Atomic(void *) user;
	/* under the directory's lock; final from connect on */
	char name[RPMA_RT_NAME_MAX + 1];
	bool is_named; /* by the program */
	/* of the peer's memory; NULL: the program has given none */
	_Atomic(struct rpma_peer_cfg *) remote_cfg;
	_Atomic uint32_t reached; /* bits of enum rt_reached */
	_Atomic uint32_t held;	  /* of target.count: by the application */
	/* of the drain that was asked for first, in ms and one more (1: without
	 * end); 0: none was */
	_Atomic uint32_t drain_ms;
	uint8_t pdata_out[256];
	uint8_t pdata_out_len;

	/* to and from the control thread and the poller */
	_Atomic uint32_t ctl_bits;
	struct rt_msg ctl_msg;
	_Atomic uint32_t poll_bits;
	struct rt_msg poll_msg;
	struct rt_msg begin_msg; /* active: begins resolving */
	struct rt_msg lock_msg;	 /* the poller's to itself; see answer.c */
	bool lock_sent;
	void (*begin)(struct rt_msg *msg, void *owner); /* of a name */
	/* handed over with OPEN; NULL: what there is, is large enough */
	struct rt_spill *spill[2];
	struct rt_qp_table *qps;

	struct rt_conn_control ctl;
	struct rt_conn_poller poll;

	/* under the runtime's lock; is_done written under its ask_lock too */
	bool is_done; /* the control thread may be gone */
	enum rt_change change;
	/* every route of it, open and closed; directory's lock */
	struct rpma_rt_route *listed;
	struct rpma_rt_route *listed_closed;
	struct rpma_rt_conn *prev;
	struct rpma_rt_conn *next;
};

/* --------------------------------------------------- the control thread --- */

/* The first message of an active connection: begins resolving. */
void rt_conn_begin_control(struct rt_msg *msg, void *owner);
/* The connection's message to the control thread: bits of enum rt_ctl_bit. */
void rt_conn_control_message(struct rt_msg *msg, void *owner);
/* A CM event of conn; event is the caller's. */
void rt_conn_cm_event_control(struct rpma_rt_conn *conn,
			      const struct rpma_cm_event *event);
/* A request of a peer: becomes a connection, or the peer is refused. */
struct rpma_rt_listener;
void rt_conn_request_control(struct rpma_rt_listener *listener,
			     const struct rpma_cm_event *event);
/* The operations of a CM target that is a connection. */
extern const struct rt_cm_ops rt_conn_cm_ops;
/* Begins the connection's death; reason counts if it is the first. Blocks as
 * long as the device does: not under a lock. */
void rt_conn_die_control(struct rpma_rt_conn *conn, enum rpma_rt_reason reason,
			 uint32_t cm_status);

/* The connection that the side belongs to. */
static inline struct rpma_rt_conn *rt_conn_of_side(struct rt_side *side)
{
	return RT_FROM(struct rpma_rt_conn, side, side - side->which);
}

/* Sets the state for the control thread, and for rpma_rt_dump(). */
static inline void rt_conn_set_state(struct rpma_rt_conn *conn,
				     enum rt_conn_state state)
{
	conn->ctl.state = state;
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&conn->ctl.shown, state | conn->ctl.reason << 8,
			      memory_order_relaxed);
}

/* ----------------------------------------------------------- any thread --- */

/* Before RT_CTL_DRAIN: its time, unless a drain was asked for before. */
static inline void rt_conn_set_drain_ms(struct rpma_rt_conn *conn, uint32_t ms)
{
	uint32_t none = 0;

	/* relaxed: the bit publishes it */
	atomic_compare_exchange_strong_explicit(&conn->drain_ms, &none, ms + 1,
						memory_order_relaxed,
						memory_order_relaxed);
}

void rt_conn_tell_control(struct rpma_rt_conn *conn, uint32_t bits);
/* Refuses further posts; the control thread ends the connection for the reason
 * of that bit. REQUIRES: the caller is outside of its gates */
void rt_conn_close_for(struct rpma_rt_conn *conn, uint32_t bit);
void rt_conn_tell_poller(struct rpma_rt_conn *conn, uint32_t bits);
void rt_conn_unref(struct rpma_rt_conn *conn);
/* Drops an item that no consumer will take: unrefs a REQUEST's handle. */
void rt_conn_drop_item(const struct rpma_rt_completion *item);

#endif /* RT_CONN_CONN_H */
