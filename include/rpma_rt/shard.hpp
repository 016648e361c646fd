/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shard.hpp: shards for coroutines, over rpma_rt/shard.h. An object of class
 * shards has a shard for each poller of a manual runtime. A shard is a loop
 * that a single thread runs; coroutines of shards send messages to each other.
 */

#ifndef RPMA_RT_SHARD_HPP
#define RPMA_RT_SHARD_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <rpma_rt/loop.hpp>

namespace rpma::rt
{

/* A message between shards: words, code and context belong to the program, from
 * and kind to the library. */
using shard_message = rpma_rt_shard_message;

/* shards_cfg: how shards are made; the fields are as in rpma_rt_shards_cfg. */
struct shards_cfg {
	uint32_t lane_size = RPMA_RT_DEFAULT_SHARD_LANE_SIZE;
	std::chrono::microseconds spin{RPMA_RT_DEFAULT_SHARD_SPIN_US};
	const rpma_rt_queue_cfg *queue = nullptr;
};

namespace detail
{

struct shard_core;
class asking;

/* The set. The functions of a shard have the place of the shard as argument. */
struct shards_core {
	struct place {
		/* set before the first run, on the thread of the shard */
		std::atomic<shard_core *> in{nullptr};
		rpma_rt_queue *queue = nullptr; /* immutable after make */
		/* Outstanding requests, also of former shards of the place, by
		 * context: the waiter for the answer, or nullptr if the waiter
		 * was destroyed. */
		std::vector<asking *> askers;
		std::vector<uint32_t> free_askers;
		/* Unread posts and requests, also of former shards of the
		 * place, with room for as many as may come. */
		ring<shard_message> unread;
		/* Counters for each other place, from the first shard on. */
		struct end {
			uint32_t sent = 0;	/* to the place */
			uint32_t read_seen = 0; /* of sent, read there */
			uint32_t read = 0;	/* from the place */
			uint32_t told = 0;	/* of read, told there */
		};
		std::unique_ptr<end[]> ends;
		/* Requests without an answer so far, by sender and context. */
		std::vector<bool> owed;

		/* Makes the tables, once. Returns false, or throws
		 * std::bad_alloc: no memory. */
		bool make_askers(size_t requests, size_t shards, size_t room)
		{
			if (!askers.empty())
				return true;
			if (!unread.reserve(room * shards))
				return false;
			ends.reset(new end[shards]);
			free_askers.reserve(requests);
			owed.resize(requests * shards);
			/* the last call that may throw */
			askers.resize(requests);
			for (size_t i = requests; i > 0; i--)
				free_askers.push_back(
					static_cast<uint32_t>(i - 1));
			return true;
		}
		size_t index_of(const shard_message &request) const noexcept
		{
			return request.from * askers.size() +
			       static_cast<size_t>(request.context);
		}
		/* Returns whether the place owes an answer to the request. */
		bool owes(const shard_message &request) const noexcept
		{
			return request.kind == RPMA_RT_SHARD_REQUEST &&
			       request.context < askers.size() &&
			       index_of(request) < owed.size() &&
			       owed[index_of(request)];
		}
	};
	/* How many posts and requests of a shard another shard has read: see
	 * doc/protocols/coroutine.md. */
	struct alignas(64) window {
		std::atomic<uint32_t> read{0};
		std::atomic<bool> wanted{false};
	};
	window &window_of(uint32_t from, uint32_t to) noexcept
	{
		return windows[from * count + to];
	}
	/* In the context of an answer: the shard was destroyed, and will not
	 * answer the request. */
	static constexpr uint64_t UNANSWERED = uint64_t(1) << 63;

	ref<runtime_core> rt;
	rpma_rt_shards *raw = nullptr;
	std::unique_ptr<place[]> places;
	std::unique_ptr<window[]> windows;
	uint32_t count = 0;
	uint32_t lane_size = 0;
	/* relaxed: the last reference sees all calls of deal(). A listener of C
	 * leads to the queues until LISTENER_CLOSED, which only the runtime's
	 * end is sure to bring */
	std::atomic<bool> is_dealt{false};
	std::unique_ptr<grave> rest = std::make_unique<grave>();

	~shards_core()
	{
		if (!raw)
			return;
		if (!is_dealt.load(std::memory_order_relaxed)) {
			rpma_rt_shards_delete(&raw);
			return;
		}
		(void)rpma_rt_shards_stop(raw);
		rest->shards = raw;
		rt->keep_busy(std::move(rest));
	}
	/* relaxed: set on this thread */
	static shard_core &shard_at(void *arg) noexcept
	{
		return *static_cast<place *>(arg)->in.load(
			std::memory_order_relaxed);
	}
	static inline void on_item(rpma_rt_shard *,
				   const rpma_rt_completion *item,
				   void *arg) noexcept;
	static inline void on_message(rpma_rt_shard *,
				      const shard_message *message,
				      void *arg) noexcept;
};

/* A shard of the set, below the loop. */
struct shard_core final : source {
	std::shared_ptr<shards_core> set;
	shards_core::place *place = nullptr;
	rpma_rt_shard *raw = nullptr;
	loop_core *loop = nullptr; /* the owner */
	uint32_t index = 0;
	bool has_ended = false;
	bool has_left = false; /* the loop has ended: no reader follows */
	link readers;
	std::unique_ptr<link[]> lines; /* waiters for room, by receiver */
	/* lines that wait until the receiver has read, and the number */
	std::unique_ptr<bool[]> is_full;
	uint32_t full_count = 0;

	/* No waiter for an answer is left: a waiter holds the loop. */
	~shard_core()
	{
		/* release: pairs with the acquire in shard::make() */
		if (place)
			place->in.store(nullptr, std::memory_order_release);
	}
	int run(int timeout_ms) noexcept override
	{
		int ret = rpma_rt_shard_run(raw, timeout_ms);

		if (ret == RPMA_RT_E_CLOSED)
			end();
		else if (full_count > 0)
			look_at_windows();
		return ret;
	}
	inline bool has_room(uint32_t to) noexcept;
	inline void has_read(const shard_message &message) noexcept;
	inline void look_at_windows() noexcept;
	inline void end() noexcept;
	inline void on_message(const shard_message &message) noexcept;
	inline void on_writable(uint32_t to) noexcept;
	inline void on_answer(const shard_message &message) noexcept;
	inline void read_next() noexcept;
	inline void give_back(const shard_message &message) noexcept;
	inline int answer(const shard_message &request,
			  shard_message message) noexcept;
	inline void decline(shard_message request) noexcept;
	inline void leave() noexcept override;
	/* Runs the coroutines that a function of the shard made ready. */
	void resume() noexcept
	{
		if (!loop->has_ended)
			scope(loop->ctx).run();
	}
};

inline void shards_core::on_item(rpma_rt_shard *,
				 const rpma_rt_completion *item,
				 void *arg) noexcept
{
	auto &self = shard_at(arg);

	self.loop->handle(*item);
	self.resume();
}

inline void shards_core::on_message(rpma_rt_shard *,
				    const shard_message *message,
				    void *arg) noexcept
{
	auto &self = shard_at(arg);

	self.on_message(*message);
	self.resume();
}

/* A post, until taken; a request, until answered. */
class sending : public waiter
{
public:
	sending(sending &&) noexcept = default;

protected:
	sending(ref<loop_core> loop, shard_core *shard, uint32_t to,
		const shard_message &message, bool is_request) noexcept
	    : loop_(std::move(loop)), shard_(shard), to_(to),
	      is_request_(is_request), message_(message)
	{
	}
	friend struct shard_core;
	/* Returns true if the message waits, in the line of the receiver. */
	bool start_sending() noexcept
	{
		if (shard_->has_ended)
			ret_ = RPMA_RT_E_CLOSED;
		else if (to_ < shard_->set->count &&
			 !shard_->lines[to_].is_empty())
			ret_ = RPMA_E_AGAIN;
		else
			ret_ = send();
		if (ret_ == RPMA_E_AGAIN)
			shard_->lines[to_].push_back(*this);
		return ret_ == RPMA_E_AGAIN;
	}
	inline int send() noexcept;
	/* Goes on after the message was sent, or refused. */
	inline void sent() noexcept;

	ref<loop_core> loop_;
	shard_core *shard_;
	uint32_t to_;
	bool is_request_;
	int ret_ = 0;
	shard_message message_;
};

class posting final : public awaitable<posting, sending>
{
public:
	posting(ref<loop_core> loop, shard_core *shard, uint32_t to,
		const shard_message &message) noexcept
	    : awaitable(std::move(loop), shard, to, message, false)
	{
	}
	posting(posting &&) noexcept = default;
	bool start() noexcept { return start_sending(); }
	result<void> finish() noexcept { return result_of_call(ret_); }
	bool succeeded() const noexcept { return ret_ == 0; }
};

class asking final : public awaitable<asking, sending>
{
public:
	asking(ref<loop_core> loop, shard_core *shard, uint32_t to,
	       const shard_message &message) noexcept
	    : awaitable(std::move(loop), shard, to, message, true)
	{
	}
	asking(asking &&) noexcept = default;
	~asking()
	{
		/* the answer will come, without a waiter */
		if (is_sent_)
			shard_->place->askers[slot_] = nullptr;
	}
	bool start() noexcept { return start_sending() || is_sent_; }
	result<shard_message> finish() noexcept
	{
		if (ret_ != 0)
			return error::call(ret_);
		if (is_unanswered_)
			return error::unanswered();
		return message_;
	}
	bool succeeded() const noexcept { return ret_ == 0 && !is_unanswered_; }

private:
	friend struct shard_core;
	friend class sending;
	int request() noexcept
	{
		shard_message request = message_;

		/* not empty: credits are used up before */
		slot_ = shard_->place->free_askers.back();
		request.context = slot_;
		int ret = rpma_rt_shard_request(shard_->raw, to_, &request);
		if (ret == 0) {
			shard_->place->free_askers.pop_back();
			shard_->place->askers[slot_] = this;
			is_sent_ = true;
		}
		return ret;
	}
	void answered(const shard_message &answer) noexcept
	{
		const uint64_t context = message_.context;

		is_sent_ = false;
		is_unanswered_ = answer.context & shards_core::UNANSWERED;
		message_ = answer;
		message_.context = context;
		complete();
	}
	void ended() noexcept
	{
		is_sent_ = false;
		ret_ = RPMA_RT_E_CLOSED;
		complete();
	}
	uint32_t slot_ = 0;
	bool is_sent_ = false;
	bool is_unanswered_ = false;
};

inline int sending::send() noexcept
{
	int ret;

	if (to_ < shard_->set->count && !shard_->has_room(to_))
		return RPMA_E_AGAIN;
	ret = is_request_ ? static_cast<asking *>(this)->request()
			  : rpma_rt_shard_post(shard_->raw, to_, &message_);
	if (ret == 0)
		shard_->place->ends[to_].sent++;
	return ret;
}

inline void sending::sent() noexcept
{
	/* a request completes with its answer */
	if (!is_request_ || !static_cast<asking *>(this)->is_sent_)
		complete();
}

/* A wait for the next post or request. */
class taking : public awaitable<taking>
{
public:
	taking(ref<loop_core> loop, shard_core *shard) noexcept
	    : loop_(std::move(loop)), shard_(shard)
	{
	}
	taking(taking &&) noexcept = default;
	~taking()
	{
		if (has_message_) /* not taken: the next message again */
			shard_->give_back(message_);
	}
	bool start() noexcept
	{
		if (shard_->has_left)
			return false;
		if (!shard_->place->unread.is_empty()) {
			give(shard_->place->unread.pop_front());
			return false;
		}
		if (shard_->has_ended)
			return false;
		shard_->readers.push_back(*this);
		return true;
	}
	result<shard_message> finish() noexcept
	{
		if (!std::exchange(has_message_, false))
			return error::call(RPMA_RT_E_CLOSED);
		shard_->has_read(message_);
		return message_;
	}
	bool succeeded() const noexcept { return has_message_; }

private:
	friend struct shard_core;
	void give(const shard_message &message) noexcept
	{
		message_ = message;
		has_message_ = true;
	}
	ref<loop_core> loop_;
	shard_core *shard_;
	shard_message message_ = {};
	bool has_message_ = false;
};

inline void shard_core::read_next() noexcept
{
	if (has_left || loop->has_ended || loop->ctx.is_left ||
	    readers.is_empty() || place->unread.is_empty())
		return;
	scope running(loop->ctx); /* resumed in a turn, not here */
	auto &next = readers.take_first<taking>();

	next.give(place->unread.pop_front());
	next.complete();
}

inline void shard_core::give_back(const shard_message &message) noexcept
{
	/* the sender has the error already */
	if (has_left && message.kind == RPMA_RT_SHARD_REQUEST) {
		has_read(message);
		return;
	}
	(void)place->unread.push_front(message);
	read_next();
}

/* Returns whether a post or request may be sent; false: a wake of the queue
 * follows. */
inline bool shard_core::has_room(uint32_t to) noexcept
{
	auto &e = place->ends[to];
	auto &w = set->window_of(index, to);

	if (e.sent - e.read_seen < set->lane_size)
		return true;
	/* acquire: pairs with the store in has_read(): no message is written
	 * before the earlier message was read */
	e.read_seen = w.read.load(std::memory_order_acquire);
	if (e.sent - e.read_seen < set->lane_size)
		return true;
	/* seq_cst, both: wanted before the look; pairs with has_read() */
	w.wanted.store(true, std::memory_order_seq_cst);
	e.read_seen = w.read.load(std::memory_order_seq_cst);
	if (e.sent - e.read_seen < set->lane_size)
		return true;
	full_count += !std::exchange(is_full[to], true);
	return false;
}

/* Counts a message that a coroutine has read, and tells the sender after each
 * half of a lane. */
inline void shard_core::has_read(const shard_message &message) noexcept
{
	auto &e = place->ends[message.from];
	rpma_rt_queue *sleeper = nullptr;

	if (++e.read - e.told < set->lane_size / 2)
		return;
	e.told = e.read;
	auto &w = set->window_of(message.from, index);
	/* seq_cst, both: read before the look; pairs with has_room() */
	w.read.store(e.read, std::memory_order_seq_cst);
	if (!w.wanted.load(std::memory_order_seq_cst))
		return;
	/* relaxed: a needless wake does no harm */
	w.wanted.store(false, std::memory_order_relaxed);
	sleeper = set->places[message.from].queue;
	(void)rpma_rt_queue_wake(sleeper);
}

inline void shard_core::look_at_windows() noexcept
{
	full_count = 0;
	for (uint32_t to = 0; to < set->count; to++) {
		if (std::exchange(is_full[to], false))
			on_writable(to);
	}
}

inline void shard_core::on_writable(uint32_t to) noexcept
{
	while (!lines[to].is_empty()) {
		auto &first = static_cast<sending &>(lines[to].first());

		first.ret_ = first.send();
		if (first.ret_ == RPMA_E_AGAIN)
			return;
		first.unlink();
		first.sent();
	}
}

inline void shard_core::on_answer(const shard_message &message) noexcept
{
	const auto slot = static_cast<uint32_t>(message.context);
	asking *awaiting = std::exchange(place->askers[slot], nullptr);

	place->free_askers.push_back(slot);
	if (awaiting)
		awaiting->answered(message);
}

inline void shard_core::on_message(const shard_message &message) noexcept
{
	switch (message.kind) {
	case RPMA_RT_SHARD_WRITABLE:
		on_writable(message.from);
		break;
	case RPMA_RT_SHARD_ANSWER:
		on_answer(message);
		break;
	case RPMA_RT_SHARD_REQUEST:
		place->owed[place->index_of(message)] = true;
		if (has_left) {
			has_read(message);
			decline(message);
			break;
		}
		[[fallthrough]];
	default:
		/* there is room for all that senders may have sent */
		(void)place->unread.push_back(message);
		read_next();
		break;
	}
}

/* Answers a request that is owed. */
inline int shard_core::answer(const shard_message &request,
			      shard_message message) noexcept
{
	int ret = rpma_rt_shard_answer(raw, &request, &message);

	if (ret == 0)
		place->owed[place->index_of(request)] = false;
	return ret;
}

inline void shard_core::decline(shard_message request) noexcept
{
	const size_t slot = place->index_of(request);

	request.context |= shards_core::UNANSWERED;
	(void)rpma_rt_shard_answer(raw, &request, &request);
	place->owed[slot] = false;
}

/* Declines the requests without an answer: the loop has ended. Unread posts
 * stay. */
inline void shard_core::leave() noexcept
{
	shard_message request = {};
	bool is_any = false;

	has_left = true;
	for (size_t left = place->unread.size(); left > 0; left--) {
		auto message = place->unread.pop_front();

		if (message.kind == RPMA_RT_SHARD_REQUEST)
			has_read(message);
		else
			(void)place->unread.push_back(message);
	}
	for (bool is : place->owed)
		is_any |= is;
	/* the calling thread runs the shard from here on; stopped: all senders
	 * have the error */
	if (!is_any || run(0) == RPMA_RT_E_CLOSED)
		return;
	request.kind = RPMA_RT_SHARD_REQUEST;
	for (size_t i = 0; i < place->owed.size(); i++) {
		request.from = static_cast<uint16_t>(i / place->askers.size());
		request.context = i % place->askers.size();
		if (place->owed[i])
			decline(request);
	}
	(void)run(0); /* sends the answers */
}

/* Ends all waits: the shard is stopped, no message follows. */
inline void shard_core::end() noexcept
{
	if (std::exchange(has_ended, true))
		return;
	place->owed.assign(place->owed.size(), false);
	scope running(loop->ctx); /* coroutines are resumed later */

	for (uint32_t i = 0; i < set->count; i++) {
		while (!lines[i].is_empty()) {
			auto &first = lines[i].take_first<sending>();

			first.ret_ = RPMA_RT_E_CLOSED;
			first.sent();
		}
	}
	for (auto &awaiting : place->askers) {
		if (awaiting)
			std::exchange(awaiting, nullptr)->ended();
	}
	complete_all(readers);
	loop->is_stopped = true;
	complete_all(loop->item_waiters);
}

} // namespace detail

/*
 * shards: a shard for each poller of a runtime in manual mode.
 * Owner: copies are the same shards.
 * Thread: any.
 * End: the last copy, or shard, stops and frees the set; after deal() the
 *      runtime frees the set.
 * Errors: of rpma_rt_shards_new(); after stop() all calls: RPMA_RT_E_CLOSED.
 */
class shards
{
public:
	static result<shards> make(const runtime &rt,
				   const shards_cfg &given = {})
	{
		rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
		const auto &runtime = detail::access::core(rt);
		auto core = std::make_shared<detail::shards_core>();
		std::vector<void *> args;

		core->rt = runtime;
		core->count = runtime->pollers;
		core->places.reset(new detail::shards_core::place[core->count]);
		core->windows.reset(
			new detail::shards_core::window[core->count *
							core->count]);
		for (uint32_t i = 0; i < core->count; i++)
			args.push_back(&core->places[i]);
		cfg.lane_size = given.lane_size;
		/* the library refuses a time below 0 or of more than 32 bits */
		cfg.spin_us = static_cast<uint32_t>(std::min(
			uint64_t(given.spin.count()), uint64_t(UINT32_MAX)));
		core->lane_size =
			detail::effective(cfg, &rpma_rt_shards_cfg::lane_size,
					  rpma_rt_shards_cfg_init);
		cfg.queue = given.queue;
		cfg.item_fn = detail::shards_core::on_item;
		cfg.message_fn = detail::shards_core::on_message;
		cfg.args = args.data();
		cfg.arg_count = core->count;
		int ret = rpma_rt_shards_new(runtime->raw, &cfg, &core->raw);
		for (uint32_t i = 0; i < core->count && ret == 0; i++) {
			rpma_rt_shard *of = nullptr;

			ret = rpma_rt_shards_get(core->raw, i, &of);
			if (ret == 0)
				ret = rpma_rt_shard_get_queue(
					of, &core->places[i].queue);
		}
		if (ret < 0)
			return error::call(ret);
		return shards(std::move(core));
	}
	/* Returns the number of shards. */
	uint32_t size() const noexcept { return core_->count; }
	/* Writes into the configuration of a listener of C that the connections
	 * go to the shards in turn; see request::of(). */
	result<void> deal(rpma_rt_conn_cfg &cfg) const noexcept
	{
		core_->is_dealt.store(true, std::memory_order_relaxed);
		return detail::result_of_call(
			rpma_rt_shards_deal(core_->raw, &cfg));
	}
	/* Stops all shards: posts and requests fail, taken messages are
	 * delivered, then all waits fail, and run(), turn() of each shard. */
	result<void> stop() const noexcept
	{
		return detail::result_of_call(rpma_rt_shards_stop(core_->raw));
	}

private:
	friend class shard;
	explicit shards(std::shared_ptr<detail::shards_core> core) noexcept
	    : core_(std::move(core))
	{
	}
	std::shared_ptr<detail::shards_core> core_;
};

/*
 * shard: a loop with a poller, a queue, and messages from and to other shards.
 * Owner: the program; a single shard for each index.
 * Thread: the thread that makes and runs the shard.
 * End: as a loop; requests without an answer end with the error unanswered.
 * Errors: RPMA_RT_E_CLOSED: stopped; RPMA_RT_E_BUSY: the index has a shard.
 */
class shard : public loop
{
public:
	static result<shard> make(const shards &set, uint32_t index)
	{
		auto core = std::make_shared<detail::shard_core>();
		const auto &of = set.core_;
		int ret = rpma_rt_shards_get(of->raw, index, &core->raw);

		if (ret < 0)
			return error::call(ret);
		auto *place = &of->places[index];
		detail::shard_core *nobody = nullptr;
		/* acquire: pairs with the release of the former shard's end;
		 * relaxed: nothing is read after a failure */
		if (!place->in.compare_exchange_strong(
			    nobody, core.get(), std::memory_order_acquire,
			    std::memory_order_relaxed))
			return error::call(RPMA_RT_E_BUSY);
		core->set = of;
		core->place = place;
		core->index = index;
		core->lines.reset(new detail::link[of->count]);
		core->is_full.reset(new bool[of->count]());
		/* as many as credits, and a place for a refused request:
		 * WRITABLE follows only a refusal of the library */
		if (!place->make_askers(size_t(of->lane_size) * of->count + 1,
					of->count, of->lane_size))
			return error::call(RPMA_E_NOMEM);
		shard made(of->rt, place->queue, static_cast<int>(index));
		if (!made.core_->items.reserve(detail::loop_core::BATCH))
			return error::call(RPMA_E_NOMEM);
		made.shard_ = core.get();
		core->loop = made.core_.get();
		made.core_->below = std::move(core);
		return made;
	}

	/* co_await: result<void>, when the message was taken. */
	auto post(uint32_t to, const shard_message &message) const noexcept
	{
		return detail::posting(core_, shard_, to, message);
	}
	/* co_await: result<shard_message>, the answer, with the context of the
	 * request. unanswered: the other shard was destroyed. */
	auto request(uint32_t to, const shard_message &message) const noexcept
	{
		return detail::asking(core_, shard_, to, message);
	}
	/* co_await: result<shard_message>, the next post or request. */
	auto receive() const noexcept { return detail::taking(core_, shard_); }
	/* Answers a request, once; from, kind and context are as received.
	 * RPMA_E_INVAL: answered before, or reported as unanswered. */
	result<void> answer(const shard_message &request,
			    const shard_message &answer) const noexcept
	{
		if (!shard_->has_ended && !shard_->place->owes(request))
			return error::call(RPMA_E_INVAL);
		return detail::result_of_call(shard_->answer(request, answer));
	}
	uint32_t index() const noexcept { return shard_->index; }

private:
	shard(const detail::ref<detail::runtime_core> &rt, rpma_rt_queue *queue,
	      int poller)
	{
		core_->rt = rt;
		core_->queue = queue;
		core_->is_borrowed = true;
		core_->poller = poller;
		core_->ctx.mail = std::make_shared<detail::mailbox>(queue);
	}
	detail::shard_core *shard_ = nullptr;
};

} // namespace rpma::rt

#endif /* RPMA_RT_SHARD_HPP */
