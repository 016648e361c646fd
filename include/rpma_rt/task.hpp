/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * task.hpp: lists, waiters, and task<T>, a coroutine that begins when the task
 * is awaited. Only the frame of the coroutine is allocated. Thread: the loop's.
 */

#ifndef RPMA_RT_TASK_HPP
#define RPMA_RT_TASK_HPP

#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <rpma_rt/error.hpp>

namespace rpma::rt
{

namespace detail
{

/* An element of a circular list, or the head of a list. A destroyed element
 * leaves the list; a copy is in no list. */
class link
{
public:
	link() noexcept : next_(this), prev_(this) {}
	link(const link &) noexcept : link() {}
	link &operator=(const link &) noexcept { return *this; }
	RPMA_RT_HOT ~link()
	{
		if (is_linked()) [[unlikely]]
			unlink();
	}
	bool is_linked() const noexcept { return next_ != this; }
	void unlink() noexcept
	{
		if (!is_linked())
			return;
		prev_->next_ = next_;
		next_->prev_ = prev_;
		next_ = this;
	}
	/* The functions from here on are for the head of a list. */
	bool is_empty() const noexcept { return next_ == this; }
	link &first() noexcept { return *next_; }
	link &next() noexcept { return *next_; }
	/* Takes the first element, which is a T, out of the list. */
	template <typename T> T &take_first() noexcept
	{
		link *taken = next_;

		next_ = taken->next_;
		next_->prev_ = this;
		taken->next_ = taken;
		return static_cast<T &>(*taken);
	}
	void push_back(link &element) noexcept
	{
		element.unlink();
		push_new(element);
	}
	/* Appends an element that is in no list. */
	RPMA_RT_HOT void push_new(link &element) noexcept
	{
		link *const last = prev_;

		/* in this order two stores of a word: a pair would first be put
		 * together in a wide register */
		element.next_ = this;
		last->next_ = &element;
		element.prev_ = last;
		prev_ = &element;
	}
	void push_front(link &element) noexcept { next_->push_back(element); }

protected:
	/* Makes an element that is never the head of a list. */
	struct no_head {
	};
	RPMA_RT_HOT explicit link(no_head) noexcept : next_(this) {}

private:
	link *next_;
	link *prev_; /* of an element in no list: not used */
};

class waiter;

/* Waiters with a common owner, which learns of each complete waiter. */
class group
{
public:
	virtual void on_complete(waiter &member) noexcept = 0;

protected:
	~group() = default;
};

class mailbox;

/* Leases whose sends are complete, which go back together. */
class finished : public link
{
public:
	virtual void give_back() noexcept = 0;

protected:
	~finished() = default;
};

/* A thread that runs coroutines. Coroutines in ready go on; coroutines in
 * leaving go to another loop, when all calls that led to the suspension have
 * returned. Leases in done go back at the end of the turn, shortly before the
 * poller posts receives into the slots, or when a pool has no slot. */
struct context {
	link ready;
	link leaving;
	link done;
	/* The loop was destroyed by a coroutine that runs. Only coroutines that
	 * await this coroutine go on. */
	bool is_left = false;
	/* changes with each coroutine that becomes ready or is to leave while
	 * coroutines run, and with is_left */
	uint32_t changes = 0;
	std::shared_ptr<mailbox> mail; /* names the loop, also a dead loop */

	void add_ready(link &element) noexcept
	{
		changes++;
		ready.push_back(element);
	}
	void add_leaving(link &element) noexcept
	{
		changes++;
		leaving.push_back(element);
	}
	bool is_idle() noexcept
	{
		return ready.is_empty() && leaving.is_empty();
	}
	/* Returns whether there were leases. */
	bool give_back() noexcept
	{
		const bool has_some = !done.is_empty();

		while (!done.is_empty())
			done.take_first<finished>().give_back();
		return has_some;
	}
};

/* Counts the coroutines on other loops of a task that loop::run() awaits.
 * Thread: the thread of the loop, which is the home. */
struct absence {
	const mailbox *home;
	uint32_t count = 0;
};

/* the context whose coroutines the calling thread is running */
inline constinit thread_local context *here = nullptr;

/* A coroutine, or a member of a group, that waits for a completion. */
class waiter : public link
{
public:
	RPMA_RT_HOT waiter() noexcept : link(no_head()) {}
	/* A copy waits for nothing so far: a waiter is moved only before the
	 * waiter is told where to go on. */
	RPMA_RT_HOT waiter(const waiter &) noexcept : waiter() {}
	waiter &operator=(const waiter &) noexcept = delete;

	/* The waiter goes on with the coroutine, or tells the group. */
	RPMA_RT_HOT void leads_to(std::coroutine_handle<> awaiting) noexcept
	{
		to_ = awaiting.address();
	}
	void leads_to(group *in) noexcept
	{
		to_ = reinterpret_cast<char *>(in) + IS_GROUP;
	}
	/* Marks the waiter as complete. Resumes no coroutine inside, and no
	 * group takes members back inside: the caller may be such a coroutine
	 * or member. */
	void complete() noexcept
	{
		if (here)
			here->add_ready(*this);
		else
			go_on();
	}
	/* Resumes the coroutine. No other coroutine is on the stack. */
	RPMA_RT_HOT void go_on() noexcept
	{
		if (reinterpret_cast<uintptr_t>(to_) & IS_GROUP) [[unlikely]]
			tell_group();
		else
			std::coroutine_handle<>::from_address(to_).resume();
	}

private:
	/* in an address of a group, which is even, as of a coroutine */
	static constexpr uintptr_t IS_GROUP = 1;
	RPMA_RT_COLD void tell_group() noexcept
	{
		reinterpret_cast<group *>(static_cast<char *>(to_) - IS_GROUP)
			->on_complete(*this);
	}
	void *to_; /* set before the waiter waits */
};

/* Takes all waiters out of a list and completes each. */
inline void complete_all(link &waiters) noexcept
{
	while (!waiters.is_empty())
		waiters.take_first<waiter>().complete();
}

class promise_base;
template <typename P>
absence *absence_of(std::coroutine_handle<P> awaiting) noexcept;

/* Passes the absence on to an awaitable that contains coroutines. */
template <typename A> void pass(A &to, absence *away) noexcept
{
	if constexpr (requires { to.pass_on(away); })
		to.pass_on(away);
}

/*
 * Base of everything that a coroutine or a group can await. D has
 *	bool start()		begins; false: already complete
 *	R finish()		returns the result, once complete
 *	bool succeeded()	counts for when_some(), once complete
 *	void pass_on(absence *)	if D contains coroutines: before start()
 * and the destructor of D ends the wait. D is moved only before start().
 */
template <typename D, typename Base = waiter> class awaitable : public Base
{
public:
	using Base::Base;
	awaitable() noexcept = default;
	awaitable(awaitable &&) noexcept = default;
	bool await_ready() const noexcept { return false; }
	template <typename P>
	RPMA_RT_HOT bool
	await_suspend(std::coroutine_handle<P> awaiting) noexcept
	{
		this->leads_to(awaiting);
		pass(static_cast<D &>(*this), absence_of(awaiting));
		return static_cast<D *>(this)->start();
	}
	RPMA_RT_HOT auto await_resume()
	{
		return static_cast<D *>(this)->finish();
	}

protected:
	RPMA_RT_HOT ~awaitable() = default;
};

/* Returns ok() of a value that has ok(), otherwise true. */
template <typename T> bool is_success(const T &value) noexcept
{
	if constexpr (requires { value.ok(); })
		return value.ok();
	else
		return true;
}

class promise_base
{
public:
	/* the task object that waits; nullptr: no wait has begun */
	waiter *awaiting = nullptr;
	/* of the loop::run() that leads to the coroutine; or nullptr */
	absence *away = nullptr;

	std::suspend_always initial_suspend() noexcept { return {}; }
	/*
	 * Completes the waiter. A task that ends before start() has returned
	 * has no waiter yet: start() finds the task done. So a loop over such
	 * tasks needs no stack, with any compiler: no coroutine is resumed from
	 * here.
	 */
	struct ending {
		bool await_ready() noexcept { return false; }
		template <typename P>
		void await_suspend(std::coroutine_handle<P> ended) noexcept
		{
			if (waiter *waits = ended.promise().awaiting)
				waits->complete();
		}
		void await_resume() noexcept {}
	};
	ending final_suspend() noexcept { return {}; }
#ifdef __cpp_exceptions
	void unhandled_exception() noexcept
	{
		thrown_ = std::current_exception();
	}
	void rethrow()
	{
		if (thrown_)
			std::rethrow_exception(std::exchange(thrown_, nullptr));
	}
	bool has_thrown() const noexcept { return thrown_ != nullptr; }

private:
	std::exception_ptr thrown_;
#else
	void unhandled_exception() noexcept { std::terminate(); }
	void rethrow() {}
	bool has_thrown() const noexcept { return false; }
#endif
};

template <typename P>
absence *absence_of(std::coroutine_handle<P> awaiting) noexcept
{
	if constexpr (std::is_base_of_v<promise_base, P>)
		return awaiting.promise().away;
	else
		return nullptr;
}

template <typename T> class promise_of : public promise_base
{
public:
	template <typename U> void return_value(U &&value)
	{
		value_.emplace(std::forward<U>(value));
	}
	T take()
	{
		rethrow();
		return std::move(*value_);
	}
	bool succeeded() const noexcept
	{
		return !has_thrown() && is_success(*value_);
	}

private:
	std::optional<T> value_;
};

template <> class promise_of<void> : public promise_base
{
public:
	void return_void() noexcept {}
	void take() { rethrow(); }
	bool succeeded() const noexcept { return !has_thrown(); }
};

} // namespace detail

/*
 * task<T>: a coroutine that returns a T and begins when the task is awaited.
 * Owner: the task object owns the coroutine and the frame.
 * Thread: the loop's; not destroyed while the coroutine is on another loop.
 * End: destroys the coroutine, wherever the coroutine is suspended.
 * Errors: an exception of the coroutine is thrown where the task is awaited.
 */
template <typename T = void>
class [[nodiscard]] task : public detail::awaitable<task<T>>
{
public:
	class promise_type : public detail::promise_of<T>
	{
	public:
		task get_return_object() noexcept
		{
			return task(frame::from_promise(*this));
		}
	};

	task(task &&other) noexcept
	    : frame_(std::exchange(other.frame_, nullptr))
	{
	}
	task &operator=(task &&other) noexcept
	{
		auto former = std::exchange(
			frame_, std::exchange(other.frame_, nullptr));

		/* a task that is moved to itself keeps the frame */
		if (former && former != frame_)
			former.destroy();
		return *this;
	}
	~task()
	{
		if (frame_)
			frame_.destroy();
	}
	void pass_on(detail::absence *away) noexcept
	{
		frame_.promise().away = away;
	}
	bool start() noexcept
	{
		frame_.resume();
		if (frame_.done())
			return false;
		frame_.promise().awaiting = this;
		return true;
	}
	T finish() { return frame_.promise().take(); }
	bool succeeded() const noexcept { return frame_.promise().succeeded(); }

private:
	using frame = std::coroutine_handle<promise_type>;
	explicit task(frame f) noexcept : frame_(f) {}
	frame frame_;
};

} // namespace rpma::rt

#endif /* RPMA_RT_TASK_HPP */
