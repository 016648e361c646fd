/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.h: a connection with memory, receives and sends.
 *
 * The memory is receive slots and then send slots, a message each. A receive
 * slot is posted, comes back with a message, and is posted again when the
 * message was handled. Sends go in order through the send slots, round and
 * round: staged (filled), then posted with all staged slots, with one doorbell.
 * A post that the runtime refuses for now stays staged until RPMA_RT_WRITABLE.
 * Thread: main until the link is handed to its worker, then the worker.
 */

#ifndef ECHO_LINK_H
#define ECHO_LINK_H

#include "end.h"

struct link {
	struct end *end;
	struct worker *worker;
	struct rpma_rt_conn *conn; /* holds the handle; NULL before */
	struct link *next, *prev;  /* worker->links */
	struct link *next_dirty;
	bool is_dirty;

	unsigned index;	     /* in end->links and in tickets */
	uint32_t connection; /* number at the client, in messages */
	uint32_t size;
	uint32_t depth;
	uint64_t seed;
	uint64_t total; /* expected messages, if has_total */
	bool has_total;

	uint8_t *memory;
	size_t memory_size;
	struct rpma_mr_local *mr;

	/* receive side */
	uint32_t receives; /* slots */
	struct tally recv_tally;
	uint32_t *repost; /* slots to be posted, a stack */
	uint32_t repost_count;
	uint32_t *pending; /* server: messages to be answered, a ring */
	uint64_t pending_in, pending_out;
	bool is_recv_blocked;

	/* send side */
	struct tally send_tally;
	uint64_t sent;	 /* posted so far */
	uint32_t staged; /* filled and not posted yet */
	bool is_send_blocked;
	uint64_t *since_ns; /* of each send slot: start of the latency */

	uint64_t received; /* received messages, in order */
	bool is_taken;	   /* the worker owns the link */
	bool is_up;	   /* ESTABLISHED came */
	bool is_closing;
	bool is_closed; /* CLOSED came */
};

struct link_cfg {
	uint32_t connection;
	uint32_t size;
	uint32_t depth;
	uint64_t seed;
	uint64_t total;
};

/*
 * Makes a link; returns NULL with errno: no memory, no free number, or not
 * registered.
 */
struct link *link_new(struct end *end, const struct link_cfg *cfg);
/* Deletes a link after CLOSED, or a link without a connection. */
void link_delete(struct link *link);

/* Gives the link to the worker. */
void link_attach(struct link *link, struct worker *worker);
/* Marks the link to be pumped at the end of the batch. */
void link_touch(struct link *link);

uint8_t *link_recv_slot(struct link *link, uint32_t slot);
/* Ends the handling of the message in the slot. */
void link_release(struct link *link, uint32_t slot);
/* Returns the next send slot to fill, or NULL; *slot is its number. */
uint8_t *link_stage(struct link *link, uint32_t *slot);
/* Posts released receives, then staged sends, as far as possible. */
void link_post(struct link *link);
/* Closes a link, connected or not. */
void link_close(struct link *link);

#endif /* ECHO_LINK_H */
