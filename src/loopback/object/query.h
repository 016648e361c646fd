/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * query.h -- queries that a context has a slot for.
 */

#ifndef LB_OBJECT_QUERY_H
#define LB_OBJECT_QUERY_H

#include <infiniband/verbs.h>

/* 100 Gbit/s, of a port of 4 lanes of EDR, in units of 100 Mbit/s */
#define LB_PORT_SPEED 1000

int lb_query_device_ex(struct ibv_context *context,
		       const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int lb_query_rt_values(struct ibv_context *context,
		       struct ibv_values_ex *values);
int lb_query_port(struct ibv_context *context, uint8_t port_num,
		  struct ibv_port_attr *attr, size_t attr_size);

#endif /* LB_OBJECT_QUERY_H */
