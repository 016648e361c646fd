/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The calls from before 1.0 in a source of today, on a device: the completions
 * that they see, and their results. The table of shared_channel.c has the
 * threads that may wait and poll where.
 */

#include <librpma_legacy.h>

#include <string.h>

#include "pair.h"

#define SIGNALED RPMA_F_COMPLETION_ALWAYS
#define CTX(n)	 ((void *)(0xfedcba9800000000 + (n)))

/* The next one of the connection's CQ; an event may be an old one's. */
static struct rpma_completion next(const struct side *side)
{
	struct rpma_completion cmpl;
	int ret = rpma_conn_completion_get(side->conn, &cmpl);

	while (ret == RPMA_E_NO_COMPLETION) {
		ok(rpma_conn_completion_wait(side->conn));
		ret = rpma_conn_completion_get(side->conn, &cmpl);
	}
	ok(ret);
	return cmpl;
}

static struct rpma_completion expect(const struct side *side, int n,
				     enum rpma_op op)
{
	struct rpma_completion cmpl = next(side);

	assert_int_equal(cmpl.op_status, IBV_WC_SUCCESS);
	assert_ptr_equal(cmpl.op_context, CTX(n));
	assert_int_equal(cmpl.op, op);
	return cmpl;
}

static void expect_nothing(const struct side *side)
{
	struct rpma_completion cmpl;
	int fd = -1;

	ok(rpma_conn_get_completion_fd(side->conn, &fd));
	set_nonblocking(fd);
	assert_int_equal(rpma_conn_completion_wait(side->conn),
			 RPMA_E_NO_COMPLETION);
	assert_int_equal(rpma_conn_completion_get(side->conn, &cmpl),
			 RPMA_E_NO_COMPLETION);
	assert_int_equal(rpma_conn_next_completion(side->conn, &cmpl),
			 RPMA_E_NO_COMPLETION);
}

/* Waits until there is a receive in this CQ, and takes it. */
static struct rpma_completion next_receive(struct rpma_cq *rcq)
{
	struct rpma_completion cmpl;
	int ret = rpma_cq_get_completion(rcq, &cmpl);

	while (ret == RPMA_E_NO_COMPLETION) {
		ok(rpma_cq_wait(rcq));
		ret = rpma_cq_get_completion(rcq, &cmpl);
	}
	ok(ret);
	return cmpl;
}

static void one_cq__EVERYTHING_COMPLETES_THERE(void **state)
{
	struct rpma_completion cmpl;
	struct pair pair;

	(void)state;
	pair_open(&pair);
	ok(rpma_recv(pair.server.conn, pair.server.mr, 0, 64, CTX(1)));
	ok(rpma_recv(pair.server.conn, pair.server.mr, 0, 64, CTX(2)));
	ok(rpma_send_with_imm(pair.client.conn, pair.client.mr, 0, 5, SIGNALED,
			      0x12345678, CTX(3)));
	expect(&pair.client, 3, RPMA_OP_SEND);
	cmpl = expect(&pair.server, 1, RPMA_OP_RECV);
	assert_int_equal(cmpl.byte_len, 5);
	assert_int_equal(cmpl.flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	assert_int_equal(cmpl.imm, 0x12345678);

	ok(rpma_write_with_imm(pair.client.conn, pair.client.remote, 512,
			       pair.client.mr, 0, 7, SIGNALED, 9, CTX(4)));
	expect(&pair.client, 4, RPMA_OP_WRITE);
	cmpl = expect(&pair.server, 2, RPMA_OP_RECV_RDMA_WITH_IMM);
	assert_int_equal(cmpl.byte_len, 7);
	assert_int_equal(cmpl.imm, 9);

	ok(rpma_read(pair.client.conn, pair.client.mr, 0, pair.client.remote, 0,
		     8, SIGNALED, CTX(5)));
	expect(&pair.client, 5, RPMA_OP_READ);
	pair_close(&pair);
}

static void rcq__separate_RECEIVES_ARE_NOT_SEEN(void **state)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct rpma_completion cmpl;
	struct pair pair;

	(void)state;
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 10));
	how.server_cfg = cfg;
	pair_open_how(&pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_recv(pair.server.conn, pair.server.mr, 0, 64, CTX(11)));
	ok(rpma_send(pair.client.conn, pair.client.mr, 0, 8, SIGNALED,
		     CTX(12)));
	expect(&pair.client, 12, RPMA_OP_SEND);
	cmpl = next_receive(rcq_of(&pair.server));
	assert_ptr_equal(cmpl.op_context, CTX(11));
	assert_int_equal(cmpl.op, RPMA_OP_RECV);
	expect_nothing(&pair.server);
	pair_close(&pair);
}

static void srq__own_rcq_RECEIVES_ARE_NOT_SEEN(void **state)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct rpma_srq *srq = NULL;
	struct rpma_cq *rcq = NULL;
	struct pair pair;

	(void)state;
	ok(rpma_srq_new(the_peer, NULL, &srq));
	ok(rpma_srq_get_rcq(srq, &rcq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_srq(cfg, srq));
	how.server_cfg = cfg;
	pair_open_how(&pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_srq_recv(srq, pair.server.mr, 0, 64, CTX(21)));
	ok(rpma_send(pair.client.conn, pair.client.mr, 0, 8, SIGNALED,
		     CTX(22)));
	expect(&pair.client, 22, RPMA_OP_SEND);
	assert_ptr_equal(next_receive(rcq).op_context, CTX(21));
	expect_nothing(&pair.server);
	pair_close(&pair);
	ok(rpma_srq_delete(&srq));
}

/* Its source is read when it is executed, with what came before it done. */
static void write_atomic__after_a_read_WRITES(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair);
	memcpy(pair.server.mem, "8 bytes", 8);
	ok(rpma_read(pair.client.conn, pair.client.mr, 64, pair.client.remote,
		     0, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ok(rpma_write_atomic(pair.client.conn, pair.client.remote, 1024,
			     pair.client.mr, 64, SIGNALED, CTX(31)));
	expect(&pair.client, 31, RPMA_OP_WRITE);
	assert_string_equal(pair.server.mem + 1024, "8 bytes");
	pair_close(&pair);
}

static void failed__CONTEXT_AND_STATUS_ONLY(void **state)
{
	struct rpma_completion cmpl;
	struct rpma_completion before;
	struct pair pair;

	(void)state;
	pair_open(&pair);
	ok(rpma_recv(pair.server.conn, pair.server.mr, 0, 64, CTX(41)));
	ok(rpma_conn_disconnect(pair.client.conn));
	expect_event(pair.server.conn, RPMA_CONN_CLOSED);
	ok(rpma_conn_disconnect(pair.server.conn));
	ok(rpma_conn_prepare_completions(pair.server.conn));
	memset(&before, 0xa5, sizeof(before));
	cmpl = before;
	ok(rpma_conn_next_completion(pair.server.conn, &cmpl));
	assert_ptr_equal(cmpl.op_context, CTX(41));
	assert_int_equal(cmpl.op_status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(cmpl.op, before.op);
	assert_int_equal(cmpl.byte_len, before.byte_len);
	assert_int_equal(cmpl.flags, before.flags);
	assert_int_equal(cmpl.imm, before.imm);
	pair_close(&pair);
}

static const struct CMUnitTest legacy[] = {
	cmocka_unit_test(one_cq__EVERYTHING_COMPLETES_THERE),
	cmocka_unit_test(rcq__separate_RECEIVES_ARE_NOT_SEEN),
	cmocka_unit_test(srq__own_rcq_RECEIVES_ARE_NOT_SEEN),
	cmocka_unit_test(write_atomic__after_a_read_WRITES),
	cmocka_unit_test(failed__CONTEXT_AND_STATUS_ONLY),
};

int main(void)
{
	return PAIR_RUN(legacy);
}
