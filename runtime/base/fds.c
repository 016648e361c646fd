/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fds.c -- see fds.h. The kernel says nothing to a thread that sleeps in
 * epoll_wait() when the epoll descriptor or the eventfd is closed, and a ring
 * has no descriptor to write any more. So no thread sleeps for long without a
 * look at its descriptors.
 */

#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "base/runtime.h"

#define LOOK_MS 500 /* between two looks at the descriptors */

int rt_fds_wait(int epfd, const struct rt_bell *bell,
		struct epoll_event *events, int max, int timeout_ms)
{
	int ms;
	int n;

	for (;;) {
		ms = timeout_ms < 0 || timeout_ms > LOOK_MS ? LOOK_MS
							    : timeout_ms;
		n = epoll_wait(epfd, events, max, ms);
		if (n < 0)
			return errno == EINTR ? 0 : -1;
		if (n > 0 || ms == timeout_ms)
			return n;
		/* EBADF, which the next epoll_wait() has for epfd */
		if (fcntl(rt_bell_fd(bell), F_GETFD) < 0)
			return -1;
		if (timeout_ms > 0)
			timeout_ms -= ms;
	}
}

void rt_fds_note_lost(struct rpma_rt *rt, int err)
{
	int none = 0;

	/* acq_rel: pairs with the acquire in rt_fds_error(); failure, relaxed:
	 * another thread has logged it */
	if (!atomic_compare_exchange_strong_explicit(&rt->fds_error, &none, err,
						     memory_order_acq_rel,
						     memory_order_relaxed))
		return;
	RT_LOG_FATAL("the program closed descriptors of the runtime (%s), by "
		     "close_range(), closefrom() or a close() of a wrong "
		     "number. All connections, listeners and SRQs of the "
		     "runtime end. Stop the runtime, and make a new one",
		     strerror(err));
}

void rt_fds_lost_mt(struct rpma_rt *rt, int err)
{
	struct rt_device *device;

	rt_fds_note_lost(rt, err);
	/* acquire: pairs with the release in cm/cm.c */
	device = atomic_load_explicit(&rt->devices, memory_order_acquire);
	for (; device != NULL; device = device->next) {
		/* relaxed: the first thread sends the message, once; the inbox
		 * orders the rest */
		if (!atomic_exchange_explicit(&device->lost_sent, true,
					      memory_order_relaxed))
			rt_inbox_push_mt(&device->control.inbox,
					 &device->lost_msg);
	}
}
