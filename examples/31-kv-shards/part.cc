/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * part.cc: a connection has WINDOW + 1 coroutines, each of which receives a
 * request, has the request done by the shard that has the key, and gives the
 * answer, in the message of the request, to the connection. The coroutine waits
 * where there is no room: for messages to the other shard, or for answers to
 * the client. A client with more than WINDOW requests breaks the protocol.
 */

#include "part.hpp"

#include <cstring>

extern "C" {
#include "../common/clock.h"
#include "../common/rendezvous.h"
}

#define SRQ_SIZE 512
#define SWEEP	 std::chrono::milliseconds(200)
#define DRAIN	 std::chrono::seconds(3) /* for each of two steps */

/* A request until the answer is posted. */
struct job {
	kv_request request; /* the key and a small value lie in the message */
	uint8_t *message;   /* has room for the answer */
	size_t answer_len = 0;
	uint64_t deadline_ns = UINT64_MAX;
	uint32_t owner = 0; /* the shard that has the key */
	/* a large value of the owner, with a reference of the job, to be read
	 * from, or written into, the memory that the client offers */
	value *held = nullptr;
	rt::remote_memory memory{nullptr};
	uint64_t offset = 0; /* of the offered memory */

	/* Reads a message of a client; returns false for bytes that are no
	 * request. */
	bool read(const rt::message &from, uint32_t shards)
	{
		struct offer offer;

		message = reinterpret_cast<uint8_t *>(from.data());
		if (!kv_request_read(&request, message, from.size()))
			return false;
		if (request.how == KV_BY_OFFER) {
			if (!offer_read(&request.value, request.value_len,
					&offer))
				return false;
			memory = rt::remote_memory(offer.mr);
			offset = offer.offset;
		}
		if (request.frame.left_us > 0)
			deadline_ns =
				clock_now() + request.frame.left_us * 1000ull;
		owner = kv_shard_of(kv_hash(request.key, request.key_len),
				    shards);
		return true;
	}
	/* Writes the answer into the message. Returns the place of a value. */
	uint8_t *answer(kv_status status, uint64_t len = 0,
			kv_how how = KV_IN_MESSAGE) noexcept
	{
		kv_answer answer = {};
		uint8_t *place;

		answer.frame.kind = KV_ANSWER;
		answer.frame.status = static_cast<uint8_t>(status);
		answer.frame.id = request.frame.id;
		answer.how = how;
		answer.value_len = len;
		answer_len = kv_answer_write(&answer, message, &place);
		return place;
	}
};

/* A client; the coroutines of the connection own the client together. */
struct client : std::enable_shared_from_this<client> {
	part &of;
	rt::connection conn;
	rt::clock::time_point heard_at = rt::clock::now();
	int busy = 0; /* requests without an answer */
	bool is_up = false, is_closing = false, is_heard = false;

	client(part &its, rt::connection accepted)
	    : of(its), conn(std::move(accepted))
	{
		of.clients.insert(this);
		of.counts.clients++;
	}
	~client()
	{
		of.clients.erase(this);
		of.leave_if_drained();
	}
	void close()
	{
		is_closing = true;
		conn.close();
	}
	rt::task<void> transfer(job &now);
};
using client_ptr = std::shared_ptr<client>;

/* ------------------------------------------------------------ requests --- */

/* GET: writes a value into the memory of the client. PUT: reads a value from
 * there, which the owner then stores. The answer follows. */
rt::task<void> client::transfer(job &now)
{
	const bool is_get = now.request.frame.kind == KV_GET;
	const value &held = *now.held;
	rpma_mr_local *mr = held.arena->mr;
	auto operation = is_get ? conn.write_raw(now.memory, now.offset, mr,
						 held.offset, held.len)
				: conn.read_raw(now.memory, now.offset, mr,
						held.offset, held.len);
	auto done = co_await std::move(operation);

	if (!done)
		close();
	(void)co_await of.at_owner(is_get || !done ? RELEASE : STORE, now);
}

/* Serves a request after the other. */
static rt::task<void> serve(client_ptr self)
{
	part &of = self->of;

	(void)co_await self->conn.established();
	self->is_up = true;
	for (;;) {
		auto message = co_await self->conn.receive();
		if (!message)
			co_return; /* closed */
		if (self->is_closing)
			continue;
		job now;
		self->is_heard = true;
		if (self->busy == WINDOW ||
		    !now.read(*message, of.all.shards)) {
			of.counts.broken++;
			self->close();
			continue;
		}
		self->busy++;
		if (now.owner == of.index)
			of.perform(APPLY, now);
		else if (!co_await of.at_owner(APPLY, now))
			co_return; /* stopped */
		if (now.held)
			co_await self->transfer(now);
		message->resize(now.answer_len);
		/* a failure: closed */
		(void)co_await self->conn.give(std::move(*message));
		self->busy--;
	}
}

/* ------------------------------------------- as the owner of a key --- */

void part::get(job &of) noexcept
{
	const kv_request &request = of.request;
	value *found = store_get(&values, request.key, request.key_len);

	if (!found) {
		of.answer(KV_NONE);
	} else if (found->len <= KV_ANSWER_MAX) {
		memcpy(of.answer(KV_OK, found->len), value_bytes(found),
		       found->len);
		value_unref(found);
	} else if (of.memory.raw() && request.value_len >= found->len) {
		of.answer(KV_OK, found->len, KV_BY_OFFER);
		of.held = found;
		counts.pushed++;
	} else {
		of.answer(KV_LARGE, found->len);
		value_unref(found);
	}
}

/* Stores the value of a request. */
void part::keep(job &of) noexcept
{
	value *made = std::exchange(of.held, nullptr);
	kv_status status = KV_OK;

	if (of.deadline_ns != UINT64_MAX && of.deadline_ns < clock_now())
		status = KV_EXPIRED;
	else if (!store_put(&values, of.request.key, of.request.key_len, made))
		status = KV_FULL;
	counts.stored += status == KV_OK;
	counts.expired += status == KV_EXPIRED;
	if (status != KV_OK)
		value_unref(made);
	of.answer(status);
}

void part::put(job &of) noexcept
{
	const uint64_t len = of.request.value_len;

	if (len > KV_VALUE_MAX || (of.memory.raw() && len == 0)) {
		of.answer(KV_INVALID);
		return;
	}
	of.held = value_new(&arena, static_cast<uint32_t>(len));
	if (!of.held) {
		counts.full++;
		of.answer(KV_FULL);
	} else if (of.memory.raw()) {
		counts.pulled++; /* STORE follows, after the read */
	} else {
		memcpy(value_bytes(of.held), of.request.value.at, len);
		keep(of);
	}
}

void part::perform(step what, job &of) noexcept
{
	const kv_request &request = of.request;

	if (what == STORE) {
		keep(of);
	} else if (what == RELEASE) {
		value_unref(of.held);
	} else if (request.frame.kind == KV_GET) {
		counts.gets++;
		get(of);
	} else if (request.frame.kind == KV_PUT) {
		counts.puts++;
		put(of);
	} else { /* no other kind passes kv_request_read() */
		counts.deletes++;
		of.answer(store_delete(&values, request.key, request.key_len)
				  ? KV_OK
				  : KV_NONE);
	}
}

/* The other shard has the job, and the message of the client, until the answer:
 * a pointer travels, no byte is copied. */
rt::task<bool> part::at_owner(step what, job &of)
{
	rt::shard_message message = {};

	if (of.owner == index) {
		perform(what, of);
		co_return true;
	}
	counts.foreign += what == APPLY;
	message.code = what;
	message.words[0] = reinterpret_cast<uintptr_t>(&of);
	co_return (co_await shard->request(of.owner, message)).ok();
}

/* Does the steps that other shards send. */
rt::task<void> part::serve_shards()
{
	for (;;) {
		auto message = co_await shard->receive();
		if (!message)
			co_return; /* stopped */
		perform(static_cast<step>(message->code),
			*reinterpret_cast<job *>(message->words[0]));
		if (!shard->answer(*message, *message))
			co_return;
	}
}

/* -------------------------------------------------------------- clients --- */

/* Accepts or rejects the client of an item. */
void part::greet(const rpma_rt_completion &item)
{
	const rt::endpoint with{
		.via = all.peer, .shared = &srq, .cfg = all.cfg};
	kv_hello hello = {WINDOW, uint32_t(KV_VALUE_MAX), index, all.shards};
	kv_hello theirs;
	uint8_t bytes[KV_HELLO];
	auto asked = rt::request::of(*shard, item, with);

	if (!asked)
		return; /* the client has left */
	auto text = asked->private_data();
	if (clients.size() == all.clients_max ||
	    !kv_hello_read(&theirs, text.data(), text.size()))
		hello.window = 0;
	kv_hello_write(&hello, bytes);
	text = {reinterpret_cast<const char *>(bytes), sizeof(bytes)};
	if (hello.window == 0) {
		counts.refused++;
		(void)std::move(*asked).reject(text);
		return;
	}
	auto conn = std::move(*asked).accept(text);
	if (!conn)
		return;
	auto made = std::make_shared<client>(*this, std::move(*conn));
	for (int i = 0; i < WINDOW + 1; i++)
		shard->spawn(serve(made));
}

/* Says goodbye, and closes a client that does not close. */
static rt::task<void> say_bye(client_ptr self)
{
	const part &of = self->of;

	(void)co_await of.shard->within(
		DRAIN,
		self->conn.send_raw(of.bye.raw(), 0, FRAME_HEAD + KV_BODY));
	auto left = co_await of.shard->within(DRAIN, self->conn.closed());
	if (!left)
		self->close();
}

/* Takes the items of the listener: requests to connect, and the last item,
 * after which the shard drains. */
rt::task<void> part::take_items()
{
	for (;;) {
		auto item = co_await shard->next();
		if (!item)
			co_return; /* stopped */
		switch (rpma_rt_completion_event(&*item)) {
		case RPMA_RT_EVENT_REQUEST:
			greet(*item);
			break;
		case RPMA_RT_EVENT_LISTENER_CLOSED:
			is_draining = true;
			for (auto *one : clients)
				shard->spawn(say_bye(one->shared_from_this()));
			leave_if_drained();
			break;
		}
	}
}

/* Closes clients that were silent for too long. */
rt::task<void> part::sweep()
{
	for (;;) {
		(void)co_await shard->sleep_for(SWEEP);
		const auto now = rt::clock::now();
		for (auto *one : clients) {
			const bool owes = one->busy > 0 || !one->is_up;
			const auto limit = owes ? all.patience : all.idle;

			if (std::exchange(one->is_heard, false))
				one->heard_at = now;
			if (limit.count() == 0 || one->is_closing ||
			    now - one->heard_at < limit)
				continue;
			counts.stuck++;
			one->close();
		}
	}
}

void part::run()
{
	shard.emplace(rt::shard::make(all.set, index).value());
	all.ready.count_down();
	shard->spawn(take_items());
	shard->spawn(serve_shards());
	shard->spawn(sweep());
	while (shard->turn(-1) >= 0)
		continue;
	shard.reset();
}

/* Makes the slots of a shard: for the receives, and for the requests of all
 * clients, which keep their slots until the answers are sent. */
static rt::pool make_pool(const server &of)
{
	rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;

	cfg.slot_size = KV_MESSAGE;
	cfg.count = uint32_t(SRQ_SIZE + (WINDOW + 1) * of.clients_max);
	cfg.sends = RPMA_RT_POOL_NO_SENDS; /* answers: in slots of requests */
	return rt::pool::make(of.runtime, of.peer, cfg).value();
}

static rt::shared_receive_queue make_srq(const server &of, uint32_t index,
					 const rt::pool &pool)
{
	rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	cfg.poller = index;
	cfg.srq_size = SRQ_SIZE;
	return rt::shared_receive_queue::make(of.runtime, of.peer, pool, cfg)
		.value();
}

part::part(server &of, uint32_t number)
    : all(of), index(number), values(of.stores[number]), pool(make_pool(of)),
      srq(make_srq(of, number, pool)),
      bye(rt::memory::make(of.peer, bye_bytes.data(), bye_bytes.size(),
			   RPMA_MR_USAGE_SEND)
		  .value())
{
	const int usage = RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC;
	kv_answer goodbye = {};
	uint8_t *place;

	if (arena_open(&arena, of.peer.raw(), of.memory, usage) ||
	    store_open(&values, &arena, 65536))
		throw rt::failure(rt::error::call(RPMA_E_NOMEM));
	arena.has_one_thread = true;
	goodbye.frame.kind = KV_BYE;
	kv_answer_write(&goodbye, bye_bytes.data(), &place);
}

part::~part()
{
	store_close(&values);
	if (arena.used > 0)
		fprintf(stderr, "server: a value was not freed\n");
	all.has_leaks |= arena.used > 0 || arena_close(&arena);
}
