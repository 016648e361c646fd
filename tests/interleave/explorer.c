/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * explorer.c -- tests of the explorer: small programs with known outcomes on a
 * machine with store buffers. The explorer has to see all outcomes and no
 * other, and has to find the programs that are wrong.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "explore.h"

static struct {
	_Atomic uint32_t x;
	_Atomic uint32_t y;
	uint32_t seen[EXPLORE_THREADS];
	bool is_fenced;
} of;

/* outcomes that an order had: bits */
static unsigned outcomes;

/* functions of traced.c: this file stands for the code under test */
uint32_t __tsan_atomic32_load(const volatile uint32_t *at, int order);
void __tsan_atomic32_store(volatile uint32_t *at, uint32_t value, int order);
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t *at, uint32_t value,
				   int order);

static uint32_t load(_Atomic uint32_t *at)
{
	return __tsan_atomic32_load((volatile uint32_t *)at,
				    memory_order_acquire);
}

static void store(_Atomic uint32_t *at, uint32_t value)
{
	__tsan_atomic32_store((volatile uint32_t *)at, value,
			      memory_order_release);
}

static void setup(void)
{
	memset(&of, 0, sizeof(of));
	explore_watch_nothing();
	explore_watch(&of.x, sizeof(of.x));
	explore_watch(&of.y, sizeof(of.y));
}

static void setup_heavy(void)
{
	setup();
	explore_stop_at_stores();
}

static void setup_fenced(void)
{
	setup();
	of.is_fenced = true;
}

/* ------------------------------------------- writes a word, reads the other */

static void dekker(_Atomic uint32_t *own, _Atomic uint32_t *other,
		   uint32_t *seen)
{
	store(own, 1);
	if (of.is_fenced)
		explore_fence();
	*seen = load(other);
}

static void dekker_0(void)
{
	dekker(&of.x, &of.y, &of.seen[0]);
}

static void dekker_1(void)
{
	dekker(&of.y, &of.x, &of.seen[1]);
}

static void note(void)
{
	outcomes |= 1u << (of.seen[0] * 2 + of.seen[1]);
}

/* Thread 1 makes a fence in both threads. */
static void dekker_heavy(void)
{
	store(&of.y, 1);
	explore_fence_all();
	of.seen[1] = load(&of.x);
}

/* Thread 1 makes a fence in thread 1 alone. */
static void dekker_own(void)
{
	store(&of.y, 1);
	explore_fence();
	of.seen[1] = load(&of.x);
}

/* Without a fence both threads may see the old value. */
static void check_dekker(void)
{
	note();
	EXPLORE_CHECK(of.seen[0] || of.seen[1]);
}

/* --------------------------------------------- data, then a flag; in order */

static void send(void)
{
	store(&of.x, 1);
	store(&of.y, 1);
}

static void receive(void)
{
	of.seen[0] = load(&of.y);
	of.seen[1] = load(&of.x);
}

static void check_order(void)
{
	note();
	EXPLORE_CHECK(!of.seen[0] || of.seen[1]);
}

static void receive_wrong(void)
{
	of.seen[1] = load(&of.x);
	of.seen[0] = load(&of.y);
}

/* ------------------------------------------------------------- counting --- */

static void count(void)
{
	__tsan_atomic32_fetch_add((volatile uint32_t *)&of.x, 1,
				  memory_order_relaxed);
}

static void count_in_two(void)
{
	store(&of.x, load(&of.x) + 1);
}

static void check_count(void)
{
	note();
	/* relaxed: no thread runs */
	EXPLORE_CHECK(atomic_load_explicit(&of.x, memory_order_relaxed) == 3);
}

/* ------------------------------------------------------------- sleeping --- */

static bool is_set(void *arg)
{
	/* relaxed: one thread runs at a time */
	return atomic_load_explicit((_Atomic uint32_t *)arg,
				    memory_order_relaxed) != 0;
}

/* Sleeps until rung by a sender that saw the sleeper. */
static void sleep_unless_sent(void)
{
	store(&of.y, 1);
	if (of.is_fenced)
		explore_fence();
	if (load(&of.x) == 0)
		explore_wait(&of.seen[2], is_set, &of.seen[2]);
}

static void send_and_ring(void)
{
	store(&of.x, 1);
	if (of.is_fenced)
		explore_fence();
	if (load(&of.y) != 0) {
		explore_touch(&of.seen[2]);
		of.seen[2] = 1;
	}
}

/* ----------------------------------------------------------------- main --- */

#define SEEN(first, second) (1u << ((first) * 2 + (second)))

static const struct {
	struct explore play;
	unsigned outcomes; /* all outcomes; 0: the play has to fail */
} cases[] = {
	{{"dekker",
	  2,
	  {dekker_0, dekker_1},
	  setup_fenced,
	  check_dekker,
	  false,
	  0},
	 SEEN(0, 1) | SEEN(1, 0) | SEEN(1, 1)},
	{{"dekker_heavy",
	  2,
	  {dekker_0, dekker_heavy},
	  setup_heavy,
	  check_dekker,
	  false,
	  0},
	 SEEN(0, 1) | SEEN(1, 0) | SEEN(1, 1)},
	{{"order", 2, {send, receive}, setup, check_order, false, 0},
	 SEEN(0, 0) | SEEN(0, 1) | SEEN(1, 1)},
	/* the flag leaves its buffer behind the data */
	{{"order_once", 2, {send, receive}, setup, check_order, false, 1},
	 SEEN(0, 0) | SEEN(0, 1)},
	{{"order_twice", 2, {send, receive}, setup, check_order, false, 2},
	 SEEN(0, 0) | SEEN(0, 1) | SEEN(1, 1)},
	{{"dekker_once",
	  2,
	  {dekker_0, dekker_1},
	  setup_fenced,
	  check_dekker,
	  false,
	  1},
	 SEEN(0, 1) | SEEN(1, 0) | SEEN(1, 1)},
	{{"count", 3, {count, count, count}, setup, check_count, false, 0},
	 SEEN(0, 0)},
	{{"sleep",
	  2,
	  {sleep_unless_sent, send_and_ring},
	  setup_fenced,
	  note,
	  false,
	  0},
	 SEEN(0, 0)},
	{{"dekker_no_fence",
	  2,
	  {dekker_0, dekker_1},
	  setup,
	  check_dekker,
	  false,
	  0},
	 0},
	{{"dekker_own",
	  2,
	  {dekker_0, dekker_own},
	  setup_heavy,
	  check_dekker,
	  false,
	  0},
	 0},
	{{"order_of_loads",
	  2,
	  {send, receive_wrong},
	  setup,
	  check_order,
	  false,
	  0},
	 0},
	{{"count_in_two",
	  3,
	  {count_in_two, count_in_two, count_in_two},
	  setup,
	  check_count,
	  false,
	  0},
	 0},
	{{"sleep_no_fence",
	  2,
	  {sleep_unless_sent, send_and_ring},
	  setup,
	  note,
	  false,
	  0},
	 0},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

/* Runs a single case; returns whether the outcomes are the expected ones. */
static bool is_right(char *program, size_t index)
{
	const struct explore plays[] = {cases[index].play, {.name = NULL}};
	char name[32];
	char found[] = "found";
	char *args[] = {program, name, NULL};

	outcomes = 0;
	snprintf(name, sizeof(name), "%s", plays[0].name);
	if (cases[index].outcomes == 0) {
		args[1] = found;
		return explore_main(2, args, plays) == 0;
	}
	if (explore_main(2, args, plays) == 0 &&
	    outcomes == cases[index].outcomes)
		return true;
	fprintf(stderr, "%s: outcomes %#x, there are %#x\n", name, outcomes,
		cases[index].outcomes);
	return false;
}

int main(int argc, char **argv)
{
	struct explore plays[CASES + 1] = {{.name = NULL}};
	size_t i;

	for (i = 0; i < CASES; i++)
		plays[i] = cases[i].play;
	if (argc > 1) /* a single play, to be repeated */
		return explore_main(argc, argv, plays);
	for (i = 0; i < CASES; i++) {
		if (!is_right(argv[0], i))
			return 1;
	}
	return 0;
}
