/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A memory region of the loopback device goes away while others execute, as in
 * doc/protocols/loopback.md, [BARRIER], and src/loopback/memory/barrier.c: threads FIRST
 * and SECOND execute requests that write into the region, as long as its key is
 * one; a thread DEREG takes the key away, waits for the words that are odd,
 * and then the memory is its own again, and it writes to it.
 *
 * Stores go through buffers, see buffers.pml. HEAVY: the executors have a fence
 * of their own; else DEREG makes them have one, as membarrier() does.
 *
 * Wanted: nothing of an executor reaches the memory after DEREG has it.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef ROUNDS
#define ROUNDS 2 /* requests of an executor */
#endif
#ifndef HEAVY
#define HEAVY 0
#endif

/* threads with a store buffer */
#define FIRST	0
#define SECOND	1
#define DEREG	2
#define THREADS 3
#define DEPTH	3

/* words in memory; that of an executor is its number */
#define KEY   2
#define DATA  3
#define WORDS 4

#define EXECUTORS 1
#define OWNER	  2

#include "buffers.pml"

byte executors = 2; /* that go on */

proctype executor(byte me)
{
	byte round;
	byte word;

	do
	:: round == ROUNDS -> break
	:: round < ROUNDS ->
#ifdef M_LOOK_FIRST
		if
		:: LOAD(me, KEY) == 0 -> break
		:: LOAD(me, KEY) == 1
		fi;
#endif
		put(me, me, word + 1, false);
#ifndef M_NO_FENCE_ENTER
		if
		:: HEAVY -> FENCE(me)
		:: else
		fi;
#endif
#ifndef M_LOOK_FIRST
		if
		:: LOAD(me, KEY) == 0
		:: LOAD(me, KEY) == 1 -> put(me, DATA, EXECUTORS, false)
		fi;
#else
		put(me, DATA, EXECUTORS, false);
#endif
#ifdef M_LEAVE_EARLY
		put(me, me, word + 2, false);
#else
		put(me, me, word + 2, true);
#endif
		word = word + 2;
		round++
	od;
	executors--
}

/* The words of the executors; one that is odd has to change. */
inline wait_for(t)
{
	then = LOAD(DEREG, t);
	if
	:: then % 2 == 0
	:: then % 2 == 1 -> LOAD(DEREG, t) != then
	fi
}

proctype dereg()
{
	byte then;

	put(DEREG, KEY, 0, true);
#ifndef M_NO_FENCE_DEREG
	FENCE(DEREG);
#endif
#ifndef M_NO_FENCE_ENTER
	if
	:: HEAVY
	:: else ->
		FENCE(FIRST);
		FENCE(SECOND)
	fi;
#endif
	wait_for(FIRST);
#ifndef M_ONE_NOT_WAITED_FOR
	wait_for(SECOND);
#endif
	put(DEREG, DATA, OWNER, false);
	executors == 0 && FENCE(FIRST) && FENCE(SECOND) && FENCE(DEREG);
	assert(mem[DATA] == OWNER)
}

init
{
	atomic
	{
		mem[KEY] = 1;
		run executor(FIRST);
		run executor(SECOND);
		run dereg();
		run buffer(FIRST);
		run buffer(SECOND);
		run buffer(DEREG)
	}
}
