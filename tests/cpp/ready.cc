/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ready.cc -- a million awaits of what is complete at once: tasks, tasks in
 * tasks, groups of them, with a limit of time. The stack does not grow, however
 * it is compiled, and but for the frames of the tasks nothing is allocated.
 * Objects in variables, as rpma_rt_cpp_task(7) advises for gcc 12, end once.
 * Needs no device; tests/cpp/compilers runs it.
 */

#include <cstdio>
#include <cstdlib>

#include <rpma_rt.hpp>

#define AWAITS 1000000

namespace rt = rpma::rt;

static uintptr_t lowest = UINTPTR_MAX;
static uintptr_t highest;
static unsigned long allocated;

__attribute__((noinline)) void *operator new(size_t size)
{
	void *memory = malloc(size);

	allocated++;
	if (!memory)
		abort();
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

static void look_at_stack()
{
	auto now = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));

	lowest = std::min(lowest, now);
	highest = std::max(highest, now);
}

static rt::task<int> one()
{
	look_at_stack();
	co_return 1;
}

static rt::task<int> two()
{
	int first = co_await one();
	int second = co_await one();

	co_return first + second;
}

static rt::task<void> await_tasks(long &sum)
{
	for (int i = 0; i < AWAITS; i++)
		sum += co_await one();
}

static rt::task<void> await_nested(long &sum)
{
	for (int i = 0; i < AWAITS; i += 2)
		sum += co_await two();
}

static rt::task<void> await_groups(long &sum)
{
	for (int i = 0; i < AWAITS; i += 4) {
		auto both = co_await rt::when_all(one(), one());
		auto any = co_await rt::when_any(one(), one());
		auto some = co_await rt::when_some(1, one(), one());

		sum += std::get<0>(both) + std::get<1>(both) + *any.get<0>() +
		       *some.get<0>();
	}
}

static rt::loop *loop;

static rt::task<void> nothing()
{
	co_return;
}

static rt::task<void> await_limited(long &sum)
{
	using namespace std::chrono_literals;

	for (int i = 0; i < AWAITS; i += 4) {
		auto alone = co_await loop->within(1h, one());
		auto both = co_await loop->within(
			1h, rt::when_all(one(), nothing()));
		auto any = co_await loop->within(1h, rt::when_any(one()));
		auto some = co_await loop->within(
			1h, rt::when_some(1, one(), nothing()));
		auto none = co_await loop->within(1h, nothing());

		sum += *alone + std::get<0>(*both) + *any.get<0>() +
		       *some.get<0>() + (none ? 0 : 1);
	}
}

/* what is allocated beside frames: nothing */
static int run(const char *name, rt::task<void> (*fn)(long &),
	       unsigned long frames)
{
	long sum = 0;
	auto task = fn(sum);

	allocated = 0;
	lowest = UINTPTR_MAX;
	highest = 0;
	if (task.await_suspend(std::noop_coroutine()) || sum != AWAITS ||
	    allocated != frames || highest - lowest > 4096) {
		printf("%s: sum %ld, %lu allocated, %zu of the stack\n", name,
		       sum, allocated, highest - lowest);
		return 1;
	}
	return 0;
}

/* An object that counts the objects. */
struct counted {
	static inline int count = 0;
	counted() noexcept { count++; }
	counted(counted &&) noexcept { count++; }
	~counted() { count--; }
};

struct given {
	counted object;
	int value;
};

static rt::task<int> take(given taken)
{
	co_return taken.value;
}

static rt::task<given> give(int value)
{
	co_return given{{}, value};
}

/* The advice of rpma_rt_cpp_task(7): what is in braces, or chosen, is in a
 * variable, and so is each result. */
static rt::task<void> follow_the_advice(bool is_first, int &sum)
{
	given one{{}, 1};
	auto chosen = is_first ? take({{}, 10}) : take({{}, 20});
	std::array<rt::task<int>, 2> both{take({{}, 100}), take({{}, 200})};
	auto lambda = [held = counted()]() -> rt::task<given> {
		return give(1000);
	};

	sum += co_await take(std::move(one));
	sum += co_await std::move(chosen);
	auto hundreds = co_await rt::when_all(std::move(both));
	sum += std::get<0>(hundreds) + std::get<1>(hundreds);
	auto result = co_await lambda();
	given last{std::move(result.object), result.value};
	sum += co_await take(std::move(last));
}

static int run_advice()
{
	int sum = 0;

	{
		auto task = follow_the_advice(true, sum);

		if (task.await_suspend(std::noop_coroutine()))
			return 1;
	}
	if (sum == 1311 && counted::count == 0)
		return 0;
	printf("advice: sum %d, %d objects\n", sum, counted::count);
	return 1;
}

int main(void)
{
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	auto runtime = rt::runtime::make(cfg);
	if (!runtime)
		return 1;
	auto made = rt::loop::make(*runtime);
	if (!made)
		return 1;
	loop = &*made;
	return run("tasks", await_tasks, AWAITS) |
	       run("nested", await_nested, AWAITS / 2 * 3) |
	       run("groups", await_groups, AWAITS / 4 * 6) |
	       run("limited", await_limited, AWAITS / 4 * 7) | run_advice();
}
