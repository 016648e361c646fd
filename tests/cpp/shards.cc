/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shards.cc -- coroutines on shards: messages and answers, a sender waiting for
 * room, the way from shard to shard, a connection between two shards, requests
 * of clients that are dealt to the shards, awaits at
 * the stop of the set or of the runtime, and answers to a shard made again.
 */

#include <array>
#include <atomic>
#include <thread>

#include "scene.hpp"

#define SHARDS 3
#define ROUNDS 500

/* A set whose shards are each run by a thread until the stop. */
struct several {
	rt::peer peer = open_peer();
	rt::runtime runtime;
	rt::shards set;
	std::atomic<int> ready{0};
	std::array<std::optional<rt::loop_ref>, SHARDS> refs;

	explicit several(uint32_t lane_size)
	    : runtime(open()),
	      set(must(rt::shards::make(runtime, {.lane_size = lane_size})))
	{
		CHECK(set.size() == SHARDS);
	}
	static rt::runtime open()
	{
		rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

		cfg.mode = RPMA_RT_MODE_MANUAL;
		cfg.pollers = SHARDS;
		cfg.backstop_ms = 0;
		return must(rt::runtime::make(cfg));
	}
	/* begins with fn(shard); each is spawned there */
	template <typename Fn> void run(Fn fn)
	{
		std::vector<std::thread> threads;

		for (uint32_t i = 0; i < SHARDS; i++)
			threads.emplace_back([this, i, &fn] {
				auto shard = must(rt::shard::make(set, i));

				refs[i] = shard.remote();
				/* release: refs */
				ready.fetch_add(1, std::memory_order_release);
				/* acquire: the stores of the others */
				while (ready.load(std::memory_order_acquire) <
				       SHARDS)
					std::this_thread::yield();
				fn(shard);
				while (shard.turn(-1) >= 0)
					continue;
			});
		for (auto &thread : threads)
			thread.join();
	}
};

/* ------------------------------------------------------------- messages --- */

static rt::shard_message message_of(uint64_t word, uint64_t context = 0)
{
	rt::shard_message message = {};

	message.context = context;
	message.words[0] = word;
	return message;
}

struct tally {
	uint64_t posts[SHARDS] = {};
	int left = 2;
};

static rt::task<void> serve(rt::shard &self, tally &t)
{
	for (;;) {
		auto came = co_await self.receive();

		if (!came) {
			CHECK(came.error().code() == RPMA_RT_E_CLOSED);
			co_return;
		}
		auto message = *came;
		if (message.kind == RPMA_RT_SHARD_REQUEST) {
			message.words[0] *= 2;
			must(self.answer(message, message));
		} else {
			/* in the order in which they were sent */
			CHECK(message.words[0] == t.posts[message.from]++);
		}
	}
}

static rt::task<void> ask(rt::shard &self)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		const auto to = static_cast<uint32_t>(i % SHARDS);
		auto [one, two] = co_await rt::when_all(
			self.request(to, message_of(i, 7)),
			self.request((to + 1) % SHARDS, message_of(i + 1)));
		auto first = must(std::move(one));

		CHECK(first.words[0] == 2 * i && first.context == 7);
		CHECK(must(std::move(two)).words[0] == 2 * (i + 1));
	}
}

static rt::task<void> tell(rt::shard &self)
{
	for (uint64_t i = 0; i < ROUNDS; i++)
		for (uint32_t to = 0; to < SHARDS; to++)
			must(co_await self.post(to, message_of(i)));
	auto none = co_await self.post(SHARDS, {});
	CHECK(!none && none.error().code() == RPMA_E_INVAL);
}

static rt::task<void> work(rt::shard &self, several &c, std::atomic<int> &over)
{
	co_await rt::when_all(ask(self), tell(self));
	/* acq_rel: the stores of the others */
	if (over.fetch_add(1, std::memory_order_acq_rel) + 1 == SHARDS)
		must(c.set.stop());
}

/* With a lane of two messages most of them wait. */
static void messages__come_and_are_answered(uint32_t lane_size)
{
	several c(lane_size);
	std::atomic<int> over{0};
	std::array<tally, SHARDS> tallies;

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	c.run([&](rt::shard &shard) {
		shard.spawn(serve(shard, tallies[shard.index()]));
		shard.spawn(work(shard, c, over));
	});
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	for (auto &t : tallies)
		for (uint64_t posts : t.posts)
			CHECK(posts == ROUNDS);
}

/* --------------------------------------------------------------- travel --- */

static rt::task<void> travel(several &c)
{
	std::array<std::thread::id, SHARDS> ids;

	for (int i = 0; i < ROUNDS; i++) {
		for (size_t to = 0; to < SHARDS; to++) {
			must(co_await c.refs[to]->resume_there());
			if (i == 0)
				ids[to] = std::this_thread::get_id();
			CHECK(std::this_thread::get_id() == ids[to]);
		}
	}
	CHECK(ids[0] != ids[1] && ids[1] != ids[2]);
	must(c.set.stop());
}

static void coroutine__travels()
{
	several c(8);

	c.run([&](rt::shard &shard) {
		if (shard.index() == 0)
			shard.spawn(travel(c));
	});
}

/* ---------------------------------------------------------- connections --- */

static rt::task<void> echo(rt::listener listener)
{
	auto conn = must(co_await listener.accept());

	for (;;) {
		auto message = co_await conn.receive();
		if (!message)
			break;
		(void)co_await conn.send(std::move(*message));
	}
}

static rt::task<void> call(rt::shard &self, several &c, rt::pool &pool,
			   rt::endpoint with, uint16_t port)
{
	auto conn = must(
		co_await self.connect(address(), std::to_string(port), with));

	for (int i = 0; i < ROUNDS; i++) {
		auto ping = must(pool.take());

		ping.assign("ping");
		must(co_await conn.send(std::move(ping)));
		CHECK(must(co_await conn.receive()).text() == "ping");
	}
	conn.close();
	co_await conn.closed();
	must(c.set.stop());
}

/* The server is on another shard; the answer has the port. */
static rt::task<void> serve_port(rt::shard &self, rt::endpoint with)
{
	auto listener = must(self.listen(address(), "0", with));
	auto asked = must(co_await self.receive());

	must(self.answer(asked, message_of(listener.port())));
	co_await echo(std::move(listener));
}

static rt::task<void> ask_port(rt::shard &self, several &c, rt::pool &pool,
			       rt::endpoint with)
{
	auto told = must(co_await self.request(2, {}));

	co_await call(self, c, pool, with,
		      static_cast<uint16_t>(told.words[0]));
}

static void connection__of_two_shards()
{
	several c(8);
	auto pool = open_pool(c.runtime, c.peer, 64);
	rt::endpoint with{.via = c.peer, .messages = &pool};

	with.cfg.sq_size = with.cfg.rq_size = 8;
	c.run([&](rt::shard &shard) {
		if (shard.index() == 2)
			shard.spawn(serve_port(shard, with));
		else if (shard.index() == 1)
			shard.spawn(ask_port(shard, c, pool, with));
	});
}

/* ----------------------------------------------------------------- stop --- */

/* The receiver takes nothing: an answer never comes, the lane is full. */
/* A listener of C, whose connections go to the shards in turn. */
static rpma_rt_listener *deal(const rt::shards &set, const rt::runtime &runtime,
			      const rt::endpoint &with, std::string &port)
{
	rpma_rt_conn_cfg cfg = with.cfg;
	rpma_rt_listener *listener = nullptr;
	uint16_t number = 0;

	must(set.deal(cfg));
	cfg.peer = with.via.raw();
	cfg.pool = with.messages->raw();
	CHECK(rpma_rt_listen(runtime.raw(), address().c_str(), "0", &cfg,
			     &listener) == 0);
	CHECK(rpma_rt_listener_get_port(listener, &number) == 0);
	port = std::to_string(number);
	return listener;
}

/* Sends the index of the shard, and waits until the client leaves. */
static rt::task<void> say_index(rt::shard &self, rt::connection conn,
				rt::pool &pool)
{
	auto bytes = must(co_await self.next(pool));

	bytes.assign(std::to_string(self.index()));
	(void)co_await conn.send(std::move(bytes));
	(void)co_await conn.closed();
}

static rt::task<void> take_dealt(rt::shard &self, rt::pool &pool,
				 rt::endpoint with)
{
	for (;;) {
		auto item = co_await self.next();
		if (!item)
			co_return;
		if (rpma_rt_completion_event(&*item) != RPMA_RT_EVENT_REQUEST)
			continue;
		auto asked = must(rt::request::of(self, *item, with));
		CHECK(asked.private_data().starts_with("a client"));
		auto conn = must(std::move(asked).accept());
		self.spawn(say_index(self, std::move(conn), pool));
	}
}

static rt::task<void> visit_all(rt::shard &self, several &c, std::string port,
				rt::endpoint with)
{
	std::string seen;

	with.private_data = "a client";
	for (uint32_t i = 0; i < SHARDS; i++) {
		auto conn = must(co_await self.connect(address(), port, with));
		auto message = must(co_await conn.receive());

		CHECK(seen.find(message.text()) == std::string::npos);
		seen += message.text();
	}
	CHECK(seen.size() == SHARDS);
	must(c.set.stop());
}

static void deal__each_shard_takes_requests()
{
	several c(8);
	auto pool = open_pool(c.runtime, c.peer, 64);
	rt::endpoint with{.via = c.peer, .messages = &pool};
	std::string port;

	with.cfg.sq_size = with.cfg.rq_size = 8;
	auto *listener = deal(c.set, c.runtime, with, port);
	c.run([&](rt::shard &shard) {
		shard.spawn(take_dealt(shard, pool, with));
		if (shard.index() == 1)
			shard.spawn(visit_all(shard, c, port, with));
	});
	CHECK(rpma_rt_listener_delete(&listener) == 0);
}

static rt::task<void> refuse_all(rt::shard &self, rt::endpoint with,
				 bool &is_over)
{
	while (!is_over) {
		auto item = must(co_await self.next());
		const auto event = rpma_rt_completion_event(&item);

		if (event == RPMA_RT_EVENT_REQUEST)
			(void)rt::request::of(self, item, with);
		is_over = event == RPMA_RT_EVENT_LISTENER_CLOSED;
	}
}

/* A shard that ends refuses a request that no coroutine has taken; a coroutine
 * of the next shard refuses the request where the request came later. */
static void deal__nobody_takes_the_request()
{
	auto peer = open_peer();
	auto others = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	auto messages = open_pool(others, peer, 16);
	auto runtime = open_runtime(RPMA_RT_MODE_MANUAL);
	auto pool = open_pool(runtime, peer, 16);
	auto set = must(rt::shards::make(runtime));
	const rt::endpoint with{.via = peer, .messages = &pool};
	std::string port;
	auto *listener = deal(set, runtime, with, port);
	std::atomic<bool> is_refused{false};
	bool is_over = false;
	std::thread client([&] {
		auto made = others.connect(
			address(), port, {.via = peer, .messages = &messages});

		CHECK(!made.wait());
		is_refused = true;
	});
	{
		auto first = must(rt::shard::make(set, 0));

		while (first.turn(10) <= 0)
			continue;
	}
	auto second = must(rt::shard::make(set, 0));
	second.spawn(refuse_all(second, with, is_over));
	while (!is_refused)
		CHECK(second.turn(10) >= 0);
	CHECK(rpma_rt_listener_delete(&listener) == 0);
	while (!is_over)
		CHECK(second.turn(10) >= 0);
	client.join();
}

static rt::task<void> wait_in_vain(rt::shard &self, int &told)
{
	auto answer = co_await self.request(1, {});
	CHECK(!answer && answer.error().code() == RPMA_RT_E_CLOSED);
	told++;
}

static rt::task<void> fill(rt::shard &self, int &told)
{
	for (;;) {
		auto sent = co_await self.post(1, {});

		if (sent)
			continue;
		CHECK(sent.error().code() == RPMA_RT_E_CLOSED);
		told++;
		co_return;
	}
}

static rt::task<void> hear(rt::shard &self, int &told)
{
	auto came = co_await self.receive();
	CHECK(!came && came.error().code() == RPMA_RT_E_CLOSED);
	told++;
}

/*
 * A stop of the set or of the runtime, while this thread runs all shards in
 * turn.
 */
static void stop__everybody_is_told(bool of_runtime)
{
	several c(2);
	auto first = must(rt::shard::make(c.set, 0));
	auto second = must(rt::shard::make(c.set, 1));
	std::optional<rt::shard> third(must(rt::shard::make(c.set, 2)));
	int told = 0;
	int ended = 0;

	auto twice = rt::shard::make(c.set, 0);
	CHECK(!twice && twice.error().code() == RPMA_RT_E_BUSY);
	first.spawn(wait_in_vain(first, told));
	first.spawn(fill(first, told));
	second.spawn(wait_in_vain(second, told));
	third->spawn(hear(*third, told));
	{
		auto gone = wait_in_vain(first, told);

		CHECK(gone.await_suspend(std::noop_coroutine()));
	}
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	if (of_runtime)
		CHECK(rpma_rt_stop(c.runtime.raw()) == 0);
	else
		must(c.set.stop());
	while (ended < SHARDS)
		ended = (first.turn(0) == RPMA_RT_E_CLOSED) +
			(second.turn(0) == RPMA_RT_E_CLOSED) +
			(third->turn(0) == RPMA_RT_E_CLOSED);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	CHECK(told == 4);
	/* the place is free again */
	third.reset();
	third.emplace(must(rt::shard::make(c.set, 2)));
}

/* A coroutine destroyed while waiting for an answer is not resumed. */
static void shard__destroyed_with_waiting()
{
	several c(2);
	int told = 0;
	{
		auto first = must(rt::shard::make(c.set, 0));

		first.spawn(wait_in_vain(first, told));
		first.spawn(fill(first, told));
		first.spawn(hear(first, told));
		CHECK(first.turn(0) >= 0);
	}
	CHECK(told == 0);
}

static rt::task<void> ask_for(rt::shard &self, uint64_t word, int &answered)
{
	auto answer = must(co_await self.request(1, message_of(word, word)));

	CHECK(answer.words[0] == word && answer.context == word);
	answered++;
}

static rt::task<void> repeat(rt::shard &self)
{
	for (;;) {
		auto asked = must(co_await self.receive());

		must(self.answer(asked, asked));
	}
}

/* Answers to requests of a destroyed shard come to the next shard of the same
 * index, which does not take the answers, and uses their places again. */
static void shard__made_again_with_answers_to_come()
{
	several c(4);
	auto second = must(rt::shard::make(c.set, 1));
	const int asked = 20; /* more than may be under way in the set */
	int answered = 0;
	uint64_t word = 0;

	second.spawn(repeat(second));
	for (int i = 0; i < ROUNDS; i++) {
		auto first = must(rt::shard::make(c.set, 0));

		for (int j = 0; j < i % 7; j++)
			first.spawn(ask_for(first, ++word, answered));
		CHECK(first.turn(0) >= 0);
		if (i % 3 != 0)
			CHECK(second.turn(0) >= 0);
	}
	auto first = must(rt::shard::make(c.set, 0));

	answered = 0;
	for (int j = 0; j < asked; j++)
		first.spawn(ask_for(first, ++word, answered));
	int turns = 0;
	while (answered < asked) {
		CHECK(turns++ < ROUNDS);
		CHECK(first.turn(0) >= 0);
		CHECK(second.turn(0) >= 0);
	}
}

/* The outcome of requests. */
struct asked {
	int answered = 0;
	int unanswered = 0;
};

static rt::task<void> ask_second(rt::shard &self, uint64_t word, asked &of)
{
	auto answer = co_await self.request(1, message_of(word, word));

	if (answer)
		CHECK(answer->words[0] == word && answer->context == word);
	else
		CHECK(answer.error().what() == rt::errc::unanswered &&
		      answer.error().code() == RPMA_RT_E_FAILED);
	of.answered += answer.ok();
	of.unanswered += !answer.ok();
}

static rt::task<void> tell_second(rt::shard &self, uint64_t word)
{
	must(co_await self.post(1, message_of(word)));
}

/* A request is answered, and refused again; another is kept. */
static rt::task<void> answer_one(rt::shard &self)
{
	auto first = must(co_await self.receive());
	auto kept = must(co_await self.receive());

	must(self.answer(first, first));
	auto again = self.answer(first, first);
	CHECK(!again && again.error().code() == RPMA_E_INVAL);
	(void)co_await self.sleep_for(1h);
	must(self.answer(kept, kept));
}

static rt::task<void> hear_posts(rt::shard &self, uint64_t &next)
{
	for (;;) {
		auto post = must(co_await self.receive());

		CHECK(post.kind == RPMA_RT_SHARD_POST);
		CHECK(post.words[0] == next);
		next++;
	}
}

/* A shard with unanswered requests goes: some read, some unread, a request in
 * the hand of no coroutine, and a request arriving meanwhile. Each sender is
 * told; the posts in between go to the next shard. */
static void requests__of_a_shard_that_goes(bool elsewhere)
{
	several c(4);
	auto first = must(rt::shard::make(c.set, 0));
	std::optional<rt::shard> second(must(rt::shard::make(c.set, 1)));
	uint64_t next = 1;
	asked of;

	second->spawn(answer_one(*second));
	first.spawn(ask_second(first, 1, of));
	first.spawn(ask_second(first, 2, of));
	first.spawn(ask_second(first, 3, of));
	CHECK(first.turn(0) >= 0);
	CHECK(second->turn(0) >= 0);
	first.spawn(tell_second(first, 1));
	CHECK(first.turn(0) >= 0);
	CHECK(of.answered == 1);
	CHECK(second->turn(0) >= 0);
	first.spawn(tell_second(first, 2));
	first.spawn(ask_second(first, 4, of));
	CHECK(first.turn(0) >= 0);
	if (elsewhere) {
		second->release();
		std::thread([&] { second.reset(); }).join();
	} else {
		second.reset();
	}
	CHECK(of.unanswered == 0);
	CHECK(first.turn(0) >= 0);
	CHECK(of.answered == 1 && of.unanswered == 3);

	second.emplace(must(rt::shard::make(c.set, 1)));
	second->spawn(hear_posts(*second, next));
	CHECK(second->turn(0) >= 0);
	CHECK(next == 3);
	second.reset();
	/* credits and places are back */
	second.emplace(must(rt::shard::make(c.set, 1)));
	second->spawn(repeat(*second));
	for (uint64_t i = 0; i < 20; i++)
		first.spawn(ask_second(first, i, of));
	for (int turns = 0; of.answered < 21; turns++) {
		CHECK(turns < ROUNDS);
		CHECK(first.turn(0) >= 0);
		CHECK(second->turn(0) >= 0);
	}
}

/* A coroutine held by the program has read a request when the shard goes. */
static void request__in_a_task_of_the_program()
{
	several c(4);
	auto first = must(rt::shard::make(c.set, 0));
	std::optional<rt::shard> second(must(rt::shard::make(c.set, 1)));
	asked of;
	{
		auto held = second->receive();

		CHECK(held.await_suspend(std::noop_coroutine()));
		first.spawn(ask_second(first, 1, of));
		CHECK(first.turn(0) >= 0);
		CHECK(second->turn(0) >= 0);
		second.reset();
		CHECK(first.turn(0) >= 0);
		CHECK(of.unanswered == 1);
		auto twice = rt::shard::make(c.set, 1);
		CHECK(!twice && twice.error().code() == RPMA_RT_E_BUSY);
	}
	second.emplace(must(rt::shard::make(c.set, 1)));
	uint64_t next = 1;
	second->spawn(hear_posts(*second, next));
	CHECK(second->turn(0) >= 0);
	CHECK(next == 1);
}

static rt::task<void> ask_shard(rt::shard &self, uint32_t to, int &answered)
{
	must(co_await self.request(to, {}));
	answered++;
}

/* To every shard as many as allowed, and more, which wait. */
static void requests__all_that_may_be_under_way()
{
	several c(2);
	std::vector<rt::shard> all;
	int answered = 0;
	int asked = 0;

	for (uint32_t i = 0; i < SHARDS; i++)
		all.push_back(must(rt::shard::make(c.set, i)));
	for (auto &shard : all)
		shard.spawn(repeat(shard));
	for (; asked < 5 * SHARDS; asked++)
		all[0].spawn(ask_shard(all[0],
				       static_cast<uint32_t>(asked) % SHARDS,
				       answered));
	int turns = 0;
	while (answered < asked) {
		CHECK(turns++ < ROUNDS);
		for (auto &shard : all)
			CHECK(shard.turn(0) >= 0);
	}
}

/* -------------------------------------------------------------- bounds --- */

static rt::task<void> flood(rt::shard &self, uint32_t to, uint64_t count,
			    uint64_t &sent)
{
	for (; sent < count; sent++)
		must(co_await self.post(to, message_of(sent)));
}

static rt::task<void> read_all(rt::shard &self, uint64_t count, uint64_t &read)
{
	for (; read < count; read++)
		CHECK(must(co_await self.receive()).words[0] == read);
}

/* As many as the lane holds are sent and not read, to another shard and to the
 * sender; then the sender waits, the shard does not, and reading makes room. */
static void post__waits_until_the_reader_has_read(uint32_t lane_size)
{
	several c(lane_size);
	auto first = must(rt::shard::make(c.set, 0));
	auto second = must(rt::shard::make(c.set, 1));
	const uint64_t count = 10 * lane_size;

	for (uint32_t to : {1u, 0u}) {
		auto &reader = to == 1 ? second : first;
		uint64_t sent = 0;
		uint64_t read = 0;

		first.spawn(flood(first, to, count, sent));
		for (int i = 0; i < 100; i++) {
			CHECK(first.turn(0) >= 0);
			CHECK(second.turn(0) >= 0);
		}
		CHECK(sent == lane_size);
		reader.spawn(read_all(reader, count, read));
		while (read < count) {
			CHECK(sent - read <= lane_size + 1);
			CHECK(first.turn(0) >= 0);
			CHECK(second.turn(0) >= 0);
		}
		CHECK(sent == count);
	}
}

static rt::task<void> hold_some(rt::shard &self)
{
	(void)co_await rt::when_all(self.receive(), self.receive(),
				    self.sleep_for(1h));
}

/* Messages in the hand of a coroutine that did not get the messages are unread:
 * the next coroutine gets all, and there is room for all. */
static void post__given_back_is_unread()
{
	several c(4);
	auto shard = must(rt::shard::make(c.set, 0));
	uint64_t sent = 0;
	uint64_t read = 0;

	for (int i = 0; i < 3; i++) {
		auto held = hold_some(shard);

		CHECK(held.await_suspend(std::noop_coroutine()));
		if (i == 0)
			shard.spawn(flood(shard, 0, 40, sent));
		for (int j = 0; j < 10; j++)
			CHECK(shard.turn(0) >= 0);
		CHECK(sent == 4);
	}
	shard.spawn(read_all(shard, 40, read));
	while (read < 40)
		CHECK(shard.turn(0) >= 0);
}

/* Both shards post to each other without limit: their readers go on. */
static void post__both_ways_at_once()
{
	several c(2);
	std::array<uint64_t, 2> sent{};
	std::array<uint64_t, 2> read{};
	std::atomic<int> over{0};

	c.run([&](rt::shard &shard) {
		const uint32_t self = shard.index();

		if (self == 2)
			return;
		shard.spawn(flood(shard, 1 - self, ROUNDS, sent[self]));
		shard.spawn(read_all(shard, ROUNDS, read[self]));
		while (sent[self] < ROUNDS || read[self] < ROUNDS)
			CHECK(shard.turn(-1) >= 0);
		/* acq_rel: the stores of the other shard */
		if (over.fetch_add(1, std::memory_order_acq_rel) == 1)
			must(c.set.stop());
	});
	CHECK(read[0] == ROUNDS && read[1] == ROUNDS);
}

int main(void)
{
	post__waits_until_the_reader_has_read(2);
	post__waits_until_the_reader_has_read(64);
	post__given_back_is_unread();
	post__both_ways_at_once();
	messages__come_and_are_answered(2);
	messages__come_and_are_answered(256);
	coroutine__travels();
	connection__of_two_shards();
	deal__each_shard_takes_requests();
	deal__nobody_takes_the_request();
	stop__everybody_is_told(false);
	stop__everybody_is_told(true);
	shard__destroyed_with_waiting();
	shard__made_again_with_answers_to_come();
	requests__of_a_shard_that_goes(false);
	requests__of_a_shard_that_goes(true);
	request__in_a_task_of_the_program();
	requests__all_that_may_be_under_way();
	return 0;
}
