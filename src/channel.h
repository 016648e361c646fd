/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A completion channel as an object: several CQs, one fd, one or more readers
 * at a time.
 */

#ifndef RPMA_CHANNEL_H
#define RPMA_CHANNEL_H 1

#include "librpma.h"

/* Returns true if channel is not NULL and was made in this process. */
bool rpma__channel_is_valid(const struct rpma_channel *channel);
struct ibv_comp_channel *
rpma__channel_get_ibv(const struct rpma_channel *channel);

#endif /* RPMA_CHANNEL_H */
