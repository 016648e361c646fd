/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.c -- the configuration of a connection, compared with the limits of the
 * device.
 */

#include "conn/cfg.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cfg.h"
#include "base/log.h"
#include "base/runtime.h"
#include "poller/poller.h"
#include "pool/pool.h"
#include "queue/queue.h"
#include "srq/srq.h"

/* Copies a value by its getter and setter. */
#define COPY(from, to, name, type)                      \
	do {                                            \
		type value;                             \
		rpma_conn_cfg_get_##name(from, &value); \
		rpma_conn_cfg_set_##name(to, value);    \
	} while (0)

static void conn_cfg_copy_values(const struct rpma_conn_cfg *from,
				 struct rpma_conn_cfg *to)
{
	COPY(from, to, timeout, int);
	COPY(from, to, sq_size, uint32_t);
	COPY(from, to, rq_size, uint32_t);
	COPY(from, to, max_send_sge, uint32_t);
	COPY(from, to, max_recv_sge, uint32_t);
	COPY(from, to, max_inline_data, uint32_t);
	COPY(from, to, responder_resources, uint8_t);
	COPY(from, to, initiator_depth, uint8_t);
	COPY(from, to, retry_count, uint8_t);
	COPY(from, to, rnr_retry_count, uint8_t);
	COPY(from, to, min_rnr_timer, uint8_t);
	COPY(from, to, ack_timeout, uint8_t);
	COPY(from, to, tos, int);
}

/* Returns whether cfg names CQs or channels, which only the runtime chooses. */
static bool conn_cfg_names_ours(const struct rpma_conn_cfg *cfg)
{
	struct rpma_cq *cq;
	struct rpma_cq *rcq;
	struct rpma_channel *channel;
	struct rpma_cm_channel *cm;
	struct rpma_srq *srq;
	bool shared;

	rpma_conn_cfg_get_cq(cfg, &cq);
	rpma_conn_cfg_get_rcq(cfg, &rcq);
	rpma_conn_cfg_get_channel(cfg, &channel);
	rpma_conn_cfg_get_cm_channel(cfg, &cm);
	rpma_conn_cfg_get_srq(cfg, &srq);
	rpma_conn_cfg_get_compl_channel(cfg, &shared);
	return cq || rcq || channel || cm || srq || shared;
}

/* Makes a copy of `from`, or of the defaults if `from` is NULL. */
static int conn_cfg_values_new(const struct rpma_conn_cfg *from,
			       struct rpma_conn_cfg **to_ptr)
{
	int ret = rpma_conn_cfg_new(to_ptr);

	if (ret == 0 && from != NULL)
		conn_cfg_copy_values(from, *to_ptr);
	return ret;
}

/* Takes the values of `more`, then the values that have a field of their
 * own. */
static int conn_cfg_read_verbs(const struct rpma_rt_conn_cfg *given,
			       struct rpma_conn_cfg **verbs_ptr)
{
	struct rpma_conn_cfg *verbs;
	int ret;

	if (given->more != NULL && conn_cfg_names_ours(given->more)) {
		RT_LOG_ERROR("rpma_rt_conn_cfg.more names a CQ, a channel, a "
			     "CM channel or an SRQ: those are the runtime's");
		return RPMA_E_INVAL;
	}
	ret = conn_cfg_values_new(given->more, &verbs);
	if (ret)
		return ret;
	rpma_conn_cfg_set_sq_size(verbs, given->sq_size);
	rpma_conn_cfg_set_rq_size(verbs, given->rq_size);
	rpma_conn_cfg_set_max_send_sge(verbs, given->max_sge);
	rpma_conn_cfg_set_max_recv_sge(verbs, given->max_sge);
	rpma_conn_cfg_set_max_inline_data(verbs, given->max_inline);
	rpma_conn_cfg_set_timeout(verbs, (int)given->timeout_ms);
	rpma_conn_cfg_set_min_rnr_timer(verbs, given->min_rnr_timer);
	rpma_conn_cfg_set_ack_timeout(verbs, given->ack_timeout);
	*verbs_ptr = verbs;
	return 0;
}

/* Reads the SRQs: at most a single SRQ for each poller, found by the poller's
 * index. */
static int conn_cfg_read_srqs(const struct rpma_rt_conn_cfg *given,
			      const struct rpma_rt *rt, struct rt_conn_cfg *cfg)
{
	bool has_queue = given->queue != NULL || given->queues != NULL;
	struct rpma_rt_srq *srq;
	const char *wrong;
	uint32_t i;

	for (i = 0; i < given->srq_count; i++) {
		srq = given->srqs[i];
		if (srq == NULL)
			wrong = "NULL";
		else if (srq->rt != rt)
			wrong = "of another runtime";
		else if (cfg->srqs[srq->poller->index] != NULL)
			wrong = "a second one of its poller";
		else if (!has_queue && srq->messages == NULL)
			wrong = "without futures: messages of a connection "
				"without a queue come by those";
		else
			wrong = NULL;
		if (wrong != NULL) {
			RT_LOG_ERROR("rpma_rt_conn_cfg.srqs[%" PRIu32 "] is %s",
				     i, wrong);
			return RPMA_E_INVAL;
		}
		cfg->srqs[srq->poller->index] = srq;
	}
	return 0;
}

static int conn_cfg_read_queues(const struct rpma_rt_conn_cfg *given,
				const struct rpma_rt *rt,
				struct rt_conn_cfg *cfg)
{
	char field[sizeof("rpma_rt_conn_cfg.queues[00]")];
	uint32_t i;
	int ret = 0;

	if (given->queue != NULL)
		return rt_queue_check_of(given->queue, rt,
					 "rpma_rt_conn_cfg.queue");
	if (given->queues == NULL)
		return 0;
	for (i = 0; i < rt->cfg.pollers && ret == 0; i++) {
		snprintf(field, sizeof(field), "rpma_rt_conn_cfg.queues[%u]",
			 i % RPMA_RT_MAX_POLLERS);
		cfg->queues[i] = given->queues[i];
		if (cfg->queues[i] != NULL) {
			ret = rt_queue_check_of(cfg->queues[i], rt, field);
			continue;
		}
		RT_LOG_ERROR("%s is NULL", field);
		ret = RPMA_E_INVAL;
	}
	return ret;
}

/* Replaces rq_size 0 by the default that the public header names. Returns how
 * many receives a connection wants of its pool at first. */
static uint32_t conn_cfg_resolve_rq(struct rpma_rt_conn_cfg *cfg)
{
	if (cfg->rq_size != 0)
		return cfg->rq_size;
	cfg->rq_size = cfg->pool == NULL ? RPMA_RT_DEFAULT_RQ_SIZE
					 : RPMA_RT_MOST_POOL_RQ_SIZE;
	return RPMA_RT_DEFAULT_POOL_RQ_SIZE;
}

int rt_conn_cfg_read(const struct rpma_rt_conn_cfg *given,
		     const struct rpma_rt *rt, struct rt_conn_cfg *cfg)
{
	struct rpma_rt_conn_cfg checked;
	uint32_t rq_base;
	int ret = rt_cfg_read_conn(given, rt->cfg.pollers, &checked);

	if (ret)
		return ret;
	rq_base = conn_cfg_resolve_rq(&checked);
	*cfg = (struct rt_conn_cfg){
		.peer = checked.peer,
		.queue = checked.queue,
		.user = checked.user,
		.poller = checked.poller,
		.backlog = (int)checked.backlog,
		.keepalive_ms = checked.keepalive_ms,
		.futures = checked.futures,
		.waiting = checked.waiting,
		.rq_base = rq_base,
		.pool = checked.pool,
	};
	ret = conn_cfg_read_queues(&checked, rt, cfg);
	if (ret == 0)
		ret = conn_cfg_read_srqs(&checked, rt, cfg);
	if (ret == 0)
		ret = rt_pool_check_of(checked.pool, rt, checked.peer,
				       "rpma_rt_conn_cfg.pool");
	return ret ? ret : conn_cfg_read_verbs(&checked, &cfg->verbs);
}

void rt_conn_cfg_fini(struct rt_conn_cfg *cfg)
{
	rpma_conn_cfg_delete(&cfg->verbs);
}

int rt_conn_cfg_verbs(const struct rt_conn_cfg *cfg, struct rpma_cm_channel *cm,
		      struct rpma_conn_cfg **verbs_ptr)
{
	struct rpma_conn_cfg *verbs;
	int ret = conn_cfg_values_new(cfg->verbs, &verbs);

	if (ret)
		return ret;
	rpma_conn_cfg_set_cm_channel(verbs, cm);
	*verbs_ptr = verbs;
	return 0;
}

/* ---------------------------------------------------------------- SRQs --- */

uint64_t rt_conn_cfg_srq_pollers(const struct rt_conn_cfg *cfg)
{
	uint64_t pollers = 0;
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL)
			pollers |= UINT64_C(1) << i;
	}
	return pollers;
}

void rt_conn_cfg_ref(const struct rt_conn_cfg *cfg)
{
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL)
			cfg->srqs[i]->users++;
	}
	rt_pool_ref(cfg->pool);
}

void rt_conn_cfg_unref(const struct rt_conn_cfg *cfg)
{
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL)
			cfg->srqs[i]->users--;
	}
	rt_pool_unref(cfg->pool);
}

/* --------------------------------------------------------------- limits --- */

/* Checks of limits. A configuration that the device cannot meet is refused
 * where the program gives the configuration, with the field, the value and the
 * device's limit: a listener would refuse each of its clients. */

#define CFG	   "rpma_rt_conn_cfg"
#define CFG_MORE   "rpma_rt_conn_cfg.more"
#define ANY_ATOMIC UINT8_MAX /* as many as both ends have */

struct rt_limits rt_limits_of(const struct rt_conn_cfg *cfg)
{
	struct rt_limits limits = {0};
	uint32_t sends;
	uint32_t recvs;

	rpma_conn_cfg_get_sq_size(cfg->verbs, &sends);
	rpma_conn_cfg_get_rq_size(cfg->verbs, &recvs);
	rpma_conn_cfg_get_max_send_sge(cfg->verbs, &limits.max_sge);
	rpma_conn_cfg_get_max_inline_data(cfg->verbs, &limits.max_inline);
	limits.sq = sends;
	limits.rq = rt_conn_cfg_srq_pollers(cfg) != 0 ? 0 : recvs;
	limits.max_send_wr = sends + 1 + (cfg->keepalive_ms > 0);
	limits.max_recv_wr = recvs + 1;
	return limits;
}

/* Checks the size of the CQ: work requests of both sides complete in the same
 * CQ. */
static int limits_check_cq(const struct rt_limits *limits,
			   const struct ibv_device_attr *attr)
{
	bool is_sq = limits->sq >= limits->rq;
	int64_t ours = limits->max_send_wr - limits->sq + 1;
	int64_t left = (int64_t)attr->max_cqe - ours -
		       (is_sq ? limits->rq : limits->sq);

	if ((int64_t)limits->sq + limits->rq + ours <= attr->max_cqe)
		return 0;
	return rt_cfg_refuse(CFG, is_sq ? "sq_size" : "rq_size",
			     is_sq ? limits->sq : limits->rq, 1,
			     left > 1 ? left : 1);
}

static int limits_check_queues(const struct rt_limits *limits,
			       const struct ibv_device_attr *attr)
{
	uint32_t most = (uint32_t)attr->max_qp_wr;
	uint32_t ours = limits->max_send_wr - limits->sq;

	if (limits->max_send_wr > most)
		return rt_cfg_refuse(CFG, "sq_size", limits->sq, 1,
				     (int64_t)most - ours);
	if (limits->rq + 1 > most)
		return rt_cfg_refuse(CFG, "rq_size", limits->rq, 1,
				     (int64_t)most - 1);
	if (limits->max_sge > (uint32_t)attr->max_sge)
		return rt_cfg_refuse(CFG, "max_sge", limits->max_sge, 1,
				     attr->max_sge);
	return limits_check_cq(limits, attr);
}

/* Checks the numbers of outstanding reads and atomics. */
static int limits_check_atomics(const struct rpma_conn_cfg *verbs,
				const struct ibv_device_attr *attr)
{
	uint8_t depth;
	uint8_t ours;

	rpma_conn_cfg_get_responder_resources(verbs, &ours);
	rpma_conn_cfg_get_initiator_depth(verbs, &depth);
	if (ours != ANY_ATOMIC && ours > attr->max_qp_rd_atom)
		return rt_cfg_refuse(CFG_MORE, "responder_resources", ours, 0,
				     attr->max_qp_rd_atom);
	if (depth != ANY_ATOMIC && depth > attr->max_qp_init_rd_atom)
		return rt_cfg_refuse(CFG_MORE, "initiator_depth", depth, 0,
				     attr->max_qp_init_rd_atom);
	return 0;
}

int rt_limits_check(const struct rt_conn_cfg *cfg)
{
	struct rt_limits limits = rt_limits_of(cfg);
	struct ibv_context *ibv_ctx;
	struct ibv_device_attr attr;
	int ret;

	ret = rpma_peer_get_ibv_context(cfg->peer, &ibv_ctx);
	if (ret)
		return ret;
	if (ibv_query_device(ibv_ctx, &attr))
		return rt_refuse_system("ibv_query_device");
	ret = limits_check_queues(&limits, &attr);
	return ret ? ret : limits_check_atomics(cfg->verbs, &attr);
}

/* --------------------------------------------------------- a queue pair --- */

static struct ibv_srq *limits_first_srq(const struct rt_conn_cfg *cfg)
{
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL)
			return cfg->srqs[i]->ibv_srq;
	}
	return NULL;
}

/* Tries to make a queue pair. Returns 0, or the errno of the device. */
static int limits_try_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init,
			 uint32_t max_inline)
{
	/* a copy, because the device writes to the struct */
	struct ibv_qp_init_attr asked = *init;
	struct ibv_qp *qp;

	asked.cap.max_inline_data = max_inline;
	errno = 0;
	qp = ibv_create_qp(pd, &asked);
	if (qp == NULL)
		return errno ? errno : EINVAL;
	ibv_destroy_qp(qp);
	return 0;
}

/* Returns the largest size that the device takes, below a size that the device
 * refuses. */
static uint32_t limits_find_inline(struct ibv_pd *pd,
				   struct ibv_qp_init_attr *init,
				   uint32_t refused)
{
	uint32_t taken = 0;
	uint32_t middle;

	while (refused - taken > 1) {
		middle = taken + (refused - taken) / 2;
		if (limits_try_qp(pd, init, middle))
			refused = middle;
		else
			taken = middle;
	}
	return taken;
}

static int limits_try_all(struct ibv_pd *pd, const struct rt_limits *limits,
			  struct ibv_qp_init_attr *init)
{
	int err = limits_try_qp(pd, init, limits->max_inline);

	if (err == 0)
		return 0;
	if (err == EINVAL && limits->max_inline > 0 &&
	    limits_try_qp(pd, init, 0) == 0)
		return rt_cfg_refuse(
			CFG, "max_inline", limits->max_inline, 8,
			limits_find_inline(pd, init, limits->max_inline));
	if (err == ENOMEM)
		return rt_refuse_later(RPMA_E_NOMEM,
				       "the device has no memory for a queue "
				       "pair with " CFG ".sq_size %ld and its "
				       "rq_size, max_sge and max_inline",
				       limits->sq);
	RT_LOG_ERROR("the device refuses a queue pair with " CFG ".sq_size %u, "
		     "rq_size %u, max_sge %u, max_inline %u: %s",
		     limits->sq, limits->rq, limits->max_sge,
		     limits->max_inline, strerror(err));
	return err == EINVAL ? RPMA_E_INVAL : RPMA_E_PROVIDER;
}

int rt_limits_try(const struct rt_conn_cfg *cfg)
{
	struct rt_limits limits = rt_limits_of(cfg);
	struct ibv_qp_init_attr init = {
		.srq = limits_first_srq(cfg),
		.cap = {.max_send_wr = limits.max_send_wr,
			.max_recv_wr = limits.max_recv_wr,
			.max_send_sge = limits.max_sge,
			.max_recv_sge = limits.max_sge},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_pd *pd;
	int ret;

	ret = rpma_peer_get_ibv_pd(cfg->peer, &pd);
	if (ret)
		return ret;
	init.send_cq = ibv_create_cq(pd->context, 1, NULL, NULL, 0);
	if (init.send_cq == NULL) {
		RT_LOG_ERROR("the device makes no completion queue: %s",
			     strerror(errno));
		return RPMA_E_PROVIDER;
	}
	init.recv_cq = init.send_cq;
	ret = limits_try_all(pd, &limits, &init);
	ibv_destroy_cq(init.send_cq);
	return ret;
}
