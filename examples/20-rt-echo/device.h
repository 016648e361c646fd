/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.h: makes a peer for an address, on a device with enough room.
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

/* Opens the device; returns false after a message on stderr. */
bool device_open(const struct options *options, struct device *device);
void device_close(struct device *device);

#endif /* ECHO_DEVICE_H */
