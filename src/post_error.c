/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The error of a post that the device refused. */

#include "post_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "err.h"
#include "log.h"
#include "verbs_compat.h"

#define PART_MAX 128

static const char *post_error_opcode_name(const struct rpma_send_wr *wr)
{
	if (wr->native == RPMA__NATIVE_ATOMIC_WRITE)
		return "ATOMIC_WRITE";
	if (wr->native == RPMA__NATIVE_FLUSH)
		return "FLUSH";
	switch (wr->wr.opcode) {
	case IBV_WR_RDMA_WRITE:
		return "RDMA_WRITE";
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return "RDMA_WRITE_WITH_IMM";
	case IBV_WR_SEND:
		return "SEND";
	case IBV_WR_SEND_WITH_IMM:
		return "SEND_WITH_IMM";
	case IBV_WR_RDMA_READ:
		return "RDMA_READ";
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return "ATOMIC_CMP_AND_SWP";
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return "ATOMIC_FETCH_AND_ADD";
	default:
		return "?";
	}
}

/*
 * Formats the local bytes; of a list, which may be long, only the first piece.
 */
static void post_error_format_local(char *buf, const struct ibv_sge *sge,
				    int num_sge)
{
	if (num_sge < 1) {
		snprintf(buf, PART_MAX, "no bytes");
		return;
	}
	snprintf(buf, PART_MAX,
		 "addr 0x%" PRIx64 ", length %" PRIu32 ", lkey 0x%" PRIx32 "%s",
		 sge->addr, sge->length, sge->lkey,
		 num_sge > 1 ? ", and more pieces" : "");
}

/* Formats the remote address: ", ..." or nothing. */
static void post_error_format_remote(char *buf, const struct rpma_send_wr *wr)
{
	uint64_t addr = wr->wr.wr.rdma.remote_addr;
	uint32_t rkey = wr->wr.wr.rdma.rkey;

	buf[0] = '\0';
	if (wr->wr.opcode == IBV_WR_SEND ||
	    wr->wr.opcode == IBV_WR_SEND_WITH_IMM)
		return;
	if (wr->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wr->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		addr = wr->wr.wr.atomic.remote_addr;
		rkey = wr->wr.wr.atomic.rkey;
	}
	snprintf(buf, PART_MAX, ", remote addr 0x%" PRIx64 ", rkey 0x%" PRIx32,
		 addr, rkey);
}

/* Returns advice; size: the name of the queue size in the configuration */
#define ADVICE(err, size)                                                     \
	((err) == ENOMEM ? ": the queue is full: take completions first, or " \
			   "make " size " larger"                             \
			 : "")

/* Leaves the reason in errno. */
static int post_error_provider(int err)
{
	errno = err;
	return RPMA_E_PROVIDER;
}

int rpma__send_refused(const struct rpma_send_wr *wr, int ret)
{
	int err = rpma__err_errno(ret);
	char local[PART_MAX];
	char remote[PART_MAX];

	if (wr->native == RPMA__NATIVE_FLUSH)
		snprintf(local, PART_MAX, "length %" PRIu32, wr->sge.length);
	else
		post_error_format_local(local, wr->wr.sg_list, wr->wr.num_sge);
	post_error_format_remote(remote, wr);
	RPMA_LOG_ERROR("%s(%s, wr_id 0x%" PRIx64 ", send_flags 0x%x, %s%s) "
		       "failed: %s%s",
		       wr->native ? "ibv_wr_complete" : "ibv_post_send",
		       post_error_opcode_name(wr), wr->wr.wr_id,
		       wr->wr.send_flags, local, remote, rpma__errno_2str(err),
		       ADVICE(err, "sq_size"));
	return post_error_provider(err);
}

int rpma__recv_refused(const char *call, const struct ibv_recv_wr *wr, int ret)
{
	int err = rpma__err_errno(ret);
	char local[PART_MAX];

	post_error_format_local(local, wr->sg_list, wr->num_sge);
	RPMA_LOG_ERROR("%s(wr_id 0x%" PRIx64 ", %s) failed: %s%s", call,
		       wr->wr_id, local, rpma__errno_2str(err),
		       ADVICE(err, "rq_size"));
	return post_error_provider(err);
}

int rpma__send_chain_refused(const struct rpma_send_wr *wr, int ret)
{
	return rpma__err_errno(ret) == ENOMEM ? RPMA_E_AGAIN
					      : rpma__send_refused(wr, ret);
}

int rpma__recv_chain_refused(const char *call, const struct rpma_recv_wr *wr,
			     int ret)
{
	return rpma__err_errno(ret) == ENOMEM
		       ? RPMA_E_AGAIN
		       : rpma__recv_refused(call, &wr->wr, ret);
}
