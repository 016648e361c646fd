/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * heap.h -- a leftist heap, the least key first; its nodes are embedded in the
 * objects that it orders. Nothing is allocated, and inserting and removing any
 * node take O(log n) steps in the worst case: a poller's round is as short with
 * ten thousand deadlines as with ten. One thread at a time.
 */

#ifndef RT_BASE_HEAP_H
#define RT_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* zeroed before it is inserted for the first time */
struct rt_heap_node {
	uint64_t key;
	uint32_t rank; /* nodes on the right-most way down from it */
	struct rt_heap_node *up;
	struct rt_heap_node *left; /* rank not less than the right one's */
	struct rt_heap_node *right;
};

/* empty when zeroed */
struct rt_heap {
	struct rt_heap_node *first; /* least key; NULL: empty */
};

static inline bool rt_heap_has(const struct rt_heap *heap,
			       const struct rt_heap_node *node)
{
	return node->up != NULL || heap->first == node;
}

/* REQUIRES: the node is in no heap */
void rt_heap_insert(struct rt_heap *heap, struct rt_heap_node *node,
		    uint64_t key);
/* REQUIRES: the node is in this heap */
void rt_heap_remove(struct rt_heap *heap, struct rt_heap_node *node);

#endif /* RT_BASE_HEAP_H */
