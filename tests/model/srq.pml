/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A shared receive queue, as in doc/protocols/srq.md and in srq_post.c and
 * srq_poll.c, for every interleaving of the poller, the device and its peers,
 * the control and the event thread, and posters: with FN=0 one that posts when
 * it is told, SRQ_LIMIT or WRITABLE, and another one; with FN=1 the refill
 * function, on the poller, and another poster. A lock orders all, and so do
 * a message, and the device between a post and its completion.
 *
 * The peers send N messages, as soon as there is a receive. The device may
 * refuse a post once. Whether it has a limit event is its business with FN=1;
 * with FN=0 nobody asks it. With FAILS=1 it may report an error of the SRQ, and
 * one of its own: then it takes no more messages; a connection of the SRQ is
 * being made meanwhile.
 *
 * Wanted: every message finds a receive in the end, though nobody but the
 * poller ever tells to post; SRQ_LIMIT each time that LIMIT were out and fewer
 * are; one WRITABLE for each refusal, and none without; no slot given out
 * twice; the poller never counts more back than were out. After an error:
 * SRQ_FAILED, once; a post that follows it is refused, so nobody waits for a
 * WRITABLE that cannot come; no connection is left that was not told.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* what breaks refills is found where there is a function */
#if defined(M_NO_FIRST_REFILL) || defined(M_NO_REFILL_AGAIN) || \
	defined(M_REFILL_BEFORE_RETIRED) || defined(M_NO_LOOK) || \
	defined(M_POSTED_AT_END)
#define FN 1
#endif

/* what breaks its end, where it may fail */
#if defined(M_FAILURE_UNHEARD) || defined(M_FAILED_TWICE) || \
	defined(M_FAILED_AFTER) || defined(M_NO_SECOND_LOOK)
#define FAILS 1
#endif

#ifndef FN
#define FN 0
#endif
#ifndef FAILS
#define FAILS 0
#endif
/* an error at any time is many states: fewer of the rest */
#if FAILS
#define N 1
#define REFUSALS 0
#endif
#ifndef SIZE
#define SIZE 2 /* of the SRQ */
#endif
#ifndef LIMIT
#define LIMIT 2
#endif
#ifndef N
#define N 3 /* messages */
#endif
#ifndef REFUSALS
#define REFUSALS 1
#endif

#define POLLER	0
#define TOLD	1
#define OTHER	2
#define THREADS 3
#define DEPTH	3

/* words in memory */
#define RETIRED	   0
#define POSTED	   1
#define ARMED	   2
#define RETURNED   3 /* and the following: slots given back, as numbers */
#define WORDS	   (RETURNED + SIZE)

#include "buffers.pml"

#ifdef M_RETIRED_RELAXED
#define RELEASED false
#else
#define RELEASED true
#endif

/* What breaks it: SRQ_LIMIT is the device's word. */
#ifdef M_DEVICE_ALONE
#define ASKS_DEVICE true
#else
#define ASKS_DEVICE FN
#endif

/* under the lock */
bool locked;
byte taken;
byte since;

/* read-modify-written: in one order that all agree on */
bool want;
bool look;     /* look_msg is on its way */
bool arm_sent; /* arm_msg is */

/* the device */
byte device;   /* receives in it */
byte sent;     /* messages */
byte cq;
byte refusals = REFUSALS;
bool device_armed;
bool event;

/* the poller */
byte count = SIZE; /* that came back */
bool refill_due = true;
bool refill_again;
bool limit_pending;
bool device_told;

/* what is wanted: LIMIT was out, and SRQ_LIMIT did not come since; after it the
 * poster posts no more */
bool reached;
bool idle;
#define OUT_NOW (device + sent + SIZE - count)

/* the SRQ's queue */
byte limits;
byte writables;
byte failures;

/* an error: the device's events; of fail_msg and told_msg, whether they are on
 * their way */
bool broken;
byte errors;
bool fail_sent;
bool fail_msg;
bool told_msg;
byte told_count;
/* under the runtime's lock */
bool rt_locked;
bool failed;
bool listed;    /* the connection */
bool conn_told;

/* ------------------------------------------------------------ posting --- */

#define ROOM(t)	     (LOAD(t, RETIRED) - taken)
#define LOCK	     atomic { !locked -> locked = true }
#define UNLOCK(t)    atomic { FENCE(t) -> locked = false }
#define LIMIT_OUT(t) (SIZE - ROOM(t) >= LIMIT)

/* One of the slots that came back; its context is ours from here on. */
inline append(t)
{
	d_step {
		assert(LOAD(t, RETURNED + taken % SIZE) == taken + 1);
		taken++;
		n++
	}
}

/* Without a function: is SRQ_LIMIT to follow? */
inline watch(t)
{
	if
	:: !ASKS_DEVICE ->
#ifndef M_NO_FENCE_WATCH
		FENCE(t);
#endif
		if
		:: LOAD(t, ARMED)
		:: else ->
			since = since + n;
			if
#ifdef M_NO_SINCE
			:: LIMIT_OUT(t) ->
#else
			:: since >= LIMIT || LIMIT_OUT(t) ->
#endif
				since = 0;
				put(t, ARMED, 1, true)
			:: else
			fi
		fi
	:: else
	fi
}

inline send_look(t)
{
	atomic { FENCE(t) -> look = true }
}

/* n receives; what the device refuses is taken back, and refused is set. What
 * the refill function is refused is its own affair. */
inline ring(t)
{
#if !defined(M_POSTED_AFTER) && !defined(M_POSTED_AT_END)
	put(t, POSTED, taken, false);
#endif
#ifndef M_WATCH_AFTER
	watch(t);
#endif
	if
	:: atomic { FENCE(t) ->
		device = device + n;
		reached = reached || OUT_NOW >= LIMIT
	}
	:: atomic { FENCE(t) && refusals > 0 && t != POLLER ->
		refusals--;
		taken = taken - n;
		refused = true
	};
		put(t, POSTED, taken, false);
#ifndef M_NO_LOOK
		send_look(t)
#endif
	fi;
#ifdef M_POSTED_AFTER
	put(t, POSTED, taken, false);
#endif
#ifdef M_WATCH_AFTER
	watch(t);
#endif
	n = 0
}

/* With a function: the device shall tell when fewer are out. */
inline arm_if_due(t)
{
	if
	:: ASKS_DEVICE && LIMIT_OUT(t) && !LOAD(t, ARMED) ->
		put(t, ARMED, 1, false);
		atomic { FENCE(t) -> arm_sent = true }
	:: else
	fi
}

/* One call for todo receives, in chunks; what is left of todo was refused, for
 * want of a slot or by the device. */
inline post(t)
{
	refused = false;
	do
	:: todo > 0 && ROOM(t) > 0 && !refused ->
		append(t);
		todo--;
		if
		:: todo > 0 && ROOM(t) > 0 /* one more into the chunk */
		:: true ->
			done = n;
			ring(t);
			if
			:: refused -> todo = todo + done
			:: else
			fi;
			done = 0
		fi
	:: else -> break
	od;
#ifdef M_POSTED_AT_END
	put(t, POSTED, taken, false);
#endif
	arm_if_due(t)
}

/* SRQ_FAILED was taken: a post is refused from here on. */
inline give_up()
{
	LOCK;
	assert(failed);
	UNLOCK(TOLD);
	todo = 0;
	idle = true;
	break
}

/* Posts LIMIT when told, and nothing else; or does not, for others may. */
proctype told()
{
	byte todo;
	byte n;
	byte done;
	bool refused;
	bool before;
	bool gone;

	do
	:: todo == 0 ->
end:		atomic { limits > 0 ->
			limits--;
			if
			:: todo = LIMIT
			:: idle = true
			fi
		}
	:: todo == 0 && failures > 0 -> failures--; give_up()
	:: todo > 0 ->
		LOCK;
		if
		:: failed -> todo = 0; idle = true
		:: else -> post(TOLD)
		fi;
		if
		:: todo > 0 && !refused ->
			/* no slot: says so, and looks again */
			atomic { FENCE(TOLD) -> before = want; want = true };
			if
			:: ROOM(TOLD) == 0 ->
				UNLOCK(TOLD);
end_room:			if
				:: atomic { writables > 0 -> writables-- }
				:: atomic { failures > 0 -> failures-- };
					give_up()
				fi
			:: else ->
				/* taken back; or the poller has it, and tells */
				atomic { FENCE(TOLD) ->
					gone = !before && !want;
					want = want && before
				};
				UNLOCK(TOLD);
				if
#ifndef M_GO_ON_UNREFUSED
				:: gone -> gone = false;
end_told:				if
					:: atomic { writables > 0 -> writables-- }
					:: atomic { failures > 0 -> failures-- };
						give_up()
					fi
#endif
				:: else -> gone = false
				fi
			fi;
			before = false
		:: else -> UNLOCK(TOLD)
		fi
	od
}

/* Posts once, when it likes, if at all, and does not try again. */
proctype other()
{
	byte todo;
	byte n;
	byte done;
	bool refused;

	LOCK;
	if
	:: !failed -> todo = 1
	:: !failed -> todo = SIZE
	:: skip
	fi;
	post(OTHER);
	UNLOCK(OTHER)
}

/* ---------------------------------------------- device, control, event --- */

proctype peers()
{
end:	do
	:: atomic { FAILS && !broken -> broken = true; errors = 2 }
	:: atomic { sent < N && device > 0 && !broken ->
		sent++;
		device--;
		cq++;
		if
		:: device_armed && device < LIMIT ->
			device_armed = false;
			event = true
		:: else
		fi
	}
	:: sent == N && broken == FAILS -> break
	od
}

#define RT_LOCK	  atomic { !rt_locked -> rt_locked = true }
#define RT_UNLOCK rt_locked = false

inline fail()
{
#ifdef M_FAILED_AFTER
	told_msg = true;
#endif
	RT_LOCK;
	failed = true;
	conn_told = listed;
	RT_UNLOCK
#ifndef M_FAILED_AFTER
	; told_msg = true
#endif
}

/* Makes a connection; without the lock while its queue pair is made. */
proctype maker()
{
	RT_LOCK;
	if
	:: failed -> RT_UNLOCK
	:: else ->
		RT_UNLOCK;
		RT_LOCK;
#ifdef M_NO_SECOND_LOOK
		listed = true;
#else
		listed = !failed;
#endif
		RT_UNLOCK
	fi
}

proctype control()
{
end:	do
	:: atomic { arm_sent -> arm_sent = false };
		device_armed = true
	:: atomic { fail_msg -> fail_msg = false };
		fail()
	od
}

/* An event may be lost, for what we know. */
proctype events()
{
end:	do
	:: atomic { event -> event = false; look = true; device_told = true }
#ifndef M_DEVICE_ALONE
	:: atomic { event -> event = false }
#endif
#ifdef M_FAILURE_UNHEARD
	:: atomic { errors > 0 -> errors-- }
#elif defined(M_FAILED_TWICE)
	:: atomic { errors > 0 && !fail_msg -> errors--; fail_msg = true }
#else
	:: atomic { errors > 0 ->
		errors--;
		fail_msg = fail_msg || !fail_sent;
		fail_sent = true
	}
#endif
	od
}

/* ---------------------------------------------------------- the poller --- */

#define OUT (SIZE - count + LOAD(POLLER, POSTED))

inline count_out()
{
	d_step {
		assert(count <= SIZE + LOAD(POLLER, POSTED));
		out = OUT;
		assert(out <= SIZE)
	}
}

inline complete()
{
	atomic { cq > 0 -> cq-- };
	put(POLLER, RETURNED + count % SIZE, count + 1, false);
	count++
}

inline found_low()
{
	limit_pending = true;
	reached = OUT_NOW >= LIMIT
}

inline pass_limit()
{
	count_out();
	if
#ifdef M_DEVICE_ALONE
	:: device_told ->
		device_told = false;
		put(POLLER, ARMED, 0, false);
		found_low()
	:: else
#else
	:: LOAD(POLLER, ARMED) && out < LIMIT ->
		put(POLLER, ARMED, 0, false);
#ifndef M_NO_FENCE_PASS
		FENCE(POLLER);
#endif
#ifdef M_NO_SECOND_COUNT
		found_low()
#else
		atomic {
			count_out();
			if
			:: out < LIMIT -> found_low()
			:: else
			fi
		};
		if
		:: !limit_pending -> put(POLLER, ARMED, 1, false)
		:: else
		fi
#endif
	:: else
#endif
	fi
}

inline answer()
{
	atomic { FENCE(POLLER) ->
		limits = limits + limit_pending;
		limit_pending = false
	};
	count_out();
	if
	:: atomic { FENCE(POLLER) && want && out != SIZE ->
		want = false;
		writables++
	}
	:: atomic { FENCE(POLLER) && !(want && out != SIZE) }
	fi
}

inline refill()
{
	count_out();
	if
	:: out < LIMIT || refill_due ->
		refill_due = false;
		put(POLLER, ARMED, 0, false);
		if
		:: out == SIZE
		:: else ->
			todo = SIZE - out;
			if
			:: atomic { !locked -> locked = true };
				if
				:: failed
				:: else -> post(POLLER)
				fi;
				UNLOCK(POLLER)
			:: atomic { locked ->
#ifndef M_NO_REFILL_AGAIN
				refill_again = true
#endif
			}
			fi;
			todo = 0
		fi
	:: else
	fi
}

/* A round that finds something, to its flush; it sleeps when it finds nothing. */
proctype poller()
{
	byte todo;
	byte n;
	byte done;
	byte out;
	bool refused;

#ifdef M_NO_FIRST_REFILL
	refill_due = false;
#else
	skip;
#endif
end:	do
	:: cq > 0 || look || refill_again || (FN && refill_due) || told_msg ->
		do
		:: cq > 0 -> complete()
		:: break
		od;
		atomic {
			if
			:: look -> look = false; refill_due = true
			:: else
			fi;
			if
			:: refill_again -> refill_again = false; refill_due = true
			:: else
			fi;
			if
			:: told_msg ->
				told_msg = false;
				failures++;
				told_count++
			:: else
			fi
		};
#ifdef M_REFILL_BEFORE_RETIRED
		refill();
#endif
		put(POLLER, RETIRED, count, RELEASED);
		FENCE(POLLER);
		if
		:: FN
#ifndef M_REFILL_BEFORE_RETIRED
			; refill()
#endif
		:: !FN ->
			pass_limit();
			answer()
		fi
	od
}

/* When nothing happens any more. */
active proctype ending()
{
	timeout;
	assert(count == SIZE + N || idle || failed);
	assert(FN || failed || !(reached && OUT_NOW < LIMIT));
	assert(!want || OUT_NOW == SIZE || failed);
	assert(writables == 0 || failed);
	assert(failed == broken && told_count == failed);
	assert(!failed || !listed || conn_told)
}

init {
	atomic {
		mem[RETIRED] = SIZE;
		mem[RETURNED] = 1;
		mem[RETURNED + 1] = 2;
		if
		:: SIZE > 2 -> mem[RETURNED + 2] = 3
		:: else
		fi;
		run buffer(POLLER);
		run buffer(OTHER);
		run peers();
		run control();
		run events();
		run poller();
		run other();
		if
		:: !FN -> limits = 1; run buffer(TOLD); run told()
		:: else
		fi;
		if
		:: FAILS -> run maker()
		:: else
		fi
	}
}
