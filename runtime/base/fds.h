/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fds.h -- descriptors of a runtime closed by the program: close_range(),
 * closefrom(), a close() of the wrong number. A thread of the runtime notices
 * within half a second, also during a sleep, and goes on without descriptors
 * until the stop; the connections end. doc/protocols/threads.md, "Descriptors
 * that the program closes".
 */

#ifndef RT_BASE_FDS_H
#define RT_BASE_FDS_H

#include <stdatomic.h>

#include "base/bell.h"
#include "base/runtime.h"

struct epoll_event;

/*
 * Waits as epoll_wait() does, for a thread woken by the bell. A signal is no
 * error. Returns -1 if epfd or the descriptor of the bell was closed, with the
 * reason in errno.
 */
int rt_fds_wait(int epfd, const struct rt_bell *bell,
		struct epoll_event *events, int max, int timeout_ms);

/* Logs once in a runtime's life that the program closed its descriptors. */
void rt_fds_note_lost(struct rpma_rt *rt, int err);
/*
 * Logs like rt_fds_note_lost(), and makes the control thread of each device end
 * everything of the runtime on the device. REQUIRES: the devices of the runtime
 * are not deleted meanwhile; on a poller, or on the event thread while the
 * runtime is watched there
 */
void rt_fds_lost_mt(struct rpma_rt *rt, int err);

/* Returns 0, or the errno of the closed descriptors. Any thread. */
static inline int rt_fds_error(struct rpma_rt *rt)
{
	/* acquire: pairs with the exchange in rt_fds_note_lost() */
	return atomic_load_explicit(&rt->fds_error, memory_order_acquire);
}

#endif /* RT_BASE_FDS_H */
