/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * accept.h -- futures of a listener without a queue: each is of the next
 * request. Their block belongs to one of the listener's pollers, where requests
 * that came first wait. doc/protocols/future.md.
 */

#ifndef RT_CONN_ACCEPT_H
#define RT_CONN_ACCEPT_H

#include <stdbool.h>

#include "rpma_rt.h"

struct rt_accept;
struct rt_inbox;
struct rt_msg;
struct rt_poller;

/* Its block belongs to that poller. NULL: no memory. */
struct rt_accept *rt_accept_new(struct rt_poller *poller);
/* It has ended, or was never offered a request. NULL: nothing. */
void rt_accept_delete(struct rt_accept *accept);

/* Any thread: a future of the next request; owner: the listener. ERRORS:
 * RPMA_RT_E_BUSY: too many are held */
int rt_accept_future(struct rt_accept *accept, const void *owner,
		     struct rpma_rt_future *future);
/* Any thread: may one request more wait? */
bool rt_accept_has_room(const struct rt_accept *accept);
/* The poller of the request: it may be answered. */
void rt_accept_offer_poller(struct rt_accept *accept,
			    struct rpma_rt_conn *conn);
/* Any thread: no request is offered any more. When those that wait are refused,
 * and all futures complete, with last, msg is sent to that inbox. */
void rt_accept_end_mt(struct rt_accept *accept,
		      const struct rpma_rt_completion *last,
		      struct rt_inbox *inbox, struct rt_msg *msg);

#endif /* RT_CONN_ACCEPT_H */
