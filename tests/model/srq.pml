/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A shared receive queue, as in doc/protocols/srq.md and in runtime/srq/post.c
 * and poll.c, for every interleaving of the poller, the device and its peers,
 * the control and the event thread, and posters: with FN=0 one that posts when
 * it is told, SRQ_LIMIT or WRITABLE, and another one; with FN=1 the refill
 * function, on the poller, and another poster.
 *
 * A poster that finds the word of the turn idle takes the right to post by an
 * exchange, and posts; any other publishes by an exchange, which takes the
 * right if the right is free. The holder posts what stands in line, and takes
 * the number of a receive when the holder posts that receive. What post.pml
 * shows of the turn is one step here.
 * Only what is the SRQ's is in steps: numbers, `posted`, `armed`, the verb.
 *
 * The peers send N messages, as soon as there is a receive. The device may
 * refuse a post once. Whether it has a limit event is its business with FN=1;
 * with FN=0 nobody asks it. With FAILS=1 it may report an error of the SRQ, and
 * one of its own: then it takes no more messages; a connection of the SRQ is
 * being made meanwhile.
 *
 * Wanted: every message finds a receive in the end, though nobody but the
 * poller ever tells to post; SRQ_LIMIT each time that LIMIT were out and fewer
 * are; one WRITABLE for each bit of want that was set, and no refused poster
 * waits where there is a place; one thread is in the verb; no number given out
 * twice; the poller never counts more back than were out; what was published is
 * posted, or comes back refused. After an error: SRQ_FAILED, once; a post that
 * follows it is refused, so nobody waits for a WRITABLE that cannot come; no
 * connection is left that was not told.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* what breaks refills is found where there is a function */
#if defined(M_NO_FIRST_REFILL) || defined(M_REFILL_BEFORE_RETIRED) || \
	defined(M_NO_LOOK)
#define FN 1
#endif

/* what breaks its end, where it may fail */
#if defined(M_FAILURE_UNHEARD) || defined(M_FAILED_TWICE) || \
	defined(M_FAILED_AFTER) || defined(M_NO_SECOND_LOOK)
#define FAILS 1
#endif
#ifdef M_NO_SECOND_LOOK
#define FN 1
#endif

/* what breaks SRQ_LIMIT is found sooner where more messages come */
#if defined(M_NO_FENCE_PASS) || defined(M_NO_FENCE_WATCH) || \
	defined(M_NO_SECOND_COUNT) || defined(M_POSTED_AFTER) || \
	defined(M_DEVICE_ALONE)
#define N 3
#endif

/* without a line, where a post is lost that finds no room */
#ifdef M_REFILL_BEFORE_RETIRED
#define LINE 0
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
#ifndef LINE
#define LINE 1 /* more that may stand in line */
#endif
#ifndef LIMIT
#define LIMIT 2
#endif
#ifndef N
#define N (1 + 2 * FN) /* messages */
#endif
#ifndef REFUSALS
#define REFUSALS 1
#endif
#ifndef HINTS
#define HINTS 0 /* the device's limit is armed, where there is a function */
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

/* the word: an exchange changes all of it at once */
bool held;
bool waits;
byte published;

/* the holder's */
byte in_line;
byte taken;
byte since;
bool inside; /* is judged: in the verb */

/* read-modify-written: in one order that all agree on */
byte used;     /* slots of the line */
byte shown;    /* of taken: to those who count places */
byte refused;  /* numbers that the device refused */
bool want;
bool line_said; /* to the poller, by a holder */
bool look;     /* look_msg is on its way */
bool arm_sent; /* arm_msg is */
short unanswered;

/* the device */
byte device;   /* receives in it */
byte sent;     /* messages */
byte cq;
byte refusals = REFUSALS;
bool device_armed;
bool event;

/* the poller */
byte count = SIZE; /* that came back */
byte back;	   /* of these, refused ones */
bool refill_due = true;
bool refill_refused;
bool limit_pending;
bool device_told;

/* what is wanted: LIMIT was out, and SRQ_LIMIT did not come since; after it the
 * poster posts no more */
bool reached;
bool idle;
#define OUT_NOW (device + sent + SIZE + back - count)

/* the SRQ's queue */
byte limits;
bool writable;
bool is_waiting; /* the poster, for WRITABLE */
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

/* A store of a holder. Their buffers matter to SRQ_LIMIT alone. */
inline store(t, w, v, release)
{
	if
	:: t == POLLER || !FN -> put(t, w, v, release)
	:: else -> mem[w] = v
	fi
}

/* ---------------------------------------------------------- the holder --- */

#define ROOM(t)	     (LOAD(t, RETIRED) - taken)
#define LIMIT_OUT(t) (SIZE + LOAD(t, POSTED) - LOAD(t, RETIRED) >= LIMIT)
#define OUT_SHOWN(t) (SIZE + shown - LOAD(t, RETIRED))
#define PLACES(t)    (SIZE + LINE - used - \
		      (OUT_SHOWN(t) > 0 -> OUT_SHOWN(t) : 0))
#define HAS_PLACE(t) (PLACES(t) > 0)

/* In a step of the holder: the next numbers, for so many receives, or for as
 * many as there is room for. */
inline take_numbers(t, most)
{
	assert(held && !inside);
	do
	:: n < most && ROOM(t) > 0 ->
		assert(LOAD(t, RETURNED + taken % SIZE) == taken + 1);
		taken++;
		n++
	:: else -> break
	od;
	inside = n > 0
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
			:: since >= LIMIT || LIMIT_OUT(t) ->
				since = 0;
				store(t, ARMED, 1, true)
			:: else
			fi
		fi
	:: else
	fi
}

/* n receives, which the device takes or refuses: then their numbers go to the
 * poller, and err is set. */
inline ring(t)
{
#ifndef M_POSTED_AFTER
	store(t, POSTED, taken, false);
#endif
#ifndef M_WATCH_AFTER
	watch(t);
#endif
	if
	:: atomic { FENCE(t) ->
		inside = false;
		device = device + n;
		reached = reached || OUT_NOW >= LIMIT
	}
	:: atomic { FENCE(t) && refusals > 0 ->
		inside = false;
		refusals--;
		refused = refused + n;
		err = true
	}
	fi;
#ifdef M_POSTED_AFTER
	store(t, POSTED, taken, false);
#endif
#ifdef M_WATCH_AFTER
	watch(t);
#endif
	/* with a function: the device shall tell when fewer are out */
	if
	:: (HINTS || !FN) && ASKS_DEVICE && LIMIT_OUT(t) && !LOAD(t, ARMED) ->
		store(t, ARMED, 1, false);
		atomic { FENCE(t) -> arm_sent = true }
	:: else
	fi
}

/* Until the right is given back. */
inline hold(t)
{
	do
	:: atomic { FENCE(t) ->
		in_line = in_line + published;
		published = 0;
		take_numbers(t, in_line);
#ifndef M_LINE_UNSAID
		line_said = in_line > n;
#endif
		held = n > 0;
		waits = !held && in_line > 0
	   };
		if
		:: n > 0 ->
			ring(t);
			d_step {
				in_line = in_line - n;
				used = used - n;
				n = 0;
				gave = true
			};
			shown = taken
		:: n == 0 -> break
		fi
	od
}

/* With nothing held: the message. */
inline finish(t)
{
	if
	:: err ->
		err = false;
		refill_refused = refill_refused || t == POLLER && FN;
#ifndef M_NO_LOOK
		look = true
#endif
	:: else
	fi;
	/* slots came back: a message may have come for a receive before its
	 * slot did, and no other tells who was refused meanwhile */
	if
	:: gave ->
		gave = false;
#ifndef M_SLOTS_UNTOLD
		atomic { FENCE(t) -> look = look || want }
#endif
	:: else
	fi
}

/* ------------------------------------------------------------- posters --- */

/* One call for todo receives; what is left of todo is refused for want of
 * places. What the device refuses is taken. */
inline post(t)
{
	atomic { FENCE(t) ->
		if
		:: !held && !waits && published == 0 &&
		   (ROOM(t) >= todo || LINE == 0 && ROOM(t) > 0) ->
			held = true;
			alone = true;
			take_numbers(t, todo);
			todo = todo - n
		:: else ->
			m = (HAS_PLACE(t) -> PLACES(t) : 0);
			m = (m < todo -> m : todo);
			used = used + m;
			todo = todo - m;
			published = published + m;
			holds = m > 0 && !held;
			held = held || holds;
			waits = waits && !holds;
			m = 0
		fi
	};
	if
	:: alone ->
		ring(t);
		alone = false;
		n = 0;
		shown = taken;
		hold(t)
	:: holds -> holds = false; hold(t)
	:: else
	fi;
	finish(t)
}

/* The refusal stands; where a place has come the poller is asked to look. */
inline refuse(t)
{
#ifdef M_NO_FENCE_WANT
	alone = HAS_PLACE(t);
#endif
	atomic { FENCE(t) ->
		unanswered = unanswered + (want -> 0 : 1);
		want = true
	};
#ifndef M_NO_FENCE_WANT
	alone = HAS_PLACE(t);
#endif
#ifndef M_NOT_ASKED
	look = look || alone;
#endif
	alone = false
}

/* SRQ_FAILED was taken: a post is refused from here on. */
inline give_up()
{
	assert(failed);
	todo = 0;
	idle = true;
	is_waiting = false;
	break
}

/* Posts LIMIT when told, and nothing else; or does not, for others may. */
proctype told()
{
	byte todo;
	byte n;
	short m;
	bool err;
	bool alone;
	bool holds;
	bool gave;

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
		writable = false;
		if
		:: failed -> todo = 0; idle = true
		:: else -> post(TOLD)
		fi;
		if
		:: todo > 0 ->
			refuse(TOLD);
			is_waiting = true;
end_room:		if
			:: atomic { writable -> is_waiting = false }
			:: atomic { failures > 0 -> failures-- };
				give_up()
			fi
		:: todo == 0
		fi
	od
}

/* Posts once, when it likes, if at all, and does not try again. */
proctype other()
{
	byte todo;
	byte n;
	short m;
	bool err;
	bool alone;
	bool holds;
	bool gave;

	if
	:: !failed -> todo = 1
	:: !failed -> todo = SIZE
	:: true
	fi;
	if
	:: todo > 0 -> post(OTHER)
	:: todo == 0
	fi;
	if
	:: todo > 0 && !FN -> todo = 0; refuse(OTHER)
	:: todo == 0 || FN
	fi
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
	atomic { FENCE(POLLER) ->
		if
		:: want && HAS_PLACE(POLLER) ->
			want = false;
			unanswered--;
			assert(unanswered >= 0);
			writable = true
		:: else
		fi
	}
}

/* Posts what stands in line, if nobody does. */
inline take()
{
	d_step {
		holds = !held && (waits || published > 0);
		held = held || holds;
		waits = waits && !holds
	};
	if
	:: holds -> holds = false; hold(POLLER); finish(POLLER)
	:: !holds
	fi
}

inline refill()
{
	count_out();
	if
	:: (out < LIMIT || refill_due) && refill_refused ->
		refill_refused = false
	:: (out < LIMIT || refill_due) && !refill_refused ->
		refill_due = false;
		put(POLLER, ARMED, 0, false);
		if
		:: out == SIZE || failed
		:: else -> todo = SIZE - out; post(POLLER); todo = 0
		fi
	:: else
	fi;
	out = 0
}

/* The message: the line, and what the device refused. */
inline look_at()
{
	look = false;
	take();
	atomic { FENCE(POLLER) -> todo = refused; refused = 0 };
	do
	:: todo > 0 ->
		put(POLLER, RETURNED + count % SIZE, count + 1, false);
		d_step { count++; back++; todo-- }
	:: todo == 0 -> break
	od;
	refill_due = true
}

/* A round that finds something, to its flush; it sleeps when it finds nothing. */
proctype poller()
{
	byte todo;
	byte n;
	byte out;
	short m;
	bool err;
	bool alone;
	bool holds;
	bool gave;

#ifdef M_NO_FIRST_REFILL
	refill_due = false;
#else
	skip;
#endif
end:	do
	:: cq > 0 || look || (FN && refill_due) || told_msg ->
		do
		:: cq > 0 -> complete()
		:: break
		od;
		if
		:: look -> look_at()
		:: else
		fi;
		atomic {
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
		:: !FN -> pass_limit()
		fi;
		if
		:: line_said -> take()
		:: !line_said
		fi;
		answer();
#ifndef M_REFILL_BEFORE_RETIRED
		if
		:: FN -> refill()
		:: !FN -> refill_due = false
		fi
#else
		refill_due = refill_due && FN
#endif
	od
}

/* When nothing happens any more. */
active proctype ending()
{
	timeout;
	assert(count == SIZE + N + back || idle || failed);
	assert(FN || failed || !(reached && OUT_NOW < LIMIT));
	assert(unanswered == want);
	assert(!want || !HAS_PLACE(POLLER) || failed);
	assert(!is_waiting || want || failed);
	assert(published == 0 && !held && refused == 0);
	assert(in_line == used);
	assert(in_line == 0 || OUT_NOW == SIZE);
	assert(failed == broken && told_count == failed);
	assert(!failed || !listed || conn_told)
}

init {
	atomic {
		mem[RETIRED] = SIZE;
		mem[RETURNED] = 1;
#if SIZE > 1
		mem[RETURNED + 1] = 2;
#endif
#if SIZE > 2
		mem[RETURNED + 2] = 3;
#endif
		run buffer(POLLER);
		run peers();
		run control();
		run events();
		run poller();
		run other();
		if
		:: !FN ->
			limits = 1;
			run buffer(OTHER);
			run buffer(TOLD);
			run told()
		:: else
		fi;
		if
		:: FAILS -> run maker()
		:: else
		fi
	}
}
