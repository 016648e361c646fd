/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The made-up requests, connections and work requests; see rt_fake.h. */

#include "rt_fake.h"

#include <string.h>

/* ---------------------------------------------------------- queue pairs --- */

uint32_t fake_qp_num = 16;
struct rdma_cm_id fake_id;

static struct fake_qp *qp_new(void)
{
	struct fake_qp *qp = fake_object_new(sizeof(*qp));

	qp->ibv.context = &fake_ctx;
	qp->ibv.qp_num = fake_qp_num++;
	return qp;
}

static void qp_free(struct fake_qp **qp)
{
	if (*qp != NULL)
		fake_object_free(*qp);
	*qp = NULL;
}

/* ------------------------------------------------------------- requests --- */

int rpma_conn_req_new_async(struct rpma_peer *peer, const char *addr,
			    const char *port, const struct rpma_conn_cfg *cfg,
			    void *context, struct rpma_conn_req **req_ptr)
{
	int ret = fake_enter("req_new_async");

	(void)peer;
	(void)cfg;
	assert_non_null(addr);
	assert_non_null(port);
	assert_non_null(context);
	if (ret == 0)
		*req_ptr = fake_object_new(sizeof(**req_ptr));
	return ret;
}

int rpma_conn_req_new_from_event(struct rpma_peer *peer,
				 const struct rpma_cm_event *event,
				 const struct rpma_conn_cfg *cfg, void *context,
				 struct rpma_conn_req **req_ptr)
{
	int ret = fake_enter("req_new");

	(void)peer;
	(void)cfg;
	assert_non_null(context);
	if (event->id != NULL)
		event->id->context = context;
	if (ret)
		return ret;
	*req_ptr = fake_object_new(sizeof(**req_ptr));
	(*req_ptr)->qp = qp_new();
	return 0;
}

int rpma_conn_req_advance(struct rpma_conn_req *req,
			  const struct rpma_cm_event *event)
{
	int ret = fake_enter("req_advance");

	if (ret)
		return ret;
	if (event->type == RDMA_CM_EVENT_ADDR_RESOLVED)
		return RPMA_E_AGAIN;
	if (event->type != RDMA_CM_EVENT_ROUTE_RESOLVED)
		return RPMA_E_PROVIDER;
	req->qp = qp_new();
	return 0;
}

int rpma_conn_req_get_qp(const struct rpma_conn_req *req, struct ibv_qp **qp)
{
	int ret = fake_enter("req_get_qp");

	if (ret == 0)
		*qp = &req->qp->ibv;
	return ret;
}

int rpma_conn_req_get_cm_id(const struct rpma_conn_req *req,
			    struct rdma_cm_id **id)
{
	*id = req->id != NULL ? req->id : &fake_id;
	return fake_failing("req_get_cm_id");
}

int rpma_conn_req_claim(struct rpma_conn_req *req, const void *owner)
{
	int ret = fake_enter("req_claim");

	if (ret == 0)
		req->owner = owner;
	return ret;
}

int rpma_conn_req_release(struct rpma_conn_req *req, const void *owner)
{
	(void)owner;
	req->owner = NULL;
	return fake_enter("req_release");
}

int rpma_conn_req_qp_to_err(struct rpma_conn_req *req, const void *owner)
{
	assert_ptr_equal(req->owner, owner);
	return fake_enter("req_qp_to_err");
}

int rpma_conn_req_destroy_qp(struct rpma_conn_req *req, const void *owner)
{
	assert_ptr_equal(req->owner, owner);
	qp_free(&req->qp);
	return fake_enter("req_destroy_qp");
}

static int req_free(struct rpma_conn_req **req_ptr)
{
	assert_null((*req_ptr)->owner);
	qp_free(&(*req_ptr)->qp);
	fake_object_free(*req_ptr);
	*req_ptr = NULL;
	return 0;
}

int rpma_conn_req_delete(struct rpma_conn_req **req_ptr)
{
	int ret = fake_enter("req_delete");

	req_free(req_ptr);
	return ret;
}

int rpma_conn_req_reject(struct rpma_conn_req **req_ptr,
			 const struct rpma_conn_private_data *pdata)
{
	int ret = fake_enter("req_reject");

	assert_non_null(pdata);
	req_free(req_ptr);
	return ret;
}

int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata,
			  struct rpma_conn **conn_ptr)
{
	int ret = fake_enter("req_connect");

	(void)pdata;
	if (ret) { /* as librpma: the request is gone */
		(*req_ptr)->owner = NULL;
		req_free(req_ptr);
		return ret;
	}
	*conn_ptr = fake_object_new(sizeof(**conn_ptr));
	(*conn_ptr)->qp = (*req_ptr)->qp;
	(*conn_ptr)->owner = (*req_ptr)->owner;
	fake_object_free(*req_ptr);
	*req_ptr = NULL;
	return 0;
}

/* ---------------------------------------------------------- connections --- */

int rpma_conn_handle_event(struct rpma_conn *conn,
			   const struct rpma_cm_event *cm_event,
			   enum rpma_conn_event *event)
{
	(void)conn;
	switch (cm_event->type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		*event = RPMA_CONN_ESTABLISHED;
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		*event = RPMA_CONN_CLOSED;
		return 0;
	case RDMA_CM_EVENT_REJECTED:
		*event = RPMA_CONN_REJECTED;
		return 0;
	case RDMA_CM_EVENT_UNREACHABLE:
		*event = RPMA_CONN_UNREACHABLE;
		return 0;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		*event = RPMA_CONN_LOST;
		return 0;
	default:
		return RPMA_E_UNKNOWN;
	}
}

int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq)
{
	*cq = conn->cq;
	return 0;
}

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn,
				    const struct rpma_peer_cfg *pcfg)
{
	int ret = fake_enter("apply_remote_peer_cfg");

	if (ret == 0)
		ret = rpma_peer_cfg_get_direct_write_to_pmem(
			pcfg, &conn->direct_write);
	return ret;
}

int rpma_conn_get_cm_id(const struct rpma_conn *conn, struct rdma_cm_id **id)
{
	(void)conn;
	*id = NULL;
	return 0;
}

int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq)
{
	*rcq = conn->rcq;
	return 0;
}

int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq)
{
	*rcq = srq->rcq;
	return 0;
}

int rpma_conn_qp_to_err(struct rpma_conn *conn, const void *owner)
{
	assert_ptr_equal(conn->owner, owner);
	return fake_enter("qp_to_err");
}

int rpma_conn_disconnect(struct rpma_conn *conn)
{
	(void)conn;
	return fake_enter("disconnect");
}

int rpma_conn_destroy_qp(struct rpma_conn *conn, const void *owner)
{
	assert_ptr_equal(conn->owner, owner);
	qp_free(&conn->qp);
	return fake_enter("destroy_qp");
}

int rpma_conn_release(struct rpma_conn *conn, const void *owner)
{
	assert_ptr_equal(conn->owner, owner);
	conn->owner = NULL;
	return fake_enter("conn_release");
}

int rpma_conn_delete(struct rpma_conn **conn_ptr)
{
	int ret = fake_enter("conn_delete");

	assert_null((*conn_ptr)->owner);
	qp_free(&(*conn_ptr)->qp);
	fake_object_free(*conn_ptr);
	*conn_ptr = NULL;
	return ret;
}

int rpma_conn_post_send(struct rpma_conn *conn, const void *owner,
			struct rpma_send_wr *wr, struct rpma_send_wr **bad)
{
	struct ibv_send_wr *ibv_bad;
	int ret;

	assert_ptr_equal(conn->owner, owner);
	assert_true(fake_log_is_held());
	ret = ibv_post_send(&conn->qp->ibv, &wr->wr, &ibv_bad);
	if (ret)
		*bad = (struct rpma_send_wr *)ibv_bad;
	return ret;
}

/* -------------------------------------------------------- work requests --- */

static struct {
	void (*fn)(void *arg);
	void *arg;
} preparing;

void fake_when_preparing(void (*fn)(void *arg), void *arg)
{
	preparing.fn = fn;
	preparing.arg = arg;
}

static int prepare(const char *call, int opcode, int flags, uint64_t wr_id,
		   struct rpma_send_wr *wr)
{
	bool always = flags & (1 << 1); /* of RPMA_F_COMPLETION_ALWAYS */
	void (*fn)(void *arg) = preparing.fn;

	preparing.fn = NULL;
	if (fn != NULL)
		fn(preparing.arg);
	memset(wr, 0, sizeof(*wr));
	wr->wr.wr_id = wr_id;
	wr->wr.opcode = (enum ibv_wr_opcode)opcode;
	wr->wr.send_flags = always ? IBV_SEND_SIGNALED : 0;
	wr->wr.send_flags |= (unsigned)flags >> 24; /* as librpma */
	return fake_enter(call);
}

int rpma_wr_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
		 size_t offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr)
{
	(void)conn, (void)src, (void)offset, (void)len;
	return prepare("wr_send", IBV_WR_SEND, flags, wr_id, wr);
}

int rpma_wr_send_with_imm(struct rpma_conn *conn,
			  const struct rpma_mr_local *src, size_t offset,
			  size_t len, int flags, uint32_t imm, uint64_t wr_id,
			  struct rpma_send_wr *wr)
{
	(void)conn, (void)src, (void)offset, (void)len, (void)imm;
	return prepare("wr_send_with_imm", IBV_WR_SEND_WITH_IMM, flags, wr_id,
		       wr);
}

int rpma_wr_write(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, const struct rpma_mr_local *src,
		  size_t src_offset, size_t len, int flags, uint64_t wr_id,
		  struct rpma_send_wr *wr)
{
	(void)conn, (void)dst, (void)dst_offset, (void)src, (void)src_offset;
	(void)len;
	return prepare("wr_write", IBV_WR_RDMA_WRITE, flags, wr_id, wr);
}

int rpma_wr_write_with_imm(struct rpma_conn *conn,
			   const struct rpma_mr_remote *dst, size_t dst_offset,
			   const struct rpma_mr_local *src, size_t src_offset,
			   size_t len, int flags, uint32_t imm, uint64_t wr_id,
			   struct rpma_send_wr *wr)
{
	(void)conn, (void)dst, (void)dst_offset, (void)src, (void)src_offset;
	(void)len, (void)imm;
	return prepare("wr_write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM, flags,
		       wr_id, wr);
}

int rpma_wr_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
		 size_t dst_offset, const struct rpma_mr_remote *src,
		 size_t src_offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr)
{
	(void)conn, (void)dst, (void)dst_offset, (void)src, (void)src_offset;
	(void)len;
	return prepare("wr_read", IBV_WR_RDMA_READ, flags, wr_id, wr);
}

int rpma_wr_flush(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, size_t len, enum rpma_flush_type type,
		  int flags, uint64_t wr_id, struct rpma_send_wr *wr)
{
	int ret;

	(void)dst, (void)dst_offset, (void)len;
	fake_may_log();
	if (type == RPMA_FLUSH_TYPE_PERSISTENT && !conn->direct_write)
		return RPMA_E_NOSUPP;
	ret = prepare("wr_flush", IBV_WR_RDMA_READ, flags, wr_id, wr);
	wr->native = (uint32_t)fake_failing("native");
	return ret;
}

int rpma_wr_atomic_write(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 const char src[8], int flags, uint64_t wr_id,
			 struct rpma_send_wr *wr)
{
	int ret;

	(void)conn, (void)dst, (void)dst_offset, (void)src;
	ret = prepare("wr_atomic_write", IBV_WR_RDMA_WRITE, flags, wr_id, wr);
	wr->native = (uint32_t)fake_failing("native");
	return ret;
}

int rpma_wr_recv(struct rpma_mr_local *dst, size_t offset, size_t len,
		 uint64_t wr_id, struct rpma_recv_wr *wr)
{
	(void)dst, (void)offset, (void)len;
	memset(wr, 0, sizeof(*wr));
	wr->wr.wr_id = wr_id;
	return fake_enter("wr_recv");
}

int rpma_wr_atomic_cmp_swp(struct rpma_conn *conn, struct rpma_mr_local *old,
			   size_t old_offset, const struct rpma_mr_remote *dst,
			   size_t dst_offset, uint64_t compare, uint64_t swap,
			   int flags, uint64_t wr_id, struct rpma_send_wr *wr)
{
	(void)conn, (void)old, (void)old_offset, (void)dst, (void)dst_offset;
	(void)compare, (void)swap;
	fake_may_log();
	return prepare("wr_cmp_swp", IBV_WR_ATOMIC_CMP_AND_SWP, flags, wr_id,
		       wr);
}

int rpma_wr_atomic_fetch_add(struct rpma_conn *conn, struct rpma_mr_local *old,
			     size_t old_offset,
			     const struct rpma_mr_remote *dst,
			     size_t dst_offset, uint64_t add, int flags,
			     uint64_t wr_id, struct rpma_send_wr *wr)
{
	(void)conn, (void)old, (void)old_offset, (void)dst, (void)dst_offset;
	(void)add;
	fake_may_log();
	return prepare("wr_fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, flags,
		       wr_id, wr);
}

int rpma_wr_set_sge_list(const struct rpma_sge *list, int count,
			 struct ibv_sge *sge, struct rpma_send_wr *wr)
{
	(void)list;
	memset(sge, 0, (size_t)count * sizeof(*sge));
	wr->wr.sg_list = sge;
	wr->wr.num_sge = count;
	return 0;
}

int rpma_wr_recv_set_sge_list(const struct rpma_sge *list, int count,
			      struct ibv_sge *sge, struct rpma_recv_wr *wr)
{
	(void)list;
	memset(sge, 0, (size_t)count * sizeof(*sge));
	wr->wr.sg_list = sge;
	wr->wr.num_sge = count;
	return 0;
}
