/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The error of a post that the device refused. */

#include "post_error.h"

#include <errno.h>

#include "librpma.h"
#include "err.h"
#include "log.h"

int rpma__post_error(const char *name, int ret)
{
	if (ret == ENOMEM)
		return RPMA_E_AGAIN;
	RPMA_LOG_CALL(name, ret);
	return RPMA_E_PROVIDER;
}
