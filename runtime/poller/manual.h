/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* manual.h -- rounds of pollers in manual mode by a thread that waits. */

#ifndef RT_POLLER_MANUAL_H
#define RT_POLLER_MANUAL_H

#include "rpma_rt.h"

/* In manual mode runs a round of every poller that nobody runs. */
void rt_manual_assist(struct rpma_rt *rt);

#endif /* RT_POLLER_MANUAL_H */
