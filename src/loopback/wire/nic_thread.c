/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nic_thread.c -- the link thread, one of a process, which makes links, hears
 * bells, and drains where nobody else does. It sleeps in ppoll(); while `sleep`
 * of a link is even it has a timer, of one tick, for even is its promise to
 * look.
 */

#include "wire/nic_thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
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
#include "wire/contact.h"
#include "wire/links.h"
#include "wire/parts.h"
#include "wire/socket.h"
#include "wire/watch.h"

#define TICK_NS	  100000u
#define TICK_MAX  (4 * TICK_NS) /* of a program in a hurry */
#define POLLS	  16 /* so many looks in TICK_NS are a program that polls */
#define FINDS	  4  /* and so many that found something: one in a hurry */
#define AT_A_TIME 64 /* descriptors */
#define LOOK_NS	  500000000u /* between two looks whether they are open */

/* What the thread knows of one round. */
struct round {
	struct lb_nic *nic;
	uint64_t tick;	  /* the time between two looks, in ns */
	bool is_rung;	  /* a descriptor had something */
	bool is_counted;  /* looks are counted from this round on */
	bool did;	  /* it has taken records itself */
	bool is_promised; /* a link has an even `sleep` */
	bool is_hurried;  /* the program finds much at each such link */
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

/* What descriptors have; one at a time, for each may end what others are of. */
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

/* So many looks in a tick are a program that polls. */
static uint64_t polls(const struct round *r)
{
	return POLLS * r->tick / TICK_NS;
}

static void drain(void *arg, struct lb_run *run)
{
	struct round *r = arg;
	unsigned n = lb_links_count(r->nic), i;
	/* a bell: what is there is taken, whoever polls */
	uint64_t enough = r->is_rung ? UINT64_MAX : polls(r);

	for (i = 0; i < n; i++) {
		struct lb_link *link = lb_links_at(r->nic, i);

		if (is_up(link) &&
		    lb_link_help(link, run, enough, r->is_counted))
			r->did = true;
	}
}

/* Links that nobody has looked at for a tick are told to ring. */
static void let_sleep(void *arg, struct lb_run *run)
{
	struct round *r = arg;
	unsigned n = lb_links_count(r->nic), i;

	for (i = 0; i < n; i++) {
		struct lb_link *link = lb_links_at(r->nic, i);
		struct lb_looks since;

		if (!is_up(link) || !lb_link_is_awake(link, &since))
			continue;
		if (since.all)
			r->is_promised = true;
		else if (lb_link_arm(link, run))
			r->did = true;
		if (since.useful < FINDS * r->tick / TICK_NS)
			r->is_hurried = false;
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

/* Until then, or until a descriptor has something: true. Not for long, as a
 * descriptor that is closed wakes no thread. */
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

static void live(struct lb_nic *nic)
{
	uint64_t now = lb_clock_real_now(), next = now;
	uint64_t ticked = now, worked = now, counted = now;
	struct round r = {
		.nic = nic,
		.tick = TICK_NS,
		.is_promised = true,
	};

	while (!is_stopping(nic)) {
		r.is_rung = wait_until(nic, next);
		if (r.is_rung) {
			/* in this order: a bell for what comes then stays */
			read_descriptors(nic);
			wake_links(nic);
			r.is_promised = true;
		}
		now = lb_clock_real_now();
		next = lb_contact_tend(nic, now);
		/* by time alone: there are no ticks while it works */
		r.is_counted = r.is_rung || now - counted >= r.tick;
		if (r.is_counted)
			counted = now;
		r.did = false;
		nic->ops->with_run(drain, &r);
		if (!r.did && now - worked >= TICK_NS &&
		    now - ticked >= r.tick && r.is_promised) {
			ticked = now;
			r.is_promised = false;
			r.is_hurried = true;
			nic->ops->with_run(let_sleep, &r);
			/* each time takes the program's processor from it */
			r.tick = r.is_hurried ? longer(r.tick) : TICK_NS;
		}
		if (r.did) {
			worked = now;
			r.is_promised = true;
		}
		if (r.did || r.is_rung)
			r.tick = TICK_NS;
		/* a target may spin on memory that only this thread fills */
		if (now - worked < TICK_NS)
			next = now;
		else if (r.is_promised)
			next = sooner(next, ticked + r.tick);
	}
}

static void *run(void *arg)
{
	struct lb_nic *nic = arg;

	prctl(PR_SET_TIMERSLACK, 1ul); /* a tick is not to become two */
	live(nic);
	return NULL;
}

/* --- its life */

static void on_wake(struct lb_nic *nic, struct lb_watch *watch, uint32_t events)
{
	uint64_t units;

	(void)nic;
	(void)events;
	if (read(watch->fd, &units, sizeof(units)) < 0)
		return; /* another round has read it */
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
	/* joined: a fork behind it finds no thread that ends */
	pthread_join(nic->thread, NULL);
	nic->is_threaded = false;
}

void lb_nic_thread_wake(struct lb_nic *nic)
{
	lb_fd_ring(nic->wake.fd, 1);
}
