/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * channel.h -- completion channels.
 */

#ifndef LB_CQ_CHANNEL_H
#define LB_CQ_CHANNEL_H

#include <pthread.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/list.h"
#include "base/process.h"
#include "object/object.h"

struct lb_cq;

struct lb_channel {
	struct ibv_comp_channel ibv; /* first: the handle */
	struct lb_obj obj;
	uint32_t magic;
	pthread_mutex_t lock;  /* the list, and pending of its CQs */
	struct lb_list events; /* CQs with events, in the order of events */
};

void lb_channel_deliver(struct lb_cq *cq, uint32_t events);
void lb_channel_forget(struct lb_cq *cq);
/* One event to the channel of cq, as the fault rules want it. */
void lb_channel_deliver_event(struct lb_cq *cq);
uint64_t lb_channel_event_count(void);
/* A child can only destroy the channels of its parent. */
void lb_channel_fork(enum lb_fork_step step);

#endif /* LB_CQ_CHANNEL_H */
