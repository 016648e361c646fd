/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.c -- what a queue is made with. Plain data of its owner until
 * rpma_rt_queue_new() copies it.
 */

#include "queue/cfg.h"

#include <stdlib.h>

#define LANE_SIZE_MIN 64
#define LANE_SIZE_MAX 1048576
#define BACKLOG_MAX   1048576
#define SPIN_US_MAX   1000000

struct rpma_rt_queue_cfg {
	struct rt_queue_params params;
};

static const struct rt_queue_params defaults = {
	.lane_size = RPMA_RT_DEFAULT_LANE_SIZE,
	.backlog_limit = RPMA_RT_DEFAULT_BACKLOG_LIMIT,
	.spin_us = RPMA_RT_DEFAULT_QUEUE_SPIN_US,
};

void rt_queue_cfg_params(const struct rpma_rt_queue_cfg *cfg,
			 struct rt_queue_params *params)
{
	*params = cfg == NULL ? defaults : cfg->params;
}

int rpma_rt_queue_cfg_new(struct rpma_rt_queue_cfg **cfg_ptr)
{
	struct rpma_rt_queue_cfg *cfg;

	if (cfg_ptr == NULL)
		return RPMA_E_INVAL;
	cfg = malloc(sizeof(*cfg));
	if (cfg == NULL)
		return RPMA_E_NOMEM;
	cfg->params = defaults;
	*cfg_ptr = cfg;
	return 0;
}

int rpma_rt_queue_cfg_delete(struct rpma_rt_queue_cfg **cfg_ptr)
{
	if (cfg_ptr == NULL)
		return RPMA_E_INVAL;
	free(*cfg_ptr);
	*cfg_ptr = NULL;
	return 0;
}

int rpma_rt_queue_cfg_set_lane_size(struct rpma_rt_queue_cfg *cfg,
				    uint32_t size)
{
	if (cfg == NULL || size < LANE_SIZE_MIN || size > LANE_SIZE_MAX ||
	    (size & (size - 1)) != 0)
		return RPMA_E_INVAL;
	cfg->params.lane_size = size;
	return 0;
}

int rpma_rt_queue_cfg_get_lane_size(const struct rpma_rt_queue_cfg *cfg,
				    uint32_t *size)
{
	if (cfg == NULL || size == NULL)
		return RPMA_E_INVAL;
	*size = cfg->params.lane_size;
	return 0;
}

int rpma_rt_queue_cfg_set_backlog_limit(struct rpma_rt_queue_cfg *cfg,
					uint32_t limit)
{
	if (cfg == NULL || limit == 0 || limit > BACKLOG_MAX)
		return RPMA_E_INVAL;
	cfg->params.backlog_limit = limit;
	return 0;
}

int rpma_rt_queue_cfg_get_backlog_limit(const struct rpma_rt_queue_cfg *cfg,
					uint32_t *limit)
{
	if (cfg == NULL || limit == NULL)
		return RPMA_E_INVAL;
	*limit = cfg->params.backlog_limit;
	return 0;
}

int rpma_rt_queue_cfg_set_spin_us(struct rpma_rt_queue_cfg *cfg,
				  uint32_t spin_us)
{
	if (cfg == NULL || spin_us > SPIN_US_MAX)
		return RPMA_E_INVAL;
	cfg->params.spin_us = spin_us;
	return 0;
}

int rpma_rt_queue_cfg_get_spin_us(const struct rpma_rt_queue_cfg *cfg,
				  uint32_t *spin_us)
{
	if (cfg == NULL || spin_us == NULL)
		return RPMA_E_INVAL;
	*spin_us = cfg->params.spin_us;
	return 0;
}

int rpma_rt_queue_cfg_set_shared(struct rpma_rt_queue_cfg *cfg, bool shared)
{
	if (cfg == NULL)
		return RPMA_E_INVAL;
	cfg->params.shared = shared;
	return 0;
}

int rpma_rt_queue_cfg_get_shared(const struct rpma_rt_queue_cfg *cfg,
				 bool *shared)
{
	if (cfg == NULL || shared == NULL)
		return RPMA_E_INVAL;
	*shared = cfg->params.shared;
	return 0;
}
