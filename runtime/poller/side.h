/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * side.h -- one of a queue pair's two queues as its poller sees it: what has
 * retired, whether it is healthy, and what refused posters wait for.
 * doc/protocols/ledger.md.
 */

#ifndef RT_POLLER_SIDE_H
#define RT_POLLER_SIDE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/order.h"

/* what refused posters wait for: bits of rt_side.want; answered in a queue, or,
 * shifted by RT_WANT_IN_CALL, to the function inside which it was */
enum rt_want { RT_WANT_CREDIT = 1 << 0, RT_WANT_BACKLOG = 1 << 1 };
#define RT_WANT_IN_CALL 2

struct rt_side {
	/* read by posters; want is written by them, when they are refused */
	alignas(RT_CACHE_LINE) _Atomic uint32_t retired;
	_Atomic uint32_t want; /* of enum rt_want */
	/* the poller's */
	uint32_t count; /* signaled WRs retired: what retired will be */
	bool healthy;
	bool touched;
	uint8_t which; /* enum rpma_rt_side; immutable */
	struct rt_side *touched_next;
	struct rpma_rt_conn *conn; /* immutable */
};

#endif /* RT_POLLER_SIDE_H */
