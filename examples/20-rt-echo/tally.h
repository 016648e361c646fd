/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tally.h: every work request has a ticket and is ticked off by it.
 *
 * A ticket is the 48-bit context of a work request: which side of which
 * connection posted it, for which worker's queue, with which buffer (slot),
 * and the how-manieth time that buffer was out (turn). A tally is one side of
 * one connection: a bit per slot says that its work request is outstanding. So
 * one completion lost and one delivered twice cannot cancel out: the first
 * leaves a bit set, the second finds a bit clear or a turn gone by.
 * A tally belongs to one thread.
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
	uint32_t out;	/* outstanding */
	uint64_t *bits; /* of each slot: it is outstanding */
	uint16_t *turn; /* of each slot: the turn it is in, or next in */
};

/* false: no memory */
bool tally_init(struct tally *tally, uint32_t slots);
void tally_fini(struct tally *tally);
bool tally_is_out(const struct tally *tally, uint32_t slot);
/* The turn that the next work request of this slot takes. */
unsigned tally_turn(const struct tally *tally, uint32_t slot);
/* The slot's work request was posted. */
void tally_post(struct tally *tally, uint32_t slot);
/* It was delivered. false: this one is not outstanding, or not any more. */
bool tally_deliver(struct tally *tally, uint32_t slot, unsigned turn);

#endif /* ECHO_TALLY_H */
