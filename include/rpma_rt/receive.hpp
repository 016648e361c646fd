/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * receive.hpp: receives that connections share, and lists of messages that
 * nobody has taken yet.
 */

#ifndef RPMA_RT_RECEIVE_HPP
#define RPMA_RT_RECEIVE_HPP

#include <cstdint>
#include <optional>

#include <rpma_rt/owner.hpp>

namespace rpma::rt
{

namespace detail
{

/* What the receives of a connection come from; it stays as long as the
 * connection. */
struct receives {
	ref<pool_core> pool;
	ref<srq_core> shared;
};

/* Messages of a connection that nobody has taken yet, in order. */
class message_list
{
public:
	bool is_empty() const noexcept
	{
		return count_ == 0;
	}
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
 * Receives that the connections of one poller share, from a pool. Connections
 * of a loop await their own messages; the messages of all connections without a
 * loop are one stream, of which next() is the next. Copies are the same object;
 * it stays as long as connections and listeners that were made with it. Thread:
 * any.
 */
class shared_receive_queue
{
public:
	/* Of cfg the peer, pool, queue and refill are not used. cfg.futures 0:
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
			cfg.srq_size = detail::access::core(messages)->receives;
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
	result<next_future<message>> next() const
	{
		return detail::access::ask<message>(
			core_->rt, {nullptr, nullptr, raw(), nullptr},
			{core_->pool});
	}
	rpma_rt_srq *raw() const noexcept
	{
		return core_->raw;
	}

private:
	shared_receive_queue()
	    : core_(detail::ref<detail::srq_core>::adopt(new detail::srq_core))
	{
	}
	friend detail::access;
	detail::ref<detail::srq_core> core_;
};

} // namespace rpma::rt

#endif /* RPMA_RT_RECEIVE_HPP */
