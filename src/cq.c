/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* CQs: making, waiting, polling, claiming. */

#include "cq.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "cancel.h"
#include "channel.h"
#include "cq_table.h"
#include "device.h"
#include "err.h"
#include "log.h"
#include "tsan/tsan.h"

/*
 * Sets ibv_channel: the given channel, the channel of the object, or a new
 * channel.
 */
static int cq_init_channel(struct rpma_cq *cq, const struct rpma__cq_attr *attr)
{
	cq->channel = attr->channel;
	if (attr->channel) {
		cq->ibv_channel = rpma__channel_get_ibv(attr->channel);
		return 0;
	}
	if (attr->ibv_channel) {
		cq->ibv_channel = attr->ibv_channel;
		return 0;
	}

	cq->ibv_channel = ibv_create_comp_channel(attr->ibv_ctx);
	if (cq->ibv_channel == NULL) {
		RPMA_LOG_CALL("ibv_create_comp_channel", -1);
		return RPMA_E_PROVIDER;
	}
	cq->owns_channel = true;
	return 0;
}

static int cq_fini_channel(struct rpma_cq *cq)
{
	int ret;

	if (!cq->owns_channel)
		return 0;
	ret = ibv_destroy_comp_channel(cq->ibv_channel);
	if (ret) {
		RPMA_LOG_CALL("ibv_destroy_comp_channel", ret);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

static int cq_create(struct rpma_cq *cq, const struct rpma__cq_attr *attr)
{
	int cqe = attr->cqe > INT_MAX ? INT_MAX : (int)attr->cqe;
	bool is_object = attr->standalone || attr->channel;

	cq->cq = ibv_create_cq(attr->ibv_ctx, cqe, is_object ? cq : NULL,
			       cq->ibv_channel, attr->comp_vector);
	if (cq->cq == NULL) {
		RPMA_LOG_ERROR("ibv_create_cq(%d, vector %d) failed: %s", cqe,
			       attr->comp_vector, rpma__errno_2str(-1));
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma__cq_new(const struct rpma__cq_attr *attr, struct rpma_cq **cq_ptr)
{
	struct rpma_cq *cq = calloc(1, sizeof(*cq));
	int err;
	int ret;

	if (cq == NULL)
		return RPMA_REFUSE_NOMEM("a CQ");
	cq->context = attr->context;
	cq->standalone = attr->standalone;
	cq->forks = rpma__forks_now();

	ret = cq_init_channel(cq, attr);
	if (ret)
		goto err_free;
	ret = cq_create(cq, attr);
	if (ret)
		goto err_fini_channel;
	/* the reader of a channel object arms the CQs of the channel */
	if (cq->channel == NULL)
		ret = rpma__cq_arm(cq->cq, false);
	if (ret)
		goto err_destroy_cq;
	rpma__cq_table_add(cq);

	*cq_ptr = cq;
	return 0;

err_destroy_cq:
	err = errno;
	(void)ibv_destroy_cq(cq->cq);
	errno = err;
err_fini_channel:
	err = errno;
	(void)cq_fini_channel(cq);
	errno = err;
err_free:
	free(cq);
	return ret;
}

/*
 * Starts deleting. The reader of an event waits for the outcome from now on;
 * destroy waits until the event has been acknowledged.
 */
static int cq_begin_delete(struct rpma_cq *cq)
{
	rpma__cq_table_set_leaving(cq, true);
	return ibv_destroy_cq(cq->cq);
}

/* Finishes deleting; ret: the result of cq_begin_delete(). */
static int cq_finish_delete(struct rpma_cq **cq_ptr, int ret)
{
	struct rpma_cq *cq = *cq_ptr;

	if (ret) {
		RPMA_LOG_CALL("ibv_destroy_cq", ret);
		ret = RPMA_E_PROVIDER;
	}
	rpma__cq_table_remove(cq);
	rpma__err_first(&ret, cq_fini_channel(cq));
	/* before the memory goes: another thread may fork in between */
	*cq_ptr = NULL;
	free(cq);
	return ret;
}

void rpma__cq_event_given(struct rpma_cq *cq)
{
	/* relaxed: only a count; deleting comes after all waiting */
	(void)atomic_fetch_add_explicit(&cq->unacked, 1, memory_order_relaxed);
}

/* Subtracts n, but at most the count: a program that reads the channel raw
 * acknowledges events that were never counted. */
static void cq_uncount_events(struct rpma_cq *cq, unsigned n)
{
	/* relaxed: a first guess for the exchange */
	unsigned unacked =
		atomic_load_explicit(&cq->unacked, memory_order_relaxed);

	/* relaxed: only a count; on failure a better guess */
	while (unacked &&
	       !atomic_compare_exchange_weak_explicit(
		       &cq->unacked, &unacked, unacked > n ? unacked - n : 0,
		       memory_order_relaxed, memory_order_relaxed))
		;
}

static unsigned cq_count_unacked(const struct rpma_cq *cq)
{
	/* relaxed: only a count; deleting comes after all waiting */
	return atomic_load_explicit(&cq->unacked, memory_order_relaxed);
}

int rpma__cq_delete(struct rpma_cq **cq_ptr)
{
	unsigned unacked;

	if (*cq_ptr == NULL)
		return 0;
	unacked = cq_count_unacked(*cq_ptr);
	if (unacked)
		ibv_ack_cq_events((*cq_ptr)->cq, unacked);
	return cq_finish_delete(cq_ptr, cq_begin_delete(*cq_ptr));
}

void rpma__cq_abandon(struct rpma_cq **cq_ptr)
{
	rpma__cq_table_forget(*cq_ptr);
	free(*cq_ptr);
	*cq_ptr = NULL;
}

bool rpma__cq_is_taken(const struct rpma_cq *cq)
{
	return cq->channel || rpma__claim_is_held(&cq->claim);
}

int rpma__cq_get_event(struct ibv_comp_channel *ibv_channel,
		       struct ibv_cq **ibv_cq, void (*cancelled)(void *arg),
		       void *arg)
{
	void *context;
	int ret;

	errno = 0;
	pthread_cleanup_push(cancelled, arg);
	ret = ibv_get_cq_event(ibv_channel, ibv_cq, &context);
	pthread_cleanup_pop(0);
	if (ret == 0)
		return 0;
	/* the device is gone: no completion will ever arrive */
	if (errno == EIO) {
		RPMA_LOG_CALL("ibv_get_cq_event", -1);
		return RPMA_E_PROVIDER;
	}
	/* release 1.3 returns the same error for all failures; programs take
	 * the error for "not yet" */
	return RPMA_E_NO_COMPLETION;
}

int rpma__cq_arm(struct ibv_cq *ibv_cq, bool solicited_only)
{
	int ret = ibv_req_notify_cq(ibv_cq, solicited_only);

	if (ret) {
		RPMA_LOG_CALL("ibv_req_notify_cq", ret);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd)
{
	if (fd == NULL || !rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", fd, cq);
	if (rpma__cq_is_taken(cq))
		return RPMA_REFUSE(
			RPMA_E_SHARED_CHANNEL,
			"the CQ has a shared channel, or is claimed: wait on "
			"the channel, or release the claim first");

	*fd = cq->ibv_channel->fd;
	return 0;
}

/* Runs when the thread was cancelled while waiting. */
static void cq_leave_claim(void *arg)
{
	struct rpma_cq *cq = arg;

	rpma__claim_leave(&cq->claim);
}

int rpma_cq_wait(struct rpma_cq *cq)
{
	struct ibv_cq *ibv_cq;
	int ret;

	if (!rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", cq);
	if (!cq->owns_channel || !rpma__claim_enter(&cq->claim))
		return RPMA_REFUSE(
			RPMA_E_SHARED_CHANNEL,
			"the CQ has a shared channel, or is claimed: wait on "
			"the channel, or release the claim first");

	ret = rpma__cq_get_event(cq->ibv_channel, &ibv_cq, cq_leave_claim, cq);
	if (ret == 0) {
		RPMA_NOT_CANCELLED;

		ibv_ack_cq_events(cq->cq, 1);
		ret = rpma__cq_arm(cq->cq, false);
	}
	rpma__claim_leave(&cq->claim);
	return ret;
}

int rpma_cq_wait_event(struct rpma_cq *cq)
{
	struct ibv_cq *ibv_cq;
	int ret;

	if (!rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", cq);
	if (!cq->owns_channel || !rpma__claim_enter(&cq->claim))
		return RPMA_REFUSE(
			RPMA_E_SHARED_CHANNEL,
			"the CQ has a shared channel, or is claimed: wait on "
			"the channel, or release the claim first");

	ret = rpma__cq_get_event(cq->ibv_channel, &ibv_cq, cq_leave_claim, cq);
	if (ret == 0)
		rpma__cq_event_given(cq);
	rpma__claim_leave(&cq->claim);
	return ret;
}

static int cq_poll_failed(int got, int num_entries)
{
	if (got < 0) {
		RPMA_LOG_ERROR("ibv_poll_cq() failed: %d: the CQ is of no use "
			       "any more, because of an overrun or a lost "
			       "device; delete the connections of the CQ, and "
			       "make the next CQ large enough for all "
			       "completions",
			       got);
		return RPMA_E_PROVIDER;
	}
	RPMA_LOG_ERROR("ibv_poll_cq() returned %d entries where %d fit", got,
		       num_entries);
	return RPMA_E_UNKNOWN;
}

static __attribute__((noinline)) int cq_poll_some(struct rpma_cq *cq,
						  int num_entries,
						  struct ibv_wc *wc,
						  int *num_entries_got)
{
	int got;

	if (rpma__claim_is_held(&cq->claim))
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the CQ is claimed: only the owner of the "
				   "claim polls the CQ");

	got = ibv_poll_cq(cq->cq, num_entries, wc);
	if (got == 0) {
		RPMA_LOG_DEBUG("the CQ is empty");
		return RPMA_E_NO_COMPLETION;
	}
	/* negative, or too many */
	if ((unsigned)got > (unsigned)num_entries)
		return cq_poll_failed(got, num_entries);
	tsan_polled(cq->cq);
	*num_entries_got = got;
	return 0;
}

/*
 * Polls one completion, the usual case. A separate function, so that no
 * register is saved over the poll.
 */
static int cq_poll_one(struct rpma_cq *cq, struct ibv_wc *wc)
{
	int got;

	if (rpma__claim_is_held(&cq->claim))
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the CQ is claimed: only the owner of the "
				   "claim polls the CQ");

	got = ibv_poll_cq(cq->cq, 1, wc);
	if (got == 1) {
		tsan_polled(cq->cq);
		return 0;
	}
	if (got == 0) {
		RPMA_LOG_DEBUG("the CQ is empty");
		return RPMA_E_NO_COMPLETION;
	}
	return cq_poll_failed(got, 1);
}

int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc,
		   int *num_entries_got)
{
	if (wc == NULL || !rpma__cq_is_valid(cq) || num_entries < 1)
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq),
					"num_entries is below 1", wc, cq);
	if (num_entries_got)
		return cq_poll_some(cq, num_entries, wc, num_entries_got);
	if (num_entries > 1)
		return RPMA_REFUSE(
			RPMA_E_INVAL,
			"num_entries is above 1, and num_entries_got NULL");
	return cq_poll_one(cq, wc);
}

int rpma_cq_new(struct ibv_context *ibv_ctx, int cqe,
		struct rpma_channel *channel, int comp_vector, void *context,
		struct rpma_cq **cq_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma__cq_attr attr = {
		.ibv_ctx = ibv_ctx,
		.cqe = (uint32_t)cqe,
		.comp_vector = comp_vector,
		.channel = channel,
		.context = context,
		.standalone = true,
	};

	if (ibv_ctx == NULL || cq_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", ibv_ctx, cq_ptr);
	if (channel && !rpma__channel_is_valid(channel))
		return RPMA_E_FORKED;
	if (cqe < 1) {
		RPMA_LOG_ERROR("cqe: 1 or more, not %d", cqe);
		return RPMA_E_INVAL;
	}
	if (channel &&
	    rpma__device_check("the CQ", ibv_ctx, "the channel",
			       rpma__channel_get_ibv(channel)->context))
		return RPMA_E_INVAL;
	if (comp_vector < 0 || comp_vector >= ibv_ctx->num_comp_vectors) {
		RPMA_LOG_ERROR("comp_vector: 0 to %d, not %d",
			       ibv_ctx->num_comp_vectors - 1, comp_vector);
		return RPMA_E_INVAL;
	}
	return rpma__cq_new(&attr, cq_ptr);
}

int rpma_cq_delete(struct rpma_cq **cq_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_cq *cq;
	int ret;

	if (cq_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", cq_ptr);
	cq = *cq_ptr;
	if (cq == NULL)
		return 0;
	if (!cq->standalone)
		return RPMA_REFUSE(RPMA_E_INVAL,
				   "the CQ belongs to a connection or an SRQ, "
				   "which deletes it");
	if (!rpma__is_here(cq->forks)) {
		rpma__cq_abandon(cq_ptr);
		return RPMA_E_FORKED;
	}
	if (rpma__claim_is_held(&cq->claim))
		return RPMA_REFUSE(RPMA_E_CLAIMED,
				   "another owner has claimed the CQ: release "
				   "the claim first");
	if (cq_count_unacked(cq)) {
		RPMA_LOG_ERROR("%u events of the CQ are not acknowledged: "
			       "rpma_cq_ack() comes first",
			       cq_count_unacked(cq));
		return RPMA_E_AGAIN;
	}

	ret = cq_begin_delete(cq);
	if (ret == EBUSY) {
		rpma__cq_table_set_leaving(cq, false);
		return RPMA_E_AGAIN;
	}
	return cq_finish_delete(cq_ptr, ret);
}

int rpma_cq_arm(struct rpma_cq *cq, bool solicited_only)
{
	if (!rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", cq);
	return rpma__cq_arm(cq->cq, solicited_only);
}

int rpma_cq_ack(struct rpma_cq *cq, unsigned n)
{
	if (!rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", cq);

	cq_uncount_events(cq, n);
	ibv_ack_cq_events(cq->cq, n);
	return 0;
}

int rpma_cq_get_context(const struct rpma_cq *cq, void **context)
{
	if (context == NULL || !rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", context, cq);

	*context = cq->context;
	return 0;
}

int rpma_cq_get_ibv_cq(const struct rpma_cq *cq, struct ibv_cq **ibv_cq)
{
	if (ibv_cq == NULL || !rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", ibv_cq, cq);

	*ibv_cq = cq->cq;
	return 0;
}

int rpma_cq_from_ibv_cq(const struct ibv_cq *ibv_cq, struct rpma_cq **cq_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_cq *cq;

	if (ibv_cq == NULL || cq_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", ibv_cq, cq_ptr);
	cq = rpma__cq_table_find(ibv_cq);
	if (cq == NULL) {
		RPMA_LOG_ERROR("ibv_cq is not of this library");
		return RPMA_E_INVAL;
	}
	if (!rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", cq);

	*cq_ptr = cq;
	return 0;
}

int rpma_cq_claim(struct rpma_cq *cq, const void *owner)
{
	if (owner == NULL || !rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", owner, cq);
	return rpma__claim_take(&cq->claim, owner);
}

int rpma_cq_release(struct rpma_cq *cq, const void *owner)
{
	if (owner == NULL || !rpma__cq_is_valid(cq))
		return RPMA_REFUSE_NULL(rpma__cq_refusal(cq), "", owner, cq);
	return rpma__claim_drop(&cq->claim, owner);
}
