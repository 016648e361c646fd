/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Objects that are used together are made on the same context. A device that a
 * process opens twice counts as two: objects of one cannot use those of the
 * other.
 */

#ifndef RPMA_DEVICE_H
#define RPMA_DEVICE_H 1

#include "librpma.h"

/*
 * user ("a connection") on ctx is to use thing ("the CQ") on its. E_INVAL if
 * that is another context; logged with both devices.
 */
int rpma__device_check(const char *user, const struct ibv_context *ctx,
		       const char *thing, const struct ibv_context *its);

#endif /* RPMA_DEVICE_H */
