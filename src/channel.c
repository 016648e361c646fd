/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Completion channels. The table of CQs knows the CQ of an event. */

#include "channel.h"

#include <errno.h>
#include <stdlib.h>

#include "cancel.h"
#include "cq_table.h"
#include "err.h"
#include "fork.h"
#include "log.h"

/* Immutable after new. */
struct rpma_channel {
	struct ibv_comp_channel *channel;
	unsigned forks;
};

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

/*
 * Acknowledges the event, and finds its CQ. The CQ is pinned before the
 * acknowledgement: from then on the CQ may be destroyed.
 */
static int channel_take_event(struct ibv_cq *ibv_cq, struct rpma_cq **cq_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_cq *cq = rpma__cq_table_pin(ibv_cq);

	ibv_ack_cq_events(ibv_cq, 1);
	cq = rpma__cq_table_unpin(cq);
	if (cq == NULL) {
		RPMA_LOG_ERROR("ibv_get_cq_event() returned an event of a CQ "
			       "of another library, or of a CQ that another "
			       "thread has deleted meanwhile");
		return RPMA_E_UNKNOWN;
	}
	*cq_ptr = cq;
	return 0;
}

int rpma_channel_wait(struct rpma_channel *channel, struct rpma_cq **cq_ptr)
{
	struct ibv_cq *ibv_cq;
	void *context;

	if (cq_ptr == NULL || !rpma__channel_is_valid(channel))
		return RPMA_REFUSE_NULL(channel_refusal(channel), "", cq_ptr,
					channel);

	errno = 0;
	if (ibv_get_cq_event(channel->channel, &ibv_cq, &context))
		return channel_wait_error();

	return channel_take_event(ibv_cq, cq_ptr);
}
