/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool_waits.c -- futures of the next free slot of a pool: slots go to futures
 * in the order of the futures, before any taking thread; a cancelled or dropped
 * future loses no slot; slots come from threads, from sends, from receives
 * whose queue goes; the stop is the end. Then threads take and wait for the
 * slots of a small pool. With the thread of a poller and by hand.
 *
 * usage: runtime_pool_waits [rounds [seed]]
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH	  8
#define SLOT_SIZE 64
#define SLOTS	  2
#define THREADS	  4
#define TIMES	  50

struct scene {
	struct stage s;
	struct rpma_rt_pool *pool;
};

static void begin(struct scene *c, enum rpma_rt_mode mode, uint32_t slots,
		  uint32_t sends)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = mode, .depth = DEPTH};

	stage_open(&c->s, &cfg);
	c->pool = stage_pool(&c->s, "small", slots, SLOT_SIZE, sends);
}

static void end(struct scene *c, uint32_t slots)
{
	stage_all_free(c->pool, slots);
	MUST(rpma_rt_pool_delete(&c->pool));
	stage_close(&c->s);
}

static struct rpma_rt_lease take(const struct scene *c)
{
	struct rpma_rt_lease lease;

	MUST(rpma_rt_pool_take(c->pool, &lease));
	return lease;
}

static struct rpma_rt_future next(const struct scene *c)
{
	const struct rpma_rt_source source = {.pool = c->pool};
	struct rpma_rt_future future;

	MUST(rpma_rt_next_future(&source, &future));
	return future;
}

static struct rpma_rt_completion result(struct rpma_rt_future *future)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &item, -1));
	MUST_ANSWER(0, rpma_rt_future_drop(future));
	return item;
}

static struct rpma_rt_lease lease_of(struct rpma_rt_future *future)
{
	struct rpma_rt_completion item = result(future);
	struct rpma_rt_lease lease;

	CHECK(item.status == IBV_WC_SUCCESS);
	CHECK(rpma_rt_completion_lease(&item, &lease));
	CHECK(lease.len == SLOT_SIZE);
	return lease;
}

/* Waits until the pollers have done all requests, as each delete does. */
static void wait_for_pollers(const struct scene *c)
{
	struct rpma_rt_pool *other =
		stage_pool(&c->s, "other", 1, SLOT_SIZE, 0);

	MUST(rpma_rt_pool_delete(&other));
}

static void is_waiting(const struct rpma_rt_future *future)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(0, rpma_rt_future_wait(future, &item, 1));
}

/* Makes a pool with a single slot, taken, and a waiting future. */
static struct rpma_rt_future begin_waiting(struct scene *c,
					   enum rpma_rt_mode mode,
					   struct rpma_rt_lease *lease)
{
	begin(c, mode, 1, 0);
	*lease = take(c);
	return next(c);
}

/* ---------------------------------------------------------- each a case --- */

static void order__of_futures(enum rpma_rt_mode mode)
{
	struct rpma_rt_lease leases[SLOTS], none, lease;
	struct rpma_rt_future futures[3];
	struct scene c;
	int i;

	begin(&c, mode, SLOTS, 0);
	for (i = 0; i < SLOTS; i++)
		leases[i] = take(&c);
	for (i = 0; i < 3; i++)
		futures[i] = next(&c);
	is_waiting(&futures[0]);
	wait_for_pollers(&c);
	/* the first future's, whoever takes meanwhile */
	MUST(rpma_rt_lease_release(&leases[0]));
	CHECK(rpma_rt_pool_take(c.pool, &none) == RPMA_E_AGAIN);
	leases[0] = lease_of(&futures[0]);
	is_waiting(&futures[1]);
	MUST(rpma_rt_lease_release(&leases[1]));
	MUST(rpma_rt_lease_release(&leases[0]));
	lease = lease_of(&futures[2]);
	leases[1] = lease_of(&futures[1]);
	CHECK(leases[1].slot != lease.slot);
	MUST(rpma_rt_lease_release(&leases[1]));
	MUST(rpma_rt_lease_release(&lease));
	/* a free slot is there at once */
	futures[0] = next(&c);
	lease = lease_of(&futures[0]);
	MUST(rpma_rt_lease_release(&lease));
	end(&c, SLOTS);
}

/* The next future gets an unread slot; a cancelled future gets nothing. */
static void given_up__the_next_GETS_IT(enum rpma_rt_mode mode)
{
	struct rpma_rt_future first, second, third;
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion item;
	struct rpma_rt_lease lease;
	struct scene c;

	first = begin_waiting(&c, mode, &lease);
	second = next(&c);
	third = next(&c);
	MUST(rpma_rt_future_cancel(&first, &cancelled));
	CHECK(cancelled == RPMA_RT_CANCELLED_DETACHED);
	item = result(&first);
	CHECK(item.flags & RPMA_RT_C_DETACHED);
	MUST(rpma_rt_lease_release(&lease));
	while (rpma_rt_future_wait_some(&second, 1, 1, -1) != 1)
		;
	MUST_ANSWER(0, rpma_rt_future_drop(&second));
	lease = lease_of(&third);
	/* no future waits any more: a take gets the slot */
	first = next(&c);
	is_waiting(&first);
	MUST_ANSWER(0, rpma_rt_future_drop(&first));
	MUST(rpma_rt_lease_release(&lease));
	wait_for_pollers(&c);
	lease = take(&c);
	MUST(rpma_rt_lease_release(&lease));
	end(&c, 1);
}

static void send__is_over(enum rpma_rt_mode mode)
{
	struct rpma_rt_future future;
	struct rpma_rt_lease lease;
	struct world_pair pair;
	struct scene c;

	begin(&c, mode, 1, 0);
	stage_connect(&c.s, &pair);
	MUST(rpma_rt_recv(pair.passive, c.s.mr, 0, SLOT_SIZE, 7));
	lease = take(&c);
	future = next(&c);
	is_waiting(&future);
	MUST(rpma_rt_send_lease(pair.active, &lease, SLOT_SIZE, 0));
	lease = lease_of(&future);
	MUST(rpma_rt_lease_release(&lease));
	stage_completion(c.s.pq, 7, IBV_WC_SUCCESS);
	stage_disconnect(&c.s, &pair);
	end(&c, 1);
}

/* Slots for receives are the program's when the last receive queue is gone. */
static void receive_queue__goes(enum rpma_rt_mode mode)
{
	struct rpma_rt_future future, second;
	struct rpma_rt_lease leases[2];
	struct world_pair pair;
	struct scene c;

	begin(&c, mode, 1 + 2 * DEPTH, 1);
	c.s.cfg->pool = c.pool;
	stage_connect(&c.s, &pair);
	leases[0] = take(&c);
	future = next(&c);
	second = next(&c);
	is_waiting(&future);
	stage_disconnect(&c.s, &pair);
	leases[1] = lease_of(&future);
	CHECK(leases[1].slot < 2 * DEPTH);
	MUST(rpma_rt_lease_release(&leases[0]));
	leases[0] = lease_of(&second);
	MUST(rpma_rt_lease_release(&leases[0]));
	MUST(rpma_rt_lease_release(&leases[1]));
	end(&c, 1 + 2 * DEPTH);
}

static void stop__is_the_END(enum rpma_rt_mode mode)
{
	struct rpma_rt_completion item, of_another;
	struct rpma_rt_future future;
	struct rpma_rt_lease lease;
	struct scene c;

	future = begin_waiting(&c, mode, &lease);
	MUST(rpma_rt_stop(c.s.world.rt));
	item = result(&future);
	CHECK(rpma_rt_completion_event(&item) == RPMA_RT_EVENT_POOL_CLOSED);
	CHECK(item.status == RPMA_RT_REASON_STOPPED);
	future = next(&c);
	of_another = result(&future);
	CHECK(rpma_rt_completion_event(&of_another) ==
	      RPMA_RT_EVENT_POOL_CLOSED);
	MUST(rpma_rt_lease_release(&lease));
	end(&c, 1);
}

/* An unread lease counts as a lease. */
static void delete__with_an_unread_lease_BUSY(enum rpma_rt_mode mode)
{
	struct rpma_rt_future future, held;
	struct rpma_rt_completion item;
	struct rpma_rt_lease lease;
	struct scene c;

	future = begin_waiting(&c, mode, &lease);
	MUST(rpma_rt_lease_release(&lease));
	CHECK(rpma_rt_pool_delete(&c.pool) == RPMA_RT_E_BUSY);
	lease = lease_of(&future);
	/* a read future, and a dropped future, do not count */
	held = next(&c);
	future = next(&c);
	MUST_ANSWER(0, rpma_rt_future_drop(&future));
	MUST(rpma_rt_lease_release(&lease));
	MUST_ANSWER(1, rpma_rt_future_wait(&held, &item, -1));
	CHECK(rpma_rt_completion_lease(&item, &lease));
	future = next(&c);
	MUST(rpma_rt_lease_release(&lease));
	MUST_ANSWER(0, rpma_rt_future_drop(&future));
	MUST(rpma_rt_pool_delete(&c.pool));
	MUST_ANSWER(1, rpma_rt_future_poll(&held, &item));
	MUST_ANSWER(0, rpma_rt_future_drop(&held));
	stage_close(&c.s);
}

/* Another poller gives the last slot back, and may still be inside the give
 * when the next holder deletes the pool. */
static void delete__behind_the_last_give(void)
{
	struct rpma_rt_future future;
	struct rpma_rt_lease lease;
	struct world_pair pair;
	struct scene c;
	int i;

	begin(&c, RPMA_RT_MODE_EVENT, 1, 0);
	world_connect(&c.s.world, c.s.cfg, 1, c.s.aq, c.s.pq, &pair);
	for (i = 0; i < TIMES; i++) {
		MUST(rpma_rt_recv(pair.passive, c.s.mr, 0, SLOT_SIZE, 7));
		lease = take(&c);
		future = next(&c);
		MUST(rpma_rt_send_lease(pair.active, &lease, SLOT_SIZE, 0));
		lease = lease_of(&future);
		MUST(rpma_rt_lease_release(&lease));
		MUST(rpma_rt_pool_delete(&c.pool));
		stage_completion(c.s.pq, 7, IBV_WC_SUCCESS);
		c.pool = stage_pool(&c.s, "small", 1, SLOT_SIZE, 0);
	}
	stage_disconnect(&c.s, &pair);
	end(&c, 1);
}

static void futures__too_many_BUSY(enum rpma_rt_mode mode)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_source source = {0};
	struct rpma_rt_future futures[3];
	struct scene c;
	int i;

	begin(&c, mode, 1, 0);
	cfg.count = 1;
	cfg.futures = 2;
	cfg.peer = c.s.world.peer;
	MUST(rpma_rt_pool_new(c.s.world.rt, &cfg, &source.pool));
	for (i = 0; i < 2; i++)
		MUST(rpma_rt_next_future(&source, &futures[i]));
	CHECK(rpma_rt_next_future(&source, &futures[2]) == RPMA_RT_E_BUSY);
	for (i = 0; i < 2; i++)
		MUST_ANSWER(0, rpma_rt_future_drop(&futures[i]));
	MUST(rpma_rt_pool_delete(&source.pool));
	end(&c, 1);
}

struct called {
	pthread_mutex_t lock;
	pthread_cond_t come;
	bool is_called;
};

static void on_slot(const struct rpma_rt_completion *item, void *arg)
{
	struct called *called = arg;
	struct rpma_rt_lease lease;

	CHECK(rpma_rt_completion_lease(item, &lease));
	MUST(rpma_rt_lease_release(&lease));
	pthread_mutex_lock(&called->lock);
	called->is_called = true;
	pthread_cond_signal(&called->come);
	pthread_mutex_unlock(&called->lock);
}

/* The function gives the slot back: the next future gets the slot. */
static void function__gets_a_slot(void)
{
	struct called called = {PTHREAD_MUTEX_INITIALIZER,
				PTHREAD_COND_INITIALIZER, false};
	struct rpma_rt_future future, second;
	struct rpma_rt_lease lease;
	struct scene c;

	future = begin_waiting(&c, RPMA_RT_MODE_EVENT, &lease);
	second = next(&c);
	MUST(rpma_rt_future_then(&future, on_slot, &called));
	MUST(rpma_rt_lease_release(&lease));
	pthread_mutex_lock(&called.lock);
	while (!called.is_called)
		pthread_cond_wait(&called.come, &called.lock);
	pthread_mutex_unlock(&called.lock);
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
	lease = lease_of(&second);
	MUST(rpma_rt_lease_release(&lease));
	end(&c, 1);
}

/* -------------------------------------------------------- many threads --- */

struct crowd {
	struct scene c;
	int rounds;
	unsigned seed;
	_Atomic uint32_t holders[SLOTS];
	_Atomic uint64_t waited;
};

struct member {
	pthread_t thread;
	struct crowd *crowd;
	unsigned seed;
};

/* Asserts a single holder of a slot, at any time. */
static void use(struct crowd *crowd, const struct rpma_rt_lease *lease)
{
	_Atomic uint32_t *holders = &crowd->holders[lease->slot];

	/* relaxed, both: counts; the pool orders the holders */
	CHECK(atomic_fetch_add_explicit(holders, 1, memory_order_relaxed) == 0);
	memset(lease->data, (int)lease->generation, SLOT_SIZE);
	CHECK(atomic_fetch_sub_explicit(holders, 1, memory_order_relaxed) == 1);
	MUST(rpma_rt_lease_release(lease));
}

/* Waits; now and then gives the future up at once, before or after its slot. */
static void wait_for_a_slot(struct crowd *crowd, bool gives_up)
{
	struct rpma_rt_future future = next(&crowd->c);
	struct rpma_rt_lease lease;

	if (gives_up) {
		MUST_ANSWER(0, rpma_rt_future_drop(&future));
		return;
	}
	lease = lease_of(&future);
	use(crowd, &lease);
	/* relaxed: a count */
	atomic_fetch_add_explicit(&crowd->waited, 1, memory_order_relaxed);
}

static void *live(void *arg)
{
	struct member *member = arg;
	struct crowd *crowd = member->crowd;
	struct rpma_rt_lease lease;
	int i;

	for (i = 0; i < crowd->rounds; i++) {
		if (i % 2 == 0 && rpma_rt_pool_take(crowd->c.pool, &lease) == 0)
			use(crowd, &lease);
		else
			wait_for_a_slot(crowd, rand_r(&member->seed) % 8 == 0);
	}
	return NULL;
}

static void crowd__each_gets_slots(enum rpma_rt_mode mode, int rounds,
				   unsigned seed)
{
	struct member members[THREADS];
	struct crowd crowd = {.rounds = rounds};
	int i;

	begin(&crowd.c, mode, SLOTS, RPMA_RT_POOL_NO_SENDS);
	for (i = 0; i < THREADS; i++) {
		members[i].crowd = &crowd;
		members[i].seed = seed + (unsigned)i;
		MUST(pthread_create(&members[i].thread, NULL, live,
				    &members[i]));
	}
	for (i = 0; i < THREADS; i++)
		MUST(pthread_join(members[i].thread, NULL));
	wait_for_pollers(&crowd.c);
	/* relaxed: the threads have ended */
	CHECK(atomic_load_explicit(&crowd.waited, memory_order_relaxed) > 0);
	end(&crowd.c, SLOTS);
}

int main(int argc, char *argv[])
{
	static const enum rpma_rt_mode modes[] = {RPMA_RT_MODE_EVENT,
						  RPMA_RT_MODE_MANUAL};
	int rounds = argc > 1 ? atoi(argv[1]) : 2000;
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		order__of_futures(modes[i]);
		given_up__the_next_GETS_IT(modes[i]);
		send__is_over(modes[i]);
		receive_queue__goes(modes[i]);
		stop__is_the_END(modes[i]);
		delete__with_an_unread_lease_BUSY(modes[i]);
		futures__too_many_BUSY(modes[i]);
		crowd__each_gets_slots(modes[i], rounds, seed);
	}
	function__gets_a_slot();
	delete__behind_the_last_give();
	printf("ok, seed %u\n", seed);
	return 0;
}
