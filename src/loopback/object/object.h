/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * object.h -- the registry of live handles.
 */

#ifndef LB_OBJECT_OBJECT_H
#define LB_OBJECT_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct lb_device;

enum lb_type {
	LB_NONE,
	LB_CONTEXT = 0x4c420001, /* the magic words of the objects */
	LB_PD,
	LB_MR,
	LB_CHANNEL,
	LB_CQ,
	LB_SRQ,
	LB_QP,
	LB_AH,
	LB_MW,
	LB_TD,
	/* the magic word of an object made by a parent process */
	LB_INHERITED = 0x4c4200ff,
};

/*
 * The common part of every object: the place in the registry of live handles,
 * and the number of references. Under lb.big.
 */
struct lb_obj {
	struct lb_obj *next;
	void *handle; /* the handle of the application */
	/* in the handle, and damaged if not the same any more: */
	struct ibv_context *context;
	uint32_t *word;	 /* the number, NULL without a number */
	uint32_t number; /* the right value of the number */
	enum lb_type type;
	enum lb_type was; /* before lb_object_del() */
	int refs;
	struct lb_device *dev;
	bool is_inherited; /* from the parent process */
	_Atomic bool is_said;
};

/* All but lb_object_check() and lb_object_retire() under lb.big. */

/*
 * 0, and *word (may be NULL) is a number of the type's own, or ENOMEM when
 * the device's table is full.
 */
int lb_object_add(struct lb_obj *obj, void *handle, enum lb_type type,
		  struct lb_device *dev, uint32_t *word);
/* Returns the object, unless a parent process made the object; or NULL. */
struct lb_obj *lb_object_find(const void *handle, enum lb_type type);
void lb_object_del(struct lb_obj *obj);
void lb_object_put_back(struct lb_obj *obj); /* undoes lb_object_del() */
/* Returns the object if handle is live, else NULL with errno ENOENT. */
struct lb_obj *lb_object_check(const void *handle, enum lb_type type);
/*
 * Destroy's first half: faults, the handle, references. 0 with lb.big held
 * and *obj unregistered, or an errno, which is set.
 */
int lb_object_retire(const char *verb, const void *handle, enum lb_type type,
		     struct lb_obj **obj);

/*
 * Marks all objects of a type as objects of the parent process, in a child, and
 * calls fn for each. No lock of such an object may be taken before fn has made
 * the lock anew: a thread of the parent may have held the lock.
 */
void lb_object_inherit(enum lb_type type, void (*fn)(struct lb_obj *obj));
/*
 * Prints that the object belongs to the parent process, once for each object;
 * returns EINVAL. Any lock may be held.
 */
int lb_object_refuse(struct lb_obj *obj);

#endif /* LB_OBJECT_OBJECT_H */
