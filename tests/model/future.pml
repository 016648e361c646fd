/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Futures of receives, as in doc/protocols/future.md and in poller/future.c,
 * future/life.c, calls.c and wait.c: a slot, its poller, and a holder that posts
 * it up to USES times. Each time it may arm a function, have the result
 * delivered to a queue, cancel, sleep until it is complete, read, and drops in
 * the end, at any moment; the message of each use comes at any moment too. So
 * does a stop: the connection dies, which completes what is out, it ends, then
 * the poller does, and what is asked after that the stop does, or the holder.
 * With EVENT=1 the slot is of an event of the connection, which comes once; with
 * NO_QUEUE=1 the connection has no queue, and is_led means: to a route.
 *
 * The poller publishes through a store buffer of one place, which its fence
 * waits for; so is that the stop has come, and that nobody does requests after
 * it. What is read-modify-write is in order.
 *
 * A holder that waits lends the slot's token to whoever publishes a result, who
 * puts it into the list of the place where the holder sleeps. The token may come
 * early, from the publication of the use before. A wait may end by its time.
 *
 * Wanted: each message is got by one: read by the holder, called with, or in
 * the queue, and by one only, unless it was dropped when the connection had
 * ended; no function is called after drop has said never, and none twice; no
 * slot is given to a poster that the poller has still to touch; nobody sleeps
 * on a result (an invalid end state); the token is back when a wait ends; a holder that has cancelled reads none,
 * but a message that had no queue to go to.
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
/* an event that comes before it is watched */
#ifdef M_EVENT_MISSED
#define EVENT 1
#endif
#ifdef M_WATCH_LATE
#define EVENT 1
#endif
#ifdef M_RESULT_STAYS
#define EVENT 1
#endif
/* a message that is given up where there is no queue */
#ifdef M_MESSAGE_TAKEN_ALONG
#define NO_QUEUE 1
#endif
#ifdef NO_QUEUE
#define GONE true
#else
#define GONE gone
#endif
#ifdef EVENT
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
#define WATCH  16

/* the slot */
byte state;
byte asked;
byte claim;
bool is_led;	  /* its continuation is a queue */
bool is_detached; /* it is, or will be, ENDED */
bool is_empty;	  /* the result was taken out of it */
byte use;	  /* which use it is in */
bool waiter;	  /* the token is there: the holder waits */
bool pushed;	  /* the slot is in the list of its holder's place */
bool waits;	  /* the holder does: for the assertion */

/* the stack of requests, and the message about it */
bool on_stack;
bool msg_sent;
bool msg; /* in the inbox */

/* the poller's */
bool came;     /* the completion of this use is in the CQ */
bool event;    /* it has come */
bool filled;
byte told;
byte to_store; /* published, and in its buffer; 0: nothing */
bool at_work; /* for the end of the search */

/* the end of the connection, then of the poller */
bool dying;    /* no post is taken any more */
bool gone;     /* CLOSED is written: no queue */
bool stopping; /* the poller leaves requests where they are */
bool ended;    /* the poller has */
bool to_stop;  /* in a buffer: */
bool stopped;
bool ending;   /* somebody does what was asked since */
bool to_leave; /* in a buffer: not any more */

/* how often the message of each use was given out */
byte got[USES + 1];
byte calls[USES + 1];
bool ruled_out[USES + 1];
bool lost[USES + 1]; /* dropped when there was no queue for it */

#define GET(u)                 \
	got[u]++;              \
	assert(got[u] == 1)

/* ------------------------------------------------------- the buffers --- */

/* A store leaves its buffer by itself, or with the fence. */
proctype buffer()
{
end:	do
	:: atomic { to_store != 0 -> state = to_store; to_store = 0 }
	:: atomic { to_stop -> stopped = true; to_stop = false }
	:: atomic { to_leave -> ending = false; to_leave = false }
	od
}

/* --------------------------------------------------------- the poller --- */

inline publish(s)
{
	atomic { to_store == 0; assert(state != FREE); to_store = s };
#ifndef M_NO_FENCE_PUBLISH
	to_store == 0;
#endif
	atomic {
		if
#ifdef M_TOKEN_NOT_TAKEN
		:: waiter -> has_token = true
#else
		:: waiter -> waiter = false; has_token = true
#endif
		:: else
		fi
	};
	if
	:: has_token ->
		atomic { assert(waits && !pushed); pushed = true;
			has_token = false }
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

/* The holder gets no result of it. */
inline detach()
{
	is_empty = true;
	is_detached = true
}

/* Claims, and calls, or leads to the queue: is_called. The result was copied
 * before, of use u. */
inline run_then(u)
{
	was_led = is_led;
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
	:: is_called && !was_led ->
		atomic {
			GET(u);
			calls[u]++;
			assert(calls[u] == 1 && !ruled_out[u])
		}
	:: is_called && was_led ->
		is_left = true;
		atomic { assert(!gone); GET(u) }
	:: else
	fi;
	was_led = false
}

/* What was asked of one whose result is stored, and is not published. */
inline finish(u)
{
	is_called = false;
	if
	:: told & THEN -> run_then(u)
	:: else
	fi;
	if
	:: RECV && (told & (DROP | CANCEL)) && !is_called ->
#ifdef NO_QUEUE
		lost[u] = lost[u] || (told & DROP)
#else
		atomic { GET(u) }
#endif
	:: else
	fi;
	if
	:: told & DROP -> set_free()
	:: !(told & DROP) && ((told & CANCEL) || is_left) ->
#if defined(NO_QUEUE) && !defined(M_MESSAGE_TAKEN_ALONG)
		if
		:: is_left || !RECV -> detach()
		:: else -> is_detached = true
		fi;
#else
		detach();
#endif
		publish(ENDED)
	:: !(told & (DROP | CANCEL)) && !is_left -> publish(DONE)
	fi;
	is_left = false
}

/* A message that has no queue stays, lest it be lost; no other result does. */
#ifdef M_RESULT_STAYS
#define IS_GIVEN_UP false
#else
#define IS_GIVEN_UP (!RECV && (bits & CANCEL) && !((bits & THEN) && is_led))
#endif

#ifdef M_CALLED_IGNORED
#define WAS_CALLED false
#else
#define WAS_CALLED (claim == CALLED)
#endif

/* Of one whose result is published. */
inline ask_after()
{
	u = use;
	is_called = is_detached || WAS_CALLED;
	if
#ifndef M_LED_WHEN_GONE
	/* the result stays */
	:: (bits & THEN) && is_led && gone -> bits = bits | CANCEL
	:: (bits & THEN) && !(is_led && gone) && !is_called -> run_then(u)
#else
	:: (bits & THEN) && !is_called -> run_then(u)
#endif
	:: else
	fi;
	if
	:: !(bits & (DROP | CANCEL)) && !is_left -> skip
	:: (bits & (DROP | CANCEL)) || is_left ->
		if
		:: RECV && !is_called && !GONE && !(bits & TAKEN) ->
			atomic { GET(u) }
		:: else ->
			lost[u] = lost[u] || (GONE && (bits & DROP))
		fi;
		if
		:: bits & DROP -> set_free()
		:: else ->
			if
			:: is_left || !GONE || IS_GIVEN_UP -> detach()
			:: else -> is_detached = true
			fi;
#ifdef M_LED_NOT_ENDED
			if
			:: is_left -> skip
			:: else -> publish(ENDED)
			fi
#else
			publish(ENDED)
#endif
		fi
	fi;
	is_left = false
}

/* Is it of an event, and nothing of it in the device's hands? */
#ifdef EVENT
#define IS_OVER(bits) (event || (bits & (CANCEL | DROP)))
#else
#define IS_OVER(bits) false
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
		:: true -> told = told | (bits & ~TAKEN)
		fi;
#else
		if
		:: !filled ->
			told = told | (bits & ~TAKEN);
			u = use;
			if
#ifdef M_EVENT_MISSED
			:: bits & (CANCEL | DROP) ->
#else
			:: IS_OVER(bits) ->
#endif
				filled = true;
				finish(u)
			:: else
			fi
		:: filled -> ask_after()
		fi;
#endif
		atomic { bits = 0; u = 0; is_called = false }
	:: !on_stack
	fi
}

#ifdef EVENT
#define IS_ALL_COMPLETE event
#else
#define IS_ALL_COMPLETE (!came && (state == FREE || filled))
#endif

proctype poller()
{
	byte bits;
	byte u;
	bool is_called;
	bool is_left;
	bool was_led;
	bool has_token;

	do
	/* a completion: stored, complete, published */
	:: atomic { came -> came = false; at_work = true;
		assert(state == OUT && !filled);
		filled = true; u = use };
		finish(u);
		atomic { bits = 0; u = 0; is_called = false; at_work = false }
#ifdef EVENT
	/* of those that watch it */
	:: atomic { !event -> event = true; at_work = true; u = use };
#ifdef M_WATCH_LATE
		if
		:: state == OUT && !filled ->
#else
		if
		:: (told & WATCH) && !filled ->
#endif
			filled = true;
			finish(u)
		:: else
		fi;
		atomic { u = 0; is_called = false; at_work = false }
#endif
	/* the message */
	:: atomic { msg && !stopping -> msg = false; msg_sent = false;
		at_work = true };
		run_asked();
		at_work = false
	:: atomic { msg && stopping -> msg = false; msg_sent = false }
	/* before CLOSED */
	:: atomic { dying && !gone && IS_ALL_COMPLETE -> at_work = true };
		run_asked();
		to_store == 0;
		gone = true;
		at_work = false
	:: atomic { stopping && to_store == 0 -> ended = true }; break
	od
}

/* ---------------------------------------------------------- the stop --- */

/* Of one whose poller has ended. */
inline ask_ended()
{
	lost[use] = lost[use] || (bits & DROP);
	if
	:: bits & DROP -> set_free()
	:: !(bits & DROP) && ((bits & CANCEL) || ((bits & THEN) && is_led)) ->
		is_empty = is_empty || IS_GIVEN_UP;
		is_detached = true;
		publish(ENDED)
	:: !(bits & (DROP | CANCEL)) && !((bits & THEN) && is_led) ->
		if
		:: bits & WATCH -> publish(DONE)
		:: else
		fi
	fi
}

/* One thread at a time does it; another leaves its request to that. */
inline run_ended()
{
	do
	:: atomic { was_inside = ending; ending = true };
#ifndef M_ENDING_TOGETHER
		if
		:: was_inside -> break
		:: else
		fi;
#endif
		if
		:: atomic { on_stack -> on_stack = false };
			atomic { bits = asked; asked = 0 };
			ask_ended();
			bits = 0
		:: !on_stack
		fi;
		to_leave = true;
#ifndef M_NO_FENCE_ENDING
		!to_leave;
#endif
#ifndef M_NO_LOOK_AGAIN
		if
		:: !on_stack -> break
		:: else
		fi
#else
		break
#endif
	od;
	was_inside = false
}

proctype stop()
{
	byte bits;
	bool was_inside;
	bool has_token;

	dying = true;
	gone;
	stopping = true;
	ended;
	to_stop = true;
#ifndef M_NO_FENCE_STOP
	stopped;
#endif
#ifndef M_NOT_FINISHED
	run_ended()
#endif
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
#ifndef M_STOP_IGNORED
		if
		:: stopped -> run_ended()
		:: else
		fi
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
		assert(!is_cancelled || RECV || is_empty);
		if
		/* a result that is detached is no message */
		:: !is_empty -> atomic { GET(use) }
		:: else
		fi
	:: else
	fi
}

#ifdef M_NO_SECOND_LOOK
#define IS_SEEN false
#else
#define IS_SEEN IS_READY
#endif
#ifdef M_NOT_POINTED_AGAIN
#define POINTS_AGAIN false
#else
#define POINTS_AGAIN true
#endif

/* Until it is ready, or the time has passed; the poller pushes it, or the look
 * behind each lending finds it. */
inline sleep_until_ready()
{
	atomic { assert(!waiter && !pushed); waits = true; is_lent = true;
		waiter = true };
	do
	:: is_lent && IS_SEEN -> break
	:: is_lent && !IS_SEEN ->
		if
		:: true -> break /* the time has passed */
		:: true -> atomic { pushed -> pushed = false; is_lent = false }
		fi
	:: !is_lent && IS_READY -> break
	:: !is_lent && !IS_READY ->
		if
		:: POINTS_AGAIN -> atomic { waiter = true; is_lent = true }
		:: !POINTS_AGAIN -> is_lent = true
		fi
	od;
	/* has the token again */
	atomic {
		if
		:: waiter -> waiter = false; is_lent = false
		:: else
		fi
	};
#ifndef M_LEFT_TOO_EARLY
	if
	:: is_lent -> atomic { pushed -> pushed = false; is_lent = false }
	:: else
	fi;
#endif
	atomic { waits = false; is_lent = false }
}

#ifdef EVENT
#define MAY_TAKE (!stopping)
#else
#define MAY_TAKE (!dying)
#endif

proctype holder()
{
	byte bits;
	bool was_inside;
	bool has_token;
	bool is_first;
	bool is_away;
	bool is_never;
	bool has_read;
	bool is_armed;
	bool is_cancelled;
	bool is_lent;

	do
	:: atomic {
			/* the poster: a slot that is free, and nobody's */
			use < USES && MAY_TAKE && state == FREE ->
			assert(!on_stack && !filled && to_store == 0);
			use++;
			claim = NONE;
			is_led = false;
			is_detached = false;
			is_empty = false;
			asked = 0;
			told = 0;
			state = OUT;
#ifndef EVENT
			came = true
#endif
		};
#ifdef EVENT
		ask(WATCH);
#endif
		do
		:: !is_armed && !is_away && !has_read ->
			is_armed = true;
			claim = ARMED;
			ask(THEN)
#ifndef EVENT
		:: !is_armed && !is_away && !has_read ->
			is_armed = true;
			is_led = true;
			is_away = true;
			claim = ARMED;
			ask(THEN)
#endif
		:: !is_away && !IS_READY ->
			take_back();
			if
			:: is_never ->
				is_away = true;
				is_cancelled = true;
				ask(CANCEL)
			:: else
			fi
		:: (!is_armed || is_away) && !has_read -> look_and_read()
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
#define HOLDS_MESSAGE (RECV && !is_empty && !has_read && claim != CALLED)
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
			is_armed = false;
			is_cancelled = false
		}
	:: use == USES || !MAY_TAKE -> break
	od;
	/* all of it comes to an end, and each message was got */
	(state == FREE && !came && !on_stack && (!msg || ended) && !at_work);
	assert(!RECV || use < 1 || got[1] == 1 || lost[1]);
	assert(!RECV || use < USES || got[USES] == 1 || lost[USES])
}

init {
	atomic {
		run buffer();
		run poller();
		run stop();
		run holder()
	}
}
