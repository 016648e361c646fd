/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * held.c -- a thread held in the middle of a post holds no other thread. A hook
 * of the device holds a first thread inside the verb; a replaced function of
 * librpma, which prepares a work request, holds a second thread before the work
 * request is published. Meanwhile eight threads and a function on the poller
 * post and return, all with success, and the dump returns. Close, route close
 * and set_queue return when the first thread has left the verb, although the
 * second thread is still held, and all accepted work requests complete; CLOSED
 * comes, and stop returns, when the second thread has returned. Each work
 * request completes once, and the work requests of a thread in order.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"
#include "stage.h"

#define THREADS 8
#define EACH	8  /* work requests of a thread, and of the function */
#define DEPTH	64 /* more are posted: some wait in line */
#define LAPS	10

/* contexts: the poster, and the number of the poster's work request */
enum poster { FUNCTION = THREADS, IN_VERB, UNPUBLISHED, POSTERS };
#define CONTEXT(poster, n) ((uint64_t)(poster) << 16 | (uint64_t)(n))

enum kind { SENDS, RECEIVES, SHARED_RECEIVES };
enum action { CLOSE, ROUTE_CLOSE, SET_QUEUE, STOP };

struct scene {
	struct stage stage;
	enum kind kind;
	enum action action;
	struct world_pair pair;	 /* the active end gets the posts */
	struct world_pair other; /* runs the function on the poller */
	struct rpma_rt_srq *srq;
	struct rpma_rt_queue *queues[2]; /* of the route, and of set_queue() */
	struct rpma_rt_route *route;	 /* of the two held work requests */
	sem_t function_done;
	sem_t acted;
	pthread_t threads[POSTERS];
	int result[POSTERS];
	uint32_t posted[POSTERS]; /* accepted work requests */
	uint32_t heard[POSTERS];
	bool closed;
};

static void wait_for(sem_t *sem)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += WORLD_PATIENCE_MS / 1000;
	CHECK(sem_timedwait(sem, &at) == 0);
}

/* --------------------------------------------- the two held threads --- */

struct latch {
	sem_t reached;
	sem_t released;
};

static struct latch in_verb, unpublished;
/* of the thread: the next verb, or preparation, waits there */
static _Thread_local struct latch *hold_verb, *hold_preparation;

static void latch_init(struct latch *latch)
{
	CHECK(sem_init(&latch->reached, 0, 0) == 0);
	CHECK(sem_init(&latch->released, 0, 0) == 0);
}

/* Holds the thread once, if *latch says so. */
static void latch_pass(struct latch **latch)
{
	struct latch *at = *latch;

	if (at == NULL)
		return;
	*latch = NULL;
	CHECK(sem_post(&at->reached) == 0);
	wait_for(&at->released);
}

static void on_verb(enum rpma_loopback_point point, const void *object,
		    void *arg)
{
	(void)object;
	(void)arg;
	if (point == RPMA_LOOPBACK_POST_SEND ||
	    point == RPMA_LOOPBACK_POST_RECV)
		latch_pass(&hold_verb);
}

static typeof(rpma_wr_atomic_write) *real_wr_atomic_write;
static typeof(rpma_wr_recv) *real_wr_recv;

/* in front of the library's */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int rpma_wr_atomic_write(struct rpma_conn *conn,
				  const struct rpma_mr_remote *dst,
				  size_t dst_offset, const char src[8],
				  int flags, uint64_t wr_id,
				  struct rpma_send_wr *wr)
{
	latch_pass(&hold_preparation);
	return real_wr_atomic_write(conn, dst, dst_offset, src, flags, wr_id,
				    wr);
}

EXPORTED int rpma_wr_recv(struct rpma_mr_local *dst, size_t offset, size_t len,
			  uint64_t wr_id, struct rpma_recv_wr *wr)
{
	latch_pass(&hold_preparation);
	return real_wr_recv(dst, offset, len, wr_id, wr);
}

/*
 * Copies the pointer of an object into the pointer of a function, as POSIX
 * allows.
 */
static void find_real(void)
{
	void *at = dlsym(RTLD_NEXT, "rpma_wr_atomic_write");

	CHECK(at);
	memcpy(&real_wr_atomic_write, &at, sizeof(at));
	at = dlsym(RTLD_NEXT, "rpma_wr_recv");
	CHECK(at);
	memcpy(&real_wr_recv, &at, sizeof(at));
}

/* -------------------------------------------------------------- posting --- */

/* Only atomic writes, which the held thread posts, come by this program. */
static int post_send(struct scene *s, enum poster poster, uint64_t context)
{
	const bool is_held = poster >= IN_VERB;
	const struct rpma_rt_wr wr = {
		.op = poster == UNPUBLISHED ? RPMA_RT_OP_ATOMIC_WRITE
					    : RPMA_RT_OP_WRITE,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.route = is_held ? s->route : NULL,
		.local = poster == UNPUBLISHED ? NULL : s->stage.mr,
		.remote = s->stage.remote,
		.remote_offset = STAGE_SIZE / 2,
		.len = poster == UNPUBLISHED ? 0 : 8,
		.context = context};

	return rpma_rt_post_send(s->pair.active, &wr, 1);
}

static int post_recv(struct scene *s, enum poster poster, uint64_t context)
{
	const struct rpma_rt_recv_wr wr = {.route = poster >= IN_VERB ? s->route
								      : NULL,
					   .dst = s->stage.mr,
					   .len = 8,
					   .context = context};

	return s->kind == SHARED_RECEIVES
		       ? rpma_rt_srq_post_recv(s->srq, &wr, 1)
		       : rpma_rt_post_recv(s->pair.active, &wr, 1);
}

static int post_one(struct scene *s, enum poster poster)
{
	const uint64_t context = CONTEXT(poster, s->posted[poster]);
	int ret = s->kind == SENDS ? post_send(s, poster, context)
				   : post_recv(s, poster, context);

	s->posted[poster] += ret == 1;
	return ret;
}

struct job {
	struct scene *scene;
	enum poster poster;
};

static void *post_some(void *arg)
{
	const struct job *job = arg;
	int i;

	for (i = 0; i < EACH; i++)
		CHECK(post_one(job->scene, job->poster) == 1);
	return NULL;
}

static void *post_and_be_held(void *arg)
{
	const struct job *job = arg;

	if (job->poster == IN_VERB)
		hold_verb = &in_verb;
	else
		hold_preparation = &unpublished;
	job->scene->result[job->poster] = post_one(job->scene, job->poster);
	return NULL;
}

/* Runs on the poller, for the completion of the other connection's write. */
static void on_completion(const struct rpma_rt_completion *item, void *arg)
{
	struct job job = {arg, FUNCTION};

	if (item->kind != RPMA_RT_COMPLETION)
		return;
	post_some(&job);
	CHECK(sem_post(&job.scene->function_done) == 0);
}

static void begin(struct scene *s, struct job *job, void *(*fn)(void *))
{
	CHECK(pthread_create(&s->threads[job->poster], NULL, fn, job) == 0);
}

static void end(struct scene *s, enum poster poster)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += WORLD_PATIENCE_MS / 1000;
	CHECK(pthread_timedjoin_np(s->threads[poster], NULL, &at) == 0);
}

static void run_function(struct scene *s)
{
	struct rpma_rt_route *route;
	const struct rpma_rt_wr wr = {.op = RPMA_RT_OP_WRITE,
				      .flags = RPMA_F_COMPLETION_ALWAYS,
				      .local = s->stage.mr,
				      .remote = s->stage.remote,
				      .remote_offset = STAGE_SIZE / 2,
				      .len = 8};
	struct rpma_rt_wr with_route = wr;

	MUST(rpma_rt_route_open_callback(s->other.active, RPMA_RT_SEND_SIDE,
					 on_completion, s, &route));
	with_route.route = route;
	MUST(world_post_send(s->other.active, &with_route));
	wait_for(&s->function_done);
}

static void dump(struct scene *s)
{
	int fd = open("/dev/null", O_WRONLY);

	CHECK(fd >= 0);
	MUST(rpma_rt_dump(s->stage.world.rt, fd, RPMA_RT_DUMP_HUMAN));
	close(fd);
}

/* ---------------------------------------------------------- completions --- */

static void hear(struct scene *s, const struct rpma_rt_completion *item)
{
	const uint64_t poster = item->context >> 16;

	if (item->kind == RPMA_RT_EVENT) {
		s->closed |= item->opcode == RPMA_RT_EVENT_CLOSED ||
			     item->opcode == RPMA_RT_EVENT_SRQ_CLOSED;
		return;
	}
	/* no post was refused, so no WRITABLE comes */
	CHECK(item->kind == RPMA_RT_COMPLETION && poster < POSTERS);
	if (s->kind != SHARED_RECEIVES)
		CHECK((item->context & 0xffff) == s->heard[poster]);
	s->heard[poster]++;
}

static bool has_heard(const struct scene *s)
{
	bool all = true;
	int i;

	for (i = 0; i < POSTERS; i++) {
		CHECK(s->heard[i] <= s->posted[i]);
		all &= s->heard[i] == s->posted[i];
	}
	return all;
}

static void hear_some(struct scene *s)
{
	struct rpma_rt_queue *queues[3] = {s->stage.aq, s->queues[0],
					   s->queues[1]};
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < 3; i++) {
		/* all of the queue of before, when another is set */
		while (rpma_rt_queue_poll(queues[i], &item, 1) == 1)
			hear(s, &item);
	}
}

/* Waits until each accepted work request has its completion and, if ends, until
 * CLOSED has come. */
static void hear_all(struct scene *s, bool ends)
{
	uint64_t give_up = world_now_ms() + WORLD_PATIENCE_MS;

	while (!has_heard(s) || (ends && !s->closed)) {
		hear_some(s);
		CHECK(world_now_ms() < give_up);
		sched_yield();
	}
}

/* The posts of the first thread go on: places taken by the held thread for the
 * unpublished work request delay no other thread, lap after lap. */
static void post_many(struct scene *s)
{
	int i;

	for (i = 0; i < LAPS * DEPTH; i++) {
		CHECK(post_one(s, 0) == 1);
		if (i % (DEPTH / 2) == 0)
			hear_all(s, false);
	}
	hear_all(s, false);
}

/* ---------------------------------------------------------------- scene --- */

static void open_srq(struct scene *s)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	cfg.peer = s->stage.world.peer;
	cfg.queue = s->queues[0];
	cfg.srq_size = 2 * DEPTH;
	MUST(rpma_rt_srq_new(s->stage.world.rt, &cfg, &s->srq));
}

static void set_up(struct scene *s, enum kind kind, enum action action)
{
	const struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	enum rpma_rt_side side =
		kind == SENDS ? RPMA_RT_SEND_SIDE : RPMA_RT_RECV_SIDE;
	int i;

	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->action = action;
	CHECK(sem_init(&s->function_done, 0, 0) == 0);
	CHECK(sem_init(&s->acted, 0, 0) == 0);
	latch_init(&in_verb);
	latch_init(&unpublished);
	stage_open(&s->stage, &cfg);
	for (i = 0; i < 2; i++)
		MUST(rpma_rt_queue_new(s->stage.world.rt, NULL, &s->queues[i]));
	stage_connect(&s->stage, &s->pair);
	stage_connect(&s->stage, &s->other);
	if (kind == SHARED_RECEIVES)
		open_srq(s);
	else
		MUST(rpma_rt_route_open(s->pair.active, side, s->queues[0],
					&s->route));
}

static void tear_down(struct scene *s)
{
	struct rpma_rt_completion item;
	int i;

	if (s->action != STOP)
		MUST(rpma_rt_stop(s->stage.world.rt));
	while (rpma_rt_queue_poll(s->stage.aq, &item, 1) == 1)
		CHECK(item.kind == RPMA_RT_EVENT);
	while (rpma_rt_queue_poll(s->stage.pq, &item, 1) == 1)
		CHECK(item.kind == RPMA_RT_EVENT);
	for (i = 0; i < 2; i++) {
		while (rpma_rt_queue_poll(s->queues[i], &item, 1) == 1)
			CHECK(item.kind == RPMA_RT_EVENT);
		MUST(rpma_rt_queue_delete(&s->queues[i]));
	}
	if (s->srq != NULL)
		MUST(rpma_rt_srq_delete(&s->srq));
	world_unref(&s->pair);
	MUST(rpma_rt_conn_unref(&s->other.active));
	MUST(rpma_rt_conn_unref(&s->other.passive));
	stage_close(&s->stage);
}

static void *act(void *arg)
{
	struct scene *s = arg;

	switch (s->action) {
	case CLOSE:
		MUST(rpma_rt_conn_close(s->pair.active));
		break;
	case ROUTE_CLOSE:
		MUST(rpma_rt_route_close(s->route, NULL));
		break;
	case SET_QUEUE:
		MUST(rpma_rt_conn_set_queue(s->pair.active, s->queues[1]));
		break;
	case STOP:
		MUST(rpma_rt_stop(s->stage.world.rt));
		break;
	}
	CHECK(sem_post(&s->acted) == 0);
	return NULL;
}

static void play(enum kind kind, enum action action)
{
	struct job jobs[POSTERS];
	struct scene s;
	pthread_t actor;
	int i;

	set_up(&s, kind, action);
	for (i = 0; i < POSTERS; i++)
		jobs[i] = (struct job){&s, (enum poster)i};
	begin(&s, &jobs[IN_VERB], post_and_be_held);
	wait_for(&in_verb.reached);
	begin(&s, &jobs[UNPUBLISHED], post_and_be_held);
	wait_for(&unpublished.reached);

	for (i = 0; i < THREADS; i++)
		begin(&s, &jobs[i], post_some);
	run_function(&s);
	for (i = 0; i < THREADS; i++)
		end(&s, (enum poster)i);
	dump(&s);

	CHECK(pthread_create(&actor, NULL, act, &s) == 0);
	CHECK(sem_post(&in_verb.released) == 0);
	end(&s, IN_VERB);
	CHECK(s.result[IN_VERB] == 1);
	if (action != STOP) {
		wait_for(&s.acted);
		hear_all(&s, false);
	}
	if (action == SET_QUEUE)
		post_many(&s);

	CHECK(sem_post(&unpublished.released) == 0);
	end(&s, UNPUBLISHED);
	/* the stop may not have come so far yet */
	CHECK(s.result[UNPUBLISHED] == 1 ||
	      s.result[UNPUBLISHED] == RPMA_RT_E_CLOSED);
	CHECK((s.result[UNPUBLISHED] == 1) == (action == SET_QUEUE) ||
	      action == STOP);
	if (action == STOP)
		wait_for(&s.acted);
	CHECK(pthread_join(actor, NULL) == 0);
	hear_all(&s, action == CLOSE || action == STOP);
	tear_down(&s);
}

int main(void)
{
	if (loop_get() == NULL) {
		printf("skipped: only the loopback device has hooks\n");
		return 77;
	}
	find_real();
	loop_get()->set_hook(on_verb, NULL);
	play(SENDS, CLOSE);
	play(SENDS, ROUTE_CLOSE);
	play(SENDS, SET_QUEUE);
	play(SENDS, STOP);
	play(RECEIVES, CLOSE);
	play(RECEIVES, STOP);
	play(SHARED_RECEIVES, STOP);
	loop_get()->set_hook(NULL, NULL);
	printf("ok\n");
	return 0;
}
