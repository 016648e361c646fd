/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* cfg.h -- what a queue is made with. */

#ifndef RT_QUEUE_CFG_H
#define RT_QUEUE_CFG_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"

struct rt_queue_params {
	uint32_t lane_size;
	uint32_t backlog_limit;
	uint32_t spin_us;
	bool shared;
};

/* cfg NULL: the defaults. */
void rt_queue_cfg_params(const struct rpma_rt_queue_cfg *cfg,
			 struct rt_queue_params *params);

#endif /* RT_QUEUE_CFG_H */
