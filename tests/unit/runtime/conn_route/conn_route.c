/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Creation of a connection: it gets all it needs, or nothing and all is as
 * before; and it gives back all that it had. */

#include "rt_fake.h"

struct count {
	int memory;
	uint32_t room;
	uint32_t numbers;
	uint32_t slots;
	uint32_t reserved;
	uint32_t conns;
	uint32_t in_use;
};

static uint32_t count_free_slots(const struct rt_slots *slots)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < RT_SLOT_WORDS; i++)
		count += (uint32_t)__builtin_popcountll(~slots->taken[i]);
	return count;
}

/* What a poller has left of its first CQ and of the queue's lane; memory may
 * be kept by lanes and CQs, which stay. */
static struct count count(const struct fake *f)
{
	const struct rt_cq *cq = f->poller->channels->cqs;
	struct rt_lane *lane =
		rt_queue_lane(f->queue, f->poller->index, &f->poller->bell);

	return (struct count){
		.memory = fake_memory(),
		.room = cq->room,
		.numbers = cq->numbers.returned_count - cq->numbers.next,
		.slots = count_free_slots(rt_slots_of(f->poller)),
		.reserved = lane->reserved,
		.conns = f->poller->conns,
		.in_use = f->rt->in_use,
	};
}

static void expect_same(const struct count *a, const struct count *b)
{
	assert_memory_equal(a, b, sizeof(*a));
}

static struct rt_conn_spec spec_of(struct fake *f)
{
	return (struct rt_conn_spec){
		.rt = f->rt,
		.device = f->device,
		.cfg = &f->listener.cfg,
		.passive = true,
		.control = rt_conn_control_message,
		.cm_ops = &rt_conn_cm_ops,
	};
}

FAKE_TEST(create__what_it_holds_and_gives_back)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct count before;
	struct count with;
	struct count after;

	fake_bury(f, &conn);
	before = count(f);
	conn = fake_request(f);
	with = count(f);
	assert_int_equal(before.room - with.room, FAKE_SQ + FAKE_RQ + 2);
	assert_int_equal(before.numbers - with.numbers, 3);
	assert_int_equal(before.slots - with.slots, 1);
	assert_int_equal(with.reserved - before.reserved,
			 2 * (FAKE_SQ + FAKE_RQ) + RT_CONN_EVENTS);
	assert_int_equal(with.in_use, 1);
	assert_int_equal(rpma_rt_queue_delete(&f->queue), RPMA_RT_E_BUSY);
	assert_true(fake_said("is not deleted"));
	fake_bury(f, &conn);
	after = count(f);
	expect_same(&after, &before);
}

/* Every allocation and call on the way, one after the other. */
FAKE_TEST(create__each_failure_as_before)
{
	struct rt_conn_spec spec = spec_of(f);
	struct rpma_rt_conn *conn = fake_established(f);
	struct count before;
	struct count after;
	int nth;
	int ret;

	fake_bury(f, &conn);
	before = count(f);
	for (nth = 1;; nth++) {
		conn = NULL;
		fake_fail("malloc", nth, 1);
		ret = rt_conn_create(&spec, &conn);
		if (!fake_failed())
			break;
		assert_int_equal(ret, RPMA_E_NOMEM);
		assert_null(conn);
		after = count(f);
		expect_same(&after, &before);
	}
	ok(ret);
	/* record, configuration, two ledgers, kept, two routes */
	assert_in_range(nth, 8, 20);
	rt_conn_die_control(conn, RPMA_RT_REASON_FAILED, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	rt_conn_unref(conn);
}

/* The first on a device: channel and CQ have to be made as well. */
FAKE_TEST(create__first_each_failure_nothing_left)
{
	static const struct {
		const char *call;
		int value;
		int ret;
	} calls[] = {
		{"peer_get_ibv_context", RPMA_E_INVAL, RPMA_E_INVAL},
		{"channel_new", RPMA_E_PROVIDER, RPMA_E_PROVIDER},
		{"fcntl", 1, RPMA_E_PROVIDER},
		{"async_watch", RPMA_E_NOMEM, RPMA_E_NOMEM},
		{"epoll_ctl", 1, RPMA_E_PROVIDER},
	};
	struct rt_conn_spec spec = spec_of(f);
	struct rpma_rt_conn *conn = NULL;
	int objects = fake_objects();
	int memory = fake_memory();
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		fake_fail(calls[i].call, 1, calls[i].value);
		assert_int_equal(rt_conn_create(&spec, &conn), calls[i].ret);
		assert_true(fake_failed());
		assert_null(conn);
		assert_int_equal(fake_objects(), objects);
		assert_int_equal(fake_memory(), memory);
		assert_null(f->poller->channels);
	}
}

/* The channel exists and stays; the next one uses it. */
FAKE_TEST(create__no_cq_the_channel_stays)
{
	struct rt_conn_spec spec = spec_of(f);
	struct rpma_rt_conn *conn = NULL;

	fake_fail("cq_new", 1, RPMA_E_PROVIDER);
	assert_int_equal(rt_conn_create(&spec, &conn), RPMA_E_PROVIDER);
	assert_non_null(f->poller->channels);
	assert_null(f->poller->channels->cqs);
	fake_fail("ibv_query_device", 1, 5);
	assert_int_equal(rt_conn_create(&spec, &conn), RPMA_E_PROVIDER);
	conn = fake_established(f);
	assert_null(f->poller->channels->next);
	fake_bury(f, &conn);
}

FAKE_TEST(create__more_than_a_cq_of_the_device_INVAL)
{
	struct rt_conn_spec spec = spec_of(f);
	struct rpma_rt_conn *conn = NULL;
	int max = fake_attr.max_cqe;

	fake_attr.max_cqe = FAKE_SQ + FAKE_RQ + 1; /* one too few */
	assert_int_equal(rt_conn_create(&spec, &conn), RPMA_E_INVAL);
	fake_attr.max_cqe = FAKE_SQ + FAKE_RQ + 2;
	conn = fake_established(f);
	assert_int_equal(conn->cq->room, 0);
	fake_attr.max_cqe = max;
	fake_bury(f, &conn);
}

FAKE_TEST(create__longer_than_the_device_has_INVAL)
{
	struct rt_conn_spec spec = spec_of(f);
	struct rpma_rt_conn *conn = NULL;
	int max = fake_attr.max_qp_wr;

	/* room for the marker, too */
	fake_attr.max_qp_wr = FAKE_SQ > FAKE_RQ ? FAKE_SQ : FAKE_RQ;
	assert_int_equal(rt_conn_create(&spec, &conn), RPMA_E_INVAL);
	fake_attr.max_qp_wr++;
	conn = fake_established(f);
	fake_attr.max_qp_wr = max;
	fake_bury(f, &conn);
}

FAKE_TEST(create__no_slot_NOMEM)
{
	struct rt_conn_spec spec = spec_of(f);
	struct rpma_rt_conn *conn = NULL;
	uint32_t slot;

	while (rt_slots_take(f->poller, &slot) == 0)
		;
	assert_int_equal(rt_conn_create(&spec, &conn), RPMA_E_NOMEM);
}

/* The configuration of the queue pair: the caller's, plus a marker each. */
FAKE_TEST(create__configuration)
{
	struct rpma_rt_conn *conn;
	uint32_t size;
	uint8_t timer;

	f->rt_cfg.min_rnr_timer = 3;
	conn = fake_request(f);
	ok(rpma_conn_cfg_get_sq_size(conn->setup->cfg, &size));
	assert_int_equal(size, FAKE_SQ + 1);
	ok(rpma_conn_cfg_get_rq_size(conn->setup->cfg, &size));
	assert_int_equal(size, FAKE_RQ + 1);
	ok(rpma_conn_cfg_get_min_rnr_timer(conn->setup->cfg, &timer));
	assert_int_equal(timer, 3);
	fake_bury(f, &conn);
	f->rt_cfg.min_rnr_timer = RPMA_MIN_RNR_TIMER_UNSET;
	conn = fake_request(f);
	ok(rpma_conn_cfg_get_min_rnr_timer(conn->setup->cfg, &timer));
	assert_int_equal(timer, 12);
	fake_bury(f, &conn);
}

TEST_MAIN()
