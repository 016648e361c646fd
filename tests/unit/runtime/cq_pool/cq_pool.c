/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Channels and shared CQs: room, sizes, the end, and what async events do. */

#include <string.h>

#include "rt_fake.h"

static struct rt_cq *reserve(struct fake *f, uint32_t room, int expected)
{
	struct rt_cq *cq = NULL;

	pthread_mutex_lock(&f->rt->lock);
	assert_int_equal(
		rt_cq_pool_reserve(f->poller, &fake_ctx, room, NULL, &cq),
		expected);
	pthread_mutex_unlock(&f->rt->lock);
	return cq;
}

static void reserve__shared_while_there_is_room(void **state)
{
	struct fake *f = *state;
	struct rt_cq *first = reserve(f, 40, 0);
	struct rt_cq *second;

	assert_int_equal(first->cqe, 64); /* as configured */
	assert_int_equal(first->room, 24);
	assert_ptr_equal(reserve(f, 24, 0), first);
	second = reserve(f, 1, 0);
	assert_ptr_not_equal(second, first);
	assert_ptr_equal(second->channel, first->channel);
	rt_cq_pool_unreserve(first, 24, NULL);
	/* the newer one is asked first, the older one has room again */
	assert_ptr_equal(reserve(f, 63, 0), second);
	assert_ptr_equal(reserve(f, 24, 0), first);
	fake_round(f);
	assert_int_equal(f->poller->cqs_count, 2);
	assert_int_equal(fake_cq(first)->arms, 0);
	rt_cq_pool_unreserve(first, 64, NULL);
	rt_cq_pool_unreserve(second, 64, NULL);
}

static void reserve__larger_than_configured_made_to_measure(void **state)
{
	struct fake *f = *state;
	struct rt_cq *cq = reserve(f, 100, 0);

	assert_int_equal(cq->cqe, 100);
	assert_int_equal(cq->room, 0);
	fake_round(f);
}

static void reserve__device_has_less_clipped_or_NOMEM(void **state)
{
	struct fake *f = *state;
	struct ibv_device_attr attr = fake_attr;

	fake_attr.max_cqe = 10;
	assert_null(reserve(f, 11, RPMA_E_NOMEM));
	assert_int_equal(reserve(f, 10, 0)->cqe, 10);
	fake_attr = attr;
	fake_round(f);
}

static void reserve__each_failure_out_parameter_untouched(void **state)
{
	struct fake *f = *state;
	int nth;

	fake_fail("ibv_query_device", 1, 5);
	assert_null(reserve(f, 1, RPMA_E_PROVIDER));
	/* record, stack of numbers, table */
	for (nth = 1; nth <= 3; nth++) {
		int memory = fake_memory();

		fake_fail("malloc", nth, 1);
		assert_null(reserve(f, 1, RPMA_E_NOMEM));
		assert_true(fake_failed());
		assert_int_equal(fake_memory(), memory);
	}
	fake_fail("cq_new", 1, RPMA_E_PROVIDER);
	assert_null(reserve(f, 1, RPMA_E_PROVIDER));
	assert_non_null(reserve(f, 1, 0));
	fake_round(f);
}

static void reserve__failed_cq_not_used(void **state)
{
	struct fake *f = *state;
	struct rt_cq *cq = reserve(f, 1, 0);

	cq->failed = true;
	assert_ptr_not_equal(reserve(f, 1, 0), cq);
	fake_round(f);
}

/* Pollers over completion vectors: none has more than one above another. */
static void reserve__vectors_spread(void **state)
{
	struct fake *f = *state;
	int vectors;
	int pollers;
	int used[8];
	int least;
	int most;
	int i;

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
}

static void reserve__failed_channel_not_used(void **state)
{
	struct fake *f = *state;
	struct rt_cq *cq = reserve(f, 1, 0);
	struct rt_cq *newer;

	cq->channel->failed = true;
	newer = reserve(f, 1, 0);
	assert_ptr_not_equal(newer->channel, cq->channel);
	assert_ptr_equal(reserve(f, 1, 0), newer);
	fake_round(f);
}

static void fini__acknowledges_then_destroys_first_error(void **state)
{
	struct fake *f = *state;
	struct rt_cq *cq = reserve(f, 64, 0);

	reserve(f, 64, 0);
	fake_round(f);
	fake_cq_event(cq);
	fake_cq_event(cq);
	rt_channel_wake(f->poller);
	assert_int_equal(fake_cq(cq)->acked, 0);
	fake_forget_trace();
	fake_fail("cq_delete", 2, RPMA_E_PROVIDER);
	/* the fake refuses a CQ with events that are not acknowledged */
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
	conns[0]->cq->room = conns[0]->cq->cqe - conns[0]->room;
}

/* The device says so, as the event thread tells it. */
static void object_event(struct rt_async_object *object,
			 enum ibv_event_type type)
{
	assert_true(object->owned);
	object->event(object, type);
}

static void expect_dead(struct fake *f, struct rpma_rt_conn **conn,
			enum rpma_rt_reason reason)
{
	fake_settle_down(f);
	if ((*conn)->poll.state == RT_PS_SETTLING)
		fake_markers(*conn);
	fake_settle_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[0].status, reason);
	assert_int_equal(f->items[0].context, (uintptr_t)*conn);
	ok(rpma_rt_conn_put(conn));
}

static void async__of_a_queue_pair_only_that(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conns[2];

	two(f, conns);
	assert_ptr_equal(conns[1]->ctl.async.object, conns[1]->qp);
	object_event(&conns[1]->ctl.async, IBV_EVENT_COMM_EST);
	fake_settle_down(f);
	assert_int_equal(conns[1]->ctl.state, RT_CONN_ESTABLISHED);
	object_event(&conns[1]->ctl.async, IBV_EVENT_QP_FATAL);
	expect_dead(f, &conns[1], RPMA_RT_REASON_ERROR);
	assert_int_equal(conns[0]->ctl.state, RT_CONN_ESTABLISHED);
	fake_bury(f, &conns[0]);
}

/* Before the queue pair is destroyed it is nobody's any more: the next one may
 * get its address and its number. */
static void async__queue_pair_given_up_before_it_goes(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_conn *hold = conn;

	ok(rpma_rt_conn_get(hold));
	fake_bury(f, &conn);
	assert_false(hold->ctl.async.owned);
	ok(rpma_rt_conn_put(&hold));
}

static void async__of_a_cq_its_connections_no_new_ones(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conns[2];

	two(f, conns);
	object_event(&conns[0]->cq->async, IBV_EVENT_CQ_ERR);
	object_event(&conns[0]->cq->async, IBV_EVENT_CQ_ERR);
	expect_dead(f, &conns[0], RPMA_RT_REASON_DEVICE);
	assert_true(f->poller->channels->cqs->next->failed);
	assert_false(conns[1]->cq->failed);
	assert_int_equal(conns[1]->ctl.state, RT_CONN_ESTABLISHED);
	fake_bury(f, &conns[1]);
}

static void async__device_fatal_all(void **state)
{
	struct fake *f = *state;
	struct rt_async_device *device;
	struct rpma_rt_conn *conns[2];
	int i;

	two(f, conns);
	device = &conns[0]->cq->channel->device;
	device->fatal(device);
	device->fatal(device); /* said twice */
	/* markers may never come: nobody waits for them */
	fake_settle_down(f);
	device->fatal(device); /* and once more, to nobody */
	fake_settle_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(f->items[i].opcode, RPMA_RT_EVENT_CLOSED);
		assert_int_equal(f->items[i].status, RPMA_RT_REASON_DEVICE);
		ok(rpma_rt_conn_put(&conns[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(reserve__shared_while_there_is_room),
		fake_test(reserve__larger_than_configured_made_to_measure),
		fake_test(reserve__device_has_less_clipped_or_NOMEM),
		fake_test(reserve__each_failure_out_parameter_untouched),
		fake_test(reserve__failed_cq_not_used),
		fake_test(reserve__vectors_spread),
		fake_test(reserve__failed_channel_not_used),
		fake_test(fini__acknowledges_then_destroys_first_error),
		fake_test(async__of_a_queue_pair_only_that),
		fake_test(async__queue_pair_given_up_before_it_goes),
		fake_test(async__of_a_cq_its_connections_no_new_ones),
		fake_test(async__device_fatal_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
