/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tally.c: tickets, and the bitmap of outstanding tickets.
 */

#include "tally.h"

#include <stdlib.h>

#define SLOT_SHIFT   0
#define TURN_SHIFT   14
#define LINK_SHIFT   28
#define WORKER_SHIFT 40
#define RECV_SHIFT   47

uint64_t ticket_pack(const struct ticket *ticket)
{
	return (uint64_t)ticket->is_recv << RECV_SHIFT |
	       (uint64_t)ticket->worker << WORKER_SHIFT |
	       (uint64_t)ticket->link << LINK_SHIFT |
	       (uint64_t)ticket->turn << TURN_SHIFT |
	       (uint64_t)ticket->slot << SLOT_SHIFT;
}

struct ticket ticket_unpack(uint64_t context)
{
	return (struct ticket){
		.is_recv = context >> RECV_SHIFT & 1,
		.worker = context >> WORKER_SHIFT & (TICKET_WORKERS - 1),
		.link = context >> LINK_SHIFT & (TICKET_LINKS - 1),
		.turn = context >> TURN_SHIFT & (TICKET_TURNS - 1),
		.slot = context >> SLOT_SHIFT & (TICKET_SLOTS - 1),
	};
}

bool tally_init(struct tally *tally, uint32_t slots)
{
	*tally = (struct tally){.slots = slots};
	tally->bits = calloc((slots + 63) / 64, sizeof(*tally->bits));
	tally->turn = calloc(slots, sizeof(*tally->turn));
	if (tally->bits && tally->turn)
		return true;
	tally_fini(tally);
	return false;
}

void tally_fini(struct tally *tally)
{
	free(tally->bits);
	free(tally->turn);
	*tally = (struct tally){0};
}

bool tally_is_out(const struct tally *tally, uint32_t slot)
{
	return tally->bits[slot / 64] >> slot % 64 & 1;
}

unsigned tally_turn(const struct tally *tally, uint32_t slot)
{
	return tally->turn[slot];
}

void tally_post(struct tally *tally, uint32_t slot)
{
	tally->bits[slot / 64] |= UINT64_C(1) << slot % 64;
	tally->out++;
}

bool tally_deliver(struct tally *tally, uint32_t slot, unsigned turn)
{
	if (slot >= tally->slots || !tally_is_out(tally, slot) ||
	    tally->turn[slot] != turn)
		return false;
	tally->bits[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	tally->turn[slot] = (turn + 1) % TICKET_TURNS;
	tally->out--;
	return true;
}
