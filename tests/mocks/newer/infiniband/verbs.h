/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * verbs.h of an rdma-core with the native atomic write and flush, for tests of
 * the code that uses them; the build finds out what the installed one lacks.
 */

#include_next <infiniband/verbs.h>

#ifndef MOCKS_NEWER_VERBS_H
#define MOCKS_NEWER_VERBS_H

#ifdef MOCK_ATOMIC_WRITE
#define IB_UVERBS_DEVICE_ATOMIC_WRITE (1ULL << 40)
#endif

#ifdef MOCK_FLUSH
#define IBV_ACCESS_FLUSH_GLOBAL		  (1 << 8)
#define IBV_ACCESS_FLUSH_PERSISTENT	  (1 << 9)
#define IB_UVERBS_DEVICE_FLUSH_GLOBAL	  (1ULL << 38)
#define IB_UVERBS_DEVICE_FLUSH_PERSISTENT (1ULL << 39)
#define IBV_QP_EX_WITH_FLUSH		  (1 << 11)
#define IBV_WC_FLUSH			  ((enum ibv_wc_opcode)8)
#define IBV_FLUSH_GLOBAL		  1
#define IBV_FLUSH_PERSISTENT		  2
#define IBV_FLUSH_RANGE			  0

/* a slot that nobody here uses says whether the QP can */
#define wr_flush wr_bind_mw

void ibv_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
		  size_t len, uint8_t type, uint8_t level);
#endif

#endif /* MOCKS_NEWER_VERBS_H */
