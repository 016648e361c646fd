/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * error.hpp: why something failed, and results that are a value or an error.
 */

#ifndef RPMA_RT_ERROR_HPP
#define RPMA_RT_ERROR_HPP

#include <rpma_rt.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

/* Functions of each message, which compilers would call for their size; and
 * functions that would make the former large. */
#define RPMA_RT_HOT  __attribute__((always_inline))
#define RPMA_RT_COLD __attribute__((noinline, cold))

namespace rpma::rt
{

enum class errc : uint8_t {
	none = 0,
	call = 1,	/* a call was refused: code() */
	not_posted = 2, /* the operation has not begun: code() */
	failed = 3,	/* an operation was posted: status() */
	unknown = 4,	/* an operation was posted, the outcome is not known */
	closed = 5,	/* connection or listener ended: reason() */
	timed_out = 6,
	unanswered = 7 /* the shard that had the request was destroyed */
};

/*
 * error: says why something failed.
 * Owner: plain data; copies are independent.
 * Thread: one at a time for each object.
 * End: frees nothing.
 * Errors: no call fails; an empty error converts to false.
 */
class error
{
public:
	error() = default;
	static error call(int code) noexcept { return {errc::call, 0, code}; }
	static error not_posted(int code) noexcept
	{
		return {errc::not_posted, 0, code};
	}
	static error closed(uint8_t reason) noexcept
	{
		return {errc::closed, reason, RPMA_RT_E_CLOSED};
	}
	static error unknown() noexcept
	{
		return {errc::unknown, IBV_WC_GENERAL_ERR, RPMA_RT_E_FAILED};
	}
	static error timed_out() noexcept
	{
		return {errc::timed_out, 0, RPMA_E_AGAIN};
	}
	static error unanswered() noexcept
	{
		return {errc::unanswered, 0, RPMA_RT_E_FAILED};
	}
	/* Returns an empty error if the operation succeeded. */
	static error of(const rpma_rt_completion &item) noexcept
	{
		if (item.status == IBV_WC_SUCCESS)
			return {};
		return {item.flags & RPMA_RT_C_SYNTHESIZED ? errc::unknown
							   : errc::failed,
			item.status, RPMA_RT_E_FAILED};
	}
	explicit operator bool() const noexcept { return word_ != 0; }
	errc what() const noexcept { return static_cast<errc>(word_ & 0xff); }
	/* Returns RPMA_E_*, RPMA_RT_E_*; 0 without an error. */
	int code() const noexcept { return static_cast<int>(word_ >> 32); }
	ibv_wc_status status() const noexcept
	{
		return what() == errc::failed || what() == errc::unknown
			       ? static_cast<ibv_wc_status>(detail())
			       : IBV_WC_SUCCESS;
	}
	rpma_rt_reason reason() const noexcept
	{
		return what() == errc::closed
			       ? static_cast<rpma_rt_reason>(detail())
			       : RPMA_RT_REASON_LOCAL;
	}
	std::string text() const
	{
		switch (what()) {
		case errc::none:
			return "no error";
		case errc::call:
			return rpma_rt_err_2str(code());
		case errc::not_posted:
			return std::string("not posted: ") +
			       rpma_rt_err_2str(code());
		case errc::failed:
			return std::string("failed: ") +
			       rpma_rt_status_2str(status());
		case errc::unknown:
			return "posted, with an unknown outcome";
		case errc::closed:
			return std::string("closed: ") +
			       rpma_rt_reason_2str(reason());
		case errc::timed_out:
			return "timed out";
		case errc::unanswered:
			break;
		}
		return "not answered: the shard that had it has ended";
	}

private:
	error(errc what, uint8_t detail, int code) noexcept
	    : word_(uint64_t(static_cast<uint32_t>(code)) << 32 |
		    uint32_t(detail) << 8 | static_cast<uint8_t>(what))
	{
	}
	uint8_t detail() const noexcept
	{
		return static_cast<uint8_t>(word_ >> 8);
	}
	/* what, detail and code from below: a word is written and copied
	 * without a stall between bytes and words; 0: no error */
	uint64_t word_ = 0;
};

/*
 * failure: carries an error as an exception, thrown by value().
 * Owner: the exception; copies are independent.
 * Thread: the thread that catches the exception.
 * End: frees the text.
 * Errors: error() returns the error.
 */
class failure : public std::runtime_error
{
public:
	explicit failure(const rt::error &why)
	    : std::runtime_error(why.text()), why_(why)
	{
	}
	const rt::error &error() const noexcept { return why_; }

private:
	rt::error why_;
};

namespace detail
{
[[noreturn]] inline void fail(const error &why)
{
#ifdef __cpp_exceptions
	throw failure(why);
#else
	(void)why;
	std::abort();
#endif
}
} // namespace detail

/*
 * result<T>: has a value, or the error that says why the value is missing.
 * Owner: owns the value; value() && moves the value out.
 * Thread: one at a time for each object.
 * End: destroys the value.
 * Errors: value() of a failed result throws a failure.
 */
template <typename T> class [[nodiscard]] result
{
public:
	using value_type = T;
	result(T value) : value_(std::move(value)) {}
	result(const rt::error &why) noexcept : error_(why) {}
	bool ok() const noexcept { return value_.has_value(); }
	explicit operator bool() const noexcept { return ok(); }
	const rt::error &error() const noexcept { return error_; }
	T &operator*() noexcept { return *value_; }
	T *operator->() noexcept { return &*value_; }
	T value() &&
	{
		if (!ok())
			detail::fail(error_);
		return std::move(*value_);
	}
	T &value() &
	{
		if (!ok())
			detail::fail(error_);
		return *value_;
	}

private:
	std::optional<T> value_;
	rt::error error_;
};

namespace detail
{

/* Says whether an operation or a call without a value succeeded. */
class verdict
{
public:
	verdict() noexcept = default;
	verdict(const rt::error &why) noexcept : error_(why) {}
	bool ok() const noexcept { return !error_; }
	explicit operator bool() const noexcept { return ok(); }
	const rt::error &error() const noexcept { return error_; }

protected:
	void check() const
	{
		if (!ok())
			fail(error_);
	}

private:
	rt::error error_;
};

} // namespace detail

template <> class [[nodiscard]] result<void> : public detail::verdict
{
public:
	using value_type = void;
	using verdict::verdict;
	void value() const { check(); }
};

namespace detail
{

/* Makes a result of what a call returned: 0 or an error. */
inline result<void> result_of_call(int ret) noexcept
{
	return ret < 0 ? result<void>(error::call(ret)) : result<void>();
}

} // namespace detail

} // namespace rpma::rt

#endif /* RPMA_RT_ERROR_HPP */
