/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Comparing the devices of two objects. No state. */

#include "device.h"

#include "log.h"

int rpma__device_check(const char *user, const struct ibv_context *ctx,
		       const char *thing, const struct ibv_context *its)
{
	if (ctx == its)
		return 0;
	RPMA_LOG_ERROR("%s is of device %s%s, %s of %s: both have to be made "
		       "on one context",
		       thing, its->device->name,
		       its->device == ctx->device ? ", opened another time"
						  : "",
		       user, ctx->device->name);
	return RPMA_E_INVAL;
}
