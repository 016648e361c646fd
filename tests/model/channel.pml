/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The channel protocol, as in doc/protocols/channel.md and in loop.c, cq.c,
 * bell.c, inbox.c and cq_pool.c, for every interleaving of one poller with its
 * CQs, a device that completes and raises events, and another thread: it sends
 * a message, stops the poller, and destroys the CQs when the poller has ended.
 * With LEAVES, CQ 0 may leave before: nothing completes in it any more, the
 * poller gets a message, lets go of it and goes on, and the other destroys it
 * meanwhile.
 *
 * Poller and the other thread store through buffers, see buffers.pml; the device
 * is behind calls with locks of their own. A completion and its event are two
 * steps, so that an event may come after its completion was polled. SPURIOUS
 * events are made out of nothing, DROPS are lost by the kernel; with those the
 * back-stop is on, and may fire when nothing else can happen.
 *
 * Wanted: every completion and the message handled; no end but the end; each
 * CQ destroyed with as many events acknowledged as were read, and not touched
 * after. The back-stop fires only for an event that was dropped.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifdef M_NO_BACKSTOP
#define DROPS 1
#endif

#if defined(M_LET_GO_UNACKED) || defined(M_LATE_KEPT) || \
	defined(M_LATE_AGAIN) || defined(M_DESTROY_KEPT)
#define LEAVES 1
#endif
#ifndef LEAVES
#define LEAVES 0
#endif

#ifndef CQS
#define CQS 2 /* 1 to 3 */
#endif
#ifndef N
#define N 3 /* completions, at most, each in any CQ */
#endif
#ifndef SPURIOUS
#define SPURIOUS 1 /* events for nothing, at most */
#endif
#ifndef DROPS
#define DROPS 0 /* events lost, at most */
#endif
#define BATCH 2 /* completions a poll takes, at most */
#define ACKS  2 /* events that are acknowledged at once */

/* threads with a store buffer */
#define POLLER	0
#define OTHER	1
#define THREADS 2
#define DEPTH	3

/* words in memory */
#define BELL  0 /* the poller's bell */
#define INBOX 1
#define STOP  2
#define LEAVE 3 /* a message, too */
#define WORDS 4

#define AWAKE  0
#define ASLEEP 1

#include "buffers.pml"

/* the device's */
byte cq[CQS]; /* completions that wait */
bool armed[CQS];
byte raised[CQS]; /* events on their way */
byte events[CQS]; /* that the channel's fd tells of */
short owed[CQS];  /* events read less those acknowledged: destroy waits */
bool destroyed[CQS];
byte done; /* completions so far */
byte lost; /* events */
bool device_over;

byte polled;  /* completions, by the poller */
bool handled; /* the message */
bool rung;    /* the eventfd of the bell */
byte unacked[CQS];
bool poller_gone;
bool left;   /* nothing completes in CQ 0 any more */
bool let_go; /* CQ 0, by the poller */

#if CQS == 1
#define FOR_EACH(what) what(0)
#define READABLE       (events[0] > 0)
#elif CQS == 2
#define FOR_EACH(what) what(0); what(1)
#define READABLE       (events[0] + events[1] > 0)
#else
#define FOR_EACH(what) what(0); what(1); what(2)
#define READABLE       (events[0] + events[1] + events[2] > 0)
#endif

/* --------------------------------------------------------- the device --- */

#define COMPLETE(i)                                            \
	:: d_step {                                            \
		done < N && !(left && i == 0) ->               \
		done++;                                        \
		cq[i]++;                                       \
		raised[i] = raised[i] + armed[i];              \
		armed[i] = false                               \
	}

proctype device()
{
	do
	COMPLETE(0)
#if CQS > 1
	COMPLETE(1)
#endif
#if CQS > 2
	COMPLETE(2)
#endif
	:: break
	od;
	device_over = true
}

/* An event reaches the channel, or is lost; or one is made of nothing. */
#define EVENT_OF(i)                                                         \
	:: d_step { raised[i] > 0 -> raised[i]--; events[i]++ }             \
	:: d_step { raised[i] > 0 && lost < DROPS -> raised[i]--; lost++ } \
	:: d_step { made < SPURIOUS && !destroyed[i] -> made++; events[i]++ }

proctype kernel()
{
	byte made;

end:	do
	/* one less: nobody may hope for it */
	:: made < SPURIOUS -> made++
	EVENT_OF(0)
#if CQS > 1
	EVENT_OF(1)
#endif
#if CQS > 2
	EVENT_OF(2)
#endif
	od
}

/* --------------------------------------------------------- the poller --- */

/* Out of the array: neither polled nor armed. */
#ifdef M_DESTROY_KEPT
#define IS_LET_GO(i) false
#else
#define IS_LET_GO(i) (let_go && i == 0)
#endif

/* ibv_poll_cq(): up to a batch. */
#define POLL(i)                                                            \
	d_step {                                                           \
		assert(IS_LET_GO(i) || !destroyed[i]);                     \
		if                                                         \
		:: IS_LET_GO(i)                                            \
		:: !IS_LET_GO(i) && cq[i] > BATCH ->                       \
			cq[i] = cq[i] - BATCH;                             \
			polled = polled + BATCH;                           \
			busy = true                                        \
		:: !IS_LET_GO(i) && cq[i] > 0 && cq[i] <= BATCH ->         \
			polled = polled + cq[i];                           \
			cq[i] = 0;                                         \
			busy = true                                        \
		:: else                                                    \
		fi                                                         \
	}

/* ibv_req_notify_cq() */
#define ARM(i)                                          \
	d_step {                                        \
		assert(IS_LET_GO(i) || !destroyed[i]);  \
		armed[i] = armed[i] || !IS_LET_GO(i)    \
	}

inline run_inbox()
{
	if
	:: !handled && LOAD(POLLER, INBOX) -> d_step { handled = true; busy = true }
	:: else
	fi
}

#ifdef M_LET_GO_UNACKED
#define LET_GO_ACK 0
#else
#define LET_GO_ACK unacked[0]
#endif
inline leave_if_told()
{
	if
	:: !let_go && LOAD(POLLER, LEAVE) ->
		d_step {
			owed[0] = owed[0] - LET_GO_ACK;
			unacked[0] = 0;
			let_go = true;
			busy = true
		}
	:: else
	fi
}

inline round()
{
	FOR_EACH(POLL);
#if LEAVES > 0
	run_inbox();
	leave_if_told()
#else
	run_inbox()
#endif
}

#ifdef M_ARM_FIRED
#define ARM_FIRED(i) if :: fired == i -> ARM(i) :: else fi
#define ARM_ALL	     FOR_EACH(ARM_FIRED)
#else
#define ARM_ALL FOR_EACH(ARM)
#endif

/* The look that follows the arms. */
#define POLL_FIRED(i) if :: fired == i -> POLL(i) :: else fi
inline look_again()
{
#ifdef M_REPOLL_FIRED
	FOR_EACH(POLL_FIRED);
	run_inbox()
#else
#ifndef M_NO_REPOLL
	round()
#else
	skip
#endif
#endif
}

#if defined(M_ARM_FIRED) || defined(M_REPOLL_FIRED)
#define FIRED(i) fired = i
byte fired; /* the CQ of the last event */
#else
#define FIRED(i) skip
#endif
#ifdef M_ACK_WRONG_CQ
#define ACKED_CQ(i) 0
#else
#define ACKED_CQ(i) i
#endif
#ifdef M_ACK_NOT_CLEARED
#define CLEAR(i) skip
#else
#define CLEAR(i) unacked[i] = 0
#endif

/* An event behind the let-go is acknowledged at once, singly. */
#ifdef M_LATE_KEPT
#define IS_LATE(i) false
#else
#define IS_LATE(i) (let_go && i == 0)
#endif
#ifdef M_LATE_AGAIN
#define LATE_AGAIN 1
#else
#define LATE_AGAIN 0
#endif

/* The pointer that is read leads to the CQ; so does the acknowledgement. */
#define READ_EVENT(i)                                                     \
	:: d_step {                                                       \
		events[i] > 0 ->                                          \
		assert(!destroyed[i]);                                    \
		events[i]--;                                              \
		owed[i]++;                                                \
		unacked[i] = unacked[i] + !IS_LATE(i);                    \
		FIRED(i)                                                  \
	};                                                                \
	if                                                                \
	:: IS_LATE(i) -> owed[i] = owed[i] - 1 - LATE_AGAIN               \
	:: !IS_LATE(i) && unacked[i] >= ACKS ->                                          \
		d_step {                                                  \
			assert(!destroyed[i]);                            \
			owed[ACKED_CQ(i)] = owed[ACKED_CQ(i)] - unacked[i]; \
			CLEAR(i)                                          \
		}                                                         \
	:: else                                                           \
	fi

inline read_channel()
{
	do
	READ_EVENT(0)
#if CQS > 1
	READ_EVENT(1)
#endif
#if CQS > 2
	READ_EVENT(2)
#endif
	:: !READABLE -> break
	od
}

inline epoll_wait()
{
	if
	:: READABLE || rung
#if DROPS > 0 && !defined(M_NO_BACKSTOP)
	/* when it is all that is left: then it must be for a reason */
	:: timeout -> assert(lost > 0)
#endif
	fi
}

#ifdef M_NO_INBOX_CHECK
#define IS_INBOX_EMPTY true
#else
#define IS_INBOX_EMPTY                            \
	((handled || !LOAD(POLLER, INBOX)) &&     \
	 (let_go || !LOAD(POLLER, LEAVE)))
#endif
#ifdef M_NO_STOP_CHECK
#define IS_GOING_ON true
#else
#define IS_GOING_ON (!LOAD(POLLER, STOP))
#endif

inline poller_sleep()
{
	put(POLLER, BELL, ASLEEP, true);
#ifndef M_NO_FENCE_SLEEP
	FENCE(POLLER);
#endif
	if
	:: IS_INBOX_EMPTY ->
		if
		:: IS_GOING_ON ->
			/* a system call */
			FENCE(POLLER);
			epoll_wait()
		:: !(IS_GOING_ON)
		fi
	:: !(IS_INBOX_EMPTY)
	fi;
	/* what is written later wakes once for nothing */
	d_step { FENCE(POLLER) -> mem[BELL] = AWAKE; rung = false };
	read_channel()
}

inline arm_and_sleep()
{
#ifdef M_ARM_AFTER
	look_again();
	ARM_ALL;
#else
	ARM_ALL;
	look_again();
#endif
#ifdef M_PARTIAL_DRAIN
	busy = false;
#endif
	if
	:: !busy -> poller_sleep()
	:: busy
	fi
}

proctype poller()
{
	bool busy;

	do
	:: round();
		if
		:: busy
		:: !busy && LOAD(POLLER, STOP) -> break
		:: !busy && !LOAD(POLLER, STOP) -> arm_and_sleep()
		fi;
		busy = false
	od;
	/* a thread that ends has no stores left */
	FENCE(POLLER);
	poller_gone = true
}

/* ----------------------------------------------------- another thread --- */

inline ring_poller()
{
#ifndef M_NO_FENCE_RING
	FENCE(OTHER);
#endif
	if
	:: LOAD(OTHER, BELL) == ASLEEP ->
		d_step {
			FENCE(OTHER) ->
			rung = rung || mem[BELL] == ASLEEP;
			mem[BELL] = AWAKE
		}
	:: else
	fi
}

#if defined(M_ACK_NONE_AT_END)
#define LAST_ACK(i) 0
#elif defined(M_ACK_TWICE)
#define LAST_ACK(i) (2 * unacked[i])
#else
#define LAST_ACK(i) unacked[i]
#endif

/* The kernel drops what nobody read; then it waits for the rest. */
#define DESTROY(i)                                          \
	d_step {                                            \
		owed[i] = owed[i] - LAST_ACK(i);            \
		events[i] = 0;                              \
		raised[i] = 0;                              \
		armed[i] = false;                           \
		destroyed[i] = true;                        \
		assert(owed[i] >= 0)                        \
	};                                                  \
	owed[i] == 0

/* Its last user is gone: it is empty, though events may be on their way. */
inline destroy_when_let_go()
{
	d_step { cq[0] == 0 -> left = true };
	put(OTHER, LEAVE, true, true);
	ring_poller();
	let_go;
	d_step {
		events[0] = 0;
		raised[0] = 0;
		armed[0] = false;
		destroyed[0] = true
	};
	owed[0] == 0
}

proctype other()
{
	put(OTHER, INBOX, true, true);
	ring_poller();
#if LEAVES > 0
	if
	:: true
	:: true -> destroy_when_let_go()
	fi;
#endif
	/* at any time; or it waits, and then nobody is woken for this reason
	 * before all was handled */
	if
	:: true
	:: true -> device_over && polled == done && handled
	fi;
	put(OTHER, STOP, true, true);
	ring_poller();
#ifndef M_DESTROY_EARLY
	poller_gone;
#endif
	FOR_EACH(DESTROY)
}

init {
	atomic {
		run buffer(POLLER);
		run buffer(OTHER);
		run poller();
		run device();
		run kernel();
		run other()
	}
}
