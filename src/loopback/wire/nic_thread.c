/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nic_thread.c -- the link thread of a process, which makes links, hears bells,
 * and drains where no other thread drains. The thread sleeps in ppoll(), with a
 * timer of a tick while a link is awake: an even `sleep` is the promise of the
 * thread to look. The work after a bell depends on the program, which may poll,
 * sleep, or spin on memory.
 */

#include "wire/nic_thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/service.h"
#include "base/turn.h"
#include "wire/contact.h"
#include "wire/links.h"
#include "wire/parts.h"
#include "wire/socket.h"
#include "wire/watch.h"

#define TICK_NS	  100000u
#define TICK_MAX  (4 * TICK_NS) /* of a program in a hurry */
#define POLLS	  16   /* so many looks in TICK_NS mean a polling program */
#define FINDS	  4    /* so many successful looks mean a program in a hurry */
#define IDLE	  100  /* ticks without a find: a link among others rings */
#define BELLS_MIN 8    /* bells without trust, after the first wrong guess */
#define BELLS_MAX 4096 /* and after many */
#define BANS_MIN  16   /* bells without a wait, after the first in vain */
#define BANS_MAX  4096 /* and after many */
#define AT_A_TIME 64   /* descriptors */
#define LOOK_NS	  500000000u /* between two looks whether they are open */

/* A reading of lb_nic.looks. */
struct looks {
	uint64_t all, at; /* the number of looks, and the time */
};

/* The knowledge of the thread. */
struct round {
	struct lb_nic *nic;
	uint64_t now;
	uint64_t tick;	      /* the time between two looks, in ns */
	struct looks ticked;  /* at the last tick */
	struct looks bell;    /* at the last bell */
	struct looks quiet;   /* at the first bell behind a look */
	uint64_t arms;	      /* lb_nic.arms at the last bell */
	uint64_t offered;     /* the CPU, while there was work */
	uint64_t waits_until; /* goes on draining, after a bell */
	struct lb_turn turn;  /* turn of the CPU */
	bool has_short_slice;
	uint64_t bans, banned; /* unfounded bells, and bans to come */
	bool did;	       /* has taken records */
	bool is_awake;	       /* a link has an even `sleep` */
	bool is_hurried;       /* the program finds much at each such link */
};

/* --- a round */

static bool is_up(const struct lb_link *link)
{
	return lb_parts_state(link) == LB_LINK_UP;
}

static void wake_links(struct lb_nic *nic)
{
	unsigned n = lb_links_count(nic), i;

	for (i = 0; i < n; i++) {
		if (is_up(lb_links_at(nic, i)))
			lb_link_wake(lb_links_at(nic, i));
	}
}

/*
 * Reads descriptors, one at a time, for each event may end the objects of
 * others.
 */
static void read_descriptors(struct lb_nic *nic)
{
	struct epoll_event event;
	unsigned i;

	for (i = 0; i < AT_A_TIME; i++) {
		struct lb_watch *watch;

		if (epoll_wait(nic->epoll, &event, 1, 0) != 1)
			return;
		watch = event.data.ptr;
		watch->ready(nic, watch, event.events);
	}
}

static uint64_t looks_of(struct lb_nic *nic)
{
	/* relaxed: a hint */
	return atomic_load_explicit(&nic->looks, memory_order_relaxed);
}

/* Returns whether the program has polled all the time since the reading, and
 * reads again. */
static bool polls(struct round *r, struct looks *since)
{
	const uint64_t looks = looks_of(r->nic);
	const struct looks before = *since;

	*since = (struct looks){looks, r->now};
	return looks - before.all >=
	       POLLS * ((r->now - before.at) / 1000) / (TICK_NS / 1000) + 1;
}

/*
 * Returns whether the program sleeps, since it has armed, or has not looked for
 * a tick. A program that is inside one long look or post is neither.
 */
static bool is_passive(struct round *r)
{
	/* relaxed: a hint */
	const uint64_t arms =
		atomic_load_explicit(&r->nic->arms, memory_order_relaxed);
	const uint64_t looks = looks_of(r->nic);
	const bool has_armed = arms != r->arms;

	r->arms = arms;
	if (looks != r->quiet.all)
		r->quiet = (struct looks){looks, r->now};
	return has_armed || r->now - r->quiet.at >= TICK_NS;
}

/* Takes pending records of links that have rung; in a wait, of all awake
 * links. */
static void take(void *arg, struct lb_run *run)
{
	struct round *r = arg;
	struct lb_link *link;
	unsigned n = lb_links_count(r->nic), at = 0;

	while ((link = lb_links_next_awake(r->nic, n, &at))) {
		if (is_up(link) && (link->awake.is_rung || r->waits_until) &&
		    lb_link_take(link, run))
			r->did = true;
	}
}

/*
 * Follows a bell. The link stays awake if the program polls, unless the guess
 * was wrong lately, or if this thread goes on looking. Otherwise the next
 * record has a bell.
 */
static void follow(struct round *r, struct lb_link *link, bool is_polled,
		   struct lb_run *run)
{
	struct lb_awake *awake = &link->awake;
	const bool was_asleep = awake->was_asleep;

	awake->is_rung = awake->was_asleep = false;
	if (!was_asleep)
		return; /* a bell for room */
	awake->bells++;
	if (is_polled && awake->bells > awake->distrust)
		awake->idle = awake->bells = 0;
	else if (!r->waits_until)
		lb_link_arm(link, run);
}

static void follow_bells(void *arg, struct lb_run *run)
{
	struct round *r = arg;
	const bool is_to_wait = is_passive(r);
	const bool is_polled = polls(r, &r->bell);
	struct lb_link *link;
	unsigned n = lb_links_count(r->nic), at = 0;

	if (is_to_wait && !r->banned)
		r->waits_until = r->now + TICK_NS;
	if (is_to_wait && r->banned)
		r->banned--;
	while ((link = lb_links_next_awake(r->nic, n, &at))) {
		if (is_up(link) && link->awake.is_rung)
			follow(r, link, is_polled, run);
	}
}

/*
 * Reviews an awake link at a tick: arms the link if the program no longer
 * polls, or if other awake links bring more. If there was a record then, the
 * program was not to be trusted.
 */
static void review(struct round *r, struct lb_link *link, bool is_polled,
		   struct lb_run *run)
{
	struct lb_awake *awake = &link->awake;
	const uint64_t finds = lb_link_finds(link);
	const uint64_t found = finds - awake->finds_then;

	awake->finds_then = finds;
	awake->idle = found ? 0 : awake->idle + 1;
	if (found < FINDS * r->tick / TICK_NS)
		r->is_hurried = false;
	if (is_polled && found)
		awake->distrust /= 2;
	if (is_polled && (awake->idle < IDLE || !r->is_awake)) {
		r->is_awake = true;
		return;
	}
	if (!lb_link_arm(link, run))
		return;
	awake->distrust = awake->distrust ? 2 * awake->distrust : BELLS_MIN;
	if (awake->distrust > BELLS_MAX)
		awake->distrust = BELLS_MAX;
}

static void review_all(void *arg, struct lb_run *run)
{
	struct round *r = arg;
	const bool is_polled = polls(r, &r->ticked);
	struct lb_link *link;
	unsigned n = lb_links_count(r->nic), at = 0;

	r->is_awake = false;
	r->is_hurried = true;
	while ((link = lb_links_next_awake(r->nic, n, &at))) {
		if (is_up(link))
			review(r, link, is_polled, run);
	}
}

/* --- time */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t longer(uint64_t tick)
{
	return sooner(2 * tick, TICK_MAX);
}

/* The program closed the descriptors: no peer is heard any more. The numbers
 * may be other descriptors of the program by now, so they are left alone. */
static void lose_descriptors(struct lb_nic *nic)
{
	unsigned n = lb_links_count(nic), i;

	lb_log(1, "the program closed the descriptors of the device: "
		  "connections with other processes end");
	nic->has_lost_descriptors = true;
	for (i = 0; i < LB_PARTS_GUESTS; i++) {
		nic->guests[i].socket.fd = -1;
		nic->guests[i].pidfd = -1;
	}
	for (i = 0; i < n; i++) {
		struct lb_link *link = lb_links_at(nic, i);

		link->contact.socket.fd = -1;
		link->contact.pidfd = -1;
		lb_link_lose_descriptors(link);
		if (lb_parts_state(link) != LB_LINK_DEAD)
			lb_contact_end(nic, link, 0);
	}
}

/* Waits until the time, or until a descriptor has an event: true. Not for long,
 * as a closed descriptor wakes no thread. */
static bool wait_until(struct lb_nic *nic, uint64_t then)
{
	struct pollfd pfd = {.fd = nic->epoll, .events = POLLIN};
	uint64_t now = lb_clock_real_now();
	uint64_t ns = then > now ? sooner(then - now, LOOK_NS) : 0;
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	if (nic->has_lost_descriptors) {
		nanosleep(&ts, NULL);
		return false;
	}
	if (ppoll(&pfd, 1, &ts, NULL) <= 0)
		return false;
	if (!(pfd.revents & POLLNVAL))
		return true;
	lose_descriptors(nic);
	return false;
}

static bool is_stopping(struct lb_nic *nic)
{
	bool is;

	pthread_mutex_lock(&nic->lock);
	is = nic->is_stopping;
	pthread_mutex_unlock(&nic->lock);
	return is;
}

static void arm_all(void *arg, struct lb_run *run)
{
	struct round *r = arg;
	struct lb_link *link;
	unsigned n = lb_links_count(r->nic), at = 0;

	while ((link = lb_links_next_awake(r->nic, n, &at)))
		lb_link_arm(link, run);
}

/*
 * Offers the CPU during a wait. A thread that keeps the CPU may belong to the
 * program, and spin on memory: only a bell brings the link thread back in time.
 */
static void offer_cpu(struct round *r)
{
	const bool is_kept = lb_turn_waited(&r->turn, r->did);

	if (r->did && r->now - r->offered >= TICK_NS) {
		/* the program may poll, on this CPU */
		sched_yield();
		r->offered = r->now;
	}
	if (!is_kept)
		return;
	r->now = lb_clock_real_now();
	if (polls(r, &r->bell)) {
		r->waits_until = 0;
		return;
	}
	r->bans = r->bans ? sooner(2 * r->bans, BANS_MAX) : BANS_MIN;
	r->banned = r->bans;
	r->waits_until = 0;
	r->nic->ops->with_run(arm_all, r);
}

/* A wait goes on for a tick behind each record, unless the program polls. */
static void go_on_waiting(struct round *r)
{
	if (r->did) {
		r->waits_until = r->now + TICK_NS;
		r->bans -= r->bans / 64;
	}
	if (r->now - r->bell.at >= TICK_NS && polls(r, &r->bell)) {
		r->waits_until = 0;
	} else if (r->now >= r->waits_until) {
		r->waits_until = 0;
		r->nic->ops->with_run(arm_all, r);
	}
}

/* A bell was heard, or the thread waits. */
static void work(struct round *r, bool is_rung)
{
	r->did = false;
	r->nic->ops->with_run(take, r);
	if (r->waits_until)
		go_on_waiting(r);
	if (is_rung)
		r->nic->ops->with_run(follow_bells, r);
}

static bool has_awake(struct lb_nic *nic)
{
	unsigned at = 0;

	return lb_links_next_awake(nic, lb_links_count(nic), &at);
}

/* Does the work of a tick; returns the time of the next tick, if a link is
 * awake. */
static uint64_t tick(struct round *r)
{
	if (!has_awake(r->nic)) {
		r->is_awake = false;
		r->tick = TICK_NS;
		return UINT64_MAX;
	}
	if (!r->is_awake) {
		r->is_awake = true;
		polls(r, &r->ticked);
	}
	if (r->now - r->ticked.at >= r->tick) {
		r->nic->ops->with_run(review_all, r);
		/* each tick takes the processor of the program */
		r->tick = r->is_awake && r->is_hurried ? longer(r->tick)
						       : TICK_NS;
	}
	return r->is_awake ? r->ticked.at + r->tick : UINT64_MAX;
}

/* Offers of the CPU are worth more with usual slices. */
static void set_slice(struct round *r, bool is_short)
{
	if (r->has_short_slice == is_short)
		return;
	r->has_short_slice = is_short;
	lb_turn_set_slice(is_short);
}

static void live(struct lb_nic *nic)
{
	struct round r = {.nic = nic, .tick = TICK_NS};
	uint64_t next = 0;
	bool is_rung;

	while (!is_stopping(nic)) {
		set_slice(&r, !r.waits_until);
		if (r.waits_until)
			offer_cpu(&r);
		is_rung = wait_until(nic, r.waits_until ? 0 : next);
		if (is_rung)
			/* in this order: the bell of a later record stays */
			read_descriptors(nic);
		r.now = lb_clock_real_now();
		next = lb_contact_tend(nic, r.now);
		if (is_rung || r.waits_until)
			work(&r, is_rung);
		if (!r.waits_until)
			next = sooner(next, tick(&r));
	}
}

static void *run(void *arg)
{
	struct lb_nic *nic = arg;

	prctl(PR_SET_TIMERSLACK, 1ul); /* a tick is not to become two */
	live(nic);
	return NULL;
}

/* --- start and end of the thread */

static void on_wake(struct lb_nic *nic, struct lb_watch *watch, uint32_t events)
{
	uint64_t units;

	(void)events;
	if (read(watch->fd, &units, sizeof(units)) < 0)
		return; /* another round has read the event */
	wake_links(nic);
}

static void on_listener(struct lb_nic *nic, struct lb_watch *watch,
			uint32_t events)
{
	(void)watch;
	(void)events;
	lb_contact_accept(nic);
}

static int open_descriptors(struct lb_nic *nic)
{
	nic->epoll = epoll_create1(EPOLL_CLOEXEC);
	nic->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	nic->wake.ready = on_wake;
	nic->listener.ready = on_listener;
	if (nic->epoll >= 0 && nic->wake.fd >= 0 &&
	    lb_watch_add(nic, &nic->wake) && lb_watch_add(nic, &nic->listener))
		return 0;
	return errno;
}

static void close_descriptors(struct lb_nic *nic)
{
	lb_socket_close(&nic->wake.fd);
	lb_socket_close(&nic->epoll);
}

int lb_nic_thread_start(struct lb_nic *nic)
{
	int err;

	if (nic->is_threaded)
		return 0;
	err = open_descriptors(nic);
	if (!err)
		err = lb_service_spawn(run, "lb-link", nic, &nic->thread);
	if (err)
		close_descriptors(nic);
	nic->is_threaded = !err;
	return err;
}

void lb_nic_thread_stop(struct lb_nic *nic)
{
	LB_NOT_CANCELLED;
	bool is_threaded;

	pthread_mutex_lock(&nic->lock);
	nic->is_stopping = true;
	is_threaded = nic->is_threaded;
	pthread_mutex_unlock(&nic->lock);
	if (!is_threaded)
		return;
	lb_fd_ring(nic->wake.fd, 1);
	/* joined: a later fork finds no ending thread */
	pthread_join(nic->thread, NULL);
	nic->is_threaded = false;
}

void lb_nic_thread_wake(struct lb_nic *nic)
{
	lb_fd_ring(nic->wake.fd, 1);
}
