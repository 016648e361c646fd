/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owner.c -- the owner thread of a poller in manual mode; see owner.h. The lock
 * is a leaf, held for a few instructions; no round runs under the lock.
 */

#define _GNU_SOURCE
#include "base/owner.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rpma_rt.h"

/* ---------------------------------------------------------------- owner --- */

/* between two rounds of its pollers, for a thread waiting for a turn */
#define RT_OWNER_MOMENT_NS 100000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* made once for the process, under the lock */
static pthread_key_t key;
static bool has_key;

_Thread_local struct rt_owner rt_owner_self;
static _Thread_local bool is_owner;

/* ----------------------------------------------------- a thread's end --- */

/* REQUIRES: the lock */
static void owner_give_up(struct rt_owned *owned)
{
	cds_list_del(&owned->link);
	/* relaxed: under the lock; a reader without the lock only compares */
	atomic_store_explicit(&owned->owner, NULL, memory_order_relaxed);
}

/*
 * The owner comes to be inside as any other thread is: from here on threads may
 * wait for a turn. Returns false if the poller is not OWNED. Thread: the owner.
 * REQUIRES: the lock, without which a stop does not close an OWNED poller
 */
static bool owner_leave_owned(struct rt_owned *owned)
{
	uint32_t inside = RT_INSIDE_OWNED;

	/* relaxed, both: the leave that follows publishes */
	if (!atomic_compare_exchange_strong_explicit(
		    &owned->inside, &inside, RT_INSIDE_THREAD,
		    memory_order_relaxed, memory_order_relaxed))
		return false;
	/* relaxed: a stop needs THREAD to be left first */
	atomic_store_explicit(&owned->by_owner, false, memory_order_relaxed);
	return true;
}

/* Gives up a poller of a thread that ends, outside. REQUIRES: the lock */
static void owner_abandon(struct rt_owned *owned)
{
	bool was_owned = owner_leave_owned(owned);

	owner_give_up(owned);
	if (was_owned)
		rt_owner_leave(owned);
}

/* Ends a thread that owned pollers. */
static void owner_thread_ends(void *arg)
{
	struct rt_owner *owner = arg;

	/* later destructors of the thread may own pollers, and come here
	 * again */
	is_owner = false;
	pthread_mutex_lock(&lock);
	while (!cds_list_empty(&owner->pollers))
		owner_abandon(cds_list_first_entry(&owner->pollers,
						   struct rt_owned, link));
	pthread_mutex_unlock(&lock);
}

/* Drops the key, because the library may be unloaded before its threads end. */
__attribute__((destructor)) static void owner_drop_key(void)
{
	if (has_key)
		pthread_key_delete(key);
}

int rt_owner_start(void)
{
	int err = 0;

	/* where no key is left, the next call tries again */
	pthread_mutex_lock(&lock);
	if (!has_key)
		err = pthread_key_create(&key, owner_thread_ends);
	has_key = err == 0;
	pthread_mutex_unlock(&lock);
	return err ? RPMA_E_NOMEM : 0;
}

void rt_owner_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	CDS_INIT_LIST_HEAD(&rt_owner_self.pollers);
	rt_owner_self.only = NULL;
	is_owner = false;
}

/* The calling thread may own pollers from here on. */
static int owner_become(void)
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

/* ---------------------------------------------------------- the owner --- */

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
	/* relaxed: under the lock. The owner lives: the end of a thread takes
	 * the lock */
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

/* Finds out whether the calling thread has a single poller. REQUIRES: the
 * lock */
static void owner_find_only(void)
{
	struct cds_list_head *list = &rt_owner_self.pollers;

	rt_owner_self.only = NULL;
	if (!cds_list_empty(list) && list->next == list->prev)
		rt_owner_self.only =
			cds_list_first_entry(list, struct rt_owned, link);
}

int rt_owner_attach(struct rt_owned *owned)
{
	char name[RT_THREAD_NAME] = "?";
	int ret = owner_become();

	if (ret || rt_owner_is_self(owned))
		return ret;
	pthread_getname_np(pthread_self(), name, sizeof(name));
	pthread_mutex_lock(&lock);
	memcpy(rt_owner_self.name, name, sizeof(name));
	cds_list_add_tail(&owned->link, &rt_owner_self.pollers);
	owner_find_only();
	/* relaxed: under the lock; published by the leave [MANUAL-1] */
	atomic_store_explicit(&owned->owner, &rt_owner_self,
			      memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return 0;
}

void rt_owner_release(struct rt_owned *owned)
{
	pthread_mutex_lock(&lock);
	if (rt_owner_is_self(owned)) {
		(void)owner_leave_owned(owned);
		owner_give_up(owned);
		owner_find_only();
	}
	pthread_mutex_unlock(&lock);
}

/* --------------------------------------------------- being inside --- */

static struct rt_owner *owner_of(const struct rt_owned *owned)
{
	/* relaxed: ordered by the acquire of the word `inside` [MANUAL-1] */
	return atomic_load_explicit(&owned->owner, memory_order_relaxed);
}

static bool owner_is_of_other(const struct rt_owned *owned)
{
	const struct rt_owner *owner = owner_of(owned);

	return owner != NULL && owner != &rt_owner_self;
}

/* Sleeps until the thread inside leaves, or runs the pollers of the calling
 * thread and sleeps for a moment. */
static void owner_await_leave(struct rt_owned *owned)
{
	const struct timespec moment = {.tv_nsec = RT_OWNER_MOMENT_NS};

	rt_owner_run_all();
	/* returns at once if the other thread left meanwhile */
	syscall(SYS_futex, &owned->inside, FUTEX_WAIT_PRIVATE,
		RT_INSIDE_AWAITED, is_owner ? &moment : NULL, NULL, 0);
}

/* Announces a thread that sleeps for its turn: a thread inside, other than the
 * owner, wakes all when leaving. Returns false if the thread inside has
 * left. */
static bool owner_announce(struct rt_owned *owned)
{
	uint32_t inside = RT_INSIDE_THREAD;

	/* acquire, both [MANUAL-1]: pairs with the leave of the thread that set
	 * the owner, if the thread inside is the owner: then the owner is seen,
	 * and no thread sleeps, since the owner wakes no thread */
	return atomic_compare_exchange_strong_explicit(
		       &owned->inside, &inside, RT_INSIDE_AWAITED,
		       memory_order_acquire, memory_order_acquire) ||
	       inside == RT_INSIDE_AWAITED;
}

static void owner_wake_all(struct rt_owned *owned)
{
	syscall(SYS_futex, &owned->inside, FUTEX_WAKE_PRIVATE, INT_MAX, NULL,
		NULL, 0);
}

/* Takes back the announcement of a thread that does not enter, and wakes the
 * threads asleep because of the announcement: the owner wakes no thread. */
static void owner_take_back(struct rt_owned *owned)
{
	uint32_t inside = RT_INSIDE_AWAITED;

	/* relaxed, both: hands nothing over; another state needs nothing */
	atomic_compare_exchange_strong_explicit(
		&owned->inside, &inside, RT_INSIDE_THREAD, memory_order_relaxed,
		memory_order_relaxed);
	owner_wake_all(owned);
}

/* Tries once to enter, as `as`. Returns 0: inside, RPMA_E_AGAIN: try again, or
 * the error of rt_owner_enter(). */
static int owner_try_enter(struct rt_owned *owned, enum rt_inside as)
{
	uint32_t inside = rt_owner_go_in(owned, as);

	if (inside == RT_INSIDE_CLOSED)
		return RPMA_RT_E_CLOSED;
	if (inside == RT_INSIDE_NOBODY) {
		if (!owner_is_of_other(owned))
			return 0;
		rt_owner_leave(owned);
		return RPMA_RT_E_BUSY;
	}
	if (inside != RT_INSIDE_OWNED)
		return RPMA_E_AGAIN;
	/* OWNED is stored behind the owner, and left before the owner is */
	if (owner_is_of_other(owned))
		return RPMA_RT_E_BUSY;
	/* the owner, whose first try found the CLOSED of a stop that has taken
	 * CLOSED back; or the poller was released meanwhile */
	return rt_owner_enter_own(owned) ? 0 : RPMA_E_AGAIN;
}

void rt_owner_leave_first(struct rt_owned *owned)
{
	/* release [MANUAL-1]: pairs with the acquire in rt_owner_go_in() */
	atomic_store_explicit(&owned->inside,
			      rt_fence_is_ready() ? RT_INSIDE_OWNED
						  : RT_INSIDE_NOBODY,
			      memory_order_release);
}

int rt_owner_enter(struct rt_owned *owned)
{
	/* A thread that has announced a sleep does not know whether others
	 * sleep because of the announcement: the thread enters as an awaited
	 * thread, or wakes the others [MANUAL-2] */
	enum rt_inside as = RT_INSIDE_THREAD;
	int ret;

	if (rt_owner_enter_own(owned))
		return 0;
	while ((ret = owner_try_enter(owned, as)) == RPMA_E_AGAIN) {
		if (!owner_announce(owned))
			continue;
		as = RT_INSIDE_AWAITED;
		/* after the announcement, see there */
		if (owner_is_of_other(owned)) {
			ret = RPMA_RT_E_BUSY;
			break;
		}
		owner_await_leave(owned);
	}
	if (ret && as == RT_INSIDE_AWAITED)
		owner_take_back(owned);
	return ret;
}

void rt_owner_leave(struct rt_owned *owned)
{
	/* relaxed: true only if this thread, the owner, is inside */
	if (atomic_load_explicit(&owned->by_owner, memory_order_relaxed) &&
	    rt_owner_is_self(owned)) {
		rt_owner_leave_own(owned);
		return;
	}
	/* release [MANUAL-1]: pairs with the acquire in rt_owner_go_in().
	 * relaxed is enough for the state: only the address is used
	 * afterwards */
	if (atomic_exchange_explicit(&owned->inside, RT_INSIDE_NOBODY,
				     memory_order_release) == RT_INSIDE_AWAITED)
		owner_wake_all(owned);
}

/* Closes a poller that only the owner enters, unless the owner is inside.
 * REQUIRES: the lock */
static bool owner_end_owned(struct rt_owned *owned)
{
	uint32_t inside = RT_INSIDE_OWNED;

	/* relaxed, both: `by_owner` acquires; another state is looked at again
	 */
	if (!atomic_compare_exchange_strong_explicit(
		    &owned->inside, &inside, RT_INSIDE_CLOSED,
		    memory_order_relaxed, memory_order_relaxed))
		return false;
	/* pairs with the light fence in rt_owner_go_in_owned() [MANUAL-3] */
	rt_fence_heavy();
	/* acquire [MANUAL-1]: pairs with the release in rt_owner_leave_own() */
	if (!atomic_load_explicit(&owned->by_owner, memory_order_acquire))
		return true;
	/* relaxed: hands nothing over */
	atomic_store_explicit(&owned->inside, RT_INSIDE_OWNED,
			      memory_order_relaxed);
	return false;
}

bool rt_owner_close(struct rt_owned *owned)
{
	uint32_t inside;
	bool is_closed;

	/* with the lock no owner ceases to be the owner meanwhile */
	pthread_mutex_lock(&lock);
	inside = rt_owner_go_in(owned, RT_INSIDE_CLOSED);
	is_closed = inside == RT_INSIDE_NOBODY || inside == RT_INSIDE_CLOSED ||
		    (inside == RT_INSIDE_OWNED && owner_end_owned(owned));
	/* relaxed: under the lock */
	if (is_closed &&
	    atomic_load_explicit(&owned->owner, memory_order_relaxed) != NULL)
		owner_give_up(owned);
	pthread_mutex_unlock(&lock);
	return is_closed;
}

/* ---------------------------------------------------- a waiting thread --- */

bool rt_owner_has_any(void)
{
	return is_owner;
}

/* Returns the poller of the calling thread with the oldest round, entered;
 * NULL: the poller is being closed. */
static struct rt_owned *owner_next_of_mine(void)
{
	struct rt_owned *owned = NULL;

	pthread_mutex_lock(&lock);
	if (!cds_list_empty(&rt_owner_self.pollers)) {
		owned = cds_list_first_entry(&rt_owner_self.pollers,
					     struct rt_owned, link);
		cds_list_del(&owned->link);
		cds_list_add_tail(&owned->link, &rt_owner_self.pollers);
		/* under the lock: a closed poller is off the list before the
		 * poller is freed */
		if (!rt_owner_enter_own(owned))
			owned = NULL;
	}
	pthread_mutex_unlock(&lock);
	return owned;
}

static int owner_count_mine(void)
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
	int left = is_owner ? owner_count_mine() : 0;

	for (; left > 0; left--) {
		owned = owner_next_of_mine();
		if (owned == NULL)
			continue;
		owned->run(owned);
		rt_owner_leave_own(owned);
	}
}

bool rt_owner_visit(struct rt_owned *owned)
{
	uint32_t inside;

	/* a look, confirmed by a second look */
	if (owner_of(owned) != NULL)
		return false;
	inside = rt_owner_go_in(owned, RT_INSIDE_THREAD);
	if (inside != RT_INSIDE_NOBODY)
		return inside != RT_INSIDE_OWNED;
	if (owner_of(owned) != NULL) {
		rt_owner_leave(owned);
		return false;
	}
	owned->run(owned);
	rt_owner_leave(owned);
	return true;
}

/* ------------------------------------------------- a serving consumer --- */

bool rt_owner_serve(struct rt_owned *owned,
		    bool (*round)(struct rt_owned *owned))
{
	bool is_whole;

	if (!rt_lend_is_lent(owned->lending) ||
	    rt_owner_go_in(owned, RT_INSIDE_THREAD) != RT_INSIDE_NOBODY)
		return false;
	is_whole = round(owned);
	rt_owner_leave(owned);
	return is_whole;
}

/* ----------------------------------------------------------------- lend --- */

void rt_lend_init(struct rt_lending *lending,
		  bool (*serve)(struct rt_owned *owned),
		  bool (*arm)(struct rt_owned *owned))
{
	lending->serve = serve;
	lending->arm = arm;
	pthread_mutex_init(&lending->lock, NULL);
	CDS_INIT_LIST_HEAD(&lending->bells);
}

void rt_lend_fini(struct rt_lending *lending)
{
	if (lending->serve != NULL)
		pthread_mutex_destroy(&lending->lock);
}

void rt_lend_add_bell(struct rt_lending *lending, struct rt_lend_bell *place,
		      const struct rt_bell *bell)
{
	place->bell = bell;
	pthread_mutex_lock(&lending->lock);
	cds_list_add_tail(&place->link, &lending->bells);
	pthread_mutex_unlock(&lending->lock);
}

void rt_lend_remove_bell(struct rt_lending *lending, struct rt_lend_bell *place)
{
	pthread_mutex_lock(&lending->lock);
	cds_list_del(&place->link);
	pthread_mutex_unlock(&lending->lock);
}

bool rt_lend_has_sleeper(struct rt_lending *lending)
{
	const struct rt_lend_bell *place;
	bool is_any = false;

	pthread_mutex_lock(&lending->lock);
	cds_list_for_each_entry(place, &lending->bells, link) is_any |=
		rt_bell_is_due(place->bell);
	pthread_mutex_unlock(&lending->lock);
	return is_any;
}
