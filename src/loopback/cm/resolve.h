/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resolve.h -- identifiers are bound.
 */

#ifndef LB_CM_RESOLVE_H
#define LB_CM_RESOLVE_H

#include "cm/cm.h"

/* Bind to the wildcard and a free port. 0 or an errno. */
int lb_cm_resolve_bind_any(struct lb_cm_id *id);

#endif /* LB_CM_RESOLVE_H */
