/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures_messages.c -- futures of the next message: of a connection with a
 * pool and without a queue. Messages and futures meet in the order of both;
 * what nobody has waits, until its peer does; a future that is given up loses
 * no message, and changes no order. Then many messages, each of which races the
 * time after which its future is given up. With a poller's thread and by hand.
 *
 * usage: runtime_futures_messages [messages [seed]]
 */

#include <endian.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "stage.h"

#define DEPTH	  16
#define FUTURES	  8
#define SLOTS	  64
#define SLOT_SIZE 64
#define LEN	  8u
#define PATIENT	  WORLD_PATIENCE_MS

struct scene {
	struct stage s;
	struct world_pair pair; /* the active end has a pool, and no queue */
	struct rpma_rt_pool *pool;
	uint32_t sent; /* the number of the next message, which is in imm */
	uint32_t seed;
};

static void open_pool(struct scene *c)
{
	struct rpma_rt_pool_cfg pool = RPMA_RT_POOL_CFG_INIT;

	pool.count = SLOTS;
	pool.slot_size = SLOT_SIZE;
	pool.peer = c->s.world.peer;
	MUST(rpma_rt_pool_new(c->s.world.rt, &pool, &c->pool));
}

static void open_scene(struct scene *c, enum rpma_rt_mode mode)
{
	struct stage_cfg cfg = {.pollers = 1, .mode = mode, .depth = DEPTH};

	stage_open(&c->s, &cfg);
	if (mode == RPMA_RT_MODE_MANUAL)
		CHECK(rpma_rt_poller_run(c->s.world.rt, 0, 1) >= 0);
	open_pool(c);
	c->s.cfg->futures = FUTURES;
}

static void drop(struct rpma_rt_future *future)
{
	MUST_ANSWER(0, rpma_rt_future_drop(future));
}

static struct rpma_rt_completion await_event(struct rpma_rt_conn *conn,
					     enum rpma_rt_event event)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;

	MUST(rpma_rt_conn_future(conn, event, &future));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	CHECK(rpma_rt_completion_event(&cmpl) == event);
	drop(&future);
	return cmpl;
}

static void join(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, c->s.pq);
	struct rpma_rt_conn_cfg cfg = *c->s.cfg;

	cfg.pool = c->pool;
	MUST(world_conn_new(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			    c->s.world.port, &cfg, 0, NULL, c,
			    &c->pair.active));
	await_event(c->pair.active, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(c->pair.active, NULL));
	c->pair.passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
				  c->s.pq, RPMA_RT_EVENT_REQUEST)
				  .context;
	MUST(rpma_rt_conn_connect(c->pair.passive, NULL));
	await_event(c->pair.active, RPMA_RT_EVENT_ESTABLISHED);
	world_event(c->s.pq, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, c->s.pq);
	c->sent = 0;
}

static void close_passive(struct scene *c)
{
	MUST(rpma_rt_conn_close(c->pair.passive));
	await_event(c->pair.active, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&c->pair.passive));
}

static void part(struct scene *c)
{
	close_passive(c);
	MUST(rpma_rt_conn_unref(&c->pair.active));
}

static void post(struct scene *c)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send(&wr, c->s.mr, 0, LEN, 0, 0);
	wr.op = RPMA_RT_OP_SEND_WITH_IMM;
	wr.imm = c->sent++;
	MUST(world_post_send(c->pair.passive, &wr));
}

/* Messages that are there when this returns. */
static void tell(struct scene *c, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		post(c);
		stage_completion(c->s.pq, 0, IBV_WC_SUCCESS);
	}
}

static struct rpma_rt_future next(struct scene *c)
{
	struct rpma_rt_future future;

	MUST(rpma_rt_conn_recv_future(c->pair.active, &future));
	return future;
}

/* The result is the message of that number, whose lease goes back. */
static void is_message(const struct scene *c,
		       const struct rpma_rt_completion *cmpl, uint32_t number)
{
	struct rpma_rt_lease lease;

	CHECK(cmpl->kind == RPMA_RT_COMPLETION);
	CHECK(cmpl->status == IBV_WC_SUCCESS && cmpl->byte_len == LEN);
	CHECK(cmpl->user == c && be32toh(cmpl->imm) == number);
	CHECK(rpma_rt_completion_lease(cmpl, &lease));
	CHECK(lease.pool == c->pool && lease.len == LEN);
	MUST(rpma_rt_lease_give_back(&lease));
}

static void brings(const struct scene *c, struct rpma_rt_future *future,
		   uint32_t number)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, PATIENT));
	is_message(c, &cmpl, number);
	drop(future);
}

static void take(struct scene *c, uint32_t number)
{
	struct rpma_rt_future future = next(c);

	brings(c, &future, number);
}

static void is_closed(struct rpma_rt_future *future)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, PATIENT));
	CHECK(rpma_rt_completion_event(&cmpl) == RPMA_RT_EVENT_CLOSED);
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(future, 1, 1, 0));
	drop(future);
}

/* ----------------------------------------------------------- its order --- */

static void order__of_messages_and_futures(struct scene *c)
{
	struct rpma_rt_future futures[3];
	int i;

	join(c);
	for (i = 0; i < 3; i++)
		futures[i] = next(c);
	tell(c, 5);
	for (i = 2; i >= 0; i--)
		brings(c, &futures[i], (uint32_t)i);
	take(c, 3);
	take(c, 4);
	part(c);
}

static void dump(struct scene *c)
{
	FILE *file = tmpfile();

	CHECK(file != NULL);
	MUST(rpma_rt_dump(c->s.world.rt, fileno(file), RPMA_RT_DUMP_HUMAN));
	MUST(rpma_rt_dump(c->s.world.rt, fileno(file), RPMA_RT_DUMP_JSON));
	fclose(file);
}

/* More than its receive queue holds: the peer waits. */
static void wait__until_the_peer_does(struct scene *c)
{
	uint32_t i;

	join(c);
	for (i = 0; i < DEPTH; i++)
		post(c);
	for (i = 0; i < DEPTH; i++)
		stage_completion(c->s.pq, 0, IBV_WC_SUCCESS);
	for (i = 0; i < DEPTH; i++)
		post(c);
	dump(c);
	for (i = 0; i < 2 * DEPTH; i++)
		take(c, i);
	for (i = 0; i < DEPTH; i++)
		stage_completion(c->s.pq, 0, IBV_WC_SUCCESS);
	part(c);
}

static void held__so_many(struct scene *c)
{
	struct rpma_rt_future futures[FUTURES], other;
	int i;

	join(c);
	for (i = 0; i < FUTURES; i++)
		futures[i] = next(c);
	MUST_ANSWER(RPMA_RT_E_BUSY,
		    rpma_rt_conn_recv_future(c->pair.active, &other));
	drop(&futures[0]);
	tell(c, FUTURES);
	for (i = 1; i < FUTURES; i++)
		brings(c, &futures[i], (uint32_t)i - 1);
	take(c, FUTURES - 1);
	part(c);
}

/* -------------------------------------------------------------- given up */

static void given_up__before_it_comes(struct scene *c)
{
	struct rpma_rt_future cancelled = next(c);
	struct rpma_rt_future dropped = next(c);
	struct rpma_rt_future last = next(c);
	enum rpma_rt_cancelled answer;
	struct rpma_rt_completion cmpl;

	MUST(rpma_rt_future_cancel(&cancelled, &answer));
	CHECK(answer == RPMA_RT_CANCELLED_DETACHED);
	MUST_ANSWER(1, rpma_rt_future_wait(&cancelled, &cmpl, PATIENT));
	CHECK(cmpl.flags & RPMA_RT_C_DETACHED);
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(&cancelled, 1, 1, 0));
	drop(&dropped);
	tell(c, 1);
	brings(c, &last, 0);
	drop(&cancelled);
}

/* A message that nobody read has its former place, in whatever order futures
 * that have some are dropped; or one that waits has it. */
static void given_up__with_a_message(struct scene *c)
{
	struct rpma_rt_future futures[4];
	struct rpma_rt_future waits;
	uint32_t i;

	for (i = 0; i < 4; i++)
		futures[i] = next(c);
	tell(c, 5);
	MUST_ANSWER(4, rpma_rt_future_wait_some(futures, 4, 4, PATIENT));
	drop(&futures[1]);
	drop(&futures[0]);
	drop(&futures[2]);
	for (i = 0; i < 3; i++)
		take(c, i + 1);
	take(c, 5);
	waits = next(c);
	drop(&futures[3]);
	brings(c, &waits, 4);
}

struct heard {
	_Atomic uint32_t count;
	const struct scene *c;
};

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct heard *heard = arg;

	is_message(heard->c, cmpl, 6);
	/* release: the lease was given back */
	atomic_fetch_add_explicit(&heard->count, 1, memory_order_release);
}

static void then__a_function(struct scene *c)
{
	struct heard heard = {.c = c};
	struct rpma_rt_future future = next(c);
	struct rpma_rt_completion cmpl;

	MUST(rpma_rt_future_then(&future, hear, &heard));
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_future_deliver(&future, NULL));
	tell(c, 1);
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	/* acquire: pairs with hear() */
	while (atomic_load_explicit(&heard.count, memory_order_acquire) == 0)
		MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
}

static void given_up(struct scene *c)
{
	join(c);
	given_up__before_it_comes(c);
	given_up__with_a_message(c);
	then__a_function(c);
	part(c);
}

/* One that was asked for behind another that waits does not get what comes
 * back before that. By hand: else the next message may be faster. */
static void given_up__while_others_wait(struct scene *c)
{
	struct rpma_rt_future dropped, first, second;

	join(c);
	dropped = next(c);
	first = next(c);
	tell(c, 1);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&dropped, 1, 1, PATIENT));
	drop(&dropped);
	second = next(c);
	CHECK(rpma_rt_poller_run(c->s.world.rt, 0, 1) >= 0);
	tell(c, 1);
	brings(c, &first, 0);
	brings(c, &second, 1);
	part(c);
}

/* ------------------------------------------------------------- its end --- */

/* What came before the end is there after it, then CLOSED, more than once. */
static void end__messages_first(struct scene *c)
{
	struct rpma_rt_future future;
	int i;

	join(c);
	tell(c, 3);
	close_passive(c);
	take(c, 0);
	future = next(c);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&future, 1, 1, PATIENT));
	drop(&future);
	take(c, 1);
	take(c, 2);
	for (i = 0; i < 2; i++) {
		future = next(c);
		is_closed(&future);
	}
	MUST(rpma_rt_conn_unref(&c->pair.active));
}

/* Those that wait end with it; a message outlives the handle in its future, and
 * what nobody has goes back to the pool with that. */
static void end__futures_that_wait(struct scene *c)
{
	struct rpma_rt_future waits, has, unread;

	join(c);
	has = next(c);
	unread = next(c);
	waits = next(c);
	tell(c, 2);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&unread, 1, 1, PATIENT));
	close_passive(c);
	is_closed(&waits);
	MUST(rpma_rt_conn_unref(&c->pair.active));
	brings(c, &has, 0);
	drop(&unread);

	join(c);
	tell(c, 3);
	part(c);
}

static void refused__by_others(struct scene *c)
{
	struct rpma_rt_conn_cfg cfg = *c->s.cfg;
	struct rpma_rt_future future;
	struct world_pair pair;

	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_conn_recv_future(NULL, &future));
	stage_connect(&c->s, &pair);
	/* it has no pool */
	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_conn_recv_future(pair.active, &future));
	stage_disconnect(&c->s, &pair);
	c->s.cfg->pool = c->pool;
	stage_connect(&c->s, &pair);
	/* it has a queue */
	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_conn_recv_future(pair.active, &future));
	stage_disconnect(&c->s, &pair);
	*c->s.cfg = cfg;
}

/* -------------------------------------------------------------- races --- */

static uint32_t roll(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % n;
}

struct sender {
	struct scene *c;
	uint32_t count;
	pthread_t thread;
};

static void *send_all(void *arg)
{
	const struct sender *sender = arg;
	struct rpma_rt_completion items[DEPTH];
	uint32_t done = 0;
	int n;
	int i;

	while (done < sender->count) {
		while (sender->c->sent < sender->count &&
		       sender->c->sent - done < DEPTH)
			post(sender->c);
		n = rpma_rt_queue_wait(sender->c->s.pq, items, DEPTH, PATIENT);
		CHECK(n > 0);
		for (i = 0; i < n; i++)
			CHECK(items[i].status == IBV_WC_SUCCESS);
		done += (uint32_t)n;
	}
	return NULL;
}

/* Given up after its time: 1: it brought the message after all. */
static int give_up(struct rpma_rt_future *future, uint32_t how,
		   struct rpma_rt_completion *cmpl)
{
	enum rpma_rt_cancelled answer;

	if (how == 0) {
		drop(future);
		return 0;
	}
	MUST(rpma_rt_future_cancel(future, &answer));
	MUST_ANSWER(1, rpma_rt_future_wait(future, cmpl, PATIENT));
	if (answer != RPMA_RT_CANCELLED_DONE)
		CHECK(cmpl->flags & RPMA_RT_C_DETACHED);
	drop(future);
	return answer == RPMA_RT_CANCELLED_DONE;
}

/* One holder: each message once, and all in their order, however many futures
 * of it were given up. */
static void race__with_time(struct scene *c, uint32_t count)
{
	struct sender sender = {.c = c, .count = count};
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	uint32_t got = 0;
	uint32_t how;
	int ret;

	join(c);
	CHECK(pthread_create(&sender.thread, NULL, send_all, &sender) == 0);
	while (got < count) {
		ret = rpma_rt_conn_recv_future(c->pair.active, &future);
		if (ret == RPMA_RT_E_BUSY) { /* dropped, the poller comes yet */
			sched_yield();
			continue;
		}
		MUST(ret);
		how = roll(&c->seed, 8);
		ret = rpma_rt_future_wait(&future, &cmpl, how < 2 ? 0 : 1);
		CHECK(ret == 0 || ret == 1);
		if (ret == 0)
			ret = give_up(&future, how % 2, &cmpl);
		else
			drop(&future);
		if (ret == 1)
			is_message(c, &cmpl, got++);
	}
	CHECK(pthread_join(sender.thread, NULL) == 0);
	part(c);
}

/* What nobody has is back when the pool is deleted, whoever gave it up. */
static void deleted__with_the_handle(struct scene *c)
{
	struct rpma_rt_future unread;

	join(c);
	unread = next(c);
	tell(c, 3);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&unread, 1, 1, PATIENT));
	close_passive(c);
	drop(&unread);
	MUST(rpma_rt_conn_unref(&c->pair.active));
	MUST(rpma_rt_pool_delete(&c->pool));
	open_pool(c);
}

/* A stop completes what waits; what is left goes back to the pool. */
static void stop__completes(struct scene *c)
{
	struct rpma_rt_future waits, unread;

	join(c);
	unread = next(c);
	waits = next(c);
	tell(c, 1);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&unread, 1, 1, PATIENT));
	MUST(rpma_rt_stop(c->s.world.rt));
	is_closed(&waits);
	drop(&unread);
	take(c, 0);
	unread = next(c);
	is_closed(&unread);
	MUST(rpma_rt_conn_unref(&c->pair.active));
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&c->pair.passive));
	MUST(rpma_rt_pool_delete(&c->pool));
	stage_close(&c->s);
}

static void run_all(enum rpma_rt_mode mode, uint32_t count, uint32_t seed)
{
	struct scene c = {.seed = seed};

	open_scene(&c, mode);
	order__of_messages_and_futures(&c);
	wait__until_the_peer_does(&c);
	held__so_many(&c);
	given_up(&c);
	end__messages_first(&c);
	end__futures_that_wait(&c);
	refused__by_others(&c);
	if (mode != RPMA_RT_MODE_MANUAL)
		race__with_time(&c, count);
	else
		given_up__while_others_wait(&c);
	deleted__with_the_handle(&c);
	stop__completes(&c);
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 10000;
	uint32_t seed = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;

	printf("seed %u\n", seed);
	run_all(RPMA_RT_MODE_ADAPTIVE, count / 2, seed);
	run_all(RPMA_RT_MODE_EVENT, count / 2, seed + 1);
	run_all(RPMA_RT_MODE_MANUAL, 0, seed);
	return 0;
}
