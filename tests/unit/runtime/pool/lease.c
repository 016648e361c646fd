/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Work requests that take a lease, on a made-up device: the slot is free when
 * the device has completed the last work request, in every case; a refused post
 * leaves the lease with the caller; the queue of the program gets no
 * completion.
 */

#include "rt_fake.h"
#include "pool/pool.h"

/* a lease of a pool with one slot, and connections whose receives are not from
 * the pool */
struct scene {
	struct fake *f;
	struct rpma_rt_pool *pool;
	struct rpma_rt_lease lease;
	struct rpma_rt_conn *conn;
	struct rpma_rt_conn *other;
};

static int begin(void **state)
{
	static struct scene scene;
	struct scene *s = &scene;
	int ret = fake_setup(state);

	if (ret)
		return ret;
	s->f = *state;
	s->pool = fake_pool(s->f, 1, 0);
	ok(rpma_rt_pool_take(s->pool, &s->lease));
	s->conn = fake_established(s->f);
	s->other = fake_established(s->f);
	*state = s;
	return 0;
}

static bool is_free(const struct scene *s)
{
	struct rpma_rt_lease lease;

	if (rpma_rt_pool_take(s->pool, &lease) == RPMA_E_AGAIN)
		return false;
	ok(rpma_rt_lease_release(&lease));
	return true;
}

static int end(void **state)
{
	struct scene *s = *state;
	void *f = s->f;

	assert_true(is_free(s));
	if (s->conn != NULL)
		fake_bury(s->f, &s->conn);
	fake_bury(s->f, &s->other);
	assert_true(is_free(s));
	ok(rpma_rt_pool_delete(&s->pool));
	fake_logged();
	return fake_teardown(&f);
}

#define LEASE_TEST(name) TEST_OF(struct scene *s, name, begin, end)

/* Posts a send that takes the lease: 0 or an error. */
static int give(const struct scene *s, struct rpma_rt_conn *conn,
		uint32_t flags)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send_lease(&wr, &s->lease, FAKE_SLOT, flags);
	return fake_post_send(conn, &wr);
}

/* Completes the nth send of the connection, silently for its queue. */
static void complete(const struct scene *s, struct rpma_rt_conn *conn,
		     uint32_t nth)
{
	fake_sent(conn, nth, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 0);
}

LEASE_TEST(send__slot_is_free_when_it_completes)
{
	ok(give(s, s->conn, 0));
	assert_false(is_free(s));
	/* the lease is the send's */
	assert_int_equal(rpma_rt_lease_release(&s->lease), RPMA_E_INVAL);
	assert_true(fake_said("given away with a work request"));
	assert_int_equal(give(s, s->conn, 0), RPMA_E_INVAL);
	assert_true(fake_said("was given back or away before"));
	assert_int_equal(rpma_rt_pool_delete(&s->pool), RPMA_RT_E_BUSY);
	complete(s, s->conn, 0);
}

/* In every order in which the caller and two sends let go, the last frees the
 * slot. */
LEASE_TEST(keep__free_after_the_last)
{
	static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	uint32_t n;
	int i;

	for (n = 0; n < 6; n++) {
		ok(give(s, s->conn, RPMA_RT_F_KEEP));
		ok(give(s, s->other, RPMA_RT_F_KEEP));
		for (i = 0; i < 3; i++) {
			assert_false(is_free(s));
			if (orders[n][i] == 0)
				ok(rpma_rt_lease_release(&s->lease));
			else
				complete(s,
					 orders[n][i] == 1 ? s->conn : s->other,
					 n);
		}
		assert_true(is_free(s));
		ok(rpma_rt_pool_take(s->pool, &s->lease));
	}
	ok(rpma_rt_lease_release(&s->lease));
}

/* The program releases a lease that a send keeps, before the send is refused:
 * the slot is free. */
LEASE_TEST(keep__released_before_the_refusal)
{
	assert_true(rt_pool_begin_send(&s->lease, true));
	ok(rpma_rt_lease_release(&s->lease));
	assert_false(is_free(s));
	rt_pool_undo_send(&s->lease, true);
	assert_true(is_free(s));
}

/* A slot that a send holds, too, is free after the send. */
LEASE_TEST(keep__released_with_others)
{
	const struct rpma_rt_lease *const leases[] = {&s->lease};

	ok(give(s, s->conn, RPMA_RT_F_KEEP));
	ok(rpma_rt_leases_release(leases, 1));
	assert_false(is_free(s));
	assert_int_equal(rpma_rt_leases_release(leases, 1), RPMA_E_INVAL);
	complete(s, s->conn, 0);
}

/* The last send has the lease; earlier sends keep the slot as well. */
LEASE_TEST(keep__given_away_with_the_last)
{
	ok(give(s, s->conn, RPMA_RT_F_KEEP));
	ok(give(s, s->other, 0));
	assert_int_equal(rpma_rt_lease_release(&s->lease), RPMA_E_INVAL);
	complete(s, s->other, 0);
	assert_false(is_free(s));
	complete(s, s->conn, 0);
}

LEASE_TEST(inval__whatever_a_completion_is_for)
{
	struct rpma_rt_future future;
	struct rpma_rt_wr wr;
	struct rpma_rt_lease none = {.pool = NULL};

#define WRONG(field, value)                                                   \
	do {                                                                  \
		rpma_rt_prep_send_lease(&wr, &s->lease, 1, 0);                \
		wr.field = (value);                                           \
		assert_int_equal(fake_post_send(s->conn, &wr), RPMA_E_INVAL); \
	} while (0)
	WRONG(context, 1);
	WRONG(route, &s->conn->own[0]);
	WRONG(future, &future);
	WRONG(flags, RPMA_F_COMPLETION_ALWAYS);
	WRONG(flags, RPMA_F_COMPLETION_ON_ERROR);
	WRONG(op, RPMA_RT_OP_READ);
	WRONG(lease, &none);
	rpma_rt_prep_send_lease(&wr, &s->lease, 1, RPMA_RT_F_KEEP);
	wr.lease = NULL;
	assert_int_equal(fake_post_send(s->conn, &wr), RPMA_E_INVAL);
	none = s->lease;
	none.generation += 2;
	WRONG(lease, &none);
	none.slot = 1;
	WRONG(lease, &none);
	ok(rpma_rt_lease_release(&s->lease));
}

/* The send fails, a later send is flushed, the outcome of another is never
 * known: all slots are free before CLOSED, and no completion comes. */
LEASE_TEST(dies__free_before_CLOSED)
{
	ok(give(s, s->conn, RPMA_RT_F_KEEP));
	ok(give(s, s->conn, RPMA_RT_F_KEEP));
	ok(give(s, s->conn, 0));
	fake_sent(s->conn, 0, IBV_WC_RETRY_EXC_ERR);
	fake_sent(s->conn, 1, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(s->f);
	assert_false(is_free(s));
	fake_drain_time_over(s->f, s->conn);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 1);
	assert_int_equal(s->f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_true(is_free(s));
	ok(rpma_rt_conn_unref(&s->conn));
}

/* The program gets no completion: the log has the status of the first failure.
 * A flush says nothing, and a send that was never posted has no status. */
LEASE_TEST(dies__status_in_the_log)
{
	ok(give(s, s->conn, RPMA_RT_F_KEEP));
	ok(give(s, s->conn, 0));
	fake_sent(s->conn, 0, IBV_WC_REM_INV_REQ_ERR);
	fake_sent(s->conn, 1, IBV_WC_WR_FLUSH_ERR);
	fake_logged();
	fake_finish_down(s->f);
	fake_drain_time_over(s->f, s->conn);
	fake_finish_down(s->f);
	assert_true(fake_said(rpma_rt_status_2str(IBV_WC_REM_INV_REQ_ERR)));
	assert_int_equal(fake_logged(), 1);
	assert_int_equal(fake_take(s->f, s->f->queue), 1);
	ok(rpma_rt_conn_unref(&s->conn));
}

/* The device refuses the last send of a lease: the connection closes, and the
 * slot is free before CLOSED. */
LEASE_TEST(not_posted__free_before_CLOSED)
{
	ok(give(s, s->conn, RPMA_RT_F_KEEP));
	fake_fail("post_send", 1, ENOMEM);
	ok(give(s, s->conn, 0));
	assert_int_equal(give(s, s->conn, 0), RPMA_RT_E_CLOSED);
	assert_false(is_free(s));
	fake_bury(s->f, &s->conn);
	assert_int_equal(s->f->got, 1);
	assert_true(is_free(s));
}

TEST_MAIN()
