/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * slots.hpp: coroutines that wait for a free slot of a pool, on any loops. A
 * future of the pool asks for a slot as long as a coroutine waits; the poller
 * hands the slot to the first coroutine, through the mailbox of the coroutine's
 * loop.
 * doc/protocols/coroutine.md.
 */

#ifndef RPMA_RT_SLOTS_HPP
#define RPMA_RT_SLOTS_HPP

#include <condition_variable>
#include <memory>
#include <mutex>

#include <rpma_rt/mailbox.hpp>

namespace rpma::rt
{

namespace detail
{

/* A coroutine in the line: under the lock of the line until the coroutine has a
 * slot or an error. */
struct slot_waiter : queued {
	slot_waiter() noexcept = default;
	slot_waiter(slot_waiter &&) noexcept = default;
	rpma_rt_lease slot{}; /* pool nullptr: no slot */
	error why;

protected:
	~slot_waiter() = default;
};

/* The line of a pool, first come, first served. Thread: any. */
class slot_line
{
public:
	slot_line() = default;
	slot_line(const slot_line &) = delete;
	slot_line &operator=(const slot_line &) = delete;

	void enter(rpma_rt_pool *pool, slot_waiter &last) noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		waiting_.push_back(last);
		ask(pool);
	}
	/* The future stays: a slot that finds an empty line is free again. */
	void leave(slot_waiter &waiter) noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		waiter.leave();
	}
	/* Drops the future, or waits for the poller, where the poller is about
	 * to call on_slot(). The line is empty. */
	void end() noexcept
	{
		std::unique_lock<std::mutex> guard(lock_);

		if (is_asked_ && rpma_rt_future_drop(&asked_) == 0)
			is_asked_ = false;
		over_.wait(guard, [this] { return !is_asked_; });
	}

private:
	/* Asks for a slot, if a coroutine waits and no future has asked. */
	void ask(rpma_rt_pool *pool) noexcept
	{
		const rpma_rt_source from = {nullptr, nullptr, nullptr, pool};

		pool_ = pool;
		while (!is_asked_ && !waiting_.is_empty()) {
			rpma_rt_completion item;
			int ret = rpma_rt_next_future(&from, &asked_);

			if (ret < 0) {
				fail_all(error::call(ret));
				return;
			}
			(void)rpma_rt_future_then(&asked_, on_slot, this);
			is_asked_ = true;
			/* the function is not called after a stop */
			if (rpma_rt_future_poll(&asked_, &item) == 1 &&
			    rpma_rt_future_drop(&asked_) == 0) {
				is_asked_ = false;
				give(item);
			}
		}
	}
	/* The poller. */
	static void on_slot(const rpma_rt_completion *item, void *line) noexcept
	{
		auto &self = *static_cast<slot_line *>(line);
		std::lock_guard<std::mutex> guard(self.lock_);

		(void)rpma_rt_future_drop(&self.asked_);
		self.is_asked_ = false;
		self.give(*item);
		self.ask(self.pool_);
		self.over_.notify_all();
	}
	void give(const rpma_rt_completion &item) noexcept
	{
		rpma_rt_lease slot;

		if (!rpma_rt_completion_lease(&item, &slot)) {
			fail_all(error::closed(item.status));
			return;
		}
		while (!waiting_.is_empty()) {
			auto &first = waiting_.take_first<slot_waiter>();

			first.slot = slot;
			if (first.hand_over())
				return;
			first.slot = {};
		}
		(void)rpma_rt_lease_release(&slot);
	}
	void fail_all(const error &why) noexcept
	{
		while (!waiting_.is_empty()) {
			auto &first = waiting_.take_first<slot_waiter>();

			first.why = why;
			(void)first.hand_over();
		}
	}

	std::mutex lock_;
	std::condition_variable over_; /* is_asked_ is false */
	link waiting_;
	rpma_rt_pool *pool_ = nullptr;
	rpma_rt_future asked_{};
	bool is_asked_ = false; /* on_slot() is called later */
};

} // namespace detail

} // namespace rpma::rt

#endif /* RPMA_RT_SLOTS_HPP */
