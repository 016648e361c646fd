/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * calls.c -- public calls on a connection, from any thread: make, connect,
 * reject, close, reference, get. The control thread (control.c) does the work.
 */

#include "conn/conn.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cfg.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "cm/cm.h"
#include "conn/cfg.h"
#include "conn/fill.h"
#include "conn/hold.h"
#include "conn/resolve.h"
#include "pool/pool.h"
#include "poller/poller.h"

static int conn_check_at(const struct rt_log_place *place,
			 const struct rpma_rt_conn *conn)
{
	const void *const pointers[] = {conn};
	int ret = rt_refuse_null(place, "conn", pointers, sizeof(pointers));

	return ret ? ret : rt_context_check_here(place, conn->rt);
}
#define check(conn) conn_check_at(RT_LOG_HERE, conn)

int rpma_rt_conn_new(struct rpma_rt *rt, const char *addr, const char *port,
		     const struct rpma_rt_conn_cfg *cfg,
		     struct rpma_rt_conn **conn_ptr)
{
	RT_NOT_CANCELLED;
	static const char what[] = "no connection is made";
	struct rt_conn_cfg read;
	struct rt_conn_spec spec = {.rt = rt,
				    .cfg = &read,
				    .addr = addr,
				    .port = port,
				    .begin = rt_conn_begin_control,
				    .control = rt_conn_control_message,
				    .cm_ops = &rt_conn_cm_ops};
	struct ibv_context *ibv_ctx;
	int ret;

	ret = RT_REFUSE_NULL(rt, addr, port, cfg, conn_ptr);
	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret == 0)
		ret = rt_resolve_check_port(RT_LOG_HERE, port);
	if (ret)
		return ret;
	ret = rt_context_ref(rt);
	if (ret)
		return RT_REFUSED(ret, what);
	ret = rt_conn_cfg_read(cfg, rt, &read);
	if (ret)
		goto release_runtime;
	if (read.queue == NULL && read.queues[0] != NULL) {
		ret = RT_REFUSE(RPMA_E_INVAL,
				"rpma_rt_conn_cfg.queues is for listeners: a "
				"connection that is begun here has one queue");
		goto delete_cfg;
	}
	ret = rpma_peer_get_ibv_context(read.peer, &ibv_ctx);
	if (ret == 0)
		ret = rt_device_get(rt, ibv_ctx, &spec.device);
	if (ret == 0)
		ret = rt_conn_create(&spec, conn_ptr);
delete_cfg:
	rt_conn_cfg_fini(&read);
release_runtime:
	rt_context_unref(rt);
	return RT_REFUSED(ret, what);
}

/* Returns whether the queue pair has been made. */
static bool conn_is_ready(const struct rpma_rt_conn *conn)
{
	/* acquire: pairs with the release in rt_conn_qp_is_made_control(),
	 * control.c */
	return (atomic_load_explicit(&conn->reached, memory_order_acquire) &
		RT_REACHED_READY) != 0;
}

/* Does connect, accept or reject, once for a connection; keeps the private
 * data. */
static int conn_decide(const struct rt_log_place *place,
		       struct rpma_rt_conn *conn,
		       const struct rpma_conn_private_data *pdata, uint32_t bit)
{
	if (pdata != NULL && (pdata->ptr == NULL || pdata->len == 0))
		return rt_refuse(
			place, RPMA_E_INVAL,
			"pdata->ptr is %s and pdata->len is %u: for no "
			"private data pdata is NULL",
			pdata->ptr == NULL ? "NULL" : "given", pdata->len);
	if (!conn_is_ready(conn))
		return rt_refuse(place, RPMA_E_INVAL,
				 "\"%s\" has no address yet: wait for "
				 "RPMA_RT_EVENT_READY",
				 rt_name_of(conn));
	if (rt_gate_is_closed(&conn->gate[RPMA_RT_RECV_SIDE]))
		return rt_refuse(place, RPMA_RT_E_CLOSED,
				 "\"%s\" is closing or closed",
				 rt_name_of(conn));
	/* relaxed: only the first caller goes on, and only the bit decides */
	if (atomic_fetch_or_explicit(&conn->reached, RT_REACHED_DECISION,
				     memory_order_relaxed) &
	    RT_REACHED_DECISION)
		return rt_refuse(
			place, RPMA_E_INVAL,
			"rpma_rt_conn_%s was called for \"%s\" before: "
			"once is enough",
			conn->passive ? "accept() or _reject()" : "connect()",
			rt_name_of(conn));
	if (pdata != NULL) {
		memcpy(conn->setup->pdata_out, pdata->ptr, pdata->len);
		conn->setup->pdata_out_len = pdata->len;
	}
	rt_conn_ask_control(conn, bit);
	return 0;
}

int rpma_rt_conn_connect(struct rpma_rt_conn *conn,
			 const struct rpma_conn_private_data *pdata)
{
	int ret = check(conn);

	if (ret == 0 && conn->passive)
		ret = RT_REFUSE(RPMA_E_INVAL,
				"\"%s\" is a request: rpma_rt_conn_accept() "
				"accepts it",
				rt_name_of(conn));
	return ret ? ret
		   : conn_decide(RT_LOG_HERE, conn, pdata, RT_CTL_CONNECT);
}

/* Checks that the connection is a request of a listener, not begun at this
 * end. */
static int conn_check_request(const struct rt_log_place *place,
			      const struct rpma_rt_conn *conn,
			      const char *instead)
{
	int ret = conn_check_at(place, conn);

	if (ret == 0 && !conn->passive)
		ret = rt_refuse(place, RPMA_E_INVAL,
				"\"%s\" was begun here, so it is no request: "
				"%s",
				rt_name_of(conn), instead);
	return ret;
}

int rpma_rt_conn_accept(struct rpma_rt_conn *conn,
			const struct rpma_conn_private_data *pdata)
{
	int ret = conn_check_request(RT_LOG_HERE, conn,
				     "rpma_rt_conn_connect() connects it");

	return ret ? ret
		   : conn_decide(RT_LOG_HERE, conn, pdata, RT_CTL_CONNECT);
}

int rpma_rt_conn_reject(struct rpma_rt_conn *conn,
			const struct rpma_conn_private_data *pdata)
{
	int ret = conn_check_request(RT_LOG_HERE, conn,
				     "rpma_rt_conn_close() ends it");

	return ret ? ret : conn_decide(RT_LOG_HERE, conn, pdata, RT_CTL_REJECT);
}

int rpma_rt_conn_close(struct rpma_rt_conn *conn)
{
	int ret = check(conn);

	if (ret == 0)
		rt_conn_close_for(conn, RT_CTL_CLOSE);
	return ret;
}

int rpma_rt_conn_drain(struct rpma_rt_conn *conn, uint32_t timeout_ms)
{
	int ret = check(conn);
	int i;

	if (ret == 0 && timeout_ms > RT_DRAIN_MS_MAX)
		ret = rt_cfg_refuse("rpma_rt_conn_drain()", "timeout_ms",
				    timeout_ms, 0, RT_DRAIN_MS_MAX);
	if (ret)
		return ret;
	/* a drained side is not filled any more */
	rt_fill_before_send(conn);
	rt_conn_set_drain_ms(conn, timeout_ms);
	rt_conn_set_closing(conn);
	for (i = 0; i < 2; i++) {
		if (rt_turn_drain(&conn->gate[i].turn))
			rt_look_send(conn);
	}
	rt_conn_ask_control(conn, RT_CTL_DRAIN);
	return 0;
}

/* Adds `by` to the count of the application's holders. A handle that no thread
 * holds any more is refused, as long as the runtime still has the record. */
static int conn_change_held(struct rpma_rt_conn *conn, int by)
{
	/* relaxed, all: target.count orders the accesses */
	uint32_t held = atomic_load_explicit(&conn->held, memory_order_relaxed);

	while (held > 0) {
		if (atomic_compare_exchange_weak_explicit(
			    &conn->held, &held, held + (uint32_t)by,
			    memory_order_relaxed, memory_order_relaxed))
			return 0;
	}
	assert(!"a connection handle used after its last put");
	return RT_REFUSE(RPMA_E_INVAL,
			 "the handle was given back by rpma_rt_conn_unref() as "
			 "often as it was held: it may not be used any more");
}

int rpma_rt_conn_ref(struct rpma_rt_conn *conn)
{
	int ret = check(conn);

	if (ret == 0)
		ret = conn_change_held(conn, 1);
	if (ret)
		return ret;
	/* relaxed: the caller holds the connection */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	return 0;
}

int rpma_rt_conn_unref(struct rpma_rt_conn **conn_ptr)
{
	int ret;

	ret = RT_REFUSE_NULL(conn_ptr);
	if (ret || *conn_ptr == NULL)
		return ret;
	ret = check(*conn_ptr);
	if (ret == 0)
		ret = conn_change_held(*conn_ptr, -1);
	if (ret)
		return ret;
	rt_conn_unref(*conn_ptr);
	*conn_ptr = NULL;
	return 0;
}

void rt_conn_drop_item(const struct rpma_rt_completion *item)
{
	struct rpma_rt_conn *conn;

	rt_pool_drop(item);
	if (item->kind != RPMA_RT_EVENT ||
	    item->opcode != RPMA_RT_EVENT_REQUEST)
		return;
	conn = (struct rpma_rt_conn *)(uintptr_t)item->context;
	/* no thread can answer the request */
	rt_conn_close_for(conn, RT_CTL_CLOSE);
	rpma_rt_conn_unref(&conn);
}

int rpma_rt_conn_get_private_data(const struct rpma_rt_conn *conn,
				  struct rpma_conn_private_data *pdata)
{
	static const uint8_t zeros[RT_PDATA_MAX];
	int ret = check(conn);

	if (ret == 0)
		ret = RT_REFUSE_NULL(pdata);
	if (ret)
		return ret;
	pdata->ptr = NULL;
	pdata->len = 0;
	/* acquire: pairs with the release in rt_conn_keep_private_data(),
	 * conn.c */
	if (atomic_load_explicit(&conn->pdata_valid, memory_order_acquire)) {
		pdata->ptr = (void *)(uintptr_t)(conn->pdata_in != NULL
							 ? conn->pdata_in
							 : zeros);
		pdata->len = conn->pdata_in_len;
	}
	return 0;
}

int rpma_rt_conn_get_qp_num(const struct rpma_rt_conn *conn, uint32_t *qp_num)
{
	int ret = check(conn);

	if (ret == 0)
		ret = RT_REFUSE_NULL(qp_num);
	if (ret)
		return ret;
	if (!conn_is_ready(conn))
		return RT_REFUSE(RPMA_E_INVAL,
				 "\"%s\" has no queue pair yet, and no qp_num: "
				 "wait for RPMA_RT_EVENT_READY",
				 rt_name_of(conn));
	*qp_num = conn->qp_num;
	return 0;
}

int rpma_rt_conn_get_poller(const struct rpma_rt_conn *conn, int *poller)
{
	int ret = check(conn);

	if (ret == 0)
		ret = RT_REFUSE_NULL(poller);
	if (ret)
		return ret;
	*poller = conn->poller->index;
	return 0;
}

int rpma_rt_conn_get_user(const struct rpma_rt_conn *conn, void **user)
{
	int ret = check(conn);

	if (ret == 0)
		ret = RT_REFUSE_NULL(user);
	if (ret)
		return ret;
	/* relaxed: the application orders its pointer */
	*user = atomic_load_explicit(&conn->user, memory_order_relaxed);
	return 0;
}
