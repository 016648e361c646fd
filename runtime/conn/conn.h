/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.h -- a runtime connection, from request to deletion.
 *
 * Three threads have their part of it: posters (rt_side, under its lock), the
 * poller (settle.c), the control thread (conn.c). They talk by two bit masks.
 * States, owners, order of death: doc/protocols/connection.md.
 */

#ifndef RT_CONN_CONN_H
#define RT_CONN_CONN_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "conn/keepalive.h"
#include "events/async.h"
#include "base/inbox.h"
#include "conn/ledger.h"
#include "base/order.h"
#include "poller/route.h"

struct rt_cq;
struct rt_poller;

/* What contains that member. */
#define RT_FROM(type, member, ptr) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define RT_CONN_EVENTS	8 /* items besides completions that it may write */
#define RT_ROUTE_EVENTS 2

enum rt_gate {
	RT_GATE_NOT_YET = 0,
	RT_GATE_OPEN = 1,
	RT_GATE_CLOSED = 2,
	RT_GATE_PAUSED = 3 /* single poster: the control thread is inside */
};

/* what refused posters wait for: bits of rt_side.want; answered in a queue, or,
 * shifted by RT_WANT_IN_CALL, to the function inside which it was */
enum rt_want { RT_WANT_CREDIT = 1 << 0, RT_WANT_BACKLOG = 1 << 1 };
#define RT_WANT_IN_CALL 2

/* one of a connection's two queues */
struct rt_side {
	/* posters, under the lock or as the single one declared, between two
	 * steps of the marker; the poller after HANDOVER */
	alignas(RT_CACHE_LINE) pthread_mutex_t lock;
	_Atomic uint32_t marker; /* odd: the single poster is inside */
	bool single;		 /* immutable */
	struct rt_ledger ledger;

	/* shared, written seldom */
	alignas(RT_CACHE_LINE) _Atomic uint32_t gate; /* enum rt_gate */
	_Atomic uint32_t want;			      /* of enum rt_want */

	/* the poller's; retired is read by posters */
	alignas(RT_CACHE_LINE) _Atomic uint32_t retired;
	uint32_t count;	       /* signaled WRs retired: what retired will be */
	_Atomic uint32_t owed; /* for the directory: see RT_OWED_UNKNOWN */
	bool healthy;
	bool touched;
	uint8_t which; /* enum rpma_rt_side; immutable */
	struct rt_side *touched_next;
	struct rpma_rt_conn *conn; /* immutable */
};

/* of rt_side.owed: not handed over yet; else how many were unsettled when the
 * connection made its last step */
#define RT_OWED_UNKNOWN UINT32_MAX

/* a completion that waits for the ledger */
struct rt_kept {
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm; /* or vendor_err */
	uint8_t status;
	uint8_t opcode;
	uint8_t flags;
	uint8_t side;
};

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
	RT_CTL_FATAL = 1 << 8 /* its queue pair, says the device */
};

/* bits for the poller, in the order of life */
enum rt_poll_bit {
	RT_POLL_OPEN = 1 << 0,
	RT_POLL_BIND = 1 << 1,
	RT_POLL_READY = 1 << 2,
	RT_POLL_ESTABLISHED = 1 << 3,
	RT_POLL_HANDOVER = 1 << 4,
	RT_POLL_GONE = 1 << 5,
	RT_POLL_LAST = 1 << 6
};

enum rt_conn_state {
	RT_CONN_RESOLVING,
	RT_CONN_READY,
	RT_CONN_CONNECTING,
	RT_CONN_ESTABLISHED,
	RT_CONN_DRAINING,
	RT_CONN_SWEEPING,
	RT_CONN_DELETING
};

/* the poller's view of it */
enum rt_poll_state {
	RT_PS_HEALTHY,
	RT_PS_BROKEN,	/* keeps completions until HANDOVER */
	RT_PS_SETTLING, /* owns the ledgers */
	RT_PS_SWEEPING, /* queue pair gone */
	RT_PS_SWEPT
};

/* what the context of a CM id points at */
enum rt_cm_kind { RT_CM_LISTENER, RT_CM_CONN };

struct rt_cm_target {
	enum rt_cm_kind kind;
	_Atomic uint32_t count; /* holders; the last one frees */
	/* control: an id that points here could not be destroyed */
	bool is_kept;
	struct rt_cm_target *next_kept;
};

struct rpma_rt_conn {
	/* immutable from birth; target first: a CM id's context points here */
	struct rt_cm_target target;
	struct rpma_rt *rt;
	struct rpma_peer *peer;
	struct rt_poller *poller;
	struct rt_cq *cq;
	struct rpma_conn_cfg *cfg;
	uint32_t slot;
	uint32_t room;		 /* entries of the CQ held for it */
	struct rpma_rt_srq *srq; /* NULL: it has receives of its own */
	bool passive;
	char *addr; /* active: where to */
	char *port;

	struct rt_side side[2]; /* by enum rpma_rt_side */

	/* the application's */
	struct rpma_rt_route *own[2];
	_Atomic(void *) user;
	_Atomic bool ready;    /* READY / REQUEST is on its way */
	_Atomic bool posted;   /* a post was tried: its queue is settled */
	_Atomic bool decided;  /* connect or reject was called */
	_Atomic uint32_t held; /* of target.count: by the application */
	uint8_t pdata_out[256];
	uint8_t pdata_out_len;

	/* to and from the control thread and the poller */
	_Atomic uint32_t ctl_bits;
	struct rt_msg ctl_msg;
	_Atomic uint32_t poll_bits;
	struct rt_msg poll_msg;
	struct rt_msg begin_msg; /* active: begins resolving */
	struct rt_msg lock_msg;	 /* the poller's to itself; see callback.c */
	bool lock_sent;
	void (*begin)(struct rt_msg *msg, void *owner); /* of a name */
	/* handed over with OPEN; NULL: what there is, is large enough */
	struct rt_spill *spill[2];
	struct rt_qp_table *qps;

	/* the control thread's; qp and qp_num are read-only after BIND */
	enum rt_conn_state state;
	enum rpma_rt_reason reason;
	_Atomic uint32_t shown; /* state | reason << 8, for the directory */
	uint32_t cm_status;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct ibv_qp *qp; /* posters: under a side's lock with an open gate */
	uint32_t qp_num;
	bool qp_alive;
	struct rt_async_object async; /* qp */
	const void *cm_id;	      /* passive: whose events are ours */
	/* passive: held, as events of our id may have named it */
	struct rpma_rt_listener *listener;
	bool was_established;
	bool silent;	      /* the application never heard of it: no CLOSED */
	bool rejecting;	      /* pdata_out is for a refusal */
	uint32_t markers_due; /* bits: 1 << enum rpma_rt_side */
	uint8_t pdata_in[256];
	uint8_t pdata_in_len;
	_Atomic bool pdata_valid;

	/* under the runtime's lock; is_done written under its ask_lock too */
	bool is_done;		      /* the control thread may be gone */
	struct rpma_rt_route *listed; /* every route of it; directory's lock */
	struct rpma_rt_conn *prev;
	struct rpma_rt_conn *next;

	/* the poller's */
	enum rt_poll_state ps;
	bool bound;
	bool failed; /* a WR did, not only flushed */
	struct rt_keepalive keepalive;
	struct rt_lane *lane;	      /* of its own queue */
	struct rpma_rt_route *routes; /* own ones and opened ones */
	struct rt_kept *kept;
	uint32_t kept_count;
	uint32_t kept_max;
	uint32_t markers_seen;
	uint64_t deadline_ns;
	uint64_t sweep_taken;
	uint64_t sweep_empty;
	struct rpma_rt_conn *dying_next;
	uint32_t srq_route; /* which its SRQ's receives take */
	/* its queue pair's number is another's still, which is not swept:
	 * it waits for that, and READY with it */
	bool late;
	bool late_ready;
	struct rpma_rt_conn *late_next;
};

/* --------------------------------------------------- the control thread --- */

/* The first message of an active one: resolves, and goes on from there. */
void rt_conn_begin_control(struct rt_msg *msg, void *owner);
/* What was asked of it: bits of enum rt_ctl_bit. */
void rt_conn_bits_control(struct rpma_rt_conn *conn, uint32_t bits);
/* A CM event of conn; event is the caller's. */
void rt_conn_cm_event_control(struct rpma_rt_conn *conn,
			      const struct rpma_cm_event *event);
/* A peer asks; without a connection of it the peer is refused. */
struct rpma_rt_listener;
void rt_conn_request_control(struct rpma_rt_listener *listener,
			     const struct rpma_cm_event *event);
/* An event of an id that named its listener still when it was read: the
 * passive connection's that was made of it, if there is one. */
void rt_conn_early_event_control(struct rpma_rt *rt,
				 const struct rpma_cm_event *event);
/* Begins its death, for that reason if it is the first. Does not lock the
 * runtime, so it can be called for every connection of its list. */
void rt_conn_die_control(struct rpma_rt_conn *conn, enum rpma_rt_reason reason,
			 uint32_t cm_status);

/* For itself, and for who looks on. */
static inline void rt_conn_set_state(struct rpma_rt_conn *conn,
				     enum rt_conn_state state)
{
	conn->state = state;
	/* relaxed: a figure */
	atomic_store_explicit(&conn->shown, state | conn->reason << 8,
			      memory_order_relaxed);
}

/* ----------------------------------------------------------- any thread --- */

void rt_conn_tell_control(struct rpma_rt_conn *conn, uint32_t bits);
void rt_conn_tell_poller(struct rpma_rt_conn *conn, uint32_t bits);
void rt_conn_unref(struct rpma_rt_conn *conn);

#endif /* RT_CONN_CONN_H */
