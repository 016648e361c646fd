/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * slots.cc -- coroutines that wait for a free slot of a pool: in order, on one
 * loop, several loops and shards; given up, or destroyed wherever they are; the
 * end of their loop, of the pool's owners and of the runtime. No slot is lost.
 */

#include <thread>

#include "scene.hpp"

#define SLOTS  4
#define ROUNDS 200

/* Takes as many slots as the pool has, and each slot comes. */
static void is_whole(const rt::pool &pool, rt::loop &loop)
{
	auto take = [](const rt::pool &from,
		       const rt::loop &on) -> rt::task<void> {
		std::vector<rt::lease> all;

		while (all.size() < SLOTS)
			all.push_back(must(co_await on.next(from)));
		CHECK(!from.take());
	};

	must(loop.run(take(pool, loop)));
}

struct slots {
	rt::peer peer = open_peer();
	rt::runtime runtime;
	std::optional<rt::pool> pool;
	std::optional<rt::loop> loop;
	std::vector<rt::lease> all; /* taken */

	explicit slots(rpma_rt_mode mode)
	    : runtime(open_runtime(mode)),
	      pool(open_pool(runtime, peer, SLOTS)),
	      loop(must(rt::loop::make(runtime)))
	{
		while (all.size() < SLOTS)
			all.push_back(must(pool->take()));
	}
};

/* ---------------------------------------------------------------- order --- */

static rt::task<void> note_slot(slots &s, int number, std::vector<int> &order)
{
	auto slot = must(co_await s.loop->next(*s.pool));

	CHECK(slot.size() == 64);
	order.push_back(number);
	(void)co_await s.loop->sleep_for(0ms);
}

static void line__first_come_first_served(rpma_rt_mode mode)
{
	slots s(mode);
	std::vector<int> order;

	for (int i = 0; i < ROUNDS; i++)
		s.loop->spawn(note_slot(s, i, order));
	CHECK(order.empty());
	s.all.clear();
	while (order.size() < ROUNDS)
		CHECK(s.loop->turn(-1) >= 0);
	for (int i = 0; i < ROUNDS; i++)
		CHECK(order[static_cast<size_t>(i)] == i);
	is_whole(*s.pool, *s.loop);
}

/* A send without a free slot waits for the slot of an earlier send. */
static rt::task<void> send_all(scene &s, const rt::pool &pool)
{
	auto both = co_await s.connect();
	auto send = [](scene &w, const rt::pool &from,
		       rt::connection &conn) -> rt::task<void> {
		for (int i = 0; i < ROUNDS; i++) {
			auto slot = must(co_await w.loop.next(from));

			slot.assign(std::to_string(i));
			auto sent = co_await conn.give(std::move(slot));
			CHECK(sent);
		}
	};
	auto receive = [](rt::connection &conn) -> rt::task<void> {
		for (int i = 0; i < ROUNDS; i++)
			CHECK(must(co_await conn.receive()).text() ==
			      std::to_string(i));
	};

	co_await rt::when_all(send(s, pool, both.client), receive(both.server));
}

static void sends__wait_for_slots(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 64});
	auto pool = open_pool(s.runtime, s.peer, SLOTS);

	s.run(send_all(s, pool));
	is_whole(pool, s.loop);
}

/* ------------------------------------------------------------- given up --- */

/* However many give up before the poller runs, the next gets a slot. */
static rt::task<void> give_up(slots &s)
{
	for (int i = 0; i < ROUNDS; i++) {
		auto late = co_await s.loop->within(0ms, s.loop->next(*s.pool));
		CHECK(!late && late.error().what() == rt::errc::timed_out);
	}
	s.all.clear();
	for (int i = 0; i < ROUNDS; i++)
		(void)must(co_await s.loop->next(*s.pool));
}

static void line__given_up(rpma_rt_mode mode)
{
	slots s(mode);

	must(s.loop->run(give_up(s)));
	is_whole(*s.pool, *s.loop);
}

/* The program holds as many futures as its configuration has. */
static void line__beside_all_futures(rpma_rt_mode mode)
{
	slots s(mode);
	std::vector<rt::next_future<rt::lease>> held;
	std::vector<int> order;

	while (held.size() < RPMA_RT_DEFAULT_POOL_FUTURES)
		held.push_back(must(s.pool->next()));
	/* the place of the line is not the program's */
	CHECK(s.pool->next().error().code() == RPMA_RT_E_BUSY);
	std::swap(held.front(), held.back());
	s.loop->spawn(note_slot(s, 1, order));
	s.all.clear();
	held.clear();
	while (order.empty())
		CHECK(s.loop->turn(-1) >= 0);
	/* a future that was taken, or has gone, is counted no more */
	for (int i = 0; i < 2 * RPMA_RT_DEFAULT_POOL_FUTURES; i++)
		(void)must(must(s.pool->next()).wait(-1));
	is_whole(*s.pool, *s.loop);
}

static rt::task<void> wait_for_slot(const rt::loop &loop, const rt::pool &pool,
				    bool &has_slot)
{
	auto slot = must(co_await loop.next(pool));

	has_slot = true;
	(void)co_await loop.sleep_for(24h);
	CHECK(!"resumed");
}

/* Waits, or has a slot, which the loop has seen or not. */
static void line__destroyed_anywhere(rpma_rt_mode mode)
{
	slots s(mode);
	bool has_slot = false;

	for (int i = 0; i < ROUNDS; i++) {
		std::optional<rt::task<void>> waits(
			wait_for_slot(*s.loop, *s.pool, has_slot));

		CHECK(waits->await_suspend(std::noop_coroutine()));
		auto behind = must(s.pool->next());
		if (i % 4 != 0)
			s.all.clear();
		if (i % 4 == 2) /* about to be handed over, or handed over */
			(void)must(behind.wait(-1));
		has_slot = false;
		while (i % 4 == 3 && !has_slot)
			CHECK(s.loop->turn(-1) >= 0);
		waits.reset();
		s.all.clear();
		while (s.all.size() < SLOTS - 1)
			s.all.push_back(must(must(s.pool->next()).wait(-1)));
		if (i % 4 == 2)
			s.all.push_back(must(must(s.pool->next()).wait(-1)));
		else
			s.all.push_back(must(behind.wait(-1)));
	}
	s.all.clear();
	is_whole(*s.pool, *s.loop);
}

/* ------------------------------------------------------- other loops --- */

static rt::task<void> take_turns(const rt::loop &loop, const rt::pool &pool)
{
	for (int i = 0; i < ROUNDS; i++) {
		auto slot = must(co_await loop.next(pool));

		slot.assign("mine");
		(void)co_await loop.sleep_for(0ms);
		CHECK(slot.text() == "mine");
	}
}

static rt::task<void> take_many_turns(const rt::loop &loop,
				      const rt::pool &pool)
{
	co_await rt::when_all(take_turns(loop, pool), take_turns(loop, pool),
			      take_turns(loop, pool));
}

static void loops__share_a_pool()
{
	slots s(RPMA_RT_MODE_ADAPTIVE);
	std::vector<std::thread> threads;

	for (int i = 0; i < 3; i++)
		threads.emplace_back([&] {
			auto loop = must(rt::loop::make(s.runtime));

			must(loop.run(take_many_turns(loop, *s.pool)));
		});
	s.all.clear();
	for (int i = 0; i < ROUNDS; i++)
		(void)must(must(s.pool->next()).wait(-1));
	for (auto &thread : threads)
		thread.join();
	is_whole(*s.pool, *s.loop);
}

static void shards__share_a_pool()
{
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = 2;
	cfg.backstop_ms = 0;
	auto peer = open_peer();
	auto runtime = must(rt::runtime::make(cfg));
	auto pool = open_pool(runtime, peer, SLOTS);
	auto set = must(rt::shards::make(runtime));
	std::vector<std::thread> threads;
	std::atomic<int> left{2};

	/* the first poller serves the pool: the first shard goes last */
	for (uint32_t i = 0; i < 2; i++)
		threads.emplace_back([&, i] {
			auto shard = must(rt::shard::make(set, i));

			must(shard.run(take_many_turns(shard, pool)));
			left--;
			while (i == 0 && left > 0)
				CHECK(shard.turn(1) >= 0);
			shard.release();
		});
	for (auto &thread : threads)
		thread.join();
}

/* -------------------------------------------------------------- ends --- */

/* The loop of the first in line has ended: the slot is the second's. */
static void loop__ends_while_it_waits(rpma_rt_mode mode)
{
	slots s(mode);
	std::optional<rt::loop> other(must(rt::loop::make(s.runtime)));
	bool has_slot = false;
	auto first = wait_for_slot(*other, *s.pool, has_slot);
	std::vector<int> order;

	CHECK(first.await_suspend(std::noop_coroutine()));
	s.loop->spawn(note_slot(s, 1, order));
	other.reset();
	s.all.pop_back();
	while (order.empty())
		CHECK(s.loop->turn(-1) >= 0);
	CHECK(!has_slot);
	s.all.clear();
	is_whole(*s.pool, *s.loop);
}

/* A loop that has ended gives no slot. */
static void loop__has_ended(rpma_rt_mode mode)
{
	slots s(mode);
	auto late = [](slots &w) -> rt::task<void> {
		auto next = w.loop->next(*w.pool);

		w.loop.reset();
		auto slot = co_await std::move(next);
		CHECK(!slot && slot.error().code() == RPMA_RT_E_CLOSED);
	};
	auto task = late(s);

	CHECK(!task.await_suspend(std::noop_coroutine()));
}

/* The pool's owner goes, and then whoever waits, while slots come back. */
static void owners__go_first(rpma_rt_mode mode)
{
	for (int i = 0; i < 20; i++) {
		slots s(mode);
		bool has_slot = false;
		std::optional<rt::task<void>> waits(
			wait_for_slot(*s.loop, *s.pool, has_slot));

		CHECK(waits->await_suspend(std::noop_coroutine()));
		s.pool.reset();
		std::thread gives([&] { s.all.clear(); });
		if (i % 2)
			waits.reset();
		gives.join();
	}
}

static rt::task<void> wait_for_the_end(slots &s, bool &waits)
{
	waits = true;
	auto slot = co_await s.loop->next(*s.pool);
	CHECK(!slot && slot.error().what() == rt::errc::closed);
	CHECK(slot.error().reason() == RPMA_RT_REASON_STOPPED);
	waits = false;
}

/* A coroutine that waits, and a coroutine that comes after the stop. */
static void stop__ends_the_line(rpma_rt_mode mode)
{
	slots s(mode);
	bool waits = false;

	s.loop->spawn(wait_for_the_end(s, waits));
	CHECK(waits);
	std::thread stopper([&] { CHECK(rpma_rt_stop(s.runtime.raw()) == 0); });
	while (s.loop->turn(-1) >= 0)
		;
	CHECK(!waits);
	stopper.join();
	s.loop->spawn(wait_for_the_end(s, waits));
	(void)s.loop->turn(0);
	CHECK(!waits);
}

int main(void)
{
	RUN(line__first_come_first_served);
	RUN(sends__wait_for_slots);
	RUN(line__given_up);
	RUN(line__beside_all_futures);
	RUN(line__destroyed_anywhere);
	loops__share_a_pool();
	shards__share_a_pool();
	RUN(loop__ends_while_it_waits);
	RUN(loop__has_ended);
	RUN(owners__go_first);
	RUN(stop__ends_the_line);
	return 0;
}
