/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * scene.hpp -- what the tests of the C++ header have in common: a runtime, a
 * pool, a loop, and on it both ends of connections; a page that the client
 * reads and writes from afar. A step that must not fail aborts the test.
 */

#ifndef SCENE_HPP
#define SCENE_HPP

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <rpma_rt.hpp>

extern "C" {
#include "loop.h"
}

namespace rt = rpma::rt;
using namespace std::chrono_literals;

inline void check(bool is_so, const char *what, int line = __builtin_LINE(),
		  const char *file = __builtin_FILE())
{
	if (is_so)
		return;
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	abort();
}

/* A call and no statement: gcc 12 makes the frame of a coroutine wrongly in
 * which nothing but the condition of an "if" is awaited. */
#define CHECK(cond) check(static_cast<bool>(cond), #cond)

/* Pushes a message that has nothing but a context. */
inline int push(rpma_rt_queue *queue, uint64_t context)
{
	rpma_rt_completion item{};

	item.context = context;
	return rpma_rt_queue_push(queue, &item);
}

/* The value of a result that must be one. */
[[noreturn, gnu::cold]] inline void must_fail(const rt::error &why, int line)
{
	fprintf(stderr, "line %d: %s\n", line, why.text().c_str());
	abort();
}
template <typename R>
__attribute__((always_inline)) inline auto must(R &&result,
						int line = __builtin_LINE())
{
	if (!result)
		must_fail(result.error(), line);
	return std::move(result).value();
}

inline void must(rt::result<void> result, int line = __builtin_LINE())
{
	if (!result) {
		fprintf(stderr, "line %d: %s\n", line,
			result.error().text().c_str());
		abort();
	}
}

struct scene_cfg {
	rpma_rt_mode mode = RPMA_RT_MODE_ADAPTIVE;
	uint32_t slots = 256;  /* of the pool */
	uint32_t depth = 16;   /* of send and receive queues */
	uint32_t receives = 0; /* of receive queues, in place of the depth */
	int polls = 1;	       /* of a turn */
};

inline std::string address()
{
	const char *given = getenv("RPMA_TEST_ADDR");

	return given ? given : "127.0.0.1";
}

inline rt::peer open_peer()
{
	auto peer = rt::peer::of(address());

	if (!peer) {
		printf("SKIP: no RDMA device at %s\n", address().c_str());
		exit(77);
	}
	return must(std::move(peer));
}

inline rt::runtime open_runtime(rpma_rt_mode mode, uint32_t pollers = 1)
{
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = mode;
	cfg.pollers = pollers;
	cfg.backstop_ms = 0; /* it would hide a lost wake-up */
	return must(rt::runtime::make(cfg));
}

inline rt::pool open_pool(const rt::runtime &runtime, const rt::peer &peer,
			  uint32_t slots)
{
	rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;

	cfg.count = slots;
	cfg.slot_size = 64;
	cfg.sends = RPMA_RT_POOL_NO_SENDS;
	cfg.usage = RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
		    RPMA_MR_USAGE_ATOMIC;
	return must(rt::pool::make(runtime, peer, cfg));
}

/* Both ends of a connection. */
struct pair {
	rt::connection client;
	rt::connection server;
};

struct scene {
	scene_cfg cfg;
	rt::peer peer = open_peer();
	rt::runtime runtime;
	rt::pool pool;
	std::vector<uint64_t> page = std::vector<uint64_t>(512);
	rt::memory memory;
	rt::remote_memory remote;
	rt::loop loop;

	explicit scene(const scene_cfg &c = {})
	    : cfg(c), runtime(open_runtime(c.mode)),
	      pool(open_pool(runtime, peer, c.slots)),
	      memory(must(rt::memory::make(
		      peer, page.data(), 4096,
		      RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
			      RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST |
			      RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
			      RPMA_MR_USAGE_ATOMIC))),
	      remote(must(rt::remote_memory::make(must(memory.descriptor())))),
	      loop(must(rt::loop::make(runtime, {.polls = c.polls})))
	{
	}

	rt::endpoint endpoint() const
	{
		rt::endpoint with{.via = peer, .messages = &pool};

		with.cfg.sq_size = cfg.depth;
		with.cfg.rq_size = cfg.receives ? cfg.receives : cfg.depth;
		return with;
	}
	rt::task<pair> connect()
	{
		auto listener = must(loop.listen(address(), "0", endpoint()));
		auto [client, server] = co_await rt::when_all(
			loop.connect(address(), std::to_string(listener.port()),
				     endpoint()),
			listener.accept());
		pair both{must(std::move(client)), must(std::move(server))};

		must(co_await both.server.established());
		co_return both;
	}
	rt::lease lease(std::string_view text = "")
	{
		auto l = must(pool.take());

		if (!text.empty())
			l.assign(text);
		return l;
	}
	/* every free slot */
	std::vector<rt::lease> take_all()
	{
		std::vector<rt::lease> all;

		for (;;) {
			auto l = pool.take();

			if (!l)
				return all;
			all.push_back(std::move(*l));
		}
	}
	template <typename T> auto run(rt::task<T> task)
	{
		return must(loop.run(std::move(task)));
	}
	void run(rt::task<void> task) { must(loop.run(std::move(task))); }
};

/* The tests of a file, in each mode that a loop may have. */
using test_fn = void(rpma_rt_mode mode);

inline void run_all(const char *name, test_fn *fn)
{
	printf("%s\n", name);
	fflush(stdout);
	fn(RPMA_RT_MODE_ADAPTIVE);
	fn(RPMA_RT_MODE_MANUAL);
}

#define RUN(fn) run_all(#fn, fn)

#endif /* SCENE_HPP */
