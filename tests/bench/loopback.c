/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loopback.c -- how fast the loopback device moves 8-byte messages within a
 * process. Prints lines of "name value unit". Beside the latency of a send
 * between two spinning threads stands the round trip of a bare cache line
 * between the same threads, the best possible latency.
 */

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH	64
#define BATCH	16
#define MSG	8
#define BUF	4096
#define OPS	1000000
#define PINGS	50000
#define REPEATS 12
#define CROWD	20000 /* queue pairs */
#define DEREGS	200
#define MANY	1000 /* of the other objects in a crowd */
#define ROUNDS	2000 /* each round makes an object of each kind */

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

static struct end a, b;
static int cpus[2] = {0, 1};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* The first or the second of the two CPUs. */
static void pin(int which)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus[which], &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* --- two ends of a connection */

static void open_end(struct end *e, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, DEPTH, 1, 1, 64},
	};

	e->ctx = ibv_open_device(device);
	if (!e->ctx)
		die("ibv_open_device");
	e->pd = ibv_alloc_pd(e->ctx);
	e->scq = ibv_create_cq(e->ctx, 2 * DEPTH, NULL, NULL, 0);
	e->rcq = ibv_create_cq(e->ctx, 2 * DEPTH, NULL, NULL, 0);
	e->buf = aligned_alloc(BUF, BUF);
	if (!e->pd || !e->scq || !e->rcq || !e->buf)
		die("objects");
	memset(e->buf, 0, BUF);
	e->mr = ibv_reg_mr(e->pd, e->buf, BUF,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = e->scq;
	init.recv_cq = e->rcq;
	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->mr || !e->qp)
		die("objects");
}

static void connect_end(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.ah_attr = {.is_global = 1, .port_num = 1},
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
	};

	if (ibv_query_gid(peer->ctx, 1, 0, &attr.ah_attr.grh.dgid) ||
	    ibv_modify_qp(e->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS))
		die("INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(e->qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(e->qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				  IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
}

static void post_send(struct end *e, enum ibv_wr_opcode op, bool signaled)
{
	const struct end *peer = e == &a ? &b : &a;
	struct ibv_sge sge = {(uintptr_t)e->buf, MSG, e->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = signaled ? IBV_SEND_SIGNALED : 0,
	};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)peer->buf;
	wr.wr.rdma.rkey = peer->mr->rkey;
	if (ibv_post_send(e->qp, &wr, &bad))
		die("ibv_post_send");
}

static void post_recv(struct end *e)
{
	struct ibv_sge sge = {(uintptr_t)e->buf + 64, MSG, e->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(e->qp, &wr, &bad))
		die("ibv_post_recv");
}

/* Polls pending completions, all successful. */
static int poll_some(struct ibv_cq *cq)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(cq, BATCH, wc), i;

	for (i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			die(ibv_wc_status_str(wc[i].status));
	}
	return n;
}

static void poll_n(struct ibv_cq *cq, int n)
{
	while (n > 0)
		n -= poll_some(cq);
}

/* --- measurements; each returns operations per second, or nanoseconds */

static double write_one_thread(void)
{
	double start = now();
	int i, k;

	for (i = 0; i < OPS; i += BATCH) {
		for (k = 0; k < BATCH; k++)
			post_send(&a, IBV_WR_RDMA_WRITE, true);
		poll_n(a.scq, BATCH);
	}
	return OPS / (now() - start);
}

static double send_one_thread(void)
{
	double start = now();
	int i, k;

	for (i = 0; i < OPS; i += BATCH) {
		for (k = 0; k < BATCH; k++)
			post_recv(&b);
		for (k = 0; k < BATCH; k++)
			post_send(&a, IBV_WR_SEND, true);
		poll_n(a.scq, BATCH);
		poll_n(b.rcq, BATCH);
	}
	return OPS / (now() - start);
}

/* How many receives are posted: credits, in place of a wire protocol. */
static _Atomic uint64_t posted;

static void *receiver(void *arg)
{
	uint64_t done = 0, given = 0;
	int n;

	(void)arg;
	pin(1);
	while (done < OPS) {
		while (given < OPS && given - done < DEPTH) {
			post_recv(&b);
			given++;
		}
		/* release: pairs with the acquire in send_two_threads() */
		atomic_store_explicit(&posted, given, memory_order_release);
		n = poll_some(b.rcq);
		done += (uint64_t)n;
	}
	return NULL;
}

static double send_two_threads(void)
{
	uint64_t sent = 0, seen = 0;
	int signals = 0;
	pthread_t thread;
	double start;

	/* relaxed: the thread is created after this */
	atomic_store_explicit(&posted, 0, memory_order_relaxed);
	start = now();
	if (pthread_create(&thread, NULL, receiver, NULL))
		die("pthread_create");
	while (sent < OPS) {
		if (sent == seen) {
			/* acquire: pairs with the release in receiver() */
			seen = atomic_load_explicit(&posted,
						    memory_order_acquire);
			continue;
		}
		post_send(&a, IBV_WR_SEND, ++sent % BATCH == 0);
		if (sent % BATCH == 0)
			signals++;
		while (signals > DEPTH / BATCH / 2)
			signals -= poll_some(a.scq);
	}
	pthread_join(thread, NULL);
	poll_n(a.scq, signals);
	return OPS / (now() - start);
}

static void *echo(void *arg)
{
	int i;

	(void)arg;
	pin(1);
	for (i = 0; i < PINGS; i++) {
		poll_n(b.rcq, 1);
		post_recv(&b);
		post_send(&b, IBV_WR_SEND, true);
		poll_n(b.scq, 1);
	}
	return NULL;
}

/* Half of a round trip, nanoseconds. */
static double send_latency(void)
{
	pthread_t thread;
	double start, end;
	int i;

	post_recv(&b);
	if (pthread_create(&thread, NULL, echo, NULL))
		die("pthread_create");
	start = now();
	for (i = 0; i < PINGS; i++) {
		post_recv(&a);
		post_send(&a, IBV_WR_SEND, true);
		poll_n(a.rcq, 1);
		poll_n(a.scq, 1);
	}
	end = now();
	pthread_join(thread, NULL);
	/* the echo has posted a receive too many: use the receive */
	post_send(&a, IBV_WR_SEND, true);
	poll_n(a.scq, 1);
	poll_n(b.rcq, 1);
	return (end - start) / PINGS / 2 * 1e9;
}

static _Alignas(64) _Atomic uint32_t line;

static void *line_echo(void *arg)
{
	uint32_t i;

	(void)arg;
	pin(1);
	for (i = 0; i < PINGS; i++) {
		/* acquire and release, each pairs with the other thread's */
		while (atomic_load_explicit(&line, memory_order_acquire) !=
		       2 * i + 1)
			;
		atomic_store_explicit(&line, 2 * i + 2, memory_order_release);
	}
	return NULL;
}

static double line_round_trip(void)
{
	pthread_t thread;
	uint32_t i;
	double start, end;

	/* relaxed: the thread is created after this */
	atomic_store_explicit(&line, 0, memory_order_relaxed);
	if (pthread_create(&thread, NULL, line_echo, NULL))
		die("pthread_create");
	start = now();
	for (i = 0; i < PINGS; i++) {
		/* acquire and release, each pairs with the other thread's */
		atomic_store_explicit(&line, 2 * i + 1, memory_order_release);
		while (atomic_load_explicit(&line, memory_order_acquire) !=
		       2 * i + 2)
			;
	}
	end = now();
	pthread_join(thread, NULL);
	return (end - start) / PINGS * 1e9;
}

/* Others in the process, which a deregistration has to do nothing for. */
static void crowd_open(struct ibv_qp **qp)
{
	struct ibv_qp_init_attr init = {
		.send_cq = a.scq,
		.recv_cq = a.rcq,
		.qp_type = IBV_QPT_RC,
		.cap = {1, 1, 1, 1, 0},
	};
	int i;

	for (i = 0; i < CROWD; i++) {
		qp[i] = ibv_create_qp(a.pd, &init);
		if (!qp[i])
			die("ibv_create_qp");
	}
}

/* Nanoseconds of an ibv_dereg_mr() beside so many queue pairs. */
static double dereg_in_a_crowd(void)
{
	static struct ibv_qp *qp[CROWD];
	struct ibv_mr *mr[DEREGS];
	double start, end;
	int i;

	crowd_open(qp);
	for (i = 0; i < DEREGS; i++) {
		mr[i] = ibv_reg_mr(a.pd, a.buf, BUF, IBV_ACCESS_LOCAL_WRITE);
		if (!mr[i])
			die("ibv_reg_mr");
	}
	start = now();
	for (i = 0; i < DEREGS; i++)
		ibv_dereg_mr(mr[i]);
	end = now();
	for (i = 0; i < CROWD; i++)
		ibv_destroy_qp(qp[i]);
	return (end - start) / DEREGS * 1e9;
}

/* An object of each kind, except kinds that take a file descriptor. */
struct set {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static void set_open(struct set *s, const union ibv_gid *gid)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {1, 1, 1, 1, 0},
	};

	to.grh.dgid = *gid;
	s->pd = ibv_alloc_pd(a.ctx);
	s->cq = ibv_create_cq(a.ctx, 1, NULL, NULL, 0);
	if (!s->pd || !s->cq)
		die("objects");
	s->mr = ibv_reg_mr(s->pd, a.buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	s->ah = ibv_create_ah(s->pd, &to);
	s->srq = ibv_create_srq(s->pd, &srq);
	init.srq = s->srq;
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->mr || !s->ah || !s->srq || !s->qp)
		die("objects");
}

static void set_close(struct set *s)
{
	if (ibv_destroy_qp(s->qp) || ibv_destroy_srq(s->srq) ||
	    ibv_destroy_ah(s->ah) || ibv_dereg_mr(s->mr) ||
	    ibv_destroy_cq(s->cq) || ibv_dealloc_pd(s->pd))
		die("the end of an object");
}

/* Nanoseconds in which an object of each kind is made and destroyed. */
static double verbs_alone(void)
{
	union ibv_gid gid;
	struct set s;
	double start;
	int i;

	if (ibv_query_gid(a.ctx, 1, 0, &gid))
		die("ibv_query_gid");
	start = now();
	for (i = 0; i < ROUNDS; i++) {
		set_open(&s, &gid);
		set_close(&s);
	}
	return (now() - start) / ROUNDS * 1e9;
}

static double verbs_in_a_crowd(void)
{
	static struct ibv_qp *qp[CROWD];
	static struct set others[MANY];
	union ibv_gid gid;
	double ns;
	int i;

	if (ibv_query_gid(a.ctx, 1, 0, &gid))
		die("ibv_query_gid");
	crowd_open(qp);
	for (i = 0; i < MANY; i++)
		set_open(&others[i], &gid);
	ns = verbs_alone();
	for (i = 0; i < MANY; i++)
		set_close(&others[i]);
	for (i = 0; i < CROWD; i++)
		ibv_destroy_qp(qp[i]);
	return ns;
}

struct figure {
	const char *name;
	double (*measure)(void);
	bool is_time;
	bool needs_two;
};

static const struct figure figures[] = {
	{"write8_one_thread", write_one_thread, false, false},
	{"send8_one_thread", send_one_thread, false, false},
	{"send8_two_threads", send_two_threads, false, true},
	{"send8_latency", send_latency, true, true},
	{"dereg_20000_qps", dereg_in_a_crowd, true, false},
	{"verbs_20000_qps", verbs_in_a_crowd, true, false},
	{"verbs_alone", verbs_alone, true, false},
	{"cache_line_round_trip", line_round_trip, true, true},
};

/* Prints the best of a few runs: disturbances only make a run slower. */
static void report(const struct figure *figure, int repeats)
{
	double best = 0, value;
	int i;

	for (i = 0; i < repeats; i++) {
		value = figure->measure();
		if (!i || (figure->is_time ? value < best : value > best))
			best = value;
	}
	if (figure->is_time)
		printf("%s %.0f ns\n", figure->name, best);
	else
		printf("%s %.2f Mops/s\n", figure->name, best * 1e-6);
	fflush(stdout);
}

/* Parses the options of every measuring program, then the name of a figure, or
 * no name for all; the number of operations is fixed, so --seconds is accepted
 * and unused. */
static const char *parse(int argc, char **argv)
{
	int i;

	for (i = 1; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (!strcmp(argv[i], "--cpus") &&
		    sscanf(argv[i + 1], "%d,%d", &cpus[0], &cpus[1]) != 2)
			die("--cpus takes two numbers");
	}
	return i < argc ? argv[i] : NULL;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const char *only = parse(argc, argv);
	size_t i;
	int measured = 0;

	if (!list || !list[0]) {
		fprintf(stderr, "no verbs device\n");
		return 77;
	}
	open_end(&a, list[0]);
	open_end(&b, list[0]);
	connect_end(&a, &b);
	connect_end(&b, &a);
	pin(0);
	for (i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		if (only && strcmp(only, figures[i].name))
			continue;
		if (figures[i].needs_two && sysconf(_SC_NPROCESSORS_ONLN) < 2) {
			fprintf(stderr, "%s: needs two processors\n",
				figures[i].name);
			if (only)
				return 77;
			continue;
		}
		report(&figures[i], only ? 1 : REPEATS);
		measured++;
	}
	if (!measured) {
		fprintf(stderr, "no figure \"%s\"\n", only);
		return 2;
	}
	return 0;
}
