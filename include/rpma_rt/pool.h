/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool.h: registered memory in slots of one size. The receive queue of a
 * connection or SRQ that names a pool is kept filled; messages are leases. If
 * no slot is free for receives, peers wait until a lease is released.
 */

#ifndef RPMA_RT_POOL_H
#define RPMA_RT_POOL_H

#include <rpma_rt/core.h>

RPMA_RT_BEGIN

#define RPMA_RT_DEFAULT_POOL_COUNT     2048
#define RPMA_RT_DEFAULT_POOL_SLOT_SIZE 4096
#define RPMA_RT_POOL_NO_SENDS	       UINT32_MAX
#define RPMA_RT_DEFAULT_POOL_FUTURES   64

struct rpma_rt_pool_cfg {
	uint32_t size;
	uint32_t count;		/* slots, 1..1048576; default 2048 */
	uint32_t slot_size;	/* bytes, 1..1073741824; default 4096 */
	uint32_t usage;		/* RPMA_MR_USAGE_* besides SEND and RECV; 0 */
	struct rpma_peer *peer; /* required: of the connections; outlives all */
	const char *name;	/* as in rpma_rt_queue_cfg; NULL: "pool N" */
	/* slots that receives never take, 1..count - 1; 0 (default): half of
	 * the slots; RPMA_RT_POOL_NO_SENDS: none */
	uint32_t sends;
	uint32_t futures; /* of a free slot that can be held, 1..1048576; 64 */
	uint64_t reserved[3];
};

/* clang-format off */
#define RPMA_RT_POOL_CFG_INIT { sizeof(struct rpma_rt_pool_cfg), \
	RPMA_RT_DEFAULT_POOL_COUNT, RPMA_RT_DEFAULT_POOL_SLOT_SIZE, 0, NULL, \
	NULL, 0, RPMA_RT_DEFAULT_POOL_FUTURES, {0, 0, 0} }
/* clang-format on */

/* Writes size bytes of RPMA_RT_POOL_CFG_INIT. Returns 0. Thread: any. */
int rpma_rt_pool_cfg_init(struct rpma_rt_pool_cfg *cfg, size_t size);

/* Makes a pool: allocates and registers the memory.
 * Returns 0. Errors: NOMEM, PROVIDER, CLOSED. Thread: waits. */
int rpma_rt_pool_new(struct rpma_rt *rt, const struct rpma_rt_pool_cfg *cfg,
		     struct rpma_rt_pool **pool_ptr) RPMA_RT_MUST_CHECK;

/* Unregisters and frees the memory.
 * Returns 0. Errors: BUSY (a connection that is not closed, a listener or an
 * SRQ names the pool, or leases are held), PROVIDER. Thread: owner, waits. */
int rpma_rt_pool_delete(struct rpma_rt_pool **pool_ptr);

/* A slot that the program holds: plain data, can be copied. */
struct rpma_rt_lease {
	struct rpma_rt_pool *pool;
	void *data;
	struct rpma_mr_local *mr; /* mr and offset as in a work request */
	uint64_t offset;
	uint32_t len;	     /* of the message; of a taken slot: slot_size */
	uint32_t slot;	     /* index in the pool */
	uint32_t generation; /* odd; another number for each lease */
	uint32_t reserved32;
};

/* Takes a free slot to send from, and never blocks. Returns 0.
 * Errors: AGAIN (no slot is free for sends, or futures wait). Thread: any. */
int rpma_rt_pool_take(struct rpma_rt_pool *pool,
		      struct rpma_rt_lease *lease) RPMA_RT_MUST_CHECK;

/* Writes the lease of a completion: the message is in the first len bytes of
 * data (0: a write with imm), and the program releases the lease.
 * Returns false, and writes nothing, if there is no lease. Thread: any. */
bool rpma_rt_completion_lease(const struct rpma_rt_completion *cmpl,
			      struct rpma_rt_lease *lease);

/* The parts of the context of a completion with a lease, from below. */
#define RPMA_RT_LEASE_GENERATION_BITS 18
#define RPMA_RT_LEASE_SLOT_BITS	      20

/* Returns the slot of a completion with a lease (RPMA_RT_C_LEASE): the field
 * slot of the lease. Thread: any. */
RPMA_RT_INLINE uint32_t
rpma_rt_completion_slot(const struct rpma_rt_completion *cmpl)
{
	return (uint32_t)(cmpl->context >> RPMA_RT_LEASE_GENERATION_BITS) &
	       ((1u << RPMA_RT_LEASE_SLOT_BITS) - 1);
}

/* Returns the generation of a completion with a lease (RPMA_RT_C_LEASE): the
 * field generation of the lease. Thread: any. */
RPMA_RT_INLINE uint32_t
rpma_rt_completion_generation(const struct rpma_rt_completion *cmpl)
{
	return (uint32_t)cmpl->context &
	       ((1u << RPMA_RT_LEASE_GENERATION_BITS) - 1);
}

/* Releases the lease: the slot is free when no work request holds the slot.
 * Returns 0. Errors: INVAL (released before, or given to a work request).
 * Thread: any. */
int rpma_rt_lease_release(const struct rpma_rt_lease *lease);

/* Releases count (0..) leases, faster than one at a time. No other thread uses
 * the leases or copies of the leases meanwhile.
 * Returns 0. Errors: INVAL (of a lease, see above; the other leases are
 * released). Thread: any. */
int rpma_rt_leases_release(const struct rpma_rt_lease *const *leases,
			   uint32_t count);

RPMA_RT_END

#endif /* RPMA_RT_POOL_H */
