/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Arming a queue's fd, and the rings that a poller leaves out, as in
 * doc/protocols/lane.md, queue/poll.c and queue/lane.c: a thread FIRST
 * runs a poller of manual mode and takes from the queue into which it
 * delivers, in any order of its four calls, and sleeps on both fds. At any
 * moment it may leave the queue to the thread SECOND, and the thread RUNNER
 * may take the poller over. A thread PUSHER pushes one message.
 *
 * Stores go through buffers, see buffers.pml.
 *
 * Wanted: everything is taken. A thread that sleeps on an item is a deadlock,
 * an invalid end state.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef N
#define N 2 /* completions */
#endif

/* threads with a store buffer */
#define FIRST	0
#define SECOND	1
#define RUNNER	2
#define PUSHER	3
#define THREADS 4
#define DEPTH	3

/* words in memory */
#define TAIL	 0
#define HEAD	 1
#define MESSAGES 2
#define WORD	 3 /* of the queue's bell */
#define ARMED_BY 4 /* a thread + 1; 0: none */
#define WORDS	 5

#define AWAKE 0
#define ON_FD 1

#include "buffers.pml"

/* not in buffers: handed over by stronger means */
byte cq;	   /* completions that wait in the CQ */
bool fd;	   /* the queue's: readable */
byte consumer = FIRST;
byte runner = FIRST;
bool inside;	   /* somebody is in a call on the poller */
byte tail;	   /* the poller's, of the thread inside it */
bool left_out;	   /* likewise: the lane is on its list */
byte head;	   /* the consumer's */
byte heard;	   /* likewise: messages taken */

#define OVER (head == N && heard == 1)

inline ring(t)
{
	exchange(t, WORD, AWAKE, rung);
	if
	:: rung == ON_FD -> fd = true
	:: else
	fi;
	rung = 0
}

/* --------------------------------------------------------- the poller --- */

#ifdef M_LEAVE_OUT_ANY
#define MAY_LEAVE_OUT(t) true
#else
#define MAY_LEAVE_OUT(t) (LOAD(t, ARMED_BY) == t + 1)
#endif

/* One completion, if there is one. */
inline round(t)
{
	if
	:: atomic { cq > 0 -> cq--; tail++; done = true };
		put(t, TAIL, tail, true);
#ifndef M_NO_FENCE_PUBLISH
		FENCE(t);
#endif
		if
		:: LOAD(t, WORD) == ON_FD ->
			if
			:: MAY_LEAVE_OUT(t) -> left_out = true
			:: else -> ring(t)
			fi
		:: else
		fi
	:: cq == 0
	fi
}

/* False: work. */
inline poller_arm(t)
{
	done = false;
	round(t);
	armed = !done;
	done = false;
#ifndef M_NO_REFUSAL
	if
	:: left_out && LOAD(t, HEAD) == tail -> left_out = false
	:: left_out && LOAD(t, HEAD) != tail && LOAD(t, ARMED_BY) == t + 1 ->
		armed = false
	:: left_out && LOAD(t, HEAD) != tail && LOAD(t, ARMED_BY) != t + 1 ->
		left_out = false;
		ring(t)
	:: else
	fi
#endif
}

/* From now on it arms nothing, and is of no help to a sleeper. */
inline run_busily(t)
{
	do
	:: atomic { runner == t && cq > 0 && (t == RUNNER || !inside) ->
		inside = true };
		done = false;
		round(t);
		done = false;
		atomic { FENCE(t) -> inside = t == RUNNER }
	:: atomic { runner != t || OVER -> break }
	od
}

/* ------------------------------------------------------- the consumer --- */

#define SOMETHING(t) (LOAD(t, TAIL) != head || LOAD(t, MESSAGES) != heard)

/* One of what there is. */
inline poll(t)
{
#ifdef M_REFUSED_UNTIL_A_POLL
	left_out = false;
#endif
	if
	:: LOAD(t, TAIL) != head -> head++; put(t, HEAD, head, true)
	:: LOAD(t, MESSAGES) != heard -> heard++
	:: !SOMETHING(t)
	fi
}

inline queue_arm(t)
{
	if
	:: SOMETHING(t) -> armed = false
	:: !SOMETHING(t) ->
#ifndef M_READ_LAST
		fd = false;
#endif
#ifndef M_ARMED_BY_LATE
		put(t, ARMED_BY, t + 1, false);
#endif
		put(t, WORD, ON_FD, true);
#ifndef M_NO_FENCE_ARM
		FENCE(t);
#endif
#ifdef M_NO_LOOK_AGAIN
		armed = true;
#else
		armed = !SOMETHING(t);
#endif
#ifdef M_ARMED_BY_LATE
		put(t, ARMED_BY, t + 1, false);
#endif
#ifdef M_READ_LAST
		fd = false;
#endif
		if
		:: !armed -> ring(t)
		:: armed
		fi
	fi
}

/* -------------------------------------------------------- the threads --- */

proctype first()
{
	bool armed;
	bool done;
	byte rung;
	bool queue_armed; /* it answered 0 */
	bool poller_armed;

	do
	:: atomic { OVER -> break }
	:: atomic { consumer != FIRST && runner != FIRST && !OVER -> break }
	:: atomic { runner == FIRST && !inside -> inside = true };
		done = false;
		round(FIRST);
		atomic { done = false; poller_armed = false };
		atomic { FENCE(FIRST) -> inside = false }
	:: atomic { runner == FIRST && !inside -> inside = true };
		poller_arm(FIRST);
		atomic { poller_armed = armed; armed = false };
		atomic { FENCE(FIRST) -> inside = false }
	:: consumer == FIRST -> poll(FIRST)
	:: consumer == FIRST ->
		queue_arm(FIRST);
		atomic { queue_armed = armed; armed = false }
	/* it stops to take from the queue */
	:: atomic { consumer == FIRST && FENCE(FIRST) -> consumer = SECOND }
	/* it runs the poller and never arms it again */
	:: consumer != FIRST -> run_busily(FIRST); break
	/* it sleeps: a system call */
	:: atomic { FENCE(FIRST) && (consumer != FIRST || queue_armed) &&
		(runner != FIRST || poller_armed) && !OVER };
		(consumer == FIRST && fd) || (runner == FIRST && cq > 0) ||
		(consumer != FIRST && runner != FIRST) || OVER
	od
}

proctype second()
{
	bool armed;
	byte rung;

	consumer == SECOND || OVER;
	do
	:: atomic { OVER -> break }
	:: !OVER -> poll(SECOND)
	:: !OVER ->
		queue_arm(SECOND);
		if
		:: armed -> FENCE(SECOND); fd || OVER
		:: !armed
		fi;
		armed = false
	od
}

proctype another_runner()
{
	bool armed;
	bool done;
	byte rung;

	/* it takes the poller over, sooner or later or never */
	if
	:: goto stays
	:: true
	fi;
	if
	:: atomic { !inside -> runner = RUNNER; inside = true }
	:: OVER -> goto stays
	fi;
#ifndef M_TAKEN_OVER_SILENTLY
	if
	:: left_out -> left_out = false; FENCE(RUNNER); ring(RUNNER)
	:: else
	fi;
#endif
	do
	:: atomic { OVER -> break }
	:: !OVER -> run_busily(RUNNER); break
	:: !OVER -> done = false; round(RUNNER); done = false
	:: !OVER ->
		poller_arm(RUNNER);
		if
		:: armed -> FENCE(RUNNER); cq > 0 || OVER
		:: !armed
		fi;
		armed = false
	od;
stays:	skip
}

proctype pusher()
{
	byte rung;

	put(PUSHER, MESSAGES, 1, true);
	FENCE(PUSHER);
	if
	:: LOAD(PUSHER, WORD) == ON_FD -> ring(PUSHER)
	:: else
	fi
}

proctype device()
{
	byte made;

	do
	:: made < N -> atomic { cq++; made++ }
	:: else -> break
	od
}

init {
	atomic {
		run buffer(FIRST);
		run buffer(SECOND);
		run buffer(RUNNER);
		run buffer(PUSHER);
		run first();
		run second();
		run another_runner();
		run pusher();
		run device()
	}
}
