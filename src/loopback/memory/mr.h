/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mr.h -- memory regions, memory windows, and the table indexed by keys.
 */

#ifndef LB_MEMORY_MR_H
#define LB_MEMORY_MR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/lock.h"
#include "base/process.h"
#include "object/object.h"

/*
 * A row of the table indexed by keys, of a region or of a window. The row of a
 * region is valid for a key while lkey or rkey equals the key; the other fields
 * do not change meanwhile. The row of a window has no lkey, and everything
 * except window is under the lock of the row: see mw.c.
 */
struct lb_mr_row {
	_Atomic uint32_t lkey; /* 0: free */
	_Atomic uint32_t rkey;
	uint32_t access;
	uint32_t tag;  /* of the last keys; under lb.big */
	uint64_t iova; /* base of addresses used with the keys */
	uint64_t length;
	uint8_t *base; /* where iova is in this process */
	struct ibv_pd *pd;
	struct lb_mw *window; /* NULL: a region's row, or free */
	struct lb_lock lock;
	uint32_t windows; /* windows bound to the region; under lock */
};

struct lb_mr {
	struct ibv_mr ibv; /* first: the handle */
	struct lb_obj obj;
	struct lb_mr_row *row;
};

/* A memory window. Under the lock of the row, except the handle. */
struct lb_mw {
	struct ibv_mw ibv; /* first: the handle */
	struct lb_obj obj;
	uint32_t magic;
	uint32_t key; /* the present rkey, or the rkey of the last bind */
	struct lb_mr_row *row;
	struct lb_mr_row *region; /* NULL: not bound */
	uint64_t qp_order;	  /* of the only QP allowed to use the window;
				   * 0: any */
};

extern struct lb_mr_row *lb_mr_rows; /* LB_ROWS */

/* Keys to memory; between lb_barrier_enter() and _leave(). 0 or an errno. */
int lb_mr_local(uint32_t lkey, uint64_t addr, uint64_t len, uint32_t access,
		const struct ibv_pd *pd, uint8_t **mem);
/* A queue pair, as seen by the owner of regions and windows. */
struct lb_mr_user {
	const struct ibv_pd *pd;
	uint64_t order; /* order of creation */
};
/* The length of everything opened by a key, anywhere; *mem is not set then. */
#define LB_MR_ALL UINT64_MAX
/*
 * Access by a peer of user. *window is the row of a window, whose lock is held
 * then until lb_mr_done(), else NULL.
 */
int lb_mr_remote(uint32_t rkey, uint64_t addr, uint64_t len, uint32_t access,
		 const struct lb_mr_user *user, uint8_t **mem,
		 struct lb_mr_row **window);
static inline void lb_mr_done(struct lb_mr_row **window)
{
	if (lb_likely(!*window))
		return;
	lb_lock_put(&(*window)->lock);
	*window = NULL;
}
int lb_mr_check(const void *addr, size_t length, int access);
/*
 * lb_mr_row_new() returns a free row, or NULL; lb_mr_row_key() the keys of its
 * next use; under lb.big.
 */
struct lb_mr_row *lb_mr_row_new(void);
void lb_mr_row_free(struct lb_mr_row *row);
uint32_t lb_mr_row_key(struct lb_mr_row *row);
static inline struct lb_mr_row *lb_mr_row_of(uint32_t key)
{
	return &lb_mr_rows[key >> 16];
}
void lb_mr_start(void);

/* A child has regions and windows, and their locks anew. */
void lb_mr_fork(enum lb_fork_step step);

#endif /* LB_MEMORY_MR_H */
