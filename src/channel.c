/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Completion channels. A lock protects the list of CQs; no thread holds the
 * lock while the thread waits for an event or destroys a CQ.
 */

#include "channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cancel.h"
#include "cq.h"
#include "err.h"
#include "fork.h"
#include "log.h"

#define CQS_MIN 8

struct rpma_channel {
	struct ibv_comp_channel *channel; /* immutable after new */
	pthread_mutex_t lock;
	/* under the lock: sorted by the address of the ibv_cq */
	struct rpma_cq **cqs;
	size_t count;
	size_t capacity;
	unsigned forks; /* immutable */
};

/* Returns the first index whose CQ is not below ibv_cq. */
static size_t channel_lower_bound(const struct rpma_channel *channel,
				  const struct ibv_cq *ibv_cq)
{
	size_t from = 0;
	size_t to = channel->count;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if ((uintptr_t)channel->cqs[mid]->cq < (uintptr_t)ibv_cq)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static bool channel_has_at(const struct rpma_channel *channel, size_t at,
			   const struct ibv_cq *ibv_cq)
{
	return at < channel->count && channel->cqs[at]->cq == ibv_cq;
}

/*
 * Finds the CQ of an event. The ibv_cq of a leaving CQ may be destroyed
 * already, and its address may be reused for the ibv_cq of a new CQ. So several
 * CQs may have the same address; all but one of the CQs are leaving.
 */
static struct rpma_cq *channel_find_cq(struct rpma_channel *channel,
				       const struct ibv_cq *ibv_cq)
{
	struct rpma_cq *cq = NULL;
	size_t at;

	pthread_mutex_lock(&channel->lock);
	at = channel_lower_bound(channel, ibv_cq);
	while (channel_has_at(channel, at, ibv_cq) && channel->cqs[at]->leaving)
		at++;
	if (channel_has_at(channel, at, ibv_cq))
		cq = channel->cqs[at];
	pthread_mutex_unlock(&channel->lock);
	return cq;
}

static int channel_reserve_locked(struct rpma_channel *channel)
{
	size_t capacity = channel->capacity ? channel->capacity * 2 : CQS_MIN;
	struct rpma_cq **cqs;

	if (channel->count < channel->capacity)
		return 0;
	cqs = realloc(channel->cqs, capacity * sizeof(struct rpma_cq *));
	if (cqs == NULL)
		return RPMA_E_NOMEM;
	channel->cqs = cqs;
	channel->capacity = capacity;
	return 0;
}

int rpma__channel_add(struct rpma_channel *channel, struct rpma_cq *cq)
{
	size_t at;
	int ret;

	pthread_mutex_lock(&channel->lock);
	ret = channel_reserve_locked(channel);
	if (ret == 0) {
		at = channel_lower_bound(channel, cq->cq);
		memmove(&channel->cqs[at + 1], &channel->cqs[at],
			(channel->count - at) * sizeof(struct rpma_cq *));
		channel->cqs[at] = cq;
		channel->count++;
	}
	pthread_mutex_unlock(&channel->lock);
	return ret ? RPMA_REFUSE_NOMEM("another CQ of a channel") : 0;
}

void rpma__channel_set_leaving(struct rpma_channel *channel, struct rpma_cq *cq,
			       bool leaving)
{
	pthread_mutex_lock(&channel->lock);
	cq->leaving = leaving;
	pthread_mutex_unlock(&channel->lock);
}

void rpma__channel_remove(struct rpma_channel *channel, struct rpma_cq *cq)
{
	size_t at;

	pthread_mutex_lock(&channel->lock);
	at = channel_lower_bound(channel, cq->cq);
	while (channel->cqs[at] != cq)
		at++;
	channel->count--;
	memmove(&channel->cqs[at], &channel->cqs[at + 1],
		(channel->count - at) * sizeof(struct rpma_cq *));
	pthread_mutex_unlock(&channel->lock);
}

bool rpma__channel_is_valid(const struct rpma_channel *channel)
{
	return channel && rpma__is_here(channel->forks);
}

/* Returns the error of a call that has refused its arguments. */
static int channel_refusal(const struct rpma_channel *channel)
{
	return rpma__fork_refusal(channel ? &channel->forks : NULL);
}

struct ibv_comp_channel *
rpma__channel_get_ibv(const struct rpma_channel *channel)
{
	return channel->channel;
}

int rpma_channel_new(struct ibv_context *ibv_ctx,
		     struct rpma_channel **channel_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_channel *channel;
	int ret;

	if (ibv_ctx == NULL || channel_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", ibv_ctx, channel_ptr);

	channel = calloc(1, sizeof(*channel));
	if (channel == NULL)
		return RPMA_REFUSE_NOMEM("a completion channel");
	channel->channel = ibv_create_comp_channel(ibv_ctx);
	if (channel->channel == NULL) {
		RPMA_LOG_CALL("ibv_create_comp_channel", -1);
		ret = RPMA_E_PROVIDER;
		goto err_free;
	}
	pthread_mutex_init(&channel->lock, NULL);
	channel->forks = rpma__forks_now();
	*channel_ptr = channel;
	return 0;

err_free:
	free(channel);
	return ret;
}

/* Returns E_AGAIN if a CQ still uses the channel. */
static int channel_destroy(struct rpma_channel *channel)
{
	int ret = ibv_destroy_comp_channel(channel->channel);

	if (ret == EBUSY)
		return RPMA_E_AGAIN;
	pthread_mutex_destroy(&channel->lock);
	if (ret) {
		RPMA_LOG_CALL("ibv_destroy_comp_channel", ret);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma_channel_delete(struct rpma_channel **channel_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_channel *channel;
	int ret;

	if (channel_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", channel_ptr);
	channel = *channel_ptr;
	if (channel == NULL)
		return 0;

	if (rpma__is_here(channel->forks))
		ret = channel_destroy(channel);
	else
		ret = RPMA_E_FORKED;
	if (ret == RPMA_E_AGAIN)
		return ret;
	free(channel->cqs);
	free(channel);
	*channel_ptr = NULL;
	return ret;
}

int rpma_channel_get_fd(const struct rpma_channel *channel, int *fd)
{
	if (fd == NULL || !rpma__channel_is_valid(channel))
		return RPMA_REFUSE_NULL(channel_refusal(channel), "", fd,
					channel);

	*fd = channel->channel->fd;
	return 0;
}

int rpma_channel_get_ibv_channel(const struct rpma_channel *channel,
				 struct ibv_comp_channel **ibv_channel)
{
	if (ibv_channel == NULL || !rpma__channel_is_valid(channel))
		return RPMA_REFUSE_NULL(channel_refusal(channel), "",
					ibv_channel, channel);

	*ibv_channel = channel->channel;
	return 0;
}

static int channel_wait_error(void)
{
	switch (errno) {
	case EAGAIN:
		return RPMA_E_NO_COMPLETION;
	case EINTR:
		return RPMA_E_AGAIN;
	default:
		RPMA_LOG_CALL("ibv_get_cq_event", -1);
		return RPMA_E_PROVIDER;
	}
}

int rpma_channel_wait(struct rpma_channel *channel, struct rpma_cq **cq_ptr)
{
	struct ibv_cq *ibv_cq;
	struct rpma_cq *cq;
	void *context;

	if (cq_ptr == NULL || !rpma__channel_is_valid(channel))
		return RPMA_REFUSE_NULL(channel_refusal(channel), "", cq_ptr,
					channel);

	errno = 0;
	if (ibv_get_cq_event(channel->channel, &ibv_cq, &context))
		return channel_wait_error();

	/* looked up before the ack: until the ack the CQ cannot be destroyed */
	cq = channel_find_cq(channel, ibv_cq);
	ibv_ack_cq_events(ibv_cq, 1);
	if (cq == NULL) {
		RPMA_LOG_ERROR("ibv_get_cq_event() returned an event of a "
			       "CQ on another channel");
		return RPMA_E_UNKNOWN;
	}
	*cq_ptr = cq;
	return 0;
}
