/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.h -- one link: the wire from this process to one life of another. What
 * the layer above may do with one; nic.h has the whole of them.
 *
 * A link begins in contact, is up, and ends dead; it never comes back. A
 * pointer to one is a reference to that life of the peer: whoever has it calls
 * lb_link_put() at the end. doc/protocols/wire.md has the rules, and
 *
 * locks, between the lines of base/process.h: link.in, behind lb.big and before
 * sq.lock, taken by whoever drains; link.out, a leaf, taken by each call below.
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
struct lb_run; /* what a thread owes once it holds no lock: the layer above's */

/* Of all links: how many are up, how many calls of lb_nic_look() are owed. */
extern _Atomic uint32_t lb_link_ups;
extern _Atomic uint32_t lb_link_owed;

/* the longest message of the layer above, beside the rings */
enum { LB_LINK_MESSAGE = 1024 };

enum lb_put_result {
	LB_PUT_OK,	/* it is in the ring */
	LB_PUT_NO_ROOM, /* later: the waiter is on the list */
	LB_PUT_NOT_YET, /* the link is in contact; the waiter is on the list */
	LB_PUT_DEAD,	/* never: the peer is silent from now on */
	LB_PUT_NOBODY,	/* the peer's process is not in the group */
	LB_PUT_LOST,	/* nobody answers it, and the peer takes nothing */
};

/*
 * A waiter for a link to have room, to be up, or to be dead, or for its own
 * patience to end: part of a queue pair. lb_nic_ops.room is called for it, one
 * time, then it is on no list.
 */
struct lb_waiter {
	struct lb_list node; /* under link.out */
};

static inline void lb_link_waiter_init(struct lb_waiter *waiter)
{
	lb_list_init(&waiter->node);
}

/*
 * Put a request into the ring: the header, and of src, which ends with a length
 * of 0, record->length bytes from offset `from`. Never waits. Any lock but
 * another link.out may be held. A waiter may be on one list only. With
 * LB_PUT_NO_ROOM the thread owes lb_nic_look(), once it holds no lock. A
 * request that has no answer waits for a second at most, if nothing is taken
 * meanwhile.
 */
enum lb_put_result lb_link_request(struct lb_link *link,
				   const struct lb_record *record,
				   const struct lb_span *src, uint64_t from,
				   struct lb_waiter *waiter);

/*
 * Small requests that were put may be hidden from the peer until this call, by
 * the thread that put the last of them, before it lets any lock go.
 */
void lb_link_show(struct lb_link *link);

/*
 * Answer a request, within lb_nic_ops.request and once at most: there is room.
 * Datagrams and LB_RECORD_UNRELIABLE have no answer; of the bytes that a READ
 * asks for an answer has no more. Not LB_PUT_OK: the link is broken, and the
 * caller goes on as if it were LB_PUT_OK.
 */
enum lb_put_result lb_link_answer(struct lb_link *link,
				  const struct lb_record *record,
				  const struct lb_span *src, uint64_t from);

/*
 * Likewise, an LB_RECORD_ACK. Several in a row with the same two queue pairs
 * and life go into the ring as one, which stands for all of them: before the
 * next answer that is none, or at the end of the round.
 */
void lb_link_acknowledge(struct lb_link *link, const struct lb_record *record);

/* Nobody tells the waiter any more; harmless if it is on no list. */
void lb_link_leave(struct lb_link *link, struct lb_waiter *waiter);

/*
 * Send a message of the layer above, at most LB_LINK_MESSAGE bytes: in order
 * with others, not with records. It waits in a queue while the link is in
 * contact or the socket is full. 0 or an errno, ENOTCONN if the link is dead.
 * Not inside a callback that holds link.in.
 */
int lb_link_send(struct lb_link *link, const void *data, size_t size);

/*
 * What the peer sent beside the rings is wrong, or too much waits for it: the
 * link will die, with a line that says what was wrong. Takes link.in.
 */
void lb_link_break(struct lb_link *link, const char *what);

/*
 * Take all that the peer had published when the call began, by waiting for
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
uint64_t lb_link_cookie(struct lb_link *link);	     /* 0 until it is up */

/* References: one more, one less. */
struct lb_link *lb_link_get(struct lb_link *link);
void lb_link_put(struct lb_link *link);

/* What has gone through it: records and bytes of payload. */
struct lb_link_stats {
	uint64_t sent, sent_bytes; /* by us: requests and answers */
	uint64_t taken, taken_bytes;
	uint64_t requests_sent, requests_taken; /* of those */
	uint64_t bells_rung, bells_heard;
	uint64_t messages_sent, messages_taken; /* beside the rings */
	uint64_t lost;				/* requests: LB_PUT_LOST */
};
void lb_link_stats(struct lb_link *link, struct lb_link_stats *stats);

#endif /* LB_WIRE_LINK_H */
