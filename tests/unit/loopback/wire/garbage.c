/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * garbage.c -- a peer writes nonsense, into each word of its segment, into
 * records, into the socket: the survivor drops the link, names the word, and
 * lives. The nonsense follows from a seed, which is printed.
 */

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "wire/socket.h"

#define SENT 20u

static uint64_t seed;

static uint64_t chance(void)
{
	return seed = lb_random_mix(seed);
}

struct pair {
	struct end a, b;
};

/* Makes two ends, with some past traffic, and nothing on the way. */
static void begin(struct pair *p)
{
	end_init(&p->a);
	end_init(&p->b);
	end_meet(&p->a, &p->b);
	for (uint32_t i = 0; i < SENT; i++) {
		struct lb_record record = end_record(i, 1);

		assert_true(end_request(&p->a, &record));
		assert_true(end_request(&p->b, &record));
	}
	end_arrive(&p->a, &p->b);
	end_arrive(&p->b, &p->a);
}

/* Asserts a dropped link at a, with these words, and a working NIC. */
static void dropped(struct pair *p, const char *words)
{
	char line[100];
	const char *said;

	lb_link_arm(p->a.link, NULL); /* the look that finds the nonsense */
	end_wait(&p->a.deads, 1);
	said = said_end();
	snprintf(line, sizeof(line), "process %u: its %s is wrong",
		 lb_nic_number_of(p->b.nic), words);
	if (!strstr(said, line))
		fail_msg("wanted: %s\nsaid: %s", line, said);
	end_wait(&p->b.deads, 1);
	end_fini(&p->b);
	end_init(&p->b);
	lb_link_put(p->a.link);
	atomic_store_explicit(&p->a.ups, 0, memory_order_release);
	end_meet(&p->a, &p->b);
	end_fini(&p->a);
	end_fini(&p->b);
}

/* --- words */

typedef _Atomic uint64_t *(*word_fn)(struct lb_segment *segment);

static _Atomic uint64_t *req_tail(struct lb_segment *segment)
{
	return &segment->req_tail;
}

static _Atomic uint64_t *ans_tail(struct lb_segment *segment)
{
	return &segment->ans_tail;
}

static _Atomic uint64_t *req_head(struct lb_segment *segment)
{
	return &segment->req_head;
}

/* Gives a word of b a forbidden value. */
static void word(word_fn of, uint64_t value, const char *words)
{
	struct pair p;

	begin(&p);
	said_begin();
	lb_lock_get(&p.a.link->in);
	atomic_store_explicit(of(p.b.link->mine), value, memory_order_relaxed);
	lb_lock_put(&p.a.link->in);
	dropped(&p, words);
}

static uint64_t value_of(word_fn of)
{
	struct pair p;
	uint64_t value;

	begin(&p);
	value = atomic_load_explicit(of(p.b.link->mine), memory_order_relaxed);
	end_fini(&p.a);
	end_fini(&p.b);
	return value;
}

static void each_wrong_value(word_fn of, const char *words)
{
	const uint64_t was = value_of(of);

	word(of, was - 64, words);	  /* before the last */
	word(of, was + 32, words);	  /* inside a unit */
	word(of, was + (1 << 20), words); /* more than a ring ahead */
	word(of, 0, words);
	word(of, UINT64_MAX - 63, words);
	word(of, chance() | 1ull << 63, words);
}

TEST(req_tail__wrong_DROPPED)
{
	each_wrong_value(req_tail, "req_tail");
}

TEST(ans_tail__wrong_DROPPED)
{
	each_wrong_value(ans_tail, "ans_tail");
}

TEST(req_head__wrong_DROPPED)
{
	each_wrong_value(req_head, "req_head");
}

/* A head inside a record on the way. */
TEST(req_head__inside_a_record_DROPPED)
{
	struct lb_record record = {.type = LB_RECORD_SEND,
				   .psn = SENT,
				   .length = 1000,
				   .life = 7,
				   .from = 1};
	struct pair p;
	uint64_t covered;

	begin(&p);
	said_begin();
	lb_lock_get(&p.b.link->in); /* only b's thread is kept from storing */
	lb_lock_get(&p.a.link->out);
	covered = p.a.link->covered;
	lb_lock_put(&p.a.link->out);
	assert_int_equal(end_try(&p.a, &record), LB_PUT_OK);
	atomic_store_explicit(&p.b.link->mine->req_head, covered + 64,
			      memory_order_relaxed);
	lb_link_arm(p.a.link, NULL);
	end_wait(&p.a.deads, 1);
	lb_lock_put(&p.b.link->in);
	dropped(&p, "req_head");
}

/* These two words promise nothing: a peer may have any value. */
TEST(sleep_and_want__anything_LIVES)
{
	struct pair p;

	begin(&p);
	for (uint32_t i = 0; i < 200; i++) {
		struct lb_record record = end_record(p.a.sent, 1);

		atomic_store_explicit(&p.b.link->mine->sleep,
				      (uint32_t)chance(), memory_order_relaxed);
		atomic_store_explicit(&p.b.link->mine->want, (uint32_t)chance(),
				      memory_order_relaxed);
		assert_true(end_request(&p.a, &record));
		assert_int_equal(lb_link_state(p.a.link), LB_LINK_UP);
	}
	/* b may sleep: no ring was sent */
	lb_link_arm(p.b.link, NULL);
	end_fini(&p.a);
	end_fini(&p.b);
}

/* --- records */

/* A request of b with this header, which does not pass lb_link_request(). */
static void publish(struct pair *p, const struct lb_record *record,
		    uint64_t size)
{
	struct lb_link *link = p->b.link;

	lb_lock_get(&link->out);
	if (link->mine) { /* or b has seen the end already */
		memcpy(link->mine->requests + link->req_tail % LB_SEGMENT_RING,
		       record, sizeof(*record));
		link->taken[link->req_tail % LB_SEGMENT_RING / LB_RECORD_UNIT]
			.size = (uint16_t)(size / LB_RECORD_UNIT);
		link->req_tail += size;
		link->req_shown = link->req_tail;
		atomic_store_explicit(&link->mine->req_tail, link->req_tail,
				      memory_order_release);
	}
	lb_lock_put(&link->out);
}

static void header(const struct lb_record *record, uint64_t size,
		   const char *words)
{
	struct pair p;

	begin(&p);
	said_begin();
	publish(&p, record, size);
	dropped(&p, words);
}

TEST(record__wrong_DROPPED)
{
	struct lb_record record = {.type = 0, .psn = SENT};

	header(&record, 64, "type");
	record.type = LB_RECORD_REQUESTS;
	header(&record, 64, "type");
	record.type = LB_RECORD_ACK; /* an answer, in the ring of requests */
	header(&record, 64, "type");
	record.type = 255;
	header(&record, 64, "type");
	record.type = LB_RECORD_SEND;
	record.length = LB_RECORD_PAYLOAD + 1;
	header(&record, LB_RECORD_MAX, "length");
	record.length = 1; /* ends behind the tail */
	header(&record, 64, "length");
	record.type = LB_RECORD_READ;
	header(&record, 128, "length");
	record.length = 0;
	record.total = LB_RECORD_PAYLOAD + 1;
	header(&record, 64, "total");
	record.type = LB_RECORD_ATOMIC_WRITE;
	header(&record, 64, "length");
	record.flags = LB_RECORD_INLINE;
	record.length = 8;
	header(&record, 64, "flags");
	record.type = LB_RECORD_SEND;
	record.length = LB_RECORD_SMALL + 1;
	header(&record, 64, "flags");
}

/* Headers by chance: dropped with some words, or taken; never worse. */
TEST(record__by_chance_LIVES)
{
	for (int i = 0; i < 20; i++) {
		struct lb_record record;
		struct pair p;
		uint64_t words[sizeof(record) / 8];

		begin(&p);
		said_begin();
		for (int n = 0; n < 30; n++) {
			for (size_t k = 0; k < sizeof(words) / 8; k++)
				words[k] = chance();
			memcpy(&record, words, sizeof(record));
			if (n % 3)
				record.type = 1 + n % 9;
			record.flags |= LB_RECORD_UNRELIABLE;
			/* all of them are no more than a ring */
			publish(&p, &record, 64 * (1 + chance() % 100));
			lb_link_arm(p.a.link, NULL);
		}
		end_wait(&p.a.deads, 1);
		said_end();
		/* the layer above has seen invalid numbers */
		atomic_store_explicit(&p.a.wrongs, 0, memory_order_release);
		end_fini(&p.a);
		end_fini(&p.b);
	}
}

/*
 * A requester takes no answers, and asks for more; the published head is wrong
 * by so much.
 */
static void cheat(uint64_t by, const char *words)
{
	struct lb_record record = {.type = LB_RECORD_READ,
				   .total = LB_RECORD_PAYLOAD,
				   .psn = SENT,
				   .life = 7,
				   .from = 1};
	struct pair p;
	uint32_t i;

	begin(&p);
	said_begin();
	lb_lock_get(&p.b.link->in); /* takes nothing */
	atomic_fetch_add_explicit(&p.b.link->mine->ans_head, by,
				  memory_order_relaxed);
	for (i = 0; i < 20; i++) {
		publish(&p, &record, 64);
		record.psn++;
	}
	lb_link_arm(p.a.link, NULL);
	end_wait(&p.a.deads, 1);
	lb_lock_put(&p.b.link->in);
	atomic_store_explicit(&p.a.wrongs, 0, memory_order_release);
	atomic_store_explicit(&p.b.wrongs, 0, memory_order_release);
	dropped(&p, words);
}

TEST(credit__of_a_CHEAT_DROPPED)
{
	cheat(0, "ans_head, which leaves no room for an answer,");
}

TEST(ans_head__wrong_DROPPED)
{
	cheat(32, "ans_head");	    /* inside a unit */
	cheat(1 << 20, "ans_head"); /* behind the tail */
	cheat(chance() | 1, "ans_head");
}

TEST(socket__nonsense_DROPPED)
{
	uint8_t bytes[LB_LINK_MESSAGE + 10] = {'x'};
	struct pair p;

	begin(&p);
	said_begin();
	assert_int_equal(lb_socket_send(p.b.link->socket.fd, bytes, 3), 0);
	dropped(&p, "record of its socket");
	begin(&p);
	said_begin();
	bytes[0] = LB_SOCKET_MESSAGE; /* too long */
	assert_int_equal(
		lb_socket_send(p.b.link->socket.fd, bytes, sizeof(bytes)), 0);
	dropped(&p, "record of its socket");
}

int main(int argc, char *argv[])
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	printf("seed %llu\n", (unsigned long long)seed);
	return tests_run(NULL, NULL);
}
