/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * append_bare.c -- the writer by verbs and rdma_cm alone, as fast as possible:
 * an append is one chain of work requests for each replica, made once, of which
 * the last is signaled: write of the record, flush, write of the tail with a
 * fence, flush. A flush is a READ, which rdma-core knows at any age.
 */

#include "append.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/rdma_cma.h>

#include "../../examples/32-log/format.h"
#include "bench.h"

#define TIMEOUT_MS 10000
#define LINK	   4 /* work requests */

struct replica {
	struct rdma_cm_id *id;
	struct log_answer answer;
	uint64_t at; /* address of the region */
	uint64_t ends[DEPTH_MAX];
	uint32_t posted, completed;
	uint64_t durable;
	struct ibv_send_wr wrs[LINK];
	struct ibv_sge sges[LINK];
};

static struct rdma_event_channel *channel;
static struct replica replicas[REPLICAS];
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char *records; /* behind: a word for flushes to read into */
static uint64_t log_end_at;

static void must(bool is_good, const char *what)
{
	if (!is_good)
		bench_fail(what);
}

static void expect(enum rdma_cm_event_type type, struct log_answer *answer)
{
	struct rdma_cm_event *event;

	must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
	must(event->event == type, rdma_event_str(event->event));
	if (answer != NULL)
		memcpy(answer, event->param.conn.private_data, sizeof(*answer));
	rdma_ack_cm_event(event);
}

static void open_device(struct ibv_context *verbs)
{
	size_t size = LOG_SIZE + LOG_PAGE;

	records = aligned_alloc(LOG_PAGE, size);
	pd = ibv_alloc_pd(verbs);
	cq = ibv_create_cq(verbs, 4 * REPLICAS * DEPTH_MAX, NULL, NULL, 0);
	must(records != NULL && pd != NULL && cq != NULL, "device");
	memset(records, 0, size);
	mr = ibv_reg_mr(pd, records, size, IBV_ACCESS_LOCAL_WRITE);
	must(mr != NULL, "ibv_reg_mr");
}

/* Makes the work requests of all appends to the replica. */
static void make_link(struct replica *r)
{
	static const enum ibv_wr_opcode opcodes[LINK] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ};
	uint32_t rkey;
	int i;

	/* the descriptor of librpma: address, size, rkey, usage */
	memcpy(&r->at, r->answer.region.descriptor, sizeof(r->at));
	memcpy(&rkey, r->answer.region.descriptor + 16, sizeof(rkey));
	for (i = 0; i < LINK; i++) {
		r->sges[i] = (struct ibv_sge){(uintptr_t)records + LOG_SIZE, 1,
					      mr->lkey};
		r->wrs[i] = (struct ibv_send_wr){.wr_id = (uintptr_t)r,
						 .next = &r->wrs[i + 1],
						 .sg_list = &r->sges[i],
						 .num_sge = 1,
						 .opcode = opcodes[i]};
		r->wrs[i].wr.rdma.remote_addr = r->at + LOG_TAIL;
		r->wrs[i].wr.rdma.rkey = rkey;
	}
	r->sges[2].length = sizeof(uint64_t);
	r->wrs[2].send_flags = IBV_SEND_INLINE | IBV_SEND_FENCE;
	r->wrs[3].send_flags = IBV_SEND_SIGNALED;
	r->wrs[3].next = NULL;
}

static void connect_one(struct replica *r, const char *address, int port)
{
	struct log_request request = {
		LOG_MAGIC, log_identity((int)(r - replicas) + 1, REPLICAS),
		log_word(1, 1)};
	struct rdma_conn_param param = {.private_data = &request,
					.private_data_len = sizeof(request),
					.initiator_depth = 16,
					.retry_count = 7};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port)};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {2 * LINK * DEPTH_MAX, 1, 1, 1, sizeof(uint64_t)}};

	must(inet_pton(AF_INET, address, &to.sin_addr) == 1, "address");
	must(rdma_create_id(channel, &r->id, NULL, RDMA_PS_TCP) == 0 &&
		     rdma_resolve_addr(r->id, NULL, (struct sockaddr *)&to,
				       TIMEOUT_MS) == 0,
	     "rdma_resolve_addr");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	must(rdma_resolve_route(r->id, TIMEOUT_MS) == 0, "rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	if (pd == NULL)
		open_device(r->id->verbs);
	attr.send_cq = attr.recv_cq = cq;
	must(rdma_create_qp(r->id, pd, &attr) == 0, "rdma_create_qp");
	must(rdma_connect(r->id, &param) == 0, "rdma_connect");
	expect(RDMA_CM_EVENT_ESTABLISHED, &r->answer);
	make_link(r);
}

static void open_bare(const char *address, int port)
{
	int i;

	channel = rdma_create_event_channel();
	must(channel != NULL, "rdma_create_event_channel");
	for (i = 0; i < REPLICAS; i++)
		connect_one(&replicas[i], address, port + i);
}

static bool append(const void *data, uint32_t len)
{
	uint64_t at = log_end_at, tail;
	struct ibv_send_wr *bad;
	struct replica *r;

	if (record_size(len) > LOG_SIZE - at)
		return false;
	log_end_at = record_write(records, at, data, len);
	tail = log_word(1, log_end_at);
	for (r = replicas; r < replicas + REPLICAS; r++) {
		r->sges[0].addr = (uintptr_t)records + at;
		r->sges[0].length = (uint32_t)(log_end_at - at);
		r->wrs[0].wr.rdma.remote_addr = r->at + LOG_RECORDS + at;
		r->wrs[1].wr.rdma.remote_addr = r->at + LOG_RECORDS + at;
		r->sges[2].addr = (uintptr_t)&tail;
		r->ends[r->posted++ % DEPTH_MAX] = log_end_at;
		must(ibv_post_send(r->id->qp, r->wrs, &bad) == 0,
		     "ibv_post_send");
	}
	return true;
}

static void turn(void)
{
	struct ibv_wc wcs[DEPTH_MAX];
	int got = ibv_poll_cq(cq, DEPTH_MAX, wcs), i;
	struct replica *r;

	for (i = 0; i < got; i++) {
		must(wcs[i].status == IBV_WC_SUCCESS,
		     ibv_wc_status_str(wcs[i].status));
		r = (struct replica *)(uintptr_t)wcs[i].wr_id;
		r->durable = r->ends[r->completed++ % DEPTH_MAX];
	}
}

static uint64_t end(void)
{
	return log_end_at;
}

/* Returns the second of the three ends; a replica that is DEPTH_MAX appends
 * behind is waited for. */
static uint64_t acknowledged(void)
{
	uint64_t a = replicas[0].durable, b = replicas[1].durable,
		 c = replicas[2].durable, low = a < b ? a : b,
		 high = a < b ? b : a;
	int i;

	for (i = 0; i < REPLICAS; i++)
		if (replicas[i].posted - replicas[i].completed == DEPTH_MAX)
			return replicas[i].durable;
	return c < low ? low : c > high ? high : c;
}

const struct append_way append_bare = {open_bare, append, end, acknowledged,
				       turn};
