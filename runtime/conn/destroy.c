/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * destroy.c -- a connection's queue pair and CM id are destroyed by the
 * device's destroyer thread. From a message to its answer conn->conn and
 * conn->setup->req are the destroyer's: a dying connection handles CM events
 * without them.
 */

#include "conn/conn.h"

#include "base/runtime.h"

/* Destroyer; or the control thread, where the id could not be silenced. */
static void destroy_qp(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, ctl.destroy_msg, msg);

	(void)owner;
	if (conn->conn != NULL)
		rpma_conn_destroy_qp(conn->conn, conn);
	else
		rpma_conn_req_destroy_qp(conn->setup->req, conn);
	rt_conn_tell_control(conn, RT_CTL_DESTROYED);
}

static int delete_id(struct rpma_rt_conn *conn)
{
	struct rt_conn_setup *setup = conn->setup;
	struct rpma_conn_private_data pdata;

	if (conn->conn != NULL) {
		rpma_conn_release(conn->conn, conn);
		return rpma_conn_delete(&conn->conn);
	}
	if (setup->req == NULL)
		return 0;
	if (setup->is_claimed) /* not before it has a queue pair */
		rpma_conn_req_release(setup->req, conn);
	if (conn->ctl.handshake != RT_HANDSHAKE_REJECTED ||
	    setup->pdata_out_len == 0)
		return rpma_conn_req_delete(&setup->req);
	pdata.ptr = setup->pdata_out;
	pdata.len = setup->pdata_out_len;
	return rpma_conn_req_reject(&setup->req, &pdata);
}

/* Destroyer. */
static void destroy_id(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, ctl.destroy_msg, msg);

	(void)owner;
	conn->ctl.id_stays = delete_id(conn) != 0;
	rt_conn_tell_control(conn, RT_CTL_DELETED);
}

static void ask_destroyer(struct rpma_rt_conn *conn,
			  void (*fn)(struct rt_msg *msg, void *owner))
{
	conn->ctl.destroy_msg.fn = fn;
	rt_inbox_push_mt(&conn->device->destroyer.inbox,
			 &conn->ctl.destroy_msg);
}

static int silence(const struct rpma_rt_conn *conn)
{
	struct rdma_cm_id *id;
	int ret;

	ret = conn->conn != NULL
		      ? rpma_conn_get_cm_id(conn->conn, &id)
		      : rpma_conn_req_get_cm_id(conn->setup->req, &id);
	return ret ? ret : rt_cm_silence_control(conn->device->cm, id);
}

void rt_destroy_qp_control(struct rpma_rt_conn *conn)
{
	/* librdmacm moves the queue pair of an id whose handshake is under way
	 * when it reads an event of it, which it does on this thread. So the id
	 * leaves the channel first; if it cannot, this thread destroys the
	 * queue pair, as it does not read meanwhile */
	if (conn->ctl.handshake != RT_HANDSHAKE_ESTABLISHED && silence(conn))
		destroy_qp(&conn->ctl.destroy_msg, NULL);
	else
		ask_destroyer(conn, destroy_qp);
}

void rt_destroy_id_control(struct rpma_rt_conn *conn)
{
	ask_destroyer(conn, destroy_id);
}
