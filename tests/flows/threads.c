/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Many threads at once: on one peer, registering and deregistering; on one
 * endpoint, each making connections; on one connection, posting and polling,
 * also during a disconnect; setting, reading and using one configuration; the
 * log. The argument is the number of rounds, for slow machines.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define THREADS_MAX 8
#define ROUNDS	    40 /* unless told otherwise */

static int rounds = ROUNDS;
static int threads = THREADS_MAX;

/*
 * An assertion of cmocka belongs to the thread of the runner: other threads
 * count errors.
 */
static atomic_int wrong;
#define expect(what) ((what) ? (void)0 : report(#what, __LINE__))

static void report(const char *what, int line)
{
	fprintf(stderr, "line %d: not so: %s\n", line, what);
	/* relaxed: read when the threads are joined */
	atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
}

struct crowd {
	pthread_barrier_t start;
	void (*body)(void *arg, int number);
	void *arg;
};

struct member {
	pthread_t thread;
	struct crowd *crowd;
	int number;
};

static void *run_member(void *arg)
{
	struct member *member = arg;

	pthread_barrier_wait(&member->crowd->start);
	member->crowd->body(member->crowd->arg, member->number);
	return NULL;
}

/* Each of them runs body, all at once. */
static void run_crowd(void (*body)(void *arg, int number), void *arg)
{
	struct member members[THREADS_MAX];
	struct crowd crowd = {.body = body, .arg = arg};
	int i;

	ok(pthread_barrier_init(&crowd.start, NULL, (unsigned)threads));
	for (i = 0; i < threads; i++) {
		members[i] = (struct member){.crowd = &crowd, .number = i};
		ok(pthread_create(&members[i].thread, NULL, run_member,
				  &members[i]));
	}
	for (i = 0; i < threads; i++)
		ok(pthread_join(members[i].thread, NULL));
	ok(pthread_barrier_destroy(&crowd.start));
	/* relaxed: the threads are joined; the next test begins anew */
	assert_int_equal(
		atomic_exchange_explicit(&wrong, 0, memory_order_relaxed), 0);
}

/* ---- a shared peer ---- */

static void register_and_forget(void *arg, int number)
{
	const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST;
	struct rpma_mr_remote *remote = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_srq *srq = NULL;
	char mem[256];
	char desc[32];
	size_t size;
	int i;

	(void)arg;
	for (i = 0; i < rounds; i++) {
		size_t len = (size_t)(1 + (i + number) % 200);

		expect(rpma_mr_reg(the_peer, mem, len, usage, &mr) == 0);
		expect(rpma_mr_get_descriptor(mr, desc) == 0);
		expect(rpma_mr_remote_from_descriptor(desc, sizeof(desc),
						      &remote) == 0);
		expect(rpma_mr_remote_get_size(remote, &size) == 0);
		expect(size == len);
		expect(rpma_mr_remote_delete(&remote) == 0);
		expect(rpma_mr_dereg(&mr) == 0);
		expect(rpma_srq_new(the_peer, NULL, &srq) == 0);
		expect(rpma_srq_delete(&srq) == 0);
	}
}

TEST(peer__REGISTERS_FOR_MANY)
{
	run_crowd(register_and_forget, NULL);
}

/* ---- a shared endpoint and configuration ---- */

struct host {
	struct rpma_ep *ep;
	char port[8];
	struct rpma_conn_cfg *cfg;
	pthread_barrier_t established;
};

/* Accepts any request: each thread accepts as many as it makes. */
static struct rpma_conn *accept_any(struct host *host)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	expect(rpma_ep_next_conn_req(host->ep, host->cfg, &req) == 0);
	expect(rpma_conn_req_recv(req, NULL, 0, 0, NULL) == RPMA_E_INVAL);
	expect(rpma_conn_req_connect(&req, NULL, &conn) == 0);
	return conn;
}

static void expect_next(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	expect(rpma_conn_next_event(conn, &event) == 0);
	expect(event == expected);
}

static void connect_one(struct host *host, int number)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *active = NULL;
	struct rpma_conn *passive;
	uint32_t size = 0;

	expect(rpma_conn_cfg_set_sq_size(host->cfg, 10U + (unsigned)number) ==
	       0);
	expect(rpma_conn_cfg_get_sq_size(host->cfg, &size) == 0);
	expect(size >= 10 && size < 10 + THREADS_MAX);
	expect(rpma_conn_req_new(the_peer, the_addr, host->port, host->cfg,
				 &req) == 0);
	expect(rpma_conn_req_connect(&req, NULL, &active) == 0);
	passive = accept_any(host);
	expect_next(active, RPMA_CONN_ESTABLISHED);
	expect_next(passive, RPMA_CONN_ESTABLISHED);
	/*
	 * Another thread closes the other side, but not before both sides are
	 * established: a disconnect can overtake the end of the handshake.
	 */
	pthread_barrier_wait(&host->established);
	expect(rpma_conn_disconnect(active) == 0);
	expect(rpma_conn_delete(&active) == 0);
	expect(rpma_conn_delete(&passive) == 0);
}

static void connect_many(void *arg, int number)
{
	int i;

	for (i = 0; i < rounds; i++)
		connect_one(arg, number);
}

TEST(endpoint__CONNECTS_IN_PARALLEL)
{
	struct host host = {.ep = pair_listen(host.port)};

	ok(rpma_conn_cfg_new(&host.cfg));
	ok(pthread_barrier_init(&host.established, NULL, (unsigned)threads));
	run_crowd(connect_many, &host);
	ok(pthread_barrier_destroy(&host.established));
	ok(rpma_conn_cfg_delete(&host.cfg));
	ok(rpma_ep_shutdown(&host.ep));
}

/* ---- private data ---- */

#define WELCOME "the data of the other side"

/* A thread takes the event with the data, the others look for the data. */
static void take_or_look(void *arg, int number)
{
	struct rpma_conn_private_data data = {0};
	struct rpma_conn *conn = arg;

	if (number == 0)
		expect_next(conn, RPMA_CONN_ESTABLISHED);
	while (data.ptr == NULL) {
		expect(rpma_conn_get_private_data(conn, &data) == 0);
		expect((data.ptr == NULL) == (data.len == 0));
	}
	/* a device may pad the data */
	expect(data.len >= sizeof(WELCOME));
	expect(memcmp(data.ptr, WELCOME, sizeof(WELCOME)) == 0);
}

TEST(private_data__READ_BESIDE_THE_EVENT)
{
	char bytes[] = WELCOME;
	struct rpma_conn_private_data data = {bytes, sizeof(bytes)};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *passive = NULL;
	struct rpma_conn *active = NULL;
	struct rpma_ep *ep;
	char port[8];

	ep = pair_listen(port);
	ok(rpma_conn_req_new(the_peer, the_addr, port, NULL, &req));
	ok(rpma_conn_req_connect(&req, NULL, &active));
	ok(rpma_ep_next_conn_req(ep, NULL, &req));
	ok(rpma_conn_req_connect(&req, &data, &passive));
	run_crowd(take_or_look, active);
	expect_next(passive, RPMA_CONN_ESTABLISHED);
	ok(rpma_conn_disconnect(active));
	ok(rpma_conn_delete(&active));
	ok(rpma_conn_delete(&passive));
	ok(rpma_ep_shutdown(&ep));
}

/* ---- a shared connection ---- */

#define WINDOW 2 /* of a thread */

struct line {
	struct pair pair;
	atomic_int taken[THREADS_MAX]; /* completions of each thread's writes */
};

/* Takes any completion, and counts the completion for its poster. */
static void take_one(struct line *line, struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int ret = rpma_cq_get_wc(cq, 1, &wc, NULL);

	if (ret == RPMA_E_NO_COMPLETION)
		return;
	expect(ret == 0 && wc.status == IBV_WC_SUCCESS);
	/* release: pairs with the acquire in write_many() */
	atomic_fetch_add_explicit(&line->taken[wc.wr_id], 1,
				  memory_order_release);
}

static void write_many(void *arg, int number)
{
	struct line *line = arg;
	struct side *side = &line->pair.client;
	struct rpma_cq *cq = NULL;
	size_t at = (size_t)number * 64;
	int sent;

	expect(rpma_conn_get_cq(side->conn, &cq) == 0);
	for (sent = 0; sent < rounds; sent++) {
		expect(rpma_write(side->conn, side->remote, at, side->mr, at, 8,
				  RPMA_F_COMPLETION_ALWAYS,
				  (void *)(uintptr_t)number) == 0);
		/* acquire: pairs with the release in take_one() */
		while (atomic_load_explicit(&line->taken[number],
					    memory_order_acquire) <
		       sent + 2 - WINDOW)
			take_one(line, cq);
	}
	/* acquire: as above */
	while (atomic_load_explicit(&line->taken[number],
				    memory_order_acquire) < rounds)
		take_one(line, cq);
}

TEST(connection__POSTS_AND_POLLS_FOR_MANY)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};
	struct line line = {0};

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_sq_size(cfg, THREADS_MAX * WINDOW));
	ok(rpma_conn_cfg_set_cq_size(cfg, THREADS_MAX * WINDOW));
	how.client_cfg = cfg;
	pair_open_how(&line.pair, &how);
	run_crowd(write_many, &line);
	pair_close(&line.pair);
	ok(rpma_conn_cfg_delete(&cfg));
}

/* ---- a connection ended by a thread ---- */

struct end {
	struct pair pair;
	atomic_int posted;
	atomic_bool is_over;
};

static void write_until_over(struct end *end)
{
	struct side *side = &end->pair.client;
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	int ret;

	expect(rpma_conn_get_cq(side->conn, &cq) == 0);
	/* relaxed: no other read depends on the flag */
	while (!atomic_load_explicit(&end->is_over, memory_order_relaxed)) {
		/* a full queue is an error of the provider */
		ret = rpma_write(side->conn, side->remote, 0, side->mr, 64, 8,
				 RPMA_F_COMPLETION_ALWAYS, NULL);
		expect(ret == 0 || ret == RPMA_E_PROVIDER);
		/* relaxed: a count */
		if (ret == 0)
			atomic_fetch_add_explicit(&end->posted, 1,
						  memory_order_relaxed);
		ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
		expect(ret == 0 || ret == RPMA_E_NO_COMPLETION);
		expect(ret != 0 || wc.status == IBV_WC_SUCCESS ||
		       wc.status == IBV_WC_WR_FLUSH_ERR);
	}
}

static void write_or_disconnect(void *arg, int number)
{
	struct end *end = arg;

	if (number > 0) {
		write_until_over(end);
		return;
	}
	/* relaxed: a count; no wait if this thread is alone */
	while (threads > 1 &&
	       atomic_load_explicit(&end->posted, memory_order_relaxed) < 10)
		sched_yield();
	expect(rpma_conn_disconnect(end->pair.client.conn) == 0);
	/* relaxed: like the read */
	atomic_store_explicit(&end->is_over, true, memory_order_relaxed);
}

TEST(connection__IS_DISCONNECTED_UNDER_POSTERS)
{
	struct end end = {0};

	pair_open(&end.pair);
	/* of the full queues */
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_FATAL));
	run_crowd(write_or_disconnect, &end);
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING));
	pair_close(&end.pair);
}

/* ---- a shared channel ---- */

struct desk {
	struct pair pair;
	struct rpma_channel *channel;
	struct rpma_cq *cq; /* of both sides */
	atomic_int served;
};

/* Takes an event of the channel, and all completions. */
static void desk_serve(struct desk *desk)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	int ret = rpma_channel_wait(desk->channel, &cq);

	if (ret == RPMA_E_NO_COMPLETION) {
		sched_yield();
		return;
	}
	expect(ret == 0 && cq == desk->cq);
	/* Soft-RoCE arms by a system call, which the kernel refuses while
	 * another thread destroys the CQ */
	do {
		ret = rpma_cq_arm(desk->cq, false);
	} while (ret == RPMA_E_PROVIDER && errno == EBUSY);
	expect(ret == 0);
	/* release: pairs with the acquire in desk_served() */
	while (rpma_cq_get_wc(desk->cq, 1, &wc, NULL) == 0)
		atomic_fetch_add_explicit(&desk->served, 1,
					  memory_order_release);
}

static int desk_served(struct desk *desk)
{
	/* acquire: pairs with the release in desk_serve() */
	return atomic_load_explicit(&desk->served, memory_order_acquire);
}

/* A thread sends, another serves the channel, a third tries to delete the CQ,
 * which the connections use. */
static void send_serve_or_delete(void *arg, int number)
{
	struct desk *desk = arg;
	struct rpma_cq *cq = desk->cq;
	int sent;

	for (sent = 0; number == 0 && sent < rounds; sent++) {
		expect(rpma_recv(desk->pair.server.conn, NULL, 0, 0, NULL) ==
		       0);
		expect(rpma_send(desk->pair.client.conn, NULL, 0, 0,
				 RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
		while (desk_served(desk) < 2 * (sent + 1))
			sched_yield();
	}
	while (number == 1 && desk_served(desk) < 2 * rounds)
		desk_serve(desk);
	while (number == 2 && desk_served(desk) < 2 * rounds) {
		expect(rpma_cq_delete(&cq) == RPMA_E_AGAIN);
		sched_yield();
	}
}

TEST(channel__LOSES_NO_EVENT_BY_A_REFUSED_DELETE)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct ibv_context *ctx = NULL;
	struct pair_how how = {0};
	struct desk desk = {0};
	int fd = -1;

	if (threads < 3)
		skip();
	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	ok(rpma_channel_new(ctx, &desk.channel));
	ok(rpma_channel_get_fd(desk.channel, &fd));
	set_nonblocking(fd);
	ok(rpma_cq_new(ctx, 64, desk.channel, 0, NULL, &desk.cq));
	ok(rpma_cq_arm(desk.cq, false));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, desk.cq));
	how.client_cfg = cfg;
	how.server_cfg = cfg;
	pair_open_how(&desk.pair, &how);
	run_crowd(send_serve_or_delete, &desk);
	pair_close(&desk.pair);
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rpma_cq_delete(&desk.cq));
	ok(rpma_channel_delete(&desk.channel));
}

/* ---- a shared SRQ ---- */

static void receive_many(void *arg, int number)
{
	int i;

	for (i = 0; i < 2; i++)
		expect(rpma_srq_recv(arg, NULL, 0, 0,
				     (void *)(uintptr_t)number) == 0);
}

TEST(srq__IS_FILLED_BY_MANY)
{
	struct rpma_srq *srq = NULL;

	/* 20 receives by default */
	ok(rpma_srq_new(the_peer, NULL, &srq));
	run_crowd(receive_many, srq);
	ok(rpma_srq_delete(&srq));
}

/* ---- the log ---- */

static atomic_int logged;

static void count_message(enum rpma_log_level level, const char *file_name,
			  const int line_no, const char *function_name,
			  const char *message_format, ...)
{
	(void)level;
	(void)line_no;
	expect(file_name && function_name && message_format);
	/* relaxed: a count */
	atomic_fetch_add_explicit(&logged, 1, memory_order_relaxed);
}

static void change_the_log(void *arg, int number)
{
	struct ibv_context *ctx = arg;
	enum rpma_log_level level = RPMA_LOG_DISABLED;
	struct rpma_cq *cq = NULL;
	int i;

	for (i = 0; i < rounds; i++) {
		expect(rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
					      RPMA_LOG_LEVEL_ERROR +
						      (number & 1)) == 0);
		expect(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level) == 0);
		expect(level == RPMA_LOG_LEVEL_ERROR ||
		       level == RPMA_LOG_LEVEL_WARNING);
		expect(rpma_log_set_function(count_message) == 0);
		/* a wrong argument is a single message */
		expect(rpma_cq_new(ctx, 0, NULL, 0, NULL, &cq) == RPMA_E_INVAL);
	}
}

TEST(log__IS_SET_BY_MANY)
{
	struct ibv_context *ctx = NULL;

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	ok(rpma_log_set_function(count_message));
	run_crowd(change_the_log, ctx);
	/* relaxed: the threads are joined */
	assert_int_equal(atomic_load_explicit(&logged, memory_order_relaxed),
			 rounds * threads);
	ok(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	if (argc > 2)
		threads = atoi(argv[2]);
	if (rounds < 1 || threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr, "usage: %s [ROUNDS [THREADS]]\n", argv[0]);
		return 2;
	}
	return pair_main("tests", tests_listed, tests_count);
}
