/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * timer.hpp: a heap of deadlines that are parts of what waits for them, and a
 * ring that grows: the two containers of a loop.
 */

#ifndef RPMA_RT_TIMER_HPP
#define RPMA_RT_TIMER_HPP

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace rpma::rt
{

using clock = std::chrono::steady_clock;

namespace detail
{

/* A deadline. */
class timer
{
public:
	clock::time_point at{};

private:
	friend class timer_heap;
	timer *child_ = nullptr;
	timer *sibling_ = nullptr;
	/* the sibling before it, or its parent */
	timer *before_ = nullptr;
	bool is_in_ = false;
};

/* A pairing heap: the earliest first; it allocates nothing. */
class timer_heap
{
public:
	timer *first() const noexcept
	{
		return root_;
	}
	void insert(timer &t) noexcept
	{
		t.child_ = t.sibling_ = t.before_ = nullptr;
		t.is_in_ = true;
		root_ = root_ ? meld(root_, &t) : &t;
	}
	/* also of one that is not in it */
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
	/* of two roots */
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
	/* of siblings: by twos from the left, then all from the right */
	static timer *meld_pairs(timer *first) noexcept
	{
		timer *pairs = nullptr; /* by sibling_, the last one first */
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

/* First in, first out; it grows to what was in it at a time, and keeps that. */
template <typename T> class ring
{
public:
	bool is_empty() const noexcept
	{
		return count_ == 0;
	}
	size_t size() const noexcept
	{
		return count_;
	}
	void push_back(T value)
	{
		make_room();
		at(count_++) = std::move(value);
	}
	/* there is room: it was taken from here */
	void push_front(T value)
	{
		make_room();
		first_ = (first_ + slots_.size() - 1) % slots_.size();
		count_++;
		at(0) = std::move(value);
	}
	T pop_front() noexcept
	{
		T value = std::move(at(0));

		first_ = (first_ + 1) % slots_.size();
		count_--;
		return value;
	}

private:
	T &at(size_t index) noexcept
	{
		return slots_[(first_ + index) % slots_.size()];
	}
	void make_room()
	{
		if (count_ < slots_.size())
			return;
		std::vector<T> more(slots_.empty() ? 16 : 2 * slots_.size());

		for (size_t i = 0; i < count_; i++)
			more[i] = std::move(at(i));
		slots_ = std::move(more);
		first_ = 0;
	}
	std::vector<T> slots_;
	size_t first_ = 0;
	size_t count_ = 0;
};

} // namespace detail

} // namespace rpma::rt

#endif /* RPMA_RT_TIMER_HPP */
