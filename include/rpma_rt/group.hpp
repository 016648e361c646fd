/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * group.hpp: several awaitables at once, in the frame of the coroutine that
 * awaits: all, any, or a number that succeeds. rpma_rt_cpp_when_all(7).
 */

#ifndef RPMA_RT_GROUP_HPP
#define RPMA_RT_GROUP_HPP

#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <rpma_rt/task.hpp>

namespace rpma::rt
{

namespace detail
{

template <typename... A> class some;

/* the result of awaiting an A; std::monostate for void */
template <typename A>
using raw_result_of = decltype(std::declval<A &>().finish());
template <typename A>
using result_of = std::conditional_t<std::is_void_v<raw_result_of<A>>,
				     std::monostate, raw_result_of<A>>;

/* Returns the waiter of an awaitable; nullptr: complete without a wait. */
template <typename A> waiter *waiter_of(A &member) noexcept
{
	if constexpr (requires { member.waits(); })
		return member.waits();
	else
		return &member;
}

/* Lets a group learn that the awaitable is complete. */
template <typename A> void join(A &member, group *in) noexcept
{
	if (waiter *waits = waiter_of(member))
		waits->leads_to(in);
}

template <typename A> result_of<A> finish(A &member)
{
	if constexpr (std::is_void_v<raw_result_of<A>>) {
		member.finish();
		return {};
	} else {
		return member.finish();
	}
}

/* Returns the error of a result that has error(), otherwise no error. */
template <typename T> error error_of(const T &value) noexcept
{
	if constexpr (requires { value.error(); })
		return value.error();
	else
		return {};
}

} // namespace detail

/*
 * some_of: the results of the complete members of when_any(), when_some().
 * Owner: owns the results.
 * Thread: one at a time.
 * End: destroys the results.
 * Errors: error() says why ok() is false.
 */
template <typename... R> class [[nodiscard]] some_of
{
public:
	some_of() noexcept = default;
	some_of(const rt::error &why) noexcept : why_(why) {}
	/* the first complete member, or the member that decided */
	size_t index = 0;
	size_t succeeded = 0;
	/* Returns whether as many members as wanted have succeeded. */
	bool ok() const noexcept { return is_enough_; }
	explicit operator bool() const noexcept { return is_enough_; }
	/* Returns the error of the member that decided; timed_out of
	 * loop::within(); RPMA_E_INVAL: fewer members than wanted. */
	const rt::error &error() const noexcept { return why_; }
	/* Returns the result of a member; nullptr: the member was taken back,
	 * or threw while enough others have succeeded. */
	template <size_t I> auto *get() noexcept
	{
		auto &result = std::get<I>(results_);

		return result ? &*result : nullptr;
	}

private:
	template <typename... A> friend class detail::some;
	std::tuple<std::optional<R>...> results_;
	bool is_enough_ = false;
	rt::error why_;
};

namespace detail
{

/* The members, with the number of complete members. */
template <typename D, typename... A> class members : public awaitable<D>, group
{
public:
	/* enough: the number of complete, or succeeded, members that decides */
	members(size_t enough, bool counts_success, A &&...member) noexcept
	    : members_(std::optional<A>(std::move(member))...), enough_(enough),
	      counts_success_(counts_success)
	{
	}
	members(members &&) noexcept = default;

	/* Returns false if the group is decided already. */
	bool start() noexcept
	{
		is_decided_ = false;
		/* a group that is decided without members begins nothing */
		decide_if(0);
		start_from<0>();
		is_started_ = true;
		return !is_decided_;
	}
	void on_complete(waiter &member) noexcept override
	{
		note(index_of(member));
		if (is_decided_ && is_started_)
			this->complete();
	}
	void pass_on(absence *away) noexcept { away_ = away; }
	bool is_enough() const noexcept
	{
		return (counts_success_ ? succeeded_ : complete_) >= enough_;
	}

protected:
	~members()
	{
		if (is_started_)
			each([](size_t, auto &member) { member.reset(); });
	}
	/* Calls f(index, member) for each member, the last member first: where
	 * members end, returned messages stay in order. */
	template <typename F> void each(F f)
	{
		[&]<size_t... I>(std::index_sequence<I...>) {
			(f(LAST - I, std::get<LAST - I>(members_)), ...);
		}(std::index_sequence_for<A...>());
	}
	template <size_t I> void start_from() noexcept
	{
		if constexpr (I < sizeof...(A)) {
			/* a member that was complete at once has decided: the
			 * others are gone */
			if (is_decided_)
				return;
			auto &member = *std::get<I>(members_);

			join(member, this);
			pass(member, away_);
			if (!member.start())
				note(I);
			start_from<I + 1>();
		}
	}
	size_t index_of(const waiter &complete) noexcept
	{
		size_t found = 0;

		each([&](size_t index, auto &member) {
			if (member && waiter_of(*member) == &complete)
				found = index;
		});
		return found;
	}
	/* Counts one more complete member. */
	void note(size_t complete) noexcept
	{
		is_complete_[complete] = true;
		complete_++;
		each([&](size_t index, auto &member) {
			if (index == complete)
				succeeded_ += member->succeeded();
		});
		decide_if(complete);
	}
	/* Decides if enough members are complete, or cannot be any more; takes
	 * the other members back. */
	void decide_if(size_t index) noexcept
	{
		size_t possible = succeeded_ + (sizeof...(A) - complete_);

		if (!counts_success_)
			possible = sizeof...(A);
		if (is_decided_ || !(is_enough() || possible < enough_))
			return;
		is_decided_ = true;
		index_ = index;
		each([this](size_t i, auto &member) {
			if (!is_complete_[i])
				member.reset();
		});
	}

	static constexpr size_t LAST = sizeof...(A) - 1;
	std::tuple<std::optional<A>...> members_;
	std::array<bool, sizeof...(A)> is_complete_{};
	absence *away_ = nullptr;
	size_t enough_;
	size_t complete_ = 0;
	size_t succeeded_ = 0;
	size_t index_ = 0;
	bool counts_success_;
	bool is_decided_ = false;
	bool is_started_ = false;
};

template <typename... A>
class [[nodiscard]] all final : public members<all<A...>, A...>
{
public:
	using members<all, A...>::members;
	std::tuple<result_of<A>...> finish()
	{
		return std::apply(
			[](auto &...member) {
				/* braces: from the first to the last */
				return std::tuple<result_of<A>...>{
					detail::finish(*member)...};
			},
			this->members_);
	}
	bool succeeded() const noexcept
	{
		return this->succeeded_ == sizeof...(A);
	}
};

template <typename... A>
class [[nodiscard]] some final : public members<some<A...>, A...>
{
public:
	using members<some, A...>::members;
	some_of<result_of<A>...> finish()
	{
		some_of<result_of<A>...> answer;

		answer.index = this->index_;
		answer.succeeded = this->succeeded_;
		answer.is_enough_ = this->is_enough();
		if (!answer.is_enough_ && this->complete_ == 0)
			answer.why_ = error::call(RPMA_E_INVAL);
		fill(answer, std::index_sequence_for<A...>());
		return answer;
	}
	bool succeeded() const noexcept { return this->is_enough(); }

private:
	template <typename S, size_t... I>
	void fill(S &answer, std::index_sequence<I...>)
	{
		((this->is_complete_[I] ? take<I>(answer) : void()), ...);
	}
	template <size_t I, typename S> void take(S &answer)
	{
		auto &result = std::get<I>(answer.results_);
		auto &member = *std::get<I>(this->members_);

#ifdef __cpp_exceptions
		try {
			result.emplace(detail::finish(member));
		} catch (...) {
			/* the successes of other members are not lost */
			if (!this->counts_success_ || !answer.is_enough_)
				throw;
		}
#else
		result.emplace(detail::finish(member));
#endif
		if (!answer.is_enough_ && this->index_ == I)
			answer.why_ = error_of(*result);
	}
};

} // namespace detail

/* Completes when all members are complete, well or not, with a tuple of the
 * results. */
template <typename... A> auto when_all(A... member) noexcept
{
	return detail::all<A...>(sizeof...(A), false, std::move(member)...);
}

/* Completes when a first member is complete, well or not, with a some_of; takes
 * the other members back. */
template <typename... A> auto when_any(A... member) noexcept
{
	return detail::some<A...>(1, false, std::move(member)...);
}

/* Completes when wanted members have succeeded, or cannot any more, with a
 * some_of; takes the other members back. */
template <typename... A> auto when_some(size_t wanted, A... member) noexcept
{
	return detail::some<A...>(wanted, true, std::move(member)...);
}

/* The members are the elements of an array. */
template <typename A, size_t N> auto when_all(std::array<A, N> member) noexcept
{
	return std::apply([](auto &...m) { return when_all(std::move(m)...); },
			  member);
}
template <typename A, size_t N> auto when_any(std::array<A, N> member) noexcept
{
	return std::apply([](auto &...m) { return when_any(std::move(m)...); },
			  member);
}
template <typename A, size_t N>
auto when_some(size_t wanted, std::array<A, N> member) noexcept
{
	const auto some = [wanted](auto &...m) {
		return when_some(wanted, std::move(m)...);
	};

	return std::apply(some, member);
}

} // namespace rpma::rt

#endif /* RPMA_RT_GROUP_HPP */
