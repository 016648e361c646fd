/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * take.c -- takes a snapshot of a runtime. The directory's lock keeps listed
 * objects alive, and no holder of the lock waits. When an object has ended,
 * only words of the handle are read: things that the handle names may be gone.
 * Any thread; no poller waits. doc/protocols/directory.md.
 */

#define _GNU_SOURCE
#include "dump/dump.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adopt.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/lang.h"
#include "base/runtime.h"
#include "base/stats.h"
#include "conn/hold.h"
#include "conn/listener.h"
#include "conn/route.h"
#include "future/future.h"
#include "pool/feed.h"
#include "pool/pool.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "shard/shard.h"
#include "srq/srq.h"

#define TAKE_PATIENCE_S 1 /* changing a list never takes long */

const char *const rt_dump_states[RT_DUMP_STATES] = {
	[RT_CONN_RESOLVING] = "resolving",     [RT_CONN_READY] = "ready",
	[RT_CONN_CONNECTING] = "connecting",   [RT_CONN_DRAINING] = "draining",
	[RT_CONN_ESTABLISHED] = "established", [RT_CONN_SWEEPING] = "sweeping",
	[RT_CONN_DELETING] = "deleting",
};

/* ----------------------------------------------------------- the table --- */

static const char *take_opcode(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WC_SEND:
		return "send";
	case IBV_WC_RDMA_WRITE:
		return "write";
	case IBV_WC_RDMA_READ:
		return "read";
	case IBV_WC_RECV:
		return "recv";
	default:
		return "other";
	}
}

static const void *take_user(const struct rpma_rt_conn *conn)
{
	/* relaxed: the program orders its own pointer */
	return atomic_load_explicit(&conn->user, memory_order_relaxed);
}

#define STAT(word)   ((int64_t)rt_stat_read32(&it->word))
#define STAT64(word) ((int64_t)rt_stat_read(&it->word))
#define IS(word)     rt_stat_is(&it->word)
#define AGO(word) \
	rt_ms_between(rt_stat_read32(&it->word), (uint32_t)dump->now_ms)
#define NONE_IF(is_none, number) ((is_none) ? RT_DUMP_NONE : (int64_t)(number))

/* Fills the fields of an object that have a value in the table. */
/* clang-format off */
#define OBJECT(object, source) \
static inline __attribute__((unused)) void take_fill_##object( \
	struct rt_dump_all *dump, source *it, \
	struct rt_dump_##object *out) \
{ \
	(void)dump; \
	(void)it;
#define END(object, subject, labels, human) }
/* clang-format on */
#define JSON(type, name, ...) (void)(out->name __VA_ARGS__);
#define KEPT(type, name, ...) (void)(out->name __VA_ARGS__);
#define METRIC(form, type, name, metric, help, ...) \
	(void)(out->name __VA_ARGS__);
#define PART(form, object, name)
#define LIST(form, object, name)
#define ARRAY(form, object, name, max)
#include "dump/table.h"

/* Adds an object to a list of dump and fills the fields with a value. False:
 * there is no memory. */
#define TAKE_ADD(list, object, it, out)                              \
	(((out) = rt_dump_add(dump, &dump->list, sizeof(*(out)))) && \
	 (take_fill_##object(dump, it, out), true))

/* Notes the holder of a queue, if a delete of the queue was refused. */
static void take_hold(struct rt_dump_all *dump, uint32_t queue, const char *by)
{
	const struct rt_dump_queue *of;
	struct rt_dump_hold *hold;

	if (!dump->has_refused || dump->holds.count == RT_DUMP_HOLDS)
		return;
	RT_DUMP_FOR(of, &dump->queues)
	{
		if (of->queue == queue && of->delete_refused &&
		    TAKE_ADD(holds, hold, by, hold))
			hold->queue = queue;
	}
}

/* ----------------------------------------------------- pollers, queues --- */

/* Takes the function that the poller is inside, and the owner. */
static void take_runs(struct rt_poller *poller, const struct rt_dump_all *dump,
		      struct rt_dump_poller *out)
{
	char name[RT_THREAD_NAME] = "";
	pid_t tid = 0;

	/* acquire: pairs with the release in rt_callback_show() */
	out->function = atomic_load_explicit(&poller->calls.shown,
					     memory_order_acquire);
	out->in_function = out->function != NULL;
	if (out->in_function)
		out->function_ms =
			rt_ms_between(rt_stat_read32(&poller->calls.since_ms),
				      (uint32_t)dump->now_ms);
	if (out->function == &poller->futures)
		out->function_of = rt_dump_text("a future");
	if (!out->manual)
		return;
	out->is_free =
		rt_owner_look(&poller->owned, name, &tid) == RT_OWNER_NONE;
	out->owner_tid = tid;
	out->owner = rt_dump_text("%s", name);
}

static void take_poller(struct rpma_rt *rt, struct rt_poller *poller,
			struct rt_dump_all *dump)
{
	const struct rt_channel *channel;
	struct rpma_rt_poller_stats stats;
	struct rt_dump_poller *out;
	struct rt_dump_cq *cq_out;
	const struct rt_cq *cq;

	if (!TAKE_ADD(pollers, poller, poller, out))
		return;
	take_runs(poller, dump, out);
	rpma_rt_poller_get_stats(rt, (uint32_t)poller->index, &stats,
				 sizeof(stats));
	take_fill_poller_stats(dump, &stats, &out->stats);
	for (channel = poller->channels; channel; channel = channel->next) {
		for (cq = channel->cqs; cq != NULL; cq = cq->next) {
			if (!TAKE_ADD(cqs, cq, cq, cq_out))
				return;
			cq_out->poller = poller->index;
			cq_out->channel = out->channels;
			out->unacknowledged += cq_out->unacknowledged;
		}
		out->channels++;
	}
}

static void take_queue(struct rpma_rt_queue *queue, struct rt_dump_all *dump)
{
	struct rpma_rt_queue_stats stats;
	struct rt_queue_state state;
	struct rt_dump_queue *out;

	rt_queue_snapshot(queue, (uint32_t)dump->now_ms, &state);
	if (!TAKE_ADD(queues, queue, &state, out))
		return;
	out->is_named =
		strcmp(rt_dump_text("queue %u", state.id).at, state.name) != 0;
	dump->has_refused |= out->delete_refused;
	rpma_rt_queue_get_stats(queue, &stats, sizeof(stats));
	take_fill_queue_stats(dump, &stats, &out->stats);
	out->dispatch = stats.dispatch;
	out->wakeup = stats.wakeup;
}

/* ------------------------------------- listeners, SRQs, adopted, pools --- */

static void take_listener(const struct rpma_rt_listener *listener,
			  struct rt_dump_all *dump)
{
	const struct rt_listener_poller *part = listener->parts;
	struct rt_dump_listener *out;
	struct rt_dump_text label;
	uint32_t i;

	if (!TAKE_ADD(listeners, listener, listener, out))
		return;
	/* relaxed: statistic, orders nothing */
	out->refused_for = atomic_load_explicit(&listener->refused_for,
						memory_order_relaxed);
	/* a listener is over before the listener lets its queues go, and a
	 * queue is unlisted before the queue is freed */
	if (out->over)
		return;
	if (listener->cfg.queue != NULL)
		out->queue = rt_queue_id(listener->cfg.queue);
	label = rt_dump_text("listener %u", listener->number);
	for (i = 0; i < dump->pollers.count; i++) {
		if (part[i].queue != NULL)
			take_hold(dump, rt_queue_id(part[i].queue), label.at);
	}
}

static void take_srq(const struct rpma_rt_srq *srq, struct rt_dump_all *dump)
{
	struct rt_dump_poller *poller = dump->pollers.at;
	uint32_t posted = rt_stat_read32(&srq->posted);
	uint32_t retired = rt_stat_read32(&srq->retired);
	struct rt_dump_text label;
	struct rt_dump_srq *out;

	if (!TAKE_ADD(srqs, srq, srq, out))
		return;
	out->out = srq->cfg.srq_size - (retired - posted);
	/* posted may be older than retired */
	if (out->out > out->size)
		out->out = 0;
	poller += srq->poller->index;
	label = rt_dump_text("SRQ %u of poller %d", srq->number,
			     srq->poller->index);
	if (poller->function == srq)
		poller->function_of = label;
	/* the queue of an SRQ lives as long as a listener's */
	if (out->over || srq->queue == NULL)
		return;
	out->queue = rt_queue_id(srq->queue);
	take_hold(dump, rt_queue_id(srq->queue), label.at);
}

static void take_adopted(const struct rpma_rt_adopted *adopted,
			 struct rt_dump_all *dump)
{
	struct rt_dump_adopted *out;

	if (!TAKE_ADD(adopted, adopted, adopted, out) || out->over)
		return;
	out->queue = rt_queue_id(adopted->queue);
	take_hold(dump, rt_queue_id(adopted->queue), "an adopted connection");
}

static void take_pool(const struct rpma_rt_pool *pool, struct rt_dump_all *dump)
{
	struct rt_dump_pool *out;
	uint32_t since;
	uint32_t ms;
	uint32_t i;

	if (!TAKE_ADD(pools, pool, pool, out))
		return;
	out->sends_out = out->out - out->receives_out;
	for (i = 0; i < pool->rt->cfg.pollers; i++) {
		since = rt_stat_read32(&pool->feeders[i].low_ms);
		ms = rt_ms_between(since, (uint32_t)dump->now_ms);
		if (since != 0 && ms > out->low_for_ms)
			out->low_for_ms = ms;
	}
}

/* -------------------------------------------------------------- shards --- */

static void take_lane(const struct rt_shard_lane *lane, uint32_t from,
		      struct rt_dump_shard *out)
{
	struct rt_dump_lane *shown = &out->lanes[out->lanes_count++];
	/* acquire, both: head first, so that tail is not behind head */
	uint32_t head = atomic_load_explicit(&lane->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_acquire);

	shown->from = from;
	shown->waiting = tail - head;
	/* relaxed: shown, orders nothing */
	shown->wants_room =
		atomic_load_explicit(&lane->wants, memory_order_relaxed);
	out->waiting += shown->waiting;
}

/* Takes a shard, which runs meanwhile: figures that are read at once need not
 * belong together. */
static void take_shard(struct rpma_rt_shards *set, uint32_t index,
		       struct rt_dump_shard *out)
{
	static const char *const stops[] = {"", ", stopping: sends nothing",
					    ", stopping: answers nothing",
					    ", stopped"};
	const struct rpma_rt_shard *shard = &set->shards[index];
	struct rpma_rt_shard_stats stats;
	uint32_t i;

	/* relaxed, here and below: shown, they order nothing */
	out->asleep =
		atomic_load_explicit(&shard->asleep, memory_order_relaxed) & 1;
	/* relaxed, both: as above */
	out->run =
		atomic_load_explicit(&shard->runner, memory_order_relaxed) != 0;
	out->phase = atomic_load_explicit(&shard->phase, memory_order_relaxed);
	out->stop = stops[out->phase];
	rpma_rt_shard_get_stats(shard, &stats, sizeof(stats));
	out->unanswered = (int64_t)stats.unanswered;
	out->owed = (int64_t)stats.owed;
	out->refused = (int64_t)stats.refused;
	/* the lock: which lanes there are */
	pthread_mutex_lock(&set->lock);
	for (i = 0; i < set->count; i++) {
		if (set->lanes[i * set->count + index] != NULL)
			take_lane(set->lanes[i * set->count + index], i, out);
	}
	pthread_mutex_unlock(&set->lock);
}

static void take_shards(struct rpma_rt_shards *set, uint32_t number,
			struct rt_dump_all *dump)
{
	struct rt_dump_queue *queue;
	struct rt_dump_shard *out;
	uint32_t i;

	for (i = 0; i < set->count; i++) {
		if (!TAKE_ADD(shards, shard, &set->shards[i], out))
			return;
		out->set = number;
		take_shard(set, i, out);
		RT_DUMP_FOR(queue, &dump->queues)
		{
			queue->is_of_shard |= queue->queue == out->queue;
		}
	}
}

/* -------------------------------------------------------------- routes --- */

static const struct rpma_rt_route *
take_find_route(const struct rpma_rt_conn *conn, uint32_t number)
{
	const struct rpma_rt_route *route = conn->listed;

	while (route != NULL && route->number != number)
		route = rt_route_listed_next(route);
	if (route != NULL)
		return route;
	for (route = conn->listed_closed; route != NULL;
	     route = rt_route_listed_next(route)) {
		/* acquire: pairs with the release in rt_owing_bury_poller() */
		if (route->number == number &&
		    !atomic_load_explicit(&rt_route_opened(route)->is_buried,
					  memory_order_acquire))
			break;
	}
	while (route != NULL && !route->is_own &&
	       rt_route_opened(route)->listed_to != NULL)
		route = rt_route_opened(route)->listed_to;
	return route;
}

/* Takes the routes of a list: holders of queues, functions that run. */
static void take_routes(const struct rpma_rt_route *route,
			const struct rt_dump_conn *conn,
			struct rt_dump_all *dump)
{
	struct rt_dump_poller *poller = dump->pollers.at;
	struct rt_dump_text label =
		rt_dump_text("connection \"%s\"", conn->name.at);

	poller += conn->poller;
	for (; route != NULL; route = rt_route_listed_next(route)) {
		if (!route->is_own &&
		    poller->function == &rt_route_opened(route)->callback)
			poller->function_of = label;
		if (route->listed_queue != 0)
			take_hold(dump, route->listed_queue, label.at);
	}
}

static bool take_is_backlogged(const struct rpma_rt_conn *conn)
{
	const struct rpma_rt_route *route;
	const struct rt_lane *lane;

	for (route = conn->listed; route != NULL;
	     route = rt_route_listed_next(route)) {
		/* alive while the directory's lock is held: route_relist() */
		lane = rt_route_lane(route);
		if (lane != NULL && rt_lane_is_backlogged(lane))
			return true;
	}
	return false;
}

/* ------------------------------------------------------- work requests --- */

static void take_wr(const struct rpma_rt_conn *conn,
		    const struct rt_ledger_entry *entry,
		    struct rt_dump_all *dump, struct rt_dump_wr *out)
{
	uint32_t number = rt_wr_id_route(entry->wr_id);
	const struct rpma_rt_route *route = take_find_route(conn, number);
	int i;

	take_fill_wr(dump, entry, out);
	if (route != NULL)
		out->queue = route->listed_queue;
	for (i = 0; i < 2; i++)
		out->has_future |= conn->side[i].futures != NULL &&
				   conn->side[i].futures->number == number;
}

/* Reads the ledger, with the right to post. */
static void take_ledger(const struct rpma_rt_conn *conn, int side,
			struct rt_dump_all *dump, struct rt_dump_conn *of,
			struct rt_dump_side *out)
{
	const struct rt_ledger *ledger = &conn->gate[side].ledger;
	/* acquire [LEDGER-1]: as a holder */
	uint32_t first = atomic_load_explicit(&conn->side[side].retired,
					      memory_order_acquire);
	const struct rt_ledger_entry *entry;
	uint32_t i;

	out->outstanding = ledger->tail - first;
	for (i = first; i != ledger->tail && i - first < RT_DUMP_WRS; i++)
		take_wr(conn, &ledger->entries[i & ledger->mask], dump,
			&out->oldest[out->oldest_count++]);
	for (i = first; side == RPMA_RT_SEND_SIDE && i != ledger->tail; i++) {
		entry = &ledger->entries[i & ledger->mask];
		if (!entry->signaled)
			continue; /* may have completed long ago */
		of->waiting = take_opcode(entry->opcode);
		of->is_message = entry->opcode == IBV_WC_SEND;
		of->waiting_ms =
			rt_ms_between(entry->tick, (uint32_t)dump->now_ms);
		break;
	}
}

/* Reads the ledger; returns NULL, or why the ledger cannot be read. The ledger
 * of a closed side may be the poller's already. */
static const char *take_try_ledger(struct rpma_rt_conn *conn, int side,
				   struct rt_dump_all *dump,
				   struct rt_dump_conn *of,
				   struct rt_dump_side *out)
{
	if (strcmp(out->gate, "closed") == 0)
		return "closed";
	if (!rt_turn_try_take(&conn->gate[side].turn))
		return "busy";
	take_ledger(conn, side, dump, of, out);
	rt_hold_let_go(conn, (enum rpma_rt_side)side);
	return NULL;
}

/* Takes how many work requests are outstanding: the ledger knows, and the
 * poller of a side that dies. */
static void take_counts(struct rpma_rt_conn *conn, int i,
			struct rt_dump_all *dump, struct rt_dump_conn *of,
			struct rt_dump_side *out)
{
	const struct rt_gate *gate = &conn->gate[i];
	uint32_t owed = rt_stat_read32(&conn->side[i].owed);
	uint32_t count =
		rt_stat_read32(&gate->ledger.posted) - (uint32_t)out->retired;
	const char *unread;

	out->depth = gate->ledger.depth;
	out->in_line = rt_freelist_used(&gate->turn.free);
	out->outstanding = count <= out->depth ? count : 0;
	unread = take_try_ledger(conn, i, dump, of, out);
	if (owed != RT_OWED_UNKNOWN) { /* with the line */
		out->outstanding = owed;
		out->in_line = 0;
	}
	out->is_read = unread == NULL;
	if (unread != NULL)
		out->ledger = unread;
	else if (out->outstanding > out->oldest_count)
		out->more = out->outstanding - out->oldest_count;
}

static const char *take_gate(uint64_t word)
{
	if (word & RT_TURN_CLOSED)
		return "closed";
	if (word & RT_TURN_DRAINED)
		return "draining";
	return word & RT_TURN_OPEN ? "open" : "not yet";
}

static void take_side(struct rpma_rt_conn *conn, int i,
		      struct rt_dump_all *dump, struct rt_dump_conn *of,
		      struct rt_dump_side *out)
{
	const struct rt_side *side = &conn->side[i];
	uint64_t word = rt_turn_look(&conn->gate[i].turn);
	uint32_t want = rt_stat_read32(&side->want);

	out->gate = take_gate(word);
	out->is_inside = rt_turn_is_held(&conn->gate[i].turn);
	out->refused_credit = (want & RT_WANT_CREDIT) != 0;
	out->refused_backlog = (want & RT_WANT_BACKLOG) != 0;
	out->retired = rt_stat_read32(&side->retired);
	if (out->retired != 0)
		out->retired_ms =
			rt_ms_between(rt_stat_read32(&side->retired_ms),
				      (uint32_t)dump->now_ms);
	out->idle_ms = of->state_ms;
	if (out->retired != 0 && out->retired_ms < out->idle_ms)
		out->idle_ms = out->retired_ms;
	if (out->idle_ms < of->idle_ms)
		of->idle_ms = out->idle_ms;
	take_counts(conn, i, dump, of, out);
}

/* --------------------------------------------------------- connections --- */

static struct rt_dump_text take_addr(const union rt_peer_addr *addr)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &addr->in.sin_addr, host, sizeof(host));
		return rt_dump_text("%s:%u", host, ntohs(addr->in.sin_port));
	}
	if (addr->any.sa_family != AF_INET6)
		return (struct rt_dump_text){""};
	inet_ntop(AF_INET6, &addr->in6.sin6_addr, host, sizeof(host));
	return rt_dump_text("[%s]:%u", host, ntohs(addr->in6.sin6_port));
}

/* Takes the fields of the record itself. NULL: there is no memory. */
static struct rt_dump_conn *take_record(const struct rpma_rt_conn *conn,
					struct rt_dump_all *dump)
{
	uint32_t shown = rt_stat_read32(&conn->ctl.shown);
	/* acquire: pairs with the release in rt_conn_qp_is_made_control() */
	uint32_t reached =
		atomic_load_explicit(&conn->reached, memory_order_acquire);
	struct rt_dump_conn *out;

	if (!TAKE_ADD(connections, conn, conn, out))
		return NULL;
	take_fill_side(dump, NULL, &out->send);
	take_fill_side(dump, NULL, &out->recv);
	out->is_decided = (reached & RT_REACHED_DECISION) != 0;
	out->phase = shown & 0xff;
	out->state = rt_dump_states[out->phase];
	if (out->phase >= RT_CONN_DRAINING)
		out->reason =
			rpma_rt_reason_2str((enum rpma_rt_reason)(shown >> 8));
	if (reached & RT_REACHED_READY) {
		out->qp_num = conn->qp_num;
		out->peer = take_addr(&conn->peer_addr);
	}
	return out;
}

static void take_conn(struct rpma_rt_conn *conn, struct rt_dump_all *dump)
{
	struct rt_dump_conn *out = take_record(conn, dump);
	struct rt_dump_srq *srq;

	if (out == NULL)
		return;
	out->queue = conn->own[RPMA_RT_SEND_SIDE].listed_queue;
	out->backlogged = take_is_backlogged(conn);
	take_side(conn, RPMA_RT_SEND_SIDE, dump, out, &out->send);
	take_side(conn, RPMA_RT_RECV_SIDE, dump, out, &out->recv);
	take_routes(conn->listed, out, dump);
	take_routes(conn->listed_closed, out, dump);
	RT_DUMP_FOR(srq, &dump->srqs)
	{
		srq->connections += srq->handle == rt_conn_srq(conn);
	}
}

/* Takes a connection that is DONE: nothing but the record is read. A record
 * that is freed already, but for a list, is left out. */
static void take_ended(const struct rpma_rt_conn *conn,
		       struct rt_dump_all *dump)
{
	struct rt_dump_conn *out = take_record(conn, dump);

	if (out == NULL)
		return;
	out->state = "ended";
	out->is_ended = true;
	if (out->held == 0)
		dump->connections.count--;
}

/* ---------------------------------------------------------- everything --- */

static void take_locked(struct rpma_rt *rt, struct rt_dump_all *dump)
{
	const struct cds_list_head *link;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	uint32_t sets = 0;
	uint32_t i;

/* Follows the links of a list: the list's head is in no object. */
#define TAKE_EACH(list, type, take)                                      \
	for (link = rt->list.next; link != &rt->list; link = link->next) \
	take(RT_FROM(type, listed, link), dump)

	dump->now_ms = (uint32_t)(rt_now_ns() / 1000000);
	take_fill_all(dump, rt, dump);
	/* relaxed: statistic, orders nothing */
	dump->cm_errno =
		atomic_load_explicit(&rt->cm_errno, memory_order_relaxed);
	for (i = 0; i < rt->cfg.pollers; i++)
		take_poller(rt, &rt->pollers[i], dump);
	for (queue = rt->queues; queue != NULL; queue = rt_queue_next(queue))
		take_queue(queue, dump);
	if (dump->is_short) /* the others look pollers up */
		return;
	TAKE_EACH(listed_listeners, const struct rpma_rt_listener,
		  take_listener);
	TAKE_EACH(listed_srqs, const struct rpma_rt_srq, take_srq);
	TAKE_EACH(listed_adopted, const struct rpma_rt_adopted, take_adopted);
	TAKE_EACH(listed_pools, const struct rpma_rt_pool, take_pool);
	cds_list_for_each(link, &rt->listed_shards) take_shards(
		RT_FROM(struct rpma_rt_shards, listed, link), sets++, dump);
	rt_hold_recall(rt->conns);
	for (conn = rt->conns; conn != NULL; conn = conn->next)
		take_conn(conn, dump);
	for (conn = rt->ended; conn != NULL; conn = conn->next)
		take_ended(conn, dump);
}

/* ---------------------------------------------------- without the lock --- */

/* Returns the name of a thread of this process; empty: the thread has ended. */
static struct rt_dump_text take_name(int64_t tid)
{
	struct rt_dump_text name = {""};
	ssize_t len;
	int fd;

	if (tid <= 0)
		return name;
	fd = open(rt_dump_text("/proc/self/task/%u/comm", (uint32_t)tid).at,
		  O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return name;
	len = read(fd, name.at, RT_THREAD_NAME - 1);
	close(fd);
	name.at[len > 0 ? len : 0] = '\0';
	name.at[strcspn(name.at, "\n")] = '\0';
	return name;
}

/* Returns whether the owner of a manual poller would find something to do, as
 * far as can be seen. */
static bool take_has_work(struct rt_poller *poller)
{
	struct pollfd fd = {.fd = poller->epfd, .events = POLLIN};

	return !rt_mpsc_is_empty_mt(&poller->inbox.shared) ||
	       poll(&fd, 1, 0) > 0;
}

static void take_add_named(const struct rt_dump_conn *conn, const char *name,
			   const struct rt_dump_side *side,
			   struct rt_dump_all *dump)
{
	struct rt_dump_named *named;

	if (!TAKE_ADD(named, named, conn, named))
		return;
	named->side = name;
	named->outstanding = side->outstanding;
}

static void take_sum(struct rt_dump_all *dump)
{
	const struct rt_dump_conn *conn;

	while (dump->states_count < RT_DUMP_STATES) {
		take_fill_state(dump, &rt_dump_states[dump->states_count],
				&dump->states[dump->states_count]);
		dump->states_count++;
	}
	take_fill_sum(dump, "send", &dump->sums[0]);
	take_fill_sum(dump, "recv", &dump->sums[1]);
	dump->sums_count = 2;
	RT_DUMP_FOR(conn, &dump->connections)
	{
		if (conn->is_ended)
			continue;
		dump->states[conn->phase].count++;
		dump->sums[0].outstanding += conn->send.outstanding;
		dump->sums[1].outstanding += conn->recv.outstanding;
		/* receives wait for the peer, however long */
		if (conn->send.oldest_count > 0 &&
		    conn->send.oldest[0].age_ms > dump->oldest_send)
			dump->oldest_send = conn->send.oldest[0].age_ms;
		if (!conn->is_named)
			continue;
		take_add_named(conn, "send", &conn->send, dump);
		take_add_named(conn, "recv", &conn->recv, dump);
	}
}

static void take_rest(struct rpma_rt *rt, struct rt_dump_all *dump)
{
	struct rt_dump_poller *poller;
	struct rt_dump_queue *queue;

	RT_DUMP_FOR(queue, &dump->queues)
	{
		queue->take_thread = take_name(queue->take_tid);
		queue->inside_thread = take_name(queue->inside_tid);
	}
	RT_DUMP_FOR(poller, &dump->pollers)
	{
		if (poller->manual && !dump->stopped)
			poller->has_work =
				take_has_work(&rt->pollers[poller->poller]);
	}
	dump->cm_error = strerror((int)dump->cm_errno);
	take_sum(dump);
}

/* ---------------------------------------------------------------- lock --- */

/* ThreadSanitizer of gcc 12 does not know pthread_mutex_clocklock(), but the
 * unlock. These calls are weak: NULL without the sanitizer. */
#define TAKE_TRY_LOCK (1u << 4) /* __tsan_mutex_try_lock */
extern __attribute__((weak, visibility("default"))) void
__tsan_mutex_pre_lock(void *at, unsigned flags);
extern __attribute__((weak, visibility("default"))) void
__tsan_mutex_post_lock(void *at, unsigned flags, int depth);

/* Waits for the directory's lock for a second at most. */
static int take_lock(struct rpma_rt *rt)
{
	struct timespec until;

	/* not the time of day, which may be set meanwhile */
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TAKE_PATIENCE_S;
	if (pthread_mutex_clocklock(&rt->directory, CLOCK_MONOTONIC, &until))
		return RPMA_RT_E_BUSY;
	if (__tsan_mutex_pre_lock != NULL && __tsan_mutex_post_lock != NULL) {
		__tsan_mutex_pre_lock(&rt->directory, TAKE_TRY_LOCK);
		__tsan_mutex_post_lock(&rt->directory, TAKE_TRY_LOCK, 0);
	}
	return 0;
}

int rt_dump_take(struct rpma_rt *rt, struct rt_dump_all *dump)
{
	int ret = take_lock(rt);

	if (ret)
		return ret;
	take_locked(rt, dump);
	pthread_mutex_unlock(&rt->directory);
	if (!dump->is_short)
		take_rest(rt, dump);
	return dump->is_short ? RPMA_E_NOMEM : 0;
}
