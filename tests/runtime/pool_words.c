/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool_words.c -- what a pool has to say is an ERROR in the log, the level that
 * reaches standard error: the receive queues leave no slot for
 * rpma_rt_pool_take(); a receive queue starves; a message is longer than a
 * slot.
 * Each message has the numbers and the field of the configuration to change.
 */

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "loop.h"
#include "stage.h"

#define DEPTH	  8
#define SLOT_SIZE 64

/* ------------------------------------------------------------------ log --- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	char text[16384]; /* errors since the last forget(), a line each */
} errors = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, ""};

static void hear(enum rpma_log_level level, const char *file_name,
		 const int line_no, const char *function_name,
		 const char *message_format, ...)
{
	size_t used;
	va_list args;

	(void)file_name;
	(void)line_no;
	(void)function_name;
	if (level > RPMA_LOG_LEVEL_ERROR)
		return;
	pthread_mutex_lock(&errors.lock);
	used = strlen(errors.text);
	va_start(args, message_format);
	vsnprintf(errors.text + used, sizeof(errors.text) - used,
		  message_format, args);
	va_end(args);
	strncat(errors.text, "\n",
		sizeof(errors.text) - strlen(errors.text) - 1);
	pthread_cond_broadcast(&errors.more);
	pthread_mutex_unlock(&errors.lock);
}

static void forget(void)
{
	pthread_mutex_lock(&errors.lock);
	errors.text[0] = '\0';
	pthread_mutex_unlock(&errors.lock);
}

/* How many errors have these words; a poller may log later than it delivers. */
static int count(const char *words)
{
	const char *at = errors.text;
	int number = 0;

	while ((at = strstr(at, words)) != NULL) {
		at += strlen(words);
		number++;
	}
	return number;
}

static int heard(const char *words)
{
	int number;

	pthread_mutex_lock(&errors.lock);
	number = count(words);
	pthread_mutex_unlock(&errors.lock);
	return number;
}

/* Waits until an error has these words. */
static void await(const char *words)
{
	pthread_mutex_lock(&errors.lock);
	while (count(words) == 0)
		pthread_cond_wait(&errors.more, &errors.lock);
	pthread_mutex_unlock(&errors.lock);
}

/* ---------------------------------------------------------------- pools --- */

static struct rpma_rt_pool *pool_open(struct stage *s, uint32_t count)
{
	s->cfg->pool =
		stage_pool(s, "small", count, SLOT_SIZE, RPMA_RT_POOL_NO_SENDS);
	forget();
	return s->cfg->pool;
}

static void pool_close(struct stage *s, struct rpma_rt_pool **pool)
{
	MUST(rpma_rt_pool_delete(pool));
	s->cfg->pool = NULL;
}

/* Both ends have receives from the pool: four times eight are too many. */
static void pool__receives_are_too_many_LOGGED_ONCE(struct stage *s)
{
	struct rpma_rt_pool *pool = pool_open(s, 3 * DEPTH);
	struct world_pair first;
	struct world_pair second;

	stage_connect(s, &first);
	CHECK(heard("pool \"small\" has") == 0);
	stage_connect(s, &second);
	CHECK(heard("pool \"small\" has 24 slots for receives, and the receive "
		    "queues that are filled from the pool hold 32 receives") ==
	      1);
	CHECK(heard("rpma_rt_pool_cfg.count larger, or rq_size") == 1);
	stage_disconnect(s, &second);
	stage_connect(s, &second);
	CHECK(heard("pool \"small\" has 24 slots") == 1);
	stage_disconnect(s, &second);
	stage_disconnect(s, &first);
	pool_close(s, &pool);
	printf("ok: receives take all\n");
}

/* The receives of an SRQ count as those of a connection do. */
static void pool__srq_takes_all_LOGGED(struct stage *s)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_pool *pool = pool_open(s, DEPTH);
	struct rpma_rt_srq *srq;

	cfg.peer = s->world.peer;
	cfg.queue = s->pq;
	cfg.pool = pool;
	cfg.srq_size = 2 * DEPTH;
	MUST(rpma_rt_srq_new(s->world.rt, &cfg, &srq));
	CHECK(heard("pool \"small\" has 8 slots for receives, and the receive "
		    "queues that are filled from the pool hold 16 receives: "
		    "some") == 1);
	MUST(rpma_rt_srq_delete(&srq));
	world_event(s->pq, RPMA_RT_EVENT_SRQ_CLOSED);
	pool_close(s, &pool);
	printf("ok: an SRQ takes all\n");
}

static void pool__no_slot_for_a_receive_LOGGED(struct stage *s)
{
	struct rpma_rt_pool *pool = pool_open(s, 3 * DEPTH);
	struct rpma_rt_lease leases[3 * DEPTH];
	struct world_pair pair;
	int i;

	for (i = 0; i < 3 * DEPTH; i++)
		MUST(rpma_rt_pool_take(pool, &leases[i]));
	stage_connect(s, &pair);
	await("pool \"small\" has no free slot of 24");
	CHECK(heard("rpma_rt_pool_cfg.count") > 0);
	for (i = 0; i < 3 * DEPTH; i++)
		MUST(rpma_rt_lease_release(&leases[i]));
	stage_disconnect(s, &pair);
	pool_close(s, &pool);
	printf("ok: no slot for a receive\n");
}

/* Soft-RoCE flushes the receive, and says nothing of the length. */
static void pool__message_longer_than_a_slot_LOGGED(struct stage *s)
{
	struct rpma_rt_pool *pool;
	struct rpma_rt_completion item;
	struct world_pair pair;

	if (loop_get() == NULL) {
		printf("skipped, needs the loopback device: a message longer "
		       "than a slot\n");
		return;
	}
	pool = pool_open(s, 3 * DEPTH);
	stage_connect(s, &pair);
	MUST(rpma_rt_send(pair.active, s->mr, 0, SLOT_SIZE + 1,
			  RPMA_F_COMPLETION_ALWAYS, 1));
	item = world_next(s->aq);
	CHECK(item.kind == RPMA_RT_COMPLETION && item.status != IBV_WC_SUCCESS);
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	await("message is longer than rpma_rt_pool_cfg.slot_size");
	world_unref(&pair);
	pool_close(s, &pool);
	printf("ok: a message longer than a slot\n");
}

int main(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct stage s;

	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(rpma_log_set_function(hear));
	stage_open(&s, &cfg);
	pool__receives_are_too_many_LOGGED_ONCE(&s);
	pool__srq_takes_all_LOGGED(&s);
	pool__no_slot_for_a_receive_LOGGED(&s);
	pool__message_longer_than_a_slot_LOGGED(&s);
	stage_close(&s);
	return 0;
}
