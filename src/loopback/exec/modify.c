/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * modify.c -- the state machines of RC, UC and UD queue pairs: the transitions,
 * the required and allowed attributes of each, and their effects here.
 */

#include <errno.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/log.h"
#include "exec/run.h"
#include "fault/fault.h"
#include "object/device.h"
#include "object/limits.h"
#include "object/object.h"
#include "qp/ah.h"
#include "qp/flush.h"
#include "qp/kick.h"
#include "qp/number.h"
#include "qp/qp.h"
#include "qp/sq.h"
#include "rpma_loopback.h"
#include "wire/link.h"
#include "wire/nic.h"

#define STATES	     (IBV_QPS_ERR + 1)
#define MAX_RETRY    7
#define MAX_RNR_CODE 31
#define MAX_TIMEOUT  31

struct transition {
	bool legal;
	int must; /* besides IBV_QP_STATE */
	int may;
};

static const struct transition table[STATES][STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_INIT] =
				{
					.legal = true,
					.must = IBV_QP_PKEY_INDEX |
						IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS,
				},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_INIT] =
				{
					.legal = true,
					.may = IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS,
				},
			[IBV_QPS_RTR] =
				{
					.legal = true,
					.must = IBV_QP_AV | IBV_QP_PATH_MTU |
						IBV_QP_DEST_QPN |
						IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC |
						IBV_QP_MIN_RNR_TIMER,
					.may = IBV_QP_ACCESS_FLAGS |
					       IBV_QP_PKEY_INDEX,
				},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] =
				{
					.legal = true,
					.must = IBV_QP_TIMEOUT |
						IBV_QP_RETRY_CNT |
						IBV_QP_RNR_RETRY |
						IBV_QP_SQ_PSN |
						IBV_QP_MAX_QP_RD_ATOMIC,
					.may = IBV_QP_CUR_STATE |
					       IBV_QP_ACCESS_FLAGS |
					       IBV_QP_MIN_RNR_TIMER,
				},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] =
				{
					.legal = true,
					.may = IBV_QP_CUR_STATE |
					       IBV_QP_ACCESS_FLAGS |
					       IBV_QP_MIN_RNR_TIMER,
				},
			[IBV_QPS_SQD] =
				{
					.legal = true,
					.may = IBV_QP_EN_SQD_ASYNC_NOTIFY,
				},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] =
				{
					.legal = true,
					.may = IBV_QP_CUR_STATE |
					       IBV_QP_ACCESS_FLAGS |
					       IBV_QP_MIN_RNR_TIMER,
				},
			[IBV_QPS_SQD] =
				{
					.legal = true,
					.may = IBV_QP_PORT | IBV_QP_AV |
					       IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_ACCESS_FLAGS |
					       IBV_QP_PKEY_INDEX |
					       IBV_QP_MIN_RNR_TIMER,
				},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
		},
};

static const struct transition ud_table[STATES][STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_INIT] = {.legal = true,
					  .must = IBV_QP_PKEY_INDEX |
						  IBV_QP_PORT | IBV_QP_QKEY},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_INIT] = {.legal = true,
					  .may = IBV_QP_PKEY_INDEX |
						 IBV_QP_PORT | IBV_QP_QKEY},
			[IBV_QPS_RTR] = {.legal = true,
					 .may = IBV_QP_PKEY_INDEX |
						IBV_QP_QKEY},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] = {.legal = true,
					 .must = IBV_QP_SQ_PSN,
					 .may = IBV_QP_CUR_STATE | IBV_QP_QKEY},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] = {.legal = true,
					 .may = IBV_QP_CUR_STATE | IBV_QP_QKEY},
			[IBV_QPS_SQD] = {.legal = true,
					 .may = IBV_QP_EN_SQD_ASYNC_NOTIFY},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] = {.legal = true,
					 .may = IBV_QP_CUR_STATE | IBV_QP_QKEY},
			[IBV_QPS_SQD] = {.legal = true,
					 .may = IBV_QP_PKEY_INDEX |
						IBV_QP_QKEY},
		},
	[IBV_QPS_SQE] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] = {.legal = true,
					 .may = IBV_QP_CUR_STATE | IBV_QP_QKEY},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
		},
};

static const struct transition uc_table[STATES][STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_INIT] = {.legal = true,
					  .must = IBV_QP_PKEY_INDEX |
						  IBV_QP_PORT |
						  IBV_QP_ACCESS_FLAGS},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_INIT] = {.legal = true,
					  .may = IBV_QP_PKEY_INDEX |
						 IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_RTR] = {.legal = true,
					 .must = IBV_QP_AV | IBV_QP_PATH_MTU |
						 IBV_QP_DEST_QPN |
						 IBV_QP_RQ_PSN,
					 .may = IBV_QP_ACCESS_FLAGS |
						IBV_QP_PKEY_INDEX},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] = {.legal = true,
					 .must = IBV_QP_SQ_PSN,
					 .may = IBV_QP_CUR_STATE |
						IBV_QP_ACCESS_FLAGS},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] = {.legal = true,
					 .may = IBV_QP_CUR_STATE |
						IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_SQD] = {.legal = true,
					 .may = IBV_QP_EN_SQD_ASYNC_NOTIFY},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] = {.legal = true,
					 .may = IBV_QP_CUR_STATE |
						IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_SQD] = {.legal = true,
					 .may = IBV_QP_AV |
						IBV_QP_ACCESS_FLAGS |
						IBV_QP_PKEY_INDEX},
		},
	[IBV_QPS_SQE] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
			[IBV_QPS_RTS] = {.legal = true,
					 .may = IBV_QP_CUR_STATE |
						IBV_QP_ACCESS_FLAGS},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {.legal = true},
			[IBV_QPS_ERR] = {.legal = true},
		},
};

static const struct transition *transition_of(enum ibv_qp_type type,
					      enum ibv_qp_state from,
					      enum ibv_qp_state to)
{
	if (type == IBV_QPT_UD)
		return &ud_table[from][to];
	return type == IBV_QPT_UC ? &uc_table[from][to] : &table[from][to];
}

/* --- values */

/* An attribute of a mask, with the asked value and the limits. */
struct value {
	int bit;
	const char *name;
	int asked, least, most;
};

static int check_values(const struct lb_qp *qp, const struct ibv_qp_attr *attr,
			int mask)
{
	const struct value values[] = {
		{IBV_QP_PORT, "port_num", attr->port_num, 1, 1},
		{IBV_QP_PKEY_INDEX, "pkey_index", attr->pkey_index, 0,
		 LB_MAX_PKEYS - 1},
		{IBV_QP_PATH_MTU, "path_mtu", (int)attr->path_mtu, IBV_MTU_256,
		 LB_MTU},
		{IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attr->max_rd_atomic,
		 0, LB_MAX_RD_ATOM},
		{IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic",
		 attr->max_dest_rd_atomic, 0, LB_MAX_RD_ATOM},
		{IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", attr->min_rnr_timer, 0,
		 MAX_RNR_CODE},
		{IBV_QP_TIMEOUT, "timeout", attr->timeout, 0, MAX_TIMEOUT},
		{IBV_QP_RETRY_CNT, "retry_cnt", attr->retry_cnt, 0, MAX_RETRY},
		{IBV_QP_RNR_RETRY, "rnr_retry", attr->rnr_retry, 0, MAX_RETRY},
	};
	size_t i;
	int err;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct value *v = &values[i];

		if ((mask & v->bit) &&
		    (v->asked < v->least || v->asked > v->most))
			return lb_log_refuse(
				EINVAL,
				"ibv_modify_qp(): %s %d: the device has %d to "
				"%d",
				v->name, v->asked, v->least, v->most);
	}
	err = mask & IBV_QP_AV ? lb_ah_check(&attr->ah_attr, qp->dev) : 0;
	if (err)
		lb_log_refuse(err,
			      "ibv_modify_qp(): the address leads nowhere,"
			      " or sgid_index %u has no address",
			      attr->ah_attr.grh.sgid_index);
	return err;
}

static int check_transition(enum ibv_qp_type type, enum ibv_qp_state from,
			    enum ibv_qp_state to,
			    const struct ibv_qp_attr *attr, int mask)
{
	const struct transition *t;

	if ((unsigned)to >= STATES)
		return lb_log_refuse(EINVAL, "ibv_modify_qp(): no state %d",
				     to);
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return lb_log_refuse(EINVAL,
				     "ibv_modify_qp(): cur_qp_state %d: the "
				     "queue pair is in state %d",
				     attr->cur_qp_state, from);
	t = transition_of(type, from, to);
	mask &= ~(IBV_QP_STATE);
	if (!t->legal)
		return lb_log_refuse(EINVAL,
				     "ibv_modify_qp(): no way from state %d to "
				     "state %d",
				     from, to);
	if ((mask & t->must) != t->must || (mask & ~(t->must | t->may)))
		return lb_log_refuse(EINVAL,
				     "ibv_modify_qp(): from state %d to state "
				     "%d: the mask lacks %#x, and has %#x too "
				     "many",
				     from, to, t->must & ~mask,
				     mask & ~(t->must | t->may));
	return 0;
}

/* --- effects; all locks of the QP held */

static void set_psn(struct lb_qp *qp, uint32_t psn)
{
	struct lb_remote *r = &qp->remote;

	qp->attr.sq_psn = psn;
	r->sent.psn = r->acked.psn = psn & LB_PSN_MASK;
}

/* The address of the peer. */
static void set_path(struct lb_qp *qp, const struct ibv_ah_attr *path)
{
	const struct lb_device *dev = lb_gid_device(&path->grh.dgid);

	qp->attr.ah_attr = *path;
	qp->peer_home = lb_home(dev, qp->type);
	qp->remote.device = dev ? (uint8_t)dev->index : LB_MAX_DEVICES;
}

static void store_values(struct lb_qp *qp, const struct ibv_qp_attr *attr,
			 int mask)
{
	struct ibv_qp_attr *a = &qp->attr;

	if (mask & IBV_QP_ACCESS_FLAGS)
		a->qp_access_flags = qp->access = attr->qp_access_flags;
	if (mask & IBV_QP_PORT)
		a->port_num = attr->port_num;
	if (mask & IBV_QP_PKEY_INDEX)
		a->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_QKEY)
		a->qkey = attr->qkey;
	if (mask & IBV_QP_PATH_MTU)
		a->path_mtu = attr->path_mtu;
	if (mask & IBV_QP_RQ_PSN)
		a->rq_psn = attr->rq_psn,
		qp->resp.psn = a->rq_psn & LB_PSN_MASK;
	if (mask & IBV_QP_SQ_PSN)
		set_psn(qp, attr->sq_psn);
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		a->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		a->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		a->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		a->timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		a->retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		a->rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_DEST_QPN)
		a->dest_qp_num = qp->peer_qpn = attr->dest_qp_num;
	if (mask & IBV_QP_AV)
		set_path(qp, &attr->ah_attr);
}

static void enter(struct lb_run *run, struct lb_qp *qp, enum ibv_qp_state to,
		  const struct ibv_qp_attr *attr, int mask)
{
	store_values(qp, attr, mask);
	if (to == IBV_QPS_RESET) {
		lb_qp_reset(qp);
		return;
	}
	if (to == IBV_QPS_ERR) {
		lb_qp_set_error(run, qp);
		return;
	}
	if (lb_qp_state(qp) == IBV_QPS_SQE)
		lb_flush_sends(run, qp); /* sends not yet executed */
	/* relaxed: ordered by the locks */
	atomic_store_explicit(&qp->state, to, memory_order_relaxed);
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		qp->sq_drained_wanted = attr->en_sqd_async_notify;
	lb_sq_drained(qp);
}

/*
 * Checks a peer that this process does not have: posts of qp will fail. The
 * link reports a peer in another process.
 */
static void check_peer(const struct lb_qp_handle *handle, uint32_t qpn)
{
	const struct lb_qp *peer = lb_qp_at(qpn);

	if (lb_qp_number_process(qpn))
		return;
	/* relaxed: words only, and nothing of the peer is followed */
	if (peer && qpn &&
	    atomic_load_explicit(&peer->qpn, memory_order_relaxed) == qpn)
		return;
	lb_log(0,
	       "qp %#x: no queue pair %#x in this process, so all that it "
	       "posts will fail: that one was destroyed, or never was",
	       handle->qpn, qpn);
}

static void catch_up(void *link, struct lb_run *run)
{
	lb_link_catch_up(link, run);
}

/* A reference to the way to a queue pair of another process, or NULL. */
static struct lb_link *link_to(uint32_t qpn)
{
	unsigned number = lb_qp_number_process(qpn);
	struct lb_nic *nic = lb_nic_self();
	struct lb_link *link = NULL;

	if (number && nic)
		link = lb_nic_link(nic, number);
	if (link) /* requests for an earlier life of the queue pair find it */
		lb_run_with(catch_up, link);
	return link;
}

/* Anybody may send to a queue pair for datagrams. */
static void serve(void)
{
	struct lb_nic *nic = lb_nic_self();

	if (nic)
		lb_nic_serve(nic);
}

/* Returns 0 if the change is allowed now, and sets the states. */
static int check_locked(const struct lb_qp *qp, const struct ibv_qp_attr *attr,
			int mask, enum ibv_qp_state *from,
			enum ibv_qp_state *to)
{
	int err;

	/* relaxed: constant while the locks are held */
	*from = (enum ibv_qp_state)atomic_load_explicit(&qp->state,
							memory_order_relaxed);
	*to = mask & IBV_QP_STATE ? attr->qp_state : *from;
	err = check_transition(qp->type, *from, *to, attr, mask);
	return err ? err : check_values(qp, attr, mask);
}

/* Checks before any step with effects elsewhere. */
static int check(struct lb_qp *qp, const struct ibv_qp_attr *attr, int mask,
		 enum ibv_qp_state *from, enum ibv_qp_state *to)
{
	int err;

	lb_qp_lock(qp);
	err = check_locked(qp, attr, mask, from, to);
	lb_qp_unlock(qp);
	return err;
}

/* Changes the state; run pays the work on the way. lb.big not held. */
static int modify(struct lb_run *run, struct lb_qp_handle *handle,
		  const struct ibv_qp_attr *attr, int mask)
{
	struct lb_qp *qp = handle->qp;
	enum ibv_qp_state from, to;
	struct lb_link *link = NULL;
	int err;

	err = check(qp, attr, mask, &from, &to);
	if (err)
		return err;
	if (mask & IBV_QP_DEST_QPN)
		link = link_to(attr->dest_qp_num);
	else if (qp->type == IBV_QPT_UD && to == IBV_QPS_RTR)
		serve();
	lb_qp_lock(qp);
	/* once more: the state may be another meanwhile */
	err = check_locked(qp, attr, mask, &from, &to);
	if (!err) {
		enter(run, qp, to, attr, mask);
		handle->ibv.state = to;
	}
	if (!err && link) { /* without a link: the queue pair had been reset */
		qp->remote.link = link;
		lb_remote_look_at(&qp->remote, link);
	}
	lb_qp_unlock(qp);
	if (err && link)
		lb_link_put(link);
	if (!err && (mask & IBV_QP_DEST_QPN))
		check_peer(handle, attr->dest_qp_num);
	if (!err && from == IBV_QPS_SQD && to == IBV_QPS_RTS)
		lb_run_again(qp); /* work posted meanwhile */
	return err;
}

LB_EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr,
			    int attr_mask)
{
	struct lb_qp_handle *handle = (struct lb_qp_handle *)ibv;
	struct lb_run run;
	int err = lb_fault_errno("ibv_modify_qp");

	if (err)
		return lb_error(err);
	if (!lb_object_check(ibv, LB_QP)) {
		lb_log_misuse("ibv_modify_qp(%p): no such object", (void *)ibv);
		return lb_error(ENOENT);
	}
	lb_hook(RPMA_LOOPBACK_MODIFY, ibv);
	lb_run_begin(&run);
	err = modify(&run, handle, attr, attr_mask);
	lb_run_end(&run);
	lb_hook(RPMA_LOOPBACK_MODIFY_DONE, ibv);
	return lb_error(err);
}

LB_EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr,
			   int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	struct lb_qp_handle *handle = (struct lb_qp_handle *)ibv;
	struct lb_qp *qp;
	int err = lb_fault_errno("ibv_query_qp");

	(void)attr_mask; /* all of them, always */
	if (!err && !lb_object_check(ibv, LB_QP))
		err = ENOENT;
	if (err)
		return lb_error(err);
	qp = handle->qp;
	lb_qp_lock(qp);
	*attr = qp->attr;
	/* relaxed: constant while the locks are held */
	attr->qp_state = (enum ibv_qp_state)atomic_load_explicit(
		&qp->state, memory_order_relaxed);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD && qp->exec.begun;
	attr->cap = qp->cap;
	handle->ibv.state = attr->qp_state;
	*init_attr = handle->init;
	lb_qp_unlock(qp);
	return 0;
}
