/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.h -- what a connection of the runtime is made with: librpma's
 * sizes and timers, and what only the runtime knows.
 */

#ifndef RT_CONN_CFG_H
#define RT_CONN_CFG_H

#include <stdbool.h>

#include "rpma_rt.h"

/* plain data of its owner; a listener and a birth have copies */
struct rpma_rt_conn_cfg {
	struct rpma_conn_cfg *conn_cfg; /* NULL: librpma's defaults */
	bool single_poster;
	uint32_t keepalive_ms;			       /* 0: off */
	struct rpma_rt_srq *srqs[RPMA_RT_MAX_POLLERS]; /* by poller */
};

/* ERRORS: RPMA_E_NOMEM. cfg NULL: the defaults. The copy is deleted by
 * rpma_rt_conn_cfg_delete(). */
int rt_conn_cfg_copy(const struct rpma_rt_conn_cfg *cfg,
		     struct rpma_rt_conn_cfg **copy_ptr);

/* Does it name only what is rt's? SRQs are known by their poller's index. */
bool rt_conn_cfg_is_of(const struct rpma_rt_conn_cfg *cfg,
		       const struct rpma_rt *rt);

/* What librpma gets to make a request with: a copy, cm in it; the caller adds
 * its CQ. ERRORS: RPMA_E_NOMEM */
int rt_conn_cfg_verbs(const struct rpma_rt_conn_cfg *cfg,
		      struct rpma_cm_channel *cm,
		      struct rpma_conn_cfg **verbs_ptr);

/* Which pollers have an SRQ in cfg: bits; 0: none is named. */
uint64_t rt_conn_cfg_srq_pollers(const struct rpma_rt_conn_cfg *cfg);
/* A user more or less of each that cfg names. REQUIRES: the runtime's lock. */
void rt_conn_cfg_ref_srqs(const struct rpma_rt_conn_cfg *cfg);
void rt_conn_cfg_unref_srqs(const struct rpma_rt_conn_cfg *cfg);

#endif /* RT_CONN_CFG_H */
