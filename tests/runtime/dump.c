/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump.c -- what a dump says about a runtime at work, in its three forms,
 * and that it may be asked for while everything comes and goes.
 *
 * usage: runtime_dump [pairs [messages]]
 */

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "dump_text.h"
#include "stage.h"

#define DEPTH  8
#define PAIRS  20
#define WRITES 50
#define PINGS  500

/* One JSON value from text; where it ends. */
static const char *json_value(const char *text);

static const char *json_string(const char *text)
{
	CHECK(*text == '"');
	for (text++; *text != '"'; text++) {
		CHECK((unsigned char)*text >= 0x20);
		if (*text == '\\') {
			text++;
			CHECK(*text == '"' || *text == '\\');
		}
	}
	return text + 1;
}

static const char *json_list(const char *text, bool with_names)
{
	char end = with_names ? '}' : ']';

	for (text++; *text != end;) {
		text += strspn(text, " \n");
		if (with_names) {
			text = json_string(text);
			CHECK(*text++ == ':');
		}
		text = json_value(text);
		text += strspn(text, " \n");
		if (*text == ',')
			text++;
		else
			CHECK(*text == end);
	}
	return text + 1;
}

static const char *json_value(const char *text)
{
	size_t len;

	text += strspn(text, " \n");
	if (*text == '{' || *text == '[')
		return json_list(text, *text == '{');
	if (*text == '"')
		return json_string(text);
	len = strspn(text, "-0123456789");
	if (len == 0)
		len = strspn(text, "truefalsn");
	CHECK(len > 0);
	return text + len;
}

static void check_json(const char *text)
{
	text = json_value(text);
	CHECK(strcmp(text, "\n") == 0);
}

/* Comments, and samples: a name, labels or none, a number. */
static void check_prometheus(const char *text)
{
	const char *p;

	for (p = text; *p != '\0'; p++) {
		if (*p != '#') {
			CHECK(strncmp(p, "rpma_rt_", 8) == 0);
			p += strcspn(p, "{ \n");
			if (*p == '{')
				p += strcspn(p, "}\n") + 1;
			CHECK(*p++ == ' ' && isdigit((unsigned char)*p));
			p += strspn(p, "0123456789.");
			CHECK(*p == '\n');
		}
		p += strcspn(p, "\n");
	}
	CHECK(p > text && p[-1] == '\n');
}

static void dump__work_under_way_SHOWN(struct stage *s)
{
	struct rpma_rt_queue *aside;
	struct rpma_rt_route *route;
	struct rpma_rt_recv_wr wr = {.context = 0x33, .dst = s->mr, .len = 64};
	struct rpma_rt_completion item;
	struct world_pair pair;
	char *text;

	stage_connect(s, &pair);
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &aside));
	MUST(rpma_rt_route_open(pair.passive, RPMA_RT_RECV_SIDE, aside,
				&route));
	MUST(rpma_rt_recv(pair.passive, s->mr, 0, 64, 0x11));
	MUST(rpma_rt_recv(pair.passive, s->mr, 0, 64, 0x22));
	wr.route = route;
	MUST(world_post_recv(pair.passive, &wr));

	text = dump_text(s->world.rt, RPMA_RT_DUMP_HUMAN);
	dump_text_expect(text, "2 connections");
	dump_text_expect(text, "established");
	dump_text_expect(text, "3 of 8 outstanding");
	dump_text_expect(text, "recv 0x11 ");
	dump_text_expect(text, "recv 0x33 ");
	free(text);

	text = dump_text(s->world.rt, RPMA_RT_DUMP_JSON);
	check_json(text);
	dump_text_expect(text, "\"cqs\":[\n{\"poller\":0,");
	dump_text_expect(text, "\"outstanding\":3,");
	dump_text_expect(text,
			 "{\"operation\":\"recv\",\"context\":51,\"age_ms\":");
	free(text);

	text = dump_text(s->world.rt, RPMA_RT_DUMP_PROMETHEUS);
	check_prometheus(text);
	dump_text_expect(text,
			 "rpma_rt_connections{state=\"established\"} 2\n");
	dump_text_expect(text, "rpma_rt_outstanding{side=\"recv\"} 3\n");
	dump_text_expect(text, "rpma_rt_poller_polls_total{poller=\"1\"} ");
	free(text);

	/* the flushed ones, then CLOSED */
	MUST(rpma_rt_conn_close(pair.active));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	item = world_next(s->pq);
	CHECK(item.context == 0x11);
	item = world_next(s->pq);
	CHECK(item.context == 0x22);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	item = world_next(aside);
	CHECK(item.context == 0x33);
	world_event(aside, RPMA_RT_EVENT_ROUTE_CLOSED);
	world_unref(&pair);
	MUST(rpma_rt_queue_delete(&aside));
}

static void dump__invalid_INVAL(struct stage *s)
{
	CHECK(rpma_rt_dump(NULL, 1, RPMA_RT_DUMP_JSON) == RPMA_E_INVAL);
	CHECK(rpma_rt_dump(s->world.rt, -1, RPMA_RT_DUMP_JSON) == RPMA_E_INVAL);
	CHECK(rpma_rt_dump(s->world.rt, 1, (enum rpma_rt_dump_format)3) ==
	      RPMA_E_INVAL);
}

static void dump__fd_refuses_PROVIDER(struct stage *s)
{
	int fds[2];

	CHECK(pipe(fds) == 0);
	/* the end that is for reading */
	CHECK(rpma_rt_dump(s->world.rt, fds[0], RPMA_RT_DUMP_JSON) ==
	      RPMA_E_PROVIDER);
	close(fds[0]);
	close(fds[1]);
}

struct onlooker {
	struct rpma_rt *rt;
	_Atomic bool over;
	uint64_t dumps;
};

static void *look_on(void *arg)
{
	struct onlooker *onlooker = arg;
	int format = 0;
	char *text;

	/* relaxed: it ends a little sooner or later */
	while (!atomic_load_explicit(&onlooker->over, memory_order_relaxed)) {
		text = dump_text(onlooker->rt,
				 (enum rpma_rt_dump_format)format);
		if (format == RPMA_RT_DUMP_JSON)
			check_json(text);
		free(text);
		format = (format + 1) % 3;
		onlooker->dumps++;
	}
	return NULL;
}

/* Traffic, then a death with receives outstanding. */
static void live_and_die(struct stage *s, uint64_t context)
{
	struct rpma_rt_completion item;
	struct world_pair pair;
	int i;

	stage_connect(s, &pair);
	stage_ping(s, &pair, context);
	for (i = 0; i < DEPTH; i++)
		MUST(rpma_rt_recv(pair.passive, s->mr, 0, 64, context));
	for (i = 0; i < WRITES; i++) {
		MUST(rpma_rt_write(pair.active, s->remote, 0, s->mr, 64, 8,
				   RPMA_F_COMPLETION_ALWAYS, context));
		stage_completion(s->aq, context, IBV_WC_SUCCESS);
	}
	MUST(rpma_rt_conn_close(pair.active));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	for (i = 0; i < DEPTH; i++) {
		item = world_next(s->pq);
		CHECK(item.kind == RPMA_RT_COMPLETION);
		CHECK(item.context == context && item.status != IBV_WC_SUCCESS);
	}
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&pair);
}

/* what a function that receives has; the poller's */
struct receiver {
	struct rpma_mr_local *mr;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route;
	uint64_t posted;
};

static int receive(struct receiver *r)
{
	const struct rpma_rt_recv_wr wr = {
		.route = r->route, .dst = r->mr, .len = 64};

	return world_post_recv(r->conn, &wr);
}

/* Each receive in the place of the one before; it has no other to go on with.
 */
static void received(const struct rpma_rt_completion *item, void *arg)
{
	struct receiver *r = arg;
	int ret;

	CHECK(item->kind != RPMA_RT_WRITABLE);
	if (item->kind == RPMA_RT_EVENT || item->status != IBV_WC_SUCCESS)
		return;
	ret = receive(r);
	/* the last message may meet the end of the connection */
	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
	r->posted += ret == 0;
}

/* A function that meets the dump posts all the same. */
static void dump__functions_post_NOT_STUCK(struct stage *s, uint64_t pings)
{
	struct onlooker onlooker = {.rt = s->world.rt};
	struct receiver r = {.mr = s->mr};
	struct world_pair pair;
	pthread_t thread;
	uint64_t i;

	stage_connect(s, &pair);
	r.conn = pair.passive;
	MUST(rpma_rt_route_open_callback(pair.passive, RPMA_RT_RECV_SIDE,
					 received, &r, &r.route));
	MUST(receive(&r));
	CHECK(pthread_create(&thread, NULL, look_on, &onlooker) == 0);
	for (i = 0; i < pings; i++) {
		MUST(rpma_rt_send(pair.active, s->mr, 64, 8,
				  RPMA_F_COMPLETION_ALWAYS, i));
		stage_completion(s->aq, i, IBV_WC_SUCCESS);
	}
	/* relaxed: see look_on() */
	atomic_store_explicit(&onlooker.over, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	stage_disconnect(s, &pair);
	printf("ok: %lu dumps, beside %lu posts\n",
	       (unsigned long)onlooker.dumps, (unsigned long)r.posted);
}

static void dump__while_all_comes_and_goes_WHOLE(struct stage *s,
						 uint64_t pairs)
{
	struct onlooker onlooker = {.rt = s->world.rt};
	struct rpma_rt_queue *queue;
	pthread_t thread;
	char *text;
	uint64_t i;

	CHECK(pthread_create(&thread, NULL, look_on, &onlooker) == 0);
	for (i = 0; i < pairs; i++) {
		MUST(rpma_rt_queue_new(s->world.rt, NULL, &queue));
		live_and_die(s, i);
		MUST(rpma_rt_queue_delete(&queue));
	}
	MUST(rpma_rt_stop(s->world.rt));
	/* relaxed: see look_on() */
	atomic_store_explicit(&onlooker.over, true, memory_order_relaxed);
	pthread_join(thread, NULL);

	text = dump_text(s->world.rt, RPMA_RT_DUMP_JSON);
	dump_text_expect(text, "{\"stopped\":true,");
	check_json(text);
	free(text);
	printf("ok: %lu dumps\n", (unsigned long)onlooker.dumps);
}

int main(int argc, char **argv)
{
	uint64_t pairs = argc > 1 ? (uint64_t)atoi(argv[1]) : PAIRS;
	uint64_t pings = argc > 2 ? (uint64_t)atoi(argv[2]) : PINGS;
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct stage s;

	stage_open(&s, &cfg);
	dump__invalid_INVAL(&s);
	dump__fd_refuses_PROVIDER(&s);
	dump__work_under_way_SHOWN(&s);
	dump__functions_post_NOT_STUCK(&s, pings);
	dump__while_all_comes_and_goes_WHOLE(&s, pairs);
	stage_close(&s);
	return 0;
}
