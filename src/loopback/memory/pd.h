/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pd.h -- protection domains.
 */

#ifndef LB_MEMORY_PD_H
#define LB_MEMORY_PD_H

#include <infiniband/verbs.h>

#include "object/object.h"

struct lb_pd {
	struct ibv_pd ibv; /* first: the handle */
	struct lb_obj obj;
	struct lb_pd *parent; /* of a parent domain */
};

/* The domain that keys are compared by: pd, or the one it is a child of. */
struct ibv_pd *lb_pd_root(struct ibv_pd *pd);
struct ibv_pd *lb_pd_alloc_parent(struct ibv_context *context,
				  struct ibv_parent_domain_init_attr *attr);

#endif /* LB_MEMORY_PD_H */
