/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Verbs of another process. It is a child of the test, opens the device for
 * itself, and does what the test asks for: a verb of an object that was made
 * with far_context() is executed there, and the test holds a copy of the
 * object. The memory that both have is at the same address in both.
 */

#ifndef DEVICE_FAR_H
#define DEVICE_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <infiniband/verbs.h>

/* Starts the process. Called before the first verb, from its only thread. */
void far_start(void);
/* The process opens the device of this name; 0, or it cannot. */
int far_open(const char *name);
/* The process closes the device: 0, or something was left over; it ends. */
int far_close(void);
int far_end(void);
/* NULL: there is no other process. */
struct ibv_context *far_context(void);

/* Memory of both, in pages; given back in the reverse order. */
void *far_alloc(size_t size);
bool far_has(const void *p);
void far_free(void *p);

#endif
