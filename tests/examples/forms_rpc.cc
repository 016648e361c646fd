/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * forms_rpc.cc -- the RPC of doc/FORMS.md in C++: a question that the caller
 * gives up, that is late, or whose connection ends, leaves no entry behind.
 */

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "forms_rpc.hpp"

using namespace std::chrono_literals;

#define CHECK(condition)                                                   \
	do {                                                               \
		if (!(condition)) {                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#condition);                               \
			abort();                                           \
		}                                                          \
	} while (0)

/* Keeps the questions, and answers all from the fifth question on. */
static rt::task<void> answer_late(rt::listener listener)
{
	auto conn = (co_await listener.accept()).value();
	std::vector<rt::message> kept;

	while (auto question = co_await conn.receive()) {
		kept.push_back(std::move(*question));
		while (kept.size() >= 5) {
			for (auto &answer : kept)
				(co_await conn.give(std::move(answer))).value();
			kept.clear();
		}
	}
}

static rt::task<void> ask_and_give_up(rpc &to)
{
	const frame question{0, "hello"};

	for (int i = 0; i < 3; i++) {
		auto given_up =
			co_await to.loop.within(1ms, ask(to, question, 60s));
		CHECK(given_up.error().what() == rt::errc::timed_out);
		CHECK(to.pending.empty());
	}
	auto late = co_await ask(to, question, 1ms);
	CHECK(late.error().what() == rt::errc::timed_out);
	CHECK(to.pending.empty());
	auto answer = co_await ask(to, question, 60s);
	CHECK(answer && answer->id == to.last_id);
	CHECK(std::string(answer->text) == "hello");
	CHECK(to.pending.empty());
}

static rt::task<void> ask_until_the_end(rpc &to)
{
	auto none = co_await to.loop.within(60s, ask(to, frame{}, 1ms));

	CHECK(none.error().what() == rt::errc::timed_out);
	to.conn.close();
	none = co_await ask(to, frame{}, 60s);
	CHECK(none.error().what() == rt::errc::closed);
	CHECK(to.pending.empty());
}

static rt::task<void> call(const rt::loop &loop, const rt::pool &pool,
			   std::string at, std::string port, rt::endpoint with)
{
	auto conn = co_await loop.connect(at, port, with);
	rpc to(loop, pool, std::move(conn).value());

	(void)co_await rt::when_any(read(to), ask_and_give_up(to));
	co_await rt::when_all(read(to), ask_until_the_end(to));
}

int main(int argc, char **argv)
{
	const char *at = argc > 1 ? argv[1] : "127.0.0.1";
	auto device = rt::peer::of(at).value();
	auto runtime = rt::runtime::make().value();
	auto pool = rt::pool::make(runtime, device).value();
	auto loop = rt::loop::make(runtime).value();
	const rt::endpoint with{.via = device, .messages = &pool};
	auto listener = loop.listen(at, "0", with).value();
	auto port = std::to_string(listener.port());

	loop.spawn(answer_late(std::move(listener)));
	loop.run(call(loop, pool, at, port, with)).value();
}
