/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * proxy.c -- functions that post on another connection, whose poller is another
 * thread. A post that meets another thread in the middle of a post is accepted
 * all the same. Between a client and a server, under load, with a thread that
 * posts on the same connections: each message arrives, in order, in both
 * directions.
 *
 * usage: runtime_proxy [messages]
 */

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "loop.h"
#include "stage.h"

#define DEPTH  32
#define WINDOW 8 /* messages of the client without a reply */
#define BURST  8
#define SIZE   8 /* bytes of a message: its number */
#define NOISE  (UINT64_C(1) << 63)

/* messages to be posted on another connection, oldest first */
struct backlog {
	uint32_t slots[DEPTH];
	uint32_t head;
	uint32_t tail;
};

/* a direction: messages received on from are sent on to; slots of memory */
struct direction {
	struct proxy *proxy;
	struct rpma_rt_conn *from;
	struct rpma_rt_conn *to;
	struct rpma_rt_route *received; /* to functions */
	struct rpma_rt_route *sent;
	size_t memory;
	pthread_mutex_t lock; /* of both, and for their order */
	struct backlog messages;
	struct backlog receives;
};

struct proxy {
	struct stage stage;
	struct rpma_rt_queue *client_queue;
	struct rpma_rt_queue *server_queue;
	struct rpma_rt_queue *queue; /* the proxy's */
	struct world_pair front;     /* client, proxy */
	struct world_pair back;	     /* proxy, server */
	struct direction there;
	struct direction here;
	uint64_t messages;
	atomic_bool is_over;
};

/* ------------------------------------------- the work of a proxy --- */

static uint32_t *oldest(struct backlog *backlog)
{
	return backlog->head == backlog->tail
		       ? NULL
		       : &backlog->slots[backlog->head % DEPTH];
}

static void put(struct backlog *backlog, uint32_t slot)
{
	CHECK(backlog->tail - backlog->head < DEPTH);
	backlog->slots[backlog->tail++ % DEPTH] = slot;
}

static bool is_taken(int ret)
{
	CHECK(ret == 0 || ret == RPMA_E_AGAIN || ret == RPMA_RT_E_CLOSED);
	return ret == 0;
}

static bool send_on(struct direction *d, uint32_t slot)
{
	const struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				      .flags = RPMA_F_COMPLETION_ALWAYS,
				      .route = d->sent,
				      .local = d->proxy->stage.mr,
				      .local_offset =
					      d->memory + (size_t)slot * SIZE,
				      .len = SIZE,
				      .context = slot};

	return is_taken(world_post_send(d->to, &wr));
}

static bool receive(struct direction *d, uint32_t slot)
{
	const struct rpma_rt_recv_wr wr = {.route = d->received,
					   .dst = d->proxy->stage.mr,
					   .offset = d->memory +
						     (size_t)slot * SIZE,
					   .len = SIZE,
					   .context = slot};

	return is_taken(world_post_recv(d->from, &wr));
}

/* Posts as much as possible; after a refusal WRITABLE follows. */
static void go_on(struct direction *d)
{
	const uint32_t *slot;

	while ((slot = oldest(&d->messages)) != NULL && send_on(d, *slot))
		d->messages.head++;
	while ((slot = oldest(&d->receives)) != NULL && receive(d, *slot))
		d->receives.head++;
}

/* On the poller of from. Flushed ones go nowhere. */
static void on_received(const struct rpma_rt_completion *item, void *arg)
{
	struct direction *d = arg;

	if (!rpma_rt_completion_is_ok(item))
		return;
	pthread_mutex_lock(&d->lock);
	put(&d->messages, (uint32_t)item->context);
	go_on(d);
	pthread_mutex_unlock(&d->lock);
}

/* On the poller of to: the memory may receive again, on from. */
static void on_sent(const struct rpma_rt_completion *item, void *arg)
{
	struct direction *d = arg;

	if (!rpma_rt_completion_is_ok(item))
		return;
	pthread_mutex_lock(&d->lock);
	put(&d->receives, (uint32_t)item->context);
	go_on(d);
	pthread_mutex_unlock(&d->lock);
}

/* The proxy's thread: WRITABLE of either connection. */
static void *run_proxy(void *arg)
{
	struct proxy *p = arg;
	struct direction *d[] = {&p->there, &p->here};
	struct rpma_rt_completion item;
	int i;

	for (;;) {
		item = world_next(p->queue);
		if (item.kind == RPMA_RT_MESSAGE)
			return NULL;
		CHECK(item.kind == RPMA_RT_WRITABLE);
		for (i = 0; i < 2; i++) {
			pthread_mutex_lock(&d[i]->lock);
			go_on(d[i]);
			pthread_mutex_unlock(&d[i]->lock);
		}
	}
}

/* ------------------------------------------------------- client, server --- */

static uint64_t *word(struct proxy *p, size_t offset)
{
	return (uint64_t *)(void *)(p->stage.memory + offset);
}

/* Posts receives for all expected messages. */
static void post_receives(struct proxy *p, struct rpma_rt_conn *conn,
			  size_t memory)
{
	uint64_t i;

	for (i = 0; i < DEPTH; i++)
		MUST(rpma_rt_recv(conn, p->stage.mr, memory + i * SIZE, SIZE,
				  i));
}

/* Receives the next message, and posts its receive again; NOISE too when the
 * noise thread has ended. */
static uint64_t receive_next(struct proxy *p, struct rpma_rt_conn *conn,
			     struct rpma_rt_queue *queue, size_t memory,
			     bool *is_end)
{
	struct rpma_rt_completion item = world_next_but_writable(queue);
	uint64_t number;

	*is_end = item.kind == RPMA_RT_MESSAGE;
	if (*is_end)
		return NOISE;
	CHECK(rpma_rt_completion_is_received(&item));
	number = *word(p, memory + item.context * SIZE);
	MUST(rpma_rt_recv(conn, p->stage.mr, memory + item.context * SIZE, SIZE,
			  item.context));
	return number;
}

/* Returns the next message other than noise. */
static uint64_t next_message(struct proxy *p, struct rpma_rt_conn *conn,
			     struct rpma_rt_queue *queue, size_t memory)
{
	uint64_t number;
	bool is_end;

	do {
		number = receive_next(p, conn, queue, memory, &is_end);
		CHECK(!is_end);
	} while (number & NOISE);
	return number;
}

/* Until there is no more noise, which would wait for receives for ever. */
static void receive_noise(struct proxy *p, struct rpma_rt_conn *conn,
			  struct rpma_rt_queue *queue, size_t memory)
{
	bool is_end = false;

	while (!is_end)
		CHECK(receive_next(p, conn, queue, memory, &is_end) & NOISE);
}

/*
 * Sends a number; the peer has received the message sent WINDOW messages ago.
 */
static void say(struct proxy *p, struct rpma_rt_conn *conn, size_t memory,
		uint64_t number)
{
	size_t offset = memory + number % WINDOW * SIZE;
	int ret;

	*word(p, offset) = number;
	/* only sends of this thread: credit comes without WRITABLE */
	while ((ret = rpma_rt_send(conn, p->stage.mr, offset, SIZE,
				   RPMA_F_COMPLETION_ON_ERROR, 0)) ==
	       RPMA_E_AGAIN)
		sched_yield();
	MUST(ret);
}

#define PART (DEPTH * SIZE)
enum part { CLIENT_IN, CLIENT_OUT, SERVER_IN, SERVER_OUT, THERE, HERE, OTHER };

static void *run_server(void *arg)
{
	struct proxy *p = arg;
	uint64_t i;

	for (i = 0; i < p->messages; i++) {
		CHECK(next_message(p, p->back.passive, p->server_queue,
				   SERVER_IN * PART) == i);
		say(p, p->back.passive, SERVER_OUT * PART, i);
	}
	receive_noise(p, p->back.passive, p->server_queue, SERVER_IN * PART);
	return NULL;
}

static void run_client(struct proxy *p)
{
	uint64_t asked = 0;
	uint64_t heard;

	for (heard = 0; heard < p->messages; heard++) {
		while (asked < p->messages && asked - heard < WINDOW)
			say(p, p->front.active, CLIENT_OUT * PART, asked++);
		CHECK(next_message(p, p->front.active, p->client_queue,
				   CLIENT_IN * PART) == heard);
	}
}

/* Posts on both connections of the proxy, beside its functions, so many
 * messages in a call, and again when sent. */
static void *run_noise(void *arg)
{
	struct proxy *p = arg;
	struct rpma_rt_conn *conns[] = {p->front.passive, p->back.active};
	struct rpma_rt_route *routes[2];
	struct rpma_rt_wr wrs[BURST];
	struct rpma_rt_queue *queue;
	int sent;
	int i;
	int n;

	MUST(rpma_rt_queue_new(p->stage.world.rt, NULL, &queue));
	for (i = 0; i < 2; i++)
		MUST(rpma_rt_route_open(conns[i], RPMA_RT_SEND_SIDE, queue,
					&routes[i]));
	*word(p, OTHER * PART) = NOISE;
	/* acquire: pairs with the release of the main thread */
	for (i = 0; !atomic_load_explicit(&p->is_over, memory_order_acquire);
	     i ^= 1) {
		for (n = 0; n < BURST; n++)
			wrs[n] = (struct rpma_rt_wr){.op = RPMA_RT_OP_SEND,
						     .route = routes[i],
						     .local = p->stage.mr,
						     .local_offset =
							     OTHER * PART,
						     .len = SIZE};
		sent = rpma_rt_post_send(conns[i], wrs, BURST);
		CHECK(sent > 0 || sent == RPMA_E_AGAIN);
		for (n = 0; n < sent; n++)
			CHECK(world_next(queue).status == IBV_WC_SUCCESS);
	}
	for (i = 0; i < 2; i++) {
		MUST(rpma_rt_route_close(routes[i], NULL));
		world_event(queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	}
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_queue_push(p->client_queue,
				&(struct rpma_rt_completion){0}));
	MUST(rpma_rt_queue_push(p->server_queue,
				&(struct rpma_rt_completion){0}));
	return NULL;
}

/* -------------------------------------------------------- begin and end --- */

static void direction_open(struct direction *d, struct proxy *p,
			   struct rpma_rt_conn *from, struct rpma_rt_conn *to,
			   size_t memory)
{
	uint32_t i;

	memset(d, 0, sizeof(*d));
	d->proxy = p;
	d->from = from;
	d->to = to;
	d->memory = memory;
	pthread_mutex_init(&d->lock, NULL);
	MUST(rpma_rt_route_open_callback(from, RPMA_RT_RECV_SIDE, on_received,
					 d, &d->received));
	MUST(rpma_rt_route_open_callback(to, RPMA_RT_SEND_SIDE, on_sent, d,
					 &d->sent));
	for (i = 0; i < DEPTH; i++)
		CHECK(receive(d, i));
}

static void proxy_open(struct proxy *p)
{
	static const struct stage_cfg cfg = {.pollers = 2, .depth = DEPTH};
	struct rpma_rt *rt;

	memset(p, 0, sizeof(*p));
	stage_open(&p->stage, &cfg);
	rt = p->stage.world.rt;
	MUST(rpma_rt_queue_new(rt, NULL, &p->client_queue));
	MUST(rpma_rt_queue_new(rt, NULL, &p->server_queue));
	MUST(rpma_rt_queue_new(rt, NULL, &p->queue));
	world_connect(&p->stage.world, p->stage.cfg, 0, p->client_queue,
		      p->queue, &p->front);
	world_connect(&p->stage.world, p->stage.cfg, 1, p->queue,
		      p->server_queue, &p->back);
}

static void expect_closed(struct rpma_rt_queue *queue, int count)
{
	struct rpma_rt_completion item;

	while (count > 0) {
		item = world_next(queue);
		count -=
			rpma_rt_completion_event(&item) == RPMA_RT_EVENT_CLOSED;
	}
}

static void proxy_close(struct proxy *p)
{
	MUST(rpma_rt_conn_close(p->front.active));
	MUST(rpma_rt_conn_close(p->back.passive));
	expect_closed(p->client_queue, 1);
	expect_closed(p->server_queue, 1);
	expect_closed(p->queue, 2);
	MUST(rpma_rt_conn_unref(&p->front.active));
	MUST(rpma_rt_conn_unref(&p->front.passive));
	MUST(rpma_rt_conn_unref(&p->back.active));
	MUST(rpma_rt_conn_unref(&p->back.passive));
	MUST(rpma_rt_queue_delete(&p->client_queue));
	MUST(rpma_rt_queue_delete(&p->server_queue));
	MUST(rpma_rt_queue_delete(&p->queue));
	stage_close(&p->stage);
}

static void load__in_order_none_lost(uint64_t messages)
{
	pthread_t threads[3];
	struct proxy p;

	proxy_open(&p);
	p.messages = messages;
	direction_open(&p.there, &p, p.front.passive, p.back.active,
		       THERE * PART);
	direction_open(&p.here, &p, p.back.active, p.front.passive,
		       HERE * PART);
	post_receives(&p, p.front.active, CLIENT_IN * PART);
	post_receives(&p, p.back.passive, SERVER_IN * PART);
	CHECK(!pthread_create(&threads[0], NULL, run_proxy, &p));
	CHECK(!pthread_create(&threads[1], NULL, run_server, &p));
	CHECK(!pthread_create(&threads[2], NULL, run_noise, &p));
	run_client(&p);
	/* release: pairs with the acquire in run_noise() */
	atomic_store_explicit(&p.is_over, true, memory_order_release);
	receive_noise(&p, p.front.active, p.client_queue, CLIENT_IN * PART);
	pthread_join(threads[2], NULL);
	pthread_join(threads[1], NULL);
	MUST(rpma_rt_queue_push(p.queue, &(struct rpma_rt_completion){0}));
	pthread_join(threads[0], NULL);
	proxy_close(&p);
}

/* ----------------------------------------------------- a single post --- */

/* A thread inside a post on back.active, until the function has posted
 * there. */
static struct {
	uint32_t qp_num;
	pthread_t thread;
	bool was_held;
	sem_t inside;
	sem_t posted;
} holder;

static void hold(enum rpma_loopback_point point, const void *object, void *arg)
{
	const struct ibv_qp *qp = object;

	(void)arg;
	if (point != RPMA_LOOPBACK_POST_SEND || qp->qp_num != holder.qp_num ||
	    !pthread_equal(pthread_self(), holder.thread) || holder.was_held)
		return;
	holder.was_held = true; /* the thread posts for others, too */
	sem_post(&holder.inside);
	while (sem_wait(&holder.posted))
		;
}

static void *post_and_stay(void *arg)
{
	struct proxy *p = arg;

	holder.thread = pthread_self();
	MUST(rpma_rt_send(p->back.active, NULL, 0, 0,
			  RPMA_F_COMPLETION_ON_ERROR, 0));
	return NULL;
}

static void post_once(const struct rpma_rt_completion *item, void *arg)
{
	struct proxy *p = arg;

	if (!rpma_rt_completion_is_ok(item))
		return;
	MUST(rpma_rt_send(p->back.active, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS,
			  1));
	sem_post(&holder.posted);
}

static void post__beside_another_TAKEN(const struct loop *loop)
{
	struct rpma_rt_route *route;
	pthread_t thread;
	struct proxy p;

	proxy_open(&p);
	CHECK(!sem_init(&holder.inside, 0, 0));
	CHECK(!sem_init(&holder.posted, 0, 0));
	MUST(rpma_rt_conn_get_qp_num(p.back.active, &holder.qp_num));
	MUST(rpma_rt_route_open_callback(p.front.passive, RPMA_RT_RECV_SIDE,
					 post_once, &p, &route));
	MUST(world_post_recv(p.front.passive,
			     &(struct rpma_rt_recv_wr){.route = route}));
	post_receives(&p, p.back.passive, SERVER_IN * PART);
	loop->set_hook(hold, NULL);
	CHECK(!pthread_create(&thread, NULL, post_and_stay, &p));
	while (sem_wait(&holder.inside))
		;
	MUST(rpma_rt_send(p.front.active, NULL, 0, 0,
			  RPMA_F_COMPLETION_ON_ERROR, 0));
	stage_completion(p.queue, 1, IBV_WC_SUCCESS); /* and no WRITABLE */
	pthread_join(thread, NULL);
	loop->set_hook(NULL, NULL);
	proxy_close(&p);
}

int main(int argc, char **argv)
{
	uint64_t messages =
		argc > 1 ? (uint64_t)strtoull(argv[1], NULL, 10) : 1000;

	if (loop_get() != NULL)
		post__beside_another_TAKEN(loop_get());
	load__in_order_none_lost(messages);
	printf("ok\n");
	return 0;
}
