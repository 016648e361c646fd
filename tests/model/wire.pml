/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A link of the loopback device, as in doc/protocols/wire.md: two processes, each
 * with one thread that asks, answers, drains and sleeps; four rings, of RQ
 * requests and of AN answers; requests that are staged and published together,
 * credits, room that is wanted, bells. Two of three requests may have an answer,
 * and need not have it, as when they are dropped. With KILLS=1 process 1 is
 * killed at any step.
 *
 * Stores go through buffers of DEPTH stores, see buffers.pml; those of a process
 * that was killed still leave, and its end of file comes behind them.
 *
 * Wanted: every record once, whole and in order; an answer finds room; nobody sleeps
 * on a record or on room; a survivor takes all that was published, and ends. A
 * lost wake-up is a deadlock, which the checker reports as an invalid end state.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* what shows with a death, in one ring, or with stores that overtake */
#if defined(M_DEAD_IS_DEAD) || defined(M_NO_END_OF_FILE)
#define KILLS 1
#endif
#if defined(M_DEAD_IS_DEAD) && !defined(N0)
#define N0 0
#define N1 1
#endif
#if KILLS && !defined(N0)
#define N0 1
#define N1 1
#endif
#if defined(M_TAIL_RELAXED)
#define DEPTH 2
#define N0    1
#define N1    0
#endif
#if defined(M_WANT_KEPT)
#define N0 4
#define N1 0
#endif
#if defined(M_ANSWERS_WAIT)
#define N0 2
#define N1 2
#endif
#if defined(M_ASKS_ONCE)
#define N0   3
#define FREE 1
#define ASKS 0
#endif

/* requests that each process makes */
#ifndef N0
#define N0 2
#endif
#ifndef N1
#define N1 0
#endif
#define TO_SEND(i) ((i) == 0 -> N0 : N1)
#ifndef KILLS
#define KILLS 0
#endif
/* a process that goes to sleep asks for another bell if it wants room, and looks
 * at the head too: as the device does */
#ifndef ASKS
#define ASKS 0
#endif

#define RQ 2
#define AN 1

/* may request number i have an answer? FREE, and each third one, has none */
#ifndef FREE
#define FREE 3
#endif
#define OWES(i) ((i) % 3 != FREE % 3)

/* threads with a store buffer: processes 0 and 1 */
#define THREADS 2
#ifndef DEPTH
#define DEPTH 1
#endif

/* words in memory; of each two, that of process i is the one that i writes */
#define REQ_TAIL 0
#define ANS_TAIL 2
#define REQ_HEAD 4 /* of the requests to i */
#define ANS_HEAD 6 /* of the answers to i */
#define SLEEP	 8
#define WANT	 10
#define REQ	 12		  /* RQ for each */
#define ANSWER	 (REQ + 2 * RQ) /* AN for each */
#define WORDS	 (ANSWER + 2 * AN)

#define REQ_SLOT(i, n) (REQ + (i) * RQ + (n) % RQ)
#define ANS_SLOT(i, n) (ANSWER + (i) * AN + (n) % AN)

#include "buffers.pml"

/* not in buffers */
bool fd[2];	     /* the sockets: a bell is there */
byte got[2];	     /* requests that came to a process */
byte answers_out[2]; /* to a process, made and not taken */
bool killed;	     /* process 1 makes no step any more */
bool end_of_file;    /* and process 0 can see it */

#define HAS_ALL_COME                                                      \
	(got[0] == N1 && got[1] == N0 && answers_out[0] == 0 && \
	 answers_out[1] == 0)

/* --------------------------------------------------------------- asking --- */

#ifdef M_STAGED_NOT_COUNTED
#define COUNTED shown
#else
#define COUNTED sent
#endif
#define ROOM (COUNTED - covered < RQ)

/* Answers that requests behind what is covered may still have, and its own. */
inline count_owed()
{
	d_step
	{
		owed = 0;
		i = covered + 1;
		do
		:: i <= COUNTED + 1 ->
			owed = owed + OWES(i);
			i++
		:: else -> break
		od;
		i = 0
	}
}

#if defined(M_NO_CREDIT) || defined(M_ANSWERS_WAIT)
#define CREDIT true
#else
#define CREDIT (owed <= AN)
#endif

/* Some requests, or all that find room, are staged; then they go to the ring,
 * and one tail publishes them. */
inline send()
{
	do
	:: sent < TO_SEND(me) && want % 2 == 0 ->
		count_owed();
		if
		:: ROOM && CREDIT ->
			atomic { owed = 0; did = true; sent++ }
		:: else ->
			atomic { owed = 0; want++ };
#ifndef M_NO_WANT
			put(me, WANT + me, want, true);
#endif
#ifndef M_WANT_NO_LOOK
			did = true /* a drain is owed */
#endif
		fi
	:: sent == TO_SEND(me) || want % 2 == 1 || sent > shown -> break
	od;
#ifdef M_STAGED_WAITS
	if
	:: want % 2 == 0 -> publish()
	:: else
	fi;
#else
	publish();
#endif
#ifndef M_NO_FENCE_WANT
	if
	:: want % 2 == 1 -> FENCE(me)
	:: else
	fi
#else
	skip
#endif
}

inline publish()
{
	if
	:: shown < sent ->
		do
		:: shown < sent ->
			atomic {
				shown++;
				touched = true;
				put(me, REQ_SLOT(me, shown - 1), shown, false)
			}
		:: shown == sent -> break
		od;
#ifdef M_TAIL_RELAXED
		put(me, REQ_TAIL + me, shown, false)
#else
		put(me, REQ_TAIL + me, shown, true)
#endif
	:: else
	fi
}

/* ------------------------------------------------------------- draining --- */

/* The answers to this process; and what is covered by that. */
inline take_answers()
{
#ifdef M_TAIL_BEFORE_HEAD
	tail = LOAD(me, ANS_TAIL + you);
	behind = LOAD(me, REQ_HEAD + you);
#else
	behind = LOAD(me, REQ_HEAD + you);
	tail = LOAD(me, ANS_TAIL + you);
#endif
#ifdef M_CREDIT_BEFORE_HEAD
	cover();
#endif
	if
	:: ans_head != tail ->
		do
		:: atomic {
			ans_head != tail ->
				record = LOAD(me, ANS_SLOT(you, ans_head));
				/* whole, and of this lap */
				assert(record > answered && record <= sent);
				answered = record;
				record = 0;
				ans_head++;
				answers_out[me]--;
				did = true
		   }
		:: ans_head == tail -> break
		od;
		put(me, ANS_HEAD + me, ans_head, true)
	:: else
	fi;
#ifndef M_CREDIT_BEFORE_HEAD
	cover();
#endif
	atomic { tail = 0; behind = 0 }
}

inline cover()
{
	if
	:: behind != covered ->
		covered = behind;
		assert(covered <= shown);
		if
		:: want % 2 == 1 ->
#ifdef M_WANT_KEPT
			want--; /* and the next odd value is the same one */
#else
			want++;
#endif
			put(me, WANT + me, want, true);
			did = true
		:: else
		fi
	:: else
	fi;
#ifdef M_CREDIT_BEFORE_HEAD
	send()
#else
	skip
#endif
}

/* The answer to the request number `record`. */
inline answer()
{
	if
	:: ans_next - ans_room == AN -> ans_room = LOAD(me, ANS_HEAD + you)
	:: else
	fi;
#ifdef M_ANSWERS_WAIT
	ans_next - LOAD(me, ANS_HEAD + you) < AN;
	ans_room = LOAD(me, ANS_HEAD + you);
#else
	assert(ans_next - ans_room < AN);
#endif
	put(me, ANS_SLOT(me, ans_next), record, false);
	atomic { ans_next++; answers_out[you]++; touched = true };
#ifndef M_HEAD_BEFORE_ANSWER
	put(me, ANS_TAIL + me, ans_next, true)
#endif
}

/* Some of the requests to this process. */
inline take_requests()
{
	tail = LOAD(me, REQ_TAIL + you);
	do
	:: req_head != tail ->
		atomic {
			record = LOAD(me, REQ_SLOT(you, req_head));
			assert(record == req_head + 1)
		};
		if
		:: OWES(record) -> answer()
		:: true /* it is dropped */
		fi;
		atomic {
			record = 0;
			req_head++;
			got[me]++;
			moved = true;
			did = true
		}
	:: req_head == tail -> break
	od;
	if
	:: moved ->
		put(me, REQ_HEAD + me, req_head, true);
#ifdef M_HEAD_BEFORE_ANSWER
		put(me, ANS_TAIL + me, ans_next, true)
#endif
	:: else
	fi;
	tail = 0
}

/* --------------------------------------------------------------- bells --- */

#ifdef M_RUNG_FOR_EVER
#define NOT_RUNG (rung == 0)
#else
#define NOT_RUNG (word != rung)
#endif

inline ring_you()
{
	if
	:: touched || moved ->
#ifndef M_NO_FENCE_RING
		FENCE(me);
#endif
		atomic {
			word = LOAD(me, SLEEP + you);
			if
			:: touched && word % 2 == 1 && NOT_RUNG ->
				rung = word;
				fd[you] = true
			:: else
			fi
		};
		atomic {
			word = LOAD(me, WANT + you);
			if
			:: moved && word % 2 == 1 && word != rung_want ->
				rung_want = word;
				fd[you] = true
			:: else
			fi;
			touched = false;
			moved = false;
			word = 0
		}
	:: else
	fi
}

/* ------------------------------------------------------------- sleeping --- */

inline go_to_sleep()
{
#ifdef M_LOOK_FIRST
	work = LOAD(me, REQ_TAIL + you) != req_head ||
	       LOAD(me, ANS_TAIL + you) != ans_head;
#endif
#if ASKS
	if
	:: want % 2 == 1 ->
		want = want + 2;
		put(me, WANT + me, want, true)
	:: else
	fi;
#endif
	asleep++;
	put(me, SLEEP + me, asleep, true);
#ifndef M_NO_FENCE_SLEEP
	FENCE(me);
#endif
#ifndef M_LOOK_FIRST
	work = LOAD(me, REQ_TAIL + you) != req_head ||
	       LOAD(me, ANS_TAIL + you) != ans_head;
#endif
#if ASKS
	work = work || LOAD(me, REQ_HEAD + you) != covered;
#endif
#ifdef M_READ_LAST
	fd[me] = false;
#endif
	if
	:: !work ->
		FENCE(me); /* a system call */
#ifdef M_NO_END_OF_FILE
		(fd[me] || HAS_ALL_COME)
#else
		(fd[me] || end_of_file || HAS_ALL_COME)
#endif
	:: else
	fi;
	work = false;
	asleep++;
	put(me, SLEEP + me, asleep, true);
#ifndef M_READ_LAST
	fd[me] = false
#endif
}

proctype side(byte me)
{
	byte you = 1 - me;
	byte sent, shown, covered, want, owed, i; /* requests from here */
	byte req_head, tail, record;	   /* requests to here */
	byte ans_next, ans_room;	   /* answers from here */
	byte ans_head, answered, behind;   /* answers to here */
	byte asleep, rung, rung_want, word;
	bool did, touched, moved, work, last;

#if KILLS
	{
#endif
	do
	:: last || HAS_ALL_COME -> break
	:: !last && !HAS_ALL_COME ->
		did = false;
		/* seen before the tails are read */
		last = end_of_file;
#ifdef M_DEAD_IS_DEAD
		if
		:: last -> break
		:: else
		fi;
#endif
		take_answers();
		take_requests();
		if
		:: !last -> send()
		:: else
		fi;
		ring_you();
		if
		:: !did && !last -> go_to_sleep()
		:: did && last -> last = false
		:: else
		fi
	od;
#if KILLS
	FENCE(me);
	/* all that the dead one published, but for what nobody may wait for */
	assert(!end_of_file || HAS_ALL_COME ||
	       (req_head == mem[REQ_TAIL + you] &&
		ans_head == mem[ANS_TAIL + you]))
	} unless { killed && me == 1 }
#endif
}

#if KILLS
proctype killer()
{
	killed = true;
	FENCE(1);
	end_of_file = true
}
#endif

init {
	atomic {
		run buffer(0);
		run buffer(1);
		run side(0);
		run side(1);
#if KILLS
		run killer()
#endif
	}
}
