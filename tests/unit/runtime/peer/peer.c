/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * What a connection is told of its peer: when a persistent flush may be posted.
 */

#include "rt_fake.h"

/* What a peer would have sent. */
static struct rpma_peer_cfg *a_pcfg(bool direct_write)
{
	struct rpma_peer_cfg *pcfg;

	ok(rpma_peer_cfg_new(&pcfg));
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write));
	return pcfg;
}

/* The object is the caller's: it is gone when the call has returned. */
static void apply(struct rpma_rt_conn *conn, bool direct_write)
{
	struct rpma_peer_cfg *pcfg = a_pcfg(direct_write);

	ok(rpma_rt_conn_apply_remote_peer_cfg(conn, pcfg));
	ok(rpma_peer_cfg_delete(&pcfg));
}

static int flush(struct rpma_rt_conn *conn, enum rpma_flush_type type)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_FLUSH,
				.flags = RPMA_F_COMPLETION_ALWAYS,
				.flush_type = type,
				/* compared with NULL only */
				.remote = (struct rpma_mr_remote *)&fake_peer,
				.context = 1};

	return fake_post_send(conn, &wr);
}

static void apply__invalid_INVAL(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_peer_cfg *pcfg = a_pcfg(true);

	assert_int_equal(rpma_rt_conn_apply_remote_peer_cfg(NULL, pcfg),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_conn_apply_remote_peer_cfg(conn, NULL),
			 RPMA_E_INVAL);
	ok(rpma_peer_cfg_delete(&pcfg));
	ok(rpma_rt_conn_close(conn));
	fake_bury(f, &conn);
}

static void flush__nothing_applied_NOSUPP(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);

	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT),
			 RPMA_E_NOSUPP);
	ok(flush(conn, RPMA_FLUSH_TYPE_VISIBILITY));
	fake_bury(f, &conn);
}

static void flush__applied_posts(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);

	apply(conn, true);
	ok(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT));
	fake_bury(f, &conn);
}

/* Told with the request, long before there is a connection of librpma. */
static void flush__applied_before_connect_posts(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);

	apply(conn, true);
	ok(rpma_rt_conn_connect(conn, NULL));
	fake_settle_down(f);
	fake_conn_event(conn, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_settle_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	ok(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT));
	fake_bury(f, &conn);
}

static void apply__again_replaces(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);

	apply(conn, false);
	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT),
			 RPMA_E_NOSUPP);
	apply(conn, true);
	ok(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT));
	apply(conn, false);
	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT),
			 RPMA_E_NOSUPP);
	fake_bury(f, &conn);
}

static void apply__no_memory_NOMEM(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_peer_cfg *pcfg = a_pcfg(true);

	fake_fail("malloc", 1, 1);
	assert_int_equal(rpma_rt_conn_apply_remote_peer_cfg(conn, pcfg),
			 RPMA_E_NOMEM);
	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT),
			 RPMA_E_NOSUPP);
	ok(rpma_rt_conn_apply_remote_peer_cfg(conn, pcfg));
	ok(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT));
	ok(rpma_peer_cfg_delete(&pcfg));
	fake_bury(f, &conn);
}

/* librpma refuses: so does the post, and nothing stays in the ledger. */
static void flush__cannot_be_applied_fails(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);

	apply(conn, true);
	fake_fail("apply_remote_peer_cfg", 1, RPMA_E_INVAL);
	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT), RPMA_E_INVAL);
	assert_int_equal(rt_ledger_room(&conn->gate[0].ledger), FAKE_SQ);
	fake_bury(f, &conn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(apply__invalid_INVAL),
		fake_test(flush__nothing_applied_NOSUPP),
		fake_test(flush__applied_posts),
		fake_test(flush__applied_before_connect_posts),
		fake_test(apply__again_replaces),
		fake_test(apply__no_memory_NOMEM),
		fake_test(flush__cannot_be_applied_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
