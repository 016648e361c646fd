/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loop.h -- the loopback device's own controls, for tests that run on other
 * devices too: found when the process has that device, preloaded or linked.
 */

#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>

#include "rpma_loopback.h"

struct loop {
	int (*fault)(const char *rules);
	void (*fault_clear)(void);
	uint64_t (*fault_count)(void);
	void (*set_hook)(rpma_loopback_hook_fn hook, void *arg);
	void (*set_seed)(uint64_t seed);
	int (*remove_device)(int index);
	int (*restore_device)(int index);
	int (*raise)(int event_type, void *object);
	int (*raise_cm)(int event_type, int status, struct rdma_cm_id *id);
	int (*break_cq)(struct ibv_cq *cq);
	int (*spurious_event)(struct ibv_cq *cq);
	enum rpma_loopback_mode (*get_mode)(void);
	void (*stats)(struct rpma_loopback_stats *stats);
};

/* NULL where the device is another one. Any thread. */
const struct loop *loop_get(void);

/* A hook that notes the queue pair of each post of sends. Any thread, one at a
 * time. */
void loop_note_post(enum rpma_loopback_point point, const void *object,
		    void *arg);
/* Returns the queue pair of the last post that was noted. */
struct ibv_qp *loop_posted(void);

#endif /* LOOP_H */
