/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * qp.c -- the QP and SRQ of an identifier: made with completion queues if the
 * caller gives no queues, and moved through the states as the connection comes
 * and goes. Runs in the thread of the caller or, for the answer to a request,
 * in the thread that reads the event; no lock is held around verbs.
 */

#include "cm/qp.h"

#include <errno.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/log.h"
#include "base/newer.h"
#include "cm/cm.h"
#include "cm/dev.h"
#include "cm/table.h"
#include "fault/fault.h"
#include "rpma_loopback.h"

#define DEFAULT_ACK_TIMEOUT 18
#define HOP_LIMIT	    64

/* ---- attributes --------------------------------------------------------- */

/* Returns the attributes of a datagram QP, in every state. */
static int attr_ud(struct ibv_qp_attr *attr)
{
	attr->pkey_index = 0;
	attr->port_num = LB_CM_PORT_NUM;
	attr->qkey = RDMA_UDP_QKEY;
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
}

/* Before there is a connection only INIT makes sense. */
static int attr_unconnected(struct ibv_qp_attr *attr)
{
	attr->qp_access_flags = 0;
	attr->pkey_index = 0;
	attr->port_num = LB_CM_PORT_NUM;
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS;
}

/* [lock] Fills in the rights of the peer, which depend on the negotiation. */
static int attr_init(const struct lb_cm_id *id, struct ibv_qp_attr *attr)
{
	int mask = attr_unconnected(attr);

	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ |
					 IBV_ACCESS_REMOTE_ATOMIC |
					 LB_ACCESS_FLUSH;
	return mask;
}

/*
 * Returns true for a reliable connection: as in the kernel, the port space of
 * TCP is reliable, whatever the QP. Both are fixed once the identifier is made.
 */
static bool is_reliable(const struct lb_cm_id *id)
{
	return id->ps == RDMA_PS_TCP || id->id.qp_type == IBV_QPT_RC;
}

/* [lock] */
static int attr_rtr(const struct lb_cm_id *id, const struct lb_cm_dev *dev,
		    struct ibv_qp_attr *attr)
{
	memset(&attr->ah_attr, 0, sizeof(attr->ah_attr));
	attr->ah_attr.is_global = 1;
	attr->ah_attr.port_num = LB_CM_PORT_NUM;
	attr->ah_attr.sl = id->tos >> 5;
	attr->ah_attr.grh.dgid = id->theirs.gid;
	attr->ah_attr.grh.sgid_index = (uint8_t)id->gid_index;
	attr->ah_attr.grh.hop_limit = HOP_LIMIT;
	attr->ah_attr.grh.traffic_class = id->tos;
	attr->path_mtu = dev->mtu;
	attr->dest_qp_num = id->theirs.qp_num;
	attr->rq_psn = id->theirs.psn;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->min_rnr_timer = 0; /* the longest, as in the kernel */
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	       IBV_QP_RQ_PSN |
	       (is_reliable(id)
			? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
			: 0);
}

/* [lock] */
static int attr_rts(const struct lb_cm_id *id, struct ibv_qp_attr *attr)
{
	attr->sq_psn = id->mine.psn;
	attr->max_rd_atomic = id->initiator_depth;
	attr->retry_cnt = id->retry_count;
	attr->rnr_retry = id->rnr_retry_count;
	attr->timeout = id->ack_timeout ? id->ack_timeout : DEFAULT_ACK_TIMEOUT;
	return IBV_QP_STATE | IBV_QP_SQ_PSN |
	       (is_reliable(id) ? IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT
				: 0);
}

static bool is_connecting(enum lb_cm_link link)
{
	switch (link) {
	case LB_CM_LINK_REQ_RCVD:
	case LB_CM_LINK_REP_SENT:
	case LB_CM_LINK_REP_RCVD:
	case LB_CM_LINK_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

/*
 * [lock] Returns the mask, or -1 if the connection is not ready for the state.
 */
static int fill_attr(const struct lb_cm_id *id, const struct lb_cm_dev *dev,
		     struct ibv_qp_attr *attr)
{
	if (lb_cm_id_is_ud(id))
		return attr_ud(attr);
	if (id->link == LB_CM_LINK_NONE)
		return attr_unconnected(attr);
	if (attr->qp_state == IBV_QPS_INIT &&
	    (id->link == LB_CM_LINK_REQ_SENT || is_connecting(id->link)))
		return attr_init(id, attr);
	if (!is_connecting(id->link))
		return -1;
	if (attr->qp_state == IBV_QPS_RTR)
		return attr_rtr(id, dev, attr);
	if (attr->qp_state == IBV_QPS_RTS)
		return attr_rts(id, attr);
	return -1;
}

/* 0 or an errno */
static int init_attr(struct lb_cm_id *id, struct ibv_qp_attr *attr,
		     int *attr_mask)
{
	const struct lb_cm_dev *dev;
	int mask = -1;

	/* dev is known and open, and does not change any more */
	lb_cm_lock();
	dev = id->state == LB_CM_GONE ? NULL : lb_cm_dev(id->dev);
	if (dev)
		mask = fill_attr(id, dev, attr);
	lb_cm_unlock();
	if (mask < 0)
		return EINVAL;
	*attr_mask = mask;
	return 0;
}

LB_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *cm_id,
				struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_init_qp_attr", cm_id);
	int err = EINVAL;

	if (!id)
		return -1;
	if (qp_attr && qp_attr_mask && qp_attr->qp_state <= IBV_QPS_ERR)
		err = init_attr(id, qp_attr, qp_attr_mask);
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}

/* ---- transitions -------------------------------------------------------- */

static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(qp, attr, mask);

	return err ? lb_cm_err(err) : 0;
}

static int move(struct lb_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state,
		const uint8_t *limit)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;
	int err = init_attr(id, &attr, &mask);

	if (err)
		return lb_cm_err(err);
	if (limit && state == IBV_QPS_RTR)
		attr.max_dest_rd_atomic = *limit;
	if (limit && state == IBV_QPS_RTS)
		attr.max_rd_atomic = *limit;
	return modify(qp, &attr, mask);
}

int lb_cm_qp_to_rtr(struct lb_cm_id *id, uint8_t responder_resources)
{
	const uint8_t *limit = responder_resources == RDMA_MAX_RESP_RES
				       ? NULL
				       : &responder_resources;
	struct ibv_qp *qp = id->id.qp;

	if (!qp || lb_cm_id_is_ud(id))
		return 0;
	/* once more, after the rights of the peer are known */
	if (move(id, qp, IBV_QPS_INIT, NULL))
		return -1;
	return move(id, qp, IBV_QPS_RTR, limit);
}

int lb_cm_qp_to_rts(struct lb_cm_id *id, uint8_t initiator_depth)
{
	const uint8_t *limit = initiator_depth == RDMA_MAX_INIT_DEPTH
				       ? NULL
				       : &initiator_depth;

	if (!id->id.qp || lb_cm_id_is_ud(id))
		return 0;
	return move(id, id->id.qp, IBV_QPS_RTS, limit);
}

int lb_cm_qp_to_err(struct lb_cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return id->id.qp ? modify(id->id.qp, &attr, IBV_QP_STATE) : 0;
}

/* A new QP: of a connection to INIT, of datagrams to RTS. */
static int begin(struct lb_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

	if (move(id, qp, IBV_QPS_INIT, NULL))
		return -1;
	if (!lb_cm_id_is_ud(id))
		return 0;
	if (modify(qp, &attr, IBV_QP_STATE))
		return -1;
	attr.qp_state = IBV_QPS_RTS;
	return modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* ---- private completion queues ----------------------------------------- */

static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	id->send_cq = NULL;
	id->recv_cq = NULL;
	id->send_cq_channel = NULL;
	id->recv_cq_channel = NULL;
}

static int create_cq(struct rdma_cm_id *id, uint32_t size,
		     struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -1;
	*cq = ibv_create_cq(id->verbs, (int)size, id, *channel, 0);
	return *cq ? 0 : -1;
}

static int create_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!attr->recv_cq && !id->recv_cq && attr->cap.max_recv_wr &&
	    create_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel,
		      &id->recv_cq))
		return -1;
	if (!attr->send_cq && !id->send_cq && attr->cap.max_send_wr &&
	    create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel,
		      &id->send_cq))
		return -1;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	return 0;
}

/* ---- QP and SRQ --------------------------------------------------------- */

static int create_qp(struct lb_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_init_attr_ex asked = *attr;
	struct rdma_cm_id *cm_id = &id->id;
	struct ibv_qp *qp;
	int err;

	if (create_cqs(cm_id, attr))
		goto err_cqs;
	if (cm_id->srq && !attr->srq)
		attr->srq = cm_id->srq;
	qp = ibv_create_qp_ex(cm_id->verbs, attr);
	if (!qp)
		goto err_cqs;
	if (begin(id, qp))
		goto err_qp;
	cm_id->pd = qp->pd;
	cm_id->qp = qp;
	return 0;

err_qp:
	err = errno;
	ibv_destroy_qp(qp);
	errno = err;
err_cqs:
	err = errno;
	destroy_cqs(cm_id);
	*attr = asked; /* names no destroyed queue */
	return lb_cm_err(err);
}

/* Returns true if the identifier can have a QP with attr. */
static bool is_suitable(const struct rdma_cm_id *id,
			const struct ibv_qp_init_attr_ex *attr)
{
	if (!id->verbs || id->qp)
		return false;
	if (!attr->pd || attr->pd->context != id->verbs)
		return false;
	if (id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq)
		return false;
	return !id->send_cq || !attr->send_cq || id->send_cq == attr->send_cq;
}

LB_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *cm_id,
				struct ibv_qp_init_attr_ex *attr)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_create_qp_ex", cm_id);

	if (!id)
		return -1;
	if (!attr)
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = cm_id->pd;
	}
	if (!is_suitable(cm_id, attr))
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	return lb_cm_leave(cm_id, create_qp(id, attr));
}

LB_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {0};
	int ret = lb_fault_errno("rdma_create_qp");

	if (ret || !id || !qp_init_attr)
		return lb_cm_err(ret ? ret : EINVAL);
	memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd ? pd : id->pd;
	ret = rdma_create_qp_ex(id, &attr);
	memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
	return ret;
}

LB_EXPORT void rdma_destroy_qp(struct rdma_cm_id *cm_id)
{
	if (!lb_cm_id_of(cm_id)) {
		lb_log_misuse("rdma_destroy_qp: not an identifier");
		return;
	}
	lb_hook(RPMA_LOOPBACK_CM_CALL, cm_id);
	if (cm_id->qp)
		ibv_destroy_qp(cm_id->qp);
	cm_id->qp = NULL;
	destroy_cqs(cm_id);
	lb_cm_leave(cm_id, 0);
}

LB_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *cm_id,
				 struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (!lb_cm_enter("rdma_create_srq_ex", cm_id))
		return -1;
	if (!attr || !cm_id->verbs || cm_id->srq ||
	    !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	if (attr->srq_type != IBV_SRQT_BASIC)
		return lb_cm_leave(cm_id, lb_cm_err(EOPNOTSUPP));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = cm_id->pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	srq = ibv_create_srq_ex(cm_id->verbs, attr);
	if (!srq)
		return lb_cm_leave(cm_id, -1);
	if (!cm_id->pd)
		cm_id->pd = attr->pd;
	cm_id->srq = srq;
	return lb_cm_leave(cm_id, 0);
}

LB_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = {0};
	int ret = lb_fault_errno("rdma_create_srq");

	if (ret || !attr)
		return lb_cm_err(ret ? ret : EINVAL);
	memcpy(&attr_ex, attr, sizeof(*attr));
	attr_ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	attr_ex.srq_type = IBV_SRQT_BASIC;
	attr_ex.pd = pd;
	ret = rdma_create_srq_ex(id, &attr_ex);
	memcpy(attr, &attr_ex, sizeof(*attr));
	return ret;
}

LB_EXPORT void rdma_destroy_srq(struct rdma_cm_id *cm_id)
{
	if (!lb_cm_id_of(cm_id)) {
		lb_log_misuse("rdma_destroy_srq: not an identifier");
		return;
	}
	lb_hook(RPMA_LOOPBACK_CM_CALL, cm_id);
	if (cm_id->srq)
		ibv_destroy_srq(cm_id->srq);
	cm_id->srq = NULL;
	destroy_cqs(cm_id);
	lb_cm_leave(cm_id, 0);
}
