/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.h -- a connection of the runtime, from request to deletion.
 *
 * Each of three threads has a part of the connection: posters (gate.h), the
 * poller (struct rt_conn_poller), the control thread (struct rt_conn_control).
 * Poller and control thread send each other bits in two masks. States, owners,
 * order of death: doc/protocols/connection.md.
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

/* most items besides completions that the connection writes */
#define RT_CONN_EVENTS	8
#define RT_ROUTE_EVENTS 2

#define RT_DRAIN_MS_MAX 600000

#define RT_PDATA_MAX 256
#define RT_NAME_TEXT 16 /* bytes of "conn 4294967295" */
#define RT_ADDR_IB   48 /* bytes of the longest address, an address of AF_IB */

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
	/* the device reports a failure of the queue pair */
	RT_CTL_FATAL = 1 << 8,
	RT_CTL_DEVICE = 1 << 9,	    /* the CQ, or the device, failed */
	RT_CTL_STOP = 1 << 10,	    /* the runtime stops */
	RT_CTL_DESTROYED = 1 << 11, /* the queue pair is gone */
	RT_CTL_LEFT = 1 << 12,	    /* the peer has left, see rt_conn_control */
	RT_CTL_REFUSED = 1 << 13,   /* a verb refused a post */
	/* no more posts; wait for the outstanding work requests */
	RT_CTL_DRAIN = 1 << 14,
	/* the outstanding work requests have ended, or took too long */
	RT_CTL_EMPTY = 1 << 15,
	/* events of the queue pair: conn.ctl.heard */
	RT_CTL_HEARD = 1 << 16,
	/* CM events of the connection are read no more */
	RT_CTL_DEAF = 1 << 17,
	/* draining, and nothing more will be published */
	RT_CTL_THROUGH = 1 << 18,
	RT_CTL_UNPINNED =
		1 << 19 /* a thread gave slots back: see control_end_id() */
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
	/* before HANDOVER: the time for a drain has begun */
	RT_POLL_DRAIN = 1 << 7,
	/* sent by the event thread while the queue pair is owned; at any
	 * time */
	RT_POLL_LAST_WQE = 1 << 8,
	/* behind HANDOVER: the handshake of an accepted connection is over */
	RT_POLL_HANDSHAKE = 1 << 9
};

/* the state of calls that change the connection; see change.c */
enum __attribute__((packed)) rt_change {
	RT_CHANGE_NONE,
	/* a change is being made, and keeps the connection from DONE */
	RT_CHANGE_BUSY,
	RT_CHANGE_BUSY_DONE, /* a change is being made, and DONE has come */
	RT_CHANGE_CLOSED     /* no further change */
};

/* bits of conn.reached: steps of life that calls on the connection check */
enum rt_reached {
	RT_REACHED_READY = 1 << 0, /* READY or REQUEST is on its way */
	/* a post was tried: the choice of the queue is final */
	RT_REACHED_POST = 1 << 1,
	RT_REACHED_DECISION = 1 << 2 /* connect or reject was called */
};

/* an address of another family, which is longer: in a block of its own */
struct rt_peer_other {
	sa_family_t family;
	uint8_t *whole; /* RT_ADDR_IB bytes */
};

/* where a connection's receives come from: the program posts to the connection,
 * or an SRQ or a pool supplies the receives */
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

/* data that only the way to established needs. The control thread uses the
 * struct, and frees it when the connection is established; otherwise the
 * record's end frees it */
struct rt_conn_setup {
	struct rpma_rt_conn *conn;
	struct rpma_peer *peer;
	struct rpma_conn_cfg *cfg;
	/* active: the peer's address; for a name the address that is tried */
	char *addr;
	char *port;
	struct rt_resolve *resolve; /* active, to a name: see resolve.h */
	/* passive: until the request is accepted or dies */
	struct rdma_cm_id *id;
	struct rpma_conn_req *req;
	bool is_claimed; /* the runtime has claimed the request */
	/* active: begins resolving; passive: offers the request to futures */
	struct rt_msg begin_msg;
	/* with a listener without a queue: the request's place in the source,
	 * and the source's block */
	struct rt_source_node request;
	struct rt_futures *requests;
	/* written by the application, before connect, accept or reject */
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
	RT_HANDSHAKE_NONE, /* not ended yet, or failed */
	RT_HANDSHAKE_ESTABLISHED,
	/* rejected by the application: pdata_out is for the reject */
	RT_HANDSHAKE_REJECTED,
	/* the application never knew the connection: no CLOSED */
	RT_HANDSHAKE_UNHEARD
};

/* bit of markers_due: the device's LAST_WQE_REACHED, for a connection with an
 * SRQ. The other bits are the markers, 1 << enum rpma_rt_side */
#define RT_MARK_LAST_WQE (1u << 2)
/* bit of markers_due: the handshake of an accepted connection ends. Only then
 * the CM tells the peer of the end for sure */
#define RT_MARK_HANDSHAKE (1u << 3)

struct rt_conn_control {
	enum rt_conn_state state;
	enum rt_qp_state qp_state;
	enum rt_handshake handshake;
	/* is_draining: nothing more is published; has_marker: the SQ marker of
	 * a drain is posted, and both sides are closed */
	bool is_draining : 1;
	bool has_marker : 1;
	/* the connection's end waits for threads that have slots */
	bool is_pinned : 1;
	/* the connection dies of a CM event: the CM has nothing to tell */
	bool is_told : 1;
	/* reason: why the connection dies, an enum rpma_rt_reason; markers_due:
	 * what the death waits for, RT_MARK_* or 1 << side. The poller reads
	 * both from HANDOVER on */
	uint8_t reason;
	uint8_t markers_due;
	bool id_stays; /* result of the destroyer: the device kept the id */
	/* the peer has left: reason and cm_status describe the leave, until the
	 * connection dies of the leave or of another cause */
	bool has_left;
	uint32_t cm_status;
	_Atomic uint32_t shown;	   /* state | reason << 8, for the directory */
	_Atomic uint32_t shown_ms; /* when the connection entered the state */
	/* bits: asynchronous events that end nothing */
	_Atomic uint32_t heard;
	union {
		/* for the queue pair, until the queue pair is about to be
		 * destroyed */
		struct rt_async_object async;
		/* afterwards the message to the destroyer, which uses
		 * rpma_rt_conn.conn and the setup's req until it answers with a
		 * bit */
		struct rt_msg destroy_msg;
	};
};

/* ---------------------------------------------------- the poller's part --- */

/* the poller's state of the connection */
enum __attribute__((packed)) rt_poll_state {
	RT_PS_HEALTHY,
	RT_PS_BROKEN, /* completions are kept until HANDOVER */
	/* the poller owns the ledgers, and waits for the markers */
	RT_PS_DRAINING,
	RT_PS_DRAINED, /* the poller waits until the queue pair is gone */
	/* the queue pair is gone; the poller waits for the completions that the
	 * CQ still holds */
	RT_PS_SWEEPING,
	RT_PS_SWEPT
};

/* whether the poller knows the queue pair's number */
enum __attribute__((packed)) rt_bind_state {
	RT_BIND_NONE, /* the connection has no queue pair yet */
	/* waits for the sweep of the number's former connection */
	RT_BIND_LATE,
	RT_BIND_LATE_READY, /* the same, and READY has come and waits, too */
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

/* resources that a connection brings: its poller takes them over */
struct rt_conn_brought {
	/* come with OPEN; NULL: the present spill or table is large enough */
	struct rt_spill *spill[2];
	struct rt_qp_table *qps;
	/* passive, with READY: the part of the listener on the poller, until
	 * REQUEST is written */
	struct rt_listener_poller *part;
};

/* Keep-alive: a connection whose sends were silent for a while gets a write of
 * no bytes, so that a peer that went away silently causes an error. A task of
 * the connection's poller. doc/protocols/connection.md. */
struct rt_keepalive {
	struct rpma_rt_conn *conn; /* immutable */
	uint64_t period_ns;	   /* immutable */
	/* used by the poller only: */
	struct rt_task task; /* the looks */
	uint32_t seen;	     /* retired sends at the last look */
	bool answered;	     /* a keep-alive completed since the last look */
	bool out;	     /* a keep-alive is outstanding */
};

struct rt_conn_poller {
	enum rt_poll_state state;
	enum rt_bind_state bind;
	bool failed; /* a work request failed by itself, not only flushed */
	uint8_t markers_seen;
	/* deadline_ns is the time limit of LAST_WQE_REACHED */
	bool awaits_last_wqe;
	/* the task waits for the end of the drain's time */
	bool is_draining;
	bool is_long; /* the end takes more than a round */
	/* NULL: the connection has no keep-alive */
	struct rt_keepalive *keepalive;
	/* own routes and opened routes; a closed route stays as long as the
	 * route owes completions */
	struct rpma_rt_route *routes;
	union {
		/* closed routes that owe completions */
		struct rt_route_opened *owing;
		/* after LAST: routes that are not closed yet */
		struct rpma_rt_route *to_close;
	};
	/* closed routes that owe nothing any more; a stack that only grows, and
	 * that changes read, too [ROUTE-3] */
	_Atomic(struct rpma_rt_route *) buried;
	struct rt_kept *kept;
	uint32_t kept_count;
	/* number of finished completions among the kept completions, from
	 * HANDOVER on */
	uint32_t kept_finished;
	/* number of the route for receives of the SRQ */
	uint16_t srq_route;
	/* length of the list routes; each route has a number of 15 bits */
	uint16_t routes_count;
	/* used by the directory: buried_count of the top of `buried` at the
	 * change before; the routes below are off the directory's list */
	uint32_t seen_buried;
	union {
		struct rt_conn_brought brought; /* until READY is handled */
		/* from a drain, or HANDOVER, on: the next step of death */
		struct rt_task dying;
	};
	union {
		uint64_t deadline_ns; /* time limit of draining */
		/* after LAST: the mark that the connection leaves in lanes */
		uint64_t mark;
	};
	union {
		/* while another connection has the number of its queue pair */
		struct rpma_rt_conn *late_next;
		/* after LAST: routes whose leave is not announced to their
		 * queues yet */
		struct rpma_rt_route *to_announce;
		/* afterwards: list rpma_rt.left */
		struct rpma_rt_conn *left_next;
	};
};

/* ----------------------------------------------------------- the record --- */

/*
 * There may be ten thousand connections: small words stand together, and memory
 * that is needed only at times is allocated for these times, or shares its
 * place with other such memory. tests/runtime/thousands.c has the bytes.
 */
struct rpma_rt_conn {
	/* gate: for posters, by enum rpma_rt_side; side: the poller's part */
	struct rt_gate gate[2];
	struct rt_side side[2];

	/* immutable: posters read the first word */
	struct rpma_rt *rt;
	struct rt_poller *poller;
	union { /* source of the receives, selected by `receives` */
		struct rpma_rt_srq *srq;
		struct rt_conn_fed *fed; /* see fill.h */
	} from;
	/* written by the control thread: qp and qp_num before BIND, conn before
	 * the send gate opens */
	/* read by posters with the right, while the side is open */
	struct ibv_qp *qp;
	_Atomic uint16_t reached; /* bits of enum rt_reached */
	enum rt_receives receives : 8;
	bool verb_is_plain; /* immutable: see base/wr.h */
	uint16_t max_sge;   /* most pieces of a work request */
	/* the next post to the send side fills the receive queue first, see
	 * fill.h. Written inside the poller */
	_Atomic bool fill_deferred;
	/* the connection's own routes */
	struct rpma_rt_route own[2];

	/* written by the control thread, as qp_num is */
	struct rpma_conn *conn;
	uint32_t qp_num;
	uint32_t max_inline; /* most inline bytes of a work request */
	/* configuration of the peer's memory; NULL: the program has given no
	 * configuration */
	_Atomic(struct rpma_peer_cfg *) remote_cfg;

	/* the context of a CM id points to this target */
	struct rt_cm_target target;
	/* the device whose control thread leads the connection */
	struct rt_device *device;
	struct rt_cq *cq;
	/* NULL: the connection is or was established */
	struct rt_conn_setup *setup;
	uint32_t slot;
	/* number of the connection in this process */
	uint32_t number;
	/* passive: the listener's number; 0: no listener */
	uint32_t listener;
	_Atomic uint32_t held;	   /* the application's part of target.count */
	struct rt_cq_user cq_user; /* the connection's room in cq */

	/* written by the control thread: pdata_in before pdata_valid */
	/* from pdata_valid on pdata_in_len bytes; NULL: zeros */
	uint8_t *pdata_in;
	uint8_t pdata_in_len;
	_Atomic bool pdata_valid;
	_Atomic bool look_sent;
	/* under the runtime's lock; is_done is written under the runtime's
	 * ask_lock, too */
	bool is_done; /* the control thread may be gone */
	enum rt_change change;
	/* the program has named the connection; used under the same lock as
	 * `name` */
	bool is_named;
	bool passive; /* immutable */
	/* errno with which the device refused a post, or 0 */
	_Atomic uint8_t post_errno;
	union rt_peer_addr peer_addr; /* written before REACHED_READY */

	_Atomic(void *) user; /* the application's pointer */
	/* under the directory's lock; final from connect on. text and given are
	 * different words, because the program may still read `text` after
	 * giving another name: see rt_name_of() */
	struct {
		char text[RT_NAME_TEXT];
		char *given; /* if is_named */
	} name;
	/* time of the first drain, in ms, plus 1 (1: without a limit); 0: no
	 * drain */
	_Atomic uint32_t drain_ms;
	/* when the gates began to close, in ms; 0: not closing */
	_Atomic uint32_t closing;

	/* bits and messages to the control thread and to the poller */
	_Atomic uint32_t ctl_bits;
	_Atomic uint32_t poll_bits;
	struct rt_msg ctl_msg;
	struct rt_msg poll_msg;
	struct rt_msg
		look_msg; /* from any thread to the poller: rt_look_send() */

	struct rt_conn_control ctl;
	struct rt_conn_poller poll;

	/* lists of all routes, open and closed; under the directory's lock */
	struct rpma_rt_route *listed;
	struct rpma_rt_route *listed_closed;
	/* in the runtime's list conns, under both locks; then in `ended`, under
	 * the directory's lock */
	struct rpma_rt_conn *prev;
	struct rpma_rt_conn *next;
};
static_assert(offsetof(struct rpma_rt_conn, rt) % RT_CACHE_LINE == 0 &&
		      offsetof(struct rpma_rt_conn, own[0].waiter) -
				      offsetof(struct rpma_rt_conn, rt) ==
			      RT_CACHE_LINE,
	      "a send reads one line besides its gate, a receive two");

/* ------------------------------------------------------- made and freed --- */

/* Making a connection: everything that a connection needs before the queue pair
 * exists, that is slot, route numbers, CQ room, ledgers, lane and spill. All or
 * nothing. */

/* parameters of a new connection */
struct rt_conn_spec {
	struct rpma_rt *rt;
	struct rt_device *device;      /* the peer's device */
	const struct rt_conn_cfg *cfg; /* belongs to the caller; copied */
	bool passive;
	/* passive: the listener of the request */
	struct rpma_rt_listener *listener;
	/* active: the peer's address, and the first message to the control
	 * thread */
	const char *addr;
	const char *port;
	void (*begin)(struct rt_msg *msg, void *owner);
	/* handlers of the bits for the control thread, and of CM events */
	void (*control)(struct rt_msg *msg, void *owner);
	const struct rt_cm_ops *cm_ops;
};

/*
 * Makes a connection with everything the connection needs, known to the poller
 * and in the runtime's list. Any thread. ERRORS: RPMA_E_NOMEM, RPMA_E_INVAL,
 * RPMA_E_PROVIDER, RPMA_RT_E_CLOSED, RPMA_RT_E_BUSY (no queue has room for the
 * connection)
 */
int rt_conn_create(const struct rt_conn_spec *spec,
		   struct rpma_rt_conn **conn_ptr);

/* Gives numbers, slot, room, lanes and queues back, but not the pool: the
 * connection is DONE. */
void rt_conn_unreserve(struct rpma_rt_conn *conn);
/* Frees the data that only the way to established needs; a second call does
 * nothing. Control thread. */
void rt_conn_end_handshake(struct rpma_rt_conn *conn);
/* Frees the record. REQUIRES: no references are left */
void rt_conn_free(struct rpma_rt_conn *conn);
/* Frees connections whose last holder was on a poller. Not on a poller. */
void rt_conn_free_left(struct rpma_rt *rt);

/* --------------------------------------------------- the control thread --- */

/* Handles the first message of an active connection: begins resolving. */
void rt_conn_begin_control(struct rt_msg *msg, void *owner);
/* Handles the connection's message to the control thread: bits of enum
 * rt_ctl_bit. */
void rt_conn_control_message(struct rt_msg *msg, void *owner);
/* Handles a CM event of the connection; the caller owns the event. */
void rt_conn_cm_event_control(struct rpma_rt_conn *conn,
			      const struct rpma_cm_event *event);
/* Takes over the queue pair, which exists now: sends its number to the poller,
 * which reports the queue pair to the application; receives may be posted.
 * Control thread. ERRORS: of librpma */
int rt_conn_qp_is_made_control(struct rpma_rt_conn *conn);
/* Keeps the private data of the event for rpma_rt_conn_get_private_data(),
 * unless the connection has private data already. Control thread. */
void rt_conn_keep_private_data(struct rpma_rt_conn *conn,
			       const struct rpma_cm_event *event);
/* Returns the event without private data: librpma would keep another copy. */
struct rpma_cm_event rt_conn_bare_event(const struct rpma_cm_event *event);
/* Makes a connection of a peer's request, or refuses the peer. */
struct rpma_rt_listener;
void rt_conn_request_control(struct rpma_rt_listener *listener,
			     const struct rpma_cm_event *event);
/* operations of a CM target that is a connection */
extern const struct rt_cm_ops rt_conn_cm_ops;
/* Begins the connection's death; `reason` counts if no other cause came before.
 * Blocks as long as the device does: not under a lock. */
void rt_conn_die_control(struct rpma_rt_conn *conn, enum rpma_rt_reason reason,
			 uint32_t cm_status);

/* Ends the changes, at DONE. Returns false if a change is being made: DONE is
 * sent again at the change's end. */
bool rt_change_close_control(struct rpma_rt_conn *conn);

/* Returns the connection's SRQ, or NULL. */
static inline struct rpma_rt_srq *rt_conn_srq(const struct rpma_rt_conn *conn)
{
	return conn->receives == RT_RECEIVES_SRQ ? conn->from.srq : NULL;
}

/* Returns the struct that fills the receives from a pool, or NULL. */
static inline struct rt_conn_fed *rt_conn_fed(const struct rpma_rt_conn *conn)
{
	return conn->receives == RT_RECEIVES_POOL ? conn->from.fed : NULL;
}

/* Returns the connection of the side. */
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

/* Returns whether the connection has a queue, which never changes. */
static inline bool rt_conn_has_queue(const struct rpma_rt_conn *conn,
				     enum rpma_rt_side side)
{
	/* relaxed: another queue has another lane, but never NULL */
	return atomic_load_explicit(&conn->own[side].lane,
				    memory_order_relaxed) != NULL;
}

/* Returns the lane of the connection's own queue; NULL: no queue. On the
 * poller. */
static inline struct rt_lane *rt_conn_lane(const struct rpma_rt_conn *conn)
{
	/* relaxed: only the poller writes */
	return atomic_load_explicit(&conn->own[0].lane, memory_order_relaxed);
}

/* ----------------------------------------------------------- its poller --- */

/* Returns the user pointer for the connection's completions. */
void *rt_item_user(const struct rpma_rt_conn *conn);
struct rpma_rt_completion rt_item_event(const struct rpma_rt_conn *conn,
					enum rpma_rt_event event);
/* Writes an item to the connection's own queue, if there is a queue. */
void rt_item_write(struct rpma_rt_conn *conn,
		   const struct rpma_rt_completion *item);

/* ------------------------------------------- its poller: first and last --- */

/* Handles OPEN: takes over slot, own routes and the routes' spill. */
void rt_bind_open_poller(struct rpma_rt_conn *conn);
/* Handles BIND: the queue pair has a number. */
void rt_bind_qp_poller(struct rpma_rt_conn *conn);
/* Handle READY and ESTABLISHED: a side is open; write the event to the
 * queue. */
void rt_bind_ready_poller(struct rpma_rt_conn *conn);
void rt_bind_established_poller(struct rpma_rt_conn *conn);

/* Ends the wait for the queue pair's number: the connection dies. */
void rt_bind_give_up_poller(struct rpma_rt_conn *conn);
/* Gives up the queue pair's number for other connections: the connection is
 * swept. */
void rt_bind_leave_poller(struct rpma_rt_conn *conn);

/* Handles LAST: every completion of the connection has been delivered. Ends
 * with RT_CTL_DONE. */
void rt_end_begin_poller(struct rpma_rt_conn *conn);

/* Makes the keep-alive of a connection that is being made; period 0: no
 * keep-alive. ERRORS: RPMA_E_NOMEM */
int rt_keepalive_new(struct rpma_rt_conn *conn, uint32_t period_ms);
/* --------------------------------------- its poller: messages and death --- */

/* operations of a connection's sides off the success path */
extern const struct rt_side_ops rt_drain_side_ops;

/* Handles conn.poll_msg: the bits that were set, in the order of life. */
void rt_messages_poll(struct rt_msg *msg, void *owner);

/* Make and delete the handler of completions of the runtime's own work
 * requests, and the slots of connections; before the poller runs, and after its
 * end. ERRORS: RPMA_E_NOMEM */
int rt_internal_new(struct rt_poller *poller);
void rt_internal_delete(struct rt_poller *poller);

/* -------------------------------------------- its poller: refused posts --- */

/* Answers to refused posts of a connection: WRITABLE, in the connection's queue
 * or to the function inside which the post was refused.
 * doc/protocols/ledger.md, callback.md. */

/* Posts the line and answers these wants of the side, when there is credit, or
 * room in a lane. An operation of the side. */
void rt_answer_poller(struct rt_side *side, struct rt_poller *poller,
		      uint32_t wants);
/* Handles the look message of a connection: rt_look_send(). */
void rt_answer_look(struct rt_msg *msg, void *owner);
/* Answers a side (arg: the rt_side) that waited for a lane whose backlog has
 * cleared. */
void rt_answer_eased_poller(void *arg);

/* ----------------------------------------------------------- any thread --- */

/* Sets the drain's time, before RT_CTL_DRAIN, unless a drain was asked for
 * before. */
static inline void rt_conn_set_drain_ms(struct rpma_rt_conn *conn, uint32_t ms)
{
	uint32_t none = 0;

	/* relaxed: the bit publishes the time */
	atomic_compare_exchange_strong_explicit(&conn->drain_ms, &none, ms + 1,
						memory_order_relaxed,
						memory_order_relaxed);
}

/* Notes when the gates began to close, for the dump. */
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
/* Sets bits for the control thread as rt_conn_tell_control() does, unless the
 * connection is DONE. Any thread that has a handle. */
void rt_conn_ask_control(struct rpma_rt_conn *conn, uint32_t bits);
/* Refuses further posts; the control thread ends the connection for the reason
 * of the bit. REQUIRES: the caller is outside of the connection's gates */
void rt_conn_close_for(struct rpma_rt_conn *conn, uint32_t bit);
void rt_conn_tell_poller(struct rpma_rt_conn *conn, uint32_t bits);
void rt_conn_unref(struct rpma_rt_conn *conn);
/* Drops an item that no consumer will take: unrefs the handle of a REQUEST. */
void rt_conn_drop_item(const struct rpma_rt_completion *item);

/* ------------------------------------------------------------- its name --- */

/* Copies the name; `name` has room for every name. Any thread that holds the
 * connection. */
void rt_name_copy(struct rpma_rt_conn *conn, char *name);

/* Returns the name. REQUIRES: the calling thread owns the name, or has the
 * directory's lock. */
static inline const char *rt_name_of(const struct rpma_rt_conn *conn)
{
	return conn->is_named ? conn->name.given : conn->name.text;
}

/* ------------------------------------------------------------- its peer --- */

/*
 * The peer: address and configuration. The address is copied when the
 * connection becomes ready, because the CM id goes before the handle. A program
 * may say how the peer's memory can be flushed before librpma has a connection,
 * and while threads post: the record keeps the configuration, and a poster
 * hands the configuration on, inside the send side's gate, where librpma's
 * connection is known to exist.
 */

/* Copies the peer's address from a request that has a queue pair, before the
 * queue pair is reported. Control thread. ERRORS: errors of librpma */
int rt_peer_keep_addr_control(struct rpma_rt_conn *conn);
/* Hands the configuration to librpma, before a persistent flush. A poster,
 * inside the send side's gate. */
int rt_peer_apply_poster(struct rpma_rt_conn *conn);
/* Frees the peer's data, together with the record: no other thread uses the
 * data. */
void rt_peer_fini(struct rpma_rt_conn *conn);

#endif /* RT_CONN_CONN_H */
