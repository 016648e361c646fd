/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * workers.h: threads that serve connections. Each worker has a poller, a queue,
 * and an SRQ whose receives are slots of a pool. A connection belongs to a
 * poller, and so to a worker: all items of a connection come to one thread, in
 * order, and data of a connection need no lock. In manual mode a worker runs
 * its poller, and the server has no other thread. Meant to be copied: needs
 * workers.c and try.h. Thread: the thread that starts and stops the server.
 */

#ifndef EXAMPLES_WORKERS_H
#define EXAMPLES_WORKERS_H

#include <pthread.h>
#include <stdbool.h>

#include <rpma_rt.h>

#define WORKERS_MAX 64

/* The program fills the first part, the rest is zero. */
struct workers {
	struct rpma_rt *rt; /* with a poller for each worker */
	struct rpma_peer *peer;
	struct rpma_rt_pool *pool; /* at least srq_size slots for each */
	uint32_t srq_size;
	bool is_manual;

	struct rpma_rt_queue *queues[WORKERS_MAX];
	struct rpma_rt_srq *srqs[WORKERS_MAX];
	struct workers_start {
		struct workers *workers;
		void *(*run)(void *);
		void *arg;
	} starts[WORKERS_MAX];
	pthread_t threads[WORKERS_MAX];
	uint32_t count, started;
};

/*
 * Makes a worker: *queue is the queue when the thread begins with run(arg). The
 * thread takes items until rpma_rt_queue_wait() fails with RPMA_RT_E_CLOSED,
 * after rpma_rt_stop(). Returns 0, or prints what failed.
 */
int workers_add(struct workers *workers, void *(*run)(void *), void *arg,
		struct rpma_rt_queue **queue);
/* Listens, and gives each connection to the worker with the fewest. The program
 * has filled what else cfg needs; *port is the port, also of port "0". */
int workers_listen(struct workers *workers, const char *address,
		   const char *service, struct rpma_rt_conn_cfg *cfg,
		   struct rpma_rt_listener **listener, uint16_t *port);
/* Waits for all threads, after rpma_rt_stop(). */
void workers_join(struct workers *workers);
/* Deletes SRQs and queues, before rpma_rt_delete(). */
int workers_close(struct workers *workers);

#endif /* EXAMPLES_WORKERS_H */
