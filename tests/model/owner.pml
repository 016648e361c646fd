/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The owner of a poller of manual mode and the turns of the threads that serve a
 * poller without an owner, as in doc/protocols/manual.md and base/owner.c, for
 * every interleaving of threads that serve, attach, run their own poller,
 * release and end, one that visits in a call that waits, and a stop.
 *
 * All words but `owner` are decided by one word, and `owner` is written before
 * the release of that word, so no store buffer is modelled. The kernel compares
 * the word and goes to sleep in one step.
 *
 * Wanted: one thread is in a round at a time; of an owned poller the owner and
 * no other; nobody sleeps for ever; after a stop nobody enters.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef THREADS
#define THREADS 3
#endif
#ifndef TIMES
#define TIMES 2 /* calls of the first thread; each other makes OTHERS */
#endif
#ifndef OTHERS
#define OTHERS 1
#endif

#define NOBODY	0
#define THREAD	1
#define AWAITED 2
#define CLOSED	3

#define NO_OWNER 0 /* of `owner`; else number of the thread + 1 */

byte inside;
byte owner;
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

/* rt_owner_leave() */
inline leave()
{
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
	:: found == NOBODY && IS_OTHER ->
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

inline attach()
{
	enter();
	if
	:: found == NOBODY ->
		owner = me + 1;
#ifdef M_ATTACH_WAKES_NOBODY
		inside = NOBODY
#else
		leave()
#endif
	:: else
	fi
}

/* A round of the owner, which leaves with a plain store. */
inline run_own()
{
	if
	:: owner == me + 1 ->
		go_in(THREAD);
		if
		:: found == NOBODY -> round(); inside = NOBODY
		:: else -> serve()
		fi
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
			owner = NO_OWNER;
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

	for (i : 1 .. (me == 0 -> TIMES : OTHERS)) {
		if
		:: true -> serve()
		:: true -> attach()
		:: true -> run_own()
		:: true -> release()
		:: true -> visit()
		fi
	}
	/* the thread ends: its destructor, outside of the poller */
	atomic {
		if
		:: owner == me + 1 -> owner = NO_OWNER
		:: else
		fi
	}
}

/* rt_owner_close(), again and again */
proctype stop()
{
	atomic {
		inside == NOBODY;
		inside = CLOSED;
		is_closed = true
	};
	owner = NO_OWNER
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
