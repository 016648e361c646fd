/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Ledger, places and death of one side of a connection, as in
 * doc/protocols/ledger.md and connection.md, for every interleaving of two
 * posters, a holder, the poller, the control thread, the device and a consumer.
 *
 * The right to post is what post.pml models: here one process holds the right at
 * all times, and a publication is one step. The poller stores through a buffer, see
 * buffers.pml. A message to the poller or to the control thread orders all.
 *
 * The lane is the connection's own queue's, too. Each poster has a route of its
 * own to the lane; the first one's is also the connection's own. A poster that is
 * refused says so to the poller by a message. If the reason is gone by then the
 * poller answers, else a batch answers, or the poller lists the poster's route
 * with the lane.
 *
 * Work requests are numbered as posted. Each wants a completion always, or on
 * error only; the device executes them in order, may fail one, and from then
 * on flushes.
 *
 * The application closes the connection, or (DRAINS) drains it: then the line is
 * posted, the marker is posted early, behind all that was posted, and its
 * success ends the connection.
 *
 * Wanted: each WR that the device took has exactly one completion, or none if
 * it wanted one on error only and succeeded; each that was published and not
 * posted has one, behind those; none is made up while the device has a real one;
 * nothing is posted once the side has closed firmly; a poster that was refused
 * hears WRITABLE, which nobody writes unasked; the spill stays within what was
 * reserved for it, though what stands in line ignores a backlog; the poller
 * counts no entry back twice. Where a drain ends by its marker, all that was
 * published has succeeded, and is not said to be unknown.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* what breaks a connection that lives is found in one that may not die */
#if defined(M_RETIRED_RELAXED) || defined(M_BACKLOG_AFTER_CREDIT) || \
	defined(M_LOOKS_FIRST) || defined(M_LINE_IS_UNLIMITED)
#define LIVES
#define LINE 0
#define N    4
#endif
#if defined(M_TAKES_BACK) || defined(M_NOT_ASKED) || \
	defined(M_WANT_NOT_TAKEN) || defined(M_NEVER_SIGNALED) || \
	defined(M_NOT_LISTED) || defined(M_PUT_OFF_FORGOTTEN)
#define LIVES
#endif
#ifdef M_NEVER_SIGNALED
#define SQ 2
#endif

/* the application drains, and does not close */
#if defined(M_EARLY_MARKER_FORGOTTEN) || defined(M_MARKER_BEFORE_LINE) || \
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
#ifndef LINE
#define LINE 1 /* places in line beyond them */
#endif
#ifndef N
#define N 3 /* that the posters post together */
#endif
#define RING  1 /* of the lane; what it does not hold is spilled */
#ifdef LIVES
#define LIMIT 1 /* of the spill, from where on it is a backlog */
#else
#define LIMIT 99
#endif

/* threads with a store buffer */
#define POLLER	0
#define THREADS 1
#define DEPTH	3

/* words in memory */
#define RETIRED	  0
#define BACKLOG	  1
#define HINT	  2 /* CLOSED as the poller sets it */
#define WORDS	  3

#include "buffers.pml"

#define CREDIT 1 /* bits of want */
#define ROOM   2
#define RETRY  3

mtype = { RTS, ERR, GONE, HEALTHY, BROKEN, DRAINING, SWEEPING, SWEPT };

/* the line, and the ledger: the holder's; the poller's after the handover */
chan line = [N] of { bool }; /* wants a completion on error only */
byte published;
bool refused_all; /* drained: nothing more is published */
bool closed;	  /* nothing more is posted, firmly */
byte head;
byte tail;
byte unsignaled;
bool signaled[N];
byte retires[N]; /* of a signaled one: how many with it */
bool on_error_only[N];
bool finished[N];
bool error_seen;
byte not_posted;

byte want;
short unanswered; /* bits that became set, less those answered */
bool told[2];	  /* WRITABLE, since the poster's call began */

/* each poster's route: said to the poller; in the list of the lane */
bool said[2];
bool listed[2];

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
bool told_broken;
bool told_empty;
bool told_handover;
bool told_drained;
bool told_gone;
mtype ps = HEALTHY;
byte delivered[N];
byte posters_done;

/* --------------------------------------------------------- the posters --- */

#ifdef M_LINE_IS_UNLIMITED
#define HAS_PLACE true
#else
#define HAS_PLACE (published - mem[RETIRED] < SQ + LINE)
#endif
#define IS_BACKLOGGED (mem[BACKLOG])

/* Takes a place by one exchange, then looks at the lane. why: 0, or what the
 * post lacks. */
inline take_place()
{
#ifdef M_LOOKS_FIRST
	looked = IS_BACKLOGGED;
#endif
	d_step {
		if
		:: HAS_PLACE && published < N ->
			published++;
			why = 0
		:: else -> why = CREDIT
		fi
	};
#ifndef M_LOOKS_FIRST
	looked = IS_BACKLOGGED;
#endif
	if
	:: why == 0 && looked -> published--; why = ROOM; gave_back = true
	:: else
	fi;
	looked = false
}

/* why: 0, or the reason the post is refused for: the poller is asked to look,
 * so a reason that is gone by then is answered too. The message orders. */
inline take_credit(p)
{
	take_place();
	/* a place that comes back unposted is told, too */
	if
	:: gave_back ->
		gave_back = false;
		if
		:: (want & CREDIT) != 0 -> said[p] = true
		:: else
		fi
	:: else
	fi;
	if
	:: why != 0 ->
		d_step {
			before = want & why;
			unanswered = unanswered + (before == 0 -> 1 : 0);
			want = want | why
		};
#ifdef M_TAKES_BACK
		/* as under a lock: a second look, in place of the message */
		again = (why == CREDIT -> HAS_PLACE : !IS_BACKLOGGED);
		d_step {
			if
			:: again && before == 0 && (want & why) != 0 ->
				want = want & (3 - why);
				unanswered--;
				why = RETRY
			:: else
			fi;
			again = false
		};
		said[p] = said[p] || why == ROOM
#else
#ifdef M_NOT_ASKED
		said[p] = said[p] || why == ROOM
#else
		said[p] = true
#endif
#endif
	:: else
	fi;
	before = 0
}

#ifndef LIVES
/* Publishes; whether there are places is played by the side that lives. */
proctype poster(bool p)
{
	do
	:: d_step {
		!refused_all && !closed && !mem[HINT] && published < N ->
		published++;
		line!false
	   }
	:: d_step {
		!refused_all && !closed && !mem[HINT] && published < N ->
		published++;
		line!true
	   }
	:: refused_all || closed || mem[HINT] || published == N -> break
	od;
	posters_done++
}
#else
proctype poster(bool p)
{
	byte why;
	byte before;
	bool looked;
	bool gave_back;
	bool quiet;
#ifdef M_TAKES_BACK
	bool again;
#endif

	do
	:: told[p] = false;
		if
		:: refused_all || closed || mem[HINT] || published == N -> break
		:: else
		fi;
		take_credit(p);
		if
		:: why == 0 ->
			if
			:: quiet = false
			:: SQ > 1 -> quiet = true
			fi;
			/* one exchange, which fails if the side is closed */
			d_step {
				if
				:: !refused_all && !closed && !mem[HINT] ->
					line!quiet
				:: else -> published--
				fi;
				quiet = false
			}
		:: why == RETRY -> why = 0
		:: why == CREDIT || why == ROOM ->
			why = 0;
			told[p] || ps == SWEPT || refused_all
		fi
	od;
	posters_done++
}
#endif

/* ---------------------------------------------------------- the holder --- */

/* Append and doorbell: nobody else is in here. What stands in line was looked
 * at for a backlog when it was published. */
#define POST_FRONT                                                             \
	d_step {                                                               \
		nempty(line) && !closed && !mem[HINT] &&                       \
		tail - mem[RETIRED] < SQ ->                                    \
		assert(qp != GONE);                                            \
		line?on_error_only[tail];                                      \
		signaled[tail] = !on_error_only[tail] ||                       \
				 MUST_SIGNAL;                                  \
		retires[tail] = (signaled[tail] -> unsignaled + 1 : 0);        \
		unsignaled = (signaled[tail] -> 0 : unsignaled + 1);           \
		tail++                                                         \
	}
#ifdef M_NEVER_SIGNALED
#define MUST_SIGNAL false
#else
#define MUST_SIGNAL (2 * (unsignaled + 1) >= SQ)
#endif

proctype holder()
{
end:	do
	:: POST_FRONT
	od
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
#ifdef LIVES
		if
		:: spill == 0 && ring < RING -> ring++
		:: else -> spill++
		fi;
		/* below the limit, and what held a place then */
		assert(spill < LIMIT + SQ + LINE)
#endif
	}
}

/* The taker of a want owns it. WRITABLEs have room of their own. */
inline answer_want(bits)
{
	if
	:: (want & (bits)) != 0 && ps == HEALTHY && !LOAD(POLLER, BACKLOG) ->
		d_step {
			taken = want & (bits);
#ifndef M_WANT_NOT_TAKEN
			want = want & (3 - (bits));
#endif
			unanswered = unanswered - (taken & 1) - (taken >> 1);
			assert(unanswered >= 0);
			told[0] = told[0] || taken != 0;
			told[1] = told[1] || taken != 0;
			taken = 0
		}
	:: (want & (bits)) != 0 && ps == HEALTHY && LOAD(POLLER, BACKLOG) ->
#ifndef M_PUT_OFF_FORGOTTEN
		listed[0] = true
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
	FENCE(POLLER);
	answer_want(CREDIT)
}

inline retry()
{
	d_step { ring++; spill-- };
	if
	:: spill <= LIMIT / 2 && LOAD(POLLER, BACKLOG) ->
		put(POLLER, BACKLOG, false, true);
		FENCE(POLLER);
		answering = true
	:: else
	fi
}

/* As many in a round as it likes; a new backlog ends it. */
inline answer_waiter(p)
{
	listed[p] = false;
	answer_want(CREDIT + ROOM)
}

/* A poster was refused. */
inline hear(p)
{
	said[p] = false;
	if
	:: LOAD(POLLER, BACKLOG) ->
#ifndef M_NOT_LISTED
		listed[p] = true
#else
		skip
#endif
	:: !LOAD(POLLER, BACKLOG) -> answer_want(ROOM)
	fi;
	if
	:: published - LOAD(POLLER, RETIRED) < SQ + LINE ->
		answer_want(CREDIT)
	:: else
	fi
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
	count = count + retires[id];
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
	head = count;
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
	/* behind them, in order */
	do
	:: line?_ ->
		not_posted++
	:: empty(line) -> break
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

end:	do
	:: nempty(cq) -> poll_one()
	:: spill > 0 && ring < RING -> retry()
	:: answering ->
		if
		:: LOAD(POLLER, BACKLOG) -> answering = false
		:: !LOAD(POLLER, BACKLOG) && listed[0] -> answer_waiter(0)
		:: !LOAD(POLLER, BACKLOG) && listed[1] -> answer_waiter(1)
		:: !LOAD(POLLER, BACKLOG) && !listed[0] && !listed[1] ->
			answering = false
		fi
	:: said[0] -> hear(0)
	:: said[1] -> hear(1)
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
	refused_all = true;
#ifdef M_MARKER_BEFORE_LINE
	marker_posted = true;
#endif
	/* all that was published is posted; or the drain becomes a close */
	if
	:: tail == published -> closed = true; marker_posted = true
	:: told_broken
	:: true
	fi;
	closed = true;
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
#if DRAINS
	drain();
#else
	closed = true;
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
	assert(tail + not_posted == published);
	assert(!emptied || not_posted == 0);
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
		run poster(0);
		run poster(1);
		run holder();
		run device();
		run poller();
#ifdef LIVES
		run consumer()
#else
		run control()
#endif
	}
}
