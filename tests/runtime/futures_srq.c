/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures_srq.c -- futures of the next message of an SRQ: of its connections
 * without a queue, in one order for all, while those with a queue have theirs;
 * its delete, its failure. Then one thread, and two, that give futures up after
 * a while, against messages of two peers: none missing, none doubled, and for
 * the one those of a peer in their order. What a connection's futures have,
 * too, is in futures_next.c.
 *
 * usage: runtime_futures_srq [messages [seed]]
 */

#include <endian.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "loop.h"
#include "messages.h"

#define PEERS 2

/* ------------------------------------------------------- whose they are --- */

/* One stream of two connections: the order in which their messages came. */
static void order__of_all_connections(struct messages *m)
{
	struct world_pair second;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	uint32_t i;

	messages_join(m);
	messages_pair(m, &second, &second);
	for (i = 0; i < 6; i++) {
		messages_post(m, i % 3 == 0 ? &second : &m->pair);
		stage_completion(m->s.pq, 0, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 6; i++) {
		future = messages_next(m);
		MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl,
						   MESSAGES_PATIENT));
		CHECK(cmpl.user == (i % 3 == 0 ? (void *)&second : m));
		messages_is(m, &cmpl, i);
		messages_drop(&future);
	}
	messages_part(m, &second);
	messages_part(m, &m->pair);
}

/* A connection with a queue has its messages there; both take the same
 * receives. */
static void queue__of_another_connection(struct messages *m)
{
	struct rpma_rt_conn_cfg cfg = *m->s.cfg;
	struct rpma_rt_completion cmpl;
	struct world_pair queued;
	uint32_t i;

	messages_join(m);
	m->s.cfg->srqs = &m->srq;
	m->s.cfg->srq_count = 1;
	stage_connect(&m->s, &queued);
	*m->s.cfg = cfg;
	for (i = 0; i < 2 * MESSAGES_DEPTH; i++) {
		messages_post(m, i % 2 ? &queued : &m->pair);
		stage_completion(m->s.pq, 0, IBV_WC_SUCCESS);
		if (i % 2 == 0) {
			messages_take(m, i);
			continue;
		}
		cmpl = world_next(m->s.aq);
		messages_is(m, &cmpl, i);
	}
	stage_disconnect(&m->s, &queued);
	messages_part(m, &m->pair);
}

/* With a queue it has its own items there, and messages come by futures. */
static void queue__of_the_srq_itself(struct messages *m)
{
	struct rpma_rt_srq *plain = m->srq;
	struct rpma_rt_future future;

	m->srq = messages_srq(m, m->s.aq, 1);
	messages_join(m);
	messages_tell(m, 1);
	messages_take(m, 0);
	future = messages_next(m);
	messages_part(m, &m->pair);
	MUST(rpma_rt_srq_delete(&m->srq));
	messages_is_over(&future, RPMA_RT_EVENT_SRQ_CLOSED);
	world_event(m->s.aq, RPMA_RT_EVENT_SRQ_CLOSED);
	m->srq = plain;
}

static void refused__by_others(struct messages *m)
{
	struct rpma_rt_srq *plain = messages_srq(m, m->s.aq, 0);
	struct rpma_rt_conn_cfg cfg = *m->s.cfg;
	struct rpma_rt_future future;
	struct rpma_rt_conn *conn;

	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_next_future(&(struct rpma_rt_source){.srq = plain},
					&future));
	cfg.srqs = &plain;
	cfg.srq_count = 1;
	MUST_ANSWER(RPMA_E_INVAL,
		    world_conn_new(m->s.world.rt, m->s.world.peer,
				   m->s.world.addr, m->s.world.port, &cfg, 0,
				   NULL, NULL, &conn));
	MUST(rpma_rt_srq_delete(&plain));
	world_event(m->s.aq, RPMA_RT_EVENT_SRQ_CLOSED);
	messages_join(m);
	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_next_future(
			    &(struct rpma_rt_source){.conn = m->pair.active},
			    &future));
	messages_part(m, &m->pair);
}

/* As many as a configuration may ask for, beside the stream's own slot. */
static void futures__as_many_as_may_be(struct messages *m)
{
	struct rpma_rt_srq *large = messages_srq(m, NULL, 1048576);

	MUST(rpma_rt_srq_delete(&large));
	large = messages_srq(m, NULL, 1048576); /* its block again */
	MUST(rpma_rt_srq_delete(&large));
}

/* ------------------------------------------------------------- its end --- */

/* What waits gets SRQ_CLOSED; a message outlives the SRQ in its future, and
 * what nobody has goes back to the pool. */
static void end__deleted(struct messages *m)
{
	struct rpma_rt_future has, unread, waits;

	messages_join(m);
	has = messages_next(m);
	unread = messages_next(m);
	messages_tell(m, 2);
	messages_has(&unread);
	waits = messages_next(m);
	MUST_ANSWER(RPMA_RT_E_BUSY, rpma_rt_srq_delete(&m->srq));
	messages_part(m, &m->pair);
	MUST(rpma_rt_srq_delete(&m->srq));
	messages_is_over(&waits, RPMA_RT_EVENT_SRQ_CLOSED);
	messages_brings(m, &has, 0);
	messages_drop(&unread);

	m->srq = messages_srq(m, NULL, MESSAGES_FUTURES);
	messages_join(m);
	messages_tell(m, 3); /* nobody asks for these */
	messages_part(m, &m->pair);
	MUST(rpma_rt_srq_delete(&m->srq));
	MUST(rpma_rt_pool_delete(&m->pool));
	m->pool = messages_pool(m);
	m->srq = messages_srq(m, NULL, MESSAGES_FUTURES);
}

/* The device fails: behind the messages that have come futures say so, as often
 * as they are asked for. */
static void end__failed(enum rpma_rt_mode mode)
{
	const struct loop *loop = loop_get();
	struct rpma_rt_future future;
	struct rpma_rt_completion cmpl;
	struct messages m = {0};
	int i;

	if (loop == NULL) /* no other device does so when it is told */
		return;
	messages_open(&m, mode, MESSAGES_OF_SRQ);
	messages_join(&m);
	messages_tell(&m, 1);
	CHECK(loop->raise(IBV_EVENT_DEVICE_FATAL, m.s.world.ibv_ctx) == 0);
	world_event(m.s.pq, RPMA_RT_EVENT_CLOSED);
	cmpl = messages_event(m.pair.active, RPMA_RT_EVENT_CLOSED);
	CHECK(cmpl.status == RPMA_RT_REASON_DEVICE);
	messages_take(&m, 0);
	for (i = 0; i < 2; i++) {
		future = messages_next(&m);
		MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl,
						   MESSAGES_PATIENT));
		CHECK(cmpl.status == RPMA_RT_REASON_DEVICE);
		messages_is_over(&future, RPMA_RT_EVENT_SRQ_FAILED);
	}
	MUST(rpma_rt_conn_unref(&m.pair.active));
	MUST(rpma_rt_conn_unref(&m.pair.passive));
	messages_end(&m);
}

/* -------------------------------------------------------------- races --- */

struct race {
	struct messages *m;
	struct world_pair pairs[PEERS];
	uint32_t count;	      /* messages of each */
	uint32_t got[PEERS];  /* of each, in their order; of one taker */
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
	int which;
	int n;
	int i;

	while (ended < PEERS * race->count) {
		for (which = 0; which < PEERS; which++) {
			while (sent[which] < race->count &&
			       sent[which] - done[which] < MESSAGES_DEPTH) {
				messages_send(race->m, &race->pairs[which],
					      sent[which]++, (uint64_t)which);
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

static void got(struct taker *taker, const struct rpma_rt_completion *cmpl)
{
	struct race *race = taker->race;
	uint32_t peer =
		(uint32_t)((struct world_pair *)cmpl->user - race->pairs);
	uint32_t number = be32toh(cmpl->imm);

	CHECK(peer < PEERS && number < race->count);
	if (taker->is_alone)
		CHECK(number == race->got[peer]++);
	/* relaxed: each one once, in any order */
	CHECK(atomic_exchange_explicit(&race->seen[peer * race->count + number],
				       1, memory_order_relaxed) == 0);
	messages_is(race->m, cmpl, number);
	/* relaxed: a count; the joins order what it counts */
	atomic_fetch_add_explicit(&race->all, 1, memory_order_relaxed);
}

/* Waits for a while, or gives the future up by a drop. */
static void *take_all(void *arg)
{
	struct taker *taker = arg;
	struct race *race = taker->race;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	int ret;

	/* relaxed: a count */
	while (atomic_load_explicit(&race->all, memory_order_relaxed) <
	       PEERS * race->count) {
		ret = rpma_rt_next_future(
			&(struct rpma_rt_source){.srq = race->m->srq}, &future);
		if (ret == RPMA_RT_E_BUSY) { /* dropped, the poller comes yet */
			sched_yield();
			continue;
		}
		MUST(ret);
		ret = rpma_rt_future_wait(&future, &cmpl,
					  world_roll(&taker->seed, 8) ? 1 : 0);
		CHECK(ret == 0 || ret == 1);
		messages_drop(&future);
		if (ret == 1)
			got(taker, &cmpl);
	}
	return NULL;
}

static void race__with_time(struct messages *m, uint32_t count, int takers)
{
	struct race race = {.m = m, .count = count / PEERS + 1};
	struct taker taker[2];
	pthread_t sender;
	int i;

	race.seen = calloc(PEERS * race.count, sizeof(*race.seen));
	CHECK(race.seen != NULL);
	for (i = 0; i < PEERS; i++)
		messages_pair(m, &race.pairs[i], &race.pairs[i]);
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
	for (i = 0; i < PEERS; i++)
		messages_part(m, &race.pairs[i]);
	free((void *)race.seen);
}

/* ---------------------------------------------------------------- each --- */

static void run_all(enum rpma_rt_mode mode, uint32_t count, uint32_t seed)
{
	struct messages m = {.seed = seed};

	messages_open(&m, mode, MESSAGES_OF_SRQ);
	order__of_all_connections(&m);
	queue__of_another_connection(&m);
	queue__of_the_srq_itself(&m);
	refused__by_others(&m);
	if (mode != RPMA_RT_MODE_MANUAL) {
		race__with_time(&m, count, 1);
		race__with_time(&m, count, 2);
	} else if (loop_get() != NULL) { /* much memory for a small machine */
		futures__as_many_as_may_be(&m);
	}
	end__deleted(&m);
	messages_end(&m);
	end__failed(mode);
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 10000;
	uint32_t seed = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;

	printf("seed %u\n", seed);
	run_all(RPMA_RT_MODE_ADAPTIVE, count / 4, seed);
	run_all(RPMA_RT_MODE_EVENT, count / 4, seed + 1);
	run_all(RPMA_RT_MODE_MANUAL, 0, seed);
	return 0;
}
