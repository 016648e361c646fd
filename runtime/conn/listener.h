/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.h -- a listening endpoint on the runtime's CM channel, and how CM
 * events reach the control thread.
 */

#ifndef RT_CONN_LISTENER_H
#define RT_CONN_LISTENER_H

#include "rpma_rt.h"
#include "conn/conn.h"
#include "events/events.h"

struct rpma_rt_listener {
	/* immutable; target first: the CM id's context points here */
	struct rt_cm_target target;
	struct rpma_rt *rt;
	struct rpma_peer *peer;
	struct rpma_rt_conn_cfg *cfg;
	struct rpma_rt_queue *queue;
	void *user;
	int poller;
	uint16_t port;
	/* the control thread's */
	struct rpma_ep *ep;
	bool closed;
	/* under the runtime's lock */
	struct rpma_rt_listener *next;
};

/* a CM event under way from the event thread to the control thread */
struct rt_cm_msg {
	struct rt_msg msg;
	struct rt_cm_target *target;
	struct rpma_cm_event event;
};

/* The event thread: reads what is there; source is rt's cm_source. */
void rt_cm_ready(struct rt_source *source);
/* Control thread: takes it off the network; handles stay. */
void rt_listener_close_control(struct rpma_rt_listener *listener);
void rt_listener_unref(struct rpma_rt_listener *listener);
/* Control thread: an id that names it was not destroyed, so events of it may
 * come: it is held until nobody reads them any more. */
void rt_cm_keep_control(struct rpma_rt *rt, struct rt_cm_target *target);
/* Nobody does; arg is the runtime. */
int rt_cm_let_go_control(void *arg);

#endif /* RT_CONN_LISTENER_H */
