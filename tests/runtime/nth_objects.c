/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nth_objects.c -- lives of a runtime with futures and a pool, and with shards,
 * see nth_life.h. Each step is skipped behind the first error.
 */

#include "nth_life.h"

#include <string.h>

#define ADDR	    "127.0.0.1"
#define PATIENCE_MS 60000 /* longer is for ever */
#define SLOTS	    16
#define SIZE	    64

static int first(int ret, int next)
{
	return ret ? ret : next;
}

/* -------------------------------------------------- futures and a pool --- */

struct party {
	struct rpma_rt *rt;
	struct rpma_rt_pool *pool;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *active;
	struct rpma_rt_conn *passive;
	struct rpma_rt_conn_cfg cfg;
};

/* 0: the future is complete. */
static int await(struct rpma_rt_future *future, struct rpma_rt_completion *item)
{
	int ret = rpma_rt_future_wait(future, item, PATIENCE_MS);

	if (ret == 0) {
		fprintf(stderr, "%s: a future is never complete\n",
			life_trouble);
		abort();
	}
	return ret == 1 ? 0 : ret;
}

static int await_event(struct rpma_rt_conn *conn, enum rpma_rt_event event)
{
	struct rpma_rt_future future = {0};
	struct rpma_rt_completion item;
	int ret = rpma_rt_conn_future(conn, event, &future);

	if (ret == 0)
		ret = await(&future, &item);
	if (ret == 0 && rpma_rt_completion_event(&item) != event)
		ret = LIFE_CLOSED;
	rpma_rt_future_drop(&future);
	return ret;
}

static int open_party(struct party *party)
{
	struct rpma_rt_pool_cfg pool = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	const struct rpma_rt_conn_cfg conn = RPMA_RT_CONN_CFG_INIT;
	int ret;

	cfg.mode = RPMA_RT_MODE_EVENT;
	cfg.backstop_ms = 0;
	cfg.cq_size = 64;
	pool.peer = life_peer();
	pool.count = SLOTS;
	pool.slot_size = SIZE;
	ret = rpma_rt_new(&cfg, &party->rt);
	if (ret)
		return ret;
	ret = rpma_rt_pool_new(party->rt, &pool, &party->pool);
	party->cfg = conn;
	party->cfg.peer = life_peer();
	party->cfg.pool = party->pool;
	party->cfg.sq_size = party->cfg.rq_size = 4;
	party->cfg.futures = 4;
	party->cfg.backlog = 4;
	return ret;
}

/* The request at the listener; or the peer hears that there is none. */
static int await_request(struct party *party, struct rpma_rt_future *request)
{
	struct rpma_rt_future closed = {0};
	struct rpma_rt_completion item;
	int ret = rpma_rt_conn_future(party->active, RPMA_RT_EVENT_CLOSED,
				      &closed);

	while (ret == 0 && party->passive == NULL) {
		if (rpma_rt_future_wait(request, &item, 1) == 1) {
			if (rpma_rt_completion_event(&item) !=
			    RPMA_RT_EVENT_REQUEST)
				ret = LIFE_CLOSED;
			else
				party->passive = rpma_rt_completion_conn(&item);
		} else if (rpma_rt_future_poll(&closed, &item) == 1) {
			ret = LIFE_CLOSED;
		}
	}
	rpma_rt_future_drop(&closed);
	return ret;
}

static int connect_party(struct party *party)
{
	struct rpma_rt_future request = {0};
	struct rpma_rt_completion item;
	char text[8];
	uint16_t port;
	int ret = rpma_rt_listen(party->rt, ADDR, "0", &party->cfg,
				 &party->listener);

	if (ret)
		return ret;
	MUST(rpma_rt_listener_get_port(party->listener, &port));
	snprintf(text, sizeof(text), "%u", port);
	ret = rpma_rt_next_future(
		&(struct rpma_rt_source){.listener = party->listener},
		&request);
	/* no request can come yet: each life has a thread that sleeps, and so
	 * the place to sleep at, which stays in the process */
	if (ret == 0)
		ret = rpma_rt_future_wait(&request, &item, 1);
	if (ret == 0)
		ret = rpma_rt_conn_new(party->rt, ADDR, text, &party->cfg,
				       &party->active);
	if (ret == 0)
		ret = await_event(party->active, RPMA_RT_EVENT_READY);
	if (ret == 0)
		ret = rpma_rt_conn_connect(party->active, NULL);
	if (ret == 0)
		ret = await_request(party, &request);
	rpma_rt_future_drop(&request);
	if (ret == 0)
		ret = rpma_rt_conn_accept(party->passive, NULL);
	if (ret == 0)
		ret = await_event(party->active, RPMA_RT_EVENT_ESTABLISHED);
	return ret;
}

static int send_one(struct party *party)
{
	struct rpma_rt_future sent = {0};
	struct rpma_rt_future message = {0};
	struct rpma_rt_completion item;
	struct rpma_rt_lease lease;
	struct rpma_rt_wr wr;
	int ret = rpma_rt_pool_take(party->pool, &lease);

	if (ret)
		return ret;
	rpma_rt_prep_send(&wr, lease.mr, lease.offset, 8, 0, 0);
	wr.future = &sent;
	ret = rpma_rt_next_future(
		&(struct rpma_rt_source){.conn = party->passive}, &message);
	if (ret == 0)
		ret = rpma_rt_post_send(party->active, &wr, 1);
	if (ret == 1)
		ret = await(&sent, &item);
	if (ret == 0 && item.status != IBV_WC_SUCCESS)
		ret = LIFE_CLOSED;
	rpma_rt_lease_release(&lease);
	if (ret == 0)
		ret = await(&message, &item);
	if (ret == 0) {
		if (rpma_rt_completion_lease(&item, &lease))
			rpma_rt_lease_release(&lease);
		else
			ret = LIFE_CLOSED;
	}
	rpma_rt_future_drop(&sent);
	rpma_rt_future_drop(&message);
	return ret;
}

static void close_party(struct party *party)
{
	if (party->rt == NULL)
		return;
	if (party->active != NULL)
		MUST(rpma_rt_conn_close(party->active));
	if (party->passive != NULL)
		MUST(rpma_rt_conn_close(party->passive));
	MUST(rpma_rt_listener_delete(&party->listener));
	MUST(rpma_rt_stop(party->rt));
	if (party->active != NULL)
		MUST(rpma_rt_conn_unref(&party->active));
	if (party->passive != NULL)
		MUST(rpma_rt_conn_unref(&party->passive));
	MUST(rpma_rt_pool_delete(&party->pool));
	MUST(rpma_rt_delete(&party->rt));
}

int life_of_futures(void)
{
	struct party party = {0};
	int ret = open_party(&party);
	int i;

	if (ret == 0)
		ret = connect_party(&party);
	for (i = 0; i < 3 && ret == 0; i++)
		ret = send_one(&party);
	close_party(&party);
	/* its end is reported by the events */
	return ret == RPMA_RT_E_CLOSED ? LIFE_CLOSED : ret;
}

/* --------------------------------------------------------------- shards --- */

#define SHARDS 2

struct set {
	struct rpma_rt *rt;
	struct rpma_rt_shards *shards;
	struct rpma_rt_shard *each[SHARDS];
	int posts, requests, answers, items, timers;
	int ret; /* of what a function did */
};

static struct set *the_set; /* functions of timers know nothing else */

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	(void)arg;
	switch (message->kind) {
	case RPMA_RT_SHARD_POST:
		the_set->posts++;
		break;
	case RPMA_RT_SHARD_REQUEST:
		the_set->requests++;
		the_set->ret =
			first(the_set->ret,
			      rpma_rt_shard_answer(shard, message, message));
		break;
	case RPMA_RT_SHARD_ANSWER:
		the_set->answers++;
		break;
	default:
		break;
	}
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
	the_set->items++;
}

static void on_timer(struct rpma_rt_shard *shard, struct rpma_rt_timer *timer)
{
	(void)shard;
	(void)timer;
	the_set->timers++;
}

static int open_set(struct set *set)
{
	struct rpma_rt_shards_cfg shards = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	uint32_t i;
	int ret;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = SHARDS;
	cfg.backstop_ms = 0;
	shards.lane_size = 2;
	shards.item_fn = on_item;
	shards.message_fn = on_message;
	ret = rpma_rt_new(&cfg, &set->rt);
	if (ret == 0)
		ret = rpma_rt_shards_new(set->rt, &shards, &set->shards);
	for (i = 0; i < SHARDS && ret == 0; i++)
		ret = rpma_rt_shards_get(set->shards, i, &set->each[i]);
	return ret;
}

static int use_set(struct set *set)
{
	const struct rpma_rt_shard_message message = {.code = 1};
	struct rpma_rt_timer timer = {.fn = on_timer};
	struct rpma_rt_queue *queue;
	int ret = rpma_rt_shard_post(set->each[0], 1, &message);
	uint32_t i;

	ret = first(ret, rpma_rt_shard_request(set->each[1], 0, &message));
	ret = first(ret, rpma_rt_timer_start(set->each[0], &timer, 0));
	ret = first(ret, rpma_rt_shard_get_queue(set->each[1], &queue));
	ret = first(ret, rpma_rt_queue_push(queue, &(struct rpma_rt_completion){
							   .context = 1}));
	while (ret == 0 &&
	       !(set->posts && set->answers && set->items && set->timers)) {
		for (i = 0; i < SHARDS && ret >= 0; i++)
			ret = rpma_rt_shard_run(set->each[i], 0);
		ret = ret < 0 ? ret : set->ret;
	}
	(void)rpma_rt_timer_cancel(set->each[0], &timer);
	return ret;
}

static void close_set(struct set *set)
{
	int ended = 0;
	uint32_t i;

	if (set->rt == NULL)
		return;
	if (set->shards != NULL)
		MUST(rpma_rt_shards_stop(set->shards));
	while (set->shards != NULL && ended < SHARDS) {
		ended = 0;
		for (i = 0; i < SHARDS; i++)
			ended += rpma_rt_shard_run(set->each[i], 0) ==
				 RPMA_RT_E_CLOSED;
	}
	MUST(rpma_rt_shards_delete(&set->shards));
	MUST(rpma_rt_stop(set->rt));
	MUST(rpma_rt_delete(&set->rt));
}

int life_of_shards(void)
{
	struct set set = {0};
	int ret;

	the_set = &set;
	ret = open_set(&set);
	if (ret == 0)
		ret = use_set(&set);
	close_set(&set);
	return ret == RPMA_RT_E_CLOSED ? LIFE_CLOSED : ret;
}
