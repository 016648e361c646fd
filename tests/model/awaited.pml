/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Futures of the next free slot, as in doc/protocols/pool.md, Waiting for a
 * slot, in pool/pool.h, pool/slots.c, pool/life.c and poller/source.c, for
 * every interleaving of the poller, threads that ask for a future and give
 * futures up, a thread that takes slots without a future, and a connection with
 * the slots for receives, which goes. A list of free slots is a count and the
 * bit AWAITED in one word: the rest of the list is in pool.pml. A request to the
 * poller is one step, as in source.pml.
 *
 * Wanted: no future waits while a slot is free for the program; when no future
 * waits, AWAITED is not set, or AWAITED would keep slots from the program; no
 * slot is lost or doubled.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* where slots for sends are out for good */
#ifdef M_LAST_QUEUE_UNTOLD
#define SLOTS 0
#endif

#ifndef SLOTS
#define SLOTS 1 /* for sends */
#endif
#ifndef SPARE
#define SPARE 1 /* for receives */
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* of each thread */
#endif
#define FUTURES 2

/* the lists of free slots, for sends and for receives, each with the bit */
#define SENDS	 0
#define RECEIVES 1
byte free[2];
bool awaited[2];
bool fills = true; /* a receive queue is filled from the pool */

/* futures, each asked for, waiting, or with a slot */
#define NONE	0
#define ASKED	1
#define WAITS	2
#define GOT	3
#define GONE	4 /* cancelled, and the poller has done so */
byte state[FUTURES];
byte from[FUTURES]; /* which list the slot is of */
bool cancel[FUTURES];

/* requests: futures, and the keeper */
#define KEEPER FUTURES
byte stack[FUTURES + 1];
byte on_stack;
bool asked[FUTURES + 1];
bool msg;

byte over; /* threads */

inline ask(f)
{
	atomic {
		if
		:: !asked[f] ->
			asked[f] = true;
			stack[on_stack] = f;
			on_stack++;
			msg = true
		:: else
		fi
	}
}

inline push(l)
{
#ifdef M_LOOK_FIRST
	was_awaited = awaited[l];
	free[l]++;
#else
	atomic { was_awaited = awaited[l]; free[l]++ };
#endif
	if
	:: was_awaited -> was_awaited = false; ask(KEEPER)
	:: else
	fi
}

/* ---------------------------------------------------------- the poller --- */

/* Takes a slot of the list, or sets the bit. */
inline take_or_mark(l)
{
#ifdef M_MARK_APART
	if
	:: atomic { free[l] > 0 -> free[l]--; has = true; list = l }
	:: free[l] == 0 -> awaited[l] = true
	fi
#else
	atomic {
		if
		:: free[l] > 0 -> free[l]--; has = true; list = l
		:: free[l] == 0 -> awaited[l] = true
		fi
	}
#endif
}

inline take_or_await()
{
	take_or_mark(SENDS);
	if
	:: has
	:: !has ->
		if
		:: !fills -> take_or_mark(RECEIVES)
		:: fills -> awaited[RECEIVES] = false
		fi
	fi
}

inline shift()
{
	waits[0] = waits[1];
	waits[1] = 0;
	count--
}

/* Serves the futures that wait, the oldest first. */
inline serve()
{
	do
	:: count == 0 ->
#ifndef M_MARK_STAYS
		awaited[SENDS] = false;
		awaited[RECEIVES] = false;
#endif
		break
	:: count > 0 ->
		take_or_await();
		if
		:: has ->
			atomic {
				from[waits[0]] = list;
				state[waits[0]] = GOT;
				shift();
				has = false;
				list = 0
			}
		:: !has -> break
		fi
	od
}

/* Does a request in one step: the future waits, or waits no more. */
inline request(f)
{
	asked[f] = false;
	if
	:: f == KEEPER
	:: f != KEEPER && cancel[f] && state[f] == WAITS ->
		if
		:: waits[0] == f -> shift()
		:: waits[0] != f -> count--; waits[1] = 0
		fi;
		state[f] = GONE
	:: f != KEEPER && cancel[f] && state[f] == ASKED ->
		state[f] = GONE
	:: f != KEEPER && cancel[f] && state[f] == GOT ->
		gives = true; /* the result is unread */
		list = from[f];
		state[f] = GONE
	:: f != KEEPER && !cancel[f] && state[f] == ASKED ->
		state[f] = WAITS;
		waits[count] = f;
		count++
	:: else
	fi;
	if
	:: gives ->
		gives = false;
		was_awaited = awaited[list];
		free[list]++;
		if
		:: was_awaited -> was_awaited = false; ask(KEEPER)
		:: else
		fi;
		list = 0
	:: !gives
	fi
}

proctype poller()
{
	byte waits[FUTURES];
	byte todo[FUTURES + 1];
	byte count, n, i, list;
	bool has, gives, was_awaited;

end:	do
	:: atomic { msg ->
		msg = false;
		n = on_stack;
		on_stack = 0;
		todo[0] = stack[0];
		todo[1] = stack[1];
		todo[2] = stack[2];
		stack[0] = 0;
		stack[1] = 0;
		stack[2] = 0;
		do
		:: i < n -> request(todo[i]); i++
		:: i == n -> break
		od;
		i = 0; n = 0; todo[0] = 0; todo[1] = 0; todo[2] = 0
	};
#ifdef M_WOKEN_ONCE
		if
		:: count == 0 -> serve()
		:: count > 0 -> take_or_await();
			if
			:: has ->
				atomic {
					from[waits[0]] = list;
					state[waits[0]] = GOT;
					shift();
					has = false;
					list = 0
				}
			:: !has
			fi
		fi
#else
		serve()
#endif
	od
}

/* --------------------------------------------------------- the threads --- */

/* Asks, and waits until the slot comes, or gives the future up at any time. */
proctype waiter(byte f)
{
	byte rounds = ROUNDS;
	byte list;
	bool was_awaited;

	do
	:: rounds > 0 ->
		atomic {
			rounds--;
			cancel[f] = false;
			state[f] = ASKED;
			ask(f)
		};
		if
		:: skip;
			atomic { state[f] == GOT ->
				list = from[f];
				state[f] = NONE
			};
			push(list);
			list = 0
		:: atomic { cancel[f] = true; ask(f) };
			atomic { state[f] == GONE -> state[f] = NONE }
		fi
	:: rounds == 0 -> break
	od;
	over++
}

/* As rpma_rt_pool_take(): nothing while futures wait. */
proctype taker()
{
	byte rounds = ROUNDS;
	byte list;
	bool was_awaited, has;

	do
	:: rounds > 0 ->
		if
		:: atomic { free[SENDS] > 0 && !awaited[SENDS] ->
			free[SENDS]--;
			rounds--;
			has = true
		}
		:: atomic { !(free[SENDS] > 0 && !awaited[SENDS]) -> rounds-- };
			if
			:: fills
			:: !fills ->
				atomic {
					if
					:: free[RECEIVES] > 0 &&
					   !awaited[RECEIVES] ->
						free[RECEIVES]--;
						list = RECEIVES;
						has = true
					:: else
					fi
				}
			fi
		fi;
		if
		:: has -> has = false; push(list); list = 0
		:: !has
		fi
	:: rounds == 0 -> break
	od;
	over++
}

/* A receive queue has the slots for receives; then the queue goes. */
proctype conn()
{
	byte posted = SPARE;
	bool was_awaited;

	do
	:: posted > 0 -> posted--; push(RECEIVES)
	/* a receive takes the slot again, whoever waits */
	:: atomic { free[RECEIVES] > 0 && fills && posted == 0 -> skip };
		break
	od;
	fills = false;
#ifndef M_LAST_QUEUE_UNTOLD
	if
	:: awaited[SENDS] -> ask(KEEPER)
	:: else
	fi;
#endif
	over++
}

init {
	atomic {
		free[SENDS] = SLOTS;
		run poller();
		run waiter(0);
		run waiter(1);
		run taker();
		run conn()
	};
	/* all is over, or nothing moves any more */
	over == 4;
	!msg && timeout;
	assert(free[SENDS] == SLOTS && free[RECEIVES] == SPARE);
	assert(!awaited[SENDS] && !awaited[RECEIVES])
}
