/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rpma_loopback.h -- controls of the loopback device for tests: mode, faults,
 * hooks, counters, removal of a device, and the deterministic scheduler. Not
 * installed. Any thread may call every function at any time, unless the comment
 * of the function says otherwise.
 */

#ifndef RPMA_LOOPBACK_H
#define RPMA_LOOPBACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RPMA_LOOPBACK_API __attribute__((visibility("default")))

/* The thread that executes later work requests. */
enum rpma_loopback_mode {
	RPMA_LOOPBACK_INLINE, /* the posting thread, before the post returns */
	RPMA_LOOPBACK_THREAD, /* a progress thread, later, in random slices */
};

RPMA_LOOPBACK_API void rpma_loopback_set_mode(enum rpma_loopback_mode mode);
RPMA_LOOPBACK_API enum rpma_loopback_mode rpma_loopback_get_mode(void);

/*
 * Every random choice of the device follows from the seed, but for the numbers
 * of queue pairs and the keys of memory, which differ from process to process.
 */
RPMA_LOOPBACK_API void rpma_loopback_set_seed(uint64_t seed);
RPMA_LOOPBACK_API uint64_t rpma_loopback_get_seed(void);

/* The reaction to misuse: nothing, a line on stderr, or abort(). */
enum rpma_loopback_strict {
	RPMA_LOOPBACK_STRICT_OFF,
	RPMA_LOOPBACK_STRICT_WARN,
	RPMA_LOOPBACK_STRICT_ABORT,
};

RPMA_LOOPBACK_API void rpma_loopback_set_strict(enum rpma_loopback_strict s);

/*
 * Adds fault rules, in the language of RPMA_LOOPBACK_FAULT (see
 * doc/protocols/loopback.md). Returns 0, or -EINVAL with a message on stderr
 * that lists the known rules; then no rule of the string is added.
 */
RPMA_LOOPBACK_API int rpma_loopback_fault(const char *rules);

/* Drop every rule and turn every knob back. */
RPMA_LOOPBACK_API void rpma_loopback_fault_clear(void);

/* How often the rules have fired since the last clear. */
RPMA_LOOPBACK_API uint64_t rpma_loopback_fault_count(void);

/*
 * Places where a hook is called. No lock of the device is held then, so a
 * hook may block, and may call verbs.
 */
enum rpma_loopback_point {
	RPMA_LOOPBACK_POST_SEND,
	RPMA_LOOPBACK_POST_SEND_DONE,
	RPMA_LOOPBACK_POST_RECV,
	RPMA_LOOPBACK_POST_RECV_DONE,
	RPMA_LOOPBACK_POLL,
	RPMA_LOOPBACK_POLL_DONE,
	RPMA_LOOPBACK_ARM,
	RPMA_LOOPBACK_ARM_DONE,
	RPMA_LOOPBACK_GET_EVENT,
	RPMA_LOOPBACK_GET_EVENT_DONE,
	RPMA_LOOPBACK_ACK,
	RPMA_LOOPBACK_ACK_DONE,
	RPMA_LOOPBACK_MODIFY,
	RPMA_LOOPBACK_MODIFY_DONE,
	RPMA_LOOPBACK_DESTROY,
	RPMA_LOOPBACK_DESTROY_DONE,
	RPMA_LOOPBACK_DELIVER, /* the event is made, the fd not yet readable */
	RPMA_LOOPBACK_DELIVER_DONE,
	RPMA_LOOPBACK_CM_CALL, /* a blocking or state changing rdma_cm call */
	RPMA_LOOPBACK_CM_CALL_DONE,
	RPMA_LOOPBACK_CM_EVENT, /* a CM event is about to be queued */
	RPMA_LOOPBACK_CM_EVENT_DONE,
	RPMA_LOOPBACK_POINTS,
};

typedef void (*rpma_loopback_hook_fn)(enum rpma_loopback_point point,
				      const void *object, void *arg);

/*
 * Sets the only hook of the process; NULL removes the hook. After the return
 * the former hook is not running in another thread and will not be called
 * again. A hook must not call this function.
 */
RPMA_LOOPBACK_API void rpma_loopback_set_hook(rpma_loopback_hook_fn hook,
					      void *arg);

RPMA_LOOPBACK_API const char *
rpma_loopback_point_name(enum rpma_loopback_point point);

/* Counters of the process since its start, of a child since the fork. */
struct rpma_loopback_stats {
	uint64_t executed; /* completed work requests, successful or not */
	uint64_t failed;   /* completed without success and not flushed */
	uint64_t flushed;  /* sends and receives flushed */
	uint64_t bytes;	   /* payload moved */
	uint64_t received; /* messages that took a receive */
	uint64_t rnr;	   /* times a message found no receive */
	uint64_t retries;  /* times a peer did not answer */
	/* unreliable, to a process that took nothing for a second */
	uint64_t lost;
	uint64_t events;       /* completion events delivered */
	uint64_t async_events; /* asynchronous events queued */
	uint64_t overruns;     /* completions lost on a dead CQ */
	uint64_t misuses;      /* complaints of the strict mode */
};

RPMA_LOOPBACK_API void
rpma_loopback_get_stats(struct rpma_loopback_stats *stats);

/*
 * Takes device index away, as if pulled from its slot: DEVICE_FATAL on every
 * context, QPs to error, DEVICE_REMOVAL on rdma_cm ids. The device is listed
 * again after rpma_loopback_restore_device(). Returns 0 or -ENODEV.
 */
RPMA_LOOPBACK_API int rpma_loopback_remove_device(int index);
RPMA_LOOPBACK_API int rpma_loopback_restore_device(int index);

struct ibv_qp;
struct ibv_cq;
struct ibv_srq;
struct ibv_context;
struct rdma_cm_id;

/*
 * Raise an asynchronous event (enum ibv_event_type) on an object, which is an
 * ibv_qp, ibv_cq, ibv_srq or, for port and device events, an ibv_context.
 * The state of the object does not change. Returns 0 or -EINVAL.
 */
RPMA_LOOPBACK_API int rpma_loopback_raise(int event_type, void *object);

/*
 * Raises an event of rdma_cm (enum rdma_cm_event_type, no CONNECT_REQUEST) with
 * the status on an id, which is on a channel and stays until the return. The
 * state of the id does not change. Returns 0 or -EINVAL.
 */
RPMA_LOOPBACK_API int rpma_loopback_raise_cm(int event_type, int status,
					     struct rdma_cm_id *id);

/*
 * Takes the process down as a power failure does: files that stand for
 * persistent memory keep what was persistent (doc/protocols/power.md). Does not
 * return, except with -EINVAL without RPMA_LOOPBACK_POWER_FAIL.
 */
RPMA_LOOPBACK_API int rpma_loopback_power_fail(void);

/* Put the CQ in error as an overrun does. Returns 0 or -EINVAL. */
RPMA_LOOPBACK_API int rpma_loopback_break_cq(struct ibv_cq *cq);

/* Make a completion event out of nothing. Returns 0 or -EINVAL. */
RPMA_LOOPBACK_API int rpma_loopback_spurious_event(struct ibv_cq *cq);

/*
 * The deterministic scheduler. Each body runs in a separate thread, but only
 * one body at a time; another body may be chosen at every hook point, or at the
 * named hook points, and at every rpma_loopback_sched_point(). Timers and the
 * progress of the device are steps that the scheduler chooses too, in virtual
 * time.
 */
struct rpma_loopback_sched {
	int threads; /* 1..8 */
	void (*body[8])(void *arg);
	void (*setup)(void *arg); /* before each run, may be NULL */
	/* after each run: returns 0 if all invariants hold; may be NULL */
	int (*check)(void *arg);
	void *arg;
	/* 0: exhaustive, else the number of runs with random schedules */
	unsigned runs;
	uint64_t seed;		  /* of random schedules; 0: the device's */
	unsigned max_preemptions; /* exhaustive: bound, 0 means 2 */
	unsigned max_runs; /* exhaustive: give up after, 0 means 100000 */
	/* a schedule printed by a failure: the only run */
	const char *replay;
	/* hook points where the body may change, 1u << each; 0: all points */
	uint32_t points;
};

struct rpma_loopback_sched_result {
	unsigned runs;	   /* schedules tried */
	unsigned steps;	   /* of the longest run */
	int complete;	   /* the exhaustive search was completed */
	char failed[4096]; /* the failed schedule, or empty */
};

/*
 * Runs the schedules. Returns 0 if check() returned 0 after every run, 1 if a
 * schedule failed (also by a deadlock; printed on stderr and stored in result),
 * or -EINVAL. RPMA_LOOPBACK_REPLAY in the environment overrides replay. A
 * single call at a time.
 */
RPMA_LOOPBACK_API int
rpma_loopback_sched_run(const struct rpma_loopback_sched *sched,
			struct rpma_loopback_sched_result *result);

/* A place of the test's own where the scheduler may switch. */
RPMA_LOOPBACK_API void rpma_loopback_sched_point(const char *name);

/* Wait until pred(arg) is not 0; under the scheduler the others go on. */
RPMA_LOOPBACK_API void rpma_loopback_sched_wait(int (*pred)(void *arg),
						void *arg);

#ifdef __cplusplus
}
#endif

#endif /* RPMA_LOOPBACK_H */
