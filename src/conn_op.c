/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The operations of a connection: prepare a work request on the stack, post
 * it. No lock, no allocation; any thread. A connection that is claimed is its
 * owner's to post on, and these calls refuse.
 */

#include "conn.h"
#include "err.h"
#include "log.h"
#include "wr.h"

static int post(struct rpma_conn *conn, struct rpma_send_wr *wr)
{
	struct rpma_send_wr *bad_wr;
	int ret;

	if (conn->id->qp == NULL)
		return RPMA_E_INVAL;
	if (rpma__claim_is_held(&conn->claim))
		return RPMA_E_SHARED_CHANNEL;

	ret = rpma__post_send(conn->id->qp, wr, &bad_wr);
	if (ret) {
		RPMA_LOG_CALL("ibv_post_send", ret);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

/* ret: of preparing the work request */
static int post_send(struct rpma_conn *conn, struct rpma_send_wr *wr, int ret)
{
	return ret ? ret : post(conn, wr);
}

int rpma__conn_send(struct rpma_conn *conn, struct rpma_send_wr *wr)
{
	return post(conn, wr);
}

int rpma__conn_recv(struct rpma_conn *conn, struct rpma_mr_local *dst,
		    size_t offset, size_t len, const void *op_context)
{
	struct rpma_recv_wr wr;
	struct rpma_recv_wr *bad_wr;
	int ret;

	ret = rpma_wr_recv(dst, offset, len, (uintptr_t)op_context, &wr);
	if (ret)
		return ret;
	if (conn->id->qp == NULL)
		return RPMA_E_INVAL;
	if (rpma__claim_is_held(&conn->claim))
		return RPMA_E_SHARED_CHANNEL;

	ret = rpma__post_recv(conn->id->qp, &wr, &bad_wr);
	if (ret) {
		RPMA_LOG_CALL("ibv_post_recv", ret);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
	      size_t dst_offset, const struct rpma_mr_remote *src,
	      size_t src_offset, size_t len, int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma_wr_read(conn, dst, dst_offset, src, src_offset, len,
			       flags, (uintptr_t)op_context, &wr);

	return post_send(conn, &wr, ret);
}

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
	       size_t dst_offset, const struct rpma_mr_local *src,
	       size_t src_offset, size_t len, int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma_wr_write(conn, dst, dst_offset, src, src_offset, len,
				flags, (uintptr_t)op_context, &wr);

	return post_send(conn, &wr, ret);
}

int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst,
			size_t dst_offset, const struct rpma_mr_local *src,
			size_t src_offset, size_t len, int flags, uint32_t imm,
			const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma_wr_write_with_imm(conn, dst, dst_offset, src, src_offset,
					 len, flags, imm, (uintptr_t)op_context,
					 &wr);

	return post_send(conn, &wr, ret);
}

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
		      size_t dst_offset, const char src[8], int flags,
		      const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma_wr_atomic_write(conn, dst, dst_offset, src, flags,
				       (uintptr_t)op_context, &wr);

	return post_send(conn, &wr, ret);
}

int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst,
	       size_t dst_offset, size_t len, enum rpma_flush_type type,
	       int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma_wr_flush(conn, dst, dst_offset, len, type, flags,
				(uintptr_t)op_context, &wr);

	return post_send(conn, &wr, ret);
}

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
	      size_t offset, size_t len, int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma_wr_send(conn, src, offset, len, flags,
			       (uintptr_t)op_context, &wr);

	return post_send(conn, &wr, ret);
}

int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src,
		       size_t offset, size_t len, int flags, uint32_t imm,
		       const void *op_context)
{
	struct rpma_send_wr wr;
	int ret = rpma_wr_send_with_imm(conn, src, offset, len, flags, imm,
					(uintptr_t)op_context, &wr);

	return post_send(conn, &wr, ret);
}

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset,
	      size_t len, const void *op_context)
{
	if (!rpma__conn_is_valid(conn))
		return RPMA_E_INVAL;
	return rpma__conn_recv(conn, dst, offset, len, op_context);
}
