/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* captured.c -- see captured.h. */

#include "exec/captured.h"

#include <string.h>

#include "base/newer.h"
#include "capture/file.h"
#include "capture/packet.h"
#include "object/device.h"
#include "qp/qp.h"
#include "qp/remote.h"
#include "qp/wqe.h"

/* A message, or the bytes of an answer, on the way into packets. */
struct message {
	struct lb_packet packet; /* common fields of all packets */
	const struct lb_span *span;
	uint64_t done; /* of the span */
	uint32_t left;
	uint32_t mtu;
	/* opcodes: of an only packet; of the first, the middle, the last
	 * packet */
	uint8_t only, first, middle, last;
};

/* n bytes more of the message, into buf. */
static void gather(struct message *m, uint8_t *buf, uint32_t n)
{
	m->left -= n;
	while (n) {
		uint64_t part = m->span->len - m->done;

		if (part > n)
			part = n;
		memcpy(buf, m->span->addr + m->done, part);
		buf += part;
		n -= (uint32_t)part;
		m->done += part;
		if (m->done == m->span->len) {
			m->span++;
			m->done = 0;
		}
	}
}

/* Sends all packets of the message; returns the PSN after the last packet. */
static uint32_t send_message(struct message *m)
{
	struct lb_packet *p = &m->packet;
	uint8_t buf[LB_PACKET_PAYLOAD];
	bool is_first = true, is_last, is_solicited = p->is_solicited;
	bool wants_ack = p->wants_ack;

	do {
		p->payload = buf;
		p->payload_len = m->left < m->mtu ? m->left : m->mtu;
		gather(m, buf, p->payload_len);
		is_last = !m->left;
		p->opcode = is_first ? (is_last ? m->only : m->first)
				     : (is_last ? m->last : m->middle);
		p->is_solicited = is_last && is_solicited;
		p->wants_ack = is_last && wants_ack;
		lb_file_write(p);
		p->psn = (p->psn + 1) & 0xffffff;
		is_first = false;
	} while (!is_last);
	return p->psn;
}

static uint8_t transport(const struct lb_qp *qp)
{
	return qp->type == IBV_QPT_RC	? LB_PACKET_RC
	       : qp->type == IBV_QPT_UC ? LB_PACKET_UC
					: LB_PACKET_UD;
}

static void set_opcodes(struct message *m, uint8_t kind, uint8_t only,
			uint8_t first, uint8_t last)
{
	m->only = kind | only;
	m->first = kind | first;
	m->middle = kind | (first + 1);
	m->last = kind | last;
}

static void set_request(struct message *m, const struct lb_work *w)
{
	uint8_t kind = transport(w->qp);

	switch (w->wqe->opcode) {
	case IBV_WR_SEND:
		set_opcodes(m, kind, LB_PACKET_SEND_ONLY, LB_PACKET_SEND_FIRST,
			    LB_PACKET_SEND_LAST);
		break;
	case IBV_WR_SEND_WITH_IMM:
		set_opcodes(m, kind, LB_PACKET_SEND_ONLY_IMM,
			    LB_PACKET_SEND_FIRST, LB_PACKET_SEND_LAST_IMM);
		break;
	case IBV_WR_SEND_WITH_INV:
		set_opcodes(m, kind, LB_PACKET_SEND_ONLY_INV,
			    LB_PACKET_SEND_FIRST, LB_PACKET_SEND_LAST_INV);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		set_opcodes(m, kind, LB_PACKET_WRITE_ONLY_IMM,
			    LB_PACKET_WRITE_FIRST, LB_PACKET_WRITE_LAST_IMM);
		break;
	case IBV_WR_RDMA_WRITE:
		set_opcodes(m, kind, LB_PACKET_WRITE_ONLY,
			    LB_PACKET_WRITE_FIRST, LB_PACKET_WRITE_LAST);
		break;
	case IBV_WR_RDMA_READ:
		m->only = LB_PACKET_READ;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		m->only = LB_PACKET_CMP_SWP;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		m->only = LB_PACKET_FETCH_ADD;
		break;
	case IBV_WR_ATOMIC_WRITE:
		m->only = LB_PACKET_ATOMIC_WRITE;
		break;
	default:
		m->only = LB_PACKET_FLUSH;
		break;
	}
}

/* Sets source and destination, from the connection or the datagram. */
static void set_ends(struct lb_packet *p, const struct lb_work *w)
{
	const struct ibv_global_route *grh = &w->qp->attr.ah_attr.grh;
	bool is_ud = w->qp->type == IBV_QPT_UD;
	uint8_t index = is_ud ? w->wqe->route.sgid : grh->sgid_index;

	p->from = lb_gid_at(w->qp->dev, index)->raw;
	p->to = is_ud ? w->wqe->route.dgid : grh->dgid.raw;
	p->src_qpn = lb_qp_number(w->qp);
	p->dest_qpn = is_ud ? w->wqe->rkey : w->qp->peer_qpn;
}

static void set_operation(struct lb_packet *p, const struct lb_work *w)
{
	const struct lb_wqe *wqe = w->wqe;

	p->is_solicited = wqe->flags & IBV_SEND_SOLICITED;
	p->wants_ack = w->qp->type == IBV_QPT_RC;
	p->imm = wqe->imm;
	if (w->qp->type == IBV_QPT_UD) {
		/* the highest bit selects the Q_Key of the queue pair */
		p->qkey = wqe->qkey >> 31 ? w->qp->attr.qkey : wqe->qkey;
		return;
	}
	p->remote_addr = wqe->remote_addr;
	p->rkey = wqe->rkey;
	p->length = wqe->length;
	if (wqe->opcode == LB_WR_FLUSH) {
		p->length = wqe->flush_length;
		p->flush_type = wqe->flush_type;
		p->flush_level = wqe->flush_all;
	} else {
		p->swap = wqe->swap;
		p->compare_add = wqe->compare_add;
	}
}

/* Returns true if the request carries bytes, and does not ask for bytes. */
static bool has_payload(const struct lb_wqe *wqe)
{
	return !lb_wqe_reads(wqe) && wqe->opcode != LB_WR_FLUSH;
}

/* --- the answer */

static uint8_t syndrome_of(int result)
{
	switch (result) {
	case LB_EXEC_OK:
		return LB_PACKET_IS_ACK;
	case IBV_WC_REM_INV_REQ_ERR:
		return LB_PACKET_NAK_REQUEST;
	case IBV_WC_REM_ACCESS_ERR:
		return LB_PACKET_NAK_ACCESS;
	default:
		return LB_PACKET_NAK_OPERATION;
	}
}

static uint64_t old_value(const struct lb_span *span)
{
	struct message m = {.span = span};
	uint64_t value;

	gather(&m, (uint8_t *)&value, sizeof(value));
	return value;
}

/* psn: of the last packet of the request, or the first of a READ's. */
static void send_answer(struct lb_work *w, int result, uint32_t psn)
{
	const struct lb_wqe *wqe = w->wqe;
	struct message m = {
		.packet.from = w->qp->attr.ah_attr.grh.dgid.raw,
		.packet.src_qpn = w->qp->peer_qpn,
		.packet.dest_qpn = lb_qp_number(w->qp),
		.packet.psn = psn,
		.packet.syndrome = syndrome_of(result),
		.packet.msn = w->qp->sent_messages,
		.only = LB_PACKET_ACK,
		.mtu = LB_PACKET_PAYLOAD,
	};
	uint8_t index = w->qp->attr.ah_attr.grh.sgid_index;

	m.packet.to = lb_gid_at(w->qp->dev, index)->raw;
	if (result == LB_EXEC_OK && wqe->opcode == IBV_WR_RDMA_READ) {
		set_opcodes(&m, LB_PACKET_RC, LB_PACKET_READ_ONLY,
			    LB_PACKET_READ_FIRST, LB_PACKET_READ_LAST);
		m.span = w->local;
		m.left = wqe->length;
		m.mtu = 128u << w->qp->attr.path_mtu;
	} else if (result == LB_EXEC_OK && lb_wqe_reads(wqe)) {
		m.only = LB_PACKET_ATOMIC_ACK;
		m.packet.old = old_value(w->local);
	} else if (result == LB_EXEC_OK && lb_wqe_is_counted(wqe)) {
		m.only = LB_PACKET_READ_ONLY; /* of flush and atomic write */
	}
	send_message(&m);
}

/* --- a request */

/*
 * Returns true if a wire would have carried the request: not if the requester
 * refuses or drops the request.
 */
static bool was_sent(const struct lb_work *w, int result)
{
	const struct lb_wr_fault *fault = &w->qp->exec.fault;

	if (lb_wqe_is_local(w->wqe) || (fault->status && !fault->after))
		return false;
	return result == LB_EXEC_OK || result == IBV_WC_REM_INV_REQ_ERR ||
	       result == IBV_WC_REM_ACCESS_ERR || result == IBV_WC_REM_OP_ERR;
}

void lb_captured_request(struct lb_work *w, int result)
{
	struct lb_qp *qp = w->qp;
	struct message m = {
		.packet.psn = (qp->attr.sq_psn + qp->sent_packets) & 0xffffff,
		.span = w->local,
		.left = has_payload(w->wqe) ? w->wqe->length : 0,
		.mtu = qp->type == IBV_QPT_UD ? LB_PACKET_PAYLOAD
					      : 128u << qp->attr.path_mtu,
	};
	uint32_t psn = m.packet.psn, next;

	if (result == LB_EXEC_WAIT || result == LB_EXEC_AGAIN ||
	    !was_sent(w, result))
		return;
	set_request(&m, w);
	set_ends(&m.packet, w);
	set_operation(&m.packet, w);
	next = send_message(&m);
	/* an answer to a READ takes a PSN for each packet */
	if (w->wqe->opcode == IBV_WR_RDMA_READ && w->wqe->length)
		next = psn + (w->wqe->length + m.mtu - 1) / m.mtu;
	qp->sent_packets = next - qp->attr.sq_psn;
	qp->sent_messages++;
	if (qp->type != IBV_QPT_RC)
		return;
	send_answer(w, result,
		    w->wqe->opcode == IBV_WR_RDMA_READ ? psn : next - 1);
}

/* --- traffic of a link */

static void skip(struct message *m, uint64_t n)
{
	while (n >= m->span->len && m->span->len) {
		n -= m->span->len;
		m->span++;
	}
	m->done = n;
}

static bool is_cut(const struct lb_record *part)
{
	return part->type == LB_RECORD_SEND || part->type == LB_RECORD_WRITE;
}

/* Cuts the opcodes of a message of several parts. */
static void cut_opcodes(struct message *m, const struct lb_record *part)
{
	bool begins = part->flags & LB_RECORD_FIRST;
	bool ends = part->flags & LB_RECORD_LAST;

	if (!begins || !ends)
		m->only = begins ? m->first : ends ? m->last : m->middle;
	if (!begins)
		m->first = m->middle;
	if (!ends)
		m->last = m->middle;
	m->packet.is_solicited = ends && m->packet.is_solicited;
}

void lb_captured_part(struct lb_work *w, const struct lb_record *part)
{
	const struct lb_qp *qp = w->qp;
	struct message m = {
		.packet.psn = part->psn,
		.span = w->local,
		.left = part->length,
		.mtu = 128u << qp->attr.path_mtu,
	};

	set_request(&m, w);
	set_ends(&m.packet, w);
	set_operation(&m.packet, w);
	if (is_cut(part))
		cut_opcodes(&m, part);
	if (part->type == LB_RECORD_READ) {
		m.packet.remote_addr = part->remote_addr;
		m.packet.length = part->total;
	}
	skip(&m, part->length ? qp->remote.sent.offset : 0);
	send_message(&m);
}

static uint8_t syndrome_in(const struct lb_record *answer)
{
	switch (answer->type) {
	case LB_RECORD_RNR:
		return LB_PACKET_RNR | (answer->code & 0x1f);
	case LB_RECORD_NAK:
		return syndrome_of(answer->code);
	default:
		return LB_PACKET_IS_ACK;
	}
}

void lb_captured_answer(struct lb_qp *qp, const struct lb_record *part,
			const struct lb_record *answer,
			const struct lb_span *bytes)
{
	const struct ibv_global_route *grh = &qp->attr.ah_attr.grh;
	uint32_t packets = lb_psn_count(part->length, qp->attr.path_mtu);
	struct message m = {
		.packet.from = lb_gid_at(qp->dev, grh->sgid_index)->raw,
		.packet.to = grh->dgid.raw,
		.packet.src_qpn = lb_qp_number(qp),
		.packet.dest_qpn = qp->peer_qpn,
		.packet.psn = (part->psn + packets - 1) & LB_PSN_MASK,
		.packet.syndrome = syndrome_in(answer),
		.packet.old = answer->operand,
		.only = LB_PACKET_ACK,
		.mtu = LB_PACKET_PAYLOAD,
	};

	if (m.packet.syndrome == LB_PACKET_IS_ACK &&
	    (!is_cut(part) || part->flags & LB_RECORD_LAST))
		qp->answered_messages++;
	m.packet.msn = qp->answered_messages & 0xffffff;
	if (answer->type == LB_RECORD_BYTES) {
		set_opcodes(&m, LB_PACKET_RC, LB_PACKET_READ_ONLY,
			    LB_PACKET_READ_FIRST, LB_PACKET_READ_LAST);
		m.packet.psn = part->psn;
		m.span = bytes;
		m.left = part->total;
		m.mtu = 128u << qp->attr.path_mtu;
	} else if (answer->type == LB_RECORD_VALUE) {
		m.only = LB_PACKET_ATOMIC_ACK;
	} else if (answer->type == LB_RECORD_ACK &&
		   (part->type == LB_RECORD_FLUSH ||
		    part->type == LB_RECORD_ATOMIC_WRITE)) {
		m.only = LB_PACKET_READ_ONLY;
	}
	send_message(&m);
}
