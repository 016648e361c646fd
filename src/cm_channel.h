/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A CM event channel as an object. It counts the ids on it: as long as there
 * is one it cannot go. Its reader is whoever calls get_event.
 */

#ifndef RPMA_CM_CHANNEL_H
#define RPMA_CM_CHANNEL_H 1

#include <rdma/rdma_cma.h>

#include "librpma.h"

/* One more, one less id that lives or will live there. NULL: nothing. */
void rpma__cm_channel_get(struct rpma_cm_channel *channel);
void rpma__cm_channel_put(struct rpma_cm_channel *channel);
/* There, and of this process. */
bool rpma__cm_channel_is_valid(const struct rpma_cm_channel *channel);
struct rdma_event_channel *
rpma__cm_channel_get_rdma(const struct rpma_cm_channel *channel);

/* E_NO_EVENT: none on a non-blocking fd; E_AGAIN: a signal; E_PROVIDER. */
int rpma__cm_get_event(struct rdma_event_channel *evch,
		       struct rdma_cm_event **event_ptr);

/* There, with nothing in its reserved words; that is logged. */
bool rpma__cm_event_is_valid(const struct rpma_cm_event *event);
/* And a request of the other side that nobody has refused. */
bool rpma__cm_event_is_request(const struct rpma_cm_event *event);

#endif /* RPMA_CM_CHANNEL_H */
