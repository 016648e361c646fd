/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Pools on a made-up device: what is posted when, leases and their generations,
 * receive queues waiting for slots, what a dying connection gives back, when a
 * pool may be deleted, and refusals.
 */

#include <string.h>

#include "rt_fake.h"
#include "pool/feed.h"
#include "pool/pool.h"
#include "srq/srq.h"

static struct rpma_rt_pool *pool_open_for(struct fake *f, uint32_t count,
					  uint32_t sends)
{
	f->rt_cfg.pool = fake_pool(f, count, sends);
	return f->rt_cfg.pool;
}

static struct rpma_rt_pool *pool_open(struct fake *f, uint32_t count)
{
	return pool_open_for(f, count, RPMA_RT_POOL_NO_SENDS);
}

static void pool_close(struct fake *f, struct rpma_rt_pool **pool)
{
	f->rt_cfg.pool = NULL;
	assert_int_equal(rt_pool_out(*pool, (*pool)->count), 0);
	ok(rpma_rt_pool_delete(pool));
	assert_null(*pool);
}

/* Completes the next posted receive; returns its lease. */
static void receive(struct fake *f, struct rpma_rt_conn *conn, uint32_t index,
		    struct rpma_rt_lease *lease)
{
	fake_received(conn, index, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_true(rpma_rt_completion_lease(&f->items[0], lease));
	assert_int_equal(rpma_rt_completion_slot(&f->items[0]), lease->slot);
	assert_int_equal(rpma_rt_completion_generation(&f->items[0]),
			 lease->generation);
}

/* Flushes both markers, and the receives from from on; then CLOSED. */
static void bury(struct fake *f, struct rpma_rt_conn **conn, uint32_t from)
{
	ok(rpma_rt_conn_close(*conn));
	fake_finish_down(f);
	for (; from + 1 < fake_qp(*conn)->rq_count; from++)
		fake_received(*conn, from, IBV_WC_WR_FLUSH_ERR);
	fake_markers(*conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	ok(rpma_rt_conn_unref(conn));
}

FAKE_TEST(new__refused)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool = NULL;

	assert_int_equal(rpma_rt_pool_new(f->rt, &cfg, &pool), RPMA_E_INVAL);
	assert_true(fake_said("rpma_rt_pool_cfg.peer is missing"));
	cfg.peer = &fake_peer;
	cfg.count = 1048577;
	assert_int_equal(rpma_rt_pool_new(f->rt, &cfg, &pool), RPMA_E_INVAL);
	cfg.count = 4;
	fake_fail("mr_reg", 1, RPMA_E_PROVIDER);
	assert_int_equal(rpma_rt_pool_new(f->rt, &cfg, &pool), RPMA_E_PROVIDER);
	assert_null(pool);
	fake_logged();
}

/* As many pools as a process may have; the number of a deleted pool is free. */
FAKE_TEST(new__1024_then_NOMEM)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pools[1024];
	struct rpma_rt_pool *more = NULL;
	int memory;
	int i;

	cfg.peer = &fake_peer;
	cfg.count = 1;
	for (i = 0; i < 1024; i++)
		ok(rpma_rt_pool_new(f->rt, &cfg, &pools[i]));
	assert_int_equal(rpma_rt_pool_new(f->rt, &cfg, &more), RPMA_E_NOMEM);
	fake_round(f); /* the runtime uses the block of the futures again */
	memory = fake_memory();
	fake_logged();
	assert_int_equal(rpma_rt_pool_new(f->rt, &cfg, &more), RPMA_E_NOMEM);
	fake_round(f);
	assert_null(more);
	assert_int_equal(fake_memory(), memory);
	assert_true(fake_said("this process has 1024 already"));
	assert_int_equal(fake_logged(), 1);
	ok(rpma_rt_pool_delete(&pools[500]));
	ok(rpma_rt_pool_new(f->rt, &cfg, &pools[500]));
	for (i = 0; i < 1024; i++)
		ok(rpma_rt_pool_delete(&pools[i]));
}

/* Each allocation fails in turn. */
FAKE_TEST(new__no_memory_SAYS_WHY)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool = NULL;
	int nth;

	cfg.peer = &fake_peer;
	cfg.count = 4;
	cfg.futures = 1;
	for (nth = 1;; nth++) {
		fake_fail("malloc", nth, 1);
		if (rpma_rt_pool_new(f->rt, &cfg, &pool) == 0)
			break;
		assert_true(fake_failed());
		assert_null(pool);
		assert_true(fake_said("no pool is made: no memory"));
		assert_int_equal(fake_logged(), 1);
	}
	/* the memory of the pool and the memory of its futures */
	assert_in_range(nth, 7, 20);
	assert_false(fake_failed());
	ok(rpma_rt_pool_delete(&pool));
}

/* The memory of the pool is gone after the delete: no poller reads a message of
 * the pool, or of the futures of its slots, later. */
FAKE_TEST(delete__no_message_STAYS)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool;

	cfg.peer = &fake_peer;
	cfg.count = 1;
	cfg.slot_size = FAKE_SLOT;
	cfg.futures = 1;
	ok(rpma_rt_pool_new(f->rt, &cfg, &pool));
	ok(rpma_rt_pool_delete(&pool));
	assert_true(rt_inbox_is_empty(&f->rt->pollers[0].inbox));
}

FAKE_TEST(take__each_slot_once_then_AGAIN)
{
	struct rpma_rt_pool *pool = pool_open(f, 3);
	struct rpma_rt_lease leases[3];
	struct rpma_rt_lease lease;
	int i;

	for (i = 0; i < 3; i++) {
		ok(rpma_rt_pool_take(pool, &leases[i]));
		assert_int_equal(leases[i].slot, i);
		assert_int_equal(leases[i].len, FAKE_SLOT);
		assert_ptr_equal(leases[i].data, pool->memory + i * 64);
		assert_int_equal(leases[i].offset, i * 64);
	}
	assert_int_equal(rpma_rt_pool_take(pool, &lease), RPMA_E_AGAIN);
	assert_int_equal(fake_logged(), 0);
	assert_int_equal(rpma_rt_pool_delete(&pool), RPMA_RT_E_BUSY);
	assert_true(fake_said("3 leases are not given back"));
	ok(rpma_rt_lease_release(&leases[1]));
	ok(rpma_rt_pool_take(pool, &lease));
	assert_int_equal(lease.slot, 1);
	assert_int_equal(lease.generation, leases[1].generation + 2);
	/* of the slot's former lease */
	assert_int_equal(rpma_rt_lease_release(&leases[1]), RPMA_E_INVAL);
	assert_true(fake_said("was given back before"));
	ok(rpma_rt_lease_release(&lease));
	assert_int_equal(rpma_rt_lease_release(&lease), RPMA_E_INVAL);
	ok(rpma_rt_lease_release(&leases[0]));
	ok(rpma_rt_lease_release(&leases[2]));
	fake_logged();
	pool_close(f, &pool);
}

FAKE_TEST(generation__begins_anew)
{
	struct rpma_rt_pool *pool = pool_open(f, 1);
	struct rpma_rt_lease lease;
	uint32_t i;

	for (i = 0; i <= RT_POOL_GEN_MASK / 2 + 1; i++) {
		ok(rpma_rt_pool_take(pool, &lease));
		assert_int_equal(lease.generation,
				 (2 * i + 1) & RT_POOL_GEN_MASK);
		ok(rpma_rt_lease_release(&lease));
	}
	pool_close(f, &pool);
}

/* Takes all free slots, and gives the slots back: returns how many. */
static uint32_t count_free(struct rpma_rt_pool *pool)
{
	struct rpma_rt_lease leases[2 * FAKE_RQ];
	uint32_t count = 0;
	uint32_t i;

	while (rpma_rt_pool_take(pool, &leases[count]) == 0)
		count++;
	for (i = 0; i < count; i++)
		ok(rpma_rt_lease_release(&leases[i]));
	return count;
}

/* Receives take no slot reserved for sends, and sends take no slot for receives
 * as long as a receive queue wants slots. */
FAKE_TEST(sends__have_slots_of_their_own)
{
	static const struct {
		uint32_t given;
		uint32_t sends;
	} cases[] = {{0, FAKE_RQ},
		     {1, 1},
		     {3, 3},
		     {2 * FAKE_RQ - 1, 2 * FAKE_RQ - 1}};
	struct rpma_rt_pool *pool;
	struct rpma_rt_conn *conn;
	uint32_t receives;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pool = pool_open_for(f, 2 * FAKE_RQ, cases[i].given);
		assert_int_equal(count_free(pool), 2 * FAKE_RQ);
		receives = 2 * FAKE_RQ - cases[i].sends;
		if (receives > FAKE_RQ)
			receives = FAKE_RQ;
		conn = fake_request(f);
		fake_logged();
		assert_int_equal(fake_qp(conn)->rq_count, receives);
		assert_int_equal(count_free(pool), cases[i].sends);
		bury(f, &conn, 0);
		fake_logged();
		assert_int_equal(count_free(pool), 2 * FAKE_RQ);
		pool_close(f, &pool);
	}
}

/* The slot of a pool with a single slot is for receives. */
FAKE_TEST(sends__none_of_a_single_slot)
{
	struct rpma_rt_pool *pool = pool_open_for(f, 1, 0);
	struct rpma_rt_conn *conn = fake_request(f);

	fake_logged();
	assert_int_equal(fake_qp(conn)->rq_count, 1);
	bury(f, &conn, 0);
	fake_logged();
	pool_close(f, &pool);
}

/* srq_size 0: every slot for receives, and no more. */
/* Takes all slots of the pool; returns how many. */
static uint32_t take_all(struct rpma_rt_pool *pool,
			 struct rpma_rt_lease *leases)
{
	uint32_t count = 0;

	while (rpma_rt_pool_take(pool, &leases[count]) == 0)
		count++;
	return count;
}

/* Slots of both lists of two pools, by turns: each is free, once. */
FAKE_TEST(leases__of_several_lists)
{
	struct rpma_rt_pool *one = pool_open_for(f, 5, 2);
	struct rpma_rt_pool *two = pool_open_for(f, 4, 1);
	struct rpma_rt_lease a[6];
	struct rpma_rt_lease b[6];
	const struct rpma_rt_lease *all[9];
	uint32_t i;

	assert_int_equal(take_all(one, a), 5);
	assert_int_equal(take_all(two, b), 4);
	for (i = 0; i < 5; i++)
		all[2 * i] = &a[i];
	for (i = 0; i < 4; i++)
		all[2 * i + 1] = &b[i];
	ok(rpma_rt_leases_release(all, 9));
	assert_int_equal(take_all(one, a), 5);
	assert_int_equal(take_all(two, b), 4);
	for (i = 0; i < 5; i++)
		all[i] = &a[i];
	for (i = 0; i < 4; i++)
		all[5 + i] = &b[i];
	ok(rpma_rt_leases_release(all, 9));
	pool_close(f, &one);
	pool_close(f, &two);
}

/* A lease that is refused, in whatever place, keeps no other from its list. */
FAKE_TEST(leases__the_others_of_a_refused_one)
{
	struct rpma_rt_pool *pool = pool_open(f, 3);
	struct rpma_rt_lease leases[4];
	const struct rpma_rt_lease *all[3] = {&leases[0], &leases[1],
					      &leases[2]};
	uint32_t bad;

	for (bad = 0; bad < 3; bad++) {
		assert_int_equal(take_all(pool, leases), 3);
		ok(rpma_rt_lease_release(all[bad]));
		assert_int_equal(rpma_rt_leases_release(all, 3), RPMA_E_INVAL);
		assert_true(fake_said("given back"));
		assert_int_equal(rt_pool_out(pool, 3), 0);
	}
	assert_int_equal(take_all(pool, leases), 3);
	all[1] = NULL;
	assert_int_equal(rpma_rt_leases_release(all, 3), RPMA_E_INVAL);
	ok(rpma_rt_lease_release(&leases[1]));
	fake_logged();
	pool_close(f, &pool);
}

FAKE_TEST(srq__as_large_as_the_pool)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_pool *pool = pool_open_for(f, 9, 0);
	struct rpma_rt_srq *srq;

	cfg.peer = &fake_peer;
	cfg.queue = f->queue;
	ok(rpma_rt_srq_new(f->rt, &cfg, &srq));
	assert_int_equal(srq->cfg.srq_size, RPMA_RT_DEFAULT_SRQ_SIZE);
	ok(rpma_rt_srq_delete(&srq));
	cfg.pool = pool;
	ok(rpma_rt_srq_new(f->rt, &cfg, &srq));
	assert_int_equal(srq->cfg.srq_size, 5);
	ok(rpma_rt_srq_delete(&srq));
	cfg.limit = 6;
	assert_int_equal(rpma_rt_srq_new(f->rt, &cfg, &srq), RPMA_E_INVAL);
	assert_true(fake_said("limit is 6, it may be 0..5"));
	fake_logged();
	fake_finish_down(f);
	while (fake_take(f, f->queue) > 0)
		;
	pool_close(f, &pool);
}

/* Before REQUEST is in the queue; again at each batch's end. */
FAKE_TEST(conn__filled_before_the_program_hears)
{
	struct rpma_rt_pool *pool = pool_open(f, 2 * FAKE_RQ);
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_lease lease;

	assert_int_equal(fake_qp(conn)->rq_count, FAKE_RQ);
	assert_int_equal(rt_pool_out(pool, pool->count), FAKE_RQ);
	assert_int_equal(fake_recv(conn, 1), RPMA_E_INVAL);
	assert_true(fake_said("a pool"));
	assert_int_equal(rpma_rt_pool_delete(&pool), RPMA_RT_E_BUSY);
	fake_logged();
	receive(f, conn, 0, &lease);
	assert_int_equal(fake_qp(conn)->rq_count, FAKE_RQ + 1);
	assert_int_equal(rt_pool_out(pool, pool->count), FAKE_RQ + 1);
	ok(rpma_rt_lease_release(&lease));
	bury(f, &conn, 1);
	pool_close(f, &pool);
}

/* A busy queue has a batch between the return of a slot and the message to the
 * hungry queue: the slot is the hungry queue's, whether the busy queue is low,
 * as with 3 slots, or not. */
FAKE_TEST(hungry__served_beside_a_busy_queue)
{
	static const uint32_t slots[] = {3, FAKE_RQ};
	struct rpma_rt_conn *hungry;
	struct rpma_rt_conn *busy;
	struct rpma_rt_pool *pool;
	struct rpma_rt_lease lease;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		pool = pool_open(f, slots[i]);
		busy = fake_request(f);
		hungry = fake_request(f);
		assert_int_equal(fake_qp(busy)->rq_count, slots[i]);
		assert_int_equal(fake_qp(hungry)->rq_count, 0);
		receive(f, busy, 0, &lease);
		ok(rpma_rt_lease_release(&lease));
		receive(f, busy, 1, &lease);
		assert_int_equal(fake_qp(busy)->rq_count, slots[i]);
		assert_int_equal(fake_qp(hungry)->rq_count, 1);
		ok(rpma_rt_lease_release(&lease));
		fake_logged();
		bury(f, &busy, 2);
		bury(f, &hungry, 0);
		pool_close(f, &pool);
	}
}

/* A connection dies while waiting for slots, and is no longer told. */
FAKE_TEST(dry__dies)
{
	struct rpma_rt_pool *pool = pool_open(f, 1);
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_lease lease;

	receive(f, conn, 0, &lease);
	/* the pool is short, and the receive queue is low */
	assert_int_equal(fake_logged(), 2);
	assert_int_equal(pool->asking, 1);
	bury(f, &conn, 1);
	assert_int_equal(pool->asking, 0);
	assert_int_equal(pool->lows, 0);
	ok(rpma_rt_lease_release(&lease));
	fake_round(f);
	pool_close(f, &pool);
}

/* Two waiting connections: each slot goes to the longest waiting. */
FAKE_TEST(dry__by_turns)
{
	struct rpma_rt_pool *pool = pool_open(f, 2);
	struct rpma_rt_conn *first = fake_request(f);
	struct rpma_rt_conn *second = fake_request(f);
	struct rpma_rt_lease leases[2];

	assert_int_equal(fake_qp(second)->rq_count, 0);
	receive(f, first, 0, &leases[0]);
	receive(f, first, 1, &leases[1]);
	ok(rpma_rt_lease_release(&leases[0]));
	fake_round(f);
	assert_int_equal(fake_qp(second)->rq_count, 1);
	ok(rpma_rt_lease_release(&leases[1]));
	fake_round(f);
	assert_int_equal(fake_qp(first)->rq_count, 3);
	fake_logged();
	bury(f, &first, 2);
	bury(f, &second, 0);
	pool_close(f, &pool);
}

/*
 * The device takes some of a chain: the rest are free again, and the connection
 * closes.
 */
FAKE_TEST(device__refuses_CLOSES)
{
	struct rpma_rt_pool *pool = pool_open(f, 2 * FAKE_RQ);
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_lease lease;

	fake_received(conn, 0, IBV_WC_SUCCESS);
	fake_fail("post_recv", 1, EINVAL);
	fake_finish_down(f);
	assert_true(fake_take(f, f->queue) > 0);
	assert_true(rpma_rt_completion_lease(&f->items[0], &lease));
	ok(rpma_rt_lease_release(&lease));
	fake_markers(conn);
	fake_finish_down(f);
	assert_true(fake_take(f, f->queue) > 0);
	assert_int_equal(f->items[f->got - 1].opcode, RPMA_RT_EVENT_CLOSED);
	fake_logged();
	ok(rpma_rt_conn_unref(&conn));
	pool_close(f, &pool);
}

/*
 * A write with immediate data uses a receive; the slot has no bytes of the
 * write.
 */
FAKE_TEST(lease__of_a_write_len_0)
{
	struct rpma_rt_pool *pool = pool_open(f, 1);
	struct rpma_rt_completion item = {.kind = RPMA_RT_COMPLETION,
					  .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
					  .flags = RPMA_RT_C_LEASE,
					  .byte_len = 7};
	struct rpma_rt_lease lease;

	assert_int_equal(rt_pool_take(pool, &item.context, 1), 1);
	assert_true(rpma_rt_completion_lease(&item, &lease));
	assert_int_equal(lease.len, 0);
	item.opcode = IBV_WC_RECV;
	assert_true(rpma_rt_completion_lease(&item, &lease));
	assert_int_equal(lease.len, 7);
	rt_pool_drop(&item);
	/* the same lease, dropped before */
	assert_int_equal(rpma_rt_lease_release(&lease), RPMA_E_INVAL);
	item.flags = 0;
	assert_false(rpma_rt_completion_lease(&item, &lease));
	fake_logged();
	pool_close(f, &pool);
}

FAKE_TEST(srq__filled_and_given_back)
{
	struct rpma_rt_pool *pool = pool_open(f, 3);
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_conn *conn;
	struct rpma_rt_lease lease;
	struct rpma_rt_srq *srq;

	f->rt_cfg.pool = NULL;
	cfg.peer = &fake_peer;
	cfg.queue = f->queue;
	cfg.srq_size = 2;
	cfg.pool = pool;
	ok(rpma_rt_srq_new(f->rt, &cfg, &srq));
	fake_round(f);
	assert_int_equal(rt_pool_out(pool, pool->count), 2);
	assert_int_equal(rpma_rt_srq_recv(srq, NULL, 0, 0, 1), RPMA_E_INVAL);
	fake_logged();
	f->rt_cfg.srqs = &srq;
	f->rt_cfg.srq_count = 1;
	conn = fake_established(f);
	fake_srq_wc(conn, srq, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_true(rpma_rt_completion_lease(&f->items[0], &lease));
	assert_int_equal(rt_pool_out(pool, pool->count), 3);
	ok(rpma_rt_lease_release(&lease));
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	/* taken by the dying queue pair: not seen */
	fake_srq_wc(conn, srq, 1, IBV_WC_WR_FLUSH_ERR);
	fake_wc(conn->cq, rt_wr_id_internal(RT_SQ_MARKER, conn->slot),
		IBV_WC_WR_FLUSH_ERR, IBV_WC_DRIVER1, conn->qp_num);
	fake_last_wqe(conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	ok(rpma_rt_conn_unref(&conn));
	f->rt_cfg.srq_count = 0;
	assert_int_equal(rpma_rt_pool_delete(&pool), RPMA_RT_E_BUSY);
	fake_logged();
	ok(rpma_rt_srq_delete(&srq));
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_SRQ_CLOSED);
	pool_close(f, &pool);
}

TEST_MAIN()
