/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.h -- the runtime's configuration: a plain value, read once by
 * rpma_rt_new().
 */

#ifndef RT_BASE_CFG_H
#define RT_BASE_CFG_H

#include "rpma_rt.h"

struct rpma_rt_cfg {
	int pollers;
	int cpus[RPMA_RT_MAX_POLLERS];
	int cpus_count; /* 0: the allowed ones, in order */
	enum rpma_rt_mode mode;
	uint32_t spin_us;
	uint32_t backstop_ms;
	uint32_t cq_size;
	uint32_t drain_ms;
	rpma_rt_async_fn async_fn; /* NULL: nobody wants to hear */
	void *async_arg;
	bool async_fed;
	uint32_t timing; /* every so many batches; 0: off */
};

/* Fills cfg with the defaults. */
void rt_cfg_init(struct rpma_rt_cfg *cfg);

#endif /* RT_BASE_CFG_H */
