/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A side of a connection, client or server, whose other end may have another
 * librpma. Uses only features of librpma 1.2: the same source is built with the
 * header of 1.2 and with the present header.
 *
 * A side belongs to one thread. A failure ends the program, with a message that
 * names the side and the operation.
 */

#ifndef COMPAT_INTEROP_H
#define COMPAT_INTEROP_H

#include <stdbool.h>
#include <stdint.h>

#include <librpma.h>

#define INTEROP_MEM 4096
#define SIGNALED    RPMA_F_COMPLETION_ALWAYS
#define SILENT	    RPMA_F_COMPLETION_ON_ERROR

/* wr_ids of receives begin here; each receive has 64 bytes */
#define RECV_ID	  100
#define RECVS	  4
#define RECV_SIZE 64

/* offsets in each side's memory */
enum {
	AT_RECV = 0,
	AT_WORDS = 1024, /* bytes for the other side to check */
	AT_SCRATCH = 2048
};

#define must(side, condition)                                                 \
	do {                                                                  \
		if (!(condition))                                             \
			interop_die(side, __FILE__, __LINE__, #condition, 0); \
	} while (0)
#define ok(side, call)                                                        \
	do {                                                                  \
		int ok_ret = (call);                                          \
		if (ok_ret)                                                   \
			interop_die(side, __FILE__, __LINE__, #call, ok_ret); \
	} while (0)

/* Where a connection's completions are. */
enum layout {
	ONE_CQ,
	OWN_RCQ,
	SHARED_CHANNEL, /* of CQ and RCQ */
	SRQ_RCQ
};

struct side;

struct operation {
	const char *name;
	enum layout layout;
	/* NULL: the server refuses, and the client has to see the refusal */
	void (*client)(struct side *side);
	void (*server)(struct side *side);
};

struct side {
	const char *role;
	const char *addr;
	struct rpma_peer *peer;
	char *mem;
	struct rpma_mr_local *mr;
	enum rpma_flush_type flush_type; /* the highest type of the device */
	struct rpma_ep *ep;		 /* of the server */
	char port[8];

	/* of the present operation */
	const struct operation *op;
	const char *form; /* the form used, if the operation has two */
	struct rpma_conn_cfg *cfg;
	struct rpma_srq *srq;
	struct rpma_conn *conn;
	struct rpma_mr_remote *remote;
	struct ibv_wc held[2 * RECVS]; /* taken before they were asked for */
	int held_count;
};

_Noreturn void interop_die(const struct side *side, const char *file, int line,
			   const char *what, int ret);

/* Opens a side; returns false if no device has the address. */
bool side_open(struct side *side, const char *role, const char *addr);
void side_close(struct side *side);
/* Listens; the free port is left in side->port. */
void side_listen(struct side *side);

/*
 * side_connect() and side_accept() prepare everything for an operation,
 * side_end() ends the operation: configuration, receives posted before the
 * connection exists, private data compared, memory exchanged.
 */
void side_connect(struct side *side);
void side_accept(struct side *side);
void side_clean(struct side *side);

void side_refuse(struct side *side);
/* Connects, and is to be refused. */
void side_be_refused(struct side *side);

/* Waits for the next send or receive completion, in the way of the layout of
 * the connection. */
struct ibv_wc side_next(struct side *side, bool is_recv);
/* Waits for a completion, asserted to be successful and to have the wr_id. */
struct ibv_wc side_expect(struct side *side, uint64_t wr_id,
			  enum ibv_wc_opcode opcode);
void side_expect_event(struct side *side, enum rpma_conn_event expected);

#endif /* COMPAT_INTEROP_H */
