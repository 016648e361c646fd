/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Waiting without arming, and acknowledging events in batches, on a device. The
 * calls of verbs are counted on their way to the library. After a lost wake-up
 * the test would block until its time-out.
 */

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "pair.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS
#define BATCH  8
#define ROUNDS 20
#define STREAM 100 /* messages, whether the receiver sleeps or not */

/* relaxed, all: a single thread calls and reads */
static atomic_int ack_calls;
static atomic_int acked;
static atomic_int armed;

/* Takes the place of verbs' own, in librpma too. */
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	void (*real)(struct ibv_cq *cq, unsigned int nevents);

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_ack_cq_events");
	assert_non_null(real);
	atomic_fetch_add_explicit(&ack_calls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&acked, (int)nevents, memory_order_relaxed);
	real(cq, nevents);
}

static int (*real_notify)(struct ibv_cq *cq, int solicited_only);

static int count_notify(struct ibv_cq *cq, int solicited_only)
{
	atomic_fetch_add_explicit(&armed, 1, memory_order_relaxed);
	return real_notify(cq, solicited_only);
}

static struct ibv_context *the_context(void)
{
	struct ibv_context *ctx = NULL;

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	return ctx;
}

/* Everything is counted from here. */
static void begin_count(void)
{
	struct ibv_context *ctx = the_context();

	if (ctx->ops.req_notify_cq != count_notify)
		real_notify = ctx->ops.req_notify_cq;
	ctx->ops.req_notify_cq = count_notify;
	atomic_store_explicit(&ack_calls, 0, memory_order_relaxed);
	atomic_store_explicit(&acked, 0, memory_order_relaxed);
	atomic_store_explicit(&armed, 0, memory_order_relaxed);
}

static void expect_count(int calls, int events, int arms)
{
	assert_int_equal(atomic_load_explicit(&ack_calls, memory_order_relaxed),
			 calls);
	assert_int_equal(atomic_load_explicit(&acked, memory_order_relaxed),
			 events);
	assert_int_equal(atomic_load_explicit(&armed, memory_order_relaxed),
			 arms);
}

/* Takes all completions after arming. */
static int drain(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int count = 0;
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == 0) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		count++;
	}
	assert_int_equal(ret, RPMA_E_NO_COMPLETION);
	return count;
}

static void write_one(struct pair *pair)
{
	ok(rpma_write(pair->client.conn, NULL, 0, NULL, 0, 0, ALWAYS, NULL));
}

/* Waits and polls until all of count are there; returns the events. */
static int take_all(struct rpma_cq *cq, int count, int *unacked)
{
	int events = 0;

	while (count > 0) {
		ok(rpma_cq_wait_event(cq));
		events++;
		if (++*unacked == BATCH) {
			ok(rpma_cq_ack(cq, BATCH));
			*unacked = 0;
		}
		ok(rpma_cq_arm(cq, false));
		count -= drain(cq);
	}
	assert_int_equal(count, 0);
	return events;
}

TEST(cq_wait_event__ACKED_IN_BATCHES)
{
	struct rpma_cq *cq;
	struct pair pair;
	int unacked = 0;
	int events = 0;
	int i;

	pair_open(&pair);
	cq = cq_of(&pair.client);
	begin_count();
	for (i = 0; i < ROUNDS; i++) {
		write_one(&pair);
		events += take_all(cq, 1, &unacked);
	}
	/* each wait took an event, and the test armed */
	assert_true(events >= ROUNDS);
	expect_count(events / BATCH, events - events % BATCH, events);
	/* the rest goes with the connection */
	pair_close(&pair);
	assert_int_equal(atomic_load_explicit(&acked, memory_order_relaxed),
			 events);
}

/* An unarmed CQ makes no event; an armed CQ does. */
TEST(cq_wait_event__ARMS_NOTHING)
{
	struct rpma_cq *cq;
	struct pair pair;
	int taken = 0;
	int fd = -1;

	pair_open(&pair);
	cq = cq_of(&pair.client);
	ok(rpma_cq_get_fd(cq, &fd));
	begin_count();
	write_one(&pair);
	ok(rpma_cq_wait_event(cq));
	write_one(&pair);
	while (taken < 2)
		taken += drain(cq);
	assert_false(is_readable(fd));
	expect_count(0, 0, 0);

	ok(rpma_cq_arm(cq, false));
	assert_int_equal(drain(cq), 0);
	write_one(&pair);
	wait_readable(fd);
	ok(rpma_cq_wait_event(cq));
	ok(rpma_cq_ack(cq, 2));
	expect_count(1, 2, 1);
	/* the plain call waits, acknowledges and arms, as ever */
	ok(rpma_cq_arm(cq, false));
	assert_int_equal(drain(cq), 1);
	write_one(&pair);
	ok(rpma_cq_wait(cq));
	assert_int_equal(drain(cq), 1);
	expect_count(2, 3, 3);
	pair_close(&pair);
}

TEST(conn_wait_event__SAYS_WHOSE)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct rpma_cq *cq = NULL;
	bool is_rcq = false;
	struct pair pair;
	int i;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 10));
	how.server_cfg = cfg;
	pair_open_how(&pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
	begin_count();
	for (i = 0; i < 4; i++) {
		ok(rpma_recv(pair.server.conn, NULL, 0, 0, NULL));
		ok(rpma_send(pair.client.conn, NULL, 0, 0, ALWAYS, NULL));
		ok(rpma_conn_wait_event(pair.server.conn, &cq, &is_rcq));
		assert_true(is_rcq);
		assert_ptr_equal(cq, rcq_of(&pair.server));
		ok(rpma_cq_arm(cq, false));
		assert_int_equal(drain(cq), 1);
	}
	ok(rpma_write(pair.server.conn, NULL, 0, NULL, 0, 0, ALWAYS, NULL));
	ok(rpma_conn_wait_event(pair.server.conn, &cq, &is_rcq));
	assert_false(is_rcq);
	assert_ptr_equal(cq, cq_of(&pair.server));
	expect_count(0, 0, 4);
	ok(rpma_cq_ack(rcq_of(&pair.server), 3));
	expect_count(1, 3, 4);
	pair_close(&pair); /* an event of each CQ is left */
	assert_int_equal(atomic_load_explicit(&acked, memory_order_relaxed), 5);
}

static void *send_stream(void *arg)
{
	struct pair *pair = arg;
	int i;

	for (i = 0; i < STREAM; i++)
		ok(rpma_send(pair->client.conn, NULL, 0, 0,
			     RPMA_F_COMPLETION_ON_ERROR, NULL));
	return NULL;
}

/* The other side sends at any time; no message is missed. */
TEST(cq_wait_event__NO_WAKE_UP_IS_LOST)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct pair pair;
	pthread_t thread;
	int unacked = 0;
	int events;
	int i;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_sq_size(cfg, STREAM));
	ok(rpma_conn_cfg_set_rq_size(cfg, STREAM));
	ok(rpma_conn_cfg_set_cq_size(cfg, 2 * STREAM));
	how.client_cfg = cfg;
	how.server_cfg = cfg;
	pair_open_how(&pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
	for (i = 0; i < STREAM; i++)
		ok(rpma_recv(pair.server.conn, NULL, 0, 0, NULL));
	begin_count();
	ok(pthread_create(&thread, NULL, send_stream, &pair));
	events = take_all(cq_of(&pair.server), STREAM, &unacked);
	ok(pthread_join(thread, NULL));
	expect_count(events / BATCH, events - events % BATCH, events);
	pair_close(&pair);
}

/* A CQ made by the program stays until its events are acknowledged. */
TEST(cq_delete__events_not_acknowledged_AGAIN)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct rpma_cq *cq = NULL;
	struct pair pair;

	ok(rpma_cq_new(the_context(), 8, NULL, 0, NULL, &cq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	how.client_cfg = cfg;
	pair_open_how(&pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
	write_one(&pair);
	ok(rpma_cq_wait_event(cq));
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
	pair_close(&pair);
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
	ok(rpma_cq_ack(cq, 1));
	ok(rpma_cq_delete(&cq));
}

PAIR_MAIN()
