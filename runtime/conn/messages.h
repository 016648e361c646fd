/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * messages.h -- messages from the control thread to a connection's poller.
 * doc/protocols/connection.md.
 */

#ifndef RT_CONN_MESSAGES_H
#define RT_CONN_MESSAGES_H

struct rt_msg;

/* Runs conn.poll_msg: the bits that were set, in the order of life. */
void rt_messages_poll(struct rt_msg *msg, void *owner);

#endif /* RT_CONN_MESSAGES_H */
