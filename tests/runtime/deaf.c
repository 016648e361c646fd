/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * deaf.c -- CM events cannot be read. For want of memory that is tried again
 * for as long as it takes, and nothing is lost. For good: what is not
 * established ends with a reason, nothing new begins, the dump says so, and
 * what is established goes on. The test stands in for rdma_get_cm_event(), so
 * it runs on every device.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stage.h"

#define DEPTH 8
#define MORE  20 /* failures than make an end of what will not pass */
#define DUMP  (1 << 20)

/* --------------------------------------------------- reading that fails --- */

static _Atomic int failing_with; /* an errno */
static _Atomic int failing_left; /* so often */

static bool is_to_fail(void)
{
	/* relaxed, all of these: numbers of the test's own */
	int left = atomic_load_explicit(&failing_left, memory_order_relaxed);

	while (left > 0) {
		if (atomic_compare_exchange_weak_explicit(
			    &failing_left, &left, left - 1,
			    memory_order_relaxed, memory_order_relaxed))
			return true;
	}
	return false;
}

__attribute__((visibility("default"))) int
rdma_get_cm_event(struct rdma_event_channel *channel,
		  struct rdma_cm_event **event)
{
	static int (*real)(struct rdma_event_channel *,
			   struct rdma_cm_event **);

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "rdma_get_cm_event");
	if (!is_to_fail())
		return real(channel, event);
	/* relaxed: as above */
	errno = atomic_load_explicit(&failing_with, memory_order_relaxed);
	return -1;
}

static void fail_reading(int err, int times)
{
	/* relaxed: as above */
	atomic_store_explicit(&failing_with, err, memory_order_relaxed);
	atomic_store_explicit(&failing_left, times, memory_order_relaxed);
}

/* ------------------------------------------------------------------------ */

static struct rpma_rt_conn *begin(struct stage *s, struct rpma_rt_queue *queue)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, s->cfg, 0, queue, NULL, &conn));
	return conn;
}

static void read__no_memory_for_long_NOTHING_LOST(struct stage *s)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;

	listener = world_listen(&s->world, s->cfg, s->pq);
	fail_reading(ENOMEM, MORE);
	conn = begin(s, s->aq);
	CHECK(world_event(s->aq, RPMA_RT_EVENT_READY).context ==
	      (uintptr_t)conn);
	/* relaxed: as above */
	CHECK(atomic_load_explicit(&failing_left, memory_order_relaxed) == 0);
	MUST(rpma_rt_conn_close(conn));
	CHECK(world_event(s->aq, RPMA_RT_EVENT_CLOSED).status ==
	      RPMA_RT_REASON_LOCAL);
	MUST(rpma_rt_conn_unref(&conn));
	world_unlisten(&listener, s->pq);
}

/* ---------------------------------------------------------- for good --- */

/* That event, for the reason, and the error that was read. */
static void expect_failed(struct rpma_rt_queue *queue, enum rpma_rt_event event,
			  const void *object)
{
	struct rpma_rt_completion item = world_event(queue, event);
	int value;

	CHECK(item.context == (uintptr_t)object);
	CHECK(item.status == RPMA_RT_REASON_FAILED);
	CHECK(rpma_rt_completion_detail(&item, &value) == RPMA_RT_DETAIL_ERRNO);
	CHECK(value == EBADF);
}

static void expect_dumped(struct stage *s)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	char *text = calloc(1, DUMP);
	const char *wrong;

	CHECK(fd >= 0 && text != NULL);
	MUST(rpma_rt_dump(s->world.rt, fd, RPMA_RT_DUMP_HUMAN));
	CHECK(pread(fd, text, DUMP - 1, 0) > 0);
	CHECK(strstr(text, "CM events can be read no more: Bad file") != NULL);
	wrong = strstr(text, "what looks wrong:");
	CHECK(wrong != NULL);
	CHECK(strstr(wrong, "rdma_cm can be read no more (errno 9)") != NULL);
	free(text);
	close(fd);
}

static void read__broken_for_good_ALL_ARE_TOLD(struct stage *s)
{
	struct rpma_rt_queue *queues[4];
	struct rpma_rt_listener *listener;
	struct rpma_rt_listener *other = NULL;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *passive;
	struct rpma_rt_conn *asking;
	struct rpma_rt_conn *ready;
	struct rpma_rt_conn *begun;
	struct rpma_rt_conn *more = NULL;
	struct world_pair pair;
	int i;

	for (i = 0; i < 4; i++)
		MUST(rpma_rt_queue_new(s->world.rt, NULL, &queues[i]));
	stage_connect(s, &pair);
	listener = world_listen(&s->world, s->cfg, queues[0]);
	asking = begin(s, queues[1]);
	world_event(queues[1], RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(asking, NULL));
	item = world_event(queues[0], RPMA_RT_EVENT_REQUEST);
	passive = rpma_rt_completion_conn(&item);
	MUST(rpma_rt_conn_set_queue(passive, queues[3]));
	ready = begin(s, queues[2]);
	world_event(queues[2], RPMA_RT_EVENT_READY);

	fail_reading(EBADF, INT_MAX);
	begun = begin(s, s->aq);
	expect_failed(s->aq, RPMA_RT_EVENT_CLOSED, begun);
	expect_failed(queues[1], RPMA_RT_EVENT_CLOSED, asking);
	expect_failed(queues[2], RPMA_RT_EVENT_CLOSED, ready);
	expect_failed(queues[3], RPMA_RT_EVENT_CLOSED, passive);
	expect_failed(queues[0], RPMA_RT_EVENT_LISTENER_CLOSED, listener);

	MUST_ANSWER(RPMA_E_PROVIDER,
		    world_conn_new(s->world.rt, s->world.peer, s->world.addr,
				   s->world.port, s->cfg, 0, s->aq, NULL,
				   &more));
	MUST_ANSWER(RPMA_E_PROVIDER,
		    world_listen_at(s->world.rt, s->world.peer, s->world.addr,
				    "0", 0, s->cfg, 0, s->pq, NULL, &other));
	CHECK(more == NULL && other == NULL);
	expect_dumped(s);
	for (i = 0; i < DEPTH * 2; i++)
		stage_ping(s, &pair, (uint64_t)i);
	/* its peer would not hear that it leaves */
	MUST(rpma_rt_conn_close(pair.active));
	MUST(rpma_rt_conn_close(pair.passive));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&pair);
	MUST(rpma_rt_conn_unref(&begun));
	MUST(rpma_rt_conn_unref(&asking));
	MUST(rpma_rt_conn_unref(&ready));
	MUST(rpma_rt_conn_unref(&passive));
	MUST(rpma_rt_listener_delete(&listener));
	for (i = 0; i < 4; i++)
		MUST(rpma_rt_queue_delete(&queues[i]));
}

int main(void)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct stage s;

	stage_open(&s, &cfg);
	read__no_memory_for_long_NOTHING_LOST(&s);
	stage_close(&s);
	stage_open(&s, &cfg);
	read__broken_for_good_ALL_ARE_TOLD(&s);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
