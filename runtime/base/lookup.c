/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lookup.c -- see lookup.h. Owns the threads that run getaddrinfo() and, under
 * one lock of the process, the lists of look-ups that run and that wait.
 */

#define _GNU_SOURCE
#include "base/lookup.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <urcu/list.h>

#include "base/clock.h"
#include "base/from.h"
#include "base/spawn.h"
#include "rpma_rt.h"

enum state {
	NEW,
	WAITING, /* for its turn */
	RUNNING, /* the look-up's thread is in getaddrinfo() */
	SENT,	 /* the message is in the inbox */
	TAKEN	 /* answered() has run */
};

struct rt_lookup {
	/* under the lock */
	enum state state;
	struct cds_list_head link; /* WAITING, RUNNING */
	struct rt_inbox *inbox;	   /* NULL: deleted in RUNNING */
	/* written and read by the asker's thread; asker is NULL: deleted in
	 * SENT */
	void (*answered)(void *asker);
	void *asker;
	/* written by the look-up's thread, read from SENT on by the asker's */
	struct rt_msg msg;
	struct addrinfo *info;
	int err;
	int errnum;
	uint64_t over_ns;
	/* immutable */
	char *port; /* behind the name */
	char name[];
};

static struct {
	pthread_mutex_t lock;
	struct cds_list_head waiting; /* the oldest first */
	/* also keeps deleted look-ups in sight of leak checkers */
	struct cds_list_head running;
	int threads;
} lookups = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.waiting = CDS_LIST_HEAD_INIT(lookups.waiting),
	.running = CDS_LIST_HEAD_INIT(lookups.running),
};

static void lookup_free(struct rt_lookup *lookup)
{
	if (lookup->info != NULL)
		freeaddrinfo(lookup->info);
	free(lookup);
}

/* ----------------------------------------------- the thread of look-ups --- */

static void lookup_ask(struct rt_lookup *lookup)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};

	lookup->err =
		getaddrinfo(lookup->name, lookup->port, &hints, &lookup->info);
	lookup->errnum = errno;
	lookup->over_ns = rt_now_ns();
	if (lookup->err)
		lookup->info = NULL;
}

static void lookup_run_locked(struct rt_lookup *lookup)
{
	lookup->state = RUNNING;
	cds_list_add(&lookup->link, &lookups.running);
}

/* Sends the answer; returns the look-up whose turn comes, or NULL. */
static struct rt_lookup *lookup_finish(struct rt_lookup *lookup)
{
	struct rt_lookup *next = NULL;
	bool is_deleted;

	pthread_mutex_lock(&lookups.lock);
	cds_list_del(&lookup->link);
	is_deleted = lookup->inbox == NULL;
	if (!is_deleted) {
		lookup->state = SENT;
		/* under the lock: lookup_message() does not return, so inbox
		 * and bell do not go, before this thread has rung */
		rt_inbox_push_mt(lookup->inbox, &lookup->msg);
	}
	if (cds_list_empty(&lookups.waiting)) {
		lookups.threads--;
	} else {
		next = cds_list_first_entry(&lookups.waiting, struct rt_lookup,
					    link);
		cds_list_del(&next->link);
		lookup_run_locked(next);
	}
	pthread_mutex_unlock(&lookups.lock);
	if (is_deleted)
		lookup_free(lookup);
	return next;
}

static void *lookup_main(void *arg)
{
	struct rt_lookup *lookup = arg;

	while (lookup != NULL) {
		lookup_ask(lookup);
		lookup = lookup_finish(lookup);
	}
	return NULL;
}

/* ------------------------------------------------------------ the asker --- */

static void lookup_message(struct rt_msg *msg, void *owner)
{
	struct rt_lookup *lookup = RT_FROM(struct rt_lookup, msg, msg);

	(void)owner;
	pthread_mutex_lock(&lookups.lock);
	lookup->state = TAKEN;
	pthread_mutex_unlock(&lookups.lock);
	if (lookup->asker == NULL)
		lookup_free(lookup);
	else
		lookup->answered(lookup->asker);
}

struct rt_lookup *rt_lookup_new(const char *name, const char *port)
{
	size_t name_size = strlen(name) + 1;
	size_t port_size = strlen(port) + 1;
	struct rt_lookup *lookup;

	lookup = calloc(1, sizeof(*lookup) + name_size + port_size);
	if (lookup == NULL)
		return NULL;
	lookup->port = lookup->name + name_size;
	memcpy(lookup->name, name, name_size);
	memcpy(lookup->port, port, port_size);
	lookup->msg.fn = lookup_message;
	return lookup;
}

/* Not joined: the thread may be in getaddrinfo() when the runtime is gone. */
static int lookup_start_locked(struct rt_lookup *lookup)
{
	pthread_t thread;
	int ret;

	lookup_run_locked(lookup);
	ret = rt_spawn(&thread, "rt-name", RPMA_RT_CPU_ANY, lookup_main,
		       lookup);
	if (ret) {
		cds_list_del(&lookup->link);
		lookup->state = NEW;
		return ret;
	}
	pthread_detach(thread);
	lookups.threads++;
	return 0;
}

int rt_lookup_begin(struct rt_lookup *lookup, struct rt_inbox *inbox,
		    void (*answered)(void *asker), void *asker)
{
	int ret = 0;

	lookup->inbox = inbox;
	lookup->answered = answered;
	lookup->asker = asker;
	pthread_mutex_lock(&lookups.lock);
	if (lookups.threads < RT_LOOKUPS_MAX) {
		ret = lookup_start_locked(lookup);
	} else {
		lookup->state = WAITING;
		cds_list_add_tail(&lookup->link, &lookups.waiting);
	}
	pthread_mutex_unlock(&lookups.lock);
	return ret;
}

void rt_lookup_delete(struct rt_lookup *lookup)
{
	enum state state;

	pthread_mutex_lock(&lookups.lock);
	state = lookup->state;
	if (state == WAITING)
		cds_list_del(&lookup->link);
	/* RUNNING: the look-up's thread frees from here on */
	lookup->inbox = NULL;
	if (state == SENT)
		lookup->asker = NULL; /* lookup_message() frees */
	pthread_mutex_unlock(&lookups.lock);
	if (state == NEW || state == WAITING || state == TAKEN)
		lookup_free(lookup);
}

const char *rt_lookup_name(const struct rt_lookup *lookup)
{
	return lookup->name;
}

bool rt_lookup_is_waiting(const struct rt_lookup *lookup)
{
	bool is_waiting;

	pthread_mutex_lock(&lookups.lock);
	is_waiting = lookup->state == WAITING;
	pthread_mutex_unlock(&lookups.lock);
	return is_waiting;
}

const struct addrinfo *rt_lookup_addresses(const struct rt_lookup *lookup)
{
	return lookup->info;
}

int rt_lookup_error(const struct rt_lookup *lookup, int *errnum)
{
	*errnum = lookup->errnum;
	return lookup->err;
}

uint64_t rt_lookup_over_ns(const struct rt_lookup *lookup)
{
	return lookup->over_ns;
}

void rt_lookup_forked(void)
{
	pthread_mutex_init(&lookups.lock, NULL);
	CDS_INIT_LIST_HEAD(&lookups.waiting);
	lookups.threads = 0;
}
