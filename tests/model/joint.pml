/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The end of a listener in its queues, as in doc/protocols/lane.md and
 * connection.md and in take.c and listener_poller.c, for every
 * interleaving of the thread that ends it, the pollers and the consumers.
 *
 * Pollers 0 and 1 share a queue, so its LISTENER_CLOSED is a joint item: a token
 * in each of the two lanes. Poller 2 has a queue of its own, and writes the item
 * itself. Each has REQUESTs that it still owes, and items of connections that
 * come behind the end.
 *
 * The thread that ends the listener stores through a buffer, see buffers.pml.
 * What a poller publishes is there with all that it read before, see lane.pml.
 *
 * Wanted: each queue has LISTENER_CLOSED once, as the listener's last item; no
 * token is seen; a consumer that finds nothing has taken all that was published;
 * the joint is freed once, and not touched then; and when a program that has
 * taken the item from each queue frees what the user pointer leads to, no item
 * with it comes any more.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef DUE
#define DUE 1 /* REQUESTs that each poller owes */
#endif
#define POLLERS 3
#define QUEUES	2
#define BATCH	2 /* items that a consumer takes at once */
#define ROOM	(DUE + 2)

/* threads with a store buffer */
#define CLOSER	0
#define THREADS 1
#define DEPTH	3

/* words in memory */
#define JOINTS 0
#define LANES  1 /* of the joint: tokens that were not taken */
#define WORDS  2

#include "buffers.pml"

mtype = { REQUEST, OTHER, TOKEN, CLOSED };

chan lane0 = [ROOM] of { mtype };
chan lane1 = [ROOM] of { mtype };
chan lane2 = [ROOM] of { mtype };

bool told[POLLERS]; /* the message with which a listener ends */
byte published[QUEUES];
bool seen[QUEUES];
byte gone; /* queues whose LISTENER_CLOSED was taken */
bool freed;
byte left; /* OTHERs that are to come in queue 0 */

#ifdef M_GONE_AT_FIRST
#define USER_IS_GONE (gone > 0)
#else
#define USER_IS_GONE (gone == QUEUES)
#endif

/* ------------------------------------------------ the thread that ends it --- */

inline announce()
{
	put(CLOSER, JOINTS, 1, false)
}

proctype closer()
{
#ifndef M_NOT_ANNOUNCED
#ifndef M_ANNOUNCED_LATE
	announce();
#endif
#endif
#ifndef M_NO_RELEASE
	/* the inbox */
	FENCE(CLOSER);
#endif
	told[0] = true;
	told[1] = true;
	told[2] = true;
#ifdef M_ANNOUNCED_LATE
	announce()
#endif
}

/* ---------------------------------------------------------- the pollers --- */

inline write(l, q, what)
{
	l!what;
	published[q]++
}

#ifdef M_TOKEN_BEFORE_REQUESTS
#define MAY_END true
#else
#define MAY_END (due == 0)
#endif

#ifdef M_TOKEN_OF_ONE
#define LAST_OF_1 OTHER
#else
#define LAST_OF_1 TOKEN
#endif

inline run_poller(p, l, q, last)
{
	do
	:: atomic { told[p] && !ended && MAY_END ->
		write(l, q, last);
		ended = true
	}
	:: atomic { due > 0 -> write(l, q, REQUEST); due-- }
	:: atomic { ended && due == 0 -> write(l, q, OTHER); break }
	od
}

proctype poller0()
{
	byte due = DUE;
	bool ended;

	run_poller(0, lane0, 0, TOKEN)
}

proctype poller1()
{
	byte due = DUE;
	bool ended;

	run_poller(1, lane1, 0, LAST_OF_1)
}

proctype poller2()
{
	byte due = DUE;
	bool ended;

	run_poller(2, lane2, 1, CLOSED)
}

/* -------------------------------------------------------- the consumers --- */

inline handle(q, what)
{
	assert(what != TOKEN);
	assert(what != REQUEST || !USER_IS_GONE);
	if
	:: what == CLOSED ->
		assert(!seen[q]);
		seen[q] = true;
		gone++
	:: what == OTHER -> left--
	:: what == REQUEST -> assert(!seen[q])
	fi
}

/* So many of each lane as there is room for, in any order of the lanes. */
inline take_all()
{
	d_step { count = 0; turns = 0 };
	do
	:: count < BATCH && turns < 2 ->
		if
		:: nempty(lane0) -> lane0?batch[count]; count++
		:: nempty(lane1) -> lane1?batch[count]; count++
		:: empty(lane0) && empty(lane1) -> turns = 2
		fi
	:: count > 0 && turns < 2 -> turns = 2
	:: count == BATCH || turns == 2 -> break
	od
}

#ifdef M_ITEM_AT_FIRST_TOKEN
#define IS_LAST_TOKEN (mem[LANES] == 1)
#else
#define IS_LAST_TOKEN (mem[LANES] == 0)
#endif

/* Tokens are dropped, the last one becomes the item. */
inline finish()
{
	d_step {
		i = 0;
		kept = 0;
		do
		:: i < count && batch[i] == TOKEN ->
			assert(!freed && mem[LANES] > 0);
			mem[LANES]--;
			if
			:: IS_LAST_TOKEN ->
				batch[kept] = CLOSED;
				kept++;
				freed = mem[LANES] == 0;
				mem[JOINTS] = 0
			:: else
			fi;
			i++
		:: i < count && batch[i] != TOKEN ->
			batch[kept] = batch[i];
			kept++;
			i++
		:: i == count -> break
		od;
		i = 0;
		count = kept;
		kept = 0
	}
}

inline take()
{
	take_all();
	do
	:: count > 0 && mem[JOINTS] > 0 ->
		finish();
		if
		:: count > 0 -> break
		:: count == 0 ->
#ifdef M_TOKENS_ARE_NOTHING
			break
#else
			take_all()
#endif
		fi
	:: !(count > 0 && mem[JOINTS] > 0) -> break
	od
}

proctype consumer0()
{
	mtype batch[BATCH];
	byte count;
	byte turns;
	byte kept;
	byte i;
	byte before;

	do
	:: left > 0 || !seen[0] ->
		before = published[0];
		take();
		if
		:: count == 0 -> /* sleeps until more is published */
			published[0] != before
		:: count > 0 ->
			i = 0;
			do
			:: atomic { i < count -> handle(0, batch[i]); i++ }
			:: i == count -> break
			od;
			i = 0
		fi
	:: left == 0 && seen[0] -> break
	od
}

proctype consumer1()
{
	mtype what;

	do
	:: lane2?what ->
		if
		:: what != OTHER ->
			atomic { handle(1, what) }
		:: what == OTHER -> break
		fi
	od
}

init {
	atomic {
		left = 2;
		mem[LANES] = 2;
#ifdef M_TOKEN_OF_ONE
		mem[LANES] = 1;
		left = 3;
#endif
		run buffer(CLOSER);
		run closer();
		run poller0();
		run poller1();
		run poller2();
		run consumer0();
		run consumer1()
	}
}
