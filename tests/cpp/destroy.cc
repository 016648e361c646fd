/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * destroy.cc -- a coroutine is destroyed wherever suspended: in each kind of
 * wait, while the device holds the work of the coroutine and writes later. The
 * device writes into no slot of another owner, a destroyed coroutine is not
 * resumed, and untaken results are there for the next. With held work only on
 * the loopback device.
 */

#include <cstring>

#include "scene.hpp"

#define ROUNDS 8
#define HELD   "delay_us=20000"

/* Begins a task, and destroys the task while waiting. */
template <typename... A>
static void begin_and_destroy(scene &s, rt::task<void> (*fn)(scene &, A &...),
			      A &...arg)
{
	bool is_gone = false;
	auto task = fn(s, arg...);
	auto both = [](scene &w, rt::task<void> t,
		       bool &gone) -> rt::task<void> {
		auto first = co_await rt::when_any(std::move(t),
						   w.loop.sleep_for(1ms));
		CHECK(first.index == 1);
		gone = true;
	};

	s.run(both(s, std::move(task), is_gone));
	CHECK(is_gone);
}

/* Destroys a task that posts, before the loop sees more of the task. */
static void post_and_destroy(scene &s, rt::connection &conn,
			     rt::task<void> (*fn)(scene &, rt::connection &))
{
	auto task = fn(s, conn);

	CHECK(task.await_suspend(std::noop_coroutine()));
}

static pair connect(scene &s)
{
	auto both = s.loop.run(s.connect());

	return must(std::move(both));
}

/* Waits until the whole pool is free again, except posted slots. */
static void wait_until_free(scene &s, size_t count)
{
	for (;;) {
		if (s.take_all().size() >= count)
			return;
		CHECK(s.loop.turn(1000) >= 0);
	}
}

/* ------------------------------------------------------------ held work --- */

static rt::task<void> read_it(scene &s, rt::connection &conn)
{
	co_await conn.read(s.remote, 0, s.lease("0123456789"));
	CHECK(!"resumed");
}

static rt::task<void> link_it(scene &s, rt::connection &conn)
{
	co_await conn.link(conn.read(s.remote, 0, s.lease("0123456789")),
			   conn.flush(s.remote, 0, 8),
			   conn.read(s.remote, 0, s.lease("0123456789")));
	CHECK(!"resumed");
}

static rt::task<void> add_it(scene &s, rt::connection &conn)
{
	co_await conn.fetch_add(s.remote, 8, 1, s.lease());
	CHECK(!"resumed");
}

static auto read_one(scene &s, rt::connection &conn)
{
	return conn.read(s.remote, 0, s.lease("0123456789"));
}

/* A limit that has passed at the first look of the loop: before the loop looks
 * at completions. */
template <typename A> static rt::task<void> be_late(scene &s, A limited)
{
	auto late = co_await s.loop.within(0ms, std::move(limited));

	CHECK(!late && late.error().what() == rt::errc::timed_out);
}

static rt::task<void> read_late(scene &s, rt::connection &conn)
{
	return be_late(s, read_one(s, conn));
}

static rt::task<void> read_late_in_task(scene &s, rt::connection &conn)
{
	return be_late(s, read_it(s, conn));
}

static rt::task<void> read_all_late(scene &s, rt::connection &conn)
{
	return be_late(s, rt::when_all(read_one(s, conn), read_one(s, conn)));
}

static rt::task<void> read_any_late(scene &s, rt::connection &conn)
{
	return be_late(s, rt::when_any(read_one(s, conn), read_one(s, conn)));
}

static rt::task<void> read_some_late(scene &s, rt::connection &conn)
{
	return be_late(s, rt::when_some(2, s.loop.sleep_for(1h),
					read_one(s, conn), read_one(s, conn)));
}

static void post_and_be_late(scene &s, rt::connection &conn,
			     rt::task<void> (*fn)(scene &, rt::connection &))
{
	s.run(fn(s, conn));
}

/* The device writes after the coroutine is gone: into the slot, which no other
 * coroutine gets before. */
static void destroy_held(scene &s, rt::connection &conn, const char *rule,
			 rt::task<void> (*fn)(scene &, rt::connection &),
			 decltype(post_and_destroy) *give_up = post_and_destroy)
{
	const struct loop *device = loop_get();
	size_t posted = 2 * s.cfg.depth;
	size_t all = s.cfg.slots - posted;

	CHECK(device->fault(rule) == 0);
	give_up(s, conn, fn);
	auto others = s.take_all();
	/* in any time: the loop has not taken the completion */
	CHECK(others.size() < all);
	for (auto &other : others)
		memset(other.resize(64).data(), 'x', 64);
	/* the rest comes back when the device has finished */
	while (others.size() < all) {
		CHECK(s.loop.turn(1000) >= 0);
		for (auto &more : s.take_all()) {
			memset(more.resize(64).data(), 'x', 64);
			others.push_back(std::move(more));
		}
	}
	for (auto &other : others)
		CHECK(other.text() == std::string(64, 'x'));
	device->fault_clear();
}

static void held_work__writes_into_its_slot(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto both = connect(s);

	if (loop_get() == nullptr)
		return;
	for (int i = 0; i < ROUNDS; i++) {
		destroy_held(s, both.client, "wr:op=read," HELD, read_it);
		destroy_held(s, both.client, "wr:op=read," HELD, link_it);
		destroy_held(s, both.client, "wr:op=fetch_add," HELD, add_it);
	}
	CHECK(s.page[1] == ROUNDS);
}

/* A limit of time leaves the memory to the device, too. */
static void held_work__late(rpma_rt_mode mode)
{
	rt::task<void> (*const all[])(scene &, rt::connection &) = {
		read_late, read_late_in_task, read_all_late, read_any_late,
		read_some_late};
	scene s({.mode = mode});
	auto both = connect(s);

	for (int i = 0; i < 2 && loop_get(); i++) {
		for (auto *fn : all)
			destroy_held(s, both.client, "wr:op=read," HELD, fn,
				     post_and_be_late);
	}
}

/* The loop, the connection, the pool go while the device still holds work. */
static void held_work__owners_go(rpma_rt_mode mode)
{
	for (int i = 0; i < 4 && loop_get(); i++) {
		std::optional<scene> s(std::in_place, scene_cfg{.mode = mode});
		std::optional<pair> both(connect(*s));

		CHECK(loop_get()->fault("wr:op=read," HELD) == 0);
		post_and_destroy(*s, both->client, read_it);
		if (i & 1)
			both.reset();
		s.reset();
		loop_get()->fault_clear();
	}
}

/* --------------------------------------------- each kind of suspension --- */

static rt::task<void> await_message(scene &, rt::connection &conn)
{
	(void)co_await conn.receive();
	CHECK(!"resumed");
}

static rt::task<void> await_closed(scene &, rt::connection &conn)
{
	(void)co_await conn.closed();
	CHECK(!"resumed");
}

static rt::task<void> await_timer(scene &s, rt::connection &)
{
	(void)co_await s.loop.sleep_for(1h);
	CHECK(!"resumed");
}

static rt::task<void> await_item(scene &s, rt::connection &)
{
	(void)co_await s.loop.next();
	CHECK(!"resumed");
}

static rt::task<void> await_limited(scene &s, rt::connection &conn)
{
	(void)co_await s.loop.within(1h, conn.receive());
	CHECK(!"resumed");
}

static rt::task<void> await_limited_group(scene &s, rt::connection &conn)
{
	(void)co_await s.loop.within(
		1h, rt::when_all(await_limited(s, conn), conn.closed(),
				 s.loop.within(1h, await_item(s, conn))));
	CHECK(!"resumed");
}

static rt::task<void> await_slot(scene &s, rt::connection &)
{
	auto all = s.take_all();

	(void)co_await s.loop.next(s.pool);
	CHECK(!"resumed");
}

static rt::task<void> await_task(scene &s, rt::connection &conn)
{
	co_await await_message(s, conn);
	CHECK(!"resumed");
}

static rt::task<void> await_all(scene &s, rt::connection &conn)
{
	co_await rt::when_all(await_message(s, conn), conn.receive(),
			      s.loop.sleep_for(0ms), s.loop.next());
	CHECK(!"resumed");
}

static rt::task<void> await_any(scene &s, rt::connection &conn)
{
	(void)co_await rt::when_any(await_task(s, conn), conn.closed());
	CHECK(!"resumed");
}

static rt::task<void> await_some(scene &s, rt::connection &conn)
{
	(void)co_await rt::when_some(2, s.loop.sleep_for(0ms), conn.receive(),
				     s.loop.next());
	CHECK(!"resumed");
}

static rt::task<void> await_request(scene &s, rt::connection &)
{
	auto listener = must(s.loop.listen(address(), "0", s.endpoint()));

	(void)co_await listener.next();
	CHECK(!"resumed");
}

/* The peer is there and does not answer. */
static rt::task<void> await_connect(scene &s, rt::connection &)
{
	auto listener = must(s.loop.listen(address(), "0", s.endpoint()));

	(void)co_await s.loop.connect(
		address(), std::to_string(listener.port()), s.endpoint());
	CHECK(!"resumed");
}

static rt::task<void> still_works(scene &s, pair &both)
{
	auto slot = must(co_await s.loop.next(s.pool));
	slot.assign("to");
	must(co_await both.client.send(std::move(slot)));
	CHECK(must(co_await both.server.receive()).text() == "to");
	must(co_await both.server.send(s.lease("fro")));
	CHECK(must(co_await both.client.receive()).text() == "fro");
	CHECK(!push(s.loop.queue(), 7));
	CHECK(must(co_await s.loop.next()).context == 7);
}

static void suspended__destroyed_anywhere(rpma_rt_mode mode)
{
	rt::task<void> (*const all[])(scene &, rt::connection &) = {
		await_message, await_closed,	    await_timer, await_item,
		await_limited, await_limited_group, await_slot,	 await_task,
		await_all,     await_any,	    await_some,	 await_request,
		await_connect};
	scene s({.mode = mode});
	auto both = connect(s);

	for (auto *fn : all) {
		begin_and_destroy(s, fn, both.client);
		s.run(still_works(s, both));
	}
	/* spawned ones go with the loop */
	for (auto *fn : all)
		s.loop.spawn(fn(s, both.client));
}

/* --------------------------------------------------- untaken results --- */

/* Both are complete in the same step, and the loser keeps nothing. */
static rt::task<void> lose_nothing(scene &s)
{
	auto both = co_await s.connect();
	int taken = 0;

	for (int i = 0; i < 200; i++) {
		must(co_await both.client.send(s.lease(std::to_string(i))));
		CHECK(!push(s.loop.queue(), 1));
		auto any = co_await rt::when_any(s.loop.next(),
						 both.server.receive(),
						 s.loop.sleep_for(0ms));
		if (auto *message = any.get<1>())
			CHECK(must(std::move(*message)).text() ==
			      std::to_string(taken++));
		if (!any.get<0>())
			CHECK(must(co_await s.loop.next()).context == 1);
	}
	while (taken < 200)
		CHECK(must(co_await both.server.receive()).text() ==
		      std::to_string(taken++));
}

static void losers__take_nothing_along(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(lose_nothing(s));
}

static rt::task<void> end_another(std::optional<rt::task<void>> &other,
				  rt::connection &conn)
{
	co_await conn.closed();
	CHECK(other);
	other.reset();
}

static rt::task<void> be_ended(rt::connection &conn)
{
	co_await conn.closed();
	CHECK(!"resumed");
}

/* Both wait for the same event; the first destroys the second, which is about
 * to be resumed. */
static void ready_one__destroyed_by_another(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto both = connect(s);
	std::optional<rt::task<void>> other;

	s.loop.spawn(end_another(other, both.client));
	other.emplace(be_ended(both.client));
	CHECK(other->await_suspend(std::noop_coroutine()));
	both.server.close();
	while (other)
		CHECK(s.loop.turn(1000) >= 0);
}

static void losers__leases_come_back(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto race = [](scene &w) -> rt::task<void> {
		auto both = co_await w.connect();

		for (int i = 0; i < 100; i++) {
			auto any = co_await rt::when_any(
				both.client.write(w.remote, 0, w.lease("a")),
				both.client.write(w.remote, 0, w.lease("b")),
				w.loop.sleep_for(1ms));
			(void)any;
		}
		both.client.close();
		co_await both.client.closed();
		co_await both.server.closed();
	};

	s.run(race(s));
	wait_until_free(s, s.cfg.slots);
}

/* -------------------------------------- others get the former items --- */

/* Has the item, and waits for more. */
static rt::task<void> keep_item(rt::loop &loop)
{
	co_await rt::when_all(loop.next(), loop.sleep_for(1h));
}

static void push_item(rt::loop &loop, uint64_t context)
{
	CHECK(push(loop.queue(), context) == 0);
}

static rt::task<int> end_keeper(scene &s, std::optional<rt::task<void>> &keeper)
{
	std::array<int, 16> own = {1, 2, 3};

	(void)co_await s.loop.sleep_for(1ms);
	keeper.reset(); /* the item completes the other member of the group */
	for (int &value : own)
		value++;
	co_return own[2];
}

static rt::task<void> decide_inside(scene &s)
{
	std::optional<rt::task<void>> keeper(keep_item(s.loop));

	CHECK(keeper->await_suspend(std::noop_coroutine()));
	push_item(s.loop, 7);
	(void)co_await s.loop.sleep_for(1ms);
	auto any = co_await rt::when_any(s.loop.next(), end_keeper(s, keeper));
	/* both may be: nothing is lost */
	if (any.get<0>())
		CHECK(must(std::move(*any.get<0>())).context == 7);
	else
		CHECK(must(co_await s.loop.next()).context == 7);
}

/* A coroutine decides the group of which the coroutine is a member. */
static void member__decides_while_it_runs(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(decide_inside(s));
}

static rt::task<void> decide_once(scene &s)
{
	const auto begin = rt::clock::now();

	push_item(s.loop, 8);
	auto both = co_await rt::when_all(
		rt::when_any(rt::when_all(s.loop.next(), s.loop.sleep_for(1h)),
			     s.loop.sleep_for(1ms), s.loop.next()),
		s.loop.sleep_for(20ms));
	CHECK(rt::clock::now() - begin >= 20ms);
	auto &any = std::get<0>(both);
	CHECK(any.index == 1 && !any.get<0>());
	if (any.get<2>())
		CHECK(must(std::move(*any.get<2>())).context == 8);
	else
		CHECK(must(co_await s.loop.next()).context == 8);
}

/* A member taken back releases the item awaited by another member. */
static void member__taken_back_completes_another(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(decide_once(s));
}

static rt::task<void> note_item(rt::loop &loop, bool &came)
{
	(void)co_await loop.next();
	came = true;
}

/* The holder of an item is destroyed: another coroutine gets the item in a
 * turn, and not before; after the end of the loop no coroutine gets the
 * item. */
static void keeper__destroyed_outside(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	for (bool has_ended : {false, true}) {
		std::optional<rt::loop> loop(must(rt::loop::make(s.runtime)));
		std::optional<rt::task<void>> keeper(keep_item(*loop));
		bool came = false;
		auto other = note_item(*loop, came);

		CHECK(keeper->await_suspend(std::noop_coroutine()));
		push_item(*loop, 9);
		CHECK(loop->turn(1000) > 0);
		CHECK(other.await_suspend(std::noop_coroutine()));
		if (has_ended)
			loop.reset();
		keeper.reset();
		CHECK(!came);
		if (!has_ended) {
			CHECK(loop->turn(0) >= 0);
			CHECK(came);
		}
	}
}

int main(void)
{
	RUN(held_work__writes_into_its_slot);
	RUN(held_work__late);
	RUN(held_work__owners_go);
	RUN(suspended__destroyed_anywhere);
	RUN(losers__take_nothing_along);
	RUN(ready_one__destroyed_by_another);
	RUN(losers__leases_come_back);
	RUN(member__decides_while_it_runs);
	RUN(member__taken_back_completes_another);
	RUN(keeper__destroyed_outside);
	return 0;
}
