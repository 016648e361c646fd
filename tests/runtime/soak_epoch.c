/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak_epoch.c -- an epoch: pairs are made and disturbed, consumers take items,
 * and at the end nothing is left, in every kind of ending.
 */

#include "soak.h"

#include <poll.h>
#include <time.h>

#define BREAKS 3
#define ITEMS  32

/* --- consumers */

static void nap_us(uint32_t us)
{
	const struct timespec ts = {.tv_nsec = (long)us * 1000};

	nanosleep(&ts, NULL);
}

/* Consumes a batch; returns false at the end of the queue. */
static bool consume(struct soak_queue *queue, int timeout_ms)
{
	struct rpma_rt_completion items[ITEMS];
	int max = 1 + (int)soak_random(&queue->random, ITEMS);
	int got;
	int i;

	if (timeout_ms < 0)
		got = rpma_rt_queue_poll(queue->queue, items, max);
	else
		got = rpma_rt_queue_wait(queue->queue, items, max, timeout_ms);
	if (got == 0)
		return true;
	if (got == RPMA_RT_E_CLOSED)
		return false;
	CHECK(got > 0);
	for (i = 0; i < got; i++)
		soak_item(queue, &items[i]);
	soak_alive();
	/* a slow consumer: its lanes fill, spill, and are refused */
	if (queue->slow && soak_random(&queue->random, 16) == 0)
		nap_us(500);
	return true;
}

static void *consumer(void *arg)
{
	struct soak_queue *queue = arg;

	while (consume(queue, 1000))
		;
	return NULL;
}

/* Consumes a shared queue: both threads are woken, and one at a time takes and
 * handles items, so that the items of a connection are handled in order. */
static void *worker(void *arg)
{
	struct soak_queue *queue = arg;
	struct pollfd fd = {.events = POLLIN};
	bool open = true;

	MUST(rpma_rt_queue_get_fd(queue->queue, &fd.fd));
	while (open) {
		pthread_mutex_lock(&queue->turn);
		open = consume(queue, -1);
		pthread_mutex_unlock(&queue->turn);
		/* relaxed: a count */
		atomic_fetch_add_explicit(&queue->epoch->sum->taken_shared, 1,
					  memory_order_relaxed);
		if (open && rpma_rt_queue_arm(queue->queue) == 0)
			poll(&fd, 1, 1000);
	}
	return NULL;
}

/* --- disturbance */

static bool is_done(struct soak_epoch *epoch)
{
	/* relaxed: a count */
	return atomic_load_explicit(&epoch->posted, memory_order_relaxed) >=
	       epoch->target;
}

static bool all_gone(struct soak_epoch *epoch)
{
	bool gone;

	pthread_mutex_lock(&epoch->lock);
	gone = epoch->alive == 0;
	pthread_mutex_unlock(&epoch->lock);
	return gone;
}

static void push_message(struct soak_epoch *epoch, uint64_t *random)
{
	struct soak_queue *queue =
		&epoch->sites[soak_random(random, (uint32_t)epoch->sites_count)]
			 .queues[soak_random(random, SOAK_QUEUES)];
	uint64_t n;

	/* relaxed: a count, of this thread alone */
	n = atomic_fetch_add_explicit(&queue->pushed, 1, memory_order_relaxed);
	MUST(rpma_rt_queue_push(queue->queue,
				&(struct rpma_rt_completion){.context = n}));
}

/*
 * Closes the end only while its peer exists: the peer has to notice the close.
 */
static void close_some(struct soak_end *end)
{
	struct soak_end *peer = soak_end_peer(end);

	if (peer == NULL && !end->epoch->deaf)
		return;
	soak_end_close(end);
	if (peer != NULL)
		soak_end_put(peer);
}

/* Calls a random function unrelated to the traffic. */
static void disturb(struct soak_epoch *epoch, uint64_t *random)
{
	struct soak_end *end = soak_end_any(epoch, random);
	int which = (int)soak_random(random, 2);

	if (end == NULL)
		return;
	switch (soak_random(random, 8)) {
	case 0:
		if (soak_random(random, 4) == 0)
			close_some(end);
		break;
	case 1:
		push_message(epoch, random);
		break;
	case 2:
	case 3:
		soak_end_open_route(end, which, random);
		break;
	default:
		/* relaxed: not before the user pointer was set */
		if (!end->passive || atomic_load_explicit(&end->established,
							  memory_order_relaxed))
			soak_pump(end, which, random);
	}
	soak_end_put(end);
}

static void *disturber(void *arg)
{
	struct soak_epoch *epoch = arg;
	uint64_t random = epoch->seed + 1000;

	/* relaxed: an order to stop soon */
	while (!atomic_load_explicit(&epoch->closing, memory_order_relaxed)) {
		disturb(epoch, &random);
		nap_us(soak_random(&random, 400));
	}
	return NULL;
}

static void close_all(struct soak_epoch *epoch)
{
	struct soak_end *end;
	int i;

	for (i = 0; i < SOAK_ENDS; i++) {
		end = soak_end_at(epoch, i);
		if (end != NULL) {
			soak_end_close(end);
			soak_end_put(end);
		}
	}
}

/* --- the ending */

enum ending { CLOSE_ALL, STOP, PULL };

static enum ending draw_ending(struct soak_epoch *epoch)
{
	if (epoch->trouble == SOAK_DEVICE)
		return PULL;
	return soak_random(&epoch->random, 2) ? CLOSE_ALL : STOP;
}

/* Stops living pairs; before, closes all but a few of the last. */
static void begin_end(struct soak_epoch *epoch, enum ending ending)
{
	/* relaxed: an order to stop soon */
	atomic_store_explicit(&epoch->closing, true, memory_order_relaxed);
	if (ending == PULL)
		CHECK(epoch->loop->remove_device(0) == 0);
	else if (ending == CLOSE_ALL)
		close_all(epoch);
}

static void stop_sites(struct soak_epoch *epoch)
{
	int i;

	for (i = 0; i < epoch->sites_count; i++) {
		MUST(rpma_rt_listener_delete(&epoch->sites[i].listener));
		MUST(rpma_rt_stop(epoch->sites[i].rt));
		soak_alive();
	}
}

static void for_queues(struct soak_epoch *epoch,
		       void (*fn)(struct soak_queue *queue))
{
	int i;

	for (i = 0; i < epoch->sites_count * SOAK_QUEUES; i++)
		fn(&epoch->sites[i / SOAK_QUEUES].queues[i % SOAK_QUEUES]);
}

/* --- by threads */

static void start_consumer(struct soak_queue *queue)
{
	CHECK(!pthread_create(&queue->threads[0], NULL,
			      queue->shared ? worker : consumer, queue));
	if (queue->shared)
		CHECK(!pthread_create(&queue->threads[1], NULL, worker, queue));
}

static void join_consumer(struct soak_queue *queue)
{
	CHECK(!pthread_join(queue->threads[0], NULL));
	if (queue->shared)
		CHECK(!pthread_join(queue->threads[1], NULL));
}

static void run_threads(struct soak_epoch *epoch)
{
	enum ending ending = draw_ending(epoch);
	pthread_t thread;

	for_queues(epoch, start_consumer);
	CHECK(!pthread_create(&thread, NULL, disturber, epoch));
	while (!is_done(epoch)) {
		soak_create(epoch, &epoch->random);
		nap_us(200);
	}
	begin_end(epoch, ending);
	CHECK(!pthread_join(thread, NULL));
	while (ending != STOP && !all_gone(epoch)) {
		/* an end may have been made, or requested, after close_all() */
		if (ending == CLOSE_ALL)
			close_all(epoch);
		nap_us(2000);
	}
	stop_sites(epoch);
	for_queues(epoch, join_consumer);
}

/* --- by hand */

static void drain(struct soak_queue *queue)
{
	while (consume(queue, -1))
		;
}

static void take_some(struct soak_queue *queue)
{
	consume(queue, -1);
}

static void round_by_hand(struct soak_epoch *epoch)
{
	int i;

	for (i = 0; i < epoch->sites_count * epoch->pollers; i++)
		CHECK(rpma_rt_poller_run(epoch->sites[i / epoch->pollers].rt,
					 i % epoch->pollers, 64) >= 0);
	for_queues(epoch, take_some);
}

static void run_by_hand(struct soak_epoch *epoch)
{
	enum ending ending = draw_ending(epoch);

	while (!is_done(epoch)) {
		soak_create(epoch, &epoch->random);
		round_by_hand(epoch);
		if (soak_random(&epoch->random, 8) == 0)
			disturb(epoch, &epoch->random);
	}
	begin_end(epoch, ending);
	while (ending != STOP && !all_gone(epoch)) {
		if (ending == CLOSE_ALL)
			close_all(epoch);
		round_by_hand(epoch);
	}
	stop_sites(epoch);
	for_queues(epoch, drain);
}

void soak_epoch_run(struct soak_epoch *epoch)
{
	uint64_t *random = &epoch->random;

	epoch->random = epoch->seed;
	epoch->draws = epoch->seed + 2000;
	epoch->pollers = 1 + (int)soak_random(random, 3);
	epoch->sites_count =
		epoch->cfg->two || soak_random(random, 4) == 0 ? SOAK_SITES : 1;
	epoch->deaf = epoch->trouble == SOAK_CM || epoch->trouble == SOAK_CALLS;
	epoch->life = 8 + (uint32_t)(epoch->target / 50);
	/* relaxed: before any other thread */
	atomic_store_explicit(&epoch->breaks_left,
			      epoch->trouble == SOAK_CQS ? BREAKS : 0,
			      memory_order_relaxed);
	pthread_mutex_init(&epoch->lock, NULL);
	soak_make(epoch);
	soak_trouble_begin(epoch);
	if (epoch->cfg->manual)
		run_by_hand(epoch);
	else
		run_threads(epoch);
	soak_trouble_end(epoch);
	/* relaxed, both: no other thread is left */
	atomic_fetch_add_explicit(
		&epoch->sum->posted,
		atomic_load_explicit(&epoch->posted, memory_order_relaxed),
		memory_order_relaxed);
	soak_unmake(epoch);
	pthread_mutex_destroy(&epoch->lock);
}
