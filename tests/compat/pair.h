/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A client and a server in one thread of one process, connected through the
 * device with the address RPMA_TEST_ADDR (127.0.0.1 if unset). Uses only
 * features of librpma 1.2, so that tests can be built with an older header and
 * run on an older library.
 *
 * Any failure fails the test. The timeout of the test ends a blocking call.
 */

#ifndef COMPAT_PAIR_H
#define COMPAT_PAIR_H

#include <librpma.h>

#include "../cases.h"

#define PAIR_MEM 4096

/* a call that must return 0 */
#define ok(call) assert_int_equal(call, 0)

struct side {
	struct rpma_conn *conn;
	char *mem; /* PAIR_MEM bytes, for everything */
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote; /* the other side's mem */
};

struct pair {
	struct rpma_ep *ep;
	struct side client;
	struct side server;
};

/* How a connection is to be made; all may be NULL. */
struct pair_how {
	const struct rpma_conn_cfg *client_cfg;
	const struct rpma_conn_cfg *server_cfg;
	const struct rpma_conn_private_data *client_data;
	const struct rpma_conn_private_data *server_data;
	/* called with the request at the server, before accepting */
	void (*before_accept)(struct pair *pair, struct rpma_conn_req *req);
};

/* The peer for all tests of a program, and its address. */
extern struct rpma_peer *the_peer;
extern const char *the_addr;

/* Runs the tests, or answers 77 and says why if there is no device. */
int pair_main(const char *name, const struct CMUnitTest *tests, size_t count);
#define PAIR_RUN(tests) \
	pair_main(#tests, tests, sizeof(tests) / sizeof((tests)[0]))
#define PAIR_MAIN()                                                   \
	int main(void)                                                \
	{                                                             \
		return pair_main("tests", tests_listed, tests_count); \
	}

/* Opens an endpoint at a free port; the number is left in port (8 bytes). */
struct rpma_ep *pair_listen(char *port);

/* Open a connected pair of the default or another kind, and end a pair. */
void pair_open(struct pair *pair);
void pair_open_how(struct pair *pair, const struct pair_how *how);
void pair_close(struct pair *pair);

/* Registers PAIR_MEM bytes for every use that the device allows. */
struct rpma_mr_local *pair_reg(char *mem);
/* Returns the highest flush type of such memory, after the registration. */
enum rpma_flush_type pair_flush_type(void);

/* Asserts the next event of a connection. */
void expect_event(struct rpma_conn *conn, enum rpma_conn_event expected);
/* Waits until the CQ has a completion, and takes the completion. */
struct ibv_wc next_wc(struct rpma_cq *cq);
/* Waits for the CQ of a connection; asserts success and the context. */
void expect_done(struct side *side, uint64_t context,
		 enum ibv_wc_opcode opcode);
struct rpma_cq *cq_of(const struct side *side);
struct rpma_cq *rcq_of(const struct side *side);

void set_nonblocking(int fd);
/* Whether poll() finds fd readable at once. */
bool is_readable(int fd);
/* Blocks until the fd is readable; fails after a long time. */
void wait_readable(int fd);

#endif /* COMPAT_PAIR_H */
