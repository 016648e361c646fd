/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rogue ADDRESS PORT WAY: a client that does not keep the protocol of the
 * key-value store, in a way that is listed below. Succeeds when the server has
 * closed or refused the connection, and has gone on otherwise.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rpma_rt.h>

#include "kv_protocol.h"
#include "rendezvous.h"

#define PATIENCE_MS 300000 /* ends a hang, decides nothing */
#define SLOT	    8192   /* of the region: more than the server takes */
#define SLOTS	    64
#define FLOOD	    48
#define USAGE                                                               \
	(RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_READ_SRC | \
	 RPMA_MR_USAGE_WRITE_DST)

static struct rpma_peer *peer;
static struct rpma_rt *rt;
static struct rpma_rt_queue *queue;
static struct rpma_mr_local *mr;
static char *memory;
static const char *address, *port;
static uint8_t hello[KV_HELLO];

static void die(const char *what)
{
	fprintf(stderr, "rogue: %s\n", what);
	exit(1);
}

static void must(const char *what, int ret)
{
	if (ret < 0) {
		fprintf(stderr, "rogue: %s: %s\n", what, rpma_rt_err_2str(ret));
		exit(1);
	}
}
#define MUST(call) must(#call, call)

static void open_all(void)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	const struct kv_hello greeting = {0};
	struct ibv_context *device;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	memory = aligned_alloc(4096, SLOT * SLOTS);
	MUST(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_REMOTE,
					&device));
	MUST(rpma_peer_new(device, &peer));
	MUST(rpma_mr_reg(peer, memory, SLOT * SLOTS, USAGE, &mr));
	MUST(rpma_rt_new(&cfg, &rt));
	MUST(rpma_rt_queue_new(rt, NULL, &queue));
	kv_hello_write(&greeting, hello);
}

static struct rpma_rt_conn *begin(void)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_conn *conn;

	cfg.peer = peer;
	cfg.queue = queue;
	MUST(rpma_rt_conn_new(rt, address, port, &cfg, &conn));
	return conn;
}

/* Takes an item; connects at READY. */
static struct rpma_rt_completion take(void)
{
	struct rpma_conn_private_data pdata = {hello, sizeof(hello)};
	struct rpma_rt_completion item;

	if (rpma_rt_queue_wait(queue, &item, 1, PATIENCE_MS) != 1)
		die("the server does nothing");
	if (rpma_rt_completion_event(&item) == RPMA_RT_EVENT_READY)
		MUST(rpma_rt_conn_connect(rpma_rt_completion_conn(&item),
					  &pdata));
	return item;
}

/* Waits for an event; returns false if the connection is closed instead. */
static bool await(enum rpma_rt_event event)
{
	struct rpma_rt_completion item;
	unsigned got;

	do {
		item = take();
		got = rpma_rt_completion_event(&item);
	} while (got != (unsigned)event && got != RPMA_RT_EVENT_CLOSED);
	return got == (unsigned)event;
}

/* Connects. A busy machine: the server may close a connection, as idle, before
 * this end has read that the connection is established. */
static struct rpma_rt_conn *connected(void)
{
	struct rpma_rt_conn *conn;
	int tries;

	for (tries = 0; tries < 100; tries++) {
		conn = begin();
		if (await(RPMA_RT_EVENT_ESTABLISHED))
			return conn;
		rpma_rt_conn_unref(&conn);
	}
	die("the server refuses an honest greeting");
	return NULL;
}

static void await_end(struct rpma_rt_conn *conn)
{
	await(RPMA_RT_EVENT_CLOSED);
	rpma_rt_conn_unref(&conn);
}

/* Sends the bytes of a slot; the connection may be closed already. */
static void post(struct rpma_rt_conn *conn, int slot, size_t len)
{
	int ret = rpma_rt_send(conn, mr, (size_t)slot * SLOT, len,
			       RPMA_F_COMPLETION_ON_ERROR, 0);

	if (ret && ret != RPMA_E_AGAIN && ret != RPMA_RT_E_CLOSED)
		MUST(ret);
}

/* Writes a request into a slot; returns the bytes. */
static size_t request_of(int slot, enum kv_kind kind, bool is_offer,
			 uint64_t value_len)
{
	char *bytes = memory + (size_t)slot * SLOT;
	struct kv_request request = {
		.frame = {.kind = (uint8_t)kind, .id = (uint64_t)slot},
		.key = (const uint8_t *)"rogue",
		.key_len = 5,
		.how = is_offer ? KV_BY_OFFER : KV_IN_MESSAGE,
		.value_len = value_len};
	struct writer writer = kv_request_begin(&request, bytes, SLOT);

	if (is_offer)
		offer_write(&writer, mr, 0);
	else if (kind == KV_PUT)
		memset(write_place(&writer, value_len), 'r', value_len);
	return kv_request_end(&request, &writer, bytes);
}

/* ----------------------------------------------------------------- ways --- */

static void strange(void)
{
	struct rpma_rt_conn *conn = begin();

	hello[0] ^= 1;
	if (await(RPMA_RT_EVENT_ESTABLISHED))
		die("the server accepts a stranger");
	rpma_rt_conn_unref(&conn);
}

/* Sends a request with a byte changed, another byte each time, or cut. */
static void malformed(void)
{
	static const uint8_t places[] = {0,  1,	 3,  4,	 5,  7, 20,
					 24, 25, 26, 27, 28, 31};
	size_t i, len;

	for (i = 0; i < 2 * sizeof(places); i++) {
		struct rpma_rt_conn *conn = connected();

		len = request_of(0, KV_PUT, false, 40);
		if (i < sizeof(places))
			memory[places[i]] ^= 0x55;
		else
			len = places[i - sizeof(places)];
		post(conn, 0, len);
		await_end(conn);
	}
}

static void oversized(void)
{
	struct rpma_rt_conn *conn = connected();

	post(conn, 0, request_of(0, KV_PUT, false, 5000));
	await_end(conn);
}

/* Sends without end, and takes no answer. */
static void endless(void)
{
	struct rpma_rt_conn *conn = connected();
	size_t len = request_of(0, KV_GET, false, 0);
	struct rpma_rt_completion item;
	int got;

	do {
		post(conn, 0, len);
		got = rpma_rt_queue_wait(queue, &item, 1, 0);
		MUST(got);
	} while (got == 0 ||
		 rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	rpma_rt_conn_unref(&conn);
}

/* Sends a window of requests, takes no answer, and sends nothing more. */
static void unread(void)
{
	struct rpma_rt_conn *conn = connected();
	size_t len = request_of(0, KV_GET, false, 0);
	int i;

	for (i = 0; i < 16; i++)
		post(conn, 0, len);
	await_end(conn);
}

static void silent(void)
{
	await_end(connected());
}

/* Returns false if the connection was closed before the answer. */
static bool is_stored(struct rpma_rt_conn *conn)
{
	struct rpma_rt_completion item;
	int ret = rpma_rt_recv(conn, mr, (size_t)2 * SLOT, SLOT, 0);

	if (ret != RPMA_RT_E_CLOSED)
		MUST(ret);
	post(conn, 1, request_of(1, KV_PUT, true, SLOT));
	do
		item = take();
	while (!rpma_rt_completion_is_received(&item) &&
	       rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	return rpma_rt_completion_is_received(&item);
}

/* Stores a large value, honestly. On a busy machine the server may close a
 * connection whose request comes late, or whose memory is read late: as any
 * honest client the rogue comes back. */
static void store(void)
{
	struct rpma_rt_conn *conn;
	int tries;

	for (tries = 0; tries < 100; tries++) {
		conn = connected();
		if (is_stored(conn)) {
			rpma_rt_conn_close(conn);
			await_end(conn);
			return;
		}
		rpma_rt_conn_unref(&conn);
	}
	die("the server does not store a value");
}

/* Offers memory that is not there, to be read and to be written. */
static void offer(void)
{
	static const char *const faults[] = {"key", "place", "end", "text"};
	enum kv_kind kinds[] = {KV_PUT, KV_GET};
	size_t kind, fault, len;

	store();
	for (kind = 0; kind < 2; kind++)
		for (fault = 0; fault < 4; fault++) {
			struct rpma_rt_conn *conn = connected();
			size_t at = FRAME_HEAD + KV_BODY + 5;

			len = request_of(1, kinds[kind], true, SLOT);
			switch (faults[fault][0]) {
			case 'k': /* the descriptor: address, size, rkey */
				memory[SLOT + at + 17] ^= 0x55;
				break;
			case 'p':
				memory[SLOT + at + 5] ^= 0x55;
				break;
			case 'e':
				memory[SLOT + len - 1] ^= 0x55;
				break;
			case 't':
				memory[SLOT + at] ^= 0x55;
				break;
			}
			post(conn, 1, len);
			await_end(conn);
		}
}

/* Leaves in the middle of everything. */
static void dying(void)
{
	struct rpma_rt_completion item;
	int i, n;

	for (n = 0; n < 30; n++) {
		struct rpma_rt_conn *conn = connected();

		for (i = 0; i < 16; i++)
			post(conn, i,
			     request_of(i, i % 2 ? KV_PUT : KV_GET, true,
					SLOT));
		if (n % 2)
			MUST(rpma_rt_queue_wait(queue, &item, 1, 1));
		rpma_rt_conn_close(conn);
		await_end(conn);
	}
}

/* Opens more connections than the server takes. The server closes those that
 * are idle, on a busy machine before this end knows that they are established:
 * these are neither. */
static void flood(void)
{
	struct rpma_rt_conn *conns[FLOOD], *conn;
	bool is_up[FLOOD] = {false};
	int i, established = 0, refused = 0, closed = 0;

	for (i = 0; i < FLOOD; i++)
		conns[i] = begin();
	while (established + refused + closed < FLOOD) {
		struct rpma_rt_completion item = take();
		unsigned event = rpma_rt_completion_event(&item);

		conn = event ? rpma_rt_completion_conn(&item) : NULL;
		for (i = 0; conn != NULL && conns[i] != conn;)
			i++;
		if (event == RPMA_RT_EVENT_ESTABLISHED) {
			is_up[i] = true;
			established++;
		} else if (event == RPMA_RT_EVENT_CLOSED && !is_up[i]) {
			refused += item.status == RPMA_RT_REASON_REJECTED;
			closed += item.status != RPMA_RT_REASON_REJECTED;
		}
	}
	printf("%d established, %d refused\n", established, refused);
	for (i = 0; i < FLOOD; i++) {
		rpma_rt_conn_close(conns[i]);
		rpma_rt_conn_unref(&conns[i]);
	}
	if (established + closed == 0 || refused == 0)
		die("a flood: all or none are refused");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {{"strange", strange},     {"malformed", malformed},
		    {"oversized", oversized}, {"endless", endless},
		    {"unread", unread},	      {"silent", silent},
		    {"offer", offer},	      {"dying", dying},
		    {"flood", flood}};
	size_t i;

	if (argc != 4)
		return 2;
	address = argv[1];
	port = argv[2];
	open_all();
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(argv[3], ways[i].name) == 0)
			break;
	if (i == sizeof(ways) / sizeof(ways[0]))
		die("no such way");
	ways[i].run();
	MUST(rpma_rt_stop(rt));
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_delete(&rt));
	MUST(rpma_mr_dereg(&mr));
	MUST(rpma_peer_delete(&peer));
	free(memory);
	return 0;
}
