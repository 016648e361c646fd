/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The operations of a connection: each prepares a work request on the stack and
 * posts the work request. No lock, no allocation; any thread. The operations
 * fail on a claimed connection: only the owner of the claim posts there.
 */

#include "conn.h"
#include "post_error.h"
#include "wr.h"
#include "wr_fill.h"
#include "log.h"
#include "tsan/tsan.h"

/* Returns 0 if the caller may post on the connection. */
static inline int conn_op_check(const struct rpma_conn *conn)
{
	if (conn->id->qp == NULL)
		return RPMA_REFUSE(RPMA_E_INVAL,
				   "the connection has no queue pair any more");
	if (rpma__claim_is_held(&conn->claim))
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the connection is claimed: only the owner "
				   "of the claim posts on the connection");
	return 0;
}

/*
 * Posts a single work request, which is no chain: the usual kind goes straight
 * to verbs.
 */
static inline int conn_op_post_one(struct ibv_qp *qp, struct rpma_send_wr *wr)
{
	struct rpma_send_wr *bad_wr;
	struct ibv_send_wr *bad;

	if (wr->native == RPMA__NATIVE_NONE) {
		tsan_posts(qp);
		return ibv_post_send(qp, &wr->wr, &bad);
	}
	return rpma__post_send(qp, wr, &bad_wr);
}

/* Posts a prepared work request; ret: the result of preparing */
static inline int conn_op_post_send(struct rpma_conn *conn,
				    struct rpma_send_wr *wr, int ret)
{
	if (ret == 0)
		ret = conn_op_check(conn);
	if (ret)
		return ret;

	ret = conn_op_post_one(conn->id->qp, wr);
	return ret ? rpma__send_refused(wr, ret) : 0;
}

int rpma__conn_send(struct rpma_conn *conn, struct rpma_send_wr *wr)
{
	return conn_op_post_send(conn, wr, 0);
}

static inline int conn_op_post_recv(struct rpma_conn *conn,
				    struct rpma_mr_local *dst, size_t offset,
				    size_t len, const void *op_context)
{
	struct rpma_recv_wr wr;
	struct ibv_recv_wr *bad;
	int ret =
		rpma__mr_recv_wr(dst, offset, len, (uintptr_t)op_context, &wr);

	if (ret == 0)
		ret = conn_op_check(conn);
	if (ret)
		return ret;

	tsan_posts(conn->id->qp);
	ret = ibv_post_recv(conn->id->qp, &wr.wr, &bad);
	if (__builtin_expect(ret, 0))
		return rpma__recv_refused("ibv_post_recv", &wr.wr, ret);
	return 0;
}

int rpma__conn_recv(struct rpma_conn *conn, struct rpma_mr_local *dst,
		    size_t offset, size_t len, const void *op_context)
{
	return conn_op_post_recv(conn, dst, offset, len, op_context);
}

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
	      size_t dst_offset, const struct rpma_mr_remote *src,
	      size_t src_offset, size_t len, int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma__wr_read(conn, dst, dst_offset, src, src_offset, len,
				flags, (uintptr_t)op_context, &wr);

	return conn_op_post_send(conn, &wr, ret);
}

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
	       size_t dst_offset, const struct rpma_mr_local *src,
	       size_t src_offset, size_t len, int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma__wr_write(conn, dst, dst_offset, src, src_offset, len,
				 flags, (uintptr_t)op_context, &wr);

	return conn_op_post_send(conn, &wr, ret);
}

int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst,
			size_t dst_offset, const struct rpma_mr_local *src,
			size_t src_offset, size_t len, int flags, uint32_t imm,
			const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma__wr_write_with_imm(conn, dst, dst_offset, src,
					  src_offset, len, flags, imm,
					  (uintptr_t)op_context, &wr);

	return conn_op_post_send(conn, &wr, ret);
}

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
		      size_t dst_offset, const char src[8], int flags,
		      const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma__wr_atomic_write(conn, dst, dst_offset, src, flags,
					(uintptr_t)op_context, &wr);

	return conn_op_post_send(conn, &wr, ret);
}

int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst,
	       size_t dst_offset, size_t len, enum rpma_flush_type type,
	       int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma__wr_flush(conn, dst, dst_offset, len, type, flags,
				 (uintptr_t)op_context, &wr);

	return conn_op_post_send(conn, &wr, ret);
}

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
	      size_t offset, size_t len, int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma__wr_send(conn, src, offset, len, flags,
				(uintptr_t)op_context, &wr);

	return conn_op_post_send(conn, &wr, ret);
}

int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src,
		       size_t offset, size_t len, int flags, uint32_t imm,
		       const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma__wr_send_with_imm(conn, src, offset, len, flags, imm,
					 (uintptr_t)op_context, &wr);

	return conn_op_post_send(conn, &wr, ret);
}

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset,
	      size_t len, const void *op_context)
{
	if (!rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", conn);
	return conn_op_post_recv(conn, dst, offset, len, op_context);
}
