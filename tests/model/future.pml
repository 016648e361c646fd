/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Futures of receives, as in doc/protocols/future.md and in poller/future.c,
 * future/ask.c, calls.c and wait.c: a slot, its poller, and a holder that posts
 * it USES times. Each time it may arm a continuation, cancel, sleep until it is
 * complete, read, and drops in the end, at any moment; the message of each use
 * comes at any moment too.
 *
 * The poller publishes through a store buffer of one place, which its fence
 * waits for. What is read-modify-write is in order.
 *
 * Wanted: each message is got by one: read by the holder, called with, or in
 * the queue, and by one only; no function is called after drop has said never,
 * and none twice; no slot is given to a poster that the poller has still to
 * touch; nobody sleeps on a result (an invalid end state).
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef USES
#define USES 2
#endif

/* of a send a drop has no message to save, and is direct more often */
#ifdef M_FREE_EARLY
#define RECV false
#endif
#ifndef RECV
#define RECV true
#endif

#define FREE	0
#define OUT	1
#define DONE	2
#define ENDED 3

#define NONE   0
#define ARMED  1
#define CALLED 2
#define NEVER  3

#define THEN   1
#define CANCEL 2
#define DROP   4
#define TAKEN  8

/* the slot */
byte state;
byte asked;
byte claim;
bool is_detached; /* the result was taken out of it */
byte use;	  /* which use it is in */
bool waiter;	  /* the holder sleeps there */

/* the stack of requests, and the message about it */
bool on_stack;
bool msg_sent;
bool msg; /* in the inbox */

/* the poller's */
bool came;     /* the completion of this use is in the CQ */
bool filled;
byte told;
byte to_store; /* published, and in its buffer; 0: nothing */
bool rung;
bool at_work; /* for the end of the search */

/* how often the message of each use was given out */
byte got[USES + 1];
byte calls[USES + 1];
bool ruled_out[USES + 1];

#define GET(u)                 \
	got[u]++;              \
	assert(got[u] == 1)

/* --------------------------------------------------------- the poller --- */

/* Its store leaves the buffer by itself, or with the fence. */
proctype buffer()
{
end:	do
	:: atomic { to_store != 0 -> state = to_store; to_store = 0 }
	od
}

inline publish(s)
{
	atomic { to_store == 0; assert(state != FREE); to_store = s };
#ifndef M_NO_FENCE_PUBLISH
	to_store == 0;
#endif
	if
	:: waiter -> rung = true
	:: else
	fi
}

inline set_free()
{
	atomic {
		to_store == 0;
		assert(state != FREE);
		filled = false;
		told = 0;
		state = FREE
	}
}

/* Claims, and calls: is_called. The result was copied before, of use u. */
inline run_then(u)
{
#ifdef M_NO_CLAIM
	atomic { claim = CALLED; is_called = true };
#else
	atomic {
		is_called = (claim == ARMED);
		if
		:: is_called -> claim = CALLED
		:: else
		fi
	};
#endif
	if
	:: is_called ->
		atomic {
			GET(u);
			calls[u]++;
			assert(calls[u] == 1 && !ruled_out[u])
		}
	:: else
	fi
}

#ifdef M_CALLED_IGNORED
#define WAS_CALLED false
#else
#define WAS_CALLED (claim == CALLED)
#endif

/* What is on the stack; the batch is published. */
inline run_asked()
{
	to_store == 0;
	if
	:: atomic { on_stack -> on_stack = false };
		atomic { bits = asked; asked = 0 };
#ifdef M_STORED_IGNORED
		if
		:: true -> told = told | (bits & 7)
		fi;
#else
		if
		:: !filled -> told = told | (bits & 7)
		:: filled ->
			u = use;
			is_called = is_detached;
			if
			:: (bits & THEN) && !is_detached -> run_then(u)
			:: else
			fi;
			if
			:: !(bits & (DROP | CANCEL)) -> skip
			:: bits & (DROP | CANCEL) ->
				if
				:: RECV && !is_called && !WAS_CALLED &&
				   !(bits & TAKEN) ->
					atomic { GET(u) }
				:: else
				fi;
				if
				:: bits & DROP -> set_free()
				:: else ->
					is_detached = true;
					publish(ENDED)
				fi
			fi
		fi;
#endif
		atomic { bits = 0; u = 0; is_called = false }
	:: !on_stack
	fi
}

proctype poller()
{
	byte bits;
	byte u;
	bool is_called;

end:	do
	/* a completion: stored, complete, published */
	:: atomic { came -> came = false; at_work = true; assert(state == OUT && !filled);
		filled = true; u = use };
		is_called = false;
		if
		:: told & THEN -> run_then(u)
		:: else
		fi;
		if
		:: RECV && (told & (DROP | CANCEL)) && !is_called ->
			atomic { GET(u) }
		:: else
		fi;
		if
		:: told & DROP -> set_free()
		:: !(told & DROP) && (told & CANCEL) ->
			is_detached = true;
			publish(ENDED)
		:: !(told & (DROP | CANCEL)) -> publish(DONE)
		fi;
		atomic { bits = 0; u = 0; is_called = false; at_work = false }
	/* the message */
	:: atomic { msg -> msg = false; msg_sent = false; at_work = true };
		run_asked();
		at_work = false
	/* or before CLOSED */
	:: atomic { on_stack -> at_work = true };
		run_asked();
		at_work = false
	od
}

/* --------------------------------------------------------- the holder --- */

inline ask(what)
{
	atomic {
		is_first = (asked == 0);
		asked = asked | what
	};
	if
	:: is_first ->
		atomic { assert(!on_stack); on_stack = true };
#ifdef M_MESSAGE_TWICE
		atomic { assert(!msg); msg = true }
#else
		atomic {
			if
			:: !msg_sent -> msg_sent = true; assert(!msg);
				msg = true
			:: else
			fi
		}
#endif
	:: else
	fi;
	is_first = false
}

#define IS_READY (state == ENDED || (state == DONE && !is_away))
#ifdef M_CANCEL_READS_DONE
#undef IS_READY
#define IS_READY (state == ENDED || state == DONE)
#endif

/* Tries to take the continuation back: is_never. */
inline take_back()
{
	atomic {
		is_never = (claim != CALLED);
		if
		:: claim == ARMED -> claim = NEVER; ruled_out[use] = true
		:: else
		fi
	}
}

inline look_and_read()
{
	if
	:: IS_READY ->
		has_read = true;
		if
		/* a result that is detached is no message */
		:: !is_detached && claim == NONE && got[use] == 0 ->
			atomic { GET(use) }
		:: else
		fi
	:: else
	fi
}

/* Until it is ready; the poller rings, or the second look finds it. */
inline sleep_until_ready()
{
	waiter = true;
#ifndef M_NO_SECOND_LOOK
	if
	:: IS_READY -> skip
	:: else -> rung
	fi;
#else
	rung;
#endif
	atomic { waiter = false; rung = false }
}

proctype holder()
{
	bool is_first;
	bool is_away;
	bool is_never;
	bool has_read;
	bool is_armed;

	do
	:: use < USES ->
		/* the poster: a slot that is free, and nobody's */
		atomic {
			state == FREE;
			assert(!on_stack && !filled && to_store == 0);
			use++;
			claim = NONE;
			is_detached = false;
			asked = 0;
			told = 0;
			state = OUT;
			came = true
		};
		do
		:: !is_armed && !is_away && !has_read ->
			is_armed = true;
			claim = ARMED;
			ask(THEN)
		:: !is_away && !IS_READY ->
			take_back();
			if
			:: is_never ->
				is_away = true;
				ask(CANCEL)
			:: else
			fi
		:: !is_armed && !has_read -> look_and_read()
		:: !IS_READY && (!is_armed || is_away) -> sleep_until_ready()
		:: break
		od;
		/* drop */
#ifdef M_FREE_EARLY
#define IS_THROUGH true
#else
#define IS_THROUGH (claim != ARMED)
#endif
#ifdef M_DROP_LOSES
#define HOLDS_MESSAGE false
#else
#define HOLDS_MESSAGE (RECV && !is_detached && !has_read && claim != CALLED)
#endif
		if
		:: IS_READY && IS_THROUGH && !HOLDS_MESSAGE ->
			atomic {
				assert(state != FREE);
				filled = false;
				told = 0;
				state = FREE
			}
		:: else ->
			take_back();
			if
			:: has_read -> ask(DROP | TAKEN)
			:: else -> ask(DROP)
			fi
		fi;
		atomic {
			is_away = false;
			is_never = false;
			has_read = false;
			is_armed = false
		}
	:: use == USES -> break
	od;
	/* all of it comes to an end, and each message was got */
	(state == FREE && !came && !on_stack && !msg && !at_work);
	assert(!RECV || (got[1] == 1 && got[USES] == 1))
}

init {
	atomic {
		run buffer();
		run poller();
		run holder()
	}
}
