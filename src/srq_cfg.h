/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The configuration of an SRQ: a list of values, read once when the SRQ is
 * made. The configuration owns no object that a value names.
 */

#ifndef RPMA_SRQ_CFG_H
#define RPMA_SRQ_CFG_H 1

#include "cfg_field.h"

/* clang-format off */
#define RPMA__SRQ_CFG_FIELDS(X)                                             \
	X(rq_size, uint32_t, 20, true, "any")                               \
	X(rcq_size, uint32_t, 20, true, "any")                              \
	X(rcq, struct rpma_cq *, NULL, true, "any")                         \
	X(channel, struct rpma_channel *, NULL, true, "any")                \
	X(max_sge, uint32_t, 1, v >= 1, "1 or more")
/* clang-format on */

/* The values with which one SRQ is made. */
struct rpma__srq_cfg {
	RPMA__SRQ_CFG_FIELDS(RPMA__CFG_PLAIN)
};

/* Reads all values; cfg NULL: reads the defaults. */
void rpma__srq_cfg_read(const struct rpma_srq_cfg *cfg,
			struct rpma__srq_cfg *values);

#endif /* RPMA_SRQ_CFG_H */
