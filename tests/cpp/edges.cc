/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * edges.cc -- configurations of zeros, which mean the defaults; groups of
 * nothing; operations on connections after their end, and operations too long;
 * assignments; errors by name.
 */

#include <cstring>
#include <thread>

#include "scene.hpp"

/* ---------------------------------------------------------------- zeros --- */

static rt::task<void> send_one(const rt::pool &pool, rt::connection &conn,
			       int &over)
{
	auto text = must(pool.take());

	text.assign("default");
	must(co_await conn.send(std::move(text)));
	over++;
}

static rt::task<void> receive_some(rt::connection &conn, int count)
{
	for (int i = 0; i < count; i++)
		CHECK(must(co_await conn.receive()).text() == "default");
}

/* Several messages are outstanding, at both ends. */
static rt::task<void> talk(const rt::loop &loop, const rt::pool &pool,
			   rt::endpoint with)
{
	auto listener = must(loop.listen(address(), "0", with));
	auto [one, two] = co_await rt::when_all(
		loop.connect(address(), std::to_string(listener.port()), with),
		listener.accept());
	auto client = must(std::move(one));
	auto server = must(std::move(two));
	int over = 0;

	co_await rt::when_all(
		send_one(pool, client, over), send_one(pool, client, over),
		send_one(pool, server, over), send_one(pool, server, over),
		receive_some(client, 2), receive_some(server, 2));
	CHECK(over == 4);
}

static void zeros__of_connections(rpma_rt_mode mode)
{
	auto peer = open_peer();
	auto runtime = open_runtime(mode);
	rpma_rt_pool_cfg sizes = RPMA_RT_POOL_CFG_INIT;
	rt::loop_cfg given;

	sizes.count = sizes.slot_size = 0;
	given.queue.lane_size = given.queue.backlog_limit = 0;
	auto pool = must(rt::pool::make(runtime, peer, sizes));
	auto loop = must(rt::loop::make(runtime, given));
	rt::endpoint with{.via = peer, .messages = &pool};
	with.cfg.sq_size = with.cfg.rq_size = 0;
	must(loop.run(talk(loop, pool, with)));
}

static void zeros__of_futures(rpma_rt_mode mode)
{
	auto peer = open_peer();
	auto runtime = open_runtime(mode);
	auto pool = open_pool(runtime, peer, 512);
	rpma_rt_srq_cfg sizes = RPMA_RT_SRQ_CFG_INIT;
	rt::endpoint with{.via = peer, .messages = &pool};

	with.cfg.sq_size = with.cfg.rq_size = 0;
	must(runtime.listen(address(), "0", with));
	sizes.srq_size = 0;
	auto shared = must(
		rt::shared_receive_queue::make(runtime, peer, pool, sizes));
	auto held = must(shared.next());
	with.messages = nullptr;
	with.shared = &shared;
	must(runtime.listen(address(), "0", with));
}

static rt::task<void> answer_all(rt::shard &self)
{
	for (;;) {
		auto request = co_await self.receive();

		if (!request)
			co_return;
		must(self.answer(*request, *request));
	}
}

static rt::task<void> ask_three(rt::shard &self)
{
	auto [a, b, c] = co_await rt::when_all(
		self.request(0, {}), self.request(0, {}), self.request(0, {}));

	CHECK(a && b && c);
}

static void zeros__of_shards()
{
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = 0;
	auto runtime = must(rt::runtime::make(cfg));
	auto set = must(rt::shards::make(runtime, {.lane_size = 0}));
	CHECK(set.size() == 1);
	auto shard = must(rt::shard::make(set, 0));

	shard.spawn(answer_all(shard));
	must(shard.run(ask_three(shard)));
}

/* A time too long for the library's number is refused, not cut. */
static void spin__out_of_range()
{
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	auto runtime = must(rt::runtime::make(cfg));
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	for (auto spin : {std::chrono::microseconds((1LL << 32) + 5),
			  std::chrono::microseconds(-1),
			  std::chrono::microseconds::max()}) {
		auto set = rt::shards::make(runtime, {.spin = spin});

		CHECK(!set && set.error().code() == RPMA_E_INVAL);
	}
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
}

/* --------------------------------------------------------------- groups --- */

/* An empty group is complete at once; too few members do not begin. */
static rt::task<void> await_nothing(scene &s)
{
	auto begin = [](int &begun) -> rt::task<void> {
		begun++;
		co_return;
	};
	int begun = 0;

	auto any = co_await rt::when_any();
	CHECK(!any && any.succeeded == 0);
	auto of_array = co_await rt::when_any(std::array<rt::task<void>, 0>{});
	CHECK(!of_array);
	auto all = co_await rt::when_all();
	CHECK(std::tuple_size_v<decltype(all)> == 0);
	auto some = co_await rt::when_some(1);
	CHECK(!some);
	auto few = co_await rt::when_some(3, begin(begun), begin(begun));
	CHECK(!few && !few.get<0>() && !few.get<1>());
	auto none = co_await rt::when_some(0, begin(begun));
	CHECK(none);
	CHECK(begun == 0);
	/* in a group, and with a limit, too */
	auto both =
		co_await rt::when_all(rt::when_any(), s.loop.sleep_for(0ms));
	CHECK(!std::get<0>(both) && std::get<1>(both));
}

static void groups__of_nothing(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(await_nothing(s));
}

/* ----------------------------------------------------------- operations --- */

static rt::task<void> send_to_end(scene &s, bool drains)
{
	auto both = co_await s.connect();
	auto &conn = both.client;

	if (drains)
		must(conn.drain(0));
	else
		conn.close();
	/* before CLOSED has come, and behind it */
	for (int i = 0; i < 2; i++) {
		auto late = co_await conn.send(s.lease("late"));

		CHECK(!late && late.error().what() == rt::errc::closed);
		CHECK(late.error().reason() == RPMA_RT_REASON_LOCAL);
		CHECK(late.error().code() == RPMA_RT_E_CLOSED);
		CHECK(late.slot().text() == "late");
		CHECK(co_await conn.closed() == RPMA_RT_REASON_LOCAL);
	}
}

static void send__on_a_connection_that_ends(rpma_rt_mode mode)
{
	scene s({.mode = mode});

	s.run(send_to_end(s, false));
	s.run(send_to_end(s, true));
}

static rt::task<void> send_alone(scene &s, rt::connection &conn)
{
	must(co_await conn.send(s.lease("out")));
}

/* All slots are out when a link comes that can never be posted. */
static rt::task<void> link_too_long(scene &s)
{
	auto both = co_await s.connect();
	auto &conn = both.client;
	auto one = [&] { return conn.flush(s.remote, 0, 8); };

	s.loop.spawn(send_alone(s, conn));
	s.loop.spawn(send_alone(s, conn));
	auto no = co_await conn.link(one(), one(), one());
	CHECK(!no && no.error().what() == rt::errc::not_posted &&
	      no.error().code() == RPMA_E_INVAL);
	must(co_await both.server.receive());
	must(co_await both.server.receive());
}

static void link__longer_than_the_queue(rpma_rt_mode mode)
{
	scene s({.mode = mode, .depth = 2});

	s.run(link_too_long(s));
}

/* Operations without a loop: a link, with and without leases; after the end of
 * the connection operations are refused with the reason of the end, and leave
 * the leases. */
static void operations__without_a_loop()
{
	auto peer = open_peer();
	auto runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	auto pool = open_pool(runtime, peer, 4);
	std::vector<uint64_t> page(512);
	auto memory = must(rt::memory::make(peer, page.data(), 4096,
					    RPMA_MR_USAGE_WRITE_SRC |
						    RPMA_MR_USAGE_WRITE_DST |
						    RPMA_MR_USAGE_READ_SRC));
	auto remote = must(rt::remote_memory::make(must(memory.descriptor())));
	rt::endpoint with{.via = peer};
	auto listener = must(runtime.listen(address(), "0", with));
	std::optional<rt::connection> server;
	std::thread accepts(
		[&] { server.emplace(must(listener.accept().wait())); });
	auto conn = must(runtime.connect(address(),
					 std::to_string(listener.port()), with)
				 .wait());

	accepts.join();
	for (uint64_t i = 1; i <= 3; i++) {
		auto buffer = must(pool.take());

		page[1] = i;
		auto link = conn.link(
			conn.write_raw(remote, 0, memory.raw(), 8, 8),
			conn.read(remote, 0, std::move(buffer.resize(8))));
		auto done = must(must(link.begin()).wait());
		CHECK(done[1].as<uint64_t>() == i && page[0] == i);
		/* given up: the destructor waits for the device */
		(void)must(conn.read(remote, 0, std::move(done[1])).begin());
	}
	conn.close();
	CHECK(must(conn.closed().wait()) == RPMA_RT_REASON_LOCAL);
	auto late = conn.read(remote, 0, must(pool.take())).wait();
	CHECK(!late && late.error().what() == rt::errc::closed &&
	      late.error().reason() == RPMA_RT_REASON_LOCAL);
	CHECK(late.slot());
}

/* wait() refuses objects of a loop, co_await objects without a loop. */
static rt::task<void> await_what_threads_wait_for(rt::connection &conn,
						  const rt::pool &pool)
{
	auto sent = co_await conn.send(must(pool.take()));
	auto came = co_await conn.receive();

	CHECK(!sent && sent.error().code() == RPMA_E_NOSUPP && sent.slot());
	CHECK(!came && came.error().code() == RPMA_E_NOSUPP);
}

static void forms__not_mixed(rpma_rt_mode mode)
{
	auto peer = open_peer();
	auto runtime = open_runtime(mode);
	auto pool = open_pool(runtime, peer, 64);
	auto loop = must(rt::loop::make(runtime));
	rt::endpoint with{.via = peer, .messages = &pool};
	auto listener = must(loop.listen(address(), "0", with));

	CHECK(listener.next().wait(0).error().code() == RPMA_E_NOSUPP);
	with.cfg.sq_size = with.cfg.rq_size = 4;
	auto other = must(runtime.listen(address(), "0", with));
	std::optional<rt::connection> server;
	std::thread accepts(
		[&] { server.emplace(must(other.accept().wait())); });
	auto conn = must(
		runtime.connect(address(), std::to_string(other.port()), with)
			.wait());
	accepts.join();
	must(loop.run(await_what_threads_wait_for(conn, pool)));
}

/* ---------------------------------------------------------- assignments --- */

/* What an object had ends with the assignment: neither the objects that were
 * moved, nor their ends, have a part in the checks. */
static rt::task<void> assign_connection(scene &s)
{
	auto one = co_await s.connect();
	auto two = co_await s.connect();

	one.client = std::move(two.client);
	auto end = co_await s.loop.within(5s, one.server.closed());
	CHECK(must(end) == RPMA_RT_REASON_DISCONNECTED);
	must(co_await one.client.send(s.lease("still there")));
	CHECK(must(co_await two.server.receive()).text() == "still there");
}

static void assign_next_future(scene &s)
{
	auto slots = s.take_all();
	auto first = must(s.pool.next());
	auto second = must(s.pool.next());

	first = std::move(second);
	slots.pop_back();
	must(first.wait(5000)); /* no future stands before this one */
}

static void assign__ends_the_former(rpma_rt_mode mode)
{
	scene s({.mode = mode});
	rt::semaphore semaphore(2);
	auto permit = must(semaphore.try_acquire());
	auto other = must(semaphore.try_acquire());
	rt::promise<int> promise, next;
	auto value = promise.get_future();

	s.run(assign_connection(s));
	permit = std::move(other);
	must(semaphore.try_acquire());
	promise = std::move(next);
	CHECK(value.get().wait(0).error().what() == rt::errc::closed);
	if (mode != RPMA_RT_MODE_MANUAL) /* a poller hands the slot over */
		assign_next_future(s);
}

/* --------------------------------------------------------------- errors --- */

/* Each status and each reason has a name, and no number. */
static void errors__by_name()
{
	rpma_rt_completion item = {};

	for (int i = 1; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++) {
		item.status = static_cast<uint8_t>(i);
		auto text = rt::error::of(item).text();

		CHECK(text.starts_with("failed: IBV_WC_"));
		CHECK(text.find("unknown") == text.npos);
	}
	for (uint8_t i = 0; i <= RPMA_RT_REASON_STOPPED; i++) {
		auto text = rt::error::closed(i).text();

		CHECK(text.starts_with("closed: "));
		CHECK(text.find("unknown") == text.npos);
	}
}

int main(void)
{
	RUN(zeros__of_connections);
	RUN(zeros__of_futures);
	zeros__of_shards();
	spin__out_of_range();
	RUN(groups__of_nothing);
	RUN(send__on_a_connection_that_ends);
	RUN(link__longer_than_the_queue);
	operations__without_a_loop();
	RUN(forms__not_mixed);
	RUN(assign__ends_the_former);
	errors__by_name();
	return 0;
}
