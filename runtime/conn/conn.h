/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.h -- a runtime connection, from request to deletion.
 *
 * Three threads have a part of it each: posters (gate.h), the poller (struct
 * rt_conn_poller), the control thread (struct rt_conn_control). They talk by
 * two bit masks. States, owners, order of death: doc/protocols/connection.md.
 */

#ifndef RT_CONN_CONN_H
#define RT_CONN_CONN_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rpma_rt.h"
#include "base/clock.h"
#include "base/inbox.h"
#include "base/lang.h"
#include "base/order.h"
#include "cm/cm.h"
#include "conn/cfg.h"
#include "conn/gate.h"
#include "conn/route.h"
#include "events/events.h"
#include "poller/cq_pool.h"
#include "poller/route.h"
#include "poller/schedule.h"
#include "poller/side.h"
#include "poller/source.h"
#include "pool/feed.h"

struct rt_cq;
struct rt_device;
struct rt_listener_poller;
struct rt_poller;
struct rt_resolve;

#define RT_CONN_EVENTS	8 /* items besides completions that it may write */
#define RT_ROUTE_EVENTS 2

#define RT_DRAIN_MS_MAX 600000

#define RT_PDATA_MAX 256
#define RT_NAME_TEXT 16 /* "conn 4294967295" */
#define RT_ADDR_IB   48 /* bytes of an address of AF_IB, the longest */

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
	RT_CTL_EMPTY = 1 << 15,	    /* that has ended, or took too long */
	RT_CTL_HEARD = 1 << 16,	    /* of its queue pair: conn.ctl.heard */
	RT_CTL_DEAF = 1 << 17,	    /* its CM events are read no more */
	RT_CTL_THROUGH = 1 << 18,   /* drained: nothing is published any more */
	RT_CTL_UNPINNED = 1 << 19   /* a thread gave slots back: see end_id() */
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
	RT_POLL_DRAIN = 1 << 7, /* before HANDOVER: a time for it has begun */
	/* of the event thread, while the queue pair is owned; any time */
	RT_POLL_LAST_WQE = 1 << 8
};

/* a call that changes it; see change.c */
enum __attribute__((packed)) rt_change {
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

/* of a family that is longer: in a block of its own */
struct rt_peer_other {
	sa_family_t family;
	uint8_t *whole; /* RT_ADDR_IB bytes */
};

/* whose receives a connection has: those that the program posts to it, an
 * SRQ's, or a pool's */
enum __attribute__((packed)) rt_receives {
	RT_RECEIVES_OWN,
	RT_RECEIVES_SRQ,
	RT_RECEIVES_POOL
};

union rt_peer_addr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct rt_peer_other other;
};

/* what only the way to established needs: the control thread's, which frees it
 * then; of a connection that is not established it goes with the record */
struct rt_conn_setup {
	struct rpma_rt_conn *conn;
	struct rpma_peer *peer;
	struct rpma_conn_cfg *cfg;
	char *addr; /* active: where to; of a name the address that is tried */
	char *port;
	struct rt_resolve *resolve; /* active, to a name: see resolve.h */
	struct rdma_cm_id *id;	    /* passive: until it is accepted or dies */
	struct rpma_conn_req *req;
	bool is_claimed; /* the request is ours */
	/* active: begins resolving; passive: offers the request to futures */
	struct rt_msg begin_msg;
	/* of a listener without a queue: the request's place in the source, and
	 * the source's block */
	struct rt_source_node request;
	struct rt_futures *requests;
	/* the application's, before its decision */
	uint8_t pdata_out_len;
	uint8_t pdata_out[RT_PDATA_MAX];
};

/* -------------------------------------------- the control thread's part --- */

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

/* ---------------------------------------------------- the poller's part --- */

/* the poller's state of the connection */
enum __attribute__((packed)) rt_poll_state {
	RT_PS_HEALTHY,
	RT_PS_BROKEN,	/* keeps completions until HANDOVER */
	RT_PS_DRAINING, /* owns the ledgers, waits for the markers */
	RT_PS_DRAINED,	/* waits until its queue pair is gone */
	RT_PS_SWEEPING, /* that is gone; waits for what its CQ still holds */
	RT_PS_SWEPT
};

/* its queue pair's number */
enum __attribute__((packed)) rt_bind_state {
	RT_BIND_NONE, /* it has no queue pair yet */
	/* waits for the number's former connection to be swept */
	RT_BIND_LATE,
	RT_BIND_LATE_READY, /* and READY, which has come, with it */
	RT_BIND_DONE
};

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

/* what a connection brings along: its poller takes each of it over */
struct rt_conn_brought {
	/* with OPEN; NULL: what there is, is large enough */
	struct rt_spill *spill[2];
	struct rt_qp_table *qps;
	/* passive, with READY: its listener's on its poller, until REQUEST is
	 * written */
	struct rt_listener_poller *part;
};

/* Keep-alive: a connection whose sends were silent for a while gets a write of
 * no bytes, so that a peer that went away silently causes an error. A task of
 * the connection's poller. doc/protocols/connection.md. */
struct rt_keepalive {
	struct rpma_rt_conn *conn; /* immutable */
	uint64_t period_ns;	   /* likewise */
	/* the poller's */
	struct rt_task task; /* its looks */
	uint32_t seen;	     /* send side's completions at the last look */
	bool answered;	     /* a keep-alive since the last look */
	bool out;	     /* one is under way */
};

struct rt_conn_poller {
	enum rt_poll_state state;
	enum rt_bind_state bind;
	bool failed; /* a WR did, not only flushed */
	uint8_t markers_seen;
	bool awaits_last_wqe; /* and deadline_ns is that of its coming */
	bool is_draining;     /* the task waits for the end of its time */
	bool is_long;	      /* its end takes more than one round */
	struct rt_keepalive *keepalive; /* NULL: it has none */
	/* own ones and opened ones, also closed ones as long as they owe */
	struct rpma_rt_route *routes;
	union {
		struct rt_route_opened *owing; /* closed ones that do */
		struct rpma_rt_route
			*to_close; /* after LAST: those not closed */
	};
	/* and those that do not any more; a stack that only grows, read by
	 * changes too [ROUTE-3] */
	_Atomic(struct rpma_rt_route *) buried;
	struct rt_kept *kept;
	uint32_t kept_count;
	uint32_t kept_finished; /* of them, from HANDOVER on */
	uint16_t srq_route;	/* which its SRQ's receives take */
	uint16_t routes_count;	/* of routes; each has a number of 15 bits */
	/* the directory's: buried_count of the top of buried at the change
	 * before; those below are off the directory's list */
	uint32_t seen_buried;
	union {
		struct rt_conn_brought brought; /* until READY is handled */
		/* from a drain, or HANDOVER, on: the next step of its death */
		struct rt_task dying;
	};
	union {
		uint64_t deadline_ns; /* of draining */
		uint64_t mark;	      /* after LAST: what it leaves in lanes */
	};
	union {
		struct rpma_rt_conn
			*late_next; /* while its number is another's */
		/* after LAST: routes whose leave is not announced to their
		 * queues */
		struct rpma_rt_route *to_announce;
		struct rpma_rt_conn *left_next; /* then: of rpma_rt.left */
	};
};

/* ----------------------------------------------------------- the record --- */

/*
 * There may be ten thousand: what is small stands together, and what is needed
 * only at times is allocated then, or shares its place with what is needed at
 * others. tests/runtime/thousands.c has the bytes.
 */
struct rpma_rt_conn {
	/* posters', by enum rpma_rt_side; and the poller's part of each */
	struct rt_gate gate[2];
	struct rt_side side[2];

	/* never changes: of these posters read the first */
	struct rpma_rt *rt;
	struct rt_poller *poller;
	union { /* where its receives come from, by receives */
		struct rpma_rt_srq *srq;
		struct rt_conn_fed *fed; /* see fill.h */
	} from;
	/* written by the control thread: qp and qp_num before BIND, conn before
	 * the send gate opens */
	struct ibv_qp *qp; /* posters: with the right, while the side is open */
	_Atomic uint32_t reached; /* bits of enum rt_reached */
	enum rt_receives receives : 8;
	bool enters_kernel; /* immutable: see base/wr.h */
	uint16_t max_sge;   /* pieces of a work request */
	/* the application's */
	struct rpma_rt_route own[2];

	struct rpma_conn *conn; /* by the control thread, as qp_num is */
	uint32_t qp_num;
	uint32_t max_inline; /* bytes of a work request */
	/* of the peer's memory; NULL: the program has given none */
	_Atomic(struct rpma_peer_cfg *) remote_cfg;

	struct rt_cm_target target; /* a CM id's context points here */
	struct rt_device *device;   /* whose control thread leads it */
	struct rt_cq *cq;
	struct rt_conn_setup *setup; /* NULL: it is established, or was */
	uint32_t slot;
	uint32_t number;	   /* in this process */
	uint32_t listener;	   /* passive: its listener's number; 0: none */
	_Atomic uint32_t held;	   /* of target.count: by the application */
	struct rt_cq_user cq_user; /* its room in cq */

	/* written by the control thread: pdata_in before pdata_valid */
	/* from pdata_valid on as long as it is; NULL: zeros */
	uint8_t *pdata_in;
	uint8_t pdata_in_len;
	_Atomic bool pdata_valid;
	_Atomic bool look_sent;
	/* under the runtime's lock; is_done written under its ask_lock too */
	bool is_done; /* the control thread may be gone */
	enum rt_change change;
	bool is_named; /* by the program; as the name */
	bool passive;  /* immutable */
	/* the errno with which the device refused a post, 0: it did not */
	_Atomic uint8_t post_errno;
	union rt_peer_addr peer_addr; /* before REACHED_READY */

	_Atomic(void *) user; /* the application's */
	/* under the directory's lock; final from connect on. See rt_name_of():
	 * the program may still read the first when it has given the other */
	struct {
		char text[RT_NAME_TEXT];
		char *given; /* where is_named */
	} name;
	/* of the drain that was asked for first, in ms and one more (1: without
	 * end); 0: none was */
	_Atomic uint32_t drain_ms;
	/* its gates close, or are closed: since when, in ms; 0: no */
	_Atomic uint32_t closing;

	/* to and from the control thread and the poller */
	_Atomic uint32_t ctl_bits;
	_Atomic uint32_t poll_bits;
	struct rt_msg ctl_msg;
	struct rt_msg poll_msg;
	struct rt_msg
		look_msg; /* of any thread to its poller: rt_look_send() */

	struct rt_conn_control ctl;
	struct rt_conn_poller poll;

	/* every route of it, open and closed; directory's lock */
	struct rpma_rt_route *listed;
	struct rpma_rt_route *listed_closed;
	/* the runtime's conns, then ended: under both locks, then the
	 * directory's */
	struct rpma_rt_conn *prev;
	struct rpma_rt_conn *next;
};
static_assert(offsetof(struct rpma_rt_conn, rt) % RT_CACHE_LINE == 0 &&
		      offsetof(struct rpma_rt_conn, own[0].waiter) -
				      offsetof(struct rpma_rt_conn, rt) ==
			      RT_CACHE_LINE,
	      "a send reads one line besides its gate, a receive two");

/* ------------------------------------------------------- made and freed --- */

/* Everything a connection needs before its queue pair exists: slot, route
 * numbers, CQ room, ledgers, lane and spill. All or nothing. */

/* what a connection is made of */
struct rt_conn_spec {
	struct rpma_rt *rt;
	struct rt_device *device;      /* its peer's */
	const struct rt_conn_cfg *cfg; /* the caller's; copied */
	bool passive;
	struct rpma_rt_listener *listener; /* passive: whose request it is */
	/* active: where to, and what begins on the control thread */
	const char *addr;
	const char *port;
	void (*begin)(struct rt_msg *msg, void *owner);
	/* what its bits for the control thread, its CM events bring about */
	void (*control)(struct rt_msg *msg, void *owner);
	const struct rt_cm_ops *cm_ops;
};

/*
 * A connection with all it needs, known to its poller and in the runtime's
 * list. Any thread. ERRORS: RPMA_E_NOMEM, RPMA_E_INVAL, RPMA_E_PROVIDER,
 * RPMA_RT_E_CLOSED, RPMA_RT_E_BUSY (no queue takes it)
 */
int rt_conn_create(const struct rt_conn_spec *spec,
		   struct rpma_rt_conn **conn_ptr);

/* Gives numbers, slot, room, lanes and queues back, all but its pool: the
 * connection is DONE. */
void rt_conn_unreserve(struct rpma_rt_conn *conn);
/* Frees what only the way to established needs; once more does nothing.
 * Control thread. */
void rt_conn_end_handshake(struct rpma_rt_conn *conn);
/* Frees the record. REQUIRES: no references are left */
void rt_conn_free(struct rpma_rt_conn *conn);
/* Frees those whose last holder was on a poller. Not on a poller. */
void rt_conn_free_left(struct rpma_rt *rt);

/* --------------------------------------------------- the control thread --- */

/* The first message of an active connection: begins resolving. */
void rt_conn_begin_control(struct rt_msg *msg, void *owner);
/* The connection's message to the control thread: bits of enum rt_ctl_bit. */
void rt_conn_control_message(struct rt_msg *msg, void *owner);
/* A CM event of conn; event is the caller's. */
void rt_conn_cm_event_control(struct rpma_rt_conn *conn,
			      const struct rpma_cm_event *event);
/* Takes over the queue pair, which exists now: sends its number to the poller,
 * which reports the queue pair to the application; receives may be posted.
 * Control thread. ERRORS: of librpma */
int rt_conn_qp_is_made_control(struct rpma_rt_conn *conn);
/* Keeps the private data of the event for rpma_rt_conn_get_private_data(),
 * unless the connection has some already. Control thread. */
void rt_conn_keep_private_data(struct rpma_rt_conn *conn,
			       const struct rpma_cm_event *event);
/* Returns the event without private data, for librpma, which would keep a copy
 * of what the runtime has. */
struct rpma_cm_event rt_conn_bare_event(const struct rpma_cm_event *event);
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

/* At DONE: no further change. False: one is under way, and DONE is sent again
 * at its end. */
bool rt_change_close_control(struct rpma_rt_conn *conn);

/* Its SRQ, or NULL. */
static inline struct rpma_rt_srq *rt_conn_srq(const struct rpma_rt_conn *conn)
{
	return conn->receives == RT_RECEIVES_SRQ ? conn->from.srq : NULL;
}

/* What fills its receives from a pool, or NULL. */
static inline struct rt_conn_fed *rt_conn_fed(const struct rpma_rt_conn *conn)
{
	return conn->receives == RT_RECEIVES_POOL ? conn->from.fed : NULL;
}

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
	/* relaxed, both: statistics, which order nothing */
	atomic_store_explicit(&conn->ctl.shown_ms, rt_now_ms(),
			      memory_order_relaxed);
	atomic_store_explicit(&conn->ctl.shown,
			      (uint32_t)state | (uint32_t)conn->ctl.reason << 8,
			      memory_order_relaxed);
}

/* Has it a queue? That does not change. */
static inline bool rt_conn_has_queue(const struct rpma_rt_conn *conn,
				     enum rpma_rt_side side)
{
	/* relaxed: another queue has another lane, never none */
	return atomic_load_explicit(&conn->own[side].lane,
				    memory_order_relaxed) != NULL;
}

/* The lane of its own queue, NULL: it has none; on its poller. */
static inline struct rt_lane *rt_conn_lane(const struct rpma_rt_conn *conn)
{
	/* relaxed: the poller writes it */
	return atomic_load_explicit(&conn->own[0].lane, memory_order_relaxed);
}

/* ----------------------------------------------------------- its poller --- */

/* The user pointer of the connection's completions. */
void *rt_item_user(const struct rpma_rt_conn *conn);
struct rpma_rt_completion rt_item_event(const struct rpma_rt_conn *conn,
					enum rpma_rt_event event);
struct rpma_rt_completion rt_item_writable(const struct rpma_rt_conn *conn,
					   int side);
/* To the connection's own queue, if it has one: an item, an event. */
void rt_item_write(struct rpma_rt_conn *conn,
		   const struct rpma_rt_completion *item);
void rt_item_write_event(struct rpma_rt_conn *conn, enum rpma_rt_event event);

/* ------------------------------------------- its poller: first and last --- */

/* OPEN: slot, its own routes, their spill. */
void rt_bind_open_poller(struct rpma_rt_conn *conn);
/* BIND: its queue pair has a number. */
void rt_bind_qp_poller(struct rpma_rt_conn *conn);
/* READY, ESTABLISHED: a side is open; writes the event to its queue. */
void rt_bind_ready_poller(struct rpma_rt_conn *conn);
void rt_bind_established_poller(struct rpma_rt_conn *conn);

/* conn dies: it does not wait for its queue pair's number any more. */
void rt_bind_give_up_poller(struct rpma_rt_conn *conn);
/* conn is swept: another connection may have its queue pair's number. */
void rt_bind_leave_poller(struct rpma_rt_conn *conn);

/* LAST: everything of it is out. Ends with RT_CTL_DONE. */
void rt_end_begin_poller(struct rpma_rt_conn *conn);

/* For a connection that is being made; 0: it has none. ERRORS: RPMA_E_NOMEM */
int rt_keepalive_new(struct rpma_rt_conn *conn, uint32_t period_ms);
/* --------------------------------------- its poller: messages and death --- */

/* What leaves the success path of its sides. */
extern const struct rt_side_ops rt_drain_side_ops;

/* Runs conn.poll_msg: the bits that were set, in the order of life. */
void rt_messages_poll(struct rt_msg *msg, void *owner);

/* The handler of completions of the runtime's own work requests, and the slots
 * of connections; before the poller runs, after it has ended.
 * ERRORS: RPMA_E_NOMEM */
int rt_internal_new(struct rt_poller *poller);
void rt_internal_delete(struct rt_poller *poller);

/* -------------------------------------------- its poller: refused posts --- */

/* A refused post of a connection may be tried again: WRITABLE, in its queue or
 * to the function inside which it was refused. doc/protocols/ledger.md,
 * callback.md. */

/* The side's operation. There is credit, or room in a lane: posts what stands
 * in line, and answers these wants of the side. */
void rt_answer_poller(struct rt_side *side, struct rt_poller *poller,
		      uint32_t wants);
/* The look message of a connection; see look.h. */
void rt_answer_look(struct rt_msg *msg, void *owner);
/* The rt_side waited for a lane, whose backlog has cleared. */
void rt_answer_eased_poller(void *arg);

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

/* Its gates close: noted when, for the dump. */
static inline void rt_conn_set_closing(struct rpma_rt_conn *conn)
{
	uint32_t not_yet = 0;
	uint32_t ms = rt_now_ms();

	/* relaxed: statistic, orders nothing */
	atomic_compare_exchange_strong_explicit(
		&conn->closing, &not_yet, ms != 0 ? ms : 1,
		memory_order_relaxed, memory_order_relaxed);
}

void rt_conn_tell_control(struct rpma_rt_conn *conn, uint32_t bits);
/* The same, unless the connection is DONE. Thread: any that has a handle. */
void rt_conn_ask_control(struct rpma_rt_conn *conn, uint32_t bits);
/* Refuses further posts; the control thread ends the connection for the reason
 * of that bit. REQUIRES: the caller is outside of its gates */
void rt_conn_close_for(struct rpma_rt_conn *conn, uint32_t bit);
void rt_conn_tell_poller(struct rpma_rt_conn *conn, uint32_t bits);
void rt_conn_unref(struct rpma_rt_conn *conn);
/* Drops an item that no consumer will take: unrefs a REQUEST's handle. */
void rt_conn_drop_item(const struct rpma_rt_completion *item);

/* ------------------------------------------------------------- its name --- */

/* Sets the connection's number in this process, and the name made of that. Any
 * thread, before another thread can see the connection. */
void rt_name_init(struct rpma_rt_conn *conn);
/* Any thread that holds the connection; name has room for every one. */
void rt_name_copy(struct rpma_rt_conn *conn, char *name);

/* The calling thread has the name, or the directory's lock. */
static inline const char *rt_name_of(const struct rpma_rt_conn *conn)
{
	return conn->is_named ? conn->name.given : conn->name.text;
}

/* ------------------------------------------------------------- its peer --- */

/*
 * The address is copied when the connection becomes ready, for the CM id goes
 * before the handle. A program may say how the peer's memory can be flushed
 * before librpma has a connection, and while threads post: the record keeps the
 * configuration, and a poster hands it on, inside the send side's gate, where
 * librpma's connection is known to exist.
 */

/* Control thread, with a request that has a queue pair, before that is
 * reported. ERRORS: of librpma */
int rt_peer_keep_addr_control(struct rpma_rt_conn *conn);
/* Poster, inside the send side's gate, before a persistent flush. */
int rt_peer_apply_poster(struct rpma_rt_conn *conn);
/* Freed with the record: no other thread uses it. */
void rt_peer_fini(struct rpma_rt_conn *conn);

#endif /* RT_CONN_CONN_H */
