/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shard.c -- two shards in every order of their accesses to lanes, to the words
 * that say that a shard sleeps, and to their eventfds: messages, room, requests
 * and answers. A lost wake-up is an order in which every thread waits. A stop
 * has too many orders: orders with two interruptions are tried.
 *
 * The shards have pollers and queues, which have nothing to do.
 */

#include <poll.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

#include "explore.h"
#include "rt_fake.h"
#include "shard/shard.h"

#define SHARDS 2
#define LANE   2

static struct rpma_rt *rt;
static struct rpma_rt_shards *set;

/* a shard's, of an order */
static struct side {
	struct rpma_rt_shard *shard;
	int came;     /* posts and requests */
	int answered; /* of its requests */
	int writable; /* times that on_writable ran */
	int taken;    /* accepted posts and requests */
	int to_ask;   /* requests sent as soon as allowed */
} sides[SHARDS];

/* ------------------------------------------------------- system calls --- */

static struct rpma_rt_shard *shard_of_fd(int fd)
{
	uint32_t i;

	for (i = 0; set != NULL && i < set->count; i++) {
		if (set->shards[i].eventfd == fd || set->shards[i].epfd == fd)
			return &set->shards[i];
	}
	return NULL;
}

ssize_t __real_write(int fd, const void *from, size_t size);
ssize_t __wrap_write(int fd, const void *from, size_t size);
ssize_t __wrap_write(int fd, const void *from, size_t size)
{
	struct rpma_rt_shard *shard = shard_of_fd(fd);

	if (shard != NULL)
		explore_touch(&shard->eventfd);
	return __real_write(fd, from, size);
}

ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size)
{
	struct rpma_rt_shard *shard = shard_of_fd(fd);

	if (shard != NULL)
		explore_touch(&shard->eventfd);
	return __real_read(fd, to, size);
}

static bool is_readable(void *arg)
{
	struct pollfd *fd = arg;

	return poll(fd, 1, 0) == 1;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const void *timeout,
		 const void *signals);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const void *timeout,
		 const void *signals)
{
	(void)count;
	(void)timeout; /* without end, in these plays */
	(void)signals;
	explore_wait(&shard_of_fd(fds->fd)->eventfd, is_readable, fds);
	return 1;
}

/* ------------------------------------------------------------ the set --- */

static struct side *side_of(const struct rpma_rt_shard *shard)
{
	return &sides[shard->index];
}

static int ask(struct side *side)
{
	const struct rpma_rt_shard_message message = {.context = 7};
	uint32_t to = 1 - side->shard->index;

	return rpma_rt_shard_request(side->shard, to, &message);
}

static int tell(struct side *side)
{
	const struct rpma_rt_shard_message message = {
		.context = (uint64_t)side->taken};
	uint32_t to = 1 - side->shard->index;
	int ret = rpma_rt_shard_post(side->shard, to, &message);

	side->taken += ret == 0;
	return ret;
}

static void ask_all(struct side *side)
{
	int ret = 0;

	while (side->to_ask > 0 && ret == 0) {
		ret = ask(side);
		EXPLORE_CHECK(ret == 0 || ret == RPMA_E_AGAIN);
		side->to_ask -= ret == 0;
		side->taken += ret == 0;
	}
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	struct side *side = side_of(shard);

	(void)arg;
	EXPLORE_CHECK(message->from == 1 - shard->index);
	switch (message->kind) {
	case RPMA_RT_SHARD_POST:
		EXPLORE_CHECK(message->context == (uint64_t)side->came);
		side->came++;
		break;
	case RPMA_RT_SHARD_REQUEST:
		side->came++;
		EXPLORE_CHECK(rpma_rt_shard_answer(shard, message, message) ==
			      0);
		break;
	case RPMA_RT_SHARD_ANSWER:
		EXPLORE_CHECK(message->context == 7);
		side->answered++;
		break;
	default:
		side->writable++;
		break;
	}
	ask_all(side);
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
	explore_fail("an item");
}

/* Another thread runs the shard next. */
static void let_go(const struct rpma_rt_shard *shard)
{
	EXPLORE_CHECK(rpma_rt_poller_release(rt, shard->index) == 0);
}

/* Lanes are made under a lock: before the order. */
static void meet(void)
{
	struct side former[SHARDS];
	int i;

	for (i = 0; i < SHARDS; i++) {
		EXPLORE_CHECK(ask(&sides[i]) == 0);
		EXPLORE_CHECK(rpma_rt_shard_run(sides[i].shard, 0) >= 0);
	}
	for (i = 0; i < 2 * SHARDS; i++)
		EXPLORE_CHECK(rpma_rt_shard_run(sides[i % 2].shard, 0) >= 0);
	for (i = 0; i < SHARDS; i++) {
		EXPLORE_CHECK(sides[i].answered == 1);
		let_go(sides[i].shard);
		/* any thread may send until one runs it. relaxed: alone */
		atomic_store_explicit(&sides[i].shard->thread, 0,
				      memory_order_relaxed);
		former[i] = (struct side){.shard = sides[i].shard};
		sides[i] = former[i];
	}
}

static void watch(void)
{
	uint32_t i;

	explore_watch_nothing();
	for (i = 0; i < SHARDS * SHARDS; i++) {
		const struct rt_shard_lane *lane = set->lanes[i];

		if (lane == NULL)
			continue;
		explore_watch(&lane->tail, sizeof(lane->tail));
		explore_watch(&lane->wants, sizeof(lane->wants));
		explore_watch(&lane->head, sizeof(lane->head));
	}
	for (i = 0; i < SHARDS; i++) {
		explore_watch(&set->shards[i].asleep,
			      sizeof(set->shards[i].asleep));
	}
}

static void setup(void)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	uint32_t i;

	cfg.lane_size = LANE;
	cfg.spin_us = 0;
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	EXPLORE_CHECK(rpma_rt_shards_new(rt, &cfg, &set) == 0);
	for (i = 0; i < SHARDS; i++) {
		sides[i] = (struct side){0};
		EXPLORE_CHECK(rpma_rt_shards_get(set, i, &sides[i].shard) == 0);
	}
	meet();
	watch();
}

static void delete_set(void)
{
	EXPLORE_CHECK(rpma_rt_shards_delete(&set) == 0);
}

/* After a stop: asserts that each accepted request was seen and answered, and
 * nothing is left. */
static void check_stop(void)
{
	int i;

	for (i = 0; i < SHARDS; i++) {
		EXPLORE_CHECK(sides[i].answered == sides[i].taken);
		EXPLORE_CHECK(sides[1 - i].came == sides[i].taken);
	}
	delete_set();
}

static void setup_stop(void)
{
	uint32_t i;

	setup();
	explore_watch(&set->stopping, sizeof(set->stopping));
	for (i = 0; i < SHARDS; i++) {
		struct rpma_rt_shard *shard = sides[i].shard;

		explore_watch(&shard->phase, sizeof(shard->phase));
		/* a shard takes known room without a look */
		rt_shard_lane_look(&shard->out[1 - i]);
	}
}

/* --------------------------------------------------------------- plays --- */

static void run(struct side *side, int timeout_ms)
{
	EXPLORE_CHECK(rpma_rt_shard_run(side->shard, timeout_ms) >= 0);
	let_go(side->shard);
}

static void take(int count)
{
	while (sides[1].came < count)
		run(&sides[1], -1);
}

/*
 * Sends messages one at a time: the other shard sleeps between the messages, or
 * not.
 */
static void send_one(void)
{
	EXPLORE_CHECK(tell(&sides[0]) == 0);
	run(&sides[0], 0);
}

static void take_one(void)
{
	take(1);
}

static void send_two(void)
{
	send_one();
	send_one();
}

static void take_two(void)
{
	take(2);
}

/*
 * Sends more messages than the lane has room for: sleeps until there is room.
 */
static void send_many(void)
{
	while (sides[0].taken < LANE + 1) {
		int ret = tell(&sides[0]);
		int writable = sides[0].writable;

		EXPLORE_CHECK(ret == 0 || ret == RPMA_E_AGAIN);
		while (ret != 0 && sides[0].writable == writable)
			run(&sides[0], -1);
	}
	run(&sides[0], 0);
}

static void take_many(void)
{
	take(LANE + 1);
}

static void ask_until_answered(struct side *side, int count)
{
	side->to_ask = count;
	ask_all(side);
	while (side->answered < count)
		run(side, -1);
}

/* More requests than may be under way. */
static void ask_many(void)
{
	ask_until_answered(&sides[0], LANE + 1);
}

static void answer_many(void)
{
	take(LANE + 1);
	run(&sides[1], 0);
}

/* Both shards ask; each answers while waiting. */
static void ask_one_other(struct side *side)
{
	ask_until_answered(side, 1);
	while (side->came < 1)
		run(side, -1);
	run(side, 0);
}

static void ask_first(void)
{
	ask_one_other(&sides[0]);
}

static void ask_second(void)
{
	ask_one_other(&sides[1]);
}

/* The lane is full of posts at the answer. */
static void fill_and_answer(void)
{
	int i;

	for (i = 0; i < LANE; i++)
		EXPLORE_CHECK(tell(&sides[0]) == 0);
	while (sides[0].came < 1)
		run(&sides[0], -1);
	run(&sides[0], 0);
}

static void ask_and_take(void)
{
	ask_until_answered(&sides[1], 1);
	EXPLORE_CHECK(sides[1].came == LANE);
}

/* Until the stop is over. */
static void run_to_the_end(struct side *side)
{
	int ret;

	do {
		ret = rpma_rt_shard_run(side->shard, -1);
		EXPLORE_CHECK(ret >= 0 || ret == RPMA_RT_E_CLOSED);
	} while (ret != RPMA_RT_E_CLOSED);
}

/*
 * A request comes before the stop, or after the stop, when the request is
 * refused.
 */
static void ask_to_the_end(struct side *side)
{
	int ret = rpma_rt_shard_run(side->shard, 0);

	EXPLORE_CHECK(ret >= 0);
	ret = ask(side);
	EXPLORE_CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
	side->taken += ret == 0;
	run_to_the_end(side);
}

static void ask_and_end(void)
{
	ask_to_the_end(&sides[0]);
}

static void stop_and_end(void)
{
	EXPLORE_CHECK(rpma_rt_shards_stop(set) == 0);
	run_to_the_end(&sides[1]);
}

/* A request is handed over after the stop. */
static void ask_and_stop(void)
{
	/* the thread has no number in its first order only, and with a number
	 * the call makes other steps */
	(void)rt_self_number();
	EXPLORE_CHECK(ask(&sides[1]) == 0);
	sides[1].taken++;
	stop_and_end();
}

int main(int argc, char **argv)
{
#define PLAY(title, first, second) \
	.name = title, .threads = 2, .body = {first, second}
#define EVERY_ORDER .setup = setup, .check = delete_set
#define A_STOP	    .setup = setup_stop, .check = check_stop
	static const struct explore plays[] = {
		{PLAY("one", send_one, take_one), EVERY_ORDER},
		{PLAY("two", send_two, take_two), EVERY_ORDER},
		{PLAY("room", send_many, take_many), EVERY_ORDER},
		{PLAY("credits", ask_many, answer_many), EVERY_ORDER},
		{PLAY("each_other", ask_first, ask_second), EVERY_ORDER},
		{PLAY("full", fill_and_answer, ask_and_take), EVERY_ORDER},
		{PLAY("stop", ask_and_end, stop_and_end), A_STOP, .bound = 2},
		{PLAY("stop_thrice", ask_and_end, stop_and_end), A_STOP,
		 .bound = 3, .is_long = true},
		{PLAY("stop_each_other", ask_and_end, ask_and_stop), A_STOP,
		 .bound = 2, .is_long = true},
		{.name = NULL},
	};
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = SHARDS;
	EXPLORE_CHECK(rpma_rt_new(&cfg, &rt) == 0);
	return explore_main(argc, argv, plays);
}
