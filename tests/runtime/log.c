/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.c -- the log function is the program's: here it posts itself, to what it
 * is told about. Whatever is refused, by librpma, by the device or by rdma_cm,
 * no lock of the runtime is held while it runs, so it ends.
 */

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"
#include "stage.h"

#define DEPTH 64
#define MANY  40 /* work requests: more than one doorbell takes */
#define OURS  7	 /* the context of what the log function posts */
/* before ctest loses patience, and with a name of what waits */
#define HANG_S 300

static struct {
	struct stage *stage;
	/* what it posts to, once; NULL: not to it */
	struct rpma_rt_conn *sends_to;
	struct rpma_rt_conn *receives_to;
	struct rpma_rt_srq *srq;
	const char *words; /* of the message that it does so for */
	int posted;
	int ret;
} log_does;

static void log_fn(enum rpma_log_level level, const char *file, const int line,
		   const char *function, const char *format, ...)
{
	struct stage *s = log_does.stage;
	char text[512];
	va_list args;

	(void)file;
	(void)line;
	(void)function;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (level > RPMA_LOG_LEVEL_ERROR || log_does.posted > 0 ||
	    log_does.words == NULL || strstr(text, log_does.words) == NULL)
		return;
	log_does.posted++;
	if (log_does.sends_to != NULL)
		log_does.ret = rpma_rt_send(log_does.sends_to, s->mr, 0, 8,
					    RPMA_F_COMPLETION_ALWAYS, OURS);
	if (log_does.receives_to != NULL)
		log_does.ret =
			rpma_rt_recv(log_does.receives_to, s->mr, 0, 64, OURS);
	if (log_does.srq != NULL)
		log_does.ret =
			rpma_rt_srq_recv(log_does.srq, s->mr, 0, 64, OURS);
}

static void begin(struct stage *s, const char *words)
{
	memset(&log_does, 0, sizeof(log_does));
	log_does.stage = s;
	log_does.words = words;
}

/* It was called for those words, and what it posted was answered so. */
static void end(int ret)
{
	log_does.words = NULL;
	CHECK(log_does.posted == 1);
	MUST_ANSWER(ret, log_does.ret);
}

/* ------------------------------------------------- refused by librpma --- */

static void expect_posted(struct stage *s)
{
	end(0);
	stage_completion(s->aq, OURS, IBV_WC_SUCCESS);
	stage_completion(s->pq, OURS, IBV_WC_SUCCESS);
}

static void send_from_log(struct stage *s, const struct world_pair *pair,
			  const char *words)
{
	MUST(rpma_rt_recv(pair->passive, s->mr, 64, 64, OURS));
	begin(s, words);
	log_does.sends_to = pair->active;
}

static void prep_swap(struct stage *s, struct rpma_rt_wr *wr, uint64_t offset)
{
	rpma_rt_prep_compare_swap(wr, s->mr, 0, s->remote, offset, 1, 2, 0, 1);
}

static void refused__by_librpma_THE_LOG_POSTS(struct stage *s,
					      const struct world_pair *pair)
{
	struct rpma_rt_wr wrs[MANY];
	int i;

	send_from_log(s, pair, "multiple of 8");
	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_compare_swap(pair->active, s->mr, 0, s->remote, 4,
					 1, 2, 0, 1));
	expect_posted(s);

	/* not the first, and validated ahead of the chain */
	for (i = 0; i < MANY; i++)
		prep_swap(s, &wrs[i], i == MANY - 1 ? 4 : 8);
	send_from_log(s, pair, "multiple of 8");
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_post_send(pair->active, wrs, MANY));
	expect_posted(s);

	send_from_log(s, pair, "does not write directly");
	MUST_ANSWER(RPMA_E_NOSUPP,
		    rpma_rt_flush(pair->active, s->remote, 0, 8,
				  RPMA_FLUSH_TYPE_PERSISTENT, 0, 1));
	expect_posted(s);
}

/* ---------------------------------------------- refused by the device --- */

static void refused__send_by_the_device_CLOSES(struct stage *s,
					       struct world_pair *pair)
{
	begin(s, "the device refused");
	log_does.sends_to = pair->active;
	CHECK(loop_get()->fault("call:verb=ibv_post_send,nth=1") == 0);
	MUST(rpma_rt_send(pair->active, s->mr, 0, 8, 0, 1));
	end(RPMA_RT_E_CLOSED);
	stage_completion(s->aq, 1, IBV_WC_GENERAL_ERR);
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
}

static void refused__receive_of_an_srq(struct stage *s)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_completion item;
	struct rpma_rt_srq *srq;

	cfg.peer = s->world.peer;
	cfg.queue = s->pq;
	cfg.srq_size = DEPTH;
	MUST(rpma_rt_srq_new(s->world.rt, &cfg, &srq));
	begin(s, "refused");
	log_does.srq = srq;
	CHECK(loop_get()->fault("call:verb=ibv_post_srq_recv,nth=1") == 0);
	MUST(rpma_rt_srq_recv(srq, s->mr, 0, 64, 1));
	end(0);
	MUST(rpma_rt_srq_delete(&srq));
	stage_completion(s->pq, 1, IBV_WC_GENERAL_ERR);
	item = world_next(s->pq);
	CHECK(item.context == OURS);
	world_event(s->pq, RPMA_RT_EVENT_SRQ_CLOSED);
}

/* --------------------------------------------- refused by rdma_cm, once --- */

/* Its connection is at its end: what the log function posts is refused. */
static void connect__fails_THE_LOG_POSTS(struct stage *s)
{
	struct rpma_rt_listener *listener =
		world_listen(&s->world, s->cfg, s->pq);
	struct rpma_rt_conn *conn;

	conn = stage_ready(s);
	begin(s, "rdma_connect");
	log_does.receives_to = conn;
	CHECK(loop_get()->fault("call:verb=rdma_connect,nth=1") == 0);
	MUST(rpma_rt_conn_connect(conn, NULL));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	end(RPMA_RT_E_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
	world_unlisten(&listener, s->pq);
}

static void all(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct world_pair pair;
	struct stage s;

	stage_open(&s, &cfg);
	stage_connect(&s, &pair);
	refused__by_librpma_THE_LOG_POSTS(&s, &pair);
	connect__fails_THE_LOG_POSTS(&s);
	refused__receive_of_an_srq(&s);
	refused__send_by_the_device_CLOSES(&s, &pair);
	world_unref(&pair);
	stage_close(&s);
	loop_get()->fault_clear();
}

int main(void)
{
	if (loop_get() == NULL) {
		printf("skipped: only the loopback device fails calls\n");
		return 77;
	}
	MUST(rpma_log_set_function(log_fn));
	alarm(HANG_S);
	all();
	printf("ok\n");
	return 0;
}
