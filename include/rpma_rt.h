/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * librpma_rt: dispatches RDMA completions to the threads that consume them.
 *
 * The header to include. rpma_rt(7) describes the model and has a complete
 * program; each call has a manual page with all cases and an example.
 *
 *	rpma_rt/core.h        errors, completions, runtime, pollers, queues
 *	rpma_rt/pool.h        registered memory in slots
 *	rpma_rt/connection.h  listeners, connections, routes, adoption
 *	rpma_rt/post.h        work requests: fields, preparing, posting
 *	rpma_rt/future.h      results that are stored for a holder
 *	rpma_rt/srq.h         shared receive queues
 *	rpma_rt/shard.h       a thread per core, messages, timers
 *
 * The comment of a call says what the call does, then:
 *   Returns  the result of success. Each failure is a negative error, and
 *            nothing is written through pointers then.
 *   Errors   without RPMA_E_ and RPMA_RT_E_. Every call can fail with INVAL (an
 *            argument is NULL, out of range, or of another runtime) and FORKED.
 *            NOMEM: no memory; PROVIDER: the device or the system refused;
 *            CLOSED: an object is closed or closing. The log says why.
 *   Thread   any: any thread, also in functions that the runtime calls.
 *            waits: the call may wait, and fails with THREAD in a function
 *            that the runtime calls; any other thread.
 *            owner: the thread with the handle, while no other thread is in a
 *            call on the object.
 *            consumer, holder: a single thread at a time for each queue (a
 *            shared queue has several consumers) or future.
 *
 * Events stand without RPMA_RT_. Memory behind pointers is borrowed for the
 * call, unless the comment says otherwise. A delete or unref takes the address
 * of the handle, accepts NULL in the handle, and leaves NULL. A configuration
 * is a struct that begins with its size:
 *
 *	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
 *	cfg.pollers = 2;
 *
 * The initializer sets every default. 0 is a value where the range of a field
 * contains 0, and the default elsewhere. Reserved words are 0. A configuration,
 * with all memory that the configuration points to, is borrowed for the call.
 */

#ifndef RPMA_RT_H
#define RPMA_RT_H

#include <rpma_rt/core.h>
#include <rpma_rt/pool.h>
#include <rpma_rt/connection.h>
#include <rpma_rt/post.h>
#include <rpma_rt/future.h>
#include <rpma_rt/srq.h>
#include <rpma_rt/shard.h>

#endif /* RPMA_RT_H */
