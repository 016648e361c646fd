/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * core.h: errors, completions, runtimes, pollers and queues. rpma_rt.h, which
 * includes this header, says how to read the comments.
 */

#ifndef RPMA_RT_CORE_H
#define RPMA_RT_CORE_H

#include <arpa/inet.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <librpma.h>

/* Begin and end the declarations of a header. Inside extern "C" clang warns of
 * the casts and the NULL of C, gcc does not. */
/* clang-format off */
#ifndef __cplusplus
#define RPMA_RT_BEGIN
#define RPMA_RT_END
#elif defined(__clang__)
#define RPMA_RT_BEGIN extern "C" { _Pragma("clang diagnostic push") \
	_Pragma("clang diagnostic ignored \"-Wold-style-cast\"") \
	_Pragma("clang diagnostic ignored \"-Wzero-as-null-pointer-constant\"")
#define RPMA_RT_END _Pragma("clang diagnostic pop") }
#else
#define RPMA_RT_BEGIN extern "C" {
#define RPMA_RT_END }
#endif
/* clang-format on */

/* The caller has to look at the result. */
#define RPMA_RT_MUST_CHECK __attribute__((warn_unused_result))

/* Declares an inline function; librpma_rt_inline makes functions of them. */
#ifndef RPMA_RT_INLINE
#define RPMA_RT_INLINE static inline
#endif

RPMA_RT_BEGIN

struct rpma_rt;
struct rpma_rt_queue;
struct rpma_rt_listener;
struct rpma_rt_conn;
struct rpma_rt_adopted;
struct rpma_rt_route;
struct rpma_rt_srq;
struct rpma_rt_pool;
struct rpma_rt_lease;
struct rpma_rt_future;

/* --------------------------------------------------------------- errors --- */

/* the queue, connection, listener, shard or runtime is closed or closing */
#define RPMA_RT_E_CLOSED (-100100)
/* the object was made before a fork(): the child cannot use the object */
#define RPMA_RT_E_FORKED (-100101)
/* the call may wait, and was made in a function that the runtime called */
#define RPMA_RT_E_THREAD (-100102)
/* the object is in use, or another thread is inside a call on the object */
#define RPMA_RT_E_BUSY (-100103)
/* so many operations failed that the wanted successes cannot be reached */
#define RPMA_RT_E_FAILED (-100104)

/* Returns the text of an error of either library, never NULL. Thread: any. */
const char *rpma_rt_err_2str(int ret);

/* ---------------------------------------------------------- completions --- */

enum rpma_rt_kind {
	RPMA_RT_COMPLETION = 0, /* of a work request */
	RPMA_RT_EVENT = 1,	/* see enum rpma_rt_event */
	RPMA_RT_MESSAGE = 2,	/* from rpma_rt_queue_push() */
	RPMA_RT_WRITABLE = 3	/* a post refused with AGAIN may succeed */
};

enum rpma_rt_event {
	RPMA_RT_EVENT_REQUEST = 1, /* a peer asks to connect */
	RPMA_RT_EVENT_READY = 2,   /* resolved: post receives, then connect */
	RPMA_RT_EVENT_ESTABLISHED = 3, /* connected: sends can be posted */
	RPMA_RT_EVENT_CLOSED = 4, /* last item of the connection in its queue */
	RPMA_RT_EVENT_ROUTE_CLOSED = 5,	   /* last item in any other queue */
	RPMA_RT_EVENT_SRQ_LIMIT = 6,	   /* rpma_rt_srq_cfg.limit passed */
	RPMA_RT_EVENT_SRQ_CLOSED = 7,	   /* last item of an SRQ */
	RPMA_RT_EVENT_LISTENER_CLOSED = 8, /* last item of a listener */
	RPMA_RT_EVENT_SRQ_FAILED = 9,	   /* device error: delete the SRQ */
	RPMA_RT_EVENT_POOL_CLOSED = 10	   /* in futures: no slot comes */
};

/* Why a connection or listener was closed or an SRQ failed: the status of
 * CLOSED, ROUTE_CLOSED, LISTENER_CLOSED, SRQ_FAILED and POOL_CLOSED. */
enum rpma_rt_reason {
	RPMA_RT_REASON_LOCAL = 0, /* the program closed, rejected, deleted */
	RPMA_RT_REASON_DISCONNECTED = 1, /* the peer left */
	RPMA_RT_REASON_REJECTED = 2,	 /* the peer, or no listener, refused */
	RPMA_RT_REASON_UNREACHABLE = 3,	 /* no route, no answer */
	RPMA_RT_REASON_ERROR = 4,	 /* a work request failed */
	RPMA_RT_REASON_DEVICE = 5, /* CQ or SRQ error, device fatal, removed */
	RPMA_RT_REASON_FAILED = 6, /* a verb or this machine: see the errno */
	RPMA_RT_REASON_STOPPED = 7 /* rpma_rt_stop() */
};

/* Flags of a completion. The last three have the status IBV_WC_GENERAL_ERR. */
#define RPMA_RT_C_WITH_IMM    (1 << 1) /* imm is valid */
#define RPMA_RT_C_WITH_INV    (1 << 3) /* imm holds the invalidated rkey */
#define RPMA_RT_C_LEASE	      (1 << 4) /* see rpma_rt_completion_lease() */
#define RPMA_RT_C_DETACHED    (1 << 5) /* cancelled or delivered: no result */
#define RPMA_RT_C_NOT_POSTED  (1 << 6) /* of a taken work request: no effect */
#define RPMA_RT_C_SYNTHESIZED (1 << 7) /* the outcome is unknown */

#define RPMA_RT_OPCODE_UNKNOWN 255
#define RPMA_RT_WRITABLE_SRQ   2

/*
 * An item of a queue: 32 bytes, two in a cache line.
 *
 *            completion              event              message    WRITABLE
 * context    as posted               connection         as pushed  connection
 * user       of the connection       of the connection  as pushed  of the conn.
 * byte_len   bytes received or read  -                  as pushed  -
 * imm        immediate data, network rpma_rt_           as pushed  -
 *            order; vendor_err of    completion_detail()
 *            an error
 * qp_num     of the connection       of the conn. or 0  0          of the conn.
 * status     enum ibv_wc_status      rpma_rt_reason     0          0
 * opcode     enum ibv_wc_opcode      rpma_rt_event      0          rpma_rt_side
 *
 * An event or WRITABLE of an SRQ has the SRQ and the user pointer of the SRQ,
 * WRITABLE the opcode RPMA_RT_WRITABLE_SRQ. LISTENER_CLOSED has the listener,
 * to compare only, and the user pointer of the listener.
 */
struct rpma_rt_completion {
	uint64_t context;
	void *user;
	uint32_t byte_len;
	uint32_t imm;
	uint32_t qp_num;
	uint8_t kind; /* enum rpma_rt_kind */
	uint8_t status;
	uint8_t opcode;
	uint8_t flags; /* RPMA_RT_C_* */
};

/* Returns the name of a reason, "unknown" for other numbers. Thread: any. */
const char *rpma_rt_reason_2str(enum rpma_rt_reason reason);

/* Returns the name of a status, and a few words on the cause. Thread: any. */
const char *rpma_rt_status_2str(enum ibv_wc_status status);

/* Writes an item as text without a newline, cut to len bytes (160 hold any
 * item) and ended by 0. Returns buf. Thread: any. */
char *rpma_rt_completion_2str(const struct rpma_rt_completion *cmpl, char *buf,
			      size_t len);

/* Writes a completion as a work completion of verbs. Thread: any. */
void rpma_rt_completion_to_wc(const struct rpma_rt_completion *cmpl,
			      struct ibv_wc *wc);

/* Returns whether the item is an operation that succeeded. Thread: any. */
RPMA_RT_INLINE bool
rpma_rt_completion_is_ok(const struct rpma_rt_completion *cmpl)
{
	return cmpl->kind == RPMA_RT_COMPLETION &&
	       cmpl->status == IBV_WC_SUCCESS;
}

/* Returns whether a message or write with imm was received. Thread: any. */
RPMA_RT_INLINE bool
rpma_rt_completion_is_received(const struct rpma_rt_completion *cmpl)
{
	return rpma_rt_completion_is_ok(cmpl) &&
	       (cmpl->opcode & IBV_WC_RECV) != 0;
}

/* Returns the enum rpma_rt_event, 0 for other items. Thread: any. */
RPMA_RT_INLINE unsigned
rpma_rt_completion_event(const struct rpma_rt_completion *cmpl)
{
	return cmpl->kind == RPMA_RT_EVENT ? cmpl->opcode : 0u;
}

/* Returns the connection of an event or WRITABLE, or NULL. Thread: any. */
RPMA_RT_INLINE struct rpma_rt_conn *
rpma_rt_completion_conn(const struct rpma_rt_completion *cmpl)
{
	bool is_conn = (cmpl->kind == RPMA_RT_EVENT &&
			cmpl->opcode <= RPMA_RT_EVENT_ROUTE_CLOSED) ||
		       (cmpl->kind == RPMA_RT_WRITABLE &&
			cmpl->opcode != RPMA_RT_WRITABLE_SRQ);

	return is_conn ? (struct rpma_rt_conn *)(uintptr_t)cmpl->context : NULL;
}

/* Returns the SRQ of SRQ_LIMIT, SRQ_FAILED, SRQ_CLOSED (to compare only) or
 * WRITABLE, or NULL. Thread: any. */
RPMA_RT_INLINE struct rpma_rt_srq *
rpma_rt_completion_srq(const struct rpma_rt_completion *cmpl)
{
	unsigned event = rpma_rt_completion_event(cmpl);
	bool is_srq = event == RPMA_RT_EVENT_SRQ_LIMIT ||
		      event == RPMA_RT_EVENT_SRQ_FAILED ||
		      event == RPMA_RT_EVENT_SRQ_CLOSED ||
		      (cmpl->kind == RPMA_RT_WRITABLE &&
		       cmpl->opcode == RPMA_RT_WRITABLE_SRQ);

	return is_srq ? (struct rpma_rt_srq *)(uintptr_t)cmpl->context : NULL;
}

/* Returns the listener of LISTENER_CLOSED, to compare only, or NULL.
 * Thread: any. */
RPMA_RT_INLINE struct rpma_rt_listener *
rpma_rt_completion_listener(const struct rpma_rt_completion *cmpl)
{
	return rpma_rt_completion_event(cmpl) == RPMA_RT_EVENT_LISTENER_CLOSED
		       ? (struct rpma_rt_listener *)(uintptr_t)cmpl->context
		       : NULL;
}

/* Returns the context of a completion or message as a pointer. Thread: any. */
RPMA_RT_INLINE void *
rpma_rt_completion_ptr(const struct rpma_rt_completion *cmpl)
{
	return (void *)(uintptr_t)cmpl->context;
}

/* Writes the immediate data, in host order.
 * Returns false, without a write, if there is none. Thread: any. */
RPMA_RT_INLINE bool
rpma_rt_completion_imm(const struct rpma_rt_completion *cmpl, uint32_t *imm)
{
	if (!rpma_rt_completion_is_ok(cmpl) ||
	    !(cmpl->flags & RPMA_RT_C_WITH_IMM))
		return false;
	*imm = ntohl(cmpl->imm);
	return true;
}

/* The cause that CLOSED or LISTENER_CLOSED has beside the reason. */
enum rpma_rt_detail {
	RPMA_RT_DETAIL_NONE = 0,
	RPMA_RT_DETAIL_ERRNO = 1, /* a positive errno */
	RPMA_RT_DETAIL_REJECT = 2 /* a reject reason of the CM */
};

/* Writes the cause in CLOSED or LISTENER_CLOSED, 0 for other items.
 * Returns the kind of the cause. Thread: any. */
RPMA_RT_INLINE enum rpma_rt_detail
rpma_rt_completion_detail(const struct rpma_rt_completion *cmpl, int *value)
{
	unsigned event = rpma_rt_completion_event(cmpl);
	int32_t imm = (int32_t)cmpl->imm;

	*value = 0;
	if ((event != RPMA_RT_EVENT_CLOSED &&
	     event != RPMA_RT_EVENT_LISTENER_CLOSED) ||
	    imm == 0)
		return RPMA_RT_DETAIL_NONE;
	*value = imm < 0 ? -imm : imm;
	return imm < 0 ? RPMA_RT_DETAIL_ERRNO : RPMA_RT_DETAIL_REJECT;
}

/* -------------------------------------------------------------- runtime --- */

/* Handles an asynchronous event of verbs, already acknowledged; the pointer in
 * the event is to compare only. Runs on the process's event thread. */
typedef void rpma_rt_async_fn(struct ibv_context *ibv_ctx,
			      const struct ibv_async_event *event, void *arg);

enum rpma_rt_mode {
	RPMA_RT_MODE_ADAPTIVE = 0, /* spins for spin_us, then sleeps */
	RPMA_RT_MODE_BUSY = 1,	   /* never sleeps: needs a CPU of its own */
	RPMA_RT_MODE_EVENT = 2,	   /* sleeps as soon as there is nothing */
	RPMA_RT_MODE_MANUAL = 3	   /* no thread: call rpma_rt_poller_run() */
};

#define RPMA_RT_MAX_POLLERS	    64
#define RPMA_RT_CPU_ANY		    (-1)
#define RPMA_RT_DEFAULT_SPIN_US	    50
#define RPMA_RT_DEFAULT_BACKSTOP_MS 500
#define RPMA_RT_DEFAULT_CQ_SIZE	    16384
#define RPMA_RT_DEFAULT_TEARDOWN_MS 5000

struct rpma_rt_cfg {
	uint32_t size;
	uint32_t mode;	  /* enum rpma_rt_mode; default ADAPTIVE */
	uint32_t pollers; /* 1..RPMA_RT_MAX_POLLERS; default 1 */
	uint32_t cq_size; /* entries of a poller's first CQ, 1..; 16384 */
	/* without work before a poller sleeps, 0..1000000; default 50 */
	uint32_t spin_us;
	/* before a sleeping poller looks anyway, 0..60000, 0: never; 500 */
	uint32_t backstop_ms;
	/* that a dying connection waits for completions, 1..600000; 5000 */
	uint32_t teardown_ms;
	uint32_t timing; /* times 1 batch in so many; 0 (default): no clock */
	/* CPU of each poller, or RPMA_RT_CPU_ANY; NULL (default): not pinned */
	const int32_t *cpus;
	uint32_t cpu_count;  /* pollers, or 0 if cpus is NULL */
	uint32_t async_feed; /* 1: rpma_rt_feed_async_event() is called; 0 */
	rpma_rt_async_fn *async_fn; /* for other events; default NULL */
	void *async_arg;
	uint64_t reserved[4];
};

/* clang-format off */
#define RPMA_RT_CFG_INIT { sizeof(struct rpma_rt_cfg), RPMA_RT_MODE_ADAPTIVE, \
	1, RPMA_RT_DEFAULT_CQ_SIZE, RPMA_RT_DEFAULT_SPIN_US, \
	RPMA_RT_DEFAULT_BACKSTOP_MS, RPMA_RT_DEFAULT_TEARDOWN_MS, 0, \
	NULL, 0, 0, NULL, NULL, {0, 0, 0, 0} }
/* clang-format on */

/* Writes size bytes of RPMA_RT_CFG_INIT. Returns 0. Thread: any. */
int rpma_rt_cfg_init(struct rpma_rt_cfg *cfg, size_t size);

/* Makes a runtime and starts its threads; cfg NULL: defaults.
 * Returns 0. Errors: NOMEM, PROVIDER. Thread: waits. */
int rpma_rt_new(const struct rpma_rt_cfg *cfg,
		struct rpma_rt **rt_ptr) RPMA_RT_MUST_CHECK;

/* Closes listeners and connections, delivers outstanding completions and ends
 * the threads; queues stay, to be polled until RPMA_RT_E_CLOSED.
 * Returns 0. Thread: waits. */
int rpma_rt_stop(struct rpma_rt *rt);

/* Stops the runtime if necessary, and frees the runtime.
 * Returns 0. Errors: BUSY (queues, SRQs, pools, connections or futures are
 * held). Thread: owner, waits. */
int rpma_rt_delete(struct rpma_rt **rt_ptr);

/* Passes an event of ibv_get_async_event(), not yet acknowledged, to a runtime
 * with async_feed.
 * Returns 0. Errors: NOSUPP (no async_feed), UNKNOWN (no object of the
 * runtime). Thread: any. */
int rpma_rt_feed_async_event(struct rpma_rt *rt, struct ibv_context *ibv_ctx,
			     const struct ibv_async_event *event);

enum rpma_rt_dump_format {
	RPMA_RT_DUMP_HUMAN = 0,
	RPMA_RT_DUMP_JSON = 1,
	RPMA_RT_DUMP_PROMETHEUS = 2 /* text exposition */
};

/* Writes the state of the runtime, and what looks wrong, to fd.
 * Returns 0. Errors: NOMEM, PROVIDER (fd), BUSY (a thread is stopped inside a
 * list). Thread: any, before rpma_rt_delete(); not in a handler of a signal. */
int rpma_rt_dump(struct rpma_rt *rt, int fd, enum rpma_rt_dump_format format);

/* -------------------------------------------------------------- pollers --- */

/*
 * A poller is named by the runtime and an index, 0..pollers - 1. In manual mode
 * any thread serves a poller without an owner, and only the owner an attached
 * poller. attach, release, run and arm fail with BUSY on the poller of another
 * thread, with NOSUPP in other modes, and with CLOSED after rpma_rt_stop().
 */

/* Makes the calling thread the owner of the poller.
 * Returns 0. Errors: NOMEM. Thread: waits. */
int rpma_rt_poller_attach(struct rpma_rt *rt,
			  uint32_t poller) RPMA_RT_MUST_CHECK;

/* Leaves the poller without an owner. Returns 0. Thread: waits. */
int rpma_rt_poller_release(struct rpma_rt *rt, uint32_t poller);

/* Runs one round, of at most budget (1..) work completions.
 * Returns the number of items handled, of any kind. Thread: waits. */
int rpma_rt_poller_run(struct rpma_rt *rt, uint32_t poller,
		       uint32_t budget) RPMA_RT_MUST_CHECK;

/* Runs one round, then polls the queue for up to max (1..) items: with less
 * work than both calls, if no other poller fills the queue. The round polls
 * each CQ for as many completions as the queue may take items; completions for
 * others, and of silent work requests, do not count. Writes whether the round
 * handled an item of any kind.
 * Returns the number of items taken. Errors: of both calls; CLOSED: of the
 * queue. Thread: waits, the consumer of the queue. */
int rpma_rt_poller_take(struct rpma_rt *rt, uint32_t poller,
			struct rpma_rt_queue *queue,
			struct rpma_rt_completion *cmpl, int max,
			bool *busy) RPMA_RT_MUST_CHECK;

/* Arms the poller before the calling thread sleeps on its fd.
 * Returns 0 (armed: sleep) or 1 (there is work: run the poller). Thread:
 * waits. */
int rpma_rt_poller_arm(struct rpma_rt *rt, uint32_t poller) RPMA_RT_MUST_CHECK;

/* Writes the fd, readable while an armed poller has work. The runtime owns the
 * fd: do not read or close. Returns 0. Thread: any. */
int rpma_rt_poller_get_fd(const struct rpma_rt *rt, uint32_t poller, int *fd);

/* Counters since the start. */
struct rpma_rt_poller_stats {
	uint64_t polls; /* calls of ibv_poll_cq */
	uint64_t empty_polls;
	uint64_t completions; /* work completions taken from CQs */
	uint64_t delivered;   /* items given to queues, of every kind */
	uint64_t batches;     /* of such items, each of a queue */
	uint64_t doorbells;   /* consumers woken */
	uint64_t sleeps;
	uint64_t events;  /* completion events read */
	uint64_t acks;	  /* calls of ibv_ack_cq_events */
	uint64_t spilled; /* items that found their lane full */
	uint64_t lost;	  /* items dropped; 0 unless the library is broken */
	uint64_t stale;	  /* completions of no open route: dropped */
	uint64_t lost_events_recovered;
	uint64_t keepalives;	   /* posted */
	uint64_t spinning_ns;	   /* idle and awake; only with timing */
	uint64_t sleeping_ns;	   /* only with timing */
	uint64_t last_wqe_missing; /* of queue pairs that ended, with an SRQ */
};

/* Writes size bytes of the counters. Returns 0. Thread: any. */
int rpma_rt_poller_get_stats(const struct rpma_rt *rt, uint32_t poller,
			     struct rpma_rt_poller_stats *stats, size_t size);

/* --------------------------------------------------------------- queues --- */

#define RPMA_RT_DEFAULT_LANE_SIZE     1024
#define RPMA_RT_DEFAULT_BACKLOG_LIMIT 4096
#define RPMA_RT_DEFAULT_QUEUE_SPIN_US 20
#define RPMA_RT_NAME_MAX	      31      /* bytes, without the final 0 */
#define RPMA_RT_MAX_MESSAGES	      1048576 /* pushed and not taken */

struct rpma_rt_queue_cfg {
	uint32_t size;
	/* entries of a poller's lane, a power of two, 64..1048576; 1024 */
	uint32_t lane_size;
	/* entries behind a full lane, then posts are AGAIN, 1..1048576; 4096 */
	uint32_t backlog_limit;
	uint32_t spin_us; /* of a wait before a sleep, 0..1000000; default 20 */
	/* ..RPMA_RT_NAME_MAX printable ASCII; NULL (default): "queue N" */
	const char *name;
	uint32_t shared; /* 1: several consumers at once; 0 (default): one */
	uint32_t reserved32;
	uint64_t reserved[2];
};

/* clang-format off */
#define RPMA_RT_QUEUE_CFG_INIT { sizeof(struct rpma_rt_queue_cfg), \
	RPMA_RT_DEFAULT_LANE_SIZE, RPMA_RT_DEFAULT_BACKLOG_LIMIT, \
	RPMA_RT_DEFAULT_QUEUE_SPIN_US, NULL, 0, 0, {0, 0} }
/* clang-format on */

/* Writes size bytes of RPMA_RT_QUEUE_CFG_INIT. Returns 0. Thread: any. */
int rpma_rt_queue_cfg_init(struct rpma_rt_queue_cfg *cfg, size_t size);

/* Makes a queue; cfg NULL: defaults.
 * Returns 0. Errors: NOMEM, CLOSED. Thread: waits. */
int rpma_rt_queue_new(struct rpma_rt *rt, const struct rpma_rt_queue_cfg *cfg,
		      struct rpma_rt_queue **queue_ptr) RPMA_RT_MUST_CHECK;

/* Frees a queue and drops the items inside.
 * Returns 0. Errors: BUSY (an object that is not closed leads to the queue, or
 * a thread takes from the queue). Thread: owner, waits. */
int rpma_rt_queue_delete(struct rpma_rt_queue **queue_ptr);

/* Takes up to max (0..) items and never blocks.
 * Returns the number of items, 0 if there is none now. Errors: CLOSED (no item
 * follows), BUSY (a second consumer). Thread: consumer. */
int rpma_rt_queue_poll(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl,
		       int max) RPMA_RT_MUST_CHECK;

/* Waits up to timeout_ms milliseconds (-1: no limit) for the first item, then
 * takes up to max.
 * Returns the number of items, 0 if the time passed or the queue was woken.
 * Errors: as rpma_rt_queue_poll(). Thread: consumer, waits. */
int rpma_rt_queue_wait(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl, int max,
		       int timeout_ms) RPMA_RT_MUST_CHECK;

/* Writes an eventfd, level-triggered. The queue owns the fd: do not read or
 * close. Returns 0. Errors: PROVIDER. Thread: consumer. */
int rpma_rt_queue_get_fd(struct rpma_rt_queue *queue, int *fd);

/* Arms the queue before each sleep on the fd, which is readable from the next
 * item on, until an arm returns 0.
 * Returns 0 (armed: sleep) or 1 (look again). Errors: as rpma_rt_queue_poll(),
 * INVAL (no rpma_rt_queue_get_fd() before). Thread: consumer. */
int rpma_rt_queue_arm(struct rpma_rt_queue *queue) RPMA_RT_MUST_CHECK;

/* Pushes a copy of context, user, byte_len and imm of *item as a message;
 * messages have no order relative to completions.
 * Returns 0. Errors: NOMEM, CLOSED, BUSY (RPMA_RT_MAX_MESSAGES are inside).
 * Thread: any. */
int rpma_rt_queue_push(struct rpma_rt_queue *queue,
		       const struct rpma_rt_completion *item);

/* Leaves pushed messages in the queue (holds not 0), or takes messages again
 * (0). Returns 0. Thread: consumer. */
int rpma_rt_queue_hold(struct rpma_rt_queue *queue, int holds);

/* Wakes a consumer: rpma_rt_queue_wait() returns 0, rpma_rt_queue_arm() 1. The
 * wake that precedes the sleep is remembered; several may coalesce.
 * Returns 0. Thread: any, also a handler of a signal. */
int rpma_rt_queue_wake(struct rpma_rt_queue *queue);

/* Refuses further messages and users, and wakes the consumer; outstanding
 * completions still arrive. Returns 0. Thread: any. */
int rpma_rt_queue_close(struct rpma_rt_queue *queue);

/* Counts in buckets[i] the times from 2^i up to 2^(i + 1) nanoseconds, and in
 * the last bucket longer times, too. */
#define RPMA_RT_HISTOGRAM 32
struct rpma_rt_histogram {
	uint64_t buckets[RPMA_RT_HISTOGRAM];
	uint64_t sum_ns;
};

/* Counters since the queue was made. */
struct rpma_rt_queue_stats {
	uint64_t polls;	   /* calls of rpma_rt_queue_poll() */
	uint64_t waits;	   /* calls of rpma_rt_queue_wait() */
	uint64_t empty;	   /* polls and waits that found nothing */
	uint64_t busy;	   /* shared: kept out by another worker */
	uint64_t batches;  /* polls and waits that found items */
	uint64_t taken;	   /* items of every kind */
	uint64_t messages; /* pushed */
	uint64_t sleeps;   /* on the futex */
	uint64_t wakes;	   /* sleepers woken, in wait or on the fd */
	uint64_t backlog;  /* items inside now */
	struct rpma_rt_histogram dispatch; /* CQ polled to last item taken */
	struct rpma_rt_histogram wakeup;   /* wake-up call to consumer runs */
};

/* Writes size bytes of the counters. Returns 0. Thread: any. */
int rpma_rt_queue_get_stats(const struct rpma_rt_queue *queue,
			    struct rpma_rt_queue_stats *stats, size_t size);

RPMA_RT_END

#endif /* RPMA_RT_CORE_H */
