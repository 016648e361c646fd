/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * many.c -- 10,000 connections with both ends in the process: all are requested
 * before the listener reads a request, each carries a message, and all are
 * destroyed with the events of their ends unread.
 */

#include "fixture.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define CONNECTIONS 10000

struct many {
	struct rdma_event_channel *lch; /* of the listener and the servers */
	struct rdma_event_channel *cch; /* of the clients */
	struct rdma_cm_id *listener;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* of the servers */
	struct rdma_cm_id *clients[CONNECTIONS];
	struct rdma_cm_id *servers[CONNECTIONS];
};

static struct many *many_new(void)
{
	struct ibv_srq_init_attr attr = {.attr = {CONNECTIONS, 1, 0}};
	struct many *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->lch = new_channel();
	m->cch = new_channel();
	m->listener = new_listener(m->lch, 0);
	m->pd = ibv_alloc_pd(m->listener->verbs);
	assert_non_null(m->pd);
	m->cq = ibv_create_cq(m->listener->verbs, 3 * CONNECTIONS, NULL, NULL,
			      0);
	assert_non_null(m->cq);
	m->srq = ibv_create_srq(m->pd, &attr);
	assert_non_null(m->srq);
	return m;
}

static void many_delete(struct many *m)
{
	assert_int_equal(rdma_destroy_id(m->listener), 0);
	assert_int_equal(ibv_destroy_srq(m->srq), 0);
	assert_int_equal(ibv_destroy_cq(m->cq), 0);
	assert_int_equal(ibv_dealloc_pd(m->pd), 0);
	rdma_destroy_event_channel(m->cch);
	rdma_destroy_event_channel(m->lch);
	free(m);
}

static void make_qp(const struct many *m, struct rdma_cm_id *id,
		    struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = m->cq,
		.recv_cq = m->cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {1, 1, 1, 1, 0},
	};

	assert_int_equal(rdma_create_qp(id, m->pd, &attr), 0);
}

static void connect_all(struct many *m)
{
	uint16_t port = port_of(m->listener);
	struct rdma_cm_event *event;
	int i;

	for (i = 0; i < CONNECTIONS; i++) {
		m->clients[i] = new_client(m->cch, port);
		make_qp(m, m->clients[i], NULL);
	}
	for (i = 0; i < CONNECTIONS; i++)
		assert_int_equal(rdma_connect(m->clients[i], NULL), 0);
	for (i = 0; i < CONNECTIONS; i++) {
		event = next_event(m->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
		m->servers[i] = event->id;
		assert_int_equal(rdma_ack_cm_event(event), 0);
		make_qp(m, m->servers[i], m->srq);
	}
	for (i = 0; i < CONNECTIONS; i++)
		assert_int_equal(rdma_accept(m->servers[i], NULL), 0);
	for (i = 0; i < CONNECTIONS; i++) {
		take_event(m->cch, RDMA_CM_EVENT_ESTABLISHED);
		take_event(m->lch, RDMA_CM_EVENT_ESTABLISHED);
	}
}

/* Client i sends i. */
static void send_all(const struct many *m)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM};
	struct ibv_recv_wr recv = {.wr_id = CONNECTIONS};
	struct ibv_send_wr *bad;
	struct ibv_recv_wr *bad_recv;

	for (int i = 0; i < CONNECTIONS; i++)
		assert_int_equal(ibv_post_srq_recv(m->srq, &recv, &bad_recv),
				 0);
	for (int i = 0; i < CONNECTIONS; i++) {
		wr.imm_data = htonl((uint32_t)i);
		assert_int_equal(ibv_post_send(m->clients[i]->qp, &wr, &bad),
				 0);
	}
}

/* What the servers received: each number once. */
static void receive_all(const struct many *m)
{
	bool *seen = calloc(CONNECTIONS, sizeof(*seen));
	struct ibv_wc wc;
	uint32_t number;

	assert_non_null(seen);
	for (int i = 0; i < CONNECTIONS; i++) {
		assert_int_equal(ibv_poll_cq(m->cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		number = ntohl(wc.imm_data);
		assert_in_range(number, 0, CONNECTIONS - 1);
		assert_false(seen[number]);
		seen[number] = true;
	}
	assert_int_equal(ibv_poll_cq(m->cq, 1, &wc), 0);
	free(seen);
}

/* The last first; DISCONNECTED and TIMEWAIT_EXIT are left unread. */
static void end_all(struct many *m)
{
	int i;

	for (i = CONNECTIONS; i-- > 0;) {
		assert_int_equal(rdma_disconnect(m->clients[i]), 0);
		assert_int_equal(rdma_disconnect(m->servers[i]), 0);
	}
	for (i = CONNECTIONS; i-- > 0;) {
		rdma_destroy_qp(m->clients[i]);
		rdma_destroy_qp(m->servers[i]);
	}
	for (i = CONNECTIONS; i-- > 0;) {
		assert_int_equal(rdma_destroy_id(m->clients[i]), 0);
		assert_int_equal(rdma_destroy_id(m->servers[i]), 0);
	}
	assert_quiet(m->lch);
	assert_quiet(m->cch);
}

TEST_WITH(connect__all_at_once_EACH_WORKS, reset, reset)
{
	struct many *m = many_new();

	connect_all(m);
	send_all(m);
	receive_all(m);
	end_all(m);
	many_delete(m);
}

int main(void)
{
	rpma_loopback_set_mode(RPMA_LOOPBACK_INLINE);
	return tests_run(NULL, NULL);
}
