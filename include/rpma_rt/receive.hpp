/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * receive.hpp: receives that connections share, and lists of unread messages.
 */

#ifndef RPMA_RT_RECEIVE_HPP
#define RPMA_RT_RECEIVE_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

#include <rpma_rt/owner.hpp>

namespace rpma::rt
{

namespace detail
{

/* The sources of a connection's receives; a connection keeps both. */
struct receives {
	ref<pool_core> pool;
	ref<srq_core> shared;
};

/* Unread messages of a connection, in order. */
class message_list
{
public:
	bool is_empty() const noexcept { return count_ == 0; }
	void push_back(pool_core &pool, slot_of_pool &message) noexcept
	{
		if (count_++ == 0)
			first_ = message.raw.slot;
		else
			pool.slots[last_].next = message.raw.slot;
		last_ = message.raw.slot;
	}
	void push_front(slot_of_pool &message) noexcept
	{
		message.next = first_;
		if (count_++ == 0)
			last_ = message.raw.slot;
		first_ = message.raw.slot;
	}
	slot_of_pool *pop_front(pool_core &pool) noexcept
	{
		auto *first = &pool.slots[first_];

		first_ = first->next;
		count_--;
		return first;
	}

private:
	uint32_t first_ = 0;
	uint32_t last_ = 0;
	uint32_t count_ = 0;
};

} // namespace detail

/*
 * shared_receive_queue: receives, from a pool, that connections share.
 * Owner: copies are the same queue; connections and listeners count as copies.
 * Thread: any.
 * End: the last copy ends the queue and the futures of next().
 * Errors: of rpma_rt_srq_new(); next(): RPMA_RT_E_BUSY.
 */
class shared_receive_queue : public detail::owner<detail::srq_core>
{
public:
	/* Makes a queue; peer, pool, queue and refill of cfg are not used.
	 * srq_size 0: the pool's receives, divided by the pollers; futures 0:
	 * as many as srq_size. */
	static result<shared_receive_queue>
	make(const runtime &rt, const peer &p, const pool &messages,
	     rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT)
	{
		shared_receive_queue made;

		cfg.peer = p.raw();
		cfg.pool = messages.raw();
		cfg.queue = nullptr;
		cfg.refill = nullptr;
		if (cfg.srq_size == 0)
			cfg.srq_size = std::max(
				1u, detail::access::core(messages)->receives /
					    detail::access::core(rt)->pollers);
		if (cfg.futures == 0)
			cfg.futures = cfg.srq_size;
		made.core_->rt = detail::access::core(rt);
		made.core_->peer = detail::access::core(p);
		made.core_->pool = detail::access::core(messages);
		int ret = rpma_rt_srq_new(rt.raw(), &cfg, &made.core_->raw);
		if (ret < 0)
			return error::call(ret);
		return made;
	}
	/* Returns a future of the next message of all connections without a
	 * loop. */
	result<next_future<message>> next() const
	{
		return detail::access::ask<message>(
			core_->rt, {nullptr, nullptr, raw(), nullptr},
			{core_->pool});
	}

private:
	shared_receive_queue() = default;
};

} // namespace rpma::rt

#endif /* RPMA_RT_RECEIVE_HPP */
