/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures_only.c -- connections and listeners without a queue: their events and
 * all items come by futures and by routes. Calls that need a queue are refused,
 * in words; a message is lost only with the receive that the program drops.
 * With the thread of a poller and by hand.
 */

#include <stdatomic.h>
#include <string.h>

#include "stage.h"

#define DEPTH	16
#define FUTURES 32
#define LEN	32u
#define PATIENT WORLD_PATIENCE_MS

struct scene {
	struct stage s;
	struct world_pair pair; /* the active end has no queue */
};

static void open_scene(struct scene *c, enum rpma_rt_mode mode)
{
	stage_open_futures(&c->s, mode, DEPTH, FUTURES);
	c->s.cfg->waiting = RPMA_RT_NO_WAITING;
}

static void drop(struct rpma_rt_future *future)
{
	CHECK(rpma_rt_future_drop(future) >= 0);
}

/* The event comes, and is the result of a future. */
static struct rpma_rt_completion await_event(struct rpma_rt_conn *conn,
					     enum rpma_rt_event event)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;

	MUST(rpma_rt_conn_future(conn, event, &future));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	CHECK(rpma_rt_completion_event(&cmpl) == event);
	CHECK(rpma_rt_completion_conn(&cmpl) == conn);
	drop(&future);
	return cmpl;
}

static void begin(struct scene *c, void *user, struct rpma_rt_conn **conn)
{
	MUST(world_conn_new(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			    c->s.world.port, c->s.cfg, 0, NULL, user, conn));
}

static void join(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, c->s.pq);

	begin(c, NULL, &c->pair.active);
	await_event(c->pair.active, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(c->pair.active, NULL));
	c->pair.passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
				  c->s.pq, RPMA_RT_EVENT_REQUEST)
				  .context;
	MUST(rpma_rt_conn_accept(c->pair.passive, NULL));
	await_event(c->pair.active, RPMA_RT_EVENT_ESTABLISHED);
	world_event(c->s.pq, RPMA_RT_EVENT_ESTABLISHED);
	world_unlisten(&listener, c->s.pq);
}

static void part(struct scene *c)
{
	struct rpma_rt_completion cmpl;

	MUST(rpma_rt_conn_close(c->pair.active));
	cmpl = await_event(c->pair.active, RPMA_RT_EVENT_CLOSED);
	CHECK(cmpl.status == RPMA_RT_REASON_LOCAL);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	/* the connection may be DONE by now */
	cmpl = await_event(c->pair.active, RPMA_RT_EVENT_CLOSED);
	CHECK(cmpl.status == RPMA_RT_REASON_LOCAL);
	world_unref(&c->pair);
}

static int post_recv(struct scene *c, uint64_t context,
		     struct rpma_rt_future *future)
{
	struct rpma_rt_recv_wr wr;

	rpma_rt_prep_recv(&wr, c->s.mr, 1024, LEN, context);
	wr.future = future;
	return world_post_recv(c->pair.active, &wr);
}

static int post_send(struct scene *c, uint64_t context,
		     struct rpma_rt_future *future)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send(&wr, c->s.mr, 0, LEN, 0, context);
	wr.future = future;
	return world_post_send(c->pair.active, &wr);
}

static void completes(struct rpma_rt_future *future, uint64_t context,
		      enum ibv_wc_status status)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, PATIENT));
	CHECK(cmpl.context == context && cmpl.status == status);
	drop(future);
}

/* Sends a message from the passive end to the end without a queue. */
static void tell(struct scene *c, uint64_t number)
{
	MUST(rpma_rt_send(c->pair.passive, c->s.mr, 512, LEN,
			  RPMA_F_COMPLETION_ALWAYS, number));
	stage_completion(c->s.pq, number, IBV_WC_SUCCESS);
}

/* Nothing was, or is, written to a queue. */
static void queue_is_empty(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(0, rpma_rt_queue_poll(queue, &item, 1));
}

/* ------------------------------------------------------------ a life --- */

static void life__by_futures(struct scene *c)
{
	struct rpma_rt_future got, sent;
	struct rpma_rt_completion cmpl;

	join(c);
	MUST(rpma_rt_recv(c->pair.passive, c->s.mr, 2048, LEN, 7));
	MUST(post_recv(c, 1, &got));
	MUST(post_send(c, 2, &sent));
	completes(&sent, 2, IBV_WC_SUCCESS);
	stage_completion(c->s.pq, 7, IBV_WC_SUCCESS);
	tell(c, 8);
	completes(&got, 1, IBV_WC_SUCCESS);
	/* work outstanding at the end is complete before CLOSED */
	MUST(post_recv(c, 3, &got));
	MUST(rpma_rt_conn_close(c->pair.passive));
	cmpl = await_event(c->pair.active, RPMA_RT_EVENT_CLOSED);
	CHECK(cmpl.status == RPMA_RT_REASON_DISCONNECTED);
	MUST_ANSWER(1, rpma_rt_future_poll(&got, &cmpl));
	CHECK(cmpl.context == 3 && cmpl.status != IBV_WC_SUCCESS);
	drop(&got);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&c->pair);
}

/* No listener: CLOSED comes, in place of ESTABLISHED too. */
static void life__refused(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, c->s.pq);
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future established;
	struct rpma_rt_conn *conn;
	int mine;

	world_unlisten(&listener, c->s.pq);
	begin(c, &mine, &conn);
	await_event(conn, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_future(conn, RPMA_RT_EVENT_ESTABLISHED,
				 &established));
	MUST(rpma_rt_conn_connect(conn, NULL));
	MUST_ANSWER(1, rpma_rt_future_wait(&established, &cmpl, PATIENT));
	CHECK(rpma_rt_completion_event(&cmpl) == RPMA_RT_EVENT_CLOSED);
	CHECK(cmpl.status == RPMA_RT_REASON_REJECTED && cmpl.user == &mine);
	drop(&established);
	MUST(rpma_rt_conn_unref(&conn));
}

/* The connection breaks: the future of the failed work request says so. */
static void life__an_error(struct scene *c)
{
	struct rpma_mr_remote *gone = stage_vanished(&c->s);
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	struct rpma_rt_wr wr;

	join(c);
	rpma_rt_prep_write(&wr, gone, 0, c->s.mr, 0, LEN, 0, 5);
	wr.future = &future;
	MUST(world_post_send(c->pair.active, &wr));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	CHECK(cmpl.context == 5 && cmpl.status == IBV_WC_REM_ACCESS_ERR);
	drop(&future);
	cmpl = await_event(c->pair.active, RPMA_RT_EVENT_CLOSED);
	CHECK(cmpl.status == RPMA_RT_REASON_ERROR);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&c->pair);
	MUST(rpma_mr_remote_delete(&gone));
}

/* ----------------------------------------------------------- requests --- */

static struct rpma_rt_future next_request(struct rpma_rt_listener *listener)
{
	struct rpma_rt_future future;

	MUST(rpma_rt_next_future(&(struct rpma_rt_source){.listener = listener},
				 &future));
	return future;
}

/* Makes a connection that requests to connect. */
static struct rpma_rt_conn *ask(struct scene *c)
{
	struct rpma_rt_conn *conn;

	begin(c, NULL, &conn);
	await_event(conn, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(conn, NULL));
	return conn;
}

static struct rpma_rt_conn *requested(struct rpma_rt_future *future)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, PATIENT));
	CHECK(rpma_rt_completion_event(&cmpl) == RPMA_RT_EVENT_REQUEST);
	drop(future);
	return rpma_rt_completion_conn(&cmpl);
}

static void closed_by_peer(struct rpma_rt_conn *active,
			   struct rpma_rt_conn *passive)
{
	MUST(rpma_rt_conn_close(active));
	await_event(active, RPMA_RT_EVENT_CLOSED);
	await_event(passive, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&active));
	MUST(rpma_rt_conn_unref(&passive));
}

/* No queue anywhere: the future may be there before the request, or behind. */
static void accept__by_futures(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, NULL);
	struct rpma_rt_conn *active, *passive;
	struct rpma_rt_future future, got;
	struct rpma_rt_recv_wr recv;
	int i;

	for (i = 0; i < 2; i++) {
		if (i == 0)
			future = next_request(listener);
		active = ask(c);
		if (i == 1)
			future = next_request(listener);
		passive = requested(&future);
		rpma_rt_prep_recv(&recv, c->s.mr, 1024, LEN, 3);
		recv.future = &got;
		MUST(world_post_recv(passive, &recv));
		MUST(rpma_rt_conn_accept(passive, NULL));
		await_event(active, RPMA_RT_EVENT_ESTABLISHED);
		await_event(passive, RPMA_RT_EVENT_ESTABLISHED);
		c->pair.active = active;
		MUST(post_send(c, 4, &future));
		completes(&future, 4, IBV_WC_SUCCESS);
		completes(&got, 3, IBV_WC_SUCCESS);
		closed_by_peer(active, passive);
	}
	MUST(rpma_rt_listener_delete(&listener));
}

static void on_request(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct rpma_rt_conn **conn = arg;

	CHECK(rpma_rt_completion_event(cmpl) == RPMA_RT_EVENT_REQUEST);
	*conn = rpma_rt_completion_conn(cmpl);
	MUST(rpma_rt_conn_accept(*conn, NULL));
}

/* A function accepts the request. */
static void accept__by_a_function(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, NULL);
	struct rpma_rt_future future = next_request(listener);
	struct rpma_rt_conn *active, *passive = NULL;

	MUST(rpma_rt_future_then(&future, on_request, &passive));
	active = ask(c);
	await_event(active, RPMA_RT_EVENT_ESTABLISHED);
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
	closed_by_peer(active, passive);
	MUST(rpma_rt_listener_delete(&listener));
}

/* Several pollers: each request comes once, on any poller. */
static void accept__of_two_pollers(void)
{
	struct stage_cfg cfg = {.pollers = 2, .depth = DEPTH};
	struct rpma_rt_conn *actives[8], *passives[8];
	struct rpma_rt_listener *listener;
	struct rpma_rt_future futures[8];
	struct scene c;
	int pollers = 0;
	int poller;
	int i;

	stage_open(&c.s, &cfg);
	c.s.cfg->futures = FUTURES;
	listener = world_listen(&c.s.world, c.s.cfg, NULL);
	for (i = 0; i < 8; i++)
		futures[i] = next_request(listener);
	for (i = 0; i < 8; i++)
		actives[i] = ask(&c);
	MUST_ANSWER(8, rpma_rt_future_wait_some(futures, 8, 8, PATIENT));
	for (i = 0; i < 8; i++) {
		passives[i] = requested(&futures[i]);
		MUST(rpma_rt_conn_get_poller(passives[i], &poller));
		pollers |= 1 << poller;
		MUST(rpma_rt_conn_accept(passives[i], NULL));
	}
	CHECK(pollers == 3);
	for (i = 0; i < 8; i++) {
		await_event(actives[i], RPMA_RT_EVENT_ESTABLISHED);
		MUST(rpma_rt_conn_close(actives[i]));
	}
	for (i = 0; i < 8; i++) {
		await_event(passives[i], RPMA_RT_EVENT_CLOSED);
		await_event(actives[i], RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_conn_unref(&passives[i]));
		MUST(rpma_rt_conn_unref(&actives[i]));
	}
	MUST(rpma_rt_listener_delete(&listener));
	stage_close(&c.s);
}

/* ----------------------------------------------------------- refusals --- */

/*
 * An item that would come to the queue is refused before any part of the call
 * is posted.
 */
static void post__without_a_future_INVAL(struct scene *c)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_future future = {{0, 0}};
	struct rpma_rt_wr wrs[2];
	struct rpma_rt_recv_wr recv;

	join(c);
	conn = c->pair.active;
	CHECK(rpma_rt_send(conn, c->s.mr, 0, LEN, 0, 1) == RPMA_E_INVAL);
	CHECK(rpma_rt_send(conn, c->s.mr, 0, LEN, RPMA_F_COMPLETION_ON_ERROR,
			   1) == RPMA_E_INVAL);
	CHECK(rpma_rt_recv(conn, c->s.mr, 0, LEN, 1) == RPMA_E_INVAL);
	rpma_rt_prep_recv(&recv, c->s.mr, 0, LEN, 1);
	CHECK(rpma_rt_post_recv(conn, &recv, 1) == RPMA_E_INVAL);
	/* the second of two, and in a link the work request that is no part */
	rpma_rt_prep_send(&wrs[0], c->s.mr, 0, LEN, 0, 2);
	wrs[0].future = &future;
	rpma_rt_prep_send(&wrs[1], c->s.mr, 0, LEN, 0, 3);
	CHECK(rpma_rt_post_send(conn, wrs, 2) == RPMA_E_INVAL);
	CHECK(future.opaque[0] == 0);
	rpma_rt_prep_write(&wrs[0], c->s.remote, 0, c->s.mr, 0, LEN,
			   RPMA_RT_F_LINKED, 4);
	rpma_rt_prep_write(&wrs[1], c->s.remote, 0, c->s.mr, 0, LEN, 0, 5);
	wrs[1].future = &future;
	CHECK(rpma_rt_post_send(conn, wrs, 2) == RPMA_E_INVAL);
	/* whose parts are the future's */
	rpma_rt_prep_write(&wrs[0], c->s.remote, 0, c->s.mr, 0, LEN,
			   RPMA_RT_F_LINKED | RPMA_RT_F_PART, 0);
	MUST_ANSWER(2, rpma_rt_post_send(conn, wrs, 2));
	completes(&future, 5, IBV_WC_SUCCESS);
	CHECK(rpma_rt_conn_set_queue(conn, c->s.aq) == RPMA_E_INVAL);
	part(c);
}

/* No room: a completed future says that there is room. */
static void post__no_room(struct scene *c)
{
	struct rpma_rt_future futures[DEPTH];
	struct rpma_rt_future none;
	int i;

	join(c);
	for (i = 0; i < DEPTH; i++)
		MUST(post_recv(c, (uint64_t)i, &futures[i]));
	for (i = 0; i < 4 * DEPTH; i++) {
		MUST_ANSWER(RPMA_E_AGAIN, post_recv(c, 0, &none));
		CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
		tell(c, 1);
		completes(&futures[i % DEPTH], (uint64_t)i, IBV_WC_SUCCESS);
		MUST(post_recv(c, (uint64_t)(i + DEPTH), &futures[i % DEPTH]));
	}
	part(c);
	for (i = 0; i < DEPTH; i++)
		drop(&futures[i]);
}

/* --------------------------------------------------------- given up --- */

/* The message of a cancelled receive has no queue: the message stays. With a
 * dropped receive the message goes. */
static void cancel__a_message_stays(struct scene *c)
{
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future futures[3];
	int i;

	join(c);
	for (i = 0; i < 3; i++)
		MUST(post_recv(c, (uint64_t)i, &futures[i]));
	MUST(rpma_rt_future_cancel(&futures[0], &cancelled));
	CHECK(cancelled == RPMA_RT_CANCELLED_DETACHED);
	MUST(rpma_rt_future_drop(&futures[1]));
	for (i = 0; i < 3; i++)
		tell(c, (uint64_t)i);
	completes(&futures[2], 2, IBV_WC_SUCCESS);
	MUST_ANSWER(1, rpma_rt_future_wait(&futures[0], &cmpl, PATIENT));
	CHECK(cmpl.context == 0 && cmpl.status == IBV_WC_SUCCESS);
	CHECK(cmpl.byte_len == LEN);
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(&futures[0], 1, 1, 0));
	drop(&futures[0]);
	/* of a failed receive nothing stays */
	MUST(post_recv(c, 3, &futures[0]));
	MUST(rpma_rt_future_cancel(&futures[0], &cancelled));
	part(c);
	MUST_ANSWER(1, rpma_rt_future_wait(&futures[0], &cmpl, PATIENT));
	CHECK(cmpl.flags == RPMA_RT_C_DETACHED);
	drop(&futures[0]);
}

/* Slots and credit of dropped receives come back, each time. */
static void drop__slots_come_back(struct scene *c)
{
	struct rpma_rt_future future;
	int i;

	join(c);
	for (i = 0; i < 4 * FUTURES; i++) {
		MUST(post_recv(c, 1, &future));
		MUST(rpma_rt_future_drop(&future));
		MUST(post_recv(c, 2, &future));
		tell(c, 1);
		tell(c, 2);
		completes(&future, 2, IBV_WC_SUCCESS);
	}
	part(c);
}

/* ------------------------------------------------------------- routes --- */

static _Atomic int calls;

static void count_call(const struct rpma_rt_completion *cmpl, void *arg)
{
	(void)arg;
	/* a route's last call has no status of a work request */
	if (cmpl->kind == RPMA_RT_COMPLETION)
		CHECK(cmpl->status == IBV_WC_SUCCESS && cmpl->context == 9);
	/* release: to the test */
	atomic_fetch_add_explicit(&calls, 1, memory_order_release);
}

static int calls_so_far(void)
{
	/* acquire: pairs with the above */
	return atomic_load_explicit(&calls, memory_order_acquire);
}

static void recv_by(struct scene *c, struct rpma_rt_route *route,
		    uint64_t context)
{
	struct rpma_rt_recv_wr wr;

	rpma_rt_prep_recv(&wr, c->s.mr, 1024, LEN, context);
	wr.route = route;
	MUST(world_post_recv(c->pair.active, &wr));
}

/*
 * A route leads items where the connection has no queue; the route is closed
 * into another.
 */
static void route__in_place_of_the_queue(struct scene *c)
{
	struct rpma_rt_route *queue_route, *fn_route;
	struct rpma_rt_completion item;
	struct rpma_rt_future future;
	int before = calls_so_far();

	join(c);
	MUST(rpma_rt_route_open(c->pair.active, RPMA_RT_RECV_SIDE, c->s.aq,
				&queue_route));
	MUST(rpma_rt_route_open_callback(c->pair.active, RPMA_RT_RECV_SIDE,
					 count_call, NULL, &fn_route));
	recv_by(c, queue_route, 8);
	recv_by(c, fn_route, 9);
	MUST(post_recv(c, 10, &future));
	CHECK(rpma_rt_future_deliver(&future, NULL) == RPMA_E_INVAL);
	MUST(rpma_rt_future_deliver(&future, queue_route));
	tell(c, 1);
	tell(c, 2);
	tell(c, 3);
	stage_completion(c->s.aq, 8, IBV_WC_SUCCESS);
	stage_completion(c->s.aq, 10, IBV_WC_SUCCESS);
	CHECK(calls_so_far() == before + 1);
	drop(&future);
	CHECK(rpma_rt_route_close(fn_route, NULL) == RPMA_E_INVAL);
	recv_by(c, fn_route, 11);
	MUST(rpma_rt_route_close(fn_route, queue_route));
	CHECK(calls_so_far() == before + 2); /* ROUTE_CLOSED */
	tell(c, 4);
	stage_completion(c->s.aq, 11, IBV_WC_SUCCESS);
	MUST(rpma_rt_conn_close(c->pair.active));
	item = world_event(c->s.aq, RPMA_RT_EVENT_ROUTE_CLOSED);
	CHECK(rpma_rt_completion_conn(&item) == c->pair.active);
	part(c);
}

/* ----------------------------------------------------------- the rest --- */

static void dump__says_no_queue(struct scene *c)
{
	char text[1 << 14];
	FILE *file = tmpfile();
	size_t size;

	CHECK(file != NULL);
	join(c);
	MUST(rpma_rt_dump(c->s.world.rt, fileno(file), RPMA_RT_DUMP_HUMAN));
	rewind(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = 0;
	CHECK(strstr(text, "no queue, active") != NULL);
	fclose(file);
	part(c);
}

static void stop__completes(struct scene *c)
{
	struct rpma_rt_future closed, got;
	struct rpma_rt_completion cmpl;

	join(c);
	MUST(rpma_rt_conn_future(c->pair.active, RPMA_RT_EVENT_CLOSED,
				 &closed));
	MUST(post_recv(c, 1, &got));
	MUST(rpma_rt_stop(c->s.world.rt));
	await_event(c->pair.active, RPMA_RT_EVENT_ESTABLISHED);
	await_event(c->pair.active, RPMA_RT_EVENT_CLOSED);
	MUST_ANSWER(1, rpma_rt_future_wait(&closed, &cmpl, PATIENT));
	CHECK(cmpl.status == RPMA_RT_REASON_STOPPED);
	MUST_ANSWER(1, rpma_rt_future_poll(&got, &cmpl));
	drop(&got);
	drop(&closed);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&c->pair);
	stage_close(&c->s);
}

static void run_all(enum rpma_rt_mode mode)
{
	struct scene c;

	open_scene(&c, mode);
	life__by_futures(&c);
	life__refused(&c);
	life__an_error(&c);
	accept__by_futures(&c);
	accept__by_a_function(&c);
	post__without_a_future_INVAL(&c);
	post__no_room(&c);
	cancel__a_message_stays(&c);
	drop__slots_come_back(&c);
	queue_is_empty(c.s.aq);
	route__in_place_of_the_queue(&c);
	dump__says_no_queue(&c);
	queue_is_empty(c.s.aq);
	stop__completes(&c);
}

int main(void)
{
	run_all(RPMA_RT_MODE_ADAPTIVE);
	run_all(RPMA_RT_MODE_EVENT);
	run_all(RPMA_RT_MODE_MANUAL);
	accept__of_two_pollers();
	return 0;
}
