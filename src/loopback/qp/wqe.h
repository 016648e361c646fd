/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wqe.h -- a work request in a send queue.
 */

#ifndef LB_QP_WQE_H
#define LB_QP_WQE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/newer.h"

#define LB_NO_ROUTE 255 /* the datagram fails when executed */

/* Where a datagram goes, as its address handle says. */
struct lb_route {
	uint8_t sgid; /* index in the table of the sender's device */
	bool is_multicast;
	uint8_t device; /* index, unless it is multicast; or LB_NO_ROUTE */
	uint8_t traffic_class;
	uint8_t dgid[16]; /* of bytes, for a work request has room for those */
};

/* A work request in the send queue. */
struct lb_wqe {
	uint64_t wr_id;
	union {
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
		};
		struct {
			uint64_t flush_addr; /* is remote_addr */
			uint32_t flush_length;
			uint8_t flush_type; /* enum ibv_placement_type */
			bool flush_all;	    /* of the region */
		};
		struct {
			uint32_t qkey;
			struct lb_route route;
		};
	};
	uint32_t length; /* of the message */
	uint32_t rkey;
	uint32_t imm;	/* network byte order, or rkey to invalidate */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags;	/* enum ibv_send_flags */
	uint8_t nsge;
	uint8_t is_inline;
	union {
		struct ibv_sge sge[1]; /* as many as the QP may have */
		uint8_t data[1];
	};
};

static inline bool lb_wqe_reads(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ ||
	       wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/*
 * Returns true if the answer takes a resource of the peer: few resources for
 * reads.
 */
static inline bool lb_wqe_is_counted(const struct lb_wqe *wqe)
{
	return lb_wqe_reads(wqe) || wqe->opcode == IBV_WR_ATOMIC_WRITE ||
	       wqe->opcode == LB_WR_FLUSH;
}

/* Returns true if the request has nothing to do with a peer. */
static inline bool lb_wqe_is_local(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}

#endif /* LB_QP_WQE_H */
