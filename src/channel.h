/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A completion channel as an object: several CQs, one fd, one reader at a time
 * or several. It knows its CQs, so that an event of a stranger's CQ is told
 * apart without touching the stranger's memory.
 */

#ifndef RPMA_CHANNEL_H
#define RPMA_CHANNEL_H 1

#include "librpma.h"

/* Requires: cq->cq is set. E_NOMEM. */
int rpma__channel_add(struct rpma_channel *channel, struct rpma_cq *cq);
/* Its events are a stranger's from now on (and back): it is being destroyed. */
void rpma__channel_set_leaving(struct rpma_channel *channel, struct rpma_cq *cq,
			       bool leaving);
void rpma__channel_remove(struct rpma_channel *channel, struct rpma_cq *cq);
/* There, and of this process. */
bool rpma__channel_is_valid(const struct rpma_channel *channel);
struct ibv_comp_channel *
rpma__channel_get_ibv(const struct rpma_channel *channel);

#endif /* RPMA_CHANNEL_H */
