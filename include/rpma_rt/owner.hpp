/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owner.hpp: owners of the objects that belong to no loop: runtime, peer,
 * memory, pool, leases, futures of the next item of a source. The owners count
 * references: the order of destruction does not matter.
 */

#ifndef RPMA_RT_OWNER_HPP
#define RPMA_RT_OWNER_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <rpma_rt/error.hpp>
#include <rpma_rt/slots.hpp>

namespace rpma::rt
{

struct endpoint;
class connection;
class listener;

namespace detail
{

class connecting;

/*
 * Returns the value that the library uses for a field of a configuration: the
 * field, or where the field is 0 the default that init writes, the default of
 * the library that the program runs with. The headers have no own defaults.
 */
template <typename C>
uint32_t effective(const C &cfg, uint32_t C::*field,
		   int (*init)(C *cfg, size_t size)) noexcept
{
	C preset;

	if (cfg.*field != 0 || init(&preset, sizeof(preset)) < 0)
		return cfg.*field;
	return preset.*field;
}

/* A counted reference; T has get() and put(). */
template <typename T> class ref
{
public:
	ref() = default;
	/* Takes the reference that the caller has. */
	RPMA_RT_HOT static ref adopt(T *object) noexcept
	{
		ref r;
		r.object_ = object;
		return r;
	}
	RPMA_RT_HOT explicit ref(T *object) noexcept : object_(object)
	{
		if (object_)
			object_->get();
	}
	RPMA_RT_HOT ref(const ref &other) noexcept : ref(other.object_) {}
	RPMA_RT_HOT ref(ref &&other) noexcept
	    : object_(std::exchange(other.object_, nullptr))
	{
	}
	ref &operator=(ref other) noexcept
	{
		std::swap(object_, other.object_);
		return *this;
	}
	RPMA_RT_HOT ~ref()
	{
		if (object_)
			object_->put();
	}
	T *operator->() const noexcept { return object_; }
	T &operator*() const noexcept { return *object_; }
	T *get() const noexcept { return object_; }
	/* Returns another reference to the object. REQUIRES: an object */
	RPMA_RT_HOT ref another() const noexcept
	{
		object_->get();
		return adopt(object_);
	}
	/* Leaves the reference to the caller. */
	T *release() noexcept { return std::exchange(object_, nullptr); }
	explicit operator bool() const noexcept { return object_ != nullptr; }

private:
	T *object_ = nullptr;
};

/* Counts the references to an object that several threads have. */
template <typename T> class shared
{
public:
	void get(uint32_t count = 1) noexcept
	{
		/* relaxed: the caller has a reference */
		refs_.fetch_add(count, std::memory_order_relaxed);
	}
	void put(uint32_t count = 1) noexcept
	{
		/* acq_rel: pairs with itself: the thread that frees the object
		 * has seen what other threads did */
		if (refs_.fetch_sub(count, std::memory_order_acq_rel) == count)
			delete static_cast<T *>(this);
	}

private:
	std::atomic<uint32_t> refs_{1};
};

/* Counts the references to an object of a loop's thread; set_any_thread():
 * of any thread, where the object has no loop. */
template <typename T> class counted
{
public:
	RPMA_RT_HOT void get() noexcept
	{
		if (is_any_thread_) [[unlikely]]
			(void)add(1);
		else
			refs_++;
	}
	RPMA_RT_HOT void put() noexcept
	{
		if (is_any_thread_) [[unlikely]] {
			if (add(UINT32_MAX) == 1)
				destroy();
		} else if (--refs_ == 0) [[unlikely]] {
			destroy();
		}
	}

	/* Called before other threads know the object. */
	void set_any_thread() noexcept
	{
		is_any_thread_ = true;
		/* relaxed: no other thread knows the object */
		shared_refs_.store(refs_, std::memory_order_relaxed);
	}

private:
	RPMA_RT_COLD uint32_t add(uint32_t count) noexcept
	{
		/* acq_rel: pairs with itself: the thread that frees the object
		 * has seen what other threads did */
		return shared_refs_.fetch_add(count, std::memory_order_acq_rel);
	}
	RPMA_RT_COLD void destroy() noexcept { delete static_cast<T *>(this); }
	uint32_t refs_ = 1; /* of the loop's thread */
	bool is_any_thread_ = false;
	std::atomic<uint32_t> shared_refs_; /* of any thread, if set */
};

/* The deletes below fail while the object is in use, which the references
 * exclude; the library logs the reason, and the memory stays. */
struct peer_core : shared<peer_core> {
	rpma_peer *raw = nullptr;
	~peer_core() { rpma_peer_delete(&raw); }
};

/* A place for an object of C that cannot be deleted yet; made with the owner,
 * so that the end of the owner allocates nothing. */
struct grave {
	std::unique_ptr<grave> next;
	rpma_rt_pool *pool = nullptr;
	rpma_rt_srq *srq = nullptr;
	rpma_rt_queue *queue = nullptr;
	rpma_rt_shards *shards = nullptr;
	ref<peer_core> peer;
};

struct runtime_core : shared<runtime_core> {
	rpma_rt *raw = nullptr;
	bool is_manual = false;
	uint32_t pollers = 0;
	~runtime_core()
	{
		if (!raw)
			return;
		rpma_rt_stop(raw);
		for (auto *g = graves_.get(); g; g = g->next.get())
			drain(*g);
		for (auto *g = graves_.get(); g; g = g->next.get())
			rpma_rt_srq_delete(&g->srq);
		for (auto *g = graves_.get(); g; g = g->next.get())
			rpma_rt_pool_delete(&g->pool);
		for (auto *g = graves_.get(); g; g = g->next.get())
			rpma_rt_queue_delete(&g->queue);
		for (auto *g = graves_.get(); g; g = g->next.get())
			rpma_rt_shards_delete(&g->shards);
		rpma_rt_delete(&raw);
		while (graves_)
			graves_ = std::move(graves_->next);
	}
	/* Keeps the peer until the runtime is deleted. */
	void keep(const ref<peer_core> &peer)
	{
		std::lock_guard<std::mutex> guard(lock_);

		for (const auto &other : kept_) {
			if (other.get() == peer.get())
				return;
		}
		kept_.push_back(peer);
	}
	/* Keeps an object without an owner, which connections of a destroyed
	 * listener still use, until the runtime is deleted. */
	void keep_busy(std::unique_ptr<grave> of) noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);

		of->next = std::move(graves_);
		graves_ = std::move(of);
	}

private:
	/* Gives back the handles of requests that came when no loop took items
	 * any more. */
	static void give_back_requests(rpma_rt_queue *queue) noexcept
	{
		rpma_rt_completion item;

		while (rpma_rt_queue_poll(queue, &item, 1) == 1) {
			auto *conn = rpma_rt_completion_conn(&item);

			if (rpma_rt_completion_event(&item) ==
			    RPMA_RT_EVENT_REQUEST)
				rpma_rt_conn_unref(&conn);
		}
	}
	void drain(const grave &of) const noexcept
	{
		rpma_rt_shard *shard = nullptr;
		rpma_rt_queue *queue = nullptr;

		if (of.queue)
			give_back_requests(of.queue);
		for (uint32_t i = 0; of.shards && i < pollers; i++) {
			if (rpma_rt_shards_get(of.shards, i, &shard) == 0 &&
			    rpma_rt_shard_get_queue(shard, &queue) == 0)
				give_back_requests(queue);
		}
	}
	std::mutex lock_;
	std::vector<ref<peer_core>> kept_;
	std::unique_ptr<grave> graves_;
};

struct memory_core : shared<memory_core> {
	ref<peer_core> peer;
	rpma_mr_local *raw = nullptr;
	~memory_core() { rpma_mr_dereg(&raw); }
};

struct pool_core;

/*
 * A slot of a pool, in a line of the cache. A lease is a pointer to the slot,
 * so that a move takes few instructions. A list of unread messages links slots,
 * so that the arrival of a message takes no memory.
 */
struct alignas(64) slot_of_pool {
	rpma_rt_lease raw{};		 /* as of the last lease */
	uint32_t next;			 /* slot of the next message */
	uint32_t imm;			 /* of a message */
	std::atomic<uint32_t> others{0}; /* leases besides the first */
	bool has_imm = false;

	/* Returns the slot of a lease that is the slot's raw. */
	RPMA_RT_HOT static slot_of_pool *of(rpma_rt_lease *raw) noexcept
	{
		return reinterpret_cast<slot_of_pool *>(raw);
	}
	RPMA_RT_HOT static const slot_of_pool *
	of(const rpma_rt_lease *raw) noexcept
	{
		return reinterpret_cast<const slot_of_pool *>(raw);
	}
	/* Returns the pool of a slot that has had a lease; see
	 * pool_core::table. */
	pool_core &pool() noexcept
	{
		return *static_cast<pool_core *>(
			(this - raw.slot - 1)->raw.data);
	}
	/* Returns the bytes of a slot that has had a lease. */
	uint32_t room() const noexcept
	{
		return (this - raw.slot - 1)->raw.len;
	}
	/* Counts a lease less; returns true for the last lease. */
	bool is_last() noexcept
	{
		/* acquire, acq_rel: pairs with the acq_rel of the other leases,
		 * whose holders have done with the bytes */
		if (others.load(std::memory_order_acquire) == 0) [[likely]]
			return true;
		if (others.fetch_sub(1, std::memory_order_acq_rel) != 0)
			return false;
		/* relaxed: no other lease has the slot */
		others.store(0, std::memory_order_relaxed);
		return true;
	}
	/* Gives the slot back, if this was the last lease. */
	void end_lease() noexcept
	{
		if (is_last())
			rpma_rt_lease_release(&raw);
	}
};

static_assert(offsetof(slot_of_pool, raw) == 0 &&
	      std::is_standard_layout_v<slot_of_pool>);

struct pool_core : shared<pool_core> {
	ref<runtime_core> rt;
	ref<peer_core> peer;
	rpma_rt_pool *raw = nullptr;
	/* the element in front of the slots leads to the pool, and has the
	 * bytes of a slot in len */
	std::unique_ptr<slot_of_pool[]> table;
	slot_of_pool *slots = nullptr;
	uint32_t receives = 0; /* slots for receives */
	/* the program's futures, held and at most, without that of the line */
	std::atomic<uint32_t> futures_held{0};
	uint32_t futures = 0;
	/* slots of given sends that have no completion so far */
	std::atomic<uint32_t> in_chains{0};
	slot_line line; /* coroutines that wait for a slot */
	std::unique_ptr<grave> place = std::make_unique<grave>();

	/* Takes a slot, also a slot whose send is complete. */
	int take(rpma_rt_lease &lease) noexcept
	{
		int ret = rpma_rt_pool_take(raw, &lease);

		if (ret == RPMA_E_AGAIN && here && here->give_back())
			ret = rpma_rt_pool_take(raw, &lease);
		return ret;
	}
	const char *memory() const noexcept
	{
		return static_cast<const char *>(slots[0].raw.data);
	}
	/* Returns the bytes from a slot to the next. */
	size_t stride() const noexcept { return table[2].raw.offset; }
	/* Writes the fields that all leases of a slot have in common. Takes
	 * each slot for a moment: no other object uses the pool yet. */
	void write_slots(uint32_t count) noexcept
	{
		rpma_rt_lease one;
		uint32_t last = 0; /* in a list of slots by next */
		uint32_t i;

		for (i = 0; i < count && rpma_rt_pool_take(raw, &one) == 0;
		     i++) {
			slots[one.slot].raw = one;
			slots[one.slot].next = last;
			last = one.slot;
		}
		/* in reverse: the lists are in the former order */
		for (; i > 0; i--, last = slots[last].next)
			(void)rpma_rt_lease_release(&slots[last].raw);
	}
	~pool_core()
	{
		line.end();
		if (!raw || rpma_rt_pool_delete(&raw) != RPMA_RT_E_BUSY)
			return;
		place->pool = raw;
		place->peer = peer;
		rt->keep_busy(std::move(place));
	}
};

/* Ends a lease, which had a reference to the pool. */
__attribute__((noinline)) inline void drop(slot_of_pool &slot) noexcept
{
	auto &pool = slot.pool(); /* another thread may have the slot at once */

	slot.end_lease();
	pool.put();
}

/* References to a pool that a thread has in stock: messages take and return
 * references without an atomic operation. */
class pool_stock
{
public:
	pool_stock() = default;
	explicit pool_stock(ref<pool_core> of) noexcept
	    : pool_(std::move(of)), raw_(pool_ ? pool_->raw : nullptr)
	{
	}
	pool_stock(const pool_stock &) = delete;
	pool_stock &operator=(const pool_stock &) = delete;
	~pool_stock()
	{
		if (count_ > 0)
			pool_->put(static_cast<uint32_t>(count_));
	}
	RPMA_RT_HOT ref<pool_core> take() noexcept
	{
		if (--count_ < 0) [[unlikely]]
			refill();
		return ref<pool_core>::adopt(pool_.get());
	}
	/* Takes references to the pool. */
	void put(uint32_t count) noexcept
	{
		count_ += static_cast<int32_t>(count);
		if (count_ <= 4 * EACH)
			return;
		pool_->put(static_cast<uint32_t>(count_ - 2 * EACH));
		count_ = 2 * EACH;
	}
	/* Returns the pool, or nullptr. */
	const rpma_rt_pool *pool() const noexcept { return raw_; }

private:
	static constexpr int32_t EACH = 64;
	/* Called when a reference was taken that was not in stock. */
	RPMA_RT_COLD void refill() noexcept
	{
		pool_->get(EACH);
		count_ += EACH;
	}
	ref<pool_core> pool_;
	const rpma_rt_pool *raw_ = nullptr;
	int32_t count_ = 0; /* below 0 only inside of take() */
};

struct srq_core : shared<srq_core> {
	ref<runtime_core> rt;
	ref<peer_core> peer;
	ref<pool_core> pool;
	rpma_rt_srq *raw = nullptr;
	std::unique_ptr<grave> place = std::make_unique<grave>();

	~srq_core()
	{
		if (!raw || rpma_rt_srq_delete(&raw) != RPMA_RT_E_BUSY)
			return;
		place->srq = raw;
		place->peer = peer;
		rt->keep_busy(std::move(place));
	}
};

struct access; /* to the cores of the owners */

/* Makes a T of an item of a source. */
template <typename T> struct item_of;

/* Base of the owners whose copies are the same object. */
template <typename Core> class owner
{
public:
	/* Returns the object of C. */
	auto *raw() const noexcept { return core_->raw; }

protected:
	owner() : core_(ref<Core>::adopt(new Core)) {}
	friend access;
	ref<Core> core_;
};

/* Base of the owners that are moved, and call end of the core at the end. */
template <typename Core, void (Core::*end)() noexcept> class ending_owner
{
public:
	ending_owner(ending_owner &&) noexcept = default;
	/* Ends the former core now, not with `other`. */
	ending_owner &operator=(ending_owner &&other) noexcept
	{
		ending_owner taken(std::move(other));

		std::swap(core_, taken.core_);
		return *this;
	}
	~ending_owner()
	{
		if (core_)
			((*core_).*end)();
	}

protected:
	friend access;
	explicit ending_owner(ref<Core> core) noexcept : core_(std::move(core))
	{
	}
	ref<Core> core_;
};

} // namespace detail

/* --------------------------------------------------------------- owners --- */

/*
 * runtime: the pollers; makes connections and listeners without a loop.
 * Owner: copies are the same runtime; all objects of a runtime count.
 * Thread: any.
 * End: the last copy or object stops and deletes the runtime.
 * Errors: of rpma_rt_new(); connect().wait(): call, closed, timed_out.
 */
class runtime : public detail::owner<detail::runtime_core>
{
public:
	static result<runtime> make(rpma_rt_cfg cfg = RPMA_RT_CFG_INIT)
	{
		runtime r;
		int ret = rpma_rt_new(&cfg, &r.core_->raw);

		if (ret < 0)
			return error::call(ret);
		r.core_->is_manual = cfg.mode == RPMA_RT_MODE_MANUAL;
		r.core_->pollers = detail::effective(cfg, &rpma_rt_cfg::pollers,
						     rpma_rt_cfg_init);
		return r;
	}
	/* wait(): result<connection>, established. endpoint.cfg.futures 0: the
	 * larger of sq_size and rq_size. */
	inline detail::connecting connect(const std::string &address,
					  const std::string &port,
					  const endpoint &with) const;
	/* Listens; port "0": any, see listener::port(). */
	inline result<listener> listen(const std::string &address,
				       const std::string &port,
				       const endpoint &with) const;

private:
	runtime() = default;
};

/*
 * peer: a device and a protection domain.
 * Owner: copies are the same peer; objects made with a peer count as copies.
 * Thread: any.
 * End: the last copy frees the protection domain.
 * Errors: of rpma_peer_new() and rpma_utils_get_ibv_context().
 */
class peer : public detail::owner<detail::peer_core>
{
public:
	static result<peer> make(ibv_context *device)
	{
		peer p;
		int ret = rpma_peer_new(device, &p.core_->raw);

		if (ret)
			return error::call(ret);
		return p;
	}
	/* Makes a peer on the device of a local address, or on the device that
	 * leads to a remote address. */
	static result<peer>
	of(const std::string &address,
	   rpma_util_ibv_context_type type = RPMA_UTIL_IBV_CONTEXT_LOCAL)
	{
		ibv_context *device = nullptr;
		int ret = rpma_utils_get_ibv_context(address.c_str(), type,
						     &device);

		if (ret)
			return error::call(ret);
		return make(device);
	}

private:
	peer() = default;
};

/* Returns the description of a region, for the other side. */
inline result<std::string> descriptor_of(const rpma_mr_local *mr)
{
	size_t size = 0;
	int ret = rpma_mr_get_descriptor_size(mr, &size);
	std::string text(size, '\0');

	if (ret == 0)
		ret = rpma_mr_get_descriptor(mr, text.data());
	if (ret)
		return error::call(ret);
	return text;
}

/*
 * memory: a registered region of the program's memory.
 * Owner: copies are the same region; the program owns the bytes.
 * Thread: any.
 * End: the last copy unregisters; posted work has to be complete by then.
 * Errors: of rpma_mr_reg().
 */
class memory : public detail::owner<detail::memory_core>
{
public:
	static result<memory> make(const peer &p, void *ptr, size_t size,
				   int usage);
	result<std::string> descriptor() const
	{
		return descriptor_of(core_->raw);
	}

private:
	memory() = default;
};

/*
 * remote_memory: the description of a region of the other side.
 * Owner: the program; moved, not copied.
 * Thread: any; moved by one at a time.
 * End: frees the description.
 * Errors: RPMA_E_INVAL of a text that is no description.
 */
class remote_memory
{
public:
	static result<remote_memory> make(std::string_view descriptor)
	{
		remote_memory r;
		int ret = rpma_mr_remote_from_descriptor(
			descriptor.data(), descriptor.size(), &r.raw_);

		if (ret)
			return error::call(ret);
		return r;
	}
	/* Takes a description of C. */
	explicit remote_memory(rpma_mr_remote *raw) noexcept : raw_(raw) {}
	remote_memory(remote_memory &&other) noexcept
	    : raw_(std::exchange(other.raw_, nullptr))
	{
	}
	remote_memory &operator=(remote_memory &&other) noexcept
	{
		remote_memory taken(std::move(other));

		std::swap(raw_, taken.raw_);
		return *this;
	}
	~remote_memory() { rpma_mr_remote_delete(&raw_); }
	const rpma_mr_remote *raw() const noexcept { return raw_; }

private:
	remote_memory() = default;
	rpma_mr_remote *raw_ = nullptr;
};

/*
 * lease: a slot of a pool, or no slot.
 * Owner: owns the slot together with the leases of share(); keeps the pool.
 * Thread: any, one at a time; leases of the same slot on several.
 * End: the last lease of the slot gives the slot back to the pool.
 * Errors: no function fails; an empty lease has no bytes.
 */
class lease
{
public:
	lease() = default;
	RPMA_RT_HOT lease(lease &&other) noexcept
	    : slot_(std::exchange(other.slot_, nullptr))
	{
	}
	RPMA_RT_HOT lease &operator=(lease &&other) noexcept
	{
		auto *former = std::exchange(
			slot_, std::exchange(other.slot_, nullptr));

		if (former)
			detail::drop(*former);
		return *this;
	}
	RPMA_RT_HOT ~lease()
	{
		if (slot_) [[unlikely]]
			detail::drop(*slot_);
	}
	explicit operator bool() const noexcept { return slot_ != nullptr; }
	void give_back() noexcept { *this = lease(); }
	/* Returns another lease of the slot, for another send, write or
	 * connection. Neither the bytes nor size(), which the leases have in
	 * common, change while several leases exist. */
	lease share() const noexcept
	{
		if (!slot_)
			return {};
		/* relaxed: this lease has the slot */
		slot_->others.fetch_add(1, std::memory_order_relaxed);
		return lease(slot_,
			     detail::ref<detail::pool_core>(&slot_->pool()));
	}
	std::byte *data() const noexcept
	{
		return static_cast<std::byte *>(raw().data);
	}
	/* Returns the number of bytes in use: of a message, or of resize(). */
	size_t size() const noexcept { return raw().len; }
	std::span<std::byte> bytes() const noexcept { return {data(), size()}; }
	std::string_view text() const noexcept
	{
		return {static_cast<const char *>(raw().data), size()};
	}
	/* Returns the first bytes as a T. */
	template <typename T>
		requires std::is_trivially_copyable_v<T>
	T as() const noexcept
	{
		T value{};
		if (size() > 0)
			std::memcpy(&value, data(),
				    std::min(sizeof(T), size()));
		return value;
	}
	/* Sets size() of all leases of the slot, at most to the size of the
	 * slot. */
	lease &resize(size_t len) noexcept
	{
		if (slot_)
			slot_->raw.len = static_cast<uint32_t>(
				std::min<size_t>(len, slot_->room()));
		return *this;
	}
	/* Copies at most size() bytes of the text, which may be the lease's
	 * own, and resizes. */
	lease &assign(std::string_view text) noexcept
	{
		resize(std::min(text.size(), size()));
		if (size() > 0)
			std::memmove(data(), text.data(), size());
		return *this;
	}
	/* Copies at most size() bytes of the value, and resizes; see as(). */
	template <typename T>
		requires std::is_trivially_copyable_v<T> &&
			 (!std::is_convertible_v<const T &, std::string_view>)
	lease &assign(const T &value) noexcept
	{
		return assign({reinterpret_cast<const char *>(&value),
			       sizeof(value)});
	}
	const rpma_rt_lease &raw() const noexcept
	{
		static constexpr rpma_rt_lease empty{};

		return slot_ ? slot_->raw : empty;
	}

protected:
	friend detail::access;
	/* Takes the reference to the pool, too. */
	RPMA_RT_HOT lease(detail::slot_of_pool *slot,
			  detail::ref<detail::pool_core> &&pool) noexcept
	    : slot_(slot)
	{
		(void)pool.release();
	}
	detail::slot_of_pool *slot_ = nullptr;
};

template <typename T> class next_future;
using lease_future = next_future<lease>;

/*
 * pool: registered memory in slots, for receives and sends.
 * Owner: copies are the same pool; leases and connections count as copies.
 * Thread: any.
 * End: the last copy unregisters and frees the memory.
 * Errors: of rpma_rt_pool_new(); take(): RPMA_E_AGAIN; waits: closed.
 */
class pool : public detail::owner<detail::pool_core>
{
public:
	/* Makes a pool; cfg.peer is not used. */
	static result<pool> make(const runtime &rt, const peer &p,
				 rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT);
	/* Takes a free slot. RPMA_E_AGAIN: no slot is free, or others wait. */
	result<lease> take() const;
	/* Returns a future of the next free slot; see also loop::next(). */
	result<lease_future> next() const;

private:
	pool() = default;
};

/*
 * message: the lease of a slot with received bytes.
 * Owner: as of a lease.
 * Thread: any, one at a time.
 * End: gives the slot back; receives may use the slot again.
 * Errors: no function fails; imm() is empty without immediate data.
 */
class message : public lease
{
public:
	message() = default;
	/* Returns the immediate data in host order. */
	std::optional<uint32_t> imm() const noexcept
	{
		if (!slot_ || !slot_->has_imm)
			return std::nullopt;
		return slot_->imm;
	}

private:
	friend detail::access;
	using lease::lease;
};

namespace detail
{

/* Owns a future of C, and drops the future at the end. Thread: the holder's. */
class future_of_c
{
public:
	future_of_c() = default;
	/* counted: nullptr, or the pool in which the future is counted */
	explicit future_of_c(ref<runtime_core> rt,
			     ref<pool_core> counted = {}) noexcept
	    : rt_(std::move(rt)), counted_(std::move(counted))
	{
	}
	future_of_c(future_of_c &&other) noexcept
	    : rt_(std::move(other.rt_)), counted_(std::move(other.counted_)),
	      raw_(std::exchange(other.raw_, rpma_rt_future{}))
	{
	}
	/* Drops the former future now, not with `other`. */
	future_of_c &operator=(future_of_c &&other) noexcept
	{
		future_of_c taken(std::move(other));

		std::swap(rt_, taken.rt_);
		std::swap(counted_, taken.counted_);
		std::swap(raw_, taken.raw_);
		return *this;
	}
	~future_of_c()
	{
		rpma_rt_future_drop(&raw_);
		/* release: pairs with the acquire in pool::next(), which may
		 * use the future's place */
		if (counted_)
			counted_->futures_held.fetch_sub(
				1, std::memory_order_release);
	}
	rpma_rt_future *raw() noexcept { return &raw_; }
	/* Returns the item. RPMA_E_AGAIN: not yet complete. */
	result<rpma_rt_completion> poll() const
	{
		rpma_rt_completion item;
		const int ret = rpma_rt_future_poll(&raw_, &item);

		if (ret == 1)
			return item;
		return error::call(ret == 0 ? RPMA_E_AGAIN : ret);
	}
	/* Waits for the item, without a limit for -1; or timed_out. */
	result<rpma_rt_completion> wait(int timeout_ms) const
	{
		rpma_rt_completion item;
		const int ret = rpma_rt_future_wait(&raw_, &item, timeout_ms);

		if (ret == 1)
			return item;
		return ret == 0 ? error::timed_out() : error::call(ret);
	}

private:
	ref<runtime_core> rt_;
	ref<pool_core> counted_;
	rpma_rt_future raw_{};
};

struct access {
	template <typename T> static const auto &core(const T &owner) noexcept
	{
		return owner.core_;
	}
	template <typename L>
	RPMA_RT_HOT static L make(slot_of_pool *slot,
				  ref<pool_core> pool) noexcept
	{
		return L(slot, std::move(pool));
	}
	static lease make_lease(const rpma_rt_lease &raw,
				ref<pool_core> pool) noexcept
	{
		slot_of_pool *slot = &pool->slots[raw.slot];

		slot->raw = raw;
		return lease(slot, std::move(pool));
	}
	/* Returns the slot of a message; item has a lease. */
	static slot_of_pool *slot_of(pool_core &pool,
				     const rpma_rt_completion &item) noexcept
	{
		auto *slot = &pool.slots[rpma_rt_completion_slot(&item)];

		(void)rpma_rt_completion_lease(&item, &slot->raw);
		slot->has_imm = rpma_rt_completion_imm(&item, &slot->imm);
		return slot;
	}
	/* Returns the slot of a message without immediate data. Reads no word
	 * of the slot: the slot is seldom in the cache. */
	RPMA_RT_HOT static slot_of_pool *
	usual_slot_of(slot_of_pool *slots,
		      const rpma_rt_completion &item) noexcept
	{
		auto *slot = &slots[rpma_rt_completion_slot(&item)];

		slot->raw.len = item.byte_len;
		slot->raw.generation = rpma_rt_completion_generation(&item);
		slot->has_imm = false;
		return slot;
	}
	static slot_of_pool *slot_at(const lease &l) noexcept
	{
		return l.slot_;
	}
	RPMA_RT_HOT static slot_of_pool *take_slot(lease &l) noexcept
	{
		return std::exchange(l.slot_, nullptr);
	}
	/* Asks by a future that is empty so far. */
	template <typename T>
	static result<next_future<T>> ask_by(future_of_c made,
					     const rpma_rt_source &from,
					     const item_of<T> &item) noexcept;
	template <typename T>
	static result<next_future<T>> ask(const ref<runtime_core> &rt,
					  const rpma_rt_source &from,
					  const item_of<T> &item) noexcept
	{
		return ask_by<T>(future_of_c(rt), from, item);
	}
};

/* A lease, or a message. */
template <typename T> struct item_of {
	ref<pool_core> pool;
	/* Returns whether the item is from the source, and not the end. */
	static bool is_in(const rpma_rt_completion &item) noexcept
	{
		return item.flags & RPMA_RT_C_LEASE;
	}
	T take(const rpma_rt_completion &item) const noexcept
	{
		return access::make<T>(access::slot_of(*pool, item), pool);
	}
};

} // namespace detail

/*
 * next_future<T>: waits for the next lease, message or request of a source.
 * Owner: the program; owns an item that has come and was not taken.
 * Thread: any, one at a time.
 * End: leaves the item to the next future of the source.
 * Errors: RPMA_E_AGAIN, timed_out; closed: the source has ended.
 */
template <typename T> class next_future
{
public:
	/* Returns the item, once. RPMA_E_AGAIN: no item yet. */
	result<T> poll() { return take(future_.poll()); }
	/* Waits for the item, without a limit for -1; or timed_out. */
	result<T> wait(int timeout_ms)
	{
		return take(future_.wait(timeout_ms));
	}
	/* Returns the user pointer of the connection whose message was
	 * taken. */
	void *user() const noexcept { return user_; }

private:
	friend detail::access;
	next_future(detail::future_of_c &&made,
		    const detail::item_of<T> &item) noexcept
	    : item_(item), future_(std::move(made))
	{
	}
	result<T> take(result<rpma_rt_completion> got)
	{
		if (!got)
			return got.error();
		const rpma_rt_completion item = *got;
		if (!item_.is_in(item))
			return error::closed(item.status);
		future_ = detail::future_of_c();
		user_ = item.user;
		return item_.take(item);
	}
	detail::item_of<T> item_;
	detail::future_of_c future_;
	void *user_ = nullptr;
};

namespace detail
{

template <typename T>
result<next_future<T>> access::ask_by(future_of_c made,
				      const rpma_rt_source &from,
				      const item_of<T> &item) noexcept
{
	int ret = rpma_rt_next_future(&from, made.raw());

	if (ret < 0)
		return error::call(ret);
	return next_future<T>(std::move(made), item);
}

/* Waits for the item of a future, if the future was made. */
template <typename T>
result<T> wait_for(result<next_future<T>> made, int timeout_ms)
{
	if (!made)
		return made.error();
	return made->wait(timeout_ms);
}

} // namespace detail

inline result<memory> memory::make(const peer &p, void *ptr, size_t size,
				   int usage)
{
	memory m;
	int ret;

	m.core_->peer = detail::access::core(p);
	ret = rpma_mr_reg(p.raw(), ptr, size, usage, &m.core_->raw);
	if (ret)
		return error::call(ret);
	return m;
}

inline result<pool> pool::make(const runtime &rt, const peer &p,
			       rpma_rt_pool_cfg cfg)
{
	pool made;
	int ret;

	cfg.peer = p.raw();
	/* a further future for coroutines, see slot_line; at most 1 << 20 */
	cfg.futures = detail::effective(cfg, &rpma_rt_pool_cfg::futures,
					rpma_rt_pool_cfg_init);
	if (cfg.futures < 1 << 20)
		cfg.futures++;
	made.core_->futures = cfg.futures - 1;
	made.core_->rt = detail::access::core(rt);
	made.core_->peer = detail::access::core(p);
	ret = rpma_rt_pool_new(rt.raw(), &cfg, &made.core_->raw);
	if (ret < 0)
		return error::call(ret);
	uint32_t count = detail::effective(cfg, &rpma_rt_pool_cfg::count,
					   rpma_rt_pool_cfg_init);
	auto &core = *made.core_;
	/* table[2]: also where there is a single slot */
	core.table.reset(new (std::nothrow) detail::slot_of_pool[count + 2]);
	if (!core.table)
		return error::call(RPMA_E_NOMEM);
	core.table[0].raw.data = &core;
	core.table[0].raw.len = detail::effective(
		cfg, &rpma_rt_pool_cfg::slot_size, rpma_rt_pool_cfg_init);
	core.slots = &core.table[1];
	core.write_slots(count);
	if (cfg.sends == 0) /* as in rpma_rt/pool.h */
		cfg.sends = count / 2;
	made.core_->receives =
		cfg.sends == RPMA_RT_POOL_NO_SENDS ? count : count - cfg.sends;
	return made;
}

inline result<lease> pool::take() const
{
	rpma_rt_lease raw;
	int ret = core_->take(raw);

	if (ret < 0)
		return error::call(ret);
	return detail::access::make_lease(raw, core_);
}

inline result<lease_future> pool::next() const
{
	/* acquire: pairs with the release of a dropped future */
	const bool has_place =
		core_->futures_held.fetch_add(1, std::memory_order_acquire) <
		core_->futures;
	detail::future_of_c made(core_->rt, core_); /* uncounts at the end */

	/* the last place is that of the line, see slot_line */
	if (!has_place)
		return error::call(RPMA_RT_E_BUSY);
	return detail::access::ask_by<lease>(
		std::move(made), {nullptr, nullptr, nullptr, raw()}, {core_});
}

} // namespace rpma::rt

#endif /* RPMA_RT_OWNER_HPP */
