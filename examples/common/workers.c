/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* workers.c: see workers.h. */

#include "workers.h"

#include "try.h"

#define SPIN_US 1000000 /* of a worker in manual mode, which has a core */

static void *begin(void *arg)
{
	const struct workers_start *start = arg;
	struct workers *workers = start->workers;

	if (workers->is_manual)
		TRY(rpma_rt_poller_attach(workers->rt,
					  (uint32_t)(start - workers->starts)));
	return start->run(start->arg);
}

int workers_add(struct workers *workers, void *(*run)(void *), void *arg,
		struct rpma_rt_queue **queue)
{
	struct rpma_rt_queue_cfg queue_cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	uint32_t number = workers->count++;

	if (workers->is_manual)
		queue_cfg.spin_us = SPIN_US;
	if (TRY(rpma_rt_queue_new(workers->rt, &queue_cfg,
				  &workers->queues[number])))
		return 1;
	*queue = workers->queues[number];
	cfg.poller = number;
	cfg.peer = workers->peer;
	cfg.queue = *queue;
	cfg.pool = workers->pool;
	cfg.srq_size = workers->srq_size;
	if (TRY(rpma_rt_srq_new(workers->rt, &cfg, &workers->srqs[number])))
		return 1;
	workers->starts[number] = (struct workers_start){workers, run, arg};
	if (pthread_create(&workers->threads[number], NULL, begin,
			   &workers->starts[number])) {
		perror("pthread_create");
		return 1;
	}
	workers->started++;
	return 0;
}

int workers_listen(struct workers *workers, const char *address,
		   const char *service, struct rpma_rt_conn_cfg *cfg,
		   struct rpma_rt_listener **listener, uint16_t *port)
{
	cfg->peer = workers->peer;
	cfg->poller = RPMA_RT_POLLER_LEAST;
	cfg->queues = workers->queues;
	cfg->srqs = workers->srqs;
	cfg->queue_count = cfg->srq_count = workers->count;
	return TRY(rpma_rt_listen(workers->rt, address, service, cfg,
				  listener)) ||
	       TRY(rpma_rt_listener_get_port(*listener, port));
}

void workers_join(struct workers *workers)
{
	while (workers->started > 0)
		pthread_join(workers->threads[--workers->started], NULL);
}

int workers_close(struct workers *workers)
{
	int ret = 0;

	for (; workers->count > 0; workers->count--) {
		ret |= TRY(
			rpma_rt_srq_delete(&workers->srqs[workers->count - 1]));
		ret |= TRY(rpma_rt_queue_delete(
			&workers->queues[workers->count - 1]));
	}
	return ret;
}
