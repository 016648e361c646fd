/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * prepare.h -- work requests of the send side in librpma's form, and the opcode
 * that each completes with. Inline for a plain one: a send, write or read of
 * one piece, without anything special.
 */

#ifndef RT_CONN_PREPARE_H
#define RT_CONN_PREPARE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/wr.h"
#include "conn/conn.h"

/* enum ibv_wc_opcode of native operations; headers may lack them */
#define RT_PREPARE_WC_FLUSH	   8
#define RT_PREPARE_WC_ATOMIC_WRITE 9

/* A valid one; its pieces go to sge. ERRORS: librpma's */
int rt_prepare_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		    uint64_t wr_id, bool signaled, struct ibv_sge *sge,
		    struct rpma_send_wr *out);
/* A valid one: is it of those that only librpma knows enough of? */
static inline bool rt_prepare_may_refuse(const struct rpma_rt_wr *wr)
{
	return wr->op == RPMA_RT_OP_FLUSH || wr->op >= RPMA_RT_OP_COMPARE_SWAP;
}

/* Could such a one be prepared? That of index. ERRORS: librpma's, noted with
 * the index */
int rt_prepare_check(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		     int index);

/* A plain one. */
static inline int rt_prepare_plain(struct rpma_conn *c,
				   const struct rpma_rt_wr *wr, uint64_t wr_id,
				   bool signaled, struct rpma_send_wr *out)
{
	const int flags = signaled ? RPMA_F_COMPLETION_ALWAYS
				   : RPMA_F_COMPLETION_ON_ERROR;

	if (wr->op == RPMA_RT_OP_WRITE)
		return rpma_wr_write(c, wr->remote, wr->remote_offset,
				     wr->local, wr->local_offset, wr->len,
				     flags, wr_id, out);
	if (wr->op == RPMA_RT_OP_SEND)
		return rpma_wr_send(c, wr->local, wr->local_offset, wr->len,
				    flags, wr_id, out);
	return rpma_wr_read(c, wr->local, wr->local_offset, wr->remote,
			    wr->remote_offset, wr->len, flags, wr_id, out);
}

/* The opcode that its completion has when it succeeds. */
static inline uint8_t rt_prepare_opcode(uint32_t op, bool is_native)
{
	static const uint8_t opcodes[] = {
		[RPMA_RT_OP_SEND] = IBV_WC_SEND,
		[RPMA_RT_OP_SEND_WITH_IMM] = IBV_WC_SEND,
		[RPMA_RT_OP_WRITE] = IBV_WC_RDMA_WRITE,
		[RPMA_RT_OP_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[RPMA_RT_OP_READ] = IBV_WC_RDMA_READ,
		[RPMA_RT_OP_FLUSH] = IBV_WC_RDMA_READ,
		[RPMA_RT_OP_ATOMIC_WRITE] = IBV_WC_RDMA_WRITE,
		[RPMA_RT_OP_COMPARE_SWAP] = IBV_WC_COMP_SWAP,
		[RPMA_RT_OP_FETCH_ADD] = IBV_WC_FETCH_ADD,
	};

	if (is_native)
		return op == RPMA_RT_OP_FLUSH ? RT_PREPARE_WC_FLUSH
					      : RT_PREPARE_WC_ATOMIC_WRITE;
	return opcodes[op];
}

#endif /* RT_CONN_PREPARE_H */
