/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Objects that are used together are made on the same context. A device that a
 * process opens twice counts as two devices: objects of the first cannot use
 * objects of the second.
 */

#ifndef RPMA_DEVICE_H
#define RPMA_DEVICE_H 1

#include "librpma.h"

/*
 * Checks that user ("a connection") on ctx may use thing ("the CQ") on context
 * its. Returns E_INVAL if the contexts differ, and logs both devices.
 */
int rpma__device_check(const char *user, const struct ibv_context *ctx,
		       const char *thing, const struct ibv_context *its);

#endif /* RPMA_DEVICE_H */
