/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pack.h -- a message as it goes to another process.
 */

#ifndef LB_CM_PACK_H
#define LB_CM_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/cm.h"

enum {
	LB_CM_PACK_KIND = 'c', /* the first byte */
	LB_CM_PACK_SIZE = 304, /* of each message */
};

void lb_cm_pack(uint8_t bytes[LB_CM_PACK_SIZE], const struct lb_cm_msg *msg);
/*
 * false: it is none. Types, families and ranges are checked; handles, numbers
 * and addresses are for others to look up. dst_dev is of no device.
 */
bool lb_cm_unpack(struct lb_cm_msg *msg, const void *bytes, size_t size);

#endif /* LB_CM_PACK_H */
