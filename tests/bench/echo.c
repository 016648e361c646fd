/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_echo [--seconds S] [--cpus A,B] DEPTH [MODE...]
 *
 * Thousands of echoes a second between two processes on the CPUs A and B, on A
 * alone if B is A, on all if A is -1: the server and the client of
 * MIGRATION.md, each a runtime with a poller and a thread in
 * rpma_rt_queue_wait(). The client has DEPTH messages outstanding, up to 16.
 * The modes run by turns, ROUNDS times; the program prints the median of each
 * mode, and first the "ratio" of adaptive to the best other mode. MODE: some
 * modes only, without the ratio unless adaptive is there.
 */

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "world.h"

#define DEPTH  16 /* messages outstanding, at most */
#define SLOTS  32 /* of each queue of a connection, and buffers for each */
#define SIZE   128
#define TAKE   16
#define ROUNDS 5

/* messages between the two processes of a run */
struct shared {
	_Atomic bool listens;
	_Atomic bool accepts; /* the server may answer */
	char port[8];
	double rate; /* the client's */
};

struct end {
	struct world world;
	struct rpma_rt_queue *queue;
	struct rpma_mr_local *mr;
	struct rpma_rt_conn *conn;
	char memory[2 * SLOTS][SIZE]; /* received, then the client's to send */
	bool is_client;
	uint64_t sent;	   /* echoes and messages */
	uint64_t received; /* messages and echoes */
	uint64_t unsent;   /* incomplete sends */
	double begin, stop;
};

static const struct mode {
	const char *name;
	enum rpma_rt_mode mode;
} modes[] = {
	{"adaptive", RPMA_RT_MODE_ADAPTIVE},
	{"event", RPMA_RT_MODE_EVENT},
	{"busy", RPMA_RT_MODE_BUSY},
	{"manual", RPMA_RT_MODE_MANUAL},
};

#define MODES (sizeof(modes) / sizeof(modes[0]))

static struct bench_args args;
static uint64_t depth;
static struct shared *shared;
static struct end end;

/* ------------------------------------------------------------- messages --- */

static void post_recv(uint64_t slot)
{
	int ret = rpma_rt_recv(end.conn, end.mr, slot * SIZE, SIZE, slot);

	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
}

static void post_send(uint64_t slot)
{
	int ret = rpma_rt_send(end.conn, end.mr, slot * SIZE, SIZE,
			       RPMA_F_COMPLETION_ALWAYS, SLOTS + slot);

	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
	end.sent++;
	end.unsent++;
}

/* The server sends a message back from the slot where the message arrived. */
static void on_completion(const struct rpma_rt_completion *item)
{
	uint64_t slot = item->context;
	uint64_t number;

	if (slot >= SLOTS) {
		end.unsent--;
		if (!end.is_client)
			post_recv(slot - SLOTS);
		return;
	}
	if (item->status != IBV_WC_SUCCESS)
		return;
	memcpy(&number, end.memory[slot], sizeof(number));
	CHECK(number == end.received);
	end.received++;
	if (end.is_client)
		post_recv(slot);
	else
		post_send(slot);
}

static void ask(void)
{
	uint64_t slot;

	while (bench_now() < end.stop && end.sent - end.received < depth &&
	       end.unsent < DEPTH) {
		slot = SLOTS + end.sent % SLOTS;
		memcpy(end.memory[slot], &end.sent, sizeof(end.sent));
		post_send(slot);
	}
	if (bench_now() < end.stop || end.sent != end.received)
		return;
	shared->rate = (double)end.received / (bench_now() - end.begin) / 1e3;
	MUST(rpma_rt_conn_close(end.conn));
	end.begin = 0;
}

/* --------------------------------------------------------------- an end --- */

static void start_conn(const struct rpma_rt_completion *item)
{
	uint64_t slot;

	end.conn = rpma_rt_completion_conn(item);
	for (slot = 0; slot < SLOTS; slot++)
		post_recv(slot);
	if (rpma_rt_completion_event(item) == RPMA_RT_EVENT_REQUEST)
		MUST(rpma_rt_conn_accept(end.conn, NULL));
	else
		MUST(rpma_rt_conn_connect(end.conn, NULL));
}

static void tell(_Atomic bool *what)
{
	/* release: pairs with the acquire in wait_for() */
	atomic_store_explicit(what, true, memory_order_release);
}

static void wait_for(_Atomic bool *what)
{
	/* acquire: pairs with the release in tell() */
	while (!atomic_load_explicit(what, memory_order_acquire))
		bench_sleep_until(bench_now_ns() + 1000000);
}

static void start(void)
{
	if (!end.is_client) {
		tell(&shared->accepts);
		return;
	}
	wait_for(&shared->accepts);
	end.begin = bench_now();
	end.stop = end.begin + args.seconds;
}

/* Returns false at the last item. */
static bool on_item(const struct rpma_rt_completion *item)
{
	if (item->kind == RPMA_RT_COMPLETION)
		on_completion(item);
	switch (rpma_rt_completion_event(item)) {
	case RPMA_RT_EVENT_REQUEST:
	case RPMA_RT_EVENT_READY:
		start_conn(item);
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		start();
		break;
	case RPMA_RT_EVENT_CLOSED:
		return false;
	default:
		break;
	}
	return true;
}

static void serve(void)
{
	struct rpma_rt_completion items[TAKE];
	bool is_open = true;
	int count;
	int i;

	while (is_open) {
		count = rpma_rt_queue_wait(end.queue, items, TAKE,
					   WORLD_PATIENCE_MS);
		CHECK(count > 0);
		for (i = 0; i < count; i++)
			is_open = on_item(&items[i]);
		if (end.begin != 0)
			ask();
	}
}

static void run_end(enum rpma_rt_mode mode)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(SLOTS, SLOTS);
	struct rpma_rt_listener *listener = NULL;
	struct world *w = &end.world;
	struct rpma_rt_completion item;

	world_open(w);
	world_start(w, 1, mode);
	MUST(rpma_rt_queue_new(w->rt, NULL, &end.queue));
	MUST(rpma_mr_reg(w->peer, end.memory, sizeof(end.memory),
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &end.mr));
	if (mode == RPMA_RT_MODE_MANUAL)
		CHECK(rpma_rt_poller_run(w->rt, 0, 1) >= 0);
	if (end.is_client) {
		wait_for(&shared->listens);
		memcpy(w->port, shared->port, sizeof(w->port));
		MUST(world_conn_new(w->rt, w->peer, w->addr, w->port, cfg, 0,
				    end.queue, NULL, &end.conn));
	} else {
		listener = world_listen(w, cfg, end.queue);
		memcpy(shared->port, w->port, sizeof(w->port));
		tell(&shared->listens);
	}
	serve();
	MUST(rpma_rt_listener_delete(&listener));
	MUST(rpma_rt_stop(w->rt));
	while (rpma_rt_queue_poll(end.queue, &item, 1) > 0)
		;
	MUST(rpma_rt_conn_unref(&end.conn));
	MUST(rpma_rt_queue_delete(&end.queue));
	MUST(rpma_mr_dereg(&end.mr));
	world_close(w);
	free(cfg);
}

/* ------------------------------------------------------------- the runs --- */

static pid_t start_end(enum rpma_rt_mode mode, bool is_client)
{
	pid_t child = fork();

	if (child < 0)
		bench_fail("no process");
	if (child > 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	end.is_client = is_client;
	run_end(mode);
	exit(0);
}

static double run_mode(enum rpma_rt_mode mode)
{
	pid_t ends[2];
	int status;
	int i;

	memset(shared, 0, sizeof(*shared));
	for (i = 0; i < 2; i++)
		ends[i] = start_end(mode, i == 1);
	for (i = 0; i < 2; i++) {
		if (waitpid(ends[i], &status, 0) != ends[i])
			bench_fail("a process is lost");
		if (WIFEXITED(status) && WEXITSTATUS(status) == BENCH_SKIP)
			bench_skip("no device");
		if (status != 0)
			bench_fail("a process failed");
	}
	return shared->rate;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool is_wanted(const char *name)
{
	int i;

	for (i = 1; i < args.count; i++) {
		if (strcmp(args.words[i], name) == 0)
			return true;
	}
	return args.count == 1;
}

static void report(double rates[MODES][ROUNDS])
{
	double best = 0;
	size_t i;

	for (i = 0; i < MODES; i++) {
		qsort(rates[i], ROUNDS, sizeof(double), compare);
		if (i > 0 && rates[i][ROUNDS / 2] > best)
			best = rates[i][ROUNDS / 2];
	}
	if (best > 0 && rates[0][0] > 0)
		bench_report("ratio", rates[0][ROUNDS / 2] / best, "x");
	for (i = 0; i < MODES; i++) {
		if (rates[i][0] > 0)
			bench_report(modes[i].name, rates[i][ROUNDS / 2],
				     "kops/s");
	}
}

static void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)args.cpus[0], &set);
	CPU_SET((size_t)args.cpus[1], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_skip("no such CPUs");
}

int main(int argc, char **argv)
{
	static double rates[MODES][ROUNDS];
	size_t i;
	int round;

	args = bench_parse(argc, argv);
	depth = args.count > 0 ? strtoull(args.words[0], NULL, 10) : 0;
	if (depth == 0 || depth > DEPTH)
		bench_fail("usage: bench_echo [--seconds S] [--cpus A,B] DEPTH "
			   "[MODE...]");
	if (args.cpus[0] >= 0)
		pin();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		bench_fail("no shared memory");
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < MODES; i++) {
			if (is_wanted(modes[i].name))
				rates[i][round] = run_mode(modes[i].mode);
		}
	}
	report(rates);
	return 0;
}
