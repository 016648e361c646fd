/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A completion channel as an object: several CQs, one fd, one reader at a time
 * or several. The channel has a list of its CQs, so that an event of a CQ that
 * librpma did not make is recognized without touching that CQ's memory.
 */

#ifndef RPMA_CHANNEL_H
#define RPMA_CHANNEL_H 1

#include "librpma.h"

/* Requires: cq->cq is set. E_NOMEM. */
int rpma__channel_add(struct rpma_channel *channel, struct rpma_cq *cq);
/*
 * leaving: the CQ is being destroyed; its events are ignored from now on. Not
 * leaving: destroying it failed, its events count again.
 */
void rpma__channel_set_leaving(struct rpma_channel *channel, struct rpma_cq *cq,
			       bool leaving);
void rpma__channel_remove(struct rpma_channel *channel, struct rpma_cq *cq);
/* True: not NULL, and made in this process. */
bool rpma__channel_is_valid(const struct rpma_channel *channel);
struct ibv_comp_channel *
rpma__channel_get_ibv(const struct rpma_channel *channel);

#endif /* RPMA_CHANNEL_H */
