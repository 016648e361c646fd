/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mr.c -- memory regions and the table indexed by keys. A key is 16 bits of row
 * and 16 bits drawn at every registration, different for lkey and rkey, so that
 * no neighbour's key, old key, key of another process, or key used for the
 * wrong purpose is valid by accident. Rows of regions change under lb.big;
 * executors read rows, and ibv_dereg_mr() waits for the executors.
 */

#include "memory/mr.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/newer.h"
#include "base/process.h"
#include "base/random.h"
#include "fault/fault.h"
#include "memory/barrier.h"
#include "memory/lost.h"
#include "memory/pd.h"
#include "memory/power.h"
#include "object/limits.h"
#include "object/object.h"
#include "rpma_loopback.h"

/* macros in verbs.h; defined here as functions */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ROW_SHIFT 16	  /* see lb_mr_row_of() */
#define TAG_MASK  0xfffeu /* without the bit of the purpose */

#define REMOTE_RIGHTS                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define KNOWN_RIGHTS                                                   \
	(REMOTE_RIGHTS | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | \
	 IBV_ACCESS_ZERO_BASED | LB_ACCESS_FLUSH |                     \
	 (int)IBV_ACCESS_OPTIONAL_RANGE)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* free rows are used again when there are more than these, the oldest first */
#define FREE_ROWS 1024u

struct lb_mr_row *lb_mr_rows;

/* under lb.big */
static uint32_t fresh_row = 1;	    /* the next row never used */
static uint16_t free_rows[LB_ROWS]; /* formerly used rows, a ring */
static uint32_t free_head, free_tail;
static bool can_populate;

void lb_mr_start(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = LB_ROWS * sizeof(*lb_mr_rows);
	void *probe;

	/* not calloc: most rows are never touched, and need no memory then */
	lb_mr_rows = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lb_mr_rows == MAP_FAILED) {
		lb_log(0, "no memory for the table of memory regions");
		abort();
	}
	probe = mmap(NULL, page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (probe == MAP_FAILED)
		return;
	can_populate = !madvise(probe, page, MADV_POPULATE_WRITE);
	munmap(probe, page);
}

/* --- from keys to memory */

static int row_check(const struct lb_mr_row *row, uint64_t addr, uint64_t len,
		     uint32_t access, const struct ibv_pd *pd, uint8_t **mem)
{
	uint64_t offset = addr - row->iova;

	if (row->pd != pd || (row->access & access) != access)
		return EACCES;
	if (addr < row->iova || len > row->length || offset > row->length - len)
		return len == LB_MR_ALL ? 0 : EFAULT;
	*mem = row->base + offset;
	return 0;
}

int lb_mr_local(uint32_t lkey, uint64_t addr, uint64_t len, uint32_t access,
		const struct ibv_pd *pd, uint8_t **mem)
{
	const struct lb_mr_row *row = lb_mr_row_of(lkey);

	/* acquire: pairs with the release in row_publish() */
	if (!lkey ||
	    atomic_load_explicit(&row->lkey, memory_order_acquire) != lkey)
		return ENOENT;
	return row_check(row, addr, len, access, pd, mem);
}

/* Checks an access by the rkey of a window in the row. */
static int window_check(struct lb_mr_row *row, uint32_t rkey, uint64_t addr,
			uint64_t len, uint32_t access,
			const struct lb_mr_user *user, uint8_t **mem)
{
	const struct lb_mw *mw = row->window;

	/* relaxed: changes only under the lock, which is held */
	if (atomic_load_explicit(&row->rkey, memory_order_relaxed) != rkey)
		return ENOENT;
	if (mw->qp_order && mw->qp_order != user->order)
		return EACCES;
	return row_check(row, addr, len, access, user->pd, mem);
}

int lb_mr_remote(uint32_t rkey, uint64_t addr, uint64_t len, uint32_t access,
		 const struct lb_mr_user *user, uint8_t **mem,
		 struct lb_mr_row **window)
{
	struct lb_mr_row *row = lb_mr_row_of(rkey);
	int err;

	*window = NULL;
	/* acquire: pairs with the release in row_publish(), or in mw.c */
	if (!rkey ||
	    atomic_load_explicit(&row->rkey, memory_order_acquire) != rkey)
		return ENOENT;
	if (lb_likely(!row->window))
		return row_check(row, addr, len, access, user->pd, mem);
	lb_lock_get(&row->lock);
	err = window_check(row, rkey, addr, len, access, user, mem);
	if (err)
		lb_lock_put(&row->lock);
	else
		*window = row;
	return err;
}

/* --- registration */

/*
 * Bring the pages in, as pinning does, and learn on the way whether they are
 * there and writable. An old kernel cannot; then the first use tells.
 */
static int populate(const void *addr, size_t length, int access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1);
	uintptr_t to = ((uintptr_t)addr + length + page - 1) & ~(page - 1);
	int advice = access & IBV_ACCESS_LOCAL_WRITE ? MADV_POPULATE_WRITE
						     : MADV_POPULATE_READ;

	if (!can_populate || !madvise((void *)from, to - from, advice))
		return 0;
	return errno == ENOMEM || errno == EINVAL ? EFAULT : errno;
}

int lb_mr_check(const void *addr, size_t length, int access)
{
	int err;

	if ((uintptr_t)addr + length < (uintptr_t)addr)
		return EINVAL;
	if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB))
		return lb_log_refuse(EOPNOTSUPP,
				     "ibv_reg_mr(): access %#x: the device has "
				     "neither ON_DEMAND nor HUGETLB",
				     access);
	if (access & ~KNOWN_RIGHTS)
		return lb_log_refuse(EINVAL,
				     "ibv_reg_mr(): access %#x: %#x is unknown",
				     access, access & ~KNOWN_RIGHTS);
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return lb_log_refuse(EINVAL,
				     "ibv_reg_mr(): access %#x: remote writes "
				     "need LOCAL_WRITE too",
				     access);
	err = length ? populate(addr, length, access) : 0;
	if (err)
		lb_log_refuse(err,
			      "ibv_reg_mr(): %zu bytes at %p are not all "
			      "mapped, or not writable",
			      length, addr);
	return err;
}

/* Memory is used for as many rows as there have been at once, and a few. */
struct lb_mr_row *lb_mr_row_new(void)
{
	uint32_t nfree = free_tail - free_head;

	if (fresh_row < LB_ROWS && nfree <= FREE_ROWS)
		return &lb_mr_rows[fresh_row++];
	return nfree ? &lb_mr_rows[free_rows[free_head++ % LB_ROWS]] : NULL;
}

void lb_mr_row_free(struct lb_mr_row *row)
{
	row->pd = NULL;
	free_rows[free_tail++ % LB_ROWS] = (uint16_t)(row - lb_mr_rows);
}

/* Returns an even key, never 0, and different from the key before. */
uint32_t lb_mr_row_key(struct lb_mr_row *row)
{
	uint32_t tag;

	do {
		lb_random_draw(&tag, sizeof(tag));
		tag &= TAG_MASK;
	} while (tag == row->tag);
	row->tag = tag;
	return (uint32_t)(row - lb_mr_rows) << ROW_SHIFT | tag;
}

static void row_publish(struct lb_mr_row *row)
{
	uint32_t key = lb_mr_row_key(row);

	/* odd is local, even is remote */
	/* release, both: a thread that sees the key sees the row */
	atomic_store_explicit(&row->lkey, key | 1, memory_order_release);
	atomic_store_explicit(&row->rkey, key, memory_order_release);
}

static bool find_region(const void *addr, struct lb_lost_region *region)
{
	uint32_t i;

	for (i = 1; i < LB_ROWS; i++) {
		const struct lb_mr_row *row = &lb_mr_rows[i];

		/* acquire: pairs with the release in row_publish() */
		region->lkey =
			atomic_load_explicit(&row->lkey, memory_order_acquire);
		if (!region->lkey ||
		    (uintptr_t)addr - (uintptr_t)row->base >= row->length)
			continue;
		region->base = row->base;
		region->length = row->length;
		return true;
	}
	return false;
}

static int mr_attach(struct lb_mr *mr, struct ibv_pd *ibv_pd, void *addr,
		     size_t length, uint64_t iova, int access)
{
	struct lb_obj *pd = lb_object_find(ibv_pd, LB_PD);
	struct lb_mr_row *row = pd ? lb_mr_row_new() : NULL;
	int err;

	if (!row)
		return pd ? ENOMEM : EINVAL;
	mr->ibv.context = ibv_pd->context;
	err = lb_object_add(&mr->obj, &mr->ibv, LB_MR, pd->dev,
			    &mr->ibv.handle);
	if (err) {
		lb_mr_row_free(row);
		return err;
	}
	pd->refs++;
	lb_lost_watch(find_region);
	row->pd = lb_pd_root(ibv_pd);
	row->base = addr;
	row->length = length;
	row->iova = iova;
	row->access = (uint32_t)access;
	row_publish(row);
	mr->row = row;
	mr->ibv.pd = ibv_pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	/* relaxed: this thread has just stored them */
	mr->ibv.lkey = atomic_load_explicit(&row->lkey, memory_order_relaxed);
	mr->ibv.rkey = atomic_load_explicit(&row->rkey, memory_order_relaxed);
	return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			     uint64_t iova, int access)
{
	struct lb_mr *mr = NULL;
	int err = lb_fault_errno("ibv_reg_mr");

	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	if (!err)
		err = lb_mr_check(addr, length, access);
	if (!err && !(mr = calloc(1, sizeof(*mr))))
		err = ENOMEM;
	if (!err) {
		pthread_mutex_lock(&lb.big);
		err = mr_attach(mr, pd, addr, length, iova, access);
		pthread_mutex_unlock(&lb.big);
	}
	if (!err && lb_power_is_on())
		lb_power_register(mr, addr, length,
				  access & LB_RIGHT_FLUSH_PERSISTENT);
	if (!err)
		return &mr->ibv;
	free(mr);
	lb_error_of("ibv_reg_mr", err);
	return NULL;
}

LB_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
				    size_t length, int access)
{
	return reg_mr(pd, addr, length, (uintptr_t)addr, access);
}

LB_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
					 size_t length, uint64_t iova,
					 int access)
{
	return reg_mr(pd, addr, length, iova, access);
}

LB_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
					  size_t length, uint64_t iova,
					  unsigned int access)
{
	return reg_mr(pd, addr, length, iova, (int)access);
}

/*
 * Closes the keys of a region; returns false if windows are bound to the
 * region.
 */
static bool row_close(struct lb_mr_row *row)
{
	bool closed;

	lb_lock_get(&row->lock);
	closed = !row->windows;
	if (closed) {
		/* release, both: pairs with the acquire in lb_mr_local() */
		atomic_store_explicit(&row->lkey, 0, memory_order_release);
		atomic_store_explicit(&row->rkey, 0, memory_order_release);
	}
	lb_lock_put(&row->lock);
	return closed;
}

LB_EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct lb_mr *mr = (struct lb_mr *)ibv;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_object_retire("ibv_dereg_mr", ibv, LB_MR, &obj);
	if (err)
		return err;
	if (!row_close(mr->row)) {
		lb_object_put_back(obj);
		pthread_mutex_unlock(&lb.big);
		lb_log_misuse(
			"ibv_dereg_mr(%p): memory windows are bound to it",
			(void *)ibv);
		return lb_error(EBUSY);
	}
	lb_barrier_wait(); /* whoever saw the keys may still use them */
	if (lb_power_is_on())
		lb_power_deregister(mr);
	lb_mr_row_free(mr->row);
	((struct lb_pd *)ibv->pd)->obj.refs--;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	free(mr);
	return 0;
}

/* --- fork */

void lb_mr_fork(enum lb_fork_step step)
{
	uint32_t i;

	/* threads of the parent may have had locks */
	for (i = 1; step == LB_FORK_CHILD && i < fresh_row; i++)
		lb_lock_init(&lb_mr_rows[i].lock);
}
