/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wire.c -- the speed of the loopback device between two processes, pinned
 * apart, both polling, beside the best possible speed: a bare ring with a
 * producer and a consumer in shared memory, and process_vm_writev(). The parent
 * measures, the child is the peer. Prints "name value unit".
 */

#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define DEPTH 128 /* sends under way; receives are four times as many */
#define BATCH 16  /* posted at once, the last signaled */
#define POLL  64  /* taken at once: more than a look at the wire brings */
#define BIG   65536
#define SLOTS 4096 /* of a bare ring: 256 KiB, as a ring of the wire */
#define LINE  64

struct side {
	uint32_t qpn, rkey;
	uint64_t addr;
	_Atomic uint32_t is_there;
};

/* A ring of messages of 8 bytes, each in a separate line. */
struct ring {
	_Alignas(LINE) _Atomic uint64_t tail; /* the producer's */
	_Alignas(LINE) _Atomic uint64_t head; /* the consumer's */
	_Alignas(LINE) struct {
		uint64_t value, rest[LINE / 8 - 1];
	} slots[SLOTS];
};

struct shared {
	struct side sides[2];
	_Alignas(LINE) _Atomic uint32_t is_over;
	_Atomic uint32_t is_ready; /* the child */
	struct ring rings[2];
};

static struct bench_args args;
static struct shared *shared;
static int me; /* 0: the parent */
static pid_t child;

static struct ibv_cq *scq, *rcq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *buf; /* 2 * BIG: sent bytes, received bytes */

/* --- the two processes */

static bool is_over(void)
{
	/* acquire: pairs with the release in end() */
	return atomic_load_explicit(&shared->is_over, memory_order_acquire);
}

static void end(void)
{
	/* release: pairs with the acquire in is_over() */
	atomic_store_explicit(&shared->is_over, 1, memory_order_release);
}

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = 200000};

	nanosleep(&ts, NULL);
}

static void open_qp(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, 4 * DEPTH, 1, 1, 64},
	};

	if (!pd)
		bench_fail("no device");
	scq = ibv_create_cq(ctx, 2 * DEPTH, NULL, NULL, 0);
	rcq = ibv_create_cq(ctx, 8 * DEPTH, NULL, NULL, 0);
	buf = aligned_alloc(4096, 2 * (size_t)BIG);
	if (!scq || !rcq || !buf)
		bench_fail("no memory");
	memset(buf, 0, 2 * (size_t)BIG);
	mr = ibv_reg_mr(pd, buf, 2 * (size_t)BIG,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = scq;
	init.recv_cq = rcq;
	qp = ibv_create_qp(pd, &init);
	if (!mr || !qp)
		bench_fail("no queue pair");
}

static const struct side *meet(void)
{
	struct side *mine = &shared->sides[me], *other = &shared->sides[!me];

	mine->qpn = qp->qp_num;
	mine->rkey = mr->rkey;
	mine->addr = (uintptr_t)buf;
	/* release, acquire: pair with each other */
	atomic_store_explicit(&mine->is_there, 1, memory_order_release);
	while (!atomic_load_explicit(&other->is_there, memory_order_acquire))
		nap();
	return other;
}

static void connect_qp(void)
{
	const struct side *other = meet();
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other->qpn,
		.ah_attr = {.is_global = 1, .port_num = 1},
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
	};
	int err;

	err = ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid);
	err |= ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	err |= ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	err |= ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		bench_fail("the queue pairs cannot be connected");
}

/* --- posts */

static void post(enum ibv_wr_opcode opcode, uint32_t size, int n)
{
	struct ibv_sge sge = {(uintptr_t)buf, size, mr->lkey};
	struct ibv_send_wr wr[BATCH], *bad;
	int i;

	for (i = 0; i < n; i++) {
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED,
		};
		wr[i].wr.rdma.remote_addr = shared->sides[!me].addr + BIG;
		wr[i].wr.rdma.rkey = shared->sides[!me].rkey;
	}
	if (ibv_post_send(qp, wr, &bad))
		bench_fail("ibv_post_send");
}

static void post_recvs(int n)
{
	struct ibv_sge sge = {(uintptr_t)buf + BIG, 8, mr->lkey};
	struct ibv_recv_wr wr[BATCH], *bad;
	int i;

	for (i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
		};
	if (ibv_post_recv(qp, wr, &bad))
		bench_fail("ibv_post_recv");
}

/* How many there were, at most POLL. */
static int poll_cq(struct ibv_cq *cq)
{
	struct ibv_wc wc[POLL];
	int n = ibv_poll_cq(cq, POLL, wc), i;

	for (i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			bench_fail(ibv_wc_status_str(wc[i].status));
	}
	return n;
}

static void await(struct ibv_cq *cq)
{
	while (!poll_cq(cq))
		;
}

/*
 * Returns when the link is up, after a pause for the link thread, which a
 * poller may starve.
 */
static void warm_up(void)
{
	if (!me) {
		post(IBV_WR_RDMA_WRITE, 8, 1);
		while (!poll_cq(scq))
			nap();
		buf[1] = 1;
		post(IBV_WR_RDMA_WRITE, 8, 1);
		await(scq);
	}
	while (me && !((volatile uint8_t *)buf)[BIG + 1]) {
		poll_cq(scq);
		nap();
	}
	bench_pin(args.cpus[me]);
	/*
	 * A thread of real-time priority starves the threads of the device,
	 * which would retry sends without a receive: the child polls from now
	 * on. Release, acquire: pair with each other.
	 */
	if (me)
		atomic_store_explicit(&shared->is_ready, 1,
				      memory_order_release);
	while (!atomic_load_explicit(&shared->is_ready, memory_order_acquire))
		;
}

/* --- figures of the device */

static void answer_nothing(void)
{
	while (!is_over())
		poll_cq(scq);
}

/* Posts of batches until the time is over, a second. */
static double rate(enum ibv_wr_opcode opcode, uint32_t size, int batch)
{
	const double begin = bench_now();
	uint64_t done = 0;
	double then = begin;
	int under_way = 0;

	while (then - begin < args.seconds || under_way) {
		int n = poll_cq(scq) * batch;

		done += (uint64_t)n;
		under_way -= n;
		if (n)
			then = bench_now();
		while (then - begin < args.seconds &&
		       under_way + batch <= DEPTH) {
			post(opcode, size, batch);
			under_way += batch;
		}
	}
	return (double)done / (then - begin);
}

static void send_ask(void)
{
	bench_report("send8", rate(IBV_WR_SEND, 8, BATCH) * 1e-6, "Mops/s");
}

static void send_answer(void)
{
	int free = 0;

	while (!is_over()) {
		free += poll_cq(rcq);
		for (; free >= BATCH; free -= BATCH)
			post_recvs(BATCH);
	}
}

static void write_ask(void)
{
	bench_report("write8", rate(IBV_WR_RDMA_WRITE, 8, BATCH) * 1e-6,
		     "Mops/s");
}

static void big_ask(void)
{
	bench_report("write64k", rate(IBV_WR_RDMA_WRITE, BIG, 1) * BIG * 1e-9,
		     "GB/s");
}

/* A round trip like ib_send_lat; returns the whole time. */
static void trip_ask(void)
{
	const double begin = bench_now();
	uint64_t n = 0;

	while (n & 1023 || bench_now() - begin < args.seconds) {
		post(IBV_WR_SEND, 8, 1);
		await(rcq);
		post_recvs(1);
		await(scq);
		n++;
	}
	bench_report("send8_trip", (bench_now() - begin) * 1e9 / (double)n,
		     "ns");
}

static void trip_answer(void)
{
	while (!is_over()) {
		if (!poll_cq(rcq))
			continue;
		post_recvs(1);
		post(IBV_WR_SEND, 8, 1);
		while (!poll_cq(scq) && !is_over())
			;
	}
}

static uint8_t arrived(void)
{
	return ((volatile uint8_t *)buf)[BIG];
}

/* A round trip like ib_write_lat: the waiting side looks only at its memory. */
static void write_trip_ask(void)
{
	const double begin = bench_now();
	uint64_t n = 0;

	while (n & 63 || bench_now() - begin < args.seconds) {
		buf[0]++;
		post(IBV_WR_RDMA_WRITE, 8, 1);
		await(scq);
		while (arrived() != buf[0])
			;
		n++;
	}
	bench_report("write8_trip", (bench_now() - begin) * 1e9 / (double)n,
		     "ns");
}

static void write_trip_answer(void)
{
	while (!is_over()) {
		if (arrived() == buf[0])
			continue;
		buf[0] = arrived();
		post(IBV_WR_RDMA_WRITE, 8, 1);
		while (!poll_cq(scq) && !is_over())
			;
	}
}

/* --- the best possible speed */

/* Waits for room. */
static void put(struct ring *ring, uint64_t *head, uint64_t tail)
{
	while (tail - *head >= SLOTS)
		/* acquire: pairs with the release in take() */
		*head = atomic_load_explicit(&ring->head, memory_order_acquire);
	ring->slots[tail % SLOTS].value = tail;
	/* release: pairs with the acquire in take() */
	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
}

/*
 * Takes all pending messages, at most 32, like the drain of the wire; returns
 * the end.
 */
static uint64_t take(struct ring *ring, uint64_t head)
{
	/* acquire: pairs with the release in put() */
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	uint64_t then = head;

	if (tail - head > 32)
		tail = head + 32;
	for (; head != tail; head++) {
		if (ring->slots[head % SLOTS].value != head)
			bench_fail("the ring gave another value");
	}
	if (head != then)
		/* release: pairs with the acquire in put() */
		atomic_store_explicit(&ring->head, head, memory_order_release);
	return head;
}

static void ring_ask(void)
{
	struct ring *ring = &shared->rings[0];
	const double begin = bench_now();
	uint64_t n = 0, head = 0;
	double seconds;

	while (n & 4095 || bench_now() - begin < args.seconds)
		put(ring, &head, n++);
	/* acquire: pairs with the release in take() */
	while (atomic_load_explicit(&ring->head, memory_order_acquire) != n)
		;
	seconds = bench_now() - begin;
	bench_report("ring", (double)n / seconds * 1e-6, "Mops/s");
}

static void ring_answer(void)
{
	uint64_t head = 0;

	while (!is_over())
		head = take(&shared->rings[0], head);
}

static void ring_trip_ask(void)
{
	const double begin = bench_now();
	uint64_t n = 0, head = 0;

	while (n & 1023 || bench_now() - begin < args.seconds) {
		put(&shared->rings[0], &head, n);
		while (take(&shared->rings[1], n) == n)
			;
		n++;
	}
	bench_report("ring_trip", (bench_now() - begin) * 1e9 / (double)n,
		     "ns");
}

static void ring_trip_answer(void)
{
	uint64_t n = 0, head = 0;

	while (!is_over()) {
		if (take(&shared->rings[0], n) != n)
			put(&shared->rings[1], &head, n++);
	}
}

static void vm_ask(void)
{
	const double begin = bench_now();
	struct iovec from = {buf, BIG};
	struct iovec to = {(void *)(uintptr_t)(shared->sides[1].addr + BIG),
			   BIG};
	uint64_t n = 0;

	do {
		if (process_vm_writev(child, &from, 1, &to, 1, 0) != BIG)
			bench_skip(errno == EPERM ? "process_vm_writev() is "
						    "not permitted"
						  : "process_vm_writev()");
		n++;
	} while (bench_now() - begin < args.seconds);
	bench_report("vm64k", (double)n * BIG * 1e-9 / (bench_now() - begin),
		     "GB/s");
}

/* --- all of them */

static const struct way {
	const char *name;
	void (*ask)(void);    /* the parent */
	void (*answer)(void); /* the child, until the parent has finished */
} ways[] = {
	{"send8", send_ask, send_answer},
	{"write8", write_ask, answer_nothing},
	{"ring", ring_ask, ring_answer},
	{"send8_trip", trip_ask, trip_answer},
	{"write8_trip", write_trip_ask, write_trip_answer},
	{"ring_trip", ring_trip_ask, ring_trip_answer},
	{"write64k", big_ask, answer_nothing},
	{"vm64k", vm_ask, answer_nothing},
};

static const struct way *find(void)
{
	size_t i;

	for (i = 0; args.count && i < sizeof(ways) / sizeof(*ways); i++) {
		if (!strcmp(args.words[0], ways[i].name))
			return &ways[i];
	}
	bench_fail("usage: bench_wire send8|write8|ring|send8_trip|"
		   "write8_trip|ring_trip|write64k|vm64k");
}

static void share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared == MAP_FAILED)
		bench_fail("no shared memory");
	child = fork();
	if (child < 0)
		bench_fail("no process");
	me = !child;
	if (me)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int main(int argc, char **argv)
{
	const struct way *way;
	int i, status;

	args = bench_parse(argc, argv);
	way = find();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		bench_skip("needs two processors");
	share();
	open_qp();
	connect_qp();
	for (i = 0; i < 4 * DEPTH / BATCH; i++)
		post_recvs(BATCH);
	warm_up();
	if (me) {
		way->answer();
		return 0;
	}
	way->ask();
	end();
	if (waitpid(child, &status, 0) != child || status)
		bench_fail("the other process failed");
	return 0;
}
