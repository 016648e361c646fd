/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Every kind of operation between two librpmas:
 *
 *	interop server ADDR		prints its port, serves one client
 *	interop client ADDR PORT
 *	interop both ADDR		both ends in this process, two threads
 *
 * ADDR may be "-": RPMA_TEST_ADDR, or 127.0.0.1. A side prints a line "ROLE
 * OPERATION ok [FORM]" for each operation, in which _ stands for a blank; a
 * failure ends the process. Each operation has a separate connection, at whose
 * end the client reports its work, the server looks and answers.
 */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interop.h"

#define IMM	 0x600dcafe
#define PATIENCE 300 /* seconds; ends a hang, decides nothing else */
#define SKIP	 77

/* in this order they are taken */
enum { FIRST = RECV_ID, SECOND };

/*
 * Sends no bytes, and does not wait for the completion, since the answer of the
 * other side suffices.
 */
static void say(struct side *side)
{
	ok(side, rpma_send(side->conn, NULL, 0, 0, SILENT, NULL));
}

static void hear(struct side *side, uint64_t wr_id)
{
	must(side, side_expect(side, wr_id, IBV_WC_RECV).byte_len == 0);
}

static bool has(const struct side *side, size_t at, const char *words)
{
	return strcmp(side->mem + at, words) == 0;
}

/* --- the client's part of each operation, and the server's */

static void write_client(struct side *side)
{
	strcpy(side->mem, "written");
	ok(side, rpma_write(side->conn, side->remote, AT_WORDS, side->mr, 0, 8,
			    SIGNALED, (void *)1));
	side_expect(side, 1, IBV_WC_RDMA_WRITE);
	say(side);
	hear(side, FIRST);
}

static void write_server(struct side *side)
{
	hear(side, FIRST);
	must(side, has(side, AT_WORDS, "written"));
	say(side);
}

static void write_imm_client(struct side *side)
{
	strcpy(side->mem, "with a number");
	ok(side,
	   rpma_write_with_imm(side->conn, side->remote, AT_WORDS, side->mr, 0,
			       14, SIGNALED, IMM, (void *)1));
	side_expect(side, 1, IBV_WC_RDMA_WRITE);
	hear(side, FIRST);
}

static void write_imm_server(struct side *side)
{
	struct ibv_wc wc = side_expect(side, FIRST, IBV_WC_RECV_RDMA_WITH_IMM);

	must(side, wc.wc_flags & IBV_WC_WITH_IMM);
	must(side, ntohl(wc.imm_data) == IMM && wc.byte_len == 14);
	must(side, has(side, AT_WORDS, "with a number"));
	say(side);
}

static void read_client(struct side *side)
{
	hear(side, FIRST);
	ok(side, rpma_read(side->conn, side->mr, AT_SCRATCH, side->remote,
			   AT_WORDS, 7, SIGNALED, (void *)1));
	side_expect(side, 1, IBV_WC_RDMA_READ);
	must(side, has(side, AT_SCRATCH, "answer"));
}

static void read_server(struct side *side)
{
	strcpy(side->mem + AT_WORDS, "answer");
	say(side);
}

/* Notes the form that the library took, according to the completion. */
static void note_form(struct side *side, enum ibv_wc_opcode got,
		      enum ibv_wc_opcode emulated)
{
	side->form = got == emulated ? "emulated" : "native";
}

/* Flushes after a silent write, so each flush is the only completion. */
static void flush_client(struct side *side)
{
	struct ibv_wc wc;

	strcpy(side->mem, "flushed");
	ok(side, rpma_write(side->conn, side->remote, AT_WORDS, side->mr, 0, 8,
			    SILENT, (void *)1));
	ok(side, rpma_flush(side->conn, side->remote, AT_WORDS, 8,
			    side->flush_type, SIGNALED, (void *)2));
	wc = side_next(side, false);
	must(side, wc.status == IBV_WC_SUCCESS && wc.wr_id == 2);
	note_form(side, wc.opcode, IBV_WC_RDMA_READ);
	ok(side, rpma_flush(side->conn, side->remote, AT_WORDS, 8,
			    RPMA_FLUSH_TYPE_VISIBILITY, SIGNALED, (void *)3));
	wc = side_next(side, false);
	must(side, wc.status == IBV_WC_SUCCESS && wc.wr_id == 3);
	say(side);
	hear(side, FIRST);
}

static void flush_server(struct side *side)
{
	hear(side, FIRST);
	must(side, has(side, AT_WORDS, "flushed"));
	say(side);
}

/* The source may be used again at once. */
static void atomic_client(struct side *side)
{
	char source[8] = "8 bytes";
	struct ibv_wc wc;

	ok(side, rpma_atomic_write(side->conn, side->remote, AT_WORDS, source,
				   SIGNALED, (void *)1));
	memset(source, 'z', sizeof(source));
	wc = side_next(side, false);
	must(side, wc.status == IBV_WC_SUCCESS && wc.wr_id == 1);
	note_form(side, wc.opcode, IBV_WC_RDMA_WRITE);
	say(side);
	hear(side, FIRST);
}

static void atomic_server(struct side *side)
{
	hear(side, FIRST);
	must(side, has(side, AT_WORDS, "8 bytes"));
	say(side);
}

static void send_words(struct side *side, const char *words)
{
	size_t size = strlen(words) + 1;

	strcpy(side->mem + AT_SCRATCH, words);
	ok(side, rpma_send(side->conn, side->mr, AT_SCRATCH, size, SIGNALED,
			   (void *)1));
	side_expect(side, 1, IBV_WC_SEND);
}

static void expect_words(struct side *side, const char *words)
{
	struct ibv_wc wc = side_expect(side, FIRST, IBV_WC_RECV);

	must(side, wc.byte_len == strlen(words) + 1);
	must(side, has(side, AT_RECV, words));
}

/* Sends a message each way; also used for SRQ, RCQ and shared channel. */
static void send_client(struct side *side)
{
	send_words(side, "how are you");
	expect_words(side, "fine");
	say(side);
	hear(side, SECOND);
}

static void send_server(struct side *side)
{
	expect_words(side, "how are you");
	send_words(side, "fine");
	hear(side, SECOND);
	say(side);
}

static void expect_number(struct side *side, uint32_t number)
{
	struct ibv_wc wc = side_expect(side, FIRST, IBV_WC_RECV);

	must(side, wc.wc_flags & IBV_WC_WITH_IMM);
	must(side, wc.byte_len == 0 && ntohl(wc.imm_data) == number);
}

static void send_imm_client(struct side *side)
{
	ok(side, rpma_send_with_imm(side->conn, NULL, 0, 0, SIGNALED, IMM,
				    (void *)1));
	side_expect(side, 1, IBV_WC_SEND);
	expect_number(side, IMM + 1);
}

static void send_imm_server(struct side *side)
{
	expect_number(side, IMM);
	ok(side,
	   rpma_send_with_imm(side->conn, NULL, 0, 0, SILENT, IMM + 1, NULL));
}

/* Does nothing: both have connected, and compared the private data before. */
static void greet_client(struct side *side)
{
	hear(side, FIRST);
}

static void greet_server(struct side *side)
{
	say(side);
}

/*
 * Handles the end of the other side: receives come back, and disconnect is
 * allowed too.
 */
static void disconnect_server(struct side *side)
{
	hear(side, FIRST);
	ok(side, rpma_conn_disconnect(side->conn));
}

static void disconnect_client(struct side *side)
{
	uint64_t i;

	say(side);
	side_expect_event(side, RPMA_CONN_CLOSED);
	ok(side, rpma_conn_disconnect(side->conn));
	for (i = FIRST; i < RECV_ID + RECVS; i++) {
		struct ibv_wc wc = side_next(side, true);

		must(side, wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == i);
	}
}

static const struct operation operations[] = {
	{"private data", ONE_CQ, greet_client, greet_server},
	{"read", ONE_CQ, read_client, read_server},
	{"write", ONE_CQ, write_client, write_server},
	{"write with immediate", ONE_CQ, write_imm_client, write_imm_server},
	{"flush", ONE_CQ, flush_client, flush_server},
	{"atomic write", ONE_CQ, atomic_client, atomic_server},
	{"send", ONE_CQ, send_client, send_server},
	{"send with immediate", ONE_CQ, send_imm_client, send_imm_server},
	{"SRQ", SRQ_RCQ, send_client, send_server},
	{"RCQ", OWN_RCQ, send_client, send_server},
	{"shared channel", SHARED_CHANNEL, send_client, send_server},
	{"reject", ONE_CQ, NULL, NULL},
	{"disconnect", ONE_CQ, disconnect_client, disconnect_server},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static void report(const struct side *side)
{
	char name[32];
	char *c;

	snprintf(name, sizeof(name), "%s", side->op->name);
	for (c = name; *c; c++) {
		if (*c == ' ')
			*c = '_';
	}
	printf("%s %s ok %s\n", side->role, name, side->form);
	fflush(stdout);
}

static void run_client(struct side *side)
{
	if (!side->op->client) {
		side_be_refused(side);
		return;
	}
	side_connect(side);
	side->op->client(side);
	if (side->op->client != disconnect_client) {
		ok(side, rpma_conn_disconnect(side->conn));
		side_expect_event(side, RPMA_CONN_CLOSED);
	}
	side_clean(side);
}

static void run_server(struct side *side)
{
	if (!side->op->server) {
		side_refuse(side);
		return;
	}
	side_accept(side);
	side->op->server(side);
	side_expect_event(side, RPMA_CONN_CLOSED);
	side_clean(side);
}

static void *run_side(void *arg)
{
	struct side *side = arg;
	size_t i;

	for (i = 0; i < OPERATIONS; i++) {
		side->op = &operations[i];
		side->form = "";
		if (side->ep)
			run_server(side);
		else
			run_client(side);
		report(side);
	}
	return NULL;
}

static void open_or_skip(struct side *side, const char *role, const char *addr)
{
	if (side_open(side, role, addr))
		return;
	printf("skipped: no RDMA device has the address %s\n", addr);
	exit(SKIP);
}

static void run_both(const char *addr)
{
	struct side server, client;
	pthread_t thread;

	open_or_skip(&server, "server", addr);
	open_or_skip(&client, "client", addr);
	side_listen(&server);
	memcpy(client.port, server.port, sizeof(client.port));
	must(&server, !pthread_create(&thread, NULL, run_side, &server));
	run_side(&client);
	pthread_join(thread, NULL);
	side_close(&client);
	side_close(&server);
}

static void run_one(const char *role, const char *addr, const char *port)
{
	struct side side;

	open_or_skip(&side, role, addr);
	if (port) {
		snprintf(side.port, sizeof(side.port), "%s", port);
	} else {
		side_listen(&side);
		printf("port %s\n", side.port);
		fflush(stdout);
	}
	run_side(&side);
	side_close(&side);
}

int main(int argc, char *argv[])
{
	const char *role = argc > 1 ? argv[1] : "";
	bool is_client = strcmp(role, "client") == 0;
	const char *addr = getenv("RPMA_TEST_ADDR");

	if (argc != (is_client ? 4 : 3)) {
		fprintf(stderr, "usage: interop both|server ADDR\n"
				"       interop client ADDR PORT\n");
		return 2;
	}
	if (strcmp(argv[2], "-") != 0)
		addr = argv[2];
	else if (!addr)
		addr = "127.0.0.1";
	alarm(PATIENCE);
	if (strcmp(role, "both") == 0)
		run_both(addr);
	else
		run_one(role, addr, is_client ? argv[3] : NULL);
	return 0;
}
