/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * manual_waits.c -- manual mode: each waiting call in the table of
 * doc/protocols/manual.md, on one thread, with pollers that belong to no
 * thread. The call returns, and runs only the pollers on which the call
 * depends. A call of the table without a case fails the test.
 *
 * usage: runtime_manual_waits [PAGE]
 */

#include <string.h>

#include "stage.h"

#define DEPTH	  16
#define LANE	  64 /* the least */
#define WRITES	  (LANE + 16)
#define SLOT_SIZE 64

/* pollers: of the connection under test; of passing requests; and a poller with
 * another connection, which never matters */
enum { MINE, SECOND, STRANGER, POLLERS };

#define ONLY(poller)  (1u << (poller))
#define NO_POLLER     0u
#define EVERY_POLLER  (ONLY(POLLERS) - 1)
#define RUN_MY_POLLER ONLY(MINE)

struct scene {
	struct stage s;
	struct world_pair pair;	    /* on MINE */
	struct world_pair second;   /* on SECOND; bq for both ends */
	struct world_pair stranger; /* on STRANGER; sq for both ends */
	struct rpma_rt_queue *bq;
	struct rpma_rt_queue *sq;
	uint64_t polls[POLLERS];
};

/* --------------------------------------------------------- who was run --- */

static struct rpma_rt_poller_stats stats_of(struct scene *c, uint32_t poller)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(c->s.world.rt, poller, &stats,
				      sizeof(stats)));
	return stats;
}

static void begin_watch(struct scene *c)
{
	uint32_t i;

	for (i = 0; i < POLLERS; i++)
		c->polls[i] = stats_of(c, i).polls;
}

/* Asserts that since begin_watch() only these pollers were run. */
static void end_watch(struct scene *c, uint32_t pollers)
{
	uint32_t i;

	for (i = 0; i < POLLERS; i++)
		CHECK((pollers & ONLY(i)) ||
		      stats_of(c, i).polls == c->polls[i]);
}

/* -------------------------------------------------------------- a scene --- */

static void open_scene(struct scene *c)
{
	const struct stage_cfg cfg = {.pollers = POLLERS,
				      .mode = RPMA_RT_MODE_MANUAL,
				      .depth = WRITES};

	memset(c, 0, sizeof(*c));
	stage_open(&c->s, &cfg);
	MUST(rpma_rt_queue_new(c->s.world.rt, NULL, &c->bq));
	MUST(rpma_rt_queue_new(c->s.world.rt, NULL, &c->sq));
	c->s.cfg->futures = DEPTH;
	world_connect(&c->s.world, c->s.cfg, MINE, c->s.aq, c->s.pq, &c->pair);
	world_connect(&c->s.world, c->s.cfg, SECOND, c->bq, c->bq, &c->second);
	world_connect(&c->s.world, c->s.cfg, STRANGER, c->sq, c->sq,
		      &c->stranger);
}

static void disconnect(struct scene *c, struct world_pair *pair)
{
	(void)c;
	MUST(rpma_rt_conn_close(pair->active));
	world_unref(pair);
}

static void drain(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	while (rpma_rt_queue_poll(queue, &item, 1) > 0)
		;
}

static void close_scene(struct scene *c)
{
	disconnect(c, &c->pair);
	disconnect(c, &c->second);
	disconnect(c, &c->stranger);
	MUST(rpma_rt_stop(c->s.world.rt));
	drain(c->s.aq);
	drain(c->s.pq);
	drain(c->bq);
	drain(c->sq);
	MUST(rpma_rt_queue_delete(&c->bq));
	MUST(rpma_rt_queue_delete(&c->sq));
	stage_close(&c->s);
}

static void write_one(struct scene *c, struct rpma_rt_conn *conn,
		      struct rpma_rt_future *future)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_write(&wr, c->s.remote, 0, c->s.mr, 64, 8,
			   RPMA_F_COMPLETION_ALWAYS, 7);
	wr.future = future;
	MUST(world_post_send(conn, &wr));
}

static void take_completion(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(1, rpma_rt_queue_wait(queue, &item, 1, -1));
	CHECK(item.kind == RPMA_RT_COMPLETION && item.context == 7);
}

/* ----------------------------------------------------- items, results --- */

static void queue_wait(struct scene *c)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(0, rpma_rt_queue_wait(c->s.aq, &item, 1, 2));
	write_one(c, c->pair.active, NULL);
	take_completion(c->s.aq);
}

static void has_result(struct rpma_rt_future *future)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &item, -1));
	CHECK(item.status == IBV_WC_SUCCESS);
	MUST(rpma_rt_future_drop(future));
}

static void future_wait(struct scene *c)
{
	struct rpma_rt_future future;

	write_one(c, c->pair.active, &future);
	has_result(&future);
}

/* Each of two requests comes through another poller. */
static void future_wait_for_requests(struct scene *c)
{
	struct rpma_rt_listener *listener;
	const struct rpma_rt_source *source;
	struct rpma_rt_source of = {0};
	struct rpma_rt_conn *conns[POLLERS], *requests[POLLERS];
	struct rpma_rt_completion item;
	struct rpma_rt_future future;
	uint16_t port;
	char text[8];
	int i;

	MUST(world_listen_at(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			     "0", POLLERS, c->s.cfg, RPMA_RT_POLLER_ANY, NULL,
			     NULL, &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	snprintf(text, sizeof(text), "%u", port);
	of.listener = listener;
	source = &of;
	for (i = 0; i < POLLERS; i++) {
		MUST(world_conn_new(c->s.world.rt, c->s.world.peer,
				    c->s.world.addr, text, c->s.cfg, MINE,
				    c->s.aq, NULL, &conns[i]));
		world_event(c->s.aq, RPMA_RT_EVENT_READY);
		MUST(rpma_rt_conn_connect(conns[i], NULL));
		MUST(rpma_rt_next_future(source, &future));
		MUST_ANSWER(1, rpma_rt_future_wait(&future, &item, -1));
		CHECK(rpma_rt_completion_event(&item) == RPMA_RT_EVENT_REQUEST);
		requests[i] = rpma_rt_completion_conn(&item);
		MUST(rpma_rt_future_drop(&future));
	}
	MUST(rpma_rt_next_future(source, &future));
	MUST(rpma_rt_listener_drain(listener, 0));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &item, -1));
	CHECK(rpma_rt_completion_event(&item) == RPMA_RT_EVENT_LISTENER_CLOSED);
	MUST(rpma_rt_future_drop(&future));
	MUST(rpma_rt_listener_delete(&listener));
	for (i = 0; i < POLLERS; i++) {
		MUST(rpma_rt_conn_unref(&requests[i]));
		MUST(rpma_rt_conn_unref(&conns[i]));
	}
}

/* The only slot of a pool comes back with a send on the second poller. */
static void future_wait_for_a_slot(struct scene *c)
{
	struct rpma_rt_pool *pool = stage_pool(&c->s, NULL, 1, SLOT_SIZE, 0);
	const struct rpma_rt_source source = {.pool = pool};
	struct rpma_rt_completion item;
	struct rpma_rt_future future;
	struct rpma_rt_lease lease;

	MUST(rpma_rt_pool_take(pool, &lease));
	MUST(rpma_rt_recv(c->second.passive, c->s.mr, 0, SLOT_SIZE, 7));
	MUST(rpma_rt_send_lease(c->second.active, &lease, SLOT_SIZE, 0));
	MUST(rpma_rt_next_future(&source, &future));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &item, -1));
	CHECK(rpma_rt_completion_lease(&item, &lease));
	MUST(rpma_rt_lease_release(&lease));
	MUST(rpma_rt_future_drop(&future));
	MUST(rpma_rt_pool_delete(&pool));
	take_completion(c->bq);
}

static void future_wait_some(struct scene *c)
{
	struct rpma_rt_future futures[2];

	write_one(c, c->pair.active, &futures[0]);
	write_one(c, c->second.active, &futures[1]);
	MUST_ANSWER(2, rpma_rt_future_wait_some(futures, 2, 2, -1));
	has_result(&futures[0]);
	has_result(&futures[1]);
}

/* -------------------------------------------------------------- answers --- */

static void set_queue(struct scene *c)
{
	MUST(rpma_rt_conn_set_queue(c->pair.active, c->s.pq));
}

static struct rpma_rt_conn *new_conn(struct scene *c)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			    "1", c->s.cfg, MINE, c->s.aq, NULL, &conn));
	return conn;
}

static void set_user(struct scene *c)
{
	struct rpma_rt_conn *conn = new_conn(c);

	MUST(rpma_rt_conn_set_user(conn, c));
	MUST(rpma_rt_conn_unref(&conn));
}

static void route_open(struct scene *c)
{
	struct rpma_rt_route *route;

	MUST(rpma_rt_route_open(c->pair.active, RPMA_RT_SEND_SIDE, c->s.pq,
				&route));
	MUST(rpma_rt_route_close(route, NULL));
}

static void called(const struct rpma_rt_completion *item, void *arg)
{
	(void)item;
	(void)arg;
}

static void route_open_callback(struct scene *c)
{
	struct rpma_rt_route *route;

	MUST(rpma_rt_route_open_callback(c->pair.active, RPMA_RT_SEND_SIDE,
					 called, NULL, &route));
	MUST(rpma_rt_route_close(route, NULL));
}

static void srq(struct scene *c)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_srq *srq;

	cfg.peer = c->s.world.peer;
	cfg.queue = c->s.aq;
	cfg.srq_size = DEPTH;
	cfg.poller = MINE;
	MUST(rpma_rt_srq_new(c->s.world.rt, &cfg, &srq));
	MUST(rpma_rt_srq_delete(&srq));
}

static void adopt_srq(struct scene *c)
{
	struct rpma_rt_adopted *adopted;
	struct rpma_srq *srq;

	MUST(rpma_srq_new(c->s.world.peer, NULL, &srq));
	MUST(rpma_rt_adopt_srq(c->s.world.rt, srq, MINE, c->s.aq, NULL,
			       &adopted));
	MUST(rpma_rt_adopted_release(&adopted));
	MUST(rpma_srq_delete(&srq));
}

static void expect(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event;

	MUST(rpma_conn_next_event(conn, &event));
	CHECK(event == expected);
}

static void adopt(struct scene *c)
{
	struct rpma_rt_adopted *adopted;
	struct rpma_conn *conns[2];
	struct rpma_conn_req *req;
	struct rpma_ep *ep;
	uint16_t port;
	char text[8];
	int i;

	MUST(rpma_ep_listen_ex(c->s.world.peer, c->s.world.addr, "0", 1, NULL,
			       NULL, &ep));
	MUST(rpma_ep_get_port(ep, &port));
	snprintf(text, sizeof(text), "%u", port);
	MUST(rpma_conn_req_new(c->s.world.peer, c->s.world.addr, text, NULL,
			       &req));
	MUST(rpma_conn_req_connect(&req, NULL, &conns[0]));
	MUST(rpma_ep_next_conn_req(ep, NULL, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &conns[1]));
	for (i = 0; i < 2; i++)
		expect(conns[i], RPMA_CONN_ESTABLISHED);
	MUST(rpma_rt_adopt(c->s.world.rt, conns[0], MINE, c->s.aq, NULL,
			   &adopted));
	MUST(rpma_rt_adopted_release(&adopted));
	for (i = 0; i < 2; i++)
		MUST(rpma_conn_delete(&conns[i]));
	MUST(rpma_ep_shutdown(&ep));
}

static struct rpma_rt_pool *new_pool(struct scene *c)
{
	return stage_pool(&c->s, NULL, 4 * DEPTH, SLOT_SIZE, 0);
}

/* Deletes a pool used by an SRQ. */
static void pool_delete(struct scene *c)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_pool *pool = new_pool(c);
	struct rpma_rt_srq *srq;

	cfg.peer = c->s.world.peer;
	cfg.queue = c->s.aq;
	cfg.srq_size = DEPTH;
	cfg.poller = MINE;
	cfg.pool = pool;
	MUST(rpma_rt_srq_new(c->s.world.rt, &cfg, &srq));
	MUST(rpma_rt_srq_delete(&srq));
	MUST(rpma_rt_pool_delete(&pool));
}

/* ---------------------------------------------------------- ends, turns --- */

/* More items than the lane has room for: the last items are in the spill. */
static void queue_delete(struct scene *c)
{
	struct rpma_rt_queue_cfg small = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_completion item;
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;
	struct rpma_rt_wr wr;
	uint64_t before;
	int i;

	before = stats_of(c, MINE).completions;
	small.lane_size = LANE;
	MUST(rpma_rt_queue_new(c->s.world.rt, &small, &queue));
	MUST(rpma_rt_route_open(c->pair.active, RPMA_RT_SEND_SIDE, queue,
				&route));
	rpma_rt_prep_write(&wr, c->s.remote, 0, c->s.mr, 64, 8,
			   RPMA_F_COMPLETION_ALWAYS, 7);
	wr.route = route;
	for (i = 0; i < WRITES; i++)
		MUST(world_post_send(c->pair.active, &wr));
	while (stats_of(c, MINE).completions < before + WRITES)
		MUST_ANSWER(0, rpma_rt_queue_wait(c->s.aq, &item, 1, 1));
	MUST(rpma_rt_route_close(route, NULL));
	for (i = 0; i < WRITES; i++)
		take_completion(queue);
	MUST_ANSWER(1, rpma_rt_queue_wait(queue, &item, 1, -1));
	CHECK(rpma_rt_completion_event(&item) == RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_queue_delete(&queue));
}

/* And the connections of the scene, by the stop. */
static void stop(struct scene *c)
{
	MUST(rpma_rt_stop(c->s.world.rt));
}

/* Deletes a second runtime, whose connection still begins. */
static void delete(struct scene *c)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct rpma_rt *rt;

	cfg.pollers = POLLERS;
	cfg.mode = RPMA_RT_MODE_MANUAL;
	MUST(rpma_rt_new(&cfg, &rt));
	MUST(rpma_rt_queue_new(rt, NULL, &queue));
	MUST(world_conn_new(rt, c->s.world.peer, c->s.world.addr, "1", c->s.cfg,
			    SECOND, queue, NULL, &conn));
	MUST(rpma_rt_conn_unref(&conn));
	MUST(rpma_rt_stop(rt));
	drain(queue);
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_delete(&rt));
}

/* The turn of another thread is waited for in runtime_manual_beside. */
static void poller(struct scene *c)
{
	struct rpma_rt *rt = c->s.world.rt;
	struct rpma_rt_completion item;
	bool busy;

	CHECK(rpma_rt_poller_run(rt, MINE, 1) >= 0);
	MUST(rpma_rt_poller_take(rt, MINE, c->s.pq, &item, 1, &busy));
	CHECK(rpma_rt_poller_arm(rt, MINE) >= 0);
	MUST(rpma_rt_poller_attach(rt, MINE));
	MUST(rpma_rt_poller_release(rt, MINE));
}

/* --------------------------------------------------------------- shards --- */

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	(void)shard;
	(void)message;
	(void)arg;
}

static struct rpma_rt_shards *new_shards(struct scene *c)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt_shards *shards;

	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	MUST(rpma_rt_shards_new(c->s.world.rt, &cfg, &shards));
	return shards;
}

static void shard_run(struct scene *c)
{
	struct rpma_rt_shards *shards = new_shards(c);
	struct rpma_rt_shard *shard;

	MUST(rpma_rt_shards_get(shards, MINE, &shard));
	CHECK(rpma_rt_shard_run(shard, 1) >= 0);
	MUST(rpma_rt_poller_release(c->s.world.rt, MINE));
	MUST(rpma_rt_shards_delete(&shards));
}

static void shards_delete(struct scene *c)
{
	struct rpma_rt_shards *shards = new_shards(c);

	MUST(rpma_rt_shards_delete(&shards));
}

/* The pollers of shards are left to the shards, but for the queue of the shard:
 * until the set is deleted. */
static void queue_wait_beside_shards(struct scene *c)
{
	struct rpma_rt_shards *shards = new_shards(c);
	struct rpma_rt_completion item;
	struct rpma_rt_shard *shard;
	struct rpma_rt_queue *queue;

	begin_watch(c);
	write_one(c, c->pair.active, NULL);
	MUST_ANSWER(0, rpma_rt_queue_wait(c->s.aq, &item, 1, 2));
	end_watch(c, NO_POLLER);
	MUST(rpma_rt_shards_get(shards, MINE, &shard));
	MUST(rpma_rt_shard_get_queue(shard, &queue));
	MUST(rpma_rt_conn_set_queue(c->pair.passive, queue));
	while (rpma_rt_queue_poll(c->s.aq, &item, 1) == 0)
		MUST_ANSWER(0, rpma_rt_queue_wait(queue, &item, 1, 1));
	CHECK(item.context == 7);
	end_watch(c, RUN_MY_POLLER);
	MUST(rpma_rt_conn_set_queue(c->pair.passive, c->s.pq));
	MUST(rpma_rt_shards_delete(&shards));
	write_one(c, c->pair.active, NULL);
	take_completion(c->s.aq);
}

/* ------------------------------------------------------------ no poller --- */

static void none(struct scene *c)
{
	struct rpma_rt_shards *shards;
	struct rpma_rt_listener *listener;
	struct rpma_rt_pool *pool;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt;

	begin_watch(c);
	cfg.mode = RPMA_RT_MODE_MANUAL;
	MUST(rpma_rt_new(&cfg, &rt));
	MUST(rpma_rt_queue_new(rt, NULL, &queue));
	pool = new_pool(c);
	shards = new_shards(c);
	MUST(world_listen_at(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			     "0", 1, c->s.cfg, MINE, c->s.aq, NULL, &listener));
	MUST(rpma_rt_listener_drain(listener, 0));
	MUST(rpma_rt_listener_delete(&listener));
	conn = new_conn(c);
	MUST(rpma_rt_conn_set_name(conn, "waits"));
	end_watch(c, NO_POLLER);
	MUST(rpma_rt_conn_unref(&conn));
	MUST(rpma_rt_shards_delete(&shards));
	MUST(rpma_rt_pool_delete(&pool));
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_delete(&rt));
}

/* --------------------------------------------------------------- a case --- */

static const struct waiting {
	const char *calls; /* without rpma_rt_ */
	void (*make)(struct scene *c);
	uint32_t pollers; /* which may be run meanwhile, and no other */
} cases[] = {
	{"queue_wait", queue_wait, RUN_MY_POLLER},
	{"queue_wait", queue_wait_beside_shards, EVERY_POLLER},
	{"future_wait", future_wait, RUN_MY_POLLER},
	{"future_wait", future_wait_for_requests, EVERY_POLLER},
	{"future_wait", future_wait_for_a_slot, EVERY_POLLER},
	{"future_wait_some", future_wait_some, ONLY(MINE) | ONLY(SECOND)},
	{"conn_set_queue", set_queue, RUN_MY_POLLER},
	{"conn_set_user", set_user, RUN_MY_POLLER},
	{"route_open route_close", route_open, RUN_MY_POLLER},
	{"route_open_callback", route_open_callback, RUN_MY_POLLER},
	{"srq_new srq_delete", srq, RUN_MY_POLLER},
	{"adopt", adopt, RUN_MY_POLLER},
	{"adopt_srq adopted_release", adopt_srq, RUN_MY_POLLER},
	{"pool_delete", pool_delete, EVERY_POLLER},
	{"queue_delete", queue_delete, EVERY_POLLER},
	{"shards_delete", shards_delete, EVERY_POLLER},
	{"stop", stop, EVERY_POLLER},
	{"delete", delete, NO_POLLER}, /* of another runtime */
	{"poller_run poller_take poller_arm poller_attach poller_release",
	 poller, RUN_MY_POLLER},
	{"shard_run", shard_run, EVERY_POLLER},
	{"new queue_new pool_new shards_new listen listener_delete "
	 "listener_drain conn_new conn_set_name",
	 none, EVERY_POLLER},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void run_case(const struct waiting *waiting)
{
	static struct scene c;

	open_scene(&c);
	begin_watch(&c);
	waiting->make(&c);
	end_watch(&c, waiting->pollers);
	close_scene(&c);
}

/* ------------------------------------------------------------- the page --- */

static bool has_word(const char *words, const char *word, size_t length)
{
	const char *at = words;

	while ((at = strstr(at, word)) != NULL) {
		if ((at == words || at[-1] == ' ') &&
		    (at[length] == ' ' || at[length] == '\0'))
			return true;
		at += length;
	}
	return false;
}

static bool has_case(const char *call)
{
	size_t i;

	for (i = 0; i < CASES; i++)
		if (has_word(cases[i].calls, call, strlen(call)))
			return true;
	return false;
}

/* Each `rpma_rt_name` in the row's first cell; how many. */
static int check_row(char *row)
{
	char *end = strchr(row + 1, '|');
	char *call = row;
	int count = 0;

	CHECK(end != NULL);
	*end = '\0';
	while ((call = strstr(call, "`rpma_rt_")) != NULL) {
		call += strlen("`rpma_rt_");
		end = strchr(call, '`');
		CHECK(end != NULL);
		*end = '\0';
		if (!has_case(call)) {
			printf("no case for rpma_rt_%s()\n", call);
			exit(1);
		}
		call = end + 1;
		count++;
	}
	return count;
}

/* The table of calls has a case for each of them. */
static void page__each_call_HAS_A_CASE(const char *path)
{
	FILE *page = fopen(path, "r");
	bool is_in_table = false;
	char line[1000];
	int calls = 0;

	CHECK(page != NULL);
	while (fgets(line, sizeof(line), page) != NULL) {
		if (strncmp(line, "| call | waits for |", 20) == 0)
			is_in_table = true;
		else if (is_in_table && line[0] != '|')
			break;
		else if (is_in_table)
			calls += check_row(line);
	}
	fclose(page);
	CHECK(calls > 30);
}

int main(int argc, char *argv[])
{
	size_t i;

	if (argc > 1)
		page__each_call_HAS_A_CASE(argv[1]);
	for (i = 0; i < CASES; i++)
		run_case(&cases[i]);
	printf("ok, %zu cases\n", CASES);
	return 0;
}
