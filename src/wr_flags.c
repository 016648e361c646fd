/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Operations with flags that release 1.4 added: checks the flags, prepares the
 * operation without the flags, then adds the flags of verbs. Any thread.
 */

#include "wr_flags.h"

#include <assert.h>

#include "conn.h"
#include "log.h"
#include "wr_fill.h"

/* The flags have the order of the flags of verbs, this many bits higher. */
#define SHIFT 24

static_assert(RPMA_F_FENCE == IBV_SEND_FENCE << SHIFT, "");
static_assert(RPMA_F_SOLICITED == IBV_SEND_SOLICITED << SHIFT, "");
static_assert(RPMA_F_INLINE == IBV_SEND_INLINE << SHIFT, "");

int rpma__wr_flags_plain(int flags)
{
	return (flags & ~RPMA__WR_FLAGS) | RPMA_F_COMPLETION_ON_ERROR;
}

int rpma__wr_flags_add(int ret, int flags, struct rpma_send_wr *wr)
{
	if (ret == 0)
		wr->wr.send_flags |=
			(unsigned)(flags & RPMA__WR_FLAGS) >> SHIFT;
	return ret;
}

static int wr_flags_check_not_solicited(int flags)
{
	if (!(flags & RPMA_F_SOLICITED))
		return 0;
	RPMA_LOG_ERROR("RPMA_F_SOLICITED: only sends and writes with immediate "
		       "data complete at the other side");
	return RPMA_E_INVAL;
}

int rpma__wr_flags_check_other(int flags)
{
	if (flags & RPMA_F_INLINE) {
		RPMA_LOG_ERROR("RPMA_F_INLINE: only sends and writes have "
			       "bytes of a region to copy");
		return RPMA_E_INVAL;
	}
	return wr_flags_check_not_solicited(flags);
}

/*
 * Checks the length before the length is cut to 32 bits: a few inline bytes
 * would pass for more than 4 GiB.
 */
static int wr_flags_check_inline(const struct rpma_conn *conn, int flags,
				 size_t len)
{
	if (!rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", conn);
	if (!(flags & RPMA_F_INLINE) || len <= conn->max_inline_data)
		return 0;
	RPMA_LOG_ERROR("RPMA_F_INLINE: %zu bytes, the connection takes %u; "
		       "rpma_conn_cfg_set_max_inline_data() asks for more",
		       len, conn->max_inline_data);
	return RPMA_E_INVAL;
}

int rpma__wr_flags_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
			size_t dst_offset, const struct rpma_mr_remote *src,
			size_t src_offset, size_t len, int flags,
			uint64_t wr_id, struct rpma_send_wr *wr)
{
	int ret = rpma__wr_flags_check_other(flags);

	if (ret == 0)
		ret = rpma__wr_read(conn, dst, dst_offset, src, src_offset, len,
				    rpma__wr_flags_plain(flags), wr_id, wr);
	return rpma__wr_flags_add(ret, flags, wr);
}

int rpma__wr_flags_write(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 const struct rpma_mr_local *src, size_t src_offset,
			 size_t len, int flags, uint64_t wr_id,
			 struct rpma_send_wr *wr)
{
	int ret = wr_flags_check_not_solicited(flags);

	if (ret == 0)
		ret = wr_flags_check_inline(conn, flags, len);
	if (ret == 0)
		ret = rpma__wr_write(conn, dst, dst_offset, src, src_offset,
				     len, rpma__wr_flags_plain(flags), wr_id,
				     wr);
	return rpma__wr_flags_add(ret, flags, wr);
}

int rpma__wr_flags_write_with_imm(struct rpma_conn *conn,
				  const struct rpma_mr_remote *dst,
				  size_t dst_offset,
				  const struct rpma_mr_local *src,
				  size_t src_offset, size_t len, int flags,
				  uint32_t imm, uint64_t wr_id,
				  struct rpma_send_wr *wr)
{
	int ret = wr_flags_check_inline(conn, flags, len);

	if (ret == 0)
		ret = rpma__wr_write_with_imm(
			conn, dst, dst_offset, src, src_offset, len,
			rpma__wr_flags_plain(flags), imm, wr_id, wr);
	return rpma__wr_flags_add(ret, flags, wr);
}

int rpma__wr_flags_atomic_write(struct rpma_conn *conn,
				const struct rpma_mr_remote *dst,
				size_t dst_offset, const char src[8], int flags,
				uint64_t wr_id, struct rpma_send_wr *wr)
{
	int ret = rpma__wr_flags_check_other(flags);

	if (ret == 0)
		ret = rpma__wr_atomic_write(conn, dst, dst_offset, src,
					    rpma__wr_flags_plain(flags), wr_id,
					    wr);
	return rpma__wr_flags_add(ret, flags, wr);
}

int rpma__wr_flags_flush(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 size_t len, enum rpma_flush_type type, int flags,
			 uint64_t wr_id, struct rpma_send_wr *wr)
{
	int ret = rpma__wr_flags_check_other(flags);

	if (ret == 0)
		ret = rpma__wr_flush(conn, dst, dst_offset, len, type,
				     rpma__wr_flags_plain(flags), wr_id, wr);
	return rpma__wr_flags_add(ret, flags, wr);
}

int rpma__wr_flags_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
			size_t offset, size_t len, int flags, uint64_t wr_id,
			struct rpma_send_wr *wr)
{
	int ret = wr_flags_check_inline(conn, flags, len);

	if (ret == 0)
		ret = rpma__wr_send(conn, src, offset, len,
				    rpma__wr_flags_plain(flags), wr_id, wr);
	return rpma__wr_flags_add(ret, flags, wr);
}

int rpma__wr_flags_send_with_imm(struct rpma_conn *conn,
				 const struct rpma_mr_local *src, size_t offset,
				 size_t len, int flags, uint32_t imm,
				 uint64_t wr_id, struct rpma_send_wr *wr)
{
	int ret = wr_flags_check_inline(conn, flags, len);

	if (ret == 0)
		ret = rpma__wr_send_with_imm(conn, src, offset, len,
					     rpma__wr_flags_plain(flags), imm,
					     wr_id, wr);
	return rpma__wr_flags_add(ret, flags, wr);
}
