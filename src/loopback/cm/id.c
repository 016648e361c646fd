/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * id.c -- identifiers are made, destroyed, and move to another channel. Any
 * thread.
 */

#include "cm/id.h"

#include <errno.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/log.h"
#include "cm/channel.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/retire.h"
#include "cm/start.h"
#include "cm/table.h"
#include "fault/fault.h"
#include "rpma_loopback.h"

static bool is_supported(enum rdma_port_space ps, enum ibv_qp_type type)
{
	bool is_connected = type == IBV_QPT_RC || type == IBV_QPT_UC;

	switch (ps) {
	case RDMA_PS_TCP:
		return is_connected;
	case RDMA_PS_UDP:
		return type == IBV_QPT_UD;
	case RDMA_PS_IB:
		return is_connected || type == IBV_QPT_UD;
	default:
		return false;
	}
}

int lb_cm_id_create(struct lb_cm_channel *channel, struct rdma_cm_id **out,
		    void *context, enum rdma_port_space ps,
		    enum ibv_qp_type type)
{
	struct lb_cm_channel *own = NULL;
	struct lb_cm_id *id;
	int err = ENOMEM;

	lb_cm_start();
	if (!is_supported(ps, type))
		return lb_cm_err(EOPNOTSUPP);
	if (!channel)
		channel = own = lb_cm_channel_new();
	if (!channel)
		return -1;
	id = lb_cm_id_new(ps, type);
	if (!id)
		goto err_channel;
	id->id.context = context;
	id->id.channel = &channel->ch;
	id->opener = channel->opener;
	id->sockets.sync = own != NULL;
	lb_cm_lock();
	err = lb_cm_id_insert(id);
	if (!err)
		lb_cm_id_set_channel(id, channel);
	lb_cm_unlock();
	if (err)
		goto err_id;
	*out = &id->id;
	return 0;

err_id:
	lb_cm_id_delete(id);
err_channel:
	lb_cm_channel_delete(own);
	return lb_cm_err(err);
}

/* The last event of a synchronous identifier is acknowledged with it. */
static void drop_sync_event(struct lb_cm_id *id)
{
	if (id->id.event)
		lb_cm_event_ack(id->id.event);
	id->id.event = NULL;
}

void lb_cm_id_destroy(struct lb_cm_id *id)
{
	struct lb_cm_channel *own;

	lb_cm_lock();
	own = id->sockets.sync ? id->channel : NULL;
	lb_cm_id_retire(id);
	lb_cm_unlock();
	lb_cm_flush();
	drop_sync_event(id);
	lb_cm_event_wait_acked(id, NULL);
	lb_cm_channel_delete(own);
	lb_cm_id_delete(id);
}

int lb_cm_id_migrate(struct lb_cm_id *id, struct lb_cm_channel *to)
{
	struct lb_cm_channel *own = NULL;
	struct lb_cm_channel *old;
	bool was_sync;

	if (!to)
		to = own = lb_cm_channel_new();
	if (!to)
		return -1;
	lb_cm_lock();
	was_sync = id->sockets.sync;
	old = id->channel;
	if (old) {
		lb_cm_event_move_all(id, to);
		lb_cm_id_set_channel(id, to);
		id->sockets.sync = own != NULL;
		id->opener = to->opener;
	}
	lb_cm_unlock();
	if (!old) {
		lb_cm_channel_delete(own);
		return lb_cm_err(ENXIO);
	}
	if (was_sync)
		drop_sync_event(id);
	id->id.channel = &to->ch;
	/* after this nobody handles an event of id that came by the old one */
	lb_cm_event_wait_acked(id, old);
	if (was_sync)
		lb_cm_channel_delete(old);
	return 0;
}

LB_EXPORT int rdma_create_id(struct rdma_event_channel *channel,
			     struct rdma_cm_id **id, void *context,
			     enum rdma_port_space ps)
{
	struct lb_cm_channel *ch = channel ? lb_cm_channel_of(channel) : NULL;
	int err = lb_fault_errno("rdma_create_id");

	if (!err && ch)
		err = lb_opener_check(&ch->opener);
	if (err || !id || (channel && !ch))
		return lb_cm_err(err ? err : EINVAL);
	lb_hook(RPMA_LOOPBACK_CM_CALL, channel);
	return lb_cm_leave(
		channel,
		lb_cm_id_create(ch, id, context, ps,
				ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC));
}

LB_EXPORT int rdma_destroy_id(struct rdma_cm_id *cm_id)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_destroy_id", cm_id);

	if (!id)
		return -1;
	if (cm_id->qp)
		lb_log_misuse("rdma_destroy_id: its QP still exists");
	lb_cm_id_destroy(id);
	return lb_cm_leave(cm_id, 0);
}

LB_EXPORT int rdma_migrate_id(struct rdma_cm_id *cm_id,
			      struct rdma_event_channel *channel)
{
	struct lb_cm_channel *to = channel ? lb_cm_channel_of(channel) : NULL;
	struct lb_cm_id *id = lb_cm_enter("rdma_migrate_id", cm_id);

	if (!id)
		return -1;
	if ((channel && !to) || (!channel && lb_cm_id_is_sync(id)))
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	return lb_cm_leave(cm_id, lb_cm_id_migrate(id, to));
}
