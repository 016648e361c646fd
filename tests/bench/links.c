/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * links.c -- what an empty poll and a post cost beside so many links of the
 * loopback device to other processes, which sleep. The least of many batches:
 * what other programs take is in the others. Prints "name value unit".
 *
 * bench_links COUNT [NS]: with NS, batches go on until an empty poll costs no
 * more than NS, for PATIENCE_S at most: the threads that put links to sleep may
 * wait for a processor.
 */

#include <infiniband/verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MAX   200
#define DEPTH 16
#define POLLS 1000 /* of a batch */
#define POSTS 2000

#define PATIENCE_S 300.0

/* What the other side has to know. */
struct side {
	uint32_t qpn, rkey;
	uint64_t addr;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct side other; /* of the last queue pair */
static uint64_t word;

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ctx = list ? ibv_open_device(list[0]) : NULL;
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	cq = pd ? ibv_create_cq(ctx, MAX * DEPTH, NULL, NULL, 0) : NULL;
	mr = cq ? ibv_reg_mr(pd, &word, sizeof(word),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		: NULL;
	if (!mr)
		bench_fail("no device");
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, 1, 1, 1, 8},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		bench_fail("no queue pair");
	return qp;
}

static void connect_qp(struct ibv_qp *qp, int fd)
{
	struct side mine = {qp->qp_num, mr->rkey, (uintptr_t)&word};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.ah_attr = {.is_global = 1, .port_num = 1},
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int err = ibv_query_gid(ctx, 1, 0, &attr.ah_attr.grh.dgid);

	if (send(fd, &mine, sizeof(mine), 0) != sizeof(mine) ||
	    recv(fd, &other, sizeof(other), MSG_WAITALL) != sizeof(other))
		bench_fail("the other process has gone");
	attr.dest_qp_num = other.qpn;
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

/* The other process: its program sleeps until the parent has gone. */
static void sleep_connected(int fd)
{
	char end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_device();
	connect_qp(make_qp(), fd);
	while (recv(fd, &end, 1, 0) > 0)
		;
	_exit(0);
}

static int fork_other(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		bench_fail("socketpair");
	switch (fork()) {
	case -1:
		bench_fail("fork");
	case 0:
		close(fds[0]);
		sleep_connected(fds[1]);
	}
	close(fds[1]);
	return fds[0];
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* Polls for so many seconds, then until the cost is most_ns at most. */
static double measure_poll(double seconds, double most_ns)
{
	const double begin = bench_now();
	double best = 1;
	struct ibv_wc wc;

	while (bench_now() < begin + seconds ||
	       (best / POLLS * 1e9 > most_ns &&
		bench_now() < begin + PATIENCE_S)) {
		const double before = bench_now();

		for (int i = 0; i < POLLS; i++) {
			if (ibv_poll_cq(cq, 1, &wc))
				bench_fail("a completion of nothing");
		}
		best = least(best, bench_now() - before);
	}
	return best / POLLS * 1e9;
}

static double measure_post(struct ibv_qp *qp)
{
	struct ibv_sge sge = {(uintptr_t)&word, 8, mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	struct ibv_wc wc;
	double best = 1;

	wr.wr.rdma.remote_addr = other.addr;
	wr.wr.rdma.rkey = other.rkey;
	for (int i = 0; i < POSTS; i++) {
		const double before = bench_now();

		if (ibv_post_send(qp, &wr, &bad))
			bench_fail("ibv_post_send");
		best = least(best, bench_now() - before);
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		if (wc.status)
			bench_fail(ibv_wc_status_str(wc.status));
	}
	return best * 1e9;
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	int count = args.count ? atoi(args.words[0]) : 0;
	struct ibv_qp *qp = NULL;
	int fds[MAX];
	/* more than any poll costs, or the second word */
	double post, most_ns = args.count > 1 ? atof(args.words[1]) : 1e9;

	if (count < 1 || count > MAX)
		bench_fail("usage: bench_links COUNT [NS], 1 to 200");
	for (int i = 0; i < count; i++)
		fds[i] = fork_other();
	open_device();
	for (int i = 0; i < count; i++) {
		qp = make_qp();
		connect_qp(qp, fds[i]);
	}
	post = measure_post(qp);
	/* until links that brought something lately are as the others */
	measure_poll(args.seconds / 2, 1e9);
	bench_report("poll", measure_poll(args.seconds / 2, most_ns), "ns");
	bench_report("post", post, "ns");
	for (int i = 0; i < count; i++)
		close(fds[i]);
	while (wait(NULL) > 0)
		;
	return 0;
}
