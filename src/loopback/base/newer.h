/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * newer.h -- what rdma-core 56 knows and 44 does not: requests to flush, and
 * the capability bit of atomic writes. Built with one that does not, the device
 * has neither; the numbers here, which are the kernel's, then name what no
 * program can ask for.
 */

#ifndef LB_BASE_NEWER_H
#define LB_BASE_NEWER_H

#include <infiniband/verbs.h>

#ifdef RPMA_HAVE_NATIVE_FLUSH
#define LB_WR_FLUSH	    IBV_WR_FLUSH
#define LB_WC_FLUSH	    IBV_WC_FLUSH
#define LB_FLUSH_GLOBAL	    IBV_FLUSH_GLOBAL
#define LB_FLUSH_PERSISTENT IBV_FLUSH_PERSISTENT
#define LB_FLUSH_MR	    IBV_FLUSH_MR
#define LB_ACCESS_GLOBAL    IBV_ACCESS_FLUSH_GLOBAL
#define LB_ACCESS_FLUSH	    (LB_ACCESS_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define LB_SEND_OPS_FLUSH   IBV_QP_EX_WITH_FLUSH
#define LB_CAPS_FLUSH \
	(IB_UVERBS_DEVICE_FLUSH_GLOBAL | IB_UVERBS_DEVICE_FLUSH_PERSISTENT)
#else
#define LB_WR_FLUSH	    14
#define LB_WC_FLUSH	    8
#define LB_FLUSH_GLOBAL	    1u
#define LB_FLUSH_PERSISTENT 2u
#define LB_FLUSH_MR	    1u
#define LB_ACCESS_FLUSH	    0
#define LB_SEND_OPS_FLUSH   0
#define LB_CAPS_FLUSH	    0
#endif

#ifdef RPMA_HAVE_NATIVE_ATOMIC_WRITE
#define LB_CAPS_ATOMIC_WRITE IB_UVERBS_DEVICE_ATOMIC_WRITE
#else
#define LB_CAPS_ATOMIC_WRITE 0
#endif

/* events of rdma_cm that headers of release 44 lack */
#define LB_CM_USER     18
#define LB_CM_INTERNAL 19

/* the rights to flush, by the kernel's numbers, as a queue pair has them */
#define LB_RIGHT_FLUSH_GLOBAL	  (1u << 8)
#define LB_RIGHT_FLUSH_PERSISTENT (1u << 9)

#endif /* LB_BASE_NEWER_H */
