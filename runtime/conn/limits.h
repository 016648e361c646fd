/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * limits.h -- what connections of a configuration ask of the device: the sizes
 * of their queue pairs, compared with what the device has. Any thread that may
 * wait for the device.
 */

#ifndef RT_CONN_LIMITS_H
#define RT_CONN_LIMITS_H

#include <stdint.h>

#include "conn/cfg.h"

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

#endif /* RT_CONN_LIMITS_H */
