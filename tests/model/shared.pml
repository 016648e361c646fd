/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A queue shared by several workers, as in doc/protocols/shared-queue.md and
 * in queue/shared.c and base/bell.c, for every interleaving of a publisher that closes
 * in the end and of workers that wait, one of them with a time that may be over
 * at any moment, after which it never comes back.
 *
 * Stores of the publisher, and a worker's arming of the word, go through a
 * buffer of their thread and reach memory later; in program order, for there
 * is no pair of them whose order the protocol leaves open. A fence waits until
 * the own buffer is empty, and so does every other read-modify-write.
 *
 * Wanted: every item taken once, also while who took one before is busy with
 * it; every worker without a time told the end; no other end: a lost wake-up is
 * a deadlock, an invalid end state.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef ITEMS
#define ITEMS 2
#endif
#define WORKERS 3
#define PUBLISHER WORKERS
#define THREADS 4

/* the word of who consumes, in parts that change in one step */
bool inside;
bool again;
byte waiters;

/* the bell: ON_FUTEX or not; asleep in the kernel: bit of each worker */
bool word;
bool in_kernel[WORKERS];

byte published;	 /* the lane: published - taken are there */
byte taken;
bool closed;

/* one entry is enough: each fences before its next store that is buffered */
byte b_what[THREADS];
#define NOTHING 0
#define PUBLISH 1
#define CLOSE	2
#define ARM	3

#define SEES_WORD(t) (word || b_what[t] == ARM)
#define FENCE(t)     (b_what[t] == NOTHING)

proctype buffer()
{
	byte t;

end:	do
	:: atomic {
		if
		:: b_what[0] != NOTHING -> t = 0
		:: b_what[1] != NOTHING -> t = 1
		:: b_what[2] != NOTHING -> t = 2
		:: b_what[3] != NOTHING -> t = 3
		fi;
		if
		:: b_what[t] == PUBLISH -> published++
		:: b_what[t] == CLOSE -> closed = true
		:: b_what[t] == ARM -> word = true
		fi;
		b_what[t] = NOTHING;
		t = 0
	}
	od
}

/* Wakes one who sleeps in the kernel, any of them, or nobody. */
inline wake_one()
{
	atomic {
		if
		:: in_kernel[0] -> in_kernel[0] = false
		:: in_kernel[1] -> in_kernel[1] = false
		:: in_kernel[2] -> in_kernel[2] = false
		:: else
		fi
	}
}

/* After the caller's fence. */
inline ring(t, was)
{
	if
	:: SEES_WORD(t) ->
		atomic { FENCE(t) -> was = word; word = false };
		if
		:: was -> was = false; wake_one()
		:: else
		fi
	:: else
	fi
}

proctype publisher()
{
	bool was;
	byte sent;

	do
	:: sent < ITEMS ->
		b_what[PUBLISHER] = PUBLISH;
		sent++;
		/* two in one batch, or one each */
		if
		:: sent < ITEMS -> FENCE(PUBLISHER)
		:: true ->
#ifndef M_NO_FENCE_PUBLISH
			FENCE(PUBLISHER);
#endif
			ring(PUBLISHER, was)
		fi
	:: else -> break
	od;
	/* in its time, or when nobody wakes for it before all was taken */
	if
	:: true
	:: true -> taken == ITEMS
	fi;
	FENCE(PUBLISHER);
	b_what[PUBLISHER] = CLOSE;
	FENCE(PUBLISHER);
	ring(PUBLISHER, was)
}

/* ------------------------------------------------------------ workers --- */

#define SOMETHING (published != taken || closed)

/* Up to the fence; the look comes with it, or after. */
inline arm(t)
{
	atomic {
		FENCE(t);
		if
		:: !word -> b_what[t] = ARM
		:: else
		fi
	}
}

#ifdef M_NO_FENCE_ARM
#define ARMED(t) true
#else
#define ARMED(t) FENCE(t)
#endif

inline take()
{
	atomic {
		got = published != taken;
		taken = taken + got
	}
}

/* What was taken keeps its worker until others have taken the rest, or not:
 * what is left while somebody sleeps is for him. */
inline handle()
{
	if
	:: true
	:: true -> taken == ITEMS
	fi
}

/* found: the word's being armed tells nothing. */
inline leave(t)
{
#ifndef M_NO_REARM
	found = found || (waiters > 0 && !SEES_WORD(t));
#endif
	do
	:: atomic { again && FENCE(t) ->
		again = false;
#ifndef M_NO_LOOK_AGAIN
		found = true
#endif
	}
	:: atomic { !again && found && waiters > 0 ->
		found = false;
#ifdef M_LOOK_BEFORE_ARM
		seen = SOMETHING
#endif
	};
		arm(t);
		atomic { ARMED(t) ->
#ifndef M_LOOK_BEFORE_ARM
			seen = SOMETHING;
#endif
#ifdef M_NO_RING_LEFT
			seen = false
#endif
		};
		if
		:: atomic { seen && FENCE(t) ->
			owed = owed || word;
			word = false;
			seen = false
		}
		:: !seen
		fi
	:: atomic { !again && !(found && waiters > 0) && FENCE(t) ->
		inside = false;
		found = false;
		break
	}
#ifdef M_LEAVE_BLINDLY
	:: atomic { again && FENCE(t) ->
		inside = false;
		again = false;
		found = false;
		break
	}
#endif
	od;
	if
	:: atomic { owed -> owed = false; wake_one() }
	:: !owed
	fi
}

/* One step of the word of who consumes; entered or not. */
inline enter_or_mark(t, in_more, out_more)
{
	atomic {
		FENCE(t);
		if
		:: !inside ->
			inside = true;
			waiters = waiters + in_more;
			entered = true
		:: else ->
#ifndef M_NO_MARK
			again = true;
#endif
			waiters = waiters + out_more;
			entered = false
		fi
	}
}

/* Everything again, armed; then gone, or leaving. */
inline take_armed(t)
{
	arm(t);
	/* the end before the items: see lane.md */
	atomic { ARMED(t) -> seen = closed };
	take();
	atomic {
		over = over || (seen && !got);
#ifdef M_END_KEPT
		found = got;
#else
		found = got || seen;
#endif
		seen = false
	}
}

proctype worker(byte me; bool has_time)
{
	bool waiting;
	bool entered;
	bool got;
	bool found;
	bool seen;
	bool owed;
	bool over;

	do
	:: atomic { over -> break }
	:: atomic { !over && has_time && waiting -> over = true };
		/* the time is over: a last try */
		enter_or_mark(me, -1, -1);
#ifdef M_NO_LAST_LOOK
		if
		:: atomic { entered && !again -> inside = false; entered = false }
		:: atomic { entered && again -> again = false; inside = false;
			    entered = false }
		:: !entered
		fi;
#endif
		if
		:: entered -> take_armed(me); leave(me)
		:: !entered
		fi;
		atomic { waiting = false; entered = false; got = false }
	:: atomic { !over && FENCE(me) ->
		entered = !inside;
		if
		:: entered ->
			inside = true;
			waiters = waiters - waiting
		:: else
		fi
	};
		if
		:: entered
		:: !entered ->
#ifdef M_ARM_AFTER_MARK
			enter_or_mark(me, 0 - waiting, 1 - waiting);
			arm(me);
#else
			arm(me);
			enter_or_mark(me, 0 - waiting, 1 - waiting);
#endif
#ifndef M_FORGET_ARMED
			found = entered
#endif
		fi;
		waiting = !entered;
		if
		:: entered ->
			take();
			if
			:: got
			:: !got ->
				do
				:: atomic { again && FENCE(me) -> again = false }
				:: !again ->
					take_armed(me);
					if
					:: atomic { !found && !again && FENCE(me) ->
						inside = false;
						waiters++;
						waiting = true;
						break
					}
					:: found -> break
					:: !found && again
					fi
				od
			fi;
			if
			:: !waiting -> leave(me); if :: got -> handle() :: !got fi
			:: waiting
			fi
		:: !entered
		fi;
		atomic { entered = false; got = false; found = false };
		/* the kernel compares under its lock, then sleeps */
		if
		:: atomic { waiting && FENCE(me) -> in_kernel[me] = word };
			if
			:: !in_kernel[me]
			:: atomic { has_time && in_kernel[me] ->
				in_kernel[me] = false
			}
			fi
		:: !waiting
		fi
	od
}

active proctype ending()
{
	/* who has no time is told the end; by then everything was taken */
	closed && published == ITEMS && taken == ITEMS && waiters == 0
}

init {
	atomic {
		run buffer();
		run worker(0, false);
		run worker(1, false);
		run worker(2, true);
		run publisher()
	}
}
