/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.h: makes a peer of an address, on a device that has room enough.
 */

#ifndef ECHO_DEVICE_H
#define ECHO_DEVICE_H

#include <librpma.h>

#include "../common/address.h"
#include "options.h"

struct device {
	char address[256]; /* to listen on, or of the server */
	struct ibv_context *context;
	struct rpma_peer *peer;
	unsigned max_cqe;
};

/* false: one line on stderr said why. */
bool device_open(const struct options *options, struct device *device);
void device_close(struct device *device);

#endif /* ECHO_DEVICE_H */
