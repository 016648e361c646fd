/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A program of its time: a client and a server in one thread, each operation
 * once, its completion taken in each way that the release had. RPMA_TEST_ADDR
 * says at which address there is a device.
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"
#include "take.h"

#define FIRST_PORT 7204
#define LAST_PORT  7999
#define MEM	   4096
#define ALWAYS	   RPMA_F_COMPLETION_ALWAYS
#define USAGE_ALL  0xff

/* a call that must answer 0, or something that must be so */
#define ok(call)                                                \
	do {                                                    \
		int ret_ = (call);                              \
		if (ret_) {                                     \
			printf("%d: %s: %s\n", __LINE__, #call, \
			       rpma_err_2str(ret_));            \
			exit(1);                                \
		}                                               \
	} while (0)
#define is(so)                                             \
	do {                                               \
		if (!(so)) {                               \
			printf("%d: %s\n", __LINE__, #so); \
			exit(1);                           \
		}                                          \
	} while (0)

struct side {
	struct rpma_conn *conn;
	char *mem;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote; /* the other side's mem */
};

static const char *addr = "127.0.0.1";
static struct rpma_peer *peer;
static struct side client;
static struct side server;
static const struct way *way;

/* Each operation has another context, of all 64 bits. */
static void *context(int number)
{
	return (void *)(0xfedcba9800000000 + (uintptr_t)number);
}

static void open_side(struct side *side)
{
	side->mem = aligned_alloc(MEM, MEM);
	is(side->mem);
	memset(side->mem, 0, MEM);
	/* a device that flushes itself may want memory that persists */
	if (rpma_mr_reg(peer, side->mem, MEM, USAGE_ALL, &side->mr))
		ok(rpma_mr_reg(peer, side->mem, MEM,
			       USAGE_ALL & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
			       &side->mr));
}

static void tell(const struct side *from, struct side *to)
{
	char desc[32];
	size_t size = 0;

	ok(rpma_mr_get_descriptor_size(from->mr, &size));
	is(size == 21);
	ok(rpma_mr_get_descriptor(from->mr, desc));
	ok(rpma_mr_remote_from_descriptor(desc, size, &to->remote));
}

static struct rpma_ep *listen_somewhere(char *port)
{
	struct rpma_ep *ep = NULL;
	int number;

	for (number = FIRST_PORT; number <= LAST_PORT; number++) {
		snprintf(port, 8, "%d", number);
		if (rpma_ep_listen(peer, addr, port, &ep) == 0)
			return ep;
	}
	printf("no free port at %s\n", addr);
	exit(1);
}

static void expect_event(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	ok(rpma_conn_next_event(conn, &event));
	is(event == expected);
}

/* The receive of the first message is there before the connection is. */
static void connect_sides(void)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep;
	char port[8];

	ep = listen_somewhere(port);
	ok(rpma_conn_req_new(peer, addr, port, NULL, &req));
	ok(rpma_conn_req_connect(&req, NULL, &client.conn));
	ok(rpma_ep_next_conn_req(ep, NULL, &req));
	ok(rpma_conn_req_recv(req, server.mr, 0, 64, context(1)));
	ok(rpma_conn_req_connect(&req, NULL, &server.conn));
	expect_event(client.conn, RPMA_CONN_ESTABLISHED);
	expect_event(server.conn, RPMA_CONN_ESTABLISHED);
	ok(rpma_ep_shutdown(&ep));
}

/* An event may be that of a completion already taken: wait again. */
static struct done next(struct side *side)
{
	struct done done;
	int ret = way->get(side->conn, &done);

	while (ret == RPMA_E_NO_COMPLETION) {
		ok(way->wait(side->conn));
		ret = way->get(side->conn, &done);
	}
	ok(ret);
	return done;
}

static struct done expect(struct side *side, int number, enum done_op op)
{
	struct done done = next(side);

	is(done.status == IBV_WC_SUCCESS);
	is(done.context == context(number));
	is(done.op == op);
	return done;
}

static void expect_nothing(struct side *side)
{
	struct done done;

	is(way->get(side->conn, &done) == RPMA_E_NO_COMPLETION);
}

static void messages(void)
{
	struct pollfd poller = {.events = POLLIN};

	strcpy(client.mem, "hello");
	ok(rpma_send(client.conn, client.mr, 0, 6, ALWAYS, context(2)));
	expect(&client, 2, DONE_SEND);
	ok(way->fd(server.conn, &poller.fd));
	is(poll(&poller, 1, -1) == 1);
	is(expect(&server, 1, DONE_RECV).byte_len == 6);
	is(strcmp(server.mem, "hello") == 0);

	ok(rpma_recv(client.conn, client.mr, 64, 64, context(3)));
	ok(rpma_send(server.conn, server.mr, 0, 4, ALWAYS, context(4)));
	expect(&server, 4, DONE_SEND);
	is(expect(&client, 3, DONE_RECV).byte_len == 4);
	is(memcmp(client.mem + 64, "hell", 4) == 0);
}

static void memory(void)
{
	strcpy(server.mem + 128, "there");
	ok(rpma_read(client.conn, client.mr, 256, client.remote, 128, 6, ALWAYS,
		     context(5)));
	expect(&client, 5, DONE_READ);
	is(strcmp(client.mem + 256, "there") == 0);

	strcpy(client.mem + 128, "written");
	ok(rpma_write(client.conn, client.remote, 512, client.mr, 128, 8,
		      RPMA_F_COMPLETION_ON_ERROR, context(6)));
	/* no release called it anything but a read */
	ok(rpma_flush(client.conn, client.remote, 512, 8,
		      RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, context(7)));
	expect(&client, 7, DONE_READ);
	is(strcmp(server.mem + 512, "written") == 0);
	ok(rpma_write(client.conn, client.remote, 512, client.mr, 0, 6, ALWAYS,
		      context(8)));
	expect(&client, 8, DONE_WRITE);
	expect_nothing(&client);
}

static void atomic_writes(void)
{
#if RPMA_OLD <= 13
	memcpy(client.mem + 1000, "abcdefgh", 8);
	ok(rpma_write_atomic(client.conn, client.remote, 1024, client.mr, 1000,
			     ALWAYS, context(9)));
	expect(&client, 9, DONE_WRITE);
	is(memcmp(server.mem + 1024, "abcdefgh", 8) == 0);
	is(rpma_write_atomic(client.conn, client.remote, 1028, client.mr, 1000,
			     ALWAYS, NULL) == RPMA_E_INVAL);
#endif
#if RPMA_OLD >= 13
	ok(rpma_atomic_write(client.conn, client.remote, 1032, "ijklmnop",
			     ALWAYS, context(10)));
	expect(&client, 10, DONE_WRITE);
	is(memcmp(server.mem + 1032, "ijklmnop", 8) == 0);
#endif
}

static void immediates(void)
{
#if RPMA_OLD >= 10
	struct done done;

	ok(rpma_recv(server.conn, server.mr, 0, 64, context(11)));
	ok(rpma_recv(server.conn, server.mr, 0, 64, context(12)));
	ok(rpma_send_with_imm(client.conn, client.mr, 0, 6, ALWAYS, 0x12345678,
			      context(13)));
	expect(&client, 13, DONE_SEND);
	done = expect(&server, 11, DONE_RECV);
	is(done.has_imm && done.imm == 0x12345678);

	ok(rpma_write_with_imm(client.conn, client.remote, 2048, client.mr, 0,
			       6, ALWAYS, 7, context(14)));
	expect(&client, 14, DONE_WRITE);
	done = expect(&server, 12, DONE_RECV_RDMA_WITH_IMM);
	is(done.has_imm && done.imm == 7);
	is(strcmp(server.mem + 2048, "hello") == 0);
#endif
}

/* A receive that is still there when the connection goes. */
static void close_sides(void)
{
	struct done done;

	ok(rpma_recv(server.conn, server.mr, 0, 64, context(15)));
	ok(rpma_conn_disconnect(client.conn));
	expect_event(server.conn, RPMA_CONN_CLOSED);
	ok(rpma_conn_disconnect(server.conn));
	expect_event(client.conn, RPMA_CONN_CLOSED);
	done = next(&server);
	is(done.context == context(15));
	is(done.status == IBV_WC_WR_FLUSH_ERR);
	expect_nothing(&server);
	expect_nothing(&client);
}

static void delete_side(struct side *side)
{
	ok(rpma_conn_delete(&side->conn));
	ok(rpma_mr_remote_delete(&side->remote));
	ok(rpma_mr_dereg(&side->mr));
	free(side->mem);
}

static void run(void)
{
	open_side(&client);
	open_side(&server);
	tell(&client, &server);
	tell(&server, &client);
	connect_sides();
	messages();
	memory();
	atomic_writes();
	immediates();
	close_sides();
	delete_side(&client);
	delete_side(&server);
}

int main(void)
{
	struct ibv_context *ctx = NULL;
	int count = 0;

	while (functions[count])
		count++;
	if (getenv("RPMA_TEST_ADDR"))
		addr = getenv("RPMA_TEST_ADDR");
	if (rpma_utils_get_ibv_context(addr, RPMA_UTIL_IBV_CONTEXT_LOCAL,
				       &ctx) ||
	    ctx == NULL) {
		printf("skipped: no RDMA device has the address %s\n", addr);
		return 77;
	}
	ok(rpma_peer_new(ctx, &peer));
	for (way = ways; way->name; way++) {
		run();
		printf("%s: ok\n", way->name);
	}
	ok(rpma_peer_delete(&peer));
	printf("%d functions\n", count);
	return 0;
}
