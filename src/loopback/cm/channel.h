/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * channel.h -- event channels.
 */

#ifndef LB_CM_CHANNEL_H
#define LB_CM_CHANNEL_H

#include <rdma/rdma_cma.h>

#include "cm/cm.h"

struct lb_cm_channel *lb_cm_channel_of(struct rdma_event_channel *channel);
struct lb_cm_channel *lb_cm_channel_new(void);
void lb_cm_channel_free(struct lb_cm_channel *ch);
/* [lock] In a child: channels are its own, without units of the parent. */
void lb_cm_channel_forked(void);
/* [lock] push an event where readers find it; take it away again */
void lb_cm_channel_push(struct lb_cm_channel *ch, struct lb_cm_event *event);
void lb_cm_channel_withdraw(struct lb_cm_channel *ch,
			    struct lb_cm_event *event);

#endif /* LB_CM_CHANNEL_H */
