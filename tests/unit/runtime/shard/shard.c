/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shards run in turn by one thread, each step by hand: messages come once and
 * in order, a full lane refuses, answers have room, timers, and the phases of a
 * stop.
 */

#include <unistd.h>

#include "rt_fake.h"
#include "shard/shard.h"

#include "base/clock.h"

#define SHARDS 3
#define LANE   4
#define WIDE   64 /* more messages than may be staged */
#define MANY   128

/* messages of a shard, and its reactions */
struct end {
	struct rpma_rt_shard *shard;
	struct rpma_rt_shard_message got[MANY];
	int count;
	int writable; /* times that on_writable ran */
	int items;
	uint64_t rings;	     /* of its shard, as an item's function saw them */
	bool answers;	     /* each request at once */
	int to_send;	     /* requests, in its functions */
	uint32_t to_send_to; /* the shard */
	int timers;
	struct rpma_rt_timer *restart; /* in its function */
};

struct test {
	struct rpma_rt *rt;
	struct rpma_rt_shards *shards;
	struct end ends[SHARDS];
};

/* ------------------------------------------------------- functions --- */

static struct rpma_rt_shard_message message_of(uint64_t context)
{
	return (struct rpma_rt_shard_message){
		.context = context,
		.words = {context + 1, context + 2},
		.code = (uint32_t)context + 3,
	};
}

static void send_more(struct end *end)
{
	struct rpma_rt_shard_message message = message_of(100);

	while (end->to_send > 0 &&
	       rpma_rt_shard_request(end->shard, end->to_send_to, &message) ==
		       0)
		end->to_send--;
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	struct rpma_rt_shard_message answer = message_of(7);
	struct end *end = arg;

	assert_ptr_equal(shard, end->shard);
	if (message->kind == RPMA_RT_SHARD_WRITABLE) {
		end->writable++;
		send_more(end);
		return;
	}
	assert_true(end->count < MANY);
	end->got[end->count++] = *message;
	if (end->answers && message->kind == RPMA_RT_SHARD_REQUEST)
		ok(rpma_rt_shard_answer(shard, message, &answer));
	send_more(end);
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	struct rpma_rt_shard_stats stats;
	struct end *end = arg;

	assert_ptr_equal(shard, end->shard);
	assert_int_equal(item->kind, RPMA_RT_MESSAGE);
	end->items++;
	ok(rpma_rt_shard_get_stats(shard, &stats, sizeof(stats)));
	end->rings = stats.rings;
}

static void on_timer(struct rpma_rt_shard *shard, struct rpma_rt_timer *timer)
{
	struct end *end = timer->arg;

	assert_ptr_equal(shard, end->shard);
	end->timers++;
	if (end->restart != NULL)
		ok(rpma_rt_timer_start(shard, end->restart, 0));
}

/* ----------------------------------------------------- the fixture --- */

static int set_up(void **state, uint32_t lane_size)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt_cfg rt_cfg = RPMA_RT_CFG_INIT;
	struct test *test = calloc(1, sizeof(*test));
	void *args[SHARDS];
	uint32_t i;

	assert_non_null(test);
	rt_cfg.mode = RPMA_RT_MODE_MANUAL;
	rt_cfg.pollers = SHARDS;
	ok(rpma_rt_new(&rt_cfg, &test->rt));
	for (i = 0; i < SHARDS; i++)
		args[i] = &test->ends[i];
	cfg.lane_size = lane_size;
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	cfg.args = args;
	cfg.arg_count = SHARDS;
	ok(rpma_rt_shards_new(test->rt, &cfg, &test->shards));
	for (i = 0; i < SHARDS; i++) {
		ok(rpma_rt_shards_get(test->shards, i, &test->ends[i].shard));
		test->ends[i].answers = true;
	}
	*state = test;
	return 0;
}

static int setup(void **state)
{
	return set_up(state, LANE);
}

static int setup_wide(void **state)
{
	return set_up(state, WIDE);
}

static int teardown(void **state)
{
	struct test *test = *state;

	ok(rpma_rt_shards_delete(&test->shards));
	assert_null(test->shards);
	ok(rpma_rt_delete(&test->rt));
	free(test);
	return 0;
}

/* Begin a case with lanes of LANE messages, and of WIDE. */
#define SHARD_TEST(name) TEST_OF(struct test *test, name, setup, teardown)
#define WIDE_TEST(name)	 TEST_OF(struct test *test, name, setup_wide, teardown)

static int turn(struct test *test, uint32_t index)
{
	return rpma_rt_shard_run(test->ends[index].shard, 0);
}

static void turn_all(struct test *test, int times)
{
	uint32_t i;

	while (times-- > 0) {
		for (i = 0; i < SHARDS; i++)
			assert_true(turn(test, i) >= 0);
	}
}

static int post(struct test *test, uint32_t from, uint32_t to, uint64_t context)
{
	struct rpma_rt_shard_message message = message_of(context);

	return rpma_rt_shard_post(test->ends[from].shard, to, &message);
}

static int request(struct test *test, uint32_t from, uint32_t to,
		   uint64_t context)
{
	struct rpma_rt_shard_message message = message_of(context);

	return rpma_rt_shard_request(test->ends[from].shard, to, &message);
}

static void came(struct end *end, int at, enum rpma_rt_shard_kind kind,
		 uint32_t from, uint64_t context)
{
	assert_true(at < end->count);
	assert_int_equal(end->got[at].kind, kind);
	assert_int_equal(end->got[at].from, from);
	assert_int_equal(end->got[at].context, context);
}

static struct rpma_rt_shard_stats stats_of(struct test *test, uint32_t index)
{
	struct rpma_rt_shard_stats stats;

	ok(rpma_rt_shard_get_stats(test->ends[index].shard, &stats,
				   sizeof(stats)));
	return stats;
}

/* -------------------------------------------------------- messages --- */

SHARD_TEST(post__full_AGAIN_then_WRITABLE_once)
{
	int i;

	for (i = 0; i < LANE; i++)
		ok(post(test, 0, 1, 0));
	assert_int_equal(post(test, 0, 1, 0), RPMA_E_AGAIN);
	assert_int_equal(post(test, 0, 1, 0), RPMA_E_AGAIN);
	assert_int_equal(turn(test, 0), 0);
	assert_int_equal(post(test, 0, 1, 0), RPMA_E_AGAIN);
	ok(post(test, 0, 2, 0)); /* another lane */
	assert_int_equal(test->ends[0].writable, 0);
	assert_int_equal(turn(test, 1), LANE);
	assert_int_equal(turn(test, 0), 1);
	assert_int_equal(test->ends[0].writable, 1);
	ok(post(test, 0, 1, 0));
	turn_all(test, 2);
	assert_int_equal(test->ends[0].writable, 1);
	assert_int_equal(stats_of(test, 0).refused, 3);
}

/* As many as are staged until the end of a turn; one more hands all over. */
WIDE_TEST(post__more_than_are_staged_COME_before_the_turn)
{
	struct end *end = &test->ends[1];
	int i;

	for (i = 0; i < RT_SHARD_STAGED; i++)
		ok(post(test, 0, 1, (uint64_t)i));
	assert_int_equal(turn(test, 1), 0);
	ok(post(test, 0, 1, (uint64_t)i));
	assert_int_equal(turn(test, 1), RT_SHARD_STAGED);
	assert_int_equal(turn(test, 0), 0);
	assert_int_equal(turn(test, 1), 1);
	assert_int_equal(stats_of(test, 0).sent, RT_SHARD_STAGED + 1);
	for (i = 0; i < RT_SHARD_STAGED + 1; i++)
		came(end, i, RPMA_RT_SHARD_POST, 0, (uint64_t)i);
}

/* Staged or not, a lane has its size, also when the numbers wrap. */
WIDE_TEST(post__full_with_some_staged_AGAIN)
{
	int round;
	int i;

	for (round = 0; round < 7; round++) {
		test->ends[1].count = 0;
		for (i = 0; i < WIDE; i++)
			ok(post(test, 0, 1, (uint64_t)i));
		assert_int_equal(post(test, 0, 1, 0), RPMA_E_AGAIN);
		turn_all(test, 3);
		assert_int_equal(test->ends[1].count, WIDE);
		for (i = 0; i < WIDE; i++)
			came(&test->ends[1], i, RPMA_RT_SHARD_POST, 0,
			     (uint64_t)i);
		/* another place of the staged ones in each round */
		for (i = 0; i < round; i++)
			ok(post(test, 0, 1, 0));
		turn_all(test, 2);
	}
}

/* -------------------------------------------------------- requests --- */

/* The receiver fills the lane with posts before answering all at once. So many
 * turns bring the answers back. */
static void answers_behind_a_full_lane(struct test *test, int lane, int turns)
{
	struct rpma_rt_shard_message answer = message_of(7);
	struct end *end = &test->ends[1];
	int i;

	end->answers = false;
	for (i = 0; i < lane; i++)
		ok(request(test, 0, 1, (uint64_t)i));
	turn_all(test, 1);
	assert_int_equal(end->count, lane);
	assert_int_equal(stats_of(test, 1).owed, lane);
	for (i = 0; i < lane; i++)
		ok(post(test, 1, 0, 50));
	assert_int_equal(post(test, 1, 0, 50), RPMA_E_AGAIN);
	for (i = 0; i < lane; i++)
		ok(rpma_rt_shard_answer(end->shard, &end->got[i], &answer));
	assert_int_equal(post(test, 1, 0, 50), RPMA_E_AGAIN);
	turn_all(test, turns);
	assert_int_equal(test->ends[0].count, 2 * lane);
	for (i = 0; i < lane; i++) {
		came(&test->ends[0], i, RPMA_RT_SHARD_POST, 1, 50);
		came(&test->ends[0], lane + i, RPMA_RT_SHARD_ANSWER, 1,
		     (uint64_t)i);
	}
	assert_int_equal(stats_of(test, 1).owed, 0);
}

TEST_WITH(answer__behind_a_full_lane_has_ROOM, setup, teardown)
{
	answers_behind_a_full_lane(*state, LANE, 2);
}

TEST_WITH(answer__more_than_are_staged_have_ROOM, setup_wide, teardown)
{
	answers_behind_a_full_lane(*state, WIDE, 3);
}

/* Takes all of the lane, and sets its numbers. */
static void go_on(struct test *test, uint32_t from, uint32_t to,
		  uint32_t number)
{
	struct rt_shard_out *out = &test->ends[from].shard->out[to];
	struct rpma_rt_shard *taker = test->ends[to].shard;
	uint32_t i;

	assert_int_equal(rt_shard_lane_staged(out), 0);
	out->published = number;
	for (i = 0; i < taker->in_count; i++) {
		if (taker->in[i].from == from)
			taker->in[i].head = number;
	}
	/* relaxed, both: a single thread */
	atomic_store_explicit(&out->lane->tail, number, memory_order_relaxed);
	atomic_store_explicit(&out->lane->head, number, memory_order_relaxed);
}

/* A shard that only sends answers: its numbers wrap, and its knowledge of the
 * room is from the beginning. */
SHARD_TEST(answer__very_many_the_lane_KEEPS_ITS_SIZE)
{
	static const uint32_t numbers[] = {1000, INT32_MAX,
					   (uint32_t)INT32_MAX + LANE + 100,
					   UINT32_MAX - 1};
	size_t i;
	int k;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		ok(request(test, 0, 1, 0));
		turn_all(test, 2);
		go_on(test, 1, 0, numbers[i]);
		ok(request(test, 0, 1, 0));
		turn_all(test, 2);
		assert_int_equal(stats_of(test, 0).unanswered, 0);
		test->ends[0].count = 0;
		for (k = 0; k < LANE; k++)
			ok(post(test, 1, 0, (uint64_t)k));
		assert_int_equal(post(test, 1, 0, 0), RPMA_E_AGAIN);
		turn_all(test, 3);
		assert_int_equal(test->ends[0].count, LANE);
		test->ends[1].count = 0;
	}
}

/* Taken, but not answered: the lane is empty, the credits are out. */
SHARD_TEST(request__without_credit_AGAIN_then_WRITABLE)
{
	struct rpma_rt_shard_message answer = message_of(7);
	struct end *end = &test->ends[1];
	int i;

	end->answers = false;
	for (i = 0; i < LANE; i++)
		ok(request(test, 0, 1, (uint64_t)i));
	turn_all(test, 1);
	assert_int_equal(request(test, 0, 1, 0), RPMA_E_AGAIN);
	ok(post(test, 0, 1, 0));
	turn_all(test, 2);
	assert_int_equal(test->ends[0].writable, 0);
	for (i = 0; i < LANE / 2; i++)
		ok(rpma_rt_shard_answer(end->shard, &end->got[i], &answer));
	turn_all(test, 2);
	assert_int_equal(test->ends[0].writable, 1);
	ok(request(test, 0, 1, 0));
	for (; i < LANE; i++)
		ok(rpma_rt_shard_answer(end->shard, &end->got[i], &answer));
}

/* A credit is back when the slot of its answer is back, not before: requests
 * sent in the functions of answers. */
SHARD_TEST(request__in_a_function_of_an_answer_HAS_ROOM)
{
	int i;

	test->ends[0].to_send = 5 * LANE;
	test->ends[0].to_send_to = 1;
	for (i = 0; i < LANE; i++)
		ok(request(test, 0, 1, 0));
	for (i = 0; i < 20 * LANE; i++)
		turn_all(test, 1);
	assert_int_equal(test->ends[0].to_send, 0);
	assert_int_equal(test->ends[0].count, 6 * LANE);
	assert_int_equal(stats_of(test, 0).unanswered, 0);
}

SHARD_TEST(answer__twice_or_to_none_INVAL)
{
	struct rpma_rt_shard_message answer = message_of(7);
	struct end *end = &test->ends[1];

	ok(request(test, 0, 1, 1));
	ok(post(test, 0, 1, 2));
	turn_all(test, 1);
	assert_int_equal(
		rpma_rt_shard_answer(end->shard, &end->got[0], &answer),
		RPMA_E_INVAL);
	assert_true(fake_said("owes no answer"));
	assert_int_equal(
		rpma_rt_shard_answer(end->shard, &end->got[1], &answer),
		RPMA_E_INVAL);
}

/* ------------------------------------------------ queue and timers --- */

SHARD_TEST(timer__is_called_when_DUE)
{
	struct end *end = &test->ends[0];
	struct rpma_rt_timer soon = {.fn = on_timer, .arg = end};
	struct rpma_rt_timer late = {.fn = on_timer, .arg = end};
	struct rpma_rt_timer never = {.fn = on_timer, .arg = end};

	ok(rpma_rt_timer_start(end->shard, &late, 3600000000u));
	ok(rpma_rt_timer_start(end->shard, &never, UINT64_MAX));
	assert_int_equal(turn(test, 0), 0);
	ok(rpma_rt_timer_start(end->shard, &soon, 2000));
	/* the run ends when the timer is due */
	assert_int_equal(rpma_rt_shard_run(end->shard, -1), 1);
	assert_int_equal(end->timers, 1);
	assert_int_equal(stats_of(test, 0).timers, 1);
	/* not before the time of the run */
	assert_int_equal(rpma_rt_shard_run(end->shard, 1), 0);
	/* moved */
	ok(rpma_rt_timer_start(end->shard, &late, 0));
	assert_int_equal(turn(test, 0), 1);
	assert_int_equal(rpma_rt_timer_cancel(end->shard, &late), 0);
	assert_int_equal(rpma_rt_timer_cancel(end->shard, &never), 1);
	assert_int_equal(end->timers, 2);
}

SHARD_TEST(timer__cancelled_is_NOT_CALLED)
{
	struct end *end = &test->ends[0];
	struct rpma_rt_timer timers[11] = {0};
	int i, called = 0;

	for (i = 0; i < 11; i++) {
		timers[i].fn = on_timer;
		timers[i].arg = end;
		ok(rpma_rt_timer_start(end->shard, &timers[i],
				       (uint64_t)(11 - i)));
	}
	for (i = 1; i < 11; i += 2)
		assert_int_equal(rpma_rt_timer_cancel(end->shard, &timers[i]),
				 1);
	/* the latest timer is called last, and is none of the cancelled */
	while (end->timers < 6)
		called += turn(test, 0);
	assert_int_equal(called, 6);
	assert_int_equal(turn(test, 0), 0);
	assert_int_equal(end->timers, 6);
}

/* A timer that is always due does not keep the shard from other work. */
SHARD_TEST(timer__set_again_inside_is_BOUNDED)
{
	struct end *end = &test->ends[0];
	struct rpma_rt_timer timer = {.fn = on_timer, .arg = end};

	end->restart = &timer;
	ok(rpma_rt_timer_start(end->shard, &timer, 0));
	ok(post(test, 0, 0, 1));
	turn_all(test, 3);
	assert_int_equal(end->count, 1);
	assert_true(end->timers >= 2);
	end->restart = NULL;
	(void)rpma_rt_timer_cancel(end->shard, &timer);
}

SHARD_TEST(timer__wrong_INVAL)
{
	struct rpma_rt_timer timer = {.fn = on_timer};

	ok(rpma_rt_timer_start(test->ends[0].shard, &timer, 1000000));
	assert_int_equal(rpma_rt_timer_start(test->ends[1].shard, &timer, 1),
			 RPMA_E_INVAL);
	assert_true(fake_said("another shard"));
	assert_int_equal(rpma_rt_timer_cancel(test->ends[1].shard, &timer),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_timer_cancel(test->ends[0].shard, &timer), 1);
}

/* A deleted set leaves its timers: a timer may be set on another shard. */
SHARD_TEST(delete__timers_SET_NOWHERE)
{
	struct rpma_rt_timer timers[3] = {0};
	void *other_state;
	struct test *other;
	int i;

	set_up(&other_state, LANE);
	other = other_state;
	for (i = 0; i < 3; i++) {
		timers[i].fn = on_timer;
		timers[i].arg = &test->ends[0];
		ok(rpma_rt_timer_start(other->ends[1].shard, &timers[i],
				       1000000));
	}
	teardown(&other_state);
	for (i = 0; i < 3; i++) {
		assert_int_equal(
			rpma_rt_timer_cancel(test->ends[0].shard, &timers[i]),
			0);
		ok(rpma_rt_timer_start(test->ends[0].shard, &timers[i], 0));
	}
	turn_all(test, 1);
	assert_int_equal(test->ends[0].timers, 3);
}

/* ----------------------------------------------------------- sleep --- */

/* An idle shard sleeps once, for the whole time of its run. On a busy machine
 * the time may be over before the shard sleeps. */
SHARD_TEST(run__idle_SLEEPS)
{
	do {
		assert_int_equal(rpma_rt_shard_run(test->ends[0].shard, 20), 0);
	} while (stats_of(test, 0).sleeps == 0);
	assert_int_equal(stats_of(test, 0).sleeps, 1);
}

/* A wake of the queue of the shard brings the run back, once. */
SHARD_TEST(run__queue_woken_RETURNS)
{
	struct rpma_rt_queue *queue;

	ok(rpma_rt_shard_get_queue(test->ends[0].shard, &queue));
	ok(rpma_rt_queue_wake(queue));
	assert_int_equal(rpma_rt_shard_run(test->ends[0].shard, -1), 0);
	assert_int_equal(rpma_rt_shard_run(test->ends[0].shard, 20), 0);
	assert_int_equal(stats_of(test, 0).sleeps, 1);
}

static void *run_of_another(void *arg)
{
	assert_int_equal(rpma_rt_shard_run(arg, 0), RPMA_RT_E_BUSY);
	return NULL;
}

/* The shard goes on to be that of the thread which runs it. */
SHARD_TEST(run__of_another_thread_REFUSED_and_nothing_else)
{
	pthread_t thread;

	assert_int_equal(turn(test, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, run_of_another,
					test->ends[0].shard),
			 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ok(post(test, 0, 1, 0));
	turn_all(test, 1);
	assert_int_equal(test->ends[1].count, 1);
}

/* However long it may spin. The best of several: the machine may be busy. */
SHARD_TEST(run__woken_while_it_SPINS)
{
	struct rpma_rt_shard *shard = test->ends[0].shard;
	uint64_t spin_ns = test->shards->spin_ns;
	uint64_t least = UINT64_MAX;
	struct rpma_rt_queue *queue;
	uint64_t begin;
	int i;

	test->shards->spin_ns = 1000000000;
	ok(rpma_rt_shard_get_queue(shard, &queue));
	for (i = 0; i < 3; i++) {
		begin = rt_now_ns();
		ok(rpma_rt_queue_wake(queue));
		assert_int_equal(rpma_rt_shard_run(shard, -1), 0);
		if (rt_now_ns() - begin < least)
			least = rt_now_ns() - begin;
	}
	assert_true(least < test->shards->spin_ns);
	test->shards->spin_ns = spin_ns;
}

/* The word says asleep, and the eventfd is written once per sleep. */
SHARD_TEST(ring__once_for_a_sleep)
{
	struct rpma_rt_shard *sleeper = test->ends[1].shard;
	uint64_t writes;
	int i;

	/* relaxed: a single thread */
	atomic_store_explicit(&sleeper->asleep, 1, memory_order_relaxed);
	for (i = 0; i < 3; i++) {
		ok(post(test, 0, 1, 0));
		assert_int_equal(turn(test, 0), 0);
	}
	assert_int_equal(stats_of(test, 0).rings, 1);
	assert_int_equal(read(sleeper->eventfd, &writes, sizeof(writes)),
			 sizeof(writes));
	assert_int_equal(writes, 1);
	/* relaxed: as above; the next sleep */
	atomic_store_explicit(&sleeper->asleep, 3, memory_order_relaxed);
	ok(post(test, 0, 1, 0));
	assert_int_equal(turn(test, 0), 0);
	assert_int_equal(stats_of(test, 0).rings, 2);
	/* relaxed: as above; awake */
	atomic_store_explicit(&sleeper->asleep, 4, memory_order_relaxed);
	turn_all(test, 2);
	assert_int_equal(test->ends[1].count, 4);
}

/* A function may wait for the receiver of a message that was sent before the
 * run. */
SHARD_TEST(ring__before_any_FUNCTION)
{
	struct rpma_rt_queue *queue;

	/* relaxed: one thread */
	atomic_store_explicit(&test->ends[1].shard->asleep, 1,
			      memory_order_relaxed);
	ok(post(test, 0, 1, 0));
	ok(rpma_rt_shard_get_queue(test->ends[0].shard, &queue));
	ok(rpma_rt_queue_push(queue, &(struct rpma_rt_completion){0}));
	assert_int_equal(turn(test, 0), 1);
	assert_int_equal(test->ends[0].rings, 1);
	/* relaxed: as above */
	atomic_store_explicit(&test->ends[1].shard->asleep, 2,
			      memory_order_relaxed);
	turn_all(test, 1);
	assert_int_equal(test->ends[1].count, 1);
}

/* A sleeping sender is rung for room only if the sender wants room. */
SHARD_TEST(ring__for_room_only_if_WANTED)
{
	struct rpma_rt_shard *sender = test->ends[0].shard;
	int i;

	ok(post(test, 0, 1, 0));
	assert_int_equal(turn(test, 0), 0);
	/* relaxed, here and below: a single thread */
	atomic_store_explicit(&sender->asleep, 1, memory_order_relaxed);
	assert_int_equal(turn(test, 1), 1);
	assert_int_equal(stats_of(test, 1).rings, 0);
	atomic_store_explicit(&sender->asleep, 2, memory_order_relaxed);
	for (i = 0; i < LANE; i++)
		ok(post(test, 0, 1, 0));
	assert_int_equal(post(test, 0, 1, 0), RPMA_E_AGAIN);
	assert_int_equal(turn(test, 0), 0);
	/* relaxed: as above */
	atomic_store_explicit(&sender->asleep, 3, memory_order_relaxed);
	assert_int_equal(turn(test, 1), LANE);
	assert_int_equal(stats_of(test, 1).rings, 1);
	/* relaxed: as above */
	atomic_store_explicit(&sender->asleep, 4, memory_order_relaxed);
	assert_int_equal(turn(test, 0), 1);
	assert_int_equal(test->ends[0].writable, 1);
}

/* ------------------------------------------------------------ stop --- */

/* No shard ends before all are through; then all do. */
SHARD_TEST(stop__ends_TOGETHER)
{
	uint32_t i;
	int times;

	turn_all(test, 1);
	ok(rpma_rt_shards_stop(test->shards));
	for (times = 0; times < 10; times++) {
		assert_int_equal(turn(test, 0), 0);
		assert_int_equal(turn(test, 1), 0);
	}
	for (times = 0; times < 10; times++) {
		for (i = 0; i < SHARDS; i++)
			(void)turn(test, i);
	}
	for (i = 0; i < SHARDS; i++)
		assert_int_equal(turn(test, i), RPMA_RT_E_CLOSED);
	ok(rpma_rt_shards_stop(test->shards));
}

/*
 * A request kept by the receiver is answered while possible, and counted
 * otherwise.
 */
SHARD_TEST(stop__a_request_that_was_KEPT)
{
	struct rpma_rt_shard_message answer = message_of(7);
	struct end *end = &test->ends[1];
	int times;

	end->answers = false;
	ok(request(test, 0, 1, 1));
	ok(request(test, 0, 1, 2));
	turn_all(test, 1);
	ok(rpma_rt_shards_stop(test->shards));
	turn_all(test, 1);
	ok(rpma_rt_shard_answer(end->shard, &end->got[0], &answer));
	for (times = 0; times < 10; times++) {
		(void)turn(test, 1);
		(void)turn(test, 0);
		(void)turn(test, 2);
	}
	assert_int_equal(turn(test, 0), RPMA_RT_E_CLOSED);
	assert_int_equal(test->ends[0].count, 1);
	assert_int_equal(stats_of(test, 0).unanswered, 1);
	assert_int_equal(stats_of(test, 1).owed, 1);
	assert_int_equal(
		rpma_rt_shard_answer(end->shard, &end->got[1], &answer),
		RPMA_RT_E_CLOSED);
}

/* A stop of the runtime stops the shards. */
SHARD_TEST(stop__of_the_RUNTIME)
{
	uint32_t i;
	int times;

	turn_all(test, 1);
	ok(post(test, 0, 1, 1));
	assert_int_equal(turn(test, 0), 0);
	ok(rpma_rt_stop(test->rt));
	for (times = 0; times < 10; times++) {
		for (i = 0; i < SHARDS; i++)
			(void)turn(test, i);
	}
	assert_int_equal(test->ends[1].count, 1);
	for (i = 0; i < SHARDS; i++)
		assert_int_equal(turn(test, i), RPMA_RT_E_CLOSED);
}

/* ------------------------------------------------------------ dump --- */

/* Shard 0 has filled the lane to shard 1, which sleeps, or seems to. */
SHARD_TEST(dump__says_what_WAITS)
{
	struct end *end = &test->ends[0];
	struct rpma_rt_timer timer = {.fn = on_timer, .arg = end};
	int i;

	ok(request(test, 0, 1, 0));
	for (i = 1; i < LANE; i++)
		ok(post(test, 0, 1, 0));
	assert_int_equal(post(test, 0, 1, 0), RPMA_E_AGAIN);
	ok(rpma_rt_timer_start(end->shard, &timer, 1000000));
	assert_int_equal(turn(test, 0), 0);
	/* relaxed: a single thread */
	atomic_store_explicit(&test->ends[1].shard->asleep, 1,
			      memory_order_relaxed);
	fake_dumped(test->rt, RPMA_RT_DUMP_HUMAN,
		    "shard 1 of set 0: asleep, queue ");
	fake_dumped(test->rt, RPMA_RT_DUMP_HUMAN,
		    "    from shard 0: 4 messages wait, and it was refused\n");
	fake_dumped(
		test->rt, RPMA_RT_DUMP_HUMAN,
		"0 messages wait, 1 timers, 1 requests without an answer, 0 to "
		"answer\n");
	fake_dumped(test->rt, RPMA_RT_DUMP_JSON,
		    "{\"from\":0,\"waiting\":4,\"wants_room\":true}]}");
	fake_dumped(test->rt, RPMA_RT_DUMP_PROMETHEUS,
		    "rpma_rt_shard_waiting{set=\"0\",shard=\"1\"} 4\n");
	fake_dumped(test->rt, RPMA_RT_DUMP_PROMETHEUS,
		    "rpma_rt_shard_asleep{set=\"0\",shard=\"1\"} 1\n");
	assert_int_equal(rpma_rt_timer_cancel(end->shard, &timer), 1);
	/* relaxed: as above */
	atomic_store_explicit(&test->ends[1].shard->asleep, 2,
			      memory_order_relaxed);
	turn_all(test, 2);
	fake_dumped(
		test->rt, RPMA_RT_DUMP_HUMAN,
		"0 messages wait, 0 timers, 0 requests without an answer, 0 to "
		"answer\n");
	ok(rpma_rt_shards_stop(test->shards));
	assert_int_equal(turn(test, 2), 0);
	fake_dumped(test->rt, RPMA_RT_DUMP_HUMAN,
		    "to answer, stopping: sends nothing");
}

SHARD_TEST(delete__says_what_was_NOT_DELIVERED)
{
	ok(post(test, 0, 1, 1));
	assert_int_equal(turn(test, 0), 0);
	ok(post(test, 0, 1, 2)); /* not handed over */
	ok(rpma_rt_shards_delete(&test->shards));
	assert_true(fake_said("2 messages between shards"));
	(void)fake_logged();
}

TEST_MAIN()
