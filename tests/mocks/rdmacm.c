/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* librdmacm: ids, event channels, and events one at a time. */

#include "mocks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "objects.h"

struct rdma_cm_id *mock_id;
struct rdma_cm_id *mock_listener;
struct ibv_qp_init_attr_ex mock_qp_attr;
struct rdma_conn_param mock_conn_param;

/* an event channel counts its ids in its descriptor */
#define FD_OF_NO_IDS 60

static struct rdma_cm_event next_event;
static bool has_event;

static int answer(int err)
{
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

static void enter_channel(struct rdma_cm_id *id,
			  struct rdma_event_channel *evch)
{
	if (id->channel)
		id->channel->fd--;
	id->channel = evch;
	if (evch)
		evch->fd++;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *evch;

	errno = mock_enter("create_evch", "%s", "");
	if (errno)
		return NULL;
	evch = mock_alloc(sizeof(*evch));
	evch->fd = FD_OF_NO_IDS;
	return evch;
}

void rdma_destroy_event_channel(struct rdma_event_channel *evch)
{
	(void)mock_enter("destroy_evch", "%s", "");
	assert_int_equal(evch->fd, FD_OF_NO_IDS);
	mock_free(evch);
}

struct rdma_cm_id *mock_new_id(void)
{
	struct rdma_cm_id *id = mock_alloc(sizeof(*id));

	id->verbs = MOCK_CTX;
	return id;
}

int rdma_create_id(struct rdma_event_channel *evch, struct rdma_cm_id **id,
		   void *context, enum rdma_port_space space)
{
	int err = mock_enter("create_id", evch ? "(evch)" : "%s", "");

	assert_int_equal(space, RDMA_PS_TCP);
	if (err)
		return answer(err);
	mock_id = mock_new_id();
	mock_id->context = context;
	enter_channel(mock_id, evch);
	*id = mock_id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	int err = mock_enter("destroy_id", "%s", "");

	assert_null(id->qp);
	enter_channel(id, NULL);
	mock_free(id);
	return answer(err);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return answer(mock_enter("bind_addr", "%s", ""));
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
		      struct sockaddr *dst, int timeout_ms)
{
	(void)id;
	(void)src;
	(void)dst;
	return answer(mock_enter("resolve_addr", "(%d)", timeout_ms));
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	(void)id;
	return answer(mock_enter("resolve_route", "(%d)", timeout_ms));
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)id;
	return answer(mock_enter("listen", "(%d)", backlog));
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
		    size_t optlen)
{
	(void)id;
	assert_int_equal(level, RDMA_OPTION_ID);
	assert_int_equal(optlen, 1);
	return answer(mock_enter("set_option", "(%d, %u)", optname,
				 *(uint8_t *)optval));
}

/* sizes, elements, inline; then where receives complete */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err = mock_enter("create_qp", "(%u/%u/%u/%u/%u%s%s)",
			     attr->cap.max_send_wr, attr->cap.max_recv_wr,
			     attr->cap.max_send_sge, attr->cap.max_recv_sge,
			     attr->cap.max_inline_data,
			     attr->recv_cq == attr->send_cq ? "" : " rcq",
			     attr->srq ? " srq" : "");
	struct ibv_qp *qp;

	mock_qp_attr = *attr;
	if (err)
		return answer(err);
	qp = mock_alloc(sizeof(*qp));
	qp->context = id->verbs;
	qp->pd = attr->pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->qp_num = 17;
	((struct mock_cq *)qp->send_cq)->users++;
	((struct mock_cq *)qp->recv_cq)->users++;
	((struct mock_pd *)qp->pd)->users++;
	id->qp = qp;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ibv_qp *qp = id->qp;

	(void)mock_enter("destroy_qp", "%s", "");
	((struct mock_cq *)qp->send_cq)->users--;
	((struct mock_cq *)qp->recv_cq)->users--;
	((struct mock_pd *)qp->pd)->users--;
	mock_free(qp);
	id->qp = NULL;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *evch)
{
	int err = mock_enter("migrate_id", "%s", "");

	if (err == 0)
		enter_channel(id, evch);
	return answer(err);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	mock_conn_param = *param;
	return answer(mock_enter("connect", "%s", ""));
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	mock_conn_param = *param;
	return answer(mock_enter("accept", "%s", ""));
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	(void)id;
	return answer(mock_enter("reject", len ? "(%.*s)" : "%.*s", (int)len,
				 data ? (const char *)data : ""));
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	return answer(mock_enter("disconnect", "%s", ""));
}

int mock_cm_status;

void mock_cm_event_data(enum rdma_cm_event_type type, struct rdma_cm_id *id,
			const void *private_data, uint8_t len)
{
	next_event = (struct rdma_cm_event){
		.event = type,
		.id = id,
		.listen_id = mock_listener,
		.status = mock_cm_status,
	};
	mock_cm_status = 0;
	mock_listener = NULL;
	next_event.param.conn.private_data = private_data;
	next_event.param.conn.private_data_len = len;
	next_event.param.conn.responder_resources = MOCK_RESPONDER_RESOURCES;
	next_event.param.conn.initiator_depth = MOCK_INITIATOR_DEPTH;
	has_event = true;
}

void mock_cm_event(enum rdma_cm_event_type type, struct rdma_cm_id *id,
		   const char *private_data)
{
	size_t len = private_data ? strlen(private_data) + 1 : 0;

	mock_cm_event_data(type, id, private_data, (uint8_t)len);
}

int rdma_get_cm_event(struct rdma_event_channel *evch,
		      struct rdma_cm_event **event)
{
	int err = mock_enter("get_cm_event", "%s", "");

	assert_non_null(evch);
	if (err)
		return answer(err);
	if (!has_event)
		return answer(EAGAIN);
	has_event = false;
	*event = mock_alloc(sizeof(**event));
	**event = next_event;
	/* a request starts on the channel of its listener */
	if (next_event.event == RDMA_CM_EVENT_CONNECT_REQUEST &&
	    next_event.id->channel == NULL)
		enter_channel(next_event.id, evch);
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	int err = mock_enter("ack", "%s", "");

	mock_free(event);
	return answer(err);
}

const char *rdma_event_str(enum rdma_cm_event_type type)
{
	(void)type;
	return "an event";
}

int rdma_getaddrinfo(const char *node, const char *service,
		     const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **info)
{
	int err = mock_enter("getaddrinfo", "%s%s",
			     hints->ai_flags == RAI_PASSIVE ? "(passive)" : "",
			     service ? "" : "(no service)");

	(void)node;
	assert_int_equal(hints->ai_port_space, RDMA_PS_TCP);
	if (err < 0) /* an EAI_*; errno is nobody's */
		return err;
	if (err)
		return answer(err);
	*info = mock_alloc(sizeof(**info));
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
	(void)mock_enter("freeaddrinfo", "%s", "");
	mock_free(info);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	(void)id;
	return htons(4791);
}
