/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.c -- what a shared receive queue is made with. Plain data of its
 * owner.
 */

#include "srq/srq.h"

#include <stdlib.h>

int rpma_rt_srq_cfg_new(struct rpma_rt_srq_cfg **cfg_ptr)
{
	struct rpma_rt_srq_cfg *cfg;

	if (cfg_ptr == NULL)
		return RPMA_E_INVAL;
	cfg = calloc(1, sizeof(*cfg));
	if (cfg == NULL)
		return RPMA_E_NOMEM;
	cfg->size = RPMA_RT_DEFAULT_SRQ_SIZE;
	*cfg_ptr = cfg;
	return 0;
}

int rpma_rt_srq_cfg_delete(struct rpma_rt_srq_cfg **cfg_ptr)
{
	if (cfg_ptr == NULL)
		return RPMA_E_INVAL;
	free(*cfg_ptr);
	*cfg_ptr = NULL;
	return 0;
}

int rpma_rt_srq_cfg_set_size(struct rpma_rt_srq_cfg *cfg, uint32_t size)
{
	if (cfg == NULL || size == 0 || size > RT_SRQ_MAX_SIZE)
		return RPMA_E_INVAL;
	cfg->size = size;
	return 0;
}

int rpma_rt_srq_cfg_get_size(const struct rpma_rt_srq_cfg *cfg, uint32_t *size)
{
	if (cfg == NULL || size == NULL)
		return RPMA_E_INVAL;
	*size = cfg->size;
	return 0;
}

int rpma_rt_srq_cfg_set_limit(struct rpma_rt_srq_cfg *cfg, uint32_t limit)
{
	if (cfg == NULL || limit > RT_SRQ_MAX_SIZE)
		return RPMA_E_INVAL;
	cfg->limit = limit;
	return 0;
}

int rpma_rt_srq_cfg_get_limit(const struct rpma_rt_srq_cfg *cfg,
			      uint32_t *limit)
{
	if (cfg == NULL || limit == NULL)
		return RPMA_E_INVAL;
	*limit = cfg->limit;
	return 0;
}

int rpma_rt_srq_cfg_set_refill(struct rpma_rt_srq_cfg *cfg,
			       rpma_rt_srq_refill *refill, void *arg)
{
	if (cfg == NULL)
		return RPMA_E_INVAL;
	cfg->refill = refill;
	cfg->arg = arg;
	return 0;
}
