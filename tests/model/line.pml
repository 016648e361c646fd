/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Posts that stand in line, and futures that take them back, as in
 * doc/protocols/future.md ("In line") and ledger.md, and in
 * runtime/base/turn.c, conn/hold.c and poller/future.c, for every
 * interleaving of a poster with futures, a poster without, the poller with the
 * device, and a close.
 *
 * The first poster posts PS work requests with a future each. There is one slot
 * for a future, so the slot is used again. The poster waits for the result, or
 * cancels, or drops, at any time. The second poster posts QS work requests
 * without a future. All posts go through the line. A poster takes a slot of the
 * line in two steps: reads the head of the free list, and exchanges the head.
 * The queue has room for one work request. What post.pml shows of the turn is
 * one step here.
 *
 * All words are changed by read-modify-write, or by their owner: there are no
 * store buffers. interleave_future runs the code itself with store buffers.
 *
 * With CLOSES=1 the connection closes at any time, and the verb may refuse.
 *
 * Wanted: each work request that was published is posted once, or completes
 * once as not posted, or was taken back, and only one of these; the memory of a
 * work request that was taken back is never given to the device; posts keep the
 * order of their publications; no slot of the line is used twice, or lost; the
 * slot of the future is free in the end, and was not used again before its
 * former work request had left the line; nobody waits for ever.
 *
 * Each M_ macro breaks one thing; tests/model/run expects an error with each.
 */

/* where slots come back while a poster takes some */
#ifdef M_NO_TAG
#define PS 1
#define QS 3
#endif
/* what only shows at the end of a connection */
#if defined(M_END_UNCLAIMED) || defined(M_END_LEAVES)
#define CLOSES 1
#endif

#ifndef PS
#define PS 2
#endif
#ifndef QS
#define QS 1
#endif
#ifndef CLOSES
#define CLOSES 0
#endif
#define SLOTS (PS + QS)
#define WRS   (PS + QS)
#define IS_WAITED(w) (w < PS)

mtype = { FREE, OUT, WAITING, UNPOSTED, DONE, ENDED };
mtype = { OFF_LINE, IN_LINE, LET_GO };
mtype = { LEFT, HOLDS, REFUSED };

/* the word */
bool held;
bool waits;
bool closed;
byte stack[SLOTS]; /* slots, the newest last */
byte published;

/* the free list: slots are numbers from 1 on */
byte first = 1;
byte next[SLOTS + 1];
byte used;
bool is_old[2] = true; /* the head that this poster has read */

/* the holder's */
byte line[SLOTS];
byte in_line;
byte content[SLOTS + 1];
byte ledger[WRS];
byte tail;
byte given; /* of these, to the device */

/* the slot of the future */
mtype state = FREE;
mtype on_line = OFF_LINE;
byte use; /* its work request */
bool asked_cancel;
bool asked_drop;
/* the poller's */
bool filled;
bool cancels;
bool drops;

bool want;
bool writable;
bool said;
bool look;
byte retired;
bool is_firm;
bool handed_over;
bool ended;

/* what is judged */
bool slot_used[SLOTS + 1];
bool is_free[WRS]; /* the memory is the program's again */
bool posted[WRS];
bool was_published[WRS];
byte outcomes[WRS];
byte rank[WRS]; /* in the order of publications; 0: not in line */
byte publications; /* in line */
byte posters_done;

/* ------------------------------------------------------- the free list --- */

inline give_slot(s)
{
	d_step {
		assert(slot_used[s]);
		slot_used[s] = false;
		content[s] = 0;
		next[s] = first;
		first = s;
		used--;
		is_old[0] = true;
		is_old[1] = true
	}
}

#ifdef M_NO_TAG
#define IS_OLD (first != slot)
#else
#define IS_OLD (is_old[p])
#endif

inline take_slot()
{
	do
	:: true ->
		d_step {
			slot = first;
			behind = next[first];
			is_old[p] = false
		};
		d_step {
			if
			:: IS_OLD -> slot = 0
			:: else ->
				assert(slot != 0 && !slot_used[slot]);
				slot_used[slot] = true;
				first = behind;
				used++;
				is_old[1 - p] = true
			fi;
			is_old[p] = true;
			behind = 0
		};
		if
		:: slot != 0 -> break
		:: slot == 0
		fi
	od
}

/* ---------------------------------------------------------- the future --- */

/* By whoever frees the slot. */
inline set_free()
{
#ifdef M_FREED_AT_ONCE
	state = FREE;
#else
#ifdef M_LET_GO_STORED
	if
	:: on_line == OFF_LINE -> state = FREE
	:: on_line != OFF_LINE -> on_line = LET_GO
	fi;
#else
	/* one exchange */
	d_step {
		if
		:: on_line == IN_LINE -> on_line = LET_GO
		:: else -> state = FREE
		fi
	};
#endif
#endif
	skip
}

/* Of the work request that leaves the line: is it posted? */
inline claim(w)
{
#ifdef M_OFF_FIRST
	d_step { let_go = on_line == LET_GO; on_line = OFF_LINE };
#endif
#ifdef M_CLAIM_STORED
	is_claimed = state == WAITING;
	if
	:: is_claimed -> state = OUT
	:: !is_claimed
	fi;
#else
	d_step {
		is_claimed = state == WAITING;
		assert(!is_claimed || use == w);
		if
		:: is_claimed -> state = OUT
		:: else
		fi
	};
#endif
#ifndef M_OFF_FIRST
	d_step { let_go = on_line == LET_GO; on_line = OFF_LINE };
#endif
#ifndef M_LET_GO_LOST
	if
	:: let_go -> state = FREE
	:: !let_go
	fi;
#endif
	let_go = false
}

/* ---------------------------------------------------------- the holder --- */

/* Judged: the work request is in line no more. */
inline leave(w)
{
	v = 0;
	do
	:: v < WRS && rank[v] > rank[w] -> rank[v]--; v++
	:: v < WRS && rank[v] <= rank[w] -> v++
	:: v == WRS -> break
	od;
	v = 0;
	rank[w] = 0;
	publications--
}

/* Takes the slot at that place out of the line. */
inline cut(i)
{
	d_step {
		slot = line[i];
		leave(content[slot]);
		do
		:: i + 1 < in_line -> line[i] = line[i + 1]; i++
		:: else -> break
		od;
		in_line--;
		line[in_line] = 0;
		i = 0
	};
	give_slot(slot);
	slot = 0
}

inline gather()
{
	d_step {
		i = 0;
		do
		:: i < published ->
			line[in_line] = stack[i];
			stack[i] = 0;
			in_line++;
			i++
		:: else -> break
		od;
		published = 0;
		i = 0
	}
}

#define FRONT	     (content[line[0]])
#define HAS_ROOM     (tail == retired)
#define MAY_POST     (!closed)

/* Appends the front, and gives it to the device. */
inline post_front()
{
	d_step {
		assert(held && !is_firm);
		assert(!is_free[FRONT] && !posted[FRONT]);
		assert(rank[FRONT] == 1);
		ledger[tail] = FRONT;
		tail++
	};
	if
	:: d_step { posted[FRONT] = true; given++ }
#if CLOSES
	:: closed = true
#endif
	fi;
	cut(i)
}

inline hold()
{
	do
	:: true ->
		gather();
		if
#ifdef M_CLAIM_BEFORE_ROOM
		:: in_line > 0 && MAY_POST && IS_WAITED(FRONT) &&
		   !is_claimed ->
			claim(FRONT);
			if
			:: !is_claimed -> has_places = true; cut(i)
			:: is_claimed && HAS_ROOM ->
				is_claimed = false;
				post_front()
			:: is_claimed && !HAS_ROOM
			fi
		:: in_line > 0 && MAY_POST && !IS_WAITED(FRONT) && HAS_ROOM ->
			post_front()
#else
		:: in_line > 0 && MAY_POST && HAS_ROOM ->
			is_claimed = true;
			if
			:: IS_WAITED(FRONT) -> claim(FRONT)
			:: else
			fi;
#ifdef M_CANCELLED_POSTED
			is_claimed = true;
#endif
			if
			:: is_claimed -> is_claimed = false; post_front()
			:: !is_claimed ->
				has_places = true;
#ifdef M_SLOT_KEPT
				d_step {
					in_line--;
					line[0] = line[1];
					line[1] = 0
				}
#else
				cut(i)
#endif
			fi
#endif
		:: else ->
			is_claimed = false;
			said = in_line > 0;
			d_step {
				left = !(published > 0 && MAY_POST);
				held = !left;
				waits = left && in_line > 0;
				again = waits && MAY_POST && HAS_ROOM;
				held = held || again;
				waits = waits && !again
			};
			if
			:: left && !again -> break
			:: else
			fi
		fi
	od;
	left = false;
	again = false;
	/* with nothing held: a poster that found no slot may go on */
#ifndef M_PLACES_UNTOLD
	if
	:: has_places && want -> look = true
	:: else
	fi;
#endif
	has_places = false
}

/* ---------------------------------------------------------- the posters --- */

inline publish(w)
{
	/* one exchange */
	d_step {
		if
		:: closed -> how = REFUSED
		:: else ->
			content[slot] = w;
			stack[published] = slot;
			published++;
			was_published[w] = true;
			publications++;
			rank[w] = publications;
			how = (held -> LEFT : HOLDS);
			held = true;
			waits = (how == LEFT -> waits : false)
		fi
	};
	if
	:: how == REFUSED -> give_slot(slot)
	:: else
	fi;
	slot = 0
}

/* No slot for a future: the refusal stands. */
inline await_future()
{
	want = true;
	/* full fence */
	if
	:: state == FREE -> look = true
	:: state != FREE
	:: look = true /* of another poster, who lacks a place */
	fi;
	writable || ended;
	writable = false
}

/* Moves WAITING to UNPOSTED: the work request is not posted. */
inline take_back()
{
#ifdef M_TAKEN_BACK_STORED
	is_claimed = state == WAITING;
	if
	:: is_claimed -> state = UNPOSTED
	:: !is_claimed
	fi;
#else
	d_step {
		is_claimed = state == WAITING;
		if
		:: is_claimed -> state = UNPOSTED
		:: else
		fi
	};
#endif
	is_free[w] = is_claimed
}

inline use_future()
{
	if
	:: state == DONE
	:: true ->
		/* cancel: waits for ENDED then, unless the result was there */
		if
		:: state == DONE
		:: state != DONE ->
			take_back();
			asked_cancel = true;
			state == ENDED;
			assert(outcomes[w] == (is_claimed -> 0 : 1));
			is_claimed = false
		fi
	:: true ->
		/* drop */
		if
		:: state == DONE
		:: state != DONE ->
			take_back();
			is_claimed = false;
			asked_drop = true;
			dropped = true
		fi
	fi;
	if
	:: !dropped ->
		is_free[w] = true;
		set_free()
	:: dropped -> dropped = false
	fi
}

proctype poster(bool p)
{
	byte w = (p -> PS : 0);
	byte slot;
	byte behind;
	byte i;
	byte v;
	bool left;
	bool again;
	bool is_claimed;
	bool let_go;
	bool has_places;
	bool dropped;
	mtype how = LEFT;

	do
	:: w == (p -> WRS : PS) || how == REFUSED || ended -> break
	:: else ->
		if
		:: IS_WAITED(w) && state != FREE -> await_future()
		:: else ->
			take_slot();
			if
			:: IS_WAITED(w) ->
				d_step {
					use = w;
					filled = false;
					cancels = false;
					drops = false;
					on_line = IN_LINE;
					state = WAITING
				}
			:: else
			fi;
			publish(w);
			if
			:: how == HOLDS -> hold()
			:: how == REFUSED && IS_WAITED(w) ->
				d_step { on_line = OFF_LINE; state = FREE }
			:: else
			fi;
			if
			:: IS_WAITED(w) && how != REFUSED -> use_future()
			:: else
			fi;
			d_step { how = (how == REFUSED -> REFUSED : LEFT); w++ }
		fi
	od;
	posters_done++
}

/* ----------------------------------------------------------- the poller --- */

/* The result of the future, which is published. */
inline finish_future()
{
	d_step {
		filled = true;
		if
		:: !drops -> state = (cancels -> ENDED : DONE)
		:: else
		fi
	};
	if
	:: drops -> set_free()
	:: !drops
	fi
}

inline deliver(w)
{
	d_step {
		outcomes[w]++;
		assert(outcomes[w] == 1 && was_published[w]);
		assert(!IS_WAITED(w) || state == OUT && use == w && !filled)
	};
	if
	:: IS_WAITED(w) -> finish_future()
	:: else
	fi
}

inline answer()
{
	d_step {
		if
		:: want -> want = false; writable = true
		:: else
		fi
	}
}

/* Posts what stands in line, if nobody does; any: takes the right also where
 * nothing does. */
inline take(any)
{
	d_step {
		takes = !held && MAY_POST && (any || waits || published > 0);
		held = held || takes;
		waits = waits && !takes
	}
}

/* What was cancelled leaves the line, from the middle, too. */
inline sweep()
{
	gather();
	do
	:: i < in_line && IS_WAITED(content[line[i]]) && state != WAITING ->
#ifndef M_SWEPT_UNCLAIMED
		at = i;
		claim(content[line[at]]);
		is_claimed = false;
		i = at;
		at = 0;
#endif
		cut(i);
		has_places = true
	:: i < in_line && !(IS_WAITED(content[line[i]]) && state != WAITING) ->
		i++
	:: i >= in_line -> break
	od;
	i = 0
}

inline look_at()
{
	look = false;
	take(false);
	if
	:: takes -> takes = false; hold()
	:: !takes
	fi;
	if
	:: want ->
#ifdef M_SWEEP_UNHELD
		takes = true;
#else
		take(true);
#endif
		if
		:: takes -> takes = false; sweep(); hold()
		:: !takes
		fi
	:: !want
	fi;
	answer()
}

/* What the holder of the future asks. */
inline do_asked()
{
	d_step {
		cancels = cancels || asked_cancel;
		drops = drops || asked_drop;
		takes = asked_drop;
		asked_cancel = false;
		asked_drop = false
	};
	if
	:: filled && takes -> set_free(); answer()
	:: filled && !takes -> state = ENDED
#ifdef M_UNPOSTED_FORGOTTEN
	:: else
#else
	:: !filled && state == UNPOSTED -> finish_future(); answer()
	:: !filled && state != UNPOSTED
#endif
	fi;
	takes = false
}

/* Handed over: what was refused, then what stands in line. */
inline end_all()
{
	do
	:: given < tail ->
		deliver(ledger[given]);
		d_step { given++; retired++ }
	:: given == tail -> break
	od;
	gather();
#ifndef M_END_LEAVES
	do
	:: in_line > 0 ->
		w = FRONT;
		is_claimed = true;
		if
		:: IS_WAITED(w) ->
#ifndef M_END_UNCLAIMED
			claim(w)
#else
			d_step { on_line = OFF_LINE; state = OUT }
#endif
		:: else
		fi;
		if
		:: is_claimed -> is_claimed = false; deliver(w)
		:: !is_claimed
		fi;
		w = 0;
		cut(i)
	:: in_line == 0 -> break
	od;
#endif
	ended = true
}

proctype poller()
{
	byte w;
	byte slot;
	byte i;
	byte at;
	byte v;
	bool takes;
	bool left;
	bool again;
	bool is_claimed;
	bool let_go;
	bool has_places;

end:	do
	:: retired < given ->
		deliver(ledger[retired]);
		d_step { ledger[retired] = 0; retired++ };
		/* full fence */
		if
		:: said -> take(false)
		:: !said
		fi;
		if
		:: takes -> takes = false; hold()
		:: !takes
		fi;
		answer()
	:: asked_cancel || asked_drop -> do_asked()
	:: look -> look_at()
	:: handed_over && !ended && retired == given -> end_all()
	od
}

#if CLOSES
proctype control()
{
	closed = true;
	!held;
	is_firm = true;
	handed_over = true
}
#endif

/* When nothing happens any more. */
active proctype ending()
{
	byte w;

	timeout;
	assert(posters_done == 2 && ended == CLOSES);
	assert(published == 0 && in_line == 0 && used == 0);
	assert(state == FREE && on_line == OFF_LINE);
	do
	:: w < WRS ->
		/* posted, or made up at the end; or taken back */
		assert(outcomes[w] <= 1);
		assert(!posted[w] || outcomes[w] == 1);
		assert(!was_published[w] || outcomes[w] == 1 || is_free[w]);
		w++
	:: w == WRS -> break
	od;
	w = 0;
	do
	:: first != 0 -> first = next[first]; w++
	:: first == 0 -> break
	od;
	assert(w == SLOTS)
}

init {
	byte n = 1;

	atomic {
		do
		:: n < SLOTS -> next[n] = n + 1; n++
		:: n == SLOTS -> break
		od;
		run poster(0);
		run poster(1);
		run poller();
#if CLOSES
		run control()
#endif
	}
}
