/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ah.c -- address handles of datagrams, and the header of 40 bytes that a
 * datagram arrives behind, from which its receiver makes a handle to answer.
 * Under lb.big; a post only reads a handle.
 */

#include "qp/ah.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/log.h"
#include "base/process.h"
#include "fault/fault.h"
#include "memory/pd.h"
#include "object/device.h"
#include "object/object.h"
#include "qp/mcast.h"
#include "qp/number.h"
#include "qp/qp.h"
#include "qp/wqe.h"
#include "rpma_loopback.h"
#include "wire/meet.h"

#define HOPS  64
#define UDP   17
#define IPV4  20 /* where an IPv4 header begins: it is the last half */
#define EXTRA 32 /* bytes of the headers behind that of IP, and of the CRC */

static bool is_v4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* --- the header */

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void set_checksum(uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~sum & 0xffff);
}

void lb_ah_header(uint8_t grh[LB_GRH], const union ibv_gid *from,
		  const union ibv_gid *to, uint8_t traffic_class,
		  uint32_t length)
{
	uint8_t *ip = grh + IPV4;

	memset(grh, 0, LB_GRH);
	if (!is_v4(from) || !is_v4(to)) {
		grh[0] = 0x60 | traffic_class >> 4;
		grh[1] = (uint8_t)(traffic_class << 4);
		put16(grh + 4, length + EXTRA);
		grh[6] = UDP;
		grh[7] = HOPS;
		memcpy(grh + 8, from->raw, sizeof(from->raw));
		memcpy(grh + 24, to->raw, sizeof(to->raw));
		return;
	}
	ip[0] = 0x45;
	ip[1] = traffic_class;
	put16(ip + 2, length + EXTRA + 20);
	ip[8] = HOPS;
	ip[9] = UDP;
	memcpy(ip + 12, from->raw + 12, 4);
	memcpy(ip + 16, to->raw + 12, 4);
	set_checksum(ip);
}

/*
 * The numbers are those of the cards that have most RoCE users: UCX up to 1.14
 * takes sl of a completion for such a number, and drops the datagram otherwise.
 */
uint8_t lb_ah_kind(const uint8_t grh[LB_GRH])
{
	return (grh[0] & 0xf0) == 0x60 ? 1 : 2;
}

/* From whom and to whom, by the header of a datagram. */
static void read_header(const struct ibv_grh *grh, union ibv_gid *from,
			union ibv_gid *to)
{
	const uint8_t *bytes = (const uint8_t *)grh;

	if (bytes[IPV4] != 0x45) {
		memcpy(from->raw, bytes + 8, sizeof(from->raw));
		memcpy(to->raw, bytes + 24, sizeof(to->raw));
		return;
	}
	memset(from, 0, sizeof(*from));
	from->raw[10] = from->raw[11] = 0xff;
	*to = *from;
	memcpy(from->raw + 12, bytes + IPV4 + 12, 4);
	memcpy(to->raw + 12, bytes + IPV4 + 16, 4);
}

static uint8_t traffic_class_in(const struct ibv_grh *grh)
{
	const uint8_t *bytes = (const uint8_t *)grh;

	if (bytes[IPV4] == 0x45)
		return bytes[IPV4 + 1];
	return (uint8_t)(bytes[0] << 4 | bytes[1] >> 4);
}

/* The GID's index in the table of dev; 0 if it is only routed there. */
static uint8_t index_of(const struct lb_device *dev, const union ibv_gid *gid)
{
	int i = lb_gid_index(dev, gid);

	return i < 0 ? 0 : (uint8_t)i;
}

/* --- the objects */

/* The source of attr. 0 or an errno. */
static int check_source(const struct ibv_ah_attr *attr,
			const struct lb_device *dev)
{
	/* the link layer is Ethernet: no address without a GID */
	if (!attr->is_global)
		return EINVAL;
	lb_gid_refresh();
	if (lb_gid_at(dev, attr->grh.sgid_index) == &lb_gid_none)
		return EINVAL;
	return attr->port_num == 1 ? 0 : EINVAL;
}

int lb_ah_check(const struct ibv_ah_attr *attr, const struct lb_device *dev)
{
	int err = check_source(attr, dev);

	if (err)
		return err;
	return lb_gid_device(&attr->grh.dgid) ? 0 : EHOSTUNREACH;
}

/* Also to a multicast group, unlike a connection. 0 or an errno. */
static int set_route(struct lb_route *route, const struct ibv_ah_attr *attr,
		     const struct lb_device *dev)
{
	const struct lb_device *to;
	int err = check_source(attr, dev);

	if (err)
		return err;
	route->sgid = attr->grh.sgid_index;
	route->traffic_class = attr->grh.traffic_class;
	memcpy(route->dgid, attr->grh.dgid.raw, sizeof(route->dgid));
	route->is_multicast = lb_mcast_is(&attr->grh.dgid);
	if (route->is_multicast)
		return 0;
	to = lb_gid_device(&attr->grh.dgid);
	if (!to)
		return EHOSTUNREACH;
	route->device = (uint8_t)to->index;
	return 0;
}

static int attach(struct lb_ah *ah, struct ibv_pd *ibv_pd,
		  const struct ibv_ah_attr *attr)
{
	struct lb_obj *pd = lb_object_find(ibv_pd, LB_PD);
	int err;

	if (!pd)
		return EINVAL;
	ah->ibv.context = ibv_pd->context;
	ah->ibv.pd = ibv_pd;
	err = set_route(&ah->route, attr, pd->dev);
	if (!err)
		err = lb_object_add(&ah->obj, &ah->ibv, LB_AH, pd->dev,
				    &ah->ibv.handle);
	if (err)
		return err;
	pd->refs++;
	ah->pd = lb_pd_root(ibv_pd);
	return 0;
}

LB_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
				       struct ibv_ah_attr *attr)
{
	struct lb_ah *ah = NULL;
	int err = lb_fault_errno("ibv_create_ah");

	if (!err && !(ah = calloc(1, sizeof(*ah))))
		err = ENOMEM;
	if (!err) {
		ah->magic = LB_AH;
		pthread_mutex_lock(&lb.big);
		err = attach(ah, pd, attr);
		if (!err && ah->route.is_multicast)
			lb_qp_number_own(); /* others look for it */
		pthread_mutex_unlock(&lb.big);
	}
	if (!err && ah->route.is_multicast)
		lb_meet_all();
	if (!err)
		return &ah->ibv;
	free(ah);
	lb_error_of("ibv_create_ah", err);
	return NULL;
}

LB_EXPORT int ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct lb_ah *ah = (struct lb_ah *)ibv;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_object_retire("ibv_destroy_ah", ibv, LB_AH, &obj);
	if (err)
		return err;
	((struct lb_pd *)ibv->pd)->obj.refs--;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	ah->magic = 0;
	free(ah);
	return 0;
}

LB_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
				  struct ibv_wc *wc, struct ibv_grh *grh,
				  struct ibv_ah_attr *attr)
{
	union ibv_gid own;

	if (!lb_object_check(context, LB_CONTEXT) ||
	    !(wc->wc_flags & IBV_WC_GRH)) {
		errno = EINVAL;
		return -1;
	}
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	attr->is_global = 1;
	read_header(grh, &attr->grh.dgid, &own);
	attr->grh.sgid_index = index_of(lb_device_of(context), &own);
	attr->grh.hop_limit = 0xff;
	attr->grh.traffic_class = traffic_class_in(grh);
	return 0;
}

LB_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
					       struct ibv_wc *wc,
					       struct ibv_grh *grh,
					       uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (!lb_object_check(pd, LB_PD) ||
	    ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int lb_ah_set(struct lb_wqe *wqe, const struct lb_qp *qp, struct ibv_ah *ibv,
	      uint32_t qpn, uint32_t qkey)
{
	const struct lb_ah *ah = (const struct lb_ah *)ibv;

	if (!ah || ah->magic != LB_AH) {
		lb_log_misuse("datagram by an address handle that is none");
		return EINVAL;
	}
	wqe->rkey = qpn;
	wqe->qkey = qkey;
	wqe->route = ah->route;
	if (!lb_likely(ah->pd == qp->pd)) {
		lb_log_misuse("datagram by an address handle of another "
			      "protection domain than its QP");
		wqe->route.device = LB_NO_ROUTE;
	}
	return 0;
}
