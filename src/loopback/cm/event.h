/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * event.h -- the life of an event.
 */

#ifndef LB_CM_EVENT_H
#define LB_CM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "cm/cm.h"

/*
 * [lock] Makes an event of owner; readers see the event after lb_cm_flush().
 * data may be NULL; the reader gets len bytes of data, padded with zeros. The
 * caller may fill in more fields of the result, which is NULL if there is no
 * such event: no memory, a fault dropped the event, or owner gets no events.
 */
struct lb_cm_event *lb_cm_event_new(struct lb_cm_id *owner,
				    enum rdma_cm_event_type type, int status,
				    const void *data, uint8_t len);
void lb_cm_event_set_params(struct lb_cm_event *event,
			    const struct lb_cm_params *params);
/* How the owner gets to the queue pair qpn behind a GID. */
void lb_cm_event_set_ud(struct lb_cm_event *event, const union ibv_gid *gid,
			uint32_t qpn);
/* Delivers pending events, with the hooks around each. No lock. */
void lb_cm_flush(void);
/*
 * [lock] Drops the first unread event; *child is the identifier of a dropped
 * request, or NULL. Returns false without an unread event.
 */
bool lb_cm_event_drop_first(struct lb_cm_id *id, struct lb_cm_id **child);
/* [lock] Read events need no acknowledgement any more. */
void lb_cm_event_disown(struct lb_cm_id *id);
/* [lock] unread ones of this group */
void lb_cm_event_drop_group(struct lb_cm_id *id,
			    const struct lb_cm_group *group);
/* [lock] unread ones, also of requests to a listener */
void lb_cm_event_move_all(struct lb_cm_id *id, struct lb_cm_channel *to);
void lb_cm_event_ack(struct rdma_cm_event *event);
/* Waits until all events read (from one channel) are acknowledged. */
void lb_cm_event_wait_acked(struct lb_cm_id *id,
			    const struct lb_cm_channel *from);
/* Waits until all events of the group are acknowledged. */
void lb_cm_event_wait_group(struct lb_cm_id *id,
			    const struct lb_cm_group *group);

#endif /* LB_CM_EVENT_H */
