/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* A completion as a work completion, and the texts of errors. */

#include <string.h>

#include "rt_fake.h"

static void to_wc__success_all_fields(void **state)
{
	const struct rpma_rt_completion cmpl = {
		.context = 42,
		.byte_len = 7,
		.imm = 0x01020304,
		.qp_num = 99,
		.opcode = IBV_WC_RECV,
		.flags = RPMA_RT_F_WITH_IMM | RPMA_RT_F_SYNTHESIZED,
	};
	struct ibv_wc wc;

	(void)state;
	memset(&wc, 0xff, sizeof(wc));
	rpma_rt_completion_to_wc(&cmpl, &wc);
	assert_int_equal(wc.wr_id, 42);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 7);
	assert_int_equal(wc.imm_data, 0x01020304);
	assert_int_equal(wc.qp_num, 99);
	assert_int_equal(wc.vendor_err, 0);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.src_qp, 0);
}

static void to_wc__invalidated(void **state)
{
	const struct rpma_rt_completion cmpl = {.imm = 5,
						.flags = RPMA_RT_F_WITH_INV};
	struct ibv_wc wc;

	(void)state;
	rpma_rt_completion_to_wc(&cmpl, &wc);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, 5);
}

static void to_wc__error_vendor_err(void **state)
{
	const struct rpma_rt_completion cmpl = {
		.context = 1,
		.byte_len = 8,
		.imm = 77,
		.qp_num = 3,
		.status = IBV_WC_REM_ACCESS_ERR,
		.opcode = IBV_WC_RDMA_WRITE,
		.flags = RPMA_RT_F_WITH_IMM,
	};
	struct ibv_wc wc;

	(void)state;
	rpma_rt_completion_to_wc(&cmpl, &wc);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.vendor_err, 77);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.qp_num, 3);
	/* not valid with an error */
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(wc.imm_data, 0);
	assert_int_equal(wc.wc_flags, 0);
}

static void err_2str__both_libraries(void **state)
{
	(void)state;
	assert_string_equal(rpma_rt_err_2str(RPMA_RT_E_CLOSED),
			    "Closed or closing");
	assert_string_equal(rpma_rt_err_2str(RPMA_RT_E_FORKED),
			    "Made before fork()");
	assert_string_equal(rpma_rt_err_2str(RPMA_E_NOMEM),
			    rpma_err_2str(RPMA_E_NOMEM));
	assert_non_null(rpma_rt_err_2str(12345));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_wc__success_all_fields),
		cmocka_unit_test(to_wc__invalidated),
		cmocka_unit_test(to_wc__error_vendor_err),
		cmocka_unit_test(err_2str__both_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
