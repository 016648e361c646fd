/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures.cc -- connections and listeners without a queue and without a loop:
 * threads wait for their operations, requests and messages are futures,
 * receives are shared, also with connections of a loop; owners are destroyed in
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

	rt::pool words = open_pool(runtime, peer, 64); /* to send from */

	rt::endpoint endpoint() const
	{
		rt::endpoint with{.via = peer};

		with.cfg.sq_size = with.cfg.rq_size = 16;
		return with;
	}
	rt::listener listen() const
	{
		return must(runtime.listen(address(), "0", endpoint()));
	}
	rt::result<rt::connection> connect(const rt::listener &to,
					   int timeout_ms = -1) const
	{
		return runtime
			.connect(address(), std::to_string(to.port()),
				 endpoint())
			.wait(timeout_ms);
	}
};

static void wait_for(rt::result<rt::posted<>> made)
{
	auto posted = must(std::move(made));

	must(posted.wait());
}

/* Sends messages back: from the word at 0 to the word at 8. */
static void echo(world &w, rt::listener &listener)
{
	auto conn = must(listener.accept().wait());

	for (int i = 0; i < ROUNDS; i++) {
		wait_for(conn.receive_raw(w.memory.raw(), 0, 8));
		w.page[1] = w.page[0];
		must(conn.send_raw(w.memory.raw(), 8, 8).wait());
	}
	must(conn.closed().wait());
}

static void connection__without_a_queue()
{
	world w;
	auto listener = w.listen();
	std::thread server([&] { echo(w, listener); });

	{
		auto conn = must(w.connect(listener));

		for (uint64_t i = 1; i <= ROUNDS; i++) {
			auto back =
				must(conn.receive_raw(w.memory.raw(), 24, 8));

			w.page[2] = i;
			must(conn.link(conn.write_raw(w.remote, 32,
						      w.memory.raw(), 16, 8),
				       conn.send_raw(w.memory.raw(), 16, 8))
				     .wait());
			must(back.wait());
			CHECK(back.item().byte_len == 8);
			CHECK(w.page[3] == i && w.page[4] == i);
		}
	}
	server.join();
}

/* A request without a waiter goes to the next waiter. */
static void request__given_up_is_the_next_ones()
{
	world w;
	auto listener = w.listen();

	for (int i = 0; i < 10; i++) {
		{
			auto none = must(listener.next().begin());
			auto early = none.wait(0);
			CHECK(!early && early.error().code() == RPMA_E_AGAIN);
		}
		std::optional<rt::next_future<rt::request>> first(
			must(listener.next().begin()));
		std::thread client([&] {
			auto conn = must(w.connect(listener));
			must(conn.closed().wait());
		});
		if (i & 1)
			std::this_thread::yield();
		first.reset();
		auto conn = must(must(listener.next().wait()).accept());
		must(conn.established().wait());
		conn.close();
		client.join();
	}
}

static void connect__fails_with_a_reason()
{
	world w;
	std::optional<rt::listener> listener(w.listen());
	auto next = must(listener->next().begin());

	/* no answer */
	auto late = w.connect(*listener, 1);
	CHECK(!late && late.error().what() == rt::errc::timed_out);
	std::atomic<bool> is_over{false};
	std::thread client([&] {
		auto no = w.connect(*listener);
		CHECK(!no && no.error().what() == rt::errc::closed &&
		      no.error().reason() == RPMA_RT_REASON_REJECTED);
		is_over = true;
	});
	/* the first may be the request of the peer that has left */
	while (!is_over) {
		auto refused = next.wait(10);

		if (refused)
			next = must(listener->next().begin());
	}
	client.join();
	listener.reset();
	auto end = next.wait(-1);
	CHECK(!end && end.error().what() == rt::errc::closed);
}

/* ----------------------------------------------------------- messages --- */

static rt::pool open_pool(const world &w)
{
	return open_pool(w.runtime, w.peer, 64);
}

static uint64_t word_of(const rt::message &message)
{
	uint64_t word;

	CHECK(message.size() == sizeof(word));
	std::memcpy(&word, message.text().data(), sizeof(word));
	return word;
}

/* From a slot, with immediate data. */
static void send_word(world &w, const rt::connection &conn, uint64_t word)
{
	auto buffer = must(w.words.take());

	memcpy(buffer.resize(sizeof(word)).data(), &word, sizeof(word));
	must(conn.send(std::move(buffer), static_cast<uint32_t>(word)).wait());
}

struct both {
	rt::connection client, server;
};

/* Connects with the receives of the server; the user pointer, too. */
static both connect_to(const world &w, const rt::endpoint &served)
{
	auto listener = must(w.runtime.listen(address(), "0", served));
	std::optional<rt::connection> client;
	std::thread connects(
		[&] { client.emplace(must(w.connect(listener))); });
	auto server = must(listener.accept().wait());

	connects.join();
	return {std::move(*client), std::move(server)};
}

static void messages__of_a_connection()
{
	world w;
	std::optional<rt::pool> pool(open_pool(w));
	auto served = w.endpoint();

	served.messages = &*pool;
	std::optional<both> ends(connect_to(w, served));
	pool.reset(); /* the connection keeps the pool */
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		auto early = must(ends->server.receive().begin());
		auto none = early.wait(0);
		CHECK(!none && none.error().code() == RPMA_E_AGAIN);
		std::optional<rt::next_future<rt::message>> given_up(
			must(ends->server.receive().begin()));
		send_word(w, ends->client, 2 * i);
		auto came = must(early.wait(-1));
		CHECK(word_of(came) == 2 * i && came.imm() == 2 * i);
		/* a message without a waiter goes to the next waiter */
		send_word(w, ends->client, 2 * i + 1);
		given_up.reset();
		CHECK(word_of(must(ends->server.receive().wait())) ==
		      2 * i + 1);
	}
	send_word(w, ends->client, 7);
	ends->client.close();
	must(ends->server.closed().wait());
	auto last = must(ends->server.receive().wait());
	CHECK(word_of(last) == 7);
	auto end = ends->server.receive().wait();
	CHECK(!end && end.error().what() == rt::errc::closed);
	ends.reset();
	CHECK(word_of(last) == 7); /* a message belongs to the holder */
}

static rt::shared_receive_queue share(const world &w)
{
	rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	cfg.srq_size = 32;
	return must(rt::shared_receive_queue::make(w.runtime, w.peer,
						   open_pool(w), cfg));
}

/* Two connections, a single stream. */
static void messages__of_shared_receives()
{
	world w;
	std::optional<rt::shared_receive_queue> shared(share(w));
	auto served = w.endpoint();
	int users[2];
	std::optional<both> ends[2];
	bool came[2] = {};

	served.shared = &*shared;
	for (int i = 0; i < 2; i++) {
		served.cfg.user = &users[i];
		ends[i].emplace(connect_to(w, served));
	}
	auto none = ends[0]->server.receive().wait(0);
	CHECK(!none && none.error().code() == RPMA_E_INVAL);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		auto next = must(shared->next());
		send_word(w, ends[i % 2]->client, i);
		CHECK(word_of(must(next.wait(-1))) == i);
		CHECK(next.user() == &users[i % 2]);
		came[i % 2] = true;
	}
	CHECK(came[0] && came[1]);
	auto last = must(shared->next());
	ends[0].reset();
	shared.reset(); /* a connection still has the receives */
	send_word(w, ends[1]->client, 1);
	CHECK(word_of(must(last.wait(-1))) == 1);
	ends[1].reset();
}

/* A server knows the clients of one listener by their pointers. */
static void messages__of_shared_receives_BY_CLIENT()
{
	world w;
	auto shared = share(w);
	auto served = w.endpoint();
	int users[2];
	std::vector<rt::connection> servers, clients;

	served.shared = &shared;
	auto listener = must(w.runtime.listen(address(), "0", served));
	for (int &user : users) {
		std::thread connects(
			[&] { clients.push_back(must(w.connect(listener))); });
		auto request = must(listener.next().wait());

		must(request.set_user(&user));
		servers.push_back(must(std::move(request).accept()));
		connects.join();
	}
	for (size_t i = 0; i < 2; i++) {
		auto next = must(shared.next());

		send_word(w, clients[i], i);
		CHECK(word_of(must(next.wait(-1))) == i);
		CHECK(next.user() == &users[i]);
	}
}

static rt::task<void> set_user_on_a_loop(rt::loop &loop, const world &w)
{
	auto listener = must(loop.listen(address(), "0", w.endpoint()));
	std::thread connects([&] { (void)w.connect(listener); });
	auto request = must(co_await listener.next());

	CHECK(request.set_user(&loop).error().code() == RPMA_E_NOSUPP);
	must(std::move(request).reject());
	connects.join();
}

/* The loop has the pointer of each connection itself. */
static void set_user__on_a_loop_NOSUPP()
{
	world w;
	auto loop = must(rt::loop::make(w.runtime));

	must(loop.run(set_user_on_a_loop(loop, w)));
}

/* The end of shared receives, when the last owner goes. */
static void messages__of_shared_receives_END()
{
	world w;
	std::optional<rt::shared_receive_queue> shared(share(w));
	auto next = must(shared->next());

	shared.reset();
	auto end = next.wait(-1);
	CHECK(!end && end.error().what() == rt::errc::closed);
}

static rt::task<uint64_t> take_words(rt::listener &listener, int count)
{
	auto conn = must(co_await listener.accept());
	uint64_t sum = 0;

	for (int i = 0; i < count; i++) {
		auto message = must(co_await conn.receive());
		sum += word_of(message);
	}
	co_return sum;
}

/* A connection of a loop gets separate messages, from the same receives. */
static void messages__of_a_loop_from_shared_receives()
{
	world w;
	auto shared = share(w);
	auto loop = must(rt::loop::make(w.runtime));
	auto served = w.endpoint();

	served.shared = &shared;
	auto ends = connect_to(w, served);
	auto listener = must(loop.listen(address(), "0", served));
	auto port = std::to_string(listener.port());
	std::thread sender([&] {
		auto conn =
			must(w.runtime.connect(address(), port, w.endpoint())
				     .wait());
		for (uint64_t i = 1; i <= ROUNDS; i++)
			send_word(w, conn, i);
		must(conn.closed().wait());
	});
	auto sum = must(loop.run(take_words(listener, ROUNDS)));
	CHECK(sum == ROUNDS * (ROUNDS + 1) / 2);
	sender.join();
	send_word(w, ends.client, 5);
	CHECK(word_of(must(must(shared.next()).wait(-1))) == 5);
}

/* A listener goes with untaken requests, and pool and SRQ with the listener. */
static void owners__of_receives_go_with_a_listener()
{
	for (int i = 0; i < 20; i++) {
		world w;
		std::optional<rt::pool> pool;
		std::optional<rt::shared_receive_queue> shared;
		auto served = w.endpoint();

		if (i & 1) {
			shared.emplace(share(w));
			served.shared = &*shared;
		} else {
			pool.emplace(open_pool(w));
			served.messages = &*pool;
		}
		std::optional<rt::listener> listener(
			must(w.runtime.listen(address(), "0", served)));
		auto port = std::to_string(listener->port());
		std::thread client([&] {
			CHECK(!w.runtime.connect(address(), port, w.endpoint())
				       .wait());
		});
		std::optional<rt::next_future<rt::request>> held;
		if (i & 2) /* has the request, which is never asked for */
			held.emplace(must(listener->next().begin()));
		if (i & 4)
			std::this_thread::yield();
		listener.reset();
		pool.reset();
		shared.reset();
		held.reset();
		client.join();
	}
}

/* Each order of destroying seven owners, with a posted receive. */
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
		std::optional<rt::listener> listener(
			must(runtime->listen(address(), "0", with)));
		auto port = std::to_string(listener->port());
		std::optional<rt::connection> client, server;
		std::thread connects([&] {
			client.emplace(
				must(runtime->connect(address(), port, with)
					     .wait()));
		});
		server.emplace(must(listener->accept().wait()));
		connects.join();
		std::optional<rt::posted<>> future(
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
			else if (!client) /* posted work keeps the connection */
				memory.reset();
		}
	} while (std::next_permutation(order.begin(), order.end()));
}

int main(void)
{
	connection__without_a_queue();
	request__given_up_is_the_next_ones();
	connect__fails_with_a_reason();
	messages__of_a_connection();
	messages__of_shared_receives();
	messages__of_shared_receives_BY_CLIENT();
	set_user__on_a_loop_NOSUPP();
	messages__of_shared_receives_END();
	messages__of_a_loop_from_shared_receives();
	owners__of_receives_go_with_a_listener();
	owners__destroyed_in_any_order();
	return 0;
}
