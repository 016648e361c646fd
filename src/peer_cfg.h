/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The peer configuration: a flag, and its descriptor of one byte. */

#ifndef RPMA_PEER_CFG_H
#define RPMA_PEER_CFG_H 1

#include <stdatomic.h>

#include "librpma.h"

struct rpma_peer_cfg {
	atomic_bool direct_write_to_pmem;
};

#endif /* RPMA_PEER_CFG_H */
