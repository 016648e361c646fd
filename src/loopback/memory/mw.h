/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mw.h -- memory windows.
 */

#ifndef LB_MEMORY_MW_H
#define LB_MEMORY_MW_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "memory/mr.h"

struct ibv_mw *lb_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int lb_mw_dealloc(struct ibv_mw *mw);
/* What a bind work request asks for. */
struct lb_mw_bind {
	uint32_t rkey; /* the new one */
	uint32_t lkey;
	uint32_t access;
	uint64_t addr;
	uint64_t length;
};
/* 0, and *bind is what to ask for, or EINVAL. */
int lb_mw_ask(struct lb_mw_bind *bind, struct ibv_mw *mw, uint32_t rkey,
	      const struct ibv_mw_bind_info *info);
bool lb_mw_bind(const struct lb_mw_bind *bind, const struct lb_mr_user *user);
/* The window with this rkey is not bound any more; false: there is none. */
bool lb_mw_invalidate(uint32_t rkey, const struct ibv_pd *pd);

#endif /* LB_MEMORY_MW_H */
