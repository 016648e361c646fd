/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* rendezvous.c: see rendezvous.h. */

#include "rendezvous.h"

void offer_write(struct writer *writer, const struct rpma_mr_local *mr,
		 uint64_t offset)
{
	size_t size = 0;
	uint8_t *place;

	writer->is_bad |= rpma_mr_get_descriptor_size(mr, &size) != 0;
	write_number(writer, size, 1);
	place = write_place(writer, size);
	if (place != NULL)
		writer->is_bad |= rpma_mr_get_descriptor(mr, place) != 0;
	write_number(writer, offset, 8);
}

bool offer_read(struct reader *reader, uint64_t len, struct offer *offer)
{
	size_t size = read_number(reader, 1), region;
	const uint8_t *descriptor = read_bytes(reader, size);

	offer->mr = NULL;
	offer->offset = read_number(reader, 8);
	if (reader->is_bad ||
	    rpma_mr_remote_from_descriptor(descriptor, size, &offer->mr))
		return false;
	if (rpma_mr_remote_get_size(offer->mr, &region) == 0 && len <= region &&
	    offer->offset <= region - len)
		return true;
	offer_free(offer);
	return false;
}

void offer_free(struct offer *offer)
{
	rpma_mr_remote_delete(&offer->mr);
}

void offer_prep_pull(struct rpma_rt_wr *wr, const struct offer *offer,
		     struct rpma_mr_local *mr, uint64_t offset, size_t len,
		     uint64_t context)
{
	rpma_rt_prep_read(wr, mr, offset, offer->mr, offer->offset, len,
			  RPMA_F_COMPLETION_ALWAYS, context);
}

void offer_prep_push(struct rpma_rt_wr *wr, const struct offer *offer,
		     const struct rpma_mr_local *mr, uint64_t offset,
		     size_t len, uint64_t context)
{
	rpma_rt_prep_write(wr, offer->mr, offer->offset, mr, offset, len,
			   RPMA_F_COMPLETION_ALWAYS | RPMA_RT_F_LINKED,
			   context);
}
