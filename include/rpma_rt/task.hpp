/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * task.hpp: lists, what waits for something, and task<T>, a coroutine that
 * begins when it is awaited. Its frame is all that is allocated. All of one
 * thread, the loop's.
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

/* An element of a circular list, or its head; one that is destroyed leaves
 * the list. A copy is in none. */
class link
{
public:
	link() noexcept = default;
	link(const link &) noexcept
	{
	}
	link &operator=(const link &) noexcept
	{
		return *this;
	}
	~link()
	{
		if (is_linked())
			unlink();
	}
	bool is_linked() const noexcept
	{
		return next_ != this;
	}
	void unlink() noexcept
	{
		prev_->next_ = next_;
		next_->prev_ = prev_;
		next_ = prev_ = this;
	}
	/* these are of a head */
	bool is_empty() const noexcept
	{
		return next_ == this;
	}
	link &first() noexcept
	{
		return *next_;
	}
	link &next() noexcept
	{
		return *next_;
	}
	void push_back(link &element) noexcept
	{
		element.unlink();
		element.next_ = this;
		element.prev_ = prev_;
		prev_->next_ = &element;
		prev_ = &element;
	}
	void push_front(link &element) noexcept
	{
		next_->push_back(element);
	}

private:
	link *next_ = this;
	link *prev_ = this;
};

class waiter;

/* Several waiters that something waits for together. */
class group
{
public:
	virtual void on_complete(waiter &member) noexcept = 0;

protected:
	~group() = default;
};

class mailbox;

/* A thread that runs coroutines: those that go on, and those that leave for
 * another loop, when everything that led to their suspension has returned. */
struct context {
	link ready;
	link leaving;
	std::shared_ptr<mailbox>
		mail; /* names the loop, also when that is gone */

	bool is_idle() noexcept
	{
		return ready.is_empty() && leaving.is_empty();
	}
};

/* How many coroutines of a task that loop::run() awaits are on other loops: of
 * the thread of that loop, its home. */
struct absence {
	const mailbox *home;
	uint32_t count = 0;
};

/* the one whose coroutines the thread is running */
inline constinit thread_local context *here = nullptr;

/* What goes on when something is complete: a coroutine, or a group. */
class waiter : public link
{
public:
	waiter() noexcept = default;
	std::coroutine_handle<> handle;
	group *in = nullptr;

	/* Nothing is resumed inside, and no group takes its members back: a
	 * coroutine that calls this goes on, and may be one of them. */
	void complete() noexcept
	{
		if (here)
			here->ready.push_back(*this);
		else
			go_on();
	}
	/* When no coroutine is on the stack. */
	void go_on() noexcept
	{
		if (in)
			in->on_complete(*this);
		else
			handle.resume();
	}
};

class promise_base;
template <typename P>
absence *absence_of(std::coroutine_handle<P> awaiting) noexcept;

/* What has coroutines in it, or may have, is told whose they are. */
template <typename A> void pass(A &to, absence *away) noexcept
{
	if constexpr (requires { to.pass_on(away); })
		to.pass_on(away);
}

/*
 * What can be awaited, by a coroutine or in a group. D has
 *	bool start()		begins; false: it is complete already
 *	R finish()		the result, once it is complete
 *	bool succeeded()	likewise: counts for when_some()
 *	void pass_on(absence *)	if there are coroutines in it: before start()
 * and its destructor takes it back. It is moved before it begins only.
 */
template <typename D, typename Base = waiter> class awaitable : public Base
{
public:
	using Base::Base;
	awaitable() noexcept = default;
	awaitable(awaitable &&) noexcept = default;
	bool await_ready() const noexcept
	{
		return false;
	}
	template <typename P>
	bool await_suspend(std::coroutine_handle<P> awaiting) noexcept
	{
		this->handle = awaiting;
		pass(static_cast<D &>(*this), absence_of(awaiting));
		return static_cast<D *>(this)->start();
	}
	auto await_resume()
	{
		return static_cast<D *>(this)->finish();
	}

protected:
	~awaitable() = default;
};

/* Something with ok() may have failed. */
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
	/* the task object, which is what waits; nullptr: it does not yet */
	waiter *awaiting = nullptr;
	/* of the loop::run() that leads to it, if one does */
	absence *away = nullptr;

	std::suspend_always initial_suspend() noexcept
	{
		return {};
	}
	/*
	 * A task that ends before its start() has returned is found done there.
	 * So a loop over such tasks needs no stack, however it was compiled:
	 * nobody is resumed from here.
	 */
	struct ending {
		bool await_ready() noexcept
		{
			return false;
		}
		template <typename P>
		void await_suspend(std::coroutine_handle<P> ended) noexcept
		{
			if (waiter *waits = ended.promise().awaiting)
				waits->complete();
		}
		void await_resume() noexcept
		{
		}
	};
	ending final_suspend() noexcept
	{
		return {};
	}
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
	bool has_thrown() const noexcept
	{
		return thrown_ != nullptr;
	}

private:
	std::exception_ptr thrown_;
#else
	void unhandled_exception() noexcept
	{
		std::terminate();
	}
	void rethrow()
	{
	}
	bool has_thrown() const noexcept
	{
		return false;
	}
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
	void return_void() noexcept
	{
	}
	void take()
	{
		rethrow();
	}
	bool succeeded() const noexcept
	{
		return !has_thrown();
	}
};

} // namespace detail

/*
 * A coroutine that returns a T. It begins when it is awaited, by another
 * coroutine or by loop::run(). Destroying the object destroys the coroutine,
 * wherever it is suspended.
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

		/* this one, when it is moved to itself */
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
	T finish()
	{
		return frame_.promise().take();
	}
	bool succeeded() const noexcept
	{
		return frame_.promise().succeeded();
	}

private:
	using frame = std::coroutine_handle<promise_type>;
	explicit task(frame f) noexcept : frame_(f)
	{
	}
	frame frame_;
};

} // namespace rpma::rt

#endif /* RPMA_RT_TASK_HPP */
