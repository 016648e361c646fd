/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* arm.h -- a poller before it sleeps. */

#ifndef RT_POLLER_ARM_H
#define RT_POLLER_ARM_H

#include <stdbool.h>

struct rt_poller;

/* Arms the CQs; true: nothing to do, sleep on epfd; false: there is work. */
bool rt_arm_poller(struct rt_poller *poller);

#endif /* RT_POLLER_ARM_H */
