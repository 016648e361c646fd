/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* A completion as a work completion, its getters, its text. */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "rt_fake.h"

TEST(to_wc__success_all_fields)
{
	const struct rpma_rt_completion cmpl = {
		.context = 42,
		.byte_len = 7,
		.imm = 0x01020304,
		.qp_num = 99,
		.opcode = IBV_WC_RECV,
		.flags = RPMA_RT_C_WITH_IMM | RPMA_RT_C_SYNTHESIZED,
	};
	struct ibv_wc wc;

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

TEST(to_wc__invalidated)
{
	const struct rpma_rt_completion cmpl = {.imm = 5,
						.flags = RPMA_RT_C_WITH_INV};
	struct ibv_wc wc;

	rpma_rt_completion_to_wc(&cmpl, &wc);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, 5);
}

TEST(to_wc__error_vendor_err)
{
	const struct rpma_rt_completion cmpl = {
		.context = 1,
		.byte_len = 8,
		.imm = 77,
		.qp_num = 3,
		.status = IBV_WC_REM_ACCESS_ERR,
		.opcode = IBV_WC_RDMA_WRITE,
		.flags = RPMA_RT_C_WITH_IMM,
	};
	struct ibv_wc wc;

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

TEST(err_2str__both_libraries)
{
	assert_string_equal(rpma_rt_err_2str(RPMA_RT_E_CLOSED),
			    "Closed or closing");
	assert_string_equal(rpma_rt_err_2str(RPMA_RT_E_FORKED),
			    "Made before fork()");
	assert_string_equal(rpma_rt_err_2str(RPMA_RT_E_FAILED),
			    "Too many of the operations failed");
	assert_string_equal(rpma_rt_err_2str(RPMA_E_NOMEM),
			    rpma_err_2str(RPMA_E_NOMEM));
	assert_non_null(rpma_rt_err_2str(12345));
}

/* ------------------------------------------------------------- the inlines */

static struct rpma_rt_completion item(uint8_t kind, uint8_t opcode)
{
	return (struct rpma_rt_completion){
		.kind = kind, .opcode = opcode, .context = 0x1234};
}

/* Whose handle the context is, if it is one. */
TEST(conn_srq__by_kind)
{
	static const struct {
		uint8_t kind;
		uint8_t opcode;
		bool is_conn;
		bool is_srq;
	} cases[] = {
		{RPMA_RT_EVENT, RPMA_RT_EVENT_REQUEST, true, false},
		{RPMA_RT_EVENT, RPMA_RT_EVENT_ROUTE_CLOSED, true, false},
		{RPMA_RT_EVENT, RPMA_RT_EVENT_SRQ_LIMIT, false, true},
		{RPMA_RT_EVENT, RPMA_RT_EVENT_SRQ_CLOSED, false, true},
		{RPMA_RT_EVENT, RPMA_RT_EVENT_LISTENER_CLOSED, false, false},
		{RPMA_RT_WRITABLE, RPMA_RT_SEND_SIDE, true, false},
		{RPMA_RT_WRITABLE, RPMA_RT_RECV_SIDE, true, false},
		{RPMA_RT_WRITABLE, RPMA_RT_WRITABLE_SRQ, false, true},
		{RPMA_RT_COMPLETION, IBV_WC_SEND, false, false},
		{RPMA_RT_MESSAGE, 0, false, false},
	};
	struct rpma_rt_completion c;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		c = item(cases[i].kind, cases[i].opcode);
		assert_int_equal(rpma_rt_completion_conn(&c) ==
					 (struct rpma_rt_conn *)0x1234,
				 cases[i].is_conn);
		assert_int_equal(rpma_rt_completion_srq(&c) ==
					 (struct rpma_rt_srq *)0x1234,
				 cases[i].is_srq);
		assert_int_equal(rpma_rt_completion_listener(&c) ==
					 (struct rpma_rt_listener *)0x1234,
				 cases[i].kind == RPMA_RT_EVENT &&
					 cases[i].opcode ==
						 RPMA_RT_EVENT_LISTENER_CLOSED);
		assert_int_equal(rpma_rt_completion_conn(&c) == NULL,
				 !cases[i].is_conn);
		assert_int_equal(
			rpma_rt_completion_event(&c),
			cases[i].kind == RPMA_RT_EVENT ? cases[i].opcode : 0);
		assert_ptr_equal(rpma_rt_completion_ptr(&c), (void *)0x1234);
	}
}

TEST(is_ok_received_imm__success_only)
{
	struct rpma_rt_completion c = item(RPMA_RT_COMPLETION, IBV_WC_RECV);
	uint32_t imm = 9;

	assert_true(rpma_rt_completion_is_ok(&c));
	assert_true(rpma_rt_completion_is_received(&c));
	assert_false(rpma_rt_completion_imm(&c, &imm));
	assert_int_equal(imm, 9);
	c.flags = RPMA_RT_C_WITH_IMM;
	c.imm = htonl(0x01020304);
	assert_true(rpma_rt_completion_imm(&c, &imm));
	assert_int_equal(imm, 0x01020304);
	c.status = IBV_WC_WR_FLUSH_ERR;
	assert_false(rpma_rt_completion_is_ok(&c));
	assert_false(rpma_rt_completion_is_received(&c));
	assert_false(rpma_rt_completion_imm(&c, &imm));
	c = item(RPMA_RT_COMPLETION, IBV_WC_RDMA_WRITE);
	assert_false(rpma_rt_completion_is_received(&c));
	c = item(RPMA_RT_MESSAGE, IBV_WC_RECV);
	assert_false(rpma_rt_completion_is_ok(&c));
}

TEST(detail__of_CLOSED_only)
{
	struct rpma_rt_completion c = item(RPMA_RT_EVENT, RPMA_RT_EVENT_CLOSED);
	int value = 7;

	assert_int_equal(rpma_rt_completion_detail(&c, &value),
			 RPMA_RT_DETAIL_NONE);
	assert_int_equal(value, 0);
	c.imm = 28;
	assert_int_equal(rpma_rt_completion_detail(&c, &value),
			 RPMA_RT_DETAIL_REJECT);
	assert_int_equal(value, 28);
	c.imm = (uint32_t)-ETIMEDOUT;
	assert_int_equal(rpma_rt_completion_detail(&c, &value),
			 RPMA_RT_DETAIL_ERRNO);
	assert_int_equal(value, ETIMEDOUT);
	c.opcode = RPMA_RT_EVENT_READY;
	assert_int_equal(rpma_rt_completion_detail(&c, &value),
			 RPMA_RT_DETAIL_NONE);
	assert_int_equal(value, 0);
}

/* ------------------------------------------------------------------- text */

TEST(names__each_its_own)
{
	struct rpma_rt_completion event = {.kind = RPMA_RT_EVENT};
	char text[160];
	int i;

	for (i = 0; i < 12; i++) {
		event.opcode = (uint8_t)i;
		rpma_rt_completion_2str(&event, text, sizeof(text));
		assert_int_equal(strstr(text, "unknown") == NULL,
				 i >= RPMA_RT_EVENT_REQUEST &&
					 i <= RPMA_RT_EVENT_POOL_CLOSED);
	}
	for (i = 0; i < 8; i++)
		assert_string_not_equal(
			rpma_rt_reason_2str((enum rpma_rt_reason)i), "unknown");
	for (i = IBV_WC_SUCCESS; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++)
		assert_string_not_equal(
			rpma_rt_status_2str((enum ibv_wc_status)i), "unknown");
	for (i = 0; i < 5; i++)
		assert_string_not_equal(
			rpma_rt_again_2str((enum rpma_rt_again)i), "unknown");
	assert_string_equal(rpma_rt_reason_2str((enum rpma_rt_reason)8),
			    "unknown");
	assert_string_equal(rpma_rt_status_2str((enum ibv_wc_status)99),
			    "unknown");
	assert_string_equal(rpma_rt_again_2str((enum rpma_rt_again)5),
			    "unknown");
}

/* 160 bytes hold any item, and what does not fit is cut. */
TEST(completion_2str__any_item)
{
	struct rpma_rt_completion c;
	char text[256];
	int kind;
	int opcode;

	for (kind = 0; kind < 6; kind++) {
		for (opcode = 0; opcode < 256; opcode++) {
			memset(&c, 0xff, sizeof(c));
			c.kind = (uint8_t)kind;
			c.opcode = (uint8_t)opcode;
			c.status = (uint8_t)(opcode % 32);
			assert_ptr_equal(
				rpma_rt_completion_2str(&c, text, sizeof(text)),
				text);
			assert_in_range(strlen(text), 1, 159);
			assert_null(strchr(text, '\n'));
		}
	}
	c = item(RPMA_RT_EVENT, RPMA_RT_EVENT_CLOSED);
	c.status = RPMA_RT_REASON_REJECTED;
	rpma_rt_completion_2str(&c, text, sizeof(text));
	assert_non_null(strstr(text, "closed"));
	assert_non_null(strstr(text, "rejected"));
	rpma_rt_completion_2str(&c, text, 6);
	assert_int_equal(strlen(text), 5);
}

TEST_MAIN()
