/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The operations of bench_cost through librpma: with our header and library,
 * and the same file with the distribution's. See cost.h.
 */

#include "cost.h"

#include <stdlib.h>

#include <librpma.h>

#include "bench.h"

#define ADDR	 "127.0.0.1"
#define PORT	 "7600"
#define SIGNALED RPMA_F_COMPLETION_ALWAYS

static struct ibv_context *ctx;
static struct rpma_peer *peer;
static struct rpma_ep *ep;
static struct rpma_srq *srq;
static struct rpma_conn *conn;
static struct rpma_conn *other; /* the passive end */
static struct rpma_cq *cq;
static struct rpma_mr_local *mr;
static struct rpma_mr_remote *remote;
static char *mem;

static void must(int ret)
{
	if (ret)
		bench_fail(rpma_err_2str(ret));
}

static void connect_both(void)
{
	struct rpma_conn_req *req = NULL;
	enum rpma_conn_event event;

	must(rpma_ep_listen(peer, ADDR, PORT, &ep));
	must(rpma_conn_req_new(peer, ADDR, PORT, NULL, &req));
	must(rpma_conn_req_connect(&req, NULL, &conn));
	must(rpma_ep_next_conn_req(ep, NULL, &req));
	must(rpma_conn_req_connect(&req, NULL, &other));
	must(rpma_conn_next_event(conn, &event));
	must(event != RPMA_CONN_ESTABLISHED);
	must(rpma_conn_next_event(other, &event));
	must(event != RPMA_CONN_ESTABLISHED);
	must(rpma_conn_get_cq(conn, &cq));
}

static void open_librpma(void)
{
	char desc[32];

	if (rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL,
				       &ctx) ||
	    !ctx)
		bench_skip("no verbs device");
	mem = aligned_alloc(COST_MEM, COST_MEM);
	must(mem ? 0 : RPMA_E_NOMEM);
	must(rpma_peer_new(ctx, &peer));
	must(rpma_mr_reg(peer, mem, COST_MEM, 0xff, &mr));
	must(rpma_mr_get_descriptor(mr, desc));
	must(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote));
	must(rpma_srq_new(peer, NULL, &srq));
	connect_both();
}

static void close_librpma(void)
{
	must(rpma_conn_delete(&conn));
	must(rpma_conn_delete(&other));
	must(rpma_ep_shutdown(&ep));
	must(rpma_srq_delete(&srq));
	must(rpma_mr_remote_delete(&remote));
	must(rpma_mr_dereg(&mr));
	must(rpma_peer_delete(&peer));
	free(mem);
}

static struct ibv_context *context_librpma(void)
{
	return ctx;
}

/* Each its own loop: nothing but the call is in it. */
#define RUN(name, call)                               \
	static void run_##name(uint64_t times)        \
	{                                             \
		while (times--) {                     \
			void *id = (void *)times;     \
			int ret = call;               \
                                                      \
			if (__builtin_expect(ret, 0)) \
				must(ret);            \
		}                                     \
	}

RUN(read, rpma_read(conn, mr, 0, remote, 0, COST_LEN, SIGNALED, id))
RUN(write, rpma_write(conn, remote, 0, mr, 0, COST_LEN, SIGNALED, id))
RUN(write_imm, rpma_write_with_imm(conn, remote, 0, mr, 0, COST_LEN, SIGNALED,
				   (uint32_t)times, id))
RUN(atomic_write, rpma_atomic_write(conn, remote, 0, mem, SIGNALED, id))
RUN(flush,
    rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, SIGNALED, id))
RUN(send, rpma_send(conn, mr, 0, COST_LEN, SIGNALED, id))
RUN(send_imm,
    rpma_send_with_imm(conn, mr, 0, COST_LEN, SIGNALED, (uint32_t)times, id))
RUN(recv, rpma_recv(conn, mr, 0, COST_LEN, id))
RUN(srq_recv, rpma_srq_recv(srq, mr, 0, COST_LEN, id))

static void run_get_wc(uint64_t times)
{
	struct ibv_wc wc;

	while (times--) {
		if (rpma_cq_get_wc(cq, 1, &wc, NULL))
			bench_fail("rpma_cq_get_wc");
		cost_sum += wc.wr_id;
	}
}

static void run_get_wc_empty(uint64_t times)
{
	struct ibv_wc wc;

	while (times--) {
		if (rpma_cq_get_wc(cq, 1, &wc, NULL) != RPMA_E_NO_COMPLETION)
			bench_fail("rpma_cq_get_wc");
	}
}

static void run_get_wc_some(uint64_t times)
{
	struct ibv_wc wc[COST_BATCH];
	int got;

	while (times--) {
		if (rpma_cq_get_wc(cq, COST_BATCH, wc, &got) || got != 1)
			bench_fail("rpma_cq_get_wc");
		cost_sum += wc[0].wr_id;
	}
}

const struct cost_way cost_librpma = {
	.open = open_librpma,
	.close = close_librpma,
	.context = context_librpma,
	.run =
		{
			[COST_READ] = run_read,
			[COST_WRITE] = run_write,
			[COST_WRITE_IMM] = run_write_imm,
			[COST_ATOMIC_WRITE] = run_atomic_write,
			[COST_FLUSH] = run_flush,
			[COST_SEND] = run_send,
			[COST_SEND_IMM] = run_send_imm,
			[COST_RECV] = run_recv,
			[COST_SRQ_RECV] = run_srq_recv,
			[COST_GET_WC] = run_get_wc,
			[COST_GET_WC_EMPTY] = run_get_wc_empty,
			[COST_GET_WC_SOME] = run_get_wc_some,
		},
};
