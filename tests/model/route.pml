/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A route is led from one lane to another, and closed by that or not, as in
 * doc/protocols/route.md and in change.c, owing.c and post.c, for
 * every interleaving of a poster, the poller, the caller of the change, and the
 * consumers of both lanes.
 *
 * The poller stores through a buffer, see buffers.pml. The poster's relaxed
 * read-modify-write of `want` is executed some time before its next fence; so
 * is what puts its waiter on a lane's stack. A lock, and a message, order all.
 *
 * Lane A's consumer may go away when the route has left it: nothing may wait
 * for it. Lane A may be freed when the caller is through.
 *
 * Wanted: nothing is written to A behind ROUTE_CLOSED; a refused poster gets WRITABLE;
 * nobody touches A, or waits with its waiter, once it may be freed; neither
 * spill grows beyond what is reserved for it; a closed route's number is not
 * given back while a work request with it is under way.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef SQ
#define SQ 2 /* work requests that a queue pair holds */
#endif
#ifndef N
#define N 4 /* that the poster posts */
#endif
#define RING  1 /* of a lane; what it does not hold is spilled */
#define LIMIT 1 /* of a spill, from where on it is a backlog */

#ifndef CLOSES
#define CLOSES true /* the route, or another lane is all that it gets */
#endif

/* threads with a store buffer */
#define POLLER	0
#define THREADS 1
#define DEPTH	3

#define A 0 /* lanes, and their waiters */
#define B 1

/* words in memory */
#define BACKLOG 0 /* of A, and of B */
#define RETIRED 2
#define LANE	3 /* of the route */
#define WAITER	4
#define CLOSED	5
#define WORDS	6

#include "buffers.pml"

#define CREDIT 1 /* bits of want */
#define ROOM   2

/* the gate and its ledger */
bool locked;
byte posted;
byte reaped;

/* want, and what the poster is about to do to it */
byte want;
byte pending;
bool told; /* WRITABLE, since the poster's call began */

/* the waiters: with lane A, with lane B */
bool listed[2];
bool pushing[2];
byte pushing_to[2]; /* that lane's stack */
bool on_stack[4];   /* waiter w on the stack of lane l: 2 * l + w */

/* the lanes; B's ring is full of others' items at first */
byte ring[2];
byte spill[2];

/* the poller's */
byte completed;
byte leads; /* its entry: A, or B */
bool owing;
byte target;

/* the change */
byte asked;
byte answered;
bool is_known;
bool has_left; /* the waiter of A is not used any more */
bool is_freed; /* lane A may be */
bool number_is_free;

/* ---------------------------------------------------------- the poster --- */

#define HAS_ROOM (posted - reaped < SQ)

/* Is the lane behind that the poster saw? */
inline look_at_lane(l)
{
	l = mem[LANE];
	assert(!(l == A && is_freed))
}

inline refusal(l, reason)
{
	reaped = mem[RETIRED];
	look_at_lane(l);
	if
	:: !HAS_ROOM -> reason = CREDIT
	:: HAS_ROOM && mem[BACKLOG + l] -> reason = ROOM
	:: HAS_ROOM && !mem[BACKLOG + l] -> reason = 0
	fi
}

#define PUSH_NOW(w)                                                    \
	d_step {                                                       \
		pushing[w] -> pushing[w] = false;                      \
		assert(!(pushing_to[w] == A && is_freed));             \
		on_stack[2 * pushing_to[w] + w] = true                 \
	}

/* The read-modify-writes happen, at the latest where they are waited for. */
proctype late()
{
end:	do
	:: d_step { pending != 0 -> want = want | pending; pending = 0 }
	:: PUSH_NOW(A)
	:: PUSH_NOW(B)
	od
}

/* With the route's waiter, in that one's lane. */
inline wait_in_lane()
{
	w = mem[WAITER];
	d_step {
		pending == 0 ->
		assert(!(w == A && has_left));
		if
		:: !listed[w] && !pushing[w] ->
			pushing[w] = true;
#ifdef M_LANE_READ_APART
			pushing_to[w] = lane
#else
			pushing_to[w] = w
#endif
		:: else
		fi;
		listed[w] = true
	}
}

#ifdef M_NO_MOVED_CHECK
#define HAS_MOVED false
#else
#define HAS_MOVED (why == ROOM && mem[WAITER] != w)
#endif

/* why: 0, or the reason for which it is refused */
inline take_credit()
{
	refusal(lane, why);
	do
	:: why == 0 -> break
	:: why != 0 ->
		pending = why;
		if
		:: why == ROOM -> wait_in_lane()
		:: why != ROOM
		fi;
#ifndef M_NO_FENCE_WANT
		pending == 0 && !pushing[A] && !pushing[B];
#endif
		refusal(lane, again);
		if
		:: again == why && !HAS_MOVED -> break
		:: else ->
			d_step {
				pending == 0 ->
				if
				:: want & why ->
					want = want & (7 - why);
					is_back = true
				:: else -> is_back = false
				fi
			};
			if
			:: is_back -> why = again
			:: !is_back -> break /* somebody is told: refused */
			fi
		fi
	od;
	again = 0;
	is_back = false
}

proctype poster()
{
	byte why;
	byte again;
	byte lane;
	byte w;
	bool is_back;

	do
	:: d_step { !locked -> locked = true; told = false };
		if
		:: posted == N || mem[CLOSED] -> locked = false; break
		:: else
		fi;
		take_credit();
		if
		:: why == 0 ->
			d_step {
				assert(!number_is_free);
				posted++;
				locked = false
			}
		:: why != 0 ->
			d_step { locked = false; why = 0 };
			told
		fi
	od
}

/* ---------------------------------------------------------- the poller --- */

/* A want belongs to the one that takes it away. */
inline answer(bits)
{
	d_step {
		if
		:: want & (bits) -> told = true
		:: else
		fi;
		want = want & (7 - (bits))
	}
}

/* One completion: where the route leads, then its credit. */
inline complete()
{
	d_step {
		assert(!number_is_free);
		assert(!(leads == A && answered > 0));
		completed++;
		if
		:: spill[leads] == 0 && ring[leads] < RING -> ring[leads]++
		:: else -> spill[leads]++
		fi;
		/* below the limit, and what held a credit then */
		assert(spill[leads] < LIMIT + SQ)
	};
	if
	:: spill[leads] >= LIMIT -> put(POLLER, BACKLOG + leads, 1, false)
	:: else
	fi;
#ifdef M_LANE_LATE
	late_lane();
#endif
	put(POLLER, RETIRED, completed, true);
	FENCE(POLLER);
	if
	:: want & CREDIT -> answer(CREDIT)
	:: else
	fi;
	if
	:: owing && completed >= target -> bury()
	:: else
	fi
}

/* Those that wait for that lane, whose backlog has cleared. */
inline answer_stack(l)
{
	w = 0;
	do
	:: w < 2 ->
		if
		:: on_stack[2 * l + w] ->
			d_step { on_stack[2 * l + w] = false; listed[w] = false };
			if
			:: want -> answer(CREDIT | ROOM)
			:: else
			fi
		:: else
		fi;
		w++
	:: else -> break
	od;
	w = 0
}

inline retry(l)
{
	d_step { spill[l]--; ring[l]++ };
	if
	:: spill[l] == 0 ->
		put(POLLER, BACKLOG + l, 0, true);
		FENCE(POLLER);
		answer_stack(l)
	:: else
	fi
}

inline bury()
{
	d_step {
		assert(posted == completed);
		number_is_free = true;
		owing = false
	}
}

#define LANE_IS_LATE (leads == B && LOAD(POLLER, LANE) == A)
inline late_lane()
{
	if
	:: LANE_IS_LATE && completed == N - 1 -> put(POLLER, LANE, B, true)
	:: else
	fi
}

/* The first step. */
inline move()
{
	leads = B;
	if
	:: CLOSES -> put(POLLER, CLOSED, 1, false)
	:: else
	fi;
	put(POLLER, WAITER, B, false);
#ifndef M_LANE_LATE
	put(POLLER, LANE, B, true);
#endif
#ifndef M_NO_FENCE_MOVE
	FENCE(POLLER);
#endif
#ifndef M_NO_ANSWER
	if
	:: want & ROOM -> answer(CREDIT | ROOM)
	:: else
	fi;
#endif
	FENCE(POLLER); /* the message releases */
	answered = 1
}

/* The second one. */
inline finish()
{
	has_left = true;
	if
	:: CLOSES && completed < target -> owing = true
	:: CLOSES && completed >= target -> bury()
	:: !CLOSES
	fi;
	answered = 2
}

proctype poller()
{
	byte w;

end:	do
	:: posted > completed -> complete()
	:: spill[A] > 0 && ring[A] < RING -> retry(A)
	:: spill[B] > 0 && ring[B] < RING -> retry(B)
	:: asked == 1 && answered == 0 -> move()
	:: asked == 2 && answered == 1 -> finish()
	od
}

/* ---------------------------------------------------------- the caller --- */

#ifdef M_NUMBER_AT_ONCE
#define OWED 0
#else
#define OWED posted
#endif

proctype caller()
{
	asked = 1;
	answered == 1;
#ifdef M_LEDGER_BEFORE_GATE
	target = OWED;
#endif
#ifndef M_NO_GATE
	d_step { !locked -> locked = true };
#ifndef M_LEDGER_BEFORE_GATE
	target = OWED;
#endif
	locked = false;
#endif
	asked = 2;
	answered == 2;
	is_freed = true
}

/* A's consumer goes when ROUTE_CLOSED has come, or takes on. */
proctype consumer(byte l)
{
end:	do
	:: ring[l] > 0 -> ring[l]--
	:: l == A && answered > 0 -> break
	od
}

init
{
	atomic {
		ring[B] = RING;
		run buffer(POLLER);
		run late();
		run poster();
		run poller();
		run caller();
		run consumer(A);
		run consumer(B)
	}
}
