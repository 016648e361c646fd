/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * table.h -- the lock, the table of handles, and what every call on an
 * identifier begins and ends with.
 */

#ifndef LB_CM_TABLE_H
#define LB_CM_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "cm/cm.h"

void lb_cm_lock(void);
void lb_cm_unlock(void);
/* [lock] release it while waiting for cond */
void lb_cm_wait(pthread_cond_t *cond);
/* The private half; NULL with errno EINVAL: not a loopback identifier. */
struct lb_cm_id *lb_cm_id_of(struct rdma_cm_id *id);
struct lb_cm_id *lb_cm_id_find(uint32_t handle); /* [lock] */
/* [lock] walk all that can be found; start with 0, ends with NULL */
struct lb_cm_id *lb_cm_id_walk(uint32_t *cursor);
/* An identifier nobody else knows yet; NULL with errno set. */
struct lb_cm_id *lb_cm_id_new(enum rdma_port_space ps, enum ibv_qp_type type);
int lb_cm_id_insert(struct lb_cm_id *id);  /* [lock] 0 or an errno */
void lb_cm_id_remove(struct lb_cm_id *id); /* [lock] from the table */
void lb_cm_id_delete(struct lb_cm_id *id);
/* [lock] where its events go from now on */
void lb_cm_id_set_channel(struct lb_cm_id *id, struct lb_cm_channel *ch);
bool lb_cm_id_is_sync(struct lb_cm_id *id); /* no lock */
bool lb_cm_id_is_idle(struct lb_cm_id *id); /* no lock */
/*
 * Around every call on an identifier: injected errors, the check of the
 * handle, hooks. NULL with errno: the call fails; else leave returns ret.
 */
struct lb_cm_id *lb_cm_enter(const char *verb, struct rdma_cm_id *cm_id);
int lb_cm_leave(const void *object, int ret);
/* Errno of a call that id's state does not allow. [lock] */
int lb_cm_id_state_errno(const struct lb_cm_id *id);

#endif /* LB_CM_TABLE_H */
