/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * turn.c -- two posters with a work request each, and a poller, in every order
 * of their accesses to the words of a turn (runtime/base/turn.h). The device
 * has room for a single work request, so one of the two waits in line until the
 * poller has counted the other; in some plays the side is paused or closed
 * meanwhile, or the holder leaves a rest to the poller. In the plays named
 * "kept" the right is kept for the first poster, and recalled by the others, by
 * a pause, a close or a drain. This file is compiled like the code under test,
 * because of inline functions.
 * doc/protocols/ledger.md.
 */

#include <string.h>

#include "base/order.h"
#include "base/self.h"
#include "base/turn.h"
#include "explore.h"

#define WRS    5 /* at most */
#define BUDGET 64
#define KEEPER 1 /* number of the thread for which the right is kept */

static struct {
	struct rt_turn turn;
	uint16_t slots_in_line[WRS];
	_Atomic uint16_t next[WRS]; /* all that is in a slot */
	int content[WRS];	    /* of each slot */
	uint32_t along[WRS];	    /* the route that each slot names */
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
	uint32_t route;	 /* number of changes of the route */
	bool is_drained; /* the control thread has drained the side */
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
	EXPLORE_CHECK(s.along[front - 1] == s.route);
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

static bool post_alone(int wr, uint64_t seen, uint32_t route)
{
	bool posted = false;

	if (!rt_turn_take_alone(&s.turn, seen)) {
		if (rt_turn_answer_recall(&s.turn, seen))
			tell(rt_turn_hold(&s.turn, &ops, NULL, s.budget));
		return false;
	}
	EXPLORE_CHECK(s.route == route);
	if (has_room(&s.turn, 1, NULL)) {
		give(wr);
		posted = true;
	}
	tell(!rt_turn_leave_alone(&s.turn, seen) &&
	     rt_turn_hold(&s.turn, &ops, NULL, s.budget));
	return posted;
}

static enum rt_turn_answer publish(uint16_t slot, uint64_t seen, uint32_t route)
{
	s.along[slot - 1] = route;
	return rt_turn_publish(&s.turn, seen, slot, slot);
}

static void post(int wr)
{
	uint64_t seen = rt_turn_look(&s.turn);
	uint32_t route = s.route;
	enum rt_turn_answer answer;
	uint16_t slot;

	if (post_alone(wr, seen, route)) {
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

/* The numbers that the runtime would give to the threads. */
static void be_thread(uint64_t number)
{
	rt_self.number = number;
}

static void post_0(void)
{
	be_thread(KEEPER);
	post(0);
}

static void post_0_and_2(void)
{
	be_thread(KEEPER);
	post(0);
	post(2);
}

/* The second post keeps the right again. */
static void post_0_2_and_3(void)
{
	be_thread(KEEPER);
	post(0);
	post(2);
	post(3);
}

static void post_1(void)
{
	be_thread(KEEPER + 1);
	post(1);
}

static void post_4(void)
{
	be_thread(KEEPER + 2);
	post(4);
}

static void post_2(void)
{
	be_thread(KEEPER + 2);
	post(2);
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

	be_thread(KEEPER + 2);
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

/* What was published before the routes moved goes along. */
static void lead_line(void)
{
	uint32_t place;

	for (place = 0; place < rt_turn_length(&s.turn); place++)
		s.along[rt_turn_at(&s.turn, place) - 1] = s.route;
}

static void redirect(void)
{
	bool looks;

	EXPLORE_CHECK(rt_turn_pause(&s.turn));
	/* rt_turn_await() */
	rt_turn_let_keeper_go(&s.turn);
	explore_wait(&s.turn.word, is_left, NULL);
	forbid(true);
	forbid(false);
	rt_turn_move_routes(&s.turn);
	s.route++; /* in the step of the exchange */
	rt_turn_gather(&s.turn);
	lead_line();
	looks = rt_turn_resume(&s.turn);
	tell(looks);
}

static void close_it(void)
{
	be_thread(KEEPER + 2);
	rt_turn_close(&s.turn);
	/* rt_turn_await() */
	rt_turn_let_keeper_go(&s.turn);
	explore_wait(&s.turn.word, is_left, NULL);
	forbid(true);
	s.is_closed = true;
}

/* A thread of the program drains the side. */
static void drain(void)
{
	be_thread(KEEPER + 1);
	tell(rt_turn_drain(&s.turn));
}

static bool is_told(void *arg)
{
	(void)arg;
	return s.told;
}

/* The control thread drains the side, too, and tells the poller; the poller
 * looks whenever it is told, until everything is posted. */
static void drain_and_poll(void)
{
	be_thread(KEEPER + 2);
	rt_turn_drain(&s.turn);
	tell(true);
	do {
		explore_wait(&s.inside, is_told, NULL);
		s.told = false;
		rt_fence_dekker();
		look();
	} while (!rt_turn_is_through(&s.turn));
	s.is_drained = true;
}

static void redirect_and_poll(void)
{
	be_thread(KEEPER + 2);
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
	rt_keep_after = UINT16_MAX;
	explore_watch(&s.turn.word, sizeof(s.turn.word));
	explore_watch(&s.turn.inside, sizeof(s.turn.inside));
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

/* The right is kept for a thread that is outside. */
static void keep(void)
{
	explore_stop_at_stores();
	s.turn.has_keeper = true;
	/* relaxed, both: no thread runs */
	atomic_store_explicit(&s.turn.keeper, KEEPER, memory_order_relaxed);
	atomic_fetch_or_explicit(&s.turn.word, RT_TURN_HELD | RT_TURN_KEPT,
				 memory_order_relaxed);
}

static void set_up_kept(void)
{
	set_up();
	keep();
}

static void set_up_kept_three(void)
{
	set_up_with(3, 3, BUDGET);
	keep();
}

/* With the first holds alone the right is kept again. */
static void set_up_kept_again(void)
{
	set_up_with(4, 4, BUDGET);
	rt_keep_after = 1;
	keep();
}

static void set_up_kept_later(void)
{
	set_up_with(5, 5, BUDGET);
	rt_keep_after = 1;
	keep();
}

static void set_up_kept_one(void)
{
	set_up_with(1, 1, BUDGET);
	keep();
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
	EXPLORE_CHECK(!rt_turn_is_held(&s.turn));
}

static void check_drained(void)
{
	check();
	EXPLORE_CHECK(s.is_drained);
}

static void check_order(void)
{
	uint32_t i;

	check();
	for (i = 0; i < s.posts; i++)
		EXPLORE_CHECK(s.order[i] == (int)i);
}

/* The kernel's part, see rt_fence_heavy(): in every thread of the play. */
bool __wrap_rt_fence_is_ready(void);
bool __wrap_rt_fence_is_ready(void)
{
	return true;
}

void __wrap_rt_fence_heavy(void);
void __wrap_rt_fence_heavy(void)
{
	explore_fence_all();
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
		{"kept",
		 3,
		 {post_0, post_1, run_poller},
		 set_up_kept,
		 check,
		 false,
		 2},
		{"kept_two",
		 3,
		 {post_0, post_1, post_2},
		 set_up_kept_three,
		 check,
		 false,
		 2},
		{"kept_again",
		 2,
		 {post_0_2_and_3, post_1, NULL},
		 set_up_kept_again,
		 check,
		 false,
		 2},
		{"kept_later",
		 3,
		 {post_0_2_and_3, post_1, post_4},
		 set_up_kept_later,
		 check,
		 true,
		 3},
		{"kept_close",
		 3,
		 {post_0_and_2, post_1, close_it},
		 set_up_kept_three,
		 check,
		 false,
		 2},
		{"kept_redirect",
		 3,
		 {post_0, post_1, redirect_and_poll},
		 set_up_kept,
		 check,
		 false,
		 2},
		{"kept_drain",
		 3,
		 {post_0, drain, drain_and_poll},
		 set_up_kept_one,
		 check_drained,
		 false,
		 2},
		{.name = NULL},
	};

	return explore_main(argc, argv, plays);
}
