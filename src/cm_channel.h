/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A CM event channel as an object. The channel counts the ids that use the
 * channel, and cannot be deleted before the last id is gone. The reader of a
 * channel is the thread that calls get_event.
 */

#ifndef RPMA_CM_CHANNEL_H
#define RPMA_CM_CHANNEL_H 1

#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "librpma.h"

/*
 * Counts an id of the channel in (get) or out (put). channel NULL: does
 * nothing.
 */
void rpma__cm_channel_get(struct rpma_cm_channel *channel);
void rpma__cm_channel_put(struct rpma_cm_channel *channel);
/* Returns true if channel is not NULL and was made in this process. */
bool rpma__cm_channel_is_valid(const struct rpma_cm_channel *channel);
struct rdma_event_channel *
rpma__cm_channel_get_rdma(const struct rpma_cm_channel *channel);

/*
 * Reads an event. Returns E_NO_EVENT if a non-blocking fd has no event, E_AGAIN
 * after a signal, or E_PROVIDER. The caller has disabled cancellation, up to
 * the acknowledgement: an event that nobody acknowledges makes the destruction
 * of its id wait for ever. before: the former state, in which the thread waits
 * if the fd is blocking.
 *
 * A cancelled thread may still lose an event that comes at the same moment to a
 * blocking fd, because librdmacm writes to the device inside
 * rdma_get_cm_event(). To wait by poll(), and to read uncancelled, would take
 * more: poll() ends with EINTR after any signal, where rdma_get_cm_event()
 * obeys SA_RESTART, and of two threads that poll the same fd the second
 * would block uncancelled.
 */
int rpma__cm_get_event(struct rdma_event_channel *evch, int before,
		       struct rdma_cm_event **event_ptr);

/* Returns false, logged, if event is NULL or a reserved word is not 0. */
bool rpma__cm_event_is_valid(const struct rpma_cm_event *event);
/* Returns true for a valid event with an incoming request, not yet refused. */
bool rpma__cm_event_is_request(const struct rpma_cm_event *event);

/*
 * Refuses a request, with private data. ptr NULL, len 0: without. Returns 0,
 * also if the other side has given up and waits for no answer, or E_PROVIDER.
 */
int rpma__cm_refuse(struct rdma_cm_id *id, const void *ptr, uint8_t len);

/*
 * Sets and gets the context of an id. The thread that takes a request over sets
 * the context while the reader of the channel may read another event of the
 * same id, from a peer that gave up. The field of librdmacm is plain, so both
 * accesses are atomic here. After reading the context, the reader owns the
 * object behind the pointer.
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
