/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cqs.c -- CQs are made, fail and are destroyed, and only threads that use the
 * device wait for the device. The test replaces the verbs that make and destroy
 * CQs and modify queue pairs: the test counts CQs, and holds a call for any
 * time.
 *
 * usage: runtime_cqs [case]
 */

#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "loop.h"
#include "small_cq.h"
#include "stage.h"

#define DEPTH	 32
#define CQ_SIZE	 (2 * DEPTH) /* with the markers, no room for a connection */
#define MANY	 100	     /* pairs */
#define FEW	 3	     /* pairs on a CQ */
#define FEW_LEFT 4

/* ------------------------------------------ between librpma and device --- */

static _Atomic int cqs;			/* existing CQs */
static _Atomic(struct ibv_cq *) newest; /* of them */
static _Thread_local bool is_held;	/* while making a CQ */
static _Atomic bool modify_is_held;	/* the next modify, of any thread */
static _Atomic bool destroy_raises;	/* the next destroy raises an event of
					 * its CQ */
static const struct world *world;	/* for the event */
static sem_t making;			/* a held thread has arrived */
static sem_t let_pass;			/* the thread may go on */

static void wait_for(sem_t *sem)
{
	struct timespec until;

	CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
	until.tv_sec += WORLD_PATIENCE_MS / 1000;
	CHECK(sem_timedwait(sem, &until) == 0);
}

static void hold(void)
{
	CHECK(sem_post(&making) == 0);
	wait_for(&let_pass);
}

__attribute__((visibility("default"))) struct ibv_cq *
ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
	      struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *(*real)(struct ibv_context *, int, void *,
			       struct ibv_comp_channel *, int);

	struct ibv_cq *cq;

	if (is_held && channel != NULL)
		hold();
	/* relaxed: a count */
	atomic_fetch_add_explicit(&cqs, 1, memory_order_relaxed);
	*(void **)&real = dlsym(RTLD_NEXT, "ibv_create_cq");
	cq = real(ctx, cqe, cq_context, channel, comp_vector);
	/* relaxed: read after the first event of a connection. A listener that
	 * asks for the limits of the device makes a CQ without a channel */
	if (channel != NULL)
		atomic_store_explicit(&newest, cq, memory_order_relaxed);
	return cq;
}

__attribute__((visibility("default"))) int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int);

	/* relaxed: semaphores order the rest */
	if (atomic_exchange_explicit(&modify_is_held, false,
				     memory_order_relaxed))
		hold();
	*(void **)&real = dlsym(RTLD_NEXT, "ibv_modify_qp");
	return real(qp, attr, mask);
}

static uint64_t count_events(void)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(world->rt, 0, &stats, sizeof(stats)));
	return stats.events;
}

/* Raises an event; returns when the poller has read the event. */
static void raise_event(struct ibv_cq *cq)
{
	uint64_t begin = world_now_ms();
	uint64_t before = count_events();

	CHECK(loop_get()->spurious_event(cq) == 0);
	while (count_events() == before) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		sched_yield();
	}
}

__attribute__((visibility("default"))) int ibv_destroy_cq(struct ibv_cq *cq)
{
	int (*real)(struct ibv_cq *);
	int ret;

	/* relaxed: set before whatever leads here */
	if (atomic_exchange_explicit(&destroy_raises, false,
				     memory_order_relaxed))
		raise_event(cq);
	*(void **)&real = dlsym(RTLD_NEXT, "ibv_destroy_cq");
	ret = real(cq);
	/* relaxed: a count */
	if (ret == 0)
		atomic_fetch_sub_explicit(&cqs, 1, memory_order_relaxed);
	return ret;
}

static int count_cqs(void)
{
	/* relaxed: a count */
	return atomic_load_explicit(&cqs, memory_order_relaxed);
}

/* --------------------------------------------------------- come and go --- */

static void wait_until_at_most(int count)
{
	uint64_t begin = world_now_ms();

	while (count_cqs() > count) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		sched_yield();
	}
}

/* Large connections have a CQ each, which goes with the connection; the CQ of
 * small connections is left for the next connection. */
static void large__come_and_go(struct stage *s)
{
	static struct world_pair pairs[MANY];
	int before;
	int i;

	for (i = 0; i < MANY; i++)
		stage_connect(s, &pairs[i]);
	before = count_cqs();
	CHECK(before >= 2 * MANY);
	for (i = 0; i < MANY; i++)
		stage_ping(s, &pairs[i], (uint64_t)i);
	for (i = 0; i < MANY - 1; i++)
		stage_disconnect(s, &pairs[i]);
	wait_until_at_most(FEW_LEFT);
	stage_ping(s, &pairs[MANY - 1], 1);
	stage_disconnect(s, &pairs[MANY - 1]);
	/* and begins anew */
	stage_connect(s, &pairs[0]);
	stage_ping(s, &pairs[0], 2);
	stage_disconnect(s, &pairs[0]);
	wait_until_at_most(FEW_LEFT);
}

/* The poller has released the CQ and reads another event of the CQ, while
 * another thread destroys the CQ and waits for the acknowledgement. */
static void event__behind_the_let_go(struct stage *s)
{
	struct world_pair pairs[2];

	if (loop_get() == NULL) {
		printf("not tested, needs the loopback device: ");
		return;
	}
	stage_connect(s, &pairs[0]);
	stage_connect(s, &pairs[1]);
	/* relaxed: the close orders the store */
	atomic_store_explicit(&destroy_raises, true, memory_order_relaxed);
	stage_disconnect(s, &pairs[0]);
	stage_disconnect(s, &pairs[1]);
	wait_until_at_most(1);
	/* relaxed: as above */
	CHECK(!atomic_load_explicit(&destroy_raises, memory_order_relaxed));
}

/* ----------------------------------------------------- making a CQ --- */

struct maker {
	struct stage *stage;
	struct rpma_rt_conn *conn;
};

static struct rpma_rt_conn *
conn_new(const struct stage *s, const struct rpma_rt_conn_cfg *cfg, int poller)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr, "7", cfg,
			    poller, s->aq, NULL, &conn));
	return conn;
}

static void *make(void *arg)
{
	struct maker *maker = arg;

	is_held = true;
	maker->conn = conn_new(maker->stage, maker->stage->cfg, 0);
	is_held = false;
	return NULL;
}

/* READY may come before, of whichever. */
static struct rpma_rt_completion next_closed(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	do
		item = world_next(queue);
	while (item.opcode == RPMA_RT_EVENT_READY);
	CHECK(item.kind == RPMA_RT_EVENT &&
	      item.opcode == RPMA_RT_EVENT_CLOSED);
	return item;
}

static void end(struct stage *s, struct rpma_rt_conn **conn)
{
	struct rpma_rt_completion item;

	MUST(rpma_rt_conn_close(*conn));
	item = next_closed(s->aq);
	CHECK(item.context == (uintptr_t)*conn);
	MUST(rpma_rt_conn_unref(conn));
}

/* Other threads go on: with a queue, on another poller, and on the same poller
 * where there is room. */
static void made__others_go_on(struct stage *s)
{
	struct rpma_rt_conn_cfg *small = world_cfg(1, 1);
	struct maker maker = {.stage = s};
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *first;
	struct rpma_rt_conn *conn;
	struct world_pair pair;
	pthread_t thread;

	stage_connect(s, &pair);
	first = conn_new(s, small, 0);
	CHECK(!pthread_create(&thread, NULL, make, &maker));
	wait_for(&making);
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &queue));
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_conn_set_user(first, s));
	conn = conn_new(s, s->cfg, 1);
	end(s, &conn);
	conn = conn_new(s, small, 0);
	end(s, &conn);
	end(s, &first);
	stage_ping(s, &pair, 3);
	stage_disconnect(s, &pair);
	CHECK(sem_post(&let_pass) == 0);
	CHECK(!pthread_join(thread, NULL));
	end(s, &maker.conn);
	free(small);
}

static void *stop(void *arg)
{
	struct stage *s = arg;

	MUST(rpma_rt_stop(s->world.rt));
	return NULL;
}

/* The connection is made, or refused: the stop waits for either. */
static void *make_or_be_refused(void *arg)
{
	struct maker *maker = arg;
	struct stage *s = maker->stage;
	int ret;

	is_held = true;
	ret = world_conn_new(s->world.rt, s->world.peer, s->world.addr, "7",
			     s->cfg, 0, s->aq, NULL, &maker->conn);
	is_held = false;
	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
	if (ret == 0)
		end(s, &maker->conn);
	return NULL;
}

static void made__stop_meanwhile(struct stage *s)
{
	struct maker maker = {.stage = s};
	pthread_t threads[2];

	CHECK(!pthread_create(&threads[0], NULL, make_or_be_refused, &maker));
	wait_for(&making);
	CHECK(!pthread_create(&threads[1], NULL, stop, s));
	CHECK(sem_post(&let_pass) == 0);
	CHECK(!pthread_join(threads[0], NULL));
	CHECK(!pthread_join(threads[1], NULL));
}

/* ----------------------------------------------------- a broken CQ --- */

static void end_broken(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < FEW; i++) {
		item = next_closed(queue);
		CHECK(item.status == RPMA_RT_REASON_DEVICE);
	}
}

/* Others go on while the connections of the CQ die in turn. */
static void broken__others_go_on(struct stage *s)
{
	struct rpma_rt_conn_cfg *small = world_cfg(1, 1);
	struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR};
	struct world_pair pairs[FEW];
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	int i;

	for (i = 0; i < FEW; i++)
		world_connect(&s->world, small, 0, s->aq, s->pq, &pairs[i]);
	CHECK(count_cqs() == 1);
	/* relaxed: as above */
	event.element.cq = atomic_load_explicit(&newest, memory_order_relaxed);
	atomic_store_explicit(&modify_is_held, true, memory_order_relaxed);
	MUST(rpma_rt_feed_async_event(s->world.rt, s->world.ibv_ctx, &event));
	wait_for(&making);
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &queue));
	MUST(rpma_rt_queue_delete(&queue));
	conn = conn_new(s, small, 0);
	CHECK(count_cqs() == 2); /* not on the broken CQ */
	CHECK(sem_post(&let_pass) == 0);
	end_broken(s->pq);
	end_broken(s->aq);
	end(s, &conn);
	for (i = 0; i < FEW; i++) {
		world_unref(&pairs[i]);
	}
	wait_until_at_most(1);
	free(small);
}

/* ------------------------------------------------------------------------ */

static void run(void (*play)(struct stage *s), int pollers,
		enum rpma_rt_mode mode)
{
	const struct stage_cfg cfg = {
		.pollers = pollers,
		.mode = mode,
		.cq_size = CQ_SIZE,
		.depth = DEPTH,
		.async_fed = true,
	};
	struct stage s;

	small_cq_limit(CQ_SIZE + 2);
	stage_open(&s, &cfg);
	world = &s.world;
	play(&s);
	stage_close(&s);
	CHECK(count_cqs() == 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(struct stage *s);
		int pollers;
	} cases[] = {
		{"large__come_and_go", large__come_and_go, 2},
		{"event__behind_the_let_go", event__behind_the_let_go, 1},
		{"made__others_go_on", made__others_go_on, 2},
		{"broken__others_go_on", broken__others_go_on, 1},
		{"made__stop_meanwhile", made__stop_meanwhile, 2},
	};
	bool has_played = false;
	size_t i;

	CHECK(sem_init(&making, 0, 0) == 0 && sem_init(&let_pass, 0, 0) == 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
			continue;
		run(cases[i].play, cases[i].pollers, RPMA_RT_MODE_ADAPTIVE);
		run(cases[i].play, cases[i].pollers, RPMA_RT_MODE_EVENT);
		printf("%s\n", cases[i].name);
		has_played = true;
	}
	CHECK(has_played); /* a name that no case has is a mistake */
	printf("ok\n");
	return 0;
}
