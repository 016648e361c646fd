/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Sleep and bells of a link, as in doc/protocols/wire.md and src/loopback/wire:
 * a SENDER publishes records; of the process that gets them the PROGRAM polls, arms
 * and sleeps until something has come, or does nothing more, and the LINK
 * thread sleeps, with a timer while `sleep` is even. Whoever drains holds
 * link.in, and takes one record a round; a thread that makes `sleep` odd takes all.
 * A poll, and an arm, of the program may pass a link over, as one that rings; behind
 * a bell the link thread makes `sleep` odd at once, or trusts a program that polls.
 *
 * Stores go through buffers, see buffers.pml. A lock is given back behind the
 * stores of its holder.
 *
 * Wanted: every record is taken, whatever the program does. A thread that
 * sleeps on a record is a deadlock, an invalid end state.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef N
#define N 3 /* records */
#endif
#ifndef CALLS
#define CALLS 2 /* polls of the program, and its sleeps */
#endif

/* threads with a store buffer */
#define SENDER	0
#define PROGRAM 1
#define LINK	2
#define THREADS 3
#define DEPTH	2

/* words in memory */
#define TAIL  0
#define SLEEP 1
#define WORDS 2

#include "buffers.pml"

/* not in buffers */
bool fd; /* the socket: a bell is there */

/* under link.in */
bool in;
byte head;
byte asleep; /* the value of SLEEP */
bool looks;  /* the program has drained since the link thread asked */
bool event;  /* something was taken since the program has armed */

#define IS_OVER (head == N)

inline lock(t)
{
	atomic { !in -> in = true }
}

inline unlock(t)
{
	atomic { FENCE(t) -> in = false }
}

inline drain(t, all)
{
	atomic {
		tail = LOAD(t, TAIL);
		took = head < tail;
		if
		:: head < tail && (all) -> head = tail
		:: head < tail && !(all) -> head++
		:: else
		fi;
		event = event || took;
		tail = 0
	}
}

proctype sender()
{
	byte sent, rung, word;

	do
	:: sent == N -> break
	:: sent < N ->
		sent++;
		put(SENDER, TAIL, sent, true);
#ifndef M_NO_FENCE_RING
		FENCE(SENDER);
#endif
		word = LOAD(SENDER, SLEEP);
		if
#ifdef M_RUNG_ONCE
		:: word % 2 == 1 && rung == 0 ->
#else
		:: word % 2 == 1 && word != rung ->
#endif
			atomic { rung = word; fd = true }
		:: else
		fi;
		word = 0
	od
}

/* `sleep` becomes odd, and all that came before is taken. */
inline arm(t)
{
#ifdef M_LOOK_FIRST
	drain(t, true);
#endif
	if
	:: asleep % 2 == 0 ->
		asleep++;
		put(t, SLEEP, asleep, false)
	:: else
	fi;
#ifndef M_NO_FENCE_ARM
	FENCE(t);
#endif
#ifdef M_ARM_TAKES_SOME
	drain(t, false)
#elif !defined(M_LOOK_FIRST)
	drain(t, true)
#else
	skip
#endif
}

proctype program()
{
	byte calls, tail;
	bool took;

	do
	:: calls < CALLS -> /* a poll */
		calls++;
		looks = true;
		if
		:: lock(PROGRAM);
		   drain(PROGRAM, false);
		   unlock(PROGRAM)
		:: true
		fi
	:: calls < CALLS -> /* it sleeps until something was taken */
		calls++;
		event = false;
		if
		:: lock(PROGRAM);
		   arm(PROGRAM);
		   unlock(PROGRAM)
		:: true
		fi;
		(event || IS_OVER)
	:: true -> break
	od
}

/* `sleep` is even: the next odd value is one that no bell was rung for. */
inline make_even()
{
	lock(LINK);
	if
	:: asleep % 2 == 1 ->
#ifdef M_SAME_VALUE
		asleep--;
#else
		asleep++;
#endif
		put(LINK, SLEEP, asleep, false)
	:: else
	fi;
	unlock(LINK)
}

/* It reads its socket first: a bell for a value that comes then stays there. */
inline wake()
{
#ifdef M_EVEN_FIRST
	make_even();
#endif
#ifndef M_READ_LAST
	fd = false;
#endif
#ifdef M_STAYS_ODD
	lock(LINK);
	drain(LINK, true);
	unlock(LINK);
	promised = false
#else
#ifndef M_EVEN_FIRST
	make_even();
#endif
	promised = true
#endif
}

/* Behind a bell, or when the time of the timer has come. */
inline tick()
{
	lock(LINK);
	if
	:: asleep % 2 == 1 -> promised = false /* the program has armed */
#ifdef M_EVEN_ASLEEP
	:: asleep % 2 == 0 && looks -> promised = false
#else
	:: asleep % 2 == 0 && looks -> looks = false
#endif
	:: asleep % 2 == 0 ->
		arm(LINK);
		promised = false
	fi;
	unlock(LINK)
}

proctype link()
{
	byte tail;
	bool took, promised;

	do
	:: IS_OVER -> break
	:: else ->
		wake();
		do
		:: promised && !fd ->
			lock(LINK);
			if
			:: looks -> took = false /* the program polls */
			:: drain(LINK, false)
			fi;
			unlock(LINK);
			if
			:: took
			:: !took -> tick()
			fi
		:: !promised || fd -> break
		od;
#ifdef M_READ_LAST
		fd = false;
#endif
		(fd || promised || IS_OVER)
	od
}

init {
	atomic {
		run buffer(SENDER);
		run buffer(PROGRAM);
		run buffer(LINK);
		run sender();
		run program();
		run link()
	}
}
