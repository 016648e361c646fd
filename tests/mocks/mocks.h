/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Link-time mocks of libibverbs, librdmacm and the allocator. Every call is
 * written into a trace, fails on demand, and counts the objects that exist; an
 * object that others refer to cannot be destroyed, as on a device.
 *
 * One thread.
 */

#ifndef MOCKS_H
#define MOCKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <librpma.h>

/* a call that must answer 0 */
#define ok(call) assert_int_equal(call, 0)

/* The device: everything is made on it. */
extern struct verbs_context mock_device;
#define MOCK_CTX (&mock_device.context)
/* Another one, for what must not meet. */
extern struct verbs_context mock_other_device;
#define MOCK_OTHER_CTX (&mock_other_device.context)

/* Forgets failures and the trace; what exists, exists. */
void mocks_reset(void);
/* The nth call (from 1) of this name from now on fails with err, once. */
void mock_fail(const char *call, int nth, int err);
/* From now on nothing is written down, and nothing fails. */
void mocks_quiet(void);
/* Objects that exist: of verbs, of rdma_cm, and memory of the library. */
int mocks_live(void);
/* The calls since the last reset, with one space between them. */
const char *mocks_trace(void);
#define expect_trace(expected) assert_string_equal(mocks_trace(), expected)

/* A test's own setup and teardown: nothing exists after it. */
int mocks_setup(void **state);
int mocks_teardown(void **state);
#define mock_test(test) \
	cmocka_unit_test_setup_teardown(test, mocks_setup, mocks_teardown)

/*
 * What one call of the code under test does if one call of its own fails.
 * call NULL: nothing fails. trace NULL: whatever.
 */
struct failure {
	const char *call;
	int nth;
	int err;
	int ret;
	const char *trace;
};
/* Runs op for each, and sees that what fails leaves nothing behind and is said;
 * takes the log. */
void each_failure(int (*op)(void), const struct failure *failures, size_t count,
		  bool has_errno);
#define EACH_FAILURE(op, failures)                                           \
	each_failure(op, failures, sizeof(failures) / sizeof((failures)[0]), \
		     false)
/* The same of a call that leaves the reason of RPMA_E_PROVIDER in errno. */
#define EACH_FAILURE_IN_ERRNO(op, failures)                                  \
	each_failure(op, failures, sizeof(failures) / sizeof((failures)[0]), \
		     true)

/* ---- what mocks deliver ---- */

/* Capabilities that the device answers with. */
extern struct ibv_device_attr_ex mock_attr;

/* The next CM event anybody gets, and the listener it will name, if any. */
extern struct rdma_cm_id *mock_listener;
void mock_cm_event(enum rdma_cm_event_type type, struct rdma_cm_id *id,
		   const char *private_data);
/* The status it has; 0 unless this is set, once. */
extern int mock_cm_status;
/* The same with any pointer and any length, fitting or not. */
void mock_cm_event_data(enum rdma_cm_event_type type, struct rdma_cm_id *id,
			const void *private_data, uint8_t len);
/* The last id that rdma_create_id() made. */
extern struct rdma_cm_id *mock_id;
/* An id as a CONNECT_REQUEST brings it. */
struct rdma_cm_id *mock_new_id(void);

/* The next completion event anybody gets; NULL: of a CQ of nobody. */
void mock_cq_event(struct rpma_cq *cq);
extern struct ibv_cq mock_strange_cq;

/* What ibv_poll_cq() answers: a number of completions, or an error. */
extern int mock_poll_answer;
/* The completions: this one, with wr_id counted up from one more. */
extern struct ibv_wc mock_wc;

/* From now on until the test ends the library's errors are kept. */
void mocks_listen(void);
/* How many there were since then or the last reset; the text of the last. */
int mocks_said_count(void);
const char *mocks_said(void);
/* The last one has this part; and it is the only one. */
void expect_said(const char *part);

/* What was posted last: copies of the work requests of the chain. */
#define MOCK_POSTED_MAX 8
extern struct ibv_send_wr mock_sent[MOCK_POSTED_MAX];
extern struct ibv_sge mock_sent_sge[MOCK_POSTED_MAX];
extern int mock_sent_count;
extern struct ibv_recv_wr mock_received[MOCK_POSTED_MAX];
extern struct ibv_sge mock_received_sge[MOCK_POSTED_MAX];
extern int mock_received_count;

/* Attributes that objects were made or changed with last. */
extern struct ibv_qp_init_attr_ex mock_qp_attr;
extern struct ibv_qp_attr mock_qp_modified;
extern struct ibv_srq_init_attr mock_srq_attr;
extern struct rdma_conn_param mock_conn_param;
extern int mock_access;
extern struct ibv_mr *mock_mr;

/* The extended face of every QP; none unless this is set. */
extern struct ibv_qp_ex *mock_qpx;

/* ---- for the mocks themselves ---- */

/* Writes the call down; returns the errno it is to fail with, or 0. */
int mock_enter(const char *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void *mock_alloc(size_t size);
void mock_free(void *memory);

#endif /* MOCKS_H */
