/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * read.h -- events are read.
 */

#ifndef LB_CM_READ_H
#define LB_CM_READ_H

#include <rdma/rdma_cma.h>

#include "cm/cm.h"

/* Wait for an event, as the channel's O_NONBLOCK says; NULL with errno. */
struct rdma_cm_event *lb_cm_read(struct lb_cm_channel *ch);
/* A synchronous call ends with the event that it waits for here. */
int lb_cm_read_sync(struct lb_cm_id *id);

#endif /* LB_CM_READ_H */
