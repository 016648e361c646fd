/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * inbound.h -- what comes from other processes.
 */

#ifndef LB_EXEC_INBOUND_H
#define LB_EXEC_INBOUND_H

/* Be called for what comes; before the first queue pair. */
void lb_inbound_start(void);

#endif /* LB_EXEC_INBOUND_H */
