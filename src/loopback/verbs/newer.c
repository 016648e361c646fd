/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * newer.c -- the verbs that rdma-core has exported since release 44. A program
 * built with a newer rdma-core calls these functions, and the installed library
 * would follow private fields that the objects of the loopback device lack.
 * Structs have the layout of release 65; headers of release 44 lack them.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/log.h"
#include "object/query.h"

/* a macro in verbs.h; called here as a function */
#undef ibv_reg_mr_iova

struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dm;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

static void *no_object(const char *verb)
{
	lb_log_refuse_verb(verb);
	return NULL;
}

/* --- release 59 */

/* The first fields of struct ibv_mr_init_attr. */
struct mr_attr {
	size_t length;
	int access;
	uint64_t mask; /* of the valid fields, by the bits below */
	uint64_t iova; /* bit 0 */
	void *addr;    /* bit 1 */
};

#define HAS_IOVA 1u
#define HAS_ADDR 2u

/* Registers memory of the program; a dmabuf or a DMA handle is refused. */
LB_EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd,
				       struct ibv_mr_init_attr *init)
{
	const struct mr_attr *attr = (const void *)init;

	if (attr->mask & ~(uint64_t)(HAS_IOVA | HAS_ADDR))
		return no_object("ibv_reg_mr_ex");
	if (!(attr->mask & HAS_ADDR)) {
		lb_error(lb_log_refuse(EINVAL, "ibv_reg_mr_ex(): no address"));
		return NULL;
	}
	return ibv_reg_mr_iova(pd, attr->addr, attr->length,
			       attr->mask & HAS_IOVA ? attr->iova
						     : (uintptr_t)attr->addr,
			       attr->access);
}

LB_EXPORT struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
					  struct ibv_dmah_init_attr *attr)
{
	(void)context, (void)attr;
	return no_object("ibv_alloc_dmah");
}

LB_EXPORT int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	(void)dmah;
	return lb_log_refuse_verb("ibv_dealloc_dmah");
}

/* --- release 62 */

/* Returns the speed of a port in units of 100 Mbit/s. */
LB_EXPORT int ibv_query_port_speed(struct ibv_context *context,
				   uint32_t port_num, uint64_t *port_speed)
{
	struct ibv_port_attr attr;
	int err = port_num > UINT8_MAX
			  ? lb_error(EINVAL)
			  : lb_query_port(context, (uint8_t)port_num, &attr,
					  sizeof(attr));

	if (!err)
		*port_speed = LB_PORT_SPEED;
	return err;
}

LB_EXPORT int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	(void)dm;
	lb_log_refuse_verb("ibv_dm_export_dmabuf_fd");
	return -1;
}

/* --- release 64 */

LB_EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size,
			      struct ibv_buf **buf)
{
	(void)pd, (void)size, (void)buf;
	return no_object("ibv_alloc_buf");
}

LB_EXPORT void ibv_free_buf(struct ibv_buf *buf)
{
	(void)buf;
	lb_log_refuse_verb("ibv_free_buf");
}

LB_EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf,
					void *addr, size_t length, int access)
{
	(void)pd, (void)buf, (void)addr, (void)length, (void)access;
	return no_object("ibv_reg_buf_mr");
}

/* --- release 65 */

LB_EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	(void)buf;
	lb_log_refuse_verb("ibv_export_buf_dmabuf_fd");
	return -1;
}

LB_EXPORT int _ibv_query_comp_cntr_caps(struct ibv_context *context,
					struct ibv_comp_cntr_caps *caps,
					size_t size)
{
	(void)context, (void)caps, (void)size;
	return lb_log_refuse_verb("ibv_query_comp_cntr_caps");
}

LB_EXPORT struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context,
		     struct ibv_comp_cntr_init_attr *attr)
{
	(void)context, (void)attr;
	return no_object("ibv_create_comp_cntr");
}

LB_EXPORT int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter)
{
	(void)counter;
	return lb_log_refuse_verb("ibv_destroy_comp_cntr");
}

LB_EXPORT int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	(void)counter, (void)value;
	return lb_log_refuse_verb("ibv_set_comp_cntr");
}

LB_EXPORT int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter,
				    uint64_t value)
{
	(void)counter, (void)value;
	return lb_log_refuse_verb("ibv_set_err_comp_cntr");
}

LB_EXPORT int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	(void)counter, (void)amount;
	return lb_log_refuse_verb("ibv_inc_comp_cntr");
}

LB_EXPORT int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter,
				    uint64_t amount)
{
	(void)counter, (void)amount;
	return lb_log_refuse_verb("ibv_inc_err_comp_cntr");
}

LB_EXPORT int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	(void)counter, (void)value;
	return lb_log_refuse_verb("ibv_read_comp_cntr");
}

LB_EXPORT int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter,
				     uint64_t *value)
{
	(void)counter, (void)value;
	return lb_log_refuse_verb("ibv_read_err_comp_cntr");
}

LB_EXPORT int ibv_qp_attach_comp_cntr(struct ibv_qp *qp,
				      struct ibv_comp_cntr *counter,
				      struct ibv_qp_attach_comp_cntr_attr *attr)
{
	(void)qp, (void)counter, (void)attr;
	return lb_log_refuse_verb("ibv_qp_attach_comp_cntr");
}
