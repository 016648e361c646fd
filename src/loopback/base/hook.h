/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hook.h -- the points where a test, or the scheduler, has its say. Called with
 * no lock held.
 */

#ifndef LB_BASE_HOOK_H
#define LB_BASE_HOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "rpma_loopback.h"

extern _Atomic uint32_t lb_hook_users; /* how many want to be called */
void lb_hook_call(enum rpma_loopback_point point, const void *object);
static inline void lb_hook(enum rpma_loopback_point point, const void *object)
{
	/* relaxed: lb_hook_call() looks again, and properly */
	if (!lb_likely(!atomic_load_explicit(&lb_hook_users,
					     memory_order_relaxed)))
		lb_hook_call(point, object);
}

/*
 * The deterministic scheduler, which attaches itself while it runs. All that is
 * below it knows it by this table only.
 */
struct lb_scheduler {
	bool (*is_scheduled)(void); /* is this thread one that it schedules? */
	/* Let it switch, if so, and if that is a point where it may. */
	void (*yield)(enum rpma_loopback_point point);
	bool (*block)(bool (*pred)(void *arg), void *arg); /* lb_hook_block() */
};
void lb_hook_attach(const struct lb_scheduler *scheduler);
void lb_hook_detach(void);
bool lb_hook_is_scheduled(void); /* is this thread one that it schedules? */

/*
 * Wait in a verb or rdma_cm call for something that another thread
 * brings. Under the deterministic scheduler it lets the others run until
 * pred(arg), and returns true; without it returns false at once, and the
 * caller blocks its own way. No lock held. pred is called with none held.
 */
bool lb_hook_block(bool (*pred)(void *arg), void *arg);

#endif /* LB_BASE_HOOK_H */
