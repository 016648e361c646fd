/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Flushing: natively where the QP can, else by reading 8 bytes back into a
 * buffer of the connection, which orders the writes before it. Immutable after
 * new; nobody looks at the bytes in the buffer, so any number of flushes may
 * share it.
 */

#ifndef RPMA_FLUSH_H
#define RPMA_FLUSH_H 1

#include "librpma.h"
#include "mr_post.h"

#define RPMA__RAW_SIZE 8

struct rpma__flush {
	/* all NULL if the QP flushes natively */
	void *raw;
	size_t raw_size; /* as mapped */
	struct rpma_mr_local *raw_mr;
};

/* E_NOMEM, or E_PROVIDER (logged). Holds memory of the peer if emulated. */
int rpma__flush_new(struct rpma_peer *peer, struct ibv_qp *qp,
		    struct rpma__flush **flush_ptr);
/*
 * After the QP is destroyed, for a read in flight writes to the buffer. NULL
 * behind the pointer is fine. E_PROVIDER, E_INVAL (munmap), logged.
 */
int rpma__flush_delete(struct rpma__flush **flush_ptr);

static inline void rpma__flush_fill(const struct rpma__flush *flush,
				    const struct rpma_mr_remote *dst,
				    size_t dst_offset, size_t len,
				    enum rpma_flush_type type, int flags,
				    uint64_t wr_id, struct rpma_send_wr *wr)
{
	const struct rpma_sge raw = {
		.mr = flush->raw_mr,
		.len = RPMA__RAW_SIZE,
	};

	rpma__mr_fill_rdma(wr, IBV_WR_RDMA_READ, &raw, dst, dst_offset, flags,
			   wr_id);
	wr->native_arg = RPMA__BYTES_OURS;
	if (flush->raw)
		return;
	wr->native = RPMA__NATIVE_FLUSH;
	wr->native_arg = (uint32_t)type;
	wr->sge.length = (uint32_t)len;
}

/* A flush of another process: frees what this process has of it. */
void rpma__flush_abandon(struct rpma__flush **flush_ptr);

#endif /* RPMA_FLUSH_H */
