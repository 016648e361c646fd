/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ops.cc -- the awaits of a coroutine: every operation, links, messages with
 * and without immediate data, requests with private data, timers, time limits,
 * items of the queue; and the result of each failure. Owners destroyed in any
 * order.
 */

#include <algorithm>
#include <cstring>
#include <numeric>

#include "scene.hpp"

#define PINGS 1000

/* ------------------------------------------------------------- messages --- */

static rt::task<void> echo(rt::connection &conn, int count)
{
	for (int i = 0; i < count; i++) {
		auto message = must(co_await conn.receive());

		must(co_await conn.send(std::move(message)));
	}
}

static rt::task<void> ask(scene &s, rt::connection &conn, int count)
{
	for (int i = 0; i < count; i++) {
		std::string text = "ping " + std::to_string(i);

		must(co_await conn.send(s.lease(text)));
		auto answer = must(co_await conn.receive());
		CHECK(answer.text() == text && !answer.imm());
	}
}

static rt::task<void> ping(scene &s)
{
	auto both = co_await s.connect();

	co_await rt::when_all(echo(both.server, PINGS),
			      ask(s, both.client, PINGS));
}

static void messages__come_back(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(ping(s));
}

/* Several are there before somebody looks, and stay in order. */
static rt::task<void> send_first(scene &s)
{
	auto both = co_await s.connect();

	for (int i = 0; i < 40; i++)
		must(co_await both.client.send(s.lease(std::to_string(i))));
	for (int i = 0; i < 40; i++)
		CHECK(must(co_await both.server.receive()).text() ==
		      std::to_string(i));
	both.client.close();
	auto last = co_await both.server.receive();
	CHECK(!last && last.error().what() == rt::errc::closed);
	CHECK(last.error().reason() == RPMA_RT_REASON_DISCONNECTED);
	CHECK(co_await both.client.closed() == RPMA_RT_REASON_LOCAL);
}

static void messages__untaken_STAY(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(send_first(s));
}

static rt::task<void> send_imm(scene &s)
{
	auto both = co_await s.connect();

	must(co_await both.client.send(s.lease("with"), 7));
	must(co_await both.client.write(s.remote, 64, s.lease("beside"), 8));
	auto sent = must(co_await both.server.receive());
	auto written = must(co_await both.server.receive());
	CHECK(sent.text() == "with" && *sent.imm() == 7);
	CHECK(written.size() == 0 && *written.imm() == 8);
	CHECK(memcmp(&s.page[8], "beside", 6) == 0);
}

static void immediate__arrives(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(send_imm(s));
}

/* -------------------------------------------------------- remote memory --- */

static rt::task<void> operate(scene &s)
{
	auto both = co_await s.connect();
	auto &conn = both.client;

	auto written = co_await conn.write(s.remote, 0, s.lease("to and fro"));
	CHECK(written && written.slot().text() == "to and fro");
	must(co_await conn.flush(s.remote, 0, 10));
	auto read = co_await conn.read(s.remote, 0, s.lease("0123456789"));
	CHECK(read && read.slot().text() == "to and fro");

	must(co_await conn.atomic_write(s.remote, 8, 40));
	auto old = co_await conn.fetch_add(s.remote, 8, 2, s.lease());
	CHECK(old && old.slot().as<uint64_t>() == 40 && s.page[1] == 42);
	old = co_await conn.compare_swap(s.remote, 8, 42, 1, s.lease());
	CHECK(old && old.slot().as<uint64_t>() == 42 && s.page[1] == 1);
	old = co_await conn.compare_swap(s.remote, 8, 42, 2, s.lease());
	CHECK(old && old.slot().as<uint64_t>() == 1 && s.page[1] == 1);
}

static rt::task<void> operate_raw(scene &s)
{
	auto both = co_await s.connect();
	auto &conn = both.client;
	auto *mr = s.memory.raw();

	s.page[100] = 5;
	must(co_await conn.write_raw(s.remote, 808, mr, 800, 8));
	CHECK(s.page[101] == 5);
	must(co_await conn.read_raw(s.remote, 808, mr, 816, 8));
	CHECK(s.page[102] == 5);
	must(co_await conn.fetch_add_raw(s.remote, 800, 1, mr, 824));
	CHECK(s.page[100] == 6 && s.page[103] == 5);
	must(co_await conn.compare_swap_raw(s.remote, 800, 6, 9, mr, 824));
	CHECK(s.page[100] == 9 && s.page[103] == 6);
}

static void operations__do_what_they_say(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(operate(s));
	s.run(operate_raw(s));
}

static rt::task<void> link_them(scene &s)
{
	auto both = co_await s.connect();
	auto &conn = both.client;

	auto done =
		co_await conn.link(conn.write(s.remote, 0, s.lease("record")),
				   conn.flush(s.remote, 0, 6),
				   conn.write(s.remote, 64, s.lease("tail")),
				   conn.send(s.lease("written")));
	CHECK(done && done.slot(0).text() == "record" && !done.slot(1) &&
	      done.slot(3).text() == "written");
	CHECK(must(co_await both.server.receive()).text() == "written");
	CHECK(memcmp(&s.page[0], "record", 6) == 0 &&
	      memcmp(&s.page[8], "tail", 4) == 0);

	/* longer than the limit of the connection */
	auto one = [&] { return conn.flush(s.remote, 0, 8); };
	auto no = co_await conn.link(one(), one(), one(), one(), one(), one(),
				     one(), one(), one(), one(), one(), one(),
				     one(), one(), one(), one(), one());
	CHECK(!no && no.error().what() == rt::errc::not_posted &&
	      no.error().code() == RPMA_E_INVAL);
	must(co_await one());
}

static void link__is_one(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(link_them(s));
}

/* --------------------------------------------------------------- errors --- */

static rt::task<void> be_refused(scene &s)
{
	auto both = co_await s.connect();
	auto &conn = both.client;

	/* an impossible post comes back with the bytes */
	auto odd = co_await conn.fetch_add(s.remote, 3, 1, s.lease());
	CHECK(!odd && odd.error().what() == rt::errc::not_posted);
	CHECK(odd.error().code() == RPMA_E_INVAL && odd.slot());
	/* an operation refused by the other side has a status */
	auto far = co_await conn.write(s.remote, 4090, s.lease("too long"));
	CHECK(!far && far.error().what() == rt::errc::failed);
	CHECK(far.error().status() == IBV_WC_REM_ACCESS_ERR);
	CHECK(far.slot().text() == "too long");
	CHECK(co_await conn.closed() == RPMA_RT_REASON_ERROR);
	auto late = co_await conn.send(s.lease("late"));
	CHECK(!late && late.error().what() == rt::errc::closed);
	CHECK(late.error().reason() == RPMA_RT_REASON_ERROR);
	CHECK(late.error().code() == RPMA_RT_E_CLOSED);
	CHECK(late.slot().text() == "late");
	bool has_thrown = false;
	try {
		(void)(co_await conn.send(s.lease())).value();
	} catch (const rt::failure &why) {
		has_thrown = why.error().code() == RPMA_RT_E_CLOSED;
	}
	CHECK(has_thrown);
}

static rt::task<void> fail_link(scene &s)
{
	auto both = co_await s.connect();
	auto &conn = both.client;
	auto done = co_await conn.link(
		conn.write(s.remote, 4090, s.lease("too long")),
		conn.write(s.remote, 64, s.lease("never")),
		conn.send(s.lease("never")));

	CHECK(!done && done.error().status() == IBV_WC_REM_ACCESS_ERR);
	co_await conn.closed();
}

static rt::task<void> reach_nobody(scene &s)
{
	auto nobody = co_await s.loop.connect(address(), "1", s.endpoint());

	CHECK(!nobody && nobody.error().what() == rt::errc::closed);
	CHECK(nobody.error().reason() == RPMA_RT_REASON_REJECTED);
	rt::endpoint wrong = s.endpoint();
	wrong.cfg.keepalive_ms = 3600001;
	auto no = co_await s.loop.connect(address(), "1", wrong);
	CHECK(!no && no.error().what() == rt::errc::call);
}

static void errors__are_values(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	s.run(be_refused(s));
	s.run(fail_link(s));
	s.run(reach_nobody(s));
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
}

static rt::task<int> throw_it()
{
	throw 7;
	co_return 1;
}

static rt::task<int> return_it()
{
	co_return 1;
}

template <typename A> static rt::task<int> thrown_by(A awaited)
{
	try {
		(void)co_await std::move(awaited);
	} catch (int what) {
		co_return what;
	}
	co_return 0;
}

static rt::task<void> throw_in_groups()
{
	/* enough have succeeded: the success is not lost */
	auto some = co_await rt::when_some(1, throw_it(), return_it());
	CHECK(some && some.index == 1 && !some.get<0>() && *some.get<1>() == 1);
	CHECK(co_await thrown_by(rt::when_some(2, return_it(), throw_it())) ==
	      7);
	CHECK(co_await thrown_by(rt::when_any(throw_it(), return_it())) == 7);
	CHECK(co_await thrown_by(rt::when_all(return_it(), throw_it())) == 7);
}

static void exceptions__in_groups(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(throw_in_groups());
}

struct noting {
	bool &is_gone;

	~noting() { is_gone = true; }
};

static rt::task<void> note_end(rt::loop &loop, bool &is_gone)
{
	noting here{is_gone};

	(void)co_await loop.sleep_for(1h);
}

/* A moved-from owner leads nowhere; the assigned owner is gone. */
static void moved__leads_nowhere(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto from = s.lease("from");
	auto to = std::move(from);
	bool is_gone = false;

	from.assign("another");
	CHECK(!from && from.size() == 0 && from.as<int>() == 0);
	CHECK(to.text() == "from");
	to.give_back();
	CHECK(!to && to.assign("another").text().empty());

	auto waits = note_end(s.loop, is_gone);
	CHECK(waits.await_suspend(std::noop_coroutine()));
	auto next = note_end(s.loop, is_gone);
	waits = std::move(next);
	CHECK(is_gone);
}

/* ------------------------------------------------------------- requests --- */

static rt::task<void> choose(scene &s, rt::listener &listener)
{
	auto first = must(co_await listener.next());
	CHECK(first.private_data().starts_with("one"));
	must(std::move(first).reject("no"));
	auto second = must(co_await listener.next());
	CHECK(second.private_data().starts_with("two"));
	auto conn = must(std::move(second).accept("yes"));
	/* perhaps not established yet: sent later */
	must(co_await conn.send(s.lease("welcome")));
	co_await conn.closed();
}

static rt::task<void> be_chosen(scene &s, std::string port)
{
	rt::endpoint with = s.endpoint();

	with.private_data = "one";
	auto no = co_await s.loop.connect(address(), port, with);
	CHECK(!no && no.error().reason() == RPMA_RT_REASON_REJECTED);
	with.private_data = "two";
	auto conn = must(co_await s.loop.connect(address(), port, with));
	CHECK(conn.private_data().starts_with("yes"));
	CHECK(must(co_await conn.receive()).text() == "welcome");
}

static rt::task<void> ask_twice(scene &s)
{
	auto listener = must(s.loop.listen(address(), "0", s.endpoint()));

	co_await rt::when_all(choose(s, listener),
			      be_chosen(s, std::to_string(listener.port())));
}

static void requests__are_chosen(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(ask_twice(s));
}

/* ---------------------------------------------------------------- times --- */

static rt::task<void> tick(scene &s, rt::clock::time_point begin, int ms,
			   std::vector<int> &order)
{
	must(co_await s.loop.sleep_until(begin + ms * 1ms));
	CHECK(rt::clock::now() - begin >= ms * 1ms);
	order.push_back(ms);
}

static rt::task<void> tick_all(scene &s)
{
	const auto now = rt::clock::now();
	std::vector<int> order;

	co_await rt::when_all(tick(s, now, 9, order), tick(s, now, 1, order),
			      tick(s, now, 5, order), tick(s, now, 7, order),
			      tick(s, now, 3, order));
	CHECK(std::is_sorted(order.begin(), order.end()) && order.size() == 5);
}

static rt::task<void> wait_in_vain(scene &s)
{
	auto both = co_await s.connect();

	auto none = co_await s.loop.within(5ms, both.client.receive());
	CHECK(!none && none.error().what() == rt::errc::timed_out);
	/* a late message is not lost */
	must(co_await both.server.send(s.lease("late")));
	auto late = co_await s.loop.within(1min, both.client.receive());
	CHECK(must(std::move(late)).text() == "late");
	auto any = co_await rt::when_any(
		s.loop.sleep_for(rt::clock::duration::max()),
		s.loop.sleep_for(1ms));
	CHECK(any.index == 1 && any.get<1>() && !any.get<0>());
}

static void timers__end_in_order(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(tick_all(s));
	s.run(wait_in_vain(s));
}

/* Thousands of timers, half of which are taken back. */
static void timers__many_and_taken_back(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	int over = 0;
	auto one = [](scene &w, int us, int &count) -> rt::task<void> {
		must(co_await w.loop.sleep_for(us * 1us));
		count++;
	};
	auto half = [&one](scene &w, int us, int &count) -> rt::task<void> {
		auto first = co_await rt::when_any(
			one(w, us, count), w.loop.sleep_for(us * 1us + 1h));
		CHECK(first.index == 0);
	};

	for (int i = 0; i < 5000; i++)
		s.loop.spawn(half(s, i * 7919 % 20000, over));
	while (over < 5000)
		CHECK(s.loop.turn(1000) >= 0);
}

/* ---------------------------------------------------------------- items --- */

static rt::task<void> take_items(scene &s)
{
	for (uint64_t i = 0; i < 100; i++)
		CHECK(must(co_await s.loop.next()).context == i);
	auto none = co_await s.loop.within(1ms, s.loop.next());
	CHECK(!none);
	CHECK(!push(s.loop.queue(), 100));
	CHECK(must(co_await s.loop.next()).context == 100);
}

static void items__come_in_order(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	for (uint64_t i = 0; i < 100; i++)
		CHECK(!push(s.loop.queue(), i));
	s.run(take_items(s));
}

static rt::task<void> take_many(scene &s, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		CHECK(must(co_await s.loop.next()).context == i);
}

/* The loop takes a batch of unrequested items; the rest stays in the queue,
 * which has a bound. Items in a hand for nothing keep their order. */
static void items__untaken_STAY_in_the_queue(rpma_rt_mode mode)
{
	const uint64_t count = 1000;
	scene s({.mode = mode});
	rpma_rt_queue_stats stats;

	for (uint64_t i = 0; i < count; i++) {
		CHECK(!push(s.loop.queue(), i));
		if (i % 10 == 0)
			CHECK(s.loop.turn(0) >= 0);
	}
	for (int i = 0; i < 20; i++)
		CHECK(s.loop.turn(0) >= 0);
	CHECK(!rpma_rt_queue_get_stats(s.loop.queue(), &stats, sizeof(stats)));
	CHECK(stats.backlog >= count - 64);
	{
		auto held = rt::when_all(s.loop.next(), s.loop.next(),
					 s.loop.sleep_for(1h));

		CHECK(held.await_suspend(std::noop_coroutine()));
	}
	s.run(take_many(s, count));
}

/* --------------------------------------------------------------- owners --- */

/* Each order of destroying five owners, with an established connection, an
 * untaken message and a lease. */
static void owners__destroyed_in_any_order(rpma_rt_mode mode)
{
	std::vector<int> order(5);

	std::iota(order.begin(), order.end(), 0);
	do {
		std::optional<rt::peer> peer(open_peer());
		std::optional<rt::runtime> runtime(open_runtime(mode));
		std::optional<rt::pool> pool(open_pool(*runtime, *peer, 64));
		std::optional<rt::loop> loop(must(rt::loop::make(*runtime)));
		rt::lease lease = must(pool->take());
		std::optional<pair> both;
		auto connect = [&]() -> rt::task<void> {
			rt::endpoint with{.via = *peer, .messages = &*pool};
			with.cfg.sq_size = with.cfg.rq_size = 8;
			auto listener =
				must(loop->listen(address(), "0", with));
			auto [client, server] = co_await rt::when_all(
				loop->connect(address(),
					      std::to_string(listener.port()),
					      with),
				listener.accept());
			both.emplace(pair{must(std::move(client)),
					  must(std::move(server))});
			must(co_await both->client.send(must(pool->take())));
		};

		must(loop->run(connect()));
		for (int which : order) {
			if (which == 0)
				peer.reset();
			else if (which == 1)
				runtime.reset();
			else if (which == 2)
				pool.reset();
			else if (which == 3)
				loop.reset();
			else
				both.reset();
		}
		lease.assign("still there");
	} while (std::next_permutation(order.begin(), order.end()));
}

int main(void)
{
	RUN(messages__come_back);
	RUN(messages__untaken_STAY);
	RUN(immediate__arrives);
	RUN(operations__do_what_they_say);
	RUN(link__is_one);
	RUN(errors__are_values);
	RUN(exceptions__in_groups);
	RUN(moved__leads_nowhere);
	RUN(requests__are_chosen);
	RUN(timers__end_in_order);
	RUN(timers__many_and_taken_back);
	RUN(items__come_in_order);
	RUN(items__untaken_STAY_in_the_queue);
	RUN(owners__destroyed_in_any_order);
	return 0;
}
