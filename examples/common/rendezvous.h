/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rendezvous.h: bytes too many for a message. A message carries an offer of
 * registered memory; the other end reads the bytes from there, or writes the
 * bytes there. Meant to be copied: needs rendezvous.c and frame.h.
 *
 *	offer: the length of a descriptor (1 byte), the descriptor, where in the
 *	region (8 bytes)
 *
 * The end that offers leaves the memory alone until the answer has come, or
 * the connection has ended.
 */

#ifndef EXAMPLES_RENDEZVOUS_H
#define EXAMPLES_RENDEZVOUS_H

#include <rpma_rt.h>

#include "frame.h"

/* the memory of an offer, as the other end sees the memory */
struct offer {
	struct rpma_mr_remote *mr; /* NULL: no offer */
	uint64_t offset;
};

/* Writes an offer of the memory at the offset. */
void offer_write(struct writer *writer, const struct rpma_mr_local *mr,
		 uint64_t offset);
/* Reads an offer of at least len bytes; returns false for any other bytes. */
bool offer_read(struct reader *reader, uint64_t len, struct offer *offer);
void offer_free(struct offer *offer);

/* Prepares a read of len bytes of the offer, which completes with context. */
void offer_prep_pull(struct rpma_rt_wr *wr, const struct offer *offer,
		     struct rpma_mr_local *mr, uint64_t offset, size_t len,
		     uint64_t context);
/* Prepares a write of len bytes into the offer, which completes with context,
 * as the first part of a link: the message that is posted behind the write
 * arrives after the bytes. */
void offer_prep_push(struct rpma_rt_wr *wr, const struct offer *offer,
		     const struct rpma_mr_local *mr, uint64_t offset,
		     size_t len, uint64_t context);

#endif /* EXAMPLES_RENDEZVOUS_H */
