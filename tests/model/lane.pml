/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Lane, spill, sleeping and stop, as in doc/protocols/lane.md and in lane.c,
 * take.c and bell.c, for every interleaving of one poller, one consumer, what
 * feeds the poller and what stops it. WAKES=1: also a thread that wakes the
 * consumer once, for which it has to come back.
 *
 * Stores go through buffers, see buffers.pml.
 *
 * Wanted: every item once and in order, and no end but the end: a lost wake-up
 * is a deadlock, which the checker reports as an invalid end state.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* of a wake */
#if defined(M_NO_FENCE_WAKE) || defined(M_NO_WAKE_CHECK) || \
	defined(M_WAKE_CHECK_EARLY)
#define WAKES 1
#define N     2
#endif
#ifndef WAKES
#define WAKES 0
#endif

/* found sooner where no stop comes to the rescue */
#if defined(M_NO_FENCE_PUBLISH) || defined(M_NO_ROOM_CHECK) || \
	defined(M_NO_SPILLED_CHECK) || defined(M_NO_FENCE_WAKE) || \
	defined(M_NO_WAKE_CHECK) || defined(M_WAKE_CHECK_EARLY)
#define NO_HURRY
#endif

#ifndef N
#define N 4 /* items */
#endif
#define RING 2
#define HALF 1 /* room worth a ring of the bell */

/* threads with a store buffer */
#define POLLER	 0
#define CONSUMER 1
#define STOPPER	 2
#define WAKER	 3
#define THREADS	 (3 + WAKES)
#define DEPTH	 3

/* words in memory */
#define TAIL	0
#define HEAD	1
#define SPILLED 2
#define QWORD	3 /* the consumer's bell */
#define PWORD	4 /* the poller's bell */
#define STOP	5
#define FIN	6
#define SLOT	7 /* and the next */
#define WOKEN	9
#define WORDS	(9 + WAKES)

#define AWAKE  0
#define ASLEEP 1

#include "buffers.pml"

/* not in buffers: handed over by stronger means */
byte cq;		/* completions that wait in the CQ */
byte cq_done;		/* that were ever put there */
byte spill_first = 1;	/* the spill: items first .. next - 1 */
byte spill_next = 1;
byte poller_fd;		/* the eventfd of the poller's bell */
byte taken;		/* items that the consumer has had */
bool poller_gone;
bool over;
bool came_back; /* the consumer, for the wake */

/* ------------------------------------------------------------- bells --- */

/* Rings after the caller's fence. */
inline ring_poller(t)
{
	if
	:: LOAD(t, PWORD) == ASLEEP ->
		exchange(t, PWORD, AWAKE, rung);
		if
		:: rung == ASLEEP -> poller_fd++
		:: else
		fi;
		rung = 0
	:: else
	fi
}

/* The wake-up of a futex is in the exchange: the sleeper waits for the word. */
inline ring_consumer(t)
{
	if
	:: LOAD(t, QWORD) == ASLEEP -> exchange(t, QWORD, AWAKE, rung); rung = 0
	:: else
	fi
}

/* --------------------------------------------------------- the poller --- */

inline look_for_room()
{
	if
	:: tail - head_seen == RING -> head_seen = LOAD(POLLER, HEAD)
	:: else
	fi
}

inline ring_put(item)
{
	put(POLLER, SLOT + tail % RING, item, false);
	tail++
}

inline release_tail()
{
#ifdef M_TAIL_RELAXED
	put(POLLER, TAIL, tail, false)
#else
	put(POLLER, TAIL, tail, true)
#endif
}

inline bell_lane()
{
#ifndef M_NO_FENCE_PUBLISH
	FENCE(POLLER);
#endif
	ring_consumer(POLLER)
}

#ifdef M_OVERTAKE
#define MAY_GO_DIRECT (tail - head_seen < RING)
#else
#define MAY_GO_DIRECT (spill_first == spill_next && tail - head_seen < RING)
#endif

inline take_from_cq()
{
	atomic { cq--; item++ };
	look_for_room();
	if
	:: MAY_GO_DIRECT -> ring_put(item); release_tail(); bell_lane()
#ifdef M_NO_SPILL_RING
	:: else
#else
	:: else ->
		/* the same numbers, for items come in order */
		atomic {
			if
			:: spill_first == spill_next -> spill_first = item
			:: else
			fi;
			spill_next = item + 1
		}
#endif
	fi
}

inline retry_spill()
{
	moved = false;
	look_for_room();
	do
	:: spill_first < spill_next && tail - head_seen < RING ->
		ring_put(spill_first);
		spill_first++;
		moved = true
	:: else -> break
	od;
	if
	:: moved ->
		release_tail();
		if
		:: spill_first == spill_next ->
			put(POLLER, SPILLED, false, false)
		:: else
		fi;
		bell_lane()
	:: else
	fi
}

inline poller_sleep()
{
	if
	:: spill_first < spill_next -> put(POLLER, SPILLED, true, false)
	:: else
	fi;
	put(POLLER, PWORD, ASLEEP, true);
#ifndef M_NO_FENCE_SLEEP
	FENCE(POLLER);
#endif
	nothing = true;
#ifndef M_NO_STOP_CHECK
	if
	:: LOAD(POLLER, STOP) -> nothing = false
	:: else
	fi;
#endif
#ifndef M_NO_ROOM_CHECK
	if
	:: spill_first < spill_next ->
		head_seen = LOAD(POLLER, HEAD);
		if
		:: RING - (tail - head_seen) >= HALF -> nothing = false
		:: else
		fi
	:: else
	fi;
#endif
	if
	:: nothing ->
		/* a system call; an armed CQ wakes it as well */
		FENCE(POLLER);
		(poller_fd > 0 || cq > 0)
	:: else
	fi;
	exchange(POLLER, PWORD, AWAKE, rung);
	atomic {
		rung = 0;
		/* reads what has been written; what comes later wakes once
		 * for nothing */
		poller_fd = 0
	}
}

proctype poller()
{
	byte tail;
	byte head_seen;
	byte item;
	byte rung;
	bool moved;
	bool nothing;

	do
	:: cq > 0 -> take_from_cq()
	:: cq == 0 ->
		retry_spill();
		if
		:: moved
		:: !moved && LOAD(POLLER, STOP) ->
			/* the device had put all there before */
			if
			:: cq == 0 -> break
			:: else
			fi
		:: !moved && !LOAD(POLLER, STOP) -> poller_sleep()
		fi
	od;
	/* a thread that ends has no stores left */
	FENCE(POLLER);
	poller_gone = true
}

/* ------------------------------------------------------- the consumer --- */

inline is_ring_due(yes)
{
	yes = LOAD(CONSUMER, SPILLED) && tail_seen - head <= RING - HALF
}

inline take()
{
	got = false;
	if
	:: tail_seen == head -> tail_seen = LOAD(CONSUMER, TAIL)
	:: else
	fi;
	if
	:: tail_seen != head ->
		assert(LOAD(CONSUMER, SLOT + head % RING) == taken + 1);
		head++;
		taken++;
		put(CONSUMER, HEAD, head, true);
		got = true;
		is_ring_due(due);
		if
		:: due && !finished -> FENCE(CONSUMER); ring_poller(CONSUMER)
		:: else
		fi;
		due = false
	:: tail_seen == head && finished && spill_first < spill_next ->
		/* the poller is gone: its spill is ours */
		atomic {
			assert(spill_first == taken + 1);
			spill_first++;
			taken++;
			got = true
		}
	:: else
	fi
}

/* yes: it comes back, and the next wake is another one */
inline look_for_wake(yes)
{
	if
	:: WAKES && LOAD(CONSUMER, WAKES * WOKEN) ->
		exchange(CONSUMER, WAKES * WOKEN, false, rung);
		atomic { rung = 0; yes = true }
	:: else
	fi
}

inline arm_and_sleep()
{
#ifdef M_WAKE_CHECK_EARLY
	look_for_wake(woken);
#endif
	put(CONSUMER, QWORD, ASLEEP, true);
#ifndef M_NO_FENCE_ARM
	FENCE(CONSUMER);
#endif
#ifndef M_NO_END_CHECK
	finished = LOAD(CONSUMER, FIN);
#endif
#ifdef M_NO_TAKE_AGAIN
	got = false;
#else
	take();
#endif
#if !defined(M_NO_WAKE_CHECK) && !defined(M_WAKE_CHECK_EARLY)
	if
	:: !got && !finished -> look_for_wake(woken)
	:: else
	fi;
#endif
	if
	:: !got && !finished && woken ->
		atomic { woken = false; came_back = true }
	:: !got && !finished && !woken ->
#ifndef M_NO_SPILLED_CHECK
		is_ring_due(due);
		if
		:: due -> ring_poller(CONSUMER)
		:: else
		fi;
		due = false;
#endif
		/* a system call; compares the word under its lock */
		FENCE(CONSUMER);
		mem[QWORD] == AWAKE
	:: !got && finished -> over = true
	:: got
	fi;
	exchange(CONSUMER, QWORD, AWAKE, rung);
	rung = 0
}

proctype consumer()
{
	byte head;
	byte tail_seen;
	byte rung;
	bool got;
	bool due;
	bool finished;
	bool woken;

	do
	:: over -> break
	:: !over ->
#ifndef M_NO_END_CHECK
		finished = LOAD(CONSUMER, FIN);
#endif
		take();
		if
		:: got
		:: !got -> arm_and_sleep()
		fi
	od;
	assert(taken == N)
}

/* -------------------------------------------------------- the outside --- */

proctype device()
{
	do
	:: cq_done < N -> atomic { cq++; cq_done++ }
	:: else -> break
	od
}

proctype stopper()
{
	byte rung;

	/* at any time after the last completion; or it has patience, and then
	 * nobody is woken for this reason before all was taken */
	if
#ifndef NO_HURRY
	:: true -> cq_done == N
#endif
	:: true -> taken == N && (!WAKES || came_back)
	fi;
	put(STOPPER, STOP, true, true);
	FENCE(STOPPER);
	ring_poller(STOPPER);
	poller_gone;
	put(STOPPER, FIN, true, true);
	FENCE(STOPPER);
	ring_consumer(STOPPER)
}

#if WAKES
/* At any time: a thread, or a handler of a signal. */
proctype waker()
{
	byte rung;

	put(WAKER, WOKEN, true, true);
#ifndef M_NO_FENCE_WAKE
	FENCE(WAKER);
#endif
	ring_consumer(WAKER)
}
#endif

init {
	atomic {
#if WAKES
		run buffer(WAKER);
		run waker();
#endif
		run buffer(POLLER);
		run buffer(CONSUMER);
		run buffer(STOPPER);
		run poller();
		run consumer();
		run device();
		run stopper()
	}
}
