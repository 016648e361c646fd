/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * death.cc -- a connection dies while a coroutine waits: the results of the
 * coroutine; operations without room, waiting in a line; writes to two
 * replicas, where a replica dies.
 */

#include <cstring>
#include <thread>

#include "scene.hpp"

static pair connect(scene &s)
{
	auto both = s.loop.run(s.connect());

	return must(std::move(both));
}

/* ----------------------------------------------------------- in a line --- */

static rt::task<void> write_one(scene &s, rt::connection &conn, uint64_t value,
				int &next)
{
	must(co_await conn.atomic_write(s.remote, 0, value));
	/* in the order in which they were begun */
	CHECK(next++ == static_cast<int>(value));
}

/* Many more than the connection has room for. */
static void no_room__waits_in_line(rpma_rt_mode mode)
{
	scene s({.mode = mode, .depth = 4});
	auto both = connect(s);
	int next = 0;

	for (int i = 0; i < 1000; i++)
		s.loop.spawn(write_one(s, both.client, static_cast<uint64_t>(i),
				       next));
	while (next < 1000)
		CHECK(s.loop.turn(1000) >= 0);
	CHECK(s.page[0] == 999);
}

/* Some of the line are taken back, links among them. */
static rt::task<void> crowd(scene &s, rt::connection &conn)
{
	for (int i = 0; i < 100; i++) {
		auto one = [&] { return conn.flush(s.remote, 0, 8); };
		auto link = [&] { return conn.link(one(), one(), one()); };
		auto any = co_await rt::when_any(one(), link(), one(), one(),
						 link(), one(), link(), one());

		CHECK(any.index == 0 && any.get<0>()->ok());
	}
}

static void line__members_taken_back(rpma_rt_mode mode)
{
	scene s({.mode = mode, .depth = 4});
	auto both = connect(s);

	s.run(crowd(s, both.client));
}

/* ---------------------------------------------------------------- death --- */

struct told {
	int succeeded = 0;
	int not_begun = 0; /* the line, or after the end */
	int posted = 0;	   /* and failed, or with an unknown outcome */
	int over = 0;
};

static rt::task<void> send_one(scene &s, rt::connection &conn, told &t)
{
	auto sent = co_await conn.send(s.lease("is it heard?"));

	/* nothing is lost: the bytes are there */
	CHECK(sent.slot().text() == "is it heard?");
	if (sent)
		t.succeeded++;
	else if (sent.error().what() == rt::errc::closed)
		t.not_begun++;
	else
		t.posted++;
	t.over++;
}

static rt::task<void> hear_end(rt::connection &conn, told &t)
{
	for (;;) {
		auto message = co_await conn.receive();

		if (!message) {
			CHECK(message.error().what() == rt::errc::closed);
			t.over++;
			co_return;
		}
	}
}

/* The connection dies with operations posted, in the line, and readers. */
static void death__everybody_is_told(rpma_rt_mode mode)
{
	scene s({.mode = mode, .slots = 512, .depth = 8});
	auto both = connect(s);
	told t;

	for (int i = 0; i < 100; i++)
		s.loop.spawn(send_one(s, both.client, t));
	s.loop.spawn(hear_end(both.client, t));
	s.loop.spawn(hear_end(both.server, t));
	both.client.close();
	while (t.over < 102)
		CHECK(s.loop.turn(1000) >= 0);
	CHECK(t.succeeded + t.not_begun + t.posted == 100);
	CHECK(t.not_begun >= 100 - 8 - t.succeeded);
	both = connect(s);
}

/* A connection goes before ESTABLISHED. */
static rt::task<void> leave_early(scene &s)
{
	auto listener = must(s.loop.listen(address(), "0", s.endpoint()));
	auto begun = co_await s.loop.within(
		1ms, s.loop.connect(address(), std::to_string(listener.port()),
				    s.endpoint()));
	CHECK(!begun);
	/* the request may have arrived: of a peer that has left */
	auto late = co_await s.loop.within(5ms, listener.next());
	if (late) {
		auto conn = std::move(*late).accept();

		if (conn)
			co_await conn->closed();
	}
}

static void connect__taken_back(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	for (int i = 0; i < 20; i++)
		s.run(leave_early(s));
}

/* The runtime stops under the loop. */
static void stop__ends_the_run(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	auto both = connect(s);
	told t;

	s.loop.spawn(hear_end(both.client, t));
	/* this thread goes on with the poller meanwhile */
	std::thread stopper([&] { CHECK(rpma_rt_stop(s.runtime.raw()) == 0); });
	while (s.loop.turn(1000) != RPMA_RT_E_CLOSED)
		continue;
	stopper.join();
	CHECK(t.over == 1);
}

/* --------------------------------------------------------------- quorum --- */

static rt::task<void> replicate(scene &s)
{
	auto one = co_await s.connect();
	auto two = co_await s.connect();
	auto write = [&](rt::connection &conn, const char *text) {
		return conn.link(conn.write(s.remote, 0, s.lease(text)),
				 conn.flush(s.remote, 0, 8));
	};

	auto both = co_await rt::when_some(2, write(one.client, "first"),
					   write(two.client, "first"));
	CHECK(both && both.succeeded == 2 && both.get<0>()->ok());

	two.server.close();
	co_await two.client.closed();
	auto enough = co_await rt::when_some(1, write(two.client, "second"),
					     write(one.client, "second"));
	CHECK(enough && enough.succeeded == 1 && enough.index == 1);
	CHECK(enough.get<0>()->error().what() == rt::errc::closed);

	auto few = co_await rt::when_some(2, write(one.client, "third"),
					  write(two.client, "third"));
	CHECK(!few && few.get<1>() && !few.get<1>()->ok());

	/* the same of an array; the write given up may still be under way */
	std::array<rt::operation<2>, 2> writes{write(two.client, "fourth"),
					       write(one.client, "fourth")};
	auto array = co_await rt::when_some(1, std::move(writes));
	CHECK(array && array.index == 1);
	CHECK(memcmp(s.page.data(), "fourth", 6) == 0);
}

/* A replica dies while the writes are outstanding. */
static rt::task<void> die_between(scene &s)
{
	for (int i = 0; i < 20; i++) {
		auto one = co_await s.connect();
		auto two = co_await s.connect();
		auto write = [&](rt::connection &conn) {
			return conn.write(s.remote, 0, s.lease("record"));
		};
		auto die = [](scene &w, rt::connection &c,
			      int us) -> rt::task<void> {
			(void)co_await w.loop.sleep_for(us * 1us);
			c.close();
		};

		s.loop.spawn(die(s, two.server, i * 50));
		bool is_dead = false;
		for (int n = 0; n < 1000 && !is_dead; n++) {
			auto enough = co_await rt::when_some(
				1, write(one.client), write(two.client));
			CHECK(enough);
			auto all = co_await rt::when_all(write(one.client),
							 write(two.client));
			CHECK(std::get<0>(all));
			is_dead = !std::get<1>(all);
		}
		co_await two.client.closed();
	}
}

static void quorum__one_of_two_dies(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	s.run(replicate(s));
	s.run(die_between(s));
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
}

int main(void)
{
	RUN(no_room__waits_in_line);
	RUN(line__members_taken_back);
	RUN(death__everybody_is_told);
	RUN(connect__taken_back);
	RUN(stop__ends_the_run);
	RUN(quorum__one_of_two_dies);
	return 0;
}
