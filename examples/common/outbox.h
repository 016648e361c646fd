/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * outbox.h: the answers of a server on a connection. An answer is written into
 * a place, and the send stands in line until the whole line is one post. Work
 * requests that a post refuses stay in line, until WRITABLE. Meant to be
 * copied: needs nothing but this file. Thread: one at a time.
 *
 * There are as many places as a client may have requests without an answer, and
 * answers use the places in turn. No completion is needed to know that a place
 * is free: when the server writes answer n, at least n + 1 requests have come,
 * and OUTBOX_WINDOW of these at most have no answer; answers arrive in order;
 * so the client has answer n - OUTBOX_WINDOW, which was in the same place.
 */

#ifndef EXAMPLES_OUTBOX_H
#define EXAMPLES_OUTBOX_H

#include <stdbool.h>
#include <string.h>

#include <rpma_rt.h>

#define OUTBOX_WINDOW 16 /* requests of a client without an answer */

struct outbox {
	uint32_t answers; /* that were put in line */
	uint32_t places_count;
	int waiting; /* work requests in line */
	/* for each request an answer, and another work request */
	struct rpma_rt_wr line[2 * OUTBOX_WINDOW];
	struct rpma_rt_lease places[OUTBOX_WINDOW];
};

/* Gives the places back, also after outbox_open() has failed. */
static inline void outbox_close(struct outbox *outbox)
{
	while (outbox->places_count > 0)
		rpma_rt_lease_release(&outbox->places[--outbox->places_count]);
}

/* Takes the places of a zeroed outbox from the pool, whose slots have room for
 * an answer. Returns false if the pool has too few slots. */
static inline bool outbox_open(struct outbox *outbox, struct rpma_rt_pool *pool)
{
	struct rpma_rt_lease *place = outbox->places;

	while (outbox->places_count < OUTBOX_WINDOW &&
	       rpma_rt_pool_take(pool, place++) == 0)
		outbox->places_count++;
	return outbox->places_count == OUTBOX_WINDOW;
}

/* Returns where the next answer is written. */
static inline void *outbox_place(const struct outbox *outbox)
{
	return outbox->places[outbox->answers % OUTBOX_WINDOW].data;
}

/* Puts a work request in line, which the caller prepares. */
static inline struct rpma_rt_wr *outbox_add(struct outbox *outbox)
{
	return &outbox->line[outbox->waiting++];
}

/* Puts the send of the answer in line: the first len bytes of the place. */
static inline void outbox_answer(struct outbox *outbox, size_t len)
{
	const struct rpma_rt_lease *place =
		&outbox->places[outbox->answers++ % OUTBOX_WINDOW];

	rpma_rt_prep_send(outbox_add(outbox), place->mr, place->offset, len,
			  RPMA_F_COMPLETION_ON_ERROR, 0);
}

/* Takes work requests that were posted off the line. */
static inline void outbox_posted(struct outbox *outbox, int count)
{
	outbox->waiting -= count;
	if (outbox->waiting > 0)
		memmove(outbox->line, outbox->line + count,
			(size_t)outbox->waiting * sizeof(outbox->line[0]));
}

#endif /* EXAMPLES_OUTBOX_H */
