/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * leases.cc -- sends that take a lease, and sends that share a lease, on
 * connections of a loop and on connections without a loop; a thread that waits
 * for a free slot; refused sends, which leave the lease.
 */

#include <atomic>
#include <cstring>
#include <thread>

#include "scene.hpp"

#define SLOTS  4
#define ROUNDS 200
#define SOME   12 /* fewer sends than end a chain */

/* Takes as many slots as the pool has: no slot is lost, or held. */
static void is_whole(const rt::pool &pool, size_t slots)
{
	std::vector<rt::lease> all;

	while (all.size() < slots)
		all.push_back(must(must(pool.next()).wait(-1)));
	CHECK(!pool.take());
}

static rt::lease slot_of(const rt::pool &pool, int number)
{
	auto buffer = must(must(pool.next()).wait(-1));

	buffer.assign(std::to_string(number));
	return buffer;
}

/* ------------------------------------------------------ of a loop --- */

static rt::task<void> take_numbers(rt::connection &conn)
{
	for (int i = 0; i < ROUNDS; i++)
		CHECK(must(co_await conn.receive()).text() ==
		      std::to_string(i));
}

/* Sends more than the send queue has room for: sends wait in line. */
static rt::task<void> give_numbers(scene &s, rt::connection &conn)
{
	for (int i = 0; i < ROUNDS; i++) {
		auto sent = co_await conn.give(s.lease(std::to_string(i)));
		CHECK(sent);
		CHECK(!sent.slot());
	}
}

static rt::task<void> give_all(scene &s)
{
	auto both = co_await s.connect();

	co_await rt::when_all(give_numbers(s, both.client),
			      take_numbers(both.server));
}

static void loop__give_in_order(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 2 * ROUNDS, .depth = 4});

	s.run(give_all(s));
}

static rt::task<void> share_one(scene &s)
{
	auto one = co_await s.connect();
	auto two = co_await s.connect();

	for (int i = 0; i < ROUNDS; i++) {
		auto buffer = s.lease(std::to_string(i));
		CHECK(co_await one.client.give(buffer.share()));
		CHECK(co_await two.client.give(buffer.share()));
		CHECK(buffer && buffer.text() == std::to_string(i));
		if (i % 2) {
			auto last = co_await two.client.give(std::move(buffer));
			CHECK(last);
			CHECK(must(co_await two.server.receive()).text() ==
			      std::to_string(i));
		}
		for (auto *end : {&one.server, &two.server})
			CHECK(must(co_await end->receive()).text() ==
			      std::to_string(i));
	}
}

static void loop__share(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 128, .depth = 8});

	s.run(share_one(s));
}

static rt::task<void> give_late(scene &s)
{
	auto both = co_await s.connect();

	auto empty = co_await both.client.give({});
	CHECK(!empty && empty.error().code() == RPMA_E_INVAL);
	both.client.close();
	(void)co_await both.client.closed();
	auto late = co_await both.client.give(s.lease("late"));
	CHECK(!late && late.error().what() == rt::errc::closed);
	CHECK(late.slot().text() == "late");
	auto shared = co_await both.client.give(late.slot().share());
	CHECK(!shared && shared.slot().text() == "late");
	CHECK(late.slot().text() == "late");
	auto thread = both.client.give(late.slot().share()).wait();
	CHECK(!thread && thread.error().code() == RPMA_E_NOSUPP);
	CHECK(thread.slot().text() == "late");
}

static void loop__refused_LEASE_STAYS(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(give_late(s));
}

/* Few sends make no chain: their leases come back all the same, when the loop
 * has nothing to do, and where a coroutine waits for one of them. */
static rt::task<void> give_few(scene &s)
{
	auto both = co_await s.connect();
	const rt::pool pool = open_pool(s.runtime, s.peer, 2);

	for (int i = 0; i < ROUNDS; i++) {
		auto buffer = must(co_await s.loop.next(pool));

		buffer.assign(std::to_string(i));
		CHECK(co_await both.client.give(std::move(buffer)));
		CHECK(must(co_await both.server.receive()).text() ==
		      std::to_string(i));
	}
	std::vector<rt::lease> all;
	while (all.size() < 2)
		all.push_back(must(co_await s.loop.next(pool)));
}

static void loop__few_given_COME_BACK(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 128, .depth = 64});

	s.run(give_few(s));
}

static uint64_t unreceived()
{
	rpma_loopback_stats stats = {};

	if (loop_get())
		loop_get()->stats(&stats);
	return stats.rnr;
}

static rt::task<void> echo_all(rt::connection &conn)
{
	for (int i = 0; i < ROUNDS; i++)
		CHECK(co_await conn.give(must(co_await conn.receive())));
}

/* A message finds a receive where both ends share a pool of few slots: chains
 * of given sends do not hold the slots that the receives need. */
static rt::task<void> echo_from_few(scene &s)
{
	auto both = co_await s.connect();
	const uint64_t before = unreceived();
	rt::lease bytes = slot_of(open_pool(s.runtime, s.peer, 1), 0);

	s.loop.spawn(echo_all(both.server));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(co_await both.client.give(std::move(bytes)));
		bytes = must(co_await both.client.receive());
		CHECK(bytes.text() == "0");
	}
	CHECK(unreceived() == before);
}

static void loop__echo_from_few_slots_ALL_RECEIVED(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 8, .depth = 64, .receives = 4});

	s.run(echo_from_few(s));
}

/* A value is copied as bytes, text as text; both are cut to the lease. */
static void lease__assign(rpma_rt_mode mode)
{
	struct value {
		uint64_t number;
		char name[5];
	};
	scene s({.mode = mode});
	auto buffer = s.lease();

	buffer.assign(value{7, "name"});
	CHECK(buffer.size() == sizeof(value));
	CHECK(buffer.as<value>().number == 7);
	CHECK(std::string(buffer.as<value>().name) == "name");
	buffer.assign("literal").resize(4);
	CHECK(buffer.text() == "lite");
	buffer.assign(value{8, ""});
	CHECK(buffer.size() == 4 && buffer.as<uint64_t>() == 8);
	auto own = s.lease("header:payload");
	own.assign(own.text().substr(4));
	CHECK(own.text() == "er:payload");
}

/* The bytes behind a slot are other messages. */
static void lease__resize_ENDS_AT_THE_SLOT(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto buffer = s.lease();
	const size_t all = buffer.size();

	CHECK(buffer.resize(3).size() == 3);
	CHECK(buffer.resize(all).size() == all);
	CHECK(buffer.resize(all + 1).size() == all);
	CHECK(buffer.resize((size_t(1) << 32) + 1).size() == all);
}

static rt::task<void> send_one(pair &both, const rt::pool &messages)
{
	CHECK(co_await both.client.send(must(messages.take())));
}

/* Gives a few sends from a pool. All sends are complete in the end, but perhaps
 * for the write that ends the chain. */
static rt::task<void> give_some(rt::loop &loop, rt::endpoint with,
				rt::pool from, std::vector<pair> &open)
{
	auto listener = must(loop.listen(address(), "0", with));
	auto [client, server] = co_await rt::when_all(
		loop.connect(address(), std::to_string(listener.port()), with),
		listener.accept());
	auto &both = open.emplace_back(must(std::move(client)),
				       must(std::move(server)));

	must(co_await both.server.established());
	for (int i = 0; i < SOME; i++)
		CHECK(co_await both.client.give(must(from.take())));
	for (int i = 0; i < SOME; i++)
		CHECK(co_await both.server.receive());
	co_await send_one(both, *with.messages);
}

/* Chains of given sends, of several loops, hold at most a quarter of a pool. */
static void loop__few_given_of_LOOPS(rpma_rt_mode mode)
{
	constexpr int LOOPS = 5;
	auto peer = open_peer();
	auto runtime = open_runtime(mode, LOOPS);
	auto messages = open_pool(runtime, peer, 256);
	auto from = open_pool(runtime, peer, 4 + LOOPS * SOME);
	std::vector<rt::loop> loops;
	std::vector<pair> open;
	rt::endpoint with{.via = peer, .messages = &messages};

	with.cfg.sq_size = 64;
	with.cfg.rq_size = 16;
	for (int i = 0; i < LOOPS; i++) {
		const int poller = mode == RPMA_RT_MODE_MANUAL ? i : -1;
		auto &loop = loops.emplace_back(
			must(rt::loop::make(runtime, {.poller = poller})));

		must(loop.run(give_some(loop, with, from, open)));
	}
	/* behind the ends of chains that are not counted any more */
	for (int i = 0; i < LOOPS; i++)
		must(loops[size_t(i)].run(send_one(open[size_t(i)], messages)));
	int free = 0;
	for (std::vector<rt::lease> all; auto next = from.take(); free++)
		all.push_back(std::move(*next));
	CHECK(free >= (4 + LOOPS * SOME) * 3 / 4);
}

static rt::task<void> echo_one(scene &s, const pair &both)
{
	CHECK(co_await both.client.give(s.lease("there")));
	CHECK(co_await both.server.receive());
	CHECK(co_await both.server.give(s.lease("back")));
	CHECK(co_await both.client.receive());
}

/* Leases of two pools that are given in one turn end the chain, whichever pool
 * is first: so the slots are free soon, and no loop ends the chain. */
static rt::task<void> give_of_two_pools(scene &s)
{
	auto both = co_await s.connect();
	const rt::pool other = open_pool(s.runtime, s.peer, 1);

	for (int i = 0; i < ROUNDS; i++) {
		auto first = must(other.take());
		auto second = s.lease("second");

		first.assign("first");
		if (i % 2)
			std::swap(first, second);
		CHECK(co_await both.client.give(std::move(first)));
		CHECK(co_await both.client.give(std::move(second)));
		for (int j = 0; j < 2; j++)
			CHECK(co_await both.server.receive());
		co_await echo_one(s, both);
		co_await echo_one(s, both);
	}
}

static void loop__given_of_two_pools_COME_BACK(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 256, .depth = 64});

	s.run(give_of_two_pools(s));
}

/* What was given is sent before a drain, and before a send that is awaited. */
static rt::task<void> give_and_drain(scene &s)
{
	auto both = co_await s.connect();

	CHECK(co_await both.client.give(s.lease("given")));
	must(co_await both.client.send(s.lease("sent")));
	for (int i = 0; i < 20; i++)
		CHECK(co_await both.client.give(s.lease("late")));
	must(both.client.drain(0));
	CHECK(!co_await both.client.give(s.lease("after")));
	CHECK(must(co_await both.server.receive()).text() == "given");
	CHECK(must(co_await both.server.receive()).text() == "sent");
	for (int i = 0; i < 20; i++)
		CHECK(must(co_await both.server.receive()).text() == "late");
	CHECK(co_await both.client.closed() == RPMA_RT_REASON_LOCAL);
}

static void loop__given_before_a_drain(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 128, .depth = 32});

	s.run(give_and_drain(s));
	while (s.take_all().size() < 128) /* the connections have ended */
		CHECK(s.loop.turn(1000) >= 0);
}

/* The device reads the bytes late: nobody else has the slot before, although
 * the coroutine that gave the lease has gone. */
static rt::task<void> give_one(rt::connection &conn, rt::lease buffer)
{
	CHECK(co_await conn.give(std::move(buffer)));
}

static rt::task<void> give_late_reads(scene &s)
{
	auto both = co_await s.connect();

	for (int i = 0; i < ROUNDS / 20; i++) {
		auto text = std::to_string(i);

		if (loop_get())
			CHECK(loop_get()->fault("wr:op=send,delay_us=2000") ==
			      0);
		co_await give_one(both.client, s.lease(text));
		co_await give_one(both.client, s.lease(text).share());
		must(co_await s.loop.sleep_for(1us)); /* they are posted */
		for (auto &other : s.take_all())
			memset(other.data(), 'x', other.size());
		for (int n = 0; n < 2; n++)
			CHECK(must(co_await both.server.receive()).text() ==
			      text);
		if (loop_get())
			loop_get()->fault_clear();
	}
}

static void loop__given_READ_LATE(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 128, .depth = 16});

	s.run(give_late_reads(s));
}

/* ------------------------------------------------ without a loop --- */

struct ends {
	rt::peer peer = open_peer();
	rt::runtime runtime;
	rt::pool received; /* by the server */
	std::optional<rt::connection> client, server;

	explicit ends(rpma_rt_mode mode)
	    : runtime(open_runtime(mode)),
	      received(open_pool(runtime, peer, 64))
	{
		rt::endpoint with{.via = peer};
		rt::endpoint served{.via = peer, .messages = &received};

		with.cfg.sq_size = served.cfg.rq_size = 16;
		auto listener = must(runtime.listen(address(), "0", served));
		auto port = std::to_string(listener.port());
		std::thread connects([&] {
			client.emplace(must(
				runtime.connect(address(), port, with).wait()));
		});
		server.emplace(must(listener.accept().wait()));
		connects.join();
	}
};

static void threads__wait_for_a_slot(rpma_rt_mode mode)
{
	ends e(mode);
	auto pool = open_pool(e.runtime, e.peer, SLOTS);
	std::thread receives([&] {
		for (int i = 0; i < ROUNDS; i++)
			CHECK(must(e.server->receive().wait()).text() ==
			      std::to_string(i));
	});

	for (int i = 0; i < ROUNDS; i++) {
		auto buffer = slot_of(pool, i);
		if (i % 2) {
			must(e.client->give(buffer.share()).wait());
			buffer.give_back();
			continue;
		}
		auto sent = e.client->give(std::move(buffer)).wait(1000);
		CHECK(sent);
		CHECK(!sent.slot());
	}
	receives.join();
	is_whole(pool, SLOTS);
}

static void threads__refused_LEASE_STAYS(rpma_rt_mode mode)
{
	ends e(mode);
	auto pool = open_pool(e.runtime, e.peer, SLOTS);

	CHECK(e.client->give({}).wait().error().code() == RPMA_E_INVAL);
	e.client->close();
	must(e.client->closed().wait());
	auto late = e.client->give(slot_of(pool, 1)).wait();
	CHECK(!late && late.error().what() == rt::errc::closed);
	CHECK(late.slot().text() == "1");
	CHECK(!e.client->give(late.slot().share()).wait());
	late.slot().give_back();
	is_whole(pool, SLOTS);
}

/* Another thread drains the connection while this thread gives. */
static void threads__give_beside_a_DRAIN(rpma_rt_mode mode)
{
	ends e(mode);
	auto pool = open_pool(e.runtime, e.peer, SLOTS);
	bool is_refused = false;
	std::thread receives([&] {
		while (e.server->receive().wait())
			;
	});
	std::thread drains([&] { must(e.client->drain(0)); });

	while (!is_refused)
		is_refused = !e.client->give(slot_of(pool, 1)).wait();
	drains.join();
	must(e.client->closed().wait());
	receives.join();
	is_whole(pool, SLOTS);
}

/* A thread that waits for the end holds up neither a wait with a limit of time,
 * nor a post that is refused. */
static void threads__wait_for_the_end_BESIDE_OTHERS(rpma_rt_mode mode)
{
	ends e(mode);
	auto pool = open_pool(e.runtime, e.peer, SLOTS);
	std::atomic<bool> begins{false};
	std::thread waits([&] {
		begins = true;
		must(e.client->closed().wait());
	});

	while (!begins)
		std::this_thread::yield();
	for (int i = 0; i < 20; i++) {
		auto early = e.client->closed().wait(1);

		CHECK(early.error().what() == rt::errc::timed_out);
	}
	must(e.client->drain(0));
	auto late = e.client->give(slot_of(pool, 1)).wait();
	CHECK(!late && late.slot().text() == "1");
	waits.join();
}

/* Sends to a peer without a free receive, until a send takes longer than the
 * caller waits. */
static void send_in_vain(const ends &e, const rt::pool &pool)
{
	for (;;) {
		auto sent = e.client->send(slot_of(pool, 1)).wait(20);

		CHECK(sent || !sent.slot());
		if (!sent) {
			CHECK(sent.error().what() == rt::errc::timed_out);
			return;
		}
	}
}

/* The lease of an operation that takes too long comes back when the device has
 * done with the bytes, and at the latest with the end of the connection. */
static void threads__operation_LATE(rpma_rt_mode mode)
{
	ends e(mode);
	auto pool = open_pool(e.runtime, e.peer, SLOTS);
	std::vector<rt::message> unread;

	for (int i = 0; i < 2; i++) {
		send_in_vain(e, pool);
		while (auto next = e.server->receive().wait(20))
			unread.push_back(std::move(*next));
		unread.clear();
	}
	/* a message that was on its way */
	while (e.server->receive().wait(20))
		;
	is_whole(pool, SLOTS);
	send_in_vain(e, pool);
	e.client.reset();
	is_whole(pool, SLOTS);
}

static rt::task<void> await_alone(rt::connection &conn)
{
	auto begins = co_await conn.established();

	CHECK(!begins && begins.error().code() == RPMA_E_NOSUPP);
	CHECK(co_await conn.closed() == RPMA_RT_REASON_LOCAL);
}

static void threads__connection_AWAITED(rpma_rt_mode mode)
{
	ends e(mode);
	auto loop = must(rt::loop::make(e.runtime));

	must(loop.run(await_alone(*e.client)));
}

/* The pool stays until the last lease and the last future have gone. */
static void owners__pool_goes_first(rpma_rt_mode mode)
{
	ends e(mode);
	std::optional<rt::pool> pool(open_pool(e.runtime, e.peer, 1));
	auto lease = must(pool->take());
	auto next = must(pool->next());
	auto none = next.poll();

	CHECK(!none && none.error().code() == RPMA_E_AGAIN);
	pool.reset();
	lease.assign("last");
	must(e.client->give(std::move(lease)).wait());
	CHECK(must(next.wait(-1)).text().size() == 64);
	CHECK(must(e.server->receive().wait()).text() == "last");
}

int main()
{
	RUN(loop__give_in_order);
	RUN(loop__share);
	RUN(loop__refused_LEASE_STAYS);
	RUN(loop__few_given_COME_BACK);
	RUN(loop__echo_from_few_slots_ALL_RECEIVED);
	RUN(loop__few_given_of_LOOPS);
	RUN(loop__given_of_two_pools_COME_BACK);
	RUN(lease__assign);
	RUN(lease__resize_ENDS_AT_THE_SLOT);
	RUN(loop__given_before_a_drain);
	RUN(loop__given_READ_LATE);
	RUN(threads__wait_for_a_slot);
	RUN(threads__refused_LEASE_STAYS);
	RUN(threads__give_beside_a_DRAIN);
	RUN(threads__wait_for_the_end_BESIDE_OTHERS);
	RUN(threads__operation_LATE);
	RUN(threads__connection_AWAITED);
	RUN(owners__pool_goes_first);
	return 0;
}
