/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* thousands_heap.c -- counts what two libraries allocate; see the header. */

#include "thousands_heap.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "conn/rings.h"
#include "poller/route.h"
#include "librpma.h"
#include "queue/lane.h"

#define WORD	   8 /* of malloc() before each block */
#define TABLE_SIZE (RT_ROUTE_COUNT * sizeof(struct rt_route_entry))

static _Atomic int64_t bytes[HEAP_ROOMS];
static _Atomic int64_t blocks[HEAP_ROOMS];
static _Atomic int64_t maps;
static _Thread_local enum heap_room room;

/* the functions that the linker gives us for theirs */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd,
		  off_t at);
int __real_rt_rings_new(struct rpma_rt_conn *conn, const uint32_t depths[2],
			uint32_t waiting);
void __real_rt_rings_free(struct rpma_rt_conn *conn);
struct rt_spill *__real_rt_spill_new(uint32_t entries);
void __real_rt_spill_delete(struct rt_spill *spill);

static void count(void *block, int by)
{
	int64_t size = (int64_t)malloc_usable_size(block) + WORD;
	enum heap_room to = room;

	if (block == NULL)
		return;
	if (to == HEAP_OTHER && (size_t)size >= TABLE_SIZE)
		to = HEAP_TABLE;
	/* relaxed: counters, read while nothing is under way */
	atomic_fetch_add_explicit(&bytes[to], by * size, memory_order_relaxed);
	atomic_fetch_add_explicit(&blocks[to], by, memory_order_relaxed);
}

struct heap_count heap_now(void)
{
	struct heap_count now;
	int i;

	/* relaxed, all: as in count() */
	for (i = 0; i < HEAP_ROOMS; i++) {
		now.bytes[i] =
			atomic_load_explicit(&bytes[i], memory_order_relaxed);
		now.blocks[i] =
			atomic_load_explicit(&blocks[i], memory_order_relaxed);
	}
	now.maps = atomic_load_explicit(&maps, memory_order_relaxed);
	return now;
}

/* --------------------------------------------- what the linker wraps --- */

void *__wrap_malloc(size_t size)
{
	void *block = __real_malloc(size);

	count(block, 1);
	return block;
}

void *__wrap_calloc(size_t number, size_t size)
{
	void *block = __real_calloc(number, size);

	count(block, 1);
	return block;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	void *block = __real_aligned_alloc(alignment, size);

	count(block, 1);
	return block;
}

void *__wrap_realloc(void *block, size_t size)
{
	void *bigger;

	count(block, -1);
	bigger = __real_realloc(block, size);
	count(bigger != NULL ? bigger : block, 1);
	return bigger;
}

void __wrap_free(void *block)
{
	count(block, -1);
	__real_free(block);
}

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd,
		  off_t at)
{
	/* relaxed: as in count() */
	atomic_fetch_add_explicit(&maps, 1, memory_order_relaxed);
	return __real_mmap(addr, size, prot, flags, fd, at);
}

/* As much as the program configured work requests. */
int __wrap_rt_rings_new(struct rpma_rt_conn *conn, const uint32_t depths[2],
			uint32_t waiting)
{
	int ret;

	room = HEAP_LEDGER;
	ret = __real_rt_rings_new(conn, depths, waiting);
	room = HEAP_OTHER;
	return ret;
}

void __wrap_rt_rings_free(struct rpma_rt_conn *conn)
{
	room = HEAP_LEDGER;
	__real_rt_rings_free(conn);
	room = HEAP_OTHER;
}

/* The runtime's calls of librpma that make a connection, or end one. */
#define LIBRPMA(name, params, args)           \
	int __real_##name params;             \
	int __wrap_##name params;             \
	int __wrap_##name params              \
	{                                     \
		enum heap_room before = room; \
		int ret;                      \
                                              \
		room = HEAP_LIBRPMA;          \
		ret = __real_##name args;     \
		room = before;                \
		return ret;                   \
	}
LIBRPMA(rpma_conn_req_new_async,
	(struct rpma_peer * peer, const char *addr, const char *port,
	 const struct rpma_conn_cfg *cfg, void *context,
	 struct rpma_conn_req **req),
	(peer, addr, port, cfg, context, req))
LIBRPMA(rpma_conn_req_new_from_event,
	(struct rpma_peer * peer, const struct rpma_cm_event *event,
	 const struct rpma_conn_cfg *cfg, void *context,
	 struct rpma_conn_req **req),
	(peer, event, cfg, context, req))
LIBRPMA(rpma_conn_req_advance,
	(struct rpma_conn_req * req, const struct rpma_cm_event *event),
	(req, event))
LIBRPMA(rpma_conn_req_connect,
	(struct rpma_conn_req * *req,
	 const struct rpma_conn_private_data *pdata, struct rpma_conn **conn),
	(req, pdata, conn))
LIBRPMA(rpma_conn_req_delete, (struct rpma_conn_req * *req), (req))
LIBRPMA(rpma_conn_handle_event,
	(struct rpma_conn * conn, const struct rpma_cm_event *cm_event,
	 enum rpma_conn_event *event),
	(conn, cm_event, event))
LIBRPMA(rpma_conn_destroy_qp, (struct rpma_conn * conn, const void *owner),
	(conn, owner))
LIBRPMA(rpma_conn_delete, (struct rpma_conn * *conn), (conn))

struct rt_spill *__wrap_rt_spill_new(uint32_t entries)
{
	struct rt_spill *spill;

	room = HEAP_SPILL;
	spill = __real_rt_spill_new(entries);
	room = HEAP_OTHER;
	return spill;
}

void __wrap_rt_spill_delete(struct rt_spill *spill)
{
	room = HEAP_SPILL;
	__real_rt_spill_delete(spill);
	room = HEAP_OTHER;
}
