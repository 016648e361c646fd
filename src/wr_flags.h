/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The flags that release 1.4 added to operations. A call with such a flag is
 * prepared here, out of line: the usual call has a branch and nothing else.
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
 * Prepare operations with flags, like the functions of wr_fill.h. Return also
 * E_INVAL, logged: the operation does not take the flag, or the inline bytes
 * are too many.
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

/*
 * Returns flags without the flags of release 1.4, for the functions that do not
 * know the new flags. Adds RPMA_F_COMPLETION_ON_ERROR, because these functions
 * refuse flags of 0.
 */
int rpma__wr_flags_plain(int flags);
/* Returns E_INVAL, logged, for an operation without bytes of the caller. */
int rpma__wr_flags_check_other(int flags);
/* Adds the flags to a prepared work request; ret: the result of preparing. */
int rpma__wr_flags_add(int ret, int flags, struct rpma_send_wr *wr);

#endif /* RPMA_WR_FLAGS_H */
