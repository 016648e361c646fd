/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * internal.h -- completions of the work requests that the runtime posts for its
 * connections (marker, keep-alive), by the reserved route 0. Runs on the
 * poller. doc/protocols/wr_id.md.
 */

#ifndef RT_CONN_INTERNAL_H
#define RT_CONN_INTERNAL_H

struct rt_poller;

/* Slots, and the handler of the number; before the poller runs, after it has
 * ended. ERRORS: RPMA_E_NOMEM */
int rt_internal_new(struct rt_poller *poller);
void rt_internal_delete(struct rt_poller *poller);

#endif /* RT_CONN_INTERNAL_H */
