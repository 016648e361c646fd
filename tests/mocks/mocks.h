/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Link-time mocks of libibverbs, librdmacm and the allocator. Every call is
 * recorded in a trace, fails on demand, and counts existing objects; an object
 * still in use by others cannot be destroyed, as on a device.
 *
 * One thread.
 */

#ifndef MOCKS_H
#define MOCKS_H

#include <stdbool.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <librpma.h>

#include "../cases.h"

/* a call that must return 0 */
#define ok(call) assert_int_equal(call, 0)

/* The device of all objects. */
extern struct verbs_context mock_device;
#define MOCK_CTX (&mock_device.context)
/* A second device, for combinations that must fail. */
extern struct verbs_context mock_other_device;
#define MOCK_OTHER_CTX (&mock_other_device.context)

/* Forgets failures and the trace; objects stay. */
void mocks_reset(void);
/*
 * Called inside each recorded call of verbs and rdma_cm, with its name; NULL
 * unless set. The one exception to the single thread: a second thread may run
 * while the hook waits for the thread.
 */
extern void (*mock_hook)(const char *call);
/*
 * Runs a call in a thread that is cancelled inside each call of verbs and
 * rdma_cm; asserts that the call returns all the same, and returns its result.
 */
int mock_cancelled(int (*call)(void));
/* The nth call (from 1) of this name from now on fails with err, once. */
void mock_fail(const char *call, int nth, int err);
/* From now on nothing is written down, and nothing fails. */
void mocks_quiet(void);
/*
 * Returns the number of existing objects: of verbs, of rdma_cm, and memory of
 * the library.
 */
int mocks_live(void);
/* Returns the calls since the last reset, separated by a space. */
const char *mocks_trace(void);
#define expect_trace(expected) assert_string_equal(mocks_trace(), expected)

/* Set up and tear down a test: afterwards no object exists. */
int mocks_setup(void **state);
int mocks_teardown(void **state);
#define MOCK_TEST(name) TEST_WITH(name, mocks_setup, mocks_teardown)

/*
 * The outcome of a call under test when a called function fails. call NULL:
 * nothing fails. trace NULL: any trace.
 */
struct failure {
	const char *call;
	int nth;
	int err;
	int ret;
	const char *trace;
};
/* Runs op for each failure, and asserts that a failure leaves nothing behind
 * and is logged; takes the log. */
void each_failure(int (*op)(void), const struct failure *failures, size_t count,
		  bool has_errno);
#define EACH_FAILURE(op, failures)                                           \
	each_failure(op, failures, sizeof(failures) / sizeof((failures)[0]), \
		     false)
/*
 * Runs op like EACH_FAILURE, for a call that leaves the reason of
 * RPMA_E_PROVIDER in errno.
 */
#define EACH_FAILURE_IN_ERRNO(op, failures)                                  \
	each_failure(op, failures, sizeof(failures) / sizeof((failures)[0]), \
		     true)

/* ---- results of mocks ---- */

/* The capabilities of the device. */
extern struct ibv_device_attr_ex mock_attr;

/*
 * mock_cm_event() makes the next CM event, and mock_listener is the listener
 * named by the event, if any.
 */
extern struct rdma_cm_id *mock_listener;
/* in the parameters of each event */
#define MOCK_RESPONDER_RESOURCES 3
#define MOCK_INITIATOR_DEPTH	 5
void mock_cm_event(enum rdma_cm_event_type type, struct rdma_cm_id *id,
		   const char *private_data);
/* The status of the event; 0 unless set, once. */
extern int mock_cm_status;
/* Makes a CM event with any pointer and any length, fitting or not. */
void mock_cm_event_data(enum rdma_cm_event_type type, struct rdma_cm_id *id,
			const void *private_data, uint8_t len);
/* The last id made by rdma_create_id(). */
extern struct rdma_cm_id *mock_id;
/* Makes an id, as in a CONNECT_REQUEST. */
struct rdma_cm_id *mock_new_id(void);

/* Makes the next completion event; NULL: of an unknown CQ. */
void mock_cq_event(struct rpma_cq *cq);
extern struct ibv_cq mock_strange_cq;

/* The result of ibv_poll_cq(): a number of completions, or an error. */
extern int mock_poll_answer;
/* The completions: copies, with wr_id counted up. */
extern struct ibv_wc mock_wc;

/* From now on until the test ends the library's errors are kept. */
void mocks_listen(void);
/* How many there were since then or the last reset; the text of the last. */
int mocks_said_count(void);
const char *mocks_said(void);
/* Asserts that the only error has this part. */
void expect_said(const char *part);

/* The last post: copies of the work requests of the chain. */
#define MOCK_POSTED_MAX 8
extern struct ibv_send_wr mock_sent[MOCK_POSTED_MAX];
extern struct ibv_sge mock_sent_sge[MOCK_POSTED_MAX];
extern int mock_sent_count;
extern struct ibv_recv_wr mock_received[MOCK_POSTED_MAX];
extern struct ibv_sge mock_received_sge[MOCK_POSTED_MAX];
extern int mock_received_count;

/* The attributes of the last object made or changed. */
extern struct ibv_qp_init_attr_ex mock_qp_attr;
extern struct ibv_qp_attr mock_qp_modified;
extern struct ibv_srq_init_attr mock_srq_attr;
extern struct rdma_conn_param mock_conn_param;
extern int mock_access;
extern struct ibv_mr *mock_mr;

/* The extended interface of every QP; NULL unless set. */
extern struct ibv_qp_ex *mock_qpx;

/* ---- for the mocks themselves ---- */

/* Records the call; returns the errno to fail with, or 0. */
int mock_enter(const char *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void *mock_alloc(size_t size);
void mock_free(void *memory);

#endif /* MOCKS_H */
