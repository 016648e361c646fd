/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The life of a connection. One thread at a time uses a connection, except
 * where conn.h says otherwise. The events are in conn_event.c, completions in
 * conn_wait.c, operations in conn_op.c, getters and the steps of the owner in
 * conn_access.c.
 */

#include "conn.h"

#include <errno.h>
#include <stdlib.h>

#include "cancel.h"
#include "channel.h"
#include "cm_channel.h"
#include "cq.h"
#include "device.h"
#include "err.h"
#include "log.h"
#include "mr.h"
#include "peer.h"
#include "srq.h"
#include "verbs_compat.h"

int rpma__conn_new(struct rpma_peer *peer, struct rdma_cm_id *id,
		   struct rpma_cm_channel *cm_channel,
		   struct rpma_conn **conn_ptr)
{
	struct rpma_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return RPMA_REFUSE_NOMEM("a connection");

	conn->peer = peer;
	conn->forks = rpma__forks_now();
	conn->id = id;
	conn->min_rnr_timer = RPMA_MIN_RNR_TIMER_UNSET;
	conn->cm_channel = cm_channel;
	rpma__cm_channel_get(cm_channel);
	*conn_ptr = conn;
	return 0;
}

void rpma__conn_forget(struct rpma_conn **conn_ptr)
{
	struct rpma_conn *conn = *conn_ptr;

	rpma__cm_channel_put(conn->cm_channel);
	rpma__private_data_fini(&conn->data);
	free(conn);
	*conn_ptr = NULL;
}

/*
 * Checks the objects named by the configuration: all must belong to the device
 * of the connection.
 */
static int conn_check_devices(const struct rpma_conn *conn,
			      const struct rpma__conn_cfg *cfg)
{
	const struct ibv_context *ctx = conn->id->verbs;
	const char *who = "the connection";
	int ret = 0;

	if (cfg->cq)
		ret = rpma__device_check(who, ctx, "the CQ",
					 cfg->cq->cq->context);
	if (ret == 0 && cfg->rcq)
		ret = rpma__device_check(who, ctx, "the RCQ",
					 cfg->rcq->cq->context);
	if (ret == 0 && cfg->srq)
		ret = rpma__device_check(who, ctx, "the SRQ",
					 cfg->srq->ibv_srq->context);
	if (ret == 0 && cfg->channel)
		ret = rpma__device_check(
			who, ctx, "the channel",
			rpma__channel_get_ibv(cfg->channel)->context);
	return ret;
}

static bool conn_makes_cq(const struct rpma__conn_cfg *cfg)
{
	return cfg->cq == NULL;
}

static bool conn_makes_rcq(const struct rpma__conn_cfg *cfg,
			   const struct rpma_cq *srq_rcq)
{
	return cfg->rcq == NULL && srq_rcq == NULL && cfg->rcq_size;
}

/* Checks that the configuration says at most once where the CQs are to be. */
static int conn_check_cfg(const struct rpma__conn_cfg *cfg,
			  const struct rpma_cq *srq_rcq)
{
	if (cfg->compl_channel && srq_rcq) {
		RPMA_LOG_ERROR("compl_channel is set, but the RCQ of srq has "
			       "a channel already");
		return RPMA_E_INVAL;
	}
	if (cfg->compl_channel && (cfg->cq || cfg->rcq || cfg->channel)) {
		RPMA_LOG_ERROR("compl_channel is set, but also a CQ or a "
			       "channel");
		return RPMA_E_INVAL;
	}
	if (cfg->rcq && srq_rcq) {
		RPMA_LOG_ERROR("rcq is set, but srq has an RCQ already");
		return RPMA_E_INVAL;
	}
	if (cfg->rcq && cfg->rcq_size) {
		RPMA_LOG_ERROR("rcq is set, but rcq_size (%u) asks for a new "
			       "RCQ",
			       cfg->rcq_size);
		return RPMA_E_INVAL;
	}
	if (cfg->channel && !conn_makes_cq(cfg) &&
	    !conn_makes_rcq(cfg, srq_rcq)) {
		RPMA_LOG_ERROR(
			"channel is set, but no CQ is made for the connection");
		return RPMA_E_INVAL;
	}
	return 0;
}

/*
 * Checks comp_vector, but for vector 0, which release 1.3 always uses and
 * leaves to the device.
 */
static int conn_check_vector(const struct rpma_conn *conn,
			     const struct rpma__conn_cfg *cfg,
			     const struct rpma_cq *srq_rcq)
{
	int count = conn->id->verbs->num_comp_vectors;

	if (cfg->comp_vector == 0 || cfg->comp_vector < count ||
	    (!conn_makes_cq(cfg) && !conn_makes_rcq(cfg, srq_rcq)))
		return 0;
	RPMA_LOG_ERROR("comp_vector: 0 to %d on device %s, not %d", count - 1,
		       conn->id->verbs->device->name, cfg->comp_vector);
	return RPMA_E_INVAL;
}

static int conn_make_channel(struct rpma_conn *conn,
			     const struct rpma__conn_cfg *cfg)
{
	if (!cfg->compl_channel)
		return 0;
	conn->channel = ibv_create_comp_channel(conn->id->verbs);
	if (conn->channel == NULL) {
		RPMA_LOG_CALL("ibv_create_comp_channel", -1);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

static int conn_destroy_channel(struct rpma_conn *conn)
{
	int ret;

	if (conn->channel == NULL)
		return 0;
	ret = ibv_destroy_comp_channel(conn->channel);
	conn->channel = NULL;
	if (ret) {
		RPMA_LOG_CALL("ibv_destroy_comp_channel", ret);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

static int conn_make_cq(struct rpma_conn *conn,
			const struct rpma__conn_cfg *cfg, uint32_t cqe,
			struct rpma_cq **cq_ptr)
{
	const struct rpma__cq_attr attr = {
		.ibv_ctx = conn->id->verbs,
		.cqe = cqe,
		.comp_vector = cfg->comp_vector,
		.channel = cfg->channel,
		.ibv_channel = conn->channel,
		/* a thread that waits on the channel finds the connection */
		.context = cfg->channel ? conn->id->context : NULL,
	};

	return rpma__cq_new(&attr, cq_ptr);
}

/* Sets cq and rcq: the CQs that the configuration gives, or new CQs. */
static int conn_make_cqs(struct rpma_conn *conn,
			 const struct rpma__conn_cfg *cfg,
			 const struct rpma_cq *srq_rcq)
{
	int ret;

	conn->cq = cfg->cq;
	conn->rcq = cfg->rcq;
	if (conn_makes_cq(cfg)) {
		ret = conn_make_cq(conn, cfg, cfg->cq_size, &conn->cq);
		if (ret)
			return ret;
		conn->owns_cq = true;
	}
	if (conn_makes_rcq(cfg, srq_rcq)) {
		ret = conn_make_cq(conn, cfg, cfg->rcq_size, &conn->rcq);
		if (ret)
			return ret;
		conn->owns_rcq = true;
	}
	return 0;
}

static int conn_destroy_cqs(struct rpma_conn *conn)
{
	int ret = 0;

	if (conn->owns_rcq)
		rpma__err_first(&ret, rpma__cq_delete(&conn->rcq));
	if (conn->owns_cq)
		rpma__err_first(&ret, rpma__cq_delete(&conn->cq));
	conn->rcq = NULL;
	conn->cq = NULL;
	conn->owns_rcq = false;
	conn->owns_cq = false;
	return ret;
}

static int conn_make_qp(struct rpma_conn *conn,
			const struct rpma__conn_cfg *cfg,
			const struct rpma_cq *recv_cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = conn->cq->cq,
		.recv_cq = recv_cq->cq,
		.srq = cfg->srq ? cfg->srq->ibv_srq : NULL,
		.cap =
			{
				.max_send_wr = cfg->sq_size,
				.max_recv_wr = cfg->rq_size,
				.max_send_sge = cfg->max_send_sge,
				.max_recv_sge = cfg->max_recv_sge,
				.max_inline_data = cfg->max_inline_data,
			},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 0,
		.pd = conn->peer->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};

	rpma__qp_attr_set_ops(&conn->peer->caps, &attr);
	if (rdma_create_qp_ex(conn->id, &attr)) {
		RPMA_LOG_ERROR("rdma_create_qp_ex(%u send, %u receive work "
			       "requests, %u and %u pieces each, %u inline "
			       "bytes) failed: %s. The device takes at most %u "
			       "work requests and %u pieces; verbs has no "
			       "limit of inline bytes to show",
			       cfg->sq_size, cfg->rq_size, cfg->max_send_sge,
			       cfg->max_recv_sge, cfg->max_inline_data,
			       rpma__errno_2str(-1), conn->peer->caps.max_qp_wr,
			       conn->peer->caps.max_sge);
		return RPMA_E_PROVIDER;
	}
	conn->has_atomic_write = rpma__qp_has_atomic_write(conn->id->qp);
	conn->max_send_sge = attr.cap.max_send_sge;
	conn->max_recv_sge = attr.cap.max_recv_sge;
	conn->max_inline_data = attr.cap.max_inline_data;
	return 0;
}

/* Returns the RCQ of the SRQ, else the RCQ of the connection, else its CQ. */
static const struct rpma_cq *conn_recv_cq(const struct rpma_conn *conn,
					  const struct rpma_cq *srq_rcq)
{
	if (srq_rcq)
		return srq_rcq;
	return conn->rcq ? conn->rcq : conn->cq;
}

void rpma__conn_unmake(struct rpma_conn *conn)
{
	int err = errno; /* keeps the reason of the failure */

	rpma__conn_destroy_qp(conn);
	(void)conn_destroy_cqs(conn);
	(void)conn_destroy_channel(conn);
	errno = err;
}

int rpma__conn_make(struct rpma_conn *conn, const struct rpma__conn_cfg *cfg)
{
	const struct rpma_cq *srq_rcq;
	int ret;

	srq_rcq = cfg->srq ? cfg->srq->rcq : NULL;
	ret = conn_check_devices(conn, cfg);
	if (ret)
		return ret;
	ret = conn_check_cfg(cfg, srq_rcq);
	if (ret)
		return ret;
	ret = conn_check_vector(conn, cfg, srq_rcq);
	if (ret)
		return ret;
	ret = conn_make_channel(conn, cfg);
	if (ret)
		return ret;
	ret = conn_make_cqs(conn, cfg, srq_rcq);
	if (ret == 0)
		ret = conn_make_qp(conn, cfg, conn_recv_cq(conn, srq_rcq));
	if (ret) {
		rpma__conn_unmake(conn);
		return ret;
	}
	conn->min_rnr_timer = cfg->min_rnr_timer;
	return 0;
}

static int conn_migrate(struct rpma_conn *conn, struct rdma_event_channel *evch)
{
	if (rdma_migrate_id(conn->id, evch)) {
		RPMA_LOG_CALL("rdma_migrate_id", -1);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

static int conn_open_own_channel(struct rpma_conn *conn)
{
	struct rdma_event_channel *evch = rdma_create_event_channel();
	int err;
	int ret;

	if (evch == NULL) {
		RPMA_LOG_CM_CALL("rdma_create_event_channel");
		return RPMA_E_PROVIDER;
	}
	ret = conn_migrate(conn, evch);
	if (ret) {
		err = errno;
		rdma_destroy_event_channel(evch);
		errno = err;
	} else {
		conn->evch = evch;
	}
	return ret;
}

static int conn_open_cm_channel(struct rpma_conn *conn)
{
	struct rdma_event_channel *evch =
		rpma__cm_channel_get_rdma(conn->cm_channel);

	return conn->id->channel == evch ? 0 : conn_migrate(conn, evch);
}

int rpma__conn_move_events(struct rpma_conn *conn)
{
	if (conn->cm_channel)
		return conn_open_cm_channel(conn);
	return conn->evch ? 0 : conn_open_own_channel(conn);
}

int rpma__conn_open(struct rpma_conn *conn)
{
	int ret = rpma__conn_move_events(conn);

	if (ret)
		return ret;
	return rpma__flush_new(conn->peer, conn->id->qp, &conn->flush);
}

static int conn_destroy_id(struct rpma_conn *conn)
{
	if (rdma_destroy_id(conn->id)) {
		RPMA_LOG_CALL("rdma_destroy_id", -1);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma__conn_delete(struct rpma_conn **conn_ptr,
		      const struct rpma__refusal *refusal)
{
	struct rpma_conn *conn = *conn_ptr;
	int ret = 0;

	rpma__conn_destroy_qp(conn);
	/* only after the QP is destroyed: a flush in flight writes to the
	 * buffer */
	rpma__err_first(&ret, rpma__flush_delete(&conn->flush));
	rpma__err_first(&ret, conn_destroy_cqs(conn));
	if (refusal)
		rpma__err_first(&ret, rpma__cm_refuse(conn->id, refusal->ptr,
						      refusal->len));
	rpma__err_first(&ret, conn_destroy_id(conn));
	rpma__err_first(&ret, conn_destroy_channel(conn));
	if (conn->evch)
		rdma_destroy_event_channel(conn->evch);
	rpma__conn_forget(conn_ptr);
	return ret;
}

void rpma__conn_abandon(struct rpma_conn **conn_ptr)
{
	struct rpma_conn *conn = *conn_ptr;

	rpma__flush_abandon(&conn->flush);
	if (conn->owns_rcq)
		rpma__cq_abandon(&conn->rcq);
	if (conn->owns_cq)
		rpma__cq_abandon(&conn->cq);
	rpma__private_data_fini(&conn->data);
	free(conn);
	*conn_ptr = NULL;
}

int rpma__conn_qp_to_err(struct rpma_conn *conn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int ret;

	if (conn->id->qp == NULL)
		return 0;
	ret = ibv_modify_qp(conn->id->qp, &attr, IBV_QP_STATE);
	if (ret) {
		RPMA_LOG_CALL("ibv_modify_qp", ret);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

void rpma__conn_destroy_qp(struct rpma_conn *conn)
{
	if (conn->id->qp)
		rdma_destroy_qp(conn->id);
}

void rpma__conn_apply_rnr_timer(struct rpma_conn *conn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.min_rnr_timer = conn->min_rnr_timer,
	};
	int ret;

	if (conn->min_rnr_timer == RPMA_MIN_RNR_TIMER_UNSET ||
	    conn->id->qp == NULL)
		return;
	ret = ibv_modify_qp(conn->id->qp, &attr,
			    IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
	if (ret)
		RPMA_LOG_WARNING("min_rnr_timer is not set: %s",
				 rpma__errno_2str(ret));
}

bool rpma__conn_is_direct_write(const struct rpma_conn *conn)
{
	/* relaxed: a flag by itself */
	return atomic_load_explicit(&conn->direct_write_to_pmem,
				    memory_order_relaxed);
}

/* Checks a flush. A flush of an unknown type passes, as in release 1.3. */
int rpma__conn_check_flush(const struct rpma_conn *conn,
			   const struct rpma_mr_remote *dst, size_t len,
			   enum rpma_flush_type type)
{
	/* cut to 32 bits, the flush would cover less than the caller
	 * believes */
	if (len > UINT32_MAX && rpma__flush_is_native(conn->flush)) {
		RPMA_LOG_ERROR("len: a native flush has up to %u bytes, not "
			       "%zu: flush in several parts",
			       UINT32_MAX, len);
		return RPMA_E_INVAL;
	}
	if (type == RPMA_FLUSH_TYPE_PERSISTENT &&
	    !rpma__conn_is_direct_write(conn)) {
		RPMA_LOG_ERROR("the other side does not write directly to "
			       "persistent memory");
		return RPMA_E_NOSUPP;
	}
	if (type == RPMA_FLUSH_TYPE_PERSISTENT &&
	    !(dst->usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)) {
		RPMA_LOG_ERROR("the region is not for persistent flushes");
		return RPMA_E_NOSUPP;
	}
	if (type == RPMA_FLUSH_TYPE_VISIBILITY &&
	    !(dst->usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)) {
		RPMA_LOG_ERROR("the region is not for visibility flushes");
		return RPMA_E_NOSUPP;
	}
	return 0;
}

bool rpma__conn_has_claimed_cq(const struct rpma_conn *conn)
{
	return (conn->owns_cq && rpma__claim_is_held(&conn->cq->claim)) ||
	       (conn->owns_rcq && rpma__claim_is_held(&conn->rcq->claim));
}

bool rpma__conn_is_claimed(const struct rpma_conn *conn)
{
	return rpma__claim_is_held(&conn->claim) ||
	       rpma__conn_has_claimed_cq(conn);
}

int rpma_conn_delete(struct rpma_conn **conn_ptr)
{
	RPMA_NOT_CANCELLED;
	if (conn_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", conn_ptr);
	if (*conn_ptr == NULL)
		return 0;
	if (!rpma__is_here((*conn_ptr)->forks)) {
		rpma__conn_abandon(conn_ptr);
		return RPMA_E_FORKED;
	}
	if (rpma__conn_is_claimed(*conn_ptr))
		return RPMA_REFUSE(RPMA_E_CLAIMED,
				   "another owner has claimed the connection, "
				   "or a CQ of the connection: release the "
				   "claim first");
	return rpma__conn_delete(conn_ptr, NULL);
}

int rpma_conn_disconnect(struct rpma_conn *conn)
{
	RPMA_NOT_CANCELLED;
	if (!rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", conn);

	if (rdma_disconnect(conn->id)) {
		RPMA_LOG_CALL("rdma_disconnect", -1);
		return RPMA_E_PROVIDER;
	}
	RPMA_LOG_NOTICE("disconnecting");
	return 0;
}
