/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reserved.h -- what the route numbers below RT_ROUTE_FIRST mean to a poller,
 * in all its CQs: 0 are the connections' own work requests, from 2 on SRQs.
 * doc/protocols/wr_id.md.
 */

#ifndef RT_POLLER_RESERVED_H
#define RT_POLLER_RESERVED_H

#include <infiniband/verbs.h>

struct rt_cq;
struct rt_poller;

/* of a kind of number; all on the poller */
struct rt_reserved_ops {
	/* a completion with that number; may run the poller's inbox */
	void (*completion)(struct rt_poller *poller, struct rt_cq *cq,
			   const struct ibv_wc *wc);
	/* a lane that held the number up is under its limit again; NULL where
	 * no lane does */
	void (*eased)(struct rt_poller *poller, void *arg);
};

/* one number; free while ops is NULL */
struct rt_reserved {
	const struct rt_reserved_ops *ops;
	void *arg;
};

#endif /* RT_POLLER_RESERVED_H */
