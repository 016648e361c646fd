/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * calls.c -- the calls of an application on a connection, from any thread:
 * make, connect, reject, close, reference, get. The control thread (control.c)
 * does the work.
 */

#include "conn/conn.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/cfg.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "cm/device.h"
#include "conn/cfg.h"
#include "conn/create.h"
#include "poller/place.h"
#include "poller/poller.h"
#include "queue/queue.h"

static int check(const struct rpma_rt_conn *conn)
{
	return conn == NULL ? RPMA_E_INVAL : rt_context_check(conn->rt);
}

/* Sends a request of the application to the control thread; not after DONE. */
static void ask_control(struct rpma_rt_conn *conn, uint32_t bits)
{
	/* a connection that is not DONE keeps the control thread going, and
	 * it becomes DONE under this lock */
	pthread_mutex_lock(&conn->rt->ask_lock);
	if (!conn->is_done)
		rt_conn_tell_control(conn, bits);
	pthread_mutex_unlock(&conn->rt->ask_lock);
}

int rpma_rt_conn_new(struct rpma_rt *rt, const char *addr, const char *port,
		     const struct rpma_rt_conn_cfg *given,
		     struct rpma_rt_conn **conn_ptr)
{
	struct rt_conn_cfg cfg;
	struct rt_conn_spec spec = {.rt = rt,
				    .cfg = &cfg,
				    .addr = addr,
				    .port = port,
				    .begin = rt_conn_begin_control,
				    .control = rt_conn_control_message,
				    .cm_ops = &rt_conn_cm_ops};
	struct ibv_context *ibv_ctx;
	int ret;

	if (rt == NULL || addr == NULL || port == NULL || given == NULL ||
	    conn_ptr == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check_wait(rt);
	if (ret == 0)
		ret = rt_context_ref(rt);
	if (ret)
		return ret;
	ret = rt_conn_cfg_read(given, rt, &cfg);
	if (ret)
		goto release_runtime;
	if (cfg.queue == NULL) {
		RT_LOG_ERROR("rpma_rt_conn_cfg.queues is for listeners: a "
			     "connection that is begun here has one queue");
		ret = RPMA_E_INVAL;
		goto delete_cfg;
	}
	ret = rpma_peer_get_ibv_context(cfg.peer, &ibv_ctx);
	if (ret == 0)
		ret = rt_device_get(rt, ibv_ctx, &spec.device);
	if (ret == 0)
		ret = rt_conn_create(&spec, conn_ptr);
delete_cfg:
	rt_conn_cfg_fini(&cfg);
release_runtime:
	rt_context_unref(rt);
	return ret;
}

/* connect or reject, once; keeps the private data for it */
static int decide(struct rpma_rt_conn *conn,
		  const struct rpma_conn_private_data *pdata, uint32_t bit)
{
	int ret = check(conn);

	if (ret)
		return ret;
	if (pdata != NULL && (pdata->ptr == NULL || pdata->len == 0))
		return RPMA_E_INVAL;
	/* acquire: pairs with the release in qp_is_made() */
	if (!(atomic_load_explicit(&conn->reached, memory_order_acquire) &
	      RT_REACHED_READY))
		return RPMA_E_INVAL;
	/* relaxed: a hint; the control thread knows */
	if (atomic_load_explicit(&conn->gate[RPMA_RT_RECV_SIDE].state,
				 memory_order_relaxed) == RT_GATE_CLOSED)
		return RPMA_RT_E_CLOSED;
	/* relaxed: only the first caller matters */
	if (atomic_fetch_or_explicit(&conn->reached, RT_REACHED_DECISION,
				     memory_order_relaxed) &
	    RT_REACHED_DECISION)
		return RPMA_E_INVAL;
	if (pdata != NULL) {
		memcpy(conn->pdata_out, pdata->ptr, pdata->len);
		conn->pdata_out_len = pdata->len;
	}
	ask_control(conn, bit);
	return 0;
}

int rpma_rt_conn_connect(struct rpma_rt_conn *conn,
			 const struct rpma_conn_private_data *pdata)
{
	return decide(conn, pdata, RT_CTL_CONNECT);
}

int rpma_rt_conn_reject(struct rpma_rt_conn *conn,
			const struct rpma_conn_private_data *pdata)
{
	int ret = check(conn);

	if (ret == 0 && !conn->passive)
		ret = RPMA_E_INVAL;
	return ret ? ret : decide(conn, pdata, RT_CTL_REJECT);
}

void rt_conn_close_for(struct rpma_rt_conn *conn, uint32_t bit)
{
	int i;

	for (i = 0; i < 2; i++) {
		/* relaxed: a hint; the control thread makes it firm */
		atomic_store_explicit(&conn->gate[i].state, RT_GATE_CLOSED,
				      memory_order_relaxed);
	}
	ask_control(conn, bit);
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

	if (ret == 0 && timeout_ms > RT_DRAIN_MS_MAX)
		ret = rt_cfg_refuse("rpma_rt_conn_drain()", "timeout_ms",
				    timeout_ms, 0, RT_DRAIN_MS_MAX);
	if (ret)
		return ret;
	rt_conn_set_drain_ms(conn, timeout_ms);
	rt_conn_close_for(conn, RT_CTL_DRAIN);
	return 0;
}

/* One holder of the application's more, or less. What nobody holds is used
 * after the last put: told as long as the runtime still has the record. */
static int change_held(struct rpma_rt_conn *conn, int by)
{
	/* relaxed, also below: target.count has the order */
	uint32_t held = atomic_load_explicit(&conn->held, memory_order_relaxed);

	while (held > 0) {
		if (atomic_compare_exchange_weak_explicit(
			    &conn->held, &held, held + (uint32_t)by,
			    memory_order_relaxed, memory_order_relaxed))
			return 0;
	}
	assert(!"a connection handle used after its last put");
	return RPMA_E_INVAL;
}

int rpma_rt_conn_ref(struct rpma_rt_conn *conn)
{
	int ret = check(conn);

	if (ret == 0)
		ret = change_held(conn, 1);
	if (ret)
		return ret;
	/* relaxed: the caller holds the connection */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	return 0;
}

int rpma_rt_conn_unref(struct rpma_rt_conn **conn_ptr)
{
	int ret;

	if (conn_ptr == NULL)
		return RPMA_E_INVAL;
	if (*conn_ptr == NULL)
		return 0;
	ret = check(*conn_ptr);
	if (ret == 0)
		ret = change_held(*conn_ptr, -1);
	if (ret)
		return ret;
	rt_conn_unref(*conn_ptr);
	*conn_ptr = NULL;
	return 0;
}

void rt_conn_drop_item(const struct rpma_rt_completion *item)
{
	struct rpma_rt_conn *conn;

	if (item->kind != RPMA_RT_EVENT ||
	    item->opcode != RPMA_RT_EVENT_REQUEST)
		return;
	conn = (struct rpma_rt_conn *)(uintptr_t)item->context;
	rpma_rt_conn_unref(&conn);
}

int rpma_rt_conn_get_private_data(const struct rpma_rt_conn *conn,
				  struct rpma_conn_private_data *pdata)
{
	int ret = check(conn);

	if (ret || pdata == NULL)
		return ret ? ret : RPMA_E_INVAL;
	pdata->ptr = NULL;
	pdata->len = 0;
	/* acquire: pairs with the release in keep_private_data() */
	if (atomic_load_explicit(&conn->pdata_valid, memory_order_acquire)) {
		pdata->ptr = (void *)(uintptr_t)conn->pdata_in;
		pdata->len = conn->pdata_in_len;
	}
	return 0;
}

int rpma_rt_conn_get_qp_num(const struct rpma_rt_conn *conn, uint32_t *qp_num)
{
	int ret = check(conn);

	if (ret || qp_num == NULL)
		return ret ? ret : RPMA_E_INVAL;
	/* acquire: pairs with the release in qp_is_made() */
	if (!(atomic_load_explicit(&conn->reached, memory_order_acquire) &
	      RT_REACHED_READY))
		return RPMA_E_INVAL;
	*qp_num = conn->qp_num;
	return 0;
}

int rpma_rt_conn_get_poller(const struct rpma_rt_conn *conn, int *poller)
{
	int ret = check(conn);

	if (ret || poller == NULL)
		return ret ? ret : RPMA_E_INVAL;
	*poller = conn->poller->index;
	return 0;
}

int rpma_rt_conn_get_user(const struct rpma_rt_conn *conn, void **user)
{
	int ret = check(conn);

	if (ret || user == NULL)
		return ret ? ret : RPMA_E_INVAL;
	/* relaxed: the application orders its own pointer */
	*user = atomic_load_explicit(&conn->user, memory_order_relaxed);
	return 0;
}
