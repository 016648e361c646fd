/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Posting from several threads on one side of a connection, as in
 * doc/protocols/ledger.md and in runtime/base/turn.c, for every interleaving of
 * two posters, the poller, the control thread and the device.
 *
 * Poster 0 posts a link of two work requests, the first of which is a part;
 * poster 1 posts two single ones. A call that finds the word idle and room in
 * the queue posts from its own memory. Any other call takes slots and publishes
 * all of its work requests by one exchange of the word; if the right to post is
 * free, the same exchange takes the right. The holder of the right moves what is
 * published to the line, in order, and posts from the front of the line as far
 * as the queue has room, a link only whole. The poller counts what retires,
 * which gives places and room back.
 *
 * The poller stores through a buffer, see buffers.pml. Every other shared word
 * is changed by read-modify-write only; where a fence has to follow, the mutant
 * that lacks the fence looks first.
 *
 * The control thread redirects poster 0's route (REDIRECTS) and closes the
 * connection at any time, or drains it when posters are done (DRAINS). The
 * device may fail a work request, and with REFUSES may refuse one in the verb.
 *
 * Wanted: a work request that was taken has one outcome, a part has none, and
 * those of a poster come in order; nothing is posted behind the closed gate or
 * during a pause, and by one thread at a time; the queue never overflows; a
 * refused poster hears WRITABLE, which nobody writes unasked; a drain that
 * succeeds has posted everything; nobody waits for ever.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* what only shows where the device refuses, or the control thread redirects or
 * drains */
#if defined(M_REFUSED_LOST) || defined(M_CUT_TWICE)
#define REFUSES 1
#endif
#if defined(M_GENERATION_IGNORED) || defined(M_PAUSE_WAITS_NOT) || \
	defined(M_RESUME_UNSEEN) || defined(M_PLACE_UNTOLD) ||     \
	defined(M_PAUSED_IS_POSTED)
#define REDIRECTS 1
#endif
#if defined(M_DRAIN_UNTOLD) || defined(M_DRAIN_LEAVES_LINE)
#define DRAINS 1
#endif
/* what breaks a connection that lives is found in one that may not die */
#if defined(M_GIVEN_BACK_UNSEEN) || defined(M_NO_SECOND_LOOK) ||     \
	defined(M_NO_FENCE_BACK) || defined(M_NO_FENCE_ROOM) ||      \
	defined(M_POLLER_LOOKS_NOT) || defined(M_REST_UNTOLD) ||     \
	defined(M_NO_FENCE_WANT) || defined(M_WANT_UNSEEN) ||        \
	defined(M_LINK_SPLIT) || defined(M_RESUME_UNSEEN) ||         \
	defined(M_PLACE_UNTOLD) || defined(M_RETIRES_ONE) ||         \
	defined(M_DRAIN_UNTOLD) || defined(M_DRAIN_LEAVES_LINE) ||   \
	defined(M_NOT_REVERSED) || defined(M_OVERTAKES) ||           \
	defined(M_LINE_UNSAID) ||                                    \
	defined(M_GENERATION_IGNORED) ||                             \
	defined(M_PAUSE_WAITS_NOT) || defined(M_PAUSED_IS_POSTED)
#define LIVES 1
#endif
/* a part that is not signaled */
#ifdef M_RETIRES_ONE
#define SQ 3
#define LINE 0
#endif
/* slots run out for a call that comes behind one that gives some back */
#ifdef M_PLACE_UNTOLD
#define LINE 0
#endif

#ifndef REFUSES
#define REFUSES 0
#endif
#ifndef REDIRECTS
#define REDIRECTS 0
#endif
#ifndef DRAINS
#define DRAINS 0
#endif
#ifndef LIVES
#define LIVES 0
#endif
#ifndef SQ
#define SQ 2 /* work requests that the queue holds */
#endif
#ifndef LINE
#define LINE 1 /* more that may stand in line */
#endif
#ifndef BATCH
#define BATCH 0 /* of more calls than these a hold leaves the rest */
#endif

#define SLOTS_ALL (SQ + LINE)
#define CALLS  3
#define WRS    4
/* call 0 is the link, poster 0's; 1 and 2 are poster 1's */
#define FIRST(c)   (c == 0 -> 0 : c + 1)
#define LAST(c)	   (c + 1)
#define SIZE(c)	   (c == 0 -> 2 : 1)
#define IS_PART(w) (w == 0)
#define OWNER(w)   (w < 2 -> 0 : 1)

/* threads with a store buffer */
#define POLLER	0
#define THREADS 1
#define DEPTH	3
/* words in memory */
#define RETIRED 0
#define WORDS	1

#include "buffers.pml"

mtype = { RTS, ERR, HEALTHY, BROKEN, DRAINING, SWEPT, REFUSED, STALE, LEFT,
	  HOLDS };

/* the word: an exchange changes all of it at once */
bool held;	 /* the right to post is taken */
bool paused;	 /* nobody takes the right */
bool closed;	 /* nothing is published or posted any more */
bool drained;	 /* nothing is published any more */
bool waits;	 /* something stands in line */
byte generation; /* of the routes */
byte stack[CALLS];
byte published;

/* the holder's */
byte line[CALLS]; /* calls, in order */
byte in_line;
byte ledger[WRS];
byte ends[WRS]; /* entries that retire with this one; 0: not signaled */
byte tail;
byte unsignaled;

/* slots, and what refused posters want */
byte used;
byte shown; /* of tail: to posters, after the slots were given back */
bool want;
bool said; /* to the poller, by a holder: something stands in line */
short unanswered;
bool told[2];

/* the control thread's */
bool route_closed; /* poster 0's */
bool is_paused;	   /* for sure: nobody is inside */
bool is_firm;	   /* likewise, and nobody will be */
bool emptied;	   /* by a drain */

/* the device */
mtype qp = RTS;
byte given; /* entries that the device has */
byte executed;
chan cq = [WRS] of { byte, bool }; /* entry, success */

/* messages, and the poller's state */
bool told_look; /* at the word, and at want */
bool told_broken;
bool told_handover;
bool told_empty;
mtype ps = HEALTHY;

/* what is judged */
byte inside; /* threads in the verb */
bool taken[CALLS];
byte outcomes[WRS];
byte came[2]; /* behind the newest outcome of each poster */
byte posters_done;

/* ----------------------------------------------------------- the holder --- */

#ifdef M_CLOSED_IS_POSTED
#define MAY_POST (!is_paused)
#elif defined(M_PAUSED_IS_POSTED)
#define MAY_POST (!closed)
#else
#define MAY_POST (!closed && !paused)
#endif
#define IS_CLOSED   (closed || drained)
#define ROOM (SQ - (tail - mem[RETIRED]))
#ifdef M_LINK_SPLIT
#define NEEDS(c) 1
#else
#define NEEDS(c) SIZE(c)
#endif
#define FIRST_FITS (ROOM >= NEEDS(line[0]))

/* half of the ledger without a signal at most */
#define MUST_SIGNAL (2 * (unsignaled + 1) >= SQ)

/* One exchange: what is published goes to the end of the line, oldest first. */
inline take_published()
{
	d_step {
		do
		:: published > 0 ->
			published--;
#ifdef M_NOT_REVERSED
			line[in_line] = stack[published];
			stack[published] = 0;
#else
			line[in_line] = stack[0];
			stack[0] = stack[1];
			stack[1] = stack[2];
			stack[2] = 0;
#endif
			in_line++
		:: published == 0 -> break
		od;
		skip
	}
}

inline leave_line()
{
	in_line--;
	line[0] = line[1];
	line[1] = line[2];
	line[2] = 0
}

/* Appends the first call of the line, then gives it to the device. slots: the
 * call stands in some. */
inline post_first(slots)
{
	d_step {
		assert(held && inside == 0 && !is_firm && !is_paused);
		inside++;
		w = FIRST(line[0]);
		do
		:: w <= LAST(line[0]) && ROOM > 0 ->
			ledger[tail] = w;
			if
			:: IS_PART(w) && !MUST_SIGNAL ->
				ends[tail] = 0;
				unsignaled++
			:: else ->
#ifdef M_RETIRES_ONE
				ends[tail] = 1;
#else
				ends[tail] = unsignaled + 1;
#endif
				unsignaled = 0
			fi;
			tail++;
			w++
		:: else -> break
		od;
		assert(w == LAST(line[0]) + 1);
		w = 0;
		assert(tail <= SQ + mem[RETIRED])
	};
	/* the verb */
	if
	:: refused = false
#if REFUSES
	:: refused = true
#endif
	fi;
	d_step {
		assert(!is_firm && !is_paused);
		if
		:: refused ->
			/* the last one, of a link or alone; marked */
			given = tail - 1;
			closed = true
		:: !refused -> given = tail
		fi;
		used = used - (slots -> SIZE(line[0]) : 0);
		leave_line();
		refused = false;
		posted++;
		inside--
	};
	shown = tail
}

#ifdef M_NO_SECOND_LOOK
#define SEES_ROOM false
#else
#define SEES_ROOM true
#endif

/* Until the right is given back. A hold that has posted
 * enough leaves the rest to the poller. */
inline hold()
{
	posted = 0;
	do
	:: true ->
		take_published();
		if
		:: MAY_POST && in_line > 0 && FIRST_FITS &&
		   posted <= BATCH ->
			post_first(true)
		:: else ->
			needs = (in_line > 0 -> NEEDS(line[0]) : 0);
#ifdef M_NO_FENCE_BACK
			again = needs > 0 && ROOM >= needs;
#endif
#ifndef M_LINE_UNSAID
			said = in_line > 0;
#endif
			/* one exchange */
			d_step {
				if
#ifndef M_GIVEN_BACK_UNSEEN
				:: published > 0 && MAY_POST &&
				   posted <= BATCH ->
					left = false
#endif
				:: else ->
					left = true;
					held = false;
					waits = in_line > 0
				fi
			};
			if
			:: left && posted > BATCH ->
#ifndef M_REST_UNTOLD
				if
				:: waits || published > 0 || drained ->
					told_look = true
				:: else
				fi;
#endif
				break
			:: left && posted <= BATCH ->
#ifndef M_DRAIN_UNTOLD
				if
				:: drained -> told_look = true
				:: else
				fi;
#endif
				/* full fence, and a look at the room */
				d_step {
#ifndef M_NO_FENCE_BACK
					again = needs > 0 && SEES_ROOM &&
						ROOM >= needs;
#endif
					again = again && !held && waits &&
						MAY_POST;
					held = held || again;
					waits = waits && !again
				};
				if
				:: again
				:: !again -> break
				fi
			:: !left
			fi
		fi
	od;
	again = false;
	left = false;
	posted = 0;
	needs = 0
}

/* ---------------------------------------------------------- the posters --- */

/* Beside what is outstanding, as a poster sees that. */
#define HAS_SLOTS(c)                                        \
	(used + SIZE(c) <= SLOTS_ALL &&                     \
	 used + SIZE(c) + shown <= SLOTS_ALL + mem[RETIRED])

/* The line is full: WRITABLE follows, unless places have come meanwhile. */
inline await_slots(c)
{
#ifdef M_NO_FENCE_WANT
	found = HAS_SLOTS(c);
#endif
	d_step {
		mine = !want;
		unanswered = unanswered + (want -> 0 : 1);
		want = true
	};
	/* full fence */
	d_step {
#ifndef M_NO_FENCE_WANT
		found = HAS_SLOTS(c);
#endif
		if
		:: found && mine && want ->
			want = false;
			unanswered--
		:: else -> found = false
		fi;
		mine = false
	};
	if
	:: found
	:: !found -> told[p] || ps == SWEPT
	fi;
	found = false
}

/* Of work requests that are not posted: no completion answers. */
inline return_slots(c)
{
	used = used - SIZE(c);
	/* full fence */
#ifndef M_PLACE_UNTOLD
	if
	:: want -> told_look = true
	:: else
	fi
#endif
}

#ifdef M_OVERTAKES
#define IS_IDLE (!IS_CLOSED && !held && !paused)
#else
#define IS_IDLE (!IS_CLOSED && !held && !paused && published == 0 && !waits)
#endif

#ifdef M_GENERATION_IGNORED
#define IS_STALE false
#else
#define IS_STALE (generation != seen)
#endif

/* From the caller's own memory, if there is room for all of it. */
inline post_alone(c)
{
	d_step {
		alone = IS_IDLE && !IS_STALE;
		held = held || alone
	};
	if
	:: alone && ROOM >= SIZE(c) ->
		d_step {
			assert(!(p == 0 && route_closed));
			taken[c] = true;
			line[2] = line[1];
			line[1] = line[0];
			line[0] = c;
			in_line++
		};
		post_first(false);
		how = LEFT;
		hold()
	:: alone && ROOM < SIZE(c) -> hold()
	:: !alone
	fi;
	alone = false
}

/* One exchange of the word. */
inline publish(c)
{
	d_step {
		if
		:: IS_CLOSED -> how = REFUSED
		:: !IS_CLOSED && IS_STALE -> how = STALE
		:: else ->
			assert(!is_firm && !(p == 0 && route_closed));
			taken[c] = true;
			how = LEFT;
			stack[published] = c;
			published++;
			if
			:: !held && (!paused || MAY_POST) ->
				held = true;
				waits = false;
				how = HOLDS
			:: else
			fi
		fi
	}
}

inline take_slots(c)
{
	d_step {
		has = HAS_SLOTS(c);
		used = used + (has -> SIZE(c) : 0)
	};
	if
	:: has
	:: !has && IS_CLOSED -> how = REFUSED
	:: !has && !IS_CLOSED -> await_slots(c)
	fi
}

proctype poster(bool p)
{
	byte call = p;
	byte seen;
	byte w;
	byte posted;
	byte needs;
	bool mine;
	bool found;
	bool refused;
	bool again;
	bool left;
	bool has;
	bool alone;
	mtype how = STALE;

	do
	:: call > 2 * p || how == REFUSED -> break
	:: else ->
		d_step {
			told[p] = false;
			seen = generation;
			how = (p == 0 && route_closed -> REFUSED : STALE)
		};
		if
		:: how != REFUSED && !has -> post_alone(call)
		:: else
		fi;
		if
		:: how == STALE && !has -> take_slots(call)
		:: else
		fi;
		if
		:: how == STALE && has -> publish(call)
		:: else
		fi;
		seen = 0;
		if
		:: how == LEFT -> call++; has = false
		:: how == HOLDS -> call++; has = false; hold()
		:: how == REFUSED && has -> return_slots(call)
		:: else
		fi
	od;
	posters_done++
}

/* ----------------------------------------------------------- the device --- */

#if LIVES
#define MAY_FAIL false
#else
#define MAY_FAIL true
#endif

proctype device()
{
end:	do
	:: d_step {
		qp == RTS && executed < given ->
		if
		:: ends[executed] > 0 -> cq!executed, true
		:: else
		fi;
		executed++
	}
	:: d_step {
		executed < given && (qp == ERR || MAY_FAIL) ->
		qp = ERR;
		cq!executed, false;
		executed++
	}
	od
}

/* ----------------------------------------------------------- the poller --- */

inline deliver(wr)
{
	d_step {
		outcomes[wr]++;
		assert(outcomes[wr] == 1 && !IS_PART(wr));
		assert(wr >= came[OWNER(wr)]);
		came[OWNER(wr)] = wr + 1
	}
}

/* At the word, then at want; behind a full fence. */
inline look(is_told)
{
#ifndef M_POLLER_LOOKS_NOT
	d_step {
		takes = (is_told || said) && !held && MAY_POST &&
			(waits || published > 0);
		held = held || takes;
		waits = waits && !takes
	};
	if
	:: takes -> takes = false; hold()
	:: !takes
	fi;
#endif
	d_step {
		if
#ifdef M_DRAIN_LEAVES_LINE
		:: drained && published == 0 -> told_empty = true
#else
		:: drained && !held && !waits && published == 0 ->
			told_empty = true
#endif
		:: else
		fi
	};
#ifndef M_WANT_UNSEEN
	d_step {
		if
		:: want && ps == HEALTHY ->
			want = false;
			unanswered--;
			assert(unanswered >= 0);
			told[0] = true;
			told[1] = true
		:: else
		fi
	};
#endif
	skip
}

inline retire()
{
	count = count + ends[id];
	if
	:: IS_PART(ledger[id])
	:: !IS_PART(ledger[id]) -> deliver(ledger[id])
	fi;
	put(POLLER, RETIRED, count, true);
#ifndef M_NO_FENCE_ROOM
	FENCE(POLLER);
#endif
	look(false)
}

/* Of a part that failed the link's last is told; the last of a link that was cut
 * off was refused. */
#ifdef M_CUT_TWICE
#define IS_CUT false
#else
#define IS_CUT (id + 1 == given && given < tail)
#endif

inline finish()
{
	w = ledger[id];
	if
	:: IS_PART(w) && (good || IS_CUT)
	:: IS_PART(w) && !(good || IS_CUT) -> deliver(1)
	:: !IS_PART(w) && outcomes[w] == 0 -> deliver(w)
	:: !IS_PART(w) && outcomes[w] != 0 -> assert(w == 1)
	fi;
	w = 0
}

inline off_success()
{
	if
	:: ps == HEALTHY ->
		ps = BROKEN;
#ifdef M_CLOSED_STORED
		d_step { w = published; takes = held };
		d_step { published = w; held = takes; closed = true };
		d_step { w = 0; takes = false };
#else
		closed = true;
#endif
		told_broken = true
	:: else
	fi;
	if
	:: ps == BROKEN -> kept!id, good
	:: ps == DRAINING -> finish()
	fi
}

inline take_over()
{
	told_handover = false;
	ps = DRAINING;
	do
	:: kept?id, good -> finish()
	:: empty(kept) -> break
	od;
	skip
}

/* Behind all that the device had: what it had not. */
inline end_unposted()
{
	do
	:: given < tail ->
#ifndef M_REFUSED_LOST
		deliver(ledger[given]);
#endif
		given++
	:: given == tail -> break
	od;
#ifndef M_LINE_DROPPED
	take_published();
	do
	:: in_line > 0 ->
		assert(!emptied);
		deliver(LAST(line[0]));
		d_step { leave_line() }
	:: in_line == 0 -> break
	od;
#endif
	ps = SWEPT
}

proctype poller()
{
	chan kept = [WRS] of { byte, bool };
	byte count;
	byte id;
	byte w;
	byte posted;
	byte needs;
	bool good;
	bool takes;
	bool refused;
	bool again;
	bool left;

	do
	:: atomic { cq?id, good };
		if
		:: good && ps == HEALTHY -> retire()
		:: else -> off_success()
		fi;
		d_step { id = 0; good = false }
	:: told_look ->
		told_look = false;
		look(true)
	:: told_handover -> take_over(); d_step { id = 0; good = false }
	:: ps == DRAINING && !told_handover && empty(cq) && executed == given ->
		end_unposted();
		break
	od
}

/* ---------------------------------------------------------- the control --- */

inline redirect()
{
	paused = true;
#ifndef M_PAUSE_WAITS_NOT
	!held;
#endif
	is_paused = true;
	d_step { route_closed = true; generation++ };
	is_paused = false;
	d_step { paused = false; looks = published > 0 || waits };
#ifndef M_RESUME_UNSEEN
	if
	:: looks -> told_look = true
	:: !looks
	fi;
#endif
	looks = false
}

#define IS_OUT(c) (!taken[c] || outcomes[LAST(c)] == 1)

proctype control()
{
	byte i;
	bool looks;

#if REDIRECTS
	redirect();
#endif
#if LIVES && !DRAINS
	posters_done == 2 && IS_OUT(0) && IS_OUT(1) && IS_OUT(2) &&
		!told_look && used == 0 &&
		mem[RETIRED] == given;
#endif
#if DRAINS
	d_step { drained = true; told_look = true };
	if
	:: told_empty -> emptied = true
	:: told_broken
#if !LIVES
	:: true
#endif
	fi;
#endif
	closed = true;
#ifndef M_CLOSE_WAITS_NOT
	!held;
#endif
	is_firm = true;
	qp = ERR;
	told_handover = true;
	ps == SWEPT && posters_done == 2;
	assert(published == 0 && in_line == 0);
	do
	:: i < CALLS ->
		assert(outcomes[LAST(i)] == (taken[i] -> 1 : 0));
		i++
	:: i == CALLS -> break
	od
}

init {
	atomic {
		run buffer(POLLER);
		run poster(0);
		run poster(1);
		run device();
		run poller();
		run control()
	}
}
