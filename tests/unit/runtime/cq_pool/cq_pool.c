/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Channels and shared CQs: room, sizes, the end, and asynchronous events. */

#include <pthread.h>
#include <string.h>

#include "rt_fake.h"
#include "poller/round.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

#define MAX_CQE (1 << 20) /* of the fake device */

/* the holders of room in these tests */
#define USERS 16
static struct rt_cq_user users[USERS];
static int users_count;
static struct rt_cq_user *told[USERS]; /* users with a report of a failed CQ */
static int told_count;

static void failed(struct rt_cq_user *user)
{
	told[told_count++] = user;
}

static struct rt_cq_user *new_user(uint32_t room)
{
	users[users_count] =
		(struct rt_cq_user){.failed = failed, .room = room};
	return &users[users_count++];
}

static int forget_users(void **state)
{
	users_count = 0;
	told_count = 0;
	return fake_setup(state);
}

#define CQ_TEST(name) TEST_OF(struct fake *f, name, forget_users, fake_teardown)

/* The user is users[users_count - 1]. */
static struct rt_cq *reserve_on(struct fake *f, struct ibv_context *ctx,
				uint32_t room, int expected)
{
	struct rt_cq *cq = NULL;

	users_count = users_count == USERS ? 0 : users_count;
	pthread_mutex_lock(&f->rt->lock);
	assert_int_equal(
		rt_cq_pool_reserve(f->poller, ctx, new_user(room), &cq),
		expected);
	pthread_mutex_unlock(&f->rt->lock);
	return cq;
}

static struct rt_cq *reserve(struct fake *f, uint32_t room, int expected)
{
	return reserve_on(f, &fake_ctx, room, expected);
}

static void unreserve(struct fake *f, struct rt_cq *cq, int user)
{
	pthread_mutex_lock(&f->rt->lock);
	rt_cq_pool_unreserve(cq, &users[user]);
	pthread_mutex_unlock(&f->rt->lock);
}

static int count_listed(const struct fake *f)
{
	const struct rt_cq *cq;
	int count = 0;

	for (cq = f->poller->channels->cqs; cq != NULL; cq = cq->next)
		count++;
	return count;
}

/* ----------------------------------------------------------------- room --- */

CQ_TEST(reserve__shared_while_there_is_room)
{
	struct rt_cq *first = reserve(f, 40, 0);
	struct rt_cq *second;

	assert_int_equal(first->cqe, 64); /* as configured */
	assert_int_equal(first->room, 24);
	assert_ptr_equal(reserve(f, 24, 0), first);
	second = reserve(f, 1, 0);
	assert_ptr_not_equal(second, first);
	assert_ptr_equal(second->channel, first->channel);
	unreserve(f, first, 1);
	/* the newer CQ is asked first, the older CQ has room again */
	assert_ptr_equal(reserve(f, 127, 0), second);
	assert_ptr_equal(reserve(f, 24, 0), first);
	fake_round(f);
	assert_int_equal(f->poller->cqs_count, 2);
	assert_int_equal(fake_cq(first)->arms, 0);
}

CQ_TEST(reserve__larger_than_configured_made_to_measure)
{
	struct rt_cq *cq = reserve(f, 100, 0);

	assert_int_equal(cq->cqe, 100);
	assert_int_equal(cq->room, 0);
	fake_round(f);
}

CQ_TEST(reserve__device_has_less_clipped_or_NOMEM)
{
	fake_attr.max_cqe = 10;
	assert_null(reserve(f, 11, RPMA_E_NOMEM));
	assert_int_equal(reserve(f, 10, 0)->cqe, 10);
	fake_attr.max_cqe = MAX_CQE;
	fake_round(f);
}

/* So a poller has few CQs for many connections. */
CQ_TEST(reserve__next_cq_TWICE_AS_LARGE)
{
	fake_attr.max_cqe = 200;
	assert_int_equal(reserve(f, 64, 0)->cqe, 64);
	assert_int_equal(reserve(f, 128, 0)->cqe, 128);
	/* the limits of the device */
	assert_int_equal(reserve(f, 64, 0)->cqe, 200);
	assert_int_equal(reserve(f, 200, 0)->cqe, 200);
	fake_attr.max_cqe = MAX_CQE;
	fake_round(f);
}

/* Not larger than the connections with route numbers can fill. */
CQ_TEST(reserve__next_cq_AS_ROUTE_NUMBERS)
{
	const int most = (RT_ROUTE_COUNT / RT_CQ_CONN_ROUTES) * 2;

	f->rt->cfg.cq_size = (uint32_t)most - 1;
	assert_int_equal(reserve(f, (uint32_t)most - 1, 0)->cqe, most - 1);
	assert_int_equal(reserve(f, 2, 0)->cqe, most);
	f->rt->cfg.cq_size = 64;
	fake_round(f);
}

CQ_TEST(reserve__size_refused_HALVED)
{
	assert_int_equal(reserve(f, 64, 0)->cqe, 64);
	fake_fail("cq_new", 1, RPMA_E_PROVIDER);
	assert_int_equal(reserve(f, 10, 0)->cqe, 64);
	assert_true(fake_failed());
	/* not below the needed room */
	fake_fail("cq_new", 1, RPMA_E_PROVIDER);
	assert_int_equal(reserve(f, 100, 0)->cqe, 100);
	fake_round(f);
}

CQ_TEST(reserve__each_failure_out_parameter_untouched)
{
	int nth;

	fake_fail("ibv_query_device", 1, 5);
	assert_null(reserve(f, 1, RPMA_E_PROVIDER));
	fake_fail("channel_new", 1, RPMA_E_PROVIDER);
	assert_null(reserve(f, 1, RPMA_E_PROVIDER));
	fake_fail("async_watch", 1, RPMA_E_PROVIDER);
	assert_null(reserve(f, 1, RPMA_E_PROVIDER));
	assert_null(f->poller->channels);
	fake_fail("malloc", 1, 1);
	assert_null(reserve(f, 1, RPMA_E_NOMEM));
	fake_fail("cq_new", 1, RPMA_E_PROVIDER);
	assert_null(reserve(f, 1, RPMA_E_PROVIDER));
	assert_non_null(f->poller->channels); /* the channel stays */
	/* record, table */
	for (nth = 1; nth <= 2; nth++) {
		int memory = fake_memory();

		fake_fail("malloc", nth, 1);
		assert_null(reserve(f, 1, RPMA_E_NOMEM));
		assert_true(fake_failed());
		assert_int_equal(fake_memory(), memory);
	}
	fake_fail("cq_new", 1, RPMA_E_PROVIDER);
	assert_null(reserve(f, 1, RPMA_E_PROVIDER));
	assert_null(f->poller->making);
	assert_non_null(reserve(f, 1, 0));
	fake_round(f);
}

CQ_TEST(reserve__failed_cq_not_used)
{
	struct rt_cq *cq = reserve(f, 1, 0);

	cq->failed = true;
	assert_ptr_not_equal(reserve(f, 1, 0), cq);
	fake_round(f);
}

/*
 * Pollers over completion vectors: no vector has two more pollers than another.
 */
CQ_TEST(reserve__vectors_spread)
{
	int vectors;
	int pollers;
	int used[8];
	int least;
	int most;
	int i;

	fake_attr.max_cqe = 64;
	for (vectors = 0; vectors <= 8; vectors++) {
		fake_ctx.num_comp_vectors = vectors;
		for (pollers = 1; pollers <= 10; pollers++) {
			memset(used, 0, sizeof(used));
			for (i = 0; i < pollers; i++) {
				f->poller->index = i;
				used[fake_cq(reserve(f, 64, 0))->vector]++;
			}
			least = most = used[0];
			for (i = 1; i < vectors; i++) {
				least = used[i] < least ? used[i] : least;
				most = used[i] > most ? used[i] : most;
			}
			assert_in_range(most - least, 0, 1);
			fake_round(f);
		}
	}
	f->poller->index = 0;
	fake_ctx.num_comp_vectors = 3;
	fake_attr.max_cqe = MAX_CQE;
}

CQ_TEST(reserve__failed_channel_not_used)
{
	struct rt_cq *cq = reserve(f, 1, 0);
	struct rt_cq *newer;

	cq->channel->failed = true;
	newer = reserve(f, 1, 0);
	assert_ptr_not_equal(newer->channel, cq->channel);
	assert_ptr_equal(reserve(f, 1, 0), newer);
	fake_round(f);
}

/* ------------------------------------------------ made without the lock --- */

static struct ibv_context another_ctx;

/* Other work while a CQ is made. */
static void meanwhile(void *arg)
{
	struct fake *f = arg;

	/* room there is, a CQ on another device, and the lock */
	assert_ptr_equal(reserve(f, 4, 0), f->poller->channels->cqs);
	assert_non_null(reserve_on(f, &another_ctx, 4, 0));
	assert_null(f->poller->making->next); /* the maker's own */
}

CQ_TEST(make__others_go_on)
{
	struct rt_cq *first = reserve(f, 60, 0);

	another_ctx = fake_ctx;
	fake_when_made(meanwhile, f);
	assert_ptr_not_equal(reserve(f, 60, 0), first);
	assert_int_equal(first->room, 0);
	assert_int_equal(f->poller->channels->ibv_ctx == &another_ctx, 1);
	fake_round(f);
	assert_int_equal(f->poller->cqs_count, 3);
}

struct waiter {
	struct fake *f;
	pthread_t thread;
	struct rt_cq_user user;
	struct rt_cq *cq;
	bool has_begun; /* under the runtime's lock */
};

static void *wait_for_room(void *arg)
{
	struct waiter *waiter = arg;
	struct rpma_rt *rt = waiter->f->rt;

	pthread_mutex_lock(&rt->lock);
	waiter->has_begun = true;
	ok(rt_cq_pool_reserve(waiter->f->poller, &fake_ctx, &waiter->user,
			      &waiter->cq));
	pthread_mutex_unlock(&rt->lock);
	return NULL;
}

/*
 * Returns when the waiter has released the lock: the waiter waits, or makes a
 * CQ.
 */
static void begin_to_wait(void *arg)
{
	struct waiter *waiter = arg;
	bool has_begun = false;

	ok(pthread_create(&waiter->thread, NULL, wait_for_room, waiter));
	while (!has_begun) {
		pthread_mutex_lock(&waiter->f->rt->lock);
		has_begun = waiter->has_begun;
		pthread_mutex_unlock(&waiter->f->rt->lock);
	}
}

CQ_TEST(make__who_would_make_one_too_waits_for_it)
{
	struct waiter waiter = {.f = f, .user = {.room = 24}};
	struct rt_cq *cq;

	fake_when_made(begin_to_wait, &waiter);
	cq = reserve(f, 40, 0);
	ok(pthread_join(waiter.thread, NULL));
	assert_ptr_equal(waiter.cq, cq);
	assert_int_equal(cq->room, 0);
	fake_round(f);
	assert_int_equal(f->poller->cqs_count, 1);
}

CQ_TEST(make__it_fails_who_waits_makes_one)
{
	struct waiter waiter = {.f = f, .user = {.room = 24}};

	fake_when_made(begin_to_wait, &waiter);
	fake_fail("cq_new", 1, RPMA_E_PROVIDER);
	assert_null(reserve(f, 40, RPMA_E_PROVIDER));
	ok(pthread_join(waiter.thread, NULL));
	assert_non_null(waiter.cq);
	fake_round(f);
}

/* The runtime begins to stop while the CQ of a connection is made: the
 * connection is not made, and the stop has waited. */
static void begin_to_stop(void *arg)
{
	struct fake *f = arg;

	pthread_mutex_lock(&f->rt->lock);
	assert_int_equal(f->rt->in_use, 1);
	f->rt->stopping = true;
	pthread_mutex_unlock(&f->rt->lock);
}

CQ_TEST(make__the_runtime_stops_meanwhile_CLOSED)
{
	struct rt_conn_spec spec = {
		.rt = f->rt,
		.device = f->device,
		.cfg = &f->listener.cfg,
		.passive = true,
		.control = rt_conn_control_message,
		.cm_ops = &rt_conn_cm_ops,
	};
	struct rpma_rt_conn *conn;

	fake_when_made(begin_to_stop, f);
	assert_int_equal(rt_conn_create(&spec, &conn), RPMA_RT_E_CLOSED);
	assert_int_equal(f->rt->in_use, 0);
	assert_int_equal(f->poller->conns, 0);
	assert_ptr_equal(f->poller->channels->spare, f->poller->channels->cqs);
	fake_round(f);
}

/* -------------------------------------------------------------- leaving --- */

CQ_TEST(unused__one_stays_as_a_spare)
{
	struct rt_cq *cqs[3];
	int i;

	fake_attr.max_cqe = 64;
	for (i = 0; i < 3; i++)
		cqs[i] = reserve(f, 64, 0);
	fake_attr.max_cqe = MAX_CQE;
	fake_finish_down(f);
	assert_int_equal(f->poller->cqs_count, 3);
	for (i = 0; i < 3; i++)
		unreserve(f, cqs[i], i);
	fake_forget_trace();
	fake_finish_down(f);
	assert_string_equal(fake_trace(), "cq_delete cq_delete");
	assert_int_equal(f->poller->cqs_count, 1);
	assert_int_equal(count_listed(f), 1);
	/* taken again, and not destroyed while in use */
	assert_ptr_equal(reserve(f, 64, 0), cqs[0]);
	assert_null(f->poller->channels->spare);
	assert_ptr_not_equal(reserve(f, 64, 0), cqs[0]);
	fake_finish_down(f);
	assert_int_equal(count_listed(f), 2);
}

CQ_TEST(unused__spare_taken_last)
{
	struct rt_cq *first = reserve(f, 40, 0);
	struct rt_cq *second = reserve(f, 40, 0);

	unreserve(f, second, 1);
	assert_ptr_equal(f->poller->channels->spare, second);
	assert_ptr_equal(reserve(f, 20, 0), first);
	assert_ptr_equal(reserve(f, 20, 0), second);
	assert_null(f->poller->channels->spare);
	fake_round(f);
}

CQ_TEST(unused__none_of_a_failed_one_or_channel_stays)
{
	struct rt_cq *cq = reserve(f, 64, 0);

	unreserve(f, cq, 0);
	rt_cq_fail_mt(cq);
	fake_finish_down(f);
	assert_int_equal(count_listed(f), 0);
	cq = reserve(f, 64, 0);
	rt_cq_fail_mt(cq);
	fake_finish_down(f);
	assert_int_equal(count_listed(f), 1);
	assert_int_equal(told_count, 1);
	assert_ptr_equal(told[0], &users[1]);
	unreserve(f, cq, 1);
	fake_finish_down(f);
	assert_int_equal(count_listed(f), 0);
	/* the channel, with a spare CQ */
	cq = reserve(f, 64, 0);
	unreserve(f, cq, 2);
	fake_finish_down(f);
	rt_cq_fail_channel_poller(cq->channel);
	fake_finish_down(f);
	assert_int_equal(count_listed(f), 0);
	assert_int_equal(f->poller->cqs_count, 0);
}

/* Two CQs without users; returns the second, which leaves. */
static struct rt_cq *one_leaves(struct fake *f)
{
	struct rt_cq *first = reserve(f, 64, 0);
	struct rt_cq *second = reserve(f, 64, 0);

	fake_round(f);
	unreserve(f, first, 0);
	fake_cq_event(second);
	rt_channel_wake(f->poller);
	assert_int_equal(fake_cq(second)->acked, 0);
	unreserve(f, second, 1);
	assert_true(second->leaving);
	assert_false(second->let_go);
	return second;
}

CQ_TEST(leave__events_read_acknowledged_later_ones_singly)
{
	struct rt_cq *cq = one_leaves(f);

	assert_ptr_not_equal(reserve(f, 64, 0), cq); /* the spare CQ */
	fake_round(f);
	assert_true(cq->let_go);
	assert_int_equal(fake_cq(cq)->acked, 1);
	assert_int_equal(f->poller->cqs_count, 1);
	fake_cq_event(cq);
	fake_cq_event(cq);
	rt_channel_wake(f->poller);
	assert_int_equal(fake_cq(cq)->events, 3);
	assert_int_equal(fake_cq(cq)->acked, 3);
	assert_int_equal(cq->unacked, 0);
	/* the fake refuses to delete a CQ with unacknowledged events */
	fake_finish_down(f);
	assert_int_equal(count_listed(f), 1);
}

/* The inbox may be run while a batch of the CQ is routed. */
CQ_TEST(leave__not_inside_a_batch)
{
	struct rt_cq *cq = one_leaves(f);

	rt_inbox_run_owner(&f->poller->inbox, f->poller);
	assert_false(cq->let_go);
	assert_int_equal(f->poller->cqs_count, 2);
	assert_true(fake_round(f) > 0);
	assert_true(cq->let_go);
	fake_finish_down(f);
}

/* FAIL is in the inbox when the CQ leaves: the record lives until then. */
CQ_TEST(leave__failed_meanwhile)
{
	struct rt_cq *cq = one_leaves(f);

	assert_false(cq->async.owned);
	rt_cqs_fail_poller(f->poller, cq);
	fake_round(f);
	/* the destroyer is faster than the control thread */
	rt_inbox_run_owner(&f->device->destroyer.inbox, f->rt);
	fake_finish_down(f);
	assert_int_equal(count_listed(f), 1);
	assert_int_equal(told_count, 0);
}

CQ_TEST(leave__device_would_not_destroy_it_again_at_the_end)
{
	struct rt_cq *cq = one_leaves(f);

	fake_fail("cq_delete", 1, RPMA_E_AGAIN);
	fake_finish_down(f);
	assert_true(fake_failed());
	assert_int_equal(count_listed(f), 2);
	assert_true(cq->leaving);
	/* the fake's teardown wants everything to be gone */
}

/* The poller ended before releasing the CQ. */
CQ_TEST(leave__stop_meanwhile_destroyed_all_the_same)
{
	one_leaves(f);
	fake_forget_trace();
	ok(rt_cq_pool_fini(f->poller));
	assert_string_equal(fake_trace(), "cq_delete cq_delete channel_delete");
}

/* Also the poller's array. */
CQ_TEST(leave__many_nothing_grows)
{
	struct rt_cq_user many[200];
	struct rt_cq *cqs[200];
	int i;

	fake_attr.max_cqe = 1000;
	pthread_mutex_lock(&f->rt->lock);
	for (i = 0; i < 200; i++) {
		many[i] = (struct rt_cq_user){.failed = failed, .room = 1000};
		ok(rt_cq_pool_reserve(f->poller, &fake_ctx, &many[i], &cqs[i]));
	}
	pthread_mutex_unlock(&f->rt->lock);
	fake_attr.max_cqe = MAX_CQE;
	fake_finish_down(f);
	assert_int_equal(f->poller->cqs_count, 200);
	pthread_mutex_lock(&f->rt->lock);
	for (i = 0; i < 200; i++)
		rt_cq_pool_unreserve(cqs[i], &many[i]);
	pthread_mutex_unlock(&f->rt->lock);
	/* a round has a bound */
	fake_round(f);
	assert_in_range(f->poller->cqs_count, 100, 199);
	fake_finish_down(f);
	assert_int_equal(f->poller->cqs_count, 1);
	assert_in_range(f->poller->cqs_max, 1, 16);
	assert_ptr_equal(f->poller->cqs[0], cqs[0]);
	assert_int_equal(cqs[0]->place, 0);
	assert_int_equal(count_listed(f), 1);
}

/* -------------------------------------------------------------- the end --- */

CQ_TEST(fini__acknowledges_then_destroys_first_error)
{
	struct rt_cq *cq = reserve(f, 64, 0);

	reserve(f, 64, 0);
	fake_round(f);
	fake_cq_event(cq);
	fake_cq_event(cq);
	rt_channel_wake(f->poller);
	assert_int_equal(fake_cq(cq)->acked, 0);
	fake_forget_trace();
	fake_fail("cq_delete", 2, RPMA_E_PROVIDER);
	/* the fake refuses to delete a CQ with unacknowledged events */
	assert_int_equal(rt_cq_pool_fini(f->poller), RPMA_E_PROVIDER);
	assert_string_equal(fake_trace(), "cq_delete cq_delete channel_delete");
	assert_null(f->poller->channels);
	f->poller->cqs_count = 0;
	f->poller->reading = NULL;
}

/* --------------------------------------------------------- async events --- */

/* Two connections on two CQs. */
static void two(struct fake *f, struct rpma_rt_conn *conns[2])
{
	conns[0] = fake_established(f);
	conns[0]->cq->room = 0;
	conns[1] = fake_established(f);
	conns[0]->cq->room = conns[0]->cq->cqe - conns[0]->cq_user.room;
}

/* The device reports an event, through the event thread. */
static void object_event(struct rt_async_object *object,
			 enum ibv_event_type type)
{
	assert_true(object->owned);
	object->event(object, type);
}

static void expect_dead(struct fake *f, struct rpma_rt_conn **conn,
			enum rpma_rt_reason reason)
{
	fake_finish_down(f);
	if ((*conn)->poll.state == RT_PS_DRAINING)
		fake_markers(*conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[0].status, reason);
	assert_int_equal(f->items[0].context, (uintptr_t)*conn);
	ok(rpma_rt_conn_unref(conn));
}

CQ_TEST(async__of_a_queue_pair_only_that)
{
	struct rpma_rt_conn *conns[2];

	two(f, conns);
	assert_ptr_equal(conns[1]->ctl.async.object, conns[1]->qp);
	object_event(&conns[1]->ctl.async, IBV_EVENT_COMM_EST);
	fake_finish_down(f);
	assert_int_equal(conns[1]->ctl.state, RT_CONN_ESTABLISHED);
	object_event(&conns[1]->ctl.async, IBV_EVENT_QP_FATAL);
	expect_dead(f, &conns[1], RPMA_RT_REASON_ERROR);
	assert_int_equal(conns[0]->ctl.state, RT_CONN_ESTABLISHED);
	fake_bury(f, &conns[0]);
}

/* Before the queue pair is destroyed, the queue pair has no owner: the next
 * queue pair may get the same address and number. */
CQ_TEST(async__queue_pair_given_up_before_it_goes)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_conn *hold = conn;

	ok(rpma_rt_conn_ref(hold));
	fake_bury(f, &conn);
	assert_false(hold->ctl.async.owned);
	ok(rpma_rt_conn_unref(&hold));
}

CQ_TEST(async__of_a_cq_its_connections_no_new_ones)
{
	struct rpma_rt_conn *conns[2];

	two(f, conns);
	object_event(&conns[0]->cq->async, IBV_EVENT_CQ_ERR);
	object_event(&conns[0]->cq->async, IBV_EVENT_CQ_ERR);
	expect_dead(f, &conns[0], RPMA_RT_REASON_DEVICE);
	/* the CQ went with its last user */
	assert_int_equal(count_listed(f), 1);
	assert_false(conns[1]->cq->failed);
	assert_int_equal(conns[1]->ctl.state, RT_CONN_ESTABLISHED);
	fake_bury(f, &conns[1]);
}

CQ_TEST(async__device_fatal_all)
{
	struct rt_async_device *device;
	struct rpma_rt_conn *conns[2];
	int i;

	two(f, conns);
	device = &conns[0]->cq->channel->device;
	device->fatal(device);
	device->fatal(device); /* said twice */
	/* markers may never come, and are not waited for */
	fake_finish_down(f);
	device->fatal(device); /* and once more, without a user */
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(f->items[i].opcode, RPMA_RT_EVENT_CLOSED);
		assert_int_equal(f->items[i].status, RPMA_RT_REASON_DEVICE);
		ok(rpma_rt_conn_unref(&conns[i]));
	}
}

TEST_MAIN()
