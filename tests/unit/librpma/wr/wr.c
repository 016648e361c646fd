/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of work requests: preparing posts nothing, chains post at once. */

#include "world.h"

#include <errno.h>
#include <string.h>

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

static int me;

static void prepare__EVERY_64_BIT_ID_AND_NO_CALL(void **state)
{
	const uint64_t id = 0xfedcba9876543210;
	struct rpma_recv_wr recv;
	struct rpma_send_wr wr;

	(void)state;
	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	ok(rpma_wr_read(world.conn, world.mr, 0, world.remote, 0, 8, ALWAYS, id,
			&wr));
	assert_int_equal(wr.wr.wr_id, id);
	assert_ptr_equal(wr.wr.sg_list, &wr.sge);
	ok(rpma_wr_write(world.conn, world.remote, 0, world.mr, 0, 8, ALWAYS,
			 id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	ok(rpma_wr_write_with_imm(world.conn, world.remote, 0, world.mr, 0, 8,
				  ALWAYS, 1, id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	ok(rpma_wr_atomic_write(world.conn, world.remote, 0, "1234567", ALWAYS,
				id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	assert_memory_equal(&wr.data, "1234567", 8);
	assert_int_equal(wr.sge.addr, (uintptr_t)&wr.data);
	ok(rpma_wr_flush(world.conn, world.remote, 0, 8,
			 RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	ok(rpma_wr_send(world.conn, world.mr, 0, 8, ALWAYS, id, &wr));
	assert_int_equal(wr.wr.wr_id, id);
	ok(rpma_wr_send_with_imm(world.conn, world.mr, 0, 8, ALWAYS, 1, id,
				 &wr));
	assert_int_equal(wr.wr.wr_id, id);
	assert_int_equal(wr.native, 0);
	ok(rpma_wr_recv(world.mr, 0, 8, id, &recv));
	assert_int_equal(recv.wr.wr_id, id);
	assert_null(recv.wr.next);
	expect_trace("");
	world_end();
}

static void prepare__arguments_INVAL(void **state)
{
	struct rpma_recv_wr recv;
	struct rpma_send_wr wr;

	(void)state;
	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	assert_int_equal(rpma_wr_read(world.conn, world.mr, 0, world.remote, 0,
				      8, ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_write(world.conn, world.remote, 0, world.mr, 0,
				       8, ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_write_with_imm(world.conn, world.remote, 0,
						world.mr, 0, 8, ALWAYS, 0, 0,
						NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_atomic_write(world.conn, world.remote, 0,
					      "1234567", ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_flush(world.conn, world.remote, 0, 8, 1,
				       ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_send_with_imm(world.conn, NULL, 0, 0, ALWAYS,
					       0, 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_wr_recv(NULL, 0, 0, 0, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_wr_recv(NULL, 0, 1, 0, &recv), RPMA_E_INVAL);
	assert_int_equal(rpma_wr_send(NULL, NULL, 0, 0, ALWAYS, 0, &wr),
			 RPMA_E_INVAL);
	world_end();
}

static void chain_of(struct rpma_send_wr *wr, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		ok(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, (uint64_t)i,
				&wr[i]));
		if (i)
			wr[i - 1].wr.next = &wr[i].wr;
	}
}

static void post_send__chain_ONE_DOORBELL(void **state)
{
	struct rpma_send_wr wr[4];
	struct rpma_send_wr *bad = (void *)7;

	(void)state;
	world_conn(NULL);
	chain_of(wr, 4);
	ok(rpma_conn_post_send(world.conn, NULL, wr, &bad));
	expect_trace("post_send(4)");
	assert_int_equal(mock_sent_count, 4);
	assert_int_equal(mock_sent[3].wr_id, 3);
	assert_ptr_equal(bad, (void *)7);
	/* the chain is as it was */
	assert_ptr_equal(wr[0].wr.next, &wr[1]);
	world_end();
}

static void post_send__refused_SAYS_WHERE(void **state)
{
	struct rpma_send_wr wr[2];
	struct rpma_send_wr *bad = NULL;

	(void)state;
	world_conn(NULL);
	chain_of(wr, 2);
	mock_fail("post_send", 1, ENOMEM);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_AGAIN);
	assert_ptr_equal(bad, &wr[0]);
	mock_fail("post_send", 1, EINVAL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_PROVIDER);
	world_end();
}

static void post_recv__chain(void **state)
{
	struct rpma_recv_wr wr[2];
	struct rpma_recv_wr *bad = NULL;

	(void)state;
	world_conn(NULL);
	ok(rpma_wr_recv(NULL, 0, 0, 1, &wr[0]));
	ok(rpma_wr_recv(NULL, 0, 0, 2, &wr[1]));
	wr[0].wr.next = &wr[1].wr;
	ok(rpma_conn_post_recv(world.conn, NULL, wr, &bad));
	assert_int_equal(mock_received_count, 2);
	mock_fail("post_recv", 1, ENOMEM);
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, wr, &bad),
			 RPMA_E_AGAIN);
	assert_ptr_equal(bad, &wr[0]);
	mock_fail("post_recv", 1, EINVAL);
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, wr, &bad),
			 RPMA_E_PROVIDER);
	world_end();
}

static void post__only_the_owner(void **state)
{
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad = NULL;
	struct rpma_recv_wr recv;
	struct rpma_recv_wr *bad_recv = NULL;

	(void)state;
	world_conn(NULL);
	chain_of(&wr, 1);
	ok(rpma_wr_recv(NULL, 0, 0, 1, &recv));
	assert_int_equal(rpma_conn_post_send(world.conn, &me, &wr, &bad),
			 RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_claim(world.conn, &me));
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, &bad),
			 RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_post_recv(world.conn, &wr, &recv, &bad_recv),
			 RPMA_E_SHARED_CHANNEL);
	ok(rpma_conn_post_send(world.conn, &me, &wr, &bad));
	ok(rpma_conn_post_recv(world.conn, &me, &recv, &bad_recv));
	ok(rpma_conn_release(world.conn, &me));
	world_end();
}

static void post__arguments_INVAL(void **state)
{
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad = NULL;
	struct rpma_recv_wr recv;
	struct rpma_recv_wr *bad_recv = NULL;

	(void)state;
	world_conn(NULL);
	chain_of(&wr, 1);
	ok(rpma_wr_recv(NULL, 0, 0, 1, &recv));
	assert_int_equal(rpma_conn_post_send(NULL, NULL, &wr, &bad),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, NULL, &bad),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_recv(NULL, NULL, &recv, &bad_recv),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, NULL, &bad_recv),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_post_recv(world.conn, NULL, &recv, NULL),
			 RPMA_E_INVAL);
	ok(rpma_conn_destroy_qp(world.conn));
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, &wr, &bad),
			 RPMA_E_INVAL);
	assert_int_equal(
		rpma_conn_post_recv(world.conn, NULL, &recv, &bad_recv),
		RPMA_E_INVAL);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		mock_test(prepare__EVERY_64_BIT_ID_AND_NO_CALL),
		mock_test(prepare__arguments_INVAL),
		mock_test(post_send__chain_ONE_DOORBELL),
		mock_test(post_send__refused_SAYS_WHERE),
		mock_test(post_recv__chain),
		mock_test(post__only_the_owner),
		mock_test(post__arguments_INVAL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
