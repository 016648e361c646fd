/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A completion channel as an object: several CQs, one fd, one or more readers
 * at a time. The channel has a list of its CQs, so that an event of a CQ that
 * librpma did not make is recognized without touching the memory of the foreign
 * CQ.
 */

#ifndef RPMA_CHANNEL_H
#define RPMA_CHANNEL_H 1

#include "librpma.h"

/*
 * Adds a CQ to the list; cq->cq is set. Returns E_NOMEM if the list cannot
 * grow.
 */
int rpma__channel_add(struct rpma_channel *channel, struct rpma_cq *cq);
/*
 * Marks a CQ as leaving: the CQ is being destroyed, and its events are ignored
 * from now on. leaving false: destroying the CQ failed, and its events count
 * again.
 */
void rpma__channel_set_leaving(struct rpma_channel *channel, struct rpma_cq *cq,
			       bool leaving);
void rpma__channel_remove(struct rpma_channel *channel, struct rpma_cq *cq);
/* Returns true if channel is not NULL and was made in this process. */
bool rpma__channel_is_valid(const struct rpma_channel *channel);
struct ibv_comp_channel *
rpma__channel_get_ibv(const struct rpma_channel *channel);

#endif /* RPMA_CHANNEL_H */
