/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * eventfd.c -- a consumer in an event loop: the fd of the queue, in one or two
 * epoll sets, armed before each sleep; waits ended by time, by a push, by a
 * close, by a stop.
 */

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "stage.h"

#define ROUNDS	200
#define DEPTH	8
#define PUSHERS 4

/* the same fd in as many epoll sets; each is slept on in turn */
struct sets {
	int fds[2];
	int count;
	int next;
};

/*
 * Polls until the queue is empty, arms, then sleeps on the fd; returns an item.
 */
static struct rpma_rt_completion next_by_fd(struct rpma_rt_queue *queue,
					    struct sets *sets)
{
	struct rpma_rt_completion item;
	struct epoll_event event;
	int ret;
	int got;
	int i;

	for (;;) {
		got = rpma_rt_queue_poll(queue, &item, 1);
		if (got == 1)
			return item;
		CHECK(got == 0);
		ret = rpma_rt_queue_arm(queue);
		CHECK(ret == 0 || ret == 1);
		if (ret == 1)
			continue;
		sets->next = (sets->next + 1) % sets->count;
		CHECK(epoll_wait(sets->fds[sets->next], &event, 1,
				 WORLD_PATIENCE_MS) == 1);
		/* and all the others find the fd readable too */
		for (i = 0; i < sets->count; i++)
			CHECK(epoll_wait(sets->fds[i], &event, 1, 0) == 1);
	}
}

static struct sets sets_of(struct rpma_rt_queue *queue, int count)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct sets sets = {.count = count};
	int fd;
	int i;

	MUST(rpma_rt_queue_get_fd(queue, &fd));
	for (i = 0; i < count; i++) {
		sets.fds[i] = epoll_create1(EPOLL_CLOEXEC);
		CHECK(sets.fds[i] >= 0);
		CHECK(epoll_ctl(sets.fds[i], EPOLL_CTL_ADD, fd, &event) == 0);
	}
	return sets;
}

static void close_sets(struct sets *sets)
{
	while (sets->count > 0)
		close(sets->fds[--sets->count]);
}

/* Completions of both ends, each through the fd of a separate loop. */
static void fd__wakes_for_each_completion(struct stage *s, int count)
{
	struct rpma_rt_completion item;
	struct world_pair pair;
	struct sets aq = sets_of(s->aq, count);
	struct sets pq = sets_of(s->pq, count);
	uint64_t i;

	stage_connect(s, &pair);
	for (i = 0; i < ROUNDS; i++) {
		MUST(rpma_rt_recv(pair.passive, s->mr, 0, 64, i));
		MUST(rpma_rt_send(pair.active, s->mr, 64, 64,
				  RPMA_F_COMPLETION_ALWAYS, i));
		item = next_by_fd(s->pq, &pq);
		CHECK(item.context == i && item.status == IBV_WC_SUCCESS);
		item = next_by_fd(s->aq, &aq);
		CHECK(item.context == i && item.status == IBV_WC_SUCCESS);
	}
	MUST(rpma_rt_conn_close(pair.active));
	item = next_by_fd(s->aq, &aq);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	item = next_by_fd(s->pq, &pq);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	world_unref(&pair);
	close_sets(&aq);
	close_sets(&pq);
}

/* the action of another thread on a queue on which this thread waits */
struct other {
	struct rpma_rt_queue *queue;
	uint64_t count;
	pthread_t thread;
};

static void *push(void *arg)
{
	struct other *other = arg;
	uint64_t i;

	for (i = 0; i < other->count; i++)
		MUST(rpma_rt_queue_push(
			other->queue,
			&(struct rpma_rt_completion){.context = i,
						     .user = other,
						     .byte_len = 1,
						     .imm = 2}));
	return NULL;
}

static void *close_queue(void *arg)
{
	struct other *other = arg;

	MUST(rpma_rt_queue_close(other->queue));
	return NULL;
}

static void push__each_once_in_order(struct stage *s, int count)
{
	struct other other = {.queue = s->aq, .count = 2000};
	struct rpma_rt_completion item;
	struct sets sets = sets_of(s->aq, count);
	uint64_t i;

	CHECK(!pthread_create(&other.thread, NULL, push, &other));
	for (i = 0; i < other.count; i++) {
		item = next_by_fd(s->aq, &sets);
		CHECK(item.kind == RPMA_RT_MESSAGE && item.context == i);
		CHECK(item.user == &other);
		CHECK(item.byte_len == 1 && item.imm == 2);
	}
	CHECK(!pthread_join(other.thread, NULL));
	close_sets(&sets);
}

/* Readable from a ring until an arm that returns 0; polling changes nothing. */
static void arm__0_is_what_makes_it_quiet(struct stage *s)
{
	struct rpma_rt_completion item;
	struct epoll_event event;
	struct sets sets = sets_of(s->aq, 1);

	CHECK(rpma_rt_queue_arm(s->aq) == 0);
	CHECK(epoll_wait(sets.fds[0], &event, 1, 0) == 0);
	MUST(rpma_rt_queue_push(s->aq,
				&(struct rpma_rt_completion){.context = 1}));
	CHECK(epoll_wait(sets.fds[0], &event, 1, 0) == 1);
	CHECK(rpma_rt_queue_arm(s->aq) == 1);
	CHECK(epoll_wait(sets.fds[0], &event, 1, 0) == 1);
	MUST_ANSWER(1, rpma_rt_queue_poll(s->aq, &item, 1));
	CHECK(rpma_rt_queue_poll(s->aq, &item, 1) == 0);
	CHECK(epoll_wait(sets.fds[0], &event, 1, 0) == 1);
	CHECK(rpma_rt_queue_arm(s->aq) == 0);
	CHECK(epoll_wait(sets.fds[0], &event, 1, 0) == 0);
	close_sets(&sets);
}

/* Several threads push at once: the items of each thread are in order. */
static void push__from_several_threads(struct stage *s)
{
	struct other others[PUSHERS];
	struct rpma_rt_completion item;
	uint64_t next[PUSHERS] = {0};
	size_t i;
	int n;

	for (n = 0; n < PUSHERS; n++) {
		others[n] = (struct other){.queue = s->aq, .count = 1000};
		CHECK(!pthread_create(&others[n].thread, NULL, push,
				      &others[n]));
	}
	for (n = 0; n < PUSHERS * 1000; n++) {
		item = world_next(s->aq);
		CHECK(item.kind == RPMA_RT_MESSAGE);
		i = (size_t)((struct other *)item.user - others);
		CHECK(i < PUSHERS && item.context == next[i]++);
	}
	for (n = 0; n < PUSHERS; n++)
		CHECK(!pthread_join(others[n].thread, NULL));
}

static void pass_on(const struct rpma_rt_completion *item, void *arg)
{
	if (item->kind == RPMA_RT_EVENT) /* ROUTE_CLOSED */
		return;
	CHECK(item->status == IBV_WC_SUCCESS);
	MUST(rpma_rt_queue_push(
		arg, &(struct rpma_rt_completion){.context = item->context,
						  .user = arg}));
}

/* A function called by a poller pushes. */
static void push__from_a_poller(struct stage *s)
{
	struct rpma_rt_recv_wr wr = {.dst = s->mr, .len = 64};
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route;
	struct world_pair pair;
	uint64_t i;

	MUST(rpma_rt_queue_new(s->world.rt, NULL, &queue));
	stage_connect(s, &pair);
	MUST(rpma_rt_route_open_callback(pair.passive, RPMA_RT_RECV_SIDE,
					 pass_on, queue, &route));
	wr.route = route;
	for (i = 0; i < ROUNDS; i++) {
		wr.context = i;
		MUST(world_post_recv(pair.passive, &wr));
		MUST(rpma_rt_send(pair.active, s->mr, 64, 8,
				  RPMA_F_COMPLETION_ALWAYS, i));
		item = world_next(queue);
		CHECK(item.kind == RPMA_RT_MESSAGE && item.context == i);
		CHECK(item.user == queue);
		stage_completion(s->aq, i, IBV_WC_SUCCESS);
	}
	stage_disconnect(s, &pair);
	MUST(rpma_rt_queue_delete(&queue));
}

static void wait__time_over_NONE(struct stage *s)
{
	struct rpma_rt_completion item;
	uint64_t begin = world_now_ms();

	CHECK(rpma_rt_queue_wait(s->aq, &item, 1, 0) == 0);
	CHECK(rpma_rt_queue_wait(s->aq, &item, 1, 20) == 0);
	CHECK(world_now_ms() - begin >= 19); /* not before the time */
}

static void wait__woken_by_a_push(struct stage *s)
{
	struct other other = {.queue = s->aq, .count = 1};
	struct rpma_rt_completion item;

	CHECK(!pthread_create(&other.thread, NULL, push, &other));
	MUST_ANSWER(1, rpma_rt_queue_wait(s->aq, &item, 1, -1));
	CHECK(item.kind == RPMA_RT_MESSAGE);
	CHECK(!pthread_join(other.thread, NULL));
}

/* Closed during a wait, without end or on the fd; later pushes are refused. */
static void close__ends_the_wait(struct stage *s, int by_fd)
{
	struct other other = {0};
	struct rpma_rt_completion item;
	struct epoll_event event;
	struct sets sets = {0};

	MUST(rpma_rt_queue_new(s->world.rt, NULL, &other.queue));
	if (by_fd) {
		sets = sets_of(other.queue, 1);
		CHECK(rpma_rt_queue_arm(other.queue) == 0);
	}
	CHECK(!pthread_create(&other.thread, NULL, close_queue, &other));
	if (by_fd)
		CHECK(epoll_wait(sets.fds[0], &event, 1, WORLD_PATIENCE_MS) ==
		      1);
	CHECK(rpma_rt_queue_wait(other.queue, &item, 1, -1) ==
	      RPMA_RT_E_CLOSED);
	CHECK(rpma_rt_queue_push(other.queue, &(struct rpma_rt_completion){
						      0}) == RPMA_RT_E_CLOSED);
	CHECK(!pthread_join(other.thread, NULL));
	if (by_fd)
		CHECK(rpma_rt_queue_arm(other.queue) == RPMA_RT_E_CLOSED);
	close_sets(&sets);
	MUST(rpma_rt_queue_delete(&other.queue));
}

static void *wait_for_the_end(void *arg)
{
	struct other *other = arg;
	struct rpma_rt_completion item;

	CHECK(rpma_rt_queue_wait(other->queue, &item, 1, -1) ==
	      RPMA_RT_E_CLOSED);
	return NULL;
}

int main(void)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct other waiting = {0};
	struct stage s;

	stage_open(&s, &cfg);
	fd__wakes_for_each_completion(&s, 1);
	fd__wakes_for_each_completion(&s, 2);
	push__each_once_in_order(&s, 1);
	push__each_once_in_order(&s, 2);
	arm__0_is_what_makes_it_quiet(&s);
	push__from_several_threads(&s);
	push__from_a_poller(&s);
	wait__time_over_NONE(&s);
	wait__woken_by_a_push(&s);
	close__ends_the_wait(&s, 0);
	close__ends_the_wait(&s, 1);
	/* and a stop ends the wait on an open queue */
	MUST(rpma_rt_queue_new(s.world.rt, NULL, &waiting.queue));
	CHECK(!pthread_create(&waiting.thread, NULL, wait_for_the_end,
			      &waiting));
	MUST(rpma_rt_stop(s.world.rt));
	CHECK(!pthread_join(waiting.thread, NULL));
	MUST(rpma_rt_queue_delete(&waiting.queue));
	stage_close(&s);
	printf("ok\n");
	return 0;
}
