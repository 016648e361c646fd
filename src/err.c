/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Errors as text. No state; any thread. */

#include "err.h"

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
