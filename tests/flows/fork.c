/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A child forked while threads of its parent are inside the library: calls on
 * inherited objects return an error and leave the device alone, objects made by
 * the child work, and the parent goes on.
 */

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define PATIENCE_S 300 /* ends a hang, decides nothing else */
#define SKIPPED	   77

/*
 * An assertion of cmocka leads back to the runner of the parent; so a child
 * prints its failures, and the parent sees the status.
 */
#define child_ok(call)		 child_is(call, 0)
#define child_is(call, expected) child_expect(call, expected, #call, __LINE__)

static void child_expect(int ret, int expected, const char *what, int line)
{
	if (ret == expected)
		return;
	fprintf(stderr, "in the child, line %d: %s: %s\n", line, what,
		rpma_err_2str(ret));
	_exit(1);
}

/* Returns the exit status of the child; SKIPPED: the child has printed why. */
static int exit_of_child(void (*body)(void *arg), void *arg)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(PATIENCE_S);
		body(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFSIGNALED(status))
		fprintf(stderr, "the child died of signal %d\n",
			WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void run_child(void (*body)(void *arg), void *arg)
{
	assert_int_equal(exit_of_child(body, arg), 0);
}

/* ---- every object of a process ---- */

struct all {
	struct ibv_context *ctx;
	struct pair pair;
	struct rpma_conn_req *req;
	struct rpma_srq *srq;
	struct rpma_channel *channel;
	struct rpma_cm_channel *cm_channel;
	struct rpma_cq *cq;
	struct rpma_conn_cfg *cfg;
	struct rpma_srq_cfg *srq_cfg;
	struct ibv_cq *ibv_cq;
	struct rpma_peer *peer;
};

static void open_all(struct all *all)
{
	memset(all, 0, sizeof(*all));
	ok(rpma_peer_get_ibv_context(the_peer, &all->ctx));
	ok(rpma_peer_new(all->ctx, &all->peer));
	pair_open(&all->pair);
	ok(rpma_conn_req_new(the_peer, the_addr, "7999", NULL, &all->req));
	ok(rpma_srq_new(the_peer, NULL, &all->srq));
	ok(rpma_channel_new(all->ctx, &all->channel));
	ok(rpma_cm_channel_new(&all->cm_channel));
	ok(rpma_cq_new(all->ctx, 4, all->channel, 0, NULL, &all->cq));
	ok(rpma_cq_get_ibv_cq(all->cq, &all->ibv_cq));
	ok(rpma_conn_cfg_new(&all->cfg));
	ok(rpma_srq_cfg_new(&all->srq_cfg));
}

static void close_all(struct all *all)
{
	ok(rpma_srq_cfg_delete(&all->srq_cfg));
	ok(rpma_conn_cfg_delete(&all->cfg));
	ok(rpma_cq_delete(&all->cq));
	ok(rpma_cm_channel_delete(&all->cm_channel));
	ok(rpma_channel_delete(&all->channel));
	ok(rpma_srq_delete(&all->srq));
	ok(rpma_conn_req_delete(&all->req));
	pair_close(&all->pair);
	ok(rpma_peer_delete(&all->peer));
}

/* ---- inherited objects ---- */

#define refused(call) child_is(call, RPMA_E_FORKED)

static void connection_is_refused(struct side *side)
{
	struct rpma_conn_private_data data;
	struct rpma_conn *conn = side->conn;
	struct rpma_mr_remote *remote = side->remote;
	struct rpma_mr_local *mr = side->mr;
	struct rpma_send_wr wr;
	struct rpma_send_wr *bad;
	struct rpma_recv_wr recv;
	struct rpma_recv_wr *bad_recv;
	struct rpma_peer_cfg *pcfg = NULL;
	enum rpma_conn_event event;
	const char src[8] = {0};
	struct rdma_cm_id *id;
	struct rpma_cq *cq;
	struct ibv_qp *qp;
	uint32_t num;
	int fd;

	refused(rpma_conn_get_event_fd(conn, &fd));
	refused(rpma_conn_next_event(conn, &event));
	refused(rpma_conn_get_private_data(conn, &data));
	refused(rpma_conn_get_qp_num(conn, &num));
	refused(rpma_conn_get_cq(conn, &cq));
	refused(rpma_conn_get_rcq(conn, &cq));
	refused(rpma_conn_get_compl_fd(conn, &fd));
	refused(rpma_conn_wait(conn, 0, &cq, NULL));
	refused(rpma_conn_disconnect(conn));
	refused(rpma_conn_get_qp(conn, &qp));
	refused(rpma_conn_get_cm_id(conn, &id));
	refused(rpma_conn_claim(conn, &fd));
	refused(rpma_conn_release(conn, &fd));
	refused(rpma_conn_qp_to_err(conn, NULL));
	refused(rpma_conn_destroy_qp(conn, NULL));
	child_ok(rpma_peer_cfg_new(&pcfg));
	refused(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
	child_ok(rpma_peer_cfg_delete(&pcfg));
	refused(rpma_read(conn, mr, 0, remote, 0, 1, 1, NULL));
	refused(rpma_write(conn, remote, 0, mr, 0, 1, 1, NULL));
	refused(rpma_write_with_imm(conn, remote, 0, mr, 0, 1, 1, 1, NULL));
	refused(rpma_atomic_write(conn, remote, 0, src, 1, NULL));
	refused(rpma_flush(conn, remote, 0, 1, RPMA_FLUSH_TYPE_VISIBILITY, 1,
			   NULL));
	refused(rpma_send(conn, mr, 0, 1, 1, NULL));
	refused(rpma_send_with_imm(conn, mr, 0, 1, 1, 1, NULL));
	refused(rpma_recv(conn, mr, 0, 1, NULL));
	refused(rpma_wr_send(conn, mr, 0, 1, 1, 1, &wr));
	memset(&wr, 0, sizeof(wr));
	refused(rpma_conn_post_send(conn, NULL, &wr, &bad));
	child_ok(rpma_wr_recv(NULL, 0, 0, 1, &recv));
	refused(rpma_conn_post_recv(conn, NULL, &recv, &bad_recv));
}

static void region_is_refused(struct rpma_mr_local *mr)
{
	char desc[32];
	size_t size;
	uint32_t key;
	void *ptr;

	refused(rpma_mr_get_ptr(mr, &ptr));
	refused(rpma_mr_get_size(mr, &size));
	refused(rpma_mr_get_lkey(mr, &key));
	refused(rpma_mr_get_descriptor(mr, desc));
	refused(rpma_mr_get_descriptor_size(mr, &size));
	refused(rpma_mr_advise(mr, 0, 1, 0, 0));
}

static void cq_is_refused(struct all *all)
{
	struct ibv_comp_channel *ibv_channel;
	struct rpma_cq *cq;
	struct ibv_cq *ibv_cq;
	struct ibv_wc wc;
	void *context;
	int fd;

	refused(rpma_cq_get_fd(all->cq, &fd));
	refused(rpma_cq_wait(all->cq));
	refused(rpma_cq_get_wc(all->cq, 1, &wc, NULL));
	refused(rpma_cq_arm(all->cq, false));
	refused(rpma_cq_ack(all->cq, 0));
	refused(rpma_cq_get_context(all->cq, &context));
	refused(rpma_cq_get_ibv_cq(all->cq, &ibv_cq));
	refused(rpma_cq_from_ibv_cq(all->ibv_cq, &cq));
	refused(rpma_cq_claim(all->cq, &fd));
	refused(rpma_cq_release(all->cq, &fd));
	refused(rpma_channel_get_fd(all->channel, &fd));
	refused(rpma_channel_get_ibv_channel(all->channel, &ibv_channel));
	refused(rpma_channel_wait(all->channel, &cq));
}

static void listening_is_refused(struct all *all)
{
	struct rpma_ep *ep = all->pair.ep;
	struct rpma_cm_event event = {0};
	struct rpma_conn_req *req = NULL;
	struct rpma_recv_wr recv;
	struct rpma_recv_wr *bad;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	uint16_t port;
	int fd;

	refused(rpma_ep_get_fd(ep, &fd));
	refused(rpma_ep_get_port(ep, &port));
	refused(rpma_ep_next_conn_req(ep, NULL, &req));
	refused(rpma_cm_channel_get_fd(all->cm_channel, &fd));
	refused(rpma_cm_channel_get_event(all->cm_channel, &event));
	refused(rpma_conn_req_recv(all->req, all->pair.client.mr, 0, 1, NULL));
	child_ok(rpma_wr_recv(NULL, 0, 0, 1, &recv));
	refused(rpma_conn_req_post_recv(all->req, NULL, &recv, &bad));
	refused(rpma_conn_req_get_qp(all->req, &qp));
	refused(rpma_conn_req_get_cm_id(all->req, &id));
	refused(rpma_conn_req_claim(all->req, &fd));
	refused(rpma_conn_req_release(all->req, &fd));
	refused(rpma_conn_req_qp_to_err(all->req, NULL));
	refused(rpma_conn_req_destroy_qp(all->req, NULL));
	refused(rpma_conn_req_advance(all->req, &event));
}

static void making_from_it_is_refused(struct all *all)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct rpma_conn_req *req = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_cq *cq = NULL;
	struct rpma_ep *ep = NULL;
	struct ibv_context *ctx;

	refused(rpma_peer_get_ibv_context(the_peer, &ctx));
	refused(rpma_mr_reg(the_peer, all, 1, RPMA_MR_USAGE_SEND, &mr));
	refused(rpma_srq_new(the_peer, NULL, &srq));
	refused(rpma_ep_listen(the_peer, the_addr, "7204", &ep));
	refused(rpma_conn_req_new(the_peer, the_addr, "7204", NULL, &req));
	refused(rpma_conn_req_new_from_event(the_peer, &event, NULL, NULL,
					     &req));
	refused(rpma_cq_new(all->ctx, 4, all->channel, 0, NULL, &cq));
	refused(rpma_srq_recv(all->srq, NULL, 0, 0, NULL));
	refused(rpma_srq_get_rcq(all->srq, &cq));
}

/*
 * Deletes inherited objects; the objects of the parent are unharmed, as the
 * parent sees afterwards.
 */
static void deleting_is_refused_and_frees(struct all *all)
{
	struct rpma_conn *conn = NULL;

	refused(rpma_conn_req_connect(&all->req, NULL, &conn));
	refused(all->req ? 0 : RPMA_E_FORKED);
	refused(rpma_cq_delete(&all->cq));
	refused(rpma_channel_delete(&all->channel));
	refused(rpma_cm_channel_delete(&all->cm_channel));
	refused(rpma_srq_delete(&all->srq));
	refused(rpma_conn_delete(&all->pair.client.conn));
	refused(rpma_conn_delete(&all->pair.server.conn));
	refused(rpma_mr_dereg(&all->pair.client.mr));
	refused(rpma_mr_dereg(&all->pair.server.mr));
	refused(rpma_ep_shutdown(&all->pair.ep));
	refused(rpma_peer_delete(&all->peer));
	child_is(all->cq || all->channel || all->cm_channel || all->srq, 0);
	child_is(all->pair.client.conn || all->pair.server.conn, 0);
	child_is(all->pair.client.mr || all->pair.ep || all->peer, 0);
	/* objects that are only memory belong to the child */
	child_ok(rpma_mr_remote_delete(&all->pair.client.remote));
	child_ok(rpma_conn_cfg_delete(&all->cfg));
	child_ok(rpma_srq_cfg_delete(&all->srq_cfg));
}

static void inherits(void *arg)
{
	struct all *all = arg;

	connection_is_refused(&all->pair.client);
	connection_is_refused(&all->pair.server);
	region_is_refused(all->pair.client.mr);
	cq_is_refused(all);
	listening_is_refused(all);
	making_from_it_is_refused(all);
	deleting_is_refused_and_frees(all);
}

TEST(inherited__IS_REFUSED_AND_LEFT_ALONE)
{
	struct all all;

	open_all(&all);
	run_child(inherits, &all);
	/* twice: the first child took nothing from anybody */
	run_child(inherits, &all);
	ok(rpma_recv(all.pair.server.conn, NULL, 0, 0, NULL));
	ok(rpma_send(all.pair.client.conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS,
		     NULL));
	expect_done(&all.pair.client, 0, IBV_WC_SEND);
	expect_done(&all.pair.server, 0, IBV_WC_RECV);
	close_all(&all);
}

/* A configuration made by the child that names inherited objects. */
static void names_inherited(void *arg)
{
	struct all *all = arg;
	struct ibv_context *ctx = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_conn_req *req = NULL;

	child_ok(rpma_utils_get_ibv_context(the_addr,
					    RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	child_ok(rpma_peer_new(ctx, &peer));
	child_ok(rpma_conn_cfg_set_cq(all->cfg, all->cq));
	refused(rpma_conn_req_new(peer, the_addr, "7999", all->cfg, &req));
	child_ok(rpma_conn_cfg_set_cq(all->cfg, NULL));
	child_ok(rpma_conn_cfg_set_rcq(all->cfg, all->cq));
	refused(rpma_conn_req_new(peer, the_addr, "7999", all->cfg, &req));
	child_ok(rpma_conn_cfg_set_rcq(all->cfg, NULL));
	child_ok(rpma_conn_cfg_set_channel(all->cfg, all->channel));
	refused(rpma_conn_req_new(peer, the_addr, "7999", all->cfg, &req));
	child_ok(rpma_conn_cfg_set_channel(all->cfg, NULL));
	child_ok(rpma_conn_cfg_set_srq(all->cfg, all->srq));
	refused(rpma_conn_req_new(peer, the_addr, "7999", all->cfg, &req));
	child_ok(rpma_conn_cfg_set_cm_channel(all->cfg, all->cm_channel));
	refused(rpma_conn_req_new_async(peer, the_addr, "7999", all->cfg, NULL,
					&req));
	refused(rpma_ep_listen_ex(peer, the_addr, "7204", 0, all->cm_channel,
				  NULL, &ep));
	child_ok(rpma_srq_cfg_set_rcq(all->srq_cfg, all->cq));
	refused(rpma_srq_new(peer, all->srq_cfg, &srq));
	child_ok(rpma_srq_cfg_set_rcq(all->srq_cfg, NULL));
	child_ok(rpma_srq_cfg_set_channel(all->srq_cfg, all->channel));
	refused(rpma_srq_new(peer, all->srq_cfg, &srq));
	child_ok(rpma_peer_delete(&peer));
}

TEST(inherited__named_by_a_cfg_IS_REFUSED)
{
	struct all all;

	open_all(&all);
	run_child(names_inherited, &all);
	close_all(&all);
}

/* ---- objects made in the child ---- */

/*
 * The doorbell of Soft-RoCE is a write to the device, which the kernel refuses
 * to all processes but the process that opened the device; and librdmacm opens
 * each device once.
 */
static bool is_refused_by_kernel(struct rpma_conn *conn)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	struct ibv_qp *qp = NULL;
	int ret;

	child_ok(rpma_conn_get_qp(conn, &qp));
	ret = ibv_post_send(qp, &wr, &bad);
	if (ret == 0)
		return false;
	fprintf(stderr, "in the child: posting: %s\n", strerror(ret));
	return ret == EACCES;
}

/* Opens a device, makes a connection, sends a message. */
static void lives(void *arg)
{
	struct ibv_context *ctx = NULL;
	struct pair pair;

	(void)arg;
	the_peer = NULL;
	if (rpma_utils_get_ibv_context(the_addr, RPMA_UTIL_IBV_CONTEXT_LOCAL,
				       &ctx) ||
	    ctx == NULL)
		_exit(SKIPPED);
	child_ok(rpma_peer_new(ctx, &the_peer));
	pair_open(&pair);
	child_ok(rpma_recv(pair.server.conn, NULL, 0, 0, NULL));
	child_ok(rpma_recv(pair.server.conn, NULL, 0, 0, NULL));
	if (is_refused_by_kernel(pair.client.conn))
		_exit(SKIPPED);
	expect_done(&pair.server, 0, IBV_WC_RECV);
	expect_done(&pair.client, 0, IBV_WC_SEND);
	child_ok(rpma_send(pair.client.conn, NULL, 0, 0,
			   RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_done(&pair.server, 0, IBV_WC_RECV);
	expect_done(&pair.client, 0, IBV_WC_SEND);
	pair_close(&pair);
	child_ok(rpma_peer_delete(&the_peer));
}

/* ---- threads of the parent inside the library during the fork ---- */

struct waiter {
	pthread_t thread;
	atomic_int tid; /* 0: does not run yet */
	struct pair *pair;
	int ret;
};

static void set_tid(struct waiter *waiter)
{
	/* release: pairs with the acquire in wait_until_asleep() */
	atomic_store_explicit(&waiter->tid, gettid(), memory_order_release);
}

static void *wait_for_completion(void *arg)
{
	struct waiter *waiter = arg;
	struct rpma_cq *cq = NULL;

	if (rpma_conn_get_cq(waiter->pair->server.conn, &cq))
		return NULL;
	set_tid(waiter);
	waiter->ret = rpma_cq_wait(cq);
	return NULL;
}

static void *wait_for_event(void *arg)
{
	struct waiter *waiter = arg;
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	set_tid(waiter);
	waiter->ret = rpma_conn_next_event(waiter->pair->server.conn, &event);
	if (waiter->ret == 0 && event != RPMA_CONN_CLOSED)
		waiter->ret = RPMA_E_UNKNOWN;
	return NULL;
}

static void *wait_for_request(void *arg)
{
	struct waiter *waiter = arg;
	struct rpma_conn_req *req = NULL;

	set_tid(waiter);
	waiter->ret = rpma_ep_next_conn_req(waiter->pair->ep, NULL, &req);
	if (waiter->ret == 0)
		waiter->ret = rpma_conn_req_delete(&req);
	return NULL;
}

/* Waits until the kernel says that the thread sleeps, inside the call. */
static void wait_until_asleep(struct waiter *waiter)
{
	char path[64];
	char state = 'R';
	int tid = 0;
	FILE *stat;

	while (tid == 0)
		/* acquire: pairs with the release in set_tid() */
		tid = atomic_load_explicit(&waiter->tid, memory_order_acquire);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (state != 'S') {
		stat = fopen(path, "r");
		assert_non_null(stat);
		assert_int_equal(fscanf(stat, "%*d (%*[^)]) %c", &state), 1);
		fclose(stat);
	}
}

static void start(struct waiter *waiter, struct pair *pair,
		  void *(*body)(void *arg))
{
	waiter->pair = pair;
	waiter->ret = RPMA_E_UNKNOWN;
	atomic_init(&waiter->tid, 0);
	ok(pthread_create(&waiter->thread, NULL, body, waiter));
	wait_until_asleep(waiter);
}

static void finish(struct waiter *waiter)
{
	ok(pthread_join(waiter->thread, NULL));
	ok(waiter->ret);
}

/* Returns the exit status of the child. */
static int fork_while_blocked(void (*body)(void *arg))
{
	struct rpma_conn_req *req = NULL;
	struct waiter waiters[3];
	struct all all;
	uint16_t port = 0;
	char number[8];
	int status;

	open_all(&all);
	start(&waiters[0], &all.pair, wait_for_completion);
	start(&waiters[1], &all.pair, wait_for_event);
	start(&waiters[2], &all.pair, wait_for_request);
	status = exit_of_child(body, &all);

	/* each thread is still inside, and gets its event */
	ok(rpma_recv(all.pair.server.conn, NULL, 0, 0, NULL));
	ok(rpma_send(all.pair.client.conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS,
		     NULL));
	finish(&waiters[0]);
	expect_done(&all.pair.client, 0, IBV_WC_SEND);
	ok(rpma_ep_get_port(all.pair.ep, &port));
	snprintf(number, sizeof(number), "%u", port);
	ok(rpma_conn_req_new(the_peer, the_addr, number, NULL, &req));
	ok(rpma_conn_disconnect(all.pair.client.conn));
	finish(&waiters[1]);
	{
		struct rpma_conn *conn = NULL;

		ok(rpma_conn_req_connect(&req, NULL, &conn));
		finish(&waiters[2]);
		expect_event(conn, RPMA_CONN_REJECTED);
		ok(rpma_conn_delete(&conn));
	}
	close_all(&all);
	return status;
}

TEST(blocked__inherited_IS_REFUSED)
{
	assert_int_equal(fork_while_blocked(inherits), 0);
}

/* The thread sanitizer allows no threads in a child of several threads, and the
 * loopback device has a thread for its links. */
static bool is_without_threads(void)
{
#ifdef __SANITIZE_THREAD__
	return true;
#else
	return false;
#endif
}

TEST(blocked__new_ones_WORK)
{
	int status;

	if (is_without_threads())
		skip();
	status = fork_while_blocked(lives);
	if (status == SKIPPED)
		skip();
	assert_int_equal(status, 0);
}

/* ---- no thread logs during a fork ---- */

static int forks = 100; /* unless told otherwise */
static atomic_bool enough;

/* A call that only logs, without a device. */
static void log_something(struct ibv_context *ctx)
{
	struct rpma_cq *cq = NULL;

	(void)rpma_cq_new(ctx, 0, NULL, 0, NULL, &cq);
}

static void *log_all_the_time(void *arg)
{
	/* relaxed: only ends the loop */
	while (!atomic_load_explicit(&enough, memory_order_relaxed))
		log_something(arg);
	return NULL;
}

static void logs(void *arg)
{
	log_something(arg);
}

TEST(logging__forked_CHILD_LOGS_TOO)
{
	struct ibv_context *ctx = NULL;
	pthread_t thread[2];
	int i;

	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED));
	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	for (i = 0; i < 2; i++)
		ok(pthread_create(&thread[i], NULL, log_all_the_time, ctx));
	for (i = 0; i < forks; i++)
		run_child(logs, ctx);
	/* relaxed: as in log_all_the_time() */
	atomic_store_explicit(&enough, true, memory_order_relaxed);
	for (i = 0; i < 2; i++)
		ok(pthread_join(thread[i], NULL));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX,
				  RPMA_LOG_LEVEL_FATAL));
}

int main(int argc, char **argv)
{
	int status;
	if (argc > 1)
		forks = atoi(argv[1]);
	if (getenv("RPMA_TEST_ADDR"))
		the_addr = getenv("RPMA_TEST_ADDR");
	/* before this process has opened a device: works everywhere */
	status = exit_of_child(lives, NULL);
	if (status != 0 && status != SKIPPED) {
		fprintf(stderr, "the child of a fresh process has failed\n");
		return 1;
	}
	return pair_main("tests", tests_listed, tests_count);
}
