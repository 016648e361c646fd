/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* bare.c -- see bare.h. */

#include "bare.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define TIMEOUT_MS 10000

static void must(int ret, const char *what)
{
	if (ret == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct rdma_cm_id *event(struct bare *bare, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *got;
	struct rdma_cm_id *id;

	must(rdma_get_cm_event(bare->channel, &got), "rdma_get_cm_event");
	if (got->event != want)
		bench_fail(rdma_event_str(got->event));
	id = got->id;
	must(rdma_ack_cm_event(got), "rdma_ack_cm_event");
	return id;
}

void bare_open(struct bare *bare)
{
	const char *addr = getenv("RPMA_TEST_ADDR");

	bare->channel = rdma_create_event_channel();
	if (bare->channel == NULL)
		bench_skip("no rdma_cm");
	must(rdma_create_id(bare->channel, &bare->listener, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	bare->addr.sin_family = AF_INET;
	if (inet_pton(AF_INET, addr ? addr : "127.0.0.1",
		      &bare->addr.sin_addr) != 1)
		bench_fail("no such address");
	must(rdma_bind_addr(bare->listener, (struct sockaddr *)&bare->addr),
	     "rdma_bind_addr");
	if (bare->listener->verbs == NULL)
		bench_skip("no RDMA device at the address");
	must(rdma_listen(bare->listener, 64), "rdma_listen");
	bare->addr.sin_port = rdma_get_src_port(bare->listener);
	bare->pd = ibv_alloc_pd(bare->listener->verbs);
	must(bare->pd == NULL, "ibv_alloc_pd");
}

struct ibv_cq *bare_cq(const struct bare *bare, uint32_t size)
{
	struct ibv_cq *cq =
		ibv_create_cq(bare->listener->verbs, (int)size, NULL, NULL, 0);

	must(cq == NULL, "ibv_create_cq");
	return cq;
}

static void make_qp(struct bare *bare, struct rdma_cm_id *id, struct ibv_cq *cq,
		    uint32_t sends, uint32_t recvs)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = sends,
						.max_recv_wr = recvs,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	must(rdma_create_qp(id, bare->pd, &attr), "rdma_create_qp");
}

void bare_connect(struct bare *bare, struct ibv_cq *const cqs[2],
		  uint32_t sends, uint32_t recvs, struct rdma_cm_id *ids[2])
{
	struct rdma_conn_param param = {.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};

	must(rdma_create_id(bare->channel, &ids[0], NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	must(rdma_resolve_addr(ids[0], NULL, (struct sockaddr *)&bare->addr,
			       TIMEOUT_MS),
	     "rdma_resolve_addr");
	event(bare, RDMA_CM_EVENT_ADDR_RESOLVED);
	must(rdma_resolve_route(ids[0], TIMEOUT_MS), "rdma_resolve_route");
	event(bare, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(bare, ids[0], cqs[0], sends, recvs);
	must(rdma_connect(ids[0], &param), "rdma_connect");
	ids[1] = event(bare, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(bare, ids[1], cqs[1], sends, recvs);
	must(rdma_accept(ids[1], &param), "rdma_accept");
	event(bare, RDMA_CM_EVENT_ESTABLISHED);
	event(bare, RDMA_CM_EVENT_ESTABLISHED);
}
