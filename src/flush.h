/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Flushing: natively where the QP can, else by reading 8 bytes back into a
 * buffer, which orders the writes before it. The connections of a peer share
 * it: nobody looks at the bytes in it. Immutable after new.
 */

#ifndef RPMA_FLUSH_H
#define RPMA_FLUSH_H 1

#include "librpma.h"
#include "mr_post.h"

#define RPMA__RAW_SIZE 8

struct rpma__flush {
	/* all NULL if the QP flushes natively */
	void *raw;
	struct rpma_mr_local *raw_mr;
	struct rpma__flush_buffer *buffer; /* which has both */
};

/* E_NOMEM, or E_PROVIDER (logged). Holds memory of the peer if emulated. */
int rpma__flush_new(struct rpma_peer *peer, struct ibv_qp *qp,
		    struct rpma__flush **flush_ptr);
/*
 * After the QP is destroyed, for a read in flight writes to the buffer. NULL
 * behind the pointer is fine. E_PROVIDER, E_INVAL (munmap), logged.
 */
int rpma__flush_delete(struct rpma__flush **flush_ptr);

static inline bool rpma__flush_is_native(const struct rpma__flush *flush)
{
	return flush->raw == NULL;
}

/* len: of a native one it fits 32 bits. */
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
	if (!rpma__flush_is_native(flush))
		return;
	wr->native = RPMA__NATIVE_FLUSH;
	wr->native_arg = (uint32_t)type;
	wr->sge.length = (uint32_t)len;
}

/* Around a fork: no other thread is inside the list of buffers. */
void rpma__flush_lock(void);
void rpma__flush_unlock(void);

/* A flush of another process: frees what this process has of it. */
void rpma__flush_abandon(struct rpma__flush **flush_ptr);

#endif /* RPMA_FLUSH_H */
