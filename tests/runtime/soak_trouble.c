/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak_trouble.c -- how the loopback device misbehaves in an epoch: rules of
 * its fault language, and a hook that breaks CQs, raises QP_FATAL and sleeps.
 */

#include "soak.h"

#include <time.h>

#define NAP_NS 200000

/* every rule is one of chance: where it strikes is the seed's business */
static const struct {
	const char *name;
	const char *rules;
} troubles[SOAK_TROUBLES] = {
	[SOAK_NONE] = {"none", NULL},
	[SOAK_WRS] = {"wrs", "wr:prob=2000,status=rem_op_err,when=after;"
			     "wr:prob=3000,status=rem_access_err,when=before;"
			     "wr:prob=3000,status=retry_exc_err,when=before;"
			     "wr:prob=500,rnr=2;wr:prob=500,delay_us=300"},
	[SOAK_EVENTS] = {"events",
			 "event:of=cq,action=drop,prob=50;"
			 "event:of=cq,action=double,prob=20;"
			 "event:of=cq,action=late,delay_us=500,prob=20;"
			 "call:verb=ibv_get_cq_event,errno=EINTR,prob=10;"
			 "knob:spurious=100,arm_pending=1"},
	[SOAK_CM] = {"cm",
		     "event:of=cm.disconnected,action=drop,prob=4;"
		     "event:of=cm.disconnected,action=double,prob=3;"
		     "event:of=cm.disconnected,action=late,delay_us=3000,"
		     "prob=2;"
		     "event:of=cm.established,action=late,delay_us=2000,prob=4;"
		     "event:of=cm.established,action=drop,prob=30;"
		     "event:of=cm.rejected,action=drop,prob=20;"
		     "event:of=cm.msg_dreq,action=drop,prob=5;"
		     "event:of=cm.msg_rtu,action=drop,prob=10"},
	[SOAK_CALLS] = {"calls",
			"call:verb=ibv_post_send,prob=3000,errno=ENOMEM;"
			"call:verb=ibv_post_recv,prob=3000,errno=ENOMEM;"
			"call:verb=ibv_modify_qp,prob=20;"
			"call:verb=rdma_create_id,prob=30,errno=ENOMEM;"
			"call:verb=rdma_create_qp,prob=30,errno=ENOMEM;"
			"call:verb=rdma_resolve_addr,prob=30,errno=ENODEV;"
			"call:verb=rdma_connect,prob=20;"
			"call:verb=rdma_accept,prob=20;"
			"call:verb=rdma_disconnect,prob=5"},
	[SOAK_CQS] = {"cqs", "call:verb=ibv_req_notify_cq,prob=500,count=1;"
			     "call:verb=ibv_poll_cq,prob=20000,count=1;"
			     "call:verb=ibv_get_cq_event,errno=EIO,prob=500,"
			     "count=1;"
			     "knob:after_cq_err=1"},
	[SOAK_SLOW] = {"slow", "knob:qpn_reuse=1,destroy_cleans=1"},
	[SOAK_DEVICE] = {"device", NULL},
};

/* this thread's post is to raise QP_FATAL, and has done it */
static _Thread_local bool fatal;

const char *soak_trouble_name(enum soak_trouble trouble)
{
	return troubles[trouble].name;
}

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = NAP_NS};

	nanosleep(&ts, NULL);
}

/* Takes one of the CQs to be broken. */
static bool take_break(struct soak_epoch *epoch)
{
	/* relaxed, both: a count */
	int breaks = atomic_load_explicit(&epoch->breaks, memory_order_relaxed);

	while (breaks > 0) {
		if (atomic_compare_exchange_weak_explicit(
			    &epoch->breaks, &breaks, breaks - 1,
			    memory_order_relaxed, memory_order_relaxed))
			return true;
	}
	return false;
}

static void hook(enum rpma_loopback_point point, const void *object, void *arg)
{
	struct soak_epoch *epoch = arg;
	void *changed = (void *)(uintptr_t)object;

	switch (point) {
	case RPMA_LOOPBACK_POST_SEND:
		if (fatal) {
			fatal = false;
			CHECK(epoch->loop->raise(IBV_EVENT_QP_FATAL, changed) ==
			      0);
		}
		return;
	case RPMA_LOOPBACK_POLL:
		if (take_break(epoch))
			CHECK(epoch->loop->break_cq(changed) == 0);
		return;
	case RPMA_LOOPBACK_MODIFY:
	case RPMA_LOOPBACK_DESTROY:
		if (epoch->trouble == SOAK_SLOW)
			nap();
		return;
	default:
		return;
	}
}

bool soak_trouble_fatal(struct soak_end *end,
			int (*post)(struct soak_end *end, bool nowhere,
				    uint64_t *random),
			uint64_t *random)
{
	bool raised;

	fatal = true;
	post(end, false, random);
	raised = !fatal;
	fatal = false;
	return raised;
}

void soak_trouble_begin(struct soak_epoch *epoch)
{
	const char *rules = troubles[epoch->trouble].rules;

	if (epoch->loop == NULL)
		return;
	epoch->loop->set_seed(epoch->seed);
	/* a peer that is gone is given up soon */
	CHECK(epoch->loop->fault("knob:retry_us=200") == 0);
	if (rules != NULL)
		CHECK(epoch->loop->fault(rules) == 0);
	epoch->loop->set_hook(hook, epoch);
}

void soak_trouble_end(struct soak_epoch *epoch)
{
	if (epoch->loop == NULL)
		return;
	epoch->loop->set_hook(NULL, NULL);
	/* relaxed: a count */
	atomic_fetch_add_explicit(&epoch->sum->faults,
				  epoch->loop->fault_count(),
				  memory_order_relaxed);
	epoch->loop->fault_clear();
	epoch->loop->restore_device(0);
}
