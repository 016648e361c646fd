/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nth.cc -- the nth allocation fails, of the headers, of the coroutines of the
 * program or of the library, which is linked with its allocations led here.
 * Each scene is run once for every allocation of the scene, and ends with an
 * error or with a bad_alloc caught by the program, never by std::terminate().
 * Loopback device, linked.
 *
 * usage: cpp_nth [step]: a single allocation of so many fails
 */

#include <atomic>
#include <cstdlib>
#include <new>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "scene.hpp"

/* ---------------------------------------------------------- allocations --- */

/* Relaxed, all: counts; set while no other thread runs. */
static std::atomic<unsigned> calls;
static std::atomic<unsigned> failing; /* 0: no failure */
static std::atomic<unsigned> failures;
static unsigned at; /* for the message if the test fails */

static bool is_failing()
{
	/* relaxed: see above */
	if (calls.fetch_add(1, std::memory_order_relaxed) + 1 !=
	    failing.load(std::memory_order_relaxed))
		return false;
	failures.fetch_add(1, std::memory_order_relaxed);
	errno = ENOMEM;
	return true;
}

extern "C" {
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
	return is_failing() ? nullptr : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return is_failing() ? nullptr : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return is_failing() ? nullptr : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return is_failing() ? nullptr : __real_aligned_alloc(alignment, size);
}
}

static void *allocate(size_t size)
{
	void *memory = __wrap_malloc(size);

	if (!memory)
		throw std::bad_alloc();
	return memory;
}

__attribute__((noinline)) void *operator new(size_t size)
{
	return allocate(size);
}

__attribute__((noinline)) void *operator new(size_t size,
					     const std::nothrow_t &) noexcept
{
	return __wrap_malloc(size);
}

__attribute__((noinline)) void *operator new[](size_t size)
{
	return allocate(size);
}

__attribute__((noinline)) void *operator new[](size_t size,
					       const std::nothrow_t &) noexcept
{
	return __wrap_malloc(size);
}

__attribute__((noinline)) void *operator new[](size_t size,
					       std::align_val_t align,
					       const std::nothrow_t &) noexcept
{
	const auto unit = static_cast<size_t>(align);

	return __wrap_aligned_alloc(unit, (size + unit - 1) / unit * unit);
}

__attribute__((noinline)) void *operator new[](size_t size,
					       std::align_val_t align)
{
	void *memory = operator new[](size, align, std::nothrow);

	if (!memory)
		throw std::bad_alloc();
	return memory;
}

__attribute__((noinline)) void operator delete(void *memory) noexcept
{
	free(memory);
}

__attribute__((noinline)) void operator delete(void *memory, size_t) noexcept
{
	free(memory);
}

__attribute__((noinline)) void operator delete[](void *memory) noexcept
{
	free(memory);
}

__attribute__((noinline)) void operator delete[](void *memory, size_t) noexcept
{
	free(memory);
}

__attribute__((noinline)) void operator delete[](void *memory,
						 std::align_val_t) noexcept
{
	free(memory);
}

/* --------------------------------------------------------------- scenes --- */

/* Returns true if a result is over. A limit of 30 s that passes means that no
 * error was reported for a failed allocation. */
template <typename R> static bool is_over(const R &result)
{
	if (!result && result.error().what() == rt::errc::timed_out) {
		fprintf(stderr, "allocation %u fails, and nothing comes\n", at);
		abort();
	}
	return !result;
}

/* Takes every free slot, and waits for another. */
static rt::task<bool> wait_for_slot(const rt::loop &loop, const rt::pool &pool)
{
	std::vector<rt::lease> all;

	while (auto slot = pool.take())
		all.push_back(std::move(*slot));
	auto give_back = [](const rt::loop &on,
			    std::vector<rt::lease> &out) -> rt::task<void> {
		(void)co_await on.sleep_for(1ms);
		out.clear();
	};
	auto [slot, given] = co_await rt::when_all(
		loop.within(30s, loop.next(pool)), give_back(loop, all));
	(void)given;
	co_return !is_over(slot);
}

/* Echoes every message. */
static rt::task<void> serve(rt::listener &listener)
{
	auto conn = co_await listener.accept();

	while (conn) {
		auto message = co_await conn->receive();

		if (!message)
			co_return;
		auto sent = co_await conn->send(std::move(*message));
		if (!sent)
			co_return;
	}
}

static rt::task<void> ask(rt::loop &loop, rt::listener &listener,
			  const rt::pool &pool, rt::endpoint with)
{
	auto conn = co_await loop.within(
		30s, loop.connect("127.0.0.1", std::to_string(listener.port()),
				  with));
	if (is_over(conn))
		co_return;
	for (int i = 0; i < 20; i++) {
		auto text = pool.take();

		if (!text)
			co_return;
		auto sent = co_await conn->send(std::move(*text));
		if (!sent)
			co_return;
	}
	for (int i = 0; i < 20; i++) {
		auto back = co_await loop.within(30s, conn->receive());
		if (is_over(back))
			co_return;
	}
	bool has_slot = co_await wait_for_slot(loop, pool);
	if (!has_slot)
		co_return;
	/* more than a batch, which is only partly taken */
	for (uint64_t i = 0; i < 100; i++) {
		if (push(loop.queue(), i))
			co_return;
	}
	auto item = co_await loop.within(30s, loop.next());
	if (is_over(item))
		co_return;
	auto any = co_await loop.within(30s, rt::when_any(loop.next(),
							  loop.sleep_for(1ms),
							  conn->receive()));
	(void)is_over(any);
}

/* When one side ends, both end. */
static rt::task<void> talk(rt::loop &loop, rt::listener &listener,
			   const rt::pool &pool, rt::endpoint with)
{
	(void)co_await rt::when_any(serve(listener),
				    ask(loop, listener, pool, with));
}

static void scene_of_a_loop(rpma_rt_mode mode)
{
	auto peer = rt::peer::of("127.0.0.1").value();
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	rpma_rt_pool_cfg sizes = RPMA_RT_POOL_CFG_INIT;

	cfg.mode = mode;
	cfg.backstop_ms = 0;
	sizes.count = 64;
	sizes.slot_size = 64;
	auto runtime = rt::runtime::make(cfg).value();
	auto pool = rt::pool::make(runtime, peer, sizes).value();
	auto loop = rt::loop::make(runtime).value();
	rt::endpoint with{.via = peer, .messages = &pool};
	with.cfg.sq_size = with.cfg.rq_size = 4;
	auto listener = loop.listen("127.0.0.1", "0", with).value();
	loop.run(talk(loop, listener, pool, with)).value();
}

static void scene_of_a_polled_loop()
{
	scene_of_a_loop(RPMA_RT_MODE_MANUAL);
}

static void scene_of_a_waiting_loop()
{
	scene_of_a_loop(RPMA_RT_MODE_EVENT);
}

static rt::task<void> answer(rt::shard &self)
{
	for (int i = 0; i < 10; i++) {
		auto came = co_await self.receive();

		if (!came)
			co_return;
		if (came->kind == RPMA_RT_SHARD_REQUEST)
			(void)self.answer(*came, *came);
	}
}

static rt::task<void> tell(rt::shard &self)
{
	for (int i = 0; i < 9; i++) {
		auto sent = co_await self.post(0, {});
		if (!sent)
			co_return;
	}
	(void)co_await self.request(0, {});
}

static rt::task<void> tell_and_answer(rt::shard &self)
{
	(void)co_await rt::when_any(answer(self), tell(self));
}

static void scene_of_a_shard()
{
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	auto runtime = rt::runtime::make(cfg).value();
	auto set = rt::shards::make(runtime, {.lane_size = 4}).value();
	auto shard = rt::shard::make(set, 0).value();
	shard.run(tell_and_answer(shard)).value();
}

/* But for the objects nothing is allocated. */
static void wait_for_one_another()
{
	rt::event event;
	rt::semaphore places(1);
	rt::promise<int> promise;
	rt::channel<int> items(2);
	auto future = promise.get_future();

	event.set();
	event.wait().wait().value();
	auto permit = places.acquire().wait().value();
	CHECK(promise.set(1) && future.get().wait().value() == 1);
	items.try_send(2).value();
	items.send(3).wait().value();
	CHECK(items.receive().wait().value() == 2);
}

static void scene_of_futures()
{
	auto peer = rt::peer::of("127.0.0.1").value();
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	rpma_rt_pool_cfg sizes = RPMA_RT_POOL_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_EVENT;
	cfg.backstop_ms = 0;
	sizes.count = 64;
	sizes.slot_size = 64;
	auto runtime = rt::runtime::make(cfg).value();
	auto pool = rt::pool::make(runtime, peer, sizes).value();
	rt::endpoint with{.via = peer, .messages = &pool};
	with.cfg.sq_size = with.cfg.rq_size = 4;
	auto listener = runtime.listen("127.0.0.1", "0", with).value();
	auto request = listener.next().begin().value();
	/* a request without an answer: waits for the limit, or fails before */
	auto conn = runtime.connect("127.0.0.1",
				    std::to_string(listener.port()), with)
			    .wait(1);
	if (!conn)
		(void)request.wait(0).value();
	wait_for_one_another();
}

/* ---------------------------------------------------------------- sweep --- */

static bool run(void (*scene)())
{
	try {
		scene();
		return true;
	} catch (const std::bad_alloc &) {
	} catch (const rt::failure &) {
	}
	return false;
}

static void expect_no_leak(const char *name, unsigned n)
{
#ifdef __SANITIZE_ADDRESS__
	if (!__lsan_do_recoverable_leak_check())
		return;
	fprintf(stderr, "%s: allocation %u fails, and memory is lost\n", name,
		n);
	abort();
#else
	(void)name;
	(void)n;
#endif
}

static void each_allocation__FAILS_ONCE(const char *name, void (*scene)(),
					unsigned step)
{
	unsigned n = 1;
	unsigned caught = 0;

	/* twice: afterwards everything made once for the process exists */
	(void)run(scene);
	(void)run(scene);
	for (;; n += step) {
		/* relaxed, all: no other thread runs */
		calls.store(0, std::memory_order_relaxed);
		failures.store(0, std::memory_order_relaxed);
		failing.store(n, std::memory_order_relaxed);
		at = n;
		caught += !run(scene);
		failing.store(0, std::memory_order_relaxed);
		if (failures.load(std::memory_order_relaxed) == 0)
			break;
		expect_no_leak(name, n);
	}
	printf("%s: %u allocations, %u caught\n", name, n - 1, caught);
	CHECK(n > 10 && caught > 0);
}

static void silence(rpma_log_level, const char *, const int, const char *,
		    const char *, ...)
{
}

int main(int argc, char **argv)
{
	const unsigned step =
		argc > 1 ? static_cast<unsigned>(atoi(argv[1])) : 1;

	CHECK(rpma_log_set_function(silence) == 0);
	each_allocation__FAILS_ONCE("polled loop", scene_of_a_polled_loop,
				    step);
	each_allocation__FAILS_ONCE("waiting loop", scene_of_a_waiting_loop,
				    step);
	each_allocation__FAILS_ONCE("shard", scene_of_a_shard, step);
	each_allocation__FAILS_ONCE("futures", scene_of_futures, step);
	return 0;
}
