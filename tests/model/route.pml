/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A route is led from one lane to another, and closed by that or not, as in
 * doc/protocols/route.md and in runtime/conn/change.c, owing.c, hold.c,
 * post*.c and answer.c, for every interleaving of a poster, the poller, the
 * caller of the change, and the consumers of both lanes.
 *
 * The poster reads the word of the turn, then the route, and posts alone or
 * publishes by an exchange that compares the generation. The poller posts from
 * the line, too. The caller pauses the turn, raises the generation, and walks
 * ledger and line. What post.pml shows of the turn is one step here where
 * nothing of the route depends on the order. Waiters and lists are the
 * poller's: a refused poster names its route in a message.
 *
 * The poller stores through a buffer, see buffers.pml. A message, and an
 * exchange of the word, order all.
 *
 * Lane A's consumer may go away when the route has left lane A: nothing may
 * wait for that consumer. When the caller is through, lane A may be a
 * stranger's, who may set its flag for ever.
 *
 * Wanted: nothing is written to A behind ROUTE_CLOSED; a refused poster gets
 * WRITABLE; no list of A names the route once A may be a stranger's; neither
 * spill grows beyond what is reserved for it; nothing is posted during the
 * pause; a closed route's number comes back, and not while a work request with
 * it is outstanding, in line or may still be published; what stands in line is
 * posted in the end, and before what is posted later.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* what only shows where the connection's own route moves */
#ifdef M_PUT_OFF_LOST
#define CLOSES false
#endif
/* what only shows where work requests come behind a refused one */
#if defined(M_PUT_OFF_LOST) || defined(M_LANE_UNSEEN) || \
	defined(M_NO_FENCE_WANT) || defined(M_LANE_LATE)
#define LINE 0
#endif
/* where the former lane is behind */
#if defined(M_PUT_OFF_LOST) || defined(M_WAITER_KEPT) || defined(M_NO_ANSWER)
#define FULL_A 1
#endif
#ifndef FULL_A
#define FULL_A 0 /* items of others in lane A at first */
#endif

#ifndef SQ
#define SQ 1 /* work requests that a queue pair holds */
#endif
#ifndef LINE
#define LINE 1 /* more that may stand in line */
#endif
#ifndef N
#define N 2 /* that the poster posts */
#endif
#define PLACES_ALL (SQ + LINE)
#define RING	   1 /* of a lane; what it does not hold is spilled */
#define LIMIT	   1 /* of a spill, from where on it is a backlog */

#ifndef CLOSES
#define CLOSES true /* false: the connection's own route gets another queue */
#endif

/* threads with a store buffer */
#define POLLER	0
#define THREADS 1
#define DEPTH	3

#define A 0 /* lanes */
#define B 1

/* words in memory */
#define BACKLOG 0 /* of A, and of B */
#define RETIRED 2
#define LANE	3 /* of the route */
#define CLOSED	4
#define WORDS	5

#include "buffers.pml"

#define CREDIT 1 /* bits of want */
#define ROOM   2

mtype = { LEFT, HOLDS, STALE };

/* the word: an exchange changes all of it at once */
bool held;
bool paused;
bool waits;
bool generation;
byte published;

/* the holder's, and of the thread that has paused the turn */
byte in_line;
byte tail; /* so many were given to the device */

byte used;  /* slots */
byte shown; /* of tail: to posters */

byte want;
bool told;    /* WRITABLE, since the poster's call began */
bool said;    /* to the poller: something stands in line */
bool look;    /* the look message is on its way */
bool awaited; /* the route, by a poster refused for a backlog */

/* the lanes; B's ring is full of others' items at first */
byte ring[2];
byte spill[2];

/* the poller's */
byte completed;
byte leads;	/* its entry: A, or B */
bool listed[2]; /* the route's waiter, with that lane */
byte flagged[2]; /* over its limit since so many completed; 0: not */
bool owing;
byte target;
bool is_out;

/* the change */
byte asked;
byte answered;
bool is_paused;
bool is_freed; /* lane A is a stranger's, maybe */
bool number_is_free;
bool poster_is_done;

#define HAS_ROOM   (tail - mem[RETIRED] < SQ)
#define HAS_PLACE  (used < PLACES_ALL && \
		    used + shown < PLACES_ALL + mem[RETIRED])
#define MAY_POST   (!paused)
#define IS_WAITING (waits || published > 0)

/* ----------------------------------------------------------- the holder --- */

inline give()
{
	assert(held && !is_paused && !number_is_free);
	tail++
}

/* Until the right is given back. */
inline hold()
{
	do
	:: true ->
		d_step { in_line = in_line + published; published = 0 };
		if
		:: MAY_POST && in_line > 0 && HAS_ROOM ->
			d_step { give(); in_line--; used-- };
			shown = tail
		:: else ->
			said = in_line > 0;
			/* one exchange */
			d_step {
				left = !(published > 0 && MAY_POST);
				held = !left;
				waits = left && in_line > 0
			};
			/* full fence, and a look at the room */
			d_step {
				again = left && waits && !held && MAY_POST &&
					HAS_ROOM;
				held = held || again;
				waits = waits && !again
			};
			if
			:: left && !again -> break
			:: else
			fi
		fi
	od;
	left = false;
	again = false
}

/* ---------------------------------------------------------- the poster --- */

/* Is the consumer behind? The lane may be one that the route has left. */
inline look_at_lane()
{
#ifndef M_LANE_UNSEEN
	lane = mem[LANE];
	why = (mem[BACKLOG + lane] -> ROOM : 0);
#endif
	skip
}

#ifdef M_GENERATION_IGNORED
#define IS_STALE false
#else
#define IS_STALE (generation != seen)
#endif

/* The work request is posted in the end. A flag that was set when so many had
 * retired was seen. */
inline accept()
{
	assert(!number_is_free);
	assert(flagged[leads] == 0 || flagged[leads] > retired)
}

/* From its own memory. */
inline post_alone()
{
	d_step {
		alone = !held && !paused && !IS_WAITING && !IS_STALE;
		held = held || alone
	};
	retired = (alone -> mem[RETIRED] : 0);
	if
	:: alone && tail - retired < SQ ->
		look_at_lane();
		if
		:: why == 0 ->
			d_step { assert(in_line == 0); accept(); give() };
			shown = tail;
			how = LEFT
		:: else
		fi;
		/* nobody has published meanwhile: there is no other poster */
		held = false
	:: alone && tail - retired >= SQ -> held = false
	:: !alone
	fi;
	alone = false
}

inline post_by_line()
{
	d_step {
		retired = mem[RETIRED];
		why = (HAS_PLACE -> 0 : CREDIT);
		used = used + (why == 0 -> 1 : 0)
	};
	if
	:: why == 0 ->
		look_at_lane();
		if
		:: why == 0 ->
			/* one exchange */
			d_step {
				if
				:: IS_STALE -> how = STALE; used--
				:: else ->
					accept();
					published++;
					how = LEFT;
					if
					:: !held && MAY_POST ->
						held = true;
						waits = false;
						how = HOLDS
					:: else
					fi
				fi
			}
		:: else -> used--
		fi
	:: else
	fi;
	if
	:: how == HOLDS -> hold()
	:: else
	fi
}

/* The refusal stands: WRITABLE follows, of a batch, of a lane, or because the
 * poller is asked to look. */
inline refuse()
{
#ifdef M_NO_FENCE_WANT
	again = HAS_PLACE;
#endif
	want = want | why;
	/* full fence */
#ifndef M_NO_FENCE_WANT
	again = HAS_PLACE;
#endif
#ifdef M_LANE_NAMED
	/* the lane that was seen, in place of the route */
	if
	:: why == ROOM -> listed[lane] = true
	:: else
	fi;
#else
	awaited = awaited || why == ROOM;
#endif
#ifndef M_NOT_ASKED
	if
	:: why == ROOM || again -> look = true
	:: else
	fi;
#endif
	d_step { again = false; why = 0; lane = 0 };
	told
}

proctype poster()
{
	byte posts;
	byte why;
	byte lane;
	byte retired;
	bool seen;
	bool alone;
	bool left;
	bool again;
	mtype how = STALE;

	do
	:: told = false;
		how = STALE;
#ifndef M_ROUTE_FIRST
		seen = generation;
#endif
		if
		:: posts == N || mem[CLOSED] -> break
		:: else
		fi;
#ifdef M_ROUTE_FIRST
		seen = generation;
#endif
		post_alone();
		if
		:: how == STALE && why == 0 -> post_by_line()
		:: else
		fi;
		d_step { seen = false; lane = 0; retired = 0 };
		if
		:: why != 0 -> refuse()
		:: why == 0 && how != STALE -> posts++
		:: else
		fi
	od;
	poster_is_done = true
}

/* ---------------------------------------------------------- the poller --- */

#define OWN_IS_BEHIND (!CLOSES && LOAD(POLLER, BACKLOG + leads))

/* CREDIT, and maybe a backlog's end. While the connection's own queue is behind
 * WRITABLE waits for that. */
inline answer(bits)
{
	d_step {
		w = want & (bits) & (HAS_PLACE -> 3 : ROOM);
		if
		:: w != 0 && OWN_IS_BEHIND -> listed[leads] = true
		:: w != 0 && !OWN_IS_BEHIND ->
			told = true;
			want = want & (3 - w)
		:: else
		fi;
		w = 0
	}
}

/* Posts what stands in line, if nobody does. */
inline take()
{
	d_step {
		takes = !held && MAY_POST && IS_WAITING;
		held = held || takes;
		waits = waits && !takes
	};
	if
	:: takes -> takes = false; hold()
	:: !takes
	fi
}

inline bury()
{
	d_step {
		assert(tail == completed && in_line == 0 && published == 0);
		number_is_free = true;
		owing = false
	}
}

/* One completion: where the route leads, then its place. */
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
		assert(spill[leads] < LIMIT + 2 * SQ + LINE)
	};
	if
	:: spill[leads] >= LIMIT ->
		flagged[leads] = (flagged[leads] == 0 -> completed :
						 flagged[leads]);
		put(POLLER, BACKLOG + leads, 1, false)
	:: else
	fi;
	put(POLLER, RETIRED, completed, true);
	FENCE(POLLER);
	if
	:: owing && completed >= target -> bury()
	:: else
	fi;
	if
	:: said -> take()
	:: !said
	fi;
	answer(CREDIT)
}

inline retry(l)
{
	d_step { spill[l]--; ring[l]++ };
	if
	:: spill[l] == 0 ->
		flagged[l] = 0;
		put(POLLER, BACKLOG + l, 0, true);
		FENCE(POLLER);
		if
		:: listed[l] -> listed[l] = false; answer(CREDIT | ROOM)
		:: !listed[l]
		fi
	:: else
	fi
}

/* The message: the line, the routes that were named, what is wanted. */
inline look_at_side()
{
	look = false;
	take();
	d_step {
		w = CREDIT;
		if
		:: awaited && LOAD(POLLER, BACKLOG + leads) &&
		   !LOAD(POLLER, CLOSED) -> listed[leads] = true
#ifdef M_GONE_UNANSWERED
		:: awaited && LOAD(POLLER, CLOSED)
#else
		:: awaited && LOAD(POLLER, CLOSED) -> w = CREDIT | ROOM
#endif
		:: awaited && !LOAD(POLLER, BACKLOG + leads) &&
		   !LOAD(POLLER, CLOSED) -> w = CREDIT | ROOM
		:: !awaited
		fi;
		awaited = false;
		takes = w != CREDIT;
		w = 0
	};
	if
	:: takes -> takes = false; answer(CREDIT | ROOM)
	:: !takes -> answer(CREDIT)
	fi
}

/* The first step. */
inline move()
{
	behind = OWN_IS_BEHIND;
#ifndef M_LED_LATE
	leads = B;
#endif
	if
	:: CLOSES -> put(POLLER, CLOSED, 1, false)
	:: else
	fi;
#ifndef M_WAITER_KEPT
	listed[A] = false;
#endif
#ifndef M_LANE_LATE
	put(POLLER, LANE, B, true);
#endif
#ifndef M_NO_ANSWER
#ifdef M_PUT_OFF_LOST
	if
	:: want & ROOM -> answer(CREDIT | ROOM)
#else
	if
	:: behind || want & ROOM -> answer(CREDIT | ROOM)
#endif
	:: else
	fi;
#endif
	behind = false;
	FENCE(POLLER); /* the message releases */
	answered = 1
}

/* The second one. */
inline finish()
{
#ifdef M_LED_LATE
	leads = B;
#endif
#ifdef M_LANE_LATE
	put(POLLER, LANE, B, true);
#endif
	if
	:: CLOSES && is_out && completed < target -> owing = true
	:: CLOSES && !(is_out && completed < target) -> bury()
	:: !CLOSES
	fi;
	answered = 2
}

proctype poller()
{
	byte w;
	bool takes;
	bool behind;
	bool left;
	bool again;

end:	do
	:: tail > completed -> complete()
	:: spill[A] > 0 && ring[A] < RING -> retry(A)
	:: spill[B] > 0 && ring[B] < RING -> retry(B)
	:: look -> look_at_side()
	:: asked == 1 && answered == 0 -> move()
	:: asked == 2 && answered == 1 -> finish()
	od
}

/* ---------------------------------------------------------- the caller --- */

/* Ledger and line: the last work request of the route. */
inline walk()
{
#ifdef M_NUMBER_AT_ONCE
	is_out = false;
#else
	target = tail;
	is_out = tail > mem[RETIRED];
#ifndef M_STACK_NOT_WALKED
	d_step { in_line = in_line + published; published = 0 };
#endif
#ifndef M_LINE_NOT_WALKED
	d_step {
		target = tail + in_line;
		is_out = is_out || in_line > 0
	};
#endif
#endif
	skip
}

proctype caller()
{
	bool looks;

	asked = 1;
	answered == 1;
	paused = true;
#ifndef M_PAUSE_WAITS_NOT
	!held;
#endif
	is_paused = true;
#if !defined(M_GENERATION_LATE) && !defined(M_GENERATION_KEPT)
	generation = true;
#endif
	walk();
#ifdef M_GENERATION_LATE
	generation = true;
#endif
	is_paused = false;
	d_step {
		paused = false;
#ifndef M_GATHERED_FORGOTTEN
		waits = waits || in_line > 0;
#endif
		looks = IS_WAITING
	};
#ifndef M_RESUME_UNTOLD
	look = look || looks;
#endif
	asked = 2;
	answered == 2;
	assert(!listed[A]);
	is_freed = true
}

/* Another queue has lane A, and is over its limit. */
proctype stranger()
{
end:	d_step { is_freed && spill[A] == 0 && b_count[POLLER] == 0 ->
		mem[BACKLOG + A] = 1
	}
}

/* A's consumer goes when ROUTE_CLOSED has come, or takes on. */
proctype consumer(byte l)
{
end:	do
	:: ring[l] > 0 -> ring[l]--
	:: l == A && answered > 0 -> break
	od
}

/* When nothing happens any more. */
active proctype ending()
{
	timeout;
	assert(poster_is_done && answered == 2);
	assert(published == 0 && in_line == 0 && used == 0 && !held);
	assert(completed == tail && !awaited);
	assert(number_is_free == CLOSES)
}

init
{
	atomic {
		ring[A] = FULL_A;
		ring[B] = RING;
		run buffer(POLLER);
		run poster();
		run poller();
		run caller();
		run stranger();
		run consumer(A);
		run consumer(B)
	}
}
