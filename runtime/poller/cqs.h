/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* cqs.h -- the CQs that a poller polls. */

#ifndef RT_POLLER_CQS_H
#define RT_POLLER_CQS_H

struct rt_cq;
struct rt_msg;
struct rt_poller;
struct rt_task;

/* Takes a CQ in; the message is in the rt_cq. */
void rt_cqs_add_message(struct rt_msg *msg, void *owner);
/* The task becomes ready when what the CQ holds now was taken: a poll of it
 * finds nothing, or as many as it can hold are taken; or when it dies. */
void rt_cqs_await_sweep_poller(struct rt_poller *poller, struct rt_cq *cq,
			       struct rt_task *task);
/* A CQ of the poller has failed: its connections die. */
void rt_cqs_fail_poller(struct rt_poller *poller, struct rt_cq *cq);

#endif /* RT_POLLER_CQS_H */
