/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Work requests over memory regions: addresses, keys and lengths. The caller
 * has checked its arguments. A NULL region stands for no bytes and no key. Work
 * requests are filled in in place, and inline: most of the time of a post is
 * spent here.
 */

#ifndef RPMA_MR_POST_H
#define RPMA_MR_POST_H 1

#include <string.h>

#include "librpma.h"
#include "mr.h"
#include "mr_desc.h"
#include "verbs_compat.h"
#include "log.h"

static inline void rpma__mr_fill_sge(struct ibv_sge *sge,
				     const struct rpma_sge *part)
{
	const struct ibv_mr *mr = part->mr->ibv_mr;

	sge->addr = part->mr->addr + part->offset;
	sge->length = (uint32_t)part->len;
	sge->lkey = mr->lkey;
}

/*
 * Returns the flags of verbs: signaled only if RPMA_F_COMPLETION_ALWAYS is set,
 * which is more than errors. For the flags added in release 1.4 see wr_flags.h.
 */
static inline unsigned rpma__send_flags(int flags)
{
	if (flags & RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR)
		return IBV_SEND_SIGNALED;
	return 0;
}

/*
 * Clears a work request in two halves: GCC would clear the whole with rep stos,
 * which takes longer than the rest of the call.
 */
static inline void rpma__mr_clear(struct ibv_send_wr *wr)
{
	const size_t half = sizeof(*wr) / 2;

	memset(wr, 0, half);
	memset((char *)wr + half, 0, sizeof(*wr) - half);
}

static inline void rpma__mr_fill_send(struct rpma_send_wr *wr,
				      enum ibv_wr_opcode opcode,
				      const struct rpma_sge *part, int flags,
				      uint64_t wr_id)
{
	rpma__mr_clear(&wr->wr);
	wr->native = RPMA__NATIVE_NONE;
	wr->native_arg = RPMA__BYTES_CALLERS;
	wr->wr.wr_id = wr_id;
	wr->wr.opcode = opcode;
	wr->wr.send_flags = rpma__send_flags(flags);
	if (part->mr == NULL)
		return;
	rpma__mr_fill_sge(&wr->sge, part);
	wr->wr.sg_list = &wr->sge;
	wr->wr.num_sge = 1;
}

/* Fills in an RDMA read or write. */
static inline void rpma__mr_fill_rdma(struct rpma_send_wr *wr,
				      enum ibv_wr_opcode opcode,
				      const struct rpma_sge *part,
				      const struct rpma_mr_remote *remote,
				      size_t remote_offset, int flags,
				      uint64_t wr_id)
{
	rpma__mr_fill_send(wr, opcode, part, flags, wr_id);
	if (remote == NULL)
		return;
	wr->wr.wr.rdma.remote_addr = remote->raddr + remote_offset;
	wr->wr.wr.rdma.rkey = remote->rkey;
}

static inline void rpma__mr_fill_recv(struct rpma_recv_wr *wr,
				      const struct rpma_sge *part,
				      uint64_t wr_id)
{
	memset(&wr->wr, 0, sizeof(wr->wr));
	wr->wr.wr_id = wr_id;
	if (part->mr == NULL)
		return;
	rpma__mr_fill_sge(&wr->sge, part);
	wr->wr.sg_list = &wr->sge;
	wr->wr.num_sge = 1;
}

/* Returns true for a region, or for no bytes. */
static inline bool rpma__is_valid_part(const struct rpma_sge *part)
{
	return part->mr || (part->offset == 0 && part->len == 0);
}

static inline int rpma__mr_recv_wr(struct rpma_mr_local *dst, size_t offset,
				   size_t len, uint64_t wr_id,
				   struct rpma_recv_wr *wr)
{
	const struct rpma_sge part = {dst, offset, len};

	if (wr == NULL || !rpma__is_valid_part(&part))
		return RPMA_REFUSE_NULL(RPMA_E_INVAL,
					"dst is NULL, and offset or len is "
					"not 0",
					wr);

	rpma__mr_fill_recv(wr, &part, wr_id);
	return 0;
}

#endif /* RPMA_MR_POST_H */
