/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pack.c -- a message as it goes to another process: one struct of fixed
 * widths, which programs of 32 and 64 bits share. What comes was written by
 * another process, which may have written anything.
 */

#include "cm/pack.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "cm/cm.h"

struct packed_addr {
	uint16_t family;
	uint16_t port; /* network byte order, as the rest */
	uint32_t flowinfo;
	uint32_t scope_id;
	uint8_t ip[16];
};

struct packed {
	uint8_t kind;
	uint8_t type;	 /* enum lb_cm_msg_type */
	uint8_t qp_type; /* enum ibv_qp_type */
	uint8_t again;
	uint32_t from;
	uint32_t to;
	int32_t reason;
	uint32_t ps; /* enum rdma_port_space */
	struct packed_addr src;
	struct packed_addr dst;
	uint8_t gid[16];
	uint32_t qp_num;
	uint32_t psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t priv[LB_CM_PRIV_MAX];
	uint8_t spare[2];
};

_Static_assert(sizeof(struct packed) == LB_CM_PACK_SIZE, "no holes");

static void pack_addr(struct packed_addr *to, const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *in6 = (const void *)ss;
	const struct sockaddr_in *in = (const void *)ss;

	to->family = ss->ss_family;
	if (ss->ss_family == AF_INET) {
		to->port = in->sin_port;
		memcpy(to->ip, &in->sin_addr, sizeof(in->sin_addr));
	} else if (ss->ss_family == AF_INET6) {
		to->port = in6->sin6_port;
		to->flowinfo = in6->sin6_flowinfo;
		to->scope_id = in6->sin6_scope_id;
		memcpy(to->ip, &in6->sin6_addr, sizeof(in6->sin6_addr));
	}
}

static bool unpack_addr(struct sockaddr_storage *ss,
			const struct packed_addr *from)
{
	struct sockaddr_in6 *in6 = (void *)ss;
	struct sockaddr_in *in = (void *)ss;

	ss->ss_family = from->family;
	if (from->family == AF_INET) {
		in->sin_port = from->port;
		memcpy(&in->sin_addr, from->ip, sizeof(in->sin_addr));
		return true;
	}
	if (from->family != AF_INET6)
		return false;
	in6->sin6_port = from->port;
	in6->sin6_flowinfo = from->flowinfo;
	in6->sin6_scope_id = from->scope_id;
	memcpy(&in6->sin6_addr, from->ip, sizeof(in6->sin6_addr));
	return true;
}

void lb_cm_pack(uint8_t bytes[LB_CM_PACK_SIZE], const struct lb_cm_msg *msg)
{
	const struct lb_cm_params *params = &msg->params;
	struct packed p = {
		.kind = LB_CM_PACK_KIND,
		.type = (uint8_t)msg->type,
		.qp_type = (uint8_t)msg->qp_type,
		.again = msg->again,
		.from = msg->from,
		.to = msg->to,
		.reason = msg->reason,
		.ps = msg->ps,
		.qp_num = params->qp_num,
		.psn = params->psn,
		.responder_resources = params->responder_resources,
		.initiator_depth = params->initiator_depth,
		.flow_control = params->flow_control,
		.retry_count = params->retry_count,
		.rnr_retry_count = params->rnr_retry_count,
		.srq = params->srq,
	};

	if (msg->type == LB_CM_MSG_REQ) {
		pack_addr(&p.src, &msg->src);
		pack_addr(&p.dst, &msg->dst);
	}
	memcpy(p.gid, &params->gid, sizeof(p.gid));
	memcpy(p.priv, msg->priv, sizeof(p.priv));
	memcpy(bytes, &p, sizeof(p));
}

bool lb_cm_unpack(struct lb_cm_msg *msg, const void *bytes, size_t size)
{
	struct packed p;

	if (size != sizeof(p))
		return false;
	memcpy(&p, bytes, sizeof(p));
	if (p.kind != LB_CM_PACK_KIND || p.type >= LB_CM_MSGS ||
	    (!p.from && !p.to))
		return false;
	memset(msg, 0, sizeof(*msg));
	msg->type = (enum lb_cm_msg_type)p.type;
	msg->from = p.from;
	msg->to = p.to;
	msg->reason = p.reason;
	msg->again = p.again != 0;
	msg->ps = (enum rdma_port_space)p.ps;
	msg->qp_type = (enum ibv_qp_type)p.qp_type;
	msg->dst_dev = -1;
	memcpy(&msg->params.gid, p.gid, sizeof(p.gid));
	msg->params.qp_num = p.qp_num & 0xffffff;
	msg->params.psn = p.psn & 0xffffff;
	msg->params.responder_resources = p.responder_resources;
	msg->params.initiator_depth = p.initiator_depth;
	msg->params.flow_control = p.flow_control != 0;
	msg->params.retry_count = p.retry_count & 7;
	msg->params.rnr_retry_count = p.rnr_retry_count & 7;
	msg->params.srq = p.srq != 0;
	memcpy(msg->priv, p.priv, sizeof(p.priv));
	return p.type != LB_CM_MSG_REQ ||
	       (p.from && unpack_addr(&msg->src, &p.src) &&
		unpack_addr(&msg->dst, &p.dst));
}
