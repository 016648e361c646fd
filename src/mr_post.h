/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Work requests over memory regions: what the addresses, keys and lengths are.
 * The caller has checked its arguments. A NULL region: no bytes, no key.
 */

#ifndef RPMA_MR_POST_H
#define RPMA_MR_POST_H 1

#include "librpma.h"

/* One side of an operation: bytes of a region here. */
struct rpma__mr_part {
	const struct rpma_mr_local *mr;
	size_t offset;
	size_t len;
};

/* Signaled only if RPMA_F_COMPLETION_ALWAYS asks for more than errors. */
unsigned rpma__send_flags(int flags);

/* RDMA read or write. */
void rpma__mr_fill_rdma(struct rpma_send_wr *wr, enum ibv_wr_opcode opcode,
			const struct rpma__mr_part *part,
			const struct rpma_mr_remote *remote,
			size_t remote_offset, int flags, uint64_t wr_id);
void rpma__mr_fill_send(struct rpma_send_wr *wr, enum ibv_wr_opcode opcode,
			const struct rpma__mr_part *part, int flags,
			uint64_t wr_id);
void rpma__mr_fill_recv(struct rpma_recv_wr *wr,
			const struct rpma__mr_part *part, uint64_t wr_id);

#endif /* RPMA_MR_POST_H */
