/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_setup [--seconds S] [--cpus A,B] rt|bare
 *
 * Microseconds until both ends of a connection are established, both in this
 * process: of the "first", from before the device is opened; and of a "later"
 * connection, the median over S seconds.
 *   rt    the runtime with its defaults, events taken from a single queue
 *   bare  verbs and rdma_cm, a single event channel
 */

#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "bench.h"
#include "world.h"

/* work requests of a queue of both ways, with the one that the runtime adds to
 * each queue for the end: a device that rounds up to a power of two has equal
 * queue pairs then */
#define DEPTH 128
#define COUNT 2000 /* connections at most */
#define CQ_OF 8192 /* likewise */

/* ---------------------------------------------------------- the runtime --- */

static struct world world;
static struct rpma_rt_queue *queue;
static struct rpma_rt_listener *listener;
static struct rpma_rt_conn_cfg cfg;
static char port[8];

static void rt_open(void)
{
	uint16_t number;

	world_open(&world);
	MUST(rpma_rt_new(NULL, &world.rt));
	MUST(rpma_rt_queue_new(world.rt, NULL, &queue));
	cfg = (struct rpma_rt_conn_cfg)RPMA_RT_CONN_CFG_INIT;
	cfg.peer = world.peer;
	cfg.queue = queue;
	cfg.sq_size = DEPTH - 1;
	cfg.rq_size = DEPTH - 1;
	MUST(rpma_rt_listen(world.rt, world.addr, "0", &cfg, &listener));
	MUST(rpma_rt_listener_get_port(listener, &number));
	snprintf(port, sizeof(port), "%u", number);
}

static void rt_connect(void)
{
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;

	MUST(rpma_rt_conn_new(world.rt, world.addr, port, &cfg, &conn));
	world_event(queue, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(conn, NULL));
	item = world_event(queue, RPMA_RT_EVENT_REQUEST);
	MUST(rpma_rt_conn_accept(rpma_rt_completion_conn(&item), NULL));
	world_event(queue, RPMA_RT_EVENT_ESTABLISHED);
	world_event(queue, RPMA_RT_EVENT_ESTABLISHED);
}

/* ----------------------------------------------------------------- bare --- */

static struct bare bare;
static struct ibv_cq *cqs[2];

static void bare_begin(void)
{
	bare_open(&bare);
	cqs[0] = cqs[1] = bare_cq(&bare, CQ_OF);
}

static void bare_once(void)
{
	struct rdma_cm_id *ids[2];

	bare_connect(&bare, cqs, DEPTH, DEPTH, ids);
}

/* ----------------------------------------------------------------- both --- */

static void measure(double seconds, void (*open_all)(void),
		    void (*connect_one)(void))
{
	static uint64_t ns[COUNT];
	uint64_t begin = bench_now_ns();
	uint64_t last, now;
	uint64_t end;
	uint64_t count = 0;

	open_all();
	connect_one();
	last = bench_now_ns();
	bench_report("first", (double)(last - begin) / 1e3, "us");
	end = last + (uint64_t)(seconds * 1e9);
	do {
		connect_one();
		now = bench_now_ns();
		ns[count++] = now - last;
		last = now;
	} while (count < COUNT && now < end);
	bench_report("later", bench_percentile(ns, count, 0.5), "us");
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	const char *way = args.count == 1 ? args.words[0] : "";

	if (strcmp(way, "rt") == 0)
		measure(args.seconds, rt_open, rt_connect);
	else if (strcmp(way, "bare") == 0)
		measure(args.seconds, bare_begin, bare_once);
	else
		bench_fail("usage: bench_setup [--seconds S] [--cpus A,B] "
			   "rt|bare");
	fflush(stdout);
	_Exit(0); /* the connections stay */
}
