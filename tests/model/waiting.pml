/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Work requests with a future that wait for room, as in
 * doc/protocols/future.md and in conn/post.c, conn/resume.c and
 * poller/waiting.c: a poster of N of them, its poller, a poster of plain ones
 * that is refused meanwhile and waits for WRITABLE, and a holder that takes
 * some back at any moment. The gate is a lock; only the poller does not wait
 * for it.
 *
 * Or (SINGLE=1) the two posters are one thread, which a marker lets in; another
 * runs the poller, which has to see that marker even, as has a thread that
 * pauses the gate for a while. Words of that handshake are in order here.
 *
 * The poller publishes credit through a store buffer of one place, which its
 * fence waits for. What is read-modify-write is in order.
 *
 * Wanted: each one that waits is posted or taken back, not both, though nobody
 * but the poller comes (an invalid end state); they are posted in order, and
 * before a plain one that was refused behind them; each refusal is followed by
 * a WRITABLE; one thread is inside the gate.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#if defined(M_MARKER_UNSEEN) || defined(M_NOT_PAUSED) || \
	defined(M_PAUSE_TAKES_WAITING) || defined(M_AWAY_FOR_GOOD)
#define SINGLE 1
#endif
#ifndef SINGLE
#define SINGLE 0
#endif

#ifndef N
#define N 3 /* with a future */
#endif
#ifndef PLAIN
#define PLAIN 1 /* of the other poster */
#endif
#ifndef DEPTH
#define DEPTH 1 /* of the send queue */
#endif

/* of a slot */
#define FREE	 0
#define OUT	 1
#define WAITING	 2
#define UNPOSTED 3

byte state[N];
bool taken_back[N];

/* the gate */
bool locked;
bool is_waiting; /* its state */
bool paused;	 /* likewise */
bool marker;	 /* odd */
bool inside;
byte first;	 /* those from here on */
byte last;	 /* before here wait */

/* posted in all, by both; what the device has done, in order */
byte posted;
byte done;
byte highest; /* of those with a future: the next one posted is above */

/* the poller's part of the side */
byte retired;	/* published */
byte to_store;	/* published, and in its buffer; 0: nothing */
byte counted;	/* the poller's own */
bool want_plain; /* RT_WANT_CREDIT */
bool want_waiting; /* RT_WANT_FUTURES */
bool put_off;
bool writable;

byte over; /* posters that have ended */

#define HAS_ROOM (posted - retired < DEPTH)

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	locked = false
}

inline go_in()
{
	atomic {
		assert(!inside);
		inside = true
	}
}

/* A poster. */
inline enter()
{
	do
	:: SINGLE ->
		marker = true;
		if
		:: !paused -> break
		:: paused ->
			marker = false;
			!locked
		fi
	:: !SINGLE -> lock(); break
	od;
	go_in()
}

inline leave()
{
	inside = false;
	if
	:: SINGLE -> marker = false
	:: !SINGLE -> unlock()
	fi
}

/* Has the lock: keeps the single poster out, if that is not inside. */
inline pause()
{
#ifndef M_NOT_PAUSED
	paused = SINGLE
#else
	skip
#endif
}

#ifdef M_MARKER_UNSEEN
#define IS_MARKED false
#else
#define IS_MARKED marker
#endif

inline end_pause()
{
#ifdef M_PAUSE_TAKES_WAITING
	is_waiting = false;
#endif
	paused = false;
	unlock()
}

/* Its store leaves the buffer by itself, or with the fence. */
proctype buffer()
{
end:	do
	:: atomic { to_store != 0 -> retired = to_store; to_store = 0 }
	od
}

/* Inside the gate: one is posted. */
inline post_future(i)
{
	atomic {
		assert(HAS_ROOM && !taken_back[i]);
		assert(i >= highest);
		highest = i + 1;
		posted++
	}
}

/* Inside the gate: posts what waits as far as there is room; is_drained. */
inline go_on()
{
	do
	:: first == last ->
		is_waiting = false;
		want_waiting = false;
		is_drained = true;
		break
	:: first < last && state[first] != WAITING ->
		first++
	:: first < last && state[first] == WAITING && HAS_ROOM ->
#ifdef M_NO_CLAIM
		state[first] = OUT;
		post_future(first);
#else
		if
		:: atomic { state[first] == WAITING -> state[first] = OUT };
			post_future(first)
		:: state[first] != WAITING
		fi;
#endif
		first++
	:: first < last && state[first] == WAITING && !HAS_ROOM ->
		is_waiting = true;
		want_waiting = true;
#ifdef M_NO_SECOND_LOOK
		is_drained = false;
		break
#else
		if
		:: HAS_ROOM
		:: !HAS_ROOM ->
			is_drained = false;
			break
		fi
#endif
	od
}

/* ---------------------------------------------------------- the poller --- */

inline answer()
{
	is_drained = true;
	if
	:: want_waiting ->
		if
		:: atomic { !locked -> locked = true };
			pause();
			if
			:: !IS_MARKED ->
				go_in();
				go_on();
				inside = false
			:: IS_MARKED ->
#ifndef M_AWAY_FOR_GOOD
				put_off = true;
#endif
				is_drained = false
			fi;
			end_pause()
		:: locked ->
#ifndef M_NOT_PUT_OFF
			put_off = true;
#endif
			is_drained = false
		fi
	:: else
	fi;
	if
	:: atomic { is_drained && want_plain -> want_plain = false };
		writable = true
	:: !is_drained || !want_plain
	fi
}

proctype poller()
{
	bool is_drained;

end:	do
	:: done > counted ->
		counted = done;
		atomic { to_store == 0; to_store = counted };
#ifndef M_NO_FENCE
		to_store == 0;
#endif
		answer()
	:: atomic { put_off -> put_off = false };
		answer()
	od
}

proctype device()
{
end:	do
	:: done < posted -> done++
	od
}

/* --------------------------------------------------------- the posters --- */

inline post_futures()
{
	for (i : 0 .. N - 1) {
		enter();
		if
		:: !is_waiting && HAS_ROOM ->
			state[i] = OUT;
			post_future(i)
		:: else ->
			first = (first == last -> i : first);
			state[i] = WAITING;
			last = i + 1;
			go_on()
		fi;
		leave()
	}
	i = 0
}

inline post_plain()
{
	do
	:: i == PLAIN -> break
	:: i < PLAIN ->
		enter();
		if
#ifdef M_PASSES_BY
		:: HAS_ROOM ->
#else
		:: !is_waiting && HAS_ROOM ->
#endif
			atomic {
				assert(first == last || state[first] != WAITING ||
				       first >= behind);
				posted++;
				i++
			};
			leave()
#ifdef M_PASSES_BY
		:: !HAS_ROOM && is_waiting ->
#else
		:: is_waiting ->
#endif
			behind = last;
			want_plain = true;
			leave();
			atomic { writable -> writable = false }
		:: !is_waiting && !HAS_ROOM ->
			want_plain = true;
			if
			:: atomic { HAS_ROOM && want_plain ->
					want_plain = false };
				posted++;
				i++;
				leave()
			:: !HAS_ROOM || !want_plain ->
				leave();
				atomic { writable -> writable = false }
			fi
		fi
	od
}

/* Each is posted or taken back, whoever comes. */
inline end_futures()
{
	for (i : 0 .. N - 1) {
		(state[i] == UNPOSTED || i < highest)
	}
	over++
}

proctype with_futures()
{
	bool is_drained;
	byte behind; /* those that waited when a plain one was refused last */
	byte i;

	post_futures();
	if
	:: SINGLE ->
		post_plain();
		over++
	:: !SINGLE
	fi;
	end_futures()
}

proctype plain()
{
	byte behind; /* as above */
	byte i;

	post_plain();
	over++
}

/* A change of a route, a handshake. */
proctype pauser()
{
	lock();
	pause();
	!IS_MARKED;
	go_in();
	inside = false;
	end_pause()
}

proctype holder()
{
	byte i;

	for (i : 0 .. N - 1) {
		if
		:: atomic { state[i] == WAITING ->
				state[i] = UNPOSTED;
				taken_back[i] = true }
		:: skip
		fi
	}
}

/* None is posted that was taken back. */
active proctype check()
{
	over == 2;
	assert(first == last || state[first] != WAITING)
}

init {
	atomic {
		run buffer();
		run poller();
		run device();
		run with_futures();
		if
		:: SINGLE -> run pauser()
		:: !SINGLE -> run plain()
		fi;
		run holder()
	}
}
