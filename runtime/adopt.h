/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * adopt.h -- CQs of connections made with librpma, polled by a poller.
 * Functions that end in _owner run on that poller. doc/protocols/adoption.md.
 */

#ifndef RT_ADOPT_H
#define RT_ADOPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <urcu/list.h>

#include "rpma_rt.h"
#include "poller/cq_pool.h"

struct rt_poller;
struct rt_spill;

struct rpma_rt_adopted {
	/* immutable from attach to detach, except for the poller's words in the
	 * CQs and their channels */
	struct rpma_rt *rt;
	struct rt_poller *poller;
	struct rpma_rt_queue *queue;
	struct rt_cq_raw raw;
	struct rt_spill *spill; /* handed over with attach; or NULL */
	struct rt_channel channels[2];
	int flags[2]; /* the flags that the channels' fds had before */
	int channels_count;
	uint32_t reserved; /* entries of the lane's spill */
	struct rt_cq cqs[2];
	int cqs_count;
	/* under the runtime's lock */
	struct rpma_rt_adopted *next;
	/* for the dump. listed: as long as the handle exists. is_over: the
	 * queue is not held any more */
	struct cds_list_head listed;
	_Atomic bool is_over;
};

/* Gives all adopted CQs back, in a stop; the handles stay. Pollers still
 * run. */
void rt_adopt_detach_all(struct rpma_rt *rt);

#endif /* RT_ADOPT_H */
