/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * librpma_rt: leads completions to the threads that consume them.
 *
 * A runtime owns pollers. A poller is one thread (or, in manual mode, one loop
 * of yours) with one completion channel per device; every connection belongs
 * to one poller. A work request names a route, a route leads to a queue, and
 * one thread at a time consumes a queue. Each work request that asks for a
 * completion gets exactly one, in the queue its route names, whatever happens
 * to the connection. rpma_rt(7) describes the model, each call has its page.
 *
 * Results: calls that poll, wait, post or run return how many, >= 0, or a
 * negative error; all others 0 or a negative error. Errors are RPMA_E_* and
 * RPMA_RT_E_*. An error of posting comes back from the call; the result of the
 * operation only in its completion.
 * Threads: "any" = any thread at any time; "consumer" = the one thread that
 * consumes the queue, or each of those that share it; "owner" = the holder of
 * the handle, one thread at a time.
 *
 * Configurations are structs that begin with their size:
 *	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
 *	cfg.pollers = 2;
 * The initializer sets every default. A 0 is a value where the range of the
 * field contains 0, and the default where it does not; in fields of later
 * releases 0 always means "as before". reserved words must be 0. Pointers are
 * borrowed for the call only. RPMA_E_INVAL, with a line in the log that names
 * the field and its range: a size of 0 (no initializer) or below the first
 * release's, bytes other than 0 beyond the fields that this library knows, a
 * value out of range, a required field that is missing.
 */

#ifndef RPMA_RT_H
#define RPMA_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <librpma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result has to be checked. */
#define RPMA_RT_MUST_CHECK __attribute__((warn_unused_result))

/* --------------------------------------------------------------- errors --- */

/* the queue, connection, listener or runtime is closed or closing */
#define RPMA_RT_E_CLOSED (-100100)
/* the object is from before fork(): a child cannot use it */
#define RPMA_RT_E_FORKED (-100101)
/* the call may wait: not in a function that the runtime called */
#define RPMA_RT_E_THREAD (-100102)
/* the object is still used, or another thread is inside */
#define RPMA_RT_E_BUSY (-100103)
/* so many of the operations failed that what was waited for cannot be */
#define RPMA_RT_E_FAILED (-100104)

/* Text of an error of either library. Thread: any. */
const char *rpma_rt_err_2str(int ret);

/* Why the calling thread's last post took fewer work requests than given. */
enum rpma_rt_again {
	RPMA_RT_AGAIN_NONE = 0, /* the post took all, or failed otherwise */
	/* the queue pair's queue, and the line behind it, are full */
	RPMA_RT_AGAIN_CREDIT = 1,
	RPMA_RT_AGAIN_BACKLOG = 2, /* the destination's consumer is behind */
	RPMA_RT_AGAIN_NOT_YET = 3, /* before READY (receives), ESTABLISHED */
	/* all futures of that side are held: drop some. WRITABLE comes with
	 * the next completion of that side; all may be held still */
	RPMA_RT_AGAIN_FUTURES = 4
};

/* Thread: any; answers for the calling thread. */
enum rpma_rt_again rpma_rt_again_reason(void);
/* The name of a reason, and what to wait for. */
const char *rpma_rt_again_2str(enum rpma_rt_again reason);

/* ---------------------------------------------------------- completions --- */

enum rpma_rt_kind {
	RPMA_RT_COMPLETION = 0, /* of a work request */
	RPMA_RT_EVENT = 1,	/* of a connection, see enum rpma_rt_event */
	RPMA_RT_MESSAGE = 2,	/* from rpma_rt_queue_push() */
	RPMA_RT_WRITABLE = 3 /* a post refused with RPMA_E_AGAIN may succeed */
};

enum rpma_rt_event {
	RPMA_RT_EVENT_REQUEST = 1, /* a peer asks to connect */
	RPMA_RT_EVENT_READY = 2,   /* resolved: post receives, then connect */
	RPMA_RT_EVENT_ESTABLISHED = 3,
	RPMA_RT_EVENT_CLOSED = 4, /* the connection's last item in its queue */
	RPMA_RT_EVENT_ROUTE_CLOSED = 5, /* its last item in any other queue */
	RPMA_RT_EVENT_SRQ_LIMIT = 6,	/* fewer receives are out than that */
	RPMA_RT_EVENT_SRQ_CLOSED = 7,	/* the last item of an SRQ */
	/* the last item of a listener in this queue */
	RPMA_RT_EVENT_LISTENER_CLOSED = 8,
	/* the device reports an error of an SRQ: its connections are closed
	 * with RPMA_RT_REASON_DEVICE, and it takes no others */
	RPMA_RT_EVENT_SRQ_FAILED = 9,
	/* of futures: the runtime has stopped, no slot of the pool comes */
	RPMA_RT_EVENT_POOL_CLOSED = 10
};

/* why a connection, a listener was closed, an SRQ has failed: status of
 * RPMA_RT_EVENT_CLOSED, _LISTENER_CLOSED, _SRQ_FAILED and _POOL_CLOSED */
enum rpma_rt_reason {
	/* rpma_rt_conn_close(), _reject(), rpma_rt_listener_delete() */
	RPMA_RT_REASON_LOCAL = 0,
	RPMA_RT_REASON_DISCONNECTED = 1, /* the peer left */
	RPMA_RT_REASON_REJECTED = 2,	 /* the peer, or no listener, refused */
	RPMA_RT_REASON_UNREACHABLE = 3,	 /* no route, no answer */
	/* a work request failed, even if the peer disconnected before or the
	 * device failed later */
	RPMA_RT_REASON_ERROR = 4,
	RPMA_RT_REASON_DEVICE = 5, /* CQ or SRQ error, device fatal, removed */
	/* a verb or a resource of this machine refused, with the errno that
	 * rpma_rt_completion_detail() returns */
	RPMA_RT_REASON_FAILED = 6,
	RPMA_RT_REASON_STOPPED = 7 /* rpma_rt_stop() */
};

#define RPMA_RT_C_WITH_IMM (1 << 1) /* imm is valid */
#define RPMA_RT_C_WITH_INV (1 << 3) /* imm holds the invalidated rkey */
/* a message in a slot of a pool, see rpma_rt_completion_lease() */
#define RPMA_RT_C_LEASE (1 << 4)
/* of a future that was cancelled, or led to the queue: its work is over, the
 * outcome is not in it (status IBV_WC_GENERAL_ERR) */
#define RPMA_RT_C_DETACHED (1 << 5)
/* the work request was taken and not posted, or the device refused it: no
 * effect (status IBV_WC_GENERAL_ERR) */
#define RPMA_RT_C_NOT_POSTED (1 << 6)
/* not from the device: the outcome is unknown (status IBV_WC_GENERAL_ERR) */
#define RPMA_RT_C_SYNTHESIZED (1 << 7)

#define RPMA_RT_OPCODE_UNKNOWN 255
#define RPMA_RT_WRITABLE_SRQ   2

/*
 * What a consumer receives: 32 bytes, two a cache line. rpma_rt_inline.h has
 * functions that read it without casts.
 *
 *              completion            event             message   writable
 * context      as posted             connection handle as pushed connection
 * user         the connection's      the connection's  as pushed the conn.'s
 * byte_len     received / read       -                 as pushed -
 * imm          imm_data (network     see rpma_rt_      as pushed -
 *              order); on error      completion_detail
 *              the vendor_err
 * qp_num       of the connection     likewise, or 0    0         likewise
 * status       enum ibv_wc_status    rpma_rt_reason    0         0
 * opcode       enum ibv_wc_opcode    rpma_rt_event     0         0 send side,
 *                                                                1 receive side
 *
 * In the queue of a shared receive queue: its handle and its user pointer, and
 * WRITABLE has the opcode RPMA_RT_WRITABLE_SRQ. LISTENER_CLOSED has those of
 * the listener, the handle to compare only.
 */
struct rpma_rt_completion {
	uint64_t context;
	void *user;
	uint32_t byte_len;
	uint32_t imm;
	uint32_t qp_num;
	uint8_t kind;
	uint8_t status;
	uint8_t opcode;
	uint8_t flags;
};

/* Returns the name of a reason, "unknown" for other values. Thread: any. */
const char *rpma_rt_reason_2str(enum rpma_rt_reason reason);
/* Returns the name of a completion's status, and a few words on the cause.
 * Thread: any. */
const char *rpma_rt_status_2str(enum ibv_wc_status status);
/* The whole completion as a line of text without a newline, cut to len bytes
 * and ended by 0; returns buf. 160 bytes hold any. Thread: any. */
char *rpma_rt_completion_2str(const struct rpma_rt_completion *cmpl, char *buf,
			      size_t len);

/* what rpma_rt_completion_detail() (inline) found in CLOSED */
enum rpma_rt_detail {
	RPMA_RT_DETAIL_NONE = 0,
	RPMA_RT_DETAIL_ERRNO = 1, /* a positive errno */
	RPMA_RT_DETAIL_REJECT = 2 /* a reject reason of the CM */
};

/* The same as a work completion, for code that has one; thread: any. */
void rpma_rt_completion_to_wc(const struct rpma_rt_completion *cmpl,
			      struct ibv_wc *wc);

/* -------------------------------------------------------------- runtime --- */

struct rpma_rt;
struct rpma_rt_queue;
struct rpma_rt_listener;
struct rpma_rt_conn;
struct rpma_rt_adopted;
struct rpma_rt_route;
struct rpma_rt_srq;
struct rpma_rt_pool;
struct rpma_rt_future;

/* Functions that the runtime calls: their object is the first argument, arg the
 * last. The calls that take them say on which thread they run and what they may
 * call. None may wait: calls that would return RPMA_RT_E_THREAD. */
typedef void rpma_rt_async_fn(struct ibv_context *ibv_ctx,
			      const struct ibv_async_event *event, void *arg);
typedef void rpma_rt_route_fn(const struct rpma_rt_completion *cmpl, void *arg);
typedef void rpma_rt_refill_fn(struct rpma_rt_srq *srq, uint32_t room,
			       void *arg);

enum rpma_rt_mode {
	RPMA_RT_MODE_ADAPTIVE = 0, /* spins for the budget, then sleeps */
	RPMA_RT_MODE_BUSY = 1,	   /* never sleeps: needs a CPU of its own */
	RPMA_RT_MODE_EVENT = 2,	   /* sleeps as soon as there is nothing */
	RPMA_RT_MODE_MANUAL = 3	   /* no thread: call rpma_rt_poller_run() */
};

#define RPMA_RT_MAX_POLLERS	    64
#define RPMA_RT_CPU_ANY		    (-1)
#define RPMA_RT_DEFAULT_SPIN_US	    50
#define RPMA_RT_DEFAULT_BACKSTOP_MS 500
#define RPMA_RT_DEFAULT_CQ_SIZE	    8192
#define RPMA_RT_DEFAULT_TEARDOWN_MS 5000

/*
 *   mode       enum rpma_rt_mode, default ADAPTIVE
 *   pollers    1..RPMA_RT_MAX_POLLERS, default 1
 *   cq_size    entries of a poller's first shared CQ on a device, 1..; each
 *              further CQ has twice as many as the largest, clipped to what
 *              the device has; default 8192
 *   spin_us    microseconds without work before a poller sleeps, 0..1000000;
 *              default 50
 *   backstop_ms  a sleeping poller looks for itself after so many milliseconds,
 *              in case the kernel dropped an event; 0 = never, ..60000;
 *              default 500
 *   teardown_ms  milliseconds that a dying connection waits for its last
 *              completions before its queue pair is destroyed, 1..600000;
 *              default 5000
 *   timing     time one batch in so many, every idle period and every wake-up
 *              of a consumer, for the statistics; 0, the default: no clock is
 *              read for them
 *   cpus, cpu_count  CPU of each poller, cpu_count = pollers; RPMA_RT_CPU_ANY =
 *              not pinned. NULL, 0, the default: none is pinned.
 *   async_fn, async_arg  called for asynchronous events of verbs. The process's
 *              event thread reads those, of every device in use, for all
 *              runtimes. Events of an object of a runtime end its connections;
 *              others (of the program's objects, ports, the device) are given
 *              to async_fn of each runtime that uses the device: on the event
 *              thread, already acknowledged, so an object in it may be gone:
 *              compare its pointer, do not follow it. NULL, the default: none.
 *   async_feed 1: the program reads asynchronous events itself, of every device
 *              that the runtime uses, and hands each to
 *              rpma_rt_feed_async_event(); default 0
 */
struct rpma_rt_cfg {
	uint32_t size;
	uint32_t mode;
	uint32_t pollers;
	uint32_t cq_size;
	uint32_t spin_us;
	uint32_t backstop_ms;
	uint32_t teardown_ms;
	uint32_t timing;
	const int32_t *cpus;
	uint32_t cpu_count;
	uint32_t async_feed;
	rpma_rt_async_fn *async_fn;
	void *async_arg;
	uint64_t reserved[4];
};

/* clang-format off */
#define RPMA_RT_CFG_INIT { sizeof(struct rpma_rt_cfg), RPMA_RT_MODE_ADAPTIVE, \
	1, RPMA_RT_DEFAULT_CQ_SIZE, RPMA_RT_DEFAULT_SPIN_US, \
	RPMA_RT_DEFAULT_BACKSTOP_MS, RPMA_RT_DEFAULT_TEARDOWN_MS, 0, \
	NULL, 0, 0, NULL, NULL, {0, 0, 0, 0} }
/* clang-format on */

/* The same for languages that have no initializer: writes the first size bytes,
 * at least those of the first release. These four are of any thread. */
int rpma_rt_cfg_init(struct rpma_rt_cfg *cfg, size_t size);

/* Starts the pollers and the event thread; each device gets two threads more
 * when it is first used. cfg may be NULL (defaults). Thread: any, but
 * RPMA_RT_E_THREAD from a poller. */
RPMA_RT_MUST_CHECK int rpma_rt_new(const struct rpma_rt_cfg *cfg,
				   struct rpma_rt **rt_ptr);

/*
 * Closes every listener and connection, delivers outstanding completions, stops
 * the threads. Queues stay, can be polled until empty and then answer
 * RPMA_RT_E_CLOSED. Blocks, but not until a queue is taken from;
 * RPMA_RT_E_THREAD from a poller. In manual mode the caller runs its own
 * pollers and those that belong to no thread; another thread's have to be run
 * there until rpma_rt_poller_run() answers RPMA_RT_E_CLOSED.
 */
int rpma_rt_stop(struct rpma_rt *rt);

/* Stops the runtime if need be, and frees it. RPMA_RT_E_BUSY while queues or
 * connection handles of it are still held. Thread: owner, not a poller. */
int rpma_rt_delete(struct rpma_rt **rt_ptr);

/*
 * Feeds a runtime (with async_feed, else RPMA_E_NOSUPP) with an event that
 * ibv_get_async_event() of ibv_ctx returned and that is not acknowledged yet.
 * RPMA_E_UNKNOWN: it concerns no object of the runtime. Thread: any.
 */
int rpma_rt_feed_async_event(struct rpma_rt *rt, struct ibv_context *ibv_ctx,
			     const struct ibv_async_event *event);

/* -------------------------------------------------------------- pollers --- */

/*
 * A poller is named by its runtime and its index, 0..pollers - 1. attach,
 * release, run, arm: manual mode only (else RPMA_E_NOSUPP).
 *
 * At first a poller has no owner. rpma_rt_poller_attach() makes the calling
 * thread the owner; release by the owner and the end of the thread end that,
 * and nothing else changes the owner. The owner alone runs its poller: in run
 * and arm, and in every call that waits. A poller without an owner is served by
 * any thread: in run and arm, and in calls that wait and depend on the poller,
 * rpma_rt_queue_wait() among them. Threads that serve one poller take turns,
 * and functions of the poller run on each of these threads.
 * RPMA_RT_E_BUSY: the poller belongs to another thread.
 */

/* Makes the calling thread the owner of the poller, after the end of a round of
 * another thread. 0 also if the thread is the owner already. */
RPMA_RT_MUST_CHECK int rpma_rt_poller_attach(struct rpma_rt *rt,
					     uint32_t poller);
/* Leaves the poller without an owner. 0 also if the poller has no owner. */
int rpma_rt_poller_release(struct rpma_rt *rt, uint32_t poller);
/* Runs one round: at most budget (1..) work completions. Returns how many items
 * of any kind were handled. RPMA_RT_E_CLOSED: stopped, no more items come. */
RPMA_RT_MUST_CHECK int rpma_rt_poller_run(struct rpma_rt *rt, uint32_t poller,
					  uint32_t budget);
/* Arms the poller, after the queues whose fds the thread sleeps on. Returns 0:
 * armed, sleep on the fd; 1: there is work, run the poller. The fd is for the
 * thread that armed the poller last. */
RPMA_RT_MUST_CHECK int rpma_rt_poller_arm(struct rpma_rt *rt, uint32_t poller);
/* Readable when an armed poller has work, level-triggered: until it was run and
 * armed again. The runtime owns it; do not read it. Thread: any. */
int rpma_rt_poller_get_fd(const struct rpma_rt *rt, uint32_t poller, int *fd);

/* Counters since the start. */
struct rpma_rt_poller_stats {
	uint64_t polls; /* calls of ibv_poll_cq */
	uint64_t empty_polls;
	uint64_t completions; /* work completions taken from CQs */
	uint64_t delivered;   /* items written to lanes, of every kind */
	uint64_t batches;     /* lane publications */
	uint64_t doorbells;   /* consumers woken */
	uint64_t sleeps;
	uint64_t events;  /* completion events read */
	uint64_t acks;	  /* calls of ibv_ack_cq_events */
	uint64_t spilled; /* items that found their lane full */
	uint64_t lost;	  /* items dropped; 0 unless the library is broken */
	uint64_t stale;	  /* completions of no open route: dropped */
	uint64_t lost_events_recovered;
	uint64_t keepalives;  /* posted */
	uint64_t spinning_ns; /* idle and awake; these two with timing only */
	uint64_t sleeping_ns;
	/* queue pairs with an SRQ that ended without LAST_WQE_REACHED: what
	 * they had taken of it may be lost until the SRQ ends */
	uint64_t last_wqe_missing;
};
/* Writes the first size bytes; counters that this library does not know are 0.
 * Thread: any. */
int rpma_rt_poller_get_stats(const struct rpma_rt *rt, uint32_t poller,
			     struct rpma_rt_poller_stats *stats, size_t size);

/* --------------------------------------------------------------- queues --- */

#define RPMA_RT_DEFAULT_LANE_SIZE     1024
#define RPMA_RT_DEFAULT_BACKLOG_LIMIT 4096
#define RPMA_RT_DEFAULT_QUEUE_SPIN_US 20
#define RPMA_RT_NAME_MAX	      31 /* bytes, without the 0 at the end */

/*
 *   lane_size     entries between one poller and this queue, a power of two,
 *                 64..1048576, default 1024
 *   backlog_limit entries behind a full lane from which posts with a route to
 *                 this queue answer RPMA_E_AGAIN, 1..1048576, default 4096
 *   spin_us       microseconds rpma_rt_queue_wait() spins before it sleeps,
 *                 0..1000000, default 20
 *   shared        1: any number of consumers at once. 0, the default: one, and
 *                 a second at the same time is RPMA_RT_E_BUSY (an assertion
 *                 where those are compiled).
 *   name          for the log and the dump, up to RPMA_RT_NAME_MAX printable
 *                 ASCII characters, copied; NULL, the default: "queue N"
 */
struct rpma_rt_queue_cfg {
	uint32_t size;
	uint32_t lane_size;
	uint32_t backlog_limit;
	uint32_t spin_us;
	const char *name;
	uint32_t shared;
	uint32_t reserved32;
	uint64_t reserved[2];
};

/* clang-format off */
#define RPMA_RT_QUEUE_CFG_INIT { sizeof(struct rpma_rt_queue_cfg), \
	RPMA_RT_DEFAULT_LANE_SIZE, RPMA_RT_DEFAULT_BACKLOG_LIMIT, \
	RPMA_RT_DEFAULT_QUEUE_SPIN_US, NULL, 0, 0, {0, 0} }
/* clang-format on */
int rpma_rt_queue_cfg_init(struct rpma_rt_queue_cfg *cfg, size_t size);

/* cfg may be NULL (defaults). Thread: any, not a poller. */
RPMA_RT_MUST_CHECK int rpma_rt_queue_new(struct rpma_rt *rt,
					 const struct rpma_rt_queue_cfg *cfg,
					 struct rpma_rt_queue **queue_ptr);
/* RPMA_RT_E_BUSY while a connection whose CLOSED (ROUTE_CLOSED) has not come,
 * or a listener, still names it, or a thread takes from it. Items left inside
 * are dropped. Thread: owner, no other inside a call on it, not a poller. */
int rpma_rt_queue_delete(struct rpma_rt_queue **queue_ptr);

/*
 * Takes up to max (0..) items, never blocks. Answers how many: 0 = there is
 * nothing now (shared: or another worker is taking). RPMA_RT_E_CLOSED: there is
 * nothing and there will be nothing. Thread: consumer.
 */
RPMA_RT_MUST_CHECK int rpma_rt_queue_poll(struct rpma_rt_queue *queue,
					  struct rpma_rt_completion *cmpl,
					  int max);
/* The same, but waits up to timeout_ms (-1 = without end) for the first: 0 =
 * the time passed. RPMA_RT_E_THREAD on a poller, in its callbacks and in
 * handlers of async events. Thread: consumer. */
RPMA_RT_MUST_CHECK int rpma_rt_queue_wait(struct rpma_rt_queue *queue,
					  struct rpma_rt_completion *cmpl,
					  int max, int timeout_ms);
/*
 * An eventfd for event loops, level-triggered: arm the queue before sleeping on
 * it. The queue owns it; do not read it. Thread: consumer.
 */
int rpma_rt_queue_get_fd(struct rpma_rt_queue *queue, int *fd);
/*
 * Before sleeping on that fd: 0 = armed, sleep: it becomes readable when there
 * is something, and stays so until the next arm that answers 0. 1 = look
 * again. RPMA_RT_E_CLOSED: there is nothing and will be nothing. Items that a
 * round of rpma_rt_poller_run() delivers to a queue that the same thread armed
 * do not make the fd readable: poll the queue after the round;
 * rpma_rt_poller_arm() answers 1 until then. Thread: consumer.
 */
RPMA_RT_MUST_CHECK int rpma_rt_queue_arm(struct rpma_rt_queue *queue);
/* messages of a queue that were pushed and not taken, at most */
#define RPMA_RT_MAX_MESSAGES 1048576
/* Puts a message into the queue: a copy of context, user, byte_len and imm of
 * *item, with kind RPMA_RT_MESSAGE and 0 in every other field. Messages have
 * no order relative to completions. RPMA_RT_E_BUSY: the queue holds
 * RPMA_RT_MAX_MESSAGES already; the message was not put in. Thread: any. */
int rpma_rt_queue_push(struct rpma_rt_queue *queue,
		       const struct rpma_rt_completion *item);
/* Leaves messages of rpma_rt_queue_push() in the queue from here on (holds not
 * 0), or takes them again (0): other items come meanwhile, and a queue with no
 * others counts as empty. So a consumer that passes messages on leaves those
 * that nobody asks for, and a pusher learns that there are
 * RPMA_RT_MAX_MESSAGES. Thread: consumer. */
int rpma_rt_queue_hold(struct rpma_rt_queue *queue, int holds);
/* Whoever waits on the queue, or sleeps on its fd, comes back without an item:
 * rpma_rt_queue_wait() answers 0, rpma_rt_queue_arm() 1, once. Also if the wake
 * came before the sleep; several may be one. Of several workers at least one
 * comes back. Takes no lock, allocates nothing. Thread: any, also inside a
 * handler of a signal. */
int rpma_rt_queue_wake(struct rpma_rt_queue *queue);
/* No more pushes; a waiter wakes; what is inside can still be taken, and
 * completions under way still arrive. Thread: any. */
int rpma_rt_queue_close(struct rpma_rt_queue *queue);

/* The number of times that took 2^i nanoseconds or more and less than 2^(i +
 * 1); the last one also counts longer times. */
#define RPMA_RT_HISTOGRAM 32
struct rpma_rt_histogram {
	uint64_t buckets[RPMA_RT_HISTOGRAM];
	uint64_t sum_ns;
};

/* Counters since the queue was made. */
struct rpma_rt_queue_stats {
	uint64_t polls;	   /* calls of rpma_rt_queue_poll() */
	uint64_t waits;	   /* calls of rpma_rt_queue_wait() */
	uint64_t empty;	   /* of both: those that found nothing */
	uint64_t busy;	   /* shared: those kept out by another worker */
	uint64_t batches;  /* of both: those that found something */
	uint64_t taken;	   /* items of every kind */
	uint64_t messages; /* pushed */
	uint64_t sleeps;   /* on the futex */
	uint64_t wakes;	   /* sleepers woken, of either way */
	uint64_t backlog;  /* items inside now */
	/* with timing: from the poll of a CQ that found a batch to when its
	 * last item was taken; from the wake-up call to being awake */
	struct rpma_rt_histogram dispatch;
	struct rpma_rt_histogram wakeup;
};
/* Writes the first size bytes, as rpma_rt_poller_get_stats(). Thread: any,
 * while the queue is not deleted. */
int rpma_rt_queue_get_stats(const struct rpma_rt_queue *queue,
			    struct rpma_rt_queue_stats *stats, size_t size);

enum rpma_rt_dump_format {
	RPMA_RT_DUMP_HUMAN = 0,
	RPMA_RT_DUMP_JSON = 1,
	RPMA_RT_DUMP_PROMETHEUS = 2 /* its text exposition */
};

/*
 * Writes the state of the runtime to fd: pollers, queues, connections with
 * their outstanding work requests, the destination and age of each. No poller
 * waits for it. RPMA_RT_E_BUSY: a thread was stopped (in a debugger, say)
 * while it changed a list. Thread: any, at any time before rpma_rt_delete().
 */
int rpma_rt_dump(struct rpma_rt *rt, int fd, enum rpma_rt_dump_format format);

/* ---------------------------------------------------------------- pools --- */

#define RPMA_RT_DEFAULT_POOL_COUNT     2048
#define RPMA_RT_DEFAULT_POOL_SLOT_SIZE 4096
#define RPMA_RT_POOL_NO_SENDS	       UINT32_MAX
#define RPMA_RT_DEFAULT_POOL_FUTURES   64

/*
 * Required: peer.
 *   count     slots, 1..1048576, default 2048
 *   slot_size bytes of each, 1..1073741824, default 4096
 *   usage     what the memory is for besides sends and receives: any of
 *             librpma's RPMA_MR_USAGE_*; default 0
 *   peer      that of the connections and SRQs; stays until the delete
 *   sends     how many of the slots receives never take, so that
 *             rpma_rt_pool_take() finds a slot however many connections have
 *             receives from the pool: 1..count - 1, or RPMA_RT_POOL_NO_SENDS.
 *             0, the default: half of the slots
 *   futures   futures of the next free slot that are held at a time, see
 *             rpma_rt_next_future(): 1..1048576, default 64
 *   name      for the log and the dump, up to RPMA_RT_NAME_MAX printable
 *             ASCII characters, copied; NULL, the default: "pool N"
 */
struct rpma_rt_pool_cfg {
	uint32_t size;
	uint32_t count;
	uint32_t slot_size;
	uint32_t usage;
	struct rpma_peer *peer;
	const char *name;
	uint32_t sends;
	uint32_t futures;
	uint64_t reserved[3];
};

/* clang-format off */
#define RPMA_RT_POOL_CFG_INIT { sizeof(struct rpma_rt_pool_cfg), \
	RPMA_RT_DEFAULT_POOL_COUNT, RPMA_RT_DEFAULT_POOL_SLOT_SIZE, 0, NULL, \
	NULL, 0, RPMA_RT_DEFAULT_POOL_FUTURES, {0, 0, 0} }
/* clang-format on */
int rpma_rt_pool_cfg_init(struct rpma_rt_pool_cfg *cfg, size_t size);

/*
 * Registered memory in slots of one size. A connection or SRQ whose
 * configuration names the pool has its receive queue kept filled from it:
 * posting receives is RPMA_E_INVAL, messages come with RPMA_RT_C_LEASE to the
 * connection's queue, or without one by rpma_rt_next_future(), and a receive
 * that brings none gives its slot back without a completion. Few receives left
 * and no free slot for receives: a line in the log, and peers wait until a
 * lease is given back. Thread: any that may wait.
 */
RPMA_RT_MUST_CHECK int rpma_rt_pool_new(struct rpma_rt *rt,
					const struct rpma_rt_pool_cfg *cfg,
					struct rpma_rt_pool **pool_ptr);
/* RPMA_RT_E_BUSY while a connection whose CLOSED has not come, a listener or
 * an SRQ names it, or leases are not given back. Waits for each poller once.
 * Thread: owner, no other inside a call on it, not a poller. */
int rpma_rt_pool_delete(struct rpma_rt_pool **pool_ptr);

/* One slot in the program's hands: plain data, may be copied. mr and offset as
 * in work requests. */
struct rpma_rt_lease {
	struct rpma_rt_pool *pool;
	void *data;
	struct rpma_mr_local *mr;
	uint64_t offset;
	uint32_t len; /* of the message; of a slot that was taken: its size */
	uint32_t slot;
	uint32_t generation; /* odd; another one with each lease */
	uint32_t reserved32;
};

/* Takes a free slot of those for sends; also of those for receives while no
 * receive queue is filled from the pool, or where cfg.sends was
 * RPMA_RT_POOL_NO_SENDS. RPMA_E_AGAIN: no such slot is free now, or futures
 * wait for one: wait by rpma_rt_next_future(). Lock-free. Thread: any. */
RPMA_RT_MUST_CHECK int rpma_rt_pool_take(struct rpma_rt_pool *pool,
					 struct rpma_rt_lease *lease);
/* Has it a lease? Then *lease is that: the message is in the first len bytes of
 * data (of a write with immediate data: len is 0). It is the program's until it
 * is given back. Thread: any. */
bool rpma_rt_completion_lease(const struct rpma_rt_completion *cmpl,
			      struct rpma_rt_lease *lease);
/* Ends the caller's lease: the slot is free when no work request holds the slot
 * (struct rpma_rt_wr, lease). RPMA_E_INVAL: the lease was given back
 * before, or given away. No further work request may name the lease.
 * Lock-free. Thread: any. */
int rpma_rt_lease_release(const struct rpma_rt_lease *lease);

/* ---------------------------------------------------------- connections --- */

/* for an index: which poller a connection gets */
#define RPMA_RT_POLLER_ANY   (-1) /* round robin */
#define RPMA_RT_POLLER_LEAST (-2) /* the one with the fewest connections */

#define RPMA_RT_DEFAULT_SQ_SIZE 128
/* of rpma_rt_conn_cfg.waiting, rpma_rt_srq_cfg.waiting */
#define RPMA_RT_NO_WAITING	     UINT32_MAX
#define RPMA_RT_DEFAULT_RQ_SIZE	     128
#define RPMA_RT_DEFAULT_POOL_RQ_SIZE 8
#define RPMA_RT_DEFAULT_INLINE	     8

/*
 * What connections are made with, by rpma_rt_listen() and rpma_rt_conn_new().
 * Required: peer, and queue or queues, unless there are futures.
 *   poller      index, RPMA_RT_POLLER_ANY (default) or _LEAST; of a listener,
 *               chosen for each request, among pollers whose queue is not over
 *               its limit (backlog_limit); if all are, the request is refused
 *   peer        device and protection domain; stays until CLOSED of the last
 *               connection made with it, and LISTENER_CLOSED, were taken
 *   queue       where events, and completions without a route of their own, go.
 *               NULL, the default, with futures: there is none. Events come by
 *               rpma_rt_conn_future(), a listener's requests, messages of a
 *               pool, and messages of srqs, which have futures then, by
 *               rpma_rt_next_future(); a work request with neither a future
 *               nor a route is RPMA_E_INVAL; there is no WRITABLE;
 *               a message whose receive had a future that was cancelled stays
 *               there, one whose future was dropped is lost
 *   queues, queue_count  in place of queue, of listeners only: one for each
 *               poller, queue_count = pollers. A connection's is that of its
 *               poller. One may be named several times. NULL, 0, the default
 *   user        comes back in every completion of the connection; default NULL
 *   srqs, srq_count  receives come from the shared receive queue of the
 *               connection's poller: at most one of each poller; ANY and LEAST
 *               choose among those that have one, another poller is
 *               RPMA_E_INVAL. Default none. An SRQ lives as long as a listener
 *               or connection names it.
 *   pool        receives come from this pool: the receive queue is kept filled
 *               from it, messages come as leases, see rpma_rt_pool_new().
 *               Not together with srqs. NULL, the default: the program posts
 *               receives
 *   sq_size, rq_size  work requests in flight, a side: 1.. what the device has.
 *               Default of sq_size: 128. 0, the default of rq_size: 128, or 8
 *               with a pool. rq_size is not used with SRQs.
 *   max_sge     pieces of a work request, 1.. what the device has, default 1
 *   max_inline  bytes of a message that the queue pair can hold itself, 8..
 *               what the device has, default 8
 *   timeout_ms  milliseconds up to READY, 1..; default 1000. To a name: from
 *               the call on, for the look-up and all addresses of the name. To
 *               a numeric address: for the address, and again for the route
 *   keepalive_ms  a connection none of whose sends has completed for so many
 *               milliseconds (once to twice as many) gets a write of no bytes;
 *               if that fails, the peer is gone and it is closed with
 *               RPMA_RT_REASON_ERROR. 0 (default) = never, ..3600000.
 *   backlog     listeners only: requests that wait; 0 (default) = the
 *               provider's own
 *   min_rnr_timer  code of InfiniBand, 0..31 (0 is 655 ms);
 *               RPMA_MIN_RNR_TIMER_UNSET, the default: the driver's
 *   ack_timeout 4.096 us times 2 to the code, 0..31 (0 is for ever);
 *               RPMA_ACK_TIMEOUT_UNSET, the default: the driver's
 *   futures     futures that are held at a time, a side, 0..1048576; default
 *               0: work requests with one are RPMA_E_INVAL. The receive side
 *               has none with SRQs; with a pool, those of messages, without a
 *               queue
 *   waiting     work requests, a side, that a post takes beyond the queue's
 *               size: they stand in line, and are posted in their order when
 *               there is room. 1..1048576 (at most 65535 work requests are in
 *               line at a time); 0, the default: as many as the queue's size;
 *               RPMA_RT_NO_WAITING: none. For each of the queue and the line a
 *               send takes 66 bytes, a receive 34, and more for pieces and
 *               inline bytes
 *   more        librpma's object for settings without a field here (retries,
 *               atomics in flight, type of service, source address), copied;
 *               NULL, the default: its defaults. Fields here have precedence.
 *               CQs, channels, CM channel or SRQ in it are RPMA_E_INVAL.
 */
struct rpma_rt_conn_cfg {
	uint32_t size;
	int32_t poller;
	struct rpma_peer *peer;
	struct rpma_rt_queue *queue;
	struct rpma_rt_queue *const *queues;
	void *user;
	struct rpma_rt_srq *const *srqs;
	const struct rpma_conn_cfg *more;
	uint32_t queue_count;
	uint32_t srq_count;
	uint32_t sq_size;
	uint32_t rq_size;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t timeout_ms;
	uint32_t keepalive_ms;
	uint32_t backlog;
	uint8_t min_rnr_timer;
	uint8_t ack_timeout;
	uint16_t reserved16;
	struct rpma_rt_pool *pool;
	uint32_t futures;
	uint32_t waiting;
	uint64_t reserved[2];
};

/* clang-format off */
#define RPMA_RT_CONN_CFG_INIT { sizeof(struct rpma_rt_conn_cfg), \
	RPMA_RT_POLLER_ANY, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, \
	RPMA_RT_DEFAULT_SQ_SIZE, 0, 1, \
	RPMA_RT_DEFAULT_INLINE, RPMA_DEFAULT_TIMEOUT_MS, 0, 0, \
	RPMA_MIN_RNR_TIMER_UNSET, RPMA_ACK_TIMEOUT_UNSET, 0, NULL, 0, 0, \
	{0, 0} }
/* clang-format on */
int rpma_rt_conn_cfg_init(struct rpma_rt_conn_cfg *cfg, size_t size);

/*
 * A connection handle begins as a request and stays valid until the last
 * rpma_rt_conn_unref(), also after RPMA_RT_EVENT_CLOSED: it is counted.
 *
 *   passive: listen -> EVENT_REQUEST -> [set_queue, set_user, recv...]
 *            -> accept or reject -> EVENT_ESTABLISHED -> ... -> EVENT_CLOSED
 *   active:  conn_new -> EVENT_READY -> [recv...] -> connect
 *            -> EVENT_ESTABLISHED -> ... -> EVENT_CLOSED
 *
 * A message of the peer can come before EVENT_ESTABLISHED, on either side:
 * posting sends answers RPMA_E_AGAIN until then, with the reason NOT_YET.
 * EVENT_CLOSED comes exactly once for every connection and is the last item
 * of it; every completion owed was delivered before. The receiver of the handle
 * (from EVENT_REQUEST or rpma_rt_conn_new()) unrefs it once.
 */

/*
 * Listens at addr (a name is looked up by the caller, who waits) and port
 * ("0" = any: rpma_rt_listener_get_port()). Requests arrive as
 * RPMA_RT_EVENT_REQUEST, in the queue of the poller that gets the connection,
 * or, without one, as results of rpma_rt_next_future(). RPMA_RT_E_BUSY: a
 * queue's consumer is behind.
 * Thread: any.
 */
RPMA_RT_MUST_CHECK int rpma_rt_listen(struct rpma_rt *rt, const char *addr,
				      const char *port,
				      const struct rpma_rt_conn_cfg *cfg,
				      struct rpma_rt_listener **listener_ptr);
int rpma_rt_listener_get_port(const struct rpma_rt_listener *listener,
			      uint16_t *port);
/* No further requests; those already delivered live on. EVENT_LISTENER_CLOSED
 * comes once in each of the listener's queues, as its last item there, or to
 * its futures: then its user pointer and its peer may go, and the queue. It
 * also comes when the device fails or is removed, its CM events can be read no
 * more, or the runtime stops; the handle is deleted all the same. Thread:
 * owner. */
int rpma_rt_listener_delete(struct rpma_rt_listener **listener_ptr);
/* No further requests: the listener ends, its handle stays to be deleted; and
 * each of its connections is drained, see rpma_rt_conn_drain(). Thread: any
 * that may wait. */
int rpma_rt_listener_drain(struct rpma_rt_listener *listener,
			   uint32_t timeout_ms);

/*
 * Begins an active connection; never blocks on the network: a name is looked up
 * on a thread of its own, 16 names of the process at a time. Ends in
 * EVENT_READY, with the first address of the name that resolves, or in
 * EVENT_CLOSED in the queue. Thread: any.
 */
RPMA_RT_MUST_CHECK int rpma_rt_conn_new(struct rpma_rt *rt, const char *addr,
					const char *port,
					const struct rpma_rt_conn_cfg *cfg,
					struct rpma_rt_conn **conn_ptr);

/*
 * Where its events, and completions without a route of their own, go from now
 * on, those of work requests under way included; at any time. The former queue
 * gets EVENT_ROUTE_CLOSED as the connection's last item, unless an open route
 * leads there, or neither connect, reject nor a post was called before. Waits
 * for the poller, not for the network or for work. RPMA_RT_E_BUSY: the queue's
 * consumer is behind; RPMA_E_NOMEM; RPMA_RT_E_CLOSED: the connection is dying:
 * all is as before. The same queue: 0. RPMA_E_INVAL: it was made without a
 * queue. Thread: any that may wait.
 */
int rpma_rt_conn_set_queue(struct rpma_rt_conn *conn,
			   struct rpma_rt_queue *queue);
/* Changes the user pointer in all further items of the connection; before
 * connect only. RPMA_RT_E_CLOSED: it is closing, and all of them, CLOSED too,
 * have the former one. */
int rpma_rt_conn_set_user(struct rpma_rt_conn *conn, void *user);
int rpma_rt_conn_get_user(const struct rpma_rt_conn *conn, void **user);
/* For the log and the dump, 1..RPMA_RT_NAME_MAX printable ASCII characters,
 * copied; default "conn N". RPMA_E_INVAL: not that, or after connect;
 * RPMA_E_NOMEM.
 * Thread: owner. */
int rpma_rt_conn_set_name(struct rpma_rt_conn *conn, const char *name);
/* The connection's memory, valid while the handle is held; NULL of NULL.
 * Thread: any; the program orders it with rpma_rt_conn_set_name(). */
const char *rpma_rt_conn_get_name(const struct rpma_rt_conn *conn);

/* Connects a connection of rpma_rt_conn_new(); EVENT_ESTABLISHED or
 * EVENT_CLOSED follows. pdata is copied (NULL = none). RPMA_E_INVAL: conn is a
 * request, see rpma_rt_conn_accept(). Thread: any. */
int rpma_rt_conn_connect(struct rpma_rt_conn *conn,
			 const struct rpma_conn_private_data *pdata);
/* Accepts the request of a listener; the rest as rpma_rt_conn_connect(). */
int rpma_rt_conn_accept(struct rpma_rt_conn *conn,
			const struct rpma_conn_private_data *pdata);
/* Refuses the request of a listener; EVENT_CLOSED follows. Thread: any. */
int rpma_rt_conn_reject(struct rpma_rt_conn *conn,
			const struct rpma_conn_private_data *pdata);
/* Applies the peer's configuration of its memory: needed once for persistent
 * flushes, which are RPMA_E_NOSUPP without. Any time before the first of them;
 * copied; may be applied again. RPMA_E_NOMEM: no memory. Thread: any. */
int rpma_rt_conn_apply_remote_peer_cfg(struct rpma_rt_conn *conn,
				       const struct rpma_peer_cfg *pcfg);
/*
 * Closes from any state; returns at once, further posts answer
 * RPMA_RT_E_CLOSED, every outstanding work request still gets its one
 * completion, then EVENT_CLOSED. Closing twice is 0. Thread: any.
 */
int rpma_rt_conn_close(struct rpma_rt_conn *conn);
/*
 * Closes when what was posted to the send side has completed: further posts
 * answer RPMA_RT_E_CLOSED at once, the peer's messages are received until then.
 * Returns at once; EVENT_CLOSED follows, reason LOCAL. After timeout_ms
 * (..600000, 0 = no limit) it is closed as by rpma_rt_conn_close(), which also
 * ends a drain. Before ESTABLISHED it is a close. Draining twice is 0, with the
 * time of the first. Thread: any.
 */
int rpma_rt_conn_drain(struct rpma_rt_conn *conn, uint32_t timeout_ms);

/* Counts one reference more, one less; unref sets *conn_ptr to NULL, and NULL
 * in it is 0. RPMA_E_INVAL (an assertion where those are compiled): no
 * reference is left. Thread: any. */
int rpma_rt_conn_ref(struct rpma_rt_conn *conn);
int rpma_rt_conn_unref(struct rpma_rt_conn **conn_ptr);

/* The peer's private data; library's memory, valid while the handle is held:
 * with EVENT_REQUEST (passive), from EVENT_ESTABLISHED or a rejection on. */
int rpma_rt_conn_get_private_data(const struct rpma_rt_conn *conn,
				  struct rpma_conn_private_data *pdata);
/* The peer's address as getpeername(): *len = room, then what it takes; what
 * is longer than the room is cut. RPMA_E_INVAL: not known before REQUEST,
 * READY. Thread: any. */
int rpma_rt_conn_get_peer_addr(const struct rpma_rt_conn *conn,
			       struct sockaddr *addr, socklen_t *len);
int rpma_rt_conn_get_qp_num(const struct rpma_rt_conn *conn, uint32_t *qp_num);
int rpma_rt_conn_get_poller(const struct rpma_rt_conn *conn, int *poller);

/* ------------------------------------------------------------- adoption --- */

/*
 * Has the CQs of a connection made with librpma polled by a poller until it is
 * released: its completions come raw, context = op_context (all 64 bits),
 * opcode on errors RPMA_RT_OPCODE_UNKNOWN, each one once, in order; nothing is
 * synthesized, nothing limits posting, which goes on with rpma_send() and the
 * like. Meanwhile waiting and polling answer RPMA_E_SHARED_CHANNEL, deleting
 * RPMA_E_CLAIMED. RPMA_E_SHARED_CHANNEL: its CQ is on a channel object, or
 * claimed; RPMA_RT_E_BUSY: a thread waits on it. Thread: any.
 */
RPMA_RT_MUST_CHECK int rpma_rt_adopt(struct rpma_rt *rt, struct rpma_conn *conn,
				     int poller, struct rpma_rt_queue *queue,
				     void *user,
				     struct rpma_rt_adopted **adopted_ptr);
/* Adopts the RCQ of an SRQ, for all its connections, whose own CQs it leaves
 * alone. RPMA_E_INVAL: the SRQ has none. */
RPMA_RT_MUST_CHECK int rpma_rt_adopt_srq(struct rpma_rt *rt,
					 struct rpma_srq *srq, int poller,
					 struct rpma_rt_queue *queue,
					 void *user,
					 struct rpma_rt_adopted **adopted_ptr);
/* Gives the CQs back to the program; polled completions are in the queue, the
 * rest in the CQ: poll before waiting. Also after a stop. Thread: owner. */
int rpma_rt_adopted_release(struct rpma_rt_adopted **adopted_ptr);

/* --------------------------------------------------------------- routes --- */

enum rpma_rt_side {
	RPMA_RT_SEND_SIDE = 0, /* send, write, read, flush, atomic write */
	RPMA_RT_RECV_SIDE = 1
};

/*
 * A route leads completions of one side of a connection to a queue. Opening
 * is not for the data path: it waits for the poller. RPMA_E_NOMEM: no route
 * numbers or memory left. A route's handle lives as long as its connection's;
 * nothing is to be freed. Thread: any that may wait.
 */
RPMA_RT_MUST_CHECK int rpma_rt_route_open(struct rpma_rt_conn *conn,
					  enum rpma_rt_side side,
					  struct rpma_rt_queue *queue,
					  struct rpma_rt_route **route_ptr);

/*
 * A route to a function: the connection's poller calls fn(cmpl, arg) once for
 * each work request that names the route (cmpl is valid inside only), and last
 * with EVENT_ROUTE_CLOSED; in manual mode inside rpma_rt_poller_run() and calls
 * that wait. fn may post, close, unref, push; calls that wait are
 * RPMA_RT_E_THREAD in it. A post that is refused in it for its own connection
 * is followed by one RPMA_RT_WRITABLE to fn. The rest as rpma_rt_route_open().
 */
RPMA_RT_MUST_CHECK int
rpma_rt_route_open_callback(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			    rpma_rt_route_fn *fn, void *arg,
			    struct rpma_rt_route **route_ptr);

/*
 * Closes a route: what it still owes goes where to leads, an open route of the
 * same connection and side; NULL: to the connection's queue. EVENT_ROUTE_CLOSED
 * is the last call of its function, or the connection's last item in its queue,
 * if no other open route leads there. Posts that name it answer
 * RPMA_RT_E_CLOSED. Waits for the poller, not for the network or for work.
 * RPMA_RT_E_BUSY (to's consumer is behind), RPMA_E_NOMEM: all is as before.
 * RPMA_RT_E_CLOSED: it, or to, is closed, or the connection is dying.
 * RPMA_E_INVAL: to is another connection's, of the other side, or the route
 * itself; or NULL and there is no queue. Thread: any that may wait.
 */
int rpma_rt_route_close(struct rpma_rt_route *route, struct rpma_rt_route *to);

/* -------------------------------------------------------------- posting --- */

/* the context of a work request: a number or a pointer of 48 bits; one with a
 * tag in its upper bits (MTE, LAM) does not fit, and is RPMA_E_INVAL */
#define RPMA_RT_CONTEXT_BITS 48

/* 0 is none: a zeroed work request is RPMA_E_INVAL. */
enum rpma_rt_op {
	RPMA_RT_OP_SEND = 1,
	RPMA_RT_OP_SEND_WITH_IMM = 2,
	RPMA_RT_OP_WRITE = 3,
	RPMA_RT_OP_WRITE_WITH_IMM = 4,
	RPMA_RT_OP_READ = 5,
	RPMA_RT_OP_FLUSH = 6,
	RPMA_RT_OP_ATOMIC_WRITE = 7,
	RPMA_RT_OP_COMPARE_SWAP = 8,
	RPMA_RT_OP_FETCH_ADD = 9
};

/*
 * Flags of a work request: 0, one of librpma's RPMA_F_COMPLETION_ALWAYS (as 0)
 * and RPMA_F_COMPLETION_ON_ERROR (no completion when it succeeds), and any of
 * these; the first three are librpma's, too. Where a flag is not for an
 * operation, RPMA_E_INVAL. No flags of verbs: IBV_SEND_FENCE has the value of
 * RPMA_F_COMPLETION_ON_ERROR; the others are refused by name.
 */
/* begins when the reads and atomics posted before it are complete */
#define RPMA_RT_F_FENCE RPMA_F_FENCE
/* sends, write with imm: wakes a peer that waits for solicited completions */
#define RPMA_RT_F_SOLICITED RPMA_F_SOLICITED
/* sends, writes: the bytes are copied while it is posted, and the region is the
 * caller's again; at most rpma_rt_conn_cfg.max_inline of them */
#define RPMA_RT_F_INLINE RPMA_F_INLINE
/*
 * This one and the next of the call are posted together or not at all: a count
 * that is short for want of room ends before such a link or behind it. A link
 * goes on as long as its work requests have the flag; its last has not. At most
 * half of sq_size and one more: RPMA_E_INVAL.
 */
#define RPMA_RT_F_LINKED (1 << 28)
/*
 * With RPMA_RT_F_LINKED: the outcome is a part of the link's. Its last work
 * request completes, with its own context and route; when one of the parts
 * fails, at once and with the error of that. The context of a part is 0, its
 * route NULL, and it has neither flag of librpma's for completions.
 */
#define RPMA_RT_F_PART (1 << 29)
/*
 * With a lease: the caller keeps the lease, and may post the lease again, on
 * this connection and others, and has to give the lease back, or away with a
 * last work request without the flag.
 */
#define RPMA_RT_F_KEEP (1 << 30)

/*
 * One work request of the send side: zeroed, then filled, by hand or by one of
 * the rpma_rt_prep_*() of rpma_rt_inline.h. reserved words must be 0.
 *   op        enum rpma_rt_op
 *   flags     see above
 *   context   comes back in the completion; of 48 bits
 *   route     where the completion goes; NULL: to the connection's queue, if it
 *             has one, else RPMA_E_INVAL
 *   future    in place of a route: where the post writes the handle of the
 *             result, if the work request is taken, see rpma_rt_future_poll().
 *             Not with RPMA_F_COMPLETION_ON_ERROR or RPMA_RT_F_PART; the future
 *             of the last of a link is that of the whole link. NULL: none
 *   lease     a lease of any pool, given away with this send or write: the slot
 *             is free when the device has done with the work request, however
 *             that ends, unless others hold the slot (RPMA_RT_F_KEEP). Such a
 *             work request has no completion: context 0, route and future
 *             NULL, no flag for completions, no part of a link's outcome.
 *             Which bytes are sent local, local_offset and len say. NULL: none
 *   local, local_offset, len  the bytes on this side: source, or destination of
 *             a read (of an atomic: 8 bytes, for what was there; len 0 or 8);
 *             local NULL and len 0: none. Of a flush, len bytes on the far side
 *   pieces, piece_count  in place of those three, for sends, writes and reads:
 *             1..rpma_rt_conn_cfg.max_sge of them, in order, each below 4 GiB;
 *             borrowed for the call. piece_count 0: one piece, as above
 *   imm       of the operations with immediate data; host order
 *   remote, remote_offset  on the far side; a multiple of 8 for atomics
 *   flush_type  enum rpma_flush_type
 *   data      of an atomic write
 *   compare_add  what a compare-and-swap expects, what a fetch-and-add adds
 *   swap      what a compare-and-swap writes
 */
struct rpma_rt_wr {
	uint8_t op;
	uint8_t flush_type;
	uint16_t piece_count;
	uint32_t flags;
	uint64_t context;
	const struct rpma_rt_route *route;
	struct rpma_rt_future *future;
	const struct rpma_rt_lease *lease;
	union {
		struct rpma_mr_local *local;
		const struct rpma_sge *pieces;
	};
	uint64_t local_offset;
	uint64_t len;
	const struct rpma_mr_remote *remote;
	uint64_t remote_offset;
	uint32_t imm;
	uint32_t reserved32;
	union {
		char data[8];
		uint64_t compare_add;
	};
	uint64_t swap;
};

/* A receive: the fields are as those of struct rpma_rt_wr. An SRQ's has neither
 * route nor future. */
struct rpma_rt_recv_wr {
	uint64_t context;
	const struct rpma_rt_route *route;
	struct rpma_rt_future *future;
	union {
		struct rpma_mr_local *dst;
		const struct rpma_sge *pieces;
	};
	uint64_t offset;
	uint64_t len;
	uint32_t piece_count;
	uint32_t reserved32;
};

/*
 * Posts count (0..) work requests in order with one doorbell for each 32, and
 * answers how many were taken: the first ones. All are validated before the
 * first is posted: RPMA_E_INVAL posts none. Fewer than count:
 *   - for want of room: rpma_rt_again_reason() says which; none at all is
 *     RPMA_E_AGAIN. One RPMA_RT_WRITABLE follows when posting can succeed
 *     again: in the connection's queue, or to the function of its own inside
 *     which the post was refused;
 *   - because the device refused one: the reason is NONE, and the connection is
 *     closing. Work requests that the device refused are taken all the same:
 *     each completes with RPMA_RT_C_NOT_POSTED, in order.
 * RPMA_RT_E_CLOSED: the connection is closing or broken. Memory named by a work
 * request that was taken is the device's until its completion; the wr
 * themselves, their pieces and inline bytes are borrowed for the call.
 * No post waits for another thread, or is refused because another thread
 * posts: what a call finds no room for stands in line, see
 * rpma_rt_conn_cfg.waiting. Posts of one thread keep their order.
 *
 * Receives are taken from EVENT_REQUEST / EVENT_READY on, the others from
 * EVENT_ESTABLISHED on. A message may arrive before ESTABLISHED; a send refused
 * for that is followed by one WRITABLE after it.
 * Thread: any.
 */
RPMA_RT_MUST_CHECK int rpma_rt_post_send(struct rpma_rt_conn *conn,
					 const struct rpma_rt_wr *wr,
					 int count);
RPMA_RT_MUST_CHECK int rpma_rt_post_recv(struct rpma_rt_conn *conn,
					 const struct rpma_rt_recv_wr *wr,
					 int count);

/* -------------------------------------------------------------- futures --- */

/*
 * A work request that names a future has its result stored for whoever holds
 * the future, instead of delivered. The handle is plain data, filled in by the
 * post; copies name the same future, which one thread at a time uses. It is
 * held until it is dropped: at most rpma_rt_conn_cfg.futures of them a side,
 * rpma_rt_delete() is RPMA_RT_E_BUSY while any is held, and a future may
 * outlive its connection. Before CLOSED every future of a connection is
 * complete, like other work requests. After fork() each call in the child is
 * RPMA_RT_E_FORKED; RPMA_E_INVAL: the future was dropped before, or none, as
 * long as its runtime is there. Each work request of a post names its own.
 * One whose connection ends before it was posted is complete with
 * RPMA_RT_C_NOT_POSTED.
 */
struct rpma_rt_future {
	uint64_t opaque[2];
};

/*
 * A future of an event of the connection: RPMA_RT_EVENT_READY, _ESTABLISHED or
 * _CLOSED, whether it has come or is to come; the queue gets the event all the
 * same. Its result is the item of the event, or, of one that comes no more,
 * that of CLOSED, with the reason: so opcode tells. In
 * rpma_rt_future_wait_some() it has succeeded if the event has come: CLOSED
 * always does, after every other future of the connection is complete, and the
 * functions of those that were asked for before have returned; that of a future
 * of CLOSED runs when the others see it too. READY of an accepted connection
 * has come, though its queue got REQUEST. Cancelled it is complete at once. 16
 * are held at most: RPMA_RT_E_BUSY. RPMA_RT_E_CLOSED: the connection has ended,
 * and CLOSED was delivered to its queue; one without a queue can be asked as
 * long as its handle is held. RPMA_E_INVAL: rpma_rt_conn_cfg.futures was 0.
 * Thread: any.
 */
int rpma_rt_conn_future(struct rpma_rt_conn *conn, enum rpma_rt_event event,
			struct rpma_rt_future *future);

/*
 * Where futures of the next item come from: exactly one is set.
 *   listener  made without a queue: connection requests. The item is
 *             RPMA_RT_EVENT_REQUEST, answered with rpma_rt_conn_accept() or
 *             _reject(); the end is LISTENER_CLOSED. 4096 requests wait, then
 *             requests are refused; 16 futures are held at most
 *   conn      made with a pool and without a queue: messages of the connection.
 *             The item is the message with its lease, see
 *             rpma_rt_completion_lease(); the end is CLOSED. rq_size messages
 *             wait, posted receives included, then the peer does;
 *             rpma_rt_conn_cfg.futures are held at most
 *   srq       made with futures: messages of the SRQ's connections without a
 *             queue, in one order; user is the connection's. The end is
 *             SRQ_FAILED, if the device reports an error of the SRQ, later
 *             SRQ_CLOSED. srq_size messages wait; rpma_rt_srq_cfg.futures are
 *             held at most
 *   pool      free slots, as rpma_rt_pool_take() has them. The item is a
 *             success with the lease, see rpma_rt_completion_lease(); the end
 *             is POOL_CLOSED, once rpma_rt_stop() was called.
 *             rpma_rt_pool_cfg.futures are held at most. The runtime's first
 *             poller serves these futures
 */
struct rpma_rt_source {
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;
	struct rpma_rt_srq *srq;
	struct rpma_rt_pool *pool;
};

/*
 * Asks for the next item of a source: the item is the result of *future. Items
 * go to futures in the order of both, and wait where there is no future. The
 * item of a future that is cancelled or dropped unread returns to its former
 * place, for the next future. Behind the last item futures get the end, which
 * is no success. Items can be asked for until the handle of the source is given
 * back; items that nobody has are dropped then: a request is refused, a message
 * goes back to its pool. A slot that nobody has read goes back to its pool, for
 * the next future, when the slot's future is cancelled or dropped.
 * RPMA_RT_E_BUSY: too many futures are held, or were a moment ago, until the
 * poller has seen the drop. RPMA_E_INVAL: the source has no futures. Thread:
 * any.
 */
int rpma_rt_next_future(const struct rpma_rt_source *source,
			struct rpma_rt_future *future);

/* 1: it is complete, *cmpl is the result, with the context of its work request;
 * may be asked again. 0: not yet. Thread: the holder's. */
RPMA_RT_MUST_CHECK int rpma_rt_future_poll(const struct rpma_rt_future *future,
					   struct rpma_rt_completion *cmpl);
/* The same, but waits up to timeout_ms (-1 = without end): 0 = the time passed,
 * and nothing else has changed. RPMA_RT_E_THREAD on a poller and in functions
 * that it calls. Thread: the holder's. */
RPMA_RT_MUST_CHECK int rpma_rt_future_wait(const struct rpma_rt_future *future,
					   struct rpma_rt_completion *cmpl,
					   int timeout_ms);
/*
 * Waits until wanted (1..count) of these have succeeded, of any connections and
 * runtimes: wanted = 1 waits for any, wanted = count for all. Answers how many
 * have, >= wanted; 0 = the time passed; RPMA_RT_E_FAILED = so many have failed
 * that wanted cannot be reached, at once. rpma_rt_future_poll() has the result
 * of each. The rest as rpma_rt_future_wait().
 */
RPMA_RT_MUST_CHECK int
rpma_rt_future_wait_some(const struct rpma_rt_future *futures, int count,
			 int wanted, int timeout_ms);

/* what a cancel could do */
enum rpma_rt_cancelled {
	/* it takes effect or not, and the result is dropped */
	RPMA_RT_CANCELLED_DETACHED = 1,
	/* too late: the result is there, or with its function, or goes where
	 * rpma_rt_future_deliver() led it */
	RPMA_RT_CANCELLED_DONE = 2,
	/* it stood in line: it is not posted and has no effect, and its
	 * memory is the program's at once */
	RPMA_RT_CANCELLED_NOT_POSTED = 3
};

/*
 * Gives up the result; never waits. NOT_POSTED: the future is complete in a
 * moment, with RPMA_RT_C_NOT_POSTED and _DETACHED. DETACHED: nobody gets it,
 * but a message that a receive took, or takes, goes to the connection's queue;
 * without one, or once that has had CLOSED, it stays in the future. The memory
 * is the device's until the future is complete, which poll and wait report,
 * with RPMA_RT_C_DETACHED. It has not succeeded in rpma_rt_future_wait_some().
 * The future is still to be dropped. Thread: the holder's.
 */
int rpma_rt_future_cancel(const struct rpma_rt_future *future,
			  enum rpma_rt_cancelled *cancelled);
/*
 * Has the connection's poller call fn(cmpl, arg) once with the result, as the
 * function of a route; also if it is complete already. Once a future, not
 * after a cancel: RPMA_E_INVAL. After a stop it is not called. Thread: the
 * holder's.
 */
int rpma_rt_future_then(const struct rpma_rt_future *future,
			rpma_rt_route_fn *fn, void *arg);
/*
 * Has the result delivered, as if its work request had named that route, NULL:
 * to the connection's queue; also if it is complete already. The future is
 * complete with RPMA_RT_C_DETACHED then; when the connection has ended the
 * result stays instead. Once a future, in place of a function. RPMA_E_INVAL:
 * as rpma_rt_future_then(), or the route is of another connection or side, or
 * NULL and there is no queue, or the future is of an event. RPMA_RT_E_CLOSED:
 * the route is; one that is closed afterwards leads the result where its others
 * go. RPMA_RT_E_BUSY: the route's consumer is behind, and all is as before.
 * Thread: the holder's.
 */
int rpma_rt_future_deliver(const struct rpma_rt_future *future,
			   struct rpma_rt_route *route);
/*
 * The future is no more, and *future is zeroed; never waits. 0: its function
 * was not called, and will not be; 1: it was, or will be in a moment. Of a
 * zeroed one 0. The work goes on, and its memory is the device's until that is
 * over: cancel and wait if that has to be known. A message that a receive took,
 * or takes, and nobody got, goes to the connection's queue; without one, or
 * when the connection has ended, it is lost. Thread: the holder's.
 */
int rpma_rt_future_drop(struct rpma_rt_future *future);

/* ------------------------------------------------ shared receive queues --- */

#define RPMA_RT_DEFAULT_SRQ_SIZE 1024

/*
 * Required: peer, and queue, unless there are futures.
 *   poller    index, default 0
 *   peer      the same as that of the connections
 *   queue     for items of no connection: WRITABLE, SRQ_LIMIT, SRQ_FAILED,
 *             receives that come back, SRQ_CLOSED. NULL, the default, with
 *             futures: there is none
 *   user      of those items, default NULL
 *   refill, refill_arg  called by the poller when fewer receives are out than
 *             the limit: so many more may be posted. NULL, the default:
 *             RPMA_RT_EVENT_SRQ_LIMIT comes in the queue, once for each time
 *             that limit or more were out, or were posted since it came last
 *   srq_size  receives at most, 1..1048576. 0, the default: 1024, or with a
 *             pool as many as the pool has slots for receives
 *   limit     0..srq_size; 0, the default: a refill after every batch, no
 *             SRQ_LIMIT
 *   max_sge   pieces of a receive, 1..32 and what the device has, default 1
 *   waiting   receives that stand in line when srq_size are out, as in
 *             rpma_rt_conn_cfg
 *   pool      its receives come from this pool, see rpma_rt_pool_new(),
 *             refilled when fewer are out than the limit; not together with
 *             refill. NULL, the default: the program posts receives
 *   futures   with a pool: futures of messages that are held at a time, see
 *             rpma_rt_next_future(), 0..1048576. 0, the default: its
 *             connections have queues
 */
struct rpma_rt_srq_cfg {
	uint32_t size;
	uint32_t poller;
	struct rpma_peer *peer;
	struct rpma_rt_queue *queue;
	void *user;
	rpma_rt_refill_fn *refill;
	void *refill_arg;
	uint32_t srq_size;
	uint32_t limit;
	uint32_t max_sge;
	uint32_t futures;
	struct rpma_rt_pool *pool;
	uint32_t waiting;
	uint32_t reserved32;
};

/* clang-format off */
#define RPMA_RT_SRQ_CFG_INIT { sizeof(struct rpma_rt_srq_cfg), 0, NULL, NULL, \
	NULL, NULL, NULL, 0, 0, 1, 0, NULL, 0, 0 }
/* clang-format on */
int rpma_rt_srq_cfg_init(struct rpma_rt_srq_cfg *cfg, size_t size);

/*
 * Receives that connections of one poller share. Each completes once: in the
 * receive-side destination of the connection that took it (its own queue, or
 * the route last opened for that side; context = the receive's, user = the
 * connection's), or, when there is none, in the SRQ's queue, with
 * RPMA_RT_C_SYNTHESIZED. Thread: any, not a poller.
 */
RPMA_RT_MUST_CHECK int rpma_rt_srq_new(struct rpma_rt *rt,
				       const struct rpma_rt_srq_cfg *cfg,
				       struct rpma_rt_srq **srq_ptr);
/* RPMA_RT_E_BUSY while connections that are not closed, or listeners, use it.
 * Receives that are out come back, then EVENT_SRQ_CLOSED. Thread: owner, not a
 * poller, no other inside a call on it. */
int rpma_rt_srq_delete(struct rpma_rt_srq **srq_ptr);

/* As rpma_rt_post_recv(); a route in wr is RPMA_E_INVAL; WRITABLE comes to the
 * SRQ's queue. A verb that fails closes nothing: the next post asks the device
 * again. RPMA_RT_E_CLOSED: it has failed, see RPMA_RT_EVENT_SRQ_FAILED.
 * Thread: any. */
RPMA_RT_MUST_CHECK int rpma_rt_srq_post_recv(struct rpma_rt_srq *srq,
					     const struct rpma_rt_recv_wr *wr,
					     int count);

#ifdef __cplusplus
}
#endif

#include <rpma_rt_inline.h>
#include <rpma_rt_shard.h>

#endif /* RPMA_RT_H */
