/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.h -- a link: the wire from this process to one life of another. The
 * calls of the layer above on a link; nic.h has all links.
 *
 * A link begins in contact, is up, and ends dead; a link never comes back. A
 * pointer to a link is a reference to a life of the peer: the holder calls
 * lb_link_put() at the end. doc/protocols/wire.md has the rules, and
 *
 * locks, between the lines of base/process.h: link.in, after lb.big and before
 * sq.lock, taken by draining threads; link.out, a leaf, taken by each call
 * below.
 */

#ifndef LB_WIRE_LINK_H
#define LB_WIRE_LINK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/span.h"
#include "wire/record.h"

struct lb_link;
struct lb_run; /* the debts of a thread, paid without locks: of the layer
	        * above */

/*
 * Numbers over all links: links that are up, and owed calls of lb_nic_look().
 */
extern _Atomic uint32_t lb_link_ups;
extern _Atomic uint32_t lb_link_owed;

/* the longest message of the layer above, beside the rings */
enum { LB_LINK_MESSAGE = 1024 };

enum lb_put_result {
	LB_PUT_OK,	/* in the ring */
	LB_PUT_NO_ROOM, /* later: the waiter is on the list */
	LB_PUT_NOT_YET, /* the link is in contact; the waiter is on the list */
	LB_PUT_DEAD,	/* never: the peer is silent from now on */
	LB_PUT_NOBODY,	/* the peer's process is not in the group */
	LB_PUT_LOST,	/* without an answer, and the peer takes nothing */
};

/*
 * A waiter for a link to have room, to be up, or to be dead, or for the end of
 * the patience: part of a queue pair. lb_nic_ops.room is called once for a
 * waiter, which is then on no list.
 */
struct lb_waiter {
	struct lb_list node; /* under link.out */
};

static inline void lb_link_waiter_init(struct lb_waiter *waiter)
{
	lb_list_init(&waiter->node);
}

/*
 * Puts a request into the ring: the header, and from src, which ends with a
 * length of 0, record->length bytes from offset `from`. Never waits. Any lock
 * but another link.out may be held. A waiter may be on one list only. With
 * LB_PUT_NO_ROOM the thread owes lb_nic_look(), once the thread holds no lock.
 * A request without an answer waits for at most a second, if nothing is taken
 * meanwhile.
 */
enum lb_put_result lb_link_request(struct lb_link *link,
				   const struct lb_record *record,
				   const struct lb_span *src, uint64_t from,
				   struct lb_waiter *waiter);

/*
 * Shows small requests, which may be hidden from the peer until this call;
 * called by the thread of the last put, before releasing any lock.
 */
void lb_link_show(struct lb_link *link);

/*
 * Answers a request, within lb_nic_ops.request and at most once: there is room.
 * Datagrams and LB_RECORD_UNRELIABLE have no answer; the answer to a READ has
 * at most the requested bytes. Not LB_PUT_OK: the link is broken, and the
 * caller goes on as if after LB_PUT_OK.
 */
enum lb_put_result lb_link_answer(struct lb_link *link,
				  const struct lb_record *record,
				  const struct lb_span *src, uint64_t from);

/*
 * Answers with an LB_RECORD_ACK. Several in a row with the same two queue pairs
 * and life go into the ring as one record, which stands for all: before the
 * next other answer, or at the end of the round.
 */
void lb_link_acknowledge(struct lb_link *link, const struct lb_record *record);

/* Removes the waiter, which is told no more; harmless if on no list. */
void lb_link_leave(struct lb_link *link, struct lb_waiter *waiter);

/*
 * Sends a message of the layer above, at most LB_LINK_MESSAGE bytes: in order
 * with others, not with records. The message waits in a queue while the link is
 * in contact or the socket is full. Returns 0 or an errno, ENOTCONN if the link
 * is dead. Not inside a callback that holds link.in.
 */
int lb_link_send(struct lb_link *link, const void *data, size_t size);

/*
 * Breaks the link, because data of the peer beside the rings is wrong, or too
 * much waits for the peer: the link will die, and the fault is printed. Takes
 * link.in.
 */
void lb_link_break(struct lb_link *link, const char *what);

/*
 * Takes everything published by the peer before the call, by waiting for
 * link.in. No lock held.
 */
void lb_link_catch_up(struct lb_link *link, struct lb_run *run);

enum lb_link_state {
	LB_LINK_CONTACT,
	LB_LINK_UP,
	LB_LINK_DEAD,
};
enum lb_link_state lb_link_state(const struct lb_link *link);
unsigned lb_link_number(const struct lb_link *link); /* of the peer, 1 to 254 */
uint64_t lb_link_cookie(struct lb_link *link);	     /* 0 until up */

/* Take and release a reference. */
struct lb_link *lb_link_get(struct lb_link *link);
void lb_link_put(struct lb_link *link);

/* Traffic of a link: records and bytes of payload. */
struct lb_link_stats {
	uint64_t sent, sent_bytes; /* by us: requests and answers */
	uint64_t taken, taken_bytes;
	uint64_t requests_sent, requests_taken; /* requests among these */
	uint64_t bells_rung, bells_heard;
	uint64_t messages_sent, messages_taken; /* beside the rings */
	uint64_t lost;				/* requests: LB_PUT_LOST */
};
void lb_link_stats(struct lb_link *link, struct lb_link_stats *stats);

#endif /* LB_WIRE_LINK_H */
