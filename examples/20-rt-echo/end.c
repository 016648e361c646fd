/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * end.c: the part of main in an end: makes the end, starts its workers,
 * commands and joins the workers, and checks that all queues are empty.
 */

#include "end.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "worker.h"

#define MIN_RNR_TIMER 1 /* 10 us; the default of rdma_cm is 655 ms */

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)ts.tv_nsec;
}

struct rpma_rt_conn_cfg end_conn_cfg(const struct end *end)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;

	cfg.peer = end->peer;
	cfg.sq_size = end->options->depth;
	cfg.rq_size = end->options->depth + RECEIVE_SLACK;
	cfg.min_rnr_timer = MIN_RNR_TIMER;
	return cfg;
}

void end_fail(struct end *end, const char *format, ...)
{
	va_list args;

	/* relaxed: only decides which thread prints; read after the threads
	 * ended */
	if (atomic_exchange_explicit(&end->is_failed, true,
				     memory_order_relaxed))
		return;
	va_start(args, format);
	flockfile(stderr);
	fprintf(stderr, "rt-echo: %s: ", end->name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	funlockfile(stderr);
	va_end(args);
}

static int new_queue(const struct end *end, struct rpma_rt_queue **queue)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	if (!end->options->workers_spin)
		cfg.spin_us = 0;
	return rpma_rt_queue_new(end->rt, &cfg, queue);
}

static int init_worker(struct end *end, unsigned number, unsigned first_id)
{
	struct worker *worker = &end->workers[number];
	int ret;

	worker->end = end;
	worker->id = first_id + number;
	worker->number = number;
	worker->poller = end->options->is_manual ? (int)number : -1;
	ret = new_queue(end, &worker->queue);
	if (ret || worker->poller < 0)
		return ret;
	ret = rpma_rt_poller_get_fd(end->rt, (uint32_t)worker->poller,
				    &worker->fds[0]);
	if (ret)
		return ret;
	return rpma_rt_queue_get_fd(worker->queue, &worker->fds[1]);
}

bool end_init(struct end *end, const char *name, const struct end_ops *ops,
	      const struct options *options, struct rpma_rt *rt,
	      struct rpma_peer *peer, unsigned first_id)
{
	end->name = name;
	end->ops = ops;
	end->options = options;
	end->rt = rt;
	end->peer = peer;
	end->reported = calloc(1, sizeof(*end->reported));
	end->workers = aligned_alloc(_Alignof(struct worker),
				     options->workers * sizeof(struct worker));
	if (!end->reported || !end->workers) {
		end_fail(end, "no memory for %u workers", options->workers);
		return false;
	}
	memset(end->workers, 0, options->workers * sizeof(struct worker));
	for (unsigned i = 0; i < options->workers; i++) {
		int ret = init_worker(end, i, first_id);
		end->worker_count = i + 1;
		if (ret) {
			end_fail(end, "cannot make queue %u: %s", i,
				 rpma_rt_err_2str(ret));
			return false;
		}
	}
	return true;
}

bool end_start(struct end *end)
{
	for (unsigned i = 0; i < end->worker_count; i++) {
		struct worker *worker = &end->workers[i];
		int err = pthread_create(&worker->thread, NULL, worker_main,
					 worker);
		if (err) {
			end_fail(end, "cannot start worker %u: %s", i,
				 strerror(err));
			return false;
		}
		worker->is_running = true;
	}
	return true;
}

void end_tell(struct end *end, enum command command)
{
	for (unsigned i = 0; i < end->worker_count; i++) {
		if (!end->workers[i].is_running)
			continue;
		int ret = rpma_rt_queue_push(
			end->workers[i].queue,
			&(struct rpma_rt_completion){.context = command});
		if (ret)
			end_fail(end, "cannot command worker %u: %s", i,
				 rpma_rt_err_2str(ret));
	}
}

void end_join(struct end *end)
{
	for (unsigned i = 0; i < end->worker_count; i++) {
		if (!end->workers[i].is_running)
			continue;
		pthread_join(end->workers[i].thread, NULL);
		end->workers[i].is_running = false;
	}
}

void end_sweep(struct end *end)
{
	for (unsigned i = 0; i < end->worker_count; i++)
		worker_sweep(&end->workers[i]);
}

void end_fini(struct end *end)
{
	for (unsigned i = 0; i < end->worker_count; i++) {
		struct worker *worker = &end->workers[i];

		if (!worker->queue)
			continue;
		int ret = rpma_rt_queue_delete(&worker->queue);
		if (ret)
			end_fail(end, "cannot delete queue %u: %s", i,
				 rpma_rt_err_2str(ret));
	}
	end->worker_count = 0;
	free(end->workers);
	free(end->reported);
	end->workers = NULL;
	end->reported = NULL;
}
