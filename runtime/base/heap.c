/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * heap.c -- see heap.h. A node's rank is the length of the node's right-most
 * way down, which is at most the logarithm of the number of nodes below: the
 * right subtree always has the smaller rank. Melding walks down right-most ways
 * only, and repairing ranks walks up while ranks change.
 */

#include "base/heap.h"

#include <assert.h>

static uint32_t heap_rank_of(const struct rt_heap_node *node)
{
	return node == NULL ? 0 : node->rank;
}

/* Swaps the node's subtrees if they are in the wrong order and computes the
 * node's rank. Returns whether the rank has changed. */
static bool heap_restore(struct rt_heap_node *node)
{
	struct rt_heap_node *left = node->left;
	uint32_t before = node->rank;

	if (heap_rank_of(left) < heap_rank_of(node->right)) {
		node->left = node->right;
		node->right = left;
	}
	node->rank = heap_rank_of(node->right) + 1;
	return node->rank != before;
}

/* Melds two heaps, each of which may be NULL. The caller sets `up` of the
 * returned node. */
static struct rt_heap_node *heap_meld(struct rt_heap_node *a,
				      struct rt_heap_node *b)
{
	struct rt_heap_node *first = a;

	if (a == NULL || b == NULL)
		return a == NULL ? b : a;
	if (b->key < a->key) {
		first = b;
		b = a;
	}
	first->right = heap_meld(first->right, b);
	first->right->up = first;
	heap_restore(first);
	return first;
}

void rt_heap_insert(struct rt_heap *heap, struct rt_heap_node *node,
		    uint64_t key)
{
	assert(!rt_heap_has(heap, node));
	*node = (struct rt_heap_node){.key = key, .rank = 1};
	heap->first = heap_meld(heap->first, node);
	heap->first->up = NULL;
}

void rt_heap_remove(struct rt_heap *heap, struct rt_heap_node *node)
{
	struct rt_heap_node *below = heap_meld(node->left, node->right);
	struct rt_heap_node *up = node->up;

	assert(rt_heap_has(heap, node));
	if (below != NULL)
		below->up = up;
	if (up == NULL)
		heap->first = below;
	else if (up->left == node)
		up->left = below;
	else
		up->right = below;
	while (up != NULL && heap_restore(up))
		up = up->up;
	*node = (struct rt_heap_node){0};
}
