/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.c -- a link with both ends in this process: everything put arrives
 * whole, in order and once, whichever end drains or sleeps; a sender without
 * room is called when there is room.
 */

#include "fixture.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "rpma_loopback.h"

#define SEED 20261123u

struct stream {
	struct end *from;
	uint32_t n;
	_Atomic bool is_over;
};

static void *stream(void *arg)
{
	struct stream *s = arg;

	for (uint32_t i = 0; i < s->n; i++) {
		struct lb_record record = end_record(s->from->sent, SEED);

		if (!end_request(s->from, &record))
			break;
	}
	return NULL;
}

/* A polling thread, like ibv_poll_cq(). */
static void *poller(void *arg)
{
	struct stream *s = arg;

	while (!atomic_load_explicit(&s->is_over, memory_order_acquire))
		lb_nic_drain(s->from->nic, NULL);
	return NULL;
}

static void streams(uint32_t na, uint32_t nb, bool polls)
{
	struct end a, b;
	struct stream sa = {&a, na, false}, sb = {&b, nb, false};
	pthread_t ta, tb, pa, pb;

	end_init(&a);
	end_init(&b);
	end_meet(&a, &b);
	if (polls) {
		pthread_create(&pa, NULL, poller, &sa);
		pthread_create(&pb, NULL, poller, &sb);
	}
	pthread_create(&ta, NULL, stream, &sa);
	pthread_create(&tb, NULL, stream, &sb);
	pthread_join(ta, NULL);
	pthread_join(tb, NULL);
	end_arrive(&a, &b);
	end_arrive(&b, &a);
	if (polls) {
		atomic_store_explicit(&sa.is_over, true, memory_order_release);
		atomic_store_explicit(&sb.is_over, true, memory_order_release);
		pthread_join(pa, NULL);
		pthread_join(pb, NULL);
	}
	end_fini(&a);
	end_fini(&b);
}

TEST(records__one_way_nobody_polls)
{
	streams(2000, 0, false);
}

TEST(records__both_ways_nobody_polls)
{
	streams(2000, 2000, false);
}

TEST(records__both_ways_both_poll)
{
	streams(2000, 2000, true);
}

/* Returns true if a record to b at this moment would need a ring. */
static bool is_asleep(struct end *a, struct end *b)
{
	/* relaxed: a bell orders the reads afterwards */
	uint32_t sleep = atomic_load_explicit(&b->link->mine->sleep,
					      memory_order_relaxed);
	bool is_rung;

	lb_lock_get(&a->link->out);
	is_rung = a->link->rung == sleep;
	lb_lock_put(&a->link->out);
	return (sleep & 1) && !is_rung;
}

/* The receiver sleeps before each record. */
TEST(record__wakes_a_SLEEPER)
{
	struct end a, b;
	struct lb_link_stats stats;

	end_init(&a);
	end_init(&b);
	end_meet(&a, &b);
	for (uint32_t i = 0; i < 50; i++) {
		struct lb_record record = end_record(i, SEED);

		while (!is_asleep(&a, &b))
			poll(NULL, 0, 1);
		assert_true(end_request(&a, &record));
		end_wait(&b.requests, i + 1);
	}
	end_arrive(&a, &b);
	lb_link_stats(a.link, &stats);
	assert_int_equal(stats.sent, 50);
	assert_true(stats.bells_rung > 0);
	assert_true(stats.bells_rung <= 50);
	end_fini(&a);
	end_fini(&b);
}

/* A single bell for many records, as long as the receiver does not wake up. */
TEST(arm__rings_once)
{
	struct end a, b;
	struct lb_link_stats before, after;

	end_init(&a);
	end_init(&b);
	end_meet(&a, &b);
	lb_lock_get(&b.link->in); /* its thread waits at the first bell */
	lb_link_stats(a.link, &before);
	for (uint32_t i = 0; i < 20; i++) {
		struct lb_record record = {
			.type = LB_RECORD_SEND, .psn = i, .life = 7, .from = 1};

		assert_int_equal(end_try(&a, &record), LB_PUT_OK);
	}
	lb_link_stats(a.link, &after);
	assert_in_range(after.bells_rung - before.bells_rung, 0, 1);
	lb_lock_put(&b.link->in);
	end_wait(&b.requests, 20);
	end_fini(&a);
	end_fini(&b);
}

/*
 * The ring is filled without draining: the sender is told, and everything
 * arrives.
 */
TEST(room__is_TOLD)
{
	struct end a, b;
	enum lb_put_result ret = LB_PUT_OK;
	uint32_t sent;

	end_init(&a);
	end_init(&b);
	end_meet(&a, &b);
	lb_lock_get(&b.link->in);
	while (ret == LB_PUT_OK) {
		struct lb_record record = end_record(a.sent, SEED);

		ret = end_try(&a, &record);
	}
	assert_int_equal(ret, LB_PUT_NO_ROOM);
	lb_nic_look(a.nic, NULL);
	assert_int_equal(end_count(&a.rooms), 0);
	sent = a.sent;
	lb_lock_put(&b.link->in);
	end_wait(&a.rooms, 1);
	end_wait(&b.requests, sent);
	for (uint32_t i = 0; i < 100; i++) {
		struct lb_record record = end_record(a.sent, SEED);

		assert_true(end_request(&a, &record));
	}
	end_arrive(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

/* --- an early bell */

static struct {
	struct end a, b;
	_Atomic uint32_t stage; /* of the stops below */
	_Atomic uint32_t go;
	uint32_t sleep; /* of a, odd, before a hears the bell */
} early;

static uint32_t sleep_of_a(void)
{
	return atomic_load_explicit(&early.a.link->mine->sleep,
				    memory_order_acquire);
}

/* Stops b after its first head, and after the bell rung then. */
static void stop_early(enum lb_point point, struct lb_link *link)
{
	uint32_t stage = end_count(&early.stage);

	(void)link;
	if (point == LB_POINT_REQ_HEAD && stage == 1) {
		atomic_store_explicit(&early.stage, 2, memory_order_release);
		end_wait(&early.go, 1);
	} else if (point == LB_POINT_BELL && stage == 2) {
		atomic_store_explicit(&early.stage, 3, memory_order_release);
		while (sleep_of_a() < early.sleep + 2)
			poll(NULL, 0, 1);
	}
}

static enum lb_put_result mail(struct end *end)
{
	struct lb_record record = {
		.type = LB_RECORD_DATAGRAM,
		.length = LB_RECORD_PAYLOAD,
		.psn = end->sent,
		.life = 7,
		.from = 1,
		.to = 2,
	};

	return end_try(end, &record);
}

static uint64_t lost(struct end *end)
{
	struct lb_link_stats stats;

	lb_link_stats(end->link, &stats);
	return stats.lost;
}

/*
 * The peer takes nothing: a request that has waited for some time is lost, and
 * following requests are lost at once; but no request that gets an answer. Once
 * the peer takes something, requests wait again.
 */
TEST(room__of_one_who_takes_nothing_LOST)
{
	const struct lb_record reliable = {
		.type = LB_RECORD_SEND,
		.length = LB_RECORD_PAYLOAD,
		.total = LB_RECORD_PAYLOAD,
	};
	struct end a, b;
	enum lb_put_result ret;

	end_init(&a);
	end_init(&b);
	end_patience(&a, 30000000);
	end_meet(&a, &b);
	lb_lock_get(&b.link->in);
	do {
		ret = mail(&a);
	} while (ret == LB_PUT_OK);
	assert_int_equal(ret, LB_PUT_NO_ROOM);
	assert_int_equal(lost(&a), 0);
	lb_nic_look(a.nic, NULL);
	end_wait(&a.rooms, 1); /* no further wait is needed */
	assert_int_equal(mail(&a), LB_PUT_LOST);
	assert_int_equal(mail(&a), LB_PUT_LOST);
	assert_int_equal(lost(&a), 2);
	assert_int_equal(end_try(&a, &reliable), LB_PUT_NO_ROOM);
	lb_nic_look(a.nic, NULL);
	lb_lock_put(&b.link->in);
	end_wait(&a.rooms, 2);
	assert_int_equal(mail(&a), LB_PUT_OK);
	end_wait(&b.requests, a.sent);
	assert_int_equal(lost(&a), 2);
	end_fini(&a);
	end_fini(&b);
}

/* A peer that does not answer the hello: the link is lost. */
TEST(link__of_one_who_does_not_answer_LOST)
{
	struct end a, b;

	end_init(&a);
	end_init(&b);
	end_patience(&a, 30000000);
	pthread_mutex_lock(&b.nic->lock); /* its thread gets nowhere */
	a.link = lb_nic_link(a.nic, lb_nic_number_of(b.nic));
	assert_int_equal(mail(&a), LB_PUT_NOT_YET);
	end_wait(&a.rooms, 1);
	assert_int_equal(mail(&a), LB_PUT_LOST);
	pthread_mutex_unlock(&b.nic->lock);
	end_wait(&a.ups, 1);
	assert_int_equal(mail(&a), LB_PUT_OK);
	end_wait(&b.requests, 1);
	end_fini(&a);
	end_fini(&b);
}

static bool has_covered(struct end *end)
{
	bool has;

	lb_lock_get(&end->link->out);
	has = end->link->covered != 0;
	lb_lock_put(&end->link->out);
	return has;
}

/*
 * A head is covered, then a thread waits for room, then the bell for the head
 * comes: there is another bell for later heads.
 */
TEST(room__bell_for_an_OLD_HEAD_is_not_the_only_one)
{
	struct end *a = &early.a, *b = &early.b;
	enum lb_put_result ret;

	end_init(a);
	end_init(b);
	pthread_mutex_lock(&b->nic->lock);
	b->nic->at = stop_early;
	pthread_mutex_unlock(&b->nic->lock);
	end_meet(a, b);
	atomic_store_explicit(&early.stage, 1, memory_order_release);
	assert_int_equal(mail(a), LB_PUT_OK);
	end_wait(&early.stage, 2);
	while (!has_covered(a)) /* the thread of a may be in a look before the
				 * cover */
		lb_nic_drain(a->nic, NULL);
	do {
		ret = mail(a);
	} while (ret == LB_PUT_OK);
	assert_int_equal(ret, LB_PUT_NO_ROOM);
	lb_nic_look(a->nic, NULL);
	assert_int_equal(end_count(&a->rooms), 0);
	while (!(sleep_of_a() & 1))
		poll(NULL, 0, 1);
	early.sleep = sleep_of_a();
	atomic_store_explicit(&early.go, 1, memory_order_release);
	end_wait(&a->rooms, 1);
	end_wait(&b->requests, a->sent);
	end_fini(a);
	end_fini(b);
}

/* Credits of unanswered requests come back all the same. */
TEST(credits__of_the_SILENT_come_back)
{
	struct end a, b;

	end_init(&a);
	end_init(&b);
	end_meet(&a, &b);
	for (uint32_t i = 0; i < 500; i++) {
		struct lb_record record = {
			.type = LB_RECORD_READ,
			.psn = i,
			.total = LB_RECORD_PAYLOAD,
			.life = 7,
			.from = 1,
		};

		assert_true(end_request(&a, &record));
	}
	end_arrive(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

static enum lb_put_result to_group(struct end *end, uint8_t number)
{
	struct lb_record record = {
		.type = LB_RECORD_MULTICAST,
		.psn = end->sent,
		.dgid = {0xff, [15] = number},
	};

	return end_try(end, &record);
}

static uint64_t group(uint8_t number)
{
	return lb_record_group((const uint8_t[16]){0xff, [15] = number});
}

/* Sends n requests of the type in a row, which come in one round. */
static void ask(struct end *end, uint8_t type, uint32_t from, uint32_t n)
{
	while (n--) {
		const struct lb_record record = {
			.type = type,
			.psn = end->sent,
			.life = 7,
			.from = from,
			.to = 2,
		};

		assert_int_equal(end_try(end, &record), LB_PUT_OK);
	}
}

static void is_answer(const struct end *end, uint32_t index, uint8_t type,
		      uint32_t to, uint32_t first, uint32_t last)
{
	const struct lb_record *answer = &end->last[index];

	assert_int_equal(answer->type, type);
	assert_int_equal(answer->to, to);
	if (type == LB_RECORD_ACK)
		assert_int_equal(answer->total, first);
	assert_int_equal(answer->psn, last);
}

/* Requests of a queue pair come one after the other; other queue pairs, and
 * other answers, have a separate order. */
TEST(acknowledgements__of_a_round_ARE_ONE)
{
	struct end a, b;

	end_init(&a);
	end_init(&b);
	b.acknowledges = true;
	end_meet(&a, &b);
	lb_lock_get(&b.link->in); /* nothing is taken meanwhile */
	ask(&a, LB_RECORD_SEND, 1, 8);
	ask(&a, LB_RECORD_FETCH_ADD, 1, 1);
	ask(&a, LB_RECORD_SEND, 1, 5); /* the first of them is silent */
	ask(&a, LB_RECORD_SEND, 3, 4); /* likewise */
	lb_lock_put(&b.link->in);
	end_wait(&b.requests, a.sent);
	end_wait(&a.answers, 4);
	is_answer(&a, 0, LB_RECORD_ACK, 1, 0, 7);
	is_answer(&a, 1, LB_RECORD_VALUE, 1, 0, 8);
	is_answer(&a, 2, LB_RECORD_ACK, 1, 10, 13);
	is_answer(&a, 3, LB_RECORD_ACK, 3, 15, 17);
	assert_int_equal(end_count(&a.answers), 4);
	end_fini(&a);
	end_fini(&b);
}

/*
 * Known before the link is up, and as soon as the group changes: nothing is
 * sent.
 */
TEST(group__without_members_there_NOBODY)
{
	struct end a, b;
	uint8_t other = 2;

	while (group(other) == group(1))
		other++;
	end_init(&a);
	end_init(&b);
	lb_nic_set_groups(b.nic, group(1));
	end_meet(&a, &b);
	assert_int_equal(to_group(&a, 1), LB_PUT_OK);
	assert_int_equal(to_group(&a, other), LB_PUT_NOBODY);
	assert_int_equal(to_group(&b, 1), LB_PUT_NOBODY);
	lb_nic_set_groups(b.nic, group(other));
	assert_int_equal(to_group(&a, 1), LB_PUT_NOBODY);
	assert_int_equal(to_group(&a, other), LB_PUT_OK);
	end_wait(&b.requests, 2);
	assert_int_equal(end_count(&a.requests), 0);
	end_fini(&a);
	end_fini(&b);
}

TEST(messages__in_order)
{
	struct end a, b;
	uint8_t bytes[LB_LINK_MESSAGE] = {0};

	end_init(&a);
	end_init(&b);
	a.link = lb_nic_link(a.nic, lb_nic_number_of(b.nic));
	for (uint32_t i = 0; i < 1000; i++) { /* the first before the link is
					       * up */
		memcpy(bytes, &i, sizeof(i));
		assert_int_equal(lb_link_send(a.link, bytes,
					      i % LB_LINK_MESSAGE + 1 > 4
						      ? i % LB_LINK_MESSAGE + 1
						      : 4),
				 0);
	}
	end_wait(&b.messages, 1000);
	end_fini(&a);
	end_fini(&b);
}

/* --- faults */

static void streams_under(const char *rules)
{
	assert_int_equal(rpma_loopback_fault(rules), 0);
	streams(500, 500, false);
	streams(500, 0, true);
	assert_true(rpma_loopback_fault_count() >= 20);
	rpma_loopback_fault_clear();
}

TEST(stall__everything_ARRIVES)
{
	streams_under("link:action=stall,delay_us=300,every=50");
}

TEST(delay__everything_ARRIVES)
{
	streams_under("link:action=stall,delay_us=5");
}

TEST(deny__everything_ARRIVES)
{
	streams_under("link:action=deny,every=3");
}

/* Nothing put after the break arrives; a new link is made. */
TEST(break__ENDS_AT_BOTH)
{
	struct end a, b;
	struct lb_link *first;

	end_init(&a);
	end_init(&b);
	end_meet(&a, &b);
	assert_int_equal(rpma_loopback_fault("link:action=break,nth=20"), 0);
	for (;;) {
		struct lb_record record = {
			.type = LB_RECORD_SEND, .psn = a.sent, .life = 7};

		record.flags = LB_RECORD_UNRELIABLE; /* no answers */
		record.from = 1;
		if (end_try(&a, &record) != LB_PUT_OK)
			break;
	}
	assert_int_equal(a.sent, 19);
	end_wait(&a.deads, 1);
	end_wait(&b.deads, 1);
	assert_int_equal(end_count(&b.requests), 19);
	assert_int_equal(rpma_loopback_fault_count(), 1);
	rpma_loopback_fault_clear();
	first = a.link;
	lb_link_put(b.link);
	/* relaxed: both links are dead */
	atomic_store_explicit(&a.ups, 0, memory_order_relaxed);
	atomic_store_explicit(&b.ups, 0, memory_order_relaxed);
	end_meet(&a, &b);
	assert_ptr_not_equal(a.link, first);
	lb_link_put(first);
	end_fini(&a);
	end_fini(&b);
}

TEST_MAIN()
