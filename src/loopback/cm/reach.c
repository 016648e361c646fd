/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reach.c -- a request finds the process that listens at its port, by asking
 * for the name of the port. Everything is under the lock, except that the
 * answer takes it itself.
 */

#include "cm/reach.h"

#include <errno.h>
#include <stdlib.h>

#include "cm/addr.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/port.h"
#include "cm/table.h"
#include "wire/link.h"
#include "wire/nic.h"
#include "wire/port.h"

struct lb_cm_reach {
	struct lb_ask *ask;
	lb_cm_reach_fn *fn;
	struct lb_cm_msg req;
};

bool lb_cm_reach_is_far(const struct lb_cm_msg *req)
{
	return !lb_cm_port_is_ours(req->ps, &req->dst) && lb_nic_self();
}

/* [lock] It is found, or not. */
static void finish(struct lb_cm_id *id, unsigned number)
{
	struct lb_cm_reach *reach = id->reach;

	id->reach = NULL;
	if (!number)
		lb_cm_addr_log_nobody(&reach->req.dst);
	id->via = number ? lb_nic_link(lb_nic_self(), number) : NULL;
	reach->fn(id, &reach->req);
	free(reach);
}

static void answered(struct lb_ask *ask, uint32_t handle, unsigned number)
{
	struct lb_cm_id *id;

	lb_cm_lock();
	id = lb_cm_id_find(handle);
	if (id && id->reach && id->reach->ask == ask)
		finish(id, number);
	lb_cm_unlock();
	lb_cm_flush();
}

bool lb_cm_reach_start(struct lb_cm_id *id, const struct lb_cm_msg *req,
		       lb_cm_reach_fn *fn)
{
	struct lb_cm_port_names names;
	struct lb_nic *nic = lb_nic_self();
	struct lb_cm_reach *reach;

	if (!nic || lb_nic_serve(nic)) {
		lb_cm_addr_log_nobody(&req->dst);
		return false;
	}
	reach = malloc(sizeof(*reach));
	if (!reach)
		return false;
	lb_cm_port_names(&names, req->ps, &req->dst);
	reach->fn = fn;
	reach->req = *req;
	reach->req.from = id->handle;
	reach->ask = lb_port_ask(nic, names.each, answered, id->handle);
	if (!reach->ask) {
		free(reach);
		lb_cm_addr_log_nobody(&req->dst);
		return false;
	}
	id->reach = reach;
	return true;
}

void lb_cm_reach_stop(struct lb_cm_id *id)
{
	if (!id->reach)
		return;
	lb_port_cancel(id->reach->ask);
	free(id->reach);
	id->reach = NULL;
}
