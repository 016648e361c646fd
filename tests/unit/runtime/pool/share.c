/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * How many receives a queue may have of its pool: idle queues leave slots for
 * queues that come later, queues with many messages under way get more, and a
 * size that the program has set is kept where the size fits.
 */

#include "rt_fake.h"
#include "pool/feed.h"
#include "pool/pool.h"

#define SLOTS 1024 /* for receives */
#define BASE  RPMA_RT_DEFAULT_POOL_RQ_SIZE
#define MOST  RPMA_RT_MOST_POOL_RQ_SIZE
#define FEEDS 512

struct scene {
	struct fake *f;
	struct rpma_rt_pool *pool;
	struct rt_feed feeds[FEEDS];
	uint32_t count;
};

static void fill_nothing(struct rt_feed *feed)
{
	(void)feed;
}

static int begin(void **state)
{
	static struct scene scene;
	struct scene *s = &scene;
	int ret = fake_setup(state);

	if (ret)
		return ret;
	s->f = *state;
	s->count = 0;
	s->pool = fake_pool(s->f, SLOTS, RPMA_RT_POOL_NO_SENDS);
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct scene *s = *state;
	void *f = s->f;

	while (s->count > 0)
		rt_feed_leave(&s->feeds[--s->count]);
	/* relaxed: a single thread */
	assert_int_equal(
		atomic_load_explicit(&s->pool->shares, memory_order_relaxed),
		0);
	ok(rpma_rt_pool_delete(&s->pool));
	return fake_teardown(&f);
}

#define SHARE_TEST(name) TEST_OF(struct scene *s, name, begin, end)

/* Adds a queue of that size, which wants so many receives at first. */
static struct rt_feed *join(struct scene *s, uint32_t size, uint32_t base)
{
	struct rt_feed *feed = &s->feeds[s->count++];

	assert_true(s->count <= FEEDS);
	rt_feed_init(feed, s->pool, s->f->poller, fill_nothing, size, base);
	rt_feed_join(feed);
	assert_true(feed->share >= 1);
	assert_true(feed->share <= size);
	return feed;
}

/* Fills a queue; messages have taken `taken` receives. Returns the share. */
static uint32_t fill(struct rt_feed *feed, uint32_t taken)
{
	rt_feed_begin(feed, feed->share - taken);
	feed->was_full = true;
	return feed->share;
}

static uint32_t sum(const struct scene *s)
{
	uint32_t shares = 0;
	uint32_t i;

	for (i = 0; i < s->count; i++)
		shares += s->feeds[i].share;
	return shares;
}

/* Queues without a size have 8 receives at first, up to a half of the pool.
 * Further queues have fewer: 256 queues have a receive, in place of 128. */
SHARE_TEST(idle__leave_slots_for_others)
{
	uint32_t i;

	for (i = 0; i < SLOTS / 2 / BASE; i++)
		assert_int_equal(join(s, MOST, BASE)->share, BASE);
	for (; i < 2 * SLOTS / BASE; i++)
		join(s, MOST, BASE);
	assert_true(sum(s) <= SLOTS);
}

/* Messages that take half of a share at a time double the share, up to the
 * size. */
SHARE_TEST(busy__grows_to_the_size)
{
	struct rt_feed *feed = join(s, MOST, BASE);
	uint32_t share;

	assert_int_equal(fill(feed, BASE), BASE); /* the first fill */
	for (share = BASE; share < MOST; share *= 2)
		assert_int_equal(fill(feed, share / 2), 2 * share);
	assert_int_equal(fill(feed, MOST), MOST);
}

SHARE_TEST(slow__does_not_grow)
{
	struct rt_feed *feed = join(s, MOST, BASE);
	uint32_t i;

	for (i = 0; i < 100; i++)
		assert_int_equal(fill(feed, BASE / 2 - 1), BASE);
}

/* A queue that an empty pool leaves unfilled is not too small. */
SHARE_TEST(unfilled__does_not_grow)
{
	struct rt_feed *feed = join(s, MOST, BASE);

	fill(feed, BASE);
	feed->was_full = false;
	rt_feed_begin(feed, 0);
	assert_int_equal(feed->share, BASE);
}

/* Growth leaves a half of the pool alone, and gives way when other queues need
 * the slots. */
SHARE_TEST(grown__keeps_to_a_half_and_gives_way)
{
	uint32_t i;
	uint32_t k;

	for (i = 0; i < 16; i++)
		join(s, MOST, BASE);
	for (k = 0; k < 10; k++) {
		for (i = 0; i < 16; i++)
			fill(&s->feeds[i], s->feeds[i].share);
	}
	assert_true(sum(s) <= SLOTS / 2);
	assert_true(sum(s) > SLOTS / 4);
	for (; i < 128; i++)
		join(s, MOST, BASE);
	for (k = 0; k < 10; k++) {
		for (i = 0; i < 16; i++)
			fill(&s->feeds[i], s->feeds[i].share);
	}
	for (i = 0; i < 16; i++)
		assert_int_equal(s->feeds[i].share, BASE);
}

/* A size of the program is kept as long as all sizes fit. */
SHARE_TEST(sized__has_its_size_while_it_fits)
{
	uint32_t i;

	for (i = 0; i < SLOTS / 64; i++)
		assert_int_equal(join(s, 64, 64)->share, 64);
	for (i = 0; i < 64; i++)
		assert_int_equal(join(s, 64, 64)->share, 1);
}

/* A late queue gets the whole size when others have left. */
SHARE_TEST(sized__grows_when_others_leave)
{
	struct rt_feed *feed;
	uint32_t i;

	for (i = 0; i < SLOTS / 64; i++)
		join(s, 64, 64);
	feed = join(s, 64, 64);
	for (i = 0; i < 10; i++)
		assert_int_equal(fill(feed, feed->share), 1);
	rt_feed_leave(&s->feeds[0]);
	s->feeds[0] = *feed;
	feed = &s->feeds[0];
	s->count--;
	for (i = 0; i < 10; i++)
		fill(feed, feed->share);
	assert_true(feed->share >= 32);
	assert_true(sum(s) <= SLOTS);
}

/* Takes all items, and gives the leases back; returns how many. */
static uint32_t take(struct fake *f)
{
	struct rpma_rt_lease lease;
	uint32_t messages = 0;
	int i;

	fake_take(f, f->queue);
	for (i = 0; i < f->got; i++) {
		if (!rpma_rt_completion_lease(&f->items[i], &lease))
			continue;
		ok(rpma_rt_lease_release(&lease));
		messages++;
	}
	return messages;
}

/* A peer that sends as many messages as there are receives soon finds 128. With
 * 8 receives the ninth message waited in the peer's card. */
SHARE_TEST(connection__has_as_many_as_the_peer_needs)
{
	struct fake *f = s->f;
	struct rpma_rt_conn *conn;
	uint32_t posted;
	uint32_t next = 0;
	uint32_t i;

	f->rt_cfg.pool = s->pool;
	f->rt_cfg.rq_size = 0;
	conn = fake_established(f);
	assert_int_equal(fake_qp(conn)->rq_count, BASE);
	for (i = 0; i < 5; i++) {
		posted = fake_qp(conn)->rq_count;
		for (; next < posted; next++)
			fake_received(conn, next, IBV_WC_SUCCESS);
		while (fake_round(f) > 0)
			;
		take(f);
	}
	assert_int_equal(fake_qp(conn)->rq_count - next, MOST);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	for (; next + 1 < fake_qp(conn)->rq_count; next++)
		fake_received(conn, next, IBV_WC_WR_FLUSH_ERR);
	fake_markers(conn);
	fake_finish_down(f);
	take(f);
	ok(rpma_rt_conn_unref(&conn));
	f->rt_cfg.pool = NULL;
}

TEST_MAIN()
