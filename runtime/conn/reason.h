/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reason.h -- the reason and the detail in CLOSED when a CM event, or a failed
 * call, ends a connection. Runs on the device's control thread, but for refused
 * posts.
 */

#ifndef RT_CONN_REASON_H
#define RT_CONN_REASON_H

#include <stdint.h>

#include "rpma_rt.h"
#include "base/failure.h"

struct rpma_rt_conn;

struct rt_reason {
	enum rpma_rt_reason reason;
	enum rt_step step; /* the step that failed; RT_STEP_NONE: no step */
	int err;	   /* error of the step, see failure.h */
	/* value that rpma_rt_completion_detail() returns: 0, a negative errno,
	 * or a reject reason of the CM. */
	uint32_t detail;
};

struct rt_reason rt_reason_of_event(const struct rpma_cm_event *event);
/* err: an errno, or 0. */
struct rt_reason rt_reason_of_step(enum rt_step step, int err);
/* Logs the end of a connection: as an error if the connection failed or the
 * peer did not take the connection, otherwise as an information. */
void rt_reason_log_death(struct rpma_rt_conn *conn,
			 const struct rt_reason *why);

/* Keeps the errno with which the device refused a post; answer: of the verb.
 * Any thread that posts. */
__attribute__((cold)) void rt_reason_refused(struct rpma_rt_conn *conn,
					     int answer);
/* Returns the errno kept by rt_reason_refused(); 0: no errno. Thread: the
 * caller of rt_reason_refused(), or the control thread after RT_CTL_REFUSED. */
int rt_reason_refusal(const struct rpma_rt_conn *conn);

#endif /* RT_CONN_REASON_H */
