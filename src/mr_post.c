/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Filling in work requests. No state; any thread. */

#include "mr_post.h"

#include "mr.h"
#include "mr_desc.h"

/* Returns how many elements there are: 1, or 0 without a region. */
static int fill_sge(struct ibv_sge *sge, const struct rpma__mr_part *part)
{
	const struct ibv_mr *mr;

	if (part->mr == NULL)
		return 0;
	mr = part->mr->ibv_mr;
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)mr->addr + part->offset,
		.length = (uint32_t)part->len,
		.lkey = mr->lkey,
	};
	return 1;
}

unsigned rpma__send_flags(int flags)
{
	if (flags & RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR)
		return IBV_SEND_SIGNALED;
	return 0;
}

void rpma__mr_fill_send(struct rpma_send_wr *wr, enum ibv_wr_opcode opcode,
			const struct rpma__mr_part *part, int flags,
			uint64_t wr_id)
{
	int num_sge = fill_sge(&wr->sge, part);

	wr->native = 0;
	wr->wr = (struct ibv_send_wr){
		.wr_id = wr_id,
		.sg_list = num_sge ? &wr->sge : NULL,
		.num_sge = num_sge,
		.opcode = opcode,
		.send_flags = rpma__send_flags(flags),
	};
}

void rpma__mr_fill_rdma(struct rpma_send_wr *wr, enum ibv_wr_opcode opcode,
			const struct rpma__mr_part *part,
			const struct rpma_mr_remote *remote,
			size_t remote_offset, int flags, uint64_t wr_id)
{
	rpma__mr_fill_send(wr, opcode, part, flags, wr_id);
	if (remote == NULL)
		return;
	wr->wr.wr.rdma.remote_addr = remote->raddr + remote_offset;
	wr->wr.wr.rdma.rkey = remote->rkey;
}

void rpma__mr_fill_recv(struct rpma_recv_wr *wr,
			const struct rpma__mr_part *part, uint64_t wr_id)
{
	int num_sge = fill_sge(&wr->sge, part);

	wr->wr = (struct ibv_recv_wr){
		.wr_id = wr_id,
		.sg_list = num_sge ? &wr->sge : NULL,
		.num_sge = num_sge,
	};
}
