/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * One side of a connection, client or server, which another librpma may have
 * at its other end. Uses nothing that librpma 1.2 does not have: the same
 * source is built with its header and with ours.
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

/* wr_ids: those of receives begin here, and each has its own 64 bytes */
#define RECV_ID	  100
#define RECVS	  4
#define RECV_SIZE 64

/* offsets in each side's memory */
enum {
	AT_RECV = 0,
	AT_WORDS = 1024, /* what the other side may look at */
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
	/* NULL: the server refuses, and the client is to see that */
	void (*client)(struct side *side);
	void (*server)(struct side *side);
};

struct side {
	const char *role;
	const char *addr;
	struct rpma_peer *peer;
	char *mem;
	struct rpma_mr_local *mr;
	enum rpma_flush_type flush_type; /* the most that the device has */
	struct rpma_ep *ep;		 /* of the server */
	char port[8];

	/* what follows is of the operation at work */
	const struct operation *op;
	const char *form; /* which form of it was used, if there are two */
	struct rpma_conn_cfg *cfg;
	struct rpma_srq *srq;
	struct rpma_conn *conn;
	struct rpma_mr_remote *remote;
	struct ibv_wc held[2 * RECVS]; /* taken before they were asked for */
	int held_count;
};

_Noreturn void interop_die(const struct side *side, const char *file, int line,
			   const char *what, int ret);

/* false: no device has that address. */
bool side_open(struct side *side, const char *role, const char *addr);
void side_close(struct side *side);
/* The port it has found free is left in side->port. */
void side_listen(struct side *side);

/*
 * Everything for one operation, and its end: configuration, receives posted
 * before the connection is, private data compared, memory exchanged.
 */
void side_connect(struct side *side);
void side_accept(struct side *side);
void side_clean(struct side *side);

void side_refuse(struct side *side);
/* Connects, and is to be refused. */
void side_be_refused(struct side *side);

/* The next of the send or of the receive completions, waited for as the
 * connection's layout wants it. */
struct ibv_wc side_next(struct side *side, bool is_recv);
/* It has to be this one, and a success. */
struct ibv_wc side_expect(struct side *side, uint64_t wr_id,
			  enum ibv_wc_opcode opcode);
void side_expect_event(struct side *side, enum rpma_conn_event expected);

#endif /* COMPAT_INTEROP_H */
