/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * worker.h: the thread that consumes one queue.
 */

#ifndef ECHO_WORKER_H
#define ECHO_WORKER_H

#include "end.h"

/* arg is a struct worker; returns when it was stopped and has no link. */
void *worker_main(void *arg);
/* What is in the queue after the thread ended was delivered too often. */
void worker_sweep(struct worker *worker);

#endif /* ECHO_WORKER_H */
