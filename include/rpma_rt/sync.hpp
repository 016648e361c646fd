/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sync.hpp: event, semaphore, promise and future, channel: coroutines of any
 * loops and shards, and threads, wait for each other. The mechanism of all is a
 * pass: coroutines and threads stand in the line of the pass, and a permit lets
 * the first go on, a coroutine through the mailbox of a loop.
 * doc/protocols/coroutine.md.
 *
 * Everything with wait(timeout_ms) is awaited by coroutines of a loop or shard,
 * and waited for by threads, by wait(): the same result. A thread inside a turn
 * of a loop does not wait.
 */

#ifndef RPMA_RT_SYNC_HPP
#define RPMA_RT_SYNC_HPP

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include <rpma_rt/owner.hpp>

namespace rpma::rt
{

namespace detail
{

class passing;

/* Permits, and the line of coroutines and threads that wait for permits. All
 * fields are under the lock, which is taken before the lock of a mailbox.
 * Thread: any. */
class pass_core : public shared<pass_core>
{
public:
	/* drains: remaining permits let waiters pass after close() */
	pass_core(uint64_t permits, bool drains) noexcept
	    : count_(permits), drains_(drains)
	{
	}
	void add(uint64_t permits) noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		count_ += permits;
		let_pass();
	}
	/* Calls fill(), then lets all pass until shut(). Returns false, without
	 * a call, if the pass is open or closed already. */
	template <typename F> bool open(F fill)
	{
		std::lock_guard<std::mutex> guard(lock_);

		if (is_open_ || is_closed_)
			return false;
		fill();
		is_open_ = true;
		let_pass();
		return true;
	}
	/* Gives a permit back. */
	void give_back() noexcept { add(1); }
	void shut() noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		is_open_ = false;
	}
	/* Ends all waits, also later waits, with the error closed. */
	void close() noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		is_closed_ = true;
		let_pass();
	}
	bool is_open() noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		return is_open_;
	}
	/* Takes a permit, and calls on_permit() under the lock. RPMA_E_AGAIN:
	 * there is no permit, or others wait. */
	template <typename F> error try_pass(F on_permit) noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		if (waiting_.is_empty() && take()) {
			on_permit();
			return {};
		}
		return is_closed_ ? error::closed(RPMA_RT_REASON_LOCAL)
				  : error::call(RPMA_E_AGAIN);
	}
	/* Waits for a permit in a thread, without a limit for -1; calls
	 * on_permit() under the lock, by any thread. */
	template <typename F> error wait(int timeout_ms, F on_permit) noexcept;
	inline bool enter(passing &last) noexcept;
	inline void leave(passing &one) noexcept;

private:
	bool may_pass() const noexcept
	{
		return (!is_closed_ || drains_ || is_open_) &&
		       (is_open_ || count_ > 0);
	}
	bool take() noexcept
	{
		if (!may_pass())
			return false;
		count_ -= !is_open_;
		return true;
	}
	inline void give(passing &to) noexcept;
	inline void let_pass() noexcept;

	std::mutex lock_;
	link waiting_;
	uint64_t count_;
	bool drains_;
	bool is_open_ = false;
	bool is_closed_ = false;
};

/* A coroutine that waits for a permit, and gives an unused permit back. */
class passing : public queued
{
public:
	passing(passing &&) noexcept = default;
	bool start() noexcept { return core->enter(*this); }
	bool succeeded() const noexcept { return has_permit; }

	/* Called when the waiter has the permit, under the lock. */
	virtual void on_permit() noexcept {}
	/* Lets the waiter go on, which has left the line; under the lock.
	 * Returns false if the loop has ended. */
	virtual bool go_on_there() noexcept { return hand_over(); }

	ref<pass_core> core;
	bool has_permit = false;
	bool is_counted = false; /* the permit, of a pass that was not open */

protected:
	explicit passing(ref<pass_core> of) noexcept : core(std::move(of)) {}
	~passing()
	{
		if (has_permit && is_counted)
			core->add(1);
	}
	/* Leaves the line: on_permit() is not called any more. The destructor
	 * of each final class begins with leave_line(). */
	void leave_line() noexcept
	{
		if (to)
			core->leave(*this);
	}
	/* Takes the permit over; returns false without a permit. */
	bool take_permit() noexcept { return std::exchange(has_permit, false); }
	error why() const noexcept
	{
		return to || here ? error::closed(RPMA_RT_REASON_LOCAL)
				  : error::call(RPMA_E_NOSUPP);
	}
};

inline void pass_core::give(passing &to) noexcept
{
	to.is_counted = !is_open_;
	to.has_permit = take();
	if (to.has_permit)
		to.on_permit();
}

inline bool pass_core::enter(passing &last) noexcept
{
	std::lock_guard<std::mutex> guard(lock_);

	if (!here) /* of no loop */
		return false;
	if (waiting_.is_empty())
		give(last);
	if (last.has_permit || is_closed_)
		return false;
	last.to = here->mail;
	waiting_.push_back(last);
	return true;
}

inline void pass_core::leave(passing &one) noexcept
{
	std::lock_guard<std::mutex> guard(lock_);

	one.leave();
}

inline void pass_core::let_pass() noexcept
{
	while (!waiting_.is_empty() && (may_pass() || is_closed_)) {
		auto &first = waiting_.take_first<passing>();

		give(first);
		if (first.go_on_there())
			continue;
		/* the loop has ended: the coroutine is not resumed */
		count_ += first.has_permit && first.is_counted;
		first.has_permit = false;
	}
}

/* A thread in the line, until the wait ends: leave_line() has nothing to do. */
template <typename F> class passing_thread final : public passing
{
public:
	explicit passing_thread(F fn) noexcept
	    : passing(ref<pass_core>()), fn_(std::move(fn))
	{
	}
	void on_permit() noexcept override { fn_(); }
	bool go_on_there() noexcept override
	{
		is_over = true;
		/* under the lock: the thread cannot go before the call ends */
		came_.notify_one();
		return true;
	}
	/* Returns false if the time has passed. */
	bool wait(std::unique_lock<std::mutex> &guard, int timeout_ms)
	{
		const auto may_go = [this] { return is_over; };

		if (timeout_ms >= 0)
			return came_.wait_for(
				guard, std::chrono::milliseconds(timeout_ms),
				may_go);
		came_.wait(guard, may_go);
		return true;
	}
	using passing::take_permit;

private:
	std::condition_variable came_;
	F fn_;
};

template <typename F>
error pass_core::wait(int timeout_ms, F on_permit) noexcept
{
	std::unique_lock<std::mutex> guard(lock_);

	if (waiting_.is_empty() && take()) {
		on_permit();
		return {};
	}
	if (is_closed_)
		return error::closed(RPMA_RT_REASON_LOCAL);
	/* the coroutine that gives the permit may be of the same loop */
	if (here && timeout_ms != 0)
		return error::call(RPMA_RT_E_THREAD);
	passing_thread<F> self(std::move(on_permit));
	waiting_.push_back(self);
	if (!self.wait(guard, timeout_ms)) {
		self.unlink();
		return error::timed_out();
	}
	return self.take_permit() ? error()
				  : error::closed(RPMA_RT_REASON_LOCAL);
}

/* Calls from() behind the pass, which returns a result<T>. */
template <typename T, typename From>
class [[nodiscard]] passing_to final
    : public awaitable<passing_to<T, From>, passing>
{
public:
	passing_to(ref<pass_core> of, From from) noexcept
	    : awaitable<passing_to<T, From>, passing>(std::move(of)),
	      from_(std::move(from))
	{
	}
	passing_to(passing_to &&) noexcept = default;
	~passing_to() { this->leave_line(); }
	result<T> finish()
	{
		if (!this->take_permit())
			return this->why();
		return from_();
	}
	/* Waits in a thread. */
	result<T> wait(int timeout_ms = -1)
	{
		const error why = this->core->wait(timeout_ms, [] {});

		return why ? result<T>(why) : from_();
	}

private:
	From from_;
};

/* Owns a pass, which is closed at the end. */
class pass_owner : public ending_owner<pass_core, &pass_core::close>
{
public:
	pass_owner(uint64_t permits, bool drains)
	    : ending_owner(
		      ref<pass_core>::adopt(new pass_core(permits, drains)))
	{
	}
};

} // namespace detail

/*
 * event: set or not; wait() is complete while the event is set.
 * Owner: the program.
 * Thread: any; destroyed by one thread, while no other thread begins a call.
 * End: ends each wait with the error closed.
 * Errors: wait(): closed; timed_out; RPMA_E_NOSUPP: the coroutine has no loop;
 *         RPMA_RT_E_THREAD: a thread that runs a loop would wait.
 */
class event : detail::pass_owner
{
public:
	event() : pass_owner(0, false) {}
	void set() noexcept
	{
		(void)core_->open([] {});
	}
	void reset() noexcept { core_->shut(); }
	bool is_set() const noexcept { return core_->is_open(); }
	/* co_await, wait(): result<void>. */
	auto wait() const noexcept
	{
		auto nothing = []() noexcept { return result<void>(); };

		return detail::passing_to<void, decltype(nothing)>(core_,
								   nothing);
	}
};

/*
 * permit: a permit of a semaphore.
 * Owner: the program; may be destroyed after the semaphore.
 * Thread: any, one at a time.
 * End: gives the permit to the next waiter, or back.
 * Errors: no function fails.
 */
class permit : public detail::ending_owner<detail::pass_core,
					   &detail::pass_core::give_back>
{
private:
	friend class semaphore;
	explicit permit(detail::ref<detail::pass_core> core) noexcept
	    : ending_owner(std::move(core))
	{
	}
};

/*
 * semaphore: a number of permits, which waiters get in order.
 * Owner: the program.
 * Thread: any; destroyed by one thread, while no other thread begins a call.
 * End: ends each wait with the error closed.
 * Errors: as of event; try_acquire(): RPMA_E_AGAIN.
 */
class semaphore : detail::pass_owner
{
public:
	explicit semaphore(uint32_t permits) : pass_owner(permits, false) {}
	/* co_await, wait(): result<permit>. */
	auto acquire() const noexcept
	{
		auto own = [core = core_]() noexcept {
			return result<permit>(permit(core));
		};

		return detail::passing_to<permit, decltype(own)>(
			core_, std::move(own));
	}
	/* Takes a permit. RPMA_E_AGAIN: no permit is free, or others wait. */
	result<permit> try_acquire() const noexcept
	{
		const error why = core_->try_pass([] {});

		if (why)
			return why;
		return permit(core_);
	}
};

namespace detail
{

template <typename T> struct promised : shared<promised<T>> {
	std::optional<result<T>> value; /* written before the pass opens */
};

} // namespace detail

/*
 * future<T>: the value that a promise will have.
 * Owner: the holder; may be destroyed before or after the promise.
 * Thread: one at a time.
 * End: drops the value.
 * Errors: of the promise; closed: the promise was destroyed; as of event.
 */
template <typename T> class future
{
public:
	/* co_await, wait(): result<T>, once. */
	auto get() noexcept
	{
		auto move = [of = of_] { return std::move(*of->value); };

		return detail::passing_to<T, decltype(move)>(core_,
							     std::move(move));
	}

private:
	template <typename U> friend class promise;
	future(detail::ref<detail::pass_core> core,
	       detail::ref<detail::promised<T>> of) noexcept
	    : core_(std::move(core)), of_(std::move(of))
	{
	}
	detail::ref<detail::pass_core> core_;
	detail::ref<detail::promised<T>> of_;
};

/*
 * promise<T>: a value, or an error, that is set once, for a single future.
 * Owner: the program; may be destroyed before or after the future.
 * Thread: any, one at a time.
 * End: without a value, ends the wait with the error closed.
 * Errors: set() returns false if the value was set before.
 */
template <typename T> class promise : detail::pass_owner
{
public:
	promise()
	    : pass_owner(0, false), of_(detail::ref<detail::promised<T>>::adopt(
					    new detail::promised<T>))
	{
	}
	/* Returns the future, for a single holder. */
	future<T> get_future() const noexcept { return {core_, of_}; }
	/* Sets the value; returns false if the value was set before. */
	bool set(result<T> value)
	{
		return core_->open(
			[&] { of_->value.emplace(std::move(value)); });
	}

private:
	detail::ref<detail::promised<T>> of_;
};

namespace detail
{

/* The items of a channel; the permits of two passes count the items, and the
 * free places. */
template <typename T> struct channel_core : shared<channel_core<T>> {
	static_assert(std::is_nothrow_move_constructible_v<T>);
	explicit channel_core(uint32_t capacity)
	    : items(ref<pass_core>::adopt(new pass_core(0, true))),
	      room(ref<pass_core>::adopt(new pass_core(capacity, false))),
	      slots_(new std::optional<T>[capacity]), capacity_(capacity)
	{
	}
	void push(T &&value) noexcept
	{
		{
			std::lock_guard<std::mutex> guard(lock_);

			slots_[(first_ + count_++) % capacity_].emplace(
				std::move(value));
		}
		items->add(1);
	}
	T pop() noexcept
	{
		std::unique_lock<std::mutex> guard(lock_);
		auto &slot = slots_[first_];
		T value = std::move(*slot);

		slot.reset();
		first_ = (first_ + 1) % capacity_;
		count_--;
		guard.unlock();
		room->add(1);
		return value;
	}
	const ref<pass_core> items;
	const ref<pass_core> room;

private:
	std::mutex lock_;
	std::unique_ptr<std::optional<T>[]> slots_;
	uint32_t first_ = 0;
	uint32_t count_ = 0;
	const uint32_t capacity_;
};

/* A wait for room. The value is sent with the permit, under the lock, also if
 * the waiter gives up, or the channel is closed, at the same time. */
template <typename T>
class [[nodiscard]] sending_to final : public awaitable<sending_to<T>, passing>
{
public:
	sending_to(ref<channel_core<T>> items, T &&value) noexcept
	    : awaitable<sending_to<T>, passing>(items->room),
	      to_channel_(std::move(items)), value_(std::move(value))
	{
	}
	sending_to(sending_to &&) noexcept = default;
	~sending_to() { this->leave_line(); }
	result<void> finish() noexcept
	{
		if (!this->take_permit())
			return this->why();
		return {};
	}
	/* Waits in a thread. */
	result<void> wait(int timeout_ms = -1) noexcept
	{
		return this->core->wait(timeout_ms, [this] { push(); });
	}

private:
	void push() noexcept { to_channel_->push(std::move(value_)); }
	void on_permit() noexcept override
	{
		this->is_counted = false;
		push();
	}
	ref<channel_core<T>> to_channel_;
	T value_;
};

} // namespace detail

/*
 * channel<T>: a queue of at most capacity values.
 * Owner: copies are the same channel.
 * Thread: any.
 * End: the last copy closes the channel.
 * Errors: closed: sends after close(), receives behind the last value; as of
 *         event; try_send(): RPMA_E_AGAIN.
 */
template <typename T> class channel
{
public:
	/* Makes a channel; a capacity of 0 is 1. */
	explicit channel(uint32_t capacity)
	    : core_(std::make_shared<owner>(capacity))
	{
	}
	/* co_await, wait(): result<void>, once the channel has the value. */
	auto send(T value) const noexcept
	{
		return detail::sending_to<T>(core_->core, std::move(value));
	}
	/* Sends without a wait. RPMA_E_AGAIN: no room, or others wait. */
	result<void> try_send(T value) const
	{
		/* under the lock: a close comes before the permit, or after the
		 * value */
		return core_->core->room->try_pass(
			[&] { core_->core->push(std::move(value)); });
	}
	/* co_await, wait(): result<T>. */
	auto receive() const
	{
		const auto &core = core_->core;
		auto pop = [core] { return result<T>(core->pop()); };

		return detail::passing_to<T, decltype(pop)>(core->items,
							    std::move(pop));
	}
	void close() const noexcept { core_->close(); }

private:
	/* waiters keep the items, and not the owner */
	struct owner {
		explicit owner(uint32_t capacity)
		    : core(detail::ref<detail::channel_core<T>>::adopt(
			      new detail::channel_core<T>(
				      std::max(capacity, 1u))))
		{
		}
		~owner() { close(); }
		void close() const noexcept
		{
			core->room->close();
			core->items->close();
		}
		const detail::ref<detail::channel_core<T>> core;
	};
	std::shared_ptr<owner> core_;
};

} // namespace rpma::rt

#endif /* RPMA_RT_SYNC_HPP */
