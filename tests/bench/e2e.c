/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_e2e [--seconds S] [--cpus A,B,...] FORM one|two CONNSxDEPTH [PAIRS]
 *
 * Millions of echoes a second: a client sends messages of 64 bytes, DEPTH of
 * them outstanding on each of CONNS connections, the server sends each back,
 * and the client checks every byte. Also the time of half and of 99 of 100
 * messages from the post to the look at the bytes. One thread has both ends, or
 * a thread has the clients and another the servers; PAIRS: so many such
 * threads, or pairs, with CONNS connections each. FORM:
 *   bare       verbs and rdma_cm: chains, few sends signaled, no copy
 *   manual     the runtime in manual mode
 *   shard      shards
 *   future     manual mode, a future for each receive
 *   coroutine  rpma_rt.hpp: DEPTH coroutines an end of each connection
 *   poller     a busy poller, and a worker, which polls a queue and has both
 *              ends: "two" only
 */

#include "e2e.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WARM_UP	  0.01 /* seconds */
#define MAX_CONNS 4096

static const struct e2e_form *form;
static struct e2e run;
static _Atomic uint32_t ready;	  /* threads */
static _Atomic uint32_t measured; /* threads with clients */

static uint32_t client_threads(const struct e2e *e2e)
{
	return e2e->pairs;
}

void e2e_begin(struct e2e *e2e, struct e2e_thread *thread)
{
	uint32_t i;

	for (i = 0; i < thread->end_count; i++) {
		if (!thread->ends[i]->is_client)
			continue;
		thread->ends[i]->sends = e2e->depth;
		e2e_touch(thread->ends[i]);
	}
	/* acq_rel: each thread sees all that was made */
	atomic_fetch_add_explicit(&ready, 1, memory_order_acq_rel);
	/* acquire: as above */
	while (atomic_load_explicit(&ready, memory_order_acquire) <
	       e2e->thread_count)
		sched_yield();
	thread->begin = bench_now() + WARM_UP;
}

bool e2e_look(struct e2e *e2e, struct e2e_thread *thread)
{
	double now;

	if (thread->is_client && thread->seconds == 0) {
		now = bench_now();
		if (now >= thread->begin && thread->first == 0) {
			thread->begin = now;
			thread->first = thread->messages;
			thread->time_count = 0;
		}
		if (now < thread->begin + e2e->args.seconds ||
		    thread->messages == thread->first)
			return false;
		thread->seconds = now - thread->begin;
		thread->counted = thread->messages - thread->first;
		/* relaxed: the join orders the figures */
		atomic_fetch_add_explicit(&measured, 1, memory_order_relaxed);
	}
	/* relaxed: as above */
	return atomic_load_explicit(&measured, memory_order_relaxed) ==
	       client_threads(e2e);
}

/* ---------------------------------------------------------------- setup --- */

static void *allocate(size_t count, size_t size)
{
	size_t bytes = (count * size + 4095) / 4096 * 4096;
	void *memory = aligned_alloc(4096, bytes);

	if (memory == NULL)
		bench_fail("no memory");
	memset(memory, 0, bytes);
	return memory;
}

/* A server has twice as many slots as messages can be outstanding, and sends
 * from a slot while the next receive is posted. Spare receives have slots of
 * their own. */
static void make_end(struct e2e_end *end, uint32_t conn, bool is_client)
{
	const uint32_t spare = e2e_spare(&run);
	size_t part = run.memory_size / run.conns / 4;
	char *memory = run.memory + (size_t)conn * 4 * part;
	uint32_t pair = conn % run.pairs;
	struct e2e_thread *thread =
		&run.threads[run.is_two && !form->has_pollers
				     ? 2 * pair + !is_client
				     : pair];

	end->thread = thread;
	end->id = conn;
	end->is_client = is_client;
	end->in_count = (is_client ? run.depth : 2 * run.depth) + spare;
	end->out_count = run.depth;
	end->in = memory + (is_client ? 0 : 2 * part);
	end->out = memory + part;
	end->stamps = allocate(run.depth, sizeof(*end->stamps));
	end->recvs = run.depth + spare;
	end->least_recvs = spare > 0 ? spare : 1;
	thread->is_client |= is_client;
	thread->ends[thread->end_count++] = end;
}

static void make_all(void)
{
	uint32_t i;

	run.conns *= run.pairs;
	run.thread_count =
		run.is_two && !form->has_pollers ? 2 * run.pairs : run.pairs;
	/* lines come in pairs: each part begins with a pair */
	run.memory_size = (size_t)run.conns * 4 *
			  ((run.depth + e2e_spare(&run) + 1) / 2 * 2) *
			  E2E_SIZE;
	run.memory = allocate(run.memory_size, 1);
	run.threads = allocate(run.thread_count, sizeof(*run.threads));
	run.ends = allocate(2 * run.conns, sizeof(*run.ends));
	for (i = 0; i < run.thread_count; i++) {
		run.threads[i].number = i;
		run.threads[i].cpu =
			run.args.cpus[(i +
				       (form->has_pollers ? run.pairs : 0)) %
				      (uint32_t)run.args.cpu_count];
		run.threads[i].ends =
			allocate(2 * run.conns, sizeof(struct e2e_end *));
		run.threads[i].times = allocate(E2E_TIMES, sizeof(uint64_t));
	}
	for (i = 0; i < run.conns; i++) {
		make_end(&run.ends[2 * i], i, true);
		make_end(&run.ends[2 * i + 1], i, false);
	}
}

static void *thread_main(void *thread)
{
	form->run(&run, thread);
	return NULL;
}

/* --------------------------------------------------------------- output --- */

static void report(void)
{
	uint64_t *times;
	uint64_t count = 0, all = 0, some;
	double rate = 0;
	uint32_t i;

	times = allocate((size_t)run.thread_count * E2E_TIMES, sizeof(*times));
	for (i = 0; i < run.thread_count; i++) {
		struct e2e_thread *t = &run.threads[i];

		all += t->messages;
		if (!t->is_client)
			continue;
		rate += (double)t->counted / t->seconds / 1e6;
		some = t->time_count < E2E_TIMES ? t->time_count : E2E_TIMES;
		memcpy(times + count, t->times, some * sizeof(*times));
		count += some;
	}
	bench_report("rate", rate, "Mops/s");
	if (count > 0) {
		bench_report("p50", bench_percentile(times, count, 0.5), "us");
		bench_report("p99", bench_percentile(times, count, 0.99), "us");
	}
	bench_report("messages", (double)all, "count");
}

static const struct e2e_form *find_form(const char *name)
{
	static const struct e2e_form *const forms[] = {
		&e2e_bare,   &e2e_split,  &e2e_manual,	 &e2e_shard,
		&e2e_future, &e2e_poller, &e2e_coroutine};
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strcmp(forms[i]->name, name) == 0)
			return forms[i];
	}
	return NULL;
}

static bool parse(char **words, int count)
{
	if (count != 3 && count != 4)
		return false;
	form = find_form(words[0]);
	run.is_two = strcmp(words[1], "two") == 0;
	run.pairs = count == 4 ? (uint32_t)atoi(words[3]) : 1;
	return form != NULL && (run.is_two || strcmp(words[1], "one") == 0) &&
	       (run.is_two || !form->has_pollers) &&
	       sscanf(words[2], "%ux%u", &run.conns, &run.depth) == 2 &&
	       run.conns >= 1 && run.conns <= MAX_CONNS && run.depth >= 1 &&
	       run.pairs >= 1 && run.pairs <= BENCH_CPUS;
}

int main(int argc, char **argv)
{
	pthread_t *threads;
	uint32_t i;

	run.args = bench_parse(argc, argv);
	if (!parse(run.args.words, run.args.count))
		bench_fail("usage: bench_e2e [--seconds S] [--cpus A,B,...] "
			   "bare|split|manual|shard|future|coroutine|poller "
			   "one|two "
			   "CONNSxDEPTH [PAIRS]");
	make_all();
	form->open(&run);
	threads = allocate(run.thread_count, sizeof(*threads));
	for (i = 1; i < run.thread_count; i++)
		threads[i] = bench_start(run.threads[i].cpu, thread_main,
					 &run.threads[i]);
	bench_pin(run.threads[0].cpu);
	thread_main(&run.threads[0]);
	for (i = 1; i < run.thread_count; i++)
		pthread_join(threads[i], NULL);
	report();
	fflush(stdout);
	_exit(0); /* messages are outstanding, and nobody waits for them */
}
