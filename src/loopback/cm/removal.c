/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * removal.c -- a device is removed from under its identifiers. Run by the
 * thread that removes it.
 */

#include "cm/removal.h"

#include "base/list.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/link.h"
#include "cm/port.h"
#include "cm/request.h"
#include "cm/table.h"
#include "object/device.h"

/* [lock] Reports the removal to its identifiers: they serve no more. */
static void tell_removal(int dev)
{
	struct lb_cm_id *id;
	uint32_t cursor = 0;

	while ((id = lb_cm_id_walk(&cursor))) {
		if (id->dev != dev || id->state == LB_CM_GONE)
			continue;
		id->state = LB_CM_GONE;
		lb_cm_event_new(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, 0);
	}
}

/* [lock] Peers on other devices see a disconnect or a refusal. */
static void break_links(int dev)
{
	struct lb_cm_id *id;
	uint32_t cursor = 0;

	while ((id = lb_cm_id_walk(&cursor))) {
		if (id->dev != dev)
			continue;
		lb_cm_port_leave(id);
		lb_cm_link_break(id);
		lb_cm_request_refuse_waiting(id);
	}
}

void lb_cm_removal(struct lb_device *device)
{
	lb_cm_lock();
	tell_removal(device->index);
	break_links(device->index);
	lb_cm_unlock();
	lb_cm_flush();
}
