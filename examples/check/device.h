/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.h: RDMA devices, their ports and GIDs.
 */

#ifndef CHECK_DEVICE_H
#define CHECK_DEVICE_H

#include <stdbool.h>

#include <infiniband/verbs.h>

/* Has the kernel this device? Then its limits apply, of locked memory, say;
 * one in user space, as the loopback device, has none of them. */
bool device_is_of_kernel(const struct ibv_device *device);
/* Answers how many can be opened; is one of them the kernel's? */
int device_print_all(bool *is_of_kernel);

#endif /* CHECK_DEVICE_H */
