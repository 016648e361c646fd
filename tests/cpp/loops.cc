/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loops.cc -- coroutines that go from one loop's thread to another's, and are
 * destroyed on the way; and what a coroutine awaits, over and over: nothing is
 * allocated for it.
 */

#include <atomic>
#include <thread>

#include "scene.hpp"

#define TRIPS 2000

static thread_local unsigned long allocated;

__attribute__((noinline)) void *operator new(size_t size)
{
	void *memory = malloc(size);

	allocated++;
	if (!memory)
		abort();
	return memory;
}

__attribute__((noinline)) void *operator new(size_t size,
					     const std::nothrow_t &) noexcept
{
	allocated++;
	return malloc(size);
}

__attribute__((noinline)) void operator delete(void *memory) noexcept
{
	free(memory);
}

__attribute__((noinline)) void operator delete(void *memory, size_t) noexcept
{
	free(memory);
}

/* -------------------------------------------------------------- threads --- */

static rt::task<int> travel(rt::loop_ref home, rt::loop_ref away)
{
	const auto here = std::this_thread::get_id();
	int trips = 0;

	while (trips < TRIPS) {
		must(co_await away.resume_there());
		CHECK(std::this_thread::get_id() != here);
		must(co_await home.resume_there());
		CHECK(std::this_thread::get_id() == here);
		trips++;
	}
	/* it ends away: what awaits it is at home nevertheless */
	must(co_await away.resume_there());
	co_return trips;
}

static rt::task<void> come_and_go(rt::loop_ref home, rt::loop_ref away,
				  int &over)
{
	for (int i = 0; i < TRIPS; i++) {
		must(co_await away.resume_there());
		must(co_await home.resume_there());
	}
	over++;
}

static void loops__coroutines_travel(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	/* in manual mode the poller is the first loop's */
	auto runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	auto other = must(rt::loop::make(runtime));
	std::atomic<bool> is_over{false};
	auto home = s.loop.remote();
	auto away = other.remote();
	int over = 0;
	/* relaxed, both: only the flag matters */
	std::thread thread([&] {
		while (!is_over.load(std::memory_order_relaxed))
			CHECK(other.turn(10) >= 0);
	});

	for (int i = 0; i < 3; i++)
		s.loop.spawn(come_and_go(home, away, over));
	CHECK(s.run(travel(home, away)) == TRIPS);
	while (over < 3)
		CHECK(s.loop.turn(1000) >= 0);
	is_over.store(true, std::memory_order_relaxed);
	thread.join();
}

static rt::task<void> leave(rt::loop_ref away, bool &was_refused)
{
	auto there = co_await away.resume_there();

	was_refused = !there;
}

/* Nobody runs the other loop; then it ends. */
static void loops__destroyed_on_the_way(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	std::optional<rt::loop> other(must(rt::loop::make(runtime)));
	auto away = other->remote();
	bool was_refused = false;
	{
		auto waits = leave(away, was_refused);

		CHECK(waits.await_suspend(std::noop_coroutine()));
	}
	CHECK(other->turn(0) == 0 && !was_refused);
	auto waits = leave(away, was_refused);
	CHECK(waits.await_suspend(std::noop_coroutine()));
	other.reset();
	s.run(leave(away, was_refused));
	CHECK(was_refused);
}

/* --------------------------------------------------------------- borrow --- */

static rt::task<void> ping(rt::loop &loop, rt::peer &peer, rt::pool &pool)
{
	rt::endpoint with{.via = peer, .messages = &pool};

	with.cfg.sq_size = with.cfg.rq_size = 8;
	auto listener = must(loop.listen(address(), "0", with));
	auto [one, two] = co_await rt::when_all(
		loop.connect(address(), std::to_string(listener.port()), with),
		listener.accept());
	auto client = must(std::move(one));
	auto server = must(std::move(two));
	auto sent = must(pool.take());

	sent.assign("ping");
	must(co_await client.send(std::move(sent)));
	CHECK(must(co_await server.receive()).text() == "ping");
	must(co_await loop.sleep_for(1ms));
}

/* A queue of the program's, and in manual mode another poller than the first:
 * both are the program's again when the loop has gone. */
static void loops__borrow_a_queue(rpma_rt_mode mode)
{
	auto peer = open_peer();
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	rpma_rt_completion item;
	rpma_rt_queue *queue;

	cfg.mode = mode;
	cfg.pollers = 2;
	cfg.backstop_ms = 0;
	auto runtime = must(rt::runtime::make(cfg));
	auto pool = open_pool(runtime, peer, 64);
	CHECK(rpma_rt_queue_new(runtime.raw(), nullptr, &queue) == 0);
	for (int i = 0; i < 2; i++) {
		rt::loop_cfg with;

		with.borrowed = queue;
		with.poller = mode == RPMA_RT_MODE_MANUAL ? 1 : -1;
		auto loop = must(rt::loop::make(runtime, with));
		CHECK(loop.queue() == queue);
		must(loop.run(ping(loop, peer, pool)));
	}
	CHECK(rpma_rt_queue_push(queue, 7, nullptr, 0, 0) == 0);
	CHECK(rpma_rt_queue_poll(queue, &item, 1) == 1 && item.context == 7);
	if (mode == RPMA_RT_MODE_MANUAL)
		std::thread([&] {
			CHECK(rpma_rt_poller_run(runtime.raw(), 1, 1) >= 0);
			CHECK(rpma_rt_poller_release(runtime.raw(), 1) == 0);
		}).join();
	CHECK(rpma_rt_queue_delete(&queue) == 0);
}

/* ----------------------------------------------------------- allocation --- */

static rt::task<void> await_everything(scene &s)
{
	auto both = co_await s.connect();
	auto &to = both.client;

	for (int i = 0; i < 1000; i++) {
		/* the first rounds make room in what grows */
		if (i == 100)
			allocated = 0;
		must(co_await to.send(s.lease("ping")));
		auto ping = must(co_await both.server.receive());
		must(co_await both.server.send(std::move(ping)));
		must(co_await to.receive());
		must(co_await to.link(to.write(s.remote, 0, s.lease("1")),
				      to.flush(s.remote, 0, 1),
				      to.read(s.remote, 0, s.lease("2"))));
		must(co_await to.fetch_add(s.remote, 8, 1, s.lease()));
		must(co_await s.loop.sleep_for(0ms));
		auto late = co_await s.loop.within(0ms, to.receive());
		CHECK(!late);
		auto two = co_await rt::when_some(
			2, to.write(s.remote, 0, s.lease("3")),
			to.flush(s.remote, 0, 1));
		CHECK(two);
		auto any = co_await rt::when_any(to.receive(),
						 to.flush(s.remote, 0, 1));
		CHECK(any.index == 1);
		CHECK(!rpma_rt_queue_push(s.loop.queue(), 7, nullptr, 0, 0));
		must(co_await s.loop.next());
	}
	CHECK(allocated == 0);
}

static void awaits__allocate_nothing(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(await_everything(s));
}

int main(void)
{
	RUN(loops__coroutines_travel);
	RUN(loops__destroyed_on_the_way);
	RUN(loops__borrow_a_queue);
	RUN(awaits__allocate_nothing);
	return 0;
}
