/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Endpoints: a listening id on a CM event channel that is private or shared.
 * Several threads may wait for requests of the same endpoint.
 */

#include "cancel.h"
#include "librpma.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "cm_channel.h"
#include "conn_req.h"
#include "err.h"
#include "info.h"
#include "log.h"
#include "peer.h"

/* Immutable after new. */
struct rpma_ep {
	struct rpma_peer *peer;
	struct rdma_cm_id *id;
	struct rdma_event_channel *evch;    /* private, or NULL */
	struct rpma_cm_channel *cm_channel; /* counts the endpoint, or NULL */
	unsigned forks;
};

/* Returns true if ep is not NULL and was made in this process. */
static bool ep_is_valid(const struct rpma_ep *ep)
{
	return ep && rpma__is_here(ep->forks);
}

/* Returns the error of a call that has refused its arguments. */
static int ep_refusal(const struct rpma_ep *ep)
{
	return rpma__fork_refusal(ep ? &ep->forks : NULL);
}

static int ep_init_channel(struct rpma_ep *ep,
			   struct rpma_cm_channel *cm_channel)
{
	if (cm_channel) {
		rpma__cm_channel_get(cm_channel);
		ep->cm_channel = cm_channel;
		return 0;
	}
	ep->evch = rdma_create_event_channel();
	if (ep->evch == NULL) {
		RPMA_LOG_CM_CALL("rdma_create_event_channel");
		return RPMA_E_PROVIDER;
	}
	return 0;
}

static void ep_fini_channel(struct rpma_ep *ep)
{
	if (ep->evch)
		rdma_destroy_event_channel(ep->evch);
	rpma__cm_channel_put(ep->cm_channel);
}

static int ep_create_id(struct rpma_ep *ep, void *context)
{
	struct rdma_event_channel *evch = ep->evch;

	if (ep->cm_channel)
		evch = rpma__cm_channel_get_rdma(ep->cm_channel);
	if (rdma_create_id(evch, &ep->id, context, RDMA_PS_TCP)) {
		RPMA_LOG_CM_CALL("rdma_create_id");
		return RPMA_E_PROVIDER;
	}
	return 0;
}

static int ep_listen_at(struct rpma_ep *ep, const char *addr, const char *port,
			int backlog)
{
	struct rdma_addrinfo *info;
	int ret;

	ret = rpma__info_get(addr, port, RPMA__INFO_PASSIVE, &info);
	if (ret)
		return ret;
	ret = rpma__info_bind_addr(info, ep->id);
	if (ret == 0 && rdma_listen(ep->id, backlog)) {
		RPMA_LOG_ADDR_CALL("rdma_listen");
		ret = RPMA_E_PROVIDER;
	}
	rpma__info_free(info);
	return ret;
}

int rpma_ep_listen_ex(struct rpma_peer *peer, const char *addr,
		      const char *port, int backlog,
		      struct rpma_cm_channel *cm_channel, void *context,
		      struct rpma_ep **ep_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_ep *ep;
	int err;
	int ret;

	if (peer == NULL || addr == NULL || port == NULL || ep_ptr == NULL ||
	    backlog < 0)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "backlog is negative",
					peer, addr, port, ep_ptr);
	if (!rpma__peer_is_valid(peer) ||
	    (cm_channel && !rpma__cm_channel_is_valid(cm_channel)))
		return RPMA_E_FORKED;

	ep = calloc(1, sizeof(*ep));
	if (ep == NULL)
		return RPMA_REFUSE_NOMEM("an endpoint");
	ep->peer = peer;
	ep->forks = rpma__forks_now();
	ret = ep_init_channel(ep, cm_channel);
	if (ret)
		goto err_free;
	ret = ep_create_id(ep, context);
	if (ret)
		goto err_fini_channel;
	ret = ep_listen_at(ep, addr, port, backlog);
	if (ret)
		goto err_destroy_id;

	RPMA_LOG_NOTICE("listening at %s:%s", addr, port);
	*ep_ptr = ep;
	return 0;

err_destroy_id:
	err = errno;
	(void)rdma_destroy_id(ep->id);
	errno = err;
err_fini_channel:
	err = errno;
	ep_fini_channel(ep);
	errno = err;
err_free:
	free(ep);
	return ret;
}

int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
		   struct rpma_ep **ep_ptr)
{
	return rpma_ep_listen_ex(peer, addr, port, 0, NULL, NULL, ep_ptr);
}

static int ep_destroy(struct rpma_ep *ep)
{
	int ret = 0;

	if (rdma_destroy_id(ep->id)) {
		RPMA_LOG_CALL("rdma_destroy_id", -1);
		ret = RPMA_E_PROVIDER;
	}
	ep_fini_channel(ep);
	return ret;
}

int rpma_ep_shutdown(struct rpma_ep **ep_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_ep *ep;
	int ret;

	if (ep_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", ep_ptr);
	ep = *ep_ptr;
	if (ep == NULL)
		return 0;

	if (rpma__is_here(ep->forks))
		ret = ep_destroy(ep);
	else
		ret = RPMA_E_FORKED;
	free(ep);
	*ep_ptr = NULL;
	return ret;
}

int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd)
{
	if (fd == NULL || !ep_is_valid(ep))
		return RPMA_REFUSE_NULL(ep_refusal(ep), "", fd, ep);
	if (ep->cm_channel)
		return RPMA_REFUSE(
			RPMA_E_SHARED_CHANNEL,
			"the endpoint has a shared CM channel: "
			"rpma_conn_req_new_from_event() takes the requests "
			"that the reader of the channel gets");

	*fd = ep->evch->fd;
	return 0;
}

int rpma_ep_get_port(const struct rpma_ep *ep, uint16_t *port)
{
	if (port == NULL || !ep_is_valid(ep))
		return RPMA_REFUSE_NULL(ep_refusal(ep), "", port, ep);

	*port = ntohs(rdma_get_src_port(ep->id));
	return 0;
}

/*
 * Turns the event into a request, and acknowledges the event in any case. If an
 * event cannot be acknowledged, the shutdown of the endpoint would wait for
 * ever, so the call fails and the other side is refused.
 */
static int ep_take_request(struct rpma_ep *ep, struct rdma_cm_event *event,
			   const struct rpma_conn_cfg *cfg,
			   struct rpma_conn_req **req_ptr)
{
	const struct rpma__request request = {
		.id = event->id,
		.context = rpma__cm_context_of(event->id),
		.data = event->param.conn.private_data,
		.data_len = event->param.conn.private_data_len,
	};
	struct rpma_conn_req *req;
	bool is_acked;
	int err;
	int ret;

	ret = rpma__conn_req_from_request(ep->peer, &request, cfg, &req);
	err = errno;
	is_acked = rdma_ack_cm_event(event) == 0;
	if (!is_acked)
		RPMA_LOG_CALL("rdma_ack_cm_event", -1);
	if (ret) {
		rpma__conn_req_refuse_id(request.id);
		errno = err;
		return ret;
	}
	if (!is_acked) {
		err = errno;
		(void)rpma_conn_req_delete(&req);
		errno = err;
		return RPMA_E_PROVIDER;
	}
	*req_ptr = req;
	return 0;
}

int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			  struct rpma_conn_req **req_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rdma_cm_event *event;
	int ret;

	if (req_ptr == NULL || !ep_is_valid(ep))
		return RPMA_REFUSE_NULL(ep_refusal(ep), "", req_ptr, ep);
	if (ep->cm_channel)
		return RPMA_REFUSE(
			RPMA_E_SHARED_CHANNEL,
			"the endpoint has a shared CM channel: "
			"rpma_conn_req_new_from_event() takes the requests "
			"that the reader of the channel gets");

	ret = rpma__cm_get_event(ep->evch, RPMA_CANCEL_BEFORE, &event);
	if (ret)
		return ret;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		RPMA_LOG_ERROR("unexpected CM event: %s",
			       rdma_event_str(event->event));
		(void)rdma_ack_cm_event(event);
		return RPMA_E_INVAL;
	}
	return ep_take_request(ep, event, cfg, req_ptr);
}
