/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fault.h -- the rules by which the device fails on purpose, and the knobs.
 */

#ifndef LB_FAULT_FAULT_H
#define LB_FAULT_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/process.h"

/*
 * lb_fault_errno("rdma_connect"): the errno that a rule sets for the call of
 * the verb, or 0. lb_fault_event("cm.established"): the action for the event.
 * Both cost one load without rules.
 */
extern _Atomic uint32_t lb_fault_count;
int lb_fault_ask_errno(const char *verb);
static inline int lb_fault_errno(const char *verb)
{
	/* relaxed: rules apply to later calls, in some order */
	if (lb_likely(!atomic_load_explicit(&lb_fault_count,
					    memory_order_relaxed)))
		return 0;
	return lb_fault_ask_errno(verb);
}

enum lb_event_action {
	LB_EVENT_PASS,
	LB_EVENT_DROP,
	LB_EVENT_DOUBLE,
	LB_EVENT_LATE, /* after *delay_us */
};
enum lb_event_action lb_fault_event(const char *event, uint32_t *delay_us);

/* The actions on a record of a link to another process. */
enum lb_link_action {
	LB_LINK_PASS = 0,
	LB_LINK_BREAK = 1, /* the link ends before the put */
	LB_LINK_DENY = 2,  /* no room, once */
	LB_LINK_STALL = 4, /* nothing is taken for *delay_us, then the record */
};
/* Returns an action for the next record; a load without rules. */
extern _Atomic uint32_t lb_fault_links;
enum lb_link_action lb_fault_ask_link(uint32_t actions, uint32_t *delay_us);
static inline enum lb_link_action lb_fault_link(uint32_t actions,
						uint32_t *delay_us)
{
	/* relaxed: rules apply to later records, in some order */
	if (lb_likely(!atomic_load_explicit(&lb_fault_links,
					    memory_order_relaxed)))
		return LB_LINK_PASS;
	return lb_fault_ask_link(actions, delay_us);
}

/* The effects of a fault rule on a work request. */
struct lb_wr_fault {
	int status;   /* enum ibv_wc_status, 0: no fault */
	bool after;   /* fail after the data moved */
	uint32_t rnr; /* times to find no receive */
	uint32_t delay_us;
};

/* The work request matched with rules. */
struct lb_fault_of {
	uint32_t qpn;
	uint64_t order; /* order of creation of the queue pair */
	uint32_t opcode;
	uint64_t wr_id;
};
void lb_fault_wr(const struct lb_fault_of *of, struct lb_wr_fault *fault);

/* Behaviours that differ between real devices; set by "knob:" rules. */
enum lb_fault_knob {
	LB_KNOB_QPN_REUSE,	/* a new QP gets the number freed last */
	LB_KNOB_DESTROY_CLEANS, /* destroy_qp removes the CQEs of the QP */
	LB_KNOB_ARM_PENDING,	/* arming a non-empty CQ makes an event */
	LB_KNOB_AFTER_CQ_ERR,	/* a dead CQ still takes completions */
	LB_KNOB_PLAIN_ERRORS,	/* error completions are filled in full */
	LB_KNOB_SPURIOUS,	/* every n-th poll makes an event */
	LB_KNOB_NO_LAST_WQE,	/* 1: LAST_WQE_REACHED never comes, 2: twice */
	LB_KNOB_RETRY_US, /* a retry of a silent peer takes at most this */
	LB_KNOBS,
};
uint32_t lb_fault_knob(enum lb_fault_knob knob);

/* No thread is inside a rule meanwhile. */
void lb_fault_fork(enum lb_fork_step step);

#endif /* LB_FAULT_FAULT_H */
