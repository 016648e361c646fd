/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* channel.h -- events of a poller's channels, and CQs that it lets go. */

#ifndef RT_POLLER_CHANNEL_H
#define RT_POLLER_CHANNEL_H

struct rt_cq;
struct rt_msg;
struct rt_poller;

/* The program closed the poller's descriptors, or one of a channel. */
void rt_channel_lose_fds(struct rt_poller *poller, int err);
/* What follows a sleep: bell off, channel events read; how many. */
int rt_channel_wake(struct rt_poller *poller);
/* A CQ is to be let go; the message is in the rt_cq. */
void rt_channel_leave_message(struct rt_msg *msg, void *owner);
/* Lets go of those CQs, not while a batch is routed; how many. */
int rt_channel_let_go(struct rt_poller *poller);
/* Gives an adopted CQ back to its owner, armed, its events acknowledged. */
void rt_channel_give_back_poller(struct rt_poller *poller, struct rt_cq *cq);

#endif /* RT_POLLER_CHANNEL_H */
