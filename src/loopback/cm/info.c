/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * info.c -- rdma_getaddrinfo() on top of getaddrinfo(3). Like librdmacm's,
 * it gives one result, leaves the source open unless the hints have it, and
 * returns the EAI_* codes; errors of its own are -1 with errno. Any thread.
 */

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "cm/cm.h"
#include "fault/fault.h"

static int socktype_of(int qp_type)
{
	switch (qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SOCK_STREAM;
	case IBV_QPT_UD:
		return SOCK_DGRAM;
	default:
		return 0;
	}
}

static int protocol_of(int port_space, int socktype)
{
	switch (port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_IPOIB:
	case RDMA_PS_UDP:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		if (socktype)
			return socktype == SOCK_STREAM ? IPPROTO_TCP
						       : IPPROTO_UDP;
		return 0;
	default:
		return 0;
	}
}

static struct addrinfo hints_from(const struct rdma_addrinfo *hints)
{
	struct addrinfo ai = {0};

	if (hints->ai_flags & RAI_PASSIVE)
		ai.ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ai.ai_flags |= AI_NUMERICHOST;
	ai.ai_family = hints->ai_family;
	ai.ai_socktype = socktype_of(hints->ai_qp_type);
	ai.ai_protocol = protocol_of(hints->ai_port_space, ai.ai_socktype);
	return ai;
}

/* 0 or -1 with errno */
static int copy_addr(struct sockaddr **dst, socklen_t *dst_len,
		     const struct sockaddr *src, socklen_t len)
{
	struct sockaddr *copy = malloc(len);

	if (!copy)
		return lb_cm_err(ENOMEM);
	memcpy(copy, src, len);
	*dst = copy;
	*dst_len = len;
	return 0;
}

static int qp_type_from(const struct addrinfo *ai)
{
	return ai->ai_socktype == SOCK_DGRAM ? IBV_QPT_UD : IBV_QPT_RC;
}

static int port_space_from(const struct addrinfo *ai)
{
	return ai->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static int fill(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints,
		const struct addrinfo *ai)
{
	bool passive = hints->ai_flags & RAI_PASSIVE;

	rai->ai_flags = passive ? RAI_PASSIVE : 0;
	rai->ai_family = ai->ai_family;
	rai->ai_qp_type =
		hints->ai_qp_type ? hints->ai_qp_type : qp_type_from(ai);
	rai->ai_port_space = hints->ai_port_space ? hints->ai_port_space
						  : port_space_from(ai);
	if (passive)
		return copy_addr(&rai->ai_src_addr, &rai->ai_src_len,
				 ai->ai_addr, ai->ai_addrlen);
	return copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr,
			 ai->ai_addrlen);
}

static int from_names(struct rdma_addrinfo *rai, const char *node,
		      const char *service, const struct rdma_addrinfo *hints)
{
	struct addrinfo ai_hints = hints_from(hints);
	struct addrinfo *ai;
	int ret = getaddrinfo(node, service, &ai_hints, &ai);

	if (ret)
		return ret;
	ret = fill(rai, hints, ai);
	freeaddrinfo(ai);
	return ret;
}

static int from_hints(struct rdma_addrinfo *rai,
		      const struct rdma_addrinfo *hints)
{
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
	if (!hints->ai_dst_len)
		return 0;
	return copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len,
			 hints->ai_dst_addr, hints->ai_dst_len);
}

LB_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			       const struct rdma_addrinfo *hints,
			       struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo no_hints;
	struct rdma_addrinfo *rai;
	int ret = lb_fault_errno("rdma_getaddrinfo");

	if (ret || !res || (!node && !service && !hints))
		return lb_cm_err(ret ? ret : EINVAL);
	if (!hints)
		hints = &no_hints;
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return lb_cm_err(ENOMEM);
	ret = node || service ? from_names(rai, node, service, hints)
			      : from_hints(rai, hints);
	if (!ret && !rai->ai_src_len && hints->ai_src_len)
		ret = copy_addr(&rai->ai_src_addr, &rai->ai_src_len,
				hints->ai_src_addr, hints->ai_src_len);
	if (ret)
		rdma_freeaddrinfo(rai);
	else
		*res = rai;
	return ret;
}

LB_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_connect);
		free(res->ai_route);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
	}
}

/* --- names resolved by a service of the subnet, which the device lacks */

static int no_service(const char *verb)
{
	return lb_cm_err(lb_log_refuse(
		EOPNOTSUPP, "%s(): no subnet resolves names here", verb));
}

LB_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
				    const char *service,
				    const struct rdma_addrinfo *hints)
{
	(void)id, (void)node, (void)service, (void)hints;
	return no_service("rdma_resolve_addrinfo");
}

LB_EXPORT int rdma_query_addrinfo(struct rdma_cm_id *id,
				  struct rdma_addrinfo **info)
{
	(void)id, (void)info;
	return no_service("rdma_query_addrinfo");
}
