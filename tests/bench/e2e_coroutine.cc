/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The form of coroutines: a loop for each thread, and on it as many coroutines
 * an end of each connection as messages may be outstanding. A client's gives a
 * lease to a send, awaits a message, and sends from the lease of the message
 * next; a server's gives each message to a send.
 */

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <optional>
#include <string>

#include <sched.h>

#include "../cpp/scene.hpp"

extern "C" {
#include "e2e.h"
}

namespace
{

struct shared {
	e2e *all;
	rt::peer peer;
	rt::runtime runtime;
	/* of each thread's listener; 0: not yet */
	std::atomic<int> ports[BENCH_CPUS];
};

shared *common;

/* A thread's. */
struct half {
	e2e_thread *thread;
	rt::pool pool;
	rt::loop loop;
	std::optional<rt::listener> listener;
	std::list<rt::connection> clients, servers;
	rt::endpoint with{.via = common->peer, .messages = &pool};
};

rt::task<void> serve(rt::connection &conn)
{
	for (;;) {
		auto message = must(co_await conn.receive());
		auto sent = co_await conn.give(std::move(message));

		CHECK(sent);
	}
}

/* Writes a message; *begin: when, of a message that is timed. */
void fill(std::byte *to, uint64_t number, uint64_t id, uint64_t *begin)
{
	e2e_fill(to, number, id);
	if (number % E2E_EACH == 0)
		*begin = bench_now_ns();
}

rt::task<void> ask(half &h, rt::connection &conn, uint64_t id, uint64_t number,
		   uint64_t step)
{
	auto first = must(h.pool.take());
	uint64_t begin = 0;

	fill(first.resize(E2E_SIZE).data(), number, id, &begin);
	auto given = co_await conn.give(std::move(first));

	CHECK(given);
	for (;;) {
		auto answer = must(co_await conn.receive());

		e2e_check(answer.data(), number, id);
		h.thread->messages++;
		if (number % E2E_EACH == 0)
			e2e_time(h.thread, begin);
		number += step;
		fill(answer.data(), number, id, &begin);
		auto sent = co_await conn.give(std::move(answer));

		CHECK(sent);
	}
}

rt::task<void> accept_all(half &h, uint32_t count)
{
	for (; count > 0; count--) {
		auto made = co_await h.listener->accept();

		h.servers.push_back(must(std::move(made)));
		for (uint32_t i = 0; i < common->all->depth; i++)
			h.loop.spawn(serve(h.servers.back()));
	}
}

rt::task<void> connect_all(half &h, uint32_t count, int port)
{
	for (; count > 0; count--) {
		auto made = co_await h.loop.connect(
			address(), std::to_string(port), h.with);

		h.clients.push_back(must(std::move(made)));
	}
}

half *make_half(e2e_thread *thread)
{
	rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	rt::loop_cfg loop;

	cfg.count = thread->end_count * common->all->depth * 8;
	cfg.slot_size = E2E_SIZE;
	loop.poller = static_cast<int>(thread->number);
	/* as e2e_polls_again() */
	loop.polls = 16;
	return new half{.thread = thread,
			.pool = must(rt::pool::make(common->runtime,
						    common->peer, cfg)),
			.loop = must(rt::loop::make(common->runtime, loop)),
			.listener = {},
			.clients = {},
			.servers = {}};
}

/* Returns how many ends of the thread are a client's. */
uint32_t clients_of(const e2e_thread *thread)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < thread->end_count; i++)
		count += thread->ends[i]->is_client;
	return count;
}

void connect(half &h)
{
	e2e_thread *thread = h.thread;
	uint32_t clients = clients_of(thread);
	uint32_t servers = thread->end_count - clients;
	/* the server of a client is the next thread's, or the same thread's */
	auto &port = common->ports[thread->number + (servers == 0)];

	h.with.cfg.sq_size = 2 * common->all->depth + 16;
	h.with.cfg.rq_size = common->all->depth; /* as many as others post */
	if (servers > 0) {
		h.listener.emplace(must(h.loop.listen(address(), "0", h.with)));
		/* release: to the client, which connects */
		port.store(h.listener->port(), std::memory_order_release);
		h.loop.spawn(accept_all(h, servers));
	}
	if (clients > 0) {
		/* acquire: the listener is there */
		while (port.load(std::memory_order_acquire) == 0)
			sched_yield();
		h.loop.spawn(connect_all(h, clients,
					 port.load(std::memory_order_relaxed)));
	}
	while (h.clients.size() + h.servers.size() < thread->end_count)
		CHECK(h.loop.turn(1) >= 0);
}

} // namespace

extern "C" {

static void open_coroutines(e2e *all)
{
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = all->thread_count;
	common = new shared{.all = all,
			    .peer = open_peer(),
			    .runtime = must(rt::runtime::make(cfg)),
			    .ports = {}};
}

/* What a thread has made stays until the process ends. */
static void run_coroutines(e2e *all, e2e_thread *thread)
{
	half &h = *make_half(thread);
	uint64_t id = 0;

	connect(h);
	e2e_begin(all, thread);
	for (auto &conn : h.clients) {
		for (uint32_t i = 0; i < all->depth; i++)
			h.loop.spawn(ask(h, conn, id, i, all->depth));
		id++;
	}
	while (!e2e_is_over(all, thread))
		CHECK(h.loop.turn(20) >= 0);
}

const e2e_form e2e_coroutine = {
	.name = "coroutine",
	.has_pollers = false,
	.open = open_coroutines,
	.run = run_coroutines,
};
}
