/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bind.c -- work requests that bind a memory window or make a key invalid: they
 * have nothing to do with a peer. sq.lock held.
 */

#include "exec/bind.h"

#include <errno.h>

#include "memory/mr.h"
#include "memory/mw.h"
#include "qp/qp.h"
#include "qp/wqe.h"

int lb_bind_set(struct lb_wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info)
{
	struct lb_mw_bind ask;
	int err = lb_mw_ask(&ask, mw, rkey, info);

	if (err)
		return err;
	wqe->rkey = ask.rkey;
	wqe->imm = ask.lkey;
	wqe->remote_addr = ask.addr;
	wqe->compare_add = ask.length;
	wqe->swap = ask.access;
	return 0;
}

int lb_bind_execute(const struct lb_qp *qp, const struct lb_wqe *wqe)
{
	const struct lb_mr_user user = {qp->pd, qp->order};
	const struct lb_mw_bind ask = {
		.rkey = wqe->rkey,
		.lkey = wqe->imm,
		.access = (uint32_t)wqe->swap,
		.addr = wqe->remote_addr,
		.length = wqe->compare_add,
	};

	if (wqe->opcode == IBV_WR_BIND_MW)
		return lb_mw_bind(&ask, &user) ? 0 : IBV_WC_MW_BIND_ERR;
	return lb_mw_invalidate(wqe->imm, qp->pd) ? 0 : IBV_WC_LOC_QP_OP_ERR;
}
