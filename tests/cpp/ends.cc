/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ends.cc -- what becomes of items that no coroutine has taken; what still runs
 * when a loop is destroyed by a coroutine of its own, or calls the loop at its
 * end; and what a stop of shards ends.
 */

#include <cstdarg>
#include <memory>
#include <thread>

#include "scene.hpp"

/* ------------------------------------------------------------------ log --- */

static std::mutex said_lock;
static std::string said; /* errors in the log */

static void hear(rpma_log_level level, const char *, int, const char *,
		 const char *format, ...)
{
	char text[1024];
	va_list args;

	if (level > RPMA_LOG_LEVEL_ERROR)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	std::lock_guard<std::mutex> guard(said_lock);
	said += text;
}

/* Returns the errors since the last call. */
static std::string heard()
{
	std::lock_guard<std::mutex> guard(said_lock);

	return std::exchange(said, {});
}

/* ------------------------------------------------------------- requests --- */

static rt::endpoint few(const rt::peer &peer, const rt::pool &pool)
{
	rt::endpoint with{.via = peer, .messages = &pool};

	with.cfg.sq_size = with.cfg.rq_size = 4;
	return with;
}

/* A listener of C, whose requests come to next() of a loop. */
class raw_listener
{
public:
	rpma_rt_listener *raw = nullptr;

	/* cfg: has the queue, or the shards */
	raw_listener(const rt::runtime &runtime, const rt::endpoint &with,
		     rpma_rt_conn_cfg cfg)
	{
		cfg.peer = with.via.raw();
		cfg.pool = with.messages->raw();
		CHECK(rpma_rt_listen(runtime.raw(), address().c_str(), "0",
				     &cfg, &raw) == 0);
	}
	raw_listener(const rt::runtime &runtime, const rt::endpoint &with,
		     const rt::loop &loop)
	    : raw_listener(runtime, with, leading_to(loop, with.cfg))
	{
	}
	raw_listener(const rt::runtime &runtime, const rt::endpoint &with,
		     const rt::shards &set)
	    : raw_listener(runtime, with, leading_to(set, with.cfg))
	{
	}
	~raw_listener() { CHECK(rpma_rt_listener_delete(&raw) == 0); }
	std::string port() const
	{
		uint16_t number = 0;

		CHECK(rpma_rt_listener_get_port(raw, &number) == 0);
		return std::to_string(number);
	}

private:
	static rpma_rt_conn_cfg leading_to(const rt::loop &loop,
					   rpma_rt_conn_cfg cfg)
	{
		cfg.queue = loop.queue();
		return cfg;
	}
	static rpma_rt_conn_cfg leading_to(const rt::shards &set,
					   rpma_rt_conn_cfg cfg)
	{
		must(set.deal(cfg));
		return cfg;
	}
};

/* Peers, on a loop of their own runtime. */
struct callers {
	rt::peer peer = open_peer();
	rt::runtime runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	rt::pool pool = open_pool(runtime, peer, 1024);
	rt::loop loop = must(rt::loop::make(runtime));
	int connected = 0;
	int refused = 0;

	void call(const std::string &port, int count = 1)
	{
		for (int i = 0; i < count; i++)
			loop.spawn(connect(port));
	}

private:
	rt::task<void> connect(std::string port)
	{
		auto conn =
			co_await loop.connect(address(), port, few(peer, pool));

		if (!conn) {
			CHECK(conn.error().reason() == RPMA_RT_REASON_REJECTED);
			refused++;
			co_return;
		}
		connected++;
		(void)co_await conn->closed();
	}
};

static rt::task<void> keep(rt::connection conn)
{
	(void)co_await conn.closed();
}

static rt::task<void> accept_all(rt::loop &loop, rt::endpoint with)
{
	for (;;) {
		auto item = co_await loop.next();

		if (!item)
			co_return;
		if (rpma_rt_completion_event(&*item) != RPMA_RT_EVENT_REQUEST)
			continue;
		auto asked = must(rt::request::of(loop, *item, with));
		loop.spawn(keep(must(std::move(asked).accept())));
	}
}

static rt::task<void> take_number(rt::loop &loop, uint64_t number)
{
	CHECK(must(co_await loop.next()).context == number);
}

/* A message, and then a request, come before a coroutine of the shard has ever
 * awaited next(). */
static void items__before_the_first_next_of_a_shard_STAY()
{
	callers others;
	auto runtime = open_runtime(RPMA_RT_MODE_MANUAL);
	auto pool = open_pool(runtime, others.peer, 64);
	const auto with = few(others.peer, pool);
	auto set = must(rt::shards::make(runtime));
	{
		auto self = must(rt::shard::make(set, 0));

		CHECK(push(self.queue(), 42) == 0);
		while (self.turn(10) == 0)
			continue;
		must(self.run(take_number(self, 42)));
	}
	auto self = must(rt::shard::make(set, 0));
	raw_listener listener(runtime, with, set);
	others.call(listener.port());
	/* the round that takes the request has something to do */
	for (int done = 0; done == 0;) {
		CHECK(others.loop.turn(0) >= 0);
		done = self.turn(1);
	}
	for (int i = 0; i < 10; i++)
		CHECK(self.turn(1) >= 0);
	self.spawn(accept_all(self, with));
	while (others.connected == 0) {
		CHECK(self.turn(1) >= 0);
		CHECK(others.loop.turn(0) >= 0);
	}
}

/* More requests come than a loop keeps for next(): the others are refused, and
 * those that were kept are accepted. */
static void requests__for_which_there_is_no_room_REFUSED(rpma_rt_mode mode)
{
	constexpr int KEPT = 64;
	constexpr int MORE = 16;
	callers others;
	auto runtime = open_runtime(mode);
	auto pool = open_pool(runtime, others.peer, 1024);
	const auto with = few(others.peer, pool);
	auto loop = must(rt::loop::make(runtime));
	raw_listener listener(runtime, with, loop);
	auto turn = [&] {
		CHECK(loop.turn(1) >= 0);
		CHECK(others.loop.turn(1) >= 0);
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	others.call(listener.port(), KEPT + MORE);
	while (others.refused < MORE)
		turn();
	loop.spawn(accept_all(loop, with));
	while (others.connected < KEPT)
		turn();
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	CHECK(others.refused == MORE);
}

static rt::task<void> take_item(rt::loop &loop,
				std::optional<rpma_rt_completion> &item)
{
	item = must(co_await loop.next());
}

/* The end of a request, CLOSED, comes before the request is refused, by
 * request::of() or by the end of the loop: the loop waits for no other. */
static void request__refused_after_its_CLOSED(rpma_rt_mode mode)
{
	for (bool is_taken : {true, false}) {
		callers others;
		auto runtime = open_runtime(mode);
		auto pool = open_pool(runtime, others.peer, 64);
		const auto with = few(others.peer, pool);
		auto loop = must(rt::loop::make(runtime));
		raw_listener listener(runtime, with, loop);
		std::optional<rpma_rt_completion> item;
		int done = 0;

		if (is_taken)
			loop.spawn(take_item(loop, item));
		others.call(listener.port());
		while (done == 0) {
			CHECK(others.loop.turn(0) >= 0);
			done = loop.turn(1);
		}
		rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
		CHECK(rpma_rt_listener_drain(listener.raw, 1) == 0);
		/* CLOSED and LISTENER_CLOSED */
		for (done = 0; done < 2;)
			done += loop.turn(1);
		CHECK(item.has_value() == is_taken);
		if (item)
			CHECK(rt::request::of(loop, *item, with)
				      .error()
				      .code() == RPMA_RT_E_CLOSED);
		{
			auto gone = std::move(loop);
		}
		rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
				       RPMA_LOG_LEVEL_WARNING);
	}
}

/* ------------------------------------------------- destroyed inside --- */

static std::unique_ptr<rt::loop> make_loop(const rt::runtime &runtime)
{
	return std::make_unique<rt::loop>(must(rt::loop::make(runtime)));
}

static rt::task<void> destroy(std::unique_ptr<rt::loop> &loop,
			      rt::clock::time_point at, int &resumed)
{
	(void)co_await loop->sleep_until(at);
	resumed++;
	loop.reset();
}

/* Two coroutines are ready, and the first destroys the loop. */
static void loop__destroyed_NO_OTHER_GOES_ON(rpma_rt_mode mode)
{
	auto runtime = open_runtime(mode);
	auto loop = make_loop(runtime);
	const auto now = rt::clock::now();
	int resumed = 0;

	loop->spawn(destroy(loop, now, resumed));
	loop->spawn(destroy(loop, now, resumed));
	while (loop)
		CHECK(loop->turn(10) >= 0);
	CHECK(resumed == 1);
}

/* Runs a turn of another loop when the coroutine is destroyed. */
struct turning {
	rt::loop &other;

	~turning() { CHECK(other.turn(0) >= 0); }
};

static rt::task<void> turn_at_the_end(rt::loop &loop, rt::loop &other)
{
	turning end{other};

	(void)co_await loop.sleep_for(1h);
}

static rt::task<void> go_to(rt::loop &loop, rt::loop_ref there,
			    rt::clock::time_point at, bool &has_arrived)
{
	(void)co_await loop.sleep_until(at);
	(void)co_await there.resume_there();
	has_arrived = true;
}

/* A coroutine is about to leave for another loop when the loop is destroyed:
 * the coroutine is destroyed, and so does not leave. */
static void loop__destroyed_NO_OTHER_LEAVES(rpma_rt_mode mode)
{
	auto runtime = open_runtime(mode);
	auto second = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	auto other = must(rt::loop::make(second));
	auto loop = make_loop(runtime);
	const auto now = rt::clock::now();
	bool has_arrived = false;
	int resumed = 0;

	loop->spawn(turn_at_the_end(*loop, other));
	loop->spawn(go_to(*loop, other.remote(), now - 2us, has_arrived));
	loop->spawn(destroy(loop, now - 1us, resumed));
	while (loop)
		CHECK(loop->turn(10) >= 0);
	CHECK(other.turn(0) >= 0 && !has_arrived && resumed == 1);
}

/* ----------------------------------------------------- calls at the end --- */

/* Calls the loop when the coroutine is destroyed. */
struct calling {
	rt::loop &loop;
	int &begun;

	rt::task<void> count()
	{
		begun++;
		co_return;
	}
	~calling()
	{
		loop.spawn(count());
		CHECK(loop.run(count()).error().code() == RPMA_RT_E_CLOSED);
		CHECK(loop.turn(0) == RPMA_RT_E_CLOSED);
	}
};

static rt::task<void> call_at_the_end(rt::loop &loop, int &begun)
{
	calling end{loop, begun};

	(void)co_await loop.sleep_for(1h);
}

/* A task that comes with the end of the loop is destroyed, and does not
 * begin. */
static void spawn__at_the_end_of_the_loop_DESTROYED(rpma_rt_mode mode)
{
	auto runtime = open_runtime(mode);
	int begun = 0;
	{
		auto loop = must(rt::loop::make(runtime));

		loop.spawn(call_at_the_end(loop, begun));
		CHECK(loop.turn(0) >= 0);
	}
	CHECK(begun == 0);
}

/* ------------------------------------------------------ stops of shards --- */

static rt::task<void> hold_both_ends(rt::shard &self, rt::endpoint with,
				     bool &is_up)
{
	auto listener = must(self.listen(address(), "0", with));
	auto [one, two] = co_await rt::when_all(
		self.connect(address(), std::to_string(listener.port()), with),
		listener.accept());
	auto client = must(std::move(one));
	auto server = must(std::move(two));

	is_up = true;
	(void)co_await self.sleep_for(1h);
}

/* The end of a shard waits for the ends of its connections, also behind a stop
 * of the set: the slots of the receives are free afterwards. */
static void stop__with_connections_END_WITH_THE_SHARD()
{
	constexpr uint32_t SLOTS = 64;
	auto peer = open_peer();
	auto runtime = open_runtime(RPMA_RT_MODE_MANUAL);
	auto pool = open_pool(runtime, peer, SLOTS);
	auto set = must(rt::shards::make(runtime));
	std::vector<rt::lease> all;
	bool is_up = false;
	{
		auto self = must(rt::shard::make(set, 0));

		self.spawn(hold_both_ends(self, few(peer, pool), is_up));
		while (!is_up)
			CHECK(self.turn(10) >= 0);
		rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
		must(set.stop());
		while (self.turn(10) != RPMA_RT_E_CLOSED)
			continue;
	}
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	while (auto slot = pool.take())
		all.push_back(std::move(*slot));
	CHECK(all.size() == SLOTS);
}

static rt::task<void> take_items(rt::shard &self, int &failed)
{
	for (int i = 0; i < 2; i++) {
		auto item = co_await self.next();

		CHECK(!item && item.error().code() == RPMA_RT_E_CLOSED);
		failed++;
	}
}

static void stop__of_shards_NEXT_FAILS()
{
	auto runtime = open_runtime(RPMA_RT_MODE_MANUAL);
	auto set = must(rt::shards::make(runtime));
	auto self = must(rt::shard::make(set, 0));
	int failed = 0;

	self.spawn(take_items(self, failed));
	CHECK(self.turn(0) >= 0 && failed == 0);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	must(set.stop());
	while (self.turn(10) != RPMA_RT_E_CLOSED)
		continue;
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	CHECK(failed == 2);
}

/* ------------------------------------------------------- end of a set --- */

static void run_shard(const rt::shards &set, std::atomic<bool> &runs)
{
	auto self = must(rt::shard::make(set, 0));

	runs = true;
	while (self.turn(-1) >= 0)
		continue;
}

/* The threads of a set end, then the listener of C and the owners, in any
 * order: no thread runs the pollers for LISTENER_CLOSED, or for a request that
 * comes late. The runtime is deleted all the same. */
static void set__ends_before_its_listener_ALL_FREED()
{
	for (bool is_asked : {false, true}) {
		callers others;

		rpma_log_set_function(hear);
		{
			auto runtime = open_runtime(RPMA_RT_MODE_MANUAL);
			auto pool = open_pool(runtime, others.peer, 64);
			const auto with = few(others.peer, pool);
			auto set = must(rt::shards::make(runtime));
			raw_listener listener(runtime, with, set);
			std::atomic<bool> runs{false};
			std::thread runner(run_shard, std::cref(set),
					   std::ref(runs));

			while (!runs)
				std::this_thread::yield();
			must(set.stop());
			runner.join();
			if (is_asked)
				others.call(listener.port());
			for (int i = 0; is_asked && i < 20; i++)
				CHECK(others.loop.turn(5) >= 0);
		}
		while (is_asked && others.refused == 0)
			CHECK(others.loop.turn(1) >= 0);
		rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
		const auto errors = heard();
		fputs(errors.c_str(), stderr);
		CHECK(is_asked ? errors.find("runtime") == std::string::npos
			       : errors.empty());
	}
}

/* -------------------------------------------------------- given sends --- */

static rt::task<void> give_too_much(rt::loop &loop, rt::endpoint with_large,
				    rt::endpoint with_small)
{
	auto listener = must(loop.listen(address(), "0", with_small));
	auto [client, server] = co_await rt::when_all(
		loop.connect(address(), std::to_string(listener.port()),
			     with_large),
		listener.accept());
	auto &conn = *client;

	must(co_await conn.give(must(with_large.messages->take())));
	CHECK(co_await conn.closed() == RPMA_RT_REASON_ERROR);
	CHECK(server);
}

/* Nobody awaits a given send: the log has the status of the failure. */
static void give__longer_than_the_receive_STATUS_IN_THE_LOG(rpma_rt_mode mode)
{
	auto peer = open_peer();
	auto runtime = open_runtime(mode);
	auto small = open_pool(runtime, peer, 64);
	rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	cfg.slot_size = 128;
	auto large = must(rt::pool::make(runtime, peer, cfg));
	auto loop = must(rt::loop::make(runtime));

	rpma_log_set_function(hear);
	loop.run(give_too_much(loop, few(peer, large), few(peer, small)))
		.value();
	rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
	const auto errors = heard();
	fputs(errors.c_str(), stderr);
	CHECK(errors.find("a given send of") != std::string::npos);
	CHECK(errors.find(rpma_rt_status_2str(IBV_WC_REM_INV_REQ_ERR)) !=
	      std::string::npos);
}

int main(void)
{
	items__before_the_first_next_of_a_shard_STAY();
	RUN(requests__for_which_there_is_no_room_REFUSED);
	RUN(request__refused_after_its_CLOSED);
	RUN(loop__destroyed_NO_OTHER_GOES_ON);
	RUN(loop__destroyed_NO_OTHER_LEAVES);
	RUN(spawn__at_the_end_of_the_loop_DESTROYED);
	RUN(give__longer_than_the_receive_STATUS_IN_THE_LOG);
	stop__with_connections_END_WITH_THE_SHARD();
	stop__of_shards_NEXT_FAILS();
	set__ends_before_its_listener_ALL_FREED();
	return 0;
}
