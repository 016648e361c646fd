/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * worker.c: takes a batch from the queue, ticks off each completion, lets the
 * end handle each completion, and then pumps each link with a completion, once:
 * so the posts caused by a batch need one doorbell per side.
 *
 * With --poll=manual the worker first runs a round of its poller, which fills
 * the queue of the worker: the completion never leaves the core. When no item
 * comes for a while, the worker arms the poller and sleeps on both file
 * descriptors.
 */

#include "worker.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "link.h"

#define BATCH	    64
#define WAIT_MS	    100
#define IDLE_ROUNDS 2000

static struct link *link_by_number(const struct worker *worker, unsigned index)
{
	/* relaxed: if the link belongs to this worker, the worker took the link
	 * over through its queue, which ordered the store before */
	return atomic_load_explicit(&worker->end->links[index],
				    memory_order_relaxed);
}

/*
 * Ticks a completion off. Returns NULL if the completion is for another worker,
 * or not outstanding. The link is looked up by the ticket, so a stale pointer
 * is never followed.
 */
static struct link *tick_off(struct worker *worker, const struct ticket *ticket,
			     const void *user)
{
	struct link *link = NULL;

	if (ticket->worker != worker->id)
		goto misrouted;
	link = link_by_number(worker, ticket->link);
	if (!link) {
		count(&worker->stats.duplicated, 1);
		return NULL;
	}
	if (link != user || link->worker != worker)
		goto misrouted;
	if (!tally_deliver(ticket->is_recv ? &link->recv_tally
					   : &link->send_tally,
			   ticket->slot, ticket->turn)) {
		count(&worker->stats.duplicated, 1);
		return NULL;
	}
	return link;

misrouted:
	count(&worker->stats.misrouted, 1);
	return NULL;
}

static void take_completion(struct worker *worker,
			    const struct rpma_rt_completion *cmpl)
{
	const struct end_ops *ops = worker->end->ops;
	struct ticket ticket = ticket_unpack(cmpl->context);

	count(&worker->stats.delivered, 1);
	struct link *link = tick_off(worker, &ticket, cmpl->user);
	if (!link)
		return;
	if (cmpl->status != IBV_WC_SUCCESS) {
		/* the first error breaks the connection: CLOSED follows */
		count(&worker->stats.failed, 1);
		return;
	}
	if (ticket.is_recv)
		ops->on_received(worker, link, ticket.slot, cmpl->byte_len);
	else
		ops->on_sent(worker, link, ticket.slot);
	link_touch(link);
}

/*
 * Ends a link after CLOSED, the last item: outstanding work requests are lost.
 */
static void finish(struct worker *worker, struct link *link)
{
	count(&worker->stats.lost,
	      (uint64_t)link->recv_tally.out + link->send_tally.out);
	worker->end->ops->on_gone(worker, link);
	link_delete(link);
}

static void take_event(struct worker *worker,
		       const struct rpma_rt_completion *event)
{
	struct link *link = event->user;
	bool is_last = event->opcode == RPMA_RT_EVENT_CLOSED;

	if (is_last)
		link->is_closing = link->is_closed = true;
	/* a link of a server may close before main handed the link over */
	if (!link->is_taken)
		return;
	worker->end->ops->on_event(worker, link, event);
	if (is_last)
		finish(worker, link);
	else
		link_touch(link);
}

static void take_command(struct worker *worker,
			 const struct rpma_rt_completion *message)
{
	enum command command = (enum command)message->context;
	struct link *link = message->user;

	if (command == COMMAND_STOP || command == COMMAND_ABORT)
		worker->is_stopping = true;
	if (command == COMMAND_GO)
		worker->has_go = true;
	if (command == COMMAND_ABORT)
		for (struct link *l = worker->links; l; l = l->next)
			link_close(l);
	if (command == COMMAND_TAKE)
		link_attach(link, worker);
	if (command == COMMAND_CLOSED)
		link->is_closing = link->is_closed = true;
	worker->end->ops->on_command(worker, command, link);
	if (link && link->is_taken && link->is_closed)
		finish(worker, link);
	/* stop and go are for all links */
	for (struct link *l = link ? NULL : worker->links; l; l = l->next)
		link_touch(l);
}

static void take_writable(const struct rpma_rt_completion *item)
{
	struct link *link = item->user;

	if (item->opcode == RPMA_RT_SEND_SIDE)
		link->is_send_blocked = false;
	else
		link->is_recv_blocked = false;
	link_touch(link);
}

static void take(struct worker *worker, const struct rpma_rt_completion *item)
{
	switch (item->kind) {
	case RPMA_RT_COMPLETION:
		take_completion(worker, item);
		break;
	case RPMA_RT_EVENT:
		take_event(worker, item);
		break;
	case RPMA_RT_MESSAGE:
		take_command(worker, item);
		break;
	case RPMA_RT_WRITABLE:
		take_writable(item);
		break;
	}
}

/*
 * Pumps marked links. A link that cannot post for now marks itself again, for
 * the next round.
 */
static void pump(struct worker *worker)
{
	struct link *link = worker->dirty;

	worker->dirty = NULL;
	while (link) {
		struct link *next = link->next_dirty;

		link->is_dirty = false;
		worker->end->ops->pump(worker, link);
		link = next;
	}
}

static void sleep_manual(struct worker *worker)
{
	struct pollfd fds[2] = {
		{.fd = worker->fds[0], .events = POLLIN},
		{.fd = worker->fds[1], .events = POLLIN},
	};

	/* either call may report more work */
	if (rpma_rt_queue_arm(worker->queue) == 0 &&
	    rpma_rt_poller_arm(worker->end->rt, (uint32_t)worker->poller) == 0)
		poll(fds, 2, WAIT_MS);
}

static int poll_manual(struct worker *worker, struct rpma_rt_completion *items)
{
	unsigned rounds = worker->end->options->workers_spin ? IDLE_ROUNDS : 1;
	bool busy = false;
	int ret = rpma_rt_poller_take(worker->end->rt, (uint32_t)worker->poller,
				      worker->queue, items, BATCH, &busy);

	if (ret || busy || worker->dirty) {
		worker->idle = 0;
	} else if (++worker->idle >= rounds) {
		worker->idle = 0;
		sleep_manual(worker);
	}
	return ret;
}

/* Gets items; returns how many. */
static int get_items(struct worker *worker, struct rpma_rt_completion *items)
{
	if (worker->poller >= 0)
		return poll_manual(worker, items);
	if (worker->dirty)
		return rpma_rt_queue_poll(worker->queue, items, BATCH);
	return rpma_rt_queue_wait(worker->queue, items, BATCH, WAIT_MS);
}

/*
 * Pins the thread to a separate allowed CPU: servers count from the first CPU,
 * clients from the last, so that two processes on a machine do not collide.
 */
static void pin(const struct worker *worker)
{
	enum { SETS = 16 }; /* of 1,024 CPUs each */
	cpu_set_t allowed[SETS], one[SETS];

	if (sched_getaffinity(0, sizeof(allowed), allowed))
		return;
	unsigned cpus = (unsigned)CPU_COUNT_S(sizeof(allowed), allowed);
	unsigned n = worker->number % cpus;
	if (worker->end->is_from_last)
		n = cpus - 1 - n;
	for (int cpu = 0; cpu < SETS * CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET_S(cpu, sizeof(allowed), allowed) || n--)
			continue;
		CPU_ZERO_S(sizeof(one), one);
		CPU_SET_S(cpu, sizeof(one), one);
		pthread_setaffinity_np(pthread_self(), sizeof(one), one);
		return;
	}
}

void *worker_main(void *arg)
{
	struct rpma_rt_completion items[BATCH];
	struct worker *worker = arg;

	if (worker->poller >= 0 && worker->end->options->workers_spin)
		pin(worker);
	/* BUSY if another thread had the poller: then every round returns
	 * BUSY */
	if (worker->poller >= 0)
		(void)!rpma_rt_poller_attach(worker->end->rt,
					     (uint32_t)worker->poller);
	while (!worker->is_stopping || worker->links) {
		int got = get_items(worker, items);

		if (got < 0) {
			end_fail(worker->end, "queue %u: %s", worker->number,
				 rpma_rt_err_2str(got));
			break;
		}
		if (got > 0)
			worker->now_ns = now_ns();
		for (int i = 0; i < got; i++)
			take(worker, &items[i]);
		pump(worker);
	}
	return NULL;
}

void worker_sweep(struct worker *worker)
{
	struct rpma_rt_completion item;

	while (rpma_rt_queue_poll(worker->queue, &item, 1) > 0) {
		if (item.kind != RPMA_RT_COMPLETION)
			continue;
		count(&worker->stats.delivered, 1);
		count(&worker->stats.duplicated, 1);
	}
}
