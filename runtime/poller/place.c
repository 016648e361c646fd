/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * place.c -- chooses the poller of a new object; see place.h. Under the
 * runtime's lock.
 */

#include "poller/place.h"

#include "base/runtime.h"
#include "poller/poller.h"

bool rt_place_is_valid(const struct rpma_rt *rt, int poller)
{
	return poller >= RPMA_RT_POLLER_LEAST && poller < (int)rt->cfg.pollers;
}

static bool is_among(uint64_t among, int poller)
{
	return among == 0 || (among >> poller & 1);
}

/* Of equals the first: they fill in order. */
static int least_loaded(const struct rpma_rt *rt, uint64_t among)
{
	int least = -1;
	int i;

	for (i = 0; i < (int)rt->cfg.pollers; i++) {
		if (is_among(among, i) &&
		    (least < 0 ||
		     rt->pollers[i].conns < rt->pollers[least].conns))
			least = i;
	}
	return least;
}

static int next_in_turn(struct rpma_rt *rt, uint64_t among)
{
	int poller;

	do
		poller = (int)(rt->next_poller++ % rt->cfg.pollers);
	while (!is_among(among, poller));
	return poller;
}

struct rt_poller *rt_place_choose(struct rpma_rt *rt, int poller,
				  uint64_t among)
{
	if (poller == RPMA_RT_POLLER_LEAST)
		poller = least_loaded(rt, among);
	else if (poller == RPMA_RT_POLLER_ANY)
		poller = next_in_turn(rt, among);
	return &rt->pollers[poller];
}
