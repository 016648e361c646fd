/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Connection requests: outgoing (resolved before the call returns, or event by
 * event) and incoming. A request holds its future connection. One thread at a
 * time uses a request.
 */

#include "conn_req.h"

#include <errno.h>
#include <stdlib.h>

#include "cancel.h"
#include "channel.h"
#include "conn.h"
#include "cm_channel.h"
#include "cq.h"
#include "err.h"
#include "info.h"
#include "log.h"
#include "peer.h"
#include "srq.h"

static const struct rpma__refusal no_words;

/*
 * Returns the refusal to send: deleting a passive request refuses the other
 * side.
 */
static const struct rpma__refusal *
conn_req_refusal_of(const struct rpma_conn_req *req)
{
	return req->is_passive && req->state != RPMA__FAILED ? &no_words : NULL;
}

static int conn_req_delete(struct rpma_conn_req **req_ptr,
			   const struct rpma__refusal *refusal)
{
	struct rpma_conn_req *req = *req_ptr;
	int ret = rpma__conn_delete(&req->conn, refusal);

	free(req);
	*req_ptr = NULL;
	return ret;
}

/*
 * Deletes a request after a failure; keeps errno, which has the reason of the
 * failure.
 */
static void conn_req_give_up(struct rpma_conn_req **req_ptr,
			     const struct rpma__refusal *refusal)
{
	int err = errno;

	(void)conn_req_delete(req_ptr, refusal);
	errno = err;
}

/* Frees the memory of a request made by another process before a fork. */
static int conn_req_abandon(struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req = *req_ptr;

	rpma__conn_abandon(&req->conn);
	free(req);
	*req_ptr = NULL;
	return RPMA_E_FORKED;
}

/* Returns true if the objects for a new request were made in this process. */
static bool conn_req_can_be_here(const struct rpma_peer *peer,
				 const struct rpma__conn_cfg *cfg)
{
	return rpma__peer_is_valid(peer) &&
	       (cfg->cm_channel == NULL ||
		rpma__cm_channel_is_valid(cfg->cm_channel)) &&
	       (cfg->srq == NULL || rpma__srq_is_valid(cfg->srq)) &&
	       (cfg->cq == NULL || rpma__cq_is_valid(cfg->cq)) &&
	       (cfg->rcq == NULL || rpma__cq_is_valid(cfg->rcq)) &&
	       (cfg->channel == NULL || rpma__channel_is_valid(cfg->channel));
}

static int conn_req_set_option(struct rdma_cm_id *id, int name, uint8_t value)
{
	if (rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value))) {
		RPMA_LOG_ERROR("rdma_set_option(%d) failed: %s", name,
			       rpma__errno_2str(-1));
		return RPMA_E_PROVIDER;
	}
	return 0;
}

static int conn_req_set_options(struct rdma_cm_id *id,
				const struct rpma__conn_cfg *cfg)
{
	int ret = 0;

	if (cfg->tos != RPMA_TOS_UNSET)
		ret = conn_req_set_option(id, RDMA_OPTION_ID_TOS,
					  (uint8_t)cfg->tos);
	if (ret == 0 && cfg->ack_timeout != RPMA_ACK_TIMEOUT_UNSET)
		ret = conn_req_set_option(id, RDMA_OPTION_ID_ACK_TIMEOUT,
					  cfg->ack_timeout);
	return ret;
}

/*
 * Makes the request around an id; on failure the id still belongs to the
 * caller.
 */
static int conn_req_new(struct rpma_peer *peer, struct rdma_cm_id *id,
			const struct rpma__conn_cfg *cfg,
			struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req = calloc(1, sizeof(*req));
	int ret;

	if (req == NULL)
		return RPMA_REFUSE_NOMEM("a connection request");
	ret = rpma__conn_new(peer, id, cfg->cm_channel, &req->conn);
	if (ret) {
		free(req);
		return ret;
	}
	req->cfg = *cfg;
	*req_ptr = req;
	return 0;
}

/* Undoes conn_req_new(). */
static void conn_req_forget(struct rpma_conn_req *req)
{
	rpma__conn_forget(&req->conn);
	free(req);
}

static int conn_req_make(struct rpma_conn_req *req)
{
	int ret = rpma__conn_make(req->conn, &req->cfg);

	req->state = ret ? RPMA__FAILED : RPMA__READY;
	return ret;
}

static int conn_req_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	if (rdma_resolve_route(id, timeout_ms)) {
		RPMA_LOG_CALL("rdma_resolve_route", -1);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

/*
 * Binds the id to the source address, so that the NIC with the address is used
 * where routes would choose another NIC.
 */
static int conn_req_bind_source(struct rdma_cm_id *id,
				const struct rpma__conn_cfg *cfg)
{
	struct rdma_addrinfo *info;
	int ret;

	if (cfg->src_addr == NULL)
		return 0;
	ret = rpma__info_get(cfg->src_addr, NULL, RPMA__INFO_PASSIVE, &info);
	if (ret)
		return ret;
	ret = rpma__info_bind_addr(info, id);
	rpma__info_free(info);
	return ret;
}

static int conn_req_resolve(struct rdma_cm_id *id,
			    const struct rdma_addrinfo *info,
			    const struct rpma__conn_cfg *cfg)
{
	int ret = conn_req_set_options(id, cfg);

	if (ret == 0)
		ret = conn_req_bind_source(id, cfg);
	if (ret == 0)
		ret = rpma__info_resolve_addr(info, id, cfg->timeout);
	if (ret == 0)
		ret = conn_req_resolve_route(id, cfg->timeout);
	return ret;
}

/* Makes a request whose id is resolved, with CQs and QP. */
static int conn_req_new_made(struct rpma_peer *peer, struct rdma_cm_id *id,
			     const struct rpma__conn_cfg *cfg,
			     struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req;
	int ret = conn_req_new(peer, id, cfg, &req);

	if (ret)
		return ret;
	ret = conn_req_make(req);
	if (ret)
		conn_req_forget(req);
	else
		*req_ptr = req;
	return ret;
}

static int conn_req_create_id(struct rpma_cm_channel *cm_channel, void *context,
			      struct rdma_cm_id **id_ptr)
{
	struct rdma_event_channel *evch = NULL;

	if (cm_channel)
		evch = rpma__cm_channel_get_rdma(cm_channel);
	if (rdma_create_id(evch, id_ptr, context, RDMA_PS_TCP)) {
		RPMA_LOG_CM_CALL("rdma_create_id");
		return RPMA_E_PROVIDER;
	}
	return 0;
}

/*
 * Undoes conn_req_create_id(); keeps errno, which has the reason of the
 * failure.
 */
static void conn_req_destroy_id(struct rdma_cm_id *id)
{
	int err = errno;

	(void)rdma_destroy_id(id);
	errno = err;
}

int rpma_conn_req_new(struct rpma_peer *peer, const char *addr,
		      const char *port, const struct rpma_conn_cfg *cfg,
		      struct rpma_conn_req **req_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma__conn_cfg values;
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;
	int ret;

	if (peer == NULL || addr == NULL || port == NULL || req_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", peer, addr, port,
					req_ptr);

	rpma__conn_cfg_read(cfg, &values);
	if (!conn_req_can_be_here(peer, &values))
		return RPMA_E_FORKED;
	ret = rpma__info_get(addr, port, RPMA__INFO_ACTIVE, &info);
	if (ret)
		return ret;
	/* no channel: each call on the id returns when the call is done */
	ret = conn_req_create_id(NULL, NULL, &id);
	if (ret)
		goto out_free_info;
	ret = conn_req_resolve(id, info, &values);
	if (ret == 0)
		ret = conn_req_new_made(peer, id, &values, req_ptr);
	if (ret)
		conn_req_destroy_id(id);
	else
		RPMA_LOG_NOTICE("requesting a connection to %s:%s", addr, port);

out_free_info:
	rpma__info_free(info);
	return ret;
}

static int conn_req_start_async(struct rpma_peer *peer,
				const struct rdma_addrinfo *info,
				const struct rpma__conn_cfg *cfg, void *context,
				struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req = NULL;
	struct rdma_cm_id *id;
	int ret;

	ret = conn_req_create_id(cfg->cm_channel, context, &id);
	if (ret)
		return ret;
	ret = conn_req_set_options(id, cfg);
	if (ret == 0)
		ret = conn_req_bind_source(id, cfg);
	if (ret == 0)
		ret = conn_req_new(peer, id, cfg, &req);
	if (ret) {
		conn_req_destroy_id(id);
		return ret;
	}

	/* before another thread can read the first event */
	*req_ptr = req;
	ret = rpma__info_resolve_addr(info, id, cfg->timeout);
	if (ret)
		conn_req_give_up(req_ptr, NULL);
	return ret;
}

int rpma_conn_req_new_async(struct rpma_peer *peer, const char *addr,
			    const char *port, const struct rpma_conn_cfg *cfg,
			    void *context, struct rpma_conn_req **req_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma__conn_cfg values;
	struct rdma_addrinfo *info;
	int ret;

	if (peer == NULL || addr == NULL || port == NULL || cfg == NULL ||
	    req_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", peer, addr, port, cfg,
					req_ptr);
	rpma__conn_cfg_read(cfg, &values);
	if (!conn_req_can_be_here(peer, &values))
		return RPMA_E_FORKED;
	if (values.cm_channel == NULL) {
		RPMA_LOG_ERROR("the configuration has no CM channel");
		return RPMA_E_INVAL;
	}

	ret = rpma__info_get(addr, port, RPMA__INFO_ACTIVE, &info);
	if (ret)
		return ret;
	ret = conn_req_start_async(peer, info, &values, context, req_ptr);
	if (ret == 0)
		RPMA_LOG_NOTICE("requesting a connection to %s:%s", addr, port);
	rpma__info_free(info);
	return ret;
}

static int conn_req_fail(struct rpma_conn_req *req, int ret)
{
	req->state = RPMA__FAILED;
	return ret;
}

/* Returns the name of the call that an event reports on. */
static const char *conn_req_step_of(const struct rpma_conn_req *req)
{
	switch (req->state) {
	case RPMA__RESOLVING_ADDR:
		return "rdma_resolve_addr";
	case RPMA__RESOLVING_ROUTE:
		return "rdma_resolve_route";
	default:
		return "rpma_conn_req_advance";
	}
}

int rpma_conn_req_advance(struct rpma_conn_req *req,
			  const struct rpma_cm_event *event)
{
	RPMA_NOT_CANCELLED;
	int ret;

	if (!rpma__cm_event_is_valid(event) || !rpma__conn_req_is_valid(req) ||
	    event->id != req->conn->id)
		return RPMA_REFUSE_NULL(
			rpma__conn_req_refusal(req),
			"the event is of another request or connection", event,
			req);

	if (req->state == RPMA__RESOLVING_ADDR &&
	    event->type == RDMA_CM_EVENT_ADDR_RESOLVED) {
		ret = conn_req_resolve_route(req->conn->id, req->cfg.timeout);
		if (ret)
			return conn_req_fail(req, ret);
		req->state = RPMA__RESOLVING_ROUTE;
		return RPMA_E_AGAIN;
	}
	if (req->state == RPMA__RESOLVING_ROUTE &&
	    event->type == RDMA_CM_EVENT_ROUTE_RESOLVED)
		return conn_req_make(req);

	RPMA_LOG_ERROR("%s() failed: %s, status %d", conn_req_step_of(req),
		       rdma_event_str(event->type), event->status);
	return conn_req_fail(req, RPMA_E_PROVIDER);
}

int rpma__conn_req_from_request(struct rpma_peer *peer,
				const struct rpma__request *request,
				const struct rpma_conn_cfg *cfg,
				struct rpma_conn_req **req_ptr)
{
	struct rpma__conn_cfg values;
	struct rpma_conn_req *req;
	int ret;

	rpma__conn_cfg_read(cfg, &values);
	if (!conn_req_can_be_here(peer, &values))
		return RPMA_E_FORKED;
	rpma__cm_set_context(request->id, request->context);
	ret = conn_req_set_options(request->id, &values);
	if (ret)
		return ret;
	ret = conn_req_new(peer, request->id, &values, &req);
	if (ret)
		return ret;
	ret = rpma__private_data_set(&req->conn->data, request->data,
				     request->data_len);
	if (ret == 0)
		ret = conn_req_make(req);
	if (ret == 0)
		ret = rpma__conn_move_events(req->conn);
	if (ret) {
		rpma__conn_unmake(req->conn);
		conn_req_forget(req);
		return ret;
	}
	req->is_passive = true;
	*req_ptr = req;
	return 0;
}

void rpma__conn_req_refuse_id(struct rdma_cm_id *id)
{
	int err = errno; /* keeps the reason of the refusal */

	(void)rdma_reject(id, NULL, 0);
	(void)rdma_destroy_id(id);
	errno = err;
}

int rpma_conn_req_new_from_event(struct rpma_peer *peer,
				 const struct rpma_cm_event *event,
				 const struct rpma_conn_cfg *cfg, void *context,
				 struct rpma_conn_req **req_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma__request request;
	int ret;

	if (peer == NULL || req_ptr == NULL ||
	    !rpma__cm_event_is_request(event))
		return RPMA_REFUSE_NULL(
			rpma__peer_refusal(peer),
			"event is NULL or no connection request", peer,
			req_ptr);

	request = (struct rpma__request){
		.id = event->id,
		.context = context,
		.data = event->private_data,
		.data_len = event->private_data_len,
	};
	ret = rpma__conn_req_from_request(peer, &request, cfg, req_ptr);
	/* E_FORKED: the id is the parent's, too, who answers the request */
	if (ret && ret != RPMA_E_FORKED)
		rpma__conn_req_refuse_id(event->id);
	return ret;
}

static int conn_req_refuse_claimed(void)
{
	return RPMA_REFUSE(RPMA_E_CLAIMED,
			   "another owner has claimed the request, or a CQ of "
			   "the request: release the claim first");
}

int rpma_conn_req_delete(struct rpma_conn_req **req_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_conn_req *req;

	if (req_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", req_ptr);
	req = *req_ptr;
	if (req == NULL)
		return 0;
	if (!rpma__conn_req_is_valid(req))
		return conn_req_abandon(req_ptr);
	if (rpma__conn_is_claimed(req->conn))
		return conn_req_refuse_claimed();
	return conn_req_delete(req_ptr, conn_req_refusal_of(req));
}

int rpma_conn_req_reject(struct rpma_conn_req **req_ptr,
			 const struct rpma_conn_private_data *pdata)
{
	RPMA_NOT_CANCELLED;
	struct rpma__refusal refusal = {0};
	struct rpma_conn_req *req;

	if (req_ptr == NULL || *req_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "*req_ptr is NULL",
					req_ptr);
	req = *req_ptr;
	if (!rpma__conn_req_is_valid(req))
		return conn_req_abandon(req_ptr);
	if (!req->is_passive || !rpma__private_data_is_valid(pdata))
		return RPMA_REFUSE(RPMA_E_INVAL,
				   "req is an outgoing request: only incoming "
				   "requests can be rejected; or pdata has ptr "
				   "NULL or len 0");
	if (rpma__conn_is_claimed(req->conn))
		return conn_req_refuse_claimed();

	if (pdata)
		refusal = (struct rpma__refusal){pdata->ptr, pdata->len};
	return conn_req_delete(req_ptr,
			       conn_req_refusal_of(req) ? &refusal : NULL);
}

static int conn_req_accept_peer(struct rpma_conn *conn,
				struct rdma_conn_param *param)
{
	if (rdma_accept(conn->id, param)) {
		RPMA_LOG_CALL("rdma_accept", -1);
		return RPMA_E_PROVIDER;
	}
	/* the active side sets the timer at ESTABLISHED */
	rpma__conn_apply_rnr_timer(conn);
	return 0;
}

static int conn_req_connect_peer(struct rpma_conn *conn,
				 struct rdma_conn_param *param)
{
	if (rdma_connect(conn->id, param)) {
		RPMA_LOG_CALL("rdma_connect", -1);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

/*
 * Opens the connection, then connects or accepts. Opening comes first on both
 * sides: an event of the id has to find the channel where the event is read.
 */
static int conn_req_open_and_connect(struct rpma_conn_req *req,
				     const struct rpma_conn_private_data *pdata)
{
	const struct rpma__conn_cfg *cfg = &req->cfg;
	struct rdma_conn_param param = {
		.private_data = pdata ? pdata->ptr : NULL,
		.private_data_len = pdata ? pdata->len : 0,
		.responder_resources = cfg->responder_resources,
		.initiator_depth = cfg->initiator_depth,
		.flow_control = 1,
		.retry_count = cfg->retry_count,
		.rnr_retry_count = cfg->rnr_retry_count,
	};
	int ret = rpma__conn_open(req->conn);

	if (ret)
		return ret;
	return req->is_passive ? conn_req_accept_peer(req->conn, &param)
			       : conn_req_connect_peer(req->conn, &param);
}

int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata,
			  struct rpma_conn **conn_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_conn_req *req;
	int ret = RPMA_E_INVAL;

	if (req_ptr == NULL || *req_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "*req_ptr is NULL",
					req_ptr);
	req = *req_ptr;
	if (!rpma__conn_req_is_valid(req))
		return conn_req_abandon(req_ptr);
	if (rpma__conn_req_is_resolving(req))
		return RPMA_E_AGAIN;
	/* a failure would destroy the CQ under its owner; the claim of the
	 * request itself passes on with the request */
	if (rpma__conn_has_claimed_cq(req->conn))
		return conn_req_refuse_claimed();

	if (conn_ptr && rpma__private_data_is_valid(pdata) &&
	    req->state == RPMA__READY && req->conn->id->qp)
		ret = conn_req_open_and_connect(req, pdata);
	else
		(void)RPMA_REFUSE_NULL(RPMA_E_INVAL,
				       "pdata has ptr NULL or len 0, or the "
				       "request has no queue pair",
				       conn_ptr);
	if (ret) {
		conn_req_give_up(req_ptr, conn_req_refusal_of(req));
		return ret;
	}

	*conn_ptr = req->conn;
	free(req);
	*req_ptr = NULL;
	return 0;
}
