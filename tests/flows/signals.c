/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A thread that waits in the library gets a signal whose handler does not
 * restart system calls: the result of each call that waits, and that the
 * awaited event still comes. Signals are sent until one has ended the wait, so
 * it does not matter when the wait began.
 */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "pair.h"

#define PORT_LEN 8

struct wait {
	struct pair *pair;
	struct rpma_ep *ep;
	struct rpma_channel *channel;
	struct rpma_cm_channel *cm_channel;
	int (*call)(struct wait *wait);
	int ret;
	atomic_bool is_over;
};

static void ignore(int number)
{
	(void)number;
}

static void *run_wait(void *arg)
{
	struct wait *wait = arg;

	wait->ret = wait->call(wait);
	/* release: pairs with the acquire in interrupt() */
	atomic_store_explicit(&wait->is_over, true, memory_order_release);
	return NULL;
}

/* What the call answers to the signal. */
static int interrupt(struct wait *wait, int (*call)(struct wait *wait))
{
	const struct sigaction without_restart = {.sa_handler = ignore};
	pthread_t thread;

	wait->call = call;
	atomic_init(&wait->is_over, false);
	ok(sigaction(SIGUSR1, &without_restart, NULL));
	ok(pthread_create(&thread, NULL, run_wait, wait));
	/* acquire: pairs with the release in run_wait() */
	while (!atomic_load_explicit(&wait->is_over, memory_order_acquire)) {
		ok(pthread_kill(thread, SIGUSR1));
		sched_yield();
	}
	ok(pthread_join(thread, NULL));
	return wait->ret;
}

static int wait_for_event(struct wait *wait)
{
	enum rpma_conn_event event;

	return rpma_conn_next_event(wait->pair->server.conn, &event);
}

static int wait_for_request(struct wait *wait)
{
	struct rpma_conn_req *req = NULL;

	return rpma_ep_next_conn_req(wait->ep, NULL, &req);
}

static int wait_for_cm_event(struct wait *wait)
{
	struct rpma_cm_event event;

	return rpma_cm_channel_get_event(wait->cm_channel, &event);
}

static int wait_for_cq(struct wait *wait)
{
	return rpma_cq_wait(cq_of(&wait->pair->server));
}

static int wait_for_conn(struct wait *wait)
{
	struct rpma_cq *cq = NULL;

	return rpma_conn_wait(wait->pair->server.conn, 0, &cq, NULL);
}

static int wait_for_channel(struct wait *wait)
{
	struct rpma_cq *cq = NULL;

	return rpma_channel_wait(wait->channel, &cq);
}

static void interrupt_AGAIN(struct wait *wait, int (*call)(struct wait *wait))
{
	assert_int_equal(interrupt(wait, call), RPMA_E_AGAIN);
}

/* Disturbs a thread in each wait for an event: everything goes on. */
static void disturb_each(void (*disturb)(struct wait *wait,
					 int (*call)(struct wait *wait)))
{
	struct wait wait = {0};
	char port[PORT_LEN];
	struct pair pair;

	pair_open(&pair);
	wait.pair = &pair;
	disturb(&wait, wait_for_event);
	ok(rpma_conn_disconnect(pair.client.conn));
	expect_event(pair.server.conn, RPMA_CONN_CLOSED);
	pair_close(&pair);

	wait.ep = pair_listen(port);
	disturb(&wait, wait_for_request);
	ok(rpma_ep_shutdown(&wait.ep));

	ok(rpma_cm_channel_new(&wait.cm_channel));
	disturb(&wait, wait_for_cm_event);
	ok(rpma_cm_channel_delete(&wait.cm_channel));
}

TEST(events__interrupted_AGAIN)
{
	disturb_each(interrupt_AGAIN);
}

/* The next message still wakes the waiting thread. */
static void expect_message(struct pair *pair, struct rpma_cq *expected)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;

	ok(rpma_recv(pair->server.conn, NULL, 0, 0, NULL));
	ok(rpma_send(pair->client.conn, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR,
		     NULL));
	if (expected) {
		ok(rpma_conn_wait(pair->server.conn, 0, &cq, NULL));
		assert_ptr_equal(cq, expected);
	} else {
		cq = cq_of(&pair->server);
		ok(rpma_cq_wait(cq));
	}
	ok(rpma_cq_get_wc(cq, 1, &wc, NULL));
	assert_int_equal(wc.opcode, IBV_WC_RECV);
}

TEST(cq_wait__interrupted_NO_COMPLETION)
{
	struct wait wait = {0};
	struct pair pair;

	pair_open(&pair);
	wait.pair = &pair;
	assert_int_equal(interrupt(&wait, wait_for_cq), RPMA_E_NO_COMPLETION);
	expect_message(&pair, NULL);
	pair_close(&pair);
}

TEST(conn_wait__interrupted_NO_COMPLETION)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct wait wait = {0};
	struct pair pair;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	how.server_cfg = cfg;
	pair_open_how(&pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
	wait.pair = &pair;
	assert_int_equal(interrupt(&wait, wait_for_conn), RPMA_E_NO_COMPLETION);
	expect_message(&pair, cq_of(&pair.server));
	pair_close(&pair);
}

TEST(channel_wait__interrupted_AGAIN)
{
	struct ibv_context *ctx = NULL;
	struct wait wait = {0};

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	ok(rpma_channel_new(ctx, &wait.channel));
	assert_int_equal(interrupt(&wait, wait_for_channel), RPMA_E_AGAIN);
	ok(rpma_channel_delete(&wait.channel));
}

/* ---- cancellation ---- */

#ifdef __SANITIZE_ADDRESS__
/* Frames left by a cancelled thread stay poisoned, and the sanitizer would
 * report the frames at the end of the thread. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}
#endif

/* Cancels a thread that waits, or is about to. */
static void cancel(struct wait *wait, int (*call)(struct wait *wait))
{
	pthread_t thread;
	void *end;

	wait->call = call;
	ok(pthread_create(&thread, NULL, run_wait, wait));
	ok(pthread_cancel(thread));
	ok(pthread_join(thread, &end));
	assert_ptr_equal(end, PTHREAD_CANCELED);
}

/* A cancelled thread leaves everything as if the thread had not waited. */
TEST(events__cancelled_AND_STILL_THERE)
{
	disturb_each(cancel);
}

PAIR_MAIN()
