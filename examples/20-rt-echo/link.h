/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.h: one connection: its memory, its receives and its sends.
 *
 * The memory is receive slots and then send slots, one message each. A receive
 * slot is posted, comes back with a message, and is posted again when the
 * message was handled. Sends go in order through the send slots, round and
 * round: staged (filled), then posted with all that are staged, one doorbell.
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
	uint32_t connection; /* the client's number, in messages */
	uint32_t size;
	uint32_t depth;
	uint64_t seed;
	uint64_t total; /* messages to come, if has_total */
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
	uint64_t *since_ns; /* of each send slot: when its latency began */

	uint64_t received; /* messages that came, in order */
	bool is_taken;	   /* its worker has it */
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

/* NULL: no memory, no number left, or not registered; errno says. */
struct link *link_new(struct end *end, const struct link_cfg *cfg);
/* After CLOSED, or without a connection. */
void link_delete(struct link *link);

/* The worker has it from now on. */
void link_attach(struct link *link, struct worker *worker);
/* To be pumped at the end of this batch. */
void link_touch(struct link *link);

uint8_t *link_recv_slot(struct link *link, uint32_t slot);
/* The slot's message is done with. */
void link_release(struct link *link, uint32_t slot);
/* The next send slot to fill, or NULL; *slot is its number. */
uint8_t *link_stage(struct link *link, uint32_t *slot);
/* Posts what is released, then what is staged, as far as it goes. */
void link_post(struct link *link);
/* Also closes a link that is not connected yet. */
void link_close(struct link *link);

#endif /* ECHO_LINK_H */
