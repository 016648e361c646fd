/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.c -- the configuration of a connection; see cfg.h.
 */

#include "conn/cfg.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cfg.h"
#include "base/log.h"
#include "base/runtime.h"
#include "pool/pool.h"
#include "poller/poller.h"
#include "queue/queue.h"
#include "srq/srq.h"

/* Copies one value by its getter and setter. */
#define COPY(from, to, name, type)                      \
	do {                                            \
		type value;                             \
		rpma_conn_cfg_get_##name(from, &value); \
		rpma_conn_cfg_set_##name(to, value);    \
	} while (0)

static void copy_values(const struct rpma_conn_cfg *from,
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

/* Does verbs name CQs or channels, which the runtime chooses? */
static bool names_ours(const struct rpma_conn_cfg *cfg)
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

/* from NULL: the defaults */
static int values_new(const struct rpma_conn_cfg *from,
		      struct rpma_conn_cfg **to_ptr)
{
	int ret = rpma_conn_cfg_new(to_ptr);

	if (ret == 0 && from != NULL)
		copy_values(from, *to_ptr);
	return ret;
}

/* Takes more's values, then those that have a field of their own. */
static int read_verbs(const struct rpma_rt_conn_cfg *given,
		      struct rpma_conn_cfg **verbs_ptr)
{
	struct rpma_conn_cfg *verbs;
	int ret;

	if (given->more != NULL && names_ours(given->more)) {
		RT_LOG_ERROR("rpma_rt_conn_cfg.more names a CQ, a channel, a "
			     "CM channel or an SRQ: those are the runtime's");
		return RPMA_E_INVAL;
	}
	ret = values_new(given->more, &verbs);
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

/* One of each poller at most, known by its index. */
static int read_srqs(const struct rpma_rt_conn_cfg *given,
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

static int read_queues(const struct rpma_rt_conn_cfg *given,
		       const struct rpma_rt *rt, struct rt_conn_cfg *cfg)
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

int rt_conn_cfg_read(const struct rpma_rt_conn_cfg *given,
		     const struct rpma_rt *rt, struct rt_conn_cfg *cfg)
{
	struct rpma_rt_conn_cfg checked;
	int ret = rt_cfg_read_conn(given, rt->cfg.pollers, &checked);

	if (ret)
		return ret;
	if (checked.rq_size == 0)
		checked.rq_size = checked.pool == NULL
					  ? RPMA_RT_DEFAULT_RQ_SIZE
					  : RPMA_RT_DEFAULT_POOL_RQ_SIZE;
	*cfg = (struct rt_conn_cfg){
		.peer = checked.peer,
		.queue = checked.queue,
		.user = checked.user,
		.poller = checked.poller,
		.backlog = (int)checked.backlog,
		.keepalive_ms = checked.keepalive_ms,
		.futures = checked.futures,
		.waiting = checked.waiting,
		.pool = checked.pool,
	};
	ret = read_queues(&checked, rt, cfg);
	if (ret == 0)
		ret = read_srqs(&checked, rt, cfg);
	if (ret == 0)
		ret = rt_pool_check_of(checked.pool, rt, checked.peer,
				       "rpma_rt_conn_cfg.pool");
	return ret ? ret : read_verbs(&checked, &cfg->verbs);
}

void rt_conn_cfg_fini(struct rt_conn_cfg *cfg)
{
	rpma_conn_cfg_delete(&cfg->verbs);
}

int rt_conn_cfg_verbs(const struct rt_conn_cfg *cfg, struct rpma_cm_channel *cm,
		      struct rpma_conn_cfg **verbs_ptr)
{
	struct rpma_conn_cfg *verbs;
	int ret = values_new(cfg->verbs, &verbs);

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

uint64_t rt_conn_cfg_srq_pollers_alive(const struct rt_conn_cfg *cfg)
{
	uint64_t pollers = rt_conn_cfg_srq_pollers(cfg);
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL && rt_srq_has_failed(cfg->srqs[i]))
			pollers &= ~(UINT64_C(1) << i);
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
