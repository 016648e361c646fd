/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The lock of four bytes, as in doc/protocols/ledger.md and base/lock.c, for
 * every interleaving of three threads that take it, and a kernel that wakes any
 * of those who sleep, or one that nobody meant.
 *
 * One word decides everything, so nobody sees its stores in another order, and
 * no store buffer is modelled. The kernel compares the word and goes to sleep in
 * one step.
 *
 * Wanted: one thread is inside at a time, and nobody sleeps for ever.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef TIMES
#define TIMES 2 /* that each thread takes the lock */
#endif
#ifndef THREADS
#define THREADS 3
#endif
#define SPURIOUS 1 /* wake-ups that nobody meant */

#define FREE	0
#define HELD	1
#define AWAITED 2

byte word;
byte inside;
byte spurious;
bool asleep[THREADS];

/* The kernel: one of those who sleep, if there is one. */
inline wake()
{
	atomic {
		if
		:: asleep[0] -> asleep[0] = false
		:: asleep[1] -> asleep[1] = false
		:: THREADS > 2 && asleep[THREADS - 1] -> asleep[THREADS - 1] = false
		:: else
		fi
	}
}

inline wait(me)
{
	do
	:: atomic {
		seen = word;
#ifdef M_TAKEN_AS_ALONE
		word = (seen == FREE -> HELD : AWAITED)
#else
		word = AWAITED
#endif
	};
		if
		:: seen == FREE -> break
		:: else
		fi;
		atomic {
#ifdef M_SLEEP_WITHOUT_LOOK
			asleep[me] = true
#else
			asleep[me] = (word == AWAITED)
#endif
		};
		if
		:: !asleep[me]
		:: spurious < SPURIOUS -> atomic { spurious++; asleep[me] = false }
		fi
	od
}

inline release()
{
#ifdef M_READ_THEN_FREED
	seen = word;
	word = FREE;
#else
#ifdef M_WAKE_BEFORE_FREE
	if
	:: word == AWAITED -> wake()
	:: else
	fi;
	seen = HELD;
	word = FREE;
#else
	atomic { seen = word; word = FREE };
#endif
#endif
	if
	:: seen == AWAITED -> wake()
	:: else
	fi
}

proctype thread(byte me)
{
	byte seen;
	byte i;

	for (i : 1 .. TIMES) {
#ifdef M_LOOK_THEN_TAKEN
		seen = word;
		if
		:: seen == FREE -> word = HELD
		:: else
		fi;
#else
		atomic {
			seen = word;
			if
			:: seen == FREE -> word = HELD
			:: else
			fi
		};
#endif
		if
		:: seen != FREE -> wait(me)
		:: else
		fi;
		inside++;
		assert(inside == 1);
		inside--;
		release()
	}
}

init
{
	byte i;

	atomic {
		for (i : 0 .. THREADS - 1) {
			run thread(i)
		}
	}
}
