/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.h -- devices, their contexts and addresses.
 */

#ifndef LB_OBJECT_DEVICE_H
#define LB_OBJECT_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#include "base/list.h"
#include "base/opener.h"
#include "base/process.h"
#include "object/limits.h"
#include "object/object.h"

struct lb_device {
	struct ibv_device ibv; /* first: the handle */
	int index;
	_Atomic int removed;
	/* the table of gid.c; NULL: an empty row */
	_Atomic(const union ibv_gid *) gids[LB_MAX_GIDS];
	/* immutable after lb_config_start() */
	uint64_t guid; /* network byte order */
	char homes[IBV_QPT_UD + 1];
	/* under lb.big */
	int counts[LB_TD - LB_CONTEXT + 1];
	struct lb_list contexts; /* of struct lb_context */
};

/*
 * Where the queue pairs of a type are on a device: of this address only the
 * identity counts, which an executor compares. NULL: nowhere.
 */
static inline const char *lb_home(const struct lb_device *dev,
				  enum ibv_qp_type type)
{
	return dev ? &dev->homes[type] : NULL;
}

struct lb_context {
	struct lb_obj obj;
	struct lb_list node;   /* of the device; under lb.big */
	pthread_mutex_t lock;  /* the list, and the events of objects in the
			        * list */
	struct lb_list asyncs; /* queued, of struct lb_async */
	struct lb_opener opener;
	/* ends with struct ibv_context, as verbs_get_ctx() expects */
	struct verbs_context vctx;
};

extern int lb_device_count;
extern struct lb_device lb_device_all[LB_MAX_DEVICES];
struct lb_context *lb_device_context_of(struct ibv_context *context);
struct lb_device *lb_device_of(struct ibv_context *context);
/* Returns a device; NULL: no such device, or removed. */
struct lb_device *lb_device_at(int index);
void lb_device_start(void);
/* A child goes on with the contexts of its parent, without their events. */
void lb_device_fork(enum lb_fork_step step);

/* gid.c */
extern const union ibv_gid lb_gid_none; /* of rows without an address */
/* Returns the GID in a row, readable for ever; &lb_gid_none: empty row. */
const union ibv_gid *lb_gid_at(const struct lb_device *dev, int index);
/* Returns the row of the GID, or -1. */
int lb_gid_index(const struct lb_device *dev, const union ibv_gid *gid);
/* Lets the table follow the addresses of the machine, unless just done. */
void lb_gid_refresh(void);
struct lb_device *lb_gid_device(const union ibv_gid *gid);
/*
 * Returns the device of an address: 127.a.b.c is device b modulo the number of
 * devices (so 127.0.0.1 is loop0, 127.0.1.1 is loop1 if there is one), any
 * other address of this machine is loop0. NULL: not an address of this machine,
 * or the device was removed. IPv4-mapped IPv6 counts as IPv4, the wildcard
 * belongs to no device.
 */
struct lb_device *lb_gid_device_of_addr(const struct sockaddr *addr);
/* Returns the GID index of addr at the device; 0 if addr is only routed. */
int lb_gid_index_of_addr(const struct lb_device *dev,
			 const struct sockaddr *addr);
void lb_gid_start(void);
void lb_gid_fork(enum lb_fork_step step);

#endif /* LB_OBJECT_DEVICE_H */
