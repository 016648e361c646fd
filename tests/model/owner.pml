/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The owner of a poller of manual mode and the turns of the threads that serve a
 * poller without an owner, as in doc/protocols/manual.md and base/owner.c, for
 * every interleaving of threads that serve, attach, run their own poller,
 * release and end, one that visits in a call that waits, and a stop.
 *
 * All words but `owner` and `by_owner` are decided by one word, and `owner` is
 * written before the release of that word, so no store buffer is modelled: the
 * light and the heavy fence of [MANUAL-3] make the accesses to `inside` and
 * `by_owner` as ordered as full fences would. The kernel compares the word and
 * goes to sleep in one step.
 *
 * Wanted: one thread is in a round at a time; of an owned poller the owner and
 * no other; nobody sleeps for ever; after a stop nobody enters.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef THREADS
#if defined(M_ENTERS_AS_ALONE) || defined(M_LEFT_ANNOUNCED)
#define THREADS 3
#else
#define THREADS 2
#endif
#endif
#ifndef TIMES
#define TIMES 2 /* calls of the first thread; each other makes OTHERS */
#endif
#ifndef OTHERS
#define OTHERS 1
#endif
#ifndef KEEPS
#define KEEPS 1 /* 0: without membarrier(), no poller is OWNED */
#endif

#define NOBODY	0
#define THREAD	1
#define AWAITED 2
#define CLOSED	3
#define OWNED	4

#define NO_OWNER 0 /* of `owner`; else number of the thread + 1 */

byte inside;
bool by_owner;
byte owner;
bool is_locked; /* the lock of owner.c */
byte rounds; /* threads in a round */
bool is_closed;
bool asleep[THREADS];

#define IS_OTHER (owner != NO_OWNER && owner != me + 1)

inline wake_all()
{
	atomic {
		asleep[0] = false;
		asleep[1] = false;
		asleep[THREADS - 1] = false
	}
}

inline lock()
{
	atomic { !is_locked; is_locked = true }
}

inline unlock()
{
	is_locked = false
}

/* rt_owner_leave() */
inline leave()
{
	if
	:: by_owner && owner == me + 1 -> by_owner = false
	:: else ->
		atomic { found = inside; inside = NOBODY };
		if
#ifdef M_WAKES_NOBODY
		:: false ->
#else
		:: found == AWAITED ->
#endif
			wake_all()
		:: else
		fi
	fi
}

/* rt_owner_go_in_owned(): is_in */
inline go_in_owned()
{
	by_owner = true;
#ifdef M_ENTERS_BLINDLY
	is_in = true;
#else
	is_in = (inside == OWNED);
#endif
	if
	:: !is_in -> by_owner = false
	:: else
	fi
}

/* owner_leave_owned(), with the lock */
inline leave_owned()
{
	atomic {
		is_in = (inside == OWNED);
		if
		:: is_in -> inside = THREAD
		:: else
		fi
	};
	if
	:: is_in -> by_owner = false
	:: else
	fi
}

/* rt_owner_go_in() */
inline go_in(as)
{
	atomic {
		found = inside;
		if
		:: found == NOBODY -> inside = as
		:: else
		fi
	}
}

/* rt_owner_enter(): found is NOBODY: inside; CLOSED; or THREAD: BUSY */
inline enter()
{
	state = THREAD;
	do
	:: go_in(state);
		if
		:: found == NOBODY || found == CLOSED -> break
		:: found == OWNED && IS_OTHER -> found = THREAD; break
		:: found == OWNED && owner == me + 1 ->
			go_in_owned();
			if
			:: is_in -> found = NOBODY; break
			:: else
			fi
		:: else
		fi;
#ifdef M_OWNER_BEFORE
		is_other = IS_OTHER;
#endif
		atomic {
			if
			:: inside == THREAD ->
				inside = AWAITED;
				is_announced = true
			:: inside == AWAITED -> is_announced = true
			:: else -> is_announced = false
			fi
		};
		if
		:: !is_announced
		:: else ->
#ifndef M_ENTERS_AS_ALONE
			state = AWAITED;
#endif
#ifndef M_OWNER_BEFORE
			is_other = IS_OTHER;
#endif
			if
			:: is_other -> found = THREAD; break
			:: else
			fi;
#ifdef M_SLEEPS_UNSEEN
			asleep[me] = true;
#else
			atomic { asleep[me] = (inside == AWAITED) };
#endif
			!asleep[me]
		fi
	od;
	if
#ifdef M_OWNER_NOT_ASKED
	:: false ->
#else
	:: found == NOBODY && !by_owner && IS_OTHER ->
#endif
		leave();
		found = THREAD
	:: else
	fi;
	/* it does not enter: nobody is left asleep because of it */
	if
	:: found != NOBODY && state == AWAITED ->
#ifndef M_LEFT_ANNOUNCED
		atomic {
			if
			:: inside == AWAITED -> inside = THREAD
			:: else
			fi
		};
		wake_all()
#endif
	:: else
	fi
}

inline round()
{
	rounds++;
	assert(rounds == 1);
	assert(owner == NO_OWNER || owner == me + 1);
	assert(!is_closed);
	rounds--
}

inline serve()
{
	enter();
	if
	:: found == NOBODY -> round(); leave()
	:: else
	fi
}

/* A round of the owner, which leaves with a plain store: the first round, and
 * the later rounds. */
inline run_own()
{
	if
	:: owner == me + 1 && inside == OWNED ->
		go_in_owned();
		if
		:: is_in -> round(); by_owner = false
		:: else -> serve()
		fi
	:: owner == me + 1 && inside != OWNED ->
		go_in(THREAD);
		if
		:: found == NOBODY ->
			round();
#if KEEPS
			inside = OWNED
#else
			inside = NOBODY
#endif
		:: else -> serve()
		fi
	:: else
	fi
}

/* The first round of the first thread follows at once. */
inline attach()
{
	enter();
	if
	:: found == NOBODY ->
		owner = me + 1;
#ifdef M_ATTACH_WAKES_NOBODY
		inside = NOBODY
#else
		leave();
		if
		:: me == 0 -> run_own()
		:: else
		fi
#endif
	:: else
	fi
}

inline release()
{
	if
	:: owner == me + 1 ->
		enter();
		if
		:: found == NOBODY ->
#ifndef M_RELEASES_UNLOCKED
			lock();
#endif
#ifndef M_RELEASED_AS_OWNED
			leave_owned();
#endif
			owner = NO_OWNER;
#ifndef M_RELEASES_UNLOCKED
			unlock();
#endif
#ifdef M_RELEASE_WAKES_NOBODY
			inside = NOBODY
#else
			leave()
#endif
		:: else
		fi
	:: else
	fi
}

/* A call that waits for another reason: does not wait for a turn. */
inline visit()
{
	if
	:: owner == NO_OWNER ->
		go_in(THREAD);
		if
		:: found == NOBODY ->
#ifndef M_NO_SECOND_LOOK
			if
			:: owner == NO_OWNER -> round()
			:: else
			fi;
#else
			round();
#endif
			leave()
		:: else
		fi
	:: else
	fi
}

proctype thread(byte me)
{
	byte found;
	byte state;
	byte i;
	bool is_announced;
	bool is_other;
	bool is_in;

	for (i : 1 .. (me == 0 -> TIMES : OTHERS)) {
		if
		:: true -> serve()
		:: me < 2 -> attach()
		:: me == 0 -> run_own()
		:: me == 0 -> release()
		:: true -> visit()
		fi
	}
	/* the thread ends: its destructor, outside of the poller */
	lock();
	if
	:: owner == me + 1 ->
		leave_owned();
		owner = NO_OWNER;
		if
		:: is_in -> leave()
		:: else
		fi
	:: else
	fi;
	unlock()
}

/* rt_owner_close(), again and again: when the try may succeed */
proctype stop()
{
	bool is_in;

	do
	:: inside == NOBODY || (inside == OWNED && !by_owner) ->
		lock();
		atomic {
			is_in = (inside == OWNED);
			if
			:: inside == NOBODY ->
				inside = CLOSED;
				is_closed = true
#ifndef M_LOOKS_TOO_EARLY
			:: is_in -> inside = CLOSED
#endif
			:: else
			fi
		};
		if
		:: is_in ->
#ifdef M_LOOKS_TOO_EARLY
			if
			:: by_owner
			:: else -> atomic { inside = CLOSED; is_closed = true }
			fi
#else
			atomic {
				if
				:: by_owner -> inside = OWNED
				:: else ->
					is_closed = true
				fi
			}
#endif
		:: else
		fi;
		if
		:: is_closed -> break
		:: else -> unlock()
		fi
	od;
	owner = NO_OWNER;
	unlock()
}

init
{
	byte i;

	atomic {
		for (i : 0 .. THREADS - 1) {
			run thread(i)
		}
		run stop()
	}
}
