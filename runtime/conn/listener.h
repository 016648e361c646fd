/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.h -- a listening endpoint on its device's CM channel: its requests
 * become connections on the device's control thread.
 */

#ifndef RT_CONN_LISTENER_H
#define RT_CONN_LISTENER_H

#include "rpma_rt.h"
#include "conn/cfg.h"
#include "conn/conn.h"

struct rpma_rt_listener {
	/* immutable; target first: the CM id's context points here */
	struct rt_cm_target target;
	struct rpma_rt *rt;
	struct rt_device *device;
	struct rt_conn_cfg cfg;
	uint16_t port;
	struct rpma_ep *ep; /* of whoever takes it off the list */
	bool closed;	    /* the control thread's: requests are refused */
	/* under the runtime's lock */
	struct rpma_rt_listener *next;
};

/* Takes it off the network, and waits until no further request can come of it.
 * The caller took it off the runtime's list; handles stay. */
void rt_listener_close(struct rpma_rt_listener *listener);
void rt_listener_unref(struct rpma_rt_listener *listener);

#endif /* RT_CONN_LISTENER_H */
