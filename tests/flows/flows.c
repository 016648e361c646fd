/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The flows; see nth.h. */

#include "nth.h"

#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#define ADDR	  "127.0.0.1"
#define MEM	  4096
#define GRAVES	  512
#define SIGNALED  RPMA_F_COMPLETION_ALWAYS
#define USAGE_ALL 0xff

#define STEP(call)                   \
	do {                         \
		int step = (call);   \
		if (step)            \
			return step; \
	} while (0)

/* Whatever a flow has. */
struct all {
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_peer_cfg *pcfg;
	struct rpma_conn_cfg *cfg;
	struct rpma_srq_cfg *srq_cfg;
	struct rpma_srq *srq;
	struct rpma_channel *channel;
	struct rpma_cm_channel *cm_channel;
	struct rpma_cq *cq;
	struct rpma_ep *ep;
	struct rpma_conn_req *active_req;
	struct rpma_conn_req *passive_req;
	struct rpma_conn *active;
	struct rpma_conn *passive;
	struct rpma_cm_event event; /* not acknowledged while raw is there */
	bool is_claimed;
};

static struct all all;
static struct all graves[GRAVES];
static size_t buried;
static char mem[MEM];
static char port[8];
static struct rpma_conn_private_data words = {"hello", 6};
static int owner;

/* ---- everything back ---- */

static void first(int *ret, int err)
{
	if (*ret == 0)
		*ret = err;
}

static void release(void)
{
	if (!all.is_claimed)
		return;
	if (all.passive)
		(void)rpma_conn_release(all.passive, &owner);
	else if (all.passive_req)
		(void)rpma_conn_req_release(all.passive_req, &owner);
	all.is_claimed = false;
}

static int give_back(void)
{
	int ret = 0;

	release();
	first(&ret, rpma_cm_event_ack(&all.event));
	first(&ret, rpma_conn_delete(&all.active));
	first(&ret, rpma_conn_delete(&all.passive));
	first(&ret, rpma_conn_req_delete(&all.active_req));
	first(&ret, rpma_conn_req_delete(&all.passive_req));
	first(&ret, rpma_ep_shutdown(&all.ep));
	first(&ret, rpma_srq_delete(&all.srq));
	first(&ret, rpma_cq_delete(&all.cq));
	first(&ret, rpma_channel_delete(&all.channel));
	first(&ret, rpma_cm_channel_delete(&all.cm_channel));
	first(&ret, rpma_srq_cfg_delete(&all.srq_cfg));
	first(&ret, rpma_conn_cfg_delete(&all.cfg));
	first(&ret, rpma_peer_cfg_delete(&all.pcfg));
	first(&ret, rpma_mr_remote_delete(&all.remote));
	first(&ret, rpma_mr_dereg(&all.mr));
	first(&ret, rpma_peer_delete(&all.peer));
	return ret;
}

int flow_run(const struct flow *flow)
{
	int ret = flow->steps();

	first(&ret, give_back());
	return ret;
}

bool flow_bury(void)
{
	bool is_left = all.channel || all.cm_channel || all.cq;

	if (is_left && buried < GRAVES)
		graves[buried++] = all;
	memset(&all, 0, sizeof(all));
	return is_left;
}

bool flow_is_documented(int ret, const char *err)
{
	switch (ret) {
	case FLOW_OTHER_EVENT:
	case RPMA_E_PROVIDER:
		return true;
	case RPMA_E_NOMEM: /* a protection domain */
	case RPMA_E_AGAIN: /* a full queue */
	case RPMA_E_NO_COMPLETION:
		return strcmp(err, "ENOMEM") == 0;
	default:
		return false;
	}
}

/* ---- steps that flows share ---- */

static int open_peer(void)
{
	struct ibv_context *ctx = NULL;
	char desc[32];

	STEP(rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL,
					&ctx));
	STEP(rpma_peer_new(ctx, &all.peer));
	STEP(rpma_mr_reg(all.peer, mem, MEM, USAGE_ALL, &all.mr));
	STEP(rpma_mr_get_descriptor(all.mr, desc));
	return rpma_mr_remote_from_descriptor(desc, sizeof(desc), &all.remote);
}

static int tell_port(void)
{
	uint16_t number = 0;

	STEP(rpma_ep_get_port(all.ep, &number));
	snprintf(port, sizeof(port), "%u", number);
	return 0;
}

static int expect_event(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	STEP(rpma_conn_next_event(conn, &event));
	return event == expected ? 0 : FLOW_OTHER_EVENT;
}

/* What was posted completed already: the device executes in the post. */
static int take_wc(struct rpma_cq *cq)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	STEP(rpma_cq_get_wc(cq, 1, &wc, NULL));
	return wc.status == IBV_WC_SUCCESS ? 0 : RPMA_E_UNKNOWN;
}

static int wait_wc(struct rpma_cq *cq)
{
	STEP(rpma_cq_wait(cq));
	return take_wc(cq);
}

static int connect_both(const struct rpma_conn_cfg *active,
			const struct rpma_conn_cfg *passive)
{
	STEP(rpma_ep_listen(all.peer, ADDR, "0", &all.ep));
	STEP(tell_port());
	STEP(rpma_conn_req_new(all.peer, ADDR, port, active, &all.active_req));
	STEP(rpma_conn_req_connect(&all.active_req, &words, &all.active));
	return rpma_ep_next_conn_req(all.ep, passive, &all.passive_req);
}

/* What is lost without memory is the words, not the event. */
static int expect_words(void)
{
	struct rpma_conn_private_data data;

	STEP(rpma_conn_get_private_data(all.active, &data));
	return data.ptr ? 0 : RPMA_E_NOMEM;
}

static int establish(void)
{
	STEP(rpma_conn_req_connect(&all.passive_req, &words, &all.passive));
	STEP(expect_event(all.active, RPMA_CONN_ESTABLISHED));
	STEP(expect_event(all.passive, RPMA_CONN_ESTABLISHED));
	return expect_words();
}

static int part(void)
{
	STEP(rpma_conn_disconnect(all.active));
	STEP(expect_event(all.passive, RPMA_CONN_CLOSED));
	STEP(rpma_conn_disconnect(all.passive));
	return expect_event(all.active, RPMA_CONN_CLOSED);
}

/* ---- as with librpma 1.3: every operation, CQs of their own ---- */

static int operate(struct rpma_cq *cq)
{
	const char src[8] = "atomic!";

	STEP(rpma_write(all.active, all.remote, 0, all.mr, 64, 8, SIGNALED,
			NULL));
	STEP(wait_wc(cq));
	STEP(rpma_read(all.active, all.mr, 128, all.remote, 0, 8, SIGNALED,
		       NULL));
	STEP(wait_wc(cq));
	STEP(rpma_atomic_write(all.active, all.remote, 8, src, SIGNALED, NULL));
	STEP(wait_wc(cq));
	STEP(rpma_flush(all.active, all.remote, 0, 16,
			RPMA_FLUSH_TYPE_PERSISTENT, SIGNALED, NULL));
	return wait_wc(cq);
}

static int classic(void)
{
	struct rpma_cq *passive_cq;
	struct rpma_cq *cq;

	STEP(open_peer());
	STEP(connect_both(NULL, NULL));
	STEP(rpma_conn_req_recv(all.passive_req, all.mr, 256, 64, NULL));
	STEP(establish());
	STEP(rpma_peer_cfg_new(&all.pcfg));
	STEP(rpma_peer_cfg_set_direct_write_to_pmem(all.pcfg, true));
	STEP(rpma_conn_apply_remote_peer_cfg(all.active, all.pcfg));
	STEP(rpma_conn_get_cq(all.active, &cq));
	STEP(rpma_conn_get_cq(all.passive, &passive_cq));
	STEP(operate(cq));
	STEP(rpma_send_with_imm(all.active, all.mr, 0, 8, SIGNALED, 7, NULL));
	STEP(wait_wc(cq));
	STEP(wait_wc(passive_cq));
	return part();
}

/* ---- one channel for CQ and RCQ, timer and type of service set ---- */

static int take_shared(struct rpma_conn *conn)
{
	struct rpma_cq *cq = NULL;

	STEP(rpma_conn_wait(conn, 0, &cq, NULL));
	return take_wc(cq);
}

static int shared_channel(void)
{
	STEP(open_peer());
	STEP(rpma_conn_cfg_new(&all.cfg));
	STEP(rpma_conn_cfg_set_compl_channel(all.cfg, true));
	STEP(rpma_conn_cfg_set_rcq_size(all.cfg, 4));
	STEP(rpma_conn_cfg_set_min_rnr_timer(all.cfg, 1));
	STEP(rpma_conn_cfg_set_tos(all.cfg, 8));
	STEP(connect_both(all.cfg, all.cfg));
	STEP(establish());
	STEP(rpma_recv(all.passive, all.mr, 0, 64, NULL));
	STEP(rpma_send(all.active, all.mr, 64, 64, SIGNALED, NULL));
	STEP(take_shared(all.active));
	STEP(take_shared(all.passive));
	return part();
}

/* ---- a shared receive queue ---- */

static int srq(void)
{
	struct rpma_cq *rcq;

	STEP(open_peer());
	STEP(rpma_srq_cfg_new(&all.srq_cfg));
	STEP(rpma_srq_cfg_set_rq_size(all.srq_cfg, 4));
	STEP(rpma_srq_new(all.peer, all.srq_cfg, &all.srq));
	STEP(rpma_srq_get_rcq(all.srq, &rcq));
	STEP(rpma_srq_recv(all.srq, all.mr, 0, 64, NULL));
	STEP(rpma_conn_cfg_new(&all.cfg));
	STEP(rpma_conn_cfg_set_srq(all.cfg, all.srq));
	STEP(connect_both(NULL, all.cfg));
	STEP(establish());
	STEP(rpma_send(all.active, all.mr, 64, 64, RPMA_F_COMPLETION_ON_ERROR,
		       NULL));
	STEP(wait_wc(rcq));
	return part();
}

/* ---- requests that come to nothing ---- */

static int expect_refusal(void)
{
	STEP(expect_event(all.active, RPMA_CONN_REJECTED));
	return expect_words();
}

static int refusals(void)
{
	STEP(open_peer());
	STEP(connect_both(NULL, NULL));
	STEP(rpma_conn_req_reject(&all.passive_req, &words));
	STEP(expect_refusal());
	STEP(rpma_conn_delete(&all.active));
	STEP(rpma_conn_req_new(all.peer, ADDR, port, NULL, &all.active_req));
	STEP(rpma_conn_req_connect(&all.active_req, NULL, &all.active));
	STEP(rpma_ep_next_conn_req(all.ep, NULL, &all.passive_req));
	STEP(rpma_conn_req_delete(&all.passive_req));
	STEP(expect_refusal());
	return rpma_conn_req_new(all.peer, ADDR, port, NULL, &all.active_req);
}

/* ---- what 1.4 added: objects, shared CM channel, chains, steps ---- */

static int make_objects(void)
{
	struct ibv_context *ctx;

	STEP(rpma_peer_get_ibv_context(all.peer, &ctx));
	STEP(rpma_channel_new(ctx, &all.channel));
	STEP(rpma_cq_new(ctx, 16, all.channel, 0, NULL, &all.cq));
	STEP(rpma_cq_arm(all.cq, false));
	STEP(rpma_cm_channel_new(&all.cm_channel));
	STEP(rpma_conn_cfg_new(&all.cfg));
	STEP(rpma_conn_cfg_set_cm_channel(all.cfg, all.cm_channel));
	STEP(rpma_conn_cfg_set_cq(all.cfg, all.cq));
	STEP(rpma_ep_listen_ex(all.peer, ADDR, "0", 4, all.cm_channel, NULL,
			       &all.ep));
	return tell_port();
}

static int next_of(int type)
{
	STEP(rpma_cm_channel_get_event(all.cm_channel, &all.event));
	return all.event.type == type ? 0 : FLOW_OTHER_EVENT;
}

static int resolve(void)
{
	STEP(rpma_conn_req_new_async(all.peer, ADDR, port, all.cfg, &all,
				     &all.active_req));
	STEP(next_of(RDMA_CM_EVENT_ADDR_RESOLVED));
	if (rpma_conn_req_advance(all.active_req, &all.event) != RPMA_E_AGAIN)
		return RPMA_E_PROVIDER;
	STEP(rpma_cm_event_ack(&all.event));
	STEP(next_of(RDMA_CM_EVENT_ROUTE_RESOLVED));
	STEP(rpma_conn_req_advance(all.active_req, &all.event));
	return rpma_cm_event_ack(&all.event);
}

/* The next event, whichever side's it is. */
static int take_event(enum rpma_conn_event expected)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rdma_cm_id *id;

	STEP(rpma_cm_channel_get_event(all.cm_channel, &all.event));
	STEP(rpma_conn_get_cm_id(all.active, &id));
	STEP(rpma_conn_handle_event(id == all.event.id ? all.active
						       : all.passive,
				    &all.event, &event));
	STEP(rpma_cm_event_ack(&all.event));
	return event == expected ? 0 : FLOW_OTHER_EVENT;
}

static int meet(void)
{
	STEP(rpma_conn_req_connect(&all.active_req, &words, &all.active));
	STEP(next_of(RDMA_CM_EVENT_CONNECT_REQUEST));
	STEP(rpma_conn_req_new_from_event(all.peer, &all.event, all.cfg, &all,
					  &all.passive_req));
	STEP(rpma_cm_event_ack(&all.event));
	STEP(rpma_conn_req_claim(all.passive_req, &owner));
	all.is_claimed = true;
	STEP(rpma_conn_req_connect(&all.passive_req, &words, &all.passive));
	STEP(take_event(RPMA_CONN_ESTABLISHED));
	STEP(take_event(RPMA_CONN_ESTABLISHED));
	return expect_words();
}

static int post_chains(void)
{
	struct rpma_send_wr wr[2];
	struct rpma_recv_wr recv;
	struct rpma_send_wr *bad;
	struct rpma_recv_wr *bad_recv;

	STEP(rpma_wr_recv(all.mr, 0, 64, 1, &recv));
	STEP(rpma_conn_post_recv(all.passive, &owner, &recv, &bad_recv));
	STEP(rpma_wr_write(all.active, all.remote, 512, all.mr, 64, 8, SIGNALED,
			   2, &wr[0]));
	STEP(rpma_wr_send(all.active, all.mr, 64, 8, SIGNALED, 3, &wr[1]));
	wr[0].wr.next = &wr[1].wr;
	return rpma_conn_post_send(all.active, NULL, wr, &bad);
}

static int take_three(void)
{
	struct rpma_cq *cq = NULL;
	int i;

	STEP(rpma_channel_wait(all.channel, &cq));
	STEP(rpma_cq_arm(cq, false));
	for (i = 0; i < 3; i++)
		STEP(take_wc(cq));
	return 0;
}

static int additions(void)
{
	STEP(open_peer());
	STEP(make_objects());
	STEP(resolve());
	STEP(meet());
	STEP(post_chains());
	STEP(take_three());
	STEP(rpma_conn_qp_to_err(all.passive, &owner));
	STEP(rpma_conn_destroy_qp(all.passive, &owner));
	return rpma_conn_disconnect(all.active);
}

const struct flow flows[] = {
	{"classic", classic},
	{"shared_channel", shared_channel},
	{"srq", srq},
	{"refusals", refusals},
	{"additions", additions},
	{NULL, NULL},
};
