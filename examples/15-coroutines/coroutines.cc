/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * coroutines ADDRESS: a server and a client as coroutines on one loop. A ping;
 * a record, read from the memory of the server; another record, written to the
 * memory of the server, flushed and announced, as one link; and a message that
 * never comes.
 */

#include <cstdio>
#include <cstring>

#include <rpma_rt.hpp>

namespace rt = rpma::rt;
using namespace std::chrono_literals;

alignas(4096) static char page[4096] = "a record of the server";

static const int USAGE = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
			 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

static rt::lease with_text(const rt::pool &pool, std::string_view text)
{
	auto lease = pool.take().value();

	lease.assign(text);
	return lease;
}

/*
 * Sends the descriptor of the memory, then sends each message back, until the
 * end.
 */
static rt::task<void> serve(const rt::listener &listener, const rt::pool &pool,
			    const rt::memory &memory)
{
	auto conn = (co_await listener.accept()).value();
	auto where = memory.descriptor().value();

	(co_await conn.send(with_text(pool, where))).value();
	for (;;) {
		auto message = co_await conn.receive();

		if (!message)
			co_return;
		if (message->imm())
			printf("server: %s\n", page + *message->imm());
		else
			(co_await conn.give(std::move(*message))).value();
	}
}

static rt::task<void> ask(const rt::loop &loop, const rt::pool &pool,
			  std::string address, std::string port,
			  rt::endpoint with)
{
	auto conn = (co_await loop.connect(address, port, with)).value();
	auto where = (co_await conn.receive()).value();
	auto remote = rt::remote_memory::make(where.text()).value();

	(co_await conn.send(with_text(pool, "ping"))).value();
	auto pong = (co_await conn.receive()).value();
	printf("client: %.*s is back\n", (int)pong.size(), pong.text().data());

	auto record =
		(co_await conn.read(remote, 0, std::move(pong.resize(22))))
			.value();
	printf("client: read \"%.22s\"\n", record.text().data());

	auto written = co_await conn.link(
		conn.write(remote, 64, with_text(pool, "a record written")),
		conn.flush(remote, 64, 16), conn.send(rt::lease(), 64));
	if (!written)
		printf("client: %s\n", written.error().text().c_str());

	auto none = co_await loop.within(50ms, conn.receive());
	printf("client: %s\n", none.error().text().c_str());
}

int main(int argc, char **argv)
try {
	if (argc != 2)
		return fprintf(stderr, "usage: %s ADDRESS\n", argv[0]), 2;
	rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	cfg.usage = RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC;
	auto peer = rt::peer::of(argv[1]).value();
	auto runtime = rt::runtime::make().value();
	auto pool = rt::pool::make(runtime, peer, cfg).value();
	auto memory = rt::memory::make(peer, page, sizeof(page), USAGE).value();
	auto loop = rt::loop::make(runtime).value();
	const rt::endpoint with{.via = peer, .messages = &pool};
	auto listener = loop.listen(argv[1], "0", with).value();

	loop.spawn(serve(listener, pool, memory));
	auto port = std::to_string(listener.port());
	loop.run(ask(loop, pool, argv[1], port, with)).value();
} catch (const rt::failure &why) {
	fprintf(stderr, "%s\n", why.what());
	return 1;
}
