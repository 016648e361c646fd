/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.c -- the calls that make and end connections: what librdmacm does
 * in the calling thread before and after it hands over to the kernel, whose
 * part is link.c. Any thread.
 */

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "cm/cm.h"
#include "cm/dev.h"
#include "cm/event.h"
#include "cm/link.h"
#include "cm/port.h"
#include "cm/qp.h"
#include "cm/read.h"
#include "cm/resolve.h"
#include "cm/table.h"

/* ---- parameters --------------------------------------------------------- */

static uint8_t limited(uint8_t asked, uint8_t limit)
{
	return asked == RDMA_MAX_RESP_RES || asked > limit ? limit : asked;
}

/* What a device cannot do is refused, "as much as possible" is not. */
static bool is_valid(const struct lb_cm_id *id,
		     const struct rdma_conn_param *param,
		     const struct lb_cm_dev *dev)
{
	if (lb_cm_id_is_ud(id))
		return true;
	if (!param)
		return id->id.qp != NULL;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > dev->responder_resources)
		return false;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > dev->initiator_depth)
		return false;
	return true;
}

/*
 * The PSN is as old as the identifier: the program may move a queue pair to RTS
 * before it accepts.
 */
static void params_from(struct lb_cm_params *params, const struct lb_cm_id *id,
			const struct rdma_conn_param *param)
{
	const struct ibv_qp *qp = id->id.qp;

	params->retry_count = 7;
	params->rnr_retry_count = 7;
	if (param) {
		params->qp_num = param->qp_num;
		params->srq = param->srq;
		params->flow_control = param->flow_control;
		params->retry_count = param->retry_count & 7;
		params->rnr_retry_count = param->rnr_retry_count & 7;
	}
	if (qp) {
		params->qp_num = qp->qp_num;
		params->srq = qp->srq != NULL;
	}
	params->psn = id->mine.psn;
}

/* false: more than fits */
static bool set_private_data(struct lb_cm_msg *msg, const struct lb_cm_id *id,
			     const struct rdma_conn_param *param, size_t max)
{
	size_t prefix = msg->type == LB_CM_MSG_REQ ? id->connect_len : 0;
	size_t len = 0;

	if (param && param->private_data)
		len = param->private_data_len;
	if (prefix + len > max)
		return false;
	if (prefix)
		memcpy(msg->priv, id->connect_data, prefix);
	if (len)
		memcpy(msg->priv + prefix, param->private_data, len);
	return true;
}

/* The device of an identifier; NULL if it has none. */
static const struct lb_cm_dev *dev_of(struct lb_cm_id *id)
{
	int index;

	lb_cm_lock();
	index = id->dev;
	lb_cm_unlock();
	return lb_cm_dev(index);
}

/* ---- connect ------------------------------------------------------------ */

/* [lock] 0 or an errno */
static int connect_id(struct lb_cm_id *id, struct lb_cm_msg *req)
{
	if (id->state != LB_CM_ROUTE_RESOLVED)
		return lb_cm_id_state_errno(id);
	req->ps = id->ps;
	req->qp_type = id->id.qp_type;
	req->src = id->src;
	req->dst = id->dst;
	req->dst_dev = id->dst_dev;
	req->dst_gid_index = id->dst_gid_index;
	req->params.gid = *lb_cm_dev_gid(id->dev, id->gid_index);
	id->mine = req->params;
	id->retry_count = req->params.retry_count;
	id->responder_resources = req->params.responder_resources;
	id->initiator_depth = req->params.initiator_depth;
	id->has_qp = id->id.qp != NULL;
	id->state = LB_CM_CONNECT;
	lb_cm_link_connect(id, req);
	return 0;
}

static int connect_with(struct lb_cm_id *id,
			const struct rdma_conn_param *param)
{
	const struct lb_cm_dev *dev = dev_of(id);
	struct lb_cm_msg req = {.type = LB_CM_MSG_REQ};
	int err;

	if (!dev || !is_valid(id, param, dev))
		return EINVAL;
	if (!set_private_data(&req, id, param,
			      lb_cm_id_is_ud(id) ? LB_CM_UD_REQ_PRIV
						 : LB_CM_REQ_PRIV))
		return EINVAL;
	params_from(&req.params, id, param);
	req.params.responder_resources =
		limited(param ? param->responder_resources : RDMA_MAX_RESP_RES,
			dev->responder_resources);
	req.params.initiator_depth =
		limited(param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH,
			dev->initiator_depth);
	lb_cm_lock();
	err = connect_id(id, &req);
	lb_cm_unlock();
	lb_cm_flush();
	return err;
}

LB_EXPORT int rdma_connect(struct rdma_cm_id *cm_id,
			   struct rdma_conn_param *conn_param)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_connect", cm_id);
	int err;

	if (!id)
		return -1;
	err = connect_with(id, conn_param);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_read_sync(id));
}

/* ---- listen ------------------------------------------------------------- */

/* [lock] 0 or an errno */
static int listen_id(struct lb_cm_id *id, int backlog)
{
	int err;

	if (id->state != LB_CM_BOUND)
		return lb_cm_id_state_errno(id);
	err = lb_cm_port_listen(id);
	if (err)
		return err;
	id->backlog = backlog > 0 && backlog < LB_CM_BACKLOG ? (unsigned)backlog
							     : LB_CM_BACKLOG;
	id->state = LB_CM_LISTEN;
	return 0;
}

LB_EXPORT int rdma_listen(struct rdma_cm_id *cm_id, int backlog)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_listen", cm_id);
	int err = 0;

	if (!id)
		return -1;
	if (lb_cm_id_is_idle(id))
		err = lb_cm_resolve_bind_any(id);
	if (!err) {
		lb_cm_lock();
		err = listen_id(id, backlog);
		lb_cm_unlock();
	}
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}

/* ---- accept, reject ----------------------------------------------------- */

/* [lock] What both can do of what is wanted. */
static void negotiate(struct lb_cm_id *id, const struct rdma_conn_param *param,
		      const struct lb_cm_dev *dev, struct lb_cm_params *ours)
{
	uint8_t depth = param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH;
	uint8_t res = param ? param->responder_resources : RDMA_MAX_RESP_RES;

	id->initiator_depth =
		depth == RDMA_MAX_INIT_DEPTH
			? limited(id->initiator_depth, dev->initiator_depth)
			: depth;
	id->responder_resources = res == RDMA_MAX_RESP_RES
					  ? limited(id->responder_resources,
						    dev->responder_resources)
					  : res;
	ours->initiator_depth = id->initiator_depth;
	ours->responder_resources = id->responder_resources;
	id->mine = *ours;
}

/* [lock] 0 or an errno */
static int reply(struct lb_cm_id *id, struct lb_cm_msg *rep)
{
	if (id->state != LB_CM_CONNECT)
		return lb_cm_id_state_errno(id);
	rep->params.gid = *lb_cm_dev_gid(id->dev, id->gid_index);
	return lb_cm_link_reply(id, rep);
}

/* Refuse what could not be accepted. Returns err. */
static int reject_with(struct lb_cm_id *id, int err)
{
	lb_cm_qp_to_err(id);
	lb_cm_lock();
	lb_cm_link_reject(id, LB_CM_REJ_CONSUMER, NULL, 0);
	lb_cm_unlock();
	lb_cm_flush();
	return err;
}

static int accept_with(struct lb_cm_id *id, const struct rdma_conn_param *param)
{
	const struct lb_cm_dev *dev = dev_of(id);
	struct lb_cm_msg rep = {.type = LB_CM_MSG_REP};
	int err;

	if (!dev || !is_valid(id, param, dev))
		return EINVAL;
	params_from(&rep.params, id, param);
	lb_cm_lock();
	negotiate(id, param, dev, &rep.params);
	lb_cm_unlock();
	if (lb_cm_qp_to_rtr(id, rep.params.responder_resources) ||
	    lb_cm_qp_to_rts(id, rep.params.initiator_depth))
		return errno;
	if (!set_private_data(&rep, id, param,
			      lb_cm_id_is_ud(id) ? LB_CM_UD_REP_PRIV
						 : LB_CM_REP_PRIV))
		return reject_with(id, EINVAL);
	lb_cm_lock();
	err = reply(id, &rep);
	lb_cm_unlock();
	lb_cm_flush();
	return err ? reject_with(id, err) : 0;
}

LB_EXPORT int rdma_accept(struct rdma_cm_id *cm_id,
			  struct rdma_conn_param *conn_param)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_accept", cm_id);
	int err;

	if (!id)
		return -1;
	err = accept_with(id, conn_param);
	if (!err && lb_cm_id_is_ud(id))
		return lb_cm_leave(cm_id, 0); /* no event follows */
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_read_sync(id));
}

static int reject(struct lb_cm_id *id, int reason, const void *data,
		  uint8_t len)
{
	int err;

	if (!data)
		len = 0;
	if (len > (lb_cm_id_is_ud(id) ? LB_CM_UD_REP_PRIV : LB_CM_REJ_PRIV))
		return EINVAL;
	lb_cm_lock();
	err = id->state == LB_CM_GONE
		      ? ENXIO
		      : lb_cm_link_reject(id, reason, data, len);
	lb_cm_unlock();
	lb_cm_flush();
	return err;
}

LB_EXPORT int rdma_reject(struct rdma_cm_id *cm_id, const void *private_data,
			  uint8_t private_data_len)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_reject", cm_id);
	int err;

	if (!id)
		return -1;
	err = reject(id, LB_CM_REJ_CONSUMER, private_data, private_data_len);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}

LB_EXPORT int rdma_reject_ece(struct rdma_cm_id *cm_id,
			      const void *private_data,
			      uint8_t private_data_len)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_reject_ece", cm_id);
	int err;

	if (!id)
		return -1;
	err = reject(id, LB_CM_REJ_VENDOR_OPTION, private_data,
		     private_data_len);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}

/* ---- the rest of a connection's life ------------------------------------ */

LB_EXPORT int rdma_establish(struct rdma_cm_id *cm_id)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_establish", cm_id);
	int err;

	if (!id)
		return -1;
	if (cm_id->qp)
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	lb_cm_lock();
	err = id->state == LB_CM_GONE ? ENXIO : lb_cm_link_ready(id);
	lb_cm_unlock();
	lb_cm_flush();
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}

/* [lock] 0 or an errno */
static int disconnect(struct lb_cm_id *id)
{
	if (id->state == LB_CM_GONE)
		return ENXIO;
	if (id->link == LB_CM_LINK_NONE)
		return EINVAL;
	lb_cm_link_disconnect(id);
	return 0;
}

LB_EXPORT int rdma_disconnect(struct rdma_cm_id *cm_id)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_disconnect", cm_id);
	int err;

	if (!id)
		return -1;
	if (!cm_id->verbs)
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	if (lb_cm_qp_to_err(id))
		return lb_cm_leave(cm_id, -1);
	lb_cm_lock();
	err = disconnect(id);
	lb_cm_unlock();
	lb_cm_flush();
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : lb_cm_read_sync(id));
}

LB_EXPORT int rdma_notify(struct rdma_cm_id *cm_id, enum ibv_event_type event)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_notify", cm_id);
	int err = EINVAL;

	if (!id)
		return -1;
	lb_cm_lock();
	if (event == IBV_EVENT_COMM_EST)
		err = lb_cm_link_established(id);
	lb_cm_unlock();
	lb_cm_flush();
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}
