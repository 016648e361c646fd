/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.h -- the configuration of a connection: a copy of the program's
 * configuration, with librpma's configuration for sizes and timers.
 */

#ifndef RT_CONN_CFG_H
#define RT_CONN_CFG_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"

/* plain data; belongs to a listener or a call */
struct rt_conn_cfg {
	struct rpma_peer *peer;
	/* NULL: each poller has a queue of its own in `queues` */
	struct rpma_rt_queue *queue;
	struct rpma_rt_queue *queues[RPMA_RT_MAX_POLLERS]; /* NULL: no queue */
	void *user;
	struct rpma_conn_cfg *verbs; /* sizes and timers */
	int poller;		     /* an index or RPMA_RT_POLLER_* */
	int backlog;
	uint32_t keepalive_ms; /* 0: off */
	uint32_t futures;      /* futures of a side */
	/* work requests in line, of a side */
	uint32_t waiting;
	/* receives that a connection wants of its pool at first */
	uint32_t rq_base;
	/* by index of the poller */
	struct rpma_rt_srq *srqs[RPMA_RT_MAX_POLLERS];
	struct rpma_rt_pool *pool;
};

/* Checks and copies the program's configuration. ERRORS: RPMA_E_INVAL, logged;
 * RPMA_E_NOMEM. After a success *cfg needs rt_conn_cfg_fini(). */
int rt_conn_cfg_read(const struct rpma_rt_conn_cfg *given,
		     const struct rpma_rt *rt, struct rt_conn_cfg *cfg);
void rt_conn_cfg_fini(struct rt_conn_cfg *cfg);

/* Makes the configuration of librpma's request: a copy, with the channel cm;
 * the caller adds the CQ. ERRORS: RPMA_E_NOMEM */
int rt_conn_cfg_verbs(const struct rt_conn_cfg *cfg, struct rpma_cm_channel *cm,
		      struct rpma_conn_cfg **verbs_ptr);

/* Returns the queue for connections on the poller with that index; NULL: no
 * queue. */
static inline struct rpma_rt_queue *
rt_conn_cfg_queue(const struct rt_conn_cfg *cfg, uint32_t poller)
{
	return cfg->queue != NULL ? cfg->queue : cfg->queues[poller];
}

/* Returns the pollers, as bits, for which cfg names an SRQ; 0: cfg names no
 * SRQ. */
uint64_t rt_conn_cfg_srq_pollers(const struct rt_conn_cfg *cfg);
/* Count a user of each SRQ and of the pool that cfg names, and take the user
 * out of the counts. REQUIRES: the runtime's lock. */
void rt_conn_cfg_ref(const struct rt_conn_cfg *cfg);
void rt_conn_cfg_unref(const struct rt_conn_cfg *cfg);

/* --------------------------------------------------------------- limits --- */

/* Limits: the sizes of the queue pairs of a configuration, compared with the
 * device's sizes. Any thread that may wait for the device. */

/* sizes of a connection's queue pair */
struct rt_limits {
	uint32_t sq; /* work requests of the program */
	uint32_t rq; /* 0: receives come from an SRQ */
	/* with a slot for the marker, and a slot for a keep-alive */
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_sge;
	uint32_t max_inline;
};

struct rt_limits rt_limits_of(const struct rt_conn_cfg *cfg);
/* Compares the limits with the device's attributes. ERRORS: RPMA_E_INVAL,
 * logged; RPMA_E_PROVIDER */
int rt_limits_check(const struct rt_conn_cfg *cfg);
/* Makes a queue pair of these sizes and destroys the queue pair: not every
 * limit can be read (max_inline), and some limits hold only together. ERRORS:
 * RPMA_E_INVAL, RPMA_E_NOMEM, RPMA_E_PROVIDER, logged */
int rt_limits_try(const struct rt_conn_cfg *cfg);

#endif /* RT_CONN_CFG_H */
