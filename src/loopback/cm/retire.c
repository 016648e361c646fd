/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * retire.c -- identifiers end, those of a channel that goes away too. Any
 * thread.
 */

#include "cm/retire.h"

#include "base/base.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/log.h"
#include "cm/channel.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/link.h"
#include "cm/port.h"
#include "cm/request.h"
#include "cm/table.h"
#include "rpma_loopback.h"

void lb_cm_id_retire(struct lb_cm_id *id)
{
	struct lb_cm_id *child;

	lb_cm_link_break(id);
	lb_cm_request_refuse_waiting(id);
	lb_cm_port_leave(id);
	while (lb_cm_event_drop_first(id, &child)) {
		if (!child)
			continue;
		/* a request that will not be read: refuse it */
		lb_cm_id_retire(child);
		lb_cm_id_delete(child);
	}
	lb_cm_id_remove(id);
	id->state = LB_CM_GONE;
	lb_cm_id_set_channel(id, NULL);
}

/* [lock] Identifiers of a closed channel live on without connection. */
static void orphan_ids(const struct lb_cm_channel *ch)
{
	while (!lb_list_is_empty(&ch->ids))
		lb_cm_id_retire(
			lb_entry(ch->ids.next, struct lb_cm_id, channel_node));
}

void lb_cm_channel_delete(struct lb_cm_channel *ch)
{
	if (!ch)
		return;
	lb_cm_lock();
	orphan_ids(ch);
	lb_cm_unlock();
	lb_cm_flush();
	lb_cm_channel_free(ch);
}

LB_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct lb_cm_channel *ch = lb_cm_channel_of(channel);

	if (!ch) {
		lb_log_misuse("rdma_destroy_event_channel: not a channel");
		return;
	}
	lb_hook(RPMA_LOOPBACK_CM_CALL, channel);
	lb_cm_channel_delete(ch);
	lb_hook(RPMA_LOOPBACK_CM_CALL_DONE, channel);
}
