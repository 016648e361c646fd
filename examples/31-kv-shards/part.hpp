/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * part.hpp: the part of a shard: the values of the keys that the shard has, and
 * the clients whose connections the shard has. A request for a key of another
 * shard travels between the two shards; each request belongs to a single shard
 * at each moment. Nothing else is shared.
 */

#ifndef EXAMPLES_KV_SHARDS_PART_HPP
#define EXAMPLES_KV_SHARDS_PART_HPP

#include <array>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <rpma_rt.hpp>

extern "C" {
#include "../common/kv_protocol.h"
#include "../common/kv_store.h"
}

#define WINDOW 16 /* requests of a client without an answer */

namespace rt = rpma::rt;

/* Settings, and the objects of all shards; constant while the shards run. */
struct server {
	uint32_t shards;
	uint64_t clients_max; /* of a shard */
	size_t memory;	      /* bytes for the values of a shard */
	/* silence allowed: idle clients, and clients that owe something */
	std::chrono::milliseconds idle, patience;
	rpma_rt_conn_cfg cfg; /* of connections */
	rt::peer peer;
	rt::runtime runtime;
	rt::shards set;
	std::vector<store> stores; /* of each shard */
	std::latch ready, drained; /* counted by each shard */
	bool has_leaks = false;
};

struct stats {
	uint64_t clients, refused, broken, stuck; /* connections */
	uint64_t gets, puts, deletes, stored, pulled, pushed;
	uint64_t foreign, full, expired;
};

struct client;
struct job;

/* What the shard that has the key does for a request. */
enum step : uint32_t { APPLY, STORE, RELEASE };

struct part {
	part(server &of, uint32_t number);
	~part();
	/* Runs the shard until the set is stopped. */
	void run();
	/* Does a step for a request, as the shard that has the key. */
	void perform(step what, job &of) noexcept;
	/* Has the shard do the step that has the key; false: stopped. */
	rt::task<bool> at_owner(step what, job &of);

	server &all;
	const uint32_t index;
	struct arena arena;
	store &values;
	rt::pool pool; /* slots for messages, each way */
	rt::shared_receive_queue srq;
	rt::memory bye; /* bye_bytes: all clients get the same */
	std::array<uint8_t, KV_MESSAGE> bye_bytes;
	std::optional<rt::shard> shard; /* while the thread runs */
	std::set<client *> clients;
	stats counts = {};
	bool is_draining = false;

	void leave_if_drained()
	{
		if (is_draining && clients.empty())
			all.drained.count_down();
	}
	rt::task<void> take_items();
	rt::task<void> serve_shards();
	rt::task<void> sweep();
	void greet(const rpma_rt_completion &item);
	void get(job &of) noexcept;
	void put(job &of) noexcept;
	void keep(job &of) noexcept;
};

#endif /* EXAMPLES_KV_SHARDS_PART_HPP */
