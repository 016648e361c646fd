/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A CM event channel as an object. The channel counts the ids on it: as long
 * as there is one, it cannot be deleted. Its reader is the thread that calls
 * get_event.
 */

#ifndef RPMA_CM_CHANNEL_H
#define RPMA_CM_CHANNEL_H 1

#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "librpma.h"

/* Counts one id more, one id less on the channel. NULL: does nothing. */
void rpma__cm_channel_get(struct rpma_cm_channel *channel);
void rpma__cm_channel_put(struct rpma_cm_channel *channel);
/* True: not NULL, and made in this process. */
bool rpma__cm_channel_is_valid(const struct rpma_cm_channel *channel);
struct rdma_event_channel *
rpma__cm_channel_get_rdma(const struct rpma_cm_channel *channel);

/* E_NO_EVENT: none on a non-blocking fd; E_AGAIN: a signal; E_PROVIDER. */
int rpma__cm_get_event(struct rdma_event_channel *evch,
		       struct rdma_cm_event **event_ptr);

/* False, logged: NULL, or its reserved words are not 0. */
bool rpma__cm_event_is_valid(const struct rpma_cm_event *event);
/* A valid event that is an incoming request which was not refused. */
bool rpma__cm_event_is_request(const struct rpma_cm_event *event);

/*
 * The context of an id. The thread that takes a request over sets it while the
 * channel's reader may read an event of the same id, of a peer that gave up:
 * librdmacm's field is plain, so both are atomic here. What the context points
 * to is the reader's once it sees it.
 */
static inline void rpma__cm_set_context(struct rdma_cm_id *id, void *context)
{
	/* release: pairs with the acquire below */
	atomic_store_explicit((_Atomic(void *) *)&id->context, context,
			      memory_order_release);
}

static inline void *rpma__cm_context_of(const struct rdma_cm_id *id)
{
	/* acquire: pairs with the release above */
	return atomic_load_explicit((_Atomic(void *) const *)&id->context,
				    memory_order_acquire);
}

#endif /* RPMA_CM_CHANNEL_H */
