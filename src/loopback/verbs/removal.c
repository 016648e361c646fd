/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * removal.c -- a device goes away under its users, and comes back. Queue pairs
 * go to error, contexts have DEVICE_FATAL, then listeners are called.
 */

#include "verbs/removal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/list.h"
#include "base/process.h"
#include "exec/run.h"
#include "object/async.h"
#include "object/device.h"
#include "qp/flush.h"
#include "qp/kick.h"
#include "qp/qp.h"
#include "rpma_loopback.h"
#include "verbs/config.h"

#define MAX_LISTENERS 4

static _Atomic(void (*)(struct lb_device *)) removal_fns[MAX_LISTENERS];

void lb_removal_listen(void (*fn)(struct lb_device *dev))
{
	int i;

	for (i = 0; i < MAX_LISTENERS; i++) {
		void (*none)(struct lb_device *) = NULL;

		/* release: pairs with the acquire in tell_removal() */
		if (atomic_compare_exchange_strong_explicit(
			    &removal_fns[i], &none, fn, memory_order_release,
			    memory_order_relaxed))
			return;
	}
}

static void tell_removal(struct lb_device *dev)
{
	int i;

	for (i = 0; i < MAX_LISTENERS; i++) {
		/* acquire: pairs with the release in lb_removal_listen() */
		void (*fn)(struct lb_device *) = atomic_load_explicit(
			&removal_fns[i], memory_order_acquire);

		if (fn)
			fn(dev);
	}
}

/* Every QP of the device to error, as if its wire were cut. */
static void break_qps(struct lb_device *dev)
{
	struct lb_run run;
	struct lb_list *n;
	struct lb_qp *qp;

	lb_run_begin(&run);
	pthread_mutex_lock(&lb.big);
	for (qp = lb_qp_slots(); qp; qp = qp->next)
		lb_qp_break(&run, qp, dev);
	for (n = dev->contexts.next; n != &dev->contexts; n = n->next)
		lb_async_add(lb_entry(n, struct lb_context, node), NULL,
			     IBV_EVENT_DEVICE_FATAL, NULL);
	pthread_mutex_unlock(&lb.big);
	lb_run_end(&run);
}

LB_EXPORT int rpma_loopback_remove_device(int index)
{
	struct lb_device *dev;

	lb_config_start();
	dev = lb_device_at(index);
	if (!dev)
		return -ENODEV;
	/* release: pairs with the acquire in lb_device_at() */
	atomic_store_explicit(&dev->removed, 1, memory_order_release);
	break_qps(dev);
	tell_removal(dev);
	return 0;
}

LB_EXPORT int rpma_loopback_restore_device(int index)
{
	lb_config_start();
	if (index < 0 || index >= lb_device_count)
		return -ENODEV;
	/* release: pairs with the acquire in lb_device_at() */
	atomic_store_explicit(&lb_device_all[index].removed, 0,
			      memory_order_release);
	return 0;
}
