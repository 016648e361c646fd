/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * meet.h -- the processes that send to multicast groups, or have members of
 * some, have links to each other.
 */

#ifndef LB_WIRE_MEET_H
#define LB_WIRE_MEET_H

/*
 * This process is one of them from now on, once it has a number: when this
 * returns there is a link to each of the others that answers within a second.
 * After the first call it costs a load. No lock held.
 */
void lb_meet_all(void);

#endif /* LB_WIRE_MEET_H */
