/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of a connection's end, its getters, claim, and steps. */

#include "world.h"

#include <errno.h>

#include "conn.h"

static int me, other;

MOCK_TEST(delete__FIRST_ERROR_ALL_GONE)
{
	const char *calls[] = {"dereg_mr", "destroy_cq", "destroy_ch",
			       "destroy_id"};
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		world_conn(NULL);
		mock_fail(calls[i], 1, EIO);
		assert_int_equal(rpma_conn_delete(&world.conn),
				 RPMA_E_PROVIDER);
		assert_null(world.conn);
		expect_trace("destroy_qp dereg_mr destroy_cq(10) destroy_ch "
			     "destroy_id destroy_evch");
		world_end();
	}
}

MOCK_TEST(delete__shared_channel_GOES_AFTER_THE_ID)
{
	struct rpma_conn_cfg *cfg = NULL;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	world_conn(cfg);
	ok(rpma_conn_delete(&world.conn));
	expect_trace("destroy_qp dereg_mr destroy_cq(7) destroy_cq(10) "
		     "destroy_id destroy_ch destroy_evch");
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(delete__shared_channel_fails_PROVIDER_ALL_GONE)
{
	struct rpma_conn_cfg *cfg = NULL;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	world_conn(cfg);
	mock_fail("destroy_ch", 1, EIO);
	assert_int_equal(rpma_conn_delete(&world.conn), RPMA_E_PROVIDER);
	assert_null(world.conn);
	expect_trace("destroy_qp dereg_mr destroy_cq(10) destroy_id "
		     "destroy_ch destroy_evch");
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(delete__arguments)
{
	struct rpma_conn *conn = NULL;

	assert_int_equal(rpma_conn_delete(NULL), RPMA_E_INVAL);
	ok(rpma_conn_delete(&conn));
	expect_trace("");
}

MOCK_TEST(claim__KEEPS_IT)
{
	world_conn(NULL);
	ok(rpma_conn_claim(world.conn, &me));
	ok(rpma_conn_claim(world.conn, &me));
	assert_int_equal(rpma_conn_claim(world.conn, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma_conn_delete(&world.conn), RPMA_E_CLAIMED);
	assert_non_null(world.conn);
	assert_int_equal(rpma_conn_release(world.conn, &other), RPMA_E_CLAIMED);
	expect_trace("");
	ok(rpma_conn_release(world.conn, &me));
	assert_int_equal(rpma_conn_claim(NULL, &me), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_claim(world.conn, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_release(NULL, &me), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_release(world.conn, NULL), RPMA_E_INVAL);
	world_end();
}

/* Its own CQ goes with it, so not while somebody polls that. */
MOCK_TEST(delete__cq_claimed_CLAIMED)
{
	struct rpma_cq *cq;

	world_conn(NULL);
	ok(rpma_conn_get_cq(world.conn, &cq));
	ok(rpma_cq_claim(cq, &me));
	assert_int_equal(rpma_conn_delete(&world.conn), RPMA_E_CLAIMED);
	assert_non_null(world.conn);
	ok(rpma_cq_release(cq, &me));
	world_end();
}

MOCK_TEST(steps__qp_to_err_then_destroyed)
{
	uint32_t qp_num = 0;
	struct ibv_qp *qp = NULL;

	world_conn(NULL);
	mock_fail("modify_qp", 1, EINVAL);
	assert_int_equal(rpma_conn_qp_to_err(world.conn, NULL),
			 RPMA_E_PROVIDER);
	ok(rpma_conn_qp_to_err(world.conn, NULL));
	ok(rpma_conn_qp_to_err(world.conn, NULL));
	ok(rpma_conn_destroy_qp(world.conn, NULL));
	ok(rpma_conn_destroy_qp(world.conn, NULL));
	ok(rpma_conn_qp_to_err(world.conn, NULL));
	assert_int_equal(rpma_conn_get_qp(world.conn, &qp), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_qp_num(world.conn, &qp_num),
			 RPMA_E_INVAL);
	expect_trace("modify_qp(6, 0x1) modify_qp(6, 0x1) modify_qp(6, 0x1) "
		     "destroy_qp");
	mocks_reset();
	ok(rpma_conn_delete(&world.conn));
	expect_trace("dereg_mr destroy_cq(10) destroy_ch destroy_id "
		     "destroy_evch");
	assert_int_equal(rpma_conn_qp_to_err(NULL, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_destroy_qp(NULL, NULL), RPMA_E_INVAL);
	world_end();
}

/* Only the owner takes it down, in steps too. */
MOCK_TEST(steps__claimed_OWNER_ONLY)
{
	world_conn(NULL);
	assert_int_equal(rpma_conn_qp_to_err(world.conn, &me), RPMA_E_INVAL);
	ok(rpma_conn_claim(world.conn, &me));
	assert_int_equal(rpma_conn_qp_to_err(world.conn, NULL), RPMA_E_CLAIMED);
	assert_int_equal(rpma_conn_destroy_qp(world.conn, &other),
			 RPMA_E_CLAIMED);
	expect_trace("");
	ok(rpma_conn_qp_to_err(world.conn, &me));
	ok(rpma_conn_destroy_qp(world.conn, &me));
	expect_trace("modify_qp(6, 0x1) destroy_qp");
	ok(rpma_conn_release(world.conn, &me));
	world_end();
}

MOCK_TEST(disconnect__EACH_ANSWER)
{
	world_conn(NULL);
	ok(rpma_conn_disconnect(world.conn));
	expect_trace("disconnect");
	mock_fail("disconnect", 1, EINVAL);
	assert_int_equal(rpma_conn_disconnect(world.conn), RPMA_E_PROVIDER);
	assert_int_equal(rpma_conn_disconnect(NULL), RPMA_E_INVAL);
	world_end();
}

MOCK_TEST(getters__AGREE)
{
	struct rpma_conn_private_data data = {(void *)7, 7};
	struct rdma_cm_id *id = NULL;
	struct rpma_cq *rcq = (void *)7;
	struct rpma_cq *cq = NULL;
	struct ibv_qp *qp = NULL;
	uint32_t qp_num = 0;

	world_conn(NULL);
	ok(rpma_conn_get_private_data(world.conn, &data));
	assert_null(data.ptr);
	assert_int_equal(data.len, 0);
	ok(rpma_conn_get_qp_num(world.conn, &qp_num));
	assert_int_equal(qp_num, 17);
	ok(rpma_conn_get_cq(world.conn, &cq));
	assert_non_null(cq);
	ok(rpma_conn_get_rcq(world.conn, &rcq));
	assert_null(rcq);
	ok(rpma_conn_get_cm_id(world.conn, &id));
	ok(rpma_conn_get_qp(world.conn, &qp));
	assert_ptr_equal(id->qp, qp);
	/* of a connection: not from rpma_cq_new() */
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_INVAL);
	world_end();
}

MOCK_TEST(getters__NULL_INVAL)
{
	struct rpma_conn_private_data data;
	struct rpma_peer_cfg *pcfg = NULL;
	struct rdma_cm_id *id;
	struct rpma_cq *cq;
	struct ibv_qp *qp;
	uint32_t qp_num;

	world_conn(NULL);
	ok(rpma_peer_cfg_new(&pcfg));
	assert_int_equal(rpma_conn_get_private_data(NULL, &data), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_private_data(world.conn, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_qp_num(NULL, &qp_num), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_qp_num(world.conn, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_cq(NULL, &cq), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_cq(world.conn, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_rcq(NULL, &cq), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_rcq(world.conn, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_cm_id(NULL, &id), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_cm_id(world.conn, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_qp(NULL, &qp), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_qp(world.conn, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_apply_remote_peer_cfg(NULL, pcfg),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_conn_apply_remote_peer_cfg(world.conn, NULL),
			 RPMA_E_INVAL);
	expect_trace("");
	ok(rpma_peer_cfg_delete(&pcfg));
	world_end();
}

MOCK_TEST(apply_remote_peer_cfg__AS_OFTEN_AS_WANTED)
{
	struct rpma_peer_cfg *pcfg = NULL;

	world_conn(NULL);
	ok(rpma_peer_cfg_new(&pcfg));
	assert_false(rpma__conn_is_direct_write(world.conn));
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	ok(rpma_conn_apply_remote_peer_cfg(world.conn, pcfg));
	assert_true(rpma__conn_is_direct_write(world.conn));
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, false));
	ok(rpma_conn_apply_remote_peer_cfg(world.conn, pcfg));
	assert_false(rpma__conn_is_direct_write(world.conn));
	ok(rpma_peer_cfg_delete(&pcfg));
	world_end();
}

TEST_MAIN()
