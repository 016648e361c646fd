/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures.c -- see futures.h. Reserved and given back under the runtime's lock;
 * the rest runs on the connection's poller.
 */

#include "conn/futures.h"

#include "conn/item.h"
#include "future/future.h"
#include "poller/cq_pool.h"
#include "poller/route.h"
#include "poller/waiting.h"

static struct rt_route_entry *entry_of(struct rpma_rt_conn *conn, int side)
{
	return &conn->cq->routes[conn->side[side].futures->number];
}

static int reserve_waiting(struct rt_futures *futures,
			   const struct rpma_rt_conn *conn,
			   enum rpma_rt_side side, uint32_t count)
{
	if (count == 0)
		return 0;
	futures->waiting = rt_waiting_new(side, count, conn->max_sge);
	return futures->waiting != NULL ? 0 : RPMA_E_NOMEM;
}

static int reserve_side(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			uint32_t count, uint32_t waiting)
{
	struct rt_futures *futures;
	int ret;

	futures = rt_future_block_take(conn->poller, &conn->side[side], count);
	if (futures == NULL)
		return RPMA_E_NOMEM;
	ret = rt_numbers_take(&conn->cq->numbers, &futures->number);
	if (ret) {
		rt_future_block_return(futures);
		return ret;
	}
	conn->side[side].futures = futures;
	return reserve_waiting(futures, conn, side, waiting);
}

int rt_futures_reserve(struct rpma_rt_conn *conn, uint32_t count,
		       uint32_t waiting)
{
	int ret = 0;
	int i;

	for (i = 0; i < 2 && ret == 0; i++) {
		if (rt_futures_has(conn, (enum rpma_rt_side)i, count))
			ret = reserve_side(conn, (enum rpma_rt_side)i, count,
					   waiting);
	}
	if (ret)
		rt_futures_unreserve(conn);
	return ret;
}

void rt_futures_unreserve(struct rpma_rt_conn *conn)
{
	struct rt_futures *futures;
	int i;

	for (i = 0; i < 2; i++) {
		futures = conn->side[i].futures;
		if (futures == NULL)
			continue;
		conn->side[i].futures = NULL;
		rt_numbers_return(&conn->cq->numbers, futures->number);
		rt_waiting_delete(futures->waiting);
		futures->waiting = NULL;
		rt_future_block_return(futures);
	}
}

void rt_futures_open_poller(struct rpma_rt_conn *conn)
{
	struct rt_futures *futures;
	int i;

	for (i = 0; i < 2; i++) {
		futures = conn->side[i].futures;
		if (futures == NULL)
			continue;
		futures->own = &conn->cq->routes[conn->own[i].number];
		*entry_of(conn, i) = (struct rt_route_entry){
			.futures = futures,
			.user = rt_item_user(conn),
			.side = &conn->side[i],
			.is_callback = true,
			.is_futures = true,
		};
	}
}

void rt_futures_bind_poller(struct rpma_rt_conn *conn)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (conn->side[i].futures != NULL)
			entry_of(conn, i)->qp_key = rt_qp_key(conn->qp_num);
	}
}

void rt_futures_set_user_poller(struct rpma_rt_conn *conn)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (conn->side[i].futures != NULL)
			entry_of(conn, i)->user = rt_item_user(conn);
	}
}

void rt_futures_end_poller(struct rpma_rt_conn *conn)
{
	struct rt_futures *futures;
	int i;

	for (i = 0; i < 2; i++) {
		futures = conn->side[i].futures;
		if (futures == NULL)
			continue;
		rt_future_run_poller(futures);
		futures->own = NULL;
		*entry_of(conn, i) = (struct rt_route_entry){0};
	}
}
