/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* zalloc.c -- memory for objects of the data path. Any thread. */

#include "base/zalloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock.h"

void *lb_zalloc(size_t size)
{
	void *mem;

	size = (size + LB_CACHE_LINE - 1) & ~(size_t)(LB_CACHE_LINE - 1);
	mem = aligned_alloc(LB_CACHE_LINE, size ? size : LB_CACHE_LINE);
	if (mem)
		memset(mem, 0, size);
	return mem;
}

/* bytes up to which zeroed memory of the heap costs less than fresh pages */
#define OF_HEAP ((size_t)64 * 1024)

void *lb_zalloc_pages(size_t size)
{
	void *pages;

	if (size <= OF_HEAP)
		return lb_zalloc(size);
	pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return pages != MAP_FAILED ? pages : NULL;
}

void lb_zalloc_free_pages(void *pages, size_t size)
{
	if (size <= OF_HEAP)
		free(pages);
	else if (pages)
		munmap(pages, size);
}
