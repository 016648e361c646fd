/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * zalloc.h -- memory for objects of the data path.
 */

#ifndef LB_BASE_ZALLOC_H
#define LB_BASE_ZALLOC_H

#include <stddef.h>

/* Memory in whole cache lines, zeroed; free() gives it back. */
void *lb_zalloc(size_t size);

/* Zeroed pages, for what may be large and mostly unused: a page takes no memory
 * before its first use. NULL: there are none. */
void *lb_zalloc_pages(size_t size);
/* Gives the pages of lb_zalloc_pages(size) back. NULL: nothing. */
void lb_zalloc_free_pages(void *pages, size_t size);

#endif /* LB_BASE_ZALLOC_H */
