/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The flags that 1.4 added to operations. A call with one of them is prepared
 * here, out of line: the usual call has a branch and nothing else.
 */

#ifndef RPMA_WR_FLAGS_H
#define RPMA_WR_FLAGS_H 1

#include "librpma.h"

#define RPMA__WR_FLAGS (RPMA_F_FENCE | RPMA_F_SOLICITED | RPMA_F_INLINE)

static inline bool rpma__wr_has_flags(int flags)
{
	return __builtin_expect(flags & RPMA__WR_FLAGS, 0);
}

/*
 * As the functions of wr_fill.h. Also E_INVAL, logged: a flag that the
 * operation does not take, or too many bytes to be inline.
 */
int rpma__wr_flags_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
			size_t dst_offset, const struct rpma_mr_remote *src,
			size_t src_offset, size_t len, int flags,
			uint64_t wr_id, struct rpma_send_wr *wr);
int rpma__wr_flags_write(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 const struct rpma_mr_local *src, size_t src_offset,
			 size_t len, int flags, uint64_t wr_id,
			 struct rpma_send_wr *wr);
int rpma__wr_flags_write_with_imm(struct rpma_conn *conn,
				  const struct rpma_mr_remote *dst,
				  size_t dst_offset,
				  const struct rpma_mr_local *src,
				  size_t src_offset, size_t len, int flags,
				  uint32_t imm, uint64_t wr_id,
				  struct rpma_send_wr *wr);
int rpma__wr_flags_atomic_write(struct rpma_conn *conn,
				const struct rpma_mr_remote *dst,
				size_t dst_offset, const char src[8], int flags,
				uint64_t wr_id, struct rpma_send_wr *wr);
int rpma__wr_flags_flush(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 size_t len, enum rpma_flush_type type, int flags,
			 uint64_t wr_id, struct rpma_send_wr *wr);
int rpma__wr_flags_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
			size_t offset, size_t len, int flags, uint64_t wr_id,
			struct rpma_send_wr *wr);
int rpma__wr_flags_send_with_imm(struct rpma_conn *conn,
				 const struct rpma_mr_local *src, size_t offset,
				 size_t len, int flags, uint32_t imm,
				 uint64_t wr_id, struct rpma_send_wr *wr);

/* What is left of them for whoever knows none of 1.4; not 0. */
int rpma__wr_flags_plain(int flags);
/* E_INVAL, logged, for an operation that has no bytes of the caller's. */
int rpma__wr_flags_check_other(int flags);
/* ret: of preparing it without them */
int rpma__wr_flags_add(int ret, int flags, struct rpma_send_wr *wr);

#endif /* RPMA_WR_FLAGS_H */
