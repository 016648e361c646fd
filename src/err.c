/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Errors as text, of librpma, verbs and rdma_cm. No state; any thread.
 */

#include "err.h"

#include <errno.h>
#include <string.h>

const char *rpma__errno_2str(int ret)
{
	/* strerror() is not thread-safe, and strerror_l() wants a locale */
	const char *text = strerrordesc_np(ret > 0 ? ret : errno);

	return text ? text : "unknown errno";
}

const char *rpma_err_2str(int ret)
{
	switch (ret) {
	case 0:
		return "Success";
#define RPMA__ERROR_CASE(name, text) \
	case name:                   \
		return text;
		RPMA__ERRORS(RPMA__ERROR_CASE)
#undef RPMA__ERROR_CASE
	default:
		return "Unknown error";
	}
}
