/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A peer: a protection domain of a device, and the capabilities of the device.
 * Immutable after new, so any number of threads may use a peer.
 */

#ifndef RPMA_PEER_H
#define RPMA_PEER_H 1

#include "fork.h"
#include "librpma.h"
#include "verbs_compat.h"

struct rpma_peer {
	struct ibv_pd *pd;
	struct rpma__caps caps;
	unsigned forks;
};

/* Returns true if peer is not NULL and was made in this process. */
static inline bool rpma__peer_is_valid(const struct rpma_peer *peer)
{
	return peer && rpma__is_here(peer->forks);
}

/* Returns the error of a call that has refused its arguments. */
static inline int rpma__peer_refusal(const struct rpma_peer *peer)
{
	return rpma__fork_refusal(peer ? &peer->forks : NULL);
}

/*
 * Returns true if the device has atomics (compare and swap, fetch and add),
 * else logs the lack.
 */
bool rpma__peer_has_atomics(const struct rpma_peer *peer);

/*
 * Registers memory for the usages with ibv_reg_mr(), with on-demand paging if
 * the memory cannot be pinned. Returns E_PROVIDER or E_NOSUPP (atomics),
 * logged.
 */
int rpma__peer_reg_mr(const struct rpma_peer *peer, void *ptr, size_t size,
		      int usage, struct ibv_mr **ibv_mr_ptr);

#endif /* RPMA_PEER_H */
