/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lost.h -- a device is lost, or the events of its connections are: what ends
 * then, so that no program waits for ever.
 */

#ifndef RT_CONN_LOST_H
#define RT_CONN_LOST_H

#include "base/device.h"

extern const struct rt_device_ops rt_lost_ops;

#endif /* RT_CONN_LOST_H */
