/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * inbound.h -- what comes from other processes.
 */

#ifndef LB_EXEC_INBOUND_H
#define LB_EXEC_INBOUND_H

#include <stddef.h>

struct lb_link;

/* The connection manager; no lock is held, and the thread is the link's. */
struct lb_inbound_ops {
	void (*message)(struct lb_link *link, const void *data, size_t size);
	void (*dead)(struct lb_link *link);
};

void lb_inbound_listen(const struct lb_inbound_ops *ops); /* once */
/* Be called for what comes; before the first queue pair. */
void lb_inbound_start(void);

#endif /* LB_EXEC_INBOUND_H */
