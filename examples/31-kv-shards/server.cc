/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server ADDRESS PORT [NAME=VALUE...]: a key-value server, a thread for each
 * shard. SIGTERM or SIGINT drains the connections and ends the server, SIGUSR1
 * prints the state of the runtime.
 */

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <thread>

#include "part.hpp"

extern "C" {
#include "../common/try.h"
#include "../common/words.h"
}

static uint64_t shard_count = 2, memory_mib = 256, clients_max = 512;
static uint64_t idle_ms, patience_ms = 10000;
static const char *file;
static const word words[] = {
	{"shards", &shard_count, nullptr, 1, 64, "threads"},
	{"memory", &memory_mib, nullptr, 64, 1 << 20,
	 "MiB for values, and at least 64 for each shard"},
	{"clients", &clients_max, nullptr, 1, 65536, "connections at a time"},
	{"idle", &idle_ms, nullptr, 0, 86400000,
	 "milliseconds for a client that owes nothing, 0: without end"},
	{"patience", &patience_ms, nullptr, 1, 86400000,
	 "milliseconds for a client that owes something"},
	{"file", nullptr, &file, 0, 0,
	 "values are read and, at the end, written"},
	{nullptr, nullptr, nullptr, 0, 0, nullptr}};

using parts = std::vector<std::unique_ptr<part>>;

static server make_server(const char *address)
{
	rpma_rt_conn_cfg conn = RPMA_RT_CONN_CFG_INIT;
	rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	auto peer = rt::peer::of(address).value();

	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = uint32_t(shard_count);
	auto runtime = rt::runtime::make(cfg).value();
	/* an answer and a write or a read for each request, and KV_BYE */
	conn.sq_size = 2 * WINDOW + 1;
	conn.waiting = RPMA_RT_NO_WAITING;
	conn.keepalive_ms = 2000;
	conn.peer = peer.raw();
	return {.shards = cfg.pollers,
		.clients_max = (clients_max + shard_count - 1) / shard_count,
		.memory = (memory_mib << 20) / shard_count,
		.idle = std::chrono::milliseconds(idle_ms),
		.patience = std::chrono::milliseconds(patience_ms),
		.cfg = conn,
		.peer = peer,
		.runtime = runtime,
		.set = rt::shards::make(runtime).value(),
		.stores = std::vector<store>(shard_count),
		.ready = std::latch(cfg.pollers),
		.drained = std::latch(cfg.pollers)};
}

/* Listens: connections go to the shards in turn, each with the SRQ of the
 * shard. */
static rpma_rt_listener *listen_at(const char *address, const char *port,
				   const server &of, const parts &all)
{
	rpma_rt_conn_cfg cfg = of.cfg;
	rpma_rt_listener *listener = nullptr;
	std::vector<rpma_rt_srq *> srqs;
	uint16_t number = 0;

	for (const auto &one : all)
		srqs.push_back(one->srq.raw());
	of.set.deal(cfg).value();
	cfg.srqs = srqs.data();
	cfg.srq_count = of.shards;
	if (TRY(rpma_rt_listen(of.runtime.raw(), address, port, &cfg,
			       &listener)) ||
	    TRY(rpma_rt_listener_get_port(listener, &number)))
		return nullptr;
	printf("server: %u shards at %s port %u\n", of.shards, address, number);
	fflush(stdout);
	return listener;
}

/* Serves until SIGTERM or SIGINT; then takes no further client, and waits
 * until each request is answered and all clients have left. */
static void serve(const server &of, rpma_rt_listener *listener,
		  const sigset_t &signals)
{
	int signal = 0;

	while (sigwait(&signals, &signal) == 0 && signal == SIGUSR1)
		rpma_rt_dump(of.runtime.raw(), 2, RPMA_RT_DUMP_HUMAN);
	TRY(rpma_rt_listener_delete(&listener));
	of.drained.wait();
}

/* Prints the sums of the counters. */
static void report(const parts &all)
{
	static const char *const names[] = {
		"clients", "refused", "broken", "stuck",  "gets",
		"puts",	   "deletes", "stored", "pulled", "pushed",
		"foreign", "full",    "expired"};
	const char *before = "{";

	for (size_t i = 0; i < sizeof(stats) / sizeof(uint64_t); i++) {
		uint64_t sum = 0;

		for (const auto &one : all)
			sum += reinterpret_cast<const uint64_t *>(
				&one->counts)[i];
		printf("%s\"%s\": %" PRIu64, before, names[i], sum);
		before = ", ";
	}
	puts("}");
}

/* Returns whether all was well, the objects of the shards apart. */
static bool run(server &of, char **argv, const sigset_t &signals)
{
	std::vector<std::thread> threads;
	parts all;

	for (uint32_t i = 0; i < of.shards; i++)
		all.push_back(std::make_unique<part>(of, i));
	if (file && store_load(of.stores.data(), of.shards, file))
		return false;
	for (const auto &one : all)
		threads.emplace_back(&part::run, one.get());
	of.ready.wait();
	auto *listener = listen_at(argv[1], argv[2], of, all);
	if (listener)
		serve(of, listener, signals);
	of.set.stop().value();
	for (auto &thread : threads)
		thread.join();
	if (!listener)
		return false;
	report(all);
	return !file || store_save(of.stores.data(), of.shards, file) == 0;
}

int main(int argc, char **argv)
try {
	sigset_t signals;

	if (!words_read(words, argc, argv))
		return 2;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, nullptr); /* of all threads */
	auto made = make_server(argv[1]);
	return !run(made, argv, signals) || made.has_leaks;
} catch (const rt::failure &why) {
	fprintf(stderr, "server: %s\n", why.what());
	return 1;
}
