/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_cost [--seconds S] [--cpus A,B] librpma|verbs|over OPERATION
 *
 * The cost of a call of the data path alone. The connection is on the loopback
 * device; once the connection stands, posting and polling of the device are
 * replaced by functions that only count, so the cost of a call is the cost of
 * librpma.
 *
 * "librpma" and "verbs" print millions of operations a second; "over" prints
 * the cost of a call beyond the cost with verbs alone, in nanoseconds, from
 * runs of both in turn. Medians of many short runs, so that an interrupted run
 * does not count.
 */

#include "cost.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define TIMES  2000 /* operations between two looks at the clock */
#define SLICES 4001 /* at most */

static const char *const names[COST_OPS] = {
	[COST_READ] = "read",
	[COST_WRITE] = "write",
	[COST_WRITE_IMM] = "write_imm",
	[COST_ATOMIC_WRITE] = "atomic_write",
	[COST_FLUSH] = "flush",
	[COST_SEND] = "send",
	[COST_SEND_IMM] = "send_imm",
	[COST_RECV] = "recv",
	[COST_SRQ_RECV] = "srq_recv",
	[COST_GET_WC] = "get_wc",
	[COST_GET_WC_EMPTY] = "get_wc_empty",
	[COST_GET_WC_SOME] = "get_wc_some",
};

uint64_t cost_sum;

/* --- a device without work */

static uint64_t count;
static int available = 1;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	count++;
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	count++;
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad)
{
	(void)srq;
	(void)wr;
	(void)bad;
	count++;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	(void)cq;
	(void)entries;
	wc->wr_id = count++;
	return available;
}

static struct ibv_context_ops real;

static void silence(struct ibv_context *ctx)
{
	real = ctx->ops;
	ctx->ops.post_send = post_send;
	ctx->ops.post_recv = post_recv;
	ctx->ops.post_srq_recv = post_srq_recv;
	ctx->ops.poll_cq = poll_cq;
}

static void give_back(struct ibv_context *ctx)
{
	ctx->ops = real;
}

/* --- measuring */

static double values[SLICES];

/* Returns the seconds for TIMES operations. */
static double slice(const struct cost_way *way, enum cost_op op)
{
	uint64_t before = count;
	double begin = bench_now();

	way->run[op](TIMES);
	begin = bench_now() - begin;
	if (count - before != TIMES)
		bench_fail("not each call reached the device once");
	return begin;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

/* Returns operations per second: the median of many slices. */
static double rate(const struct cost_way *way, enum cost_op op, double seconds)
{
	double end = bench_now() + seconds;
	size_t n = 0;

	(void)slice(way, op);
	do
		values[n++] = slice(way, op);
	while (n < SLICES && bench_now() < end);
	return TIMES / median(values, n);
}

/* Nanoseconds of a call over the same with verbs. */
static double over(enum cost_op op, double seconds)
{
	double end = bench_now() + seconds;
	size_t n = 0;

	(void)slice(&cost_librpma, op);
	(void)slice(&cost_verbs, op);
	do {
		values[n] = slice(&cost_librpma, op);
		values[n++] -= slice(&cost_verbs, op);
	} while (n < SLICES && bench_now() < end);
	return median(values, n) / TIMES * 1e9;
}

static void measure(const char *way, enum cost_op op, double seconds)
{
	available = op != COST_GET_WC_EMPTY;
	if (strcmp(way, "librpma") == 0)
		bench_report(names[op], rate(&cost_librpma, op, seconds) / 1e6,
			     "Mops/s");
	else if (strcmp(way, "verbs") == 0)
		bench_report(names[op], rate(&cost_verbs, op, seconds) / 1e6,
			     "Mops/s");
	else if (strcmp(way, "over") == 0)
		bench_report(names[op], over(op, seconds), "ns");
	else
		bench_fail("usage: bench_cost librpma|verbs|over OPERATION");
}

static enum cost_op find_op(const char *name)
{
	enum cost_op op;

	for (op = 0; op < COST_OPS; op++) {
		if (strcmp(names[op], name) == 0)
			return op;
	}
	bench_fail("no such operation");
}

/* Returns true if the device has a native operation, which is posted by
 * functions of the queue pair, which are not replaced. */
static bool is_native(enum cost_op op)
{
#ifdef RPMA_HAVE_NATIVE_ATOMIC_WRITE
	if (op == COST_ATOMIC_WRITE)
		return true;
#endif
#ifdef RPMA_HAVE_NATIVE_FLUSH
	if (op == COST_FLUSH)
		return true;
#endif
	(void)op;
	return false;
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	enum cost_op op;

	if (args.count != 2)
		bench_fail("usage: bench_cost librpma|verbs|over OPERATION");
	op = find_op(args.words[1]);
	if (is_native(op))
		bench_skip("the device has this operation itself, and its cost "
			   "is not librpma's alone");
	cost_librpma.open();
	cost_verbs.open();
	bench_pin(args.cpus[0]);
	if (cost_librpma.context() != cost_verbs.context())
		bench_fail("two devices: one was expected");
	silence(cost_verbs.context());
	measure(args.words[0], op, args.seconds);
	give_back(cost_verbs.context());
	cost_verbs.close();
	cost_librpma.close();
	return 0;
}
