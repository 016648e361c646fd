/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A port belongs to a process, as in doc/protocols/cm_wire.md and
 * src/loopback/cm/port.c: one port, and the block that contains it. A name is
 * bound until each process that holds its socket has closed it, a child of the
 * one that bound it too. An ASKER asks for the port; a GIVER gives it out of
 * its block, and forks; its child does the same behind its fork handler.
 *
 * Wanted: the port has one owner at most; at the end nobody holds a name.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

#ifndef TIMES
#define TIMES 2 /* that each of them wants the port */
#endif

#define PORT  0
#define BLOCK 1

byte holders[2]; /* of the socket that has the name */
byte owners;	 /* processes whose program may use the port */

inline bind(name, has)
{
	d_step {
		has = (holders[name] == 0);
		if
		:: has -> holders[name] = 1
		:: else
		fi
	}
}

inline let_go(name)
{
	d_step {
		assert(holders[name] > 0);
		holders[name]--
	}
}

/* A bind that is undone at once: two steps. */
inline look(name, is_held)
{
	bind(name, is_held);
	if
	:: is_held -> let_go(name); is_held = false
	:: else -> is_held = true
	fi
}

inline use()
{
	d_step {
		owners++;
		assert(owners == 1)
	}
	owners--
}

proctype asker()
{
	bool has, is_held;
	byte n;

	do
	:: n < TIMES ->
		n++;
		is_held = false;
#ifdef M_LOOK_FIRST
		look(BLOCK, is_held);
		bind(PORT, has);
#else
		bind(PORT, has);
		if
		:: has -> look(BLOCK, is_held)
		:: else
		fi;
#endif
		if
		:: has && !is_held -> use()
		:: else /* EADDRINUSE */
		fi;
#ifdef M_NAME_LEFT
		has = has && !is_held;
#endif
		if
		:: has -> let_go(PORT)
		:: else
		fi
	:: else -> break
	od
}

proctype giver(bool forks)
{
	bool has, is_held;
	byte n;

	do
	:: n < TIMES ->
		n++;
		is_held = false;
#ifdef M_PORT_LOOKED_FIRST
		look(PORT, is_held);
		bind(BLOCK, has);
#else
		bind(BLOCK, has);
		if
#ifndef M_NO_LOOK
		:: has -> look(PORT, is_held)
#endif
		:: else
		fi;
#endif
		if
		:: has && forks ->
			forks = false;
			atomic {
				holders[BLOCK]++;
				run child()
			}
		:: else
		fi;
		if
		:: has && !is_held -> use()
		:: else
		fi;
		if
		:: has -> let_go(BLOCK)
		:: else
		fi
	:: else -> break
	od
}

/* Behind the handler it is a process as any other. */
proctype child()
{
#ifndef M_CHILD_KEEPS_NAMES
	let_go(BLOCK);
#endif
#ifdef M_CHILD_GIVES_OUT
	use();
#endif
	run giver(false)
}

init
{
	atomic {
		run asker();
		run giver(true)
	}
	_nr_pr == 1;
	assert(holders[PORT] == 0 && holders[BLOCK] == 0)
}
