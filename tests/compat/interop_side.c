/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* One side of a connection between two librpmas; see interop.h. */

#include "interop.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PORT 7450
#define LAST_PORT  7999
#define PERSISTENT RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
#define USAGE_ALL  (0xff & ~PERSISTENT)

/* Private data: words of its side, and where its memory is. */
struct hello {
	char words[16];
	uint8_t mr_desc_size;
	uint8_t pcfg_desc_size;
	char descriptors[24];
};

_Noreturn void interop_die(const struct side *side, const char *file, int line,
			   const char *what, int ret)
{
	fprintf(stderr, "%s, %s: %s:%d: %s%s%s\n", side->role,
		side->op ? side->op->name : "set-up", file, line, what,
		ret ? ": " : "", ret ? rpma_err_2str(ret) : "");
	exit(1);
}

bool side_open(struct side *side, const char *role, const char *addr)
{
	struct ibv_context *ctx = NULL;

	*side = (struct side){.role = role, .addr = addr};
	if (rpma_utils_get_ibv_context(addr, RPMA_UTIL_IBV_CONTEXT_LOCAL,
				       &ctx) ||
	    ctx == NULL)
		return false;
	side->mem = aligned_alloc(INTEROP_MEM, INTEROP_MEM);
	must(side, side->mem);
	ok(side, rpma_peer_new(ctx, &side->peer));
	/* a device that flushes itself may want memory that persists */
	side->flush_type = RPMA_FLUSH_TYPE_PERSISTENT;
	if (rpma_mr_reg(side->peer, side->mem, INTEROP_MEM,
			USAGE_ALL | PERSISTENT, &side->mr)) {
		side->flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
		ok(side, rpma_mr_reg(side->peer, side->mem, INTEROP_MEM,
				     USAGE_ALL, &side->mr));
	}
	return true;
}

void side_close(struct side *side)
{
	side->op = NULL;
	ok(side, rpma_ep_shutdown(&side->ep));
	ok(side, rpma_mr_dereg(&side->mr));
	/* answers an error if anything were left in the protection domain */
	ok(side, rpma_peer_delete(&side->peer));
	free(side->mem);
}

void side_listen(struct side *side)
{
	int number;

	for (number = FIRST_PORT; number <= LAST_PORT; number++) {
		snprintf(side->port, sizeof(side->port), "%d", number);
		if (rpma_ep_listen(side->peer, side->addr, side->port,
				   &side->ep) == 0)
			return;
	}
	must(side, !"a port is free");
}

/* --- connecting */

static void configure(struct side *side)
{
	enum layout layout = side->op->layout;

	memset(side->mem, 0, INTEROP_MEM);
	side->held_count = 0;
	side->form = "";
	ok(side, rpma_conn_cfg_new(&side->cfg));
	if (layout == OWN_RCQ || layout == SHARED_CHANNEL)
		ok(side, rpma_conn_cfg_set_rcq_size(side->cfg, RECVS));
	if (layout == SHARED_CHANNEL)
		ok(side, rpma_conn_cfg_set_compl_channel(side->cfg, true));
	if (layout == SRQ_RCQ) {
		ok(side, rpma_srq_new(side->peer, NULL, &side->srq));
		ok(side, rpma_conn_cfg_set_srq(side->cfg, side->srq));
	}
}

static void post_receives(struct side *side, struct rpma_conn_req *req)
{
	uintptr_t i;

	for (i = 0; i < RECVS; i++) {
		size_t at = AT_RECV + i * RECV_SIZE;
		void *id = (void *)(RECV_ID + i);

		if (side->srq)
			ok(side, rpma_srq_recv(side->srq, side->mr, at,
					       RECV_SIZE, id));
		else
			ok(side, rpma_conn_req_recv(req, side->mr, at,
						    RECV_SIZE, id));
	}
}

static struct hello make_hello(struct side *side)
{
	struct rpma_peer_cfg *pcfg = NULL;
	struct hello hello = {.pcfg_desc_size = 1};
	size_t size = 0;

	snprintf(hello.words, sizeof(hello.words), "the %s", side->role);
	ok(side, rpma_mr_get_descriptor_size(side->mr, &size));
	hello.mr_desc_size = (uint8_t)size;
	must(side, size < sizeof(hello.descriptors));
	ok(side, rpma_mr_get_descriptor(side->mr, hello.descriptors));
	ok(side, rpma_peer_cfg_new(&pcfg));
	ok(side, rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	ok(side, rpma_peer_cfg_get_descriptor(pcfg, hello.descriptors + size));
	ok(side, rpma_peer_cfg_delete(&pcfg));
	return hello;
}

/* The peer's fixed field may be longer than what was sent. */
static void check_words(struct side *side,
			const struct rpma_conn_private_data *data)
{
	bool is_server = strcmp(side->role, "server") == 0;

	must(side, data->ptr && data->len >= sizeof(struct hello));
	must(side,
	     strcmp(data->ptr, is_server ? "the client" : "the server") == 0);
}

static void take_hello(struct side *side)
{
	struct rpma_conn_private_data data = {0};
	struct rpma_peer_cfg *pcfg = NULL;
	struct hello hello;

	ok(side, rpma_conn_get_private_data(side->conn, &data));
	check_words(side, &data);
	memcpy(&hello, data.ptr, sizeof(hello));
	ok(side, rpma_mr_remote_from_descriptor(
			 hello.descriptors, hello.mr_desc_size, &side->remote));
	ok(side,
	   rpma_peer_cfg_from_descriptor(hello.descriptors + hello.mr_desc_size,
					 hello.pcfg_desc_size, &pcfg));
	ok(side, rpma_conn_apply_remote_peer_cfg(side->conn, pcfg));
	ok(side, rpma_peer_cfg_delete(&pcfg));
}

static void establish(struct side *side, struct rpma_conn_req *req)
{
	struct hello hello = make_hello(side);
	struct rpma_conn_private_data data = {&hello, sizeof(hello)};

	post_receives(side, req);
	ok(side, rpma_conn_req_connect(&req, &data, &side->conn));
	side_expect_event(side, RPMA_CONN_ESTABLISHED);
	take_hello(side);
}

void side_connect(struct side *side)
{
	struct rpma_conn_req *req = NULL;

	configure(side);
	ok(side, rpma_conn_req_new(side->peer, side->addr, side->port,
				   side->cfg, &req));
	establish(side, req);
}

void side_accept(struct side *side)
{
	struct rpma_conn_private_data data = {0};
	struct rpma_conn_req *req = NULL;

	configure(side);
	ok(side, rpma_ep_next_conn_req(side->ep, side->cfg, &req));
	ok(side, rpma_conn_req_get_private_data(req, &data));
	check_words(side, &data);
	establish(side, req);
}

void side_clean(struct side *side)
{
	ok(side, rpma_conn_delete(&side->conn));
	ok(side, rpma_srq_delete(&side->srq));
	ok(side, rpma_mr_remote_delete(&side->remote));
	ok(side, rpma_conn_cfg_delete(&side->cfg));
}

void side_refuse(struct side *side)
{
	struct rpma_conn_req *req = NULL;

	ok(side, rpma_ep_next_conn_req(side->ep, NULL, &req));
	ok(side, rpma_conn_req_delete(&req));
}

void side_be_refused(struct side *side)
{
	struct rpma_conn_req *req = NULL;

	ok(side,
	   rpma_conn_req_new(side->peer, side->addr, side->port, NULL, &req));
	ok(side, rpma_conn_req_connect(&req, NULL, &side->conn));
	side_expect_event(side, RPMA_CONN_REJECTED);
	ok(side, rpma_conn_delete(&side->conn));
}

void side_expect_event(struct side *side, enum rpma_conn_event expected)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	ok(side, rpma_conn_next_event(side->conn, &event));
	must(side, event == expected);
}

/* --- completions */

static struct rpma_cq *cq_of(struct side *side, bool is_recv)
{
	struct rpma_cq *cq = NULL;

	if (is_recv && side->srq)
		ok(side, rpma_srq_get_rcq(side->srq, &cq));
	else if (is_recv && side->op->layout != ONE_CQ)
		ok(side, rpma_conn_get_rcq(side->conn, &cq));
	else
		ok(side, rpma_conn_get_cq(side->conn, &cq));
	must(side, cq);
	return cq;
}

static bool take_held(struct side *side, bool is_recv, struct ibv_wc *wc)
{
	int i;

	for (i = 0; i < side->held_count; i++) {
		/* by wr_id: the opcode of an error is not valid */
		if ((side->held[i].wr_id >= RECV_ID) != is_recv)
			continue;
		*wc = side->held[i];
		side->held_count--;
		memmove(&side->held[i], &side->held[i + 1],
			(size_t)(side->held_count - i) * sizeof(*wc));
		return true;
	}
	return false;
}

/* One event; an early one may be that of a completion already taken. */
static void wait_on(struct side *side, struct rpma_cq *cq)
{
	struct rpma_cq *fired = NULL;
	bool is_rcq = false;

	if (side->op->layout != SHARED_CHANNEL) {
		ok(side, rpma_cq_wait(cq));
		return;
	}
	must(side, rpma_cq_wait(cq) == RPMA_E_SHARED_CHANNEL);
	ok(side, rpma_conn_wait(side->conn, 0, &fired, &is_rcq));
	must(side, fired == cq_of(side, is_rcq));
}

struct ibv_wc side_next(struct side *side, bool is_recv)
{
	struct rpma_cq *cq = cq_of(side, is_recv);
	uint32_t qp_num = 0;
	struct ibv_wc wc;
	int ret;

	while (!take_held(side, is_recv, &wc)) {
		ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
		if (ret == RPMA_E_NO_COMPLETION) {
			wait_on(side, cq);
			continue;
		}
		ok(side, ret);
		must(side, side->held_count < 2 * RECVS);
		side->held[side->held_count++] = wc;
	}
	ok(side, rpma_conn_get_qp_num(side->conn, &qp_num));
	must(side, wc.qp_num == qp_num);
	return wc;
}

struct ibv_wc side_expect(struct side *side, uint64_t wr_id,
			  enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = side_next(side, wr_id >= RECV_ID);

	must(side, wc.status == IBV_WC_SUCCESS);
	must(side, wc.wr_id == wr_id);
	must(side, wc.opcode == opcode);
	return wc;
}
