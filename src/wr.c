/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Operations as work requests: preparing them, and posting chains of them. */

#include "wr.h"

#include "conn.h"
#include "post_error.h"
#include "verbs_compat.h"
#include "wr_fill.h"

static struct rpma_send_wr *next_of(const struct rpma_send_wr *wr)
{
	return (struct rpma_send_wr *)wr->wr.next;
}

/* The last of those at the start of a chain that are posted in one way. */
static struct rpma_send_wr *last_of_run(struct rpma_send_wr *wr)
{
	bool native = wr->native != RPMA__NATIVE_NONE;

	while (next_of(wr) &&
	       (next_of(wr)->native != RPMA__NATIVE_NONE) == native)
		wr = next_of(wr);
	return wr;
}

static int post_native_run(struct ibv_qp *qp, struct rpma_send_wr *first,
			   struct rpma_send_wr *end,
			   struct rpma_send_wr **bad_wr)
{
	int ret = rpma__post_native(qp, first, end);

	if (ret)
		*bad_wr = first;
	return ret;
}

static int post_plain_run(struct ibv_qp *qp, struct rpma_send_wr *first,
			  struct rpma_send_wr *last,
			  struct rpma_send_wr **bad_wr)
{
	struct ibv_send_wr *next = last->wr.next;
	struct ibv_send_wr *bad = NULL;
	int ret;

	last->wr.next = NULL;
	ret = ibv_post_send(qp, &first->wr, &bad);
	last->wr.next = next;
	if (ret)
		*bad_wr = bad ? (struct rpma_send_wr *)bad : first;
	return ret;
}

int rpma__post_send(struct ibv_qp *qp, struct rpma_send_wr *wr,
		    struct rpma_send_wr **bad_wr)
{
	int ret = 0;

	while (wr && ret == 0) {
		struct rpma_send_wr *last = last_of_run(wr);
		struct rpma_send_wr *end = next_of(last);

		if (wr->native == RPMA__NATIVE_NONE)
			ret = post_plain_run(qp, wr, last, bad_wr);
		else
			ret = post_native_run(qp, wr, end, bad_wr);
		wr = end;
	}
	return ret;
}

int rpma__post_recv(struct ibv_qp *qp, struct rpma_recv_wr *wr,
		    struct rpma_recv_wr **bad_wr)
{
	struct ibv_recv_wr *bad = NULL;
	int ret = ibv_post_recv(qp, &wr->wr, &bad);

	if (ret)
		*bad_wr = bad ? (struct rpma_recv_wr *)bad : wr;
	return ret;
}

int rpma_wr_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
		 size_t dst_offset, const struct rpma_mr_remote *src,
		 size_t src_offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr)
{
	return rpma__wr_read(conn, dst, dst_offset, src, src_offset, len, flags,
			     wr_id, wr);
}

int rpma_wr_write(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, const struct rpma_mr_local *src,
		  size_t src_offset, size_t len, int flags, uint64_t wr_id,
		  struct rpma_send_wr *wr)
{
	return rpma__wr_write(conn, dst, dst_offset, src, src_offset, len,
			      flags, wr_id, wr);
}

int rpma_wr_write_with_imm(struct rpma_conn *conn,
			   const struct rpma_mr_remote *dst, size_t dst_offset,
			   const struct rpma_mr_local *src, size_t src_offset,
			   size_t len, int flags, uint32_t imm, uint64_t wr_id,
			   struct rpma_send_wr *wr)
{
	return rpma__wr_write_with_imm(conn, dst, dst_offset, src, src_offset,
				       len, flags, imm, wr_id, wr);
}

int rpma_wr_atomic_write(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 const char src[8], int flags, uint64_t wr_id,
			 struct rpma_send_wr *wr)
{
	return rpma__wr_atomic_write(conn, dst, dst_offset, src, flags, wr_id,
				     wr);
}

int rpma_wr_flush(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, size_t len, enum rpma_flush_type type,
		  int flags, uint64_t wr_id, struct rpma_send_wr *wr)
{
	return rpma__wr_flush(conn, dst, dst_offset, len, type, flags, wr_id,
			      wr);
}

int rpma_wr_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
		 size_t offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr)
{
	return rpma__wr_send(conn, src, offset, len, flags, wr_id, wr);
}

int rpma_wr_send_with_imm(struct rpma_conn *conn,
			  const struct rpma_mr_local *src, size_t offset,
			  size_t len, int flags, uint32_t imm, uint64_t wr_id,
			  struct rpma_send_wr *wr)
{
	return rpma__wr_send_with_imm(conn, src, offset, len, flags, imm, wr_id,
				      wr);
}

int rpma_wr_recv(struct rpma_mr_local *dst, size_t offset, size_t len,
		 uint64_t wr_id, struct rpma_recv_wr *wr)
{
	return rpma__mr_recv_wr(dst, offset, len, wr_id, wr);
}

static int check_post(const struct rpma_conn *conn, const void *owner,
		      const void *wr, const void *bad_wr)
{
	if (!rpma__conn_is_valid(conn) || wr == NULL || bad_wr == NULL ||
	    conn->id->qp == NULL)
		return RPMA_E_INVAL;
	return rpma__claim_is_held_by(&conn->claim, owner)
		       ? 0
		       : RPMA_E_SHARED_CHANNEL;
}

int rpma_conn_post_send(struct rpma_conn *conn, const void *owner,
			struct rpma_send_wr *wr, struct rpma_send_wr **bad_wr)
{
	int ret = check_post(conn, owner, wr, bad_wr);

	if (ret)
		return ret;
	ret = rpma__post_send(conn->id->qp, wr, bad_wr);
	return ret ? rpma__post_error("ibv_post_send", ret) : 0;
}

int rpma_conn_post_recv(struct rpma_conn *conn, const void *owner,
			struct rpma_recv_wr *wr, struct rpma_recv_wr **bad_wr)
{
	int ret = check_post(conn, owner, wr, bad_wr);

	if (ret)
		return ret;
	ret = rpma__post_recv(conn->id->qp, wr, bad_wr);
	return ret ? rpma__post_error("ibv_post_recv", ret) : 0;
}
