/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ah.h -- address handles, between ah.c, which makes them, post.c and wr.c,
 * which copy what is in them, and ud.c, which goes where that leads.
 */

#ifndef LB_QP_AH_H
#define LB_QP_AH_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "object/device.h"
#include "object/object.h"
#include "qp/wqe.h"

struct lb_qp;

#define LB_GRH 40 /* bytes before a datagram's own */

struct lb_ah {
	struct ibv_ah ibv; /* first: the handle */
	struct lb_obj obj;
	uint32_t magic;
	struct lb_route route;
	struct ibv_pd *pd;
};

/* Checks that dev reaches the address. Returns 0 or an errno. */
int lb_ah_check(const struct ibv_ah_attr *attr, const struct lb_device *dev);
/*
 * Sends wqe to the queue pair qpn behind ah. Returns 0, or EINVAL if ah is no
 * handle. A handle of another protection domain makes the request fail when
 * executed.
 */
int lb_ah_set(struct lb_wqe *wqe, const struct lb_qp *qp, struct ibv_ah *ah,
	      uint32_t qpn, uint32_t qkey);
/* Returns the kind of a datagram by the header: 1: over IPv6, 2: over IPv4. */
uint8_t lb_ah_kind(const uint8_t grh[LB_GRH]);
void lb_ah_header(uint8_t grh[LB_GRH], const union ibv_gid *from,
		  const union ibv_gid *to, uint8_t traffic_class,
		  uint32_t length);

#endif /* LB_QP_AH_H */
