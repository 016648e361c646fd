/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Objects of one test and the stack from which they are destroyed after it,
 * whichever way the test ends; waiting with a deadline. Runs in cmocka's
 * thread.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "far.h"
#include "fixture.h"

#define MAX_KEPT 1024

static struct kept {
	void *object;
	fx_undo undo;
} kept[MAX_KEPT];
static size_t kept_count;
static struct ibv_context *maker; /* NULL: dut.verbs */
static bool is_split;		  /* it was another */

void fx_far(void)
{
	maker = far_context();
	is_split = is_split || maker;
}

bool fx_split(void)
{
	bool was = is_split;

	fx_near();
	is_split = false;
	return was;
}

void fx_near(void)
{
	maker = NULL;
}

static struct ibv_context *made_by(void)
{
	return maker ? maker : dut.verbs;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

struct fx_deadline fx_deadline(void)
{
	struct fx_deadline d = {now_ns() + FX_DEADLINE_S * INT64_C(1000000000)};

	return d;
}

void fx_check(const struct fx_deadline *deadline, const char *awaited)
{
	if (now_ns() > deadline->end_ns)
		fail_msg("%s did not happen in %d s", awaited, FX_DEADLINE_S);
	sched_yield();
}

bool fx_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

void fx_wait_readable(int fd, const char *awaited)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, FX_DEADLINE_S * 1000) != 1)
		fail_msg("%s did not happen in %d s", awaited, FX_DEADLINE_S);
}

void fx_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	assert_true(flags >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
}

void fx_keep(void *object, fx_undo undo)
{
	assert_true(kept_count < MAX_KEPT);
	kept[kept_count++] = (struct kept){object, undo};
}

static void forget(size_t i)
{
	--kept_count;
	memmove(&kept[i], &kept[i + 1], (kept_count - i) * sizeof(kept[0]));
}

int fx_destroy(void *object)
{
	for (size_t i = kept_count; i-- > 0;) {
		int ret;

		if (kept[i].object != object)
			continue;
		ret = kept[i].undo(object);
		if (ret == 0)
			forget(i);
		return ret;
	}
	fail_msg("%p is not kept", object);
	return -1;
}

void fx_forget(void *object)
{
	for (size_t i = kept_count; i-- > 0;) {
		if (kept[i].object == object) {
			forget(i);
			return;
		}
	}
	fail_msg("%p is not kept", object);
}

size_t fx_mark(void)
{
	return kept_count;
}

void fx_release(size_t mark)
{
	int first_error = 0;

	while (kept_count > mark) {
		struct kept last = kept[--kept_count];
		int ret = last.undo(last.object);

		if (ret && !first_error)
			first_error = ret;
	}
	if (first_error)
		fail_msg("an object could not be destroyed: %d", first_error);
}

static int undo_alloc(void *p)
{
	if (far_has(p))
		far_free(p);
	else
		free(p);
	return 0;
}

static int undo_context(void *p)
{
	return ibv_close_device(p);
}

static int undo_pd(void *p)
{
	return ibv_dealloc_pd(p);
}

static int undo_channel(void *p)
{
	return ibv_destroy_comp_channel(p);
}

static int undo_cq(void *p)
{
	return ibv_destroy_cq(p);
}

static int undo_mr(void *p)
{
	return ibv_dereg_mr(p);
}

static int undo_srq(void *p)
{
	return ibv_destroy_srq(p);
}

static int undo_qp(void *p)
{
	return ibv_destroy_qp(p);
}

void fx_keep_qp(struct ibv_qp *qp)
{
	fx_keep(qp, undo_qp);
}

void fx_keep_pd(struct ibv_pd *pd)
{
	fx_keep(pd, undo_pd);
}

void fx_keep_mr(struct ibv_mr *mr)
{
	fx_keep(mr, undo_mr);
}

void fx_keep_cq(struct ibv_cq *cq)
{
	fx_keep(cq, undo_cq);
}

void *fx_alloc(size_t size)
{
	size_t whole = (size + 4095) & ~(size_t)4095;
	void *p = far_context() ? far_alloc(whole) : aligned_alloc(4096, whole);

	assert_non_null(p);
	memset(p, 0, whole);
	fx_keep(p, undo_alloc);
	return p;
}

struct ibv_context *fx_context(void)
{
	struct ibv_context *verbs = ibv_open_device(dut.verbs->device);

	assert_non_null(verbs);
	fx_keep(verbs, undo_context);
	return verbs;
}

struct ibv_pd *fx_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(made_by());

	assert_non_null(pd);
	fx_keep_pd(pd);
	return pd;
}

struct ibv_comp_channel *fx_channel(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(made_by());

	assert_non_null(ch);
	fx_keep(ch, undo_channel);
	return ch;
}

struct ibv_cq *fx_cq(int cqe, void *context, struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = ibv_create_cq(made_by(), cqe, context, channel, 0);

	assert_non_null(cq);
	fx_keep_cq(cq);
	return cq;
}

struct ibv_mr *fx_mr_at(struct ibv_pd *pd, void *at, size_t size, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, at, size, access);

	assert_non_null(mr);
	fx_keep_mr(mr);
	return mr;
}

struct ibv_mr *fx_mr(struct ibv_pd *pd, size_t size, int access)
{
	return fx_mr_at(pd, fx_alloc(size), size, access);
}

struct ibv_srq *fx_srq(struct ibv_pd *pd, uint32_t max_wr)
{
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = max_wr, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);

	assert_non_null(srq);
	fx_keep(srq, undo_srq);
	return srq;
}

struct ibv_qp *fx_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = ibv_create_qp(pd, attr);

	assert_non_null(qp);
	fx_keep_qp(qp);
	return qp;
}

struct ibv_wc fx_wait(struct ibv_cq *cq)
{
	struct fx_deadline d = fx_deadline();
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		fx_check(&d, "a completion");
	assert_int_equal(n, 1);
	return wc;
}

struct ibv_wc fx_expect(struct ibv_cq *cq, uint64_t wr_id,
			enum ibv_wc_status status)
{
	struct ibv_wc wc = fx_wait(cq);

	if (wc.status != status)
		fail_msg("wr_id %llu: %s, not %s", (unsigned long long)wc.wr_id,
			 ibv_wc_status_str(wc.status),
			 ibv_wc_status_str(status));
	assert_int_equal(wc.wr_id, wr_id);
	return wc;
}

void fx_expect_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

void fx_drain(struct ibv_cq *cq, int n)
{
	for (int i = 0; i < n; ++i) {
		struct ibv_wc wc = fx_wait(cq);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
}

void fx_expect_event(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct ibv_cq *of;
	void *context;

	fx_wait_readable(channel->fd, "a completion event");
	assert_int_equal(ibv_get_cq_event(channel, &of, &context), 0);
	ibv_ack_cq_events(of, 1);
	assert_ptr_equal(of, cq);
	assert_ptr_equal(context, cq->cq_context);
}

struct ibv_async_event fx_expect_async(struct ibv_context *verbs,
				       enum ibv_event_type type)
{
	struct ibv_async_event event;

	do {
		fx_wait_readable(verbs->async_fd, ibv_event_type_str(type));
		assert_int_equal(ibv_get_async_event(verbs, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != type);
	return event;
}
