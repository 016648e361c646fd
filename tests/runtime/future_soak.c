/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future_soak.c -- receives that race everything allowed to their holders: two
 * threads post receives with futures, then poll, wait for a moment, wait for
 * the end of the connection too, cancel, arm a function, lead to one of two
 * queues, hand to the other thread, and drop, at any step, while messages come.
 * Each message is delivered once: by its future, by its function, or by a
 * queue. Every other connection is closed meanwhile: then no message is
 * delivered twice, and every future is complete.
 *
 * Each handle is a separate allocation, freed with its drop.
 *
 * usage: runtime_future_soak [messages [seed]]
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH	 64
#define FUTURES	 48
#define HELD	 24  /* by each thread */
#define MESSAGES 500 /* a connection */
#define LEN	 8u

/* the last action of a thread on a future */
enum { PLAIN, ARMED, CANCELLED };

struct held {
	struct rpma_rt_future *future;
	uint32_t context;
	int state;
};

struct soak {
	struct stage s;
	struct world_pair pair;
	struct rpma_rt_queue *other;
	struct rpma_rt_route *route; /* there */
	uint32_t seed;
	_Atomic uint32_t posted; /* receives taken */
	_Atomic bool is_closing;
	_Atomic uint8_t got[MESSAGES];
	pthread_mutex_t lock;
	struct held mailbox; /* under the lock; future NULL: empty */
	uint32_t next;	     /* likewise: the next context */
	bool is_closed;	     /* of whoever consumes the queue: CLOSED came */
};

struct holder {
	struct soak *soak;
	pthread_t thread;
	uint32_t seed;
	bool consumes; /* the queue */
	struct held held[HELD];
	uint32_t count;
	struct rpma_rt_future closed; /* of the receiving end */
};

static void get(struct soak *soak, uint64_t context)
{
	CHECK(context < MESSAGES);
	/* relaxed: a count */
	CHECK(atomic_fetch_add_explicit(&soak->got[context], 1,
					memory_order_relaxed) == 0);
}

static bool is_closing(const struct soak *soak)
{
	/* relaxed: a hint */
	return atomic_load_explicit(&soak->is_closing, memory_order_relaxed);
}

/* ------------------------------------------------------------- a holder --- */

static void post_one(struct holder *h)
{
	struct soak *soak = h->soak;
	struct held *held = &h->held[h->count];
	struct rpma_rt_recv_wr wr;
	int ret = RPMA_E_AGAIN;

	held->future = malloc(sizeof(*held->future));
	CHECK(held->future);
	pthread_mutex_lock(&soak->lock);
	rpma_rt_prep_recv(&wr, soak->s.mr, 64, LEN, soak->next);
	wr.future = held->future;
	held->context = soak->next;
	held->state = PLAIN;
	if (soak->next < MESSAGES)
		ret = world_post_recv(soak->pair.passive, &wr);
	if (ret == 0) {
		soak->next++;
		h->count++;
		/* release: the receive, to the sender */
		atomic_fetch_add_explicit(&soak->posted, 1,
					  memory_order_release);
	}
	pthread_mutex_unlock(&soak->lock);
	if (ret != 0) {
		free(held->future);
		sched_yield();
	}
	CHECK(ret == 0 || ret == RPMA_E_AGAIN || ret == RPMA_RT_E_CLOSED);
}

static void drop(struct holder *h, uint32_t i)
{
	struct held *held = &h->held[i];
	int ret = rpma_rt_future_drop(held->future);

	CHECK(ret == 0 || (ret == 1 && held->state == ARMED));
	free(held->future);
	*held = h->held[--h->count];
}

/* The future is complete, with the completion. */
static void take(struct holder *h, uint32_t i,
		 const struct rpma_rt_completion *cmpl)
{
	const struct held *held = &h->held[i];

	CHECK(cmpl->context == held->context);
	if (cmpl->status == IBV_WC_SUCCESS)
		get(h->soak, cmpl->context);
	else
		CHECK(held->state == CANCELLED || is_closing(h->soak));
	drop(h, i);
}

static void on_result(const struct rpma_rt_completion *cmpl, void *arg)
{
	if (cmpl->status == IBV_WC_SUCCESS)
		get(arg, cmpl->context);
	else
		CHECK(is_closing(arg));
}

static void cancel(struct holder *h, uint32_t i)
{
	enum rpma_rt_cancelled cancelled;

	MUST(rpma_rt_future_cancel(h->held[i].future, &cancelled));
	if (cancelled == RPMA_RT_CANCELLED_DETACHED)
		h->held[i].state = CANCELLED;
}

static void swap(struct holder *h, uint32_t i)
{
	struct soak *soak = h->soak;
	struct held mine = h->held[i];

	pthread_mutex_lock(&soak->lock);
	if (soak->mailbox.future != NULL)
		h->held[i] = soak->mailbox;
	else
		h->held[i] = h->held[--h->count];
	soak->mailbox = mine;
	pthread_mutex_unlock(&soak->lock);
}

/* Waits for the future, or for the end of the connection. */
static int wait_for(struct holder *h, uint32_t i,
		    struct rpma_rt_completion *cmpl)
{
	struct rpma_rt_future futures[2] = {*h->held[i].future, h->closed};
	int count = h->closed.opaque[0] == 0 ? 1 : 2;
	int ret = rpma_rt_future_wait_some(futures, count, 1,
					   (int)world_roll(&h->seed, 2));

	CHECK(ret >= 0 || (ret == RPMA_RT_E_FAILED && count == 1));
	if (count == 2 && rpma_rt_future_poll(&h->closed, cmpl) == 1) {
		/* posted work is complete before */
		CHECK(is_closing(h->soak));
		MUST_ANSWER(1, rpma_rt_future_poll(h->held[i].future, cmpl));
	}
	if (count == 2 && world_roll(&h->seed, 4) == 0) {
		MUST(rpma_rt_future_drop(&h->closed));
		ret = rpma_rt_conn_future(h->soak->pair.passive,
					  RPMA_RT_EVENT_CLOSED, &h->closed);
		CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
	}
	return rpma_rt_future_poll(h->held[i].future, cmpl);
}

static void lead(struct holder *h, uint32_t i)
{
	const struct rpma_rt_future *future = h->held[i].future;
	struct rpma_rt_route *route = h->soak->route;
	int ret;

	if (world_roll(&h->seed, 2))
		ret = rpma_rt_future_then(future, on_result, h->soak);
	else
		ret = rpma_rt_future_deliver(
			future, world_roll(&h->seed, 2) ? route : NULL);
	CHECK(ret == 0 || ret == RPMA_RT_E_BUSY);
	if (ret == 0)
		h->held[i].state = ARMED;
}

static void act_on(struct holder *h, uint32_t i)
{
	struct rpma_rt_future *future = h->held[i].future;
	struct rpma_rt_completion cmpl;
	int ret = 0;

	switch (world_roll(&h->seed, 8)) {
	case 0:
	case 1:
		if (h->held[i].state != ARMED)
			ret = rpma_rt_future_poll(future, &cmpl);
		break;
	case 2:
		if (h->held[i].state != ARMED)
			ret = world_roll(&h->seed, 2)
				      ? wait_for(h, i, &cmpl)
				      : rpma_rt_future_wait(
						future, &cmpl,
						(int)world_roll(&h->seed, 2));
		break;
	case 3:
		cancel(h, i);
		return;
	case 4:
		if (h->held[i].state == PLAIN)
			lead(h, i);
		return;
	case 5:
		swap(h, i);
		return;
	default:
		drop(h, i);
		return;
	}
	CHECK(ret == 0 || ret == 1);
	if (ret == 1)
		take(h, i, &cmpl);
}

/*
 * Takes messages of futures that were dropped, cancelled, or led to the queue.
 */
static void consume_from(struct soak *soak, struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion items[16];
	int n = rpma_rt_queue_poll(queue, items, 16);
	int i;

	CHECK(n >= 0);
	for (i = 0; i < n; i++) {
		if (items[i].kind == RPMA_RT_COMPLETION &&
		    items[i].status == IBV_WC_SUCCESS)
			get(soak, items[i].context);
		soak->is_closed |= rpma_rt_completion_event(&items[i]) ==
				   RPMA_RT_EVENT_CLOSED;
	}
}

static void consume(struct soak *soak)
{
	consume_from(soak, soak->other);
	consume_from(soak, soak->s.pq);
}

static void *holder_main(void *arg)
{
	struct holder *h = arg;
	struct soak *soak = h->soak;

	/* acquire: pairs with the posts */
	while (h->count > 0 ||
	       (!is_closing(soak) &&
		atomic_load_explicit(&soak->posted, memory_order_acquire) <
			MESSAGES)) {
		if (h->count < HELD && world_roll(&h->seed, 2))
			post_one(h);
		if (h->count > 0)
			act_on(h, world_roll(&h->seed, h->count));
		if (h->consumes)
			consume(soak);
	}
	MUST(rpma_rt_future_drop(&h->closed));
	return NULL;
}

/* -------------------------------------------------------- a connection --- */

static bool has_all(const struct soak *soak)
{
	uint32_t i;

	for (i = 0; i < MESSAGES; i++) {
		/* relaxed: a count */
		if (!atomic_load_explicit(&soak->got[i], memory_order_relaxed))
			return false;
	}
	return true;
}

/* Sends as many as there are receives, up to count. */
static void send_all(struct soak *soak, uint32_t count)
{
	struct rpma_rt_future future;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_wr wr;
	uint32_t sent = 0;
	uint64_t until = world_now_ms() + WORLD_PATIENCE_MS;

	while (sent < count) {
		CHECK(world_now_ms() < until);
		/* acquire: pairs with the posts */
		if (sent ==
		    atomic_load_explicit(&soak->posted, memory_order_acquire)) {
			sched_yield();
			continue;
		}
		rpma_rt_prep_send(&wr, soak->s.mr, 0, LEN, 0, sent);
		wr.future = &future;
		if (world_post_send(soak->pair.active, &wr) == RPMA_E_AGAIN) {
			sched_yield();
			continue;
		}
		sent++;
		if (world_roll(&soak->seed, 2)) {
			MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl,
							   WORLD_PATIENCE_MS));
			CHECK(cmpl.context == sent - 1);
		}
		MUST(rpma_rt_future_drop(&future));
	}
}

static void drop_mailbox(struct soak *soak)
{
	if (soak->mailbox.future == NULL)
		return;
	CHECK(rpma_rt_future_drop(soak->mailbox.future) >= 0);
	free(soak->mailbox.future);
	soak->mailbox.future = NULL;
}

static void begin(struct soak *soak, struct holder holders[2])
{
	int i;

	stage_connect(&soak->s, &soak->pair);
	MUST(rpma_rt_route_open(soak->pair.passive, RPMA_RT_RECV_SIDE,
				soak->other, &soak->route));
	/* the poller has called the functions set before, and the functions set
	 * after CLOSED too */
	soak->next = 0;
	soak->is_closed = false;
	/* relaxed, both: the threads are not there yet */
	atomic_store_explicit(&soak->posted, 0, memory_order_relaxed);
	atomic_store_explicit(&soak->is_closing, false, memory_order_relaxed);
	memset((void *)soak->got, 0, sizeof(soak->got));
	memset(holders, 0, 2 * sizeof(*holders));
	for (i = 0; i < 2; i++) {
		MUST(rpma_rt_conn_future(soak->pair.passive,
					 RPMA_RT_EVENT_CLOSED,
					 &holders[i].closed));
		holders[i].soak = soak;
		holders[i].seed = world_roll(&soak->seed, 1u << 20);
		holders[i].consumes = i == 0;
		CHECK(pthread_create(&holders[i].thread, NULL, holder_main,
				     &holders[i]) == 0);
	}
}

static void join(struct holder holders[2])
{
	int i;

	for (i = 0; i < 2; i++)
		CHECK(pthread_join(holders[i].thread, NULL) == 0);
}

static void live(struct soak *soak)
{
	uint64_t until = world_now_ms() + WORLD_PATIENCE_MS;
	struct holder holders[2];

	begin(soak, holders);
	send_all(soak, MESSAGES);
	join(holders);
	drop_mailbox(soak);
	while (!has_all(soak)) {
		CHECK(world_now_ms() < until);
		consume(soak);
	}
	MUST(rpma_rt_conn_close(soak->pair.active));
}

static void die(struct soak *soak)
{
	struct holder holders[2];

	begin(soak, holders);
	send_all(soak, 1 + world_roll(&soak->seed, MESSAGES / 2));
	/* relaxed: a hint */
	atomic_store_explicit(&soak->is_closing, true, memory_order_relaxed);
	MUST(rpma_rt_conn_close(soak->pair.passive));
	join(holders);
	drop_mailbox(soak);
}

static void part(struct soak *soak)
{
	uint64_t until = world_now_ms() + WORLD_PATIENCE_MS;
	struct rpma_rt_completion item;

	while (!soak->is_closed) {
		CHECK(world_now_ms() < until);
		consume(soak);
	}
	do {
		item = world_next(soak->s.aq);
	} while (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	world_unref(&soak->pair);
}

int main(int argc, char **argv)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 10000;
	struct soak *soak = calloc(1, sizeof(*soak));
	uint32_t i;

	CHECK(soak);
	soak->seed = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
	printf("seed %u\n", soak->seed);
	pthread_mutex_init(&soak->lock, NULL);
	stage_open(&soak->s, &cfg);
	soak->s.cfg->futures = FUTURES;
	MUST(rpma_rt_queue_new(soak->s.world.rt, NULL, &soak->other));
	for (i = 0; i < count / MESSAGES; i++) {
		if (i % 2 == 0)
			live(soak);
		else
			die(soak);
		part(soak);
	}
	MUST(rpma_rt_queue_delete(&soak->other));
	stage_close(&soak->s);
	pthread_mutex_destroy(&soak->lock);
	free(soak);
	return 0;
}
