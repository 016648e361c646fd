/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mr.c -- memory regions and the table that keys index. A key is 16 bits of
 * row and 16 bits that change with every registration of the row, and differ
 * between lkey and rkey, so that a neighbour's key, an old key, or one used
 * for the other purpose is not valid by accident. Rows change under lb.big;
 * they are read with an sq.lock held, and ibv_dereg_mr() waits for that lock.
 */

#include "loopback.h"
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROW_SHIFT 16
#define TAG_MASK  0xffffu

#define REMOTE_RIGHTS                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define KNOWN_RIGHTS                              \
	(REMOTE_RIGHTS | IBV_ACCESS_LOCAL_WRITE | \
	 (int)IBV_ACCESS_OPTIONAL_RANGE)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static uint32_t next_row; /* where to look for a free one */
static bool can_populate;

void lb_mr_start(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = LB_MAX_MR * sizeof(*lb.rows);
	void *probe;

	/* not calloc: most rows are never touched, and need no memory then */
	lb.rows = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lb.rows == MAP_FAILED) {
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
		return EFAULT;
	*mem = row->base + offset;
	return 0;
}

int lb_mr_local(uint32_t lkey, uint64_t addr, uint64_t len, uint32_t access,
		const struct ibv_pd *pd, uint8_t **mem)
{
	const struct lb_mr_row *row = &lb.rows[lkey >> ROW_SHIFT];

	/* acquire: pairs with the release in row_publish() */
	if (!lkey ||
	    atomic_load_explicit(&row->lkey, memory_order_acquire) != lkey)
		return ENOENT;
	return row_check(row, addr, len, access, pd, mem);
}

int lb_mr_remote(uint32_t rkey, uint64_t addr, uint64_t len, uint32_t access,
		 const struct ibv_pd *pd, uint8_t **mem)
{
	const struct lb_mr_row *row = &lb.rows[rkey >> ROW_SHIFT];

	/* acquire: pairs with the release in row_publish() */
	if (!rkey ||
	    atomic_load_explicit(&row->rkey, memory_order_acquire) != rkey)
		return ENOENT;
	return row_check(row, addr, len, access, pd, mem);
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

int lb_reg_mr_check(const void *addr, size_t length, int access)
{
	if (!length || (uintptr_t)addr + length < (uintptr_t)addr)
		return EINVAL;
	if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED |
		      IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB))
		return EOPNOTSUPP;
	if (access & ~KNOWN_RIGHTS)
		return EINVAL;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return populate(addr, length, access);
}

static struct lb_mr_row *row_find(void)
{
	uint32_t n;

	for (n = 0; n < LB_MAX_MR; n++) {
		uint32_t i = next_row++ % LB_MAX_MR;

		/* relaxed: keys of rows change under lb.big, which we hold */
		if (i && !lb.rows[i].pd)
			return &lb.rows[i];
	}
	return NULL;
}

/* The keys of row's next registration: never 0, never alike. */
static void row_publish(struct lb_mr_row *row)
{
	uint32_t index = (uint32_t)(row - lb.rows);
	uint32_t n = ++row->generation;
	uint32_t tag = (uint32_t)lb_mix(((uint64_t)index << 32) + n);

	/* odd is local, even is remote; n makes neighbours in time differ */
	tag = (tag & 0xff00u) | ((n & 0x7f) << 1);
	/* release, both: a thread that sees the key sees the row */
	atomic_store_explicit(&row->lkey, index << ROW_SHIFT | tag | 1,
			      memory_order_release);
	atomic_store_explicit(&row->rkey, index << ROW_SHIFT | tag,
			      memory_order_release);
}

static int mr_attach(struct lb_mr *mr, struct ibv_pd *ibv_pd, void *addr,
		     size_t length, uint64_t iova, int access)
{
	struct lb_obj *pd = lb_obj_find(ibv_pd, LB_PD);
	struct lb_mr_row *row = row_find();
	int err = !pd ? EINVAL : !row ? ENOMEM : 0;

	if (!err)
		err = lb_obj_add(&mr->obj, &mr->ibv, LB_MR, pd->dev,
				 &mr->ibv.handle);
	if (err)
		return err;
	pd->refs++;
	row->pd = lb_pd_root(ibv_pd);
	row->base = addr;
	row->length = length;
	row->iova = iova;
	row->access = (uint32_t)access;
	row_publish(row);
	mr->row = row;
	mr->ibv.context = ibv_pd->context;
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
	int err = lb_fail("ibv_reg_mr");

	if (!err)
		err = lb_reg_mr_check(addr, length, access);
	if (!err && !(mr = calloc(1, sizeof(*mr))))
		err = ENOMEM;
	if (!err) {
		pthread_mutex_lock(&lb.big);
		err = mr_attach(mr, pd, addr, length, iova, access);
		pthread_mutex_unlock(&lb.big);
	}
	if (!err)
		return &mr->ibv;
	free(mr);
	errno = err;
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

LB_EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct lb_mr *mr = (struct lb_mr *)ibv;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_obj_retire("ibv_dereg_mr", ibv, LB_MR, &obj);
	if (err)
		return err;
	/* release, both: pairs with the acquire of lb_mr_local, _remote() */
	atomic_store_explicit(&mr->row->lkey, 0, memory_order_release);
	atomic_store_explicit(&mr->row->rkey, 0, memory_order_release);
	/* whoever saw the keys still holds an sq.lock: wait for all of them */
	lb_qp_barrier();
	mr->row->pd = NULL;
	((struct lb_pd *)ibv->pd)->obj.refs--;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	free(mr);
	return 0;
}
