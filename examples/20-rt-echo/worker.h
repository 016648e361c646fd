/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * worker.h: the thread that consumes a queue.
 */

#ifndef ECHO_WORKER_H
#define ECHO_WORKER_H

#include "end.h"

/* Runs a worker, arg; returns when the worker was stopped and has no link. */
void *worker_main(void *arg);
/*
 * Counts items left in the queue after the thread ended: each was delivered too
 * often.
 */
void worker_sweep(struct worker *worker);

#endif /* ECHO_WORKER_H */
