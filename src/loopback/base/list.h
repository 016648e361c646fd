/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * list.h -- doubly linked lists. The head is a node too; a node that is on no
 * list points to itself. A comment at the head says which lock guards a list.
 */

#ifndef LB_LIST_H
#define LB_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct lb_list {
	struct lb_list *prev;
	struct lb_list *next;
};

#define lb_entry(node, type, member) \
	((type *)(void *)((char *)(node) - offsetof(type, member)))

static inline void lb_list_init(struct lb_list *list)
{
	list->prev = list;
	list->next = list;
}

static inline bool lb_list_is_empty(const struct lb_list *list)
{
	return list->next == list;
}

static inline void lb_list_push(struct lb_list *list, struct lb_list *node)
{
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}

/* Take node off its list; harmless if it is on none. */
static inline void lb_list_del(struct lb_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	lb_list_init(node);
}

#endif /* LB_LIST_H */
