/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* captured.c -- see captured.h. */

#include "cm/captured.h"

#include "capture/file.h"
#include "capture/mad.h"
#include "capture/packet.h"
#include "cm/addr.h"
#include "cm/dev.h"
#include "cm/table.h"

#define UD_QKEY 0x01234567u /* RDMA_UDP_QKEY of librdmacm */

struct ends {
	union ibv_gid from, to;
	bool is_ud;
	uint32_t peer_qpn; /* of the sender, if it is known */
};

/* By the end that can be found: the sender may be none, or gone. */
static bool find_ends(const struct lb_cm_msg *msg, struct ends *ends)
{
	struct lb_cm_id *id = lb_cm_id_find(msg->from);
	bool is_sender = id;

	if (!id && !msg->via) /* a handle of another process is none here */
		id = lb_cm_id_find(msg->to);
	if (!id || id->dev < 0)
		return false;
	ends->is_ud = lb_cm_id_is_ud(id);
	ends->from = *lb_cm_dev_gid(id->dev, id->gid_index);
	ends->to = id->dgid;
	ends->peer_qpn = is_sender ? id->theirs.qp_num : 0;
	if (!is_sender) {
		ends->to = ends->from;
		ends->from = id->dgid;
	}
	if (msg->type == LB_CM_MSG_REQ)
		lb_cm_addr_to_gid((const struct sockaddr *)&msg->dst,
				  &ends->to);
	return true;
}

static enum lb_mad_type type_of(const struct lb_cm_msg *msg, bool is_ud)
{
	static const enum lb_mad_type types[LB_CM_MSGS] = {
		[LB_CM_MSG_REQ] = LB_MAD_REQ,	[LB_CM_MSG_MRA] = LB_MAD_MRA,
		[LB_CM_MSG_REP] = LB_MAD_REP,	[LB_CM_MSG_RTU] = LB_MAD_RTU,
		[LB_CM_MSG_REJ] = LB_MAD_REJ,	[LB_CM_MSG_DREQ] = LB_MAD_DREQ,
		[LB_CM_MSG_DREP] = LB_MAD_DREP,
	};

	if (is_ud && msg->type == LB_CM_MSG_REQ)
		return LB_MAD_SIDR_REQ;
	if (is_ud && (msg->type == LB_CM_MSG_REP || msg->type == LB_CM_MSG_REJ))
		return LB_MAD_SIDR_REP;
	return types[msg->type];
}

static in_port_t port_of(const struct sockaddr_storage *ss)
{
	/* at the same place in both families */
	return ((const struct sockaddr_in *)ss)->sin_port;
}

static void fill(struct lb_mad *mad, const struct lb_cm_msg *msg,
		 const struct ends *ends)
{
	const struct lb_cm_params *p = &msg->params;

	mad->type = type_of(msg, ends->is_ud);
	mad->from = msg->from;
	mad->to = msg->to;
	mad->service = (uint64_t)msg->ps << 16 | ntohs(port_of(&msg->dst));
	mad->qpn = msg->type == LB_CM_MSG_DREQ ? ends->peer_qpn : p->qp_num;
	mad->psn = p->psn;
	mad->qkey = UD_QKEY;
	mad->responder_resources = p->responder_resources;
	mad->initiator_depth = p->initiator_depth;
	mad->retry_count = p->retry_count;
	mad->rnr_retry_count = p->rnr_retry_count;
	mad->has_flow_control = p->flow_control;
	mad->has_srq = p->srq;
	mad->is_uc = msg->qp_type == IBV_QPT_UC;
	mad->reason = (uint16_t)msg->reason;
	if (mad->type == LB_MAD_SIDR_REP && msg->type == LB_CM_MSG_REJ)
		mad->reason = msg->reason == LB_CM_REJ_NO_LISTENER
				      ? LB_CM_UD_NO_LISTENER
				      : LB_CM_UD_REJECTED;
	mad->sgid = ends->from.raw;
	mad->dgid = ends->to.raw;
	mad->src_port = port_of(&msg->src);
	mad->priv = msg->priv;
}

void lb_cm_captured(const struct lb_cm_msg *msg)
{
	uint8_t bytes[LB_MAD_SIZE];
	struct lb_mad mad = {0};
	struct ends ends;
	struct lb_packet packet = {
		.opcode = LB_PACKET_UD | LB_PACKET_SEND_ONLY,
		.src_qpn = LB_MAD_QPN,
		.dest_qpn = LB_MAD_QPN,
		.qkey = LB_MAD_QKEY,
		.payload = bytes,
		.payload_len = sizeof(bytes),
	};

	if (!find_ends(msg, &ends))
		return;
	if (ends.is_ud && msg->type == LB_CM_MSG_MRA)
		return; /* what is asked for datagrams has no such answer */
	fill(&mad, msg, &ends);
	lb_mad_build(bytes, &mad);
	packet.from = ends.from.raw;
	packet.to = ends.to.raw;
	lb_file_write(&packet);
}
