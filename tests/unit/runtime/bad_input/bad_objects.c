/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Queues, connections, routes, posts and SRQs; see bad_input.c. Each object in
 * each state.
 */

#include "bad_input.h"

#include "queue/impl.h"
#include "srq/srq.h"

static struct rpma_conn_private_data words = {"hello", 6};

/* --------------------------------------------------------------- queues --- */

void queues(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_queue *queue = f->queue;

	NULLS(rpma_rt_queue_new, f->rt, 0, &out.queue);
	DELETES(rpma_rt_queue_delete, rpma_rt_queue);
	NULLS(rpma_rt_queue_poll, queue, out.items, 1);
	BAD(0, rpma_rt_queue_poll, queue, out.items, 0);
	BAD(0, rpma_rt_queue_poll, queue, NULL, 0);
	BAD(RPMA_E_INVAL, rpma_rt_queue_poll, queue, out.items, -1);
	NULLS(rpma_rt_queue_wait, queue, out.items, 1, 0);
	BAD(0, rpma_rt_queue_wait, queue, out.items, 0, 0);
	BAD(RPMA_E_INVAL, rpma_rt_queue_wait, queue, out.items, INT_MIN, 0);
	BAD(RPMA_E_INVAL, rpma_rt_queue_wait, queue, out.items, 1, -2);
	BAD(0, rpma_rt_queue_poll, queue, out.items, 1);
	BAD(0, rpma_rt_queue_wait, queue, out.items, 1, 0);
	BAD(RPMA_E_INVAL, rpma_rt_queue_arm, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_queue_arm, queue);
	NULLS(rpma_rt_queue_get_fd, queue, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_queue_push, NULL, out.items);
	BAD(RPMA_E_INVAL, rpma_rt_queue_push, queue, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_queue_hold, NULL, 1);
	BAD(RPMA_E_INVAL, rpma_rt_queue_close, NULL);
	BAD_SAYS(SWEEP_SILENCE, RPMA_E_INVAL, rpma_rt_queue_wake, NULL);
	NULLS(rpma_rt_queue_get_stats, queue, &out.queue_stats,
	      sizeof(out.queue_stats));
}

/*
 * The calls of a_new_queue() on a closed queue, and all calls leading more
 * items into the queue.
 */
void a_closed_queue(void **state)
{
	struct rpma_rt_srq_cfg srq_cfg;
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_queue *queue = NULL;

	ok(rpma_rt_queue_new(f->rt, NULL, &queue));
	ok(rpma_rt_queue_close(queue));
	BAD(0, rpma_rt_queue_close, queue);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_queue_push, queue,
		 out.items);
	BAD(0, rpma_rt_queue_wake, queue);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_queue_poll, queue,
		 out.items, 1);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_queue_wait, queue,
		 out.items, 1, -1);
	f->rt_cfg.queue = queue;
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_conn_new, f->rt, "::1",
		 "1", &f->rt_cfg, &out.conn);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_listen, f->rt, "::1", "1",
		 &f->rt_cfg, &out.listener);
	f->rt_cfg.queue = f->queue;
	srq_cfg = bad_srq_cfg(queue);
	assert_int_equal(rpma_rt_srq_new(f->rt, &srq_cfg, &out.srq),
			 RPMA_RT_E_CLOSED);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_conn_set_queue, conn,
		 queue);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_route_open, conn,
		 RPMA_RT_SEND_SIDE, queue, &out.route);
	ok(rpma_rt_queue_delete(&queue));
	fake_bury(f, &conn);
}

/* A queue with users, or with a consumer inside, cannot be deleted. */
void a_queue_in_use(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_queue *queue = f->queue;

	BAD_SAYS("a connection", RPMA_RT_E_BUSY, rpma_rt_queue_delete, &queue);
	fake_bury(f, &conn);
	/* in place of another thread */
	assert_true(rt_keep_take(&queue->alone));
	BAD_SAYS("a thread takes", RPMA_RT_E_BUSY, rpma_rt_queue_delete,
		 &queue);
	rt_keep_give_back(&queue->alone);
	assert_ptr_equal(queue, f->queue);
}

/* ---------------------------------------------------------- connections --- */

void making_connections(void **state)
{
	struct fake *f = *state;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *foreign = foreign_queue(&rt);

	NULLS(rpma_rt_listen, f->rt, "::1", "1", &f->rt_cfg, &out.listener);
	DELETES(rpma_rt_listener_delete, rpma_rt_listener);
	BAD(RPMA_E_INVAL, rpma_rt_listener_drain, NULL, 0);
	BAD(RPMA_E_INVAL, rpma_rt_listener_drain, &f->listener, 600001);
	NULLS(rpma_rt_listener_get_port, &f->listener, &out.u16);
	NULLS(rpma_rt_conn_new, f->rt, "::1", "1", &f->rt_cfg, &out.conn);
	BAD_SAYS("port is \"65536\"", RPMA_E_INVAL, rpma_rt_listen, f->rt,
		 "::1", "65536", &f->rt_cfg, &out.listener);
	BAD_SAYS("port is \"18446744073709551617\"", RPMA_E_INVAL,
		 rpma_rt_conn_new, f->rt, "::1", "18446744073709551617",
		 &f->rt_cfg, &out.conn);
	f->rt_cfg.queue = foreign;
	BAD_SAYS("rpma_rt_conn_cfg.queue|another runtime", RPMA_E_INVAL,
		 rpma_rt_listen, f->rt, "::1", "1", &f->rt_cfg, &out.listener);
	BAD_SAYS("rpma_rt_conn_cfg.queue|another runtime", RPMA_E_INVAL,
		 rpma_rt_conn_new, f->rt, "::1", "1", &f->rt_cfg, &out.conn);
	f->rt_cfg.queue = f->queue;
	f->rt_cfg.poller = -3;
	BAD_SAYS("rpma_rt_conn_cfg.poller is -3, it may be -2..63",
		 RPMA_E_INVAL, rpma_rt_conn_new, f->rt, "::1", "1", &f->rt_cfg,
		 &out.conn);
	f->rt_cfg.poller = 0;
	/* a marker and a keep-alive take a place each */
	f->rt_cfg.sq_size = (uint32_t)fake_attr.max_qp_wr - 1;
	f->rt_cfg.keepalive_ms = 1;
	BAD_SAYS("sq_size", RPMA_E_INVAL, rpma_rt_conn_new, f->rt, "::1", "1",
		 &f->rt_cfg, &out.conn);
	f->rt_cfg.keepalive_ms = 0;
	f->rt_cfg.sq_size = FAKE_SQ;
	f->rt_cfg.rq_size = (uint32_t)fake_attr.max_qp_wr;
	BAD_SAYS("rq_size", RPMA_E_INVAL, rpma_rt_conn_new, f->rt, "::1", "1",
		 &f->rt_cfg, &out.conn);
	f->rt_cfg.rq_size = FAKE_RQ;
	f->rt_cfg.max_sge = (uint32_t)fake_attr.max_sge + 1;
	BAD_SAYS("max_sge", RPMA_E_INVAL, rpma_rt_conn_new, f->rt, "::1", "1",
		 &f->rt_cfg, &out.conn);
	f->rt_cfg.max_sge = 1;
	foreign_end(rt, foreign);
}

void adoption(void **state)
{
	struct fake *f = *state;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *foreign = foreign_queue(&rt);
	struct rpma_conn conn = {0};
	struct rpma_srq srq = {0}; /* has no RCQ */

	NULLS(rpma_rt_adopt, f->rt, &conn, 0, f->queue, 0, &out.adopted);
	NULLS(rpma_rt_adopt_srq, f->rt, &srq, 0, f->queue, 0, &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopt, f->rt, &conn, 1, f->queue, NULL,
	    &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopt, f->rt, &conn, -3, f->queue, NULL,
	    &out.adopted);
	BAD(RPMA_E_INVAL, rpma_rt_adopt, f->rt, &conn, 0, foreign, NULL,
	    &out.adopted);
	BAD_SAYS("RCQ", RPMA_E_INVAL, rpma_rt_adopt_srq, f->rt, &srq, 0,
		 f->queue, NULL, &out.adopted);
	DELETES(rpma_rt_adopted_release, rpma_rt_adopted);
	foreign_end(rt, foreign);
}

void connections(void **state)
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
	NULLS(rpma_rt_conn_set_name, conn, "a name");
	sweep_begin("rpma_rt_conn_get_name");
	assert_null(rpma_rt_conn_get_name(NULL));
	NULLS(rpma_rt_conn_apply_remote_peer_cfg, conn,
	      (const struct rpma_peer_cfg *)&out);
	NULLS(rpma_rt_conn_get_peer_addr, conn, (struct sockaddr *)&out,
	      &out.u32);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_accept, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, conn, &nothing);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, conn, &empty);
	BAD(RPMA_E_INVAL, rpma_rt_conn_reject, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_reject, conn, &nothing);
	BAD(RPMA_E_INVAL, rpma_rt_conn_close, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_drain, NULL, 0);
	BAD(RPMA_E_INVAL, rpma_rt_conn_drain, conn, 600001);
	BAD(RPMA_E_INVAL, rpma_rt_conn_ref, NULL);
	DELETES(rpma_rt_conn_unref, rpma_rt_conn);
	NULLS(rpma_rt_conn_get_private_data, conn, &out.pdata);
	NULLS(rpma_rt_conn_get_qp_num, conn, &out.u32);
	NULLS(rpma_rt_conn_get_poller, conn, &out.number);
	fake_bury(f, &conn);
	foreign_end(rt, foreign);
}

/*
 * Calls on a connection too early, before its address is known, or too late,
 * after the decision.
 */
void connections_too_early_or_late(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = NULL;

	ok(rpma_rt_conn_new(f->rt, "::1", "1", &f->rt_cfg, &conn));
	fake_finish_down(f);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, conn, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_accept, conn, NULL); /* active */
	BAD(RPMA_E_INVAL, rpma_rt_conn_reject, conn, NULL); /* active */
	BAD(RPMA_E_INVAL, rpma_rt_conn_get_qp_num, conn, &out.u32);
	BAD(RPMA_E_AGAIN, rpma_rt_recv, conn, NULL, 0, 0, 1);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_NOT_YET);
	fake_bury(f, &conn);

	conn = fake_established(f);
	BAD(RPMA_E_INVAL, rpma_rt_conn_connect, conn, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_conn_reject, conn, &words);
	BAD(RPMA_E_INVAL, rpma_rt_conn_set_user, conn, NULL);
	fake_bury(f, &conn);
}

/*
 * A route can be closed once, and only into a route of the same connection and
 * side.
 */
void routes_to_be_closed(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_conn *other = fake_established(f);
	struct rpma_rt_route *route = NULL;
	struct rpma_rt_wr send = {.op = RPMA_RT_OP_SEND,
				  .flags = RPMA_F_COMPLETION_ALWAYS};

	ok(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, f->queue, &route));
	BAD(RPMA_E_INVAL, rpma_rt_route_close, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_route_close, route, route);
	BAD(RPMA_E_INVAL, rpma_rt_route_close, route,
	    &conn->own[RPMA_RT_RECV_SIDE]);
	BAD(RPMA_E_INVAL, rpma_rt_route_close, route,
	    &other->own[RPMA_RT_SEND_SIDE]);
	ok(rpma_rt_route_close(route, NULL));
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_route_close, route, NULL);
	send.route = route;
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_post_send, conn, &send, 1);
	fake_bury(f, &other);
	fake_bury(f, &conn);
}

/* A closed connection, known only to the holder of the handle. */
void a_closed_connection(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_conn *held = conn;
	void *user = NULL;

	ok(rpma_rt_conn_ref(conn));
	fake_bury(f, &conn);
	BAD(0, rpma_rt_conn_close, held); /* twice */
	BAD(0, rpma_rt_conn_drain, held, 0);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_conn_accept, held, NULL);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_conn_reject, held, NULL);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_conn_set_queue, held,
		 f->queue);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_conn_set_user, held, NULL);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_route_open, held,
		 RPMA_RT_SEND_SIDE, f->queue, &out.route);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_route_open_callback, held,
		 RPMA_RT_SEND_SIDE, bad_hear, NULL, &out.route);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_send, held, NULL, 0, 0,
		 ALWAYS, 1);
	BAD_SAYS("closed", RPMA_RT_E_CLOSED, rpma_rt_recv, held, NULL, 0, 0, 1);
	ok(rpma_rt_conn_get_user(held, &user));
	assert_ptr_equal(user, f); /* unchanged */
	ok(rpma_rt_conn_unref(&held));
}

/* ----------------------------------------------------- routes and posts --- */

void routes(void **state)
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
	NULLS(rpma_rt_route_open_callback, conn, RPMA_RT_SEND_SIDE, bad_hear, 0,
	      &out.route);
	BAD(RPMA_E_INVAL, rpma_rt_route_open_callback, conn, 2, bad_hear, NULL,
	    &out.route);
	BAD(RPMA_E_INVAL, rpma_rt_route_open_callback, conn, INT_MIN, bad_hear,
	    NULL, &out.route);
	fake_bury(f, &conn);
	foreign_end(rt, foreign);
}

/* Mistakes whose log text has to name the remedy besides the mistake. */
void posts_in_words(void **state)
{
	static const struct {
		uint32_t flags;
		const char *words;
	} rows[] = {
		{IBV_SEND_SIGNALED,
		 "IBV_SEND_SIGNALED|flag of verbs|RPMA_F_COMPLETION_ALWAYS"},
		{IBV_SEND_SOLICITED,
		 "IBV_SEND_SOLICITED|flag of verbs|RPMA_RT_F_SOLICITED"},
		{IBV_SEND_INLINE,
		 "IBV_SEND_INLINE|flag of verbs|RPMA_RT_F_INLINE"},
		{IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		 "IBV_SEND_SOLICITED|flag of verbs|RPMA_RT_F_SOLICITED"},
		{IBV_SEND_SIGNALED | IBV_SEND_INLINE,
		 "IBV_SEND_INLINE|flag of verbs|RPMA_RT_F_INLINE"},
		{1u << 4, "has a bit in flags that is no flag"},
	};
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND};
	const struct rpma_rt_recv_wr recv_wr = {0};
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	/* as rpma_rt_completion_conn() returns for such items */
	struct rpma_rt_conn *none = NULL;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wr.flags = rows[i].flags;
		BAD_SAYS(rows[i].words, RPMA_E_INVAL, rpma_rt_post_send, conn,
			 &wr, 1);
	}
	wr.flags = ALWAYS;
	BAD_SAYS("conn is NULL|rpma_rt_completion_conn()|rpma_rt_conn_set_user",
		 RPMA_E_INVAL, rpma_rt_post_send, none, &wr, 1);
	BAD_SAYS("conn is NULL|rpma_rt_completion_conn()|rpma_rt_conn_set_user",
		 RPMA_E_INVAL, rpma_rt_post_recv, none, &recv_wr, 1);
	fake_bury(f, &conn);
}

/* A single impossible field in each post; nothing is posted. */
void posts(void **state)
{
	const uint64_t wide = UINT64_C(1) << RPMA_RT_CONTEXT_BITS;
	const struct rpma_rt_recv_wr recv_wr = {0};
	const struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND};
	const struct rpma_rt_lease lease = {0};
	const struct rpma_rt_lease *const leases[] = {NULL, &lease};
	const struct rpma_sge pieces[2] = {{0}};
	/* compared only */
	struct rpma_mr_remote *remote = (struct rpma_mr_remote *)state;
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_conn *other = fake_established(f);

	NULLS(rpma_rt_post_send, conn, &wr, 1);
	NULLS(rpma_rt_post_recv, conn, &recv_wr, 1);
	NULLS(rpma_rt_post_leases, conn, leases, 1, 0, 0);
	BAD(0, rpma_rt_post_leases, conn, NULL, 0, 0, 0);
	BAD(RPMA_E_INVAL, rpma_rt_post_leases, conn, leases, -1, 0, 0);
	BAD_SAYS("flags is", RPMA_E_INVAL, rpma_rt_post_leases, conn, leases, 1,
		 RPMA_RT_F_KEEP, 0);
	BAD_SAYS("leases[0] is NULL", RPMA_E_INVAL, rpma_rt_post_leases, conn,
		 leases, 2, 0, 0);
	BAD_SAYS("leases[0] is not held", RPMA_E_INVAL, rpma_rt_post_leases,
		 conn, &leases[1], 1, 0, 0);
	BAD(0, rpma_rt_post_send, conn, &wr, 0);
	BAD(0, rpma_rt_post_send, conn, NULL, 0);
	BAD(RPMA_E_INVAL, rpma_rt_post_send, conn, &wr, -1);
	BAD(0, rpma_rt_post_recv, conn, &recv_wr, 0);
	BAD(RPMA_E_INVAL, rpma_rt_post_recv, conn, &recv_wr, INT_MIN);
#define WRONG(kind, ...)                                                    \
	BAD_SAYS("work request 0", RPMA_E_INVAL, rpma_rt_post_##kind, conn, \
		 &(WR_##kind){__VA_ARGS__}, 1)
#define WR_send struct rpma_rt_wr
#define WR_recv struct rpma_rt_recv_wr
	WRONG(send, .op = 0);
	WRONG(send, .flags = ALWAYS);
	WRONG(send, .op = RPMA_RT_OP_FETCH_ADD + 1);
	WRONG(send, .op = UINT8_MAX);
#define SEND(...) WRONG(send, .op = RPMA_RT_OP_SEND, __VA_ARGS__)
	SEND(.flags = ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR);
	SEND(.flags = 1 << 2);
	SEND(.flags = UINT32_MAX);
	SEND(.flags = RPMA_RT_F_LINKED);
	SEND(.flags = RPMA_RT_F_PART);
	SEND(.context = wide);
	SEND(.reserved32 = 1);
	SEND(.len = 1);
	SEND(.piece_count = 1);
	SEND(.piece_count = 2, .pieces = pieces);
	SEND(.piece_count = UINT16_MAX, .pieces = pieces);
	SEND(.piece_count = 1, .pieces = pieces, .len = 1);
	SEND(.route = &other->own[RPMA_RT_SEND_SIDE]);
	SEND(.route = &conn->own[RPMA_RT_RECV_SIDE]);
	WRONG(send, .op = RPMA_RT_OP_READ, .len = 1);
	WRONG(send, .op = RPMA_RT_OP_READ, .flags = RPMA_RT_F_INLINE);
	WRONG(send, .op = RPMA_RT_OP_WRITE, .remote = remote);
	WRONG(send, .op = RPMA_RT_OP_WRITE, .flags = RPMA_RT_F_SOLICITED);
	WRONG(send, .op = RPMA_RT_OP_FLUSH);
	WRONG(send, .op = RPMA_RT_OP_FLUSH, .remote = remote, .flush_type = 9);
	WRONG(send, .op = RPMA_RT_OP_FLUSH, .remote = remote, .piece_count = 1,
	      .pieces = pieces);
	WRONG(send, .op = RPMA_RT_OP_ATOMIC_WRITE);
	WRONG(send, .op = RPMA_RT_OP_ATOMIC_WRITE, .remote = remote,
	      .remote_offset = 4);
	WRONG(send, .op = RPMA_RT_OP_COMPARE_SWAP, .remote = remote);
	WRONG(send, .op = RPMA_RT_OP_FETCH_ADD, .remote = remote, .len = 4);
#undef SEND
	WRONG(recv, .reserved32 = 1);
	WRONG(recv, .piece_count = 1);
	WRONG(recv, .piece_count = UINT32_MAX, .pieces = pieces);
	WRONG(recv, .context = wide);
	WRONG(recv, .offset = 1);
	WRONG(recv, .route = &other->own[RPMA_RT_RECV_SIDE]);
	WRONG(recv, .route = &conn->own[RPMA_RT_SEND_SIDE]);
#undef WRONG
	BAD(RPMA_E_INVAL, rpma_rt_send, NULL, NULL, 0, 0, ALWAYS, 1);
	BAD_SAYS("work request 0", RPMA_E_INVAL, rpma_rt_send, conn, NULL, 0, 1,
		 0, 1);
	BAD_SAYS("work request 0", RPMA_E_INVAL, rpma_rt_send, conn, NULL, 0, 0,
		 ALWAYS, wide);
	BAD(RPMA_E_INVAL, rpma_rt_recv, NULL, NULL, 0, 0, 1);
	BAD_SAYS("work request 0", RPMA_E_INVAL, rpma_rt_recv, conn, NULL, 0, 0,
		 wide);
	BAD(RPMA_E_INVAL, rpma_rt_read, NULL, NULL, 0, NULL, 0, 0, ALWAYS, 1);
	BAD_SAYS("work request 0", RPMA_E_INVAL, rpma_rt_read, conn, NULL, 0,
		 NULL, 0, 1, 0, 1);
	BAD(RPMA_E_INVAL, rpma_rt_write, NULL, NULL, 0, NULL, 0, 0, ALWAYS, 1);
	BAD_SAYS("work request 0", RPMA_E_INVAL, rpma_rt_write, conn, NULL, 0,
		 NULL, 0, 1, 0, 1);
	assert_int_equal(fake_qp(conn)->sq_count, 0);
	assert_int_equal(fake_qp(conn)->rq_count, 0);
	fake_bury(f, &other);
	fake_bury(f, &conn);
}

/* As many posts as there is room for, and another. */
void posts_beyond_credit(void **state)
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
	/* an impossible post is not told to wait */
	BAD_SAYS("work request 0", RPMA_E_INVAL, rpma_rt_send, conn, NULL, 0, 0,
		 4, 1);
	fake_bury(f, &conn);
}

/* -------------------------------------------------------------- shared --- */

struct rpma_rt_srq_cfg bad_srq_cfg(struct rpma_rt_queue *queue)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	cfg.peer = &fake_peer;
	cfg.queue = queue;
	cfg.srq_size = 4;
	return cfg;
}

struct rpma_rt_srq *bad_srq_open(struct fake *f)
{
	const struct rpma_rt_srq_cfg cfg = bad_srq_cfg(f->queue);
	struct rpma_rt_srq *srq = NULL;

	ok(rpma_rt_srq_new(f->rt, &cfg, &srq));
	return srq;
}

void bad_srq_end(struct fake *f, struct rpma_rt_srq *srq)
{
	ok(rpma_rt_srq_delete(&srq));
	fake_take(f, f->queue); /* SRQ_CLOSED */
}

void making_srqs(void **state)
{
	struct fake *f = *state;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *foreign = foreign_queue(&rt);
	struct rpma_rt_srq_cfg cfg = bad_srq_cfg(f->queue);

	NULLS(rpma_rt_srq_new, f->rt, &cfg, &out.srq);
	cfg.queue = foreign;
	BAD_SAYS("another runtime", RPMA_E_INVAL, rpma_rt_srq_new, f->rt, &cfg,
		 &out.srq);
	foreign_end(rt, foreign);
}

void srqs(void **state)
{
	const uint64_t wide = UINT64_C(1) << RPMA_RT_CONTEXT_BITS;
	const struct rpma_rt_recv_wr wr = {0};
	const struct rpma_rt_recv_wr routed = {
		.route = (const struct rpma_rt_route *)&wide};
	struct fake *f = *state;
	struct rpma_rt_srq *twice[2];
	struct rpma_rt_conn *conn = NULL;
	struct rpma_rt_srq *srq = bad_srq_open(f);
	const struct rpma_rt_source from = {.srq = srq};
	struct rpma_rt_source from_conn = {0};
	struct rpma_rt_future future;

	DELETES(rpma_rt_srq_delete, rpma_rt_srq);
	NULLS(rpma_rt_srq_post_recv, srq, &wr, 1);
	BAD(0, rpma_rt_srq_post_recv, srq, &wr, 0);
	BAD(RPMA_E_INVAL, rpma_rt_srq_post_recv, srq, &wr, INT_MIN);
	BAD_SAYS("work request 0|route", RPMA_E_INVAL, rpma_rt_srq_post_recv,
		 srq, &routed, 1);
	BAD(RPMA_E_INVAL, rpma_rt_srq_recv, NULL, NULL, 0, 0, 1);
	BAD_SAYS("48 bits", RPMA_E_INVAL, rpma_rt_srq_recv, srq, NULL, 0, 0,
		 wide);
	NULLS(rpma_rt_next_future, &from, &future);
	BAD_SAYS("without futures", RPMA_E_INVAL, rpma_rt_next_future, &from,
		 &future);
	twice[0] = srq;
	twice[1] = srq;
	f->rt_cfg.srqs = twice;
	f->rt_cfg.srq_count = 2;
	BAD_SAYS("srqs", RPMA_E_INVAL, rpma_rt_conn_new, f->rt, "::1", "1",
		 &f->rt_cfg, &out.conn);
	f->rt_cfg.srqs = twice;
	f->rt_cfg.srq_count = 1;
	/* a sharing connection has no receives alone */
	conn = fake_established(f);
	BAD_SAYS("names no object", RPMA_E_INVAL, rpma_rt_next_future,
		 &from_conn, &future);
	from_conn.conn = conn;
	BAD_SAYS("name the SRQ", RPMA_E_INVAL, rpma_rt_next_future, &from_conn,
		 &future);
	from_conn.srq = srq;
	BAD_SAYS("more than one", RPMA_E_INVAL, rpma_rt_next_future, &from_conn,
		 &future);
	BAD_SAYS("shared|rpma_rt_srq_post_recv()", RPMA_E_INVAL, rpma_rt_recv,
		 conn, NULL, 0, 0, 1);
	BAD_SAYS("not deleted", RPMA_RT_E_BUSY, rpma_rt_srq_delete, &srq);
	fake_bury(f, &conn);
	srq->async.event(&srq->async, IBV_EVENT_SRQ_ERR);
	fake_finish_down(f);
	BAD_SAYS("srqs|Delete it and make another", RPMA_E_PROVIDER,
		 rpma_rt_conn_new, f->rt, "::1", "1", &f->rt_cfg, &out.conn);
	fake_take(f, f->queue); /* SRQ_FAILED */
	f->rt_cfg.srq_count = 0;
	bad_srq_end(f, srq);
}

/* --------------------------------------------------------------- pools --- */

void pools(void **state)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct fake *f = *state;
	struct rpma_rt_pool *pool = NULL;
	struct rpma_rt_conn *conn = NULL;
	struct rpma_rt_lease lease;
	const struct rpma_rt_lease *const leases[] = {&lease};
	struct rpma_rt_srq *srq;
	struct rpma_peer other = fake_peer;
	const struct rpma_rt_completion none = {0};

	sweep_begin("rpma_rt_completion_lease");
	assert_false(rpma_rt_completion_lease(&none, &lease));
	BAD_SAYS("peer", RPMA_E_INVAL, rpma_rt_pool_new, f->rt, &cfg,
		 &out.pool);
	cfg.peer = &fake_peer;
	cfg.count = 1;
	NULLS(rpma_rt_pool_new, f->rt, &cfg, &out.pool);
	cfg.slot_size = 1073741825;
	BAD_SAYS("slot_size", RPMA_E_INVAL, rpma_rt_pool_new, f->rt, &cfg,
		 &out.pool);
	cfg.slot_size = 8;
	cfg.sends = 1;
	BAD_SAYS("sends", RPMA_E_INVAL, rpma_rt_pool_new, f->rt, &cfg,
		 &out.pool);
	cfg.sends = 0;
	ok(rpma_rt_pool_new(f->rt, &cfg, &pool));
	DELETES(rpma_rt_pool_delete, rpma_rt_pool);
	NULLS(rpma_rt_pool_take, pool, &out.lease);
	ok(rpma_rt_pool_take(pool, &lease));
	BAD(RPMA_E_AGAIN, rpma_rt_pool_take, pool, &out.lease);
	BAD_SAYS("not given back", RPMA_RT_E_BUSY, rpma_rt_pool_delete, &pool);
	NULLS(rpma_rt_lease_release, &lease);
	ok(rpma_rt_lease_release(&lease));
	BAD_SAYS("before", RPMA_E_INVAL, rpma_rt_lease_release, &lease);
	BAD_SAYS("leases", RPMA_E_INVAL, rpma_rt_leases_release, NULL, 1);
	BAD_SAYS("before", RPMA_E_INVAL, rpma_rt_leases_release, leases, 1);
	ok(rpma_rt_leases_release(NULL, 0));
	lease.slot = 1;
	BAD_SAYS("lease.slot", RPMA_E_INVAL, rpma_rt_lease_release, &lease);
	lease.pool = NULL;
	BAD_SAYS("lease.pool", RPMA_E_INVAL, rpma_rt_lease_release, &lease);
	f->rt_cfg.pool = pool;
	f->rt_cfg.peer = &other;
	BAD_SAYS("another peer", RPMA_E_INVAL, rpma_rt_conn_new, f->rt, "::1",
		 "1", &f->rt_cfg, &out.conn);
	f->rt_cfg.peer = &fake_peer;
	srq = bad_srq_open(f);
	f->rt_cfg.srqs = &srq;
	f->rt_cfg.srq_count = 1;
	BAD_SAYS("pool and srqs", RPMA_E_INVAL, rpma_rt_conn_new, f->rt, "::1",
		 "1", &f->rt_cfg, &out.conn);
	f->rt_cfg.srqs = NULL;
	f->rt_cfg.srq_count = 0;
	bad_srq_end(f, srq);
	conn = fake_established(f);
	BAD_SAYS("a pool", RPMA_E_INVAL, rpma_rt_recv, conn, NULL, 0, 0, 1);
	BAD_SAYS("a pool", RPMA_E_INVAL, rpma_rt_route_open, conn,
		 RPMA_RT_RECV_SIDE, f->queue, &out.route);
	BAD_SAYS("use it", RPMA_RT_E_BUSY, rpma_rt_pool_delete, &pool);
	fake_bury(f, &conn);
	f->rt_cfg.pool = NULL;
	ok(rpma_rt_pool_delete(&pool));
}

/*
 * Calls that need the queue of a connection, on a connection made without a
 * queue.
 */
static void use_no_queue(struct fake *f, struct rpma_rt_conn *conn)
{
	const struct rpma_rt_recv_wr plain = {.context = 1};
	struct rpma_rt_future future;
	const struct rpma_rt_recv_wr wr = {.future = &future};
	struct rpma_rt_route *route;

	BAD_SAYS("without a queue", RPMA_E_INVAL, rpma_rt_post_recv, conn,
		 &plain, 1);
	BAD_SAYS("without a queue", RPMA_E_INVAL, rpma_rt_conn_set_queue, conn,
		 f->queue);
	ok(fake_post_recv(conn, &wr));
	BAD_SAYS("without a queue", RPMA_E_INVAL, rpma_rt_future_deliver,
		 &future, NULL);
	ok(rpma_rt_future_drop(&future));
	ok(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE, f->queue, &route));
	BAD_SAYS("without a queue", RPMA_E_INVAL, rpma_rt_route_close, route,
		 NULL);
}

void no_queue(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_srq *srq;
	struct rpma_rt_conn *conn;
	const struct rpma_rt_source from = {.listener = &f->listener};

	f->rt_cfg.queue = NULL;
	BAD_SAYS("queue is missing", RPMA_E_INVAL, rpma_rt_conn_new, f->rt,
		 "::1", "1", &f->rt_cfg, &out.conn);
	f->rt_cfg.futures = 2;
	BAD_SAYS("made with a queue", RPMA_E_INVAL, rpma_rt_next_future, &from,
		 &out.future);
	srq = bad_srq_open(f);
	f->rt_cfg.srqs = &srq;
	f->rt_cfg.srq_count = 1;
	BAD_SAYS("srqs[0] is without futures", RPMA_E_INVAL, rpma_rt_conn_new,
		 f->rt, "::1", "1", &f->rt_cfg, &out.conn);
	f->rt_cfg.srqs = NULL;
	f->rt_cfg.srq_count = 0;
	bad_srq_end(f, srq);
	ok(rpma_rt_conn_new(f->rt, "::1", "1", &f->rt_cfg, &conn));
	fake_finish_down(f);
	fake_conn_event(conn, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_conn_event(conn, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_finish_down(f);
	use_no_queue(f, conn);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_ROUTE_CLOSED);
	ok(rpma_rt_conn_unref(&conn));
	f->rt_cfg.queue = f->queue;
	f->rt_cfg.futures = 0;
}

void futures(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn;
	struct rpma_rt_future future;
	struct rpma_rt_source from = {0};
	struct rpma_rt_future event;
	struct rpma_rt_future none = {{0, 0}};
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND};

	conn = fake_established(f);
	BAD_SAYS("without futures", RPMA_E_INVAL, rpma_rt_conn_future, conn,
		 RPMA_RT_EVENT_CLOSED, &event);
	fake_bury(f, &conn);

	f->rt_cfg.futures = 1;
	conn = fake_established(f);
	wr.future = &future;
	wr.route = &conn->own[RPMA_RT_SEND_SIDE];
	BAD_SAYS("a future and a route", RPMA_E_INVAL, rpma_rt_post_send, conn,
		 &wr, 1);
	wr.route = NULL;
	wr.flags = RPMA_F_COMPLETION_ON_ERROR;
	BAD_SAYS("on error", RPMA_E_INVAL, rpma_rt_post_send, conn, &wr, 1);
	wr.flags = 0;
	ok(fake_post_send(conn, &wr));
	BAD_SAYS("future is none", RPMA_E_INVAL, rpma_rt_future_poll, &none,
		 out.items);
	NULLS(rpma_rt_future_poll, &future, out.items);
	NULLS(rpma_rt_future_wait, &future, out.items, 0);
	NULLS(rpma_rt_future_wait_some, &future, 1, 1, 0);
	NULLS(rpma_rt_future_cancel, &future, &out.cancelled);
	BAD(RPMA_E_INVAL, rpma_rt_future_then, NULL, bad_hear, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_future_then, &future, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_rt_future_deliver, NULL, NULL);
	NULLS(rpma_rt_conn_future, conn, RPMA_RT_EVENT_CLOSED, &event);
	from.conn = conn;
	BAD_SAYS("made without a pool", RPMA_E_INVAL, rpma_rt_next_future,
		 &from, &event);
	BAD_SAYS("RPMA_RT_EVENT_READY", RPMA_E_INVAL, rpma_rt_conn_future, conn,
		 RPMA_RT_EVENT_REQUEST, &event);
	BAD_SAYS("RPMA_RT_EVENT_READY", RPMA_E_INVAL, rpma_rt_conn_future, conn,
		 RPMA_RT_EVENT_ROUTE_CLOSED, &event);
	ok(rpma_rt_conn_future(conn, RPMA_RT_EVENT_CLOSED, &event));
	BAD_SAYS("of an event", RPMA_E_INVAL, rpma_rt_future_deliver, &event,
		 NULL);
	ok(rpma_rt_future_drop(&event));
	NULLS(rpma_rt_future_drop, &future);
	NULLS(rpma_rt_futures_take, &future, 1, out.items);
	BAD_SAYS("count is 0", RPMA_E_INVAL, rpma_rt_futures_take, &future, 0,
		 out.items);
	BAD(RPMA_E_INVAL, rpma_rt_future_wait, &future, out.items, -2);
	BAD(RPMA_E_INVAL, rpma_rt_future_wait_some, &future, 1, 2, 0);
	BAD(RPMA_E_INVAL, rpma_rt_future_wait_some, &future, 1, 0, 0);
	ok(rpma_rt_future_then(&future, bad_hear, NULL));
	BAD_SAYS("continuation", RPMA_E_INVAL, rpma_rt_future_then, &future,
		 bad_hear, NULL);
	none = future;
	fake_bury(f, &conn);
	ok(rpma_rt_future_drop(&future) - 1);
	BAD_SAYS("dropped before", RPMA_E_INVAL, rpma_rt_future_drop, &none);
	BAD_SAYS("dropped before", RPMA_E_INVAL, rpma_rt_futures_take, &none, 1,
		 out.items);
}
