/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.h -- the configuration of a connection: a copy of the program's, with
 * librpma's configuration for sizes and timers.
 */

#ifndef RT_CONN_CFG_H
#define RT_CONN_CFG_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"

/* plain data of its owner: a listener, a call */
struct rt_conn_cfg {
	struct rpma_peer *peer;
	struct rpma_rt_queue *queue; /* NULL: that of its poller in queues */
	struct rpma_rt_queue *queues[RPMA_RT_MAX_POLLERS]; /* NULL: none */
	void *user;
	struct rpma_conn_cfg *verbs; /* every size and timer */
	int poller;		     /* an index or RPMA_RT_POLLER_* */
	int backlog;
	uint32_t keepalive_ms;			       /* 0: off */
	uint32_t futures;			       /* a side */
	uint32_t waiting;			       /* in line, a side */
	struct rpma_rt_srq *srqs[RPMA_RT_MAX_POLLERS]; /* by poller */
	struct rpma_rt_pool *pool;
};

/* Checks and copies. ERRORS: RPMA_E_INVAL, logged; RPMA_E_NOMEM. Where it
 * succeeds *cfg needs rt_conn_cfg_fini(). */
int rt_conn_cfg_read(const struct rpma_rt_conn_cfg *given,
		     const struct rpma_rt *rt, struct rt_conn_cfg *cfg);
void rt_conn_cfg_fini(struct rt_conn_cfg *cfg);

/* The configuration of librpma's request: a copy, with the channel cm; the
 * caller adds its CQ. ERRORS: RPMA_E_NOMEM */
int rt_conn_cfg_verbs(const struct rt_conn_cfg *cfg, struct rpma_cm_channel *cm,
		      struct rpma_conn_cfg **verbs_ptr);

/* The queue of what lives on the poller with that index; NULL: it has none. */
static inline struct rpma_rt_queue *
rt_conn_cfg_queue(const struct rt_conn_cfg *cfg, uint32_t poller)
{
	return cfg->queue != NULL ? cfg->queue : cfg->queues[poller];
}

/* Which pollers have an SRQ in cfg: bits; 0: none is named. */
uint64_t rt_conn_cfg_srq_pollers(const struct rt_conn_cfg *cfg);
/* The same, of those that have not failed. */
uint64_t rt_conn_cfg_srq_pollers_alive(const struct rt_conn_cfg *cfg);
/* A user more or less of each SRQ and the pool that cfg names. REQUIRES: the
 * runtime's lock. */
void rt_conn_cfg_ref(const struct rt_conn_cfg *cfg);
void rt_conn_cfg_unref(const struct rt_conn_cfg *cfg);

/* --------------------------------------------------------------- limits --- */

/* What connections of a configuration ask of the device: the sizes of their
 * queue pairs, compared with what the device has. Any thread that may wait for
 * the device. */

/* of a connection's queue pair */
struct rt_limits {
	uint32_t sq; /* work requests of the program */
	uint32_t rq; /* 0: receives come from an SRQ */
	/* with the slot for the marker, and one for a keep-alive */
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_sge;
	uint32_t max_inline;
};

struct rt_limits rt_limits_of(const struct rt_conn_cfg *cfg);
/* Compares with what the device says of itself.
 * ERRORS: RPMA_E_INVAL, logged; RPMA_E_PROVIDER */
int rt_limits_check(const struct rt_conn_cfg *cfg);
/* Asks the device for a queue pair of that kind, and gives it back: not every
 * limit can be read (max_inline), and some hold together only.
 * ERRORS: RPMA_E_INVAL, RPMA_E_NOMEM, RPMA_E_PROVIDER, logged */
int rt_limits_try(const struct rt_conn_cfg *cfg);

#endif /* RT_CONN_CFG_H */
