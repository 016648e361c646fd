/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures_next.c -- futures of the next item: of messages of a connection with
 * a pool and without a queue, of messages of an SRQ shared by such connections,
 * of requests of a listener without a queue. Each source has the same cases:
 * items and futures meet in the order of both; items without a future wait,
 * messages until the peer waits too; a cancelled or dropped future loses no
 * item, and changes no order. Then many items, each of which races the time-out
 * of its future. With the thread of a poller and by hand. Cases of an SRQ
 * alone: futures_srq.c.
 *
 * usage: runtime_futures_next [messages [seed]]
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "messages.h"

/* ------------------------------------------------------ the order --- */

static void order__of_items_and_futures(struct messages *m)
{
	struct rpma_rt_future futures[3];
	struct rpma_rt_future *const waiting[] = {&futures[0], &futures[1],
						  &futures[2]};
	int i;

	messages_join(m);
	for (i = 0; i < 3; i++)
		futures[i] = messages_next(m);
	messages_tell_to(m, 5, waiting, 3);
	for (i = 2; i >= 0; i--)
		messages_brings(m, &futures[i], (uint32_t)i);
	messages_take(m, 3);
	messages_take(m, 4);
	messages_part(m, &m->pair);
}

static void dump(struct messages *m)
{
	FILE *file = tmpfile();

	CHECK(file != NULL);
	MUST(rpma_rt_dump(m->s.world.rt, fileno(file), RPMA_RT_DUMP_HUMAN));
	MUST(rpma_rt_dump(m->s.world.rt, fileno(file), RPMA_RT_DUMP_JSON));
	fclose(file);
}

/* More messages than the receive queue holds: the peer waits. */
static void wait__until_the_peer_does(struct messages *m,
				      enum rpma_rt_mode mode)
{
	struct rpma_rt_completion item;
	uint32_t i;

	messages_join(m);
	for (i = 0; i < MESSAGES_DEPTH; i++)
		messages_post(m, &m->pair);
	for (i = 0; i < MESSAGES_DEPTH; i++)
		stage_completion(m->s.pq, 0, IBV_WC_SUCCESS);
	for (i = 0; i < MESSAGES_DEPTH; i++)
		messages_post(m, &m->pair);
	dump(m);
	/* whatever the poller posts again */
	if (mode == RPMA_RT_MODE_MANUAL) {
		while (rpma_rt_poller_run(m->s.world.rt, 0, 64) > 0)
			;
	}
	CHECK(rpma_rt_queue_poll(m->s.pq, &item, 1) == 0);
	for (i = 0; i < 2 * MESSAGES_DEPTH; i++)
		messages_take(m, i);
	for (i = 0; i < MESSAGES_DEPTH; i++)
		stage_completion(m->s.pq, 0, IBV_WC_SUCCESS);
	messages_part(m, &m->pair);
}

/* No more futures than the limit; and the future asked for first has the item,
 * in any slot: released slots are used again. */
static void held__so_many(struct messages *m)
{
	struct rpma_rt_future futures[16], other;
	struct rpma_rt_future *waiting[16];
	uint32_t count = messages_futures(m);
	uint32_t i;

	messages_join(m);
	for (i = 0; i < count; i++) {
		futures[i] = messages_next(m);
		waiting[i] = &futures[(i + 1) % count];
	}
	MUST_ANSWER(RPMA_RT_E_BUSY, messages_ask(m, &other));
	messages_drop(&futures[0]);
	/* released when the poller has seen the drop */
	while (messages_ask(m, &futures[0]) == RPMA_RT_E_BUSY)
		MUST_ANSWER(0, rpma_rt_future_wait_some(&futures[1], 1, 1, 1));
	messages_tell_to(m, (int)count, waiting, (int)count);
	for (i = 0; i < count; i++)
		messages_brings(m, waiting[i], i);
	messages_part(m, &m->pair);
}

/* -------------------------------------------------------------- given up */

static void given_up__before_it_comes(struct messages *m)
{
	struct rpma_rt_future cancelled = messages_next(m);
	struct rpma_rt_future dropped = messages_next(m);
	struct rpma_rt_future last = messages_next(m);
	enum rpma_rt_cancelled answer;
	struct rpma_rt_completion cmpl;

	MUST(rpma_rt_future_cancel(&cancelled, &answer));
	CHECK(answer == RPMA_RT_CANCELLED_DETACHED);
	MUST_ANSWER(1,
		    rpma_rt_future_wait(&cancelled, &cmpl, MESSAGES_PATIENT));
	CHECK(cmpl.flags & RPMA_RT_C_DETACHED);
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(&cancelled, 1, 1, 0));
	messages_drop(&dropped);
	messages_tell_to(m, 1, (struct rpma_rt_future *[]){&last}, 1);
	messages_brings(m, &last, 0);
	messages_drop(&cancelled);
}

/* An unread message has its former place, in whatever order futures with
 * messages are dropped; or a waiting future gets the message. */
static void given_up__with_a_message(struct messages *m)
{
	struct rpma_rt_future futures[4];
	struct rpma_rt_future *const waiting[] = {&futures[0], &futures[1],
						  &futures[2], &futures[3]};
	struct rpma_rt_future waits;
	uint32_t i;

	for (i = 0; i < 4; i++)
		futures[i] = messages_next(m);
	messages_tell_to(m, 5, waiting, 4);
	MUST_ANSWER(4,
		    rpma_rt_future_wait_some(futures, 4, 4, MESSAGES_PATIENT));
	messages_drop(&futures[1]);
	messages_drop(&futures[0]);
	messages_drop(&futures[2]);
	for (i = 0; i < 3; i++)
		messages_take(m, i + 1);
	messages_take(m, 5);
	waits = messages_next(m);
	messages_drop(&futures[3]);
	messages_brings(m, &waits, 4);
}

struct heard {
	_Atomic uint32_t count;
	const struct messages *m;
};

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct heard *heard = arg;

	messages_is(heard->m, cmpl, 6);
	/* release: the lease was given back */
	atomic_fetch_add_explicit(&heard->count, 1, memory_order_release);
}

static void then__a_function(struct messages *m)
{
	struct heard heard = {.m = m};
	struct rpma_rt_future future = messages_next(m);
	struct rpma_rt_completion cmpl;

	MUST(rpma_rt_future_then(&future, hear, &heard));
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_future_deliver(&future, NULL));
	messages_tell_to(m, 1, (struct rpma_rt_future *[]){&future}, 1);
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, MESSAGES_PATIENT));
	/* acquire: pairs with hear() */
	while (atomic_load_explicit(&heard.count, memory_order_acquire) == 0)
		MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl,
						   MESSAGES_PATIENT));
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
}

static void given_up(struct messages *m)
{
	messages_join(m);
	given_up__before_it_comes(m);
	given_up__with_a_message(m);
	then__a_function(m);
	messages_part(m, &m->pair);
}

/* A future behind a waiting future does not get an item that comes back before
 * the waiting future. By hand: otherwise the next message may be faster. */
static void given_up__while_others_wait(struct messages *m)
{
	struct rpma_rt_future dropped, first, second;

	messages_join(m);
	dropped = messages_next(m);
	first = messages_next(m);
	messages_tell_to(m, 1, (struct rpma_rt_future *[]){&dropped}, 1);
	messages_has(&dropped);
	messages_drop(&dropped);
	second = messages_next(m);
	CHECK(rpma_rt_poller_run(m->s.world.rt, 0, 1) >= 0);
	messages_tell_to(m, 1, (struct rpma_rt_future *[]){&second}, 1);
	messages_brings(m, &first, 0);
	messages_brings(m, &second, 1);
	messages_part(m, &m->pair);
}

/* -------------------------------------------------------- the end --- */

/*
 * Asserts that the future has the end of the source, whose handle is held, with
 * the reason.
 */
static void is_end(const struct messages *m, struct rpma_rt_future *future,
		   enum rpma_rt_reason reason)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, MESSAGES_PATIENT));
	if (m->of == MESSAGES_OF_LISTENER)
		CHECK(rpma_rt_completion_listener(&cmpl) == m->listener);
	else if (m->of == MESSAGES_OF_SRQ)
		CHECK(rpma_rt_completion_srq(&cmpl) == m->srq);
	else
		CHECK(rpma_rt_completion_conn(&cmpl) == m->pair.active);
	CHECK(m->of == MESSAGES_OF_SRQ || cmpl.status == reason);
	messages_is_over(future, messages_last(m));
}

/*
 * Items before the end are delivered after the end, then CLOSED, more than
 * once.
 */
static void end__items_first(struct messages *m)
{
	struct rpma_rt_future future;
	int i;

	messages_join(m);
	messages_tell(m, 3);
	messages_close(m, &m->pair);
	messages_take(m, 0);
	future = messages_next(m);
	messages_has(&future);
	messages_drop(&future);
	messages_take(m, 1);
	messages_take(m, 2);
	for (i = 0; i < 2; i++) {
		future = messages_next(m);
		is_end(m, &future,
		       m->of == MESSAGES_OF_CONN ? RPMA_RT_REASON_DISCONNECTED
						 : RPMA_RT_REASON_LOCAL);
	}
	messages_let_go(m);
	messages_forget_peers(m);
}

/* Waiting futures end with the source; an item outlives the handle in its
 * future, and items without a future are dropped with the handle. */
static void end__futures_that_wait(struct messages *m)
{
	struct rpma_rt_future waits, has, unread;

	messages_join(m);
	has = messages_next(m);
	unread = messages_next(m);
	waits = messages_next(m);
	messages_tell_to(m, 2, (struct rpma_rt_future *[]){&has, &unread}, 2);
	messages_has(&unread);
	messages_close(m, &m->pair);
	messages_let_go(m);
	messages_is_over(&waits, messages_last(m));
	messages_brings(m, &has, 0);
	messages_drop(&unread);
	messages_forget_peers(m);

	messages_join(m);
	messages_tell(m, 3);
	messages_part(m, &m->pair);
}

static void refuse_next_of(struct rpma_rt_conn *conn)
{
	struct rpma_rt_future future;

	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_next_future(&(struct rpma_rt_source){.conn = conn},
					&future));
}

static void refused__by_others(struct messages *m)
{
	struct rpma_rt_conn_cfg cfg = *m->s.cfg;
	struct world_pair pair;

	refuse_next_of(NULL);
	stage_connect(&m->s, &pair);
	/* without a pool */
	refuse_next_of(pair.active);
	stage_disconnect(&m->s, &pair);
	m->s.cfg->pool = m->pool;
	stage_connect(&m->s, &pair);
	/* with a queue */
	refuse_next_of(pair.active);
	stage_disconnect(&m->s, &pair);
	*m->s.cfg = cfg;
}

/* -------------------------------------------------------------- races --- */

#define PEERS  2
#define TAKERS 2

struct race {
	struct messages *m;
	uint32_t peers;
	struct world_pair pairs[PEERS]; /* of messages */
	uint32_t count;			/* items of each peer */
	uint32_t got[PEERS];  /* per peer, in order, with a single taker */
	_Atomic uint32_t all; /* of all takers */
	_Atomic uint8_t *seen;
};

struct taker {
	struct race *race;
	uint32_t seed;
	bool is_alone;
	pthread_t thread;
};

static void *send_all(void *arg)
{
	struct race *race = arg;
	struct rpma_rt_completion items[PEERS * MESSAGES_DEPTH];
	uint32_t sent[PEERS] = {0};
	uint32_t done[PEERS] = {0};
	uint32_t ended = 0;
	uint32_t which;
	int n;
	int i;

	while (race->m->of == MESSAGES_OF_LISTENER && ended < race->count) {
		messages_post(race->m, NULL);
		ended++;
	}
	while (ended < race->peers * race->count) {
		for (which = 0; which < race->peers; which++) {
			while (sent[which] < race->count &&
			       sent[which] - done[which] < MESSAGES_DEPTH) {
				messages_send(race->m, &race->pairs[which],
					      sent[which]++, which);
			}
		}
		n = rpma_rt_queue_wait(race->m->s.pq, items,
				       PEERS * MESSAGES_DEPTH,
				       MESSAGES_PATIENT);
		CHECK(n > 0);
		for (i = 0; i < n; i++) {
			CHECK(items[i].status == IBV_WC_SUCCESS);
			done[items[i].context]++;
		}
		ended += (uint32_t)n;
	}
	return NULL;
}

/* Counts each item once; messages of a peer in order, if a single thread takes.
 * Each request has a separate peer. */
static void got(struct taker *taker, const struct rpma_rt_completion *cmpl)
{
	struct race *race = taker->race;
	uint32_t number = messages_number(race->m, cmpl);
	uint32_t peer = 0;

	if (race->m->of != MESSAGES_OF_LISTENER)
		peer = (uint32_t)((struct world_pair *)cmpl->user -
				  race->pairs);
	CHECK(peer < race->peers && number < race->count);
	if (taker->is_alone && race->m->of != MESSAGES_OF_LISTENER)
		CHECK(number == race->got[peer]++);
	/* relaxed: each item once, in any order */
	CHECK(atomic_exchange_explicit(&race->seen[peer * race->count + number],
				       1, memory_order_relaxed) == 0);
	messages_is(race->m, cmpl, number);
	/* relaxed: a count; the joins order the items */
	atomic_fetch_add_explicit(&race->all, 1, memory_order_relaxed);
}

/* Gives up after a time-out; returns 1 if the item came after all. */
static int give_up(struct rpma_rt_future *future, uint32_t how,
		   struct rpma_rt_completion *cmpl)
{
	enum rpma_rt_cancelled answer;

	if (how == 0) {
		messages_drop(future);
		return 0;
	}
	MUST(rpma_rt_future_cancel(future, &answer));
	MUST_ANSWER(1, rpma_rt_future_wait(future, cmpl, MESSAGES_PATIENT));
	if (answer != RPMA_RT_CANCELLED_DONE)
		CHECK(cmpl->flags & RPMA_RT_C_DETACHED);
	messages_drop(future);
	return answer == RPMA_RT_CANCELLED_DONE;
}

/* However many futures are given up. */
static void *take_all(void *arg)
{
	struct taker *taker = arg;
	struct race *race = taker->race;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	uint32_t how;
	int ret;

	/* relaxed: a count */
	while (atomic_load_explicit(&race->all, memory_order_relaxed) <
	       race->peers * race->count) {
		ret = messages_ask(race->m, &future);
		if (ret == RPMA_RT_E_BUSY) { /* dropped, the poller comes yet */
			sched_yield();
			continue;
		}
		MUST(ret);
		how = world_roll(&taker->seed, 8);
		ret = rpma_rt_future_wait(&future, &cmpl, how < 2 ? 0 : 1);
		CHECK(ret == 0 || ret == 1);
		if (ret == 0)
			ret = give_up(&future, how % 2, &cmpl);
		else
			messages_drop(&future);
		if (ret == 1)
			got(taker, &cmpl);
	}
	return NULL;
}

static void race_join(struct race *race)
{
	struct messages *m = race->m;
	uint32_t i;

	race->peers = m->of == MESSAGES_OF_SRQ ? PEERS : 1;
	race->count = race->count / race->peers;
	race->seen = calloc(race->peers * race->count, sizeof(*race->seen));
	CHECK(race->seen != NULL);
	if (m->of == MESSAGES_OF_LISTENER)
		messages_join(m);
	for (i = 0; m->of != MESSAGES_OF_LISTENER && i < race->peers; i++)
		messages_pair(m, &race->pairs[i], &race->pairs[i]);
	if (m->of == MESSAGES_OF_CONN)
		m->pair = race->pairs[0];
}

static void race__with_time(struct messages *m, uint32_t count, int takers)
{
	struct race race = {.m = m, .count = count};
	struct taker taker[TAKERS];
	pthread_t sender;
	uint32_t peer;
	int i;

	race_join(&race);
	CHECK(pthread_create(&sender, NULL, send_all, &race) == 0);
	for (i = 0; i < takers; i++) {
		taker[i] = (struct taker){.race = &race,
					  .seed = m->seed + (uint32_t)i,
					  .is_alone = takers == 1};
		CHECK(pthread_create(&taker[i].thread, NULL, take_all,
				     &taker[i]) == 0);
	}
	for (i = 0; i < takers; i++)
		CHECK(pthread_join(taker[i].thread, NULL) == 0);
	CHECK(pthread_join(sender, NULL) == 0);
	for (peer = 0; peer < race.peers; peer++)
		messages_part(m, &race.pairs[peer]);
	free((void *)race.seen);
}

/*
 * Items without a holder are back when the pool is deleted, whichever thread
 * gave the item up.
 */
static void deleted__with_the_handle(struct messages *m)
{
	struct rpma_rt_future unread;

	messages_join(m);
	unread = messages_next(m);
	messages_tell_to(m, 3, (struct rpma_rt_future *[]){&unread}, 1);
	messages_has(&unread);
	messages_close(m, &m->pair);
	messages_drop(&unread);
	messages_let_go(m);
	messages_forget_peers(m);
	MUST(rpma_rt_pool_delete(&m->pool));
	m->pool = messages_pool(m);
}

/* A stop completes waiting futures; earlier messages are available after the
 * stop, and the rest goes back to the pool. */
static void stop__completes(struct messages *m)
{
	struct rpma_rt_future waits, unread;

	messages_join(m);
	unread = messages_next(m);
	waits = messages_next(m);
	messages_tell_to(m, 1, (struct rpma_rt_future *[]){&unread}, 1);
	messages_has(&unread);
	MUST(rpma_rt_stop(m->s.world.rt));
	is_end(m, &waits, RPMA_RT_REASON_STOPPED);
	messages_drop(&unread);
	messages_take(m, 0);
	unread = messages_next(m);
	is_end(m, &unread, RPMA_RT_REASON_STOPPED);
	messages_let_go(m);
	messages_forget_peers(m);
	if (m->of != MESSAGES_OF_LISTENER) {
		world_event(m->s.pq, RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_conn_unref(&m->pair.passive));
	}
	messages_end(m);
}

/* ---------------------------------------------------------------- each --- */

static void run_all(enum rpma_rt_mode mode, enum messages_of of, uint32_t count,
		    uint32_t seed)
{
	struct messages m = {.seed = seed};
	int i;

	if (of == MESSAGES_OF_LISTENER)
		count = MESSAGES_REQUESTS;
	messages_open(&m, mode, of);
	order__of_items_and_futures(&m);
	if (of != MESSAGES_OF_LISTENER)
		wait__until_the_peer_does(&m, mode);
	held__so_many(&m);
	given_up(&m);
	if (mode == RPMA_RT_MODE_MANUAL)
		given_up__while_others_wait(&m);
	for (i = 1; mode != RPMA_RT_MODE_MANUAL && i <= TAKERS; i++)
		race__with_time(&m, count, i);
	if (of != MESSAGES_OF_SRQ) /* deleting the SRQ is its end */
		end__items_first(&m);
	end__futures_that_wait(&m);
	deleted__with_the_handle(&m);
	if (of == MESSAGES_OF_CONN)
		refused__by_others(&m);
	stop__completes(&m);
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 10000;
	uint32_t seed = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
	int of;

	printf("seed %u\n", seed);
	for (of = MESSAGES_OF_CONN; of <= MESSAGES_OF_LISTENER; of++) {
		run_all(RPMA_RT_MODE_ADAPTIVE, of, count / 8, seed);
		run_all(RPMA_RT_MODE_EVENT, of, count / 8, seed + 1);
		run_all(RPMA_RT_MODE_MANUAL, of, 0, seed);
	}
	return 0;
}
