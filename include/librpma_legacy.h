/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The calls that librpma had before 1.0, for old sources: see
 * rpma_conn_completion_get(3), also for the calls of today. Programs built
 * against an old library need no header; librpma has the old symbol versions.
 */

#ifndef LIBRPMA_LEGACY_H
#define LIBRPMA_LEGACY_H 1

#include <librpma.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rpma_op {
	RPMA_OP_READ, /* flushes complete as reads too */
	RPMA_OP_WRITE,
	RPMA_OP_FLUSH, /* no release ever returned this */
	RPMA_OP_SEND,
	RPMA_OP_RECV,
	RPMA_OP_RECV_RDMA_WITH_IMM
};

/* As 0.10 and 0.11 had it. Failed: only op_context and op_status are set. */
struct rpma_completion {
	void *op_context;
	enum rpma_op op;
	uint32_t byte_len;
	enum ibv_wc_status op_status;
	unsigned flags; /* wc_flags of struct ibv_wc */
	uint32_t imm;	/* host order; set if flags has IBV_WC_WITH_IMM */
};

/* The CQ of a connection; if it has an RCQ, that is where receives complete. */
int rpma_conn_completion_wait(struct rpma_conn *conn);
int rpma_conn_completion_get(struct rpma_conn *conn,
			     struct rpma_completion *cmpl);
int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd);

/* The first names of the first two. */
int rpma_conn_prepare_completions(const struct rpma_conn *conn);
int rpma_conn_next_completion(const struct rpma_conn *conn,
			      struct rpma_completion *cmpl);

/* One completion of any CQ. */
int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl);

/* Eight bytes of a region, after the reads and flushes before it. */
int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst,
		      size_t dst_offset, const struct rpma_mr_local *src,
		      size_t src_offset, int flags, const void *op_context);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_LEGACY_H */
