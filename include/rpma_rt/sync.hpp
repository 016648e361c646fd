/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sync.hpp: event, semaphore, promise and future, channel: coroutines of any
 * loops and shards, and threads, wait for one another. All of them are one
 * mechanism, a pass: coroutines stand in its line, and a permit lets the first
 * one go on, through the mailbox of its loop. doc/protocols/coroutine.md.
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

/* Permits, and the line of those that wait for one. All fields are under the
 * lock, which is taken before that of a mailbox. Thread: any. */
class pass_core : public shared<pass_core>
{
public:
	/* drains: permits that are left let others pass after close() */
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
	/* Lets all pass until shut(), once fill() is done. False: it is open or
	 * closed already, and fill() was not called. */
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
	void shut() noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		is_open_ = false;
	}
	/* Nobody waits any more: those that do have the error closed. */
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
	/* RPMA_E_AGAIN: there is no permit, or others wait */
	error try_pass() noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		if (waiting_.is_empty() && take())
			return {};
		return is_closed_ ? error::closed(RPMA_RT_REASON_LOCAL)
				  : error::call(RPMA_E_AGAIN);
	}
	/* A thread waits, so long at most; -1: without end. */
	error wait(int timeout_ms) noexcept
	{
		std::unique_lock<std::mutex> guard(lock_);
		const auto may_go = [this] { return may_pass() || is_closed_; };

		if (timeout_ms < 0)
			came_.wait(guard, may_go);
		else if (!came_.wait_for(guard,
					 std::chrono::milliseconds(timeout_ms),
					 may_go))
			return error::timed_out();
		return take() ? error() : error::closed(RPMA_RT_REASON_LOCAL);
	}
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
	std::condition_variable came_; /* for threads */
	link waiting_;
	uint64_t count_;
	bool drains_;
	bool is_open_ = false;
	bool is_closed_ = false;
};

/* A coroutine that waits for a permit, which goes back if nobody uses it. */
class passing : public arrival
{
public:
	passing(passing &&) noexcept = default;
	bool start() noexcept
	{
		return core->enter(*this);
	}
	bool succeeded() const noexcept
	{
		return has_permit;
	}
	/* Its loop has ended: it is not resumed. */
	void go_back() noexcept override
	{
		unlink();
	}

	/* It has the permit: called under the lock, by any thread. */
	virtual void on_permit() noexcept
	{
	}

	ref<pass_core> core;
	std::shared_ptr<mailbox> to; /* nullptr: stands in no line */
	bool is_over = false;	     /* has left the line, under its lock */
	bool has_permit = false;
	bool is_counted = false; /* the permit, of a pass that was not open */

protected:
	explicit passing(ref<pass_core> of) noexcept : core(std::move(of))
	{
	}
	~passing()
	{
		if (has_permit && is_counted)
			core->add(1);
	}
	/* The destructor of each final class begins with this: nobody calls
	 * on_permit() any more. */
	void leave_line() noexcept
	{
		if (to)
			core->leave(*this);
	}
	/* The permit is the caller's; false: there is none. */
	bool take_permit() noexcept
	{
		return std::exchange(has_permit, false);
	}
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

	if (one.is_over)
		one.to->take_back(one);
	else
		one.unlink();
}

inline void pass_core::let_pass() noexcept
{
	while (!waiting_.is_empty() && (may_pass() || is_closed_)) {
		auto &first = static_cast<passing &>(
			static_cast<waiter &>(waiting_.first()));
		const auto to = first.to; /* the lock outlasts the waiter */

		first.unlink();
		first.is_over = true;
		give(first);
		if (to->put(first))
			continue;
		/* the loop has ended, nobody resumes the coroutine */
		count_ += first.has_permit && first.is_counted;
		first.has_permit = false;
	}
	came_.notify_all();
}

/* Gives a T when it has passed: from(core) is called then. */
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
	~passing_to()
	{
		this->leave_line();
	}
	result<T> finish()
	{
		if (!this->take_permit())
			return this->why();
		return from_();
	}
	/* A thread waits in place of a coroutine. */
	result<T> wait(int timeout_ms = -1)
	{
		const error why = this->core->wait(timeout_ms);

		return why ? result<T>(why) : from_();
	}

private:
	From from_;
};

/* A pass that is closed when its owner goes. */
class pass_owner
{
public:
	pass_owner(uint64_t permits, bool drains)
	    : core_(ref<pass_core>::adopt(new pass_core(permits, drains)))
	{
	}
	pass_owner(pass_owner &&) noexcept = default;
	pass_owner &operator=(pass_owner &&other) noexcept
	{
		std::swap(core_, other.core_);
		return *this;
	}
	~pass_owner()
	{
		if (core_)
			core_->close();
	}

protected:
	ref<pass_core> core_;
};

} // namespace detail

/*
 * An event, which is set or not; many wait for it. Waiting: co_await wait(), in
 * a coroutine of any loop or shard; wait().wait(timeout_ms) in a thread: a
 * result<void>. Destroying it ends each wait with the error closed; what waits
 * may be destroyed before. Thread: any.
 */
class event : detail::pass_owner
{
public:
	event() : pass_owner(0, false)
	{
	}
	void set() noexcept
	{
		(void)core_->open([] {});
	}
	void reset() noexcept
	{
		core_->shut();
	}
	bool is_set() const noexcept
	{
		return core_->is_open();
	}
	auto wait() const noexcept
	{
		auto nothing = []() noexcept { return result<void>(); };

		return detail::passing_to<void, decltype(nothing)>(core_,
								   nothing);
	}
};

/* One of a semaphore's permits; given back when it is destroyed. Thread: any,
 * one at a time. */
class permit
{
public:
	permit(permit &&) noexcept = default;
	permit &operator=(permit &&other) noexcept
	{
		std::swap(core_, other.core_);
		return *this;
	}
	~permit()
	{
		if (core_)
			core_->add(1);
	}

private:
	friend class semaphore;
	explicit permit(detail::ref<detail::pass_core> core) noexcept
	    : core_(std::move(core))
	{
	}
	detail::ref<detail::pass_core> core_;
};

/*
 * So many permits; those that wait for one get it in their order. Waiting:
 * co_await acquire(), or acquire().wait(timeout_ms) in a thread: a
 * result<permit>. Destroying the semaphore ends each wait with the error
 * closed; permits may be destroyed later. Thread: any.
 */
class semaphore : detail::pass_owner
{
public:
	explicit semaphore(uint32_t permits) : pass_owner(permits, false)
	{
	}
	auto acquire() const noexcept
	{
		auto own = [core = core_]() noexcept {
			return result<permit>(permit(core));
		};

		return detail::passing_to<permit, decltype(own)>(
			core_, std::move(own));
	}
	/* RPMA_E_AGAIN: no permit is free, or others wait */
	result<permit> try_acquire() const noexcept
	{
		const error why = core_->try_pass();

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
 * The value that a promise will have. Waiting: co_await get(), once, or
 * get().wait(timeout_ms) in a thread: a result<T>, which is the promise's, or
 * the error closed: the promise was destroyed. Thread: the holder's.
 */
template <typename T> class future
{
public:
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
 * A value, or an error, that is set once, for one future. Destroying a promise
 * that was not set ends the wait with the error closed; the future may be
 * destroyed before. Thread: any, one at a time.
 */
template <typename T> class promise : detail::pass_owner
{
public:
	promise()
	    : pass_owner(0, false), of_(detail::ref<detail::promised<T>>::adopt(
					    new detail::promised<T>))
	{
	}
	/* the future of it, for one holder */
	future<T> get_future() const noexcept
	{
		return {core_, of_};
	}
	/* False: it was set before. */
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

/* The items of a channel; permits of two passes say how many there are, and how
 * many more may be. */
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

/* The value is sent with the permit, also where it is given up then. */
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
	~sending_to()
	{
		this->leave_line();
	}
	result<void> finish() noexcept
	{
		if (!this->take_permit())
			return this->why();
		return {};
	}
	/* A thread waits in place of a coroutine. */
	result<void> wait(int timeout_ms = -1) noexcept
	{
		const error why = this->core->wait(timeout_ms);

		if (!why)
			to_channel_->push(std::move(value_));
		return why;
	}

private:
	void on_permit() noexcept override
	{
		this->is_counted = false;
		to_channel_->push(std::move(value_));
	}
	ref<channel_core<T>> to_channel_;
	T value_;
};

} // namespace detail

/*
 * A queue of at most so many items, from any threads to any; copies are the
 * same channel. Waiting: co_await send(value) for room, co_await receive() for
 * an item, or .wait(timeout_ms) of these in a thread. After close(), or when
 * the last copy goes, sends have the error closed, receives behind the last
 * item, too. A receive that is destroyed leaves its item to the next. Thread:
 * any.
 */
template <typename T> class channel
{
public:
	/* a capacity of 0 is 1 */
	explicit channel(uint32_t capacity)
	    : core_(std::make_shared<owner>(capacity))
	{
	}
	/* co_await: result<void>, once the channel has the value */
	auto send(T value) const noexcept
	{
		return detail::sending_to<T>(core_->core, std::move(value));
	}
	/* RPMA_E_AGAIN: there is no room, or others wait */
	result<void> try_send(T value) const
	{
		const error why = core_->core->room->try_pass();

		if (!why)
			core_->core->push(std::move(value));
		return why;
	}
	/* co_await: result<T> */
	auto receive() const
	{
		const auto &core = core_->core;
		auto pop = [core] { return result<T>(core->pop()); };

		return detail::passing_to<T, decltype(pop)>(core->items,
							    std::move(pop));
	}
	void close() const noexcept
	{
		core_->close();
	}

private:
	/* what waits keeps the items, and not the owner */
	struct owner {
		explicit owner(uint32_t capacity)
		    : core(detail::ref<detail::channel_core<T>>::adopt(
			      new detail::channel_core<T>(
				      std::max(capacity, 1u))))
		{
		}
		~owner()
		{
			close();
		}
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
