/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reason.h -- the reason and the detail in CLOSED when a CM event ends a
 * connection. Runs on its device's control thread.
 */

#ifndef RT_CONN_REASON_H
#define RT_CONN_REASON_H

#include <stdint.h>

#include "rpma_rt.h"

enum rpma_rt_reason rt_reason_control(const struct rpma_cm_event *event);
/* As rpma_rt_completion_detail() reads it: 0, a negative errno, or a reject
 * reason of the CM. */
uint32_t rt_reason_detail(const struct rpma_cm_event *event);

#endif /* RT_CONN_REASON_H */
