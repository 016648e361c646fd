/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dev.h -- devices as the connection manager uses them.
 */

#ifndef LB_CM_DEV_H
#define LB_CM_DEV_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "cm/cm.h"

struct lb_device;

/* A device as the connection manager uses it, opened at its first use. */
struct lb_cm_dev {
	struct lb_device *dev;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	enum ibv_mtu mtu;
	uint8_t responder_resources;
	uint8_t initiator_depth;
};

/*
 * Device index; NULL: there is none, or it cannot be opened. Not under the
 * lock, except for the device of an identifier, which has been opened.
 */
const struct lb_cm_dev *lb_cm_dev(int index);
const union ibv_gid *lb_cm_dev_gid(int index, int gid_index);

#endif /* LB_CM_DEV_H */
