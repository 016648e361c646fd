/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mailbox.hpp: the way into a loop from other threads, which use no other part
 * of a loop. doc/protocols/coroutine.md.
 */

#ifndef RPMA_RT_MAILBOX_HPP
#define RPMA_RT_MAILBOX_HPP

#include <atomic>
#include <condition_variable>
#include <mutex>

#include <rpma_rt/task.hpp>

namespace rpma::rt
{

namespace detail
{

/* A waiter that another thread hands to its loop. */
class arrival : public waiter
{
public:
	arrival() noexcept = default;
	arrival(arrival &&) noexcept = default;
	/* Called when the loop has ended and has not taken the arrival. */
	virtual void go_back() noexcept = 0;
	/* Called when the loop takes the arrival, on the loop's thread. */
	virtual void on_taken() noexcept {}

protected:
	~arrival() = default;
};

/* orders the destruction of an arrival and the way back */
inline constinit std::mutex turning_back;

/* Arrivals, until the loop takes them. All fields are under the lock. */
class mailbox
{
public:
	explicit mailbox(rpma_rt_queue *queue) noexcept : queue_(queue) {}
	/* Returns false if the loop has ended. Otherwise the arrival is the
	 * loop's, and may be gone. */
	bool put(arrival &element) noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		if (!queue_)
			return false;
		list_.push_back(element);
		/* release: pairs with the acquire in take() */
		has_some_.store(true, std::memory_order_release);
		rpma_rt_queue_wake(queue_);
		came_.notify_one();
		return true;
	}
	void take_back(arrival &element) noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		element.unlink();
	}
	/* Moves the arrivals to ready. Thread: the loop's. */
	void take(link &ready) noexcept
	{
		/* acquire: pairs with the release in put() */
		if (!has_some_.load(std::memory_order_acquire))
			return;
		std::lock_guard<std::mutex> guard(lock_);

		/* relaxed: under the lock */
		has_some_.store(false, std::memory_order_relaxed);
		while (!list_.is_empty()) {
			auto &first = list_.take_first<arrival>();

			first.on_taken();
			ready.push_back(first);
		}
	}
	/* Waits for an arrival. Thread: the loop's, when no wake of the queue
	 * comes any more. */
	void wait() noexcept
	{
		std::unique_lock<std::mutex> guard(lock_);

		/* relaxed: under the lock */
		came_.wait(guard, [this] {
			return has_some_.load(std::memory_order_relaxed);
		});
	}
	/* Sends arrivals back: the loop has ended. */
	void close() noexcept
	{
		std::lock_guard<std::mutex> guard(turning_back);
		link left;

		{
			std::lock_guard<std::mutex> own(lock_);

			queue_ = nullptr;
			while (!list_.is_empty())
				left.push_back(list_.first());
		}
		while (!left.is_empty())
			left.take_first<arrival>().go_back();
	}

private:
	std::mutex lock_;
	std::condition_variable came_;
	link list_;
	std::atomic<bool> has_some_{false};
	rpma_rt_queue *queue_;
};

/* An arrival in a line, which hands the arrival to the loop: all fields and
 * functions are under the lock of the line. */
class queued : public arrival
{
public:
	queued() noexcept = default;
	queued(queued &&) noexcept = default;
	/* The loop has ended: the coroutine is not resumed. */
	void go_back() noexcept override {}

	std::shared_ptr<mailbox> to; /* nullptr: stands in no line */
	bool is_over = false;	     /* has left the line */

	void leave() noexcept
	{
		if (is_over)
			to->take_back(*this);
		else
			unlink();
	}
	/* Returns false if the loop has ended. Otherwise the arrival may be
	 * gone. */
	bool hand_over() noexcept
	{
		const auto box = to; /* the lock outlasts the arrival */

		is_over = true;
		return box->put(*this);
	}

protected:
	~queued() = default;
};

} // namespace detail

} // namespace rpma::rt

#endif /* RPMA_RT_MAILBOX_HPP */
