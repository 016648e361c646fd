/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mcast.h -- multicast groups, between mcast.c, which keeps them, ah.c, which
 * addresses them, and ud.c, which sends to their members.
 */

#ifndef LB_QP_MCAST_H
#define LB_QP_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/process.h"
#include "object/limits.h"

struct lb_qp;

#define LB_MCAST_QPN 0xffffffu /* "all members of the group" */

/* A queue pair in a group: still that one while its order is the same. */
struct lb_member {
	struct lb_qp *qp;
	uint64_t order;
};

bool lb_mcast_is(const union ibv_gid *gid);
/* Copy the members of the group to to, which has room for all. How many. */
uint32_t lb_mcast_members(const union ibv_gid *gid,
			  struct lb_member to[LB_MAX_MCAST_ATTACH]);
/* A child is in none of its parent's groups. */
void lb_mcast_fork(enum lb_fork_step step);

#endif /* LB_QP_MCAST_H */
