/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* nic_thread.h -- the link thread. */

#ifndef LB_WIRE_NIC_THREAD_H
#define LB_WIRE_NIC_THREAD_H

#include "wire/parts.h"

/* Start it, if it does not run: 0 or an errno. nic->lock held. */
int lb_nic_thread_start(struct lb_nic *nic);
/* End it, and wait until it has. */
void lb_nic_thread_stop(struct lb_nic *nic);
/* It has something to do. */
void lb_nic_thread_wake(struct lb_nic *nic);

#endif /* LB_WIRE_NIC_THREAD_H */
