/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A pool, as in doc/protocols/pool.md and in slots.c, for every
 * interleaving of two pollers with a receive queue each, the device, and two
 * threads that give leases back. The accesses that matter are seq_cst, so there
 * are no store buffers; a take reads the successors one by one.
 *
 * Each poller gets messages: the device needs a receive for each, the poller
 * posts as long as there are more to come, and its last slots come back too.
 * Poller 0 is a loop's, and may defer a fill.
 *
 * Wanted: each poller gets its messages, though nobody but a giver wakes it
 * when it is hungry; no slot is taken that is not free; no message is in an
 * inbox twice.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* what breaks where a poller asks that is not quite empty */
#ifdef M_ASK_TWICE
#define SIZE 2
#endif

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef SIZE
#define SIZE 1 /* of a receive queue, all of it taken at once */
#endif
#ifndef N
#define N 2 /* messages for poller 0 */
#endif
#ifndef N1
#define N1 N /* for poller 1 */
#endif
#define COUNT(p) ((p == 0) -> N : N1)
#define POLLERS 2

/* where a slot is; posted to poller p, or with its message: + p */
#define FREE   0
#define HELD   1
#define GIVING 2
#define POSTED 3
#define CAME   (POSTED + POLLERS)

byte where[SLOTS + 1]; /* slots are counted from 1 */
byte next[SLOTS + 1];

/* the head */
byte first;
byte takes;

bool asking[POLLERS];
bool msg[POLLERS]; /* in the inbox */

byte posted[POLLERS];
byte came[POLLERS];
byte sent[POLLERS];
byte got[POLLERS];

/* --------------------------------------------------------------- taking --- */

#ifdef M_NO_COUNT
#define IS_HEAD (first == head)
#else
#define IS_HEAD (first == head && takes == before)
#endif

/* Takes up to max, for poller p: n of them. */
inline take(p, max)
{
	do
	:: atomic { head = first; before = takes };
		to = head;
		n = 0;
		do
		:: n < max && to != 0 -> atomic { to = next[to]; n++ }
		:: n == max || to == 0 -> break
		od;
		if
		:: n == 0 -> break
		:: n > 0 ->
			if
			:: atomic { IS_HEAD ->
				first = to;
				takes++;
				at = head;
				k = 0;
				do
				:: k < n ->
					assert(where[at] == FREE);
					where[at] = POSTED + p;
					at = next[at];
					k++
				:: k == n -> break
				od;
				posted[p] = posted[p] + n;
				at = 0;
				k = 0
			}
				break
			:: !IS_HEAD -> skip
			fi
		fi
	od;
	atomic { head = 0; before = 0; to = 0 }
}

/* ---------------------------------------------------------- the pollers --- */

/* How many receives there is use and room for. */
#define ROOM(p)                                                           \
	((COUNT(p) - got[p] - posted[p] - came[p] <                       \
	  SIZE - posted[p] - came[p])                                     \
	 -> (COUNT(p) - got[p] - posted[p] - came[p])                     \
	 :  (SIZE - posted[p] - came[p]))
#define IS_LOW(p) (posted[p] + came[p] < SIZE && ROOM(p) > 0)

/* False, in is_promised: there is a slot, and nobody will tell. */
inline ask(p)
{
#ifndef M_ASK_TWICE
	if
	:: asked -> is_promised = true
	:: !asked ->
#endif
		asking[p] = true;
#ifdef M_NO_SECOND_LOOK
		is_promised = true;
#else
		if
		:: first == 0 -> is_promised = true
		:: first != 0 ->
#ifdef M_BIT_LEFT
			is_promised = false
#else
			atomic {
				is_promised = !asking[p];
				asking[p] = false
			}
#endif
		fi;
#endif
		asked = is_promised
#ifndef M_ASK_TWICE
	fi
#endif
}

inline fill(p)
{
	do
	:: ROOM(p) > 0 ->
		room = ROOM(p);
		take(p, room);
		if
		:: n > 0 -> skip
		:: n == 0 && !IS_LOW(p) -> break
		:: n == 0 && IS_LOW(p) ->
			ask(p);
			if
			:: is_promised -> break
			:: !is_promised -> skip
			fi
		fi
	/* the share of the queue allows no more; it allows one receive */
#ifdef M_SHARE_OF_NONE
	:: ROOM(p) > 0 -> break
#else
	:: ROOM(p) > 0 && posted[p] + came[p] > 0 -> break
#endif
	:: ROOM(p) == 0 -> break
	od;
	atomic { room = 0; n = 0; is_promised = false }
}

/* Of the slots with its messages one. */
inline deliver(p)
{
	atomic {
		s = 1;
		do
		:: where[s] != CAME + p -> s++
		:: where[s] == CAME + p -> break
		od;
		where[s] = HELD;
		came[p]--;
		got[p]++;
		s = 0
	}
}

proctype poller(byte p)
{
	byte head, before, to, at, k, n, room, s;
	bool asked;
	bool is_promised;
	bool is_deferred;

	fill(p);
	do
	:: came[p] > 0 ->
		deliver(p);
		/* the fill is deferred, by a consumer's poller, or ends the
		 * deferral of a fill */
		if
		:: p == 0 -> is_deferred = true
		:: is_deferred = false; fill(p)
		fi
#ifndef M_SLEEPS_BEFORE_FILL
	:: is_deferred -> is_deferred = false; fill(p)
#endif
	:: atomic { msg[p] -> msg[p] = false; asked = false }; fill(p)
	:: got[p] == COUNT(p) && !msg[p] -> break
	od
}

/* --------------------------------------------------------------- device --- */

/* A message for poller p, into one of its slots. */
inline message(p)
{
	s = 1;
	do
	:: where[s] != POSTED + p -> s++
	:: where[s] == POSTED + p -> break
	od;
	where[s] = CAME + p;
	posted[p]--;
	came[p]++;
	sent[p]++;
	s = 0
}

proctype device()
{
	byte s;

end:
	do
	:: atomic { posted[0] > 0 && sent[0] < N -> message(0) }
	:: atomic { posted[1] > 0 && sent[1] < N1 -> message(1) }
	od
}

/* --------------------------------------------------------------- givers --- */

inline send(p)
{
	assert(!msg[p]);
	msg[p] = true
}

inline answer()
{
	atomic {
		t0 = asking[0];
		t1 = asking[1];
		asking[0] = false;
		asking[1] = false
	};
#ifdef M_TELLS_ONE
	if
	:: t0 -> t1 = false
	:: !t0 -> skip
	fi;
#endif
	if
	:: t0 -> atomic { send(0); t0 = false }
	:: !t0 -> skip
	fi;
	if
	:: t1 -> atomic { send(1); t1 = false }
	:: !t1 -> skip
	fi
}

inline give()
{
#ifdef M_LOOK_FIRST
	is_asked = asking[0] || asking[1];
#endif
	do
	:: head = first;
		next[s] = head;
		if
		:: atomic { first == head -> first = s; where[s] = FREE };
			break
		:: first != head -> skip
		fi
	od;
#ifndef M_LOOK_FIRST
	is_asked = asking[0] || asking[1];
#endif
	if
	:: is_asked -> answer()
	:: !is_asked -> skip
	fi;
	atomic { s = 0; head = 0; is_asked = false }
}

proctype giver()
{
	byte s, head;
	bool t0, t1, is_asked;

end:
	do
	:: atomic { where[1] == HELD -> where[1] = GIVING; s = 1 };
		give()
	:: atomic { where[2] == HELD -> where[2] = GIVING; s = 2 };
		give()
	:: atomic { where[SLOTS] == HELD -> where[SLOTS] = GIVING; s = SLOTS };
		give()
	od
}

init {
	atomic {
		byte i = 1;

		do
		:: i < SLOTS -> next[i] = i + 1; i++
		:: i == SLOTS -> break
		od;
		first = 1;
		i = 0;
		run poller(0);
		run poller(1);
		run device();
		run giver();
		run giver()
	}
}
