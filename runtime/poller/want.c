/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * want.c -- see want.h: the reason why the calling thread was refused.
 */

#include "poller/want.h"

#include "poller/side.h"

_Thread_local enum rpma_rt_again rt_want_reason;

enum rpma_rt_again rpma_rt_again_reason(void)
{
	return rt_want_reason;
}
