/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak_site.c -- the objects of an epoch: memory, runtimes with drawn settings,
 * queues, listeners; and that none of them is left.
 */

#include "soak.h"

#include <string.h>

#define PER_END	    (2 * SOAK_SLOTS * SOAK_BLOCK + SOAK_WORDS)
#define REGION	    ((size_t)SOAK_ENDS * PER_END)
#define BACKSTOP_MS 5
#define TEARDOWN_MS 2000

/* --- what is made */

static uint32_t one_of(uint64_t *random, uint32_t a, uint32_t b, uint32_t c)
{
	const uint32_t choice[] = {a, b, c};

	return choice[soak_random(random, 3)];
}

static void make_rt(struct soak_epoch *epoch, struct soak_site *site)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	uint64_t *random = &epoch->random;
	enum rpma_rt_mode mode = soak_random(random, 2) ? RPMA_RT_MODE_ADAPTIVE
							: RPMA_RT_MODE_EVENT;

	if (epoch->cfg->manual)
		mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = epoch->pollers;
	cfg.mode = mode;
	cfg.cq_size = one_of(random, 80, 300, 8192);
	cfg.teardown_ms = TEARDOWN_MS;
	/* only where events get lost on purpose: it hides what it recovers */
	cfg.backstop_ms = epoch->trouble == SOAK_EVENTS ? BACKSTOP_MS : 0;
	MUST(rpma_rt_new(&cfg, &site->rt));
}

static void make_queue(struct soak_epoch *epoch, int site, int index)
{
	struct soak_queue *queue = &epoch->sites[site].queues[index];
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	uint64_t *random = &epoch->random;

	queue->epoch = epoch;
	queue->site = site;
	queue->index = index;
	queue->slow = index == SOAK_QUEUES - 1;
	queue->shared = index == 0 && soak_random(random, 2) == 0;
	pthread_mutex_init(&queue->turn, NULL);
	queue->random = *random + (uint64_t)(site * SOAK_QUEUES + index + 1);
	cfg.lane_size = one_of(random, 64, 64, 1024);
	cfg.backlog_limit = one_of(random, 1, 16, 4096);
	cfg.shared = queue->shared;
	MUST(rpma_rt_queue_new(epoch->sites[site].rt, &cfg, &queue->queue));
}

static void make_site(struct soak_epoch *epoch, int index)
{
	struct soak_site *site = &epoch->sites[index];
	uint16_t port;
	int i;

	make_rt(epoch, site);
	for (i = 0; i < SOAK_QUEUES; i++)
		make_queue(epoch, index, i);
	MUST(world_listen_at(site->rt, epoch->peer,
			     getenv("RPMA_TEST_ADDR") ? getenv("RPMA_TEST_ADDR")
						      : "127.0.0.1",
			     "0", 64, epoch->conn_cfg[index % 2],
			     RPMA_RT_POLLER_ANY, site->queues[0].queue, NULL,
			     &site->listener));
	MUST(rpma_rt_listener_get_port(site->listener, &port));
	snprintf(site->port, sizeof(site->port), "%u", port);
}

/* Buffers are nobody's; an end's words are always valid. */
static void make_memory(struct soak_epoch *epoch)
{
	const int usage = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
			  RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
			  RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST;
	size_t size = (REGION + 4095) / 4096 * 4096;
	struct rpma_mr_local *mr;
	struct soak_end at = {0};

	epoch->memory = aligned_alloc(4096, size);
	CHECK(epoch->memory);
	memset(epoch->memory, 0x5a, size);
	MUST(rpma_mr_reg(epoch->peer, epoch->memory, size, usage, &epoch->mr));
	epoch->remote = world_remote_of(epoch->mr);
	MUST(rpma_mr_reg(epoch->peer, epoch->memory, size,
			 RPMA_MR_USAGE_WRITE_DST, &mr));
	epoch->nowhere = world_remote_of(mr);
	MUST(rpma_mr_dereg(&mr));
	soak_take(epoch->memory, size);
	for (at.index = 0; at.index < SOAK_ENDS; at.index++)
		soak_give(epoch->memory + soak_words(&at), SOAK_WORDS);
}

static struct rpma_rt_conn_cfg *conn_cfg(uint32_t depth)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(depth, depth);

	/* a hundredth of a millisecond: peers often have no receive */
	cfg->min_rnr_timer = 1;
	return cfg;
}

void soak_make(struct soak_epoch *epoch)
{
	const char *addr = getenv("RPMA_TEST_ADDR");
	struct ibv_context *ctx;
	int i;

	MUST(rpma_utils_get_ibv_context(addr ? addr : "127.0.0.1",
					RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	MUST(rpma_peer_new(ctx, &epoch->peer));
	make_memory(epoch);
	epoch->conn_cfg[0] = conn_cfg(8);
	epoch->conn_cfg[1] = conn_cfg(32);
	for (i = 0; i < epoch->sites_count; i++)
		make_site(epoch, i);
}

/* --- what is left over: nothing */

static void add_stats(struct soak_epoch *epoch, const struct soak_site *site)
{
	struct rpma_rt_poller_stats stats;
	int i;

	for (i = 0; i < epoch->pollers; i++) {
		MUST(rpma_rt_poller_get_stats(site->rt, i, &stats,
					      sizeof(stats)));
		epoch->sum->spilled += stats.spilled;
		epoch->sum->stale += stats.stale;
		epoch->sum->recovered += stats.lost_events_recovered;
		epoch->sum->sleeps += stats.sleeps;
		/* nothing here makes one */
		if (epoch->trouble == SOAK_NONE)
			CHECK(stats.stale == 0);
	}
}

static void unmake_site(struct soak_epoch *epoch, struct soak_site *site)
{
	struct soak_queue *queue;
	int i;

	add_stats(epoch, site);
	for (i = 0; i < SOAK_QUEUES; i++) {
		queue = &site->queues[i];
		/* relaxed: nobody pushes any more */
		CHECK(queue->messages ==
		      atomic_load_explicit(&queue->pushed,
					   memory_order_relaxed));
		/* relaxed: a count */
		atomic_fetch_add_explicit(&epoch->sum->messages,
					  queue->messages,
					  memory_order_relaxed);
		MUST(rpma_rt_queue_delete(&queue->queue));
		pthread_mutex_destroy(&queue->turn);
	}
	MUST(rpma_rt_delete(&site->rt));
}

void soak_unmake(struct soak_epoch *epoch)
{
	int i;

	for (i = 0; i < epoch->sites_count; i++)
		unmake_site(epoch, &epoch->sites[i]);
	CHECK(epoch->alive == 0);
	free(epoch->conn_cfg[0]);
	free(epoch->conn_cfg[1]);
	MUST(rpma_mr_remote_delete(&epoch->remote));
	MUST(rpma_mr_remote_delete(&epoch->nowhere));
	MUST(rpma_mr_dereg(&epoch->mr));
	soak_give(epoch->memory, REGION);
	free(epoch->memory);
	MUST(rpma_peer_delete(&epoch->peer));
}
