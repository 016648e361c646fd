/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ops.h -- the slots of a context.
 */

#ifndef LB_VERBS_OPS_H
#define LB_VERBS_OPS_H

#include <infiniband/verbs.h>

void lb_stubs_fill_ops(struct verbs_context *vctx);

#endif /* LB_VERBS_OPS_H */
