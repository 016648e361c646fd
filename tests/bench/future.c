/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_future [--seconds S] [--cpus A,B] WAY
 *
 * Millions of completions per second into slots of futures, in batches of 32.
 * WAY: "future", from the thread of a poller to a thread that waits for each
 * future, drops the future and takes a slot for the next, 1,024 in flight;
 * "slot", the part of the poller alone; "stores", a release store into a line
 * each, the least possible work; "slot_away" and "stores_away": into lines
 * written meanwhile by another CPU, as by a holder that drops a future and
 * posts the next. The code of futures alone, without a device or connections.
 *
 * WAY "wake", "futex": microseconds, in the median, from a completion until the
 * thread asleep in rpma_rt_future_wait() has returned, and from a store and
 * FUTEX_WAKE until a thread asleep in a bare FUTEX_WAIT has returned.
 */

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "base/runtime.h"
#include "future/future.h"
#include "poller/poller.h"

#define SLOTS 1024
#define BATCH 32

/* a waiting thread spins for 20 us before sleeping */
#define ASLEEP_NS 100000
#define WAKES	  65536 /* samples, at most */

static struct rpma_rt rt;
static struct rt_poller poller;
static struct rt_side side;
static struct rt_futures *futures;

/* posts of the consumer, in order: private to the device */
static struct {
	uint64_t cookies[SLOTS];
	_Alignas(64) _Atomic uint64_t posted;
	_Alignas(64) _Atomic uint64_t total; /* 0: not known yet */
} cq;

static void open_all(void)
{
	poller.rt = &rt;
	poller.threaded = true;
	rt_poller_set_tick_ms(&poller, 1);
	rt_future_init_poller(&poller);
	futures = rt_future_block_take(&poller, &rt_future_posts[0][1], &side,
				       SLOTS);
	if (futures == NULL)
		bench_fail("no memory");
}

/* As a round does. */
static void complete(uint64_t cookie)
{
	const struct rpma_rt_completion item = {
		.byte_len = 64,
		.qp_num = 100,
	};
	struct rt_future *slot = rt_future_of_cookie(cookie);

	if (!rt_future_is_expected(slot, cookie) || slot->told != 0 ||
	    rt_future_is_full(&poller.futures))
		bench_fail("a slot is not as it should be");
	rt_future_fill(slot, item);
	poller.futures.complete[poller.futures.count] = slot;
	rt_future_add_batch(&poller.futures, futures, 1);
	rt_deliver_touch_number(&poller, RT_ROUTE_FUTURES);
}

/* ---------------------------------------------------- the poller's part --- */

static void take_all(uint64_t *cookies)
{
	struct rt_future *slot;
	int i;

	for (i = 0; i < SLOTS; i++) {
		slot = rt_future_take(futures, (uint64_t)i);
		if (slot == NULL)
			bench_fail("a slot is lost");
		cookies[i] = rt_future_cookie(slot);
	}
}

static void give_all(void)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		rt_future_free_holder(&futures->slots[i]);
}

static void complete_all(const uint64_t *cookies)
{
	int i;

	for (i = 0; i < SLOTS; i++) {
		if (i + RT_FUTURE_AHEAD < SLOTS)
			rt_future_prefetch(cookies[i + RT_FUTURE_AHEAD]);
		complete(cookies[i]);
		if (i % BATCH == BATCH - 1)
			rt_deliver_flush(&poller);
	}
}

static void store_all(const uint64_t *cookies)
{
	int i;

	(void)cookies;
	for (i = 0; i < SLOTS; i++)
		/* release: as a slot's */
		atomic_store_explicit(&futures->slots[i].state, RT_FUTURE_DONE,
				      memory_order_release);
}

/* Whose lines the slots are before: this thread's, or the keeper's, which gives
 * them back and takes them again on the other CPU, as holders do. */
static struct {
	_Alignas(64) _Atomic uint32_t turn; /* odd: the keeper's */
	_Alignas(64) _Atomic bool is_over;
	uint64_t cookies[SLOTS];
	const int *cpus; /* private to the poller */
} keeper;

static void await_turn(uint32_t turn)
{
	/* acquire: pairs with the release of the other's next_turn() */
	while (atomic_load_explicit(&keeper.turn, memory_order_acquire) != turn)
		rt_cpu_relax();
}

static void next_turn(uint32_t turn)
{
	/* release: the slots */
	atomic_store_explicit(&keeper.turn, turn + 1, memory_order_release);
}

static void *keeper_main(void *arg)
{
	uint32_t turn = 1;

	(void)arg;
	bench_pin(keeper.cpus[1]);
	for (;; turn += 2) {
		await_turn(turn);
		/* relaxed: behind the turn */
		if (atomic_load_explicit(&keeper.is_over, memory_order_relaxed))
			return NULL;
		give_all();
		take_all(keeper.cookies);
		next_turn(turn);
	}
}

static double run_away(double seconds, void (*fn)(const uint64_t *cookies))
{
	double end = bench_now() + seconds;
	pthread_t thread;
	double took = 0;
	double begin;
	uint64_t count = 0;
	uint32_t turn = 0;

	take_all(keeper.cookies);
	/* before this thread is pinned: the other thread inherits the
	 * pinning */
	if (pthread_create(&thread, NULL, keeper_main, NULL))
		bench_fail("no thread");
	bench_pin(keeper.cpus[0]);
	do {
		next_turn(turn);
		turn += 2;
		await_turn(turn);
		begin = bench_now();
		fn(keeper.cookies);
		took += bench_now() - begin;
		count += SLOTS;
	} while (bench_now() < end);
	/* relaxed: before the turn */
	atomic_store_explicit(&keeper.is_over, true, memory_order_relaxed);
	next_turn(turn);
	pthread_join(thread, NULL);
	give_all();
	return (double)count / took / 1e6;
}

static double run_alone(double seconds, void (*fn)(const uint64_t *cookies))
{
	double end = bench_now() + seconds;
	double took = 0;
	double begin;
	uint64_t count = 0;

	bench_pin(keeper.cpus[0]);
	do {
		take_all(keeper.cookies);
		begin = bench_now();
		fn(keeper.cookies);
		took += bench_now() - begin;
		give_all();
		count += SLOTS;
	} while (bench_now() < end);
	return (double)count / took / 1e6;
}

/* ---------------------------------------------------- two threads --- */

static void *poller_main(void *arg)
{
	const int *cpu = arg;
	uint64_t done = 0;
	uint64_t total;
	int i;

	bench_pin(*cpu);
	for (;;) {
		/* acquire: the cookies below */
		while (atomic_load_explicit(&cq.posted, memory_order_acquire) <
		       done + BATCH) {
			/* acquire: likewise */
			total = atomic_load_explicit(&cq.total,
						     memory_order_acquire);
			if (total != 0 && done == total)
				return NULL;
			rt_cpu_relax();
		}
		for (i = 0; i < BATCH; i++) {
			rt_future_prefetch(
				cq.cookies[(done + RT_FUTURE_AHEAD) % SLOTS]);
			complete(cq.cookies[done++ % SLOTS]);
		}
		rt_deliver_flush(&poller);
	}
}

static void post(struct rpma_rt_future *future, uint64_t at)
{
	struct rt_future *slot = rt_future_take(futures, at);

	if (slot == NULL)
		bench_fail("a slot is lost");
	rt_future_name(future, slot, rt_future_here());
	cq.cookies[at % SLOTS] = rt_future_cookie(slot);
	if (at % BATCH == BATCH - 1)
		/* release: pairs with the acquire in poller_main() */
		atomic_store_explicit(&cq.posted, at + 1, memory_order_release);
}

static void wait_for_result(struct rpma_rt_future *future, uint64_t at)
{
	struct rpma_rt_completion cmpl;

	if (rpma_rt_future_wait(future, &cmpl, -1) != 1 || cmpl.context != at)
		bench_fail("a result is wrong");
}

static void drop(struct rpma_rt_future *future)
{
	if (rpma_rt_future_drop(future) != 0)
		bench_fail("a future is not dropped");
}

static void wait_for(struct rpma_rt_future *future, uint64_t at)
{
	wait_for_result(future, at);
	drop(future);
}

static double run_both(const struct bench_args *args)
{
	static struct rpma_rt_future held[SLOTS];
	double begin = bench_now();
	double end = begin + args->seconds;
	int cpu = args->cpus[0];
	uint64_t posted;
	uint64_t taken = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, poller_main, &cpu))
		bench_fail("no thread");
	bench_pin(args->cpus[1]);
	for (posted = 0; posted < SLOTS; posted++)
		post(&held[posted], posted);
	do {
		do {
			wait_for(&held[taken % SLOTS], taken);
			taken++;
			post(&held[posted % SLOTS], posted);
			posted++;
		} while (posted % SLOTS != 0);
	} while (bench_now() < end);
	/* release: pairs with the acquire in poller_main() */
	atomic_store_explicit(&cq.total, posted, memory_order_release);
	for (; taken < posted; taken++)
		wait_for(&held[taken % SLOTS], taken);
	end = bench_now();
	pthread_join(thread, NULL);
	return (double)taken / (end - begin) / 1e6;
}

/* --------------------------------------------------- a thread asleep --- */

static struct {
	/* of the sleeper: number of begun waits; UINT64_MAX: the end */
	_Alignas(64) _Atomic uint64_t begun;
	uint64_t cookie; /* of the awaited future */
	/* the waker's */
	_Alignas(64) uint64_t woken_ns;
	_Alignas(64) _Atomic uint32_t word; /* of the bare futex */
} bed;

static void wake_futex(void)
{
	/* release: woken_ns */
	atomic_store_explicit(&bed.word, 1, memory_order_release);
	syscall(SYS_futex, &bed.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void sleep_futex(void)
{
	/* acquire: pairs with wake_futex() */
	while (atomic_load_explicit(&bed.word, memory_order_acquire) == 0)
		syscall(SYS_futex, &bed.word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL,
			0);
	/* relaxed: the waker looks behind the next begun */
	atomic_store_explicit(&bed.word, 0, memory_order_relaxed);
}

static void wake_future(void)
{
	complete(bed.cookie);
	rt_deliver_flush(&poller);
}

struct waking {
	const struct bench_args *args;
	bool is_bare;
};

static void *waker_main(void *arg)
{
	const struct waking *way = arg;
	uint64_t round = 0;
	uint64_t begun;
	uint64_t asleep;

	bench_pin(way->args->cpus[0]);
	for (;;) {
		do {
			/* acquire: the cookie */
			begun = atomic_load_explicit(&bed.begun,
						     memory_order_acquire);
			if (begun == UINT64_MAX)
				return NULL;
			rt_cpu_relax();
		} while (begun == round);
		round = begun;
		asleep = bench_now_ns() + ASLEEP_NS;
		while (bench_now_ns() < asleep)
			rt_cpu_relax();
		bed.woken_ns = bench_now_ns();
		if (way->is_bare)
			wake_futex();
		else
			wake_future();
	}
}

/* Returns the ns from the moment of the wake of a single sleep. */
static uint64_t sleep_once(bool is_bare, uint64_t round)
{
	struct rpma_rt_future future;
	uint64_t ns;

	if (!is_bare) {
		post(&future, round);
		bed.cookie = cq.cookies[round % SLOTS];
	}
	/* release: pairs with the acquire in waker_main() */
	atomic_store_explicit(&bed.begun, round, memory_order_release);
	if (is_bare) {
		sleep_futex();
		return bench_now_ns() - bed.woken_ns;
	}
	wait_for_result(&future, round);
	ns = bench_now_ns() - bed.woken_ns;
	drop(&future);
	return ns;
}

static double run_asleep(const struct bench_args *args, bool is_bare)
{
	static uint64_t samples[WAKES];
	struct waking way = {args, is_bare};
	double end = bench_now() + args->seconds;
	uint64_t count = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, waker_main, &way))
		bench_fail("no thread");
	bench_pin(args->cpus[1]);
	do {
		samples[count] = sleep_once(is_bare, count + 1);
		count++;
	} while (bench_now() < end && count < WAKES);
	/* release: nothing */
	atomic_store_explicit(&bed.begun, UINT64_MAX, memory_order_release);
	pthread_join(thread, NULL);
	return bench_percentile(samples, count, 0.5);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *way;
		double (*run)(double seconds, void (*fn)(const uint64_t *));
		void (*fn)(const uint64_t *cookies);
	} parts[] = {
		{"slot", run_alone, complete_all},
		{"stores", run_alone, store_all},
		{"slot_away", run_away, complete_all},
		{"stores_away", run_away, store_all},
	};
	struct bench_args args = bench_parse(argc, argv);
	const char *way = args.count == 1 ? args.words[0] : "";
	size_t i;

	open_all();
	if (strcmp(way, "future") == 0) {
		bench_report(way, run_both(&args), "Mops/s");
		return 0;
	}
	if (strcmp(way, "wake") == 0 || strcmp(way, "futex") == 0) {
		bench_report(way, run_asleep(&args, strcmp(way, "futex") == 0),
			     "us");
		return 0;
	}
	keeper.cpus = args.cpus;
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(way, parts[i].way) != 0)
			continue;
		bench_report(way, parts[i].run(args.seconds, parts[i].fn),
			     "Mops/s");
		return 0;
	}
	bench_fail("WAY is future, slot, stores, slot_away, stores_away, wake, "
		   "futex");
}
