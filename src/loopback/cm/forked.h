/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * forked.h -- what a child of fork() has of its parent's identifiers.
 */

#ifndef LB_CM_FORKED_H
#define LB_CM_FORKED_H

/* [lock] In a child: its parent's identifiers serve no more. */
void lb_cm_forked(void);

#endif /* LB_CM_FORKED_H */
