/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * heap.h -- a leftist heap with the least key first; the nodes are embedded in
 * the objects that the heap orders. Nothing is allocated, and inserting or
 * removing any node takes O(log n) steps in the worst case: a poller's round is
 * as short with ten thousand deadlines as with ten. Only a single thread at a
 * time may use a heap.
 */

#ifndef RT_BASE_HEAP_H
#define RT_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a node; zeroed before the first insertion */
struct rt_heap_node {
	uint64_t key;
	/* number of nodes on the right-most way down from this node */
	uint32_t rank;
	struct rt_heap_node *up;
	struct rt_heap_node *left; /* rank is not less than the rank of right */
	struct rt_heap_node *right;
};

/* a heap; empty when zeroed */
struct rt_heap {
	/* the node with the least key; NULL: the heap is empty */
	struct rt_heap_node *first;
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
