/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.hpp: connections, operations on connections, messages.
 *
 * A connection of a loop serves coroutines, which await; a connection without a
 * loop serves threads, which call wait() of the same objects.
 *
 * The memory for operations of a loop's connection is made with the connection:
 * a slot for each work request that may be outstanding. A slot has the lease,
 * and the operation that awaits the result, or nullptr if the operation was
 * destroyed. The leases of given sends are in a ring, in order: the loop posts
 * the new sends at the end of the turn, with a single doorbell. Some sends are
 * a chain: only the last send of a chain has a completion, with which all
 * leases of the chain go back; a chain that stays short ends with a write of no
 * bytes, when the loop finds nothing to do. Operations without room wait in a
 * line, first in, first out.
 */

#ifndef RPMA_RT_CONN_HPP
#define RPMA_RT_CONN_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <rpma_rt/loop.hpp>
#include <rpma_rt/receive.hpp>

namespace rpma::rt
{

/*
 * endpoint: how connections and listeners are made, see
 * rpma_rt_cpp_endpoint(7).
 *   via           required
 *   messages      the pool of the receives; nullptr: no receives from a pool
 *   shared        a shared receive queue in place of messages
 *   private_data  for the other side, up to 255 bytes; not of a listener
 *   cfg           sizes, times; peer, queue, pool and srqs are not used
 */
struct endpoint {
	const peer &via;
	const pool *messages = nullptr;
	const shared_receive_queue *shared = nullptr;
	std::string_view private_data = {};
	rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
};

/*
 * outcome<N>: how N work requests ended that were posted together.
 * Owner: owns the leases of the work requests, after a success or a failure.
 * Thread: one at a time.
 * End: gives the leases back; leases of failed links go back with the close.
 * Errors: error(): not_posted, failed, unknown, closed, timed_out.
 */
template <size_t N> class [[nodiscard]] outcome : public detail::verdict
{
public:
	outcome(const rt::error &why) noexcept : verdict(why) {}
	outcome(const rt::error &why, std::array<lease, N> &&slots) noexcept
	    : verdict(why), slots_(std::move(slots))
	{
	}
	/* Returns the lease of outcome<1>, or the leases; throws a failure. */
	auto value() &&
	{
		check();
		if constexpr (N == 1)
			return std::move(slots_[0]);
		else
			return std::move(slots_);
	}
	/* Returns the lease of a work request, or an empty lease. */
	lease &slot(size_t index = 0) noexcept { return slots_[index]; }

private:
	std::array<lease, N> slots_;
};

namespace detail
{

struct conn_core;

/* Work requests that are posted together, with the waiter for the outcome. */
class op : public waiter
{
public:
	op() noexcept = default;
	op(op &&) noexcept = default;
	RPMA_RT_HOT ~op()
	{
		if (conn_ && state_ == POSTED) [[unlikely]]
			leave_slot();
	}
	bool succeeded() const noexcept { return !why_; }

protected:
	explicit op(ref<conn_core> conn) noexcept
	    : conn_(std::move(conn)), state_(IDLE)
	{
	}
	inline bool start(rpma_rt_wr *wrs, lease *leases,
			  uint32_t count) noexcept;
	inline void leave_slot() noexcept;

	friend struct conn_core;
	enum state : uint8_t { IDLE, WAITING, POSTED, COMPLETE };

	ref<conn_core> conn_;
	error why_;
	state state_; /* where there is a connection */
	/* The fields from here on are set by start(). */
	uint32_t count_;
	uint32_t slot_;	  /* of a send for the chain: the flags */
	rpma_rt_wr *wrs_; /* nullptr: a send for the chain */
	lease *leases_;
};

/* A connection in the requests of a listener. */
struct request_link : link {
	explicit request_link(conn_core *c) noexcept : conn(c) {}
	conn_core *conn;
};

/* A connection whose chain the loop posts at the end of the turn. */
struct chain_link final : chained {
	explicit chain_link(conn_core *c) noexcept : conn(c) {}
	inline void post() noexcept override;
	inline void end() noexcept override;
	conn_core *conn;
};

/* A connection whose chain is complete. */
struct done_link final : finished {
	explicit done_link(conn_core *c) noexcept : conn(c) {}
	inline void give_back() noexcept override;
	conn_core *conn;
};

struct alone;

/* The leases of an operation that a thread has given up. The poller gives the
 * slots back when the device has done with the bytes; the object stays with the
 * connection, for no function of a poller may end the last lease of a pool. */
struct left_op {
	explicit left_op(future_of_c &&f) noexcept : future(std::move(f)) {}
	left_op(const left_op &) = delete;
	left_op &operator=(const left_op &) = delete;
	virtual ~left_op() = default;
	/* Ends the leases, but for the references to the pools. */
	virtual void free_slots(const rpma_rt_completion &item) noexcept = 0;

	future_of_c future;
	/* The fields from here on are under the lock of the connection. */
	std::unique_ptr<left_op> next;
	alone *of = nullptr;
	bool is_over = false;  /* the poller has called */
	bool has_free = false; /* the slots are free */
};

/* Additional fields of a connection without a loop. */
struct alone {
	std::mutex lock; /* of all fields */
	/* a future has come back, or an operation of left is over */
	std::condition_variable over;
	/* Futures of CLOSED that no thread uses, as many as a connection may
	 * have; kept, for the poller has to free a future that was dropped. */
	std::array<future_of_c, 16> closed;
	uint32_t closed_count = 0;
	std::unique_ptr<left_op> left;

	~alone()
	{
		std::unique_lock<std::mutex> guard(lock);

		for (auto *o = left.get(); o; o = o->next.get()) {
			/* the poller has called, or is about to call */
			if (!o->is_over &&
			    rpma_rt_future_drop(o->future.raw()) == 0)
				continue;
			over.wait(guard, [o] { return o->is_over; });
		}
		end_all(std::move(left));
	}
	/* Returns an empty future if other threads have all. */
	future_of_c take_closed() noexcept
	{
		std::lock_guard<std::mutex> guard(lock);

		if (closed_count == 0)
			return {};
		return std::move(closed[--closed_count]);
	}
	void put_closed(future_of_c &&back) noexcept
	{
		std::lock_guard<std::mutex> guard(lock);

		closed[closed_count++] = std::move(back);
		over.notify_all();
	}
	void await_closed() noexcept
	{
		std::unique_lock<std::mutex> guard(lock);

		over.wait(guard, [this] { return closed_count > 0; });
	}
	/* Keeps an operation until the device has done with the leases. Returns
	 * false, and leaves the operation, if that is not possible. */
	template <typename O> bool keep(std::unique_ptr<O> &made) noexcept
	{
		std::unique_lock<std::mutex> guard(lock);

		made->of = this;
		if (rpma_rt_future_then(made->future.raw(), on_over,
					made.get()) < 0)
			return false;
		auto ended = take_ended();
		made->next = std::move(left);
		left = std::move(made);
		guard.unlock();
		end_all(std::move(ended));
		return true;
	}

private:
	/* Returns the operations whose slots are free. Under the lock. */
	std::unique_ptr<left_op> take_ended() noexcept
	{
		std::unique_ptr<left_op> ended;

		for (auto *at = &left; *at;) {
			if (!(*at)->is_over || !(*at)->has_free) {
				at = &(*at)->next;
				continue;
			}
			auto next = std::move((*at)->next);

			(*at)->next = std::move(ended);
			ended = std::exchange(*at, std::move(next));
		}
		return ended;
	}
	/* A loop: the destructors of a long list need no stack. */
	static void end_all(std::unique_ptr<left_op> list) noexcept
	{
		while (list)
			list = std::move(list->next);
	}
	/* The poller. */
	static void on_over(const rpma_rt_completion *item, void *op) noexcept
	{
		auto &self = *static_cast<left_op *>(op);
		std::lock_guard<std::mutex> guard(self.of->lock);

		self.free_slots(*item);
		(void)rpma_rt_future_drop(self.future.raw());
		self.is_over = true;
		self.of->over.notify_all();
	}
};

struct conn_core final : counted<conn_core>, member {
	/* A slot for a work request: posted, or free. */
	struct slot {
		lease buffer;
		op *awaiting = nullptr;
		uint32_t next = 0; /* of the same post, or free */
		uint32_t count = 0;
		uint16_t generation = 0;
	};
	/* A chain of given sends, at the place of the first send. */
	struct sent {
		/* length of the chain; 0: no end yet */
		uint32_t count : 31;
		/* some leases are not of the stock's pool, or are shared */
		uint32_t is_mixed : 1;
	};
	static constexpr uint32_t CHAIN = loop_core::CHAIN;
	/* the length of a chain on a connection with many slots */
	static constexpr uint32_t CHAIN_END = 16;
	/* in the context of given sends, beside the number of the first send of
	 * the chain */
	static constexpr uint64_t GIVEN = uint64_t(1) << 47;
	enum stage : uint8_t { BEGUN, ESTABLISHED, CLOSED };
	/* What decides whether a send may be given, looked at at once. */
	struct alignas(uint32_t) condition {
		stage is = BEGUN;
		/* WRITABLE or CLOSED follows: no post succeeds before */
		bool is_refused = false;
		bool is_draining = false; /* by this side */
		/* operations may wait in the line; start() looks */
		bool has_line = false;
	};

	ref<loop_core> loop; /* nullptr: without a loop, alone is set */
	std::unique_ptr<detail::alone> alone;
	ref<runtime_core> rt;
	ref<peer_core> peer;
	receives from;
	rpma_rt_conn *raw = nullptr;
	std::unique_ptr<slot[]> slots;
	uint32_t slot_count = 0;
	uint32_t free_first = 0;
	/* Given sends, numbered: a ring, in which chains follow each other. A
	 * send with flags has the flags in the low bits of the pointer, until
	 * the send is posted; see lease_at(). nullptr: the end of a chain */
	std::unique_ptr<rpma_rt_lease *[]> given;
	std::unique_ptr<sent[]> sends;
	uint32_t mask = 0;	  /* of the index of a number */
	uint32_t given_back = 0;  /* the first that did not go back */
	uint32_t given_first = 0; /* the first without a completion */
	uint32_t chain_first = 0; /* the first of the last chain */
	uint32_t chain_next = 0;  /* the first that is not posted */
	uint32_t given_end = 0;	  /* the next */
	uint32_t given_limit = 0; /* the first that has no room */
	uint32_t chain_held = 0;  /* counted in in_chains of the pool */
	/* the number with which on_turn_of() is called */
	uint32_t chain_turn = 0;
	condition now;
	bool has_messages = false; /* a loop may wait for messages */
	bool chain_mixed = false;  /* becomes sent.is_mixed */
	/* some sends that are not posted have flags, or end the chain */
	bool chain_special = false;
	/* the chain ends with the next post: by a write, or because leases are
	 * of different pools */
	bool chain_ends = false;
	link line; /* operations that wait until they can be posted */
	link readers;
	message_list unread;
	pool_stock stock;
	chain_link in_chained{this}; /* in a list of the loop */
	done_link in_done{this};     /* in the list done of the loop */
	/* the timeout of a drain that begins when the chain is posted */
	std::optional<uint32_t> drains_later;
	uint8_t reason = 0;
	link watches;
	std::string private_data; /* for the connect after READY */
	request_link pending{this};

	~conn_core()
	{
		forget_given();
		while (!unread.is_empty())
			unread.pop_front(*from.pool)->end_lease();
		if (!raw)
			return;
		if (alone)
			end();
		rpma_rt_conn_unref(&raw);
	}
	static inline ref<conn_core> make(const ref<loop_core> &loop,
					  const ref<peer_core> &peer,
					  const receives &from,
					  uint32_t slots) noexcept;

	/* Makes a connection without a loop of a handle. Takes the handle, also
	 * on failure. */
	static inline result<ref<conn_core>>
	make_alone(const ref<runtime_core> &rt, const ref<peer_core> &peer,
		   const receives &from, rpma_rt_conn *raw);

	/* Joins the loop, which has a reference until CLOSED. */
	void join() noexcept
	{
		get();
		loop->conns.push_back(*this);
	}
	error why_closed() const noexcept { return error::closed(reason); }
	void close() noexcept override
	{
		if (!raw || now.is == CLOSED)
			return;
		(void)post_chain();
		rpma_rt_conn_close(raw);
	}
	/* The owner leaves: without a loop waits until the connection has
	 * ended. */
	void end() noexcept
	{
		close();
		/* as many threads wait for the end as there are futures */
		while (alone &&
		       wait_closed(-1).error().code() == RPMA_RT_E_BUSY)
			alone->await_closed();
	}
	result<void> drain(uint32_t timeout_ms) noexcept
	{
		int ret = 0;

		if (!post_chain() && now.is != CLOSED)
			drains_later = timeout_ms;
		else
			ret = rpma_rt_conn_drain(raw, timeout_ms);
		/* without a loop: other threads read the word */
		if (!alone)
			now.is_draining |= ret == 0;
		return result_of_call(ret);
	}

	/* ------------------------------------------- without a loop --- */

	result<future_of_c> event(rpma_rt_event what)
	{
		future_of_c made(rt);
		int ret = rpma_rt_conn_future(raw, what, made.raw());

		if (ret < 0)
			return error::call(ret);
		return made;
	}
	/* Calls look(future), with a future of CLOSED that no other thread has,
	 * so that no thread waits for another. Thread: any. */
	template <typename F> result<rpma_rt_completion> look_at_closed(F look)
	{
		auto closed = alone->take_closed();

		if (closed.raw()->opaque[0] == 0) {
			auto made = event(RPMA_RT_EVENT_CLOSED);

			if (!made)
				return made.error();
			closed = std::move(*made);
		}
		auto item = look(closed);
		alone->put_closed(std::move(closed));
		return item;
	}
	result<rpma_rt_completion> wait_closed(int timeout_ms)
	{
		return look_at_closed([=](const future_of_c &closed) {
			return closed.wait(timeout_ms);
		});
	}
	/* Waits for an event, or returns why the event will not come. */
	result<void> wait_for(rpma_rt_event what, int timeout_ms)
	{
		auto made = event(what);

		if (!made)
			return made.error();
		auto item = made->wait(timeout_ms);
		if (!item)
			return item.error();
		if (rpma_rt_completion_event(&*item) != what)
			return error::closed(item->status);
		return {};
	}
	/* Returns why a post was refused. */
	error not_posted(int ret)
	{
		if (ret == RPMA_RT_E_CLOSED) {
			auto ended =
				look_at_closed([](const future_of_c &closed) {
					return closed.poll();
				});

			if (ended)
				return error::closed(ended->status);
		}
		/* also before CLOSED has come with the reason */
		return error::not_posted(ret);
	}
	/* Sends the bytes of a lease; the send keeps the slot, too. */
	error hand(const lease &buffer, uint32_t flags)
	{
		const int ret =
			rpma_rt_send_lease(raw, &buffer.raw(), buffer.size(),
					   flags | RPMA_RT_F_KEEP);

		return ret ? not_posted(ret) : error();
	}

	/* --------------------------------------------------- operations --- */

	enum answer { YES, LATER, NO }; /* posted, waits, complete */

	uint64_t context_of(uint32_t index) const noexcept
	{
		return index | uint64_t(slots[index].generation & 0x7fff) << 32;
	}
	/* Moves the operation into the first free slots. */
	void fill_slots(op &o, bool is_awaited) noexcept
	{
		uint32_t index = free_first;

		o.slot_ = index;
		slots[index].awaiting = is_awaited ? &o : nullptr;
		slots[index].count = o.count_;
		for (uint32_t i = 0; i < o.count_; i++) {
			if (o.leases_[i])
				slots[index].buffer = std::move(o.leases_[i]);
			index = slots[index].next;
		}
		free_first = index;
		given_limit -= o.count_;
	}
	answer post(op &o) noexcept
	{
		int taken;

		if (!o.wrs_)
			return chain(o);
		if (o.count_ > slot_count)
			return refuse(o, error::not_posted(RPMA_E_INVAL));
		if (o.count_ > room() || !post_chain())
			return LATER;
		o.wrs_[o.count_ - 1].context = context_of(free_first);
		taken = rpma_rt_post_send(raw, o.wrs_,
					  static_cast<int>(o.count_));
		if (taken == static_cast<int>(o.count_)) {
			o.state_ = op::POSTED;
			fill_slots(o, true);
			return YES;
		}
		if (taken < 0)
			return not_taken(o, taken);
		/* a link that is cut off: the connection closes, and no
		 * completion says when the device has done with the first
		 * part */
		fill_slots(o, false);
		return refuse(o, error::unknown());
	}
	answer not_taken(op &o, int why) noexcept
	{
		if (why == RPMA_RT_E_CLOSED && now.is_draining)
			return refuse(o, error::closed(RPMA_RT_REASON_LOCAL));
		/* CLOSED follows, with the reason */
		if (why == RPMA_E_AGAIN || why == RPMA_RT_E_CLOSED) {
			now.is_refused = true;
			return LATER;
		}
		return refuse(o, error::not_posted(why));
	}
	/* ------------------------------------------------ the chain --- */

	/* Returns how many more work requests may be posted or given. */
	uint32_t room() const noexcept { return given_limit - given_end; }
	/* Returns whether a send may join the chain; the post of the chain is
	 * refused only if a consumer is behind. */
	bool may_chain() const noexcept
	{
		return now.is == ESTABLISHED && !now.is_refused &&
		       !now.is_draining && room() > 0;
	}
	/* Returns may_chain() where no operation waits in the line; at worst
	 * false, where an operation has left the line. */
	RPMA_RT_HOT bool may_chain_at_once() const noexcept
	{
		return std::bit_cast<uint32_t>(now) ==
			       std::bit_cast<uint32_t>(
				       condition{.is = ESTABLISHED}) &&
		       given_end != given_limit;
	}
	/* a slot is in a line of the cache, so the low bits are free */
	static constexpr uintptr_t FLAG_BITS = alignof(slot_of_pool) - 1;
	static constexpr int FLAG_SHIFT = 24;
	static_assert((uint32_t(RPMA_RT_F_FENCE | RPMA_RT_F_SOLICITED) &
		       ~(FLAG_BITS << FLAG_SHIFT)) == 0);

	RPMA_RT_HOT static rpma_rt_lease *with_flags(rpma_rt_lease *buffer,
						     uint32_t flags) noexcept
	{
		return reinterpret_cast<rpma_rt_lease *>(
			reinterpret_cast<uintptr_t>(buffer) |
			flags >> FLAG_SHIFT);
	}
	/* the flag of the end of a chain, without a lease */
	static constexpr uint32_t END = 1u << 25;

	static uint32_t flags_of(const rpma_rt_lease *given) noexcept
	{
		return uint32_t(reinterpret_cast<uintptr_t>(given) & FLAG_BITS)
		       << FLAG_SHIFT;
	}
	/* Returns the lease of a given send, without the flags. */
	rpma_rt_lease *lease_at(uint32_t number) const noexcept
	{
		return reinterpret_cast<rpma_rt_lease *>(
			reinterpret_cast<uintptr_t>(given[number & mask]) &
			~FLAG_BITS);
	}
	/* Takes the lease, but for nullptr: the write that ends a chain. */
	RPMA_RT_HOT void chain(rpma_rt_lease *buffer, uint32_t flags) noexcept
	{
		const uint32_t number = given_end++;

		given[number & mask] = with_flags(buffer, flags);
		/* relaxed: while a slot has a single lease, no other thread
		 * makes a second */
		if (flags != 0 || buffer->pool != stock.pool() ||
		    slot_of_pool::of(buffer)->others.load(
			    std::memory_order_relaxed) != 0) [[unlikely]]
			note_unusual(buffer, flags);
		if (number == chain_turn) [[unlikely]]
			on_turn_of(number);
	}
	/* Notes a send with flags, a write that ends the chain, or a lease that
	 * is shared, or is not of the stock's pool. */
	RPMA_RT_COLD void note_unusual(const rpma_rt_lease *buffer,
				       uint32_t flags) noexcept
	{
		chain_special |= flags != 0;
		if (flags == END) {
			chain_ends = true;
			return;
		}
		/* relaxed: as in chain() */
		chain_mixed |= buffer->pool != stock.pool() ||
			       slot_of_pool::of(buffer)->others.load(
				       std::memory_order_relaxed) != 0;
	}
	/* Returns whether a new send has a lease of another pool than the first
	 * of the chain. */
	RPMA_RT_COLD bool is_of_several_pools() const noexcept
	{
		const auto *pool = lease_at(chain_first)->pool;

		for (uint32_t i = chain_next; i != given_end; i++) {
			const auto *buffer = lease_at(i);

			if (buffer && buffer->pool != pool)
				return true;
		}
		return false;
	}
	/* Called for the first send that is not posted, and for the last for
	 * which a post has room. */
	__attribute__((noinline)) void on_turn_of(uint32_t number) noexcept
	{
		chain_turn = chain_next + CHAIN - 1;
		if (number == chain_next)
			loop->chained.push_back(in_chained);
		if (number == chain_turn)
			(void)post_chain();
	}
	uint32_t chain_count() const noexcept
	{
		return given_end - chain_first;
	}
	answer chain(op &o) noexcept
	{
		if (now.is_draining)
			return refuse(o, error::closed(RPMA_RT_REASON_LOCAL));
		if (!may_chain())
			return LATER;
		chain(&access::take_slot(*o.leases_)->raw, o.slot_);
		o.state_ = op::COMPLETE;
		return NO;
	}
	/* Posts the new sends of the chain. Returns false if a part is left;
	 * WRITABLE or CLOSED follows. */
	bool post_chain() noexcept
	{
		return chain_next == given_end ||
		       (!now.is_refused && post_new());
	}
	/* Returns whether the chain may stay without a completion, which would
	 * wake a sleeping loop for nothing: while the chain is short, and the
	 * pool can spare the leases. */
	bool may_stay() noexcept
	{
		return loop->ends_chains && room() > 0 &&
		       chain_count() < std::min(CHAIN_END, slot_count / 4) &&
		       (chain_count() <= chain_held || count_in());
	}
	/* Counts the leases of the chain in the pool: chains of all loops hold
	 * less than a quarter of the receives, so that a peer finds a receive.
	 * Of a large pool some leases are counted in advance. */
	bool count_in() noexcept
	{
		auto &pool = chain_pool();
		const uint32_t more =
			std::clamp(pool.receives / 256,
				   chain_count() - chain_held, CHAIN_END);

		/* relaxed: a number; loops may pass the limit by a little */
		if (pool.in_chains.load(std::memory_order_relaxed) + more >=
		    pool.receives / 4)
			return false;
		pool.in_chains.fetch_add(more, std::memory_order_relaxed);
		chain_held += more;
		return true;
	}
	/* Called when the chain ends: all leases are from the same pool. */
	void count_off() noexcept
	{
		if (chain_held == 0)
			return;
		/* relaxed: a number */
		chain_pool().in_chains.fetch_sub(chain_held,
						 std::memory_order_relaxed);
		chain_held = 0;
	}
	pool_core &chain_pool() noexcept
	{
		return slot_of_pool::of(lease_at(chain_first))->pool();
	}
	/* Posts the new sends, of which some have flags, or end the chain. */
	RPMA_RT_COLD int post_special(int count, bool is_over) noexcept
	{
		rpma_rt_wr wrs[CHAIN];
		rpma_rt_wr *wr = wrs;

		for (uint32_t i = chain_next; i != given_end; i++, wr++) {
			const uint32_t flags = flags_of(given[i & mask]);
			const auto *buffer = lease_at(i);

			if (flags == END)
				rpma_rt_prep_write(wr, nullptr, 0, nullptr, 0,
						   0,
						   RPMA_F_COMPLETION_ON_ERROR,
						   GIVEN | chain_first);
			else
				rpma_rt_prep_send(wr, buffer->mr,
						  buffer->offset, buffer->len,
						  RPMA_F_COMPLETION_ON_ERROR |
							  flags,
						  GIVEN | chain_first);
		}
		if (is_over)
			wr[-1].flags &= ~uint32_t(RPMA_F_COMPLETION_ON_ERROR);
		return rpma_rt_post_send(raw, wrs, count);
	}
	/* Posts the new sends, which are plain. */
	int post_plain(int count, bool is_over) noexcept
	{
		const uint32_t end_flags = is_over ? RPMA_F_COMPLETION_ALWAYS
						   : RPMA_F_COMPLETION_ON_ERROR;
		const uint32_t at = chain_next & mask;
		const int straight = std::min(count, int(mask + 1 - at));
		int taken;

		if (straight == count) [[likely]]
			return rpma_rt_post_leases(raw, &given[at], count,
						   end_flags,
						   GIVEN | chain_first);
		taken = rpma_rt_post_leases(raw, &given[at], straight,
					    RPMA_F_COMPLETION_ON_ERROR,
					    GIVEN | chain_first);
		if (taken < straight)
			return taken;
		return straight +
		       std::max(rpma_rt_post_leases(raw, &given[0],
						    count - straight, end_flags,
						    GIVEN | chain_first),
				0);
	}
	bool post_new() noexcept
	{
		const int left = static_cast<int>(given_end - chain_next);
		const uint32_t posted = chain_next;
		bool is_over;
		int taken;

		if (chain_mixed) [[unlikely]]
			chain_ends |= is_of_several_pools();
		is_over = chain_ends || !may_stay();

		sends[chain_first & mask].count = 0;
		in_chained.unlink();
		taken = chain_special ? post_special(left, is_over)
				      : post_plain(left, is_over);
		chain_next += uint32_t(std::max(taken, 0));
		if (chain_special) [[unlikely]]
			forget_flags(posted);
		if (taken < left) {
			now.is_refused = true;
			return false;
		}
		chain_turn = given_end;
		if (is_over)
			over();
		else
			loop->unended.push_back(in_chained);
		return true;
	}
	/* Clears the flags of the sends from `first` to before chain_next: the
	 * sends are posted. */
	RPMA_RT_COLD void forget_flags(uint32_t first) noexcept
	{
		for (uint32_t i = first; i != chain_next; i++)
			given[i & mask] = lease_at(i);
		chain_special = chain_next != given_end;
	}
	/* The chain is posted, with a completion. */
	void over() noexcept
	{
		auto &first = sends[chain_first & mask];

		first.count = chain_count() & 0x7fffffff;
		first.is_mixed = chain_mixed;
		count_off();
		chain_mixed = false;
		chain_ends = false;
		chain_first = given_end;
	}
	/* Ends a posted chain, so that the leases go back; without room for the
	 * write, another time. */
	void end_chain() noexcept
	{
		if (chain_count() == 0 || !may_chain()) {
			if (chain_count() > 0 && now.is != CLOSED)
				loop->unended.push_back(in_chained);
			return;
		}
		chain(nullptr, END);
		(void)post_chain();
	}
	/* Logs the status of a given send, which nobody awaits. A flush is no
	 * cause. */
	RPMA_RT_COLD void log_given(const rpma_rt_completion &item) noexcept
	{
		if (error::of(item).what() != errc::failed ||
		    item.status == IBV_WC_WR_FLUSH_ERR ||
		    (item.flags & RPMA_RT_C_NOT_POSTED))
			return;
		rpma_log_message(
			RPMA_LOG_LEVEL_ERROR, __FILE__, __LINE__, __func__,
			"a given send of %s failed: %s",
			rpma_rt_conn_get_name(raw),
			rpma_rt_status_2str(ibv_wc_status(item.status)));
	}
	/* A chain is complete, or a send of the chain has failed. */
	void on_given(const rpma_rt_completion &item) noexcept
	{
		const auto first = static_cast<uint32_t>(item.context);
		const sent &s = sends[first & mask];
		const uint32_t count = s.count;

		if (item.status != IBV_WC_SUCCESS) [[unlikely]]
			log_given(item);
		/* the leases behind a failure stay until CLOSED: the device may
		 * have further sends of the chain */
		if (first != given_first || count == 0 ||
		    first == chain_first ||
		    (item.status != IBV_WC_SUCCESS && count > 1))
			return;
		given_limit += count;
		if (!s.is_mixed && given[(first + count - 1) & mask])
			[[likely]] {
			given_first += count;
			/* the ring has places for twice the sends that may be
			 * out, and a turn may poll more than twice */
			if (given_first - given_back > slot_count)
				give_back_done();
			else
				loop->ctx.done.push_back(in_done);
			return;
		}
		give_back_done();
		drop_given(first, count);
		given_back = given_first = first + count;
	}
	/* Gives the leases of complete chains back, which are of the stock's
	 * pool, and not shared. */
	void give_back_done() noexcept
	{
		const uint32_t count = given_first - given_back;
		const uint32_t at = given_back & mask;
		const uint32_t straight = std::min(count, mask + 1 - at);

		in_done.unlink();
		if (count == 0) [[unlikely]] /* also: without a ring */
			return;
		(void)rpma_rt_leases_release(&given[at], straight);
		if (straight < count) [[unlikely]]
			(void)rpma_rt_leases_release(&given[0],
						     count - straight);
		stock.put(count);
		given_back = given_first;
	}
	void drop_given(uint32_t first, uint32_t count) noexcept
	{
		for (; count > 0; count--) {
			if (auto *buffer = lease_at(first++))
				drop(*slot_of_pool::of(buffer));
		}
	}
	/* Gives all leases back: no device has a send any more. */
	void forget_given() noexcept
	{
		give_back_done();
		count_off();
		in_chained.unlink();
		drop_given(given_first, given_end - given_first);
		given_first = chain_first = chain_next = chain_turn = given_end;
		given_back = given_end;
	}
	static answer refuse(op &o, const error &why) noexcept
	{
		o.state_ = op::COMPLETE;
		o.why_ = why;
		return NO;
	}
	/* Returns false if the operation is complete. */
	bool start(op &o) noexcept
	{
		answer got = LATER;

		if (alone)
			return refuse(o, error::not_posted(RPMA_E_NOSUPP)) !=
			       NO;
		if (now.is == CLOSED)
			return refuse(o, why_closed()) != NO;
		now.has_line = !line.is_empty();
		if (!now.has_line && !now.is_refused)
			got = post(o);
		if (got == LATER) {
			o.state_ = op::WAITING;
			line.push_back(o);
			now.has_line = true;
		}
		return got != NO;
	}
	/* Posts the operations of the line that have room now. */
	void go_on() noexcept
	{
		while (post_chain() && !line.is_empty() && !now.is_refused) {
			op &first = static_cast<op &>(line.first());
			answer got = post(first);

			if (got == LATER)
				return;
			first.unlink();
			now.has_line = !line.is_empty();
			if (got == NO)
				first.complete();
		}
	}
	void free_slots(uint32_t index, op *awaiting) noexcept
	{
		uint32_t first = index;
		uint32_t count = slots[index].count;

		for (uint32_t i = 0;; i++) {
			if (awaiting && slots[index].buffer)
				awaiting->leases_[i] =
					std::move(slots[index].buffer);
			else
				slots[index].buffer.give_back();
			if (i + 1 == count)
				break;
			index = slots[index].next;
		}
		slots[index].next = free_first;
		free_first = first;
		given_limit += count;
	}
	void on_completion(const rpma_rt_completion &item) noexcept
	{
		uint32_t index = static_cast<uint32_t>(item.context);

		if (item.context & GIVEN) [[likely]] {
			on_given(item);
			go_on();
			return;
		}
		/* of a work request that was posted by raw() */
		if (index >= slot_count || item.context != context_of(index))
			return;
		slot &s = slots[index];
		op *awaiting = std::exchange(s.awaiting, nullptr);

		s.generation++;
		/* a link completes when the first part has failed: the device
		 * may have further parts until the connection is closed */
		if (item.status == IBV_WC_SUCCESS || s.count == 1)
			free_slots(index, awaiting);
		if (awaiting) {
			awaiting->state_ = op::COMPLETE;
			awaiting->why_ = error::of(item);
			awaiting->complete();
		}
		go_on();
	}

	/* ----------------------------------------------------- messages --- */

	inline const rpma_rt_completion *
	on_messages(const rpma_rt_completion *item,
		    const rpma_rt_completion *end) noexcept override;
	/* Gives a message to the first reader, or to the list. */
	void give(slot_of_pool *message) noexcept
	{
		if (loop->goes_on_at_once())
			give_to_reader(message);
		else
			give_to_reader_later(message);
	}
	RPMA_RT_HOT inline void give_to_reader(slot_of_pool *message) noexcept;
	__attribute__((cold)) inline void
	give_to_reader_later(slot_of_pool *message) noexcept;
	inline void give_back(slot_of_pool &message) noexcept;

	/* ------------------------------------------------------- events --- */

	inline void set_stage(stage reached) noexcept;
	inline void on_ready() noexcept;
	inline void on_closed(const rpma_rt_completion &item) noexcept;
	void on_writable() noexcept
	{
		now.is_refused = false;
		if (post_chain() && drains_later)
			(void)drain(*std::exchange(drains_later, std::nullopt));
		go_on();
	}
	void on_event(const rpma_rt_completion &item) noexcept
	{
		switch (item.opcode) {
		case RPMA_RT_EVENT_READY:
			on_ready();
			break;
		case RPMA_RT_EVENT_ESTABLISHED:
			set_stage(ESTABLISHED);
			go_on(); /* sends given before */
			break;
		case RPMA_RT_EVENT_CLOSED:
			on_closed(item);
			break;
		default:
			break;
		}
	}
	void on_item(const rpma_rt_completion &item) noexcept override
	{
		if (item.flags & RPMA_RT_C_LEASE) {
			give(access::slot_of(*from.pool, item));
		} else if (item.kind == RPMA_RT_COMPLETION) {
			on_completion(item);
		} else if (item.kind == RPMA_RT_EVENT) {
			on_event(item);
		} else if (item.kind == RPMA_RT_WRITABLE && item.opcode == 0) {
			on_writable();
		}
	}
};

inline ref<conn_core> conn_core::make(const ref<loop_core> &loop,
				      const ref<peer_core> &peer,
				      const receives &from,
				      uint32_t count) noexcept
{
	auto core = ref<conn_core>::adopt(new (std::nothrow) conn_core);

	if (!core)
		return core;
	core->slots.reset(new (std::nothrow) slot[count]);
	/* also for leases of a turn that go back at the end: see on_given() */
	const uint32_t places = std::bit_ceil(2 * count);
	core->given.reset(new (std::nothrow) rpma_rt_lease *[places]);
	core->sends.reset(new (std::nothrow) sent[places]);
	core->mask = places - 1;
	if (!core->slots || !core->given || !core->sends)
		return {};
	core->loop = loop;
	core->rt = loop->rt;
	core->peer = peer;
	core->from = from;
	if (from.pool)
		std::construct_at(std::addressof(core->stock), from.pool);
	core->has_messages = bool(from.pool);
	if (from.pool) {
		core->memory_ = from.pool->memory();
		core->stride_ = from.pool->stride();
	}
	core->slot_count = core->given_limit = count;
	for (uint32_t i = 0; i < count; i++)
		core->slots[i].next = i + 1;
	return core;
}

inline result<ref<conn_core>> conn_core::make_alone(const ref<runtime_core> &rt,
						    const ref<peer_core> &peer,
						    const receives &from,
						    rpma_rt_conn *raw)
{
	auto core = ref<conn_core>::adopt(new (std::nothrow) conn_core);

	if (core)
		core->alone.reset(new (std::nothrow) detail::alone);
	if (!core || !core->alone) {
		rpma_rt_conn_close(raw);
		rpma_rt_conn_unref(&raw);
		rt->keep(peer);
		return error::call(RPMA_E_NOMEM);
	}
	core->set_any_thread();
	core->rt = rt;
	core->peer = peer;
	core->from = from;
	core->raw = raw;
	auto closed = core->event(RPMA_RT_EVENT_CLOSED);
	if (!closed) {
		rt->keep(peer);
		return closed.error();
	}
	core->alone->put_closed(std::move(*closed));
	return core;
}

/* The slot keeps the lease until the device has done with the bytes. */
inline void op::leave_slot() noexcept
{
	conn_->slots[slot_].awaiting = nullptr;
}

inline bool op::start(rpma_rt_wr *wrs, lease *leases, uint32_t count) noexcept
{
	wrs_ = wrs;
	leases_ = leases;
	count_ = count;
	return conn_->start(*this);
}

/* ------------------------------------------------------ what is awaited --- */

/* A wait until the connection has reached a stage, or is closed. */
class watch : public waiter
{
public:
	watch(watch &&) noexcept = default;

	watch(ref<conn_core> conn, conn_core::stage until) noexcept
	    : conn_(std::move(conn)), until_(until)
	{
	}

	bool start() noexcept
	{
		if (conn_->now.is >= until_ || conn_->alone)
			return false;
		conn_->watches.push_back(*this);
		return true;
	}
	bool succeeded() const noexcept { return conn_->now.is == until_; }

protected:
	friend struct conn_core;
	ref<conn_core> conn_;
	conn_core::stage until_;
};

inline void conn_core::set_stage(stage reached) noexcept
{
	link *w = &watches.first();

	now.is = reached;
	/* a complete watch may take others back: from the beginning again */
	while (w != &watches) {
		auto &first = static_cast<watch &>(*w);

		if (reached < first.until_) {
			w = &w->next();
			continue;
		}
		first.unlink();
		first.complete();
		w = &watches.first();
	}
}

class establishing : public awaitable<establishing, watch>
{
public:
	using awaitable::awaitable;
	result<void> finish() noexcept
	{
		if (conn_->alone)
			return error::call(RPMA_E_NOSUPP);
		if (conn_->now.is == conn_core::CLOSED)
			return conn_->why_closed();
		return {};
	}
	result<void> wait(int timeout_ms = -1)
	{
		if (!conn_->alone)
			return error::call(RPMA_E_NOSUPP);
		return conn_->wait_for(RPMA_RT_EVENT_ESTABLISHED, timeout_ms);
	}
};

class closing : public awaitable<closing, watch>
{
public:
	using awaitable::awaitable;
	rpma_rt_reason finish() noexcept
	{
		return static_cast<rpma_rt_reason>(conn_->reason);
	}
	result<rpma_rt_reason> wait(int timeout_ms = -1)
	{
		if (!conn_->alone)
			return error::call(RPMA_E_NOSUPP);
		auto item = conn_->wait_closed(timeout_ms);
		if (!item)
			return item.error();
		return static_cast<rpma_rt_reason>(item->status);
	}
};

/* A wait for the next message. */
class receiving : public awaitable<receiving>
{
public:
	RPMA_RT_HOT explicit receiving(const ref<conn_core> &conn) noexcept
	    : conn_(conn.another())
	{
	}
	receiving(receiving &&) noexcept = default;
	RPMA_RT_HOT ~receiving()
	{
		if (message_) [[unlikely]] /* not taken: the next again */
			conn_->give_back(*message_);
	}
	RPMA_RT_HOT bool start() noexcept
	{
		if (!conn_->unread.is_empty()) {
			message_ = conn_->unread.pop_front(*conn_->from.pool);
			return false;
		}
		if (!conn_->has_messages) [[unlikely]]
			return false;
		conn_->readers.push_new(*this);
		return true;
	}
	RPMA_RT_HOT result<message> finish() noexcept
	{
		auto *const taken = std::exchange(message_, nullptr);

		if (taken) [[likely]]
			return access::make<message>(taken,
						     conn_->stock.take());
		return why();
	}
	bool succeeded() const noexcept { return message_ != nullptr; }
	/* Returns a future of the message, without a loop. */
	result<next_future<message>> begin() const
	{
		if (!conn_->alone)
			return error::call(RPMA_E_NOSUPP);
		return access::ask<message>(
			conn_->rt, {nullptr, conn_->raw, nullptr, nullptr},
			{conn_->from.pool});
	}
	result<message> wait(int timeout_ms = -1) const
	{
		return wait_for(begin(), timeout_ms);
	}

private:
	friend struct conn_core;
	/* Returns why there is no message. */
	RPMA_RT_COLD error why() const noexcept
	{
		return conn_->from.pool && !conn_->alone
			       ? conn_->why_closed()
			       : error::call(RPMA_E_NOSUPP);
	}
	ref<conn_core> conn_;
	slot_of_pool *message_ = nullptr;
};

/* A send that the chain did not take at once. */
class giving_later : public awaitable<giving_later, op>
{
public:
	/* Keeps what start() needs; without a loop posts the send. */
	RPMA_RT_COLD giving_later(const ref<conn_core> &conn, lease &&buffer,
				  uint32_t flags) noexcept
	    : awaitable(conn), buffer_(std::move(buffer))
	{
		slot_ = flags;
		if (!conn->alone)
			return;
		state_ = COMPLETE;
		why_ = conn->hand(buffer_, flags);
		if (!why_) /* the send keeps the slot */
			buffer_.give_back();
	}
	giving_later(giving_later &&) noexcept = default;
	bool start() noexcept
	{
		if (state_ == COMPLETE)
			return false;
		if (!buffer_ || (slot_ & ~FLAGS) != 0)
			return conn_core::refuse(
				       *this,
				       error::not_posted(RPMA_E_INVAL)) !=
			       conn_core::NO;
		return op::start(nullptr, &buffer_, 1);
	}
	outcome<1> finish() noexcept { return {why_, {std::move(buffer_)}}; }
	/* Returns the outcome for a thread. */
	outcome<1> wait() noexcept
	{
		if (!conn_->alone)
			why_ = error::call(RPMA_E_NOSUPP);
		return finish();
	}

	static constexpr uint32_t FLAGS = RPMA_RT_F_FENCE | RPMA_RT_F_SOLICITED;

private:
	lease buffer_;
};

/* A send for the chain: complete once the chain has the send, which is mostly
 * at once. Then the object has no waiter, which saves a line of the coroutine's
 * frame. */
class giving
{
public:
	RPMA_RT_HOT giving(const ref<conn_core> &conn, lease &&buffer,
			   uint32_t flags) noexcept
	    : is_later_(false)
	{
		if (buffer && conn->may_chain_at_once() &&
		    (flags & ~giving_later::FLAGS) == 0) [[likely]]
			conn->chain(&access::take_slot(buffer)->raw, flags);
		else
			begin(conn, std::move(buffer), flags);
	}
	giving(giving &&other) noexcept : is_later_(other.is_later_)
	{
		if (is_later_)
			std::construct_at(&later_, std::move(other.later_));
	}
	RPMA_RT_HOT ~giving()
	{
		if (is_later_) [[unlikely]]
			std::destroy_at(&later_);
	}
	RPMA_RT_HOT bool await_ready() const noexcept { return !is_later_; }
	template <typename P>
	bool await_suspend(std::coroutine_handle<P> awaiting) noexcept
	{
		return later_.await_suspend(awaiting);
	}
	RPMA_RT_HOT outcome<1> await_resume() noexcept { return finish(); }
	/* See awaitable. */
	bool start() noexcept { return is_later_ && later_.start(); }
	RPMA_RT_HOT outcome<1> finish() noexcept
	{
		if (!is_later_) [[likely]]
			return error();
		return later_.finish();
	}
	bool succeeded() const noexcept
	{
		return !is_later_ || later_.succeeded();
	}
	/* Returns the waiter for a group; nullptr: complete at once. */
	waiter *waits() noexcept { return is_later_ ? &later_ : nullptr; }
	/* Returns the outcome at once, without a loop: posted, or refused,
	 * already. */
	outcome<1> wait(int /* timeout_ms */ = -1) noexcept
	{
		if (!is_later_) /* the loop sends, nobody awaits */
			return error::call(RPMA_E_NOSUPP);
		return later_.wait();
	}

private:
	RPMA_RT_COLD void begin(const ref<conn_core> &conn, lease &&buffer,
				uint32_t flags) noexcept
	{
		std::construct_at(&later_, conn, std::move(buffer), flags);
		is_later_ = true;
	}
	bool is_later_;
	union {
		giving_later later_;
	};
};

inline void chain_link::post() noexcept
{
	(void)conn->post_chain();
}

inline void chain_link::end() noexcept
{
	conn->end_chain();
}

inline void done_link::give_back() noexcept
{
	conn->give_back_done();
}

inline const rpma_rt_completion *
conn_core::on_messages(const rpma_rt_completion *item,
		       const rpma_rt_completion *end) noexcept
{
	const void *const user = item->user;
	slot_of_pool *const all = from.pool->slots;
	loop_core &of = *loop;
	/* read once: the next message of a row is handled if the message
	 * before has made nothing ready */
	const uint32_t changes = of.ctx.changes;

	if (!of.goes_on_at_once()) [[unlikely]] {
		give_to_reader_later(access::usual_slot_of(all, *item));
		return item + 1;
	}
	do {
		give_to_reader(access::usual_slot_of(all, *item++));
	} while (item != end && item->user == user && is_usual(*item) &&
		 of.ctx.changes == changes);
	return item;
}

/* REQUIRES: the loop goes_on_at_once(). */
inline void conn_core::give_to_reader(slot_of_pool *message) noexcept
{
	if (readers.is_empty()) [[unlikely]] {
		give_to_reader_later(message);
		return;
	}
	/* no message is unread while a reader waits */
	auto &next = readers.take_first<receiving>();

	next.message_ = message;
	next.go_on();
}

inline void conn_core::give_to_reader_later(slot_of_pool *message) noexcept
{
	if (loop->has_ended || readers.is_empty()) {
		unread.push_back(*from.pool, *message);
		return;
	}
	auto &next = readers.take_first<receiving>();

	next.message_ = message;
	next.complete();
}

/* Gives a message that was not taken to the first reader, or to the list. */
inline void conn_core::give_back(slot_of_pool &message) noexcept
{
	unread.push_front(message);
	if (loop->has_ended || readers.is_empty() || unread.is_empty())
		return;
	scope running(loop->ctx); /* resumed in a turn, not here */
	auto &next = readers.take_first<receiving>();

	next.message_ = unread.pop_front(*from.pool);
	next.complete();
}

inline void conn_core::on_closed(const rpma_rt_completion &item) noexcept
{
	ref<conn_core> self = ref<conn_core>::adopt(this); /* of the loop */

	unlink();
	pending.unlink();
	reason = item.status;
	now.is = CLOSED;
	has_messages = false;
	forget_given();
	for (uint32_t i = 0; i < slot_count; i++)
		slots[i].buffer.give_back();
	while (!line.is_empty()) {
		auto &first = line.take_first<op>();

		(void)refuse(first, why_closed());
		first.complete();
	}
	complete_all(readers);
	set_stage(CLOSED);
}

} // namespace detail

namespace detail
{

template <size_t N> struct left_ops final : left_op {
	left_ops(future_of_c &&f, std::array<lease, N> &&l) noexcept
	    : left_op(std::move(f)), leases(std::move(l))
	{
	}
	~left_ops() override
	{
		for (auto &buffer : leases) {
			auto *slot =
				has_free ? access::take_slot(buffer) : nullptr;

			if (slot)
				slot->pool().put();
		}
	}
	void free_slots(const rpma_rt_completion &item) noexcept override
	{
		/* the device may have further parts of a link until the end */
		if (item.status != IBV_WC_SUCCESS && N > 1)
			return;
		for (auto &buffer : leases) {
			if (buffer)
				access::slot_at(buffer)->end_lease();
		}
		has_free = true;
	}
	std::array<lease, N> leases;
};

} // namespace detail

/*
 * posted<N>: N work requests that a thread has posted without a loop.
 * Owner: the program; owns the leases until the outcome.
 * Thread: one at a time.
 * End: with leases, waits until the device has done with the leases.
 * Errors: poll(): RPMA_E_AGAIN; wait(): timed_out; or of the outcome.
 */
template <size_t N = 1> class [[nodiscard]] posted
{
public:
	posted(posted &&other) noexcept = default;
	/* Ends the former operation now, as the destructor does. */
	posted &operator=(posted &&other) noexcept
	{
		posted taken(std::move(other));

		std::swap(conn_, taken.conn_);
		std::swap(future_, taken.future_);
		std::swap(leases_, taken.leases_);
		std::swap(item_, taken.item_);
		return *this;
	}
	~posted()
	{
		bool is_held = false;

		for (const auto &buffer : leases_)
			is_held |= static_cast<bool>(buffer);
		if (is_held)
			(void)wait();
	}
	/* Returns the outcome. RPMA_E_AGAIN of a call: not yet complete. */
	outcome<N> poll() { return take(future_.poll()); }
	/* Waits for the outcome, without a limit for -1. */
	outcome<N> wait(int timeout_ms = -1)
	{
		return take(future_.wait(timeout_ms));
	}
	/* Returns the completion of a complete operation: lengths, immediate
	 * data. */
	const rpma_rt_completion &item() const noexcept { return item_; }

private:
	template <size_t M> friend class operation;
	friend class connection;
	posted(detail::ref<detail::conn_core> conn,
	       std::array<lease, N> &&leases) noexcept
	    : conn_(std::move(conn)), future_(conn_->rt),
	      leases_(std::move(leases))
	{
	}
	outcome<N> take(result<rpma_rt_completion> got)
	{
		if (!got)
			return got.error();
		item_ = *got;
		const error why = error::of(item_);
		/* the device may have further parts of a link until the end */
		if (why && N > 1)
			conn_->end();
		return {why, std::move(leases_)};
	}
	/* Leaves what is not complete to the connection; without memory for
	 * that, the destructor waits. */
	void leave() noexcept
	{
		bool is_held = false;

		for (const auto &buffer : leases_)
			is_held |= static_cast<bool>(buffer);
		if (!is_held)
			return;
		std::unique_ptr<detail::left_ops<N>> made(
			new (std::nothrow) detail::left_ops<N>(
				std::move(future_), std::move(leases_)));
		if (!made || conn_->alone->keep(made))
			return;
		future_ = std::move(made->future);
		leases_ = std::move(made->leases);
	}
	detail::ref<detail::conn_core> conn_;
	detail::future_of_c future_;
	std::array<lease, N> leases_;
	rpma_rt_completion item_{};
};

/*
 * operation<N>: N work requests, posted together when awaited or by begin().
 * Owner: owns the leases until the outcome; a posted lease stays with the
 *        connection if the operation is destroyed, or wait() has timed out.
 * Thread: the loop's; without a loop any, one at a time.
 * End: an operation that waits for room is not posted; a posted operation
 *      goes on.
 * Errors: of the outcome; RPMA_E_NOSUPP: a loop is missing, or is there.
 */
template <size_t N = 1>
class [[nodiscard]] operation
    : public detail::awaitable<operation<N>, detail::op>
{
public:
	operation(operation &&) noexcept = default;
	bool start() noexcept
	{
		return detail::op::start(wrs_of_, leases_of_.data(), N);
	}
	outcome<N> finish() noexcept
	{
		return {this->why_, std::move(leases_of_)};
	}
	/* Posts without a loop, and returns the future of the outcome; wait()
	 * returns the leases of a refused operation, begin() drops them. */
	result<posted<N>> begin()
	{
		if (!this->conn_->alone)
			return error::call(RPMA_E_NOSUPP);
		posted<N> made(this->conn_, std::move(leases_of_));
		wrs_of_[N - 1].future = made.future_.raw();
		const int ret =
			rpma_rt_post_send(this->conn_->raw, wrs_of_, int(N));
		if (ret == int(N))
			return made;
		if (ret > 0) /* a link that is cut off */
			this->conn_->end();
		leases_of_ = std::move(made.leases_);
		return ret >= 0 ? error::unknown()
				: this->conn_->not_posted(ret);
	}
	/* Waits for the outcome. timed_out: the leases stay with the connection
	 * until the device has done with the bytes. */
	outcome<N> wait(int timeout_ms = -1)
	{
		auto made = begin();

		if (!made)
			return {made.error(), std::move(leases_of_)};
		auto done = made->wait(timeout_ms);
		if (done.error().what() == errc::timed_out)
			made->leave();
		return done;
	}
	/* Adds flags to the last work request: RPMA_RT_F_FENCE, _SOLICITED,
	 * _INLINE. */
	operation &&with(uint32_t flags) && noexcept
	{
		wrs_of_[N - 1].flags |= flags;
		return std::move(*this);
	}

private:
	friend class connection;
	template <size_t M> friend class operation;
	explicit operation(detail::ref<detail::conn_core> conn) noexcept
	    : detail::awaitable<operation<N>, detail::op>(std::move(conn))
	{
	}
	rpma_rt_wr wrs_of_[N];
	std::array<lease, N> leases_of_;
};

/*
 * connection: an end of a connection: messages, and memory of the other end.
 * Owner: the program; keeps the peer, the pool and the shared receive queue.
 * Thread: the loop's; without a loop any, not in functions of a poller.
 * End: closes: posted work completes, waits end with an error; without a loop
 *      waits for the end.
 * Errors: closed; of operations; RPMA_E_NOSUPP: a loop is missing, or is there.
 *
 * An operation with a lease uses size() bytes of the lease. The functions with
 * _raw use memory of the program, which stays until the operation is complete,
 * also when the awaiting coroutine was destroyed.
 */
class connection
    : public detail::ending_owner<detail::conn_core, &detail::conn_core::end>
{
public:
	/* ----------------------------------------------------- messages --- */

	/* co_await, wait(): result<message>, the next message. begin(): a
	 * future of the message. RPMA_E_NOSUPP: there is no pool. */
	RPMA_RT_HOT auto receive() const noexcept
	{
		return detail::receiving(core_);
	}
	/* Posts a receive into memory of the program, without a loop and
	 * without messages. */
	result<posted<>> receive_raw(rpma_mr_local *dst, size_t offset,
				     size_t len) const
	{
		posted<> made(core_, {});
		rpma_rt_recv_wr wr;

		rpma_rt_prep_recv(&wr, dst, offset, len, 0);
		wr.future = made.future_.raw();
		const int ret = rpma_rt_post_recv(core_->raw, &wr, 1);

		if (ret == 1)
			return made;
		return core_->alone ? core_->not_posted(ret)
				    : error::not_posted(ret);
	}
	operation<> send(lease buffer) const noexcept
	{
		return keep(send_raw(buffer.raw().mr, buffer.raw().offset,
				     buffer.size()),
			    buffer);
	}
	operation<> send(lease buffer, uint32_t imm) const noexcept
	{
		auto o = send(std::move(buffer));

		o.wrs_of_[0].op = RPMA_RT_OP_SEND_WITH_IMM;
		o.wrs_of_[0].imm = imm;
		return o;
	}
	/* Sends the bytes of a lease and gives the lease to the send. co_await:
	 * an outcome<>, once there is room; the loop posts at the end of the
	 * turn. wait(): posted at once, RPMA_E_AGAIN without room. A refused
	 * send leaves the lease in slot(). flags: RPMA_RT_F_FENCE,
	 * _SOLICITED. */
	RPMA_RT_HOT auto give(lease &&buffer, uint32_t flags = 0) const noexcept
	{
		return detail::giving(core_, std::move(buffer), flags);
	}
	operation<> send_raw(const rpma_mr_local *src, size_t offset,
			     size_t len) const noexcept
	{
		return prepare<rpma_rt_prep_send>(src, offset, len);
	}

	/* ------------------------------------------------ remote memory --- */

	operation<> write(const remote_memory &dst, size_t offset,
			  lease buffer) const noexcept
	{
		return keep(write_raw(dst, offset, buffer.raw().mr,
				      buffer.raw().offset, buffer.size()),
			    buffer);
	}
	operation<> write(const remote_memory &dst, size_t offset, lease buffer,
			  uint32_t imm) const noexcept
	{
		auto o = write(dst, offset, std::move(buffer));

		o.wrs_of_[0].op = RPMA_RT_OP_WRITE_WITH_IMM;
		o.wrs_of_[0].imm = imm;
		return o;
	}
	operation<> write_raw(const remote_memory &dst, size_t offset,
			      const rpma_mr_local *src, size_t src_offset,
			      size_t len) const noexcept
	{
		return prepare<rpma_rt_prep_write>(dst.raw(), offset, src,
						   src_offset, len);
	}
	/* Reads into the bytes of the lease. */
	operation<> read(const remote_memory &src, size_t offset,
			 lease buffer) const noexcept
	{
		return keep(read_raw(src, offset, buffer.raw().mr,
				     buffer.raw().offset, buffer.size()),
			    buffer);
	}
	operation<> read_raw(const remote_memory &src, size_t offset,
			     rpma_mr_local *dst, size_t dst_offset,
			     size_t len) const noexcept
	{
		return prepare<rpma_rt_prep_read>(dst, dst_offset, src.raw(),
						  offset, len);
	}
	operation<>
	flush(const remote_memory &dst, size_t offset, size_t len,
	      rpma_flush_type type = RPMA_FLUSH_TYPE_VISIBILITY) const noexcept
	{
		return prepare<rpma_rt_prep_flush>(dst.raw(), offset, len,
						   type);
	}
	/* Writes 8 bytes at once; offsets of atomics are multiples of 8. */
	operation<> atomic_write(const remote_memory &dst, size_t offset,
				 uint64_t value) const noexcept
	{
		char bytes[8];

		std::memcpy(bytes, &value, sizeof(bytes));
		return prepare<rpma_rt_prep_atomic_write>(dst.raw(), offset,
							  bytes);
	}
	/* Leaves the former value in the lease: slot().as<uint64_t>(). */
	operation<> compare_swap(const remote_memory &dst, size_t offset,
				 uint64_t compare, uint64_t swap,
				 lease old) const noexcept
	{
		return keep(compare_swap_raw(dst, offset, compare, swap,
					     old.raw().mr, old.raw().offset),
			    old);
	}
	operation<> compare_swap_raw(const remote_memory &dst, size_t offset,
				     uint64_t compare, uint64_t swap,
				     rpma_mr_local *old,
				     size_t old_offset) const noexcept
	{
		return prepare<rpma_rt_prep_compare_swap>(
			old, old_offset, dst.raw(), offset, compare, swap);
	}
	operation<> fetch_add(const remote_memory &dst, size_t offset,
			      uint64_t add, lease old) const noexcept
	{
		return keep(fetch_add_raw(dst, offset, add, old.raw().mr,
					  old.raw().offset),
			    old);
	}
	operation<> fetch_add_raw(const remote_memory &dst, size_t offset,
				  uint64_t add, rpma_mr_local *old,
				  size_t old_offset) const noexcept
	{
		return prepare<rpma_rt_prep_fetch_add>(old, old_offset,
						       dst.raw(), offset, add);
	}
	/* Joins operations of the connection, to be posted together or not at
	 * all, with a common outcome. */
	template <typename... Rest>
	operation<1 + sizeof...(Rest)> link(operation<> first,
					    Rest... rest) const noexcept
	{
		operation<1 + sizeof...(Rest)> o(core_);
		size_t count = 0;

		add(o, count, first);
		(add(o, count, rest), ...);
		for (size_t i = 0; i < sizeof...(Rest); i++)
			o.wrs_of_[i].flags |= RPMA_RT_F_LINKED | RPMA_RT_F_PART;
		return o;
	}

	/* ------------------------------------------- beginning and end --- */

	/* co_await, wait(): result<void>. An accepted connection is established
	 * later; operations of a loop wait. */
	auto established() const noexcept
	{
		return detail::establishing(core_,
					    detail::conn_core::ESTABLISHED);
	}
	/* co_await: rpma_rt_reason, when nothing is outstanding. wait(): a
	 * result<rpma_rt_reason>. */
	auto closed() const noexcept
	{
		return detail::closing(core_, detail::conn_core::CLOSED);
	}
	/* Closes the connection: waits end with an error. */
	void close() noexcept { core_->close(); }
	/* Closes the connection when all posted sends have completed, or after
	 * timeout_ms (0: no limit). */
	result<void> drain(uint32_t timeout_ms) noexcept
	{
		return core_->drain(timeout_ms);
	}
	/* Returns the data of the other side, valid as long as the connection;
	 * the network may have added zeros. */
	std::string_view private_data() const noexcept
	{
		rpma_conn_private_data pdata = {nullptr, 0};

		if (rpma_rt_conn_get_private_data(core_->raw, &pdata) ||
		    !pdata.ptr)
			return {};
		return {static_cast<const char *>(pdata.ptr), pdata.len};
	}
	/* Returns the handle, which must not be used to post. */
	rpma_rt_conn *raw() const noexcept { return core_->raw; }

private:
	friend class request;
	friend class detail::connecting;
	friend class listener;
	explicit connection(detail::ref<detail::conn_core> core) noexcept
	    : ending_owner(std::move(core))
	{
	}
	/* Makes an operation without flags; prep: a rpma_rt_prep_*() */
	template <auto prep, typename... A>
	operation<> prepare(A... args) const noexcept
	{
		operation<> o(core_);

		prep(o.wrs_of_, args..., 0, 0);
		return o;
	}
	static operation<> keep(operation<> &&o, lease &buffer) noexcept
	{
		o.leases_of_[0] = std::move(buffer);
		return std::move(o);
	}
	template <typename O>
	void add(O &o, size_t &count, operation<> &part) const noexcept
	{
		o.wrs_of_[count] = part.wrs_of_[0];
		o.leases_of_[count++] = std::move(part.leases_of_[0]);
	}
};

namespace detail
{

/* call: rpma_rt_conn_connect(), _accept() or _reject() */
inline result<void> decide(conn_core &conn, std::string_view private_data,
			   decltype(rpma_rt_conn_connect) *call) noexcept
{
	rpma_conn_private_data pdata = {
		const_cast<char *>(private_data.data()),
		static_cast<uint8_t>(private_data.size())};

	if (private_data.size() > UINT8_MAX)
		return error::call(RPMA_E_INVAL);
	return result_of_call(
		call(conn.raw, private_data.empty() ? nullptr : &pdata));
}

/* A connection that was begun; closed, if not taken. */
class connecting : public awaitable<connecting, watch>
{
public:
	connecting(const error &why) noexcept
	    : awaitable({}, conn_core::ESTABLISHED), made_({}), why_(why)
	{
	}
	connecting(ref<conn_core> conn) noexcept
	    : awaitable(conn, conn_core::ESTABLISHED), made_(std::move(conn))
	{
	}
	connecting(connecting &&) noexcept = default;
	bool start() noexcept { return !why_ && watch::start(); }
	result<connection> finish() noexcept
	{
		if (why_)
			return why_;
		if (conn_->alone)
			return error::call(RPMA_E_NOSUPP);
		if (conn_->now.is == conn_core::CLOSED)
			return conn_->why_closed();
		return std::move(made_);
	}
	bool succeeded() const noexcept { return !why_ && watch::succeeded(); }
	/* Waits at most timeout_ms for each of two steps. */
	result<connection> wait(int timeout_ms = -1)
	{
		if (why_)
			return why_;
		if (!conn_->alone)
			return error::call(RPMA_E_NOSUPP);
		auto done = conn_->wait_for(RPMA_RT_EVENT_READY, timeout_ms);
		if (done)
			done = decide(*conn_, conn_->private_data,
				      rpma_rt_conn_connect);
		if (done)
			done = conn_->wait_for(RPMA_RT_EVENT_ESTABLISHED,
					       timeout_ms);
		if (!done)
			return done.error();
		return std::move(made_);
	}

private:
	connection made_;
	error why_;
};

/* Makes a configuration, which leads to *srq; loop nullptr: without a loop. */
inline rpma_rt_conn_cfg cfg_of(const endpoint &with, rpma_rt_srq **srq,
			       const loop_core *loop, member *user) noexcept
{
	rpma_rt_conn_cfg cfg = with.cfg;

	cfg.peer = with.via.raw();
	cfg.pool = with.messages ? with.messages->raw() : nullptr;
	*srq = with.shared ? with.shared->raw() : nullptr;
	cfg.srqs = with.shared ? srq : nullptr;
	cfg.srq_count = with.shared ? 1 : 0;
	cfg.queue = loop ? loop->queue : nullptr;
	if (loop)
		cfg.user = user;
	if (loop && loop->poller >= 0)
		cfg.poller = loop->poller;
	if (!loop && cfg.futures == 0)
		cfg.futures =
			std::max(effective(cfg, &rpma_rt_conn_cfg::sq_size,
					   rpma_rt_conn_cfg_init),
				 effective(cfg, &rpma_rt_conn_cfg::rq_size,
					   rpma_rt_conn_cfg_init));
	return cfg;
}

inline receives receives_of(const endpoint &with) noexcept
{
	if (with.shared) {
		const auto &core = access::core(*with.shared);

		return {core->pool, core};
	}
	return {with.messages ? access::core(*with.messages) : ref<pool_core>(),
		{}};
}

inline void conn_core::on_ready() noexcept
{
	if (!decide(*this, private_data, rpma_rt_conn_connect))
		rpma_rt_conn_close(raw);
}

} // namespace detail

inline detail::connecting loop::connect(std::string address, std::string port,
					const endpoint &with) const
{
	auto core = detail::conn_core::make(
		core_, detail::access::core(with.via),
		detail::receives_of(with),
		detail::effective(with.cfg, &rpma_rt_conn_cfg::sq_size,
				  rpma_rt_conn_cfg_init));
	rpma_rt_srq *srq;
	int ret = RPMA_RT_E_CLOSED;

	if (!core)
		return error::call(RPMA_E_NOMEM);
	if (with.private_data.size() > UINT8_MAX)
		return error::call(RPMA_E_INVAL);
	core->private_data = with.private_data;
	auto cfg = detail::cfg_of(with, &srq, core_.get(), core.get());
	if (!core_->has_ended)
		ret = rpma_rt_conn_new(core_->rt->raw, address.c_str(),
				       port.c_str(), &cfg, &core->raw);
	if (ret < 0)
		return error::call(ret);
	core->join();
	return core;
}

inline detail::connecting runtime::connect(const std::string &address,
					   const std::string &port,
					   const endpoint &with) const
{
	rpma_rt_srq *srq;
	auto cfg = detail::cfg_of(with, &srq, nullptr, nullptr);
	rpma_rt_conn *raw = nullptr;
	int ret = RPMA_E_INVAL;

	if (with.private_data.size() <= UINT8_MAX)
		ret = rpma_rt_conn_new(core_->raw, address.c_str(),
				       port.c_str(), &cfg, &raw);
	if (ret < 0)
		return error::call(ret);
	auto made = detail::conn_core::make_alone(
		core_, detail::access::core(with.via),
		detail::receives_of(with), raw);
	if (!made)
		return made.error();
	(*made)->private_data = with.private_data;
	return std::move(*made);
}

} // namespace rpma::rt

#endif /* RPMA_RT_CONN_HPP */
