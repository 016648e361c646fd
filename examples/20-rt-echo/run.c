/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.c: the loop of main. main accepts connections, prints once a second, and
 * moves the ends on: connect, go, stop, and, if stopping takes too long, abort.
 */

#include "run.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

#define STEP_MS	   20
#define CONNECT_MS 30000
#define DRAIN_MS   10000
#define STALL_NS   UINT64_C(30000000000)
#define SECOND_NS  UINT64_C(1000000000)
#define MS_NS	   UINT64_C(1000000)
#define NEVER	   UINT64_MAX

/* lock-free, so fit for a handler, which may interrupt any thread */
static _Atomic int interrupts;

void echo_interrupt(void)
{
	/* relaxed: nothing else is published with the flag */
	if (atomic_exchange_explicit(&interrupts, 1, memory_order_relaxed))
		_exit(130);
}

static bool is_interrupted(void)
{
	/* relaxed: see echo_interrupt() */
	return atomic_load_explicit(&interrupts, memory_order_relaxed);
}

/* ------------------------------------------------------------- opening --- */

/*
 * Orders the CPUs from the last: for a client beside a server on one machine.
 */
static void reverse_cpus(struct rpma_rt_cfg *cfg, int32_t cpus[MAX_THREADS])
{
	enum { SETS = 16 }; /* of 1,024 CPUs each */
	cpu_set_t allowed[SETS];
	int cpu = SETS * CPU_SETSIZE;
	uint32_t n = 0;

	if (sched_getaffinity(0, sizeof(allowed), allowed))
		return;
	while (--cpu >= 0 && n < cfg->pollers)
		if (CPU_ISSET_S(cpu, sizeof(allowed), allowed))
			cpus[n++] = cpu;
	if (n != cfg->pollers)
		return;
	cfg->cpus = cpus;
	cfg->cpu_count = n;
}

static bool new_rt(const struct echo *echo, struct rpma_rt **rt)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	const struct options *o = echo->options;
	int32_t cpus[MAX_THREADS];
	int ret;

	cfg.pollers = o->is_manual ? o->workers : o->pollers;
	if (o->is_manual)
		cfg.mode = RPMA_RT_MODE_MANUAL;
	if (!o->pollers_spin)
		cfg.spin_us = 0;
	/* a CQ has room for all work requests of a connection */
	unsigned entries = 2 * o->depth + RECEIVE_SLACK + 2;
	if (entries > RPMA_RT_DEFAULT_CQ_SIZE)
		cfg.cq_size = entries;
	if (o->role == ROLE_CLIENT && !o->is_manual)
		reverse_cpus(&cfg, cpus);
	ret = rpma_rt_new(&cfg, rt);
	if (ret)
		fprintf(stderr, "rt-echo: cannot start the runtime: %s\n",
			rpma_rt_err_2str(ret));
	return ret == 0;
}

static bool open_server(struct echo *echo)
{
	echo->server = server_new(echo->options, echo->device.address,
				  echo->rts[0], echo->device.peer, 0);
	return echo->server && end_start(&echo->server->end);
}

static bool open_client(struct echo *echo)
{
	struct rpma_rt *rt = echo->rts[1] ? echo->rts[1] : echo->rts[0];

	/* the workers of the server have the numbers below MAX_THREADS */
	echo->client =
		client_new(echo->options, rt, echo->device.peer, MAX_THREADS);
	return echo->client != NULL;
}

bool echo_open(struct echo *echo, const struct options *options)
{
	*echo = (struct echo){.options = options};
	if (!device_open(options, &echo->device) ||
	    !new_rt(echo, &echo->rts[0]))
		return false;
	if (options->role == ROLE_BOTH && options->is_manual &&
	    !new_rt(echo, &echo->rts[1]))
		return false;
	if (options->role != ROLE_CLIENT && !open_server(echo))
		return false;
	return options->role == ROLE_SERVER || open_client(echo);
}

/* ------------------------------------------------------------- running --- */

static void report(struct echo *echo)
{
	if (echo->server)
		report_interval(&echo->server->end);
	if (echo->client)
		report_interval(&echo->client->end);
}

static void start_intervals(struct echo *echo)
{
	uint64_t now = now_ns();

	if (echo->server)
		echo->server->end.reported_ns = now;
	if (echo->client)
		echo->client->end.reported_ns = now;
}

/* Sleeps a short while, and does the periodic work of main. */
static void step(struct echo *echo)
{
	const struct timespec pause = {.tv_nsec = STEP_MS * (long)MS_NS};
	const struct end *end =
		echo->client ? &echo->client->end : &echo->server->end;

	if (echo->server)
		server_accept(echo->server, STEP_MS);
	else
		nanosleep(&pause, NULL);
	if (end->reported_ns && now_ns() - end->reported_ns >= SECOND_NS)
		report(echo);
}

static bool is_failed(const struct end *end)
{
	/* relaxed: no other read depends on the flag */
	return atomic_load_explicit(&end->is_failed, memory_order_relaxed);
}

static bool is_empty(const struct end *end)
{
	/* acquire: pairs with the release in give_number() of link.c */
	return atomic_load_explicit(&end->open, memory_order_acquire) == 0;
}

static uint64_t messages_of(const struct end *end)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < end->worker_count; i++)
		sum += counted(&end->workers[i].stats.messages);
	return sum;
}

static uint64_t after_ms(uint64_t ms)
{
	return now_ns() + ms * MS_NS;
}

static uint64_t deadline_of(const struct options *o)
{
	return o->seconds ? after_ms(o->seconds * 1000) : NEVER;
}

static bool wait_connected(struct echo *echo)
{
	struct client *client = echo->client;
	uint64_t deadline = after_ms(CONNECT_MS);

	while (!client_is_connected(client)) {
		if (is_interrupted() || is_failed(&client->end))
			return false;
		if (now_ns() > deadline) {
			end_fail(&client->end,
				 "only %u of %u connections after %d s",
				 atomic_load_explicit(&client->end.established,
						      memory_order_relaxed),
				 echo->options->connections, CONNECT_MS / 1000);
			return false;
		}
		step(echo);
	}
	return true;
}

static void wait_messages(struct echo *echo)
{
	struct end *end = &echo->client->end;
	uint64_t deadline = deadline_of(echo->options);
	uint64_t seen = 0, seen_ns = now_ns();

	while (!is_interrupted() && !is_failed(end) && !is_empty(end) &&
	       now_ns() < deadline) {
		uint64_t messages = messages_of(end);

		if (messages != seen) {
			seen = messages;
			seen_ns = now_ns();
		} else if (now_ns() - seen_ns > STALL_NS) {
			end_fail(end, "no reply for 30 s, giving up");
		}
		step(echo);
	}
}

/*
 * Waits until all links of a stopped end are gone; after a while closes the
 * links by force. If links remain even then, there is no orderly way out: the
 * device or the library has not returned all completions, and the memory may
 * still be in use.
 */
static void drain(struct echo *echo, struct end *end)
{
	uint64_t deadline = after_ms(DRAIN_MS);

	while (!is_empty(end) && now_ns() < deadline)
		step(echo);
	if (!is_empty(end)) {
		end_fail(end, "not drained after %d s, closing",
			 DRAIN_MS / 1000);
		end_tell(end, COMMAND_ABORT);
		deadline = after_ms(DRAIN_MS);
	}
	while (!is_empty(end) && now_ns() < deadline)
		step(echo);
	if (!is_empty(end)) {
		fprintf(stderr, "rt-echo: %s: %u connections do not close\n",
			end->name,
			atomic_load_explicit(&end->open, memory_order_relaxed));
		report_end(end);
		_exit(1);
	}
	end_join(end);
}

static void run_client(struct echo *echo)
{
	struct client *client = echo->client;
	const struct options *o = echo->options;
	uint16_t port = echo->server ? echo->server->port
				     : (uint16_t)strtoul(o->port, NULL, 10);
	bool is_ok = client_connect(client, echo->device.address, port);

	is_ok = end_start(&client->end) && is_ok && wait_connected(echo);
	if (is_ok) {
		start_intervals(echo);
		end_tell(&client->end, COMMAND_GO);
		wait_messages(echo);
	}
	end_tell(&client->end, is_ok ? COMMAND_STOP : COMMAND_ABORT);
	drain(echo, &client->end);
}

static void run_server(struct echo *echo)
{
	struct server *server = echo->server;
	const struct options *o = echo->options;
	uint64_t deadline = deadline_of(o);

	start_intervals(echo);
	while (!is_interrupted() && now_ns() < deadline &&
	       !(o->messages && messages_of(&server->end) >= o->messages &&
		 is_empty(&server->end)))
		step(echo);
}

static void announce(const struct echo *echo)
{
	const struct options *o = echo->options;
	const char *device = ibv_get_device_name(echo->device.context->device);

	if (echo->server)
		printf("server: %s, %s port %u\n", device, echo->device.address,
		       echo->server->port);
	if (echo->client)
		printf("client: %s, %u connections, %u bytes, %u in flight "
		       "each\n",
		       device, o->connections, o->size, o->depth);
	if (o->is_manual)
		printf("threads: %u workers an end, each its own poller\n",
		       o->workers);
	else
		printf("threads: %u pollers, %u workers an end\n", o->pollers,
		       o->workers);
	fflush(stdout);
}

/* Stops the runtimes: afterwards no item comes into a queue. */
static void stop_rts(struct echo *echo)
{
	for (int i = 0; i < 2; i++) {
		int ret = echo->rts[i] ? rpma_rt_stop(echo->rts[i]) : 0;

		if (ret)
			fprintf(stderr, "rt-echo: cannot stop: %s\n",
				rpma_rt_err_2str(ret));
	}
}

static bool conclude(struct end *end)
{
	end_sweep(end);
	report_end(end);
	return !report_is_bad(end);
}

bool echo_run(struct echo *echo)
{
	bool is_ok = true;

	announce(echo);
	if (echo->client)
		run_client(echo);
	else
		run_server(echo);
	if (echo->server) {
		server_stop(echo->server);
		drain(echo, &echo->server->end);
	}
	stop_rts(echo);
	if (echo->server)
		is_ok = conclude(&echo->server->end);
	if (echo->client)
		is_ok = conclude(&echo->client->end) && is_ok;
	return is_ok;
}

/* ------------------------------------------------------------- closing --- */

bool echo_close(struct echo *echo)
{
	bool is_ok = true;

	/* only if the echo did not run: then the workers of a server run */
	if (echo->server) {
		end_tell(&echo->server->end, COMMAND_STOP);
		end_join(&echo->server->end);
	}
	stop_rts(echo);
	client_delete(&echo->client);
	server_delete(&echo->server);
	for (int i = 0; i < 2; i++) {
		int ret = rpma_rt_delete(&echo->rts[i]);

		if (ret) {
			fprintf(stderr,
				"rt-echo: cannot delete the runtime: "
				"%s\n",
				rpma_rt_err_2str(ret));
			is_ok = false;
		}
	}
	device_close(&echo->device);
	return is_ok;
}
