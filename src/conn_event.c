/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * CM events of a connection: read from its own channel, one event per call, or
 * passed in by the reader of a shared channel. One thread at a time.
 */

#include "cancel.h"
#include "conn.h"

#include "cm_channel.h"
#include "log.h"

/*
 * Converts the type of an event; returns false for an event that says nothing
 * about the connection.
 */
static bool conn_event_from_cm(enum rdma_cm_event_type type,
			       enum rpma_conn_event *event)
{
	switch (type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		*event = RPMA_CONN_ESTABLISHED;
		return true;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		*event = RPMA_CONN_LOST;
		return true;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		*event = RPMA_CONN_CLOSED;
		return true;
	case RDMA_CM_EVENT_REJECTED:
		*event = RPMA_CONN_REJECTED;
		return true;
	case RDMA_CM_EVENT_UNREACHABLE:
		*event = RPMA_CONN_UNREACHABLE;
		return true;
	default:
		return false;
	}
}

/*
 * Keeps the private data of an event; without memory for the data the event is
 * reported all the same, because an event is read once. The passive side has
 * its data from the request, and keeps the data of the request.
 */
static void conn_event_keep_data(struct rpma_conn *conn,
				 enum rdma_cm_event_type type, const void *ptr,
				 uint8_t len)
{
	if (type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_REJECTED)
		(void)rpma__private_data_set(&conn->data, ptr, len);
}

static int conn_event_handle(struct rpma_conn *conn,
			     enum rdma_cm_event_type type, int status,
			     enum rpma_conn_event *event)
{
	if (!conn_event_from_cm(type, event)) {
		RPMA_LOG_WARNING("unexpected CM event: %s",
				 rdma_event_str(type));
		return RPMA_E_UNKNOWN;
	}
	if (type == RDMA_CM_EVENT_ESTABLISHED)
		rpma__conn_apply_rnr_timer(conn);
	conn->had_event = true;
	conn->event_status = status;
	RPMA_LOG_NOTICE("%s", rpma_utils_conn_event_2str(*event));
	return 0;
}

int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd)
{
	if (fd == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", fd, conn);
	if (conn->cm_channel)
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the connection has a shared CM channel: "
				   "rpma_conn_handle_event() takes the events "
				   "that the reader of the channel gets");

	*fd = conn->evch->fd;
	return 0;
}

int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event)
{
	RPMA_NOT_CANCELLED;
	enum rdma_cm_event_type type;
	struct rdma_cm_event *raw;
	int status;
	int ret;

	if (event == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", event,
					conn);
	if (conn->cm_channel)
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the connection has a shared CM channel: "
				   "rpma_conn_handle_event() takes the events "
				   "that the reader of the channel gets");

	ret = rpma__cm_get_event(conn->evch, RPMA_CANCEL_BEFORE, &raw);
	if (ret)
		return ret;
	type = raw->event;
	status = raw->status;
	conn_event_keep_data(conn, type, raw->param.conn.private_data,
			     raw->param.conn.private_data_len);
	if (rdma_ack_cm_event(raw)) {
		RPMA_LOG_CALL("rdma_ack_cm_event", -1);
		return RPMA_E_PROVIDER;
	}
	return conn_event_handle(conn, type, status, event);
}

int rpma_conn_handle_event(struct rpma_conn *conn,
			   const struct rpma_cm_event *cm_event,
			   enum rpma_conn_event *event)
{
	RPMA_NOT_CANCELLED;

	if (event == NULL || !rpma__cm_event_is_valid(cm_event) ||
	    !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", event,
					cm_event, conn);
	if (conn->cm_channel == NULL)
		return RPMA_REFUSE(RPMA_E_NOT_SHARED_CHNL,
				   "the connection has no shared CM channel: "
				   "rpma_conn_next_event() reads its events");
	if (cm_event->id != conn->id)
		return RPMA_REFUSE(RPMA_E_INVAL,
				   "cm_event is of another connection");

	conn_event_keep_data(conn, cm_event->type, cm_event->private_data,
			     cm_event->private_data_len);
	return conn_event_handle(conn, cm_event->type, cm_event->status, event);
}

int rpma_conn_get_event_status(const struct rpma_conn *conn, int *status)
{
	if (status == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", status,
					conn);
	if (!conn->had_event)
		return RPMA_E_AGAIN;

	*status = conn->event_status;
	return 0;
}
