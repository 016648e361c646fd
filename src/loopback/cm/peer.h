/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * peer.h -- other processes: what comes from them, and their end.
 */

#ifndef LB_CM_PEER_H
#define LB_CM_PEER_H

void lb_cm_peer_start(void); /* once, no lock */

#endif /* LB_CM_PEER_H */
