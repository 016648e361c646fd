/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * refuse.c -- refusals of a listener: with a configuration beyond the device
 * there is no listener, and the log names the field, its value and the limit of
 * the device; requests for which no queue has room are refused, the log and the
 * dump count the refusals, and the next request is taken.
 */

#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heard.h"
#include "stage.h"

#define DEPTH	8
#define TOO_BIG 1000000
#define LANE	64 /* the shortest */
#define REFUSED 3
#define DUMP	(1 << 20)

/* ------------------------------------------- beyond the device */

static void expect_refused(struct stage *s, const struct rpma_rt_conn_cfg *cfg,
			   const char *words)
{
	struct rpma_rt_listener *listener = NULL;

	heard_forget();
	MUST_ANSWER(RPMA_E_INVAL,
		    world_listen_at(s->world.rt, s->world.peer, s->world.addr,
				    "0", 0, cfg, 0, s->pq, NULL, &listener));
	CHECK(listener == NULL);
	heard_expect(words);
}

/*
 * Returns the limit of a side: with its marker, and in a CQ with both sides and
 * markers.
 */
static int most(const struct ibv_device_attr *attr)
{
	if (attr->max_qp_wr >= TOO_BIG)
		return attr->max_cqe - DEPTH - 2;
	return attr->max_qp_wr - 1;
}

static void listen__more_than_the_device_has_INVAL(struct stage *s)
{
	struct rpma_rt_conn_cfg cfg = *s->cfg;
	struct ibv_device_attr attr;
	char words[128];

	MUST(ibv_query_device(s->world.ibv_ctx, &attr));
	cfg.sq_size = TOO_BIG;
	snprintf(words, sizeof(words), "sq_size is %d, it may be 1..%d",
		 TOO_BIG, most(&attr));
	expect_refused(s, &cfg, words);
	cfg.sq_size = DEPTH;
	cfg.rq_size = TOO_BIG;
	snprintf(words, sizeof(words), "rq_size is %d, it may be 1..%d",
		 TOO_BIG, most(&attr));
	expect_refused(s, &cfg, words);
	cfg.rq_size = DEPTH;
	cfg.max_sge = (uint32_t)attr.max_sge + 1;
	snprintf(words, sizeof(words), "max_sge is %u, it may be 1..%d",
		 cfg.max_sge, attr.max_sge);
	expect_refused(s, &cfg, words);
	cfg.max_sge = 1;
	/* no device reports its inline limit: the runtime tries */
	cfg.max_inline = TOO_BIG;
	expect_refused(s, &cfg, "max_inline is 1000000, it may be 8..");
}

/* The limit in the log is the true limit: accepted, one more is refused. */
static void listen__the_limit_that_is_named_TAKEN(struct stage *s)
{
	struct rpma_rt_conn_cfg cfg = *s->cfg;
	struct rpma_rt_listener *listener;
	uint32_t limit;

	cfg.max_inline = TOO_BIG;
	expect_refused(s, &cfg, "max_inline");
	CHECK(sscanf(strstr(heard_text(), "8..") + 3, "%" SCNu32, &limit) == 1);
	cfg.max_inline = limit + 1;
	expect_refused(s, &cfg, "max_inline");
	cfg.max_inline = limit;
	listener = world_listen(&s->world, &cfg, s->pq);
	world_unlisten(&listener, s->pq);
}

static void listen__atomics_that_the_device_has_not_INVAL(struct stage *s)
{
	struct rpma_rt_conn_cfg cfg = *s->cfg;
	struct rpma_conn_cfg *more;
	struct ibv_device_attr attr;
	char words[128];

	MUST(ibv_query_device(s->world.ibv_ctx, &attr));
	if (attr.max_qp_rd_atom >= UINT8_MAX - 1)
		return; /* no number is too large for the device */
	MUST(rpma_conn_cfg_new(&more));
	MUST(rpma_conn_cfg_set_responder_resources(more, UINT8_MAX - 1));
	cfg.more = more;
	snprintf(words, sizeof(words),
		 "more.responder_resources is 254, it may be 0..%d",
		 attr.max_qp_rd_atom);
	expect_refused(s, &cfg, words);
	MUST(rpma_conn_cfg_delete(&more));
}

/* ------------------------------------------------------- a queue behind --- */

/* Asserts the number in the dump. */
static void expect_dumped(struct stage *s, int refused)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	char *text = calloc(1, DUMP);
	char words[64];

	CHECK(fd >= 0 && text != NULL);
	MUST(rpma_rt_dump(s->world.rt, fd, RPMA_RT_DUMP_JSON));
	CHECK(pread(fd, text, DUMP - 1, 0) > 0);
	snprintf(words, sizeof(words), "\"requests_refused\":%d,", refused);
	CHECK(strstr(text, words) != NULL);
	free(text);
	close(fd);
}

static void wait_for_items(const struct rpma_rt_queue *queue, uint64_t count)
{
	struct rpma_rt_queue_stats stats;
	uint64_t begin = world_now_ms();

	do {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		MUST(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)));
	} while (stats.backlog < count);
}

static void reject_next(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item =
		world_event(queue, RPMA_RT_EVENT_REQUEST);
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(&item);

	MUST(rpma_rt_conn_reject(conn, NULL));
	MUST(rpma_rt_conn_unref(&conn));
}

/* Peers are refused until somebody takes from the queue. */
static void request__queue_behind_REFUSED_AND_TOLD(struct stage *s)
{
	struct rpma_rt_queue_cfg small = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_conn *waiting[LANE + 1];
	struct rpma_rt_completion item;
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	int i;

	small.lane_size = LANE;
	small.backlog_limit = 1;
	MUST(rpma_rt_queue_new(s->world.rt, &small, &queue));
	listener = world_listen(&s->world, s->cfg, queue);
	for (i = 0; i < LANE + 1; i++) {
		waiting[i] = stage_begin(s);
		wait_for_items(queue, (uint64_t)i + 1);
	}
	for (i = 0; i < REFUSED; i++) {
		conn = stage_begin(s);
		item = world_event(s->aq, RPMA_RT_EVENT_CLOSED);
		CHECK(item.context == (uintptr_t)conn);
		CHECK(item.status == RPMA_RT_REASON_REJECTED);
		MUST(rpma_rt_conn_unref(&conn));
	}
	heard_expect("has refused 2 requests, the last because each of its "
		     "queues is over its backlog_limit");
	expect_dumped(s, REFUSED);
	for (i = 0; i < LANE + 1; i++)
		reject_next(queue);
	for (i = 0; i < LANE + 1; i++) {
		world_event(queue, RPMA_RT_EVENT_CLOSED);
		world_event(s->aq, RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_conn_unref(&waiting[i]));
	}
	/* there is room: the next request is taken */
	conn = stage_begin(s);
	reject_next(queue);
	world_event(queue, RPMA_RT_EVENT_CLOSED);
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
	world_unlisten(&listener, queue);
	MUST(rpma_rt_queue_delete(&queue));
}

int main(void)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct stage s;

	MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
				    RPMA_LOG_LEVEL_WARNING));
	heard_start(RPMA_LOG_LEVEL_WARNING);
	stage_open(&s, &cfg);
	listen__more_than_the_device_has_INVAL(&s);
	listen__the_limit_that_is_named_TAKEN(&s);
	listen__atomics_that_the_device_has_not_INVAL(&s);
	request__queue_behind_REFUSED_AND_TOLD(&s);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
