/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sync.cc -- events, semaphores, promises and channels between coroutines of
 * several loops and threads: nothing is lost or kept by a wait that is given
 * up, each wait ends when the object goes, and objects go in any order.
 */

#include <atomic>
#include <memory>
#include <thread>

#include "scene.hpp"

#define ITEMS 500

struct world {
	rt::runtime runtime;
	rt::loop loop;

	explicit world(rpma_rt_mode mode)
	    : runtime(open_runtime(mode)), loop(must(rt::loop::make(runtime)))
	{
	}
	void run(rt::task<void> task) { must(loop.run(std::move(task))); }
};

template <typename R> static bool is_closed(const R &value)
{
	return !value && value.error().what() == rt::errc::closed;
}

template <typename R> static bool is_late(const R &value)
{
	return !value && value.error().what() == rt::errc::timed_out;
}

template <typename R> static bool is_refused(const R &value)
{
	return !value && value.error().code() == RPMA_RT_E_THREAD;
}

/* A loop of another thread; in manual mode of another poller. */
static void run_beside(const world &w, rt::task<void> (*fn)(void *), void *arg)
{
	rt::runtime runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	auto loop = must(rt::loop::make(runtime));

	(void)w;
	must(loop.run(fn(arg)));
}

/* --------------------------------------------------------------- event --- */

static rt::task<void> await_event(const rt::event &event, int &count)
{
	must(co_await event.wait());
	count++;
}

static rt::task<void> await_all(const rt::event &event, int &count)
{
	co_await rt::when_all(await_event(event, count),
			      await_event(event, count),
			      await_event(event, count));
}

static void event__wakes_all(rpma_rt_mode mode)
{
	world w(mode);
	rt::event event;
	int count = 0;
	std::thread sets([&] {
		CHECK(is_late(event.wait().wait(0)));
		event.set();
	});

	w.run(await_all(event, count));
	CHECK(count == 3 && event.is_set());
	must(event.wait().wait());
	sets.join();
}

/* A wait that was let through and given up leaves no permit behind. */
static rt::task<void> give_up_event(world &w)
{
	rt::event event;

	auto first = co_await w.loop.within(0ms, event.wait());
	CHECK(is_late(first));
	event.set();
	(void)co_await rt::when_any(event.wait(), event.wait());
	event.reset();
	auto late = co_await w.loop.within(0ms, event.wait());
	CHECK(is_late(late));
}

static void event__given_up(rpma_rt_mode mode)
{
	world w(mode);

	w.run(give_up_event(w));
}

/* A thread that waits inside a turn of a loop holds up the coroutines of the
 * loop, which may be the ones that end the wait. */
static rt::task<void> wait_in_a_turn(world &w)
{
	rt::promise<int> promise;
	rt::channel<int> items(1);
	rt::semaphore places(0);
	rt::event event;
	auto future = promise.get_future();

	must(co_await w.loop.sleep_for(1ms));
	CHECK(is_refused(event.wait().wait()));
	CHECK(is_refused(future.get().wait()));
	CHECK(is_refused(places.acquire().wait(1000)));
	CHECK(is_refused(items.receive().wait()));
	must(items.send(1).wait()); /* without a wait */
	CHECK(is_refused(items.send(2).wait()));
	CHECK(is_late(places.acquire().wait(0)));
	event.set();
	must(event.wait().wait());
	promise.set(5);
	CHECK(must(co_await future.get()) == 5);
	CHECK(must(co_await items.receive()) == 1);
}

static void waits__in_a_turn_REFUSED(rpma_rt_mode mode)
{
	world w(mode);

	w.run(wait_in_a_turn(w));
}

/* ----------------------------------------------------------- semaphore --- */

static rt::task<void> enter(world &w, const rt::semaphore &places, int &inside)
{
	auto permit = co_await places.acquire();

	CHECK(permit && ++inside <= 2);
	must(co_await w.loop.sleep_for(100us));
	inside--;
}

static rt::task<void> enter_often(world &w)
{
	rt::semaphore places(2);
	int inside = 0;

	for (int i = 0; i < 5; i++)
		co_await rt::when_all(
			enter(w, places, inside), enter(w, places, inside),
			enter(w, places, inside), enter(w, places, inside));
	{
		auto a = must(places.try_acquire());
		auto b = must(co_await places.acquire());
		auto c = co_await w.loop.within(0ms, places.acquire());
		CHECK(is_late(c));
		CHECK(places.try_acquire().error().code() == RPMA_E_AGAIN);
	}
	/* a wait that was given up has no permit */
	auto a = must(co_await places.acquire());
	auto b = must(places.acquire().wait());
}

static void semaphore__permits(rpma_rt_mode mode)
{
	world w(mode);

	w.run(enter_often(w));
}

/* The permit of a coroutine that is ready, and given up, goes to the next. */
static rt::task<void> lose_a_permit(const rt::semaphore &places)
{
	std::optional<rt::permit> held(must(places.try_acquire()));
	auto both = rt::when_any(places.acquire(), places.acquire());
	auto release = [](std::optional<rt::permit> &p) -> rt::task<void> {
		p.reset();
		co_return;
	};

	co_await rt::when_all(std::move(both), release(held));
	auto next = must(co_await places.acquire());
}

static void semaphore__given_up(rpma_rt_mode mode)
{
	world w(mode);
	rt::semaphore places(1);

	w.run(lose_a_permit(places));
	auto last = must(places.try_acquire());
}

static rt::task<void> acquire_often(world &w, const rt::semaphore &places,
				    const std::atomic<bool> &thread_was_in)
{
	while (!thread_was_in) {
		auto permit = must(co_await places.acquire());

		must(co_await w.loop.sleep_for(100us));
	}
}

/* A coroutine is always in the line: a thread without a place in the line never
 * gets the permit. */
static void semaphore__threads_IN_THE_SAME_LINE(rpma_rt_mode mode)
{
	world w(mode);
	rt::semaphore places(1);
	std::atomic<bool> is_in{false};
	std::optional<rt::permit> held(must(places.try_acquire()));
	std::thread thread([&] {
		(void)must(places.acquire().wait());
		is_in = true;
	});

	CHECK(is_late(places.acquire().wait(0)));
	w.loop.spawn(acquire_often(w, places, is_in));
	w.loop.spawn(acquire_often(w, places, is_in));
	held.reset();
	while (!is_in)
		CHECK(w.loop.turn(1) >= 0);
	thread.join();
}

/* ------------------------------------------------------------- promise --- */

static rt::task<void> await_value(rt::future<int> future)
{
	CHECK(must(co_await future.get()) == 7);
}

static rt::task<void> await_end(rt::future<int> future)
{
	CHECK(is_closed(co_await future.get()));
}

static void promise__from_a_thread(rpma_rt_mode mode)
{
	world w(mode);
	rt::promise<int> value, error;
	std::optional<rt::promise<int>> none(std::in_place);
	/* a thread at a time: the promises are the other thread's then */
	auto given = value.get_future();
	auto failed = error.get_future();
	auto never = none->get_future();
	std::thread sets([&] {
		CHECK(value.set(7) && !value.set(8));
		CHECK(error.set(rt::error::call(RPMA_E_INVAL)));
		none.reset();
	});

	w.run(await_value(std::move(given)));
	auto why = failed.get().wait();
	CHECK(!why && why.error().code() == RPMA_E_INVAL);
	w.run(await_end(std::move(never)));
	sets.join();
}

/* ------------------------------------------------------------- channel --- */

static rt::task<void> send_items(void *arg)
{
	const auto &to = *static_cast<rt::channel<int> *>(arg);

	for (int i = 0; i < ITEMS; i++)
		must(co_await to.send(i));
	to.close();
	CHECK(is_closed(co_await to.send(ITEMS)));
}

static rt::task<void> receive_items(const rt::channel<int> &from)
{
	for (int i = 0; i < ITEMS; i++)
		CHECK(must(co_await from.receive()) == i);
	CHECK(is_closed(co_await from.receive()));
}

static void channel__between_loops(rpma_rt_mode mode)
{
	world w(mode);
	rt::channel<int> items(3);
	std::thread sends([&] { run_beside(w, send_items, &items); });

	w.run(receive_items(items));
	sends.join();
	CHECK(is_closed(items.try_send(1)));
	CHECK(is_closed(items.receive().wait()));
}

/* A coroutine that gives up takes no item along, and sends no item. */
static rt::task<void> give_up_items(world &w)
{
	rt::channel<std::unique_ptr<int>> items(1);

	auto none = co_await w.loop.within(0ms, items.receive());
	CHECK(is_late(none));
	auto two = rt::when_any(items.receive(), items.receive());
	co_await rt::when_all(std::move(two),
			      items.send(std::make_unique<int>(1)));
	must(items.try_send(std::make_unique<int>(2)));
	auto full = co_await w.loop.within(
		0ms, items.send(std::make_unique<int>(3)));
	CHECK(is_late(full));
	auto second = must(co_await items.receive());
	CHECK(*second == 2);
	must(items.send(std::make_unique<int>(4)).wait());
	CHECK(*must(items.receive().wait()) == 4);
}

static void channel__given_up(rpma_rt_mode mode)
{
	world w(mode);

	w.run(give_up_items(w));
}

/* The channel takes the value with the last of `moves`. Meanwhile another
 * thread closes the channel, for which the move waits 20 ms: in vain, as the
 * close waits for the move. */
struct closing_value {
	rt::channel<closing_value> *of;
	std::thread *closes;
	int moves;

	closing_value(rt::channel<closing_value> *c, std::thread *t, int m)
	    : of(c), closes(t), moves(m)
	{
	}
	closing_value(closing_value &&from) noexcept
	    : of(from.of), closes(from.closes), moves(from.moves - 1)
	{
		if (moves != 0)
			return;
		auto ended = std::make_shared<rt::event>();
		*closes = std::thread([channel = of, ended] {
			channel->close();
			ended->set();
		});
		(void)ended->wait().wait(20);
	}
};

static void channel__closed_as_a_value_comes_VALUE_RECEIVED(rpma_rt_mode)
{
	for (bool waits : {false, true}) {
		rt::channel<closing_value> values(1);
		std::thread closes;
		std::optional<rt::result<void>> sent;
		std::thread sends([&] {
			/* into the wait, and from there into the channel */
			if (waits)
				sent = values.send({&values, &closes, 2})
					       .wait();
			else
				sent = values.try_send({&values, &closes, 1});
		});
		auto first = values.receive().wait();

		sends.join();
		closes.join();
		CHECK(sent->ok() == first.ok());
		CHECK(is_closed(values.receive().wait()));
	}
}

/* ----------------------------------------------------------------- end --- */

struct all {
	rt::event event;
	rt::semaphore places{0};
	rt::promise<int> promise;
	rt::channel<int> items{1};
	rt::future<int> future = promise.get_future();
};

static rt::task<void> await_ends(all &of, int &ended)
{
	auto [event, permit, item, value] =
		co_await rt::when_all(of.event.wait(), of.places.acquire(),
				      of.items.receive(), of.future.get());

	CHECK(is_closed(event) && is_closed(permit) && is_closed(item) &&
	      is_closed(value));
	ended++;
}

/* The objects go while somebody waits, by another thread. */
static void objects__go_first(rpma_rt_mode mode)
{
	world w(mode);
	auto of = std::make_unique<all>();
	int ended = 0;

	w.loop.spawn(await_ends(*of, ended));
	std::thread ends([&] { of.reset(); });
	while (ended == 0)
		CHECK(w.loop.turn(1000) >= 0);
	ends.join();
}

/* The loop goes while its coroutines wait: the next coroutine gets the
 * permit, or the value. */
static void loop__goes_first(rpma_rt_mode mode)
{
	rt::event event;
	rt::semaphore places(0);
	all of;
	int ended = 0;

	{
		world w(mode);

		w.loop.spawn(await_ends(of, ended));
		CHECK(w.loop.turn(0) >= 0);
		must(of.items.try_send(1));
		of.event.set();
	}
	CHECK(ended == 0 && must(of.items.receive().wait()) == 1);
}

int main(void)
{
	RUN(event__wakes_all);
	RUN(event__given_up);
	RUN(waits__in_a_turn_REFUSED);
	RUN(semaphore__permits);
	RUN(semaphore__given_up);
	RUN(semaphore__threads_IN_THE_SAME_LINE);
	RUN(promise__from_a_thread);
	RUN(channel__between_loops);
	RUN(channel__given_up);
	RUN(channel__closed_as_a_value_comes_VALUE_RECEIVED);
	RUN(objects__go_first);
	RUN(loop__goes_first);
	return 0;
}
