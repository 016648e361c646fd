/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Operations as work requests: the rules for arguments, and how each work
 * request is filled in. Inline, both for calls that prepare a work request and
 * for calls that post the work request at once. Touches only the work request.
 * Arguments are described at rpma_wr_*().
 */

#ifndef RPMA_WR_FILL_H
#define RPMA_WR_FILL_H 1

#include <arpa/inet.h>
#include <string.h>

#include "conn.h"
#include "mr_post.h"
#include "wr_flags.h"
#include "log.h"

/*
 * Says why a work request is wrong, if no pointer is NULL: the flags, or words.
 */
#define RPMA__FLAGS_FAULT(flags, words) \
	((flags) == 0 ? "flags is 0: set an RPMA_F_COMPLETION_* flag" : (words))
/*
 * Says why an RDMA work request is wrong, which names two regions, or no region
 * and no bytes.
 */
#define RPMA__RDMA_FAULT(flags, src, dst)                                     \
	RPMA__FLAGS_FAULT(flags, (src) != NULL ? "dst is NULL and src is not" \
				 : (dst) != NULL                              \
					 ? "src is NULL and dst is not"       \
					 : "src and dst are NULL, and "       \
					   "an offset or len is not 0")

/*
 * Returns true if both regions are given, or if neither region is given and
 * there are no bytes.
 */
static inline bool rpma__is_valid_rdma(const struct rpma_sge *part,
				       const struct rpma_mr_remote *remote,
				       size_t remote_offset)
{
	if (part->mr && remote)
		return true;
	return part->mr == NULL && remote == NULL && part->offset == 0 &&
	       remote_offset == 0 && part->len == 0;
}

static inline int rpma__wr_read(struct rpma_conn *conn,
				struct rpma_mr_local *dst, size_t dst_offset,
				const struct rpma_mr_remote *src,
				size_t src_offset, size_t len, int flags,
				uint64_t wr_id, struct rpma_send_wr *wr)
{
	const struct rpma_sge part = {dst, dst_offset, len};

	if (rpma__wr_has_flags(flags))
		return rpma__wr_flags_read(conn, dst, dst_offset, src,
					   src_offset, len, flags, wr_id, wr);
	if (!rpma__conn_is_valid(conn) || flags == 0 || wr == NULL ||
	    !rpma__is_valid_rdma(&part, src, src_offset))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn),
					RPMA__RDMA_FAULT(flags, src, dst), conn,
					wr);

	rpma__mr_fill_rdma(wr, IBV_WR_RDMA_READ, &part, src, src_offset, flags,
			   wr_id);
	return 0;
}

static inline int rpma__wr_write(struct rpma_conn *conn,
				 const struct rpma_mr_remote *dst,
				 size_t dst_offset,
				 const struct rpma_mr_local *src,
				 size_t src_offset, size_t len, int flags,
				 uint64_t wr_id, struct rpma_send_wr *wr)
{
	const struct rpma_sge part = {src, src_offset, len};

	if (rpma__wr_has_flags(flags))
		return rpma__wr_flags_write(conn, dst, dst_offset, src,
					    src_offset, len, flags, wr_id, wr);
	if (!rpma__conn_is_valid(conn) || flags == 0 || wr == NULL ||
	    !rpma__is_valid_rdma(&part, dst, dst_offset))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn),
					RPMA__RDMA_FAULT(flags, src, dst), conn,
					wr);

	rpma__mr_fill_rdma(wr, IBV_WR_RDMA_WRITE, &part, dst, dst_offset, flags,
			   wr_id);
	return 0;
}

static inline int
rpma__wr_write_with_imm(struct rpma_conn *conn,
			const struct rpma_mr_remote *dst, size_t dst_offset,
			const struct rpma_mr_local *src, size_t src_offset,
			size_t len, int flags, uint32_t imm, uint64_t wr_id,
			struct rpma_send_wr *wr)
{
	int ret;

	if (rpma__wr_has_flags(flags))
		return rpma__wr_flags_write_with_imm(conn, dst, dst_offset, src,
						     src_offset, len, flags,
						     imm, wr_id, wr);
	ret = rpma__wr_write(conn, dst, dst_offset, src, src_offset, len, flags,
			     wr_id, wr);
	if (ret)
		return ret;
	wr->wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->wr.imm_data = htonl(imm);
	return 0;
}

static inline int rpma__wr_atomic_write(struct rpma_conn *conn,
					const struct rpma_mr_remote *dst,
					size_t dst_offset, const char src[8],
					int flags, uint64_t wr_id,
					struct rpma_send_wr *wr)
{
	const struct rpma_sge none = {0};

	if (rpma__wr_has_flags(flags))
		return rpma__wr_flags_atomic_write(conn, dst, dst_offset, src,
						   flags, wr_id, wr);
	if (!rpma__conn_is_valid(conn) || dst == NULL || src == NULL ||
	    flags == 0 || wr == NULL ||
	    dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT)
		return RPMA_REFUSE_NULL(
			rpma__conn_refusal(conn),
			RPMA__FLAGS_FAULT(flags,
					  "dst_offset is no multiple of 8"),
			conn, dst, src, wr);

	rpma__mr_fill_rdma(wr, IBV_WR_RDMA_WRITE, &none, dst, dst_offset, flags,
			   wr_id);
	memcpy(&wr->data, src, sizeof(wr->data));
	if (conn->has_atomic_write) {
		wr->native = RPMA__NATIVE_ATOMIC_WRITE;
		/* fence: as below; the device orders its own flushes */
		if (!rpma__flush_is_native(conn->flush))
			wr->wr.send_flags |= IBV_SEND_FENCE;
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
	wr->native_arg = RPMA__BYTES_OURS;
	return 0;
}

static inline int rpma__wr_flush(struct rpma_conn *conn,
				 const struct rpma_mr_remote *dst,
				 size_t dst_offset, size_t len,
				 enum rpma_flush_type type, int flags,
				 uint64_t wr_id, struct rpma_send_wr *wr)
{
	int ret;

	if (rpma__wr_has_flags(flags))
		return rpma__wr_flags_flush(conn, dst, dst_offset, len, type,
					    flags, wr_id, wr);
	if (!rpma__conn_is_valid(conn) || dst == NULL || flags == 0 ||
	    wr == NULL)
		return RPMA_REFUSE_NULL(
			rpma__conn_refusal(conn),
			"flags is 0: set an RPMA_F_COMPLETION_* flag", conn,
			dst, wr);
	ret = rpma__conn_check_flush(conn, dst, len, type);
	if (ret)
		return ret;

	rpma__flush_fill(conn->flush, dst, dst_offset, len, type, flags, wr_id,
			 wr);
	return 0;
}

static inline int rpma__wr_send(struct rpma_conn *conn,
				const struct rpma_mr_local *src, size_t offset,
				size_t len, int flags, uint64_t wr_id,
				struct rpma_send_wr *wr)
{
	const struct rpma_sge part = {src, offset, len};

	if (rpma__wr_has_flags(flags))
		return rpma__wr_flags_send(conn, src, offset, len, flags, wr_id,
					   wr);
	if (!rpma__conn_is_valid(conn) || flags == 0 || wr == NULL ||
	    !rpma__is_valid_part(&part))
		return RPMA_REFUSE_NULL(
			rpma__conn_refusal(conn),
			RPMA__FLAGS_FAULT(flags,
					  "src is NULL, and offset or len "
					  "is not 0"),
			conn, wr);

	rpma__mr_fill_send(wr, IBV_WR_SEND, &part, flags, wr_id);
	return 0;
}

static inline int rpma__wr_send_with_imm(struct rpma_conn *conn,
					 const struct rpma_mr_local *src,
					 size_t offset, size_t len, int flags,
					 uint32_t imm, uint64_t wr_id,
					 struct rpma_send_wr *wr)
{
	int ret;

	if (rpma__wr_has_flags(flags))
		return rpma__wr_flags_send_with_imm(conn, src, offset, len,
						    flags, imm, wr_id, wr);
	ret = rpma__wr_send(conn, src, offset, len, flags, wr_id, wr);
	if (ret)
		return ret;
	wr->wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr->wr.imm_data = htonl(imm);
	return 0;
}

#endif /* RPMA_WR_FILL_H */
