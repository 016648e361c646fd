/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump_snapshot.c -- a snapshot of a runtime's objects. The directory's lock
 * keeps listed objects alive, and its holders never wait; a ledger is read
 * under its side's lock, if that is free. Any thread; no poller waits.
 * doc/protocols/directory.md.
 */

#include "dump_snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/runtime.h"
#include "conn/route.h"
#include "queue/lane.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

#define PATIENCE_S 1 /* a thread that changes a list never takes long */

/* ---------------------------------------------------------- connections --- */

static const struct rpma_rt_route *find_route(const struct rpma_rt_conn *conn,
					      uint32_t number)
{
	const struct rpma_rt_route *route = conn->listed;

	while (route != NULL && route->number != number)
		route = route->listed_next;
	if (route != NULL)
		return route;
	for (route = conn->listed_closed; route != NULL;
	     route = route->listed_next) {
		/* acquire: pairs with the release in rt_owing_bury_poller() */
		if (route->number == number &&
		    !atomic_load_explicit(&route->is_buried,
					  memory_order_acquire))
			break;
	}
	while (route != NULL && route->listed_to != NULL)
		route = route->listed_to;
	return route;
}

static void take_wr(const struct rpma_rt_conn *conn,
		    const struct rt_ledger_entry *entry, uint32_t now_ms,
		    struct rt_dump_wr *wr)
{
	const struct rpma_rt_route *route =
		find_route(conn, rt_wr_id_route(entry->wr_id));

	*wr = (struct rt_dump_wr){
		.context = rt_wr_id_cookie(entry->wr_id),
		.age_ms = now_ms - entry->tick,
		.opcode = entry->opcode,
		.on_error_only = (entry->wr_id & RT_ON_ERROR_ONLY) != 0,
	};
	if (route != NULL)
		wr->queue = route->listed_queue;
}

/* Under the side's lock, the gate not closed: the ledger is the holder's. */
static void take_ledger(const struct rpma_rt_conn *conn, struct rt_gate *gate,
			uint32_t now_ms, struct rt_dump_side *out)
{
	struct rt_ledger *ledger = &gate->ledger;
	uint32_t i;

	/* acquire [LEDGER-1]: as a poster */
	rt_ledger_reap(ledger, atomic_load_explicit(&gate->side->retired,
						    memory_order_acquire));
	out->outstanding = ledger->tail - ledger->head;
	for (i = 0; i < out->outstanding && i < RT_DUMP_WRS; i++)
		take_wr(conn,
			&ledger->entries[(ledger->head + i) & ledger->mask],
			now_ms, &out->wrs[i]);
	out->shown = i;
}

/* NULL: the ledger was read. */
static const char *try_ledger(const struct rpma_rt_conn *conn,
			      struct rt_gate *gate, uint32_t now_ms,
			      struct rt_dump_side *out)
{
	if (gate->single)
		return "single poster";
	if (pthread_mutex_trylock(&gate->lock))
		return "busy";
	/* relaxed: the lock orders it. A firm close takes the lock, and the
	 * ledger is handed over after it */
	out->gate = atomic_load_explicit(&gate->state, memory_order_relaxed);
	if (out->gate != RT_GATE_CLOSED)
		take_ledger(conn, gate, now_ms, out);
	pthread_mutex_unlock(&gate->lock);
	return out->gate == RT_GATE_CLOSED ? "closed" : NULL;
}

static void take_side(const struct rpma_rt_conn *conn, struct rt_gate *gate,
		      uint32_t now_ms, struct rt_dump_side *out)
{
	/* relaxed: statistics, which order nothing, all of these */
	uint32_t owed = atomic_load_explicit(&gate->owed, memory_order_relaxed);

	*out = (struct rt_dump_side){
		.depth = gate->ledger.depth,
		.want = atomic_load_explicit(&gate->side->want,
					     memory_order_relaxed),
		.gate = atomic_load_explicit(&gate->state,
					     memory_order_relaxed),
	};
	out->unread = try_ledger(conn, gate, now_ms, out);
	out->counted = out->unread == NULL || owed != RT_OWED_UNKNOWN;
	if (out->unread != NULL && out->counted)
		out->outstanding = owed;
}

static bool is_backlogged(const struct rpma_rt_conn *conn)
{
	const struct rpma_rt_route *route;

	for (route = conn->listed; route != NULL; route = route->listed_next) {
		if (route->listed_lane != NULL &&
		    rt_lane_is_backlogged(route->listed_lane))
			return true;
	}
	return false;
}

static void take_conn(struct rpma_rt_conn *conn, uint32_t now_ms,
		      struct rt_dump_conn *out)
{
	/* relaxed: statistic, orders nothing */
	uint32_t shown =
		atomic_load_explicit(&conn->ctl.shown, memory_order_relaxed);
	int i;

	*out = (struct rt_dump_conn){
		.handle = conn,
		.slot = conn->slot,
		.number = conn->number,
		.is_named = conn->is_named,
		.state = shown & 0xff,
		.reason = shown >> 8,
		.poller = conn->poller->index,
		.queue = conn->own[RPMA_RT_SEND_SIDE]->listed_queue,
		/* relaxed: statistic, orders nothing */
		.holders = atomic_load_explicit(&conn->target.count,
						memory_order_relaxed),
		.passive = conn->passive,
		.is_backlogged = is_backlogged(conn),
	};
	memcpy(out->name, conn->name, sizeof(out->name));
	/* acquire: pairs with the release in qp_is_made() */
	if (atomic_load_explicit(&conn->reached, memory_order_acquire) &
	    RT_REACHED_READY)
		out->qp_num = conn->qp_num;
	for (i = 0; i < 2; i++)
		take_side(conn, &conn->gate[i], now_ms, &out->side[i]);
}

/* ---------------------------------------------------- pollers, queues --- */

static void take_cq(const struct rt_cq *cq, const struct rt_dump_poller *poller,
		    struct rt_dump_cq *out)
{
	*out = (struct rt_dump_cq){
		.poller = poller->index,
		.channel = poller->channels - 1,
		.size = cq->cqe,
		.room = cq->room,
		.unacked = rt_cq_unacked(cq),
		.failed = cq->failed || cq->channel->failed,
	};
}

/* Writes the poller's CQs from cqs on; returns where the next one goes. */
static struct rt_dump_cq *take_poller(struct rt_poller *poller, uint32_t now_ms,
				      struct rt_dump_poller *out,
				      struct rt_dump_cq *cqs)
{
	const struct rt_channel *channel;
	const struct rt_cq *cq;

	*out = (struct rt_dump_poller){
		.index = poller->index,
		.cpu = poller->cpu,
		.asleep = rt_bell_ways(&poller->bell) != RT_BELL_AWAKE,
		/* relaxed: statistic, orders nothing */
		.stopping = atomic_load_explicit(&poller->stopping,
						 memory_order_relaxed),
		.clock_age_ms = now_ms - rt_poller_tick(poller),
	};
	for (channel = poller->channels; channel != NULL;
	     channel = channel->next) {
		out->channels++;
		for (cq = channel->cqs; cq != NULL; cq = cq->next) {
			take_cq(cq, out, cqs);
			out->unacked += cqs->unacked;
			cqs++;
		}
	}
	rpma_rt_poller_get_stats(poller->rt, (uint32_t)poller->index,
				 &out->stats, sizeof(out->stats));
	return cqs;
}

static uint32_t count_cqs(const struct rt_poller *poller)
{
	const struct rt_channel *channel;
	const struct rt_cq *cq;
	uint32_t count = 0;

	for (channel = poller->channels; channel != NULL;
	     channel = channel->next) {
		for (cq = channel->cqs; cq != NULL; cq = cq->next)
			count++;
	}
	return count;
}

static void count_all(const struct rpma_rt *rt, struct rt_dump *dump)
{
	const struct rpma_rt_queue *queue;
	const struct rpma_rt_conn *conn;
	int i;

	dump->pollers_count = (int)rt->cfg.pollers;
	for (i = 0; i < dump->pollers_count; i++)
		dump->cqs_count += count_cqs(&rt->pollers[i]);
	for (queue = rt->queues; queue != NULL; queue = rt_queue_next(queue))
		dump->queues_count++;
	for (conn = rt->conns; conn != NULL; conn = conn->next)
		dump->conns_count++;
}

void rt_dump_snapshot_free(struct rt_dump *dump)
{
	free(dump->pollers);
	free(dump->cqs);
	free(dump->queues);
	free(dump->conns);
}

/* One more of each: there may be none, and calloc(0) may be NULL. */
static int reserve(struct rt_dump *dump)
{
	dump->pollers =
		calloc((size_t)dump->pollers_count, sizeof(*dump->pollers));
	dump->cqs = calloc(dump->cqs_count + 1, sizeof(*dump->cqs));
	dump->queues = calloc(dump->queues_count + 1, sizeof(*dump->queues));
	dump->conns = calloc(dump->conns_count + 1, sizeof(*dump->conns));
	if (dump->pollers && dump->cqs && dump->queues && dump->conns)
		return 0;
	rt_dump_snapshot_free(dump);
	return RPMA_E_NOMEM;
}

static int take_locked(struct rpma_rt *rt, struct rt_dump *dump)
{
	uint32_t now_ms = (uint32_t)(rt_now_ns() / 1000000);
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct rt_dump_cq *cqs;
	uint32_t i;
	int ret;

	count_all(rt, dump);
	ret = reserve(dump);
	if (ret)
		return ret;
	dump->stopped = rt_context_is_stopped(rt);
	/* relaxed: statistic, orders nothing */
	dump->requests_refused = atomic_load_explicit(&rt->requests_refused,
						      memory_order_relaxed);
	cqs = dump->cqs;
	for (i = 0; i < (uint32_t)dump->pollers_count; i++)
		cqs = take_poller(&rt->pollers[i], now_ms, &dump->pollers[i],
				  cqs);
	for (i = 0, queue = rt->queues; queue != NULL;
	     i++, queue = rt_queue_next(queue)) {
		rt_queue_snapshot(queue, &dump->queues[i].view);
		rpma_rt_queue_get_stats(queue, &dump->queues[i].stats,
					sizeof(dump->queues[i].stats));
	}
	for (i = 0, conn = rt->conns; conn != NULL; i++, conn = conn->next)
		take_conn(conn, now_ms, &dump->conns[i]);
	return 0;
}

int rt_dump_snapshot_take(struct rpma_rt *rt, struct rt_dump *dump)
{
	struct timespec until;
	int ret;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	if (pthread_mutex_timedlock(&rt->directory, &until))
		return RPMA_RT_E_BUSY;
	ret = take_locked(rt, dump);
	pthread_mutex_unlock(&rt->directory);
	return ret;
}
