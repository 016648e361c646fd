/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * newer: a program as built with the newest rdma-core. Every function of the
 * lists of exports that takes an object is the device's, and each verb that the
 * device lacks, or that rdma-core has exported since release 44, is called with
 * objects of the device: a call without support ends with EOPNOTSUPP, the
 * others do their work. Looks all functions up, because the headers of an older
 * rdma-core lack some.
 */

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complaints;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: errno %d\n", what, errno);
	complaints++;
}

typedef long any_fn(long, long, long, long, long, long);

/* The function of the device, not of an installed library. */
static any_fn *find(const char *name)
{
	void *at = dlsym(RTLD_DEFAULT, name);
	Dl_info info;

	if (at && dladdr(at, &info) &&
	    (strstr(info.dli_fname, "librpma_loopback.so") ||
	     strstr(info.dli_fname, "/replace/lib") ||
	     strstr(info.dli_fname, "/rpma-loopback/lib")))
		return (any_fn *)at;
	printf("%s: %s\n", name, at ? info.dli_fname : "not there");
	complaints++;
	exit(1);
}

#define CALL(name, a, b, c, d, e)                                           \
	(errno = 0, find(#name)((long)(a), (long)(b), (long)(c), (long)(d), \
				(long)(e), 0))

/* A verb that returns an errno, a pointer, or a descriptor. */
#define NO_CODE(name, a, b, c)                               \
	need((int)CALL(name, a, b, c, 0, 0) == EOPNOTSUPP && \
		     errno == EOPNOTSUPP,                    \
	     #name)
#define NO_POINTER(name, a, b, c, d, e) \
	need(!CALL(name, a, b, c, d, e) && errno == EOPNOTSUPP, #name)
#define NO_NUMBER(name, a, b, c, d) \
	need((int)CALL(name, a, b, c, d, 0) == -1 && errno == EOPNOTSUPP, #name)

#define DEVICE(name, node) find(#name);
#define ALSO(name, node)
#define SOCKET(name, node)
#define OLD_CODE(name, node)
#define OLD_POINTER(name, node)
#define OLD_NOTHING(name, node)
#define INSIDE_CODE(name, node)
#define INSIDE_POINTER(name, node)
#define INSIDE_NOTHING(name, node)
#define SILENT(name, node)
#define DATA(name, node)

static void find_all(void)
{
#include "../../src/launch/replace/ibverbs_names.h"
#include "../../src/launch/replace/rdmacm_names.h"
}

/* struct ibv_mr_init_attr of release 59 */
struct mr_attr {
	size_t length;
	int access;
	uint64_t mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t offset;
	void *dmah, *buf;
};

static void call_reg_mr_ex(struct ibv_pd *pd)
{
	static char memory[4096];
	struct mr_attr attr = {.length = sizeof(memory),
			       .access = IBV_ACCESS_LOCAL_WRITE,
			       .mask = 2,
			       .addr = memory};
	struct ibv_mr *mr = (void *)CALL(ibv_reg_mr_ex, pd, &attr, 0, 0, 0);

	need(mr && mr->addr == memory && mr->lkey, "ibv_reg_mr_ex of memory");
	if (mr)
		need(!CALL(ibv_dereg_mr, mr, 0, 0, 0, 0), "ibv_dereg_mr");
	attr.mask = 2 | 4; /* and a descriptor */
	NO_POINTER(ibv_reg_mr_ex, pd, &attr, 0, 0, 0);
}

static void call_verbs(struct ibv_context *context, struct ibv_pd *pd,
		       struct ibv_qp *qp)
{
	struct ibv_ece ece;
	uint64_t speed = 0;
	char bytes[256] = "";

	call_reg_mr_ex(pd);
	need(!CALL(ibv_query_port_speed, context, 1, &speed, 0, 0) && speed,
	     "ibv_query_port_speed");
	need((int)CALL(ibv_query_port_speed, context, 9, &speed, 0, 0) ==
		     EINVAL,
	     "ibv_query_port_speed of no port");
	NO_POINTER(ibv_alloc_dmah, context, bytes, 0, 0, 0);
	NO_CODE(ibv_dealloc_dmah, bytes, 0, 0);
	NO_NUMBER(ibv_dm_export_dmabuf_fd, bytes, 0, 0, 0);
	NO_POINTER(ibv_alloc_buf, pd, 4096, bytes, 0, 0);
	CALL(ibv_free_buf, bytes, 0, 0, 0, 0);
	NO_POINTER(ibv_reg_buf_mr, pd, bytes, bytes, 1, 0);
	NO_NUMBER(ibv_export_buf_dmabuf_fd, bytes, 0, 0, 0);
	NO_CODE(_ibv_query_comp_cntr_caps, context, bytes, sizeof(bytes));
	NO_POINTER(ibv_create_comp_cntr, context, bytes, 0, 0, 0);
	NO_CODE(ibv_destroy_comp_cntr, bytes, 0, 0);
	NO_CODE(ibv_set_comp_cntr, bytes, 1, 0);
	NO_CODE(ibv_set_err_comp_cntr, bytes, 1, 0);
	NO_CODE(ibv_inc_comp_cntr, bytes, 1, 0);
	NO_CODE(ibv_inc_err_comp_cntr, bytes, 1, 0);
	NO_CODE(ibv_read_comp_cntr, bytes, &speed, 0);
	NO_CODE(ibv_read_err_comp_cntr, bytes, &speed, 0);
	NO_CODE(ibv_qp_attach_comp_cntr, qp, bytes, bytes);
	NO_POINTER(ibv_reg_dmabuf_mr, pd, 0, 4096, 0, 0);
	NO_POINTER(ibv_import_device, 0, 0, 0, 0, 0);
	NO_POINTER(ibv_import_pd, context, 1, 0, 0, 0);
	NO_POINTER(ibv_import_mr, pd, 1, 0, 0, 0);
	NO_POINTER(ibv_import_dm, context, 1, 0, 0, 0);
	NO_CODE(ibv_resolve_eth_l2_from_gid, context, bytes, bytes);
	NO_CODE(ibv_set_ece, qp, &ece, 0);
	need(!CALL(ibv_query_ece, qp, &ece, 0, 0, 0), "ibv_query_ece");
	need(!CALL(ibv_query_qp_data_in_order, qp, IBV_WR_SEND, 0, 0, 0),
	     "ibv_query_qp_data_in_order");
	need((int)CALL(ibv_rereg_mr, bytes, 0, pd, bytes, 1) == -1 &&
		     errno == EOPNOTSUPP,
	     "ibv_rereg_mr");
}

/* Calls that the device refuses for their values. */
static void call_wrongly(struct ibv_context *context, struct ibv_pd *pd,
			 struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.send_cq = qp->send_cq,
					.recv_cq = qp->recv_cq,
					.cap = {1000000, 1, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	need(!CALL(ibv_create_qp, pd, &init, 0, 0, 0) && errno == EINVAL,
	     "ibv_create_qp of a million requests");
	need(!CALL(ibv_create_cq, context, 0, 0, 0, 0) && errno == EINVAL,
	     "ibv_create_cq of no entries");
	need((int)CALL(ibv_modify_qp, qp, &attr, IBV_QP_STATE, 0, 0) == EINVAL,
	     "ibv_modify_qp from RESET to RTS");
}

#define USER 18 /* RDMA_CM_EVENT_USER */

static void call_cm(void)
{
	struct rdma_event_channel *channel =
		(void *)CALL(rdma_create_event_channel, 0, 0, 0, 0, 0);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	uint64_t arg = 0;

	need(!CALL(rdma_create_id, channel, &id, 0, RDMA_PS_TCP, 0),
	     "rdma_create_id");
	NO_NUMBER(rdma_resolve_addrinfo, id, "127.0.0.1", "7000", 0);
	NO_NUMBER(rdma_query_addrinfo, id, &event, 0, 0);
	need((int)CALL(rdma_write_cm_event, id, RDMA_CM_EVENT_ESTABLISHED, 0, 0,
		       0) == -1 &&
		     errno == EINVAL,
	     "rdma_write_cm_event of the device's own events");
	need(!CALL(rdma_write_cm_event, id, USER, 7, 0x123456789abcdef, 0),
	     "rdma_write_cm_event");
	need(!CALL(rdma_get_cm_event, channel, &event, 0, 0, 0),
	     "rdma_get_cm_event");
	memcpy(&arg, &event->param, sizeof(arg));
	need((int)event->event == USER && event->status == 7 &&
		     event->id == id && arg == 0x123456789abcdef,
	     "the event of rdma_write_cm_event");
	need(!CALL(rdma_ack_cm_event, event, 0, 0, 0, 0), "rdma_ack_cm_event");
	need(!CALL(rdma_destroy_id, id, 0, 0, 0, 0), "rdma_destroy_id");
	CALL(rdma_destroy_event_channel, channel, 0, 0, 0, 0);
}

int main(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	find_all();
	list = (void *)CALL(ibv_get_device_list, 0, 0, 0, 0, 0);
	context = (void *)CALL(ibv_open_device, list[0], 0, 0, 0, 0);
	pd = (void *)CALL(ibv_alloc_pd, context, 0, 0, 0, 0);
	init.send_cq = (void *)CALL(ibv_create_cq, context, 1, 0, 0, 0);
	init.recv_cq = init.send_cq;
	qp = (void *)CALL(ibv_create_qp, pd, &init, 0, 0, 0);
	call_verbs(context, pd, qp);
	call_wrongly(context, pd, qp);
	call_cm();
	need(!CALL(ibv_destroy_qp, qp, 0, 0, 0, 0), "ibv_destroy_qp");
	need(!CALL(ibv_destroy_cq, init.send_cq, 0, 0, 0, 0), "ibv_destroy_cq");
	need(!CALL(ibv_dealloc_pd, pd, 0, 0, 0, 0), "ibv_dealloc_pd");
	need(!CALL(ibv_close_device, context, 0, 0, 0, 0), "ibv_close_device");
	CALL(ibv_free_device_list, list, 0, 0, 0, 0);
	if (!complaints)
		puts("every verb has an answer");
	return complaints;
}
