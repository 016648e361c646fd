/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A source, as in doc/protocols/future.md, Sources, and in poller/source.c and
 * future/life.c, here the messages of a connection (conn/fill.c, pool/): slots
 * of the pool are posted, come as messages, wait in the list or are given to
 * futures, are leases of the program, and are free again, so posted again. One
 * holder asks for futures of messages, reads, cancels and drops them in any
 * order, a second thread gives leases back. The connection dies at any time, or
 * when the holder closes it; the handle and futures go before its end or behind
 * it, and then the pool is deleted. Messages of an SRQ differ in who ends the
 * source, requests of a listener in what bounds the list: nothing but a look.
 *
 * What the poller does between two looks at what others write is one step: the
 * list, the slots that watch, and results that are not published are its own.
 * What is asked, and slots that go to the pool or come from there, are one step
 * too: the parts of these are in future.pml and pool.pml, and so are store
 * buffers, functions, sleep and a stop.
 *
 * Wanted: each message that came is read once, or is given back with what
 * nobody has; a future asked for when no other is held has the first of those
 * not read, and none waits while one asked for later has a message; nobody
 * waits for ever on a message, or on a receive; no slot is asked for while its
 * result is not published; the list has its room, and the source a node for
 * each message; and a pool whose leases were given back, behind CLOSED, can be
 * deleted.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* of what is left when the connection ends by itself */
#ifdef M_LAST_FIRST
#define DIES 1
#endif
#ifdef M_LIST_LEFT
#define DIES 1
#endif
#ifdef M_LATE_LEASE_LOST
#define DIES 1
#endif
#ifdef M_NOT_AWAITED
#define DIES 1
#endif
#ifdef M_POOL_FIRST
#define DIES 1
#endif
/* fewer slots than messages */
#ifdef M_HUNGRY_UNTOLD
#define SLOTS 1
#endif
/* more messages than the list has room for, or the source nodes */
#ifdef M_NODE_KEPT
#define N     4
#define SLOTS 4
#endif
#ifdef M_LISTED_NOT_COUNTED
#define N     4
#define SLOTS 4
#endif

#ifndef N
#define N 2 /* messages that the peer has */
#endif
#ifndef SIZE
#define SIZE 1 /* of the receive queue */
#endif
#ifndef SLOTS
#define SLOTS 2 /* of the pool */
#endif
#ifndef UPS
#define UPS 2 /* futures that are given up without a message read */
#endif
#ifndef DIES
#define DIES 0 /* the connection, at any time; 0: when it is closed */
#endif
#define FUTURES 2
#define ROOM	(SIZE + FUTURES) /* of the list */

/* the slots of futures: the last one is the keeper */
#define KEEPER FUTURES
#define FREE   0
#define OUT    1
#define DONE   2
#define ENDED  3
byte state[FUTURES];

#define WATCH  1
#define CANCEL 2
#define DROP   4
byte asked[FUTURES + 1];

/* requests, in the order of their pushes */
byte stack[FUTURES + 1];
byte on_stack;
bool msg_sent;

#define BLOCK 1 /* requests */
#define FEED  2 /* slots of the pool are free */
#define CALL  3
chan inbox = [4] of { byte };
bool called;

/* the poller's: results, of which LAST is CLOSED and 0 is none */
#define LAST (N + 1)
byte item[FUTURES];
bool filled[FUTURES];
bool stored[FUTURES]; /* and not published */
bool detached[FUTURES];
byte watching[FUTURES];
byte watches;
byte list[ROOM];
byte nodes;		/* of messages that are listed, or that slots got last */
bool node[FUTURES];	/* a slot has one */
byte listed;
bool is_last; /* no further message comes */
bool is_gone; /* the keeper was dropped */

/* the pool */
byte free = SLOTS;
bool asking;

/* the connection */
byte posted;
byte in_cq;
byte sent;
bool closing;
bool broken; /* the device flushes */
bool closed; /* CLOSED is published */
bool is_user = true; /* of the pool, until DONE */
byte holds = 2; /* of the connection: its handle, and its own */

/* the program */
bool got[N + 2];
bool lease[N + 2];
byte leases;
byte read_to; /* all up to it were read */
bool is_over;

/* ---------------------------------------------------- asking the poller --- */

/* Any thread; in one step. */
inline ask(f, what)
{
	if
	:: asked[f] == 0 ->
		stack[on_stack] = f;
		on_stack++;
		if
		:: !msg_sent -> msg_sent = true; inbox!BLOCK
		:: else
		fi
	:: else
	fi;
	asked[f] = asked[f] | what
}

/* One hold of the connection less. */
inline let_go()
{
	atomic {
		holds--;
		if
		:: holds == 0 -> ask(KEEPER, DROP)
		:: else
		fi
	}
}

/* ---------------------------------------------- the list, in one step --- */

inline put(m)
{
	assert(listed < ROOM && nodes < ROOM);
	nodes++;
	list[listed] = m;
	listed++
}

/* Where it was. */
inline put_back(m)
{
	assert(listed < ROOM);
	i = listed;
	do
#ifdef M_PUT_BACK_IN_FRONT
	:: i > 0 -> list[i] = list[i - 1]; i--
	:: i == 0 -> break
#else
#ifdef M_PUT_BACK_AT_END
	:: break
#else
	:: i > 0 && list[i - 1] > m -> list[i] = list[i - 1]; i--
	:: i == 0 || list[i - 1] < m -> break
#endif
#endif
	od;
	list[i] = m;
	listed++;
	i = 0
}

#ifdef M_LAST_FIRST
#define HAS_MESSAGE (listed > 0 && !is_last)
#else
#define HAS_MESSAGE (listed > 0)
#endif

/* The slot has the next message, or what is behind all messages. */
inline take(f)
{
	if
	:: HAS_MESSAGE ->
		item[f] = list[0];
		listed--;
		i = 0;
		do
		:: i < listed -> list[i] = list[i + 1]; i++
		:: i == listed -> break
		od;
		list[listed] = 0;
		i = 0;
		/* the message's node is the slot's; the former one is free */
		if
		:: node[f] ->
#ifndef M_NODE_KEPT
			nodes--
#endif
		:: else
		fi;
		node[f] = true;
#ifndef M_TAKEN_UNTOLD
		is_touched = true
#endif
	:: else -> item[f] = LAST
	fi;
	filled[f] = true;
	stored[f] = true
}

inline watch(f)
{
	watching[watches] = f;
	watches++
}

inline unwatch(f)
{
	if
	:: watches > 0 && watching[0] == f ->
		watches--;
		watching[0] = watching[1];
		watching[1] = 0
	:: watches > 1 && watching[1] == f ->
		watches--;
		watching[1] = 0
	:: else
	fi
}

/* Those that watch, the first one first. */
inline serve()
{
	do
	:: watches > 0 && (HAS_MESSAGE || is_last) ->
		s = watching[0];
		unwatch(s);
		take(s)
	:: else -> break
	od;
	s = 0
}

inline set_free(f)
{
	filled[f] = false;
	detached[f] = false;
	item[f] = 0;
	state[f] = FREE
}

/* What a lease that goes back leaves: nobody is hungry when the poller does it
 * for a connection that is through. */
inline return_lease()
{
	assert(free < SLOTS);
	free++
}

/* ------------------------------------------------------ each request --- */

inline drop_keeper()
{
#ifndef M_LIST_LEFT
	do
	:: listed > 0 -> return_lease(); listed--; list[listed] = 0
	:: listed == 0 -> break
	od;
#endif
	is_gone = true
}

#define IS_MESSAGE(f) (item[f] > 0 && item[f] < LAST)

inline put_result_back(f)
{
	if
	:: IS_MESSAGE(f) && !is_gone ->
		assert(node[f]);
		node[f] = false;
		put_back(item[f])
#ifndef M_LATE_LEASE_LOST
	:: IS_MESSAGE(f) && is_gone -> return_lease()
#endif
	:: else
	fi;
	item[f] = 0
}

inline end_slot(f)
{
	if
	:: bits & DROP -> set_free(f)
	:: else -> detached[f] = true; stored[f] = true
	fi
}

inline do_request(f)
{
	if
	:: f == KEEPER -> drop_keeper()
	:: f != KEEPER && filled[f] ->
		/* or it would be asked for what nobody can have seen */
		assert(!stored[f]);
		put_result_back(f);
		end_slot(f)
	:: f != KEEPER && !filled[f] && (bits & (CANCEL | DROP)) ->
		unwatch(f);
		filled[f] = true;
		end_slot(f)
	:: f != KEEPER && !filled[f] && !(bits & (CANCEL | DROP)) ->
		/* behind those that watch: what is listed was put back */
		if
		:: (HAS_MESSAGE || is_last) && watches == 0 -> take(f)
		:: else -> watch(f)
		fi
	fi
}

/* The batch's end. */
inline publish()
{
	s = 0;
	do
	:: s < FUTURES ->
		if
		:: stored[s] ->
			stored[s] = false;
			assert(state[s] == OUT || state[s] == DONE);
			state[s] = (detached[s] -> ENDED : DONE)
		:: else
		fi;
		s++
	:: s == FUTURES -> break
	od;
	s = 0
}

/* All that is on the stack, then those that watch. */
inline run_requests()
{
	d_step {
		n = on_stack;
		i = 0;
		do
		:: i < n ->
#ifdef M_NOT_TURNED
			todo[n - 1 - i] = stack[i];
#else
			todo[i] = stack[i];
#endif
			stack[i] = 0;
			i++
		:: i == n -> break
		od;
		i = 0;
		on_stack = 0
	};
	do
	:: n > 0 ->
		d_step {
			f = todo[0];
			todo[0] = todo[1];
			todo[1] = todo[2];
			todo[2] = 0;
			n--;
			bits = asked[f];
			asked[f] = 0;
			may_serve = !is_gone && f != KEEPER;
			do_request(f);
#ifdef M_SERVED_BETWEEN
			serve();
#endif
			bits = 0;
			f = 0
		}
	:: d_step { n == 0 ->
		f = 0;
#ifndef M_NOT_SERVED
		if
		:: may_serve -> serve()
		:: else
		fi;
#endif
		may_serve = false;
		publish();
		if
		:: is_touched -> fill()
		:: else
		fi
	}
		break
	od
}

/* ------------------------------------------------------------ receives --- */

#ifdef M_LISTED_NOT_COUNTED
#define HAS_ROOM (posted + in_cq < SIZE)
#else
#define HAS_ROOM (posted + in_cq + listed < SIZE)
#endif
#define IS_LOW (posted + in_cq == 0)

/* As far as slots go; without, and low: it asks for a message. */
inline fill()
{
	do
	:: is_fed && HAS_ROOM && free > 0 -> free--; posted++
	:: else -> break
	od;
#ifndef M_HUNGRY_UNTOLD
	asking = is_fed && HAS_ROOM && IS_LOW;
#endif
	is_touched = false
}

/* ---------------------------------------------------------- the poller --- */

proctype poller()
{
	byte todo[FUTURES + 1];
	byte n, f, s, i, bits, what;
	byte came; /* the number of the next message */
	bool is_touched, may_serve;
	bool is_fed = true;

	d_step { fill() };
	do
	/* a message: to the list, and from there to the first that watches */
	:: d_step { in_cq > 0 ->
		in_cq--;
		came++;
		put(came);
		serve();
		publish();
		fill()
	}
	:: atomic { inbox?what ->
		if
		:: what == BLOCK -> msg_sent = false
		:: what == FEED -> fill()
		:: what == CALL -> called = true
		fi
	};
		if
		:: what == BLOCK -> run_requests()
		:: else
		fi;
		what = 0
	/* the connection has broken: no further receives, and those that are
	 * out come back without a message */
	:: d_step { broken && is_fed -> is_fed = false; fill() }
	:: d_step { !is_fed && posted > 0 ->
		posted--;
#ifndef M_FLUSHED_LOST
		return_lease()
#endif
	}
	/* the end: what was asked, then CLOSED to those that watch */
	:: !is_fed && posted == 0 && in_cq == 0 && !is_last ->
		run_requests();
		is_last = true;
		d_step {
			serve();
			publish();
			is_touched = false
		};
		closed = true
	:: is_over -> break
	od
}

proctype device()
{
end:	do
	:: atomic { posted > 0 && !broken && sent < N ->
		posted--; in_cq++; sent++ }
	:: atomic { (DIES || closing) && !broken -> broken = true }
	od
}

/* The connection is DONE. */
proctype control()
{
	closed;
#ifdef M_POOL_FIRST
	is_user = false;
	let_go()
#else
	let_go();
	is_user = false
#endif
}

/* --------------------------------------------------------- the program --- */

#define GIVE(n)                             \
	:: lease[n] ->                      \
		lease[n] = false;           \
		return_lease();             \
		if                          \
		:: asking -> asking = false; inbox!FEED \
		:: else                     \
		fi;                         \
		leases--

/* Any thread. */
proctype giver()
{
end:	do
	:: atomic {
		if
		GIVE(1)
		GIVE(2)
		GIVE(N)
		fi
	}
	od
}

#define IS_READY(f) (state[f] == ENDED || (state[f] == DONE && !away[f]))

inline read(f)
{
	atomic {
		has[f] = true;
		assert(!after[f] || !open[1 - f] || has[1 - f] || away[1 - f] ||
		       item[1 - f] > 0);
		if
		:: IS_MESSAGE(f) ->
			assert(!got[item[f]]);
			got[item[f]] = true;
			do
			:: read_to < N && got[read_to + 1] -> read_to++
			:: else -> break
			od;
			assert(!first[f] || read_to >= item[f]);
			lease[item[f]] = true;
			leases++
		:: item[f] == LAST ->
			saw_last = true;
			assert(!first[f] || read_to == sent)
		:: else
		fi
	}
}

#ifdef M_DROP_LOSES
#define HOLDS_MESSAGE(f) false
#else
#define HOLDS_MESSAGE(f) (IS_MESSAGE(f) && !has[f])
#endif

inline drop(f)
{
	atomic {
		if
		:: IS_READY(f) && !HOLDS_MESSAGE(f) -> set_free(f)
		:: else -> ask(f, DROP)
		fi;
		open[f] = false;
		away[f] = false;
		has[f] = false;
		first[f] = false;
		after[f] = false
	}
}

/* It is the first if no other one is held that was not read; else after it. */
inline new(f)
{
	state[f] = OUT;
	open[f] = true;
	first[f] = !open[1 - f] || has[1 - f];
	after[f] = !first[f];
	after[1 - f] = false;
	ask(f, WATCH)
}

#define MAY_GIVE_UP(f) (open[f] && !has[f] && ups > 0)
#define ONE_FUTURE(f)                                                   \
	:: atomic { !open[f] && state[f] == FREE -> new(f) }            \
	:: atomic { MAY_GIVE_UP(f) && !IS_READY(f) && !away[f] ->       \
		ups--; away[f] = true; ask(f, CANCEL) }                 \
	:: atomic { MAY_GIVE_UP(f) -> ups--; drop(f) }                  \
	:: atomic { open[f] && IS_READY(f) && (away[f] || has[f]) ->    \
		drop(f) }                                               \
	:: atomic { open[f] && IS_READY(f) && !away[f] && !has[f] ->    \
		read(f) }

proctype holder()
{
	bool open[FUTURES];
	bool away[FUTURES];
	bool has[FUTURES];
	bool first[FUTURES];
	bool after[FUTURES];
	bool saw_last;
	bool is_held = true;
	byte ups = UPS;

	do
	ONE_FUTURE(0)
	ONE_FUTURE(1)
	:: read_to == N || saw_last || DIES -> break
	od;
	/* in any order, before CLOSED and behind it */
	closing = true;
	do
	:: atomic { open[0] -> drop(0) }
	:: atomic { open[1] -> drop(1) }
	:: atomic { is_held -> is_held = false; let_go() }
	:: !open[0] && !open[1] && !is_held -> break
	od;
	/* the pool's end */
	closed && leases == 0 && !is_user;
#ifndef M_NOT_AWAITED
	inbox!CALL;
	called;
#endif
	assert(free == SLOTS);
	is_over = true
}

init {
	atomic {
		run poller();
		run device();
		run control();
		run giver();
		run holder()
	}
}
