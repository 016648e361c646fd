/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* place.h -- chooses the poller of a new object. */

#ifndef RT_POLLER_PLACE_H
#define RT_POLLER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"

struct rt_poller;

/* An index, or one of RPMA_RT_POLLER_*? */
bool rt_place_is_valid(const struct rpma_rt *rt, int poller);
/* The poller of that index or by that rule; among: bits of those that may be,
 * 0: all. REQUIRES: the runtime's lock, a valid index. */
struct rt_poller *rt_place_choose(struct rpma_rt *rt, int poller,
				  uint64_t among);

#endif /* RT_POLLER_PLACE_H */
