/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Flushing: native if the QP supports flushes, else a read of 8 bytes into a
 * buffer, which orders the writes before the read. The connections of a peer
 * share the buffer: no thread looks at the bytes in the buffer. Immutable after
 * new.
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
	struct rpma__flush_buffer *buffer; /* has raw and raw_mr */
};

/*
 * Makes the flush of a connection. Returns E_NOMEM, or E_PROVIDER (logged). An
 * emulated flush uses the buffer registered in the protection domain of `peer`.
 */
int rpma__flush_new(struct rpma_peer *peer, struct ibv_qp *qp,
		    struct rpma__flush **flush_ptr);
/*
 * Deletes a flush, after the QP is destroyed, because a read in flight writes
 * to the buffer. *flush_ptr may be NULL. Returns E_PROVIDER or E_INVAL
 * (munmap), logged.
 */
int rpma__flush_delete(struct rpma__flush **flush_ptr);

static inline bool rpma__flush_is_native(const struct rpma__flush *flush)
{
	return flush->raw == NULL;
}

/* Fills in a work request; len of a native flush fits 32 bits. */
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

/*
 * Locks the list of buffers around a fork, so that no other thread is inside
 * the list.
 */
void rpma__flush_lock(void);
void rpma__flush_unlock(void);

/* Frees the memory of a flush that another process made. */
void rpma__flush_abandon(struct rpma__flush **flush_ptr);

#endif /* RPMA_FLUSH_H */
