/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Holders of a slot, as in doc/protocols/pool.md and in slots.c, for every
 * interleaving of the program that has the lease, posts on two connections,
 * their pollers, a thread with a stale copy of the lease, and the next taker of
 * the slot. Every step is one exchange of the slot's word, so there are no
 * store buffers.
 *
 * Wanted: while anybody holds a lease nobody else has the slot; a slot that
 * nobody holds is free, once; a copy of a lease that is over does nothing; a
 * refused post leaves the lease with the caller.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#define CONNS 2

/* the slot's word */
byte generation; /* odd: out */
bool program;
byte sends;

byte is_free;	    /* times that the slot is in the list */
byte posted[CONNS]; /* work requests that the device has */
byte reads;	    /* of the slot, by devices */
bool over;	    /* the program has no lease any more */

/* In the exchange that leaves nobody: the slot goes to the list behind it. */
inline let_go_end()
{
	if
	:: !program && sends == 0 ->
		generation++;
		is_last = true
	:: else
	fi
}

inline push()
{
	if
	:: is_last ->
		assert(reads == 0);
		atomic { is_free++; assert(is_free == 1) }
		is_last = false
	:: else
	fi
}

/* Posts on a connection; gives: the lease goes with that. */
inline post(c, gives)
{
	atomic {
		assert(generation == mine && program);
		sends++;
#ifndef M_GIVES_LATE
		program = !gives
#endif
	}
	if
	:: true -> /* the device refuses it */
#ifdef M_REFUSED_KEEPS
		atomic { sends--; }
#else
		atomic { sends--; program = true }
#endif
	:: true ->
		atomic {
			posted[c]++;
			reads++;
#ifndef M_GIVES_LATE
			over = gives
#endif
		}
#ifdef M_GIVES_LATE
		atomic { over = gives; program = !gives }
#endif
	fi
}

inline release()
{
	atomic {
		if
		:: generation == mine && program ->
			program = false;
#ifdef M_RELEASE_FREES
			generation++;
			is_last = true
#else
			let_go_end()
#endif
		:: else
		fi;
		over = true
	}
	push()
}

active proctype holder()
{
	byte mine;
	bool is_last;
	byte left = 2;

	generation = 1;
	program = true;
	mine = 1;
	do
	:: left > 0 && !over -> left--; post(0, false)
	:: left > 0 && !over -> left--; post(1, false)
	:: left > 0 && !over -> left--; post(1, true)
	:: !over -> release()
	:: over -> break
	od
}

/* Completes what was posted, however that ends. */
active [CONNS] proctype poller()
{
	bool is_last;

end:	do
	:: atomic { posted[_pid - 1] > 0 ->
			posted[_pid - 1]--;
			reads--;
		}
		atomic {
			assert(generation == 1 && sends > 0);
			sends--;
#ifdef M_NOBODY_LOOKS
			skip
#else
			let_go_end()
#endif
		}
		push()
	od
}

/* Has a copy of the lease, which the program uses when its own is over. */
active proctype stale()
{
	bool is_last;
	byte mine = 1;

	over;
#ifdef M_NO_GENERATION
	mine = generation;
#endif
	atomic {
		if
		:: generation == mine && program ->
			program = false;
			let_go_end();
			assert(false)
		:: else
		fi
	}
	push()
}

/* Takes the slot when it is free, and keeps it. */
active proctype taker()
{
	atomic { is_free == 1 ->
		is_free--;
		assert(generation == 2 && !program && sends == 0);
		assert(posted[0] == 0 && posted[1] == 0);
	}
	atomic { generation = 3; program = true }
}
