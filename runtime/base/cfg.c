/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.c -- the runtime's configuration object: setters check ranges, nothing
 * is applied before rpma_rt_new() reads it. One thread at a time.
 */

#include "base/cfg.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SPIN_US	1000000
#define MAX_BACKSTOP_MS 60000
#define MAX_DRAIN_MS	600000

void rt_cfg_init(struct rpma_rt_cfg *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->pollers = 1;
	cfg->mode = RPMA_RT_MODE_ADAPTIVE;
	cfg->spin_us = RPMA_RT_DEFAULT_SPIN_US;
	cfg->backstop_ms = RPMA_RT_DEFAULT_BACKSTOP_MS;
	cfg->cq_size = RPMA_RT_DEFAULT_CQ_SIZE;
	cfg->drain_ms = RPMA_RT_DEFAULT_DRAIN_MS;
}

int rpma_rt_cfg_new(struct rpma_rt_cfg **cfg_ptr)
{
	struct rpma_rt_cfg *cfg;

	if (cfg_ptr == NULL)
		return RPMA_E_INVAL;
	cfg = malloc(sizeof(*cfg));
	if (cfg == NULL)
		return RPMA_E_NOMEM;
	rt_cfg_init(cfg);
	*cfg_ptr = cfg;
	return 0;
}

int rpma_rt_cfg_delete(struct rpma_rt_cfg **cfg_ptr)
{
	if (cfg_ptr == NULL)
		return RPMA_E_INVAL;
	free(*cfg_ptr);
	*cfg_ptr = NULL;
	return 0;
}

int rpma_rt_cfg_set_pollers(struct rpma_rt_cfg *cfg, int count)
{
	if (cfg == NULL || count < 1 || count > RPMA_RT_MAX_POLLERS)
		return RPMA_E_INVAL;
	cfg->pollers = count;
	return 0;
}

int rpma_rt_cfg_get_pollers(const struct rpma_rt_cfg *cfg, int *count)
{
	if (cfg == NULL || count == NULL)
		return RPMA_E_INVAL;
	*count = cfg->pollers;
	return 0;
}

int rpma_rt_cfg_set_cpus(struct rpma_rt_cfg *cfg, const int *cpus, int count)
{
	if (cfg == NULL || cpus == NULL || count < 1 ||
	    count > RPMA_RT_MAX_POLLERS)
		return RPMA_E_INVAL;
	memcpy(cfg->cpus, cpus, (size_t)count * sizeof(*cpus));
	cfg->cpus_count = count;
	return 0;
}

int rpma_rt_cfg_set_mode(struct rpma_rt_cfg *cfg, enum rpma_rt_mode mode)
{
	if (cfg == NULL || (int)mode < RPMA_RT_MODE_ADAPTIVE ||
	    (int)mode > RPMA_RT_MODE_MANUAL)
		return RPMA_E_INVAL;
	cfg->mode = mode;
	return 0;
}

int rpma_rt_cfg_get_mode(const struct rpma_rt_cfg *cfg, enum rpma_rt_mode *mode)
{
	if (cfg == NULL || mode == NULL)
		return RPMA_E_INVAL;
	*mode = cfg->mode;
	return 0;
}

/* value into *field, if it is in min..max and there is a field */
static int set_u32(uint32_t *field, uint32_t value, uint32_t min, uint32_t max)
{
	if (field == NULL || value < min || value > max)
		return RPMA_E_INVAL;
	*field = value;
	return 0;
}

static int get_u32(const uint32_t *field, uint32_t *value)
{
	if (field == NULL || value == NULL)
		return RPMA_E_INVAL;
	*value = *field;
	return 0;
}

int rpma_rt_cfg_set_spin_us(struct rpma_rt_cfg *cfg, uint32_t spin_us)
{
	return set_u32(cfg ? &cfg->spin_us : NULL, spin_us, 0, MAX_SPIN_US);
}

int rpma_rt_cfg_get_spin_us(const struct rpma_rt_cfg *cfg, uint32_t *spin_us)
{
	return get_u32(cfg ? &cfg->spin_us : NULL, spin_us);
}

int rpma_rt_cfg_set_backstop_ms(struct rpma_rt_cfg *cfg, uint32_t ms)
{
	return set_u32(cfg ? &cfg->backstop_ms : NULL, ms, 0, MAX_BACKSTOP_MS);
}

int rpma_rt_cfg_get_backstop_ms(const struct rpma_rt_cfg *cfg, uint32_t *ms)
{
	return get_u32(cfg ? &cfg->backstop_ms : NULL, ms);
}

int rpma_rt_cfg_set_cq_size(struct rpma_rt_cfg *cfg, uint32_t cq_size)
{
	return set_u32(cfg ? &cfg->cq_size : NULL, cq_size, 1, INT32_MAX);
}

int rpma_rt_cfg_get_cq_size(const struct rpma_rt_cfg *cfg, uint32_t *cq_size)
{
	return get_u32(cfg ? &cfg->cq_size : NULL, cq_size);
}

int rpma_rt_cfg_set_drain_ms(struct rpma_rt_cfg *cfg, uint32_t ms)
{
	return set_u32(cfg ? &cfg->drain_ms : NULL, ms, 1, MAX_DRAIN_MS);
}

int rpma_rt_cfg_get_drain_ms(const struct rpma_rt_cfg *cfg, uint32_t *ms)
{
	return get_u32(cfg ? &cfg->drain_ms : NULL, ms);
}

int rpma_rt_cfg_set_async_handler(struct rpma_rt_cfg *cfg, rpma_rt_async_fn fn,
				  void *arg)
{
	if (cfg == NULL)
		return RPMA_E_INVAL;
	cfg->async_fn = fn;
	cfg->async_arg = arg;
	return 0;
}

int rpma_rt_cfg_set_async_feed(struct rpma_rt_cfg *cfg, bool fed)
{
	if (cfg == NULL)
		return RPMA_E_INVAL;
	cfg->async_fed = fed;
	return 0;
}

int rpma_rt_cfg_set_timing(struct rpma_rt_cfg *cfg, uint32_t every)
{
	return set_u32(cfg ? &cfg->timing : NULL, every, 0, UINT32_MAX);
}

int rpma_rt_cfg_get_timing(const struct rpma_rt_cfg *cfg, uint32_t *every)
{
	return get_u32(cfg ? &cfg->timing : NULL, every);
}
