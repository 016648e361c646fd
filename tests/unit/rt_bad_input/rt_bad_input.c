/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Every function of the runtime and what it has to refuse: NULL in each
 * pointer, values out of range, objects in the wrong state or of another
 * runtime, calls that wait where nobody may, objects of before a fork. The
 * last test says which function was forgotten.
 */

#include "sweep.h"

#include <limits.h>

#include "rt_death.h"
#include "adopt.h"
#include "events.h"
#include "queue_impl.h"
#include "rt_fake.h"
#include "side.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

/* Where out-parameters point. */
static union {
	struct rpma_rt *rt;
	struct rpma_rt_cfg *cfg;
	struct rpma_rt_queue *queue;
	struct rpma_rt_queue_cfg *queue_cfg;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;
	struct rpma_rt_conn_cfg *conn_cfg;
	struct rpma_rt_route *route;
	struct rpma_rt_adopted *adopted;
	struct rpma_rt_srq *srq;
	struct rpma_rt_srq_cfg *srq_cfg;
	struct rpma_rt_poller_stats poller_stats;
	struct rpma_rt_queue_stats queue_stats;
	struct rpma_conn_private_data pdata;
	struct rpma_rt_completion items[4];
	enum rpma_rt_mode mode;
	void *pointer;
	uint32_t u32;
	uint16_t u16;
	bool flag;
	int number;
} out;

const struct sweep_ground sweep_ground = {
	.map = RPMA_RT_MAP,
	.least = 91,
	.out = &out,
	.out_size = sizeof(out),
	.forget = fake_forget_trace,
	.trace = fake_trace,
	.text = rpma_rt_err_2str,
};

static struct rpma_conn_private_data words = {"hello", 6};
static int got;

static void refill(struct rpma_rt_srq *srq, int room, void *arg)
{
	(void)srq;
	(void)room;
	(void)arg;
}

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	(void)cmpl;
	(void)arg;
}

/* Another runtime's queue, and that runtime; it has threads. */
static struct rpma_rt_queue *foreign_queue(struct rpma_rt **rt)
{
	struct rpma_rt_queue *queue = NULL;

	ok(rpma_rt_new(NULL, rt));
	ok(rpma_rt_queue_new(*rt, NULL, &queue));
	return queue;
}

static void foreign_end(struct rpma_rt *rt, struct rpma_rt_queue *queue)
{
	ok(rpma_rt_queue_delete(&queue));
	ok(rpma_rt_delete(&rt));
}

/* ------------------------------------------------------- configurations --- */

static void configurations(void **state)
{
	const int cpus[RPMA_RT_MAX_POLLERS + 1] = {0};
	struct rpma_rt_cfg *cfg = NULL;

	(void)state;
	ok(rpma_rt_cfg_new(&cfg));
	NULLS(rpma_rt_cfg_new, &out.cfg);
	DELETES(rpma_rt_cfg_delete, rpma_rt_cfg);
#define FIELD(name, member, least, most)                            \
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_##name, NULL, least);     \
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_##name, cfg, (least)-1);  \
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_##name, cfg, (most) + 1); \
	NULLS(rpma_rt_cfg_get_##name, cfg, &out.member)
	FIELD(pollers, number, 1, RPMA_RT_MAX_POLLERS);
	FIELD(mode, mode, (int)RPMA_RT_MODE_ADAPTIVE, (int)RPMA_RT_MODE_MANUAL);
	FIELD(spin_us, u32, 0, 1000000);
	FIELD(backstop_ms, u32, 0, 60000);
	FIELD(cq_size, u32, 1, INT32_MAX + UINT32_C(0));
	FIELD(drain_ms, u32, 1, 600000);
#undef FIELD
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_pollers, cfg, INT_MIN);
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_timing, NULL, 1); /* any number */
	NULLS(rpma_rt_cfg_get_timing, cfg, &out.u32);
	NULLS(rpma_rt_cfg_set_cpus, cfg, cpus, 1);
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_cpus, cfg, cpus, 0);
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_cpus, cfg, cpus, -1);
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_cpus, cfg, cpus,
	    RPMA_RT_MAX_POLLERS + 1);
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_async_handler, NULL, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_cfg_set_async_feed, NULL, true);
	ok(rpma_rt_cfg_delete(&cfg));
}

static void configurations_of_queues(void **state)
{
	struct rpma_rt_queue_cfg *cfg = NULL;

	(void)state;
	ok(rpma_rt_queue_cfg_new(&cfg));
	NULLS(rpma_rt_queue_cfg_new, &out.queue_cfg);
	DELETES(rpma_rt_queue_cfg_delete, rpma_rt_queue_cfg);
	NULLS(rpma_rt_queue_cfg_set_lane_size, cfg, 64);
	NULLS(rpma_rt_queue_cfg_get_lane_size, cfg, &out.u32);
	BAD(RPMA_E_INVAL, rpma_rt_queue_cfg_set_lane_size, cfg, 0);
	BAD(RPMA_E_INVAL, rpma_rt_queue_cfg_set_lane_size, cfg, 32);
	BAD(RPMA_E_INVAL, rpma_rt_queue_cfg_set_lane_size, cfg, 65);
	BAD(RPMA_E_INVAL, rpma_rt_queue_cfg_set_lane_size, cfg, 1 << 21);
	BAD(RPMA_E_INVAL, rpma_rt_queue_cfg_set_lane_size, cfg, 1u << 31);
	NULLS(rpma_rt_queue_cfg_set_backlog_limit, cfg, 1);
	NULLS(rpma_rt_queue_cfg_get_backlog_limit, cfg, &out.u32);
	BAD(RPMA_E_INVAL, rpma_rt_queue_cfg_set_backlog_limit, cfg, 0);
	BAD(RPMA_E_INVAL, rpma_rt_queue_cfg_set_backlog_limit, cfg, 1048577);
	NULLS(rpma_rt_queue_cfg_set_spin_us, cfg, 1);
	NULLS(rpma_rt_queue_cfg_get_spin_us, cfg, &out.u32);
	BAD(RPMA_E_INVAL, rpma_rt_queue_cfg_set_spin_us, cfg, 1000001);
	NULLS(rpma_rt_queue_cfg_set_shared, cfg, true);
	NULLS(rpma_rt_queue_cfg_get_shared, cfg, &out.flag);
	ok(rpma_rt_queue_cfg_delete(&cfg));
}

/* What is the runtime's to choose: each such pointer. */
static void configurations_of_connections(void **state)
{
	struct rpma_rt_conn_cfg *cfg = NULL;
	struct rpma_conn_cfg *theirs = NULL;
	void *any = &cfg;

	(void)state;
	ok(rpma_rt_conn_cfg_new(&cfg));
	NULLS(rpma_rt_conn_cfg_new, &out.conn_cfg);
	DELETES(rpma_rt_conn_cfg_delete, rpma_rt_conn_cfg);
	BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_conn_cfg, NULL, NULL);
#define OURS(name, value)                                                      \
	do {                                                                   \
		ok(rpma_conn_cfg_new(&theirs));                                \
		ok(rpma_conn_cfg_set_##name(theirs, value));                   \
		BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_conn_cfg, cfg, theirs); \
		ok(rpma_conn_cfg_delete(&theirs));                             \
	} while (0)
	OURS(cq, any);
	OURS(rcq, any);
	OURS(channel, any);
	OURS(cm_channel, any);
	OURS(srq, any);
	OURS(compl_channel, true);
#undef OURS
	BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_single_poster, NULL, true);
	BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_keepalive_ms, NULL, 0);
	BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_keepalive_ms, cfg, 3600001);
	ok(rpma_rt_conn_cfg_delete(&cfg));
}

static void configurations_of_srqs(void **state)
{
	struct rpma_rt_srq_cfg *cfg = NULL;

	(void)state;
	ok(rpma_rt_srq_cfg_new(&cfg));
	NULLS(rpma_rt_srq_cfg_new, &out.srq_cfg);
	DELETES(rpma_rt_srq_cfg_delete, rpma_rt_srq_cfg);
	NULLS(rpma_rt_srq_cfg_set_size, cfg, 1);
	NULLS(rpma_rt_srq_cfg_get_size, cfg, &out.u32);
	BAD(RPMA_E_INVAL, rpma_rt_srq_cfg_set_size, cfg, 0);
	BAD(RPMA_E_INVAL, rpma_rt_srq_cfg_set_size, cfg, 1048577);
	NULLS(rpma_rt_srq_cfg_set_limit, cfg, 1);
	NULLS(rpma_rt_srq_cfg_get_limit, cfg, &out.u32);
	BAD(RPMA_E_INVAL, rpma_rt_srq_cfg_set_limit, cfg, 1048577);
	BAD(RPMA_E_INVAL, rpma_rt_srq_cfg_set_refill, NULL, refill, NULL);
	ok(rpma_rt_srq_cfg_delete(&cfg));
}

/* -------------------------------------------------------------- runtime --- */

/* CPUs that do not exist, and fewer or more than pollers. */
static void cpus(void **state)
{
	const int none_such[1] = {1 << 20};
	const int negative[1] = {-2};
	const int two[2] = {RPMA_RT_CPU_ANY, RPMA_RT_CPU_ANY};
	struct rpma_rt_cfg *cfg = NULL;

	(void)state;
	ok(rpma_rt_cfg_new(&cfg));
	NULLS(rpma_rt_new, 0, &out.rt);
	ok(rpma_rt_cfg_set_cpus(cfg, none_such, 1));
	BAD(RPMA_E_INVAL, rpma_rt_new, cfg, &out.rt);
	ok(rpma_rt_cfg_set_cpus(cfg, negative, 1));
	BAD(RPMA_E_INVAL, rpma_rt_new, cfg, &out.rt);
	ok(rpma_rt_cfg_set_cpus(cfg, two, 2));
	BAD(RPMA_E_INVAL, rpma_rt_new, cfg, &out.rt);
	ok(rpma_rt_cfg_set_pollers(cfg, 3));
	BAD(RPMA_E_INVAL, rpma_rt_new, cfg, &out.rt);
	ok(rpma_rt_cfg_delete(&cfg));
}

static void runtimes(void **state)
{
	const struct ibv_async_event event = {.event_type = 1};
	struct fake *f = *state;

	BAD(RPMA_E_INVAL, rpma_rt_stop, NULL);
	DELETES(rpma_rt_delete, rpma_rt);
	BAD(RPMA_E_INVAL, rpma_rt_dump, NULL, 1, RPMA_RT_DUMP_HUMAN);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, -1, RPMA_RT_DUMP_HUMAN);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, 1, (enum rpma_rt_dump_format)3);
	NULLS(rpma_rt_run_once, f->rt, 0, 1, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_run_once, f->rt, 0, 0, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_run_once, f->rt, 0, -1, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_run_once, f->rt, 1, 1, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_run_once, f->rt, -1, 1, &out.number);
	NULLS(rpma_rt_arm, f->rt, 0);
	BAD(RPMA_E_INVAL, rpma_rt_arm, f->rt, 1);
	BAD(RPMA_E_INVAL, rpma_rt_arm, f->rt, -1);
	NULLS(rpma_rt_get_fd, f->rt, 0, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_get_fd, f->rt, 1, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_get_fd, f->rt, -1, &out.number);
	NULLS(rpma_rt_get_poller_stats, f->rt, 0, &out.poller_stats);
	BAD(RPMA_E_INVAL, rpma_rt_get_poller_stats, f->rt, 1,
	    &out.poller_stats);
	BAD(RPMA_E_INVAL, rpma_rt_get_poller_stats, f->rt, -1,
	    &out.poller_stats);
	NULLS(rpma_rt_dump, f->rt, 2, RPMA_RT_DUMP_HUMAN);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, -1, RPMA_RT_DUMP_HUMAN);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, 2, 3);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, 2, -1);
	BAD(RPMA_E_PROVIDER, rpma_rt_dump, f->rt, INT_MAX, RPMA_RT_DUMP_JSON);
	NULLS(rpma_rt_feed_async_event, f->rt, &fake_ctx, &event);
	BAD(RPMA_E_NOSUPP, rpma_rt_feed_async_event, f->rt, &fake_ctx, &event);
}

/* With threads there is nothing to run by hand. */
static void manual_mode(void **state)
{
	struct rpma_rt *rt = NULL;

	(void)state;
	ok(rpma_rt_new(NULL, &rt));
	BAD(RPMA_E_NOSUPP, rpma_rt_run_once, rt, 0, 1, &out.number);
	BAD(RPMA_E_NOSUPP, rpma_rt_arm, rt, 0);
	BAD(RPMA_E_NOSUPP, rpma_rt_get_fd, rt, 0, &out.number);
	ok(rpma_rt_delete(&rt));
}

/* --------------------------------------------------------------- queues --- */

static void queues(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_queue *queue = f->queue;

	NULLS(rpma_rt_queue_new, f->rt, 0, &out.queue);
	DELETES(rpma_rt_queue_delete, rpma_rt_queue);
	NULLS(rpma_rt_queue_poll, queue, 1, out.items, &got);
	BAD(RPMA_E_INVAL, rpma_rt_queue_poll, queue, 0, out.items, &got);
	BAD(RPMA_E_INVAL, rpma_rt_queue_poll, queue, -1, out.items, &got);
	NULLS(rpma_rt_queue_wait, queue, 0, 1, out.items, &got);
	BAD(RPMA_E_INVAL, rpma_rt_queue_wait, queue, 0, 0, out.items, &got);
	BAD(RPMA_E_INVAL, rpma_rt_queue_wait, queue, 0, INT_MIN, out.items,
	    &got);
	BAD(RPMA_E_INVAL, rpma_rt_queue_wait, queue, -2, 1, out.items, &got);
	BAD(RPMA_E_NO_COMPLETION, rpma_rt_queue_poll, queue, 1, out.items,
	    &out.number);
	BAD(RPMA_E_NO_COMPLETION, rpma_rt_queue_wait, queue, 0, 1, out.items,
	    &out.number);
	NULLS(rpma_rt_queue_get_fd, queue, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_queue_push, NULL, 0, NULL, 0, 0);
	BAD(RPMA_E_INVAL, rpma_rt_queue_close, NULL);
	NULLS(rpma_rt_get_queue_stats, queue, &out.queue_stats);
}

/* The same calls, and all that would lead somewhere new into it. */
static void a_closed_queue(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_queue *queue = NULL;

	ok(rpma_rt_queue_new(f->rt, NULL, &queue));
	ok(rpma_rt_queue_close(queue));
	BAD(0, rpma_rt_queue_close, queue);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_queue_push, queue, 0, NULL, 0, 0);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_queue_poll, queue, 1, out.items,
	    &out.number);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_queue_wait, queue, -1, 1, out.items,
	    &out.number);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_conn_new, f->rt, &fake_peer, "::1", "1",
	    NULL, 0, queue, NULL, &out.conn);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_listen, f->rt, &fake_peer, "::1", "1", 0,
	    NULL, 0, queue, NULL, &out.listener);
	assert_int_equal(rpma_rt_srq_new(f->rt, &fake_peer, 0, NULL, queue,
					 NULL, &out.srq),
			 RPMA_RT_E_CLOSED);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_conn_set_queue, conn, queue);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_route_open, conn, RPMA_RT_SEND_SIDE,
	    queue, &out.route);
	ok(rpma_rt_queue_delete(&queue));
	fake_bury(f, &conn);
}

/* Who names it, or takes from it, keeps it from being deleted. */
static void a_queue_in_use(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_queue *queue = f->queue;

	BAD(RPMA_E_AGAIN, rpma_rt_queue_delete, &queue);
	fake_bury(f, &conn);
	/* relaxed: another thread would do it; there is none here */
	atomic_store_explicit(&queue->crew, RT_CREW_INSIDE,
			      memory_order_relaxed);
	BAD(RPMA_E_AGAIN, rpma_rt_queue_delete, &queue);
	atomic_store_explicit(&queue->crew, 0, memory_order_relaxed);
	assert_ptr_equal(queue, f->queue);
}

/* ---------------------------------------------------------- connections --- */

static void making_connections(void **state)
{
	struct fake *f = *state;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *foreign = foreign_queue(&rt);

	NULLS(rpma_rt_listen, f->rt, &fake_peer, "::1", "1", 0, 0, 0, f->queue,
	      0, &out.listener);
	BAD(RPMA_E_INVAL, rpma_rt_listen, f->rt, &fake_peer, "::1", "1", -1,
	    NULL, 0, f->queue, NULL, &out.listener);
	BAD(RPMA_E_INVAL, rpma_rt_listen, f->rt, &fake_peer, "::1", "1", 0,
	    NULL, 1, f->queue, NULL, &out.listener);
	BAD(RPMA_E_INVAL, rpma_rt_listen, f->rt, &fake_peer, "::1", "1", 0,
	    NULL, -3, f->queue, NULL, &out.listener);
	BAD(RPMA_E_INVAL, rpma_rt_listen, f->rt, &fake_peer, "::1", "1", 0,
	    NULL, 0, foreign, NULL, &out.listener);
	DELETES(rpma_rt_listener_delete, rpma_rt_listener);
	NULLS(rpma_rt_listener_get_port, &f->listener, &out.u16);
	NULLS(rpma_rt_conn_new, f->rt, &fake_peer, "::1", "1", 0, 0, f->queue,
	      0, &out.conn);
	BAD(RPMA_E_INVAL, rpma_rt_conn_new, f->rt, &fake_peer, "::1", "1", NULL,
	    1, f->queue, NULL, &out.conn);
	BAD(RPMA_E_INVAL, rpma_rt_conn_new, f->rt, &fake_peer, "::1", "1", NULL,
	    INT_MIN, f->queue, NULL, &out.conn);
	BAD(RPMA_E_INVAL, rpma_rt_conn_new, f->rt, &fake_peer, "::1", "1", NULL,
	    0, foreign, NULL, &out.conn);
	/* longer than the device has, and than a number of it can say */
	ok(rpma_conn_cfg_set_sq_size(f->cfg, UINT32_MAX));
	BAD(RPMA_E_INVAL, rpma_rt_conn_new, f->rt, &fake_peer, "::1", "1",
	    &f->rt_cfg, 0, f->queue, NULL, &out.conn);
	/* a marker and a keep-alive take a place each */
	ok(rpma_conn_cfg_set_sq_size(f->cfg,
				     (uint32_t)fake_attr.max_qp_wr - 1));
	f->rt_cfg.keepalive_ms = 1;
	BAD(RPMA_E_INVAL, rpma_rt_conn_new, f->rt, &fake_peer, "::1", "1",
	    &f->rt_cfg, 0, f->queue, NULL, &out.conn);
	f->rt_cfg.keepalive_ms = 0;
	ok(rpma_conn_cfg_set_sq_size(f->cfg, FAKE_SQ));
	ok(rpma_conn_cfg_set_rq_size(f->cfg, (uint32_t)fake_attr.max_qp_wr));
	BAD(RPMA_E_INVAL, rpma_rt_conn_new, f->rt, &fake_peer, "::1", "1",
	    &f->rt_cfg, 0, f->queue, NULL, &out.conn);
	foreign_end(rt, foreign);
}

static void adoption(void **state)
{
	struct fake *f = *state;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *foreign = foreign_queue(&rt);
	struct rpma_conn conn = {0};
	struct rpma_srq srq = {0}; /* has no RCQ of its own */

	NULLS(rpma_rt_adopt, f->rt, &conn, 0, f->queue, 0, &out.adopted);
	NULLS(rpma_rt_adopt_srq, f->rt, &srq, 0, f->queue, 0, &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopt, f->rt, &conn, 1, f->queue, NULL,
	    &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopt, f->rt, &conn, -3, f->queue, NULL,
	    &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopt, f->rt, &conn, 0, foreign, NULL,
	    &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopt_srq, f->rt, &srq, 0, f->queue, NULL,
	    &out.adopted);
	DELETES(rpma_rt_adopted_release, rpma_rt_adopted);
	foreign_end(rt, foreign);
}

static void connections(void **state)
{
	struct rpma_conn_private_data nothing = {NULL, 6};
	struct rpma_conn_private_data empty = {"hello", 0};
	struct fake *f = *state;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *foreign = foreign_queue(&rt);
	struct rpma_rt_conn *conn = fake_request(f);

	NULLS(rpma_rt_conn_set_queue, conn, f->queue);
	BAD(RPMA_E_INVAL, rpma_rt_conn_set_queue, conn, foreign);
	BAD(RPMA_E_INVAL, rpma_rt_conn_set_user, NULL, NULL);
	NULLS(rpma_rt_conn_get_user, conn, &out.pointer);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, conn, &nothing);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, conn, &empty);
	BAD(RPMA_E_INVAL, rpma_rt_conn_reject, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_reject, conn, &nothing);
	BAD(RPMA_E_INVAL, rpma_rt_conn_close, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_get, NULL);
	DELETES(rpma_rt_conn_put, rpma_rt_conn);
	NULLS(rpma_rt_conn_get_private_data, conn, &out.pdata);
	NULLS(rpma_rt_conn_get_qp_num, conn, &out.u32);
	NULLS(rpma_rt_conn_get_poller, conn, &out.number);
	fake_bury(f, &conn);
	foreign_end(rt, foreign);
}

/* Before its address is known, and once that is decided. */
static void connections_too_early_or_late(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = NULL;
	struct rpma_rt_queue *other = NULL;

	ok(rpma_rt_queue_new(f->rt, NULL, &other));
	ok(rpma_rt_conn_new(f->rt, &fake_peer, "::1", "1", &f->rt_cfg, 0,
			    f->queue, NULL, &conn));
	fake_settle_down(f);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, conn, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_reject, conn, NULL); /* its own */
	BAD(RPMA_E_AGAIN, rpma_rt_conn_get_qp_num, conn, &out.u32);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_recv, conn, NULL, 0, 0, 1);
	fake_bury(f, &conn);

	conn = fake_established(f);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, conn, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_reject, conn, &words);
	BAD(RPMA_E_INVAL, rpma_rt_conn_set_queue, conn, other);
	BAD(RPMA_E_INVAL, rpma_rt_conn_set_user, conn, NULL);
	fake_bury(f, &conn);
	ok(rpma_rt_queue_delete(&other));
}

/* Closed, and nobody but the holder knows of it. */
static void a_closed_connection(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_conn *held = conn;
	void *user = NULL;

	ok(rpma_rt_conn_get(conn));
	fake_bury(f, &conn);
	BAD(0, rpma_rt_conn_close, held); /* twice */
	BAD(RPMA_RT_E_CLOSED, rpma_rt_conn_connect, held, NULL);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_conn_reject, held, NULL);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_conn_set_queue, held, f->queue);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_conn_set_user, held, NULL);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_route_open, held, RPMA_RT_SEND_SIDE,
	    f->queue, &out.route);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_route_open_callback, held,
	    RPMA_RT_SEND_SIDE, hear, NULL, &out.route);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_send, held, NULL, 0, 0, ALWAYS, 1);
	BAD(RPMA_RT_E_CLOSED, rpma_rt_recv, held, NULL, 0, 0, 1);
	ok(rpma_rt_conn_get_user(held, &user));
	assert_ptr_equal(user, f); /* as it was */
	ok(rpma_rt_conn_put(&held));
}

/* ----------------------------------------------------- routes and posts --- */

static void routes(void **state)
{
	struct fake *f = *state;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *foreign = foreign_queue(&rt);
	struct rpma_rt_conn *conn = fake_established(f);

	NULLS(rpma_rt_route_open, conn, RPMA_RT_SEND_SIDE, f->queue,
	      &out.route);
	BAD(RPMA_E_INVAL, rpma_rt_route_open, conn, 2, f->queue, &out.route);
	BAD(RPMA_E_INVAL, rpma_rt_route_open, conn, -1, f->queue, &out.route);
	BAD(RPMA_E_INVAL, rpma_rt_route_open, conn, 0, foreign, &out.route);
	NULLS(rpma_rt_route_open_callback, conn, RPMA_RT_SEND_SIDE, hear, 0,
	      &out.route);
	BAD(RPMA_E_INVAL, rpma_rt_route_open_callback, conn, 2, hear, NULL,
	    &out.route);
	BAD(RPMA_E_INVAL, rpma_rt_route_open_callback, conn, INT_MIN, hear,
	    NULL, &out.route);
	fake_bury(f, &conn);
	foreign_end(rt, foreign);
}

/* One field each that cannot be; nothing of it is posted. */
static void posts(void **state)
{
	const uint64_t wide = UINT64_C(1) << RPMA_RT_CONTEXT_BITS;
	const struct rpma_rt_recv_wr recv_wr = {0};
	const struct rpma_rt_wr wr = {.flags = ALWAYS};
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_conn *other = fake_established(f);

	NULLS(rpma_rt_post_send, conn, &wr, 1, 0);
	NULLS(rpma_rt_post_recv, conn, &recv_wr, 1, 0);
	BAD(RPMA_E_INVAL, rpma_rt_post_send, conn, &wr, 0, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_post_send, conn, &wr, -1, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_post_send, conn, &wr, 2, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_post_recv, conn, &recv_wr, 0, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_post_recv, conn, &recv_wr, INT_MIN, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_post_recv, conn, &recv_wr, 2, NULL);
#define WRONG(kind, ...)                             \
	BAD(RPMA_E_INVAL, rpma_rt_post_##kind, conn, \
	    &(WR_##kind){__VA_ARGS__}, 1, NULL)
#define WR_send struct rpma_rt_wr
#define WR_recv struct rpma_rt_recv_wr
	WRONG(send, .flags = 0);
	WRONG(send, .flags = ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR);
	WRONG(send, .flags = ALWAYS | 1 << 2);
	WRONG(send, .flags = -1);
	WRONG(send, .flags = ALWAYS, .op = (enum rpma_rt_op)7);
	WRONG(send, .flags = ALWAYS, .op = (enum rpma_rt_op) - 1);
	WRONG(send, .flags = ALWAYS, .context = wide);
	WRONG(send, .flags = ALWAYS, .op = RPMA_RT_OP_FLUSH,
	      .flush_type = (enum rpma_flush_type)2);
	WRONG(send, .flags = ALWAYS, .route = other->own[RPMA_RT_SEND_SIDE]);
	WRONG(send, .flags = ALWAYS, .route = conn->own[RPMA_RT_RECV_SIDE]);
	WRONG(recv, .context = wide);
	WRONG(recv, .route = other->own[RPMA_RT_RECV_SIDE]);
	WRONG(recv, .route = conn->own[RPMA_RT_SEND_SIDE]);
#undef WRONG
	BAD(RPMA_E_INVAL, rpma_rt_send, NULL, NULL, 0, 0, ALWAYS, 1);
	BAD(RPMA_E_INVAL, rpma_rt_send, conn, NULL, 0, 0, 0, 1);
	BAD(RPMA_E_INVAL, rpma_rt_send, conn, NULL, 0, 0, ALWAYS, wide);
	BAD(RPMA_E_INVAL, rpma_rt_recv, NULL, NULL, 0, 0, 1);
	BAD(RPMA_E_INVAL, rpma_rt_recv, conn, NULL, 0, 0, wide);
	BAD(RPMA_E_INVAL, rpma_rt_read, NULL, NULL, 0, NULL, 0, 0, ALWAYS, 1);
	BAD(RPMA_E_INVAL, rpma_rt_read, conn, NULL, 0, NULL, 0, 0, 0, 1);
	BAD(RPMA_E_INVAL, rpma_rt_write, NULL, NULL, 0, NULL, 0, 0, ALWAYS, 1);
	BAD(RPMA_E_INVAL, rpma_rt_write, conn, NULL, 0, NULL, 0, 0, 0, 1);
	assert_int_equal(fake_qp(conn)->sq_count, 0);
	assert_int_equal(fake_qp(conn)->rq_count, 0);
	fake_bury(f, &other);
	fake_bury(f, &conn);
}

/* As many as there is room for, and one more. */
static void posts_beyond_credit(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	int i;

	sweep_begin("rpma_rt_again_reason");
	for (i = 0; i < FAKE_SQ; i++)
		ok(fake_send(conn, 1, ALWAYS));
	for (i = 0; i < FAKE_RQ; i++)
		ok(fake_recv(conn, 1));
	BAD(RPMA_E_AGAIN, rpma_rt_send, conn, NULL, 0, 0, ALWAYS, 1);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
	BAD(RPMA_E_AGAIN, rpma_rt_recv, conn, NULL, 0, 0, 1);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
	/* what can never be posted is not told to wait */
	BAD(RPMA_E_INVAL, rpma_rt_send, conn, NULL, 0, 0, 4, 1);
	fake_bury(f, &conn);
}

/* -------------------------------------------------------------- shared --- */

static struct rpma_rt_srq *srq_open(struct fake *f)
{
	struct rpma_rt_srq_cfg *cfg = NULL;
	struct rpma_rt_srq *srq = NULL;

	ok(rpma_rt_srq_cfg_new(&cfg));
	ok(rpma_rt_srq_cfg_set_size(cfg, 4));
	ok(rpma_rt_srq_new(f->rt, &fake_peer, 0, cfg, f->queue, NULL, &srq));
	ok(rpma_rt_srq_cfg_delete(&cfg));
	return srq;
}

static void srq_end(struct fake *f, struct rpma_rt_srq *srq)
{
	ok(rpma_rt_srq_delete(&srq));
	fake_take(f, f->queue); /* SRQ_CLOSED */
}

static void making_srqs(void **state)
{
	struct fake *f = *state;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *foreign = foreign_queue(&rt);
	struct rpma_rt_srq_cfg *cfg = NULL;

	ok(rpma_rt_srq_cfg_new(&cfg));
	ok(rpma_rt_srq_cfg_set_size(cfg, 4));
	ok(rpma_rt_srq_cfg_set_limit(cfg, 5));
	NULLS(rpma_rt_srq_new, f->rt, &fake_peer, 0, 0, f->queue, 0, &out.srq);
	BAD(RPMA_E_INVAL, rpma_rt_srq_new, f->rt, &fake_peer, -1, NULL,
	    f->queue, NULL, &out.srq);
	BAD(RPMA_E_INVAL, rpma_rt_srq_new, f->rt, &fake_peer, 1, NULL, f->queue,
	    NULL, &out.srq);
	BAD(RPMA_E_INVAL, rpma_rt_srq_new, f->rt, &fake_peer, 0, cfg, f->queue,
	    NULL, &out.srq);
	BAD(RPMA_E_INVAL, rpma_rt_srq_new, f->rt, &fake_peer, 0, NULL, foreign,
	    NULL, &out.srq);
	ok(rpma_rt_srq_cfg_delete(&cfg));
	foreign_end(rt, foreign);
}

static void srqs(void **state)
{
	const uint64_t wide = UINT64_C(1) << RPMA_RT_CONTEXT_BITS;
	const struct rpma_rt_recv_wr wr = {0};
	const struct rpma_rt_recv_wr routed = {
		.route = (const struct rpma_rt_route *)&wide};
	struct fake *f = *state;
	struct rpma_rt_srq *twice[2];
	struct rpma_rt_conn *conn = NULL;
	struct rpma_rt_srq *srq = srq_open(f);

	DELETES(rpma_rt_srq_delete, rpma_rt_srq);
	NULLS(rpma_rt_srq_post_recv, srq, &wr, 1, 0);
	BAD(RPMA_E_INVAL, rpma_rt_srq_post_recv, srq, &wr, 0, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_srq_post_recv, srq, &wr, INT_MIN, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_srq_post_recv, srq, &wr, 2, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_srq_post_recv, srq, &routed, 1, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_srq_recv, NULL, NULL, 0, 0, 1);
	BAD(RPMA_E_INVAL, rpma_rt_srq_recv, srq, NULL, 0, 0, wide);
	twice[0] = srq;
	twice[1] = srq;
	BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_srqs, NULL, twice, 1);
	BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_srqs, &f->rt_cfg, NULL, 1);
	BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_srqs, &f->rt_cfg, twice, 2);
	BAD(RPMA_E_INVAL, rpma_rt_conn_cfg_set_srqs, &f->rt_cfg, twice, -1);
	/* one that shares has no receives of its own */
	ok(rpma_rt_conn_cfg_set_srqs(&f->rt_cfg, twice, 1));
	conn = fake_established(f);
	BAD(RPMA_E_INVAL, rpma_rt_recv, conn, NULL, 0, 0, 1);
	BAD(RPMA_E_AGAIN, rpma_rt_srq_delete, &srq);
	fake_bury(f, &conn);
	ok(rpma_rt_conn_cfg_set_srqs(&f->rt_cfg, NULL, 0));
	srq_end(f, srq);
}

/* ------------------------------------------------------- wrong thread --- */

/* Everything that waits, or makes what could be waited for. */
static void refuse_waiting(struct fake *f, struct rpma_rt_conn *conn,
			   struct rpma_rt_srq *shared)
{
	struct rpma_rt_listener *listener = &f->listener;
	struct rpma_rt_queue *queue = f->queue;
	struct rpma_rt *rt = f->rt;
	struct rpma_rt_adopted adopted = {.rt = rt};
	struct rpma_rt_adopted *handle = &adopted;
	struct rpma_conn plain = {0};
	struct rpma_srq srq = {0};

	BAD(RPMA_E_INVAL, rpma_rt_new, NULL, &out.rt);
	BAD(RPMA_E_INVAL, rpma_rt_stop, rt);
	BAD(RPMA_E_INVAL, rpma_rt_delete, &rt);
	BAD(RPMA_E_INVAL, rpma_rt_run_once, rt, 0, 1, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_arm, rt, 0);
	BAD(RPMA_E_INVAL, rpma_rt_queue_new, rt, NULL, &out.queue);
	BAD(RPMA_E_INVAL, rpma_rt_queue_delete, &queue);
	BAD(RPMA_E_INVAL, rpma_rt_queue_wait, queue, 0, 1, out.items,
	    &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_listen, rt, &fake_peer, "::1", "1", 0, NULL,
	    0, queue, NULL, &out.listener);
	BAD(RPMA_E_INVAL, rpma_rt_listener_delete, &listener);
	BAD(RPMA_E_INVAL, rpma_rt_conn_new, rt, &fake_peer, "::1", "1", NULL, 0,
	    queue, NULL, &out.conn);
	BAD(RPMA_E_INVAL, rpma_rt_adopt, rt, &plain, 0, queue, NULL,
	    &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopt_srq, rt, &srq, 0, queue, NULL,
	    &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopted_release, &handle);
	BAD(RPMA_E_INVAL, rpma_rt_srq_new, rt, &fake_peer, 0, NULL, queue, NULL,
	    &out.srq);
	BAD(RPMA_E_INVAL, rpma_rt_srq_delete, &shared);
	BAD(RPMA_E_INVAL, rpma_rt_conn_set_queue, conn, queue);
	BAD(RPMA_E_INVAL, rpma_rt_conn_set_user, conn, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_route_open, conn, RPMA_RT_SEND_SIDE, queue,
	    &out.route);
	BAD(RPMA_E_INVAL, rpma_rt_route_open_callback, conn, RPMA_RT_SEND_SIDE,
	    hear, NULL, &out.route);
}

static void waiting_on_a_poller(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_srq *srq = srq_open(f);

	assert_true(rt_poller_try_enter(f->poller, RT_RUNNER_OWNER));
	refuse_waiting(f, conn, srq);
	rt_poller_leave(f->poller);
	fake_bury(f, &conn);
	srq_end(f, srq);
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

static void waiting_on_the_event_thread(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_srq *srq = srq_open(f);
	struct event_thread event_thread = {f, conn, srq};

	ok(rt_events_get());
	ok(rt_events_call(on_event_thread, &event_thread));
	rt_events_put();
	fake_bury(f, &conn);
	srq_end(f, srq);
}

/* ----------------------------------------------------- before a fork() --- */

static void refuse_forked(struct fake *f, struct rpma_rt_conn *conn,
			  struct rpma_rt_srq *shared)
{
	const struct ibv_async_event event = {.event_type = 1};
	struct rpma_rt_listener *listener = &f->listener;
	struct rpma_rt_queue *queue = f->queue;
	struct rpma_rt *rt = f->rt;
	struct rpma_rt_adopted adopted = {.rt = rt};
	struct rpma_rt_adopted *handle = &adopted;
	struct rpma_conn plain = {0};
	struct rpma_srq srq = {0};

#define FORKED(...) BAD(RPMA_RT_E_FORKED, __VA_ARGS__)
	FORKED(rpma_rt_stop, rt);
	FORKED(rpma_rt_delete, &rt);
	FORKED(rpma_rt_dump, rt, 1, RPMA_RT_DUMP_HUMAN);
	FORKED(rpma_rt_run_once, rt, 0, 1, &out.number);
	FORKED(rpma_rt_arm, rt, 0);
	FORKED(rpma_rt_get_fd, rt, 0, &out.number);
	FORKED(rpma_rt_get_poller_stats, rt, 0, &out.poller_stats);
	FORKED(rpma_rt_feed_async_event, rt, &fake_ctx, &event);
	FORKED(rpma_rt_queue_new, rt, NULL, &out.queue);
	FORKED(rpma_rt_queue_delete, &queue);
	FORKED(rpma_rt_queue_poll, queue, 1, out.items, &out.number);
	FORKED(rpma_rt_queue_wait, queue, -1, 1, out.items, &out.number);
	FORKED(rpma_rt_queue_get_fd, queue, &out.number);
	FORKED(rpma_rt_queue_push, queue, 0, NULL, 0, 0);
	FORKED(rpma_rt_queue_close, queue);
	FORKED(rpma_rt_get_queue_stats, queue, &out.queue_stats);
	FORKED(rpma_rt_dump, rt, 2, RPMA_RT_DUMP_HUMAN);
	FORKED(rpma_rt_listen, rt, &fake_peer, "::1", "1", 0, NULL, 0, queue,
	       NULL, &out.listener);
	FORKED(rpma_rt_listener_get_port, listener, &out.u16);
	FORKED(rpma_rt_listener_delete, &listener);
	FORKED(rpma_rt_conn_new, rt, &fake_peer, "::1", "1", NULL, 0, queue,
	       NULL, &out.conn);
	FORKED(rpma_rt_adopt, rt, &plain, 0, queue, NULL, &out.adopted);
	FORKED(rpma_rt_adopt_srq, rt, &srq, 0, queue, NULL, &out.adopted);
	FORKED(rpma_rt_adopted_release, &handle);
	FORKED(rpma_rt_srq_new, rt, &fake_peer, 0, NULL, queue, NULL, &out.srq);
	FORKED(rpma_rt_srq_delete, &shared);
	FORKED(rpma_rt_srq_recv, shared, NULL, 0, 0, 1);
	FORKED(rpma_rt_conn_set_queue, conn, queue);
	FORKED(rpma_rt_conn_set_user, conn, NULL);
	FORKED(rpma_rt_conn_get_user, conn, &out.pointer);
	FORKED(rpma_rt_conn_connect, conn, NULL);
	FORKED(rpma_rt_conn_reject, conn, NULL);
	FORKED(rpma_rt_conn_close, conn);
	FORKED(rpma_rt_conn_get, conn);
	FORKED(rpma_rt_conn_put, &conn);
	FORKED(rpma_rt_conn_get_private_data, conn, &out.pdata);
	FORKED(rpma_rt_conn_get_qp_num, conn, &out.u32);
	FORKED(rpma_rt_conn_get_poller, conn, &out.number);
	FORKED(rpma_rt_route_open, conn, 0, queue, &out.route);
	FORKED(rpma_rt_route_open_callback, conn, 0, hear, NULL, &out.route);
	FORKED(rpma_rt_send, conn, NULL, 0, 0, ALWAYS, 1);
	FORKED(rpma_rt_recv, conn, NULL, 0, 0, 1);
	FORKED(rpma_rt_read, conn, NULL, 0, NULL, 0, 0, ALWAYS, 1);
	FORKED(rpma_rt_write, conn, NULL, 0, NULL, 0, 0, ALWAYS, 1);
#undef FORKED
}

static void of_before_a_fork(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_srq *srq = srq_open(f);

	f->rt->fork_generation++;
	refuse_forked(f, conn, srq);
	f->rt->fork_generation--;
	fake_bury(f, &conn);
	srq_end(f, srq);
}

/* ------------------------------------------------------------ mistakes --- */

/* The rest is told by an assertion where those are compiled. */

/* What the parent made is taken for the child's own. */
static void inherit(struct rpma_rt *rt)
{
	/* relaxed: one thread */
	rt->fork_generation =
		atomic_load_explicit(&rt_fork_generation, memory_order_relaxed);
}

static void take_while_another_does(void *arg)
{
	struct fake *f = arg;
	struct rpma_rt_queue *queue = f->queue;

	inherit(f->rt);
	/* relaxed: another thread would do it; there is none here */
	atomic_store_explicit(&queue->crew, RT_CREW_INSIDE,
			      memory_order_relaxed);
	rpma_rt_queue_poll(queue, 1, f->items, &f->got);
}

static void post_while_another_does(void *arg)
{
	struct rpma_rt_conn *conn = arg;

	inherit(conn->rt);
	rt_side_enter(&conn->side[RPMA_RT_SEND_SIDE]);
	fake_send(conn, 1, ALWAYS);
}

static void put_twice(void *arg)
{
	struct rpma_rt_conn *conn = arg;
	struct rpma_rt_conn *again = arg;

	inherit(conn->rt);
	rpma_rt_conn_put(&conn);
	rpma_rt_conn_put(&again);
}

static void get_after_put(void *arg)
{
	struct rpma_rt_conn *conn = arg;

	inherit(conn->rt);
	rpma_rt_conn_put(&conn);
	rpma_rt_conn_get(arg);
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

static void mistakes(void **state)
{
	const struct rpma_rt_completion item = {0};
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	death_expect("queue_take.c", take_while_another_does, f);
	ok(rpma_rt_conn_cfg_set_single_poster(&f->rt_cfg, true));
	conn = fake_established(f);
	death_expect("side.c", post_while_another_does, conn);
	death_expect("conn.c", put_twice, conn);
	death_expect("conn.c", get_after_put, conn);
	fake_bury(f, &conn);
	sweep_begin("rpma_rt_completion_to_wc");
	death_expect("completion.c", convert_nothing, NULL);
	death_expect("completion.c", convert_into_nothing,
		     (void *)(uintptr_t)&item);
}

static void texts(void **state)
{
	(void)state;
	sweep_begin("rpma_rt_err_2str");
	assert_string_equal(rpma_rt_err_2str(1), "Unknown error");
	assert_string_equal(rpma_rt_err_2str(INT_MIN), "Unknown error");
	assert_string_equal(rpma_rt_err_2str(RPMA_RT_E_FORKED - 1),
			    "Unknown error");
}

/* The last one: it knows what the others did. */
static void every_function_WAS_SWEPT(void **state)
{
	(void)state;
	sweep_expect_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(configurations),
		cmocka_unit_test(configurations_of_queues),
		cmocka_unit_test(configurations_of_connections),
		cmocka_unit_test(configurations_of_srqs),
		cmocka_unit_test(cpus),
		fake_test(runtimes),
		cmocka_unit_test(manual_mode),
		fake_test(queues),
		fake_test(a_closed_queue),
		fake_test(a_queue_in_use),
		fake_test(making_connections),
		fake_test(adoption),
		fake_test(connections),
		fake_test(connections_too_early_or_late),
		fake_test(a_closed_connection),
		fake_test(routes),
		fake_test(posts),
		fake_test(posts_beyond_credit),
		fake_test(making_srqs),
		fake_test(srqs),
		fake_test(waiting_on_a_poller),
		fake_test(waiting_on_the_event_thread),
		fake_test(of_before_a_fork),
		fake_test(mistakes),
		cmocka_unit_test(texts),
		cmocka_unit_test(every_function_WAS_SWEPT),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
