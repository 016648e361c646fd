/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * turn.c -- two posters with a work request each, and a poller, in every order
 * of their accesses to the words of a turn (runtime/base/turn.h). The device
 * has room for a single work request, so one of the two waits in line until the
 * poller has counted the other; in some plays the side is paused or closed
 * meanwhile, or the holder leaves a rest to the poller. This file is compiled
 * like the code under test, because of inline functions.
 * doc/protocols/ledger.md.
 */

#include <string.h>

#include "base/order.h"
#include "base/turn.h"
#include "explore.h"

#define WRS    4 /* at most */
#define BUDGET 64

static struct {
	struct rt_turn turn;
	uint16_t slots_in_line[WRS];
	_Atomic uint16_t next[WRS]; /* all that is in a slot */
	int content[WRS];	    /* of each slot */
	_Atomic uint32_t retired;
	_Atomic bool line; /* something stands in line */
	/* the holder's */
	uint32_t posted;
	int order[WRS];
	/* the poller's */
	uint32_t completed;
	bool told; /* to look at the turn */
	/* the state to be judged */
	bool inside;
	bool forbidden; /* paused or closed: no thread is inside */
	uint32_t taken;
	uint32_t answered; /* finished posts */
	bool is_closed;
	uint32_t route; /* number of changes of the route */
	/* the play's */
	uint32_t room; /* work requests in the device */
	uint32_t budget;
	uint32_t posts;
} s;

/* ----------------------------------------------------------- the holder --- */

static bool has_room(struct rt_turn *turn, uint32_t needs, void *arg)
{
	(void)turn;
	(void)arg;
	/* acquire: pairs with the release in run_poller() */
	return s.room -
		       (s.posted - atomic_load_explicit(
					   &s.retired, memory_order_acquire)) >=
	       needs;
}

/* The verb: the device completes the work request at once. */
static void give(int wr)
{
	explore_touch(&s.inside);
	EXPLORE_CHECK(!s.inside && !s.forbidden);
	s.inside = true;
	EXPLORE_CHECK(s.posted < s.posts);
	s.order[s.posted++] = wr;
	explore_touch(&s.inside);
	EXPLORE_CHECK(s.inside && !s.forbidden);
	s.inside = false;
}

static uint32_t post_front(struct rt_turn *turn, void *arg)
{
	uint16_t front = rt_turn_front(turn);

	if (!has_room(turn, 1, arg))
		return 0;
	give(s.content[front - 1]);
	rt_turn_leave_line(turn, 1);
	return 1;
}

static uint32_t needs_one(struct rt_turn *turn, void *arg)
{
	(void)turn;
	(void)arg;
	return 1;
}

static void say_line(struct rt_turn *turn, bool waits, void *arg)
{
	(void)turn;
	(void)arg;
	/* acquire-release: pairs with the look behind the poller's fence */
	atomic_exchange_explicit(&s.line, waits, memory_order_acq_rel);
}

static const struct rt_turn_ops ops = {.post = post_front,
				       .needs = needs_one,
				       .has_room = has_room,
				       .say = say_line};

static void tell(bool has_to_look)
{
	if (!has_to_look)
		return;
	explore_touch(&s.inside);
	s.told = true;
}

/* ---------------------------------------------------------- the posters --- */

static void note(bool taken)
{
	explore_touch(&s.inside);
	s.taken += taken;
	s.answered++;
}

static bool post_alone(int wr, uint64_t seen)
{
	bool posted = false;

	if (!rt_turn_take_alone(&s.turn, seen))
		return false;
	if (has_room(&s.turn, 1, NULL)) {
		give(wr);
		posted = true;
	}
	tell(!rt_turn_leave_alone(&s.turn, seen) &&
	     rt_turn_hold(&s.turn, &ops, NULL, s.budget));
	return posted;
}

/*
 * Publishes; in the step of the exchange: the route is the route that was read.
 */
static enum rt_turn_answer publish(uint16_t slot, uint64_t seen, uint32_t route)
{
	enum rt_turn_answer answer = rt_turn_publish(&s.turn, seen, slot, slot);

	EXPLORE_CHECK(answer == RT_TURN_REFUSED || answer == RT_TURN_STALE ||
		      s.route == route);
	return answer;
}

static void post(int wr)
{
	uint64_t seen = rt_turn_look(&s.turn);
	uint32_t route = s.route;
	enum rt_turn_answer answer;
	uint16_t slot;

	if (post_alone(wr, seen)) {
		note(true);
		return;
	}
	slot = rt_freelist_take(&s.turn.free, 1, WRS);
	EXPLORE_CHECK(slot != 0);
	s.content[slot - 1] = wr;
	answer = publish(slot, seen, route);
	while (answer == RT_TURN_STALE) {
		seen = rt_turn_look(&s.turn);
		route = s.route;
		answer = publish(slot, seen, route);
	}
	if (answer == RT_TURN_REFUSED)
		rt_freelist_give(&s.turn.free, slot, slot, 1);
	note(answer != RT_TURN_REFUSED);
	if (answer == RT_TURN_HOLDS)
		tell(rt_turn_hold(&s.turn, &ops, NULL, s.budget));
}

static void post_0(void)
{
	post(0);
}

static void post_1(void)
{
	post(1);
}

/* One thread posts one after the other: the posts keep their order. */
static void post_all(void)
{
	post(0);
	post(1);
	post(2);
	post(3);
}

static void post_two(void)
{
	post(1);
	post(2);
}

/* ----------------------------------------------------------- the poller --- */

static bool has_work(void *arg)
{
	(void)arg;
	return s.told || s.completed < s.posted || s.is_closed ||
	       (s.answered == s.posts && s.completed == s.taken);
}

static void look(void)
{
	if (rt_turn_take_waiting(&s.turn))
		tell(rt_turn_hold(&s.turn, &ops, NULL, s.budget));
}

/* Runs until all accepted work is complete, or the side is closed. */
static void run_poller(void)
{
	bool told;

	for (;;) {
		explore_wait(&s.inside, has_work, NULL);
		if (s.is_closed || (s.answered == s.posts && !s.told &&
				    s.completed == s.taken))
			return;
		told = s.told;
		s.told = false;
		s.completed = s.posted;
		/* release: pairs with the acquire in has_room() */
		atomic_store_explicit(&s.retired, s.completed,
				      memory_order_release);
		rt_fence_dekker();
		/* relaxed: ordered by the fence */
		if (told || atomic_load_explicit(&s.line, memory_order_relaxed))
			look();
	}
}

/* ---------------------------------------------------------- the control --- */

/* Read by the explorer, which is not a thread of the play. */
static bool is_left(void *arg)
{
	uint64_t word;

	(void)arg;
	memcpy(&word, (void *)&s.turn.word, sizeof(word));
	return !(word & RT_TURN_HELD);
}

static void forbid(bool forbidden)
{
	explore_touch(&s.inside);
	EXPLORE_CHECK(!s.inside);
	s.forbidden = forbidden;
}

static void redirect(void)
{
	bool looks;

	EXPLORE_CHECK(rt_turn_pause(&s.turn));
	explore_wait(&s.turn.word, is_left, NULL);
	forbid(true);
	forbid(false);
	rt_turn_move_routes(&s.turn);
	s.route++; /* in the step of the exchange */
	rt_turn_gather(&s.turn);
	looks = rt_turn_resume(&s.turn);
	tell(looks);
}

static void close_it(void)
{
	rt_turn_close(&s.turn);
	explore_wait(&s.turn.word, is_left, NULL);
	forbid(true);
	s.is_closed = true;
}

static void redirect_and_poll(void)
{
	redirect();
	run_poller();
}

/* ---------------------------------------------------------------- plays --- */

static void set_up_with(uint32_t posts, uint32_t room, uint32_t budget)
{
	memset(&s, 0, sizeof(s));
	s.posts = posts;
	s.room = room;
	s.budget = budget;
	rt_turn_init(&s.turn, s.slots_in_line, s.next, sizeof(s.next[0]), WRS);
	rt_turn_open(&s.turn);
	explore_watch_nothing();
	explore_watch(&s.turn.word, sizeof(s.turn.word));
	explore_watch(&s.turn.free.word, sizeof(s.turn.free.word));
	explore_watch(&s.retired, sizeof(s.retired));
	explore_watch(&s.line, sizeof(s.line));
}

static void set_up(void)
{
	set_up_with(2, 1, BUDGET);
}

/* A hold posts a single work request. */
static void set_up_tight(void)
{
	set_up_with(3, 3, 1);
}

static void set_up_order(void)
{
	set_up_with(4, 1, BUDGET);
}

/* Asserts that all accepted work was posted, or is in line of a closed side. */
static void check(void)
{
	uint32_t left;

	rt_turn_gather(&s.turn);
	left = rt_turn_length(&s.turn);
	EXPLORE_CHECK(s.posted + left == s.taken);
	EXPLORE_CHECK(left == 0 || s.is_closed);
	EXPLORE_CHECK(rt_freelist_used(&s.turn.free) == left);
	EXPLORE_CHECK(!(rt_turn_look(&s.turn) & RT_TURN_HELD));
}

static void check_order(void)
{
	uint32_t i;

	check();
	for (i = 0; i < s.posts; i++)
		EXPLORE_CHECK(s.order[i] == (int)i);
}

int main(int argc, char **argv)
{
	static const struct explore plays[] = {
		{"two",
		 3,
		 {post_0, post_1, run_poller},
		 set_up,
		 check,
		 false,
		 0},
		{"rest",
		 3,
		 {post_0, post_two, run_poller},
		 set_up_tight,
		 check,
		 false,
		 2},
		{"order",
		 2,
		 {post_all, run_poller, NULL},
		 set_up_order,
		 check_order,
		 false,
		 3},
		{"redirect",
		 3,
		 {post_0, post_1, redirect_and_poll},
		 set_up,
		 check,
		 false,
		 3},
		{"close",
		 3,
		 {post_0, post_1, close_it},
		 set_up,
		 check,
		 false,
		 0},
		{.name = NULL},
	};

	return explore_main(argc, argv, plays);
}
