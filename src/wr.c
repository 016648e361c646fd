/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Operations as work requests: the rules for their arguments, and posting
 * chains of them. Preparing touches nothing but the work request.
 */

#include "wr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "conn.h"
#include "err.h"
#include "log.h"
#include "mr_desc.h"
#include "mr_post.h"
#include "verbs_compat.h"

/* Both regions, or neither and no bytes. */
static bool is_valid_rdma(const struct rpma__mr_part *part,
			  const struct rpma_mr_remote *remote,
			  size_t remote_offset)
{
	if (part->mr && remote)
		return true;
	return part->mr == NULL && remote == NULL && part->offset == 0 &&
	       remote_offset == 0 && part->len == 0;
}

/* A region, or no bytes. */
static bool is_valid_part(const struct rpma__mr_part *part)
{
	return part->mr || (part->offset == 0 && part->len == 0);
}

int rpma__post_error(const char *name, int ret)
{
	if (ret == ENOMEM)
		return RPMA_E_AGAIN;
	RPMA_LOG_CALL(name, ret);
	return RPMA_E_PROVIDER;
}

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
	const struct rpma__mr_part part = {dst, dst_offset, len};

	if (!rpma__conn_is_valid(conn) || flags == 0 || wr == NULL ||
	    !is_valid_rdma(&part, src, src_offset))
		return RPMA_E_INVAL;

	rpma__mr_fill_rdma(wr, IBV_WR_RDMA_READ, &part, src, src_offset, flags,
			   wr_id);
	return 0;
}

int rpma_wr_write(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, const struct rpma_mr_local *src,
		  size_t src_offset, size_t len, int flags, uint64_t wr_id,
		  struct rpma_send_wr *wr)
{
	const struct rpma__mr_part part = {src, src_offset, len};

	if (!rpma__conn_is_valid(conn) || flags == 0 || wr == NULL ||
	    !is_valid_rdma(&part, dst, dst_offset))
		return RPMA_E_INVAL;

	rpma__mr_fill_rdma(wr, IBV_WR_RDMA_WRITE, &part, dst, dst_offset, flags,
			   wr_id);
	return 0;
}

int rpma_wr_write_with_imm(struct rpma_conn *conn,
			   const struct rpma_mr_remote *dst, size_t dst_offset,
			   const struct rpma_mr_local *src, size_t src_offset,
			   size_t len, int flags, uint32_t imm, uint64_t wr_id,
			   struct rpma_send_wr *wr)
{
	int ret = rpma_wr_write(conn, dst, dst_offset, src, src_offset, len,
				flags, wr_id, wr);

	if (ret)
		return ret;
	wr->wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->wr.imm_data = htonl(imm);
	return 0;
}

int rpma_wr_atomic_write(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 const char src[8], int flags, uint64_t wr_id,
			 struct rpma_send_wr *wr)
{
	const struct rpma__mr_part none = {0};

	if (!rpma__conn_is_valid(conn) || dst == NULL || src == NULL ||
	    flags == 0 || wr == NULL ||
	    dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT)
		return RPMA_E_INVAL;

	rpma__mr_fill_rdma(wr, IBV_WR_RDMA_WRITE, &none, dst, dst_offset, flags,
			   wr_id);
	memcpy(&wr->data, src, sizeof(wr->data));
	if (conn->has_atomic_write) {
		wr->native = RPMA__NATIVE_ATOMIC_WRITE;
		return 0;
	}

	/* inline: needs no region; fence: after the reads that flush */
	wr->sge = (struct ibv_sge){
		.addr = (uintptr_t)&wr->data,
		.length = sizeof(wr->data),
	};
	wr->wr.sg_list = &wr->sge;
	wr->wr.num_sge = 1;
	wr->wr.send_flags |= IBV_SEND_INLINE | IBV_SEND_FENCE;
	return 0;
}

/* A type that is neither is executed: 1.3 does so. */
static int check_flush_type(const struct rpma_conn *conn,
			    const struct rpma_mr_remote *dst,
			    enum rpma_flush_type type)
{
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

int rpma_wr_flush(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, size_t len, enum rpma_flush_type type,
		  int flags, uint64_t wr_id, struct rpma_send_wr *wr)
{
	int ret;

	if (!rpma__conn_is_valid(conn) || dst == NULL || flags == 0 ||
	    wr == NULL)
		return RPMA_E_INVAL;
	ret = check_flush_type(conn, dst, type);
	if (ret)
		return ret;

	rpma__flush_fill(conn->flush, dst, dst_offset, len, type, flags, wr_id,
			 wr);
	return 0;
}

int rpma_wr_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
		 size_t offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr)
{
	const struct rpma__mr_part part = {src, offset, len};

	if (!rpma__conn_is_valid(conn) || flags == 0 || wr == NULL ||
	    !is_valid_part(&part))
		return RPMA_E_INVAL;

	rpma__mr_fill_send(wr, IBV_WR_SEND, &part, flags, wr_id);
	return 0;
}

int rpma_wr_send_with_imm(struct rpma_conn *conn,
			  const struct rpma_mr_local *src, size_t offset,
			  size_t len, int flags, uint32_t imm, uint64_t wr_id,
			  struct rpma_send_wr *wr)
{
	int ret = rpma_wr_send(conn, src, offset, len, flags, wr_id, wr);

	if (ret)
		return ret;
	wr->wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr->wr.imm_data = htonl(imm);
	return 0;
}

int rpma_wr_recv(struct rpma_mr_local *dst, size_t offset, size_t len,
		 uint64_t wr_id, struct rpma_recv_wr *wr)
{
	const struct rpma__mr_part part = {dst, offset, len};

	if (wr == NULL || !is_valid_part(&part))
		return RPMA_E_INVAL;

	rpma__mr_fill_recv(wr, &part, wr_id);
	return 0;
}

int rpma_conn_post_send(struct rpma_conn *conn, const void *owner,
			struct rpma_send_wr *wr, struct rpma_send_wr **bad_wr)
{
	int ret;

	if (!rpma__conn_is_valid(conn) || wr == NULL || bad_wr == NULL ||
	    conn->id->qp == NULL)
		return RPMA_E_INVAL;
	if (!rpma__claim_is_held_by(&conn->claim, owner))
		return RPMA_E_SHARED_CHANNEL;

	ret = rpma__post_send(conn->id->qp, wr, bad_wr);
	return ret ? rpma__post_error("ibv_post_send", ret) : 0;
}

int rpma_conn_post_recv(struct rpma_conn *conn, const void *owner,
			struct rpma_recv_wr *wr, struct rpma_recv_wr **bad_wr)
{
	int ret;

	if (!rpma__conn_is_valid(conn) || wr == NULL || bad_wr == NULL ||
	    conn->id->qp == NULL)
		return RPMA_E_INVAL;
	if (!rpma__claim_is_held_by(&conn->claim, owner))
		return RPMA_E_SHARED_CHANNEL;

	ret = rpma__post_recv(conn->id->qp, wr, bad_wr);
	return ret ? rpma__post_error("ibv_post_recv", ret) : 0;
}
