/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tally.h: every work request has a ticket, and its completion is ticked off.
 *
 * A ticket is the 48-bit context of a work request: the side and the connection
 * that posted the work request, the worker whose queue gets the completion, the
 * buffer (slot), and how many times the buffer was posted (turn). A tally is a
 * side of a connection: a bit for each slot says whether its work request is
 * outstanding. So a lost completion and a completion delivered twice cannot
 * cancel out: the lost completion leaves a bit set, the second delivery finds
 * the bit clear or an old turn. A tally belongs to one thread.
 */

#ifndef ECHO_TALLY_H
#define ECHO_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#define TICKET_WORKERS (1u << 7)
#define TICKET_LINKS   (1u << 12)
#define TICKET_TURNS   (1u << 14)
#define TICKET_SLOTS   (1u << 14)

struct ticket {
	unsigned is_recv;
	unsigned worker;
	unsigned link;
	unsigned turn;
	unsigned slot;
};

uint64_t ticket_pack(const struct ticket *ticket);
struct ticket ticket_unpack(uint64_t context);

struct tally {
	uint32_t slots;
	uint32_t out;	/* number of outstanding slots */
	uint64_t *bits; /* of each slot: the work request is outstanding */
	uint16_t *turn; /* of each slot: the present turn, or the next */
};

/* Returns false if there is no memory. */
bool tally_init(struct tally *tally, uint32_t slots);
void tally_fini(struct tally *tally);
bool tally_is_out(const struct tally *tally, uint32_t slot);
/* Returns the turn of the next work request of the slot. */
unsigned tally_turn(const struct tally *tally, uint32_t slot);
/* Marks the work request of the slot as posted. */
void tally_post(struct tally *tally, uint32_t slot);
/*
 * Marks a completion as delivered; returns false if the work request is not, or
 * no longer, outstanding.
 */
bool tally_deliver(struct tally *tally, uint32_t slot, unsigned turn);

#endif /* ECHO_TALLY_H */
