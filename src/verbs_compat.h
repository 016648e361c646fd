/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * All that depends on the version of rdma-core: the native atomic write (since
 * 44, if the kernel's headers have it too) and the native flush (since 45).
 * Built without one of them, the library emulates it.
 */

#ifndef RPMA_VERBS_COMPAT_H
#define RPMA_VERBS_COMPAT_H 1

#include "librpma.h"

/* What a device can do and the library can use. */
struct rpma__caps {
	bool odp; /* on-demand paging for read and write of RC */
	bool native_atomic_write;
	bool native_flush; /* of both types */
	bool atomics;	   /* compare and swap, fetch and add */
	uint32_t max_srq_sge;
	/* of a queue of a queue pair, for the words of a refusal */
	uint32_t max_qp_wr;
	uint32_t max_sge;
};

/* rpma_send_wr.native */
enum rpma__native {
	RPMA__NATIVE_NONE,
	RPMA__NATIVE_ATOMIC_WRITE,
	RPMA__NATIVE_FLUSH, /* native_arg: enum rpma_flush_type */
};

/* rpma_send_wr.native_arg without a native operation: whose the bytes are */
enum rpma__bytes {
	RPMA__BYTES_CALLERS,
	RPMA__BYTES_OURS, /* an emulated operation: they are not replaced */
};

/* E_PROVIDER if the device does not answer; logged. */
int rpma__caps_query(struct ibv_context *ibv_ctx, struct rpma__caps *caps);

/* The access flags of ibv_reg_mr() for a native flush of this type. */
int rpma__access_flush(enum rpma_flush_type type);

/* Fills send_ops_flags and its bit of comp_mask, if there is any to set. */
void rpma__qp_attr_set_ops(const struct rpma__caps *caps,
			   struct ibv_qp_init_attr_ex *attr);

bool rpma__qp_has_atomic_write(struct ibv_qp *qp);
bool rpma__qp_has_flush(struct ibv_qp *qp);

/*
 * Posts the native work requests from first up to, not including, end. All or
 * none: returns 0 or an errno.
 */
int rpma__post_native(struct ibv_qp *qp, const struct rpma_send_wr *first,
		      const struct rpma_send_wr *end);

/* The opcode of a completion as it is where nothing is native. */
enum ibv_wc_opcode rpma__wc_emulated(enum ibv_wc_opcode opcode);

#endif /* RPMA_VERBS_COMPAT_H */
