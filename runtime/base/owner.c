/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owner.c -- the thread that a poller of manual mode belongs to; see owner.h.
 * The lock is a leaf, held for a few instructions; no round runs under it.
 */

#define _GNU_SOURCE
#include "base/owner.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "rpma_rt.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

_Thread_local struct rt_owner rt_owner_self;
static _Thread_local bool is_owner;

/* ----------------------------------------------------- a thread's end --- */

/* REQUIRES: the lock */
static void give_up(struct rt_owned *owned)
{
	cds_list_del(&owned->link);
	/* relaxed: under the lock; a reader without it compares only */
	atomic_store_explicit(&owned->owner, NULL, memory_order_relaxed);
}

/* A thread that owned pollers ends. */
static void thread_ends(void *arg)
{
	struct rt_owner *owner = arg;

	/* what ends after this may own pollers, and comes here again */
	is_owner = false;
	pthread_mutex_lock(&lock);
	while (!cds_list_empty(&owner->pollers))
		give_up(cds_list_first_entry(&owner->pollers, struct rt_owned,
					     link));
	pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
	has_key = pthread_key_create(&key, thread_ends) == 0;
}

/* The library may be unloaded before its threads end. */
__attribute__((destructor)) static void drop_key(void)
{
	if (has_key)
		pthread_key_delete(key);
}

int rt_owner_start(void)
{
	pthread_once(&key_once, make_key);
	return has_key ? 0 : RPMA_E_NOMEM;
}

void rt_owner_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	CDS_INIT_LIST_HEAD(&rt_owner_self.pollers);
	is_owner = false;
}

/* The calling thread may own pollers from here on. */
static int become_owner(void)
{
	if (is_owner)
		return 0;
	if (pthread_setspecific(key, &rt_owner_self))
		return RPMA_E_NOMEM;
	CDS_INIT_LIST_HEAD(&rt_owner_self.pollers);
	rt_owner_self.tid = gettid();
	is_owner = true;
	return 0;
}

/* ------------------------------------------------------ whose it is --- */

void rt_owner_init(struct rt_owned *owned, int index, struct rt_inbox *inbox,
		   void (*run)(struct rt_owned *owned))
{
	memset(owned, 0, sizeof(*owned));
	owned->index = index;
	owned->inbox = inbox;
	owned->run = run;
}

bool rt_owner_is_other(struct rt_owned *owned, char name[RT_THREAD_NAME],
		       pid_t *tid)
{
	const struct rt_owner *owner;
	bool is_other;

	pthread_mutex_lock(&lock);
	/* relaxed: under the lock. The owner lives: its end takes the lock */
	owner = atomic_load_explicit(&owned->owner, memory_order_relaxed);
	is_other = owner != NULL && owner != &rt_owner_self;
	if (is_other) {
		memcpy(name, owner->name, RT_THREAD_NAME);
		*tid = owner->tid;
	}
	pthread_mutex_unlock(&lock);
	return is_other;
}

enum rt_owner_known rt_owner_look(struct rt_owned *owned,
				  char name[RT_THREAD_NAME], pid_t *tid)
{
	const struct rt_owner *owner;

	if (pthread_mutex_trylock(&lock))
		return RT_OWNER_BUSY;
	/* relaxed: as above */
	owner = atomic_load_explicit(&owned->owner, memory_order_relaxed);
	if (owner != NULL) {
		memcpy(name, owner->name, RT_THREAD_NAME);
		*tid = owner->tid;
	}
	pthread_mutex_unlock(&lock);
	return owner == NULL ? RT_OWNER_NONE : RT_OWNER_KNOWN;
}

/* Inside: the poller goes from its owner, if any, to the calling thread. */
static int take_over(struct rt_owned *owned)
{
	char name[RT_THREAD_NAME] = "?";
	int ret = become_owner();

	if (ret)
		return ret;
	pthread_getname_np(pthread_self(), name, sizeof(name));
	pthread_mutex_lock(&lock);
	memcpy(rt_owner_self.name, name, sizeof(name));
	/* relaxed, both: under the lock */
	if (atomic_load_explicit(&owned->owner, memory_order_relaxed) != NULL)
		give_up(owned);
	cds_list_add_tail(&owned->link, &rt_owner_self.pollers);
	atomic_store_explicit(&owned->owner, &rt_owner_self,
			      memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return 0;
}

void rt_owner_release(struct rt_owned *owned)
{
	pthread_mutex_lock(&lock);
	/* relaxed: under the lock */
	if (atomic_load_explicit(&owned->owner, memory_order_relaxed) != NULL)
		give_up(owned);
	pthread_mutex_unlock(&lock);
}

/* --------------------------------------------------- being inside --- */

static int refusal(uint32_t inside)
{
	if (inside == RT_INSIDE_CLOSED)
		return RPMA_RT_E_CLOSED;
	return inside == RT_INSIDE_WAITING ? RPMA_E_AGAIN : RPMA_RT_E_BUSY;
}

int rt_owner_enter(struct rt_owned *owned)
{
	uint32_t inside = rt_owner_go_in(owned, RT_INSIDE_OWNER);
	int ret;

	if (inside != RT_INSIDE_NOBODY)
		return refusal(inside);
	if (!rt_owner_is_self(owned)) {
		ret = take_over(owned);
		if (ret) {
			rt_owner_leave(owned);
			return ret;
		}
	}
	rt_owner_count_turn(owned);
	return 0;
}

bool rt_owner_close(struct rt_owned *owned)
{
	uint32_t inside = rt_owner_go_in(owned, RT_INSIDE_CLOSED);

	if (inside != RT_INSIDE_NOBODY && inside != RT_INSIDE_CLOSED)
		return false;
	rt_owner_release(owned);
	return true;
}

/* ----------------------------------------------- a thread that waits --- */

bool rt_owner_has_any(void)
{
	return is_owner;
}

/* The poller of the calling thread that was run longest ago, entered; NULL:
 * another thread is about to take it over. */
static struct rt_owned *next_of_mine(void)
{
	struct rt_owned *owned = NULL;

	pthread_mutex_lock(&lock);
	if (!cds_list_empty(&rt_owner_self.pollers)) {
		owned = cds_list_first_entry(&rt_owner_self.pollers,
					     struct rt_owned, link);
		cds_list_del(&owned->link);
		cds_list_add_tail(&owned->link, &rt_owner_self.pollers);
		/* under the lock: a poller that is closed is off the list
		 * before it is freed */
		if (rt_owner_go_in(owned, RT_INSIDE_WAITING) !=
		    RT_INSIDE_NOBODY)
			owned = NULL;
	}
	pthread_mutex_unlock(&lock);
	return owned;
}

static int count_mine(void)
{
	struct cds_list_head *link;
	int count = 0;

	pthread_mutex_lock(&lock);
	cds_list_for_each(link, &rt_owner_self.pollers) count++;
	pthread_mutex_unlock(&lock);
	return count;
}

void rt_owner_run_all(void)
{
	struct rt_owned *owned;
	int left = is_owner ? count_mine() : 0;

	for (; left > 0; left--) {
		owned = next_of_mine();
		if (owned == NULL)
			continue;
		rt_owner_count_turn(owned);
		owned->run(owned);
		rt_owner_leave(owned);
	}
}

/* Enters a poller that belongs to no thread, for one round. */
static bool go_visit(struct rt_owned *owned, bool *is_inside)
{
	bool is_nobodys;

	*is_inside = false;
	pthread_mutex_lock(&lock);
	/* relaxed: under the lock, as every change is: nobody takes it over
	 * between this look and the entry */
	is_nobodys = atomic_load_explicit(&owned->owner,
					  memory_order_relaxed) == NULL;
	if (is_nobodys)
		*is_inside = rt_owner_go_in(owned, RT_INSIDE_WAITING) ==
			     RT_INSIDE_NOBODY;
	pthread_mutex_unlock(&lock);
	return is_nobodys;
}

bool rt_owner_visit(struct rt_owned *owned)
{
	bool is_inside;

	if (!go_visit(owned, &is_inside))
		return false;
	if (is_inside) {
		owned->run(owned);
		rt_owner_leave(owned);
	}
	return true;
}
