/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * contact.c -- the handshake of two processes, from either side, and the end of
 * a link. The initiator: sends HELLO, gets ANSWER, sends READY. The guest: gets
 * HELLO, sends ANSWER, gets READY. A refused process is told why. Runs in the
 * link thread.
 */

#include "wire/contact.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/turn.h"
#include "wire/hello.h"
#include "wire/links.h"
#include "wire/parts.h"
#include "wire/segment.h"
#include "wire/socket.h"
#include "wire/watch.h"

#define MS	     1000000ull
#define PATIENCE     (1000 * MS) /* for their record */
#define TRY_SOON     MS
#define ACCEPT_AGAIN (100 * MS)
#define TRY_LATE     (1000 * MS)
#define NOBODY_FOR   (1000 * MS) /* is no missing peer asked for again */

static struct lb_hello hello(const struct lb_nic *nic, enum lb_hello_kind kind)
{
	return (struct lb_hello){
		.magic = LB_HELLO_MAGIC,
		.version = LB_HELLO_VERSION,
		.length = sizeof(struct lb_hello),
		.kind = kind,
		.number = nic->number,
		.cookie = nic->cookie,
		.devices = nic->config.devices,
		.devices_hash = nic->config.devices_hash,
		.user = geteuid(),
	};
}

void lb_contact_drop(struct lb_nic *nic, struct lb_contact *contact)
{
	lb_watch_close(nic, &contact->socket);
	lb_socket_close(&contact->pidfd);
	lb_segment_unmap(contact->mine);
	lb_segment_unmap(contact->theirs);
	contact->mine = NULL;
	contact->theirs = NULL;
	contact->link = NULL;
	contact->stage = LB_STAGE_NONE;
}

/* --- the end of a link */

/* Ends the handshakes of guests with this link. */
static void drop_guests(struct lb_nic *nic, const struct lb_link *link)
{
	unsigned i;

	for (i = 0; i < LB_PARTS_GUESTS; i++) {
		if (nic->guests[i].link == link)
			lb_contact_drop(nic, &nic->guests[i]);
	}
}

struct end {
	struct lb_nic *nic;
	struct lb_link *link;
};

static void end(void *arg, struct lb_run *run)
{
	const struct end *e = arg;

	lb_link_die(e->link, run);
	e->nic->ops->dead(e->link, run);
}

void lb_contact_end(struct lb_nic *nic, struct lb_link *link, uint64_t until)
{
	struct end e = {nic, lb_link_get(link)};

	if (lb_parts_state(link) == LB_LINK_UP) {
		/* relaxed: a hint to draining threads */
		atomic_fetch_sub_explicit(&lb_link_ups, 1,
					  memory_order_relaxed);
		lb_turn_count_others(-1);
	}
	lb_contact_drop(nic, &link->contact);
	drop_guests(nic, link);
	nic->ops->with_run(end, &e);
	lb_links_leave(nic, link, until);
	lb_link_put(link);
}

/* --- a link comes up */

/* Try again, not before a while. */
static void try_later(struct lb_nic *nic, struct lb_link *link)
{
	lb_contact_drop(nic, &link->contact);
	link->backoff = link->backoff ? 2 * link->backoff : TRY_SOON;
	if (link->backoff > TRY_LATE)
		link->backoff = TRY_LATE;
	link->next_try = lb_clock_real_now() + link->backoff;
}

/*
 * Receives a record of a link that is up; returns false if nothing more is to
 * be read.
 */
static bool receive(struct lb_nic *nic, struct lb_link *link);

static void socket_ready(struct lb_nic *nic, struct lb_watch *watch,
			 uint32_t events)
{
	(void)events;
	receive(nic, lb_entry(watch, struct lb_link, socket));
}

/*
 * Handles the end of the process of the peer; everything sent before is read.
 */
static void pidfd_ready(struct lb_nic *nic, struct lb_watch *watch,
			uint32_t events)
{
	struct lb_link *link = lb_entry(watch, struct lb_link, pidfd);
	unsigned i;

	(void)events;
	for (i = 0; i < LB_PARTS_QUEUE && link->socket.fd >= 0; i++) {
		if (!receive(nic, link))
			break;
	}
	if (link->pidfd.fd >= 0)
		lb_contact_end(nic, link, 0);
}

struct rise {
	struct lb_nic *nic;
	struct lb_link *link;
	struct lb_contact *contact;
};

static void rise(void *arg, struct lb_run *run)
{
	const struct rise *r = arg;

	lb_link_rise(r->link, r->contact, run);
	if (r->nic->ops->up)
		r->nic->ops->up(r->link, run);
}

/* Ends the handshake: the link takes everything over from the contact. */
static void come_up(struct lb_nic *nic, struct lb_link *link,
		    struct lb_contact *contact)
{
	struct rise r = {nic, link, contact};

	lb_watch_leave(nic, &contact->socket);
	link->socket.ready = socket_ready;
	link->pidfd.ready = pidfd_ready;
	/* relaxed: a hint to draining threads */
	atomic_fetch_add_explicit(&lb_link_ups, 1, memory_order_relaxed);
	lb_turn_count_others(1);
	nic->ops->with_run(rise, &r);
	contact->socket.fd = -1;
	contact->pidfd = -1;
	contact->mine = NULL;
	contact->theirs = NULL;
	lb_contact_drop(nic, contact);
	lb_contact_drop(nic, &link->contact);
	if (!lb_watch_add(nic, &link->socket) ||
	    !lb_watch_add(nic, &link->pidfd)) {
		lb_log(0, "process %u cannot be watched: no link",
		       link->number);
		lb_contact_end(nic, link, 0);
		return;
	}
	lb_link_flush(link);
	lb_links_came_up(nic);
}

/*
 * Returns true if the process of the peer has ended since its pidfd was opened.
 */
static bool is_gone(const struct lb_contact *contact)
{
	return contact->pidfd >= 0 && lb_socket_is_readable(contact->pidfd);
}

static void refuse(struct lb_nic *nic, struct lb_contact *contact,
		   enum lb_hello_reason reason, const struct lb_hello *theirs)
{
	struct lb_hello mine = hello(nic, LB_HELLO_REFUSAL);

	mine.reason = reason;
	lb_socket_send(contact->socket.fd, &mine, sizeof(mine));
	if (reason != LB_HELLO_COME_AGAIN)
		lb_hello_log(reason, &mine, theirs);
}

/* Descriptors and memory come back, a system without segments does not. */
static bool is_for_now(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM;
}

static void log_no_memory(const struct lb_link *link)
{
	lb_log(0, "no shared memory for process %u (%s): no link", link->number,
	       strerror(errno));
}

/* --- the initiator */

static void log_nobody(const struct lb_link *link)
{
	lb_log(0,
	       "no process %u in this network namespace: not on this device, "
	       "another container, or gone",
	       link->number);
}

static void end_nobody(struct lb_nic *nic, struct lb_link *link)
{
	/* relaxed: decides only about a line of the log */
	if (!atomic_load_explicit(&link->is_named, memory_order_relaxed)) {
		lb_contact_end(nic, link, 0);
		return;
	}
	if (!nic->is_said[link->number])
		log_nobody(link);
	nic->is_said[link->number] = true;
	lb_contact_end(nic, link, lb_clock_real_now() + NOBODY_FOR);
}

static void on_answer(struct lb_nic *nic, struct lb_link *link,
		      const struct lb_hello *theirs, int passed)
{
	struct lb_contact *contact = &link->contact;
	struct lb_hello ready = hello(nic, LB_HELLO_READY);

	contact->cookie = theirs->cookie;
	contact->theirs = lb_segment_map(passed);
	if (!contact->theirs) {
		refuse(nic, contact, LB_HELLO_SEGMENT, theirs);
		lb_contact_end(nic, link, lb_clock_real_now() + NOBODY_FOR);
	} else if (is_gone(contact) ||
		   lb_socket_send(contact->socket.fd, &ready, sizeof(ready))) {
		try_later(nic, link);
	} else {
		come_up(nic, link, contact);
	}
}

/* Handles the reply to HELLO. */
static void on_reply(struct lb_nic *nic, struct lb_link *link,
		     const void *bytes, size_t size, int passed)
{
	struct lb_hello mine = hello(nic, LB_HELLO_HELLO), theirs;
	enum lb_hello_reason reason;

	reason = lb_hello_check(&mine, bytes, size, &theirs);
	if (theirs.kind == LB_HELLO_REFUSAL && theirs.magic == mine.magic &&
	    theirs.version == mine.version)
		reason = theirs.reason && theirs.reason < LB_HELLO_REASONS
				 ? (enum lb_hello_reason)theirs.reason
				 : LB_HELLO_WRONG;
	else if (!reason && (theirs.kind != LB_HELLO_ANSWER ||
			     theirs.number != link->number))
		reason = LB_HELLO_WRONG;
	if (reason == LB_HELLO_COME_AGAIN) {
		try_later(nic, link);
		return;
	}
	if (!reason) {
		on_answer(nic, link, &theirs, passed);
		return;
	}
	theirs.number = link->number;
	lb_hello_log(reason, &mine, &theirs);
	lb_contact_end(nic, link, lb_clock_real_now() + NOBODY_FOR);
}

static void reply_ready(struct lb_nic *nic, struct lb_watch *watch,
			uint32_t events)
{
	struct lb_link *link = lb_entry(watch, struct lb_link, contact.socket);
	uint8_t bytes[2 * sizeof(struct lb_hello)];
	int passed;
	ssize_t size =
		lb_socket_receive(watch->fd, bytes, sizeof(bytes), &passed);

	(void)events;
	if (size == -EAGAIN)
		return;
	if (size <= 0)
		try_later(nic, link);
	else
		on_reply(nic, link, bytes, (size_t)size, passed);
	lb_socket_close(&passed);
}

/* Checks that the peer has the same user, and lives; otherwise decides the fate
 * of the link. */
static bool meet(struct lb_nic *nic, struct lb_link *link)
{
	struct lb_contact *contact = &link->contact;
	struct lb_hello mine = hello(nic, LB_HELLO_HELLO);
	struct lb_hello theirs = {.number = link->number};

	if (lb_socket_peer(contact->socket.fd, &contact->pid, &theirs.user)) {
		try_later(nic, link);
		return false;
	}
	if (theirs.user != mine.user) {
		lb_hello_log(LB_HELLO_USERS, &mine, &theirs);
		lb_contact_end(nic, link, lb_clock_real_now() + NOBODY_FOR);
		return false;
	}
	contact->pidfd = lb_socket_pidfd(contact->pid);
	if (contact->pidfd == -ESRCH) { /* a child of the process has the
					 * socket */
		contact->pidfd = -1;
		end_nobody(nic, link);
		return false;
	}
	if (contact->pidfd < 0)
		contact->pidfd = -1;
	return true;
}

static void say_hello(struct lb_nic *nic, struct lb_link *link)
{
	LB_NOT_CANCELLED;
	struct lb_contact *contact = &link->contact;
	struct lb_hello mine = hello(nic, LB_HELLO_HELLO);
	int fd, err;

	contact->mine = lb_segment_new(&fd);
	if (!contact->mine && is_for_now(errno)) {
		try_later(nic, link);
		return;
	}
	if (!contact->mine) {
		log_no_memory(link);
		lb_contact_end(nic, link, lb_clock_real_now() + NOBODY_FOR);
		return;
	}
	err = lb_socket_send_fd(contact->socket.fd, &mine, sizeof(mine), fd);
	close(fd);
	contact->socket.ready = reply_ready;
	if (err || !lb_watch_add(nic, &contact->socket)) {
		try_later(nic, link);
		return;
	}
	contact->stage = LB_STAGE_ANSWER;
	contact->deadline = lb_clock_real_now() + PATIENCE;
}

static void begin(struct lb_nic *nic, struct lb_link *link)
{
	char name[LB_PARTS_NAME];
	int fd;

	lb_parts_name(name, link->number);
	fd = lb_socket_connect(name);
	if (fd == -ECONNREFUSED) {
		end_nobody(nic, link);
		return;
	}
	if (fd < 0) {
		try_later(nic, link);
		return;
	}
	link->contact.socket.fd = fd;
	if (meet(nic, link))
		say_hello(nic, link);
}

/* --- the guest */

/*
 * Returns true if a guest may have the link: not if another life, or a contact
 * of this process, has the link.
 */
static bool may_have(const struct lb_nic *nic, const struct lb_link *link)
{
	if (lb_parts_state(link) != LB_LINK_CONTACT)
		return false;
	/* of two simultaneous contacts, the contact of the smaller number
	 * stays */
	return link->contact.stage == LB_STAGE_NONE ||
	       link->number < nic->number;
}

/*
 * Admits a guest: the guest gets ANSWER. Returns false if the guest is to go.
 */
static bool admit(struct lb_nic *nic, struct lb_contact *guest,
		  struct lb_link *link, const struct lb_hello *theirs)
{
	LB_NOT_CANCELLED;
	struct lb_hello mine = hello(nic, LB_HELLO_ANSWER);
	int fd, err;

	guest->mine = lb_segment_new(&fd);
	if (!guest->mine && is_for_now(errno)) {
		refuse(nic, guest, LB_HELLO_COME_AGAIN, theirs);
		return false;
	}
	if (!guest->mine) {
		log_no_memory(link);
		refuse(nic, guest, LB_HELLO_SEGMENT, theirs);
		return false;
	}
	lb_contact_drop(nic, &link->contact);
	drop_guests(nic, link);
	err = lb_socket_send_fd(guest->socket.fd, &mine, sizeof(mine), fd);
	close(fd);
	guest->link = link;
	guest->stage = LB_STAGE_READY;
	guest->deadline = lb_clock_real_now() + PATIENCE;
	link->next_try = guest->deadline;
	return !err;
}

static void on_hello(struct lb_nic *nic, struct lb_contact *guest,
		     const struct lb_hello *theirs, int passed)
{
	struct lb_link *link;

	guest->theirs = lb_segment_map(passed);
	if (!guest->theirs) {
		refuse(nic, guest, LB_HELLO_SEGMENT, theirs);
		lb_contact_drop(nic, guest);
		return;
	}
	guest->cookie = theirs->cookie;
	lb_links_forget_nobody(nic, theirs->number);
	link = lb_links_find(nic, theirs->number, false);
	if (!link || !may_have(nic, link)) {
		refuse(nic, guest, LB_HELLO_COME_AGAIN, theirs);
		lb_contact_drop(nic, guest);
	} else if (!admit(nic, guest, link, theirs)) {
		lb_contact_drop(nic, guest);
	}
	if (link)
		lb_link_put(link);
}

static void guest_ready(struct lb_nic *nic, struct lb_watch *watch,
			uint32_t events)
{
	struct lb_contact *guest = lb_entry(watch, struct lb_contact, socket);
	struct lb_hello mine = hello(nic, LB_HELLO_ANSWER), theirs;
	uint8_t bytes[2 * sizeof(struct lb_hello)];
	enum lb_hello_reason reason;
	int passed;
	ssize_t size =
		lb_socket_receive(watch->fd, bytes, sizeof(bytes), &passed);

	(void)events;
	if (size == -EAGAIN)
		return;
	if (size <= 0) {
		lb_contact_drop(nic, guest);
		return;
	}
	reason = lb_hello_check(&mine, bytes, (size_t)size, &theirs);
	if (!reason &&
	    theirs.kind != (guest->stage == LB_STAGE_HELLO ? LB_HELLO_HELLO
							   : LB_HELLO_READY))
		reason = LB_HELLO_WRONG;
	if (reason) {
		if (theirs.kind != LB_HELLO_REFUSAL)
			refuse(nic, guest, reason, &theirs);
		lb_contact_drop(nic, guest);
	} else if (guest->stage == LB_STAGE_HELLO) {
		on_hello(nic, guest, &theirs, passed);
	} else if (is_gone(guest) ||
		   lb_parts_state(guest->link) != LB_LINK_CONTACT) {
		lb_contact_drop(nic, guest);
	} else {
		come_up(nic, guest->link, guest);
	}
	lb_socket_close(&passed);
}

static struct lb_contact *free_guest(struct lb_nic *nic)
{
	unsigned i;

	for (i = 0; i < LB_PARTS_GUESTS; i++) {
		if (nic->guests[i].socket.fd < 0)
			return &nic->guests[i];
	}
	return NULL;
}

/*
 * Returns true if the refusal is to be printed: a process may come again and
 * again, with users in turn.
 */
static bool is_to_be_said(struct lb_nic *nic, uint32_t user)
{
	unsigned i;

	for (i = 0; i < nic->nusers_said; i++) {
		if (nic->users_said[i] == user)
			return false;
	}
	if (i == LB_PARTS_USERS)
		return false;
	nic->users_said[i] = user;
	nic->nusers_said++;
	return true;
}

/* Refuses a process of another user: both sides print a line. */
static bool is_of_user(struct lb_nic *nic, struct lb_contact *guest)
{
	struct lb_hello mine = hello(nic, LB_HELLO_REFUSAL), theirs = {0};

	if (lb_socket_peer(guest->socket.fd, &guest->pid, &theirs.user))
		return false;
	if (theirs.user == mine.user)
		return true;
	if (is_to_be_said(nic, theirs.user))
		lb_log(0,
		       "a process of user %u wants a link to this one (process "
		       "%u) of user %u: refused. Run both as one user",
		       theirs.user, mine.number, mine.user);
	return false;
}

/* No descriptor is left: connections stay in the queue for a while. */
static void accept_later(struct lb_nic *nic)
{
	lb_watch_leave(nic, &nic->listener);
	nic->accept_at = lb_clock_real_now() + ACCEPT_AGAIN;
}

void lb_contact_accept(struct lb_nic *nic)
{
	LB_NOT_CANCELLED;
	int fd = lb_socket_accept(nic->listener.fd);
	struct lb_contact *guest = free_guest(nic);

	if (fd < 0) {
		if (fd != -EAGAIN && fd != -ECONNABORTED)
			accept_later(nic); /* or the listener would be ready at
					    * once */
		return;
	}
	if (!guest) {
		close(fd); /* the process comes again */
		return;
	}
	guest->socket.fd = fd;
	guest->socket.ready = guest_ready;
	guest->stage = LB_STAGE_HELLO;
	guest->deadline = lb_clock_real_now() + PATIENCE;
	if (!is_of_user(nic, guest) || !lb_watch_add(nic, &guest->socket)) {
		lb_contact_drop(nic, guest);
		return;
	}
	guest->pidfd = lb_socket_pidfd(guest->pid);
	if (guest->pidfd < 0)
		guest->pidfd = -1;
}

/* --- records of a link that is up */

struct message {
	struct lb_nic *nic;
	struct lb_link *link;
	const uint8_t *bytes;
	size_t size;
};

static void deliver(void *arg, struct lb_run *run)
{
	const struct message *m = arg;

	m->nic->ops->message(m->link, m->bytes, m->size, run);
}

static bool receive(struct lb_nic *nic, struct lb_link *link)
{
	uint8_t bytes[1 + LB_LINK_MESSAGE];
	struct message message = {nic, link, bytes + 1, 0};
	int passed;
	ssize_t size = lb_socket_receive(link->socket.fd, bytes, sizeof(bytes),
					 &passed);

	lb_socket_close(&passed);
	if (size == -EAGAIN)
		return false;
	if (size <= 0 && size != -EMSGSIZE) {
		lb_contact_end(nic, link, 0);
		return false;
	}
	if (size == 1 && bytes[0] == LB_SOCKET_BELL) {
		lb_link_heard(link, true);
		return true;
	}
	if (size < 1 || bytes[0] != LB_SOCKET_MESSAGE) {
		lb_link_break(link, "record of its socket");
		return false;
	}
	lb_link_heard(link, false);
	message.size = (size_t)size - 1;
	nic->ops->with_run(deliver, &message);
	return true;
}

/* --- time */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct lose {
	struct lb_link *link;
	uint64_t now;
	uint64_t next;
};

static void lose(void *arg, struct lb_run *run)
{
	struct lose *l = arg;

	l->next = lb_link_lose(l->link, l->now, run);
}

/* Does the present work of a link; returns the time of the next work. */
static uint64_t tend_one(struct lb_nic *nic, struct lb_link *link, uint64_t now)
{
	if (lb_parts_state(link) == LB_LINK_DEAD)
		return UINT64_MAX;
	if (lb_parts_state(link) == LB_LINK_UP) {
		if (lb_link_is_wrong(link))
			lb_contact_end(nic, link, 0);
		else if (!lb_link_flush(link))
			return now + MS;
		return lb_link_resume(link, now);
	}
	if (link->contact.stage != LB_STAGE_NONE) {
		if (now < link->contact.deadline)
			return link->contact.deadline;
		try_later(nic, link);
	}
	if (now >= link->next_try)
		begin(nic, link);
	if (lb_parts_state(link) != LB_LINK_CONTACT)
		return UINT64_MAX;
	return link->contact.stage == LB_STAGE_NONE ? link->next_try
						    : link->contact.deadline;
}

static uint64_t tend(struct lb_nic *nic, struct lb_link *link, uint64_t now)
{
	uint64_t next = tend_one(nic, link, now);
	struct lose l = {link, now, UINT64_MAX};

	if (lb_parts_state(link) != LB_LINK_DEAD)
		nic->ops->with_run(lose, &l);
	return sooner(next, l.next);
}

uint64_t lb_contact_tend(struct lb_nic *nic, uint64_t now)
{
	unsigned n = lb_links_count(nic), i;
	uint64_t next = UINT64_MAX;

	for (i = 0; i < n; i++)
		next = sooner(next, tend(nic, lb_links_at(nic, i), now));
	for (i = 0; i < LB_PARTS_GUESTS; i++) {
		struct lb_contact *guest = &nic->guests[i];

		if (guest->socket.fd < 0)
			continue;
		if (now >= guest->deadline)
			lb_contact_drop(nic, guest);
		else
			next = sooner(next, guest->deadline);
	}
	if (nic->accept_at && now >= nic->accept_at)
		nic->accept_at = lb_watch_add(nic, &nic->listener)
					 ? 0
					 : now + ACCEPT_AGAIN;
	return nic->accept_at ? sooner(next, nic->accept_at) : next;
}
