/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* loop.c -- finds the loopback device's controls in the process. */

#define _GNU_SOURCE
#include "loop.h"

#include <dlfcn.h>
#include <pthread.h>
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
	found = true;
}

const struct loop *loop_get(void)
{
	pthread_once(&once, find);
	return found ? &loop : NULL;
}
