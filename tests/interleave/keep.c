/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * keep.c -- objects that are kept for a single thread, in every order of the
 * accesses of that thread, the keeper, and of other threads: the lock of a
 * queue's consumer; batches of the keeper that have no fence, beside a thread
 * that takes the queue and sleeps, and beside a refused poster; a poller of
 * manual mode that only its owner enters, beside a stop, a release, the end of
 * the owner and a stranger. A lost wake-up is an order in which every thread
 * waits. The plays have bounds on interruptions.
 *
 * The device is made up. This file is compiled like the code under test,
 * because of inline functions. doc/protocols/keep.md.
 */

#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "explore.h"
#include "rt_fake.h"
#include "base/keep.h"
#include "base/owner.h"
#include "queue/impl.h"

#define KEEPER 1 /* number of the first thread, for which all is kept */

static _Thread_local int me; /* index of the thread in the play */

/* The numbers that the runtime would give to the threads. */
static void be_thread(uint64_t number)
{
	rt_self.number = number;
}

/* ------------------------------------------------- untraced parts --- */

bool __wrap_rt_fence_is_ready(void);
bool __wrap_rt_fence_is_ready(void)
{
	return true;
}

/* The kernel's part: in every thread of the play. */
void __wrap_rt_fence_heavy(void);
void __wrap_rt_fence_heavy(void)
{
	explore_fence_all();
}

static struct fake *f;

static bool is_of_poller(const struct rt_inbox *inbox)
{
	return f != NULL && inbox == &f->poller->inbox;
}

void __real_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg);
void __wrap_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg);
void __wrap_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg)
{
	if (is_of_poller(inbox))
		explore_touch(inbox);
	__real_rt_inbox_push_mt(inbox, msg);
}

int __real_rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner,
				   int max);
int __wrap_rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner,
				   int max);
int __wrap_rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner, int max)
{
	if (is_of_poller(inbox))
		explore_touch(inbox);
	return __real_rt_inbox_run_some_owner(inbox, owner, max);
}

/* Read by the explorer, which is not a thread of the play. */
static bool is_rung(void *arg)
{
	struct rt_bell *bell = arg;
	uint32_t word;

	memcpy(&word, (void *)&bell->word, sizeof(word));
	return word == RT_BELL_AWAKE;
}

void __wrap_rt_bell_sleep_armed(struct rt_bell *bell, int64_t timeout_ns);
void __wrap_rt_bell_sleep_armed(struct rt_bell *bell, int64_t timeout_ns)
{
	(void)timeout_ns; /* without end, in these plays */
	explore_wait(&bell->word, is_rung, bell);
}

/* Advances time with each look. */
int __wrap_clock_gettime(clockid_t which, struct timespec *time);
int __wrap_clock_gettime(clockid_t which, struct timespec *time)
{
	static long ms;

	(void)which;
	ms++;
	*time = (struct timespec){ms / 1000, ms % 1000 * 1000000};
	return 0;
}

/* The lock of owner.c, whose address rt_owner_forked() shows. */
static pthread_mutex_t *owner_lock;
static bool is_locked;

int __real_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr)
{
	if (mutex == owner_lock)
		return 0;
	if (f == NULL && owner_lock == NULL)
		owner_lock = mutex;
	return __real_pthread_mutex_init(mutex, attr);
}

static bool is_unlocked(void *arg)
{
	(void)arg;
	return !is_locked;
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (mutex != owner_lock || !explore_is_watched(mutex))
		return __real_pthread_mutex_lock(mutex);
	explore_wait(mutex, is_unlocked, NULL);
	is_locked = true;
	return 0;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (mutex != owner_lock || !explore_is_watched(mutex))
		return __real_pthread_mutex_unlock(mutex);
	explore_touch(mutex);
	is_locked = false;
	return 0;
}

/* The end of a thread that has owned a poller. */
static void (*end_owner)(void *owner);

int __real_pthread_key_create(pthread_key_t *key, void (*end)(void *));
int __wrap_pthread_key_create(pthread_key_t *key, void (*end)(void *));
int __wrap_pthread_key_create(pthread_key_t *key, void (*end)(void *))
{
	end_owner = end;
	return __real_pthread_key_create(key, end);
}

/* threads that sleep on the word of the poller; each looks at its own flag */
static bool sleepers[EXPLORE_THREADS];

static bool is_woken(void *arg)
{
	return !*(bool *)arg;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	va_list args;
	long a[6];
	int i;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number != SYS_futex || !explore_is_watched((void *)a[0]))
		return __real_syscall(number, a[0], a[1], a[2], a[3], a[4],
				      a[5]);
	explore_touch((void *)a[0]);
	if (a[1] == FUTEX_WAKE_PRIVATE) {
		memset(sleepers, 0, sizeof(sleepers));
		return 0;
	}
	/* the kernel compares and sleeps in a single step */
	if (*(volatile uint32_t *)a[0] != (uint32_t)a[2])
		return -1;
	sleepers[me] = true;
	explore_wait((void *)a[0], is_woken, &sleepers[me]);
	return 0;
}

/* ------------------------------------------------------------- the lock --- */

static struct {
	struct rt_keep lock;
	bool inside;
	bool is_closed; /* no thread may be inside */
	/* calls of the threads */
	unsigned calling;
	bool overlaps[EXPLORE_THREADS];
} s;

static void use(void)
{
	explore_touch(&s.inside);
	EXPLORE_CHECK(!s.inside && !s.is_closed);
	s.inside = true;
	explore_touch(&s.inside);
	EXPLORE_CHECK(s.inside && !s.is_closed);
	s.inside = false;
}

/* Begins calls of the thread, which overlap with the calls of other threads. */
static void begin_calls(int index)
{
	int i;

	me = index;
	be_thread((uint64_t)(KEEPER + index));
	for (i = 0; i < EXPLORE_THREADS; i++) {
		if (!(s.calling & 1u << i))
			continue;
		s.overlaps[i] = true;
		s.overlaps[me] = true;
	}
	s.calling |= 1u << me;
}

/* Ends the calls: other threads, which the program orders behind the calls, see
 * the stores of the calls. */
static void end_calls(void)
{
	explore_touch(&s.calling);
	s.calling &= ~(1u << me);
	s.overlaps[me] = false;
}

/* Takes as rpma_rt_queue_wait() does. Only a call that overlaps with calls of
 * another thread is refused. */
static void wait_once(void)
{
	if (!rt_keep_take(&s.lock)) {
		EXPLORE_CHECK(s.overlaps[me]);
		return;
	}
	use();
	rt_keep_give_back(&s.lock);
}

/* Takes as rpma_rt_queue_poll() does. */
static void poll_once(void)
{
	if (!rt_keep_is_here(&s.lock) || !rt_keep_go_in(&s.lock)) {
		wait_once();
		return;
	}
	use();
	rt_keep_go_out(&s.lock);
}

static void keeper_polls(void)
{
	begin_calls(0);
	poll_once();
	end_calls();
	begin_calls(0);
	poll_once();
	end_calls();
}

static void keeper_polls_often(void)
{
	begin_calls(0);
	poll_once();
	poll_once();
	poll_once();
	poll_once();
	end_calls();
}

static void keeper_polls_and_waits(void)
{
	begin_calls(0);
	poll_once();
	wait_once();
	poll_once();
	end_calls();
}

static void other_polls(void)
{
	begin_calls(1);
	poll_once();
	end_calls();
}

static void other_polls_twice(void)
{
	begin_calls(1);
	poll_once();
	poll_once();
	end_calls();
}

static void third_waits(void)
{
	begin_calls(2);
	wait_once();
	end_calls();
}

static void set_up_lock(void)
{
	memset(&s, 0, sizeof(s));
	rt_keep_init(&s.lock);
	explore_watch_nothing();
	explore_watch(&s.lock.word, sizeof(s.lock.word));
	explore_watch(&s.lock.inside, sizeof(s.lock.inside));
	explore_watch(&s.lock.keeper, sizeof(s.lock.keeper));
	explore_stop_at_stores();
	rt_keep_after = UINT16_MAX;
}

/* The lock is kept for the first thread, which is outside. */
static void keep(struct rt_keep *lock)
{
	lock->has_keeper = true;
	lock->lone = UINT16_MAX;
	/* relaxed, all: no thread runs */
	atomic_store_explicit(&lock->keeper, KEEPER, memory_order_relaxed);
	atomic_store_explicit(&lock->inside, false, memory_order_relaxed);
	atomic_store_explicit(&lock->word, RT_KEEP_KEPT, memory_order_relaxed);
}

static void set_up_kept(void)
{
	set_up_lock();
	keep(&s.lock);
}

/* The lock is kept with the first take of the thread that took before. */
static void set_up_new(void)
{
	set_up_lock();
	rt_keep_after = 1;
}

static void set_up_again(void)
{
	set_up_kept();
	rt_keep_after = 1;
}

/* No thread is inside, and a further thread takes the lock. */
static void check_lock(void)
{
	EXPLORE_CHECK(!rt_keep_is_taken(&s.lock));
	be_thread(KEEPER + EXPLORE_THREADS);
	EXPLORE_CHECK(rt_keep_take(&s.lock));
}

/* ------------------------------------------------ a batch of the keeper --- */

static void be(int index)
{
	me = index;
	be_thread((uint64_t)(KEEPER + index));
}

/* with room for two sends; one of them with a line */
static struct rpma_rt_conn *conns[2];
static struct rpma_rt_conn *conn; /* of an order */
static int posted;
static int completed;
static int got; /* items of the sleeping thread */
static bool is_refused;
static bool is_other_through;

static int given(void)
{
	return (int)fake_qp(conn)->sq_count;
}

static void complete_all(void)
{
	for (; completed < given(); completed++)
		fake_sent(conn, (uint32_t)completed, IBV_WC_SUCCESS);
}

/* Ends everything that an order has left behind. */
static void go_on(void)
{
	do {
		complete_all();
	} while (fake_round(f) > 0);
	fake_take(f, f->queue);
}

/* An empty lane, as new: how much room the poller knows of makes a difference
 * to the steps of a round. */
static void begin_lane(struct rt_lane *lane)
{
	/* relaxed, both: no thread runs */
	atomic_store_explicit(&lane->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&lane->head, 0, memory_order_relaxed);
	lane->tail_next = lane->head_seen = 0;
	lane->head_next = lane->tail_seen = 0;
	lane->room_end = lane->size;
}

/* Keeps the side and the queue for the first thread, which runs the poller. */
static void set_up_batch(struct rpma_rt_conn *of, int posts)
{
	struct rt_turn *turn = &of->gate[RPMA_RT_SEND_SIDE].turn;
	struct rpma_rt_queue *queue = f->queue;

	conn = of;
	explore_watch_nothing();
	rt_keep_after = UINT16_MAX;
	be_thread(KEEPER + EXPLORE_THREADS);
	fake_qp(conn)->sq_count = 0;
	completed = got = 0;
	is_refused = is_other_through = false;
	for (posted = 0; posted < posts; posted++)
		EXPLORE_CHECK(fake_send(conn, 9, 0) == 0);
	EXPLORE_CHECK(given() == posts);
	rt_bell_read(&queue->bell);
	begin_lane(queue->lanes[0]);
	keep(&queue->alone);
	turn->has_keeper = true;
	/* relaxed, both: no thread runs */
	atomic_store_explicit(&turn->keeper, KEEPER, memory_order_relaxed);
	atomic_fetch_or_explicit(&turn->word, RT_TURN_HELD | RT_TURN_KEPT,
				 memory_order_relaxed);
	explore_watch(&queue->alone.word, sizeof(queue->alone.word));
	explore_watch(&queue->alone.inside, sizeof(queue->alone.inside));
	explore_watch(&queue->bell.word, sizeof(queue->bell.word));
	explore_watch(&queue->lanes[0]->tail, sizeof(queue->lanes[0]->tail));
	explore_watch(&turn->word, sizeof(turn->word));
	explore_watch(&turn->inside, sizeof(turn->inside));
	explore_watch(&conn->side[RPMA_RT_SEND_SIDE].want,
		      sizeof(conn->side[RPMA_RT_SEND_SIDE].want));
	explore_watch(&conn->side[RPMA_RT_SEND_SIDE].retired,
		      sizeof(conn->side[RPMA_RT_SEND_SIDE].retired));
	explore_stop_at_stores();
}

static void set_up_one(void)
{
	set_up_batch(conns[0], 1);
}

static void set_up_two(void)
{
	set_up_batch(conns[0], 2);
}

static void set_up_line(void)
{
	set_up_batch(conns[1], 2);
}

static bool has_work(void *arg)
{
	(void)arg;
	return !rt_inbox_is_empty(&f->poller->inbox) || completed < given() ||
	       is_other_through;
}

/* The keeper: completes and delivers, until the other thread is through and
 * nothing is left. */
static void run_rounds(void)
{
	be(0);
	do {
		complete_all();
		while (fake_round(f) > 0)
			;
		explore_wait(&f->poller->inbox, has_work, NULL);
	} while (!rt_inbox_is_empty(&f->poller->inbox) || completed < given());
}

static void end_other(void)
{
	explore_touch(&f->poller->inbox);
	is_other_through = true;
}

static void wait_for_items(void)
{
	struct rpma_rt_completion items[2];

	be(1);
	while (got < posted) {
		int ret = rpma_rt_queue_wait(f->queue, items, 2, -1);

		EXPLORE_CHECK(ret > 0);
		got += ret;
	}
	end_other();
}

/* Sleeps on the descriptor, outside of the queue. */
static void arm_and_sleep(void)
{
	struct rpma_rt_completion items[2];
	int ret;

	be(1);
	while (got < posted) {
		ret = rpma_rt_queue_arm(f->queue);
		EXPLORE_CHECK(ret >= 0);
		if (ret == 0)
			explore_wait(&f->queue->bell.word, is_rung,
				     &f->queue->bell);
		ret = rpma_rt_queue_poll(f->queue, items, 2);
		EXPLORE_CHECK(ret >= 0);
		got += ret;
	}
	end_other();
}

/* The queue of the side is full, or was. */
static void post_one(void)
{
	int ret;

	be(1);
	ret = fake_send(conn, 8, 0);
	EXPLORE_CHECK(ret == 0 || ret == RPMA_E_AGAIN);
	is_refused = ret != 0;
	posted += ret == 0;
	end_other();
}

/* Each send was given to the device and has its item, and a refused poster
 * gets a single answer. */
static void check_batch(void)
{
	be_thread(KEEPER + EXPLORE_THREADS);
	EXPLORE_CHECK(completed == given() && given() == posted);
	EXPLORE_CHECK(fake_take(f, f->queue) + got == given() + is_refused);
	go_on();
}

/* ------------------------------------------------------------ the owner --- */

static struct {
	struct rt_owned owned; /* first */
	struct rt_inbox inbox;
	bool is_stopping;
	bool has_ended; /* the owner */
} o;

static void run_round(struct rt_owned *owned)
{
	(void)owned;
	use();
}

static void set_up_owner(void)
{
	set_up_lock();
	memset(&o, 0, sizeof(o));
	memset(sleepers, 0, sizeof(sleepers));
	is_locked = false;
	EXPLORE_CHECK(rt_owner_start() == 0);
	rt_owner_init(&o.owned, 0, &o.inbox, run_round);
	explore_watch_nothing();
	explore_watch(&o.owned.inside, sizeof(o.owned.inside));
	explore_watch(&o.owned.by_owner, sizeof(o.owned.by_owner));
	explore_watch((void *)&o.owned.owner, sizeof(o.owned.owner));
	explore_watch(owner_lock, 1);
	explore_stop_at_stores();
}

static void begin_thread(int index)
{
	be(index);
	rt_owner_forked(); /* as a new thread */
}

/* Runs as rpma_rt_poller_run() does. */
static int run_poller(void)
{
	int ret;

	if (rt_owner_enter_own(&o.owned)) {
		use();
		rt_owner_leave_own(&o.owned);
		return 0;
	}
	ret = rt_owner_enter(&o.owned);
	if (ret)
		return ret;
	use();
	rt_owner_leave(&o.owned);
	return 0;
}

/* A thread that owns the poller is refused only by a stop. */
static bool run_own(void)
{
	int ret = run_poller();

	EXPLORE_CHECK(ret == 0 || (ret == RPMA_RT_E_CLOSED && o.is_stopping));
	return ret == 0;
}

static bool attach(void)
{
	int ret = rt_owner_enter(&o.owned);

	EXPLORE_CHECK(ret == 0 || (ret == RPMA_RT_E_CLOSED && o.is_stopping));
	if (ret)
		return false;
	EXPLORE_CHECK(rt_owner_attach(&o.owned) == 0);
	rt_owner_leave(&o.owned);
	return true;
}

static void own_and_run(void)
{
	begin_thread(0);
	if (!attach())
		return;
	run_own();
	run_own();
	run_own();
	/* as the runtime's pollers in a call that waits */
	rt_owner_run_all();
	rt_owner_forked();
}

/* Enters as rpma_rt_poller_arm() does. */
static void own_and_arm(void)
{
	int ret;

	begin_thread(0);
	if (!attach() || !run_own())
		return;
	ret = rt_owner_enter(&o.owned);
	EXPLORE_CHECK(ret == 0 || (ret == RPMA_RT_E_CLOSED && o.is_stopping));
	if (ret)
		return;
	use();
	rt_owner_leave(&o.owned);
}

static void own_and_release(void)
{
	begin_thread(0);
	if (!attach() || !run_own() || rt_owner_enter(&o.owned) != 0)
		return;
	rt_owner_release(&o.owned);
	rt_owner_leave(&o.owned);
	/* a thread as any other */
	run_poller();
}

static void own_and_end(void)
{
	begin_thread(0);
	if (attach())
		run_own();
	end_owner(&rt_owner_self);
	explore_touch(&o.has_ended);
	o.has_ended = true;
}

static void stranger(void)
{
	begin_thread(1);
	run_poller();
}

static void visitor(void)
{
	begin_thread(1);
	(void)rt_owner_visit(&o.owned);
	(void)rt_owner_visit(&o.owned);
}

static bool has_owner_ended(void *arg)
{
	(void)arg;
	return o.has_ended;
}

/* Inherits the poller, of which the owner has ended. */
static void successor(void)
{
	int ret;

	begin_thread(1);
	run_poller();
	explore_wait(&o.has_ended, has_owner_ended, NULL);
	ret = run_poller();
	EXPLORE_CHECK(ret == 0 || (ret == RPMA_RT_E_CLOSED && o.is_stopping));
}

static bool is_outside(void *arg)
{
	uint32_t inside;
	bool by_owner;

	(void)arg;
	memcpy(&inside, (void *)&o.owned.inside, sizeof(inside));
	memcpy(&by_owner, (void *)&o.owned.by_owner, sizeof(by_owner));
	return !by_owner &&
	       (inside == RT_INSIDE_NOBODY || inside == RT_INSIDE_OWNED);
}

/* As rt_poller_close(): the stop comes again while a thread is inside. */
static void stop(void)
{
	begin_thread(2);
	o.is_stopping = true;
	while (!rt_owner_close(&o.owned))
		explore_wait(&o.owned.inside, is_outside, NULL);
	explore_touch(&s.inside);
	EXPLORE_CHECK(!s.inside);
	s.is_closed = true;
}

static void check_owner(void)
{
	uint32_t inside;

	memcpy(&inside, (void *)&o.owned.inside, sizeof(inside));
	EXPLORE_CHECK(!s.is_closed || inside == RT_INSIDE_CLOSED);
	EXPLORE_CHECK(s.is_closed || is_outside(NULL));
	EXPLORE_CHECK(!is_locked);
}

int main(int argc, char **argv)
{
#define LOCK(title, keeper, other, begin)                                     \
	.name = title, .threads = 2, .body = {keeper, other}, .setup = begin, \
	.check = check_lock, .bound = 3
#define BATCH(title, other, begin)                                \
	.name = title, .threads = 2, .body = {run_rounds, other}, \
	.setup = begin, .check = check_batch, .bound = 3
#define OWNER(title, owner, other)                                 \
	.name = title, .threads = 3, .body = {owner, other, stop}, \
	.setup = set_up_owner, .check = check_owner, .bound = 2
	static const struct explore plays[] = {
		{LOCK("two", keeper_polls, other_polls_twice, set_up_kept)},
		{.name = "three",
		 .threads = 3,
		 .body = {keeper_polls_and_waits, other_polls, third_waits},
		 .setup = set_up_kept,
		 .check = check_lock,
		 .bound = 2},
		{LOCK("again", keeper_polls_often, other_polls, set_up_again)},
		{LOCK("new", keeper_polls_often, other_polls_twice,
		      set_up_new)},
		{BATCH("wait", wait_for_items, set_up_one)},
		{BATCH("wait_two", wait_for_items, set_up_two)},
		{BATCH("arm", arm_and_sleep, set_up_one)},
		{BATCH("refused", post_one, set_up_two)},
		{BATCH("line", post_one, set_up_line)},
		{.name = "stop",
		 .threads = 2,
		 .body = {own_and_arm, stop},
		 .setup = set_up_owner,
		 .check = check_owner,
		 .bound = 4},
		{OWNER("owner", own_and_run, stranger)},
		{OWNER("visited", own_and_run, visitor)},
		{OWNER("release", own_and_release, stranger)},
		{OWNER("end", own_and_end, successor)},
		{.name = NULL},
	};
	void *state;
	int fd;

	rt_owner_forked(); /* shows the lock */
	EXPLORE_CHECK(owner_lock != NULL);
	EXPLORE_CHECK(fake_setup(&state) == 0);
	f = state;
	f->rt_cfg.sq_size = 2;
	conns[0] = fake_established(f);
	f->rt_cfg.waiting = 1;
	conns[1] = fake_established(f);
	f->queue->params.spin_us = 0;
	EXPLORE_CHECK(rpma_rt_queue_get_fd(f->queue, &fd) == 0);
	/* no waiting thread runs the poller */
	f->rt->owned = NULL;
	return explore_main(argc, argv, plays);
}
