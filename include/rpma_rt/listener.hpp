/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.hpp: listeners and the requests of peers.
 */

#ifndef RPMA_RT_LISTENER_HPP
#define RPMA_RT_LISTENER_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <rpma_rt/conn.hpp>

namespace rpma::rt
{

class request;

namespace detail
{

class requesting;

/* Makes a connection of the loop of a request; nullptr: the request is closed,
 * and CLOSED has the user pointer of the listener. */
inline ref<conn_core> take_request(const ref<loop_core> &loop,
				   const ref<peer_core> &peer,
				   const receives &from, uint32_t slots,
				   rpma_rt_conn *conn) noexcept
{
	auto core = conn_core::make(loop, peer, from, slots);
	int ret = RPMA_E_NOMEM;

	if (core)
		ret = rpma_rt_conn_set_user(conn,
					    static_cast<member *>(core.get()));
	if (ret < 0) {
		rpma_rt_conn_close(conn);
		rpma_rt_conn_unref(&conn);
		return {};
	}
	core->raw = conn;
	core->join();
	return core;
}

struct listener_core final : counted<listener_core>, member {
	ref<loop_core> loop; /* nullptr: without a loop */
	ref<runtime_core> rt;
	ref<peer_core> peer;
	receives from;
	rpma_rt_listener *raw = nullptr;
	uint32_t slot_count = 0;
	bool is_over = false;
	uint8_t reason = 0;
	/* requests that ended before the loop had the connection: the user
	 * pointer of CLOSED is the listener */
	uint32_t strays = 0;
	link requests; /* conn_core.pending */
	link acceptors;

	~listener_core() { rpma_rt_listener_delete(&raw); }
	/* Joins the loop, which has a reference until the last item. */
	void join() noexcept
	{
		get();
		loop->listeners.push_back(*this);
	}
	void close() noexcept override
	{
		if (!loop)
			refuse_all();
		rpma_rt_listener_delete(&raw);
		while (!requests.is_empty())
			requests.take_first<request_link>().conn->close();
	}
	/* Returns the future of a request, without a loop. */
	inline result<next_future<request>> ask() noexcept;
	/* Refuses the requests that have come, without a loop: the pool of the
	 * connections may be destroyed soon. */
	inline void refuse_all() noexcept;
	inline void give(conn_core &conn) noexcept;
	inline void give_back(ref<conn_core> conn) noexcept;
	inline void give_to_next() noexcept;
	/* Makes a connection of the loop of a request. */
	void on_request(rpma_rt_conn *conn) noexcept
	{
		auto core = take_request(loop, peer, from, slot_count, conn);

		if (!core) {
			strays++;
			return;
		}
		if (is_over || !raw)
			core->close();
		else
			give(*core);
	}
	inline void on_last(uint8_t why) noexcept;
	void leave_if_last() noexcept
	{
		if (!is_over || strays > 0 || !is_linked())
			return;
		unlink();
		put();
	}
	const rpma_rt_completion *
	on_messages(const rpma_rt_completion *item,
		    const rpma_rt_completion *) noexcept override
	{
		return item + 1;
	}
	void on_item(const rpma_rt_completion &item) noexcept override
	{
		switch (rpma_rt_completion_event(&item)) {
		case RPMA_RT_EVENT_REQUEST:
			on_request(rpma_rt_completion_conn(&item));
			break;
		case RPMA_RT_EVENT_CLOSED:
			strays--;
			leave_if_last();
			break;
		case RPMA_RT_EVENT_LISTENER_CLOSED:
			on_last(item.status);
			break;
		default:
			break;
		}
	}
};

/* A wait for the next request, which is accepted on arrival if accepts_. */
class requesting : public waiter
{
public:
	requesting(ref<listener_core> from, bool accepts) noexcept
	    : from_(std::move(from)), accepts_(accepts)
	{
	}
	requesting(requesting &&) noexcept = default;
	~requesting()
	{
		if (conn_ && accepts_)
			conn_->close();
		else if (conn_) /* not taken: the next request again */
			from_->give_back(std::move(conn_));
	}
	bool start() noexcept
	{
		if (!from_->requests.is_empty()) {
			take(*from_->requests.take_first<request_link>().conn);
			return false;
		}
		if (from_->is_over || !from_->raw || !from_->loop)
			return false;
		from_->acceptors.push_back(*this);
		return true;
	}
	bool succeeded() const noexcept { return conn_ && !why_; }
	error why_none() const noexcept
	{
		return from_->loop ? error::closed(from_->reason)
				   : error::call(RPMA_E_NOSUPP);
	}

protected:
	void take(conn_core &conn) noexcept
	{
		conn_ = ref<conn_core>(&conn);
		if (accepts_)
			why_ = decide(conn, {}, rpma_rt_conn_accept).error();
	}
	friend struct listener_core;
	ref<listener_core> from_;
	ref<conn_core> conn_;
	error why_;
	bool accepts_;
};

inline void listener_core::give(conn_core &conn) noexcept
{
	requests.push_back(conn.pending);
	give_to_next();
}

inline void listener_core::give_back(ref<conn_core> conn) noexcept
{
	if (conn->now.is == conn_core::CLOSED)
		return;
	if (is_over || !raw) {
		conn->close();
		return;
	}
	requests.push_front(conn->pending);
	give_to_next();
}

inline void listener_core::give_to_next() noexcept
{
	if (loop->has_ended || loop->ctx.is_left || acceptors.is_empty() ||
	    requests.is_empty())
		return;
	scope running(loop->ctx); /* resumed in a turn, not here */
	auto &next = acceptors.take_first<requesting>();

	next.take(*requests.take_first<request_link>().conn);
	next.complete();
}

inline void listener_core::on_last(uint8_t why) noexcept
{
	reason = why;
	is_over = true;
	complete_all(acceptors);
	leave_if_last();
}

} // namespace detail

/*
 * request: a peer that asks to connect.
 * Owner: the program.
 * Thread: as of the listener.
 * End: refuses the peer.
 * Errors: RPMA_E_INVAL: more than 255 bytes; CLOSED: the peer has left.
 */
class request
{
public:
	/* Makes a request of an item RPMA_RT_EVENT_REQUEST that loop::next()
	 * gave: a listener of C, whose user pointer is nullptr, leads to the
	 * queue of the loop; see shards::deal(). RPMA_RT_E_CLOSED: the peer has
	 * left. */
	static inline result<request> of(const loop &taker,
					 const rpma_rt_completion &item,
					 const endpoint &with);
	request(request &&) noexcept = default;
	request &operator=(request &&) noexcept = default;
	/* Returns the data of the peer, valid as long as the request; the
	 * network may have added zeros. */
	std::string_view private_data() const noexcept
	{
		return conn_.private_data();
	}
	/* Sets the user pointer of the connection, without a loop: see
	 * next_future::user(). Errors: RPMA_E_NOSUPP with a loop; of
	 * rpma_rt_conn_set_user(). */
	result<void> set_user(void *user)
	{
		if (!conn_.core_->alone)
			return error::call(RPMA_E_NOSUPP);
		return detail::result_of_call(
			rpma_rt_conn_set_user(conn_.raw(), user));
	}
	/* Accepts the peer. The connection is established later: operations of
	 * a loop wait, a thread calls established().wait(). */
	result<connection> accept(std::string_view private_data = {}) &&
	{
		auto done = detail::decide(*conn_.core_, private_data,
					   rpma_rt_conn_accept);

		if (!done)
			return done.error();
		return std::move(conn_);
	}
	result<void> reject(std::string_view private_data = {}) &&
	{
		return detail::decide(*conn_.core_, private_data,
				      rpma_rt_conn_reject);
	}

private:
	friend class listener;
	friend detail::item_of<request>;
	explicit request(detail::ref<detail::conn_core> core) noexcept
	    : conn_(std::move(core))
	{
	}
	static connection take(detail::ref<detail::conn_core> core) noexcept
	{
		return connection(std::move(core));
	}
	connection conn_;
};

inline result<request> request::of(const loop &taker,
				   const rpma_rt_completion &item,
				   const endpoint &with)
{
	const auto &loop = detail::access::core(taker);
	auto core = detail::take_request(
		loop, detail::access::core(with.via), detail::receives_of(with),
		detail::effective(with.cfg, &rpma_rt_conn_cfg::sq_size,
				  rpma_rt_conn_cfg_init),
		rpma_rt_completion_conn(&item));

	if (!core) {
		loop->strays++;
		return error::call(RPMA_RT_E_CLOSED);
	}
	return request(std::move(core));
}

/*
 * listener: takes the requests of peers that connect to a port.
 * Owner: the program.
 * Thread: the loop's; without a loop any, with up to 16 futures at a time.
 * End: refuses requests that were not taken; connections stay.
 * Errors: waits: closed; RPMA_E_NOSUPP: a loop is missing, or is there.
 */
class listener : public detail::ending_owner<detail::listener_core,
					     &detail::listener_core::close>
{
public:
	uint16_t port() const noexcept
	{
		uint16_t port = 0;

		rpma_rt_listener_get_port(core_->raw, &port);
		return port;
	}
	/* co_await, wait(): result<request>, the next request. begin(): a
	 * future of the request. */
	inline auto next() const noexcept;
	/* co_await: result<connection>, of the next request, which is accepted
	 * unseen. wait(): an established connection; timeout_ms for each of two
	 * steps. */
	inline auto accept() const noexcept;

private:
	friend class loop;
	friend class runtime;
	class next_of;
	class accept_of;
	explicit listener(detail::ref<detail::listener_core> core) noexcept
	    : ending_owner(std::move(core))
	{
	}
};

namespace detail
{

/* Makes a request without a loop. */
template <> struct item_of<request> {
	ref<runtime_core> rt;
	ref<peer_core> peer;
	receives from;
	static bool is_in(const rpma_rt_completion &item) noexcept
	{
		return rpma_rt_completion_event(&item) == RPMA_RT_EVENT_REQUEST;
	}
	result<request> take(const rpma_rt_completion &item) const
	{
		auto made = conn_core::make_alone(
			rt, peer, from, rpma_rt_completion_conn(&item));

		if (!made)
			return made.error();
		return request(std::move(*made));
	}
};

inline result<next_future<request>> listener_core::ask() noexcept
{
	if (loop)
		return error::call(RPMA_E_NOSUPP);
	return access::ask<request>(rt, {raw, nullptr, nullptr, nullptr},
				    {rt, peer, from});
}

inline void listener_core::refuse_all() noexcept
{
	while (raw && from.pool) {
		auto made = ask();

		if (!made || !made->poll())
			return;
	}
}

} // namespace detail

class listener::next_of
    : public detail::awaitable<listener::next_of, detail::requesting>
{
public:
	using awaitable::awaitable;
	result<request> finish() noexcept
	{
		if (!conn_)
			return why_none();
		return request(std::move(conn_));
	}
	result<next_future<request>> begin() const { return from_->ask(); }
	result<request> wait(int timeout_ms = -1) const
	{
		return detail::wait_for(from_->ask(), timeout_ms);
	}
};

class listener::accept_of
    : public detail::awaitable<listener::accept_of, detail::requesting>
{
public:
	using awaitable::awaitable;
	result<connection> finish() noexcept
	{
		if (!conn_)
			return why_none();
		if (why_)
			return why_;
		return request::take(std::move(conn_));
	}
	result<connection> wait(int timeout_ms = -1) const
	{
		auto asked = detail::wait_for(from_->ask(), timeout_ms);

		if (!asked)
			return asked.error();
		auto conn = std::move(*asked).accept();
		if (!conn)
			return conn;
		auto done = conn->established().wait(timeout_ms);
		if (!done)
			return done.error();
		return conn;
	}
};

inline auto listener::next() const noexcept
{
	return next_of(core_, false);
}

inline auto listener::accept() const noexcept
{
	return accept_of(core_, true);
}

namespace detail
{

inline ref<listener_core> make_listener(const ref<runtime_core> &rt,
					const endpoint &with)
{
	auto core = ref<listener_core>::adopt(new listener_core);

	core->rt = rt;
	core->peer = access::core(with.via);
	core->from = receives_of(with);
	core->slot_count = effective(with.cfg, &rpma_rt_conn_cfg::sq_size,
				     rpma_rt_conn_cfg_init);
	return core;
}

} // namespace detail

inline result<listener> loop::listen(const std::string &address,
				     const std::string &port,
				     const endpoint &with) const
{
	auto core = detail::make_listener(core_->rt, with);
	rpma_rt_srq *srq;
	auto cfg = detail::cfg_of(with, &srq, core_.get(), core.get());
	int ret = RPMA_RT_E_CLOSED;

	core->loop = core_;
	if (!core_->has_ended)
		ret = rpma_rt_listen(core_->rt->raw, address.c_str(),
				     port.c_str(), &cfg, &core->raw);
	if (ret < 0)
		return error::call(ret);
	core->join();
	return listener(std::move(core));
}

inline result<listener> runtime::listen(const std::string &address,
					const std::string &port,
					const endpoint &with) const
{
	auto core = detail::make_listener(core_, with);
	rpma_rt_srq *srq;
	auto cfg = detail::cfg_of(with, &srq, nullptr, nullptr);

	core->set_any_thread();
	core_->keep(core->peer);
	int ret = rpma_rt_listen(core_->raw, address.c_str(), port.c_str(),
				 &cfg, &core->raw);
	if (ret < 0)
		return error::call(ret);
	return listener(std::move(core));
}

} // namespace rpma::rt

#endif /* RPMA_RT_LISTENER_HPP */
