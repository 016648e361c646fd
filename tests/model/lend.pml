/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A poller of adaptive mode whose thread lends the poller to its consumers, as
 * in doc/protocols/lend.md and in poller/loop.c and queue/queue.c, for every
 * interleaving of the thread, two consumers with a queue each, a device that
 * completes for both, and another thread, which sends a message and later stops
 * the poller.
 *
 * A consumer takes, runs rounds of the poller while the poller is lent, sleeps,
 * or goes away: it computes for ever, asleep in no call. The time after which
 * the thread takes the poller back is not here: nothing that is wanted here may
 * depend on it. A sleep with the CQs armed is one step, see channel.pml; to
 * publish an item and to ring its consumer are one step, see lane.pml; for turns
 * see owner.pml.
 *
 * Wanted: one thread is inside at a time; a consumer runs no function; what
 * completes for a consumer that did not go away is taken, the functions run and
 * the message is handled, also if the other consumer went away.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef N
#define N 1 /* completions, at most: each of a queue or of a function */
#endif
#ifndef VISITS
#define VISITS 1 /* rounds that the first consumer runs in a wait, at most */
#endif

#ifndef MESSAGE
#define MESSAGE 1 /* there is one */
#endif

/* threads with a store buffer */
#define POLLER	2 /* 0 and 1: the consumers */
#define THREADS 3
#ifndef DEPTH
#define DEPTH 2
#endif

/* words in memory */
#define INSIDE	0
#define BELL	1
#define ASLEEP	2 /* and 3: of each consumer */
#define INBOX	4
#define STOP	5
#define LENT	6
#define WORDS	7

#define NOBODY 0
#define THREAD 1

#include "buffers.pml"

byte cq[3];   /* completions that wait: of the queues, of functions */
byte lane[2]; /* items published */
byte left[3]; /* polled by a consumer, for the thread */
byte done;
byte came[3];
byte got[3];
byte inside;   /* threads */
bool is_armed; /* the CQ */
bool event;    /* of the CQ, unread */
bool rung;     /* the poller's eventfd */
bool woken[2]; /* the consumer's futex */
bool away[2];
bool handled; /* the message */
bool over;    /* the poller has ended */

/* --------------------------------------------------------- the device --- */

#define COMPLETE(i)                      \
	:: d_step {                      \
		done < N ->              \
		done++;                  \
		cq[i]++;                 \
		came[i]++;               \
		event = event || is_armed; \
		is_armed = false         \
	}

proctype device()
{
	do
	COMPLETE(0)
	COMPLETE(1)
	COMPLETE(2)
	:: break
	od;
	done = N
}

/* -------------------------------------------------------------- rounds --- */

#define HAS_WORK (cq[0] + cq[1] + cq[2] > 0)

#define GO_IN()	 d_step { inside++; assert(inside == 1) }
#define GO_OUT() d_step { inside-- }

/* Publishes and rings. */
#define DELIVER(i, from)                     \
	d_step {                             \
		lane[i] = lane[i] + from[i]; \
		woken[i] = woken[i] || from[i] > 0; \
		from[i] = 0                  \
	}

inline ring_fenced()
{
	d_step { rung = rung || mem[BELL]; mem[BELL] = false }
}

inline ring_poller(t)
{
	FENCE(t);
	if
	:: LOAD(t, BELL) ->
		d_step { FENCE(t) -> rung = rung || mem[BELL]; mem[BELL] = false }
	:: else
	fi
}

/* A consumer: what leads to a queue, up to the first that does not. */
inline deliver_usual()
{
	if
	:: left[0] + left[1] + left[2] == 0 && HAS_WORK ->
		if
		:: cq[2] == 0 -> DELIVER(0, cq); DELIVER(1, cq)
		/* the function's is the first, or behind others */
		:: cq[2] > 0 && cq[0] > 0 -> DELIVER(0, cq)
		:: cq[2] > 0 && cq[1] > 0 -> DELIVER(1, cq)
		:: cq[2] > 0
		fi;
		d_step {
			left[0] = cq[0];
			left[1] = cq[1];
			left[2] = cq[2];
			cq[0] = 0;
			cq[1] = 0;
			cq[2] = 0
		}
	:: else
	fi
}

/* rt_owner_serve(): arms is false, or the CQ is armed before. */
inline serve(arms)
{
	atomic {
		if
#ifdef M_NO_TURN
		:: LOAD(me, LENT) -> is_in = true
#else
		:: LOAD(me, LENT) && FENCE(me) && mem[INSIDE] == NOBODY ->
			mem[INSIDE] = THREAD;
			is_in = true
#endif
		:: !LOAD(me, LENT) || LOAD(me, INSIDE) != NOBODY ->
			is_in = false
		fi
	};
	if
	:: is_in ->
		GO_IN();
		is_armed = is_armed || arms;
		deliver_usual();
#ifndef M_LEFT_SILENTLY
		if
		:: left[0] + left[1] + left[2] > 0 -> ring_poller(me)
		:: else
		fi;
#endif
		GO_OUT();
		put(me, INSIDE, NOBODY, true);
		is_in = false
	:: else
	fi
}

/* ------------------------------------------------------- the consumers --- */

#ifdef M_NOT_ARMED
#define ARMS false
#else
#define ARMS true
#endif

inline sleep()
{
	woken[me] = false;
#ifndef M_SLEEPS_UNTOLD
	put(me, ASLEEP + me, true, false);
#endif
#ifndef M_NO_FENCE_SLEEP
	FENCE(me);
#endif
	if
	:: lane[me] > 0 || over
	:: else ->
#ifndef M_SLEEPS_UNSERVED
		serve(ARMS);
#endif
#ifdef M_SLEEPS_UNTOLD
		put(me, ASLEEP + me, true, false);
#endif
		/* a system call */
		FENCE(me);
		woken[me] || lane[me] > 0 || over
	fi;
	put(me, ASLEEP + me, false, false)
}

proctype consumer(byte me)
{
	byte i;
	bool is_in;

	do
	:: over -> break
	/* away, but not for ever asleep: its items stay */
	:: me == 0 -> away[me] = true; break
	:: lane[me] > 0 ->
		d_step { got[me] = got[me] + lane[me]; lane[me] = 0 }
	:: lane[me] == 0 && !over ->
		i = 0;
		do
		:: me == 0 && i < VISITS && lane[me] == 0 -> i++; serve(false)
		:: break
		od;
		if
		:: lane[me] == 0 -> sleep()
		:: else
		fi
	od
}

/* ---------------------------------------------------------- the thread --- */

inline run_inbox()
{
	if
	:: !handled && LOAD(POLLER, INBOX) -> handled = true
	:: else
	fi
}

inline round()
{
	DELIVER(0, cq);
	DELIVER(1, cq);
	d_step { got[2] = got[2] + cq[2]; cq[2] = 0 };
	run_inbox()
}

inline take_over()
{
#ifdef M_LEFT_FORGOTTEN
	skip
#else
	DELIVER(0, left);
	DELIVER(1, left);
	d_step { got[2] = got[2] + left[2]; left[2] = 0 }
#endif
}

#ifdef M_ASLEEP_NOT_ASKED
#define NOBODY_SLEEPS true
#else
#define NOBODY_SLEEPS (!LOAD(POLLER, ASLEEP) && !LOAD(POLLER, ASLEEP + 1))
#endif
#ifdef M_NO_INBOX_LOOK
#define IS_CALM true
#else
#define IS_CALM ((handled || !LOAD(POLLER, INBOX)) && !LOAD(POLLER, STOP))
#endif

inline lend()
{
	GO_OUT();
#ifndef M_LENT_LATE
	put(POLLER, LENT, true, false);
#endif
	put(POLLER, INSIDE, NOBODY, true);
	put(POLLER, BELL, true, true);
#ifndef M_NO_FENCE_LEND
	FENCE(POLLER);
#endif
	if
	:: NOBODY_SLEEPS ->
		if
		:: IS_CALM ->
#ifdef M_LENT_LATE
			put(POLLER, LENT, true, false);
#endif
			/* a system call */
			FENCE(POLLER);
			rung || event
		:: !(IS_CALM)
		fi
	:: !(NOBODY_SLEEPS)
	fi;
	atomic { FENCE(POLLER) && mem[INSIDE] == NOBODY -> mem[INSIDE] = THREAD };
	GO_IN();
	put(POLLER, LENT, false, false);
	d_step { FENCE(POLLER) -> mem[BELL] = false; rung = false; event = false };
	take_over();
	assert(left[0] + left[1] + left[2] == 0)
}

proctype poller()
{
	GO_IN();
	do
	:: round();
		if
		:: HAS_WORK
		:: !HAS_WORK && LOAD(POLLER, STOP) -> break
		:: !HAS_WORK && !LOAD(POLLER, STOP) ->
			if
			:: lend()
			/* a sleep with the CQ armed, inside */
			:: HAS_WORK || LOAD(POLLER, STOP) ||
				(!handled && LOAD(POLLER, INBOX))
			fi
		fi
	od;
	over = true
}

/* --------------------------------------------------- another thread --- */

#define IS_SERVED(i) (away[i] || got[i] == came[i])

proctype other()
{
	if
	:: MESSAGE ->
		mem[INBOX] = true;
		ring_fenced()
	:: !MESSAGE -> handled = true
	fi;
	done == N && IS_SERVED(0) && IS_SERVED(1) && handled &&
		left[0] + left[1] + left[2] == 0;
	mem[STOP] = true;
	ring_fenced()
}

init
{
	atomic {
		mem[INSIDE] = THREAD;
		run buffer(0);
		run buffer(1);
		run buffer(POLLER);
		run device();
		run consumer(0);
		run consumer(1);
		run poller();
		run other()
	}
}
