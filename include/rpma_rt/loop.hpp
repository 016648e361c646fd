/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loop.hpp: a loop takes the items of a queue and resumes the coroutines that
 * wait for the items, on the thread that runs the loop; in manual mode the loop
 * runs the poller, too. Timers, items of the queue, the way to another loop.
 */

#ifndef RPMA_RT_LOOP_HPP
#define RPMA_RT_LOOP_HPP

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

#include <rpma_rt/group.hpp>
#include <rpma_rt/owner.hpp>
#include <rpma_rt/timer.hpp>

namespace rpma::rt
{

/*
 * loop_cfg: how a loop is made.
 *   poller   the poller that the loop runs in manual mode; -1: poller 0 of a
 *            manual runtime, no poller of other runtimes, whose threads run
 *   spin     how long the loop looks for work before the loop sleeps, in manual
 *            mode; otherwise queue.spin_us
 *   borrowed a queue of the program, which stays until the loop is destroyed;
 *            nothing else leads to the queue. nullptr: the loop makes a queue
 *   queue    the configuration of the queue that the loop makes
 *   polls    how often a turn polls, after polls that found several items,
 *            before the loop posts given sends: 16 where throughput counts
 */
struct loop_cfg {
	int poller = -1;
	std::chrono::microseconds spin{50};
	rpma_rt_queue *borrowed = nullptr;
	rpma_rt_queue_cfg queue = RPMA_RT_QUEUE_CFG_INIT;
	int polls = 1;
};

namespace detail
{

/* A connection or listener of a loop; the user pointer of the items. */
class member : public link
{
public:
	/* Handles the message of `item`, which is_usual(), and the messages
	 * behind, as long as these are of the member and usual, and no other
	 * coroutine is ready. Returns the first item that was not handled. */
	virtual const rpma_rt_completion *
	on_messages(const rpma_rt_completion *item,
		    const rpma_rt_completion *end) noexcept = 0;
	/* item: any other item */
	virtual void on_item(const rpma_rt_completion &item) noexcept = 0;
	virtual void close() noexcept = 0;
	/* Returns whether the item is a message without immediate data. */
	RPMA_RT_HOT static bool
	is_usual(const rpma_rt_completion &item) noexcept
	{
		return (item.flags & (RPMA_RT_C_LEASE | RPMA_RT_C_WITH_IMM)) ==
		       RPMA_RT_C_LEASE;
	}
	/* Begins to fetch the bytes of a message into the cache, also for
	 * writing. */
	RPMA_RT_HOT void prefetch(const rpma_rt_completion &item) const noexcept
	{
		const auto *at =
			memory_ + rpma_rt_completion_slot(&item) * stride_;

#ifdef __x86_64__
		__asm__ volatile("prefetchw %0" : : "m"(*at));
#else
		__builtin_prefetch(at, 1);
#endif
	}

protected:
	~member() = default;
	/* of the messages' pool: the first slot, and from slot to slot */
	const char *memory_ = nullptr;
	size_t stride_ = 0;
};

/* Sends to be posted at the end of a turn, or posted sends without a completion
 * so far. */
class chained : public link
{
public:
	virtual void post() noexcept = 0;
	virtual void end() noexcept = 0;

protected:
	~chained() = default;
};

/* A spawned task, which destroys itself at the end. */
struct root {
	struct promise_type : link {
		root get_return_object() noexcept
		{
			return {std::coroutine_handle<
				promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_never final_suspend() noexcept { return {}; }
		void return_void() noexcept {}
		void unhandled_exception() noexcept { std::terminate(); }
	};
	std::coroutine_handle<promise_type> frame;
};

/* Makes a context the context of the calling thread. */
class scope
{
public:
	explicit scope(context &ctx) noexcept
	    : ctx_(ctx), former_(std::exchange(here, &ctx))
	{
	}
	~scope() { here = former_; }
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
	/* Runs coroutines until no coroutine is ready, and sends the leaving
	 * coroutines off. Does nothing for a loop that was destroyed inside. */
	inline void run() noexcept;
	/* Runs ready coroutines, whether the loop was destroyed or not. */
	inline void run_all() noexcept;

private:
	context &ctx_;
	context *former_;
};

/* A shard: runs the poller and takes the items in place of a loop, and calls
 * the loop with each item. */
struct source {
	/* Returns how much was done, or an error: nothing follows. */
	virtual int run(int timeout_ms) noexcept = 0;
	/* Called when the loop and all connections have ended. */
	virtual void leave() noexcept = 0;

protected:
	~source() = default;
};

struct loop_core : counted<loop_core> {
	/* the most sends that a connection posts at once */
	static constexpr uint32_t CHAIN = 32;

	ref<runtime_core> rt;
	rpma_rt_queue *queue = nullptr;
	std::unique_ptr<grave> place = std::make_unique<grave>();
	bool is_borrowed = false;
	bool is_inside = false;
	bool has_ended = false;
	uint32_t depth = 0; /* of calls that run the loop */
	int poller = -1;
	int fds[2] = {-1, -1}; /* of the queue and the poller */
	std::chrono::microseconds spin{0};
	int polls = 1;		 /* of a turn before given sends are posted */
	clock::time_point now{}; /* as of the last look */
	bool was_busy = false;	 /* the last turn had items */
	bool has_new_timer = false;
	uint32_t unlooked = 0; /* turns since the last look */
	context ctx;
	link set_aside; /* were ready when the loop was destroyed inside */
	link roots;	/* promises of spawned tasks */
	link conns;	/* until their CLOSED */
	link listeners; /* until their LISTENER_CLOSED */
	link chained;	/* sends to be posted */
	/* sends without a completion, which the loop ends */
	link unended;
	/* the loop runs a poller, and is no shard */
	bool ends_chains = false;
	uint32_t unended_turns = 0;
	timer_heap timers;
	/* Items of no connection. While an item is not taken, the queue keeps
	 * further items: there is room for a batch, and for the items that
	 * waiters may give back. */
	ring<rpma_rt_completion> items;
	size_t item_takers = 0;
	bool keeps_items = false;
	bool is_stopped = false; /* a shard: no item follows */
	link item_waiters;
	/* Requests of listeners of C that were refused, less each CLOSED that
	 * came: CLOSED may come before the refusal. */
	int64_t strays = 0;
	std::shared_ptr<source> below; /* of a shard */

	static constexpr int BATCH = 64;
	/* items of a poll, after which there may be others */
	static constexpr int SEVERAL = 2;
	/* rounds without work, turns with work, after which the loop ends
	 * chains of sends */
	static constexpr uint32_t CHAIN_ROUNDS = 256;
	static constexpr uint32_t CHAIN_TURNS = 64;

	/* A call that runs the loop. A loop that is destroyed inside ends when
	 * the outermost call returns. */
	class entry
	{
	public:
		explicit entry(loop_core &loop) noexcept : core(&loop)
		{
			core->depth++;
		}
		~entry()
		{
			/* a spawned task that the end destroys may call the
			 * loop */
			if (--core->depth == 0 && core->ctx.is_left &&
			    !core->has_ended)
				core->end();
		}
		entry(const entry &) = delete;
		entry &operator=(const entry &) = delete;
		const ref<loop_core> core;
	};

	~loop_core()
	{
		if (!queue || is_borrowed ||
		    rpma_rt_queue_delete(&queue) != RPMA_RT_E_BUSY)
			return;
		/* a listener that could not be made ends at this moment */
		place->queue = queue;
		rt->keep_busy(std::move(place));
	}

	/* -------------------------------------------------------- items --- */

	/* Handles an item that was taken from the queue. */
	void handle(const rpma_rt_completion &item) noexcept
	{
		(void)handle_some(&item, &item + 1);
	}
	/* Handles the first item, and perhaps messages behind it. Returns the
	 * first item that was not handled. */
	const rpma_rt_completion *
	handle_some(const rpma_rt_completion *item,
		    const rpma_rt_completion *end) noexcept
	{
		if (member::is_usual(*item)) [[likely]]
			return static_cast<member *>(item->user)
				->on_messages(item, end);
		if (item->kind != RPMA_RT_MESSAGE && item->user)
			static_cast<member *>(item->user)->on_item(*item);
		else
			give(*item);
		return item + 1;
	}
	/* Returns whether a waiter that an item makes complete goes on at once:
	 * no other waiter is ready, and the loop stays. */
	RPMA_RT_HOT bool goes_on_at_once() noexcept
	{
		return !ctx.is_left && ctx.ready.is_empty();
	}
	/* Called before each look at the queue. */
	void keep_items(bool keeps) noexcept
	{
		if (keeps == keeps_items)
			return;
		keeps_items = keeps;
		(void)rpma_rt_queue_hold(queue, keeps);
	}
	inline void give(const rpma_rt_completion &item) noexcept;
	inline void give_to_next() noexcept;

	/* -------------------------------------------------------- turns --- */

	/* Returns a time rounded up, for calls that take milliseconds; -1:
	 * without end. */
	static int milliseconds(clock::time_point from,
				clock::time_point to) noexcept
	{
		if (to == clock::time_point::max())
			return -1;
		if (to <= from)
			return 0;
		auto left =
			std::chrono::ceil<std::chrono::milliseconds>(to - from)
				.count();

		return static_cast<int>(
			std::min<decltype(left)>(left, INT_MAX));
	}
	/* Returns how long the turn may sleep, at most limit (-1: without end).
	 * No coroutine has run since expire() read the clock. */
	int may_sleep(int limit) const noexcept
	{
		int left;

		if (!timers.first() || limit == 0)
			return limit;
		left = milliseconds(now, timers.first()->at);
		if (left < 0 || limit < 0)
			return std::max(left, limit);
		return std::min(left, limit);
	}
	bool is_attached = false; /* to the thread that runs the loop */
	/* Makes the calling thread the owner of the poller. */
	int attach() noexcept
	{
		int ret = is_attached ? 0
				      : rpma_rt_poller_attach(rt->raw,
							      own_poller());

		is_attached = ret == 0;
		return ret;
	}
	void release() noexcept
	{
		if (poller >= 0)
			rpma_rt_poller_release(rt->raw, own_poller());
		is_attached = false;
	}
	uint32_t own_poller() const noexcept
	{
		return static_cast<uint32_t>(poller);
	}
	int get_fds() noexcept
	{
		int ret = rpma_rt_queue_get_fd(queue, &fds[0]);

		return ret < 0 ? ret
			       : rpma_rt_poller_get_fd(rt->raw, own_poller(),
						       &fds[1]);
	}
	/* Returns when the turn has to end: the first timer, or the limit. */
	clock::time_point end_of_turn(clock::time_point limit) const noexcept
	{
		return timers.first() ? std::min(limit, timers.first()->at)
				      : limit;
	}
	/*
	 * Manual mode: runs rounds of the poller until there are items, and
	 * sleeps on both descriptors. A round that is busy with functions or
	 * other queues does not delay a timer: the clock is read after each
	 * round without items, where there is a timer or a limit.
	 */
	int take_manual(rpma_rt_completion *batch, int timeout_ms) noexcept
	{
		constexpr auto never = clock::time_point::max();
		clock::time_point limit = never;
		clock::time_point idle_since = never;
		uint32_t idle_rounds = 0;
		int ret = attach();

		if (ret < 0 && ret != RPMA_RT_E_CLOSED)
			return ret;
		for (bool is_first = true;; is_first = false) {
			/* with functions or other queues, too */
			bool is_busy = false;
			int got = rpma_rt_poller_take(rt->raw, own_poller(),
						      queue, batch, BATCH,
						      &is_busy);

			if (got != 0)
				return got;
			/* busy or not: leases do not wait for others */
			idle_rounds++;
			if (idle_rounds == CHAIN_ROUNDS)
				end_chains();
			if (timeout_ms == 0 || is_awaited())
				return 0;
			if (is_busy && timeout_ms < 0 && !timers.first())
				continue;
			now = clock::now();
			if (is_first && timeout_ms > 0)
				limit = now +
					std::chrono::milliseconds(timeout_ms);
			if (now >= end_of_turn(limit))
				return 0;
			if (is_busy)
				idle_since = never;
			else if (idle_since == never)
				idle_since = now;
			if (is_busy || now - idle_since < spin)
				continue;
			if (idle_rounds < CHAIN_ROUNDS && !unended.is_empty()) {
				idle_rounds = CHAIN_ROUNDS;
				end_chains();
				continue;
			}
			switch (rpma_rt_queue_arm(queue)) {
			case 0:
				break;
			case 1: /* items, or a wake: a further round */
				timeout_ms = 0;
				continue;
			default:
				continue;
			}
			if (rpma_rt_poller_arm(rt->raw, own_poller()) != 0)
				continue;
			if (!sleep(milliseconds(now, end_of_turn(limit))))
				return rpma_rt_queue_poll(queue, batch, BATCH);
			timeout_ms = 0;
		}
	}
	/* Returns false if the time has passed. */
	bool sleep(int timeout_ms) noexcept
	{
		pollfd both[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};

		if (::poll(both, 2, timeout_ms) == 0)
			return false;
		/* closed by the program: no wake-up comes, so look often */
		if ((both[0].revents | both[1].revents) & POLLNVAL)
			(void)::poll(nullptr, 0, 10);
		return true;
	}
	bool is_awaited() noexcept
	{
		ctx.mail->take(ctx.ready);
		return !ctx.ready.is_empty();
	}
	int take(rpma_rt_completion *batch, int timeout_ms) noexcept
	{
		if (poller >= 0)
			return take_manual(batch, timeout_ms);
		if (timeout_ms == 0)
			return rpma_rt_queue_poll(queue, batch, BATCH);
		return rpma_rt_queue_wait(queue, batch, BATCH,
					  may_sleep(timeout_ms));
	}
	/* Takes items, with polls > 1 also after several items, so that each
	 * post has more sends. Returns the number, or an error: no item
	 * follows. */
	int take_all(scope &running, int timeout_ms) noexcept
	{
		int got = take_some(running, timeout_ms);
		int all = got;

		for (int i = 1; i < polls && got >= SEVERAL && !ctx.is_left;
		     i++) {
			got = take_some(running, 0);
			all += std::max(got, 0);
		}
		return all;
	}
	/* Takes the items of a poll, handles each item and runs the coroutines
	 * that the item made ready. Returns the number, or an error. */
	int take_some(scope &running, int timeout_ms) noexcept
	{
		rpma_rt_completion batch[BATCH];
		int got;

		keep_items(!items.is_empty());
		if (below)
			return below->run(may_sleep(timeout_ms));
		got = take(batch, timeout_ms);
		/* at once, as far as the memory is with other CPUs */
		for (int i = 0; i < got; i++) {
			if (batch[i].flags & RPMA_RT_C_LEASE) [[likely]]
				static_cast<const member *>(batch[i].user)
					->prefetch(batch[i]);
		}
		for (const auto *item = batch; item < batch + got;) {
			item = handle_some(item, batch + got);
			if (!ctx.is_idle()) [[unlikely]]
				running.run();
		}
		return got;
	}
	inline int expire() noexcept;
	/* Posts the sends that coroutines have given to connections. */
	void post_chains() noexcept
	{
		if (!unended.is_empty() && ++unended_turns >= CHAIN_TURNS)
			end_chains();
		while (!chained.is_empty())
			chained.take_first<detail::chained>().post();
		(void)ctx.give_back();
	}
	/* Ends chains of sends, so that the leases go back. */
	void end_chains() noexcept
	{
		link some;

		unended_turns = 0;
		while (!unended.is_empty())
			some.push_back(unended.first());
		while (!some.is_empty())
			some.take_first<detail::chained>().end();
	}
	/* Returns whether this turn looks at timers: after a turn that found
	 * nothing or set a timer, and in each eighth turn. A busy loop seldom
	 * reads the clock. */
	bool looks_at_timers() noexcept
	{
		if (timers.first() && was_busy && !has_new_timer &&
		    ++unlooked < 8)
			return false;
		has_new_timer = false;
		unlooked = 0;
		return true;
	}
	/* Runs a turn, which sleeps at most timeout_ms. Returns how much was
	 * done, or an error. After each item the coroutines run that the item
	 * made ready. */
	int turn(int timeout_ms) noexcept
	{
		const bool looks = looks_at_timers();
		int done;
		int got;

		if (is_inside)
			return RPMA_RT_E_BUSY;
		if (has_ended)
			return RPMA_RT_E_CLOSED;
		is_inside = true;
		entry inside(*this);
		scope running(ctx);

		done = is_awaited();
		running.run();
		done += looks ? expire() : 0;
		running.run();
		post_chains();
		got = ctx.is_left ? 0
				  : take_all(running,
					     done || !looks ? 0 : timeout_ms);
		if (!ctx.is_left && !looks && done == 0 && got == 0) {
			done += expire();
			running.run();
			post_chains();
			if (!ctx.is_left && done == 0)
				got = take_all(running, timeout_ms);
		}
		was_busy = got > 0;
		if (!ctx.is_left) {
			/* otherwise the next turn looks at the clock */
			if (done == 0 && got == 0)
				done += expire();
			ctx.mail->take(ctx.ready);
			running.run();
		}
		post_chains();
		is_inside = false;
		return got < 0 ? got : done + got;
	}

	/* ---------------------------------------------------------- end --- */

	/* Calls f() and runs the coroutines that f() has made ready. */
	template <typename F> void run_inside(F f)
	{
		scope running(ctx);

		is_inside = true;
		f();
		running.run_all();
		post_chains();
		is_inside = false;
	}
	/* Waits for coroutines from other loops, and runs the coroutines, or
	 * takes them only where the loop was destroyed; no item follows. */
	void wait_for_mail() noexcept
	{
		ctx.mail->wait();
		if (ctx.is_left)
			(void)is_awaited();
		else
			run_inside([this] { (void)is_awaited(); });
	}
	/* The owner leaves. */
	void leave() noexcept
	{
		ctx.is_left = true;
		ctx.changes++;
		if (ctx.mail && depth == 0)
			end();
		/* what the running coroutine completes from here on goes on:
		 * the coroutines that await it */
		while (!ctx.ready.is_empty())
			set_aside.push_back(ctx.ready.first());
	}
	inline void end() noexcept;
	inline void drain() noexcept;
	inline void refuse(const rpma_rt_completion &item) noexcept;
};

/* A wait for a time. */
class sleeper : public awaitable<sleeper>, timer
{
public:
	sleeper(ref<loop_core> loop, clock::time_point until) noexcept
	    : loop_(std::move(loop))
	{
		at = until;
	}
	sleeper(sleeper &&) noexcept = default;
	~sleeper()
	{
		if (loop_)
			loop_->timers.remove(*this);
	}
	bool start() noexcept
	{
		if (loop_->has_ended)
			return false;
		loop_->timers.insert(*this);
		loop_->has_new_timer = true;
		return true;
	}
	result<void> finish() noexcept
	{
		if (loop_->has_ended)
			return error::call(RPMA_RT_E_CLOSED);
		return {};
	}
	bool succeeded() const noexcept { return true; }

	void cancel() noexcept
	{
		unlink();
		loop_->timers.remove(*this);
	}

private:
	friend struct loop_core;
	ref<loop_core> loop_;
};

inline int loop_core::expire() noexcept
{
	int count = 0;

	if (!timers.first())
		return 0;
	now = clock::now();
	while (timers.first() && timers.first()->at <= now) {
		auto &first = static_cast<sleeper &>(*timers.first());

		timers.remove(first);
		first.complete();
		count++;
	}
	return count;
}

/* A wait for the next item that belongs to no connection. */
class next_item : public awaitable<next_item>
{
public:
	explicit next_item(ref<loop_core> loop) noexcept
	    : loop_(std::move(loop))
	{
	}
	next_item(next_item &&) noexcept = default;
	~next_item()
	{
		if (item_ && loop_->has_ended) {
			loop_->refuse(*item_);
		} else if (item_) { /* not taken: the next item again */
			(void)loop_->items.push_front(*item_);
			loop_->give_to_next();
		}
		if (has_room_)
			loop_->item_takers--;
	}
	bool start() noexcept
	{
		if (loop_->has_ended)
			return false;
		/* room for the item, if the waiter gives the item back */
		has_room_ = loop_->items.reserve(loop_core::BATCH + 1 +
						 loop_->item_takers);
		if (!has_room_)
			return false;
		loop_->item_takers++;
		if (!loop_->items.is_empty()) {
			item_ = loop_->items.pop_front();
			return false;
		}
		if (loop_->is_stopped)
			return false;
		loop_->item_waiters.push_back(*this);
		return true;
	}
	result<rpma_rt_completion> finish() noexcept
	{
		if (!item_)
			return error::call(has_room_ || loop_->has_ended
						   ? RPMA_RT_E_CLOSED
						   : RPMA_E_NOMEM);
		return *std::exchange(item_, std::nullopt);
	}
	bool succeeded() const noexcept { return item_.has_value(); }

private:
	friend struct loop_core;
	ref<loop_core> loop_;
	std::optional<rpma_rt_completion> item_;
	bool has_room_ = false;
};

/* Refuses a request of a listener of C that no coroutine has taken. */
inline void loop_core::refuse(const rpma_rt_completion &item) noexcept
{
	if (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_REQUEST)
		return;
	auto *conn = rpma_rt_completion_conn(&item);
	rpma_rt_conn_close(conn);
	rpma_rt_conn_unref(&conn);
	strays++;
}

inline void loop_core::give(const rpma_rt_completion &item) noexcept
{
	if (rpma_rt_completion_event(&item) == RPMA_RT_EVENT_CLOSED) {
		strays--;
		return;
	}
	if (has_ended) {
		refuse(item);
		return;
	}
	/* The queue keeps messages for which there is no room, but not
	 * requests. What is beyond a batch is room for items that waiters give
	 * back. Items of routes may not lead here: dropped without room. */
	const bool has_room =
		rpma_rt_completion_event(&item) != RPMA_RT_EVENT_REQUEST ||
		items.size() < size_t{BATCH};

	if (has_room && items.push_back(item))
		give_to_next();
	else
		refuse(item);
}

inline void loop_core::give_to_next() noexcept
{
	if (has_ended || ctx.is_left || item_waiters.is_empty() ||
	    items.is_empty())
		return;
	scope running(ctx); /* resumed in a turn, not here */
	auto &next = item_waiters.take_first<next_item>();

	next.item_ = items.pop_front();
	next.complete();
}

/* A wait for the next free slot of a pool. */
class next_slot final : public awaitable<next_slot, slot_waiter>
{
public:
	next_slot(ref<loop_core> loop, ref<pool_core> pool) noexcept
	    : loop_(std::move(loop)), pool_(std::move(pool))
	{
	}
	next_slot(next_slot &&) noexcept = default;
	~next_slot()
	{
		if (to)
			pool_->line.leave(*this);
		if (slot.pool) /* not taken */
			(void)rpma_rt_lease_release(&slot);
	}
	bool start() noexcept
	{
		if (loop_->has_ended) {
			why = error::call(RPMA_RT_E_CLOSED);
			return false;
		}
		/* succeeds only where no other waits */
		int ret = pool_->take(slot);
		if (ret == RPMA_E_AGAIN)
			loop_->end_chains();
		if (ret != RPMA_E_AGAIN) {
			why = ret == 0 ? error() : error::call(ret);
			return false;
		}
		to = loop_->ctx.mail;
		pool_->line.enter(pool_->raw, *this);
		return true;
	}
	result<lease> finish() noexcept
	{
		if (!slot.pool)
			return why;
		return access::make_lease(std::exchange(slot, {}), pool_);
	}
	bool succeeded() const noexcept { return slot.pool != nullptr; }

private:
	ref<loop_core> loop_;
	ref<pool_core> pool_;
};

/* Moves a coroutine to the thread of another loop, where the coroutine goes on.
 * Cannot be a member of when_all(), when_any() or when_some(). */
class switching final : public arrival
{
public:
	explicit switching(std::shared_ptr<mailbox> to) noexcept
	    : to_(std::move(to))
	{
	}
	switching(switching &&) noexcept = default;
	~switching()
	{
		if (is_away_)
			take_back();
	}
	bool await_ready() const noexcept { return here && here->mail == to_; }
	template <typename P>
	bool await_suspend(std::coroutine_handle<P> awaiting) noexcept
	{
		leads_to(awaiting);
		away_ = absence_of(awaiting);
		/* all callers have to return first: a caller may look at the
		 * coroutine, which the other thread resumes at once */
		if (!here)
			return put();
		from_ = here->mail;
		here->add_leaving(*this);
		return true;
	}
	void leave() noexcept
	{
		if (!put())
			complete();
	}
	/* Returns RPMA_RT_E_CLOSED, on the former thread, if the other loop has
	 * ended. */
	result<void> await_resume() noexcept
	{
		is_away_ = false;
		if (is_refused_)
			return error::call(RPMA_RT_E_CLOSED);
		return {};
	}

private:
	/* Returns whether the calling thread is in the loop::run() that leads
	 * to the coroutine. */
	bool is_at_home() const noexcept
	{
		return away_ && here && here->mail.get() == away_->home;
	}
	/* Returns false if the other loop has ended. Otherwise the coroutine
	 * does not belong to the calling thread any more. */
	bool put() noexcept
	{
		const auto to = to_; /* the lock outlasts *this */
		const bool leaves_home = is_at_home();

		is_away_ = true;
		in_ = to.get();
		if (leaves_home)
			away_->count++;
		if (to->put(*this))
			return true;
		if (leaves_home)
			away_->count--;
		is_away_ = false;
		is_refused_ = true;
		return false;
	}
	void take_back() noexcept
	{
		std::lock_guard<std::mutex> guard(turning_back);

		in_->take_back(*this);
		if (is_at_home() && !has_come_home_)
			away_->count--;
	}
	void on_taken() noexcept override
	{
		has_come_home_ = away_ && in_ == away_->home;
		if (has_come_home_)
			away_->count--;
	}
	/* The other loop has ended without the coroutine: back to the former
	 * loop. */
	void go_back() noexcept override
	{
		const auto from = from_;

		if (!from)
			return;
		in_ = from.get();
		is_refused_ = true;
		(void)from->put(*this);
	}
	std::shared_ptr<mailbox> to_;
	std::shared_ptr<mailbox> from_; /* nullptr: from outside of a loop */
	mailbox *in_ = nullptr;
	absence *away_ = nullptr;
	bool is_away_ = false;
	bool has_come_home_ = false;
	bool is_refused_ = false;
};

inline void scope::run() noexcept
{
	if (!ctx_.is_left)
		run_all();
}

inline void scope::run_all() noexcept
{
	for (;;) {
		if (!ctx_.ready.is_empty()) {
			ctx_.ready.take_first<waiter>().go_on();
		} else if (!ctx_.leaving.is_empty() && !ctx_.is_left) {
			ctx_.leaving.take_first<switching>().leave();
		} else {
			return;
		}
	}
}

inline root run_root(task<void> spawned, std::shared_ptr<mailbox> home)
{
	co_await std::move(spawned);
	/* the promise is in a list of the home thread */
	(void)co_await switching(std::move(home));
}

/* A wait until a task has ended, also by an exception. */
template <typename T> class ended
{
public:
	explicit ended(task<T> &of) noexcept : of_(of) {}
	bool await_ready() const noexcept { return false; }
	template <typename P>
	bool await_suspend(std::coroutine_handle<P> awaiting) noexcept
	{
		return of_.await_suspend(awaiting);
	}
	void await_resume() const noexcept {}

private:
	task<T> &of_;
};

template <typename T>
task<T> come_back(task<T> called, std::shared_ptr<mailbox> home)
{
	co_await ended<T>(called);
	(void)co_await switching(std::move(home));
	co_return called.finish();
}

/* Closes everything, and waits for the last items; resumes no coroutine. */
inline void loop_core::end() noexcept
{
	has_ended = true;
	scope running(ctx);

	/* before close(): coroutines that came home must not go back */
	while (!roots.is_empty())
		std::coroutine_handle<root::promise_type>::from_promise(
			static_cast<root::promise_type &>(roots.first()))
			.destroy();
	ctx.mail->close();
	for (link *m = &conns.first(); m != &conns; m = &m->next())
		static_cast<member *>(m)->close();
	for (link *m = &listeners.first(); m != &listeners; m = &m->next())
		static_cast<member *>(m)->close();
	keep_items(true); /* no coroutine takes items any more */
	while (!items.is_empty())
		refuse(items.pop_front());
	drain();
	if (below)
		below->leave();
	if (is_borrowed)
		keep_items(false);
	if (is_attached || below)
		release();
}

inline void loop_core::drain() noexcept
{
	rpma_rt_completion batch[BATCH];
	bool runs_below = below != nullptr;

	while (!conns.is_empty() || !listeners.is_empty() || strays > 0) {
		int got;

		if (runs_below) {
			int done = below->run(-1);

			/* stopped: the poller and the queue go on */
			runs_below = done != RPMA_RT_E_CLOSED;
			if (runs_below && done < 0)
				return;
			continue;
		}
		if (poller >= 0) {
			int done = rpma_rt_poller_run(rt->raw, own_poller(),
						      BATCH);

			if (done == 0)
				usleep(100);
			else if (done < 0) /* of another thread: a mistake */
				usleep(10000);
			got = rpma_rt_queue_poll(queue, batch, BATCH);
		} else {
			got = rpma_rt_queue_wait(queue, batch, BATCH, -1);
		}
		if (got < 0)
			return;
		for (int i = 0; i < got; i++)
			handle(batch[i]);
		(void)ctx.give_back();
	}
}

/* True if the result of an awaitable can itself be an error: result, outcome,
 * some_of. */
template <typename R>
inline constexpr bool has_error =
	std::is_same_v<R, error> ||
	(std::is_convertible_v<const error &, R> && requires {
		std::declval<R &>().ok();
		std::declval<R &>().error();
	});

/* The type that an awaitable has with a limit of time: the type of the result,
 * which can be an error, or a result<> of the type. */
template <typename A>
using timed_result =
	std::conditional_t<has_error<raw_result_of<A>>, raw_result_of<A>,
			   result<raw_result_of<A>>>;

/* An awaitable with a limit of time; afterwards the error timed_out. */
template <typename A>
class [[nodiscard]] timed final : public awaitable<timed<A>>, group
{
public:
	timed(A &&limited, sleeper &&limit) noexcept
	    : limited_(std::move(limited)), limit_(std::move(limit))
	{
	}
	timed(timed &&) noexcept = default;
	void pass_on(absence *away) noexcept { pass(*limited_, away); }
	bool start() noexcept
	{
		join(*limited_, this);
		if (!limited_->start())
			return false;
		join(limit_, this);
		if (limit_.start())
			return true;
		limited_.reset();
		return false;
	}
	void on_complete(waiter &done) noexcept override
	{
		if (&done == &limit_)
			limited_.reset();
		else
			limit_.cancel();
		this->complete();
	}
	timed_result<A> finish()
	{
		if (!limited_) {
			auto limit = limit_.finish();

			return limit ? error::timed_out() : limit.error();
		}
		if constexpr (std::is_void_v<raw_result_of<A>>) {
			limited_->finish();
			return {};
		} else {
			return limited_->finish();
		}
	}
	bool succeeded() const noexcept
	{
		return limited_ && limited_->succeeded();
	}

private:
	std::optional<A> limited_;
	sleeper limit_;
};

} // namespace detail

/*
 * loop_ref: a loop, for other threads.
 * Owner: plain data; keeps no loop alive.
 * Thread: any.
 * End: leaves the loop alone.
 * Errors: resume_there(): RPMA_RT_E_CLOSED: the loop has ended.
 */
class loop_ref
{
public:
	/* co_await: result<void>; the coroutine goes on, on the thread of the
	 * loop, and on the former thread after an error. The coroutine is not
	 * destroyed in between. */
	auto resume_there() const { return detail::switching(mail_); }

private:
	friend class loop;
	explicit loop_ref(std::shared_ptr<detail::mailbox> mail)
	    : mail_(std::move(mail))
	{
	}
	std::shared_ptr<detail::mailbox> mail_;
};

/*
 * loop: takes the items of a queue and resumes the coroutines that wait.
 * Owner: the program; owns spawned tasks, not connections.
 * Thread: one at a time; release() before another thread runs the loop.
 * End: destroys spawned tasks, closes connections, waits up to teardown_ms.
 * Errors: RPMA_RT_E_CLOSED: stopped or destroyed; RPMA_RT_E_BUSY: inside.
 */
class loop
    : public detail::ending_owner<detail::loop_core, &detail::loop_core::leave>
{
public:
	static result<loop> make(const runtime &rt, const loop_cfg &cfg = {})
	{
		using namespace std::chrono_literals;
		const auto &core = detail::access::core(rt);
		loop made;
		int ret = 0;

		made.core_->rt = core;
		made.core_->poller =
			cfg.poller < 0 && core->is_manual ? 0 : cfg.poller;
		/* limited to times that the clock can count */
		made.core_->spin = std::clamp<std::chrono::microseconds>(
			cfg.spin, 0us, 24h);
		made.core_->polls = cfg.polls;
		made.core_->queue = cfg.borrowed;
		made.core_->is_borrowed = cfg.borrowed != nullptr;
		made.core_->ends_chains = made.core_->poller >= 0;
		if (!cfg.borrowed)
			ret = rpma_rt_queue_new(core->raw, &cfg.queue,
						&made.core_->queue);
		if (ret == 0 && made.core_->poller >= 0)
			ret = made.core_->get_fds();
		if (ret < 0)
			return error::call(ret);
		if (!made.core_->items.reserve(detail::loop_core::BATCH))
			return error::call(RPMA_E_NOMEM);
		made.core_->ctx.mail =
			std::make_shared<detail::mailbox>(made.core_->queue);
		return made;
	}
	/* Runs the loop until the task is complete; the task of an error is
	 * destroyed, after the return from other loops. Returns the result of
	 * the task, or a result<> of the value. */
	template <typename T> auto run(task<T> called)
	{
		return run_until(
			detail::come_back(std::move(called), core_->ctx.mail));
	}
	/* Takes the items that have come, or waits for the first item (-1:
	 * without end). Returns how much was done. */
	int turn(int timeout_ms) noexcept { return core_->turn(timeout_ms); }
	/* Lets another thread run or destroy the loop. Thread: of the last
	 * turn. */
	void release() noexcept { core_->release(); }
	/* Begins a task without an awaiting coroutine; an exception that leaves
	 * the task ends the program. The loop's end destroys the task, also a
	 * task that comes with the end. */
	void spawn(task<void> spawned)
	{
		if (core_->has_ended)
			return;
		auto root =
			detail::run_root(std::move(spawned), core_->ctx.mail);
		detail::loop_core::entry inside(*core_);
		auto &core = *inside.core;
		detail::scope running(core.ctx);
		bool was_inside = std::exchange(core.is_inside, true);

		core.roots.push_back(root.frame.promise());
		root.frame.resume();
		/* inside a turn the ready coroutines run in the turn */
		if (!was_inside) {
			running.run_all();
			core.post_chains();
		}
		core.is_inside = was_inside;
	}

	/* co_await: result<void> after the time, at the earliest. */
	auto sleep_for(clock::duration time) const noexcept
	{
		const auto now = clock::now();
		const auto last = clock::time_point::max();

		return sleep_until(time < last - now ? now + time : last);
	}
	detail::sleeper sleep_until(clock::time_point at) const noexcept
	{
		return detail::sleeper(core_, at);
	}
	/* co_await: the result of an awaitable (a result<> of a value), or the
	 * error timed_out; the awaitable is taken back, as by when_any(). */
	template <typename A>
	auto within(clock::duration time, A limited) const noexcept
	{
		return detail::timed<A>(std::move(limited), sleep_for(time));
	}
	/* co_await: result<rpma_rt_completion>, the next message of
	 * rpma_rt_queue_push(). */
	auto next() const noexcept { return detail::next_item(core_); }
	/* co_await: result<lease>, of the next free slot, in the order of
	 * waits. */
	auto next(const pool &from) const noexcept
	{
		return detail::next_slot(core_, detail::access::core(from));
	}

	/* co_await: result<connection>, established. */
	inline detail::connecting connect(std::string address, std::string port,
					  const endpoint &with) const;
	/* Listens; port "0": any, see listener::port(). */
	inline result<listener> listen(const std::string &address,
				       const std::string &port,
				       const endpoint &with) const;

	/* Returns the loop for other threads. */
	loop_ref remote() const { return loop_ref(core_->ctx.mail); }
	/* Returns the queue, for rpma_rt_queue_push(), not for routes. */
	rpma_rt_queue *queue() const noexcept { return core_->queue; }

protected:
	loop()
	    : ending_owner(detail::ref<detail::loop_core>::adopt(
		      new detail::loop_core))
	{
	}

private:
	struct caller final : detail::group {
		bool is_over = false;
		void on_complete(detail::waiter &) noexcept override
		{
			is_over = true;
		}
	};
	template <typename T> struct flat {
		using type = result<T>;
	};
	template <typename T> struct flat<result<T>> {
		using type = result<T>;
	};
	template <typename T> typename flat<T>::type run_until(task<T> called)
	{
		detail::loop_core::entry inside(*core_);
		auto &core = *inside.core;
		detail::absence away{core.ctx.mail.get()};
		caller self;

		if (core.is_inside)
			return error::call(RPMA_RT_E_BUSY);
		if (core.has_ended)
			return error::call(RPMA_RT_E_CLOSED);
		called.leads_to(&self);
		called.pass_on(&away);
		core.run_inside([&] { self.is_over |= !called.start(); });
		while (!self.is_over) {
			int ret = core.ctx.is_left ? RPMA_RT_E_CLOSED
						   : core.turn(-1);

			/* the end of the loop may complete the task */
			if (ret >= 0 || self.is_over)
				continue;
			if (away.count == 0)
				return error::call(ret);
			core.wait_for_mail();
		}
		if constexpr (std::is_void_v<T>) {
			called.finish();
			return {};
		} else {
			return called.finish();
		}
	}
};

} // namespace rpma::rt

#endif /* RPMA_RT_LOOP_HPP */
