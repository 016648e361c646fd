/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * garbage.c -- messages of the connection manager that another process made up:
 * of a wrong length, with wrong fields, to identifiers that do not wait for
 * them. The one that gets them drops the link for those that are none, says so,
 * and lives: a connection of the same two processes comes about behind them.
 *
 * garbage [SEED [MESSAGES]]
 */

#include "fixture.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../device/two.h"
#include "base/random.h"
#include "cm/pack.h"
#include "wire/link.h"
#include "wire/nic.h"

enum { VICTIM, SENDER };

#define HANDLES 16 /* from 1 on: some are identifiers of the victim */
#define KEPT	8  /* identifiers that the victim has accepted */

static uint64_t seed;
static unsigned messages = 200;

static uint64_t chance(void)
{
	return seed = lb_random_mix(seed);
}

/* ---- the victim -------------------------------------------------------- */

struct victim {
	struct rdma_cm_id *kept[KEPT];
	struct ibv_cq *cq;
	unsigned n;
	bool is_over;
};

static void let_go(struct rdma_cm_id **id)
{
	if (!*id)
		return;
	if ((*id)->qp)
		rdma_destroy_qp(*id);
	assert_int_equal(rdma_destroy_id(*id), 0);
	*id = NULL;
}

/* What it refuses is a request that was made up. */
static bool accepts(struct victim *v, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {4, 4, 1, 1, 8},
	};

	return !rdma_create_qp(id, NULL, &attr) && !rdma_accept(id, NULL);
}

static void take(struct victim *v, struct rdma_cm_event *event)
{
	struct rdma_cm_id **slot = &v->kept[v->n++ % KEPT], *id = event->id;
	bool is_real;

	if (event->event == RDMA_CM_EVENT_ESTABLISHED && id->context)
		v->is_over = true;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		assert_int_equal(rdma_ack_cm_event(event), 0);
		return;
	}
	let_go(slot);
	*slot = id;
	is_real = event->param.conn.private_data_len &&
		  !memcmp(event->param.conn.private_data, "real", 4);
	id->context = is_real ? v : NULL;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	if (!accepts(v, id))
		assert_false(is_real);
}

static void be_victim(const struct two_process *self, struct rdma_cm_id *id)
{
	struct rdma_event_channel *ch = id->channel;
	struct victim v = {.n = 0};
	struct rdma_cm_event *event;
	unsigned i;

	v.cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
	assert_non_null(v.cq);
	while (!v.is_over) {
		assert_int_equal(rdma_get_cm_event(ch, &event), 0);
		take(&v, event);
	}
	two_wait(self);
	for (i = 0; i < KEPT; i++)
		let_go(&v.kept[i]);
	assert_int_equal(ibv_destroy_cq(v.cq), 0);
}

/* ---- the sender -------------------------------------------------------- */

static struct lb_link *link_to(unsigned number)
{
	for (;;) {
		struct lb_link *link = lb_nic_link(lb_nic_self(), number);

		assert_non_null(link);
		while (lb_link_state(link) == LB_LINK_CONTACT)
			poll(NULL, 0, 1);
		if (lb_link_state(link) == LB_LINK_UP)
			return link;
		lb_link_put(link);
	}
}

/* What is no message: all before it is taken, and the link is dropped. */
static void send_none(unsigned number)
{
	struct lb_link *link = link_to(number);

	/* it may be dropped for what came before */
	lb_link_send(link, "c", 1);
	while (lb_link_state(link) != LB_LINK_DEAD)
		poll(NULL, 0, 1);
	lb_link_put(link);
}

static size_t make_up(uint8_t bytes[LB_CM_PACK_SIZE], uint16_t port)
{
	struct sockaddr_in src = v4("127.0.0.1", (uint16_t)chance()),
			   dst = v4("127.0.0.1", port);
	struct lb_cm_msg msg = {
		.type = (enum lb_cm_msg_type)(chance() % LB_CM_MSGS),
		.from = 1 + (uint32_t)(chance() % HANDLES),
		.to = (uint32_t)(chance() % (HANDLES + 1)),
		.reason = (int)(chance() % 40),
		.ps = RDMA_PS_TCP,
		.qp_type = IBV_QPT_RC,
	};
	unsigned i;

	memcpy(&msg.src, &src, sizeof(src));
	memcpy(&msg.dst, &dst, sizeof(dst));
	msg.params.qp_num = (uint32_t)chance();
	msg.params.responder_resources = (uint8_t)chance();
	lb_cm_pack(bytes, &msg);
	switch (chance() % 8) {
	case 0: /* all of it, but the kind */
		for (i = 1; i < LB_CM_PACK_SIZE; i++)
			bytes[i] = (uint8_t)chance();
		break;
	case 1: /* its length */
		return 1 + chance() % LB_CM_PACK_SIZE;
	case 2:
	case 3: /* some bytes */
		for (i = 0; i < 3; i++)
			bytes[chance() % LB_CM_PACK_SIZE] = (uint8_t)chance();
		break;
	default: /* nothing: it is nobody's, or comes at a wrong time */
		break;
	}
	return LB_CM_PACK_SIZE;
}

static void connect_really(uint16_t port)
{
	struct rdma_conn_param param = {.private_data = "real",
					.private_data_len = 4};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_client(ch, port);
	struct ibv_cq *cq = add_qp(id);

	assert_int_equal(rdma_connect(id, &param), 0);
	take_event(ch, RDMA_CM_EVENT_ESTABLISHED);
	drop_qp(id, cq);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

static void be_sender(const struct two_process *self, unsigned number,
		      uint16_t port)
{
	uint8_t bytes[LB_CM_PACK_SIZE];
	unsigned i;

	send_none(number);
	for (i = 0; i < messages; i++) {
		struct lb_link *link = link_to(number);
		size_t size = make_up(bytes, port);

		/* it may be dropped meanwhile, for the message before */
		lb_link_send(link, bytes, size);
		lb_link_put(link);
	}
	send_none(number);
	connect_really(port);
	two_wait(self);
}

/* ---- both -------------------------------------------------------------- */

static void body(const struct two_process *self)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_listener(ch, 0);
	struct {
		unsigned number;
		uint16_t port;
	} mine = {lb_nic_number_of(lb_nic_self()), port_of(id)}, theirs;

	two_swap(self, &mine, &theirs, sizeof(mine));
	if (self->number == VICTIM)
		be_victim(self, id);
	else
		be_sender(self, theirs.number, theirs.port);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

TEST(messages__made_up_LINK_DROPPED_AND_LIVES)
{
	struct two_process p[2] = {0};

	two_run(p, body);
	/* behind all of them, and before */
	assert_true(two_count(&p[VICTIM], "its message of the connection "
					  "manager is wrong") >= 2);
}

int main(int argc, char *argv[])
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	if (argc > 2)
		messages = (unsigned)strtoul(argv[2], NULL, 10);
	printf("seed %llu\n", (unsigned long long)seed);
	return tests_run(NULL, NULL);
}
