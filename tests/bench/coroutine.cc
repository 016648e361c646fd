/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_coroutine [--seconds S] [--cpus A,B]
 *
 * What a coroutine costs: nanoseconds from one write to the next, of 32 that
 * are under way, when a function is called with each completion ("function"),
 * when a coroutine awaits it ("coroutine"), the difference ("over"), and how
 * often memory was allocated meanwhile ("allocations").
 *
 * In manual mode, on one thread; the device's posting and polling are replaced
 * by functions that only copy, as in bench_round. Medians of many turns.
 */

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../cpp/scene.hpp"

extern "C" {
#include "bench.h"

extern void *__libc_malloc(size_t size);
}

#define WRITERS 32
#define WRITES	32768 /* a turn */
#define DEPTH	1024

static unsigned long allocated;

/* those of the libraries, too; operator new calls it */
extern "C" void *malloc(size_t size)
{
	allocated++;
	return __libc_malloc(size);
}

/* ------------------------------------------ the device that only copies --- */

static struct {
	ibv_context_ops real;
	uint32_t qp_num;
	uint64_t posted;
	uint64_t polled;
	uint64_t wr_ids[DEPTH];
} fake;

static int post_send(ibv_qp *, ibv_send_wr *wr, ibv_send_wr **)
{
	for (; wr != nullptr; wr = wr->next)
		fake.wr_ids[fake.posted++ % DEPTH] = wr->wr_id;
	return 0;
}

static int poll_cq(ibv_cq *, int count, ibv_wc *wc)
{
	int got = 0;

	for (; got < count && fake.polled != fake.posted; got++) {
		wc[got] = ibv_wc{};
		wc[got].wr_id = fake.wr_ids[fake.polled++ % DEPTH];
		wc[got].qp_num = fake.qp_num;
		wc[got].opcode = IBV_WC_RDMA_WRITE;
	}
	return got;
}

/* ------------------------------------------------------------ the forms --- */

struct writer {
	rpma_rt_conn *conn;
	const rpma_mr_remote *remote;
	const rpma_mr_local *mr;
	int left;
	void (*fn)(writer *self, const rpma_rt_completion *item);
};

static void write_next(writer *self)
{
	CHECK(rpma_rt_write(self->conn, self->remote, 0, self->mr, 0, 8, 0,
			    reinterpret_cast<uintptr_t>(self)) == 0);
}

static void on_written(writer *self, const rpma_rt_completion *item)
{
	CHECK(item->status == IBV_WC_SUCCESS);
	if (--self->left > 0)
		write_next(self);
}

static void run_functions(scene &s, rt::connection &conn)
{
	rpma_rt_completion items[64];
	writer writers[WRITERS];
	int left = WRITES;

	for (auto &w : writers) {
		w = {conn.raw(), s.remote.raw(), s.memory.raw(),
		     WRITES / WRITERS, on_written};
		write_next(&w);
	}
	while (left > 0) {
		CHECK(rpma_rt_poller_run(s.runtime.raw(), 0, 64) >= 0);
		int got = rpma_rt_queue_poll(s.loop.queue(), items, 64);

		for (int i = 0; i < got; i++) {
			auto *w = static_cast<writer *>(
				rpma_rt_completion_ptr(&items[i]));

			w->fn(w, &items[i]);
		}
		left -= got;
	}
}

static rt::task<void> write_all(scene &s, rt::connection &conn, int &over)
{
	for (int i = 0; i < WRITES / WRITERS; i++) {
		auto done = co_await conn.write_raw(s.remote, 0, s.memory.raw(),
						    0, 8);
		CHECK(done);
	}
	over++;
}

/* the frames are made before the clock runs */
static double run_coroutines(scene &s, rt::connection &conn,
			     unsigned long &most)
{
	int over = 0;
	double begin;

	for (int i = 0; i < WRITERS; i++)
		s.loop.spawn(write_all(s, conn, over));
	begin = bench_now();
	allocated = 0;
	while (over < WRITERS)
		CHECK(s.loop.turn(0) >= 0);
	most = std::max(most, allocated);
	return (bench_now() - begin) * 1e9 / WRITES;
}

static double median(std::vector<double> &values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

int main(int argc, char **argv)
{
	bench_args args = bench_parse(argc, argv);
	scene s({.mode = RPMA_RT_MODE_MANUAL, .slots = 512, .depth = 128});
	auto both = s.run(s.connect());
	std::vector<double> functions, coroutines, over;
	unsigned long most = 0;
	ibv_context *device;

	bench_pin(args.cpus[0]);
	/* the end of the listener */
	while (s.loop.turn(20) > 0)
		continue;
	CHECK(rpma_rt_conn_get_qp_num(both.client.raw(), &fake.qp_num) == 0);
	CHECK(rpma_peer_get_ibv_context(s.peer.raw(), &device) == 0);
	fake.real = device->ops;
	device->ops.post_send = post_send;
	device->ops.poll_cq = poll_cq;
	double end = bench_now() + args.seconds;
	do {
		double begin = bench_now();

		run_functions(s, both.client);
		functions.push_back((bench_now() - begin) * 1e9 / WRITES);
		coroutines.push_back(run_coroutines(s, both.client, most));
		over.push_back(coroutines.back() - functions.back());
	} while (bench_now() < end);
	device->ops = fake.real;
	bench_report("over", median(over), "ns");
	bench_report("function", median(functions), "ns");
	bench_report("coroutine", median(coroutines), "ns");
	bench_report("allocations", static_cast<double>(most), "calls");
	return most != 0;
}
