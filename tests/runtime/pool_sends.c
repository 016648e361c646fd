/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool_sends.c -- sends that take a lease: each message goes to two peers from
 * one slot, whose bytes stay as they are until both have the message; the slot
 * comes back without a completion. Refused posts leave the lease with the
 * caller, and a connection that dies has given all back at CLOSED.
 *
 * usage: runtime_pool_sends [messages]
 */

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "stage.h"

#define DEPTH	  8
#define SLOTS	  6
#define SLOT_SIZE 512
#define PEERS	  2

struct scene {
	struct stage s;
	struct rpma_rt_pool *to_send;
	struct rpma_rt_pool *to_receive;
	struct world_pair pairs[PEERS];
	uint64_t messages;
};

static void begin(struct scene *c, const struct stage_cfg *cfg)
{
	stage_open(&c->s, cfg);
	c->to_send = stage_pool(&c->s, NULL, SLOTS, SLOT_SIZE,
				RPMA_RT_POOL_NO_SENDS);
	c->to_receive = stage_pool(&c->s, NULL, 4 * DEPTH * PEERS, SLOT_SIZE,
				   RPMA_RT_POOL_NO_SENDS);
}

static void end(struct scene *c)
{
	stage_all_free(c->to_send, SLOTS);
	MUST(rpma_rt_pool_delete(&c->to_send));
	MUST(rpma_rt_pool_delete(&c->to_receive));
	stage_close(&c->s);
}

static void closed(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item = world_next_but_writable(queue);

	CHECK(rpma_rt_completion_event(&item) == RPMA_RT_EVENT_CLOSED);
}

/* ----------------------------------------------------------- two peers --- */

static char byte_of(uint64_t number)
{
	return (char)(number * 7 + 1);
}

/* Until the post finds room. */
static void send_from(struct rpma_rt_conn *conn,
		      const struct rpma_rt_lease *lease, uint32_t flags)
{
	int ret;

	while ((ret = rpma_rt_send_lease(conn, lease, SLOT_SIZE, flags)) ==
	       RPMA_E_AGAIN)
		sched_yield();
	MUST(ret);
}

/* The lease goes to all, in each of the ways in which it may end. */
static void send_to_all(const struct scene *c, uint64_t number)
{
	struct rpma_rt_lease lease;
	bool gives = number % 2 == 0;
	int i;

	while (rpma_rt_pool_take(c->to_send, &lease) == RPMA_E_AGAIN)
		sched_yield();
	memset(lease.data, byte_of(number), SLOT_SIZE);
	memcpy(lease.data, &number, sizeof(number));
	for (i = 0; i < PEERS; i++)
		send_from(c->pairs[i].active, &lease,
			  i + 1 < PEERS || !gives ? RPMA_RT_F_KEEP : 0);
	if (!gives)
		MUST(rpma_rt_lease_release(&lease));
	CHECK(rpma_rt_lease_release(&lease) == RPMA_E_INVAL);
}

static void *send_messages(void *arg)
{
	const struct scene *c = arg;
	uint64_t number;

	for (number = 0; number < c->messages; number++)
		send_to_all(c, number);
	return NULL;
}

static void check_message(const struct rpma_rt_lease *lease, uint64_t number)
{
	const char *bytes = lease->data;
	uint64_t found;
	size_t i;

	CHECK(lease->len == SLOT_SIZE);
	memcpy(&found, bytes, sizeof(found));
	CHECK(found == number);
	for (i = sizeof(found); i < SLOT_SIZE; i++)
		CHECK(bytes[i] == byte_of(number));
}

static void receive_messages(struct scene *c)
{
	struct rpma_rt_completion item;
	struct rpma_rt_lease lease;
	uint64_t got[PEERS] = {0};
	uint64_t left = c->messages * PEERS;

	for (; left > 0; left--) {
		item = world_next(c->s.pq);
		CHECK(rpma_rt_completion_lease(&item, &lease));
		check_message(&lease, got[(uintptr_t)item.user]++);
		MUST(rpma_rt_lease_release(&lease));
	}
}

static void connect_peer(struct scene *c, uintptr_t index)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(DEPTH, DEPTH);
	struct rpma_rt_listener *listener;

	cfg->pool = c->to_receive;
	cfg->user = (void *)index;
	listener = world_listen(&c->s.world, cfg, c->s.pq);
	MUST(world_conn_new(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			    c->s.world.port, c->s.cfg, 0, c->s.aq, NULL,
			    &c->pairs[index].active));
	world_event(c->s.aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(c->pairs[index].active, NULL));
	c->pairs[index].passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
					  c->s.pq, RPMA_RT_EVENT_REQUEST)
					  .context;
	MUST(rpma_rt_conn_set_user(c->pairs[index].passive, (void *)index));
	MUST(rpma_rt_conn_accept(c->pairs[index].passive, NULL));
	world_event(c->s.aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(c->s.pq, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, c->s.pq);
	free(cfg);
}

static void send__two_peers_one_slot(uint64_t messages)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct scene c = {.messages = messages};
	pthread_t sender;
	uintptr_t i;

	begin(&c, &cfg);
	for (i = 0; i < PEERS; i++)
		connect_peer(&c, i);
	CHECK(pthread_create(&sender, NULL, send_messages, &c) == 0);
	receive_messages(&c);
	pthread_join(sender, NULL);
	for (i = 0; i < PEERS; i++) {
		MUST(rpma_rt_conn_drain(c.pairs[i].active, 0));
		closed(c.s.aq);
		closed(c.s.pq);
		world_unref(&c.pairs[i]);
	}
	end(&c);
	printf("ok: two peers, one slot\n");
}

/* --------------------------------------------------------------- ends --- */

/* The peer has no receive: what was sent waits, and is flushed. */
static void dies__all_free_at_CLOSED(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct rpma_rt_lease lease;
	struct scene c = {.messages = 0};
	struct world_pair pair;
	int i;

	begin(&c, &cfg);
	stage_connect(&c.s, &pair);
	for (i = 0; i < SLOTS; i++) {
		MUST(rpma_rt_pool_take(c.to_send, &lease));
		MUST(rpma_rt_send_lease(pair.active, &lease, 8,
					i == 0 ? RPMA_RT_F_KEEP : 0));
		if (i == 0)
			MUST(rpma_rt_lease_release(&lease));
	}
	MUST_ANSWER(RPMA_E_AGAIN, rpma_rt_pool_take(c.to_send, &lease));
	MUST_ANSWER(RPMA_RT_E_BUSY, rpma_rt_pool_delete(&c.to_send));
	stage_disconnect(&c.s, &pair);
	end(&c);
	printf("ok: all free at CLOSED\n");
}

/* Beside a work request that is wrong, without room, and closed. */
static void refused__lease_stays(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct rpma_rt_wr wrs[2];
	struct rpma_rt_lease lease;
	struct scene c = {.messages = 0};
	struct world_pair pair;
	int ret = 0;

	begin(&c, &cfg);
	MUST(rpma_rt_pool_take(c.to_send, &lease));
	stage_connect(&c.s, &pair);
	rpma_rt_prep_send_lease(&wrs[0], &lease, 8, 0);
	wrs[1] = wrs[0];
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_post_send(pair.active, wrs, 2));
	while (ret == 0)
		ret = rpma_rt_send_lease(pair.active, &lease, 8,
					 RPMA_RT_F_KEEP);
	CHECK(ret == RPMA_E_AGAIN);
	MUST_ANSWER(RPMA_E_AGAIN,
		    rpma_rt_send_lease(pair.active, &lease, 8, 0));
	MUST(rpma_rt_conn_close(pair.active));
	MUST_ANSWER(RPMA_RT_E_CLOSED,
		    rpma_rt_send_lease(pair.active, &lease, 8, 0));
	closed(c.s.aq);
	closed(c.s.pq);
	world_unref(&pair);
	MUST(rpma_rt_lease_release(&lease));
	end(&c);
	printf("ok: a refused post leaves the lease\n");
}

/* Receives want more slots than there are: half of the pool is for sends. */
static void take__whatever_receives_want(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct rpma_rt_lease leases[DEPTH];
	struct rpma_rt_pool *pool;
	struct world_pair pair;
	struct stage s;
	int i;

	stage_open(&s, &cfg);
	pool = stage_pool(&s, NULL, 2 * DEPTH, SLOT_SIZE, 0);
	s.cfg->pool = pool;
	stage_connect(&s, &pair);
	for (i = 0; i < DEPTH; i++)
		MUST(rpma_rt_pool_take(pool, &leases[i]));
	for (i = 0; i < DEPTH; i++)
		MUST(rpma_rt_lease_release(&leases[i]));
	stage_disconnect(&s, &pair);
	s.cfg->pool = NULL;
	MUST(rpma_rt_pool_delete(&pool));
	stage_close(&s);
	printf("ok: slots to send from, whatever receives want\n");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	send__two_peers_one_slot(argc > 1 ? strtoull(argv[1], NULL, 10) : 5000);
	dies__all_free_at_CLOSED();
	refused__lease_stays();
	take__whatever_receives_want();
	return 0;
}
