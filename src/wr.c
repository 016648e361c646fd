/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Operations as work requests: preparing work requests, and posting chains. The
 * whole chain is checked before the first work request is posted.
 */

#include "wr.h"

#include <inttypes.h>
#include <string.h>

#include "conn.h"
#include "log.h"
#include "peer.h"
#include "post_error.h"
#include "verbs_compat.h"
#include "wr_fill.h"
#include "tsan/tsan.h"

static struct rpma_send_wr *wr_next_of(const struct rpma_send_wr *wr)
{
	return (struct rpma_send_wr *)wr->wr.next;
}

/*
 * Returns the last work request of the run that starts a chain: verbs post a
 * run with one call.
 */
static struct rpma_send_wr *wr_last_of_run(struct rpma_send_wr *wr)
{
	bool native = wr->native != RPMA__NATIVE_NONE;

	while (wr_next_of(wr) &&
	       (wr_next_of(wr)->native != RPMA__NATIVE_NONE) == native)
		wr = wr_next_of(wr);
	return wr;
}

static int wr_post_native_run(struct ibv_qp *qp, struct rpma_send_wr *first,
			      struct rpma_send_wr *end,
			      struct rpma_send_wr **bad_wr)
{
	int ret;

	tsan_posts(qp);
	ret = rpma__post_native(qp, first, end);
	if (ret)
		*bad_wr = first;
	return ret;
}

/* Posts a chain without native work requests. */
static int wr_post_plain(struct ibv_qp *qp, struct rpma_send_wr *first,
			 struct rpma_send_wr **bad_wr)
{
	struct ibv_send_wr *bad = NULL;
	int ret;

	tsan_posts(qp);
	ret = ibv_post_send(qp, &first->wr, &bad);
	if (ret)
		*bad_wr = bad ? (struct rpma_send_wr *)bad : first;
	return ret;
}

static int wr_post_plain_run(struct ibv_qp *qp, struct rpma_send_wr *first,
			     struct rpma_send_wr *last,
			     struct rpma_send_wr **bad_wr)
{
	struct ibv_send_wr *next = last->wr.next;
	int ret;

	last->wr.next = NULL;
	ret = wr_post_plain(qp, first, bad_wr);
	last->wr.next = next;
	return ret;
}

int rpma__post_send(struct ibv_qp *qp, struct rpma_send_wr *wr,
		    struct rpma_send_wr **bad_wr)
{
	int ret = 0;

	while (wr && ret == 0) {
		struct rpma_send_wr *last = wr_last_of_run(wr);
		struct rpma_send_wr *end = wr_next_of(last);

		if (wr->native == RPMA__NATIVE_NONE)
			ret = wr_post_plain_run(qp, wr, last, bad_wr);
		else
			ret = wr_post_native_run(qp, wr, end, bad_wr);
		wr = end;
	}
	return ret;
}

int rpma__post_recv(struct ibv_qp *qp, struct rpma_recv_wr *wr,
		    struct rpma_recv_wr **bad_wr)
{
	struct ibv_recv_wr *bad = NULL;
	int ret;

	tsan_posts(qp);
	ret = ibv_post_recv(qp, &wr->wr, &bad);
	if (ret)
		*bad_wr = bad ? (struct rpma_recv_wr *)bad : wr;
	return ret;
}

/*
 * Fills in the fields that the fast calls do not need; ret: the result of
 * preparing.
 */
static int wr_prepared(int ret, struct rpma_send_wr *wr)
{
	if (ret == 0)
		memset(wr->reserved, 0, sizeof(wr->reserved));
	return ret;
}

int rpma_wr_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
		 size_t dst_offset, const struct rpma_mr_remote *src,
		 size_t src_offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr)
{
	return wr_prepared(rpma__wr_read(conn, dst, dst_offset, src, src_offset,
					 len, flags, wr_id, wr),
			   wr);
}

int rpma_wr_write(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, const struct rpma_mr_local *src,
		  size_t src_offset, size_t len, int flags, uint64_t wr_id,
		  struct rpma_send_wr *wr)
{
	return wr_prepared(rpma__wr_write(conn, dst, dst_offset, src,
					  src_offset, len, flags, wr_id, wr),
			   wr);
}

int rpma_wr_write_with_imm(struct rpma_conn *conn,
			   const struct rpma_mr_remote *dst, size_t dst_offset,
			   const struct rpma_mr_local *src, size_t src_offset,
			   size_t len, int flags, uint32_t imm, uint64_t wr_id,
			   struct rpma_send_wr *wr)
{
	return wr_prepared(rpma__wr_write_with_imm(conn, dst, dst_offset, src,
						   src_offset, len, flags, imm,
						   wr_id, wr),
			   wr);
}

int rpma_wr_atomic_write(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 const char src[8], int flags, uint64_t wr_id,
			 struct rpma_send_wr *wr)
{
	return wr_prepared(rpma__wr_atomic_write(conn, dst, dst_offset, src,
						 flags, wr_id, wr),
			   wr);
}

int rpma_wr_flush(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, size_t len, enum rpma_flush_type type,
		  int flags, uint64_t wr_id, struct rpma_send_wr *wr)
{
	return wr_prepared(rpma__wr_flush(conn, dst, dst_offset, len, type,
					  flags, wr_id, wr),
			   wr);
}

int rpma_wr_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
		 size_t offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr)
{
	return wr_prepared(
		rpma__wr_send(conn, src, offset, len, flags, wr_id, wr), wr);
}

int rpma_wr_send_with_imm(struct rpma_conn *conn,
			  const struct rpma_mr_local *src, size_t offset,
			  size_t len, int flags, uint32_t imm, uint64_t wr_id,
			  struct rpma_send_wr *wr)
{
	return wr_prepared(rpma__wr_send_with_imm(conn, src, offset, len, flags,
						  imm, wr_id, wr),
			   wr);
}

int rpma_wr_recv(struct rpma_mr_local *dst, size_t offset, size_t len,
		 uint64_t wr_id, struct rpma_recv_wr *wr)
{
	int ret = rpma__mr_recv_wr(dst, offset, len, wr_id, wr);

	if (ret == 0)
		memset(wr->reserved, 0, sizeof(wr->reserved));
	return ret;
}

/* Prepares an atomic operation; opcode: compare and swap, or fetch and add. */
static int wr_prepare_atomic(struct rpma_conn *conn, enum ibv_wr_opcode opcode,
			     const struct rpma_sge *old,
			     const struct rpma_mr_remote *dst,
			     size_t dst_offset, int flags, uint64_t wr_id,
			     struct rpma_send_wr *wr)
{
	uint64_t addr;

	if (!rpma__conn_is_valid(conn) || old->mr == NULL || dst == NULL ||
	    flags == 0 || wr == NULL)
		return RPMA_REFUSE_NULL(
			rpma__conn_refusal(conn),
			"flags is 0: set an RPMA_F_COMPLETION_* flag", conn,
			old->mr, dst, wr);
	if (rpma__wr_flags_check_other(flags))
		return RPMA_E_INVAL;
	addr = dst->raddr + dst_offset;
	if (addr % sizeof(uint64_t)) {
		RPMA_LOG_ERROR("address 0x%" PRIx64 " of an atomic is no "
			       "multiple of 8",
			       addr);
		return RPMA_E_INVAL;
	}
	if (!rpma__peer_has_atomics(conn->peer))
		return RPMA_E_NOSUPP;

	rpma__mr_fill_send(wr, opcode, old, flags, wr_id);
	wr->wr.wr.atomic.remote_addr = addr;
	wr->wr.wr.atomic.rkey = dst->rkey;
	return wr_prepared(rpma__wr_flags_add(0, flags, wr), wr);
}

int rpma_wr_atomic_cmp_swp(struct rpma_conn *conn, struct rpma_mr_local *old,
			   size_t old_offset, const struct rpma_mr_remote *dst,
			   size_t dst_offset, uint64_t compare, uint64_t swap,
			   int flags, uint64_t wr_id, struct rpma_send_wr *wr)
{
	const struct rpma_sge bytes = {old, old_offset, sizeof(uint64_t)};
	int ret = wr_prepare_atomic(conn, IBV_WR_ATOMIC_CMP_AND_SWP, &bytes,
				    dst, dst_offset, flags, wr_id, wr);

	if (ret)
		return ret;
	wr->wr.wr.atomic.compare_add = compare;
	wr->wr.wr.atomic.swap = swap;
	return 0;
}

int rpma_wr_atomic_fetch_add(struct rpma_conn *conn, struct rpma_mr_local *old,
			     size_t old_offset,
			     const struct rpma_mr_remote *dst,
			     size_t dst_offset, uint64_t add, int flags,
			     uint64_t wr_id, struct rpma_send_wr *wr)
{
	const struct rpma_sge bytes = {old, old_offset, sizeof(uint64_t)};
	int ret = wr_prepare_atomic(conn, IBV_WR_ATOMIC_FETCH_AND_ADD, &bytes,
				    dst, dst_offset, flags, wr_id, wr);

	if (ret)
		return ret;
	wr->wr.wr.atomic.compare_add = add;
	return 0;
}

static int wr_fill_list(const struct rpma_sge *list, int count,
			struct ibv_sge *sge)
{
	int i;

	if (list == NULL || count < 1 || sge == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "count is below 1", list,
					sge);
	for (i = 0; i < count; i++) {
		if (list[i].mr == NULL || list[i].len > UINT32_MAX) {
			RPMA_LOG_ERROR("piece %d of %d: needs a region, and "
				       "less than 4 GiB",
				       i, count);
			return RPMA_E_INVAL;
		}
	}
	for (i = 0; i < count; i++)
		rpma__mr_fill_sge(&sge[i], &list[i]);
	return 0;
}

/* Returns true if the caller may choose the bytes of the operation. */
static bool wr_takes_list(const struct rpma_send_wr *wr)
{
	if (wr->native != RPMA__NATIVE_NONE ||
	    wr->native_arg == RPMA__BYTES_OURS)
		return false;
	return wr->wr.opcode != IBV_WR_ATOMIC_CMP_AND_SWP &&
	       wr->wr.opcode != IBV_WR_ATOMIC_FETCH_AND_ADD;
}

int rpma_wr_set_sge_list(const struct rpma_sge *list, int count,
			 struct ibv_sge *sge, struct rpma_send_wr *wr)
{
	int ret;

	if (wr == NULL || !wr_takes_list(wr))
		return RPMA_REFUSE_NULL(
			RPMA_E_INVAL,
			"the operation of wr takes no list of pieces (sge)",
			wr);
	ret = wr_fill_list(list, count, sge);
	if (ret)
		return ret;
	wr->wr.sg_list = sge;
	wr->wr.num_sge = count;
	return 0;
}

int rpma_wr_recv_set_sge_list(const struct rpma_sge *list, int count,
			      struct ibv_sge *sge, struct rpma_recv_wr *wr)
{
	int ret;

	if (wr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", wr);
	ret = wr_fill_list(list, count, sge);
	if (ret)
		return ret;
	wr->wr.sg_list = sge;
	wr->wr.num_sge = count;
	return 0;
}

/* Checks a work request; at: index in the chain, from 0 */
static int wr_check_one(int at, const uint64_t *reserved, int num_sge,
			uint32_t max_sge)
{
	if (reserved[0] | reserved[1]) {
		RPMA_LOG_ERROR("work request %d: reserved words are not 0", at);
		return RPMA_E_INVAL;
	}
	/* a negative number counts as too many, too */
	if ((uint32_t)num_sge > max_sge) {
		RPMA_LOG_ERROR("work request %d: %d pieces, the queue takes %u",
			       at, num_sge, max_sge);
		return RPMA_E_INVAL;
	}
	return 0;
}

/*
 * Checks each work request of a chain once; looks for the wrong work request
 * only if there is an error.
 */
static int wr_check_send(const struct rpma_send_wr *first, uint32_t max_sge,
			 bool *has_native)
{
	const struct rpma_send_wr *wr;
	uint64_t wrong = 0;
	uint32_t native = 0;
	int ret = 0;
	int at = 0;

	for (wr = first; wr; wr = wr_next_of(wr)) {
		wrong |= wr->reserved[0] | wr->reserved[1] |
			 ((uint32_t)wr->wr.num_sge > max_sge);
		native |= wr->native;
	}
	*has_native = native != RPMA__NATIVE_NONE;
	if (wrong == 0)
		return 0;
	for (wr = first; wr && ret == 0; wr = wr_next_of(wr))
		ret = wr_check_one(at++, wr->reserved, wr->wr.num_sge, max_sge);
	return ret;
}

int rpma__wr_check_recv(const struct rpma_recv_wr *first, uint32_t max_sge)
{
	const struct rpma_recv_wr *wr;
	uint64_t wrong = 0;
	int ret = 0;
	int at = 0;

	for (wr = first; wr; wr = (const struct rpma_recv_wr *)wr->wr.next)
		wrong |= wr->reserved[0] | wr->reserved[1] |
			 ((uint32_t)wr->wr.num_sge > max_sge);
	if (wrong == 0)
		return 0;
	wr = first;
	for (; ret == 0 && wr; wr = (const struct rpma_recv_wr *)wr->wr.next)
		ret = wr_check_one(at++, wr->reserved, wr->wr.num_sge, max_sge);
	return ret;
}

static int wr_check_post(const struct rpma_conn *conn, const void *owner,
			 const void *wr, const void *bad_wr)
{
	if (!rpma__conn_is_valid(conn) || wr == NULL || bad_wr == NULL ||
	    conn->id->qp == NULL)
		return RPMA_REFUSE_NULL(
			rpma__conn_refusal(conn),
			"the connection has no queue pair any more", conn, wr,
			bad_wr);
	if (rpma__claim_is_held_by(&conn->claim, owner))
		return 0;
	return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL, "owner has no claim on conn");
}

int rpma_conn_post_send(struct rpma_conn *conn, const void *owner,
			struct rpma_send_wr *wr, struct rpma_send_wr **bad_wr)
{
	int ret = wr_check_post(conn, owner, wr, bad_wr);
	bool has_native;

	if (ret == 0)
		ret = wr_check_send(wr, conn->max_send_sge, &has_native);
	if (ret) {
		if (bad_wr)
			*bad_wr = wr;
		return ret;
	}
	ret = has_native ? rpma__post_send(conn->id->qp, wr, bad_wr)
			 : wr_post_plain(conn->id->qp, wr, bad_wr);
	return ret ? rpma__send_chain_refused(*bad_wr, ret) : 0;
}

int rpma_conn_post_recv(struct rpma_conn *conn, const void *owner,
			struct rpma_recv_wr *wr, struct rpma_recv_wr **bad_wr)
{
	int ret = wr_check_post(conn, owner, wr, bad_wr);

	if (ret == 0)
		ret = rpma__wr_check_recv(wr, conn->max_recv_sge);
	if (ret) {
		if (bad_wr)
			*bad_wr = wr;
		return ret;
	}
	ret = rpma__post_recv(conn->id->qp, wr, bad_wr);
	return ret ? rpma__recv_chain_refused("ibv_post_recv", *bad_wr, ret)
		   : 0;
}
