/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.h -- a listening endpoint on its device's CM channel: its requests
 * become connections on the device's control thread.
 */

#ifndef RT_CONN_LISTENER_H
#define RT_CONN_LISTENER_H

#include "conn/conn.h"
#include "conn/listener_poller.h"

/* Takes it off the network, waits until no further request can come of it, and
 * has LISTENER_CLOSED written, for that reason. The caller took it off the
 * runtime's list, and holds it. */
void rt_listener_close(struct rpma_rt_listener *listener,
		       enum rpma_rt_reason reason);
/* Off the runtime's list, for the caller to end it. REQUIRES: it is there; the
 * runtime's lock */
void rt_listener_unlist_locked(struct rpma_rt_listener *listener);
/* Control thread: the same as close, for a caller that may not wait; it took
 * the listener off the list. err: an errno that tells more, or 0. */
void rt_listener_end_control(struct rpma_rt_listener *listener,
			     enum rpma_rt_reason reason, int err);
void rt_listener_unref(struct rpma_rt_listener *listener);

#endif /* RT_CONN_LISTENER_H */
