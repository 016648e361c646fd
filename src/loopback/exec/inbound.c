/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * inbound.c -- records from other processes: requests, which the responder of a
 * queue pair executes and answers at once, and answers, which go to the
 * requester, remote.c. Run by the thread that drains a link, with link.in held.
 * doc/protocols/wire.md.
 */

#include "exec/inbound.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/process.h"
#include "capture/file.h"
#include "exec/captured.h"
#include "exec/remote.h"
#include "exec/respond.h"
#include "exec/run.h"
#include "exec/ud.h"
#include "exec/work.h"
#include "memory/barrier.h"
#include "memory/copy.h"
#include "memory/mr.h"
#include "object/device.h"
#include "qp/kick.h"
#include "qp/mcast.h"
#include "qp/number.h"
#include "qp/qp.h"
#include "qp/remote.h"
#include "qp/resp.h"
#include "qp/wqe.h"
#include "wire/link.h"
#include "wire/nic.h"
#include "wire/record.h"

/* A request of another process, and its answer. */
struct inbound {
	struct lb_work work;
	struct lb_wqe wqe;
	struct lb_link *link;
	const struct lb_record *record;
	const struct lb_span *payload;
	uint64_t found; /* by an atomic */
};

/* --- requests: is there somebody? */

/*
 * Returns true if the queue pair answers, like for a requester in this process;
 * rq.pop held.
 */
static bool is_answering(const struct lb_qp *qp, const struct inbound *in)
{
	const struct lb_record *record = in->record;
	bool is_uc = record->flags & LB_RECORD_UNRELIABLE;

	return lb_qp_number(qp) == record->to &&
	       lb_qp_takes_in(lb_qp_state(qp)) && qp->remote.link == in->link &&
	       qp->peer_qpn == record->from &&
	       qp->type == (is_uc ? IBV_QPT_UC : IBV_QPT_RC) &&
	       qp->dev->index == record->to_device &&
	       qp->remote.device == record->device;
}

/* --- requests: the requested work */

static uint8_t opcode_of(const struct lb_record *record)
{
	bool has_imm = record->flags & LB_RECORD_IMM;

	switch (record->type) {
	case LB_RECORD_WRITE:
		return has_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	case LB_RECORD_READ:
		return IBV_WR_RDMA_READ;
	case LB_RECORD_CMP_SWP:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case LB_RECORD_FETCH_ADD:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	case LB_RECORD_ATOMIC_WRITE:
		return IBV_WR_ATOMIC_WRITE;
	case LB_RECORD_FLUSH:
		return LB_WR_FLUSH;
	default:
		if (record->flags & LB_RECORD_INV)
			return IBV_WR_SEND_WITH_INV;
		return has_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	}
}

/* The whole request, of which the record is a part. */
static void fill_wqe(struct lb_wqe *wqe, const struct lb_record *record)
{
	memset(wqe, 0, sizeof(*wqe));
	wqe->opcode = opcode_of(record);
	wqe->rkey = record->key;
	wqe->imm = record->imm;
	if (record->flags & LB_RECORD_SOLICITED)
		wqe->flags = IBV_SEND_SOLICITED;
	switch (record->type) {
	case LB_RECORD_FLUSH:
		wqe->flush_addr = record->remote_addr;
		wqe->flush_length = record->total;
		wqe->flush_type = record->code;
		wqe->flush_all = record->flags & LB_RECORD_ALL;
		break;
	case LB_RECORD_FETCH_ADD:
	case LB_RECORD_CMP_SWP:
		wqe->remote_addr = record->remote_addr;
		wqe->compare_add = record->operand;
		wqe->swap = record->swap;
		wqe->length = sizeof(uint64_t);
		break;
	case LB_RECORD_READ:
		wqe->remote_addr = record->remote_addr;
		wqe->length = record->total;
		break;
	default:
		wqe->remote_addr = record->remote_addr - record->offset;
		wqe->length = record->total;
		break;
	}
}

static bool moves_payload(const struct lb_record *record)
{
	return record->type == LB_RECORD_SEND ||
	       record->type == LB_RECORD_WRITE ||
	       record->type == LB_RECORD_ATOMIC_WRITE;
}

/* Returns true for a part of a cut message. */
static bool is_part(const struct lb_record *record)
{
	if (!moves_payload(record))
		return true;
	return record->offset <= record->total &&
	       record->length == lb_copy_piece(record->total - record->offset,
					       LB_RECORD_PAYLOAD);
}

/*
 * Sets the source of the bytes; the value found by an atomic goes to in->found.
 */
static void fill_local(struct inbound *in)
{
	struct lb_span *local = in->work.local;
	unsigned i;

	if (!moves_payload(in->record)) {
		local[0].addr = (uint8_t *)&in->found;
		local[0].len = sizeof(in->found);
		local[1].len = 0;
		return;
	}
	if (in->record->offset) { /* earlier bytes are passed over */
		local->addr = NULL;
		local++->len = in->record->offset;
	}
	for (i = 0; i < 2 && in->payload[i].len; i++)
		*local++ = in->payload[i];
	local->len = 0;
}

/* --- requests: executed; rq.pop held */

static int begin(struct inbound *in)
{
	const struct lb_record *record = in->record;
	const struct lb_resp *resp = &in->work.peer->resp;

	if (!moves_payload(record) || !record->offset)
		return lb_respond_begin(&in->work);
	/* reset or broken in between */
	return resp->is_working && resp->done == record->offset &&
			       (resp->busy || !lb_respond_takes(&in->wqe))
		       ? LB_EXEC_OK
		       : LB_EXEC_SILENT;
}

/* Puts an answer. NOBODY is silence on a wire; all other answers come from an
 * answering queue pair. A capture has each acknowledgement separately. */
static void put_answer(struct inbound *in, const struct lb_record *a,
		       const struct lb_span *bytes)
{
	if (a->type == LB_RECORD_ACK && lb_likely(!lb_file_is_wanted())) {
		lb_link_acknowledge(in->link, a);
		return;
	}
	lb_link_answer(in->link, a, bytes, 0);
	if (lb_file_is_wanted() && a->type != LB_RECORD_NOBODY)
		lb_captured_answer(in->work.peer, in->record, a, bytes);
}

static int answer(struct inbound *in, uint8_t type, uint8_t code)
{
	const struct lb_record *record = in->record;
	const struct lb_record a = {
		.type = type,
		.code = code,
		.life = record->life,
		.from = record->to,
		.to = record->from,
		.psn = record->psn,
		.total = type == LB_RECORD_ACK ? record->psn : 0,
		.operand = type == LB_RECORD_VALUE ? in->found : 0,
	};

	if (!(record->flags & LB_RECORD_UNRELIABLE))
		put_answer(in, &a, NULL);
	return LB_EXEC_OK;
}

static int answer_read(struct inbound *in)
{
	const struct lb_record *record = in->record;
	const struct lb_record a = {
		.type = LB_RECORD_BYTES,
		.length = (uint16_t)record->total,
		.life = record->life,
		.from = record->to,
		.to = record->from,
		.psn = record->psn,
	};
	struct lb_span remote[2];
	int ret = lb_respond_reads(&in->work, remote);

	in->work.peer->resp.is_working = false;
	if (!ret)
		put_answer(in, &a, remote);
	lb_mr_done(&in->work.window);
	return ret;
}

static int answer_other(struct inbound *in)
{
	uint8_t type = in->record->type;
	int ret;

	in->work.budget = in->record->length;
	fill_local(in);
	ret = lb_respond_some(&in->work);
	if (ret > 0)
		return ret;
	return answer(in,
		      type == LB_RECORD_FETCH_ADD || type == LB_RECORD_CMP_SWP
			      ? LB_RECORD_VALUE
			      : LB_RECORD_ACK,
		      0);
}

/*
 * Executes a request at an answering queue pair. LB_EXEC_SILENT: as if there
 * were no answer.
 */
static int execute(struct inbound *in)
{
	const struct lb_record *record = in->record;
	int ret;

	if (!is_part(record))
		return LB_EXEC_SILENT;
	fill_wqe(&in->wqe, record);
	ret = begin(in);
	if (ret)
		return ret;
	return record->type == LB_RECORD_READ ? answer_read(in)
					      : answer_other(in);
}

static bool is_expected(struct lb_resp *resp, const struct lb_record *record)
{
	return record->psn == resp->psn ||
	       (record->flags & LB_RECORD_UNRELIABLE);
}

static uint32_t psn_behind(const struct lb_record *record)
{
	uint32_t bytes =
		record->type == LB_RECORD_READ ? record->total : record->length;

	return (record->psn + lb_psn_count(bytes, record->path_mtu & 7)) &
	       LB_PSN_MASK;
}

static void request_of(struct inbound *in)
{
	struct lb_qp *peer = in->work.peer;
	struct lb_resp *resp = &peer->resp;
	int ret = LB_EXEC_SILENT;

	if (is_expected(resp, in->record))
		ret = execute(in);
	else if (resp->is_late && resp->late == in->record->life)
		return; /* sent before the requester knew */
	if (ret == LB_EXEC_OK)
		resp->psn = psn_behind(in->record);
	resp->is_late = ret == LB_EXEC_RNR;
	resp->late = in->record->life;
	if (ret == LB_EXEC_RNR)
		answer(in, LB_RECORD_RNR, peer->attr.min_rnr_timer);
	else if (ret == LB_EXEC_SILENT)
		answer(in, LB_RECORD_NOBODY, 0);
	else if (ret > 0)
		answer(in, LB_RECORD_NAK, (uint8_t)ret);
}

/* --- datagrams */

static void deliver(struct inbound *in)
{
	const struct lb_record *record = in->record;
	struct lb_datagram datagram = {
		.qkey = record->key,
		.traffic_class = (uint8_t)record->psn,
	};

	memset(&in->wqe, 0, sizeof(in->wqe));
	in->wqe.opcode = record->flags & LB_RECORD_IMM ? IBV_WR_SEND_WITH_IMM
						       : IBV_WR_SEND;
	in->wqe.imm = record->imm;
	in->wqe.length = record->length;
	if (record->flags & LB_RECORD_SOLICITED)
		in->wqe.flags = IBV_SEND_SOLICITED;
	memcpy(in->work.local, in->payload, 3 * sizeof(in->payload[0]));
	memcpy(datagram.from.raw, record->sgid, sizeof(record->sgid));
	memcpy(datagram.to.raw, record->dgid, sizeof(record->dgid));
	lb_ud_deliver(&in->work, &datagram);
}

static void deliver_one(struct inbound *in)
{
	const struct lb_qp *peer = in->work.peer;

	if (lb_qp_number(peer) == in->record->to &&
	    peer->dev->index == in->record->code)
		deliver(in);
}

/* Delivers to all members of a group in this process, like a sender here. */
static void deliver_group(struct inbound *in)
{
	struct lb_member members[LB_MAX_MCAST_ATTACH];
	struct lb_executor *self;
	union ibv_gid gid;
	uint32_t i, n;

	memcpy(gid.raw, in->record->dgid, sizeof(gid.raw));
	n = lb_mcast_members(&gid, members);
	self = lb_barrier_enter();
	for (i = 0; i < n; i++) {
		struct lb_qp *peer = members[i].qp;

		in->work.peer = peer;
		lb_lock_get(&peer->rq.pop);
		if (lb_qp_number(peer) && peer->order == members[i].order)
			deliver(in);
		lb_lock_put(&peer->rq.pop);
	}
	lb_barrier_leave(self);
}

/* --- called by the link */

static void request(struct lb_link *link, const struct lb_record *record,
		    const struct lb_span *payload, struct lb_run *run)
{
	struct lb_qp *peer = lb_qp_at(record->to);
	struct lb_executor *self;
	bool is_datagram = record->type == LB_RECORD_DATAGRAM;
	struct inbound in;

	in.link = link;
	in.record = record;
	in.payload = payload;
	in.work.run = run;
	in.work.qp = NULL;
	in.work.peer = peer;
	in.work.wqe = &in.wqe;
	in.work.from = record->from;
	in.work.moved = 0;
	in.work.window = NULL;
	if (record->type == LB_RECORD_MULTICAST) {
		deliver_group(&in);
		return;
	}
	if (!peer && is_datagram)
		return;
	if (!peer) {
		answer(&in, LB_RECORD_NOBODY, 0);
		return;
	}
	self = lb_barrier_enter();
	lb_lock_get(&peer->rq.pop);
	if (is_datagram)
		deliver_one(&in);
	else if (is_answering(peer, &in))
		request_of(&in);
	else
		answer(&in, LB_RECORD_NOBODY, 0);
	lb_lock_put(&peer->rq.pop);
	lb_barrier_leave(self);
}

static void take_answer(struct lb_link *link, const struct lb_record *record,
			const struct lb_span *payload, struct lb_run *run)
{
	struct lb_qp *qp = lb_qp_at(record->to);

	if (!qp)
		return;
	lb_lock_get(&qp->sq_lock);
	if (lb_qp_number(qp) == record->to && qp->remote.link == link &&
	    qp->peer_qpn == record->from && lb_remote_awaits(qp, record)) {
		lb_remote_take(run, qp, record, payload);
		lb_run_submit(run, qp);
	}
	lb_lock_put(&qp->sq_lock);
}

static void room(struct lb_link *link, struct lb_waiter *waiter,
		 struct lb_run *run)
{
	(void)link;
	lb_kick_add(run, lb_entry(waiter, struct lb_qp, remote.waiter));
}

/* set by the connection manager, once loaded */
static _Atomic(const struct lb_inbound_ops *) listener;

void lb_inbound_listen(const struct lb_inbound_ops *ops)
{
	/* release: pairs with the acquire in listening() */
	atomic_store_explicit(&listener, ops, memory_order_release);
}

static const struct lb_inbound_ops *listening(void)
{
	/* acquire: pairs with the release in lb_inbound_listen() */
	return atomic_load_explicit(&listener, memory_order_acquire);
}

/* Ends a link: requests on the way to the peer will have no answer. */
static void dead(struct lb_link *link, struct lb_run *run)
{
	const struct lb_inbound_ops *ops = listening();
	struct lb_qp *qp;

	pthread_mutex_lock(&lb.big);
	qp = lb_qp_slots();
	pthread_mutex_unlock(&lb.big);
	for (; qp; qp = qp->next) { /* which are never freed */
		lb_lock_get(&qp->sq_lock);
		if (qp->remote.link == link)
			lb_run_submit(run, qp);
		lb_lock_put(&qp->sq_lock);
	}
	if (ops)
		ops->dead(link);
}

static void message(struct lb_link *link, const void *data, size_t size,
		    struct lb_run *run)
{
	const struct lb_inbound_ops *ops = listening();

	(void)run;
	if (ops)
		ops->message(link, data, size);
}

/* Returns a hash that must be equal at both ends of a link: of the devices. The
 * addresses may differ: each process follows the machine at different times. */
static uint64_t hash_devices(void)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	int n;

	for (n = 0; n < lb_device_count; n++)
		hash = (hash ^ lb_device_all[n].guid) * 1099511628211u;
	return hash;
}

void lb_inbound_start(void)
{
	static const struct lb_nic_ops ops = {
		.request = request,
		.answer = take_answer,
		.room = room,
		.dead = dead,
		.message = message,
		.with_run = lb_run_with,
	};
	const struct lb_nic_config config = {
		.devices = (uint32_t)lb_device_count,
		.devices_hash = hash_devices(),
	};

	lb_nic_attach(&ops, &config);
}
