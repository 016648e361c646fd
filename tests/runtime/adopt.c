/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * adopt.c -- connections of librpma whose CQs a poller polls: each row of the
 * table of channels. Every completion comes once, in order, with all 64 bits;
 * meanwhile no other thread may wait, poll or delete; afterwards, also after a
 * stop, everything belongs to the program again.
 */

#include <pthread.h>
#include <string.h>

#include "stage.h"

#define ROUNDS	50
#define STOPS	10
#define CONTEXT UINT64_C(0xfedc000000000000) /* bits that a tag would use */

enum kind { OWN, CQ_AND_RCQ, SRQ, KINDS };

struct plain {
	struct rpma_conn *active; /* the adopted connection */
	struct rpma_conn *passive;
	struct rpma_srq *srq; /* active's */
	struct rpma_channel *channel;
	struct rpma_cq *recvs; /* where active's receives complete */
};

static const void *context_of(uint64_t i)
{
	return (const void *)(uintptr_t)(CONTEXT | i);
}

/* ------------------------------------------------------ without runtime --- */

static void expect(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event;

	MUST(rpma_conn_next_event(conn, &event));
	CHECK(event == expected);
}

static void plain_connect(struct plain *p, struct stage *s,
			  const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req;
	struct rpma_ep *ep;
	uint16_t port;
	char text[8];

	MUST(rpma_ep_listen_ex(s->world.peer, s->world.addr, "0", 1, NULL, NULL,
			       &ep));
	MUST(rpma_ep_get_port(ep, &port));
	snprintf(text, sizeof(text), "%u", port);
	MUST(rpma_conn_req_new(s->world.peer, s->world.addr, text, cfg, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &p->active));
	MUST(rpma_ep_next_conn_req(ep, NULL, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &p->passive));
	expect(p->active, RPMA_CONN_ESTABLISHED);
	expect(p->passive, RPMA_CONN_ESTABLISHED);
	MUST(rpma_ep_shutdown(&ep));
}

static void plain_open(struct plain *p, struct stage *s, enum kind kind)
{
	struct rpma_conn_cfg *cfg;

	memset(p, 0, sizeof(*p));
	MUST(rpma_conn_cfg_new(&cfg));
	if (kind == CQ_AND_RCQ) {
		MUST(rpma_conn_cfg_set_compl_channel(cfg, true));
		MUST(rpma_conn_cfg_set_rcq_size(cfg, 10));
	} else if (kind == SRQ) {
		MUST(rpma_srq_new(s->world.peer, NULL, &p->srq));
		MUST(rpma_conn_cfg_set_srq(cfg, p->srq));
	}
	plain_connect(p, s, cfg);
	MUST(rpma_conn_cfg_delete(&cfg));
	if (p->srq != NULL)
		MUST(rpma_srq_get_rcq(p->srq, &p->recvs));
	else
		MUST(rpma_conn_get_rcq(p->active, &p->recvs));
	if (p->recvs == NULL)
		MUST(rpma_conn_get_cq(p->active, &p->recvs));
}

static void plain_close(struct plain *p)
{
	if (p->active != NULL)
		MUST(rpma_conn_delete(&p->active));
	MUST(rpma_conn_delete(&p->passive));
	if (p->srq != NULL)
		MUST(rpma_srq_delete(&p->srq));
}

static void recv_there(struct plain *p, struct stage *s, uint64_t i)
{
	if (p->srq != NULL)
		MUST(rpma_srq_recv(p->srq, s->mr, 0, 64, context_of(i)));
	else
		MUST(rpma_recv(p->active, s->mr, 0, 64, context_of(i)));
}

/* Takes a completion of the other end. */
static void take_passive(struct plain *p)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	MUST(rpma_conn_get_cq(p->passive, &cq));
	while (rpma_cq_get_wc(cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION)
		MUST(rpma_cq_wait(cq));
	CHECK(wc.status == IBV_WC_SUCCESS);
}

/* Sends from the other end; the completion of the send is dropped. */
static void send_from_there(struct plain *p, struct stage *s)
{
	MUST(rpma_send(p->passive, s->mr, 64, 32, RPMA_F_COMPLETION_ALWAYS,
		       NULL));
	take_passive(p);
}

/* Waits and polls like a program without a runtime. */
static void take_plainly(struct rpma_conn *conn, struct rpma_cq *cq,
			 bool shared, uint64_t i)
{
	struct rpma_cq *fired = cq;
	struct ibv_wc wc;

	/* some earlier events were not read: polls first */
	while (rpma_cq_get_wc(cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION) {
		if (shared)
			MUST(rpma_conn_wait(conn, 0, &fired, NULL));
		else
			MUST(rpma_cq_wait(cq));
	}
	CHECK(wc.wr_id == (CONTEXT | i));
	CHECK(wc.status == IBV_WC_SUCCESS);
}

/* -------------------------------------------------------------- adopted --- */

struct both {
	struct rpma_rt_adopted *srq; /* or NULL */
	struct rpma_rt_adopted *conn;
};

static void adopt(struct both *b, struct plain *p, struct stage *s, void *user)
{
	memset(b, 0, sizeof(*b));
	if (p->srq != NULL)
		MUST(rpma_rt_adopt_srq(s->world.rt, p->srq, 0, s->aq, user,
				       &b->srq));
	MUST(rpma_rt_adopt(s->world.rt, p->active, 0, s->aq, user, &b->conn));
}

static void release(struct both *b)
{
	MUST(rpma_rt_adopted_release(&b->conn));
	MUST(rpma_rt_adopted_release(&b->srq));
	CHECK(b->conn == NULL && b->srq == NULL);
}

/* Asserts that the next item is the raw completion. */
static void expect_raw(struct stage *s, uint64_t i, enum ibv_wc_opcode opcode,
		       const void *user)
{
	struct rpma_rt_completion item = world_next(s->aq);

	CHECK(item.kind == RPMA_RT_COMPLETION);
	CHECK(item.context == (CONTEXT | i));
	CHECK(item.status == IBV_WC_SUCCESS);
	CHECK(item.opcode == opcode);
	CHECK(item.user == user);
	CHECK(item.flags == 0);
	if (opcode == IBV_WC_RECV)
		CHECK(item.byte_len == 32);
}

/* Sends and receives by turns, each taken before the next; then in bulk. */
static void traffic(struct plain *p, struct stage *s, const void *user)
{
	struct rpma_rt_completion item;
	uint64_t i;

	for (i = 0; i < ROUNDS; i++) {
		recv_there(p, s, i);
		send_from_there(p, s);
		expect_raw(s, i, IBV_WC_RECV, user);
		MUST(rpma_recv(p->passive, s->mr, 0, 64, NULL));
		MUST(rpma_send(p->active, s->mr, 0, 8, RPMA_F_COMPLETION_ALWAYS,
			       context_of(i)));
		expect_raw(s, i, IBV_WC_SEND, user);
		take_passive(p);
	}
	for (i = 0; i < 8; i++)
		recv_there(p, s, i);
	for (i = 0; i < 8; i++)
		send_from_there(p, s);
	for (i = 0; i < 8; i++)
		expect_raw(s, i, IBV_WC_RECV, user);
	CHECK(rpma_rt_queue_poll(s->aq, &item, 1) == 0);
}

/* Calls forbidden to others meanwhile. */
static void refusals(struct plain *p, struct stage *s)
{
	struct rpma_conn *conn = p->active;
	struct rpma_srq *srq = p->srq;
	struct rpma_rt_adopted *again;
	struct rpma_cq *cq;
	struct ibv_wc wc;
	int fd;

	MUST(rpma_conn_get_cq(conn, &cq));
	CHECK(rpma_cq_wait(cq) == RPMA_E_SHARED_CHANNEL);
	CHECK(rpma_cq_get_fd(cq, &fd) == RPMA_E_SHARED_CHANNEL);
	CHECK(rpma_cq_get_wc(cq, 1, &wc, NULL) == RPMA_E_SHARED_CHANNEL);
	CHECK(rpma_cq_get_wc(p->recvs, 1, &wc, NULL) == RPMA_E_SHARED_CHANNEL);
	CHECK(rpma_rt_adopt(s->world.rt, conn, 0, s->aq, NULL, &again) ==
	      RPMA_E_SHARED_CHANNEL);
	CHECK(rpma_conn_delete(&conn) == RPMA_E_CLAIMED);
	CHECK(conn == p->active);
	if (srq != NULL) {
		CHECK(rpma_srq_delete(&srq) == RPMA_E_CLAIMED);
		CHECK(srq == p->srq);
	}
}

/* Adopted, given back, used without, adopted again. */
static void row(struct stage *s, enum kind kind)
{
	bool shared = kind == CQ_AND_RCQ;
	struct plain p;
	struct both b;
	uint64_t i;
	int round;

	plain_open(&p, s, kind);
	for (round = 0; round < 3; round++) {
		adopt(&b, &p, s, &p);
		refusals(&p, s);
		traffic(&p, s, &p);
		release(&b);
		for (i = 0; i < 5; i++) {
			recv_there(&p, s, i);
			send_from_there(&p, s);
			take_plainly(p.active, p.recvs, shared, i);
		}
	}
	plain_close(&p);
}

/* Released while messages arrive: each message is in the queue, or in the CQ
 * behind the delivered messages. */
static void released_in_the_middle(struct stage *s)
{
	struct rpma_rt_completion item;
	struct plain p;
	struct both b;
	uint64_t i;
	int round;

	plain_open(&p, s, CQ_AND_RCQ);
	for (round = 0; round < ROUNDS; round++) {
		adopt(&b, &p, s, NULL);
		for (i = 0; i < 8; i++)
			recv_there(&p, s, i);
		for (i = 0; i < 8; i++)
			send_from_there(&p, s);
		release(&b);
		for (i = 0; rpma_rt_queue_poll(s->aq, &item, 1) > 0; i++) {
			CHECK(item.context == (CONTEXT | i));
			CHECK(item.status == IBV_WC_SUCCESS);
		}
		for (; i < 8; i++)
			take_plainly(p.active, p.recvs, true, i);
	}
	plain_close(&p);
}

/* Flushed ones: raw, nothing invented; the connection stays the program's. */
static void flushed(struct stage *s)
{
	struct rpma_rt_completion item;
	struct plain p;
	struct both b;
	uint64_t i;

	plain_open(&p, s, OWN);
	for (i = 0; i < 3; i++)
		recv_there(&p, s, i);
	adopt(&b, &p, s, NULL);
	MUST(rpma_conn_disconnect(p.passive));
	expect(p.active, RPMA_CONN_CLOSED);
	MUST(rpma_conn_disconnect(p.active));
	for (i = 0; i < 3; i++) {
		item = world_next(s->aq);
		CHECK(item.kind == RPMA_RT_COMPLETION);
		CHECK(item.context == (CONTEXT | i));
		CHECK(item.status == IBV_WC_WR_FLUSH_ERR);
		CHECK(item.opcode == RPMA_RT_OPCODE_UNKNOWN);
		CHECK(item.byte_len == 0 && item.flags == 0);
	}
	release(&b);
	plain_close(&p);
}

/* The program waits on the channel object itself. */
static void channel_object(struct stage *s)
{
	struct rpma_rt_adopted *adopted;
	struct rpma_conn_cfg *cfg;
	struct plain p = {0};

	MUST(rpma_channel_new(s->world.ibv_ctx, &p.channel));
	MUST(rpma_conn_cfg_new(&cfg));
	MUST(rpma_conn_cfg_set_channel(cfg, p.channel));
	plain_connect(&p, s, cfg);
	MUST(rpma_conn_cfg_delete(&cfg));
	CHECK(rpma_rt_adopt(s->world.rt, p.active, 0, s->aq, NULL, &adopted) ==
	      RPMA_E_SHARED_CHANNEL);
	plain_close(&p);
	MUST(rpma_channel_delete(&p.channel));
}

/* A stop releases the connection; no other call does. */
static void stopped(struct stage *s)
{
	struct plain p;
	struct both b;

	plain_open(&p, s, CQ_AND_RCQ);
	adopt(&b, &p, s, NULL);
	MUST(rpma_rt_stop(s->world.rt));
	recv_there(&p, s, 4);
	send_from_there(&p, s);
	take_plainly(p.active, p.recvs, true, 4);
	CHECK(rpma_rt_delete(&s->world.rt) == RPMA_RT_E_BUSY);
	release(&b);
	plain_close(&p);
}

static void *release_them(void *arg)
{
	release(arg);
	return NULL;
}

/*
 * Released by two threads at once, while messages arrive: once, and completely.
 */
static void stopped_while_released(struct stage *s)
{
	struct rpma_rt_completion item;
	pthread_t thread;
	struct plain p;
	struct both b;
	uint64_t i;

	plain_open(&p, s, SRQ);
	adopt(&b, &p, s, NULL);
	for (i = 0; i < 8; i++)
		recv_there(&p, s, i);
	CHECK(pthread_create(&thread, NULL, release_them, &b) == 0);
	for (i = 0; i < 4; i++)
		send_from_there(&p, s);
	MUST(rpma_rt_stop(s->world.rt));
	CHECK(pthread_join(thread, NULL) == 0);
	for (; i < 8; i++)
		send_from_there(&p, s);
	for (i = 0; rpma_rt_queue_poll(s->aq, &item, 1) > 0; i++)
		CHECK(item.context == (CONTEXT | i));
	for (; i < 8; i++)
		take_plainly(p.active, p.recvs, false, i);
	plain_close(&p);
}

int main(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = 8};
	enum kind kind;
	struct stage s;
	int i;

	for (i = 0; i < STOPS; i++) {
		stage_open(&s, &cfg);
		stopped_while_released(&s);
		stage_close(&s);
	}
	stage_open(&s, &cfg);
	for (kind = OWN; kind < KINDS; kind++)
		row(&s, kind);
	released_in_the_middle(&s);
	flushed(&s);
	channel_object(&s);
	stopped(&s);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
