/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures.cc -- connections and listeners without a queue and without a loop:
 * threads wait for what they did, requests are futures, owners are destroyed in
 * any order.
 */

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "scene.hpp"

#define ROUNDS 100

struct world {
	rt::peer peer = open_peer();
	rt::runtime runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	std::vector<uint64_t> page = std::vector<uint64_t>(512);
	rt::memory memory = must(rt::memory::make(
		peer, page.data(), 4096,
		RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
			RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST));
	rt::remote_memory remote =
		must(rt::remote_memory::make(must(memory.descriptor())));

	rt::endpoint endpoint() const
	{
		rt::endpoint with{.via = peer};

		with.cfg.sq_size = with.cfg.rq_size = 16;
		return with;
	}
	rt::future_listener listen() const
	{
		return must(rt::future_listener::make(runtime, address(), "0",
						      endpoint()));
	}
	rt::result<rt::future_connection> connect(const rt::future_listener &to,
						  int timeout_ms = -1) const
	{
		return rt::future_connection::connect(runtime, address(),
						      std::to_string(to.port()),
						      endpoint(), timeout_ms);
	}
};

static rpma_rt_completion wait_for(rt::result<rt::future> made)
{
	auto future = must(std::move(made));

	return must(future.wait(-1));
}

/* Sends back what comes: from the word at 0 to that at 8. */
static void echo(world &w, rt::future_listener &listener)
{
	auto conn = must(listener.accept());

	for (int i = 0; i < ROUNDS; i++) {
		rpma_rt_wr wr;

		auto came = wait_for(conn.receive_raw(w.memory.raw(), 0, 8));
		CHECK(came.status == IBV_WC_SUCCESS);
		w.page[1] = w.page[0];
		rpma_rt_prep_send(&wr, w.memory.raw(), 8, 8, 0, 0);
		CHECK(wait_for(conn.post_raw(wr)).status == IBV_WC_SUCCESS);
	}
	wait_for(conn.event(RPMA_RT_EVENT_CLOSED));
}

static void connection__without_a_queue()
{
	world w;
	auto listener = w.listen();
	std::thread server([&] { echo(w, listener); });

	{
		auto conn = must(w.connect(listener));

		for (uint64_t i = 1; i <= ROUNDS; i++) {
			rpma_rt_wr link[2];
			auto back =
				must(conn.receive_raw(w.memory.raw(), 24, 8));

			w.page[2] = i;
			rpma_rt_prep_write(&link[0], w.remote.raw(), 32,
					   w.memory.raw(), 16, 8, 0, 0);
			rpma_rt_prep_send(&link[1], w.memory.raw(), 16, 8, 0,
					  0);
			auto sent = wait_for(conn.post_raw(link));
			CHECK(sent.status == IBV_WC_SUCCESS);
			auto came = must(back.wait(-1));
			CHECK(came.status == IBV_WC_SUCCESS);
			CHECK(w.page[3] == i && w.page[4] == i);
		}
	}
	server.join();
}

/* A request that nobody waits for any more is the next one's. */
static void request__given_up_is_the_next_ones()
{
	world w;
	auto listener = w.listen();

	for (int i = 0; i < 10; i++) {
		{
			auto none = must(listener.next());
			auto early = none.wait(0);
			CHECK(!early && early.error().code() == RPMA_E_AGAIN);
		}
		std::optional<rt::request_future> first(must(listener.next()));
		std::thread client([&] {
			auto conn = must(w.connect(listener));
			wait_for(conn.event(RPMA_RT_EVENT_CLOSED));
		});
		if (i & 1)
			std::this_thread::yield();
		first.reset();
		auto conn = must(must(listener.next()).wait(-1));
		must(conn.accept());
		conn.close();
		client.join();
	}
}

static void connect__fails_with_a_reason()
{
	world w;
	std::optional<rt::future_listener> listener(w.listen());
	auto next = must(listener->next());

	/* nobody answers */
	auto late = w.connect(*listener, 1);
	CHECK(!late && late.error().what() == rt::errc::timed_out);
	std::atomic<bool> is_over{false};
	std::thread client([&] {
		auto no = w.connect(*listener);
		CHECK(!no && no.error().what() == rt::errc::closed &&
		      no.error().reason() == RPMA_RT_REASON_REJECTED);
		is_over = true;
	});
	/* the first may be that of the peer that has left */
	while (!is_over) {
		auto refused = next.wait(10);

		if (refused)
			next = must(listener->next());
	}
	client.join();
	listener.reset();
	auto end = next.wait(-1);
	CHECK(!end && end.error().what() == rt::errc::closed);
}

/* Each order in which seven owners go, with a receive that is posted. */
static void owners__destroyed_in_any_order()
{
	std::vector<int> order(7);
	int count = 0;

	std::iota(order.begin(), order.end(), 0);
	do {
		if (count++ % 101 != 0) /* 50 of the 5040 */
			continue;
		std::vector<uint64_t> page(512);
		std::optional<rt::peer> peer(open_peer());
		std::optional<rt::runtime> runtime(
			open_runtime(RPMA_RT_MODE_ADAPTIVE));
		std::optional<rt::memory> memory(must(rt::memory::make(
			*peer, page.data(), 4096, RPMA_MR_USAGE_RECV)));
		rt::endpoint with{.via = *peer};
		std::optional<rt::future_listener> listener(
			must(rt::future_listener::make(*runtime, address(), "0",
						       with)));
		auto port = std::to_string(listener->port());
		std::optional<rt::future_connection> client, server;
		std::thread connects([&] {
			client.emplace(must(rt::future_connection::connect(
				*runtime, address(), port, with)));
		});
		server.emplace(must(listener->accept()));
		connects.join();
		std::optional<rt::future> future(
			must(client->receive_raw(memory->raw(), 0, 8)));
		for (int which : order) {
			if (which == 0)
				peer.reset();
			else if (which == 1)
				runtime.reset();
			else if (which == 2)
				listener.reset();
			else if (which == 3)
				client.reset();
			else if (which == 4)
				server.reset();
			else if (which == 5)
				future.reset();
			else if (!client) /* what is posted keeps it */
				memory.reset();
		}
	} while (std::next_permutation(order.begin(), order.end()));
}

int main(void)
{
	connection__without_a_queue();
	request__given_up_is_the_next_ones();
	connect__fails_with_a_reason();
	owners__destroyed_in_any_order();
	return 0;
}
