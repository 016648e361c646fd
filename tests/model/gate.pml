/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Gate, credits and death of one side of a connection, as in
 * doc/protocols/ledger.md and connection.md and in post.c, ledger.c, poller.c,
 * finish.c and conn.c, for every interleaving of two posters, the poller, the
 * control thread, the device and a consumer.
 *
 * The poller stores through a buffer, see buffers.pml. A poster's relaxed
 * read-modify-write of `want` is executed some time before its next fence, or
 * before its result is needed; so is what puts its waiter on the lane's stack.
 * A lock, and a message to the poller or to the control thread, order all.
 *
 * The lane is the connection's own queue's, too. Each poster has a route of its
 * own to it, and the route a waiter; the first one's is also the connection's
 * own, with which the poller waits when it puts an answer off.
 *
 * In the one that lives the second poster is a function on another poller, which
 * never waits for the lock: refused for it, it asks the poller by a message for
 * its answer.
 *
 * Work requests are numbered as posted. Each wants a completion always, or on
 * error only; the device executes them in order, may fail one, and from then
 * on flushes.
 *
 * The application closes the connection, or (DRAINS) drains it: then the marker
 * is posted early, behind all that was posted, and its success ends the
 * connection.
 *
 * Wanted: each WR that the device took has exactly one completion, or none if
 * it wanted one on error only and succeeded; none is made up while the device
 * has a real one; nothing is posted once the gate has closed firmly; a poster
 * that was refused hears WRITABLE, which nobody writes unasked; and the spill
 * stays within what was reserved for it. Where a drain ends by its marker, all
 * that was posted has succeeded, and is not said to be unknown.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* what breaks a connection that lives is found in one that may not die */
#if defined(M_RETIRED_RELAXED) || defined(M_BACKLOG_AFTER_CREDIT) || \
	defined(M_NO_FENCE_CREDIT) || defined(M_NO_FENCE_FLUSH) ||    \
	defined(M_NO_FENCE_EASED) || defined(M_NO_SECOND_LOOK) ||     \
	defined(M_TAKE_ANOTHERS_BACK) || defined(M_WANT_NOT_TAKEN) || \
	defined(M_WANT_READ_THEN_CLEARED) || defined(M_NEVER_SIGNALED) || \
	defined(M_NOT_LISTED) || defined(M_LISTED_BEFORE_WANT) ||         \
	defined(M_UNLISTED_AFTER_ANSWER) || defined(M_PUT_OFF_FORGOTTEN) || \
	defined(M_LOCK_UNTOLD) || defined(M_LOCK_MESSAGE_FREED_LATE) ||   \
	defined(M_LOCK_LEFT)
#define LIVES
#endif
#ifdef M_NEVER_SIGNALED
#define SQ 2
#endif
/* a poster that goes on, and has no completion */
#ifdef M_LOCK_LEFT
#define SQ 3
#endif
/* a backlog that comes back while a poster is refused */
#if defined(M_LISTED_BEFORE_WANT) || defined(M_UNLISTED_AFTER_ANSWER)
#define SQ 2
#define N  4
#endif

/* the application drains, and does not close */
#if defined(M_EARLY_MARKER_FORGOTTEN) || defined(M_MARKER_BEFORE_GATE) || \
	defined(M_SECOND_MARKER)
#define DRAINS 1
#endif
#ifndef DRAINS
#define DRAINS 0
#endif

#ifndef SQ
#ifdef LIVES
#define SQ 1 /* work requests that a queue pair holds */
#else
#define SQ 3
#endif
#endif
#ifndef N
#define N 3 /* that the posters post together */
#endif
#define RING  1 /* of the lane; what it does not hold is spilled */
#define LIMIT 1 /* of the spill, from where on it is a backlog */

/* threads with a store buffer */
#define POLLER	0
#define THREADS 1
#define DEPTH	3

/* words in memory */
#define RETIRED	  0
#define BACKLOG	  1
#define HINT	  2 /* the gate as the poller closes it */
#define WORDS	  3

#include "buffers.pml"

#define CREDIT 1 /* bits of want */
#define ROOM   2
#define LOCKED 4

mtype = { RTS, ERR, GONE, HEALTHY, BROKEN, DRAINING, SWEEPING, SWEPT };

/* the side: posters, under its lock; the poller after the handover */
bool locked;
bool closed; /* the gate, firmly */
byte head;
byte tail;
byte reaped;
byte unsignaled;
bool signaled[N];
bool on_error_only[N];
bool finished[N];
bool error_seen;

/* want, and what posters are about to do to it */
byte want;
byte pending[2];
byte before[2];
short unanswered; /* bits that became set, less those answered */
bool told[2];	  /* WRITABLE, since the poster's call began */

/* the waiters, one of each poster's route */
bool listed[2];
bool pushing[2]; /* about to be on the stack */
bool on_stack[2];

/* the device */
mtype qp = RTS;
byte executed; /* WRs that are through */
bool marker_posted;
bool marker_through;
byte markers; /* there is room for one */
bool has_cqe[N]; /* a completion was made */
bool failed[N];
#define MARKER N
chan cq = [N + 1] of { byte, bool }; /* which, success */

/* the lane */
byte ring;
byte spill;

/* messages; the poller's state */
bool lock_sent;
bool told_lock;
bool told_broken;
bool told_empty;
bool told_handover;
bool told_drained;
bool told_gone;
mtype ps = HEALTHY;
byte delivered[N];
byte posters_done;

/* --------------------------------------------------------- the posters --- */

#define HAS_ROOM (tail - head < SQ)
#define IS_BACKLOGGED (mem[BACKLOG])

/* What the poller counted is popped, and unsignaled ones before it. */
inline reap(count)
{
	d_step {
		do
		:: reaped < count ->
			assert(head < tail);
			if
			:: signaled[head] -> reaped++
			:: else
			fi;
			head++
		:: else -> break
		od;
		skip
	}
}

/* 0, or what it lacks */
inline refusal(reason)
{
	reap(mem[RETIRED]);
	if
	:: !HAS_ROOM -> reason = CREDIT
	:: HAS_ROOM && IS_BACKLOGGED -> reason = ROOM
	:: HAS_ROOM && !IS_BACKLOGGED -> reason = 0
	fi
}

/* The read-modify-write happens, at the latest where it is waited for. */
#define OR_NOW(p)                                                          \
	d_step {                                                           \
		pending[p] != 0 ->                                         \
		before[p] = want & pending[p];                             \
		unanswered = unanswered + (before[p] == 0 -> 1 : 0);       \
		want = want | pending[p];                                  \
		pending[p] = 0                                             \
	}

#define PUSH_NOW(p)                                                        \
	d_step {                                                           \
		pushing[p] -> pushing[p] = false;                          \
		on_stack[p] = true                                         \
	}

proctype late()
{
end:	do
	:: OR_NOW(0)
	:: OR_NOW(1)
	:: PUSH_NOW(0)
	:: PUSH_NOW(1)
	od
}

#ifdef M_LISTED_BEFORE_WANT
#define WANT_IS_OUT(p) true
#else
#define WANT_IS_OUT(p) (pending[p] == 0)
#endif

/* The exchange of `listed` releases what the poster wants. */
inline wait_in_lane(p)
{
#ifndef M_NOT_LISTED
	d_step {
		WANT_IS_OUT(p) ->
		pushing[p] = pushing[p] || !listed[p];
		listed[p] = true
	}
#else
	skip
#endif
}

#ifdef M_TAKE_ANOTHERS_BACK
#define MAY_TAKE_BACK(p) true
#else
#define MAY_TAKE_BACK(p) (before[p] == 0)
#endif

inline send_lock_message()
{
	d_step {
		told_lock = told_lock || !lock_sent;
		lock_sent = true
	}
}

/* why: 0, or the reason it was refused for */
inline take_credit(p)
{
	if
	:: HAS_ROOM && !IS_BACKLOGGED -> why = 0
	:: else -> refusal(why)
	fi;
	do
	:: why == 0 -> break
	:: why != 0 ->
		pending[p] = why;
		if
		:: why == ROOM -> waited = true; wait_in_lane(p)
		:: why != ROOM
		fi;
#ifndef M_NO_FENCE_CREDIT
		pending[p] == 0 && !pushing[p];
#endif
#ifdef M_NO_SECOND_LOOK
		break
#else
		refusal(again);
		if
		:: again == why -> break
		:: again != why ->
			d_step {
				pending[p] == 0 ->
				if
				:: MAY_TAKE_BACK(p) && (want & why) ->
					want = want & (7 - why);
					unanswered--
				:: !MAY_TAKE_BACK(p)
				:: else ->
					/* somebody will be told: refused */
					again = why
				fi;
				refused = again == why;
				why = again;
				again = 0
			};
			if
			:: refused -> refused = false; break
			:: !refused
			fi
		fi
#endif
	od;
	again = 0;
	before[p] = 0;
#ifndef M_LOCK_LEFT
	/* its waiter was listed, perhaps in place of the poller's */
	if
	:: why == 0 && waited && (want & LOCKED) != 0 -> send_lock_message()
	:: else
	fi;
#endif
	waited = false
}

/* Append and doorbell: nobody else is in here. */
inline post()
{
	d_step {
		assert(!closed && qp != GONE);
		on_error_only[tail] = quiet;
#ifdef M_NEVER_SIGNALED
		signaled[tail] = !quiet;
#else
		signaled[tail] = !quiet || 2 * (unsignaled + 1) >= SQ;
#endif
		unsignaled = (signaled[tail] -> 0 : unsignaled + 1);
		tail++
	}
}

#ifdef M_GATE_UNLOCKED
#define LOCK   skip
#define UNLOCK skip
#else
#define LOCK   d_step { !locked -> locked = true }
#define UNLOCK locked = false
#endif

/* Another thread is inside, and the gate is not CLOSED. The exchange orders the
 * two. */
inline refuse_lock()
{
	d_step {
		unanswered = unanswered + ((want & LOCKED) == 0 -> 1 : 0);
		want = want | LOCKED
	};
#ifndef M_LOCK_UNTOLD
	send_lock_message()
#endif
}

proctype poster(bool p)
{
	byte why;
	byte again;
	bool refused;
	bool quiet;
	bool waited;

	do
#ifdef LIVES
	:: d_step {
		p == 1 && locked && !closed && !mem[HINT] ->
		told[p] = false
	   };
		refuse_lock();
		told[p] || ps == SWEPT
#endif
	:: d_step { !locked -> locked = true; told[p] = false };
		if
		:: closed || mem[HINT] || tail == N -> locked = false; break
		:: else
		fi;
		take_credit(p);
		if
		:: why == 0 ->
			if
			:: quiet = false
			:: SQ > 1 -> quiet = true
			fi;
			post();
			d_step { locked = false; quiet = false }
		:: why != 0 ->
			d_step { locked = false; why = 0 };
			told[p] || ps == SWEPT
		fi
	od;
	posters_done++
}

/* ---------------------------------------------------------- the device --- */

#ifdef LIVES
#define MAY_FAIL false
#else
#define MAY_FAIL true
#endif

proctype device()
{
end:	do
	:: d_step {
		qp == RTS && executed < tail ->
		if
		:: signaled[executed] ->
			has_cqe[executed] = true;
			cq!executed, true
		:: else
		fi;
		executed++
	}
	:: d_step {
		executed < tail && (qp == ERR || qp == RTS && MAY_FAIL) ->
		qp = ERR;
		failed[executed] = true;
		has_cqe[executed] = true;
		cq!executed, false;
		executed++
	}
	:: d_step {
		qp != GONE && executed == tail && marker_posted &&
		!marker_through ->
		marker_through = true;
		markers++;
		assert(markers == 1);
		cq!MARKER, (qp == RTS)
	}
	od
}

/* ---------------------------------------------------------- the poller --- */

/* One completion, into the ring or behind the spill. */
inline deliver(id)
{
	d_step {
		delivered[id]++;
		assert(delivered[id] == 1);
		if
		:: spill == 0 && ring < RING -> ring++
		:: else -> spill++
		fi;
		/* below the limit, and what held a credit then */
		assert(spill < LIMIT + SQ)
	}
}

/* The taker of a want owns it. WRITABLEs have room of their own. */
inline answer_want(bits)
{
	if
	:: (want & (bits)) != 0 && ps == HEALTHY && !LOAD(POLLER, BACKLOG) ->
#ifdef M_WANT_READ_THEN_CLEARED
		taken = want & (bits);
		want = 0;
#endif
		d_step {
#ifndef M_WANT_READ_THEN_CLEARED
			taken = want & (bits);
#ifndef M_WANT_NOT_TAKEN
			want = want & (7 - (bits));
#endif
#endif
			unanswered = unanswered - (taken & 1) -
				     ((taken >> 1) & 1) - (taken >> 2);
			assert(unanswered >= 0);
			told[0] = told[0] || taken != 0;
			told[1] = told[1] || taken != 0;
			taken = 0
		}
	:: (want & (bits)) != 0 && ps == HEALTHY && LOAD(POLLER, BACKLOG) ->
#ifndef M_PUT_OFF_FORGOTTEN
		d_step {
			on_stack[0] = on_stack[0] || !listed[0];
			listed[0] = true
		}
#else
		skip
#endif
	:: else
	fi
}

inline publish_retired()
{
#ifdef M_RETIRED_RELAXED
	put(POLLER, RETIRED, count, false)
#else
	put(POLLER, RETIRED, count, true)
#endif
}

inline raise_backlog()
{
	if
	:: spill >= LIMIT && !LOAD(POLLER, BACKLOG) ->
		put(POLLER, BACKLOG, true, false)
	:: else
	fi
}

inline flush()
{
#ifdef M_BACKLOG_AFTER_CREDIT
	publish_retired();
	raise_backlog();
#else
	raise_backlog();
	publish_retired();
#endif
#ifndef M_NO_FENCE_FLUSH
	FENCE(POLLER);
#endif
	answer_want(CREDIT + LOCKED)
}

inline retry()
{
	d_step { ring++; spill-- };
	if
	:: spill <= LIMIT / 2 && LOAD(POLLER, BACKLOG) ->
		put(POLLER, BACKLOG, false, true);
#ifndef M_NO_FENCE_EASED
		FENCE(POLLER);
#endif
		answering = true
	:: else
	fi
}

/* As many in a round as it likes; a new backlog ends it. */
inline answer_waiter(p)
{
	on_stack[p] = false;
#ifndef M_UNLISTED_AFTER_ANSWER
	listed[p] = false;
#endif
	answer_want(CREDIT + ROOM + LOCKED);
#ifdef M_UNLISTED_AFTER_ANSWER
	listed[p] = false
#endif
}

/* Unsignaled ones before it succeeded, up to the first error. */
inline finish(id, good)
{
	d_step {
		assert(id >= head && id < tail && !finished[id]);
		i = head;
		do
#ifdef M_INFER_BEYOND_ERROR
		:: i < tail ->
#else
		:: i < id ->
#endif
			if
			:: !error_seen && !signaled[i] -> finished[i] = true
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		error_seen = error_seen || !good;
		finished[id] = true
	};
	if
#ifndef M_QUIET_SUCCESS_DELIVERED
	:: good && on_error_only[id]
	:: else -> deliver(id)
#else
	:: deliver(id)
#endif
	fi
}

inline become_broken()
{
	ps = BROKEN;
	put(POLLER, HINT, true, false);
	told_broken = true
}

/* A completion of a side that is not healthy, or the first such. */
inline off_success(id, good)
{
	if
	:: ps == HEALTHY -> become_broken()
	:: else
	fi;
	if
	:: ps == BROKEN ->
#ifndef M_KEPT_DROPPED
		kept!id, good
#else
		skip
#endif
	:: ps == DRAINING || ps == SWEEPING -> finish(id, good)
	:: ps == SWEPT -> assert(false)
	fi
}

inline retire(id)
{
	count++;
	if
	:: !on_error_only[id] -> deliver(id)
	:: else
	fi;
	flush()
}

/* An early one says that all before it has succeeded; or it has failed. */
inline off_marker(good)
{
#ifdef M_EARLY_MARKER_FORGOTTEN
	marker_seen = ps != HEALTHY;
#else
	marker_seen = true;
#endif
	if
	:: ps == HEALTHY && good -> told_empty = true
	:: ps == HEALTHY && !good -> become_broken()
	:: else
	fi
}

inline poll_one()
{
	cq?id, good;
	if
	:: id == MARKER -> off_marker(good)
	:: id != MARKER && good && ps == HEALTHY -> retire(id)
	:: id != MARKER && !(good && ps == HEALTHY) -> off_success(id, good)
	fi;
	d_step { id = 0; good = false }
}

inline take_over()
{
	told_handover = false;
	reap(count);
	ps = DRAINING;
	do
	:: kept?id, good -> finish(id, good)
	:: empty(kept) -> break
	od;
	id = 0;
	good = false
}

inline finish_marker()
{
	d_step {
		i = head;
		do
		:: i < tail ->
			if
			:: on_error_only[i] -> finished[i] = true
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
}

inline drained()
{
	if
#ifndef M_MARKER_ASSUMED
	:: marker_seen -> finish_marker()
	:: !marker_seen
#else
	:: finish_marker()
#endif
	fi;
	is_drained = true;
	told_drained = true
}

inline synthesize()
{
	do
	:: head < tail && finished[head] -> head++
	:: head < tail && !finished[head] ->
		/* it has no completion, and will have none */
		assert(!has_cqe[head] && qp == GONE);
		finished[head] = true;
		deliver(head)
	:: head == tail -> break
	od;
	ps = SWEPT
}

proctype poller()
{
	chan kept = [N] of { byte, bool };
	byte count;
	byte taken;
	byte id;
	byte i;
	bool good;
	bool marker_seen;
	bool is_drained;
	bool answering;

	do
	:: nempty(cq) -> poll_one()
	:: spill > 0 && ring < RING -> retry()
	:: answering ->
		if
		:: LOAD(POLLER, BACKLOG) -> answering = false
		:: !LOAD(POLLER, BACKLOG) && on_stack[0] -> answer_waiter(0)
		:: !LOAD(POLLER, BACKLOG) && on_stack[1] -> answer_waiter(1)
		:: !LOAD(POLLER, BACKLOG) && !on_stack[0] && !on_stack[1] ->
			answering = false
		fi
	:: told_lock ->
#ifdef M_LOCK_MESSAGE_FREED_LATE
		told_lock = false;
		answer_want(LOCKED);
		lock_sent = false
#else
		d_step { told_lock = false; lock_sent = false };
		answer_want(LOCKED)
#endif
	:: told_handover -> take_over()
	/* the marker came; or a time passed */
	:: ps == DRAINING && !is_drained -> drained()
	:: told_gone ->
		told_gone = false;
		ps = SWEEPING;
#ifdef M_SYNTHESIZE_BEFORE_SWEEP
		synthesize()
#endif
	/* one poll that found nothing: a CQ is FIFO */
	:: ps == SWEEPING && empty(cq) -> synthesize(); break
	:: ps == SWEPT && empty(cq) -> break
	od
}

proctype consumer()
{
end:	do
	:: d_step { ring > 0 -> ring-- }
	od
}

/* ---------------------------------------------------------- the control --- */

/* Until its marker has succeeded, something has failed, or it is closed all the
 * same: its time is over, the peer leaves. */
inline drain()
{
	marker_posted = true;
	if
	:: told_empty -> emptied = true
	:: told_broken
	:: true
	fi
}

proctype control()
{
	byte i;
	bool emptied;

	/* the application closes, at any time or when all is posted; or the
	 * poller says that it is broken */
	if
#ifndef LIVES
	:: true
#endif
	:: true -> posters_done == 2 || told_broken
	fi;
#ifdef M_MARKER_BEFORE_GATE
	marker_posted = true;
#endif
	LOCK;
	closed = true;
	UNLOCK;
#if DRAINS
	drain();
#endif
#ifdef M_SECOND_MARKER
	marker_through = false;
#endif
	d_step { qp = ERR; marker_posted = true };
	told_handover = true;
	told_drained;
#ifdef M_QP_AFTER_SWEEP
	told_gone = true;
	ps == SWEPT;
	qp = GONE;
#else
	qp = GONE;
	told_gone = true;
	ps == SWEPT;
#endif
	empty(cq) && posters_done == 2;
	do
	:: i < tail ->
		assert(finished[i] || i < head);
		assert(on_error_only[i] || delivered[i] == 1);
		assert(!emptied || i < executed && !failed[i]);
		assert(!emptied || !on_error_only[i] || delivered[i] == 0);
		assert(!failed[i] || delivered[i] == 1);
		assert(i < executed || delivered[i] == 1);
		/* a success is not said to be something else, if the poller
		 * could know */
		assert(!on_error_only[i] || failed[i] || !has_cqe[i] ||
		       delivered[i] == 0);
		i++
	:: i == tail -> break
	od
}

init {
	atomic {
		run buffer(POLLER);
		run late();
		run poster(0);
		run poster(1);
		run device();
		run poller();
		run consumer();
		run control()
	}
}
