/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * turns.cc -- the turns of a loop that runs a poller: timers and limits of time
 * are looked at in each round, whatever else the poller does, and a wake brings
 * a turn back; how often a turn polls; messages of a connection in a row.
 */

#include <algorithm>
#include <cstring>

#include "scene.hpp"

/* Completions for a function, each of which posts the next write: the poller
 * finds work in every round, and none of the work is the loop's. */
class traffic
{
public:
	static constexpr long MOST = 3000000;
	long rounds = 0;
	bool is_over = false;

	traffic(scene &s, rt::connection &conn) : scene_(s), conn_(conn)
	{
		CHECK(rpma_rt_route_open_callback(conn.raw(), RPMA_RT_SEND_SIDE,
						  again, this, &route_) == 0);
		post();
	}
	/* Ends when the last completion has come. */
	void end()
	{
		is_over = true;
		while (is_posted_)
			CHECK(scene_.loop.turn(0) >= 0);
	}

private:
	static void again(const rpma_rt_completion *item, void *arg)
	{
		auto &self = *static_cast<traffic *>(arg);

		if (item->kind != RPMA_RT_COMPLETION)
			return;
		CHECK(item->status == IBV_WC_SUCCESS);
		self.is_posted_ = false;
		/* a loop that does not look at the time ends all the same */
		if (++self.rounds < MOST && !self.is_over)
			self.post();
	}
	void post()
	{
		rpma_rt_wr wr;

		rpma_rt_prep_write(&wr, scene_.remote.raw(), 0,
				   scene_.memory.raw(), 8, 8, 0, 0);
		wr.route = route_;
		CHECK(rpma_rt_post_send(conn_.raw(), &wr, 1) == 1);
		is_posted_ = true;
	}
	scene &scene_;
	rt::connection &conn_;
	rpma_rt_route *route_ = nullptr;
	bool is_posted_ = false;
};

static rt::task<pair> connect_in(scene &s)
{
	co_return co_await s.connect();
}

static rt::task<void> sleep_often(rt::loop &loop)
{
	for (int i = 0; i < 5; i++)
		must(co_await loop.sleep_for(1ms));
}

/* Before the traffic ends by itself. */
static void timer__under_traffic(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto both = s.run(connect_in(s));
	traffic t(s, both.client);

	s.run(sleep_often(s.loop));
	CHECK(t.rounds < traffic::MOST);
	t.end();
}

static void limit__under_traffic(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto both = s.run(connect_in(s));
	traffic t(s, both.client);

	int done = 1;
	while (done > 0) /* items of the connections */
		done = s.loop.turn(1);
	CHECK(done == 0 && t.rounds < traffic::MOST);
	t.end();
}

static rt::task<void> wait_for_a_slot(scene &s)
{
	must(co_await s.loop.next(s.pool));
}

/* Keeps the message, so that only the slot of the send comes back. */
static rt::task<void> give_the_last(pair &both, rt::lease last)
{
	last.assign("last");
	CHECK(co_await both.client.give(std::move(last)));
	auto kept = must(co_await both.server.receive());
	must(co_await both.server.receive());
}

/* A coroutine waits for a slot, and a given send holds the last. */
static rt::task<void> wait_beside_the_given(scene &s, pair &both)
{
	auto all = s.take_all();
	auto last = std::move(all.back());

	all.pop_back();
	/* waits first, so that the wait does not end the chain */
	auto any = co_await rt::when_any(wait_for_a_slot(s),
					 give_the_last(both, std::move(last)));
	CHECK(any.index == 0);
}

static void given__under_traffic_COME_BACK(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 128});
	auto both = s.run(connect_in(s));
	auto others = s.run(connect_in(s));
	traffic t(s, others.client);

	s.run(wait_beside_the_given(s, both));
	CHECK(t.rounds < traffic::MOST);
	t.end();
}

/* A loop that looks for work for very long: its timers do not wait that long,
 * its turns end in time, and a wake brings it back. */
static void spin__longer_than_a_timer(rpma_rt_mode mode)
{
	auto runtime = open_runtime(mode);

	for (auto spin : {std::chrono::microseconds(1h),
			  std::chrono::microseconds::max()}) {
		rt::loop_cfg with;

		with.spin = spin;
		auto loop = must(rt::loop::make(runtime, with));
		must(loop.run(sleep_often(loop)));
		CHECK(loop.turn(1) == 0);
	}
}

/* The wake came before the turn, which has nothing to do. */
static void wake__brings_a_turn_back(rpma_rt_mode mode)
{
	auto runtime = open_runtime(mode);
	auto loop = must(rt::loop::make(runtime));

	for (int i = 0; i < 3; i++) {
		CHECK(rpma_rt_queue_wake(loop.queue()) == 0);
		CHECK(loop.turn(-1) == 0);
	}
}

static rt::task<void> sleep_from(rt::loop &loop, rt::clock::time_point at)
{
	must(co_await loop.sleep_until(at));
}

/* Times that lie as far away as can be said. */
static void timer__at_the_ends_of_the_clock(rpma_rt_mode mode)
{
	auto runtime = open_runtime(mode);
	auto loop = must(rt::loop::make(runtime));

	must(loop.run(sleep_from(loop, rt::clock::time_point::min())));
	loop.spawn(sleep_from(loop, rt::clock::time_point::max()));
	CHECK(loop.turn(1) == 0);
}

/* ---------------------------------------------------------- polls --- */

static rt::task<void> take_items(rt::loop &loop, int &taken)
{
	for (;; taken++)
		must(co_await loop.next());
}

/* A turn polls again after a poll of several items, up to polls times. */
static void polls__items_for_several(rpma_rt_mode mode)
{
	constexpr int ITEMS = 200;
	constexpr int EACH = 64; /* of a poll */

	for (int polls : {1, 2, 16}) {
		scene s({.mode = mode, .polls = polls});
		int taken = 0;

		s.loop.spawn(take_items(s.loop, taken));
		for (int i = 0; i < ITEMS; i++)
			CHECK(push(s.loop.queue(), uint64_t(i)) == 0);
		CHECK(s.loop.turn(0) == std::min(ITEMS, polls * EACH));
		CHECK(taken == std::min(ITEMS, polls * EACH));
		while (taken < ITEMS)
			CHECK(s.loop.turn(0) > 0);
	}
}

/* Each of the first `count` items brings another one. */
static rt::task<void> take_and_push(rt::loop &loop, int count, int &taken)
{
	for (;; taken++) {
		must(co_await loop.next());
		if (taken < count)
			CHECK(push(loop.queue(), 0) == 0);
	}
}

/* A poll of several items is followed by another, however few it found; a
 * single item is followed by the posts of the turn. */
static void polls__after_SEVERAL_items(rpma_rt_mode mode)
{
	for (int count : {1, 2, 5}) {
		scene s({.mode = mode, .polls = 16});
		int taken = 0;

		s.loop.spawn(take_and_push(s.loop, count, taken));
		for (int i = 0; i < count; i++)
			CHECK(push(s.loop.queue(), 0) == 0);
		CHECK(s.loop.turn(0) == (count == 1 ? 1 : 2 * count));
		while (taken < 2 * count)
			CHECK(s.loop.turn(0) > 0);
	}
}

static rt::task<void> echo(rt::connection &conn)
{
	for (;;) {
		auto message = co_await conn.receive();

		if (!message)
			co_return;
		/* each third send has a flag */
		const auto number = (*message).as<uint64_t>();
		const uint32_t flags = number % 3 ? 0 : RPMA_RT_F_SOLICITED;
		CHECK(co_await conn.give(std::move(*message), flags));
	}
}

/* Messages come in the order of the sends, to readers in the order of their
 * waits: each coroutine gets the answer to its own message. */
static rt::task<void> ask(scene &s, rt::connection &conn, uint64_t id,
			  int rounds, int &asking)
{
	auto bytes = must(co_await s.loop.next(s.pool));

	for (int i = 0; i < rounds; i++) {
		const uint64_t number = id << 32 | uint64_t(i);

		bytes.resize(sizeof(number));
		std::memcpy(bytes.data(), &number, sizeof(number));
		CHECK(co_await conn.give(std::move(bytes)));
		bytes = must(co_await conn.receive());
		CHECK(bytes.as<uint64_t>() == number);
	}
	asking--;
}

static void polls__both_ends(rpma_rt_mode mode)
{
	constexpr uint32_t DEPTH = 48;

	for (int polls : {1, 2, 16}) {
		scene s({.mode = mode,
			 .slots = 8 * DEPTH,
			 .depth = DEPTH,
			 .polls = polls});
		std::vector<pair> pairs;
		int asking = 0;

		for (int i = 0; i < 2; i++)
			pairs.push_back(s.run(connect_in(s)));
		for (auto &both : pairs) {
			for (uint32_t i = 0; i < DEPTH; i++) {
				s.loop.spawn(echo(both.server));
				s.loop.spawn(ask(s, both.client, i + 1, 200,
						 ++asking));
			}
		}
		s.loop.spawn(sleep_often(s.loop));
		while (asking > 0)
			CHECK(s.loop.turn(20) >= 0);
	}
}

/* ------------------------------------------------------- messages --- */

static rt::task<int> take_number(rt::connection &conn, std::vector<int> &log)
{
	const int number = must(co_await conn.receive()).as<int>();

	log.push_back(number);
	co_return number;
}

static rt::task<void> note_number(rt::connection &conn, std::vector<int> &log)
{
	log.push_back(-co_await take_number(conn, log));
}

static rt::task<void> give_row(scene &s, rt::connection &conn, int count)
{
	for (int i = 1; i <= count; i++) {
		auto bytes = s.lease();

		bytes.assign(i);
		CHECK(co_await conn.give(std::move(bytes)));
	}
}

/* What a message makes ready runs before the next message of the same poll. */
static void messages__in_a_row_READY_COROUTINES_BETWEEN(rpma_rt_mode mode)
{
	constexpr int COUNT = 8;
	scene s({.mode = mode});
	auto both = s.run(connect_in(s));
	std::vector<int> log;

	for (int i = 0; i < COUNT; i++)
		s.loop.spawn(note_number(both.server, log));
	s.run(give_row(s, both.client, COUNT));
	while (log.size() < 2 * COUNT)
		CHECK(s.loop.turn(20) >= 0);
	for (int i = 0; i < COUNT; i++) {
		CHECK(log[size_t(2 * i)] == i + 1);
		CHECK(log[size_t(2 * i + 1)] == -(i + 1));
	}
}

int main(void)
{
	RUN(polls__items_for_several);
	RUN(polls__after_SEVERAL_items);
	RUN(polls__both_ends);
	RUN(messages__in_a_row_READY_COROUTINES_BETWEEN);
	timer__under_traffic(RPMA_RT_MODE_MANUAL);
	limit__under_traffic(RPMA_RT_MODE_MANUAL);
	given__under_traffic_COME_BACK(RPMA_RT_MODE_MANUAL);
	spin__longer_than_a_timer(RPMA_RT_MODE_MANUAL);
	RUN(wake__brings_a_turn_back);
	RUN(timer__at_the_ends_of_the_clock);
	return 0;
}
