/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * watch.h -- descriptors that the link thread watches until they are closed.
 */

#ifndef LB_WIRE_WATCH_H
#define LB_WIRE_WATCH_H

#include <stdbool.h>

#include "wire/parts.h"

/* False: the system has no room for it. A descriptor of -1 is not watched. */
bool lb_watch_add(struct lb_nic *nic, struct lb_watch *watch);
void lb_watch_leave(struct lb_nic *nic, struct lb_watch *watch);
/* Leave, and close the descriptor. */
void lb_watch_close(struct lb_nic *nic, struct lb_watch *watch);

#endif /* LB_WIRE_WATCH_H */
