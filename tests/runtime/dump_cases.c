/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* dump_cases.c -- see dump_cases.h. */

#define _GNU_SOURCE
#include "dump_cases.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "dump_text.h"
#include "loop.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

/* -------------------------------------------------------------- scenes --- */

void scene_open(struct scene *c, enum rpma_rt_mode mode)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = mode, .depth = CASES_DEPTH};

	memset(c, 0, sizeof(*c));
	CHECK(sem_init(&c->entered, 0, 0) == 0);
	CHECK(sem_init(&c->leave, 0, 0) == 0);
	stage_open(&c->s, &cfg);
	c->s.cfg->waiting = RPMA_RT_NO_WAITING;
}

/* Gives back what items carry: the handle of a REQUEST. */
static void drop_items(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	while (rpma_rt_queue_poll(queue, &item, 1) > 0)
		;
}

void scene_close(struct scene *c)
{
	MUST(rpma_rt_stop(c->s.world.rt));
	drop_items(c->s.aq);
	drop_items(c->s.pq);
	if (c->has_future)
		MUST(rpma_rt_future_drop(&c->future));
	MUST(rpma_rt_shards_delete(&c->shards));
	world_unref(&c->pair);
	MUST(rpma_rt_listener_delete(&c->listener));
	MUST(rpma_rt_srq_delete(&c->srq));
	MUST(rpma_rt_pool_delete(&c->pool));
	if (c->work != NULL)
		drop_items(c->work);
	MUST(rpma_rt_queue_delete(&c->work));
	sem_destroy(&c->entered);
	sem_destroy(&c->leave);
	stage_close(&c->s);
}

static void connect_pair(struct scene *c)
{
	stage_connect(&c->s, &c->pair);
}

static void name_conn(struct scene *c, const struct rpma_rt_conn *conn)
{
	snprintf(c->object, sizeof(c->object), "connection \"%s\"",
		 rpma_rt_conn_get_name(conn));
}

static void make_queue(struct scene *c, const char *name, bool shared)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	cfg.name = name;
	cfg.shared = shared;
	MUST(rpma_rt_queue_new(c->s.world.rt, &cfg, &c->work));
	snprintf(c->object, sizeof(c->object), "queue \"%s\"", name);
}

static void await_items(struct rpma_rt_queue *queue, uint64_t count)
{
	struct rpma_rt_queue_stats stats;

	do {
		MUST(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)));
	} while (stats.backlog < count);
}

/* CLOSED is out before the connection has left the list. */
static void await_ended(struct scene *c)
{
	bool is_there = true;
	char *text;

	while (is_there) {
		text = dump_text(c->s.world.rt, RPMA_RT_DUMP_HUMAN);
		is_there = strstr(text, ", deleting (") != NULL;
		free(text);
	}
}

/* -------------------------------------------------------------- queues --- */

static void message_not_taken(struct scene *c)
{
	make_queue(c, "work", false);
	MUST(rpma_rt_queue_push(c->work,
				&(struct rpma_rt_completion){.context = 1}));
}

static void take_message(struct scene *c)
{
	struct rpma_rt_completion item = world_next(c->work);

	CHECK(item.kind == RPMA_RT_MESSAGE);
}

static void completion_not_taken(struct scene *c)
{
	connect_pair(c);
	make_queue(c, "work", false);
	MUST(rpma_rt_conn_set_queue(c->pair.active, c->work));
	world_event(c->s.aq, RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_write(c->pair.active, c->s.remote, 0, c->s.mr, 64, 8,
			   ALWAYS, 7));
	await_items(c->work, 1);
}

static void take_completion(struct scene *c)
{
	stage_completion(c->work, 7, IBV_WC_SUCCESS);
}

#ifndef __SANITIZE_THREAD__ /* which delays signals to the next system call */

static int to_handler[2];
static int from_handler[2];

static void stop_here(int signal)
{
	int saved = errno;
	char byte = 0;

	(void)signal;
	CHECK(write(from_handler[1], &byte, 1) == 1);
	CHECK(read(to_handler[0], &byte, 1) == 1);
	errno = saved;
}

static void *take_all(void *arg)
{
	struct scene *c = arg;
	struct rpma_rt_completion item;

	pthread_setname_np(pthread_self(), "worker");
	/* relaxed: the loop may end a little later */
	while (!atomic_load_explicit(&c->is_over, memory_order_relaxed)) {
		if (rpma_rt_queue_poll(c->work, &item, 1) > 0)
			/* relaxed: a count */
			atomic_fetch_add_explicit(&c->taken, 1,
						  memory_order_relaxed);
	}
	return NULL;
}

static bool is_inside(struct scene *c)
{
	char *text = dump_text(c->s.world.rt, RPMA_RT_DUMP_JSON);
	const char *at = strstr(text, "\"name\":\"workers\"");
	bool is;

	CHECK(at != NULL);
	at = strstr(at, "\"consumer_inside\":");
	is = strncmp(at, "\"consumer_inside\":true", 22) == 0 &&
	     strncmp(strstr(at, "\"inside_thread\":"),
		     "\"inside_thread\":\"worker\"", 24) == 0;
	free(text);
	return is;
}

/* Stops the worker anywhere inside a call on the queue. */
static void worker_stuck(struct scene *c)
{
	const struct sigaction action = {.sa_handler = stop_here};
	char byte = 0;

	make_queue(c, "workers", true);
	CHECK(pipe(to_handler) == 0 && pipe(from_handler) == 0);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(pthread_create(&c->worker, NULL, take_all, c) == 0);
	for (;;) {
		CHECK(pthread_kill(c->worker, SIGUSR1) == 0);
		CHECK(read(from_handler[0], &byte, 1) == 1);
		if (is_inside(c))
			break;
		CHECK(write(to_handler[1], &byte, 1) == 1);
	}
	MUST(rpma_rt_queue_push(c->work,
				&(struct rpma_rt_completion){.context = 1}));
}

static void let_worker_go(struct scene *c)
{
	char byte = 0;
	int i;

	CHECK(write(to_handler[1], &byte, 1) == 1);
	/* relaxed, both: a count, a flag */
	while (atomic_load_explicit(&c->taken, memory_order_relaxed) == 0)
		;
	atomic_store_explicit(&c->is_over, true, memory_order_relaxed);
	pthread_join(c->worker, NULL);
	for (i = 0; i < 2; i++) {
		close(to_handler[i]);
		close(from_handler[i]);
	}
}

#endif

/* ------------------------------------------------------------- pollers --- */

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		CHECK(errno == EINTR);
}

static void stays(const struct rpma_rt_completion *item, void *arg)
{
	struct scene *c = arg;

	if (item->kind != RPMA_RT_COMPLETION || item->status != IBV_WC_SUCCESS)
		return;
	sem_post(&c->entered);
	wait_for(&c->leave);
}

static void function_long(struct scene *c)
{
	struct rpma_rt_recv_wr wr = {.dst = c->s.mr, .len = 64};

	connect_pair(c);
	MUST(rpma_rt_route_open_callback(c->pair.passive, RPMA_RT_RECV_SIDE,
					 stays, c, &c->route));
	wr.route = c->route;
	MUST(world_post_recv(c->pair.passive, &wr));
	/* meanwhile no item of the connection waits */
	MUST(rpma_rt_send(c->pair.active, c->s.mr, 64, 8,
			  RPMA_F_COMPLETION_ON_ERROR, 1));
	wait_for(&c->entered);
	snprintf(c->object, sizeof(c->object),
		 "poller 0: it has been inside a function of connection \"%s\"",
		 rpma_rt_conn_get_name(c->pair.passive));
}

static void let_function_go(struct scene *c)
{
	sem_post(&c->leave);
	dump_text_await_sleep(c->s.world.rt);
}

static void poller_stuck(struct scene *c)
{
	snprintf(c->object, sizeof(c->object), "poller 0");
}

static void write_of_unrun(struct scene *c)
{
	snprintf(c->object, sizeof(c->object), "poller 0");
	MUST(rpma_rt_write(c->pair.active, c->s.remote, 0, c->s.mr, 64, 8,
			   ALWAYS, 7));
}

/* The poller belongs to the calling thread, whose waits run the poller. */
static void connect_by_hand(struct scene *c)
{
	MUST(rpma_rt_poller_attach(c->s.world.rt, 0));
	connect_pair(c);
}

static void poller_not_run(struct scene *c)
{
	connect_by_hand(c);
	write_of_unrun(c);
}

static void poller_of_nobody(struct scene *c)
{
	connect_by_hand(c);
	MUST(rpma_rt_poller_release(c->s.world.rt, 0));
	write_of_unrun(c);
}

static void run_poller(struct scene *c)
{
	while (rpma_rt_poller_run(c->s.world.rt, 0, 1) <= 0)
		;
	stage_completion(c->s.aq, 7, IBV_WC_SUCCESS);
}

/* --------------------------------------------------------- connections --- */

static void begin(struct scene *c)
{
	struct world *w = &c->s.world;

	c->listener = world_listen(w, c->s.cfg, c->s.pq);
	MUST(world_conn_new(w->rt, w->peer, w->addr, w->port, c->s.cfg, 0,
			    c->s.aq, NULL, &c->pair.active));
}

static void connect_missing(struct scene *c)
{
	begin(c);
	world_event(c->s.aq, RPMA_RT_EVENT_READY);
	name_conn(c, c->pair.active);
}

static void close_active(struct scene *c)
{
	MUST(rpma_rt_conn_close(c->pair.active));
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
}

static void request_ignored(struct scene *c)
{
	struct rpma_rt_completion item;

	connect_missing(c);
	MUST(rpma_rt_conn_connect(c->pair.active, NULL));
	item = world_event(c->s.pq, RPMA_RT_EVENT_REQUEST);
	c->pair.passive = rpma_rt_completion_conn(&item);
	name_conn(c, c->pair.passive);
}

/* Waits for a future, in a scene without queues. */
static struct rpma_rt_completion await_future(struct rpma_rt_future *future)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &item, WORLD_PATIENCE_MS));
	MUST_ANSWER(0, rpma_rt_future_drop(future));
	return item;
}

static void connect_missing_alone(struct scene *c)
{
	struct world *w = &c->s.world;
	struct rpma_rt_future ready;

	c->s.cfg->futures = 1;
	c->listener = world_listen(w, c->s.cfg, NULL);
	MUST(world_conn_new(w->rt, w->peer, w->addr, w->port, c->s.cfg, 0, NULL,
			    NULL, &c->pair.active));
	MUST(rpma_rt_conn_future(c->pair.active, RPMA_RT_EVENT_READY, &ready));
	await_future(&ready);
	name_conn(c, c->pair.active);
}

static void request_ignored_alone(struct scene *c)
{
	struct rpma_rt_completion item;
	struct rpma_rt_future request;

	connect_missing_alone(c);
	MUST(rpma_rt_conn_connect(c->pair.active, NULL));
	MUST(rpma_rt_next_future(
		&(struct rpma_rt_source){.listener = c->listener}, &request));
	item = await_future(&request);
	c->pair.passive = rpma_rt_completion_conn(&item);
	name_conn(c, c->pair.passive);
}

static void answer_request(struct scene *c)
{
	MUST(rpma_rt_conn_accept(c->pair.passive, NULL));
	world_event(c->s.aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(c->s.pq, RPMA_RT_EVENT_ESTABLISHED);
}

static void send_without_receive(struct scene *c)
{
	connect_pair(c);
	MUST(rpma_rt_send(c->pair.active, c->s.mr, 64, 8, ALWAYS, 1));
	name_conn(c, c->pair.active);
}

static void receive_one(struct scene *c)
{
	MUST(rpma_rt_recv(c->pair.passive, c->s.mr, 0, 64, 1));
	stage_completion(c->s.pq, 1, IBV_WC_SUCCESS);
	stage_completion(c->s.aq, 1, IBV_WC_SUCCESS);
}

static void nothing_posted(struct scene *c)
{
	send_without_receive(c);
	name_conn(c, c->pair.passive);
}

static void receives_used_up(struct scene *c)
{
	uint64_t i;

	connect_pair(c);
	for (i = 0; i < CASES_DEPTH; i++)
		stage_ping(&c->s, &c->pair, i);
	name_conn(c, c->pair.passive);
}

static void post_receive(struct scene *c)
{
	MUST(rpma_rt_recv(c->pair.passive, c->s.mr, 0, 64, 1));
}

static void credit_used_up(struct scene *c)
{
	uint64_t i;

	connect_pair(c);
	for (i = 0; i < CASES_DEPTH; i++)
		MUST(rpma_rt_send(c->pair.active, c->s.mr, 64, 8, ALWAYS, i));
	CHECK(rpma_rt_send(c->pair.active, c->s.mr, 64, 8, ALWAYS, i) ==
	      RPMA_E_AGAIN);
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
	name_conn(c, c->pair.active);
}

static void receive_all(struct scene *c)
{
	struct rpma_rt_completion item;
	uint64_t i;

	for (i = 0; i < CASES_DEPTH; i++)
		MUST(rpma_rt_recv(c->pair.passive, c->s.mr, 0, 64, i));
	for (i = 0; i < CASES_DEPTH; i++)
		stage_completion(c->s.pq, i, IBV_WC_SUCCESS);
	for (i = 0; i < CASES_DEPTH + 1; i++) {
		item = world_next(c->s.aq);
		CHECK(item.kind == RPMA_RT_COMPLETION ||
		      item.kind == RPMA_RT_WRITABLE);
	}
}

static uint64_t sleeps(struct scene *c)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(c->s.world.rt, 0, &stats, sizeof(stats)));
	return stats.sleeps;
}

/*
 * The control thread wakes the poller for the drain, some time after the call.
 */
static void drain_for_ever(struct scene *c)
{
	uint64_t before;

	send_without_receive(c);
	dump_text_await_sleep(c->s.world.rt);
	before = sleeps(c);
	MUST(rpma_rt_conn_drain(c->pair.active, 0));
	while (sleeps(c) == before)
		;
}

static void take_closed(struct scene *c)
{
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	await_ended(c);
}

static void end_both(struct scene *c)
{
	MUST(rpma_rt_conn_close(c->pair.active));
	stage_completion(c->s.aq, 1, IBV_WC_WR_FLUSH_ERR);
	take_closed(c);
}

static _Thread_local bool is_poster;

static void stay_in_post(enum rpma_loopback_point point, const void *object,
			 void *arg)
{
	struct scene *c = arg;

	(void)object;
	if (point != RPMA_LOOPBACK_POST_SEND || !is_poster)
		return;
	sem_post(&c->entered);
	wait_for(&c->leave);
}

static void *post_one(void *arg)
{
	struct scene *c = arg;

	is_poster = true;
	MUST(rpma_rt_write(c->pair.active, c->s.remote, 0, c->s.mr, 64, 8,
			   ALWAYS, 7));
	return NULL;
}

/* The connection waits for the thread, which the device keeps. */
static void close_while_inside(struct scene *c)
{
	connect_pair(c);
	loop_get()->set_hook(stay_in_post, c);
	CHECK(pthread_create(&c->worker, NULL, post_one, c) == 0);
	wait_for(&c->entered);
	MUST(rpma_rt_conn_close(c->pair.active));
	name_conn(c, c->pair.active);
}

static void let_poster_go(struct scene *c)
{
	struct rpma_rt_completion item;

	sem_post(&c->leave);
	CHECK(pthread_join(c->worker, NULL) == 0);
	loop_get()->set_hook(NULL, NULL);
	item = world_next(c->s.aq); /* succeeded, or flushed */
	CHECK(item.kind == RPMA_RT_COMPLETION && item.context == 7);
	take_closed(c);
}

/* ------------------------------------------------------------- deletes --- */

static void delete_used_queue(struct scene *c)
{
	struct rpma_rt_queue *queue = c->s.pq;

	connect_pair(c);
	CHECK(rpma_rt_queue_delete(&queue) == RPMA_RT_E_BUSY);
	snprintf(c->object, sizeof(c->object),
		 "rpma_rt_queue_delete() was refused, and connection \"%s\"",
		 rpma_rt_conn_get_name(c->pair.passive));
}

static void delete_with_handles(struct scene *c)
{
	struct rpma_rt *rt = c->s.world.rt;

	connect_pair(c);
	CHECK(rpma_rt_delete(&rt) == RPMA_RT_E_BUSY);
	name_conn(c, c->pair.active);
}

static void delete_with_future(struct scene *c)
{
	struct rpma_rt *rt = c->s.world.rt;

	c->s.cfg->futures = 2;
	connect_pair(c);
	MUST(rpma_rt_conn_future(c->pair.active, RPMA_RT_EVENT_CLOSED,
				 &c->future));
	c->has_future = true;
	CHECK(rpma_rt_delete(&rt) == RPMA_RT_E_BUSY);
	snprintf(c->object, sizeof(c->object), "runtime: 1 futures that");
}

/* They are never run. */
static void no_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void no_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	(void)shard;
	(void)message;
	(void)arg;
}

static void delete_with_shards(struct scene *c)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt *rt = c->s.world.rt;

	cfg.item_fn = no_item;
	cfg.message_fn = no_message;
	MUST(rpma_rt_shards_new(rt, &cfg, &c->shards));
	CHECK(rpma_rt_delete(&rt) == RPMA_RT_E_BUSY);
	snprintf(c->object, sizeof(c->object), "queue \"shard 0\"");
}

static void delete_with_lease(struct scene *c)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;

	cfg.name = "lent";
	cfg.peer = c->s.world.peer;
	cfg.count = 2 * CASES_DEPTH;
	cfg.slot_size = 64;
	MUST(rpma_rt_pool_new(c->s.world.rt, &cfg, &c->pool));
	MUST(rpma_rt_pool_take(c->pool, &c->leases[0]));
	CHECK(rpma_rt_pool_delete(&c->pool) == RPMA_RT_E_BUSY);
	snprintf(c->object, sizeof(c->object), "pool \"lent\"");
}

static void delete_pool_unused(struct scene *c)
{
	MUST(rpma_rt_lease_release(&c->leases[0]));
	MUST(rpma_rt_pool_delete(&c->pool));
}

/* ---------------------------------------------- SRQs, pools, listeners --- */

static void connect_with_srq(struct scene *c)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	cfg.peer = c->s.world.peer;
	cfg.queue = c->s.pq;
	cfg.srq_size = CASES_DEPTH;
	MUST(rpma_rt_srq_new(c->s.world.rt, &cfg, &c->srq));
	c->s.cfg->srqs = &c->srq;
	c->s.cfg->srq_count = 1;
	connect_pair(c);
	snprintf(c->object, sizeof(c->object), "SRQ 2 of poller 0");
}

static void fill_srq(struct scene *c)
{
	MUST(rpma_rt_srq_recv(c->srq, c->s.mr, 0, 64, 1));
}

static void delete_used_srq(struct scene *c)
{
	connect_with_srq(c);
	fill_srq(c);
	CHECK(rpma_rt_srq_delete(&c->srq) == RPMA_RT_E_BUSY);
}

static void delete_srq_unused(struct scene *c)
{
	MUST(rpma_rt_conn_close(c->pair.active));
	take_closed(c);
	MUST(rpma_rt_srq_delete(&c->srq));
}

/* The program keeps every lease: no receive can be posted. */
static void keep_all_leases(struct scene *c)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	int i;

	cfg.name = "kept";
	cfg.peer = c->s.world.peer;
	cfg.count = 3 * CASES_DEPTH;
	cfg.sends = RPMA_RT_POOL_NO_SENDS;
	cfg.slot_size = 64;
	MUST(rpma_rt_pool_new(c->s.world.rt, &cfg, &c->pool));
	for (i = 0; i < 3 * CASES_DEPTH; i++)
		MUST(rpma_rt_pool_take(c->pool, &c->leases[i]));
	c->s.cfg->pool = c->pool;
	connect_pair(c);
	snprintf(c->object, sizeof(c->object), "pool \"kept\"");
}

static void give_all_leases(struct scene *c)
{
	int i;

	for (i = 0; i < 3 * CASES_DEPTH; i++)
		MUST(rpma_rt_lease_release(&c->leases[i]));
}

/* The receives of the two ends are one more than the slots for receives. */
static void connect_with_short_pool(struct scene *c)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;

	cfg.name = "short";
	cfg.peer = c->s.world.peer;
	cfg.count = 2 * (2 * CASES_DEPTH - 1); /* half of them for sends */
	cfg.slot_size = 64;
	MUST(rpma_rt_pool_new(c->s.world.rt, &cfg, &c->pool));
	c->s.cfg->pool = c->pool;
	connect_pair(c);
	snprintf(c->object, sizeof(c->object), "pool \"short\"");
}

static void close_pair(struct scene *c)
{
	MUST(rpma_rt_conn_close(c->pair.active));
	take_closed(c);
	await_ended(c);
}

static void listener_refuses(struct scene *c)
{
	struct world *w = &c->s.world;

	make_queue(c, "closed", false);
	c->listener = world_listen(w, c->s.cfg, c->work);
	MUST(rpma_rt_queue_close(c->work));
	MUST(world_conn_new(w->rt, w->peer, w->addr, w->port, c->s.cfg, 0,
			    c->s.aq, NULL, &c->pair.active));
	world_event(c->s.aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(c->pair.active, NULL));
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	await_ended(c);
	snprintf(c->object, sizeof(c->object), "at port %s: ", w->port);
}

static void long_ago(struct scene *c)
{
	(void)c;
	dump_text_add_ahead_all(60000);
}

#define EVENT  .mode = RPMA_RT_MODE_EVENT
#define MANUAL .mode = RPMA_RT_MODE_MANUAL

const struct dump_case dump_cases[] = {
	{"queue_not_polled", "has ever taken", EVENT,
	 .provoke = message_not_taken, .mend = take_message},
	{"queue_not_polled",
	 NULL,
	 {"receives_missing"},
	 EVENT,
	 .provoke = completion_not_taken,
	 .mend = take_completion},
#ifndef __SANITIZE_THREAD__
	{"worker_stuck", "(worker) is inside a call", EVENT,
	 .provoke = worker_stuck, .mend = let_worker_go},
#endif
	{"function_long", NULL, EVENT, .is_awake = true,
	 .provoke = function_long, .mend = let_function_go},
	{"poller_stuck", NULL, .mode = RPMA_RT_MODE_BUSY, .is_awake = true,
	 .provoke = poller_stuck},
	{"poller_not_run",
	 "which it belongs to",
	 {"receives_missing"},
	 MANUAL,
	 .is_awake = true,
	 .provoke = poller_not_run,
	 .mend = run_poller},
	{"poller_not_run",
	 "belongs to no thread",
	 {"receives_missing"},
	 MANUAL,
	 .is_awake = true,
	 .provoke = poller_of_nobody,
	 .mend = run_poller},
	{"connect_missing", NULL, EVENT, .provoke = connect_missing,
	 .mend = close_active},
	{"connect_missing", "by rpma_rt_conn_future()", EVENT,
	 .provoke = connect_missing_alone},
	{"request_ignored",
	 "by rpma_rt_next_future()",
	 {"no_answer"},
	 EVENT,
	 .provoke = request_ignored_alone},
	{"request_ignored",
	 "with ",
	 {"no_answer"},
	 EVENT,
	 .provoke = request_ignored,
	 .mend = answer_request},
	{"no_answer",
	 NULL,
	 {"request_ignored"},
	 EVENT,
	 .provoke = request_ignored,
	 .mend = answer_request},
	{"send_waits",
	 "has posted no receive",
	 {"receives_missing"},
	 EVENT,
	 .provoke = send_without_receive,
	 .mend = receive_one},
	{"receives_missing",
	 "nothing was ever posted",
	 {"send_waits"},
	 EVENT,
	 .provoke = nothing_posted,
	 .mend = receive_one},
	{"receives_missing", "are used up", EVENT, .provoke = receives_used_up,
	 .mend = post_receive},
	{"credit_used_up",
	 NULL,
	 {"send_waits", "receives_missing"},
	 EVENT,
	 .provoke = credit_used_up,
	 .mend = receive_all},
	{"closing_long",
	 "it is drained",
	 {"receives_missing"},
	 EVENT,
	 .provoke = drain_for_ever,
	 .mend = end_both},
	{"closing_long",
	 "a thread is inside a post on it",
	 {"receives_missing"},
	 EVENT,
	 .of_loopback = true,
	 .provoke = close_while_inside,
	 .mend = let_poster_go},
	{"delete_busy",
	 NULL,
	 {"receives_missing"},
	 EVENT,
	 .is_at_once = true,
	 .provoke = delete_used_queue},
	{"delete_busy", "rpma_rt_conn_unref()", EVENT, .is_at_once = true,
	 .is_awake = true, .provoke = delete_with_handles},
	{"delete_busy", "was refused: 2 connections", EVENT, .is_at_once = true,
	 .provoke = delete_used_srq, .mend = delete_srq_unused},
	{"delete_busy", "rpma_rt_future_drop()", EVENT, .is_at_once = true,
	 .is_awake = true, .provoke = delete_with_future},
	{"delete_busy", "rpma_rt_shards_delete()", MANUAL, .is_at_once = true,
	 .is_awake = true, .provoke = delete_with_shards},
	{"delete_busy", "rpma_rt_pool_delete() was refused", EVENT,
	 .is_at_once = true, .provoke = delete_with_lease,
	 .mend = delete_pool_unused},
	{"srq_dry", NULL, EVENT, .provoke = connect_with_srq, .mend = fill_srq},
	{"pool_dry", "none of its 24 slots for receives is free", EVENT,
	 .provoke = keep_all_leases, .mend = give_all_leases},
	{"pool_short", "has 15 slots for receives", EVENT, .is_at_once = true,
	 .provoke = connect_with_short_pool, .mend = close_pair},
	{"listener_refuses", NULL, EVENT, .is_at_once = true,
	 .provoke = listener_refuses, .mend = long_ago},
};

const int dump_cases_count = sizeof(dump_cases) / sizeof(dump_cases[0]);
