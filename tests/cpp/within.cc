/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * within.cc -- a limit of time for each kind of wait: in time and late, with
 * the type of each result; a quorum with a deadline; groups that come late
 * while the device holds their work.
 */

#include "scene.hpp"

template <typename R, typename A> static void gives(const A &)
{
	static_assert(
		std::is_same_v<decltype(std::declval<A &>().await_resume()),
			       R>);
}

static rt::task<int> five()
{
	co_return 5;
}

static rt::task<bool> yes()
{
	co_return true;
}

static rt::task<void> nothing()
{
	co_return;
}

static rt::task<rt::error> no_error()
{
	co_return rt::error();
}

static rt::task<rt::result<std::string>> refuse()
{
	co_return rt::error::call(RPMA_E_INVAL);
}

static rt::task<int> fail()
{
	throw std::runtime_error("failed");
	co_return 0;
}

static rt::task<void> never(const rt::loop &loop)
{
	(void)co_await loop.sleep_for(24h);
	CHECK(!"resumed");
}

static rt::task<int> five_never(const rt::loop &loop)
{
	co_await never(loop);
	co_return 5;
}

static rt::task<bool> yes_never(const rt::loop &loop)
{
	co_await never(loop);
	co_return true;
}

template <typename R> static void is_late(const R &value)
{
	CHECK(!value && value.error().what() == rt::errc::timed_out);
}

/* ---------------------------------------------------------------- types --- */

/* A result with an error keeps its type; others are in a result. */
static rt::task<void> look_at_types(scene &s)
{
	auto both = co_await s.connect();
	auto listener = must(s.loop.listen(address(), "0", s.endpoint()));
	auto &loop = s.loop;
	auto &conn = both.client;
	using none = rt::result<void>;
	using std::monostate;

	gives<rt::result<int>>(loop.within(1h, five()));
	gives<rt::result<bool>>(loop.within(1h, yes()));
	gives<none>(loop.within(1h, nothing()));
	gives<rt::error>(loop.within(1h, no_error()));
	gives<rt::result<std::string>>(loop.within(1h, refuse()));
	gives<rt::result<rpma_rt_reason>>(loop.within(1h, conn.closed()));
	gives<none>(loop.within(1h, conn.established()));
	gives<rt::result<rt::message>>(loop.within(1h, conn.receive()));
	gives<rt::result<rt::lease>>(loop.within(1h, loop.next(s.pool)));
	gives<rt::result<rt::connection>>(loop.within(1h, listener.accept()));
	gives<rt::outcome<1>>(loop.within(1h, conn.flush(s.remote, 0, 8)));
	gives<rt::result<std::tuple<none, int>>>(
		loop.within(1h, rt::when_all(loop.sleep_for(1ms), five())));
	gives<rt::some_of<monostate, int>>(
		loop.within(1h, rt::when_any(nothing(), five())));
	gives<rt::some_of<none, bool>>(
		loop.within(1h, rt::when_some(1, loop.sleep_for(1ms), yes())));
	gives<none>(loop.within(1h, loop.within(2h, nothing())));
}

static void limited__has_its_type(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(look_at_types(s));
}

/* -------------------------------------------------------------- in time --- */

static rt::task<void> close_it(rt::connection &conn)
{
	conn.close();
	co_return;
}

static rt::task<void> come_in_time(scene &s)
{
	auto both = co_await s.connect();
	auto &loop = s.loop;

	CHECK(must(co_await loop.within(1h, five())) == 5);
	CHECK(must(co_await loop.within(1h, yes())));
	must(co_await loop.within(1h, nothing()));
	auto none = co_await loop.within(1h, no_error());
	CHECK(!none);
	auto refused = co_await loop.within(1h, refuse());
	CHECK(!refused && refused.error().code() == RPMA_E_INVAL);
	bool has_thrown = false;
	try {
		(void)co_await loop.within(1h, fail());
	} catch (const std::runtime_error &) {
		has_thrown = true;
	}
	CHECK(has_thrown);

	auto [a, b] =
		must(co_await loop.within(1h, rt::when_all(five(), nothing())));
	CHECK(a == 5);
	(void)b;
	auto any = co_await loop.within(1h, rt::when_any(never(loop), five()));
	CHECK(any && any.index == 1 && *any.get<1>() == 5);
	auto some = co_await loop.within(
		1h, rt::when_some(2, never(loop), five(), yes()));
	CHECK(some && some.succeeded == 2 && !some.error());
	auto few = co_await loop.within(
		1h, rt::when_some(2, never(loop), refuse(), refuse()));
	CHECK(!few && few.error().code() == RPMA_E_INVAL);
	auto too_few = co_await loop.within(1h, rt::when_some(2, five()));
	CHECK(!too_few && too_few.error().code() == RPMA_E_INVAL);
	auto of_none = co_await loop.within(1h, rt::when_any());
	CHECK(!of_none && of_none.error().code() == RPMA_E_INVAL);
	auto all_of_none = co_await loop.within(1h, rt::when_all());
	CHECK(all_of_none);

	auto [reason, closed] = co_await rt::when_all(
		loop.within(1h, both.server.closed()), close_it(both.client));
	CHECK(must(std::move(reason)) == RPMA_RT_REASON_DISCONNECTED);
	(void)closed;
}

static void limited__in_time(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(come_in_time(s));
}

/* ----------------------------------------------------------------- late --- */

/* The loop looks at timers before the loop looks at completions. */
static rt::task<void> come_late(scene &s)
{
	auto both = co_await s.connect();
	auto listener = must(s.loop.listen(address(), "0", s.endpoint()));
	auto &loop = s.loop;
	auto &conn = both.client;

	is_late(co_await loop.within(0ms, five_never(loop)));
	is_late(co_await loop.within(0ms, yes_never(loop)));
	is_late(co_await loop.within(0ms, never(loop)));
	is_late(co_await loop.within(0ms, conn.closed()));
	is_late(co_await loop.within(0ms, conn.receive()));
	is_late(co_await loop.within(0ms, listener.accept()));
	is_late(co_await loop.within(
		0ms, rt::when_all(five(), conn.receive(), conn.closed())));
	is_late(co_await loop.within(
		0ms, rt::when_any(never(loop), conn.receive())));
	is_late(co_await loop.within(
		0ms, rt::when_some(2, five(), conn.receive(), conn.closed())));
	is_late(co_await loop.within(0ms, loop.within(1h, never(loop))));

	/* the message is there for the next receive */
	must(co_await both.server.send(s.lease("next")));
	CHECK(must(co_await conn.receive()).text() == "next");
}

static void limited__late(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(come_late(s));
}

/* --------------------------------------------------------------- quorum --- */

static auto write_to(scene &s, pair &replica)
{
	return replica.client.write(s.remote, 0, s.lease("record"));
}

static rt::task<void> ask_for_a_quorum(scene &s)
{
	auto a = co_await s.connect();
	auto b = co_await s.connect();
	auto c = co_await s.connect();

	auto done = co_await s.loop.within(1h, rt::when_some(2, write_to(s, a),
							     write_to(s, b),
							     write_to(s, c)));
	CHECK(done && done.succeeded >= 2);

	auto late = co_await s.loop.within(0ms, rt::when_some(2, write_to(s, a),
							      write_to(s, b),
							      write_to(s, c)));
	is_late(late);

	b.client.close();
	c.client.close();
	(void)co_await rt::when_all(b.client.closed(), c.client.closed());
	auto few = co_await s.loop.within(1h, rt::when_some(2, write_to(s, a),
							    write_to(s, b),
							    write_to(s, c)));
	CHECK(!few && few.error().what() == rt::errc::closed);
}

static void quorum__with_a_deadline(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(ask_for_a_quorum(s));
}

int main(void)
{
	RUN(limited__has_its_type);
	RUN(limited__in_time);
	RUN(limited__late);
	RUN(quorum__with_a_deadline);
	return 0;
}
