/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.h -- the configurations given by programs: the rules for their fields,
 * and the log message for a broken rule. A program may have been built with
 * fewer fields than this library has, or more.
 */

#ifndef RT_BASE_CFG_H
#define RT_BASE_CFG_H

#include <stddef.h>
#include <stdint.h>

#include "rpma_rt.h"

/* futures at a time, at most */
#define RT_CFG_FUTURES 1048576
#define RT_CFG_WAITING 1048576

enum rt_cfg_rule {
	RT_CFG_RANGE, /* a number: min..max, or the initial value */
	RT_CFG_POWER, /* likewise, and a power of two */
	RT_CFG_ANY,   /* any value */
	RT_CFG_ZERO,  /* reserved */
	RT_CFG_NEEDED /* a pointer other than NULL */
};

struct rt_cfg_field {
	const char *name;
	size_t offset;
	size_t size;
	enum rt_cfg_rule rule;
	int64_t min;
	int64_t max;
};

/* a struct of rpma_rt.h, beginning with its size, 32 bits */
struct rt_cfg_type {
	const char *name;
	const struct rt_cfg_field *fields; /* up to a field without a name */
	const void *init;		   /* the values written by the
					    * initializer */
	size_t size;
	size_t first_size; /* in the first release */
};

/*
 * Copies the configuration of the program: *cfg has every field, checked, and
 * defaults where 0 means the default. given NULL: the defaults. Pointers in the
 * configuration still belong to the program. ERRORS: RPMA_E_INVAL, logged.
 */
int rt_cfg_read(const struct rt_cfg_type *type, const void *given, void *cfg);
/*
 * Initializes the first size bytes of a configuration. ERRORS: RPMA_E_INVAL,
 * logged
 */
int rt_cfg_init(const struct rt_cfg_type *type, void *cfg, size_t size);
/* Logs that a field of a struct is not in min..max. Returns RPMA_E_INVAL. */
int rt_cfg_refuse(const char *type, const char *field, int64_t value,
		  int64_t min, int64_t max);

/* Read a configuration of each type like rt_cfg_read(), with rules beyond a
 * range. ERRORS: RPMA_E_INVAL, logged; RPMA_E_PROVIDER: the CPUs are not
 * known. */
int rt_cfg_read_runtime(const struct rpma_rt_cfg *given,
			struct rpma_rt_cfg *cfg);
int rt_cfg_read_queue(const struct rpma_rt_queue_cfg *given,
		      struct rpma_rt_queue_cfg *cfg);
int rt_cfg_read_shards(const struct rpma_rt_shards_cfg *given, uint32_t pollers,
		       struct rpma_rt_shards_cfg *cfg);
int rt_cfg_read_pool(const struct rpma_rt_pool_cfg *given,
		     struct rpma_rt_pool_cfg *cfg);
int rt_cfg_read_srq(const struct rpma_rt_srq_cfg *given, uint32_t pollers,
		    struct rpma_rt_srq_cfg *cfg);
int rt_cfg_read_conn(const struct rpma_rt_conn_cfg *given, uint32_t pollers,
		     struct rpma_rt_conn_cfg *cfg);

#endif /* RT_BASE_CFG_H */
