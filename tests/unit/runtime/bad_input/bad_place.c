/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The right call in the wrong place: on a poller, on the event thread, in a
 * child of fork(), while another thread does the same; see bad_input.c.
 */

#include "bad_input.h"

#include "adopt.h"
#include "base/context.h"
#include "events/events.h"
#include "pool/pool.h"
#include "queue/impl.h"
#include "death.h"

/* ------------------------------------------------------- wrong thread --- */

/* Everything that waits, or makes what could be waited for. */
static void refuse_waiting(struct fake *f, struct rpma_rt_conn *conn,
			   struct rpma_rt_srq *shared)
{
	struct rpma_rt_listener *listener = &f->listener;
	struct rpma_rt_srq_cfg srq_cfg = bad_srq_cfg(f->queue);
	struct rpma_rt_queue *queue = f->queue;
	struct rpma_rt *rt = f->rt;
	struct rpma_rt_pool_cfg pool_cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool made_up = {.rt = rt};
	struct rpma_rt_pool *pool = &made_up;
	struct rt_futures block = {.rt = rt};
	struct rt_future slot = {.of = &block};
	struct rpma_rt_future future = {{(uintptr_t)&slot, 0}};
	struct rpma_rt_adopted adopted = {.rt = rt};
	struct rpma_rt_adopted *handle = &adopted;
	struct rpma_conn plain = {0};
	struct rpma_srq srq = {0};

#define THREAD(...)                                                 \
	BAD_SAYS("function that the runtime called|another thread", \
		 RPMA_RT_E_THREAD, __VA_ARGS__)
	THREAD(rpma_rt_new, NULL, &out.rt);
	THREAD(rpma_rt_stop, rt);
	THREAD(rpma_rt_delete, &rt);
	THREAD(rpma_rt_poller_run, rt, 0, 1);
	THREAD(rpma_rt_poller_take, rt, 0, queue, out.items, 1, &out.busy);
	THREAD(rpma_rt_poller_arm, rt, 0);
	THREAD(rpma_rt_poller_release, rt, 0);
	THREAD(rpma_rt_poller_attach, rt, 0);
	THREAD(rpma_rt_queue_new, rt, NULL, &out.queue);
	THREAD(rpma_rt_queue_delete, &queue);
	THREAD(rpma_rt_queue_wait, queue, out.items, 1, 0);
	THREAD(rpma_rt_listen, rt, "::1", "1", &f->rt_cfg, &out.listener);
	THREAD(rpma_rt_listener_delete, &listener);
	THREAD(rpma_rt_listener_drain, listener, 0);
	THREAD(rpma_rt_conn_new, rt, "::1", "1", &f->rt_cfg, &out.conn);
	THREAD(rpma_rt_adopt, rt, &plain, 0, queue, NULL, &out.adopted);
	THREAD(rpma_rt_adopt_srq, rt, &srq, 0, queue, NULL, &out.adopted);
	THREAD(rpma_rt_adopted_release, &handle);
	THREAD(rpma_rt_srq_new, rt, &srq_cfg, &out.srq);
	THREAD(rpma_rt_srq_delete, &shared);
	pool_cfg.peer = &fake_peer;
	THREAD(rpma_rt_pool_new, rt, &pool_cfg, &out.pool);
	THREAD(rpma_rt_pool_delete, &pool);
	THREAD(rpma_rt_future_wait, &future, out.items, 0);
	THREAD(rpma_rt_future_wait_some, &future, 1, 1, 0);
	THREAD(rpma_rt_conn_set_queue, conn, queue);
	THREAD(rpma_rt_route_close, &conn->own[RPMA_RT_SEND_SIDE], NULL);
	THREAD(rpma_rt_conn_set_user, conn, NULL);
	THREAD(rpma_rt_conn_set_name, conn, "a name");
	THREAD(rpma_rt_route_open, conn, RPMA_RT_SEND_SIDE, queue, &out.route);
	THREAD(rpma_rt_route_open_callback, conn, RPMA_RT_SEND_SIDE, bad_hear,
	       NULL, &out.route);
}

void waiting_on_a_poller(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_srq *srq = bad_srq_open(f);

	ok(rt_poller_enter(f->poller));
	refuse_waiting(f, conn, srq);
	rt_poller_leave(f->poller);
	fake_bury(f, &conn);
	bad_srq_end(f, srq);
}

struct event_thread {
	struct fake *f;
	struct rpma_rt_conn *conn;
	struct rpma_rt_srq *srq;
};

static int on_event_thread(void *arg)
{
	struct event_thread *event_thread = arg;

	refuse_waiting(event_thread->f, event_thread->conn, event_thread->srq);
	return 0;
}

void waiting_on_the_event_thread(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_srq *srq = bad_srq_open(f);
	struct event_thread event_thread = {f, conn, srq};

	ok(rt_events_ref(NULL));
	ok(rt_events_call(on_event_thread, &event_thread));
	rt_events_unref();
	fake_bury(f, &conn);
	bad_srq_end(f, srq);
}

/* ----------------------------------------------------- before a fork() --- */

static void refuse_forked(struct fake *f, struct rpma_rt_conn *conn,
			  struct rpma_rt_srq *shared)
{
	const struct ibv_async_event event = {.event_type = 1};
	struct rpma_rt_listener *listener = &f->listener;
	struct rpma_rt_srq_cfg srq_cfg = bad_srq_cfg(f->queue);
	struct rpma_rt_queue *queue = f->queue;
	struct rpma_rt *rt = f->rt;
	struct rpma_rt_pool_cfg pool_cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool made_up = {.rt = rt};
	struct rpma_rt_pool *pool = &made_up;
	struct rpma_rt_lease lease = {.pool = pool, .generation = 1};
	const struct rpma_rt_lease *const leases = &lease;
	struct rt_futures block = {.rt = rt};
	struct rt_future slot = {.of = &block};
	/* the handle names the process that has the future */
	struct rpma_rt_future future = {{(uintptr_t)&slot, UINT64_C(1) << 32}};
	struct rpma_rt_adopted adopted = {.rt = rt};
	struct rpma_rt_adopted *handle = &adopted;
	struct rpma_conn plain = {0};
	struct rpma_srq srq = {0};

#define FORKED(...) \
	BAD_SAYS("fork()|in this process", RPMA_RT_E_FORKED, __VA_ARGS__)
	FORKED(rpma_rt_stop, rt);
	FORKED(rpma_rt_delete, &rt);
	FORKED(rpma_rt_dump, rt, 1, RPMA_RT_DUMP_HUMAN);
	FORKED(rpma_rt_poller_run, rt, 0, 1);
	FORKED(rpma_rt_poller_take, rt, 0, queue, out.items, 1, &out.busy);
	FORKED(rpma_rt_poller_arm, rt, 0);
	FORKED(rpma_rt_poller_release, rt, 0);
	FORKED(rpma_rt_poller_attach, rt, 0);
	FORKED(rpma_rt_poller_get_fd, rt, 0, &out.number);
	FORKED(rpma_rt_poller_get_stats, rt, 0, &out.poller_stats,
	       sizeof(out.poller_stats));
	FORKED(rpma_rt_feed_async_event, rt, &fake_ctx, &event);
	FORKED(rpma_rt_queue_new, rt, NULL, &out.queue);
	FORKED(rpma_rt_queue_delete, &queue);
	FORKED(rpma_rt_queue_poll, queue, out.items, 1);
	FORKED(rpma_rt_queue_wait, queue, out.items, 1, -1);
	FORKED(rpma_rt_queue_get_fd, queue, &out.number);
	FORKED(rpma_rt_queue_arm, queue);
	FORKED(rpma_rt_queue_push, queue, out.items);
	FORKED(rpma_rt_queue_hold, queue, 1);
	FORKED(rpma_rt_queue_close, queue);
	BAD_SAYS(SWEEP_SILENCE, RPMA_RT_E_FORKED, rpma_rt_queue_wake, queue);
	FORKED(rpma_rt_queue_get_stats, queue, &out.queue_stats,
	       sizeof(out.queue_stats));
	FORKED(rpma_rt_dump, rt, 2, RPMA_RT_DUMP_HUMAN);
	FORKED(rpma_rt_listen, rt, "::1", "1", &f->rt_cfg, &out.listener);
	FORKED(rpma_rt_listener_get_port, listener, &out.u16);
	FORKED(rpma_rt_listener_delete, &listener);
	FORKED(rpma_rt_listener_drain, listener, 0);
	FORKED(rpma_rt_conn_new, rt, "::1", "1", &f->rt_cfg, &out.conn);
	FORKED(rpma_rt_adopt, rt, &plain, 0, queue, NULL, &out.adopted);
	FORKED(rpma_rt_adopt_srq, rt, &srq, 0, queue, NULL, &out.adopted);
	FORKED(rpma_rt_adopted_release, &handle);
	FORKED(rpma_rt_srq_new, rt, &srq_cfg, &out.srq);
	FORKED(rpma_rt_srq_delete, &shared);
	pool_cfg.peer = &fake_peer;
	FORKED(rpma_rt_pool_new, rt, &pool_cfg, &out.pool);
	FORKED(rpma_rt_pool_delete, &pool);
	FORKED(rpma_rt_pool_take, pool, &out.lease);
	FORKED(rpma_rt_lease_release, &lease);
	FORKED(rpma_rt_leases_release, &leases, 1);
	FORKED(rpma_rt_future_poll, &future, out.items);
	FORKED(rpma_rt_future_wait, &future, out.items, -1);
	FORKED(rpma_rt_future_wait_some, &future, 1, 1, -1);
	FORKED(rpma_rt_future_cancel, &future, &out.cancelled);
	FORKED(rpma_rt_future_then, &future, bad_hear, NULL);
	FORKED(rpma_rt_future_deliver, &future, NULL);
	FORKED(rpma_rt_future_drop, &future);
	FORKED(rpma_rt_futures_take, &future, 1, out.items);
	FORKED(rpma_rt_srq_recv, shared, NULL, 0, 0, 1);
	FORKED(rpma_rt_next_future, &(struct rpma_rt_source){.srq = shared},
	       &future);
	FORKED(rpma_rt_conn_set_queue, conn, queue);
	FORKED(rpma_rt_route_close, &conn->own[RPMA_RT_SEND_SIDE], NULL);
	FORKED(rpma_rt_conn_set_user, conn, NULL);
	FORKED(rpma_rt_conn_set_name, conn, "a name");
	FORKED(rpma_rt_conn_get_user, conn, &out.pointer);
	FORKED(rpma_rt_conn_apply_remote_peer_cfg, conn,
	       (const struct rpma_peer_cfg *)&out);
	FORKED(rpma_rt_conn_get_peer_addr, conn, (struct sockaddr *)&out,
	       &out.u32);
	FORKED(rpma_rt_conn_connect, conn, NULL);
	FORKED(rpma_rt_conn_accept, conn, NULL);
	FORKED(rpma_rt_conn_reject, conn, NULL);
	FORKED(rpma_rt_conn_close, conn);
	FORKED(rpma_rt_conn_future, conn, RPMA_RT_EVENT_CLOSED, &future);
	FORKED(rpma_rt_next_future, &(struct rpma_rt_source){.conn = conn},
	       &future);
	FORKED(rpma_rt_next_future,
	       &(struct rpma_rt_source){.listener = listener}, &future);
	FORKED(rpma_rt_conn_drain, conn, 0);
	FORKED(rpma_rt_conn_ref, conn);
	FORKED(rpma_rt_conn_unref, &conn);
	FORKED(rpma_rt_conn_get_private_data, conn, &out.pdata);
	FORKED(rpma_rt_conn_get_qp_num, conn, &out.u32);
	FORKED(rpma_rt_conn_get_poller, conn, &out.number);
	FORKED(rpma_rt_route_open, conn, 0, queue, &out.route);
	FORKED(rpma_rt_route_open_callback, conn, 0, bad_hear, NULL,
	       &out.route);
	FORKED(rpma_rt_send, conn, NULL, 0, 0, ALWAYS, 1);
	FORKED(rpma_rt_recv, conn, NULL, 0, 0, 1);
	FORKED(rpma_rt_read, conn, NULL, 0, NULL, 0, 0, ALWAYS, 1);
	FORKED(rpma_rt_write, conn, NULL, 0, NULL, 0, 0, ALWAYS, 1);
#undef FORKED
}

void of_before_a_fork(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_srq *srq = bad_srq_open(f);

	f->rt->fork_generation++;
	refuse_forked(f, conn, srq);
	f->rt->fork_generation--;
	fake_bury(f, &conn);
	bad_srq_end(f, srq);
}

/* ------------------------------------------------------------ mistakes --- */

/* An assertion reports the rest where assertions are compiled. */

/* What the parent made is taken for the child's own. */
static void inherit(struct rpma_rt *rt)
{
	rt->fork_generation = rt_context_generation();
}

static void take_while_another_does(void *arg)
{
	struct fake *f = arg;
	struct rpma_rt_queue *queue = f->queue;

	inherit(f->rt);
	/* in place of another thread */
	(void)rt_keep_take(&queue->alone);
	f->got = rpma_rt_queue_poll(queue, f->items, 1);
}

static void put_twice(void *arg)
{
	struct rpma_rt_conn *conn = arg;
	struct rpma_rt_conn *again = arg;

	inherit(conn->rt);
	rpma_rt_conn_unref(&conn);
	rpma_rt_conn_unref(&again);
}

static void get_after_put(void *arg)
{
	struct rpma_rt_conn *conn = arg;

	inherit(conn->rt);
	rpma_rt_conn_unref(&conn);
	rpma_rt_conn_ref(arg);
}

static void convert_nothing(void *arg)
{
	struct ibv_wc wc;

	rpma_rt_completion_to_wc(arg, &wc);
}

static void convert_into_nothing(void *arg)
{
	rpma_rt_completion_to_wc(arg, NULL);
}

void mistakes(void **state)
{
	const struct rpma_rt_completion item = {0};
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	death_expect("poll.c", take_while_another_does, f);
	conn = fake_established(f);
	death_expect("calls.c", put_twice, conn);
	death_expect("calls.c", get_after_put, conn);
	fake_bury(f, &conn);
	sweep_begin("rpma_rt_completion_to_wc");
	death_expect("text.c", convert_nothing, NULL);
	death_expect("text.c", convert_into_nothing, (void *)(uintptr_t)&item);
}
