/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * prepare.c -- work requests of the send side in librpma's form; see prepare.h.
 * Posters, inside the gate.
 */

#include "conn/prepare.h"

#include "conn/conn.h"

static int prepare_flush(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
			 uint64_t wr_id, int flags, struct rpma_send_wr *out)
{
	int ret = 0;

	if (wr->flush_type == RPMA_FLUSH_TYPE_PERSISTENT)
		ret = rt_peer_apply_poster(conn);
	if (ret)
		return ret;
	return rpma_wr_flush(conn->conn, wr->remote, wr->remote_offset, wr->len,
			     (enum rpma_flush_type)wr->flush_type, flags, wr_id,
			     out);
}

/* part: its first piece. flags: librpma's */
static int prepare(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		   const struct rpma_sge *part, uint64_t wr_id, int flags,
		   struct rpma_send_wr *out)
{
	struct rpma_conn *c = conn->conn;

	switch (wr->op) {
	case RPMA_RT_OP_SEND:
		return rpma_wr_send(c, part->mr, part->offset, part->len, flags,
				    wr_id, out);
	case RPMA_RT_OP_SEND_WITH_IMM:
		return rpma_wr_send_with_imm(c, part->mr, part->offset,
					     part->len, flags, wr->imm, wr_id,
					     out);
	case RPMA_RT_OP_WRITE:
		return rpma_wr_write(c, wr->remote, wr->remote_offset, part->mr,
				     part->offset, part->len, flags, wr_id,
				     out);
	case RPMA_RT_OP_WRITE_WITH_IMM:
		return rpma_wr_write_with_imm(c, wr->remote, wr->remote_offset,
					      part->mr, part->offset, part->len,
					      flags, wr->imm, wr_id, out);
	case RPMA_RT_OP_READ: /* a piece is const, whatever it is for */
		return rpma_wr_read(c,
				    (struct rpma_mr_local *)(uintptr_t)part->mr,
				    part->offset, wr->remote, wr->remote_offset,
				    part->len, flags, wr_id, out);
	case RPMA_RT_OP_FLUSH:
		return prepare_flush(conn, wr, wr_id, flags, out);
	case RPMA_RT_OP_ATOMIC_WRITE:
		return rpma_wr_atomic_write(c, wr->remote, wr->remote_offset,
					    wr->data, flags, wr_id, out);
	case RPMA_RT_OP_COMPARE_SWAP:
		return rpma_wr_atomic_cmp_swp(c, wr->local, wr->local_offset,
					      wr->remote, wr->remote_offset,
					      wr->compare_add, wr->swap, flags,
					      wr_id, out);
	case RPMA_RT_OP_FETCH_ADD:
		return rpma_wr_atomic_fetch_add(
			c, wr->local, wr->local_offset, wr->remote,
			wr->remote_offset, wr->compare_add, flags, wr_id, out);
	}
	return RPMA_E_INVAL;
}

int rt_prepare_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		    uint64_t wr_id, bool signaled, struct ibv_sge *sge,
		    struct rpma_send_wr *out)
{
	const struct rpma_sge whole = {wr->local, wr->local_offset, wr->len};
	const struct rpma_sge *part = wr->piece_count ? wr->pieces : &whole;
	int flags = (int)(wr->flags &
			  (RPMA_F_FENCE | RPMA_F_SOLICITED | RPMA_F_INLINE)) |
		    (signaled ? RPMA_F_COMPLETION_ALWAYS
			      : RPMA_F_COMPLETION_ON_ERROR);
	int ret = prepare(conn, wr, part, wr_id, flags, out);

	if (ret || wr->piece_count == 0)
		return ret;
	return rpma_wr_set_sge_list(wr->pieces, (int)wr->piece_count, sge, out);
}

int rt_prepare_check(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		     int index)
{
	struct rpma_send_wr scratch;
	int ret = rt_prepare_send(conn, wr, 0, true, NULL, &scratch);

	return ret ? rt_wr_refuse_for(index, ret) : 0;
}
