/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * publish.c -- tells the application what has been found out about an
 * identifier. Run by a thread that calls a function on it, or reads its event.
 */

#include "cm/publish.h"

#include <stdlib.h>

#include "cm/cm.h"
#include "cm/dev.h"
#include "cm/table.h"

#define FULL_PKEY 0xffff

static void publish_device(struct rdma_cm_id *id, int index)
{
	const struct lb_cm_dev *dev = lb_cm_dev(index);

	if (!dev || id->verbs)
		return;
	id->verbs = dev->verbs;
	id->pd = dev->pd;
	id->port_num = LB_CM_PORT_NUM;
}

void lb_cm_publish_addr(struct lb_cm_id *id)
{
	struct rdma_addr *addr = &id->id.route.addr;
	int index;

	lb_cm_lock();
	addr->src_storage = id->src;
	addr->dst_storage = id->dst;
	index = id->dev;
	if (index >= 0) {
		addr->addr.ibaddr.sgid = *lb_cm_dev_gid(index, id->gid_index);
		addr->addr.ibaddr.pkey = htons(FULL_PKEY);
	}
	lb_cm_unlock();
	publish_device(&id->id, index);
}

void lb_cm_publish_route(struct lb_cm_id *id)
{
	struct rdma_route *route = &id->id.route;
	struct ibv_sa_path_rec *path = calloc(1, sizeof(*path));
	const struct lb_cm_dev *dev;
	int index;

	if (!path)
		return;
	lb_cm_lock();
	index = id->dev;
	path->sgid = *lb_cm_dev_gid(id->dev, id->gid_index);
	path->dgid = id->dgid;
	path->traffic_class = id->tos;
	lb_cm_unlock();
	dev = lb_cm_dev(index);
	path->hop_limit = 64;
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = htons(FULL_PKEY);
	path->mtu_selector = 2; /* exactly */
	path->mtu = dev ? (uint8_t)dev->mtu : (uint8_t)IBV_MTU_1024;
	route->addr.addr.ibaddr.dgid = path->dgid;
	free(route->path_rec);
	route->path_rec = path;
	route->num_paths = 1;
}
