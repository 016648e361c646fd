/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loop.c -- finds the loopback device's controls in the process, and notes the
 * queue pair of the last post.
 */

#define _GNU_SOURCE
#include "loop.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct loop loop;
static bool found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A function pointer through an object's, the way POSIX has it. */
#define FIND(member, name)                             \
	do {                                           \
		void *at = dlsym(RTLD_DEFAULT, name);  \
		if (at == NULL)                        \
			return;                        \
		memcpy(&loop.member, &at, sizeof(at)); \
	} while (0)

static void find(void)
{
	FIND(fault, "rpma_loopback_fault");
	FIND(fault_clear, "rpma_loopback_fault_clear");
	FIND(fault_count, "rpma_loopback_fault_count");
	FIND(set_hook, "rpma_loopback_set_hook");
	FIND(set_seed, "rpma_loopback_set_seed");
	FIND(remove_device, "rpma_loopback_remove_device");
	FIND(restore_device, "rpma_loopback_restore_device");
	FIND(raise, "rpma_loopback_raise");
	FIND(raise_cm, "rpma_loopback_raise_cm");
	FIND(break_cq, "rpma_loopback_break_cq");
	FIND(spurious_event, "rpma_loopback_spurious_event");
	FIND(get_mode, "rpma_loopback_get_mode");
	FIND(stats, "rpma_loopback_get_stats");
	found = true;
}

const struct loop *loop_get(void)
{
	pthread_once(&once, find);
	return found ? &loop : NULL;
}

static _Atomic(struct ibv_qp *) posted;

void loop_note_post(enum rpma_loopback_point point, const void *object,
		    void *arg)
{
	(void)arg;
	/* relaxed: of one thread at a time */
	if (point == RPMA_LOOPBACK_POST_SEND)
		atomic_store_explicit(&posted, (void *)(uintptr_t)object,
				      memory_order_relaxed);
}

struct ibv_qp *loop_posted(void)
{
	/* relaxed: posted by this thread */
	return atomic_load_explicit(&posted, memory_order_relaxed);
}
