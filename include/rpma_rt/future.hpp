/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future.hpp: connections and listeners without a queue and without a loop, for
 * threads that wait: what happens to them are futures, see
 * rpma_rt_conn_future(3).
 */

#ifndef RPMA_RT_FUTURE_HPP
#define RPMA_RT_FUTURE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <rpma_rt/conn.hpp>

namespace rpma::rt
{

namespace detail
{

/* A connection without a queue; its memory may go when it has ended. */
struct future_conn_core {
	ref<runtime_core> rt;
	ref<peer_core> peer;
	receives from;
	rpma_rt_conn *raw = nullptr;
	future closed;
	std::mutex lock; /* of closed, while others post */

	future_conn_core() = default;
	future_conn_core(const future_conn_core &) = delete;
	future_conn_core &operator=(const future_conn_core &) = delete;
	~future_conn_core()
	{
		if (!raw)
			return;
		rpma_rt_conn_close(raw);
		(void)closed.wait(-1);
		rpma_rt_conn_unref(&raw);
	}
	result<future> event(rpma_rt_event what)
	{
		future made = access::make_future(rt);
		int ret = rpma_rt_conn_future(raw, what, made.raw());

		if (ret < 0)
			return error::call(ret);
		return made;
	}
	/* CLOSED, if it has come. Any thread: a future is polled by one at a
	 * time. */
	result<rpma_rt_completion> poll_closed()
	{
		std::lock_guard<std::mutex> guard(lock);

		return closed.poll();
	}
	/* Until that event has come; an error if it does not. */
	result<void> wait_for(rpma_rt_event what, int timeout_ms)
	{
		auto made = event(what);

		if (!made)
			return made.error();
		auto item = made->wait(timeout_ms);
		if (!item)
			return item.error().code() == RPMA_E_AGAIN
				       ? error::timed_out()
				       : item.error();
		if (rpma_rt_completion_event(&*item) != what)
			return error::closed(item->status);
		return {};
	}
	/* decide: rpma_rt_conn_connect() or rpma_rt_conn_accept() */
	result<void> begin(decltype(rpma_rt_conn_connect) *decide,
			   std::string_view private_data) noexcept
	{
		rpma_conn_private_data pdata = {
			const_cast<char *>(private_data.data()),
			static_cast<uint8_t>(private_data.size())};

		if (private_data.size() > UINT8_MAX)
			return error::call(RPMA_E_INVAL);
		return result_of_call(
			decide(raw, private_data.empty() ? nullptr : &pdata));
	}
};

inline rpma_rt_conn_cfg future_cfg_of(const endpoint &with,
				      rpma_rt_srq **srq) noexcept
{
	rpma_rt_conn_cfg cfg = cfg_of(with, srq);

	cfg.queue = nullptr;
	if (cfg.futures == 0)
		cfg.futures =
			std::max(effective(cfg, &rpma_rt_conn_cfg::sq_size,
					   rpma_rt_conn_cfg_init),
				 effective(cfg, &rpma_rt_conn_cfg::rq_size,
					   rpma_rt_conn_cfg_init));
	return cfg;
}

} // namespace detail

/*
 * A connection whose events and results are futures. Destroying it closes it,
 * and waits until it has ended: the memory of what was posted is free then. Not
 * in functions that a poller calls. Up to 15 futures of events are held at a
 * time. Thread: any, as the calls of C; one destroys it.
 */
class future_connection
{
public:
	/* Connects, and waits until that is done. Where the endpoint has no
	 * messages, receives are posted. cfg.futures 0: as many as sq_size, or
	 * rq_size if that is more. */
	static result<future_connection> connect(const runtime &rt,
						 const std::string &address,
						 const std::string &port,
						 const endpoint &with,
						 int timeout_ms = -1)
	{
		rpma_rt_srq *srq;
		rpma_rt_conn_cfg cfg = detail::future_cfg_of(with, &srq);
		rpma_rt_conn *raw = nullptr;
		int ret = rpma_rt_conn_new(rt.raw(), address.c_str(),
					   port.c_str(), &cfg, &raw);

		if (ret < 0)
			return error::call(ret);
		auto made = own(detail::access::core(rt),
				detail::access::core(with.via),
				detail::receives_of(with), raw);
		if (!made)
			return made;
		auto &core = *made->core_;
		auto done = core.wait_for(RPMA_RT_EVENT_READY, timeout_ms);
		if (done)
			done = core.begin(rpma_rt_conn_connect,
					  with.private_data);
		if (done)
			done = core.wait_for(RPMA_RT_EVENT_ESTABLISHED,
					     timeout_ms);
		if (!done)
			return done.error();
		return made;
	}
	/* Of a listener's: accepts, and waits until it is established. */
	result<void> accept(std::string_view private_data = {},
			    int timeout_ms = -1)
	{
		auto done = core_->begin(rpma_rt_conn_accept, private_data);

		if (!done)
			return done;
		return core_->wait_for(RPMA_RT_EVENT_ESTABLISHED, timeout_ms);
	}
	/* As rpma_rt_conn_future(). */
	result<future> event(rpma_rt_event what) const
	{
		return core_->event(what);
	}
	/* The future of a work request; its memory has to stay until that is
	 * complete, or this destroyed. */
	result<future> post_raw(const rpma_rt_wr &wr) const
	{
		rpma_rt_wr one = wr;

		return post_raw(std::span<rpma_rt_wr>(&one, 1));
	}
	/* Of a link: these are posted together, and have one result. */
	result<future> post_raw(std::span<rpma_rt_wr> link) const
	{
		future made = detail::access::make_future(core_->rt);

		if (link.empty())
			return error::call(RPMA_E_INVAL);
		for (auto &part : link.first(link.size() - 1))
			part.flags |= RPMA_RT_F_LINKED | RPMA_RT_F_PART;
		auto &last = link.back();
		const int count = static_cast<int>(link.size());

		last.future = made.raw();
		int ret = rpma_rt_post_send(core_->raw, link.data(), count);
		/* the work request may be used again, made is gone then */
		last.future = nullptr;

		return taken(ret, count, std::move(made));
	}
	/* Of the next message; of an endpoint with messages that are not
	 * shared. RPMA_E_INVAL: it has none. */
	result<message_future> next() const
	{
		return detail::access::ask<message>(
			core_->rt, {nullptr, raw(), nullptr, nullptr},
			{core_->from.pool});
	}
	/* The next message. */
	result<message> receive(int timeout_ms = -1) const
	{
		auto made = next();

		if (!made)
			return made.error();
		return made->wait(timeout_ms);
	}
	/* Of a receive, into that memory. */
	result<future> receive_raw(rpma_mr_local *dst, size_t offset,
				   size_t len) const
	{
		future made = detail::access::make_future(core_->rt);
		rpma_rt_recv_wr wr;

		rpma_rt_prep_recv(&wr, dst, offset, len, 0);
		wr.future = made.raw();
		int ret = rpma_rt_post_recv(core_->raw, &wr, 1);

		return taken(ret, 1, std::move(made));
	}
	/* Sends the bytes of a lease, and gives the lease to the send: the slot
	 * goes back to the pool when the device has done with the bytes,
	 * without a future. A refused send leaves the lease in slot() of the
	 * outcome; RPMA_E_AGAIN: no room. flags: RPMA_RT_F_FENCE, _SOLICITED.
	 */
	outcome<1> give(lease buffer, uint32_t flags = 0) const
	{
		const error why = hand(buffer, flags | RPMA_RT_F_KEEP);

		if (!why) /* the send keeps the slot */
			buffer.give_back();
		return {why, {std::move(buffer)}};
	}
	void close() const noexcept
	{
		rpma_rt_conn_close(core_->raw);
	}
	/* of the other side; it stays as long as this */
	std::string_view private_data() const noexcept
	{
		rpma_conn_private_data pdata = {nullptr, 0};

		if (rpma_rt_conn_get_private_data(core_->raw, &pdata) ||
		    !pdata.ptr)
			return {};
		return {static_cast<const char *>(pdata.ptr), pdata.len};
	}
	rpma_rt_conn *raw() const noexcept
	{
		return core_->raw;
	}

private:
	friend detail::item_of<future_connection>;
	explicit future_connection(
		std::unique_ptr<detail::future_conn_core> core) noexcept
	    : core_(std::move(core))
	{
	}
	/* takes the handle, also when that fails */
	static result<future_connection>
	own(const detail::ref<detail::runtime_core> &rt,
	    const detail::ref<detail::peer_core> &peer,
	    const detail::receives &from, rpma_rt_conn *raw)
	{
		std::unique_ptr<detail::future_conn_core> core(
			new (std::nothrow) detail::future_conn_core);

		if (!core) {
			rpma_rt_conn_close(raw);
			rpma_rt_conn_unref(&raw);
			rt->keep(peer);
			return error::call(RPMA_E_NOMEM);
		}
		core->rt = rt;
		core->peer = peer;
		core->from = from;
		core->raw = raw;
		auto closed = core->event(RPMA_RT_EVENT_CLOSED);
		if (!closed) {
			rt->keep(peer);
			return closed.error();
		}
		core->closed = std::move(*closed);
		return future_connection(std::move(core));
	}
	error hand(const lease &buffer, uint32_t flags) const
	{
		const int ret = rpma_rt_send_lease(core_->raw, &buffer.raw(),
						   buffer.size(), flags);

		return ret ? not_taken(ret) : error();
	}
	result<future> taken(int ret, int count, future made) const
	{
		if (ret == count)
			return made;
		return ret >= 0 ? error::unknown() : not_taken(ret);
	}
	error not_taken(int ret) const
	{
		if (ret == RPMA_RT_E_CLOSED) {
			auto ended = core_->poll_closed();

			if (ended)
				return error::closed(ended->status);
		}
		/* also where CLOSED, with the reason, is still to come */
		return error::not_posted(ret);
	}
	std::unique_ptr<detail::future_conn_core> core_;
};

namespace detail
{

/* The connection of a request, which is to be accepted; destroying the
 * connection refuses the peer. */
template <> struct item_of<future_connection> {
	ref<runtime_core> rt;
	ref<peer_core> peer;
	receives from;
	static bool is_in(const rpma_rt_completion &item) noexcept
	{
		return rpma_rt_completion_event(&item) == RPMA_RT_EVENT_REQUEST;
	}
	result<future_connection> take(const rpma_rt_completion &item) const
	{
		return future_connection::own(rt, peer, from,
					      rpma_rt_completion_conn(&item));
	}
};

} // namespace detail

using request_future = next_future<future_connection>;

/* A listener whose requests are futures, up to 16 at a time. Destroying it
 * refuses the requests that nobody has taken; not in functions that a poller
 * calls. Thread: any; one destroys it. */
class future_listener
{
public:
	/* Port "0": any. The endpoint is as future_connection::connect()'s. The
	 * runtime keeps the peer. */
	static result<future_listener> make(const runtime &rt,
					    const std::string &address,
					    const std::string &port,
					    const endpoint &with)
	{
		rpma_rt_srq *srq;
		rpma_rt_conn_cfg cfg = detail::future_cfg_of(with, &srq);
		future_listener made;

		made.rt_ = detail::access::core(rt);
		made.peer_ = detail::access::core(with.via);
		made.from_ = detail::receives_of(with);
		made.rt_->keep(made.peer_);
		int ret = rpma_rt_listen(rt.raw(), address.c_str(),
					 port.c_str(), &cfg, &made.raw_);
		if (ret < 0)
			return error::call(ret);
		return made;
	}
	future_listener(future_listener &&other) noexcept
	    : rt_(std::move(other.rt_)), peer_(std::move(other.peer_)),
	      from_(std::move(other.from_)),
	      raw_(std::exchange(other.raw_, nullptr))
	{
	}
	future_listener &operator=(future_listener &&other) noexcept
	{
		std::swap(rt_, other.rt_);
		std::swap(peer_, other.peer_);
		std::swap(from_, other.from_);
		std::swap(raw_, other.raw_);
		return *this;
	}
	~future_listener()
	{
		refuse_all();
		rpma_rt_listener_delete(&raw_);
	}
	uint16_t port() const noexcept
	{
		uint16_t port = 0;

		rpma_rt_listener_get_port(raw_, &port);
		return port;
	}
	result<request_future> next() const
	{
		return detail::access::ask<future_connection>(
			rt_, {raw_, nullptr, nullptr, nullptr},
			{rt_, peer_, from_});
	}
	/* The next connection, accepted and established; it waits so long for
	 * each of the two. */
	result<future_connection> accept(int timeout_ms = -1) const
	{
		auto request = next();

		if (!request)
			return request.error();
		auto conn = request->wait(timeout_ms);
		if (!conn)
			return conn;
		auto done = conn->accept({}, timeout_ms);
		if (!done)
			return done.error();
		return conn;
	}

private:
	future_listener() = default;
	/* Of the requests that have come: what their connections would receive
	 * from may go before long, so they are to have ended. */
	void refuse_all() const
	{
		while (raw_ && from_.pool) {
			auto request = next();

			if (!request || !request->poll())
				return;
		}
	}
	detail::ref<detail::runtime_core> rt_;
	detail::ref<detail::peer_core> peer_;
	detail::receives from_;
	rpma_rt_listener *raw_ = nullptr;
};

} // namespace rpma::rt

#endif /* RPMA_RT_FUTURE_HPP */
