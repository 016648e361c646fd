/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A dump of a runtime without threads: lines for readable and for unreadable
 * ledgers, ages, CQs, and errors.
 */

#define _GNU_SOURCE
#include "rt_fake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "dump/dump.h"
#include "poller/round.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define NOMEM	 8 /* allocations of a dump in the test below */

static const char *text; /* the last dump */

static void expect(const char *where, const char *words)
{
	if (strstr(where, words) == NULL)
		fail_msg("not there: %s\n%s", words, where);
}

/* Every allocation fails once: of the lists, of findings, of the text. */
FAKE_TEST(dump__no_memory_NOMEM)
{
	struct rpma_rt_conn *conn = fake_established(f);
	int fd = memfd_create("dump", MFD_CLOEXEC);
	int n;

	assert_true(fd >= 0);
	conn->is_named = true;
	/* something looks wrong: the connection has been closing for long */
	atomic_store_explicit(&conn->closing, 1, memory_order_relaxed);
	for (n = 1; n <= NOMEM; n++) {
		fake_fail("malloc", n, 1);
		assert_int_equal(rpma_rt_dump(f->rt, fd, RPMA_RT_DUMP_JSON),
				 RPMA_E_NOMEM);
		assert_true(fake_failed());
	}
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	ok(rpma_rt_dump(f->rt, fd, RPMA_RT_DUMP_JSON));
	atomic_store_explicit(&conn->closing, 0, memory_order_relaxed);
	conn->is_named = false;
	close(fd);
	fake_bury(f, &conn);
}

FAKE_TEST(dump__list_being_changed_for_long_BUSY)
{
	fake_fail("pthread_mutex_clocklock", 1, ETIMEDOUT);
	assert_int_equal(rpma_rt_dump(f->rt, 1, RPMA_RT_DUMP_HUMAN),
			 RPMA_RT_E_BUSY);
}

static const struct rt_dump_field *row(const struct rt_dump_object *object,
				       const char *name)
{
	const struct rt_dump_field *field =
		rt_dump_find(object, name, strcspn(name, "?.}"));

	if (field == NULL)
		fail_msg("no field: %s", name);
	return field;
}

static const struct rt_dump_object *stats(const char *list)
{
	return row(row(rt_dump_fields(), list)->of(), "stats")->of();
}

static void expect_each(const struct rt_dump_object *object)
{
	uint32_t i;

	for (i = 0; i < object->count; i++)
		expect(text, object->fields[i].name);
}

FAKE_TEST(dump__every_counter_in_every_form)
{
	enum rpma_rt_dump_format format;

	for (format = RPMA_RT_DUMP_HUMAN; format <= RPMA_RT_DUMP_PROMETHEUS;
	     format++) {
		text = fake_dump(f->rt, format);
		expect_each(stats("pollers"));
		expect_each(stats("queues"));
	}
}

/* No counter of the statistics was forgotten. */
TEST(dump__as_many_counters_as_there_are)
{
	assert_int_equal(stats("pollers")->count * sizeof(uint64_t),
			 sizeof(struct rpma_rt_poller_stats));
	assert_int_equal(stats("queues")->count * sizeof(uint64_t) +
				 2 * sizeof(struct rpma_rt_histogram),
			 sizeof(struct rpma_rt_queue_stats));
}

/* Looks up each name in braces; a name behind a point is of an object inside,
 * or a suffix. */
static void look_up(const struct rt_dump_object *object, const char *template)
{
	const struct rt_dump_field *field;
	const char *end;

	while ((template = strchr(template, '{')) != NULL) {
		field = row(object, ++template);
		end = template + strcspn(template, "?.}");
		if (*end == '.' && field->type == RT_DUMP_IS_PART)
			row(field->of(), end + 1);
	}
}

static void look_up_all(const struct rt_dump_object *object, int *metrics)
{
	const char *label = object->labels;
	uint32_t i;

	look_up(object, object->subject);
	look_up(object, object->human);
	for (; *label != '\0'; label += strspn(label, " ")) {
		assert_non_null(
			rt_dump_find(object, label, strcspn(label, " ")));
		label += strcspn(label, " ");
	}
	for (i = 0; i < object->count; i++) {
		*metrics += object->fields[i].metric != NULL;
		if (object->fields[i].of != NULL)
			look_up_all(object->fields[i].of(), metrics);
	}
}

static int count(const char *in, const char *words)
{
	int times = 0;

	while ((in = strstr(in, words)) != NULL) {
		in += strlen(words);
		times++;
	}
	return times;
}

/* Templates and labels name existing fields; each metric is printed. */
FAKE_TEST(dump__table_agrees_with_itself)
{
	int metrics = 0;

	look_up_all(rt_dump_fields(), &metrics);
	text = fake_dump(f->rt, RPMA_RT_DUMP_PROMETHEUS);
	/* the same tallies are in two lists */
	assert_int_equal(count(text, "# HELP "), metrics - 1);
}

static void does_nothing(const struct rpma_rt_completion *item, void *arg)
{
	(void)item;
	(void)arg;
}

FAKE_TEST(dump__destination_of_each_wr)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_recv_wr wr = {.context = 0x33};
	struct rpma_rt_route *route;
	struct rpma_rt_queue *aside;
	char words[64];

	ok(rpma_rt_queue_new(f->rt, NULL, &aside));
	ok(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE, aside, &route));
	wr.route = route;
	ok(fake_recv(conn, 0x22));
	ok(fake_post_recv(conn, &wr));
	ok(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE, does_nothing,
				       NULL, &route));
	wr.route = route;
	wr.context = 0x44;
	ok(fake_post_recv(conn, &wr));
	ok(fake_send(conn, 0x11, ON_ERROR));

	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "passive, established");
	expect(text, "recv: open, 3 of 8 outstanding\n");
	snprintf(words, sizeof(words), "ms to queue %u\n",
		 rt_queue_id(f->queue));
	expect(strstr(text, "recv 0x22 "), words);
	snprintf(words, sizeof(words), "ms to queue %u\n", rt_queue_id(aside));
	expect(strstr(text, "recv 0x33 "), words);
	expect(strstr(text, "recv 0x44 "), "ms to a function\n");
	expect(text, "send: open, 1 of 8 outstanding\n");
	expect(strstr(text, "send 0x11 "), ", on error only\n");

	fake_bury(f, &conn);
	assert_true(fake_take(f, aside) > 0);
	ok(rpma_rt_queue_delete(&aside));
}

FAKE_TEST(dump__only_the_oldest)
{
	struct rpma_rt_conn *conn;
	uint64_t i;

	f->rt_cfg.rq_size = 2 * RT_DUMP_WRS;
	conn = fake_established(f);
	for (i = 0; i < RT_DUMP_WRS + 3; i++)
		ok(fake_recv(conn, 100 + i));
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "recv: open, 19 of 32 outstanding\n");
	expect(text, "recv 0x64 ");
	expect(text, "recv 0x73 "); /* the sixteenth */
	assert_null(strstr(text, "recv 0x74 "));
	expect(text, "      and 3 more\n");
	fake_bury(f, &conn);
}

/*
 * Retired work requests are not outstanding, though no poster has reaped them.
 */
FAKE_TEST(dump__retired_ones_not_outstanding)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(fake_recv(conn, 1));
	ok(fake_recv(conn, 2));
	fake_received(conn, 0, IBV_WC_SUCCESS);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "recv: open, 1 of 8 outstanding\n      recv 0x2 ");
	fake_bury(f, &conn);
}

FAKE_TEST(dump__age_since_the_pollers_last_look)
{
	struct rpma_rt_conn *conn = fake_established(f);
	unsigned age;

	rt_poller_set_tick(f->poller, rt_now_ns() - UINT64_C(5000000000));
	ok(fake_recv(conn, 1));
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	assert_int_equal(
		sscanf(strstr(text, "recv 0x1 "), "recv 0x1 %u ms", &age), 1);
	assert_in_range(age, 5000, 1000000);
	assert_int_equal(
		sscanf(strstr(text, "clock read "), "clock read %u ms", &age),
		1);
	assert_in_range(age, 5000, 1000000);
	fake_bury(f, &conn);
}

static void dump_human(void *arg)
{
	text = fake_dump(((struct fake *)arg)->rt, RPMA_RT_DUMP_HUMAN);
}

static void post_two_and_dump(void *arg)
{
	struct fake *f = arg;

	ok(fake_send(f->rt->conns, 2, ALWAYS));
	ok(fake_send(f->rt->conns, 3, ALWAYS));
	dump_human(f);
}

/* A thread is inside the verb: the dump does not wait, and counts the line. */
FAKE_TEST(dump__beside_a_poster_COUNTED)
{
	struct rpma_rt_conn *conn;

	f->rt_cfg.waiting = 4;
	conn = fake_established(f);
	fake_when_posting(post_two_and_dump, f);
	ok(fake_send(conn, 1, ALWAYS));
	expect(text, "of 8 outstanding, 2 in line");
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "3 of 8 outstanding");
	assert_null(strstr(text, " in line"));
	fake_bury(f, &conn);
}

/* The number is known, and goes down. */
FAKE_TEST(dump__dying_COUNTED)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(fake_recv(conn, 1));
	ok(fake_recv(conn, 2));
	ok(fake_send(conn, 3, ALWAYS));
	ok(rpma_rt_conn_close(conn));
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "recv: closed, 2 of 8 outstanding, ledger not read: "
		     "closed\n");
	fake_finish_down(f);
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "draining (local)");
	expect(text, "send: closed, 1 of 8 outstanding, ledger not read: "
		     "closed\n");
	expect(text, "recv: closed, 2 of 8 outstanding, ledger not read: "
		     "closed\n");
	fake_bury(f, &conn);
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "1 queues, 0 connections\n");
}

/* The program has freed its copy of the name. */
FAKE_TEST(dump__queues_by_name)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	char name[] = "a \"b\" \\c";
	struct rpma_rt_queue *queue;
	char words[96];

	cfg.name = name;
	ok(rpma_rt_queue_new(f->rt, &cfg, &queue));
	memset(name, 0, sizeof(name));
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	snprintf(words, sizeof(words),
		 "queue %u \"a \"b\" \\c\":", rt_queue_id(queue));
	expect(text, words);
	snprintf(words, sizeof(words), "queue %u:", rt_queue_id(f->queue));
	expect(text, words);
	text = fake_dump(f->rt, RPMA_RT_DUMP_JSON);
	snprintf(words, sizeof(words),
		 "{\"queue\":%u,\"name\":\"a \\\"b\\\" \\\\c\",",
		 rt_queue_id(queue));
	expect(text, words);
	snprintf(words, sizeof(words), "{\"queue\":%u,\"name\":\"queue %u\",",
		 rt_queue_id(f->queue), rt_queue_id(f->queue));
	expect(text, words);
	text = fake_dump(f->rt, RPMA_RT_DUMP_PROMETHEUS);
	snprintf(words, sizeof(words),
		 "rpma_rt_queue_info{queue=\"%u\",name=\"a \\\"b\\\" "
		 "\\\\c\"} 1\n",
		 rt_queue_id(queue));
	expect(text, words);
	ok(rpma_rt_queue_delete(&queue));
}

FAKE_TEST(dump__refused_poster_SHOWN)
{
	struct rpma_rt_conn *conn = fake_established(f);
	uint64_t i;

	for (i = 0; i < FAKE_RQ; i++)
		ok(fake_recv(conn, i));
	assert_int_equal(fake_recv(conn, i), RPMA_E_AGAIN);
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "recv: open, 8 of 8 outstanding, "
		     "refused for credit\n");
	text = fake_dump(f->rt, RPMA_RT_DUMP_JSON);
	expect(text, "\"refused_credit\":true");
	fake_bury(f, &conn);
}

FAKE_TEST(dump__cq_room_and_events)
{
	struct rpma_rt_conn *conn = fake_established(f);
	char words[80];

	fake_cq_event(conn->cq);
	rt_arm_poller(f->poller);
	assert_int_equal(rt_channel_wake(f->poller), 1);
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	snprintf(words, sizeof(words),
		 "room %u of %u, 1 events unacknowledged\n",
		 conn->cq->cqe - FAKE_SQ - FAKE_RQ - 2, conn->cq->cqe);
	expect(text, words);
	rt_cq_fail_mt(conn->cq);
	fake_control(f);
	text = fake_dump(f->rt, RPMA_RT_DUMP_HUMAN);
	expect(text, "events unacknowledged, failed\n");
	text = fake_dump(f->rt, RPMA_RT_DUMP_JSON);
	expect(text, "\"unacknowledged\":1,\"failed\":true}");
	fake_bury(f, &conn);
}

TEST_MAIN()
