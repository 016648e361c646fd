/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resume.c -- see resume.h. On the connection's poller.
 */

#include "conn/resume.h"

#include "conn/answer.h"
#include "conn/item.h"
#include "poller/future.h"
#include "poller/waiting.h"

/* Goes on with what waits. False: refused posters are answered later. */
static bool resume(struct rt_side *side, uint32_t wants)
{
	int ret;

	/* acquire: pairs with the release in set_waiting() */
	if (!(atomic_load_explicit(&side->want, memory_order_acquire) &
	      RT_WANT_FUTURES))
		return true;
	ret = rt_waiting_of(side)->resume(side);
	if (ret == RPMA_E_AGAIN)
		rt_answer_put_off_poller(side, wants);
	return ret == 0;
}

/* The lane that they waited for has eased, and tells nobody again: what they
 * wait for now is the end of a batch. */
static void wait_for_batch(struct rt_side *side, uint32_t bit, uint32_t instead)
{
	/* acq_rel, relaxed: as any taker of want, and poster */
	if (atomic_fetch_and_explicit(&side->want, ~bit, memory_order_acq_rel) &
	    bit)
		atomic_fetch_or_explicit(&side->want, instead,
					 memory_order_relaxed);
}

void rt_resume_answer_poller(struct rt_side *side, struct rt_poller *poller,
			     uint32_t wants)
{
	if (side->healthy && !resume(side, wants)) {
		if (wants & RT_WANT_BACKLOG) {
			wait_for_batch(side, RT_WANT_BACKLOG, RT_WANT_CREDIT);
			wait_for_batch(side, RT_WANT_BACKLOG << RT_WANT_IN_CALL,
				       RT_WANT_CREDIT << RT_WANT_IN_CALL);
		}
		wants = 0; /* but closed routes are looked after */
	}
	rt_answer_poller(side, poller, wants);
}

/* ---------------------------------------------------------- at the end --- */

/* The next one: the slot of its future, out; NULL: it was taken back. */
static struct rt_future *take_first(struct rt_waiting *waiting)
{
	uint32_t last = rt_waiting_last(waiting, waiting->first);
	uint32_t count = last + 1 - waiting->first;
	struct rt_future *slot;

	waiting->first = last + 1;
	if (waiting->claimed > 0) {
		waiting->claimed -= count;
		return rt_future_slot(&waiting->futures[last]);
	}
	slot = rt_waiting_slot(waiting, last);
	return slot != NULL && rt_future_claim_post(slot) ? slot : NULL;
}

bool rt_resume_take_poller(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			   struct rpma_rt_completion *item)
{
	struct rt_waiting *waiting = rt_waiting_of(&conn->side[side]);
	struct rt_future *slot = NULL;
	bool is_cut = false;

	while (waiting != NULL && slot == NULL &&
	       !rt_waiting_is_empty(waiting)) {
		is_cut = waiting->is_cut;
		waiting->is_cut = false;
		slot = take_first(waiting);
	}
	if (slot == NULL)
		return false;
	*item = (struct rpma_rt_completion){
		.context = rt_future_cookie(slot),
		.user = rt_item_user(conn),
		.qp_num = conn->qp_num,
		.kind = RPMA_RT_COMPLETION,
		.status = IBV_WC_GENERAL_ERR,
		.opcode = slot->result.opcode,
		.flags = is_cut ? RPMA_RT_C_SYNTHESIZED : RPMA_RT_C_NOT_POSTED,
	};
	return true;
}
