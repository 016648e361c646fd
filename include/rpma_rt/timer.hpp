/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * timer.hpp: a heap of deadlines, which are parts of the waiters, and a ring
 * whose room is made in advance: the two containers of a loop.
 */

#ifndef RPMA_RT_TIMER_HPP
#define RPMA_RT_TIMER_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace rpma::rt
{

using clock = std::chrono::steady_clock;

namespace detail
{

/* A deadline, an element of a timer_heap. */
class timer
{
public:
	clock::time_point at{};

private:
	friend class timer_heap;
	timer *child_ = nullptr;
	timer *sibling_ = nullptr;
	/* the sibling before, or the parent */
	timer *before_ = nullptr;
	bool is_in_ = false;
};

/* A pairing heap: the earliest timer first; allocates no memory. */
class timer_heap
{
public:
	timer *first() const noexcept { return root_; }
	void insert(timer &t) noexcept
	{
		t.child_ = t.sibling_ = t.before_ = nullptr;
		t.is_in_ = true;
		root_ = root_ ? meld(root_, &t) : &t;
	}
	/* Does nothing for a timer that is in no heap. */
	void remove(timer &t) noexcept
	{
		timer *rest;

		if (!t.is_in_)
			return;
		t.is_in_ = false;
		rest = meld_pairs(t.child_);
		if (&t == root_) {
			root_ = rest;
			return;
		}
		if (t.before_->child_ == &t)
			t.before_->child_ = t.sibling_;
		else
			t.before_->sibling_ = t.sibling_;
		if (t.sibling_)
			t.sibling_->before_ = t.before_;
		if (rest)
			root_ = meld(root_, rest);
	}

private:
	/* Melds two roots. */
	static timer *meld(timer *a, timer *b) noexcept
	{
		if (b->at < a->at)
			std::swap(a, b);
		b->before_ = a;
		b->sibling_ = a->child_;
		if (a->child_)
			a->child_->before_ = b;
		a->child_ = b;
		a->sibling_ = a->before_ = nullptr;
		return a;
	}
	/* Melds siblings: by twos from the left, then all from the right. */
	static timer *meld_pairs(timer *first) noexcept
	{
		timer *pairs = nullptr; /* by sibling_, the last pair first */
		timer *all = nullptr;

		while (first) {
			timer *a = first;
			timer *b = a->sibling_;

			first = b ? b->sibling_ : nullptr;
			a->sibling_ = a->before_ = nullptr;
			if (b) {
				b->sibling_ = b->before_ = nullptr;
				a = meld(a, b);
			}
			a->sibling_ = pairs;
			pairs = a;
		}
		while (pairs) {
			timer *next = pairs->sibling_;

			pairs->sibling_ = nullptr;
			all = all ? meld(all, pairs) : pairs;
			pairs = next;
		}
		return all;
	}
	timer *root_ = nullptr;
};

/* First in, first out, of plain data. Room is made in advance: a push takes no
 * memory, and a push without room is refused. */
template <typename T> class ring
{
public:
	/* Makes room for count elements; false: no memory. */
	bool reserve(size_t count) noexcept
	{
		if (count <= room_)
			return true;
		count = std::max(count, 2 * room_);
		std::unique_ptr<T[]> more(new (std::nothrow) T[count]);

		if (!more)
			return false;
		for (size_t i = 0; i < count_; i++)
			more[i] = at(i);
		slots_ = std::move(more);
		room_ = count;
		first_ = 0;
		return true;
	}
	bool is_empty() const noexcept { return count_ == 0; }
	size_t size() const noexcept { return count_; }
	bool push_back(const T &value) noexcept
	{
		if (count_ == room_)
			return false;
		at(count_++) = value;
		return true;
	}
	bool push_front(const T &value) noexcept
	{
		if (count_ == room_)
			return false;
		first_ = (first_ + room_ - 1) % room_;
		count_++;
		at(0) = value;
		return true;
	}
	T pop_front() noexcept
	{
		T value = at(0);

		first_ = (first_ + 1) % room_;
		count_--;
		return value;
	}

private:
	static_assert(std::is_trivially_copyable_v<T>);
	T &at(size_t index) noexcept
	{
		return slots_[(first_ + index) % room_];
	}
	std::unique_ptr<T[]> slots_;
	size_t room_ = 0;
	size_t first_ = 0;
	size_t count_ = 0;
};

} // namespace detail

} // namespace rpma::rt

#endif /* RPMA_RT_TIMER_HPP */
