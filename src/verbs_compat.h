/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Everything that depends on the version of rdma-core: the native atomic write
 * (since 44, if the headers of the kernel have the native atomic write too) and
 * the native flush (since 45). Built without native support, the library
 * emulates the operation.
 */

#ifndef RPMA_VERBS_COMPAT_H
#define RPMA_VERBS_COMPAT_H 1

#include "librpma.h"

/* The capabilities of a device, as far as the library can use them. */
struct rpma__caps {
	bool odp; /* on-demand paging for read and write of RC */
	bool native_atomic_write;
	bool native_flush; /* of both types */
	bool atomics;	   /* compare and swap, fetch and add */
	uint32_t max_srq_sge;
	/* limits of the queues of a queue pair, for the text of a refusal */
	uint32_t max_qp_wr;
	uint32_t max_sge;
};

/* rpma_send_wr.native */
enum rpma__native {
	RPMA__NATIVE_NONE,
	RPMA__NATIVE_ATOMIC_WRITE,
	RPMA__NATIVE_FLUSH, /* native_arg: enum rpma_flush_type */
};

/* rpma_send_wr.native_arg without a native operation: the owner of the bytes */
enum rpma__bytes {
	RPMA__BYTES_CALLERS,
	RPMA__BYTES_OURS, /* an emulated operation: the bytes are never
			   * replaced */
};

/* Reads the capabilities. Returns E_PROVIDER, logged, if the device fails. */
int rpma__caps_query(struct ibv_context *ibv_ctx, struct rpma__caps *caps);

/* Returns the access flags of ibv_reg_mr() for a native flush of the type. */
int rpma__access_flush(enum rpma_flush_type type);

/* Fills in send_ops_flags and the bit in comp_mask, if any flag is needed. */
void rpma__qp_attr_set_ops(const struct rpma__caps *caps,
			   struct ibv_qp_init_attr_ex *attr);

bool rpma__qp_has_atomic_write(struct ibv_qp *qp);
bool rpma__qp_has_flush(struct ibv_qp *qp);

/*
 * Posts the native work requests from first up to, not including, end: all, or
 * no work request. Returns 0 or an errno.
 */
int rpma__post_native(struct ibv_qp *qp, const struct rpma_send_wr *first,
		      const struct rpma_send_wr *end);

/* Returns the opcode of a completion as if no operation were native. */
enum ibv_wc_opcode rpma__wc_emulated(enum ibv_wc_opcode opcode);

#endif /* RPMA_VERBS_COMPAT_H */
