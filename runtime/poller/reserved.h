/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reserved.h -- the route numbers below RT_ROUTE_FIRST, the same in all CQs of
 * a poller: 0 is for the runtime's own work requests, from 2 on for SRQs, which
 * take part in a batch as sides do. doc/protocols/wr_id.md, srq.md.
 */

#ifndef RT_POLLER_RESERVED_H
#define RT_POLLER_RESERVED_H

#include <stdbool.h>

#include <infiniband/verbs.h>

struct rt_cq;
struct rt_poller;

/* of a kind of number; all on the poller */
struct rt_reserved_ops {
	/* a completion with that number; may run the poller's inbox */
	void (*completion)(struct rt_poller *poller, struct rt_cq *cq,
			   const struct ibv_wc *wc);
	/* the rest is NULL for numbers that are never touched. At the end of a
	 * batch in which it was: its credits go back, before the lanes are
	 * published; refused posters are answered, after the fence */
	void (*publish)(void *arg);
	void (*answer)(void *arg);
	/* a lane that got its items in this batch is over its limit, before
	 * publish; that lane is under its limit again */
	void (*held)(void *arg);
	void (*eased)(void *arg);
};

/* one number; free while ops is NULL */
struct rt_reserved {
	const struct rt_reserved_ops *ops;
	void *arg;
	bool touched; /* in this batch */
	struct rt_reserved *touched_next;
};

#endif /* RT_POLLER_RESERVED_H */
