/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * process.h -- the state of the process, shared by all rooms.
 *
 * Lock order of the device (take only downwards, never two locks of the same
 * line at a time):
 *   1 lb.big         tables, reference counts, create and destroy
 *     link.in        of one link to another process: taking, and who drains
 *   2 sq.lock        of one QP: its send queue, and the right to execute it
 *   3 rq.pop         of one QP: its responder, and taking from its RQ
 *   4 rq.post        of the same QP: adding to its RQ
 *   5 srq.pop, then srq.post
 *   6 cq.push, then cq.poll
 *   7 channel.lock, context.lock, the service's and the faults' own mutexes,
 *     the lock of a row of the table of keys, link.out, the list of links, the
 *     lock of persistent memory
 * A thread holds no lock while the thread runs a hook, waits for events to be
 * acknowledged, or calls into the rdma_cm half. doc/protocols/loopback.md gives
 * the reasons, and the argument why an object may go away while others execute.
 */

#ifndef LB_BASE_PROCESS_H
#define LB_BASE_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct lb_globals {
	pthread_mutex_t big;
	_Atomic int mode;   /* enum rpma_loopback_mode */
	_Atomic int strict; /* enum rpma_loopback_strict */
	_Atomic int log;    /* 0 silent, 1 faults and misuse, 2 objects */
	_Atomic uint64_t seed;
};

extern struct lb_globals lb;

enum lb_fork_step {
	LB_FORK_BEFORE,
	LB_FORK_PARENT,
	LB_FORK_CHILD,
};

#endif /* LB_BASE_PROCESS_H */
