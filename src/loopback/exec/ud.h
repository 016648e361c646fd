/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ud.h -- executes a datagram.
 */

#ifndef LB_EXEC_UD_H
#define LB_EXEC_UD_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "exec/work.h"

/*
 * 0, LB_EXEC_WAIT for the way to another process, or the status of a datagram
 * that cannot be sent.
 */
int lb_ud_execute(struct lb_work *w);
/* A datagram, its ends and its key. */
struct lb_datagram {
	union ibv_gid from;
	union ibv_gid to;
	uint32_t qkey;
	uint8_t traffic_class;
};
/* To the peer, which is the one meant; its rq.pop held. */
void lb_ud_deliver(struct lb_work *w, const struct lb_datagram *datagram);

#endif /* LB_EXEC_UD_H */
