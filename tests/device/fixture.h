/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The base of the verbs conformance suite: the device under test, objects
 * destroyed after the test that made the objects, and two connected RC queue
 * pairs, both ends in this process. The thread that runs cmocka calls
 * everything; other threads of a test call only verbs and report back, because
 * a failed assertion may not leave the stack of another thread.
 */

#ifndef DEVICE_FIXTURE_H
#define DEVICE_FIXTURE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <infiniband/verbs.h>

#include "../cases.h"
#include "traits.h"

/* The most time for a step that must happen: a bound on failure only. */
#define FX_DEADLINE_S 300
/* Bytes in each end's memory region. */
#define FX_BUF 8192u
#define FX_ALL_ACCESS                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define FX_REMOTE_ACCESS (FX_ALL_ACCESS & ~IBV_ACCESS_LOCAL_WRITE)
#define FX_COUNT(array)	 (sizeof(array) / sizeof((array)[0]))
#define FX_TEST(name)	 TEST_WITH(name, fx_setup, fx_teardown)

struct device {
	struct ibv_context *verbs;
	struct sockaddr_in addr; /* port 0 */
	union ibv_gid gid;	 /* of the address, RoCE v2 */
	uint8_t gid_index;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	const struct traits *traits;
};

extern struct device dut;

/*
 * Choose whose objects fx_pd(), fx_channel() and fx_cq() make: dut.verbs, or
 * the verbs chosen by fx_far(): a test of two ends has an end in another
 * process where RPMA_TEST_SPLIT is set (far.h), and otherwise both ends in this
 * process.
 */
void fx_far(void);
void fx_near(void);
/*
 * Returns true if fx_far() had an effect since the last call. Begins anew,
 * near.
 */
bool fx_split(void);

/* Runs the tests, or only the tests that match argv[1]. */
int fx_main(int argc, char **argv, const char *group,
	    const struct CMUnitTest *tests, size_t count);
#define FX_MAIN(group)                                                        \
	int main(int argc, char **argv)                                       \
	{                                                                     \
		return fx_main(argc, argv, group, tests_listed, tests_count); \
	}
int fx_setup(void **state);
int fx_teardown(void **state);
/* Skips the test, saying why, unless the condition holds. */
void fx_need(bool condition, const char *reason);

/* Time: a deadline from now on, and whether the deadline has passed. */
struct fx_deadline {
	int64_t end_ns;
};
struct fx_deadline fx_deadline(void);
void fx_check(const struct fx_deadline *deadline, const char *awaited);
bool fx_readable(int fd);
void fx_wait_readable(int fd, const char *awaited);
void fx_nonblock(int fd);

/*
 * Objects. Objects made here, or kept by fx_keep(), are destroyed after the
 * test, youngest first; fx_destroy() destroys at once and returns the result of
 * the verb.
 */
typedef int (*fx_undo)(void *object);
void fx_keep(void *object, fx_undo undo);
int fx_destroy(void *object);
/* Leaves an object to the test: another thread destroys the object. */
void fx_forget(void *object);
/* Destroys objects made since the mark, like the end of the test. */
size_t fx_mark(void);
void fx_release(size_t mark);

void *fx_alloc(size_t size);
struct ibv_context *fx_context(void);
struct ibv_pd *fx_pd(void);
struct ibv_comp_channel *fx_channel(void);
struct ibv_cq *fx_cq(int cqe, void *context, struct ibv_comp_channel *channel);
struct ibv_mr *fx_mr(struct ibv_pd *pd, size_t size, int access);
struct ibv_mr *fx_mr_at(struct ibv_pd *pd, void *at, size_t size, int access);
struct ibv_srq *fx_srq(struct ibv_pd *pd, uint32_t max_wr);
struct ibv_qp *fx_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
void fx_keep_qp(struct ibv_qp *qp);
void fx_keep_pd(struct ibv_pd *pd);
void fx_keep_mr(struct ibv_mr *mr);
void fx_keep_cq(struct ibv_cq *cq);

/* The next completion, awaited; with the given result, if asked so. */
struct ibv_wc fx_wait(struct ibv_cq *cq);
struct ibv_wc fx_expect(struct ibv_cq *cq, uint64_t wr_id,
			enum ibv_wc_status status);
void fx_expect_empty(struct ibv_cq *cq);
/* Polls n completions, all successful, whatever they are of. */
void fx_drain(struct ibv_cq *cq, int n);

/* The next event of the channel, acknowledged, must be of this CQ. */
void fx_expect_event(struct ibv_comp_channel *channel, struct ibv_cq *cq);
/* The next asynchronous event of the type; others are acknowledged. */
struct ibv_async_event fx_expect_async(struct ibv_context *verbs,
				       enum ibv_event_type type);

#endif
