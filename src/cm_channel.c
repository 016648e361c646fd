/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * CM event channels that endpoints and connections share, and copies of their
 * events. Any thread may read events; any thread may acknowledge an event.
 */

#include "cm_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cancel.h"
#include "err.h"
#include "fork.h"
#include "log.h"
#include "private_data.h"

struct rpma_cm_channel {
	struct rdma_event_channel *evch; /* immutable after new */
	atomic_uint ids;
	unsigned forks; /* immutable */
};

void rpma__cm_channel_get(struct rpma_cm_channel *channel)
{
	/* relaxed: the caller that adds an id holds the channel already */
	if (channel)
		(void)atomic_fetch_add_explicit(&channel->ids, 1,
						memory_order_relaxed);
}

void rpma__cm_channel_put(struct rpma_cm_channel *channel)
{
	/* release: the id is gone; pairs with the acquire in delete */
	if (channel)
		(void)atomic_fetch_sub_explicit(&channel->ids, 1,
						memory_order_release);
}

bool rpma__cm_channel_is_valid(const struct rpma_cm_channel *channel)
{
	return channel && rpma__is_here(channel->forks);
}

/* Returns the error of a call that has refused its arguments. */
static int cm_channel_refusal(const struct rpma_cm_channel *channel)
{
	return rpma__fork_refusal(channel ? &channel->forks : NULL);
}

struct rdma_event_channel *
rpma__cm_channel_get_rdma(const struct rpma_cm_channel *channel)
{
	return channel->evch;
}

int rpma__cm_get_event(struct rdma_event_channel *evch, int before,
		       struct rdma_cm_event **event_ptr)
{
	bool waits = !(fcntl(evch->fd, F_GETFL) & O_NONBLOCK);
	int ret;

	if (waits)
		rpma__cancel_restore(&before);
	ret = rdma_get_cm_event(evch, event_ptr);
	if (waits)
		(void)rpma__cancel_disable();
	if (ret == 0)
		return 0;

	switch (errno) {
	case EAGAIN:
	case ENODATA:
		return RPMA_E_NO_EVENT;
	case EINTR:
		return RPMA_E_AGAIN;
	default:
		RPMA_LOG_CALL("rdma_get_cm_event", -1);
		return RPMA_E_PROVIDER;
	}
}

int rpma_cm_channel_new(struct rpma_cm_channel **channel_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_cm_channel *channel;
	int ret;

	if (channel_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", channel_ptr);

	channel = malloc(sizeof(*channel));
	if (channel == NULL)
		return RPMA_REFUSE_NOMEM("a CM channel");
	channel->evch = rdma_create_event_channel();
	if (channel->evch == NULL) {
		RPMA_LOG_CM_CALL("rdma_create_event_channel");
		ret = RPMA_E_PROVIDER;
		goto err_free;
	}
	atomic_init(&channel->ids, 0);
	channel->forks = rpma__forks_now();
	*channel_ptr = channel;
	return 0;

err_free:
	free(channel);
	return ret;
}

int rpma_cm_channel_delete(struct rpma_cm_channel **channel_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_cm_channel *channel;

	if (channel_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", channel_ptr);
	channel = *channel_ptr;
	if (channel == NULL)
		return 0;
	if (!rpma__is_here(channel->forks)) {
		free(channel);
		*channel_ptr = NULL;
		return RPMA_E_FORKED;
	}
	/* acquire: pairs with the release in rpma__cm_channel_put */
	if (atomic_load_explicit(&channel->ids, memory_order_acquire))
		return RPMA_E_AGAIN;

	rdma_destroy_event_channel(channel->evch);
	free(channel);
	*channel_ptr = NULL;
	return 0;
}

int rpma_cm_channel_get_fd(const struct rpma_cm_channel *channel, int *fd)
{
	if (fd == NULL || !rpma__cm_channel_is_valid(channel))
		return RPMA_REFUSE_NULL(cm_channel_refusal(channel), "", fd,
					channel);

	*fd = channel->evch->fd;
	return 0;
}

/* Returns true for the events that carry connection parameters. */
static bool cm_event_has_conn_param(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_REJECTED:
		return true;
	default:
		return false;
	}
}

static void cm_event_copy_conn_param(struct rpma_cm_event *event,
				     const struct rdma_conn_param *param)
{
	event->responder_resources = param->responder_resources;
	event->initiator_depth = param->initiator_depth;
	if (param->private_data == NULL)
		return;
	event->private_data_len = param->private_data_len;
	memcpy(event->private_data, param->private_data,
	       param->private_data_len);
}

static void cm_event_copy(struct rpma_cm_event *event,
			  struct rdma_cm_event *raw)
{
	const struct rdma_cm_id *owner = raw->id;

	/* the new id has no context yet: the context of its listener is
	 * known */
	if (raw->event == RDMA_CM_EVENT_CONNECT_REQUEST && raw->listen_id)
		owner = raw->listen_id;

	*event = (struct rpma_cm_event){
		.type = raw->event,
		.status = raw->status,
		.context = owner ? rpma__cm_context_of(owner) : NULL,
		.id = raw->id,
		.raw = raw,
	};
	if (cm_event_has_conn_param(raw->event))
		cm_event_copy_conn_param(event, &raw->param.conn);
}

int rpma_cm_channel_get_event(struct rpma_cm_channel *channel,
			      struct rpma_cm_event *event)
{
	RPMA_NOT_CANCELLED;
	struct rdma_cm_event *raw;
	int ret;

	if (event == NULL || !rpma__cm_channel_is_valid(channel))
		return RPMA_REFUSE_NULL(cm_channel_refusal(channel), "", event,
					channel);

	ret = rpma__cm_get_event(channel->evch, RPMA_CANCEL_BEFORE, &raw);
	if (ret == 0)
		cm_event_copy(event, raw);
	return ret;
}

bool rpma__cm_event_is_valid(const struct rpma_cm_event *event)
{
	static const uint8_t zero[sizeof(event->reserved)];

	if (event == NULL)
		return false;
	if (memcmp(event->reserved, zero, sizeof(zero)) == 0)
		return true;
	RPMA_LOG_ERROR("reserved bytes of a CM event are not 0");
	return false;
}

int rpma_cm_event_ack(struct rpma_cm_event *event)
{
	struct rdma_cm_event *raw;

	if (event == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", event);
	raw = event->raw;
	if (raw == NULL)
		return 0;

	event->raw = NULL;
	if (rdma_ack_cm_event(raw)) {
		RPMA_LOG_CALL("rdma_ack_cm_event", -1);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

bool rpma__cm_event_is_request(const struct rpma_cm_event *event)
{
	return rpma__cm_event_is_valid(event) && event->id &&
	       event->type == RDMA_CM_EVENT_CONNECT_REQUEST;
}

/* Returns whether a refusal has failed, with the error, because the other side
 * has given up: without private data it fails, too. */
static bool cm_has_given_up(struct rdma_cm_id *id, uint8_t len, int err)
{
	if (err != EINVAL)
		return false;
	return len == 0 || (rdma_reject(id, NULL, 0) != 0 && errno == EINVAL);
}

int rpma__cm_refuse(struct rdma_cm_id *id, const void *ptr, uint8_t len)
{
	int err;

	if (!rdma_reject(id, ptr, len))
		return 0;
	err = errno;
	if (cm_has_given_up(id, len, err)) {
		RPMA_LOG_INFO("no refusal: the peer has given up");
		return 0;
	}
	errno = err;
	RPMA_LOG_CALL("rdma_reject", -1);
	return RPMA_E_PROVIDER;
}

int rpma_cm_event_reject(struct rpma_cm_event *event,
			 const struct rpma_conn_private_data *pdata)
{
	RPMA_NOT_CANCELLED;
	struct rdma_cm_id *id;
	int ret;

	if (!rpma__cm_event_is_request(event) ||
	    !rpma__private_data_is_valid(pdata))
		return RPMA_REFUSE(RPMA_E_INVAL,
				   "event is NULL or no connection request, "
				   "or pdata has ptr NULL or len 0");

	id = event->id;
	event->id = NULL;
	ret = rpma__cm_refuse(id, pdata ? pdata->ptr : NULL,
			      pdata ? pdata->len : 0);
	if (rdma_destroy_id(id)) {
		RPMA_LOG_CALL("rdma_destroy_id", -1);
		ret = RPMA_E_PROVIDER;
	}
	return ret;
}
