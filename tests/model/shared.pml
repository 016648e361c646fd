/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A queue shared by several workers, as in doc/protocols/shared-queue.md and
 * in queue/shared.c and base/bell.c, for every interleaving of a publisher that closes
 * in the end and of workers that wait, one of them with a time that may be over
 * at any moment, after which it never comes back. FD=1: two event loops
 * instead, which poll, arm and sleep on the eventfd. FD=2: one, and a waiter.
 * WAKES=1: also a thread that wakes one of them, without an item.
 *
 * Stores of the publisher, and a worker's arming of the word, go through a
 * buffer of their thread and reach memory later; in program order, for there
 * is no pair of them whose order the protocol leaves open. A fence waits until
 * the own buffer is empty, and so does every other read-modify-write.
 *
 * Wanted: every item taken once, also while the worker that took one before is busy with
 * it; every worker without a time told the end; for a wake one comes back; no
 * other end: a lost wake-up is a deadlock, an invalid end state.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* of a wake */
#if defined(M_NO_FENCE_WAKE) || defined(M_WAKE_NOT_SEEN) ||                   \
	defined(M_WAKE_NOT_TAKEN_OVER)
#define WAKES 1
#define ITEMS 1
#endif
#ifndef WAKES
#define WAKES 0
#endif
#ifndef ITEMS
#define ITEMS 2
#endif
/* of event loops */
#if defined(M_ARM_WITHOUT_MARK) || defined(M_MARK_BEFORE_ARM) ||              \
	defined(M_READ_LAST) || defined(M_ARM_LEFT_QUIETLY) ||                \
	defined(M_LEAVE_WAITERS_ONLY) || defined(M_POLL_READS)
#define FD 1
#elif defined(M_WAITER_ONLY)
#define FD 2
#endif
#ifndef FD
#define FD 0
#endif
#define WORKERS 3
#define PUBLISHER WORKERS
#define WAKER	  4
#define THREADS	  (4 + WAKES)

/* the word of the consumers, in parts that change in one step */
bool inside;
bool again;
byte waiters;

/* the bell: ON_FUTEX or not, ON_FD or not, which change in one step; asleep in
 * the kernel: bit of each worker; the eventfd: readable */
bool word;
bool word_fd;
bool in_kernel[WORKERS];
bool fd;

byte published;	 /* the lane: published - taken are there */
byte taken;
bool closed;
bool woken;	/* and nobody has come back for it */
bool came_back; /* somebody has */

/* one entry is enough: each fences before its next store that is buffered */
byte b_what[THREADS];
#define NOTHING 0
#define PUBLISH 1
#define CLOSE	2
#define ARM	3
#define ARM_FD	4
#define WAKE	5

#define SEES_WORD(t) (word || b_what[t] == ARM)
#define SEES_FD(t)   (word_fd || b_what[t] == ARM_FD)
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
#if WAKES
		:: b_what[WAKER] != NOTHING -> t = WAKER
#endif
		fi;
		if
		:: b_what[t] == PUBLISH -> published++
		:: b_what[t] == CLOSE -> closed = true
		:: b_what[t] == ARM -> word = true
		:: b_what[t] == ARM_FD -> word_fd = true
		:: b_what[t] == WAKE -> woken = true
		fi;
		b_what[t] = NOTHING;
		t = 0
	}
	od
}

/* Wakes one worker that sleeps in the kernel, any of them, or none. */
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

/* Both ways of sleeping that were taken out of the word. */
inline wake(was, was_fd)
{
	if
	:: was -> wake_one()
	:: else
	fi;
#ifdef M_WAITER_ONLY
	was_fd = was_fd && !was;
#endif
	if
	:: was_fd -> fd = true
	:: else
	fi;
	atomic { was = false; was_fd = false }
}

/* After the caller's fence. */
inline ring(t, was, was_fd)
{
	if
	:: SEES_WORD(t) || SEES_FD(t) ->
		atomic { FENCE(t) ->
			was = word;
			was_fd = word_fd;
			word = false;
			word_fd = false
		};
		wake(was, was_fd)
	:: else
	fi
}

proctype publisher()
{
	bool was;
	bool was_fd;
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
			ring(PUBLISHER, was, was_fd)
		fi
	:: else -> break
	od;
	/* in its time, or when nobody wakes for it before all was taken */
	if
	:: true
	:: true -> taken == ITEMS && (!WAKES || came_back)
	fi;
	FENCE(PUBLISHER);
	b_what[PUBLISHER] = CLOSE;
	FENCE(PUBLISHER);
	ring(PUBLISHER, was, was_fd)
}

/* ------------------------------------------------------------ workers --- */

#define A_WAKE_ALONE (woken && published == taken && !closed)
#ifdef M_WAKE_NOT_TAKEN_OVER
#define SOMETHING (published != taken || closed)
#else
#define SOMETHING (published != taken || closed || woken)
#endif

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

#ifdef M_LEAVE_WAITERS_ONLY
#define SLEEPERS(t) (waiters > 0)
#else
#define SLEEPERS(t) (waiters > 0 || SEES_FD(t))
#endif

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
	:: atomic { !again && found && SLEEPERS(t) ->
		found = false;
#ifdef M_LOOK_BEFORE_ARM
		seen = SOMETHING
#endif
	};
		if
		:: waiters > 0 -> arm(t)
		:: else
		fi;
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
			owed_fd = owed_fd || word_fd;
			word = false;
			word_fd = false;
			seen = false
		}
		:: !seen
		fi
	:: atomic { !again && !(found && SLEEPERS(t)) && FENCE(t) ->
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
	wake(owed, owed_fd)
}

/* One step of the word of the consumers; entered or not. */
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
#ifndef M_WAKE_NOT_SEEN
		/* it comes back for the wake, and leaves as with an item */
		if
		:: woken && !got && !seen ->
			woken = false;
			came_back = true;
			found = true
		:: else
		fi;
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
	bool owed_fd;
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

/* -------------------------------------------------------- event loops --- */

/* Inside, or not: the caller's fence comes first. */
inline try_enter(t)
{
	atomic {
		FENCE(t);
		entered = !inside;
		inside = true
	}
}

/* Inside: it comes back for the wake. */
inline take_wake()
{
	if
	:: A_WAKE_ALONE -> woken = false; came_back = true
	:: else
	fi
}

/* Inside: what the second look of an arm found; then it leaves. */
inline look_and_leave(t)
{
	atomic {
		ARMED(t);
		seen = SOMETHING;
		armed = !seen;
		came_for_wake = A_WAKE_ALONE;
		take_wake()
	};
	if
	:: seen ->
		seen = false;
#ifndef M_ARM_LEFT_QUIETLY
		found = true
#endif
	:: else
	fi;
	leave(t);
	/* the worker that made the eventfd quiet has it written again, for others */
	if
	:: came_for_wake ->
		ring(t, owed, owed_fd);
		came_for_wake = false
	:: else
	fi
}

inline arm_fd(t)
{
#ifndef M_READ_LAST
	fd = false;
#endif
	atomic { FENCE(t) -> b_what[t] = ARM_FD };
#ifdef M_READ_LAST
	FENCE(t);
	fd = false
#endif
}

proctype looper(byte me)
{
	bool entered;
	bool got;
	bool found;
	bool seen;
	bool owed;
	bool owed_fd;
	bool armed;
	bool over;
	bool came_for_wake;

	do
	:: atomic { over -> break }
	:: !over ->
		/* it polls */
		try_enter(me);
		if
		:: entered ->
			/* the end before the items: see lane.md */
			seen = closed;
			take();
			atomic {
				over = seen && !got;
				found = over;
				seen = false
			};
			leave(me);
			if
			:: got -> handle()
			:: !got
			fi
		:: !entered
#ifdef M_POLL_READS
			-> fd = false
#endif
		fi;
		/* it arms, if there was nothing */
		if
		:: over || got
		:: !over && !got ->
			atomic { entered = false; try_enter(me) };
			if
			:: atomic { entered && SOMETHING -> take_wake() };
				leave(me)
			:: entered && !SOMETHING ->
				arm_fd(me);
				look_and_leave(me)
			:: !entered ->
#ifdef M_MARK_BEFORE_ARM
				enter_or_mark(me, 0, 0);
				arm_fd(me);
#else
				arm_fd(me);
#ifdef M_ARM_WITHOUT_MARK
				try_enter(me);
#else
				enter_or_mark(me, 0, 0);
#endif
#endif
				if
				:: entered -> look_and_leave(me)
				:: !entered -> armed = true
				fi
			fi
		fi;
		/* it sleeps: a system call */
		if
		:: armed -> FENCE(me); fd
		:: !armed
		fi;
		atomic {
			entered = false;
			got = false;
			armed = false
		}
	od
}

#if WAKES
/* At any time: a thread, or a handler of a signal. */
proctype waker()
{
	bool was;
	bool was_fd;

	b_what[WAKER] = WAKE;
#ifndef M_NO_FENCE_WAKE
	FENCE(WAKER);
#endif
	ring(WAKER, was, was_fd)
}
#endif

active proctype ending()
{
	/* a worker without a time gets the end; by then everything was taken */
	closed && published == ITEMS && taken == ITEMS && waiters == 0
}

init {
	atomic {
		run buffer();
#if WAKES
		run waker();
#endif
#if FD == 0
		run worker(0, false);
#if !WAKES
		run worker(1, false);
#endif
		run worker(2, true);
#elif FD == 1
		run looper(0);
		run looper(1);
#else
		run looper(0);
		run worker(1, false);
#endif
		run publisher()
	}
}
