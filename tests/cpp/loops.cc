/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loops.cc -- coroutines that go from the thread of a loop to the thread of
 * another loop, and are destroyed on the way; and awaiting again and again:
 * nothing is allocated for an await.
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
	/* ends away: the awaiting coroutine is at home nevertheless */
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

/* No thread runs the other loop; then the loop ends. */
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

/* ------------------------------------------------------- ends of loops --- */

/* A loop of another thread, until this is destroyed. */
class other_loop
{
public:
	rt::loop loop;

	explicit other_loop(const rt::runtime &runtime)
	    : loop(must(rt::loop::make(runtime))), thread_([this] {
		      /* relaxed, both: only the flag matters */
		      while (!is_over_.load(std::memory_order_relaxed))
			      CHECK(loop.turn(10) >= 0);
	      })
	{
	}
	~other_loop()
	{
		is_over_.store(true, std::memory_order_relaxed);
		thread_.join();
	}

private:
	std::atomic<bool> is_over_{false};
	std::thread thread_;
};

struct visit {
	rt::loop &there;
	std::atomic<int> arrived{0};
	std::atomic<bool> may_leave{false};
	int over = 0;
};

/* Stays until allowed to leave, and then a little longer. */
static rt::task<void> stay(visit &v)
{
	must(co_await v.there.remote().resume_there());
	v.arrived++;
	while (!v.may_leave)
		must(co_await v.there.sleep_for(1ms));
	for (int i = 0; i < 5; i++)
		must(co_await v.there.sleep_for(1ms));
}

static rt::task<int> stay_once(visit &v)
{
	co_await stay(v);
	co_return ++v.over;
}

static rt::task<void> stay_and_return(visit &v, rt::loop_ref home)
{
	co_await stay(v);
	must(co_await home.resume_there());
	v.over++;
}

static rt::task<rt::result<void>> stay_both(rt::loop &loop, visit &v)
{
	auto home = loop.remote();

	co_await rt::when_all(stay_and_return(v, home),
			      stay_and_return(v, home), loop.next());
	co_return rt::result<void>();
}

static rt::task<int> stay_together(rt::loop &loop, visit &v)
{
	(void)co_await loop.within(1h, stay_both(loop, v));
	co_return v.over;
}

/* The runtime stops while coroutines of the task run by the loop are on another
 * loop: all have come back when run() returns. */
static void run__waits_for_those_away(rpma_rt_mode mode)
{
	for (bool is_group : {false, true}) {
		scene s({.mode = mode});
		auto runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
		other_loop other(runtime);
		visit v{other.loop};
		std::thread stopper([&] {
			while (v.arrived < 1 + is_group)
				std::this_thread::yield();
			CHECK(rpma_rt_stop(s.runtime.raw()) == 0);
			v.may_leave = true;
		});
		auto done = s.loop.run(is_group ? stay_together(s.loop, v)
						: stay_once(v));

		/* the event awaited by the group at home does not come */
		CHECK(is_group ? v.over == 2 : must(std::move(done)) == 1);
		stopper.join();
	}
}

static rt::task<void> destroy_meanwhile(std::unique_ptr<rt::loop> &loop,
					visit &v)
{
	while (v.arrived == 0)
		must(co_await loop->sleep_for(1ms));
	loop.reset();
	v.may_leave = true;
}

/* The task has come back, and does not go on, when run() returns. */
static void run__of_a_destroyed_loop_WAITS_FOR_THOSE_AWAY(rpma_rt_mode mode)
{
	auto runtime = open_runtime(mode);
	auto second = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	other_loop other(second);
	visit v{other.loop};
	auto loop = std::make_unique<rt::loop>(must(rt::loop::make(runtime)));

	loop->spawn(destroy_meanwhile(loop, v));
	auto done = loop->run(stay_once(v));
	CHECK(!loop && done.error().code() == RPMA_RT_E_CLOSED && v.over == 1);
}

static rt::task<int> throw_away(visit &v)
{
	co_await stay(v);
	throw 7;
}

/* The coroutine goes home with the exception. */
static void exception__thrown_away(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	other_loop other(runtime);
	visit v{other.loop};
	int thrown = 0;

	v.may_leave = true;
	try {
		(void)s.loop.run(throw_away(v));
	} catch (int what) {
		thrown = what;
	}
	CHECK(thrown == 7);
}

static rt::task<void> try_to_leave(rt::loop_ref away, int &refused, int &over)
{
	auto there = co_await away.resume_there();

	refused += !there;
	over++;
}

/* Coroutines not taken by an ended loop go on where they were. */
static void mailbox__of_an_ended_loop(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	std::optional<rt::loop> other(must(rt::loop::make(runtime)));
	int refused = 0;
	int over = 0;

	for (int i = 0; i < 3; i++)
		s.loop.spawn(try_to_leave(other->remote(), refused, over));
	CHECK(over == 0);
	other.reset();
	while (over < 3)
		CHECK(s.loop.turn(1000) >= 0);
	CHECK(refused == 3);
}

static rt::task<void> go_there(rt::loop_ref home, rt::loop_ref away, int &over)
{
	auto there = co_await away.resume_there();

	if (there)
		must(co_await home.resume_there());
	over++;
}

/* The other loop ends while they come. */
static void mailbox__ends_while_they_come(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);

	for (int i = 0; i < 50; i++) {
		std::optional<rt::loop> other(must(rt::loop::make(runtime)));
		auto away = other->remote();
		int over = 0;
		std::thread thread([&] {
			for (int n = 0; n < i % 4; n++)
				CHECK(other->turn(0) >= 0);
			other.reset();
		});

		for (int n = 0; n < 8; n++)
			s.loop.spawn(go_there(s.loop.remote(), away, over));
		while (over < 8)
			CHECK(s.loop.turn(1000) >= 0);
		thread.join();
	}
}

/* A new loop, perhaps at the address of the former, is another loop. */
static void loop_ref__of_a_former_loop(rpma_rt_mode mode)
{
	auto runtime = open_runtime(mode);

	for (int i = 0; i < 10; i++) {
		std::optional<rt::loop> former(must(rt::loop::make(runtime)));
		auto away = former->remote();
		int refused = 0;
		int over = 0;

		former.reset();
		auto loop = must(rt::loop::make(runtime));
		loop.spawn(try_to_leave(away, refused, over));
		CHECK(over == 1 && refused == 1);
	}
}

static rt::task<void> limit_late(scene &s)
{
	auto both = co_await s.connect();
	auto other = must(rt::loop::make(s.runtime));
	auto limited = other.within(1h, both.server.receive());

	{
		auto ended = std::move(other);
	}
	auto late = co_await std::move(limited);
	CHECK(!late && late.error().what() == rt::errc::call &&
	      late.error().code() == RPMA_RT_E_CLOSED);
}

/* No time has passed. */
static void within__of_an_ended_loop(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(limit_late(s));
}

static rt::task<int> end_loop(std::optional<rt::loop> &loop, bool waits)
{
	std::array<int, 16> own = {1, 2, 3};
	rt::loop &l = *loop;

	must(co_await l.sleep_for(0ms));
	auto timer = l.sleep_for(0ms);
	loop.reset();
	for (int &value : own)
		value++;
	if (waits)
		(void)co_await std::move(timer);
	CHECK(!waits);
	co_return own[2];
}

static rt::task<void> end_spawned(std::optional<rt::loop> &loop, bool waits)
{
	CHECK(co_await end_loop(loop, waits) == 4);
}

static rt::task<void> end_at_once(std::optional<rt::loop> &loop)
{
	std::array<int, 16> own = {1, 2, 3};

	loop.reset();
	for (int &value : own)
		value++;
	co_return;
}

/* The loop ends when no coroutine of the loop is on the stack. */
static void loop__destroyed_by_its_coroutine(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	std::optional<rt::loop> loop;
	auto make = [&]() -> rt::loop & {
		rt::loop_cfg with;

		with.poller = -1;
		return loop.emplace(must(rt::loop::make(s.runtime, with)));
	};

	for (bool waits : {false, true}) {
		auto ended = make().run(end_loop(loop, waits));

		CHECK(!loop && waits == !ended);
		CHECK(waits || *ended == 4);
		rt::loop &l = make();
		l.spawn(end_spawned(loop, waits));
		while (loop)
			CHECK(loop->turn(1000) >= 0);
	}
	make().spawn(end_at_once(loop));
	CHECK(!loop);
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
	CHECK(push(queue, 7) == 0);
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
		/* the first rounds make room in growing containers */
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
		CHECK(!push(s.loop.queue(), 7));
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
	RUN(run__waits_for_those_away);
	RUN(run__of_a_destroyed_loop_WAITS_FOR_THOSE_AWAY);
	RUN(exception__thrown_away);
	RUN(mailbox__of_an_ended_loop);
	RUN(mailbox__ends_while_they_come);
	RUN(loop_ref__of_a_former_loop);
	RUN(within__of_an_ended_loop);
	RUN(loop__destroyed_by_its_coroutine);
	RUN(loops__borrow_a_queue);
	RUN(awaits__allocate_nothing);
	return 0;
}
