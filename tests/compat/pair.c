/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The ground of the integration tests; see pair.h. */

#include "pair.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_PORT  7204
#define LAST_PORT   7999
#define PATIENCE_MS 300000 /* ends a hang, decides nothing else */

#define USAGE_ALL                                            \
	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |   \
	 RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | \
	 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |           \
	 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)

struct rpma_peer *the_peer;
const char *the_addr = "127.0.0.1";

int pair_main(const char *name, const struct CMUnitTest *tests, size_t count)
{
	struct ibv_context *ctx = NULL;
	int failed;

	/* what the library has to say belongs to a failed test */
	(void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX,
				     RPMA_LOG_LEVEL_WARNING);
	if (getenv("RPMA_TEST_ADDR"))
		the_addr = getenv("RPMA_TEST_ADDR");
	if (rpma_utils_get_ibv_context(the_addr, RPMA_UTIL_IBV_CONTEXT_LOCAL,
				       &ctx) ||
	    ctx == NULL) {
		printf("skipped: no RDMA device has the address %s\n",
		       the_addr);
		return 77;
	}
	if (rpma_peer_new(ctx, &the_peer))
		return 1;
	failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
	/* nothing may be left in the protection domain */
	if (failed == 0 && rpma_peer_delete(&the_peer)) {
		printf("the protection domain is still in use\n");
		return 1;
	}
	return failed != 0;
}

struct rpma_ep *pair_listen(char *port)
{
	struct rpma_ep *ep = NULL;
	int number;

	for (number = FIRST_PORT; number <= LAST_PORT; number++) {
		snprintf(port, 8, "%d", number);
		if (rpma_ep_listen(the_peer, the_addr, port, &ep) == 0)
			return ep;
	}
	fail_msg("no free port at %s", the_addr);
	return NULL;
}

/* A device that flushes itself may take only memory that persists for that. */
static bool persists = true;

struct rpma_mr_local *pair_reg(char *mem)
{
	const int persistent = RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	struct rpma_mr_local *mr = NULL;

	if (persists)
		persists = !rpma_mr_reg(the_peer, mem, PAIR_MEM,
					USAGE_ALL | persistent, &mr);
	if (!persists)
		ok(rpma_mr_reg(the_peer, mem, PAIR_MEM, USAGE_ALL, &mr));
	return mr;
}

enum rpma_flush_type pair_flush_type(void)
{
	return persists ? RPMA_FLUSH_TYPE_PERSISTENT
			: RPMA_FLUSH_TYPE_VISIBILITY;
}

static void open_side(struct side *side)
{
	side->mem = aligned_alloc(PAIR_MEM, PAIR_MEM);
	assert_non_null(side->mem);
	side->mr = pair_reg(side->mem);
}

static void exchange(const struct side *from, struct side *to)
{
	char desc[32];
	size_t size = 0;

	ok(rpma_mr_get_descriptor_size(from->mr, &size));
	assert_true(size <= sizeof(desc));
	ok(rpma_mr_get_descriptor(from->mr, desc));
	ok(rpma_mr_remote_from_descriptor(desc, size, &to->remote));
}

void pair_open_how(struct pair *pair, const struct pair_how *how)
{
	struct rpma_conn_req *req = NULL;
	char port[8];

	*pair = (struct pair){0};
	open_side(&pair->client);
	open_side(&pair->server);
	exchange(&pair->client, &pair->server);
	exchange(&pair->server, &pair->client);

	pair->ep = pair_listen(port);
	ok(rpma_conn_req_new(the_peer, the_addr, port, how->client_cfg, &req));
	ok(rpma_conn_req_connect(&req, how->client_data, &pair->client.conn));
	assert_null(req);
	ok(rpma_ep_next_conn_req(pair->ep, how->server_cfg, &req));
	if (how->before_accept)
		how->before_accept(pair, req);
	ok(rpma_conn_req_connect(&req, how->server_data, &pair->server.conn));
	expect_event(pair->client.conn, RPMA_CONN_ESTABLISHED);
	expect_event(pair->server.conn, RPMA_CONN_ESTABLISHED);
}

void pair_open(struct pair *pair)
{
	const struct pair_how plain = {0};

	pair_open_how(pair, &plain);
}

static void close_side(struct side *side)
{
	ok(rpma_conn_delete(&side->conn));
	ok(rpma_mr_remote_delete(&side->remote));
	ok(rpma_mr_dereg(&side->mr));
	free(side->mem);
}

void pair_close(struct pair *pair)
{
	close_side(&pair->client);
	close_side(&pair->server);
	ok(rpma_ep_shutdown(&pair->ep));
}

void expect_event(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	ok(rpma_conn_next_event(conn, &event));
	assert_string_equal(rpma_utils_conn_event_2str(event),
			    rpma_utils_conn_event_2str(expected));
}

struct ibv_wc next_wc(struct rpma_cq *cq)
{
	struct ibv_wc wc = {0};
	int ret = rpma_cq_get_wc(cq, 1, &wc, NULL);

	/* an event may be that of a completion already taken: wait again */
	while (ret == RPMA_E_NO_COMPLETION) {
		ok(rpma_cq_wait(cq));
		ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
	}
	assert_int_equal(ret, 0);
	return wc;
}

struct rpma_cq *cq_of(const struct side *side)
{
	struct rpma_cq *cq = NULL;

	ok(rpma_conn_get_cq(side->conn, &cq));
	assert_non_null(cq);
	return cq;
}

struct rpma_cq *rcq_of(const struct side *side)
{
	struct rpma_cq *rcq = NULL;

	ok(rpma_conn_get_rcq(side->conn, &rcq));
	return rcq;
}

void expect_done(struct side *side, uint64_t context, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = next_wc(cq_of(side));

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, context);
	assert_int_equal(wc.opcode, opcode);
}

void set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	assert_true(flags >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
}

bool is_readable(int fd)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};

	return poll(&poller, 1, 0) == 1;
}

void wait_readable(int fd)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
}
