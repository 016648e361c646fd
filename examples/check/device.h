/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.h: RDMA devices, their ports and GIDs.
 */

#ifndef CHECK_DEVICE_H
#define CHECK_DEVICE_H

#include <stdbool.h>

#include <infiniband/verbs.h>

/* Returns true if the kernel has the device: then limits of the kernel apply,
 * such as locked memory. A device in user space, such as the loopback device,
 * has no such limits. */
bool device_is_of_kernel(const struct ibv_device *device);
/*
 * Prints all devices; returns how many can be opened, and sets *is_of_kernel if
 * the kernel has a device.
 */
int device_print_all(bool *is_of_kernel);

#endif /* CHECK_DEVICE_H */
