/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wr.c -- faults of work requests, in words; and which devices post by a system
 * call.
 */

#define _GNU_SOURCE
#include "base/wr.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"

/* ------------------------------------------------------------------- wr --- */

const char *rt_wr_pieces_fault(const struct rpma_sge *pieces, uint32_t count,
			       uint32_t max_sge)
{
	uint32_t i;

	if (pieces == NULL)
		return "has piece_count and no pieces";
	if (count > max_sge)
		return "has more pieces than max_sge";
	for (i = 0; i < count; i++) {
		if (pieces[i].mr == NULL || pieces[i].len > UINT32_MAX)
			return "has a piece without region, or of 4 GiB";
	}
	return NULL;
}

const char *rt_wr_recv_fault(const struct rpma_rt_recv_wr *wr, uint32_t max_sge)
{
	if (wr->reserved32)
		return "has a reserved word that is not 0";
	if (!rt_wr_is_context(wr->context))
		return RT_WR_CONTEXT_FAULT;
	if (wr->piece_count != 0 && (wr->offset | wr->len))
		return "has pieces, and an offset or length beside them";
	if (wr->piece_count != 0)
		return rt_wr_pieces_fault(wr->pieces, wr->piece_count, max_sge);
	if (wr->dst == NULL && (wr->offset | wr->len))
		return "has a length and no region";
	return NULL;
}

int rt_wr_refuse(int index, const char *fault)
{
	return rt_refuse_wr(RPMA_E_INVAL, index, fault);
}

int rt_wr_refuse_call(const char *name, const void *owner, int count)
{
	if (owner == NULL)
		return rt_refuse_null_at(RT_LOG_HERE, name, 0);
	if (count < 0)
		return RT_REFUSE(RPMA_E_INVAL,
				 "count is %d: give how many work requests to "
				 "post, 0 or more",
				 count);
	return RT_REFUSE(RPMA_E_INVAL, "wr is NULL, and count is %d", count);
}

int rt_wr_refuse_for(int index, int error)
{
	return rt_refuse_wr(error, index, "is one that librpma refuses");
}

/* ----------------------------------------------------------------- verb --- */

/* Libraries of devices that post without a system call, by a part of the
 * library's file name. The loopback device makes system calls, but disables
 * cancellation in each system call. */
static const char *const without[] = {
	"librpma_loopback", "libmlx5",	     "libmlx4",	 "libirdma",
	"libbnxt_re",	    "libcxgb4",	     "libefa",	 "liberdma",
	"libhns",	    "libmana",	     "libmthca", "libocrdma",
	"libqedr",	    "libvmw_pvrdma",
};

/* Returns the name of the file that has the function; "": not known. */
static const char *verb_file_of(int (*post)(struct ibv_qp *qp,
					    struct ibv_send_wr *wr,
					    struct ibv_send_wr **bad))
{
	const char *slash;
	void *address;
	Dl_info info;

	memcpy(&address, &post, sizeof(address));
	if (address == NULL || dladdr(address, &info) == 0 ||
	    info.dli_fname == NULL)
		return "";
	slash = strrchr(info.dli_fname, '/');
	return slash != NULL ? slash + 1 : info.dli_fname;
}

bool rt_verb_is_plain(const struct ibv_context *ibv_ctx)
{
	const char *file = verb_file_of(ibv_ctx->ops.post_send);
	size_t i;

	if (rt_order_is_shown())
		return false;
	for (i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		if (strncmp(file, without[i], strlen(without[i])) == 0)
			return true;
	}
	return false;
}

int rt_verb_post_send_guarded(struct ibv_qp *qp, struct ibv_send_wr *wr,
			      struct ibv_send_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(qp);
	before = rt_cancel_disable();
	ret = ibv_post_send(qp, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}

int rt_verb_post_recv_guarded(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(qp);
	before = rt_cancel_disable();
	ret = ibv_post_recv(qp, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}

int rt_verb_post_srq_recv_guarded(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				  struct ibv_recv_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(srq);
	before = rt_cancel_disable();
	ret = ibv_post_srq_recv(srq, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}
