/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump_wrong.c -- the findings of a dump: each case is provoked, at first not a
 * finding, a finding after some time, in each form, alone, and no finding when
 * the case is over. For a working runtime the dump finds nothing, however much
 * time passes. The test controls the time: see dump_text.h.
 *
 * usage: runtime_dump_wrong [case]
 */

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "dump_cases.h"
#include "dump_text.h"
#include "loop.h"

#define LATER_MS   7000
#define SOON_MS	   1000 /* long enough for a young finding */
#define STEP_MS	   1000
#define STEPS	   30
#define IDLE_MS	   3600000
#define PAIRS	   4
#define BUSY_PINGS 2000

static const char *const kinds[] = {
	"queue_not_polled", "worker_stuck",   "function_long",
	"poller_stuck",	    "poller_not_run", "request_ignored",
	"connect_missing",  "no_answer",      "send_waits",
	"receives_missing", "credit_used_up", "closing_long",
	"delete_busy",	    "srq_dry",	      "listener_refuses",
	"cm_deaf",	    "pool_dry",	      "pool_short",
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ----------------------------------------------------------- the cases --- */

static bool is_expected(const struct dump_case *the, const char *kind)
{
	int i;

	for (i = 0; i < CASES_ALSO; i++) {
		if (the->also[i] != NULL && strcmp(the->also[i], kind) == 0)
			return true;
	}
	return strcmp(the->kind, kind) == 0;
}

/* Returns a dump as if so many ms had passed without events. */
static char *later(struct scene *c, const struct dump_case *the,
		   enum rpma_rt_dump_format format, uint32_t ms)
{
	struct rpma_rt *rt = c->s.world.rt;

	return the->is_awake ? dump_text_later(rt, format, ms)
			     : dump_text_asleep(rt, format, ms);
}

static uint64_t count(struct scene *c, const struct dump_case *the, uint32_t ms)
{
	char *text = later(c, the, RPMA_RT_DUMP_PROMETHEUS, ms);
	uint64_t number = dump_text_count(text, the->kind);

	free(text);
	return number;
}

static void check_prometheus(struct scene *c, const struct dump_case *the)
{
	char *text = later(c, the, RPMA_RT_DUMP_PROMETHEUS, LATER_MS);
	size_t i;

	for (i = 0; i < KINDS; i++) {
		if ((dump_text_count(text, kinds[i]) > 0) ==
		    is_expected(the, kinds[i]))
			continue;
		fprintf(stderr, "case %s, kind %s:\n%s\n", the->kind, kinds[i],
			text);
		abort();
	}
	free(text);
}

static void check_words(struct scene *c, const struct dump_case *the)
{
	char *text = later(c, the, RPMA_RT_DUMP_HUMAN, LATER_MS);
	char words[64];
	char *wrong;

	dump_text_expect(text, "what looks wrong:\n");
	wrong = strstr(text, "what looks wrong:\n");
	dump_text_expect(wrong, c->object);
	if (the->words != NULL)
		dump_text_expect(wrong, the->words);
	free(text);
	text = later(c, the, RPMA_RT_DUMP_JSON, LATER_MS);
	snprintf(words, sizeof(words), "{\"kind\":\"%s\",\"ms\":", the->kind);
	dump_text_expect(text, words);
	free(text);
}

/* A dump soon after a mistake has the finding too, as young. */
static void check_young(struct scene *c, const struct dump_case *the)
{
	char *text = later(c, the, RPMA_RT_DUMP_HUMAN, SOON_MS);
	const char *wrong = strstr(text, "what looks wrong:");
	char words[64];

	dump_text_expect(text, "what looks wrong: nothing older than 5 s; "
			       "younger:\n");
	dump_text_expect(wrong, c->object);
	if (the->words != NULL)
		dump_text_expect(wrong, the->words);
	free(text);
	text = later(c, the, RPMA_RT_DUMP_JSON, SOON_MS);
	dump_text_expect(text, "\"wrong\":[],");
	snprintf(words, sizeof(words), "{\"kind\":\"%s\",\"ms\":", the->kind);
	dump_text_expect(strstr(text, "\"wrong_younger\":["), words);
	free(text);
	CHECK(count(c, the, SOON_MS) == 0);
}

static void wrong__provoked_NAMED(const struct dump_case *the)
{
	struct scene c;

	if (the->of_loopback && loop_get() == NULL) {
		printf("skipped, needs the loopback device: %s, %s\n",
		       the->kind, the->words);
		return;
	}
	scene_open(&c, the->mode);
	the->provoke(&c);
	CHECK((count(&c, the, 0) > 0) == the->is_at_once);
	if (!the->is_at_once)
		check_young(&c, the);
	check_prometheus(&c, the);
	check_words(&c, the);
	if (the->mend != NULL) {
		the->mend(&c);
		CHECK(count(&c, the, the->is_at_once ? 0 : LATER_MS) == 0);
	}
	scene_close(&c);
	printf("ok: %s\n", the->kind);
}

/* ------------------------------------------------- other contents --- */

/* The active end of a librpma connection; the other end and the endpoint stay
 * until the caller has closed the active end. */
struct plain {
	struct rpma_ep *ep;
	struct rpma_conn *active;
	struct rpma_conn *passive;
};

static void plain_open(struct plain *p, const struct world *w)
{
	enum rpma_conn_event event;
	struct rpma_conn_req *req;
	uint16_t port;
	char text[8];

	MUST(rpma_ep_listen_ex(w->peer, w->addr, "0", 1, NULL, NULL, &p->ep));
	MUST(rpma_ep_get_port(p->ep, &port));
	snprintf(text, sizeof(text), "%u", port);
	MUST(rpma_conn_req_new(w->peer, w->addr, text, NULL, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &p->active));
	MUST(rpma_ep_next_conn_req(p->ep, NULL, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &p->passive));
	MUST(rpma_conn_next_event(p->active, &event));
	MUST(rpma_conn_next_event(p->passive, &event));
}

static void plain_close(struct plain *p)
{
	MUST(rpma_conn_disconnect(p->active));
	MUST(rpma_conn_delete(&p->active));
	MUST(rpma_conn_delete(&p->passive));
	MUST(rpma_ep_shutdown(&p->ep));
}

static void expect_words(struct scene *c, const char *format, ...)
{
	char *text = dump_text(c->s.world.rt, RPMA_RT_DUMP_HUMAN);
	char words[128];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	dump_text_expect(text, words);
	free(text);
}

/* A poller of this thread, a pair, a listener, an SRQ. */
static void fill_scene(struct scene *c)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct world *w = &c->s.world;

	MUST(rpma_rt_poller_attach(w->rt, 0));
	stage_connect(&c->s, &c->pair);
	stage_ping(&c->s, &c->pair, 1);
	MUST(world_listen_at(w->rt, w->peer, w->addr, "0", 1, c->s.cfg, 0,
			     c->s.pq, (void *)0x77, &c->listener));
	cfg.peer = w->peer;
	cfg.queue = c->s.pq;
	cfg.srq_size = CASES_DEPTH;
	cfg.user = (void *)0x88;
	MUST(rpma_rt_srq_new(w->rt, &cfg, &c->srq));
	MUST(rpma_rt_srq_recv(c->srq, c->s.mr, 0, 64, 1));
}

/* Names, owners, pointers of the program, also of ended objects. */
static void shown__every_object_NAMED(void)
{
	struct rpma_rt_adopted *adopted;
	struct plain plain;
	struct scene c;

	scene_open(&c, RPMA_RT_MODE_MANUAL);
	fill_scene(&c);
	plain_open(&plain, &c.s.world);
	MUST(rpma_rt_adopt(c.s.world.rt, plain.active, 0, c.s.aq, (void *)0x99,
			   &adopted));
	expect_words(&c, "\"%s\": slot ",
		     rpma_rt_conn_get_name(c.pair.passive));
	expect_words(&c, "peer %s:", c.s.world.addr);
	expect_words(&c, ", manual, clock read");
	expect_words(&c, "belongs to thread %d (", (int)getpid());
	expect_words(&c, "ms ago by thread %d (", (int)getpid());
	expect_words(&c, ", listens, user 0x77, 0 requests refused");
	expect_words(&c, "SRQ 2 of poller 0: 1 of 8 receives out, 0 conn");
	expect_words(&c, ", user 0x88\n");
	expect_words(&c, "adopted %p: poller 0, queue ", (void *)adopted);

	MUST(rpma_rt_conn_close(c.pair.active));
	world_event(c.s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_stop(c.s.world.rt));
	expect_words(&c, "\"%s\": ended (local), held 1 times",
		     rpma_rt_conn_get_name(c.pair.active));
	expect_words(&c, ", over, user 0x77, 0 requests refused");
	expect_words(&c, "adopted %p: poller 0, queue 0, user 0x99, given back",
		     (void *)adopted);
	MUST(rpma_rt_adopted_release(&adopted));
	plain_close(&plain);
	scene_close(&c);
	printf("ok: every object\n");
}

/* ------------------------------------------------ nothing wrong --- */

struct health {
	struct stage s;
	struct world_pair pairs[PAIRS];
	_Atomic bool is_over;
};

static void expect_nothing(struct rpma_rt *rt)
{
	char *text = dump_text(rt, RPMA_RT_DUMP_HUMAN);

	/* on a slow machine a message may have waited for half a second */
	dump_text_expect(text, "what looks wrong: nothing");
	free(text);
	text = dump_text(rt, RPMA_RT_DUMP_JSON);
	dump_text_expect(text, "\"wrong\":[],");
	free(text);
}

static void health_open(struct health *h, enum rpma_rt_mode mode, int pollers)
{
	const struct stage_cfg cfg = {
		.pollers = pollers, .mode = mode, .depth = CASES_DEPTH};
	int i;

	memset(h, 0, sizeof(*h));
	stage_open(&h->s, &cfg);
	if (mode == RPMA_RT_MODE_MANUAL) /* the poller belongs to this thread,
					  * whose waits run the poller */
		MUST(rpma_rt_poller_attach(h->s.world.rt, 0));
	for (i = 0; i < PAIRS; i++)
		world_connect(&h->s.world, h->s.cfg, i % pollers, h->s.aq,
			      h->s.pq, &h->pairs[i]);
}

static void health_close(struct health *h)
{
	int i;

	for (i = 0; i < PAIRS; i++)
		stage_disconnect(&h->s, &h->pairs[i]);
	stage_close(&h->s);
}

static void ping_all(struct health *h)
{
	int i;

	for (i = 0; i < PAIRS; i++)
		stage_ping(&h->s, &h->pairs[i], (uint64_t)i);
}

/* A second passes each time all work has gone on. */
static void wrong__work_goes_on_NOTHING(enum rpma_rt_mode mode, int pollers)
{
	struct health h;
	int i;

	health_open(&h, mode, pollers);
	for (i = 0; i < STEPS; i++) {
		dump_text_add_ahead_all(STEP_MS);
		ping_all(&h);
		dump_text_await_clock(h.s.world.rt, STEP_MS);
		expect_nothing(h.s.world.rt);
	}
	health_close(&h);
	printf("ok: nothing, mode %d\n", mode);
}

static void await_backlog(struct rpma_rt_queue *queue, uint64_t count)
{
	struct rpma_rt_queue_stats stats;

	do {
		MUST(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)));
	} while (stats.backlog < count);
}

/* After a quiet hour a message comes, and is not taken at once; the message
 * waits for its receive, but not for an hour. */
static void wrong__after_an_idle_hour_NOTHING(enum rpma_rt_mode mode)
{
	struct health h;
	int i;

	health_open(&h, mode, 1);
	ping_all(&h);
	for (i = 1; i < PAIRS; i++)
		MUST(rpma_rt_recv(h.pairs[i].passive, h.s.mr, 0, 64, 9));
	dump_text_await_sleep(h.s.world.rt);
	dump_text_add_ahead_all(IDLE_MS);
	expect_nothing(h.s.world.rt);
	for (i = 0; i < PAIRS; i++)
		MUST(rpma_rt_send(h.pairs[i].active, h.s.mr, 64, 8,
				  RPMA_F_COMPLETION_ALWAYS, 9));
	await_backlog(h.s.pq, PAIRS - 1);
	expect_nothing(h.s.world.rt);
	MUST(rpma_rt_recv(h.pairs[0].passive, h.s.mr, 0, 64, 9));
	await_backlog(h.s.pq, PAIRS);
	expect_nothing(h.s.world.rt);
	for (i = 0; i < PAIRS; i++) {
		stage_completion(h.s.pq, 9, IBV_WC_SUCCESS);
		stage_completion(h.s.aq, 9, IBV_WC_SUCCESS);
	}
	health_close(&h);
	printf("ok: nothing after an hour, mode %d\n", mode);
}

static void *look_on(void *arg)
{
	struct health *h = arg;

	/* relaxed: the loop may end a little later */
	while (!atomic_load_explicit(&h->is_over, memory_order_relaxed))
		expect_nothing(h->s.world.rt);
	return NULL;
}

static void wrong__busy_NOTHING(void)
{
	struct health h;
	pthread_t thread;
	int i;

	health_open(&h, RPMA_RT_MODE_ADAPTIVE, 2);
	CHECK(pthread_create(&thread, NULL, look_on, &h) == 0);
	for (i = 0; i < BUSY_PINGS; i++)
		stage_ping(&h.s, &h.pairs[i % PAIRS], (uint64_t)i);
	/* relaxed: see look_on() */
	atomic_store_explicit(&h.is_over, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	health_close(&h);
	printf("ok: nothing while it is busy\n");
}

int main(int argc, char **argv)
{
	bool has_played = false;
	int i;

	for (i = 0; i < dump_cases_count; i++) {
		if (argc > 1 && strcmp(argv[1], dump_cases[i].kind) != 0)
			continue;
		wrong__provoked_NAMED(&dump_cases[i]);
		has_played = true;
	}
	CHECK(has_played); /* a name that no case has is a mistake */
	if (argc > 1)
		return 0;
	shown__every_object_NAMED();
	wrong__work_goes_on_NOTHING(RPMA_RT_MODE_ADAPTIVE, 2);
	wrong__work_goes_on_NOTHING(RPMA_RT_MODE_EVENT, 1);
	wrong__work_goes_on_NOTHING(RPMA_RT_MODE_BUSY, 1);
	wrong__work_goes_on_NOTHING(RPMA_RT_MODE_MANUAL, 1);
	wrong__after_an_idle_hour_NOTHING(RPMA_RT_MODE_ADAPTIVE);
	wrong__after_an_idle_hour_NOTHING(RPMA_RT_MODE_EVENT);
	wrong__busy_NOTHING();
	return 0;
}
