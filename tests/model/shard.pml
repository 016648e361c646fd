/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shards, as in doc/protocols/shard.md and runtime/shard: two of them, a lane
 * each way, posts and requests at any time, answers, sleeping, room that is
 * wanted; and with STOPS=1, where nobody sleeps, a stop at any time.
 *
 * Stores go through buffers of one store, see buffers.pml: the order of stores
 * among themselves, which releases carry, is lane.pml's to show.
 *
 * Wanted: every message once and in order; an answer finds room; nobody sleeps
 * on a message or on room; after a stop both end, and nothing is left. A lost
 * wake-up is a deadlock, which the checker reports as an invalid end state.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* of a stop */
#if defined(M_DRAINED_ALONE) || defined(M_LOOK_BEHIND) || \
	defined(M_QUIET_IS_THE_END)
#define STOPS 1
#endif
#ifndef STOPS
#define STOPS 0
#endif

#if defined(M_ROOM_NOT_RESERVED) || defined(M_NO_CREDIT) || \
	defined(M_CREDIT_EARLY)
#define N0 3
#endif
#if defined(M_CREDIT_EARLY)
#define N1    2
#define EARLY 1
#endif
#if STOPS && !defined(N1)
#define N1 0
#endif

/* messages that each sends by itself */
#ifndef N0
#define N0 1
#endif
#ifndef N1
#define N1 1
#endif
#define TO_SEND(i) ((i) == 0 -> N0 : N1)

#define L    1 /* posts and requests; credits */
#define RING (2 * L)
#ifdef M_ROOM_NOT_RESERVED
#define LIMIT RING
#else
#define LIMIT L
#endif

/* threads with a store buffer: shards 0 and 1, and */
#define STOPPER 2
#define THREADS 3
#define DEPTH	1

/* words in memory; of each two, that of lane i is the one that i sends in */
#define TAIL   0
#define HEAD   2
#define WANTS  4
#define ASLEEP 6
#define PHASE  8
#define STOP   10
#define SLOT   11 /* RING for each lane */
#define WORDS  (11 + 2 * RING)

#define AT_SLOT(lane, n) (SLOT + (lane) * RING + (n) % RING)

#define RUNS	0
#define QUIET	1
#define DRAINED 2
#define ENDED	3

/* a message: its number, from 1, in its kind, and the kind */
#define POST	0
#define REQUEST 64
#define ANSWER	128
#define KIND(m)	  ((m) & 192)
#define NUMBER(m) ((m) & 63)

#include "buffers.pml"

/* not in buffers */
bool fd[2];	/* the eventfds: written, not read */
byte through[2]; /* messages of a lane whose slots are the sender's again */
byte got[2];	/* posts and requests that came to a shard */
byte unanswered[2];
bool over[2];

#define HAS_ALL_COME                                                     \
	(!STOPS && got[0] == N1 && got[1] == N0 && unanswered[0] == 0 && \
	 unanswered[1] == 0)

/* ------------------------------------------------------------- sending --- */

/* A word of a lane. What a stop is about is the order of phases: there the
 * lanes have no buffers. */
inline store(w, v, release)
{
#if STOPS
	mem[w] = v
#else
	put(me, w, v, release)
#endif
}

inline lane_put(m)
{
	assert(next - through[me] < RING);
	store(AT_SLOT(me, next), m, false);
	atomic { next++; touched = true }
}

inline publish()
{
	store(TAIL + me, next, true)
}

/* With EARLY=1 messages are published at any time before the fence: more of them
 * than wait for a turn's end, or sent outside of turns. */
inline publish_early()
{
#ifdef EARLY
	if
	:: publish()
	:: true
	fi
#else
	skip
#endif
}

inline want(yes)
{
	if
	:: wants != yes ->
		wants = yes;
#ifndef M_NO_WANTS
		store(WANTS + me, yes, false)
#endif
	:: else
	fi
}

/* A function sends what it can. */
inline send()
{
	if
	:: sent < TO_SEND(me) && phase == RUNS ->
		if
		:: next - head_seen >= LIMIT -> head_seen = LOAD(me, HEAD + me)
		:: else
		fi;
		if
		:: next - head_seen >= LIMIT -> want(true)
		:: next - head_seen < LIMIT ->
			want(false);
			if
			:: true ->
				sent++;
				lane_put(POST + sent);
				did = true
#ifdef M_NO_CREDIT
			:: true ->
#else
			:: unanswered[me] < L ->
#endif
				sent++;
				unanswered[me]++;
				lane_put(REQUEST + sent);
				did = true
			fi;
			publish_early()
		fi
	:: sent == TO_SEND(me) || phase != RUNS -> want(false)
	fi
}

/* ---------------------------------------------------------------- rings --- */

#ifdef M_RUNG_FOR_EVER
#define NOT_RUNG (rung == 0)
#else
#define NOT_RUNG (word != rung)
#endif

inline ring_you()
{
	word = LOAD(me, ASLEEP + you);
	if
	:: word % 2 == 1 && NOT_RUNG && (touched || LOAD(me, WANTS + you)) ->
		rung = word;
		fd[you] = true
	:: else
	fi;
	word = 0
}

inline hand_over()
{
	if
	:: touched || drained ->
		if
		:: touched -> publish()
		:: else
		fi;
#ifndef M_NO_FENCE_SEND
		FENCE(me);
#endif
		ring_you();
		atomic { touched = false; drained = false }
	:: else
	fi
}

/* --------------------------------------------------------------- taking --- */

inline take()
{
	tail_seen = LOAD(me, TAIL + you);
	atomic { took = head != tail_seen; answers = 0 };
	do
	:: head != tail_seen ->
		message = LOAD(me, AT_SLOT(you, head));
		if
		:: KIND(message) == ANSWER ->
			assert(NUMBER(message) == answered + 1);
			atomic { answered++; answers++ };
#ifdef M_CREDIT_EARLY
			unanswered[me]--;
#endif
			send()
		:: KIND(message) == REQUEST ->
			assert(NUMBER(message) == got[me] + 1);
			got[me]++;
			owed++;
#ifndef M_QUIET_IS_THE_END
			assert(phase < DRAINED);
#endif
			lane_put(ANSWER + owed);
			publish_early()
		:: KIND(message) == POST ->
			assert(NUMBER(message) == got[me] + 1);
			got[me]++;
			send()
		fi;
		atomic { message = 0; head++ }
	:: head == tail_seen -> break
	od;
	if
	:: took ->
		atomic { through[you] = head; drained = true; did = true };
		store(HEAD + you, head, true);
#ifndef M_CREDIT_EARLY
		unanswered[me] = unanswered[me] - answers;
#endif
		answers = 0
	:: else
	fi
}

/* ------------------------------------------------------------- stopping --- */

inline enter_phase(p)
{
	phase = p;
	did = true;
	put(me, PHASE + me, phase, true);
	FENCE(me)
}

inline stop_step()
{
	if
	:: LOAD(me, STOP) && phase == RUNS -> enter_phase(QUIET)
#ifdef M_DRAINED_ALONE
	:: phase == QUIET && !took -> enter_phase(DRAINED)
#else
	:: phase == QUIET && others >= QUIET && !took -> enter_phase(DRAINED)
#endif
#ifdef M_QUIET_IS_THE_END
	:: phase == DRAINED -> enter_phase(ENDED)
#else
	:: phase == DRAINED && others >= DRAINED && !took -> enter_phase(ENDED)
#endif
	:: else
	fi;
#ifndef M_LOOK_BEHIND
	/* for the look of the next turn */
	others = LOAD(me, PHASE + you)
#endif
}

/* ------------------------------------------------------------- sleeping --- */

inline look()
{
	work = LOAD(me, TAIL + you) != head;
#ifndef M_NO_ROOM_LOOK
	if
	:: wants && next - LOAD(me, HEAD + me) < LIMIT -> work = true
	:: else
	fi;
#endif
	skip
}

inline go_to_sleep()
{
#ifdef M_LOOK_FIRST
	look();
#endif
#ifndef M_READ_LAST
	fd[me] = false;
#endif
	asleep++;
	put(me, ASLEEP + me, asleep, true);
#ifndef M_NO_FENCE_SLEEP
	FENCE(me);
#endif
#ifndef M_LOOK_FIRST
	look();
#endif
#ifdef M_READ_LAST
	fd[me] = false;
#endif
	if
	:: !work ->
		/* a system call; and without a stop this is where it ends */
		FENCE(me);
		(fd[me] || HAS_ALL_COME)
	:: else
	fi;
	work = false;
	asleep++;
	put(me, ASLEEP + me, asleep, true)
}

proctype shard(byte me)
{
	byte you = 1 - me;
	byte next, head_seen, sent; /* the lane to the other */
	byte head, tail_seen;	    /* the lane from it */
	byte answered, answers, owed, message;
	byte asleep, rung, word;
	byte phase, others;
	bool touched, drained, took, did, wants, work;

	do
	:: phase == ENDED || HAS_ALL_COME -> break
	:: phase != ENDED && !HAS_ALL_COME ->
		did = false;
#ifdef M_LOOK_BEHIND
		take();
		others = LOAD(me, PHASE + you);
#else
		take();
#endif
		send();
		hand_over();
#if STOPS
		stop_step();
#endif
#if !STOPS
		if
		:: !did -> go_to_sleep()
		:: else
		fi
#endif
	od;
	FENCE(me);
	over[me] = true
}

#if STOPS
/* At any time. */
proctype stopper()
{
	put(STOPPER, STOP, true, true);
	FENCE(STOPPER);
	over[0] && over[1];
	assert(mem[TAIL] == mem[HEAD] && mem[TAIL + 1] == mem[HEAD + 1]);
	assert(unanswered[0] == 0 && unanswered[1] == 0)
}
#endif

init {
	atomic {
		run buffer(0);
		run buffer(1);
		run shard(0);
		run shard(1);
#if STOPS
		run buffer(STOPPER);
		run stopper()
#endif
	}
}
