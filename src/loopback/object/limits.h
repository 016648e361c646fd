/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * limits.h -- the limits that the device advertises and enforces.
 */

#ifndef LB_OBJECT_LIMITS_H
#define LB_OBJECT_LIMITS_H

enum {
	LB_MAX_DEVICES = 8,
	LB_MAX_GIDS = 16,
	LB_MAX_QP = 65000, /* of the process */
	LB_MAX_QP_WR = 16384,
	LB_MAX_SGE = 16,
	LB_MAX_INLINE = 256,
	LB_MAX_CQ = 4096,
	LB_MAX_CQE = (1 << 22) - 1, /* as cards have */
	LB_ROWS =
		65536, /* of the table of keys; regions and windows have one */
	LB_MAX_MR = 49152,
	LB_MAX_MW = 16383,
	LB_MAX_PD = 4096,
	LB_MAX_SRQ = 1024,
	LB_MAX_SRQ_WR = 16384,
	LB_MAX_AH = 65536,	  /* as cards have */
	LB_MAX_MCAST_GRP = 8192,  /* of the process, as the next */
	LB_MAX_MCAST_ATTACH = 56, /* QPs of one group */
	LB_MAX_RD_ATOM = 16,
	LB_MAX_MSG = 1 << 30,
	LB_MAX_PKEYS = 1,
	LB_COMP_VECTORS = 4,
};

/* RoCE MTU of the only port */
#define LB_MTU	     IBV_MTU_4096
#define LB_MTU_BYTES 4096u

#endif /* LB_OBJECT_LIMITS_H */
