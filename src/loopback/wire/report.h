/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* report.h -- what has gone through a link, for people: RPMA_LOOPBACK_STATS. */

#ifndef LB_WIRE_REPORT_H
#define LB_WIRE_REPORT_H

struct lb_link;

/* Links are reported from now on: before the first one. */
void lb_report_start(void);
/* The link's line on stderr, once in its life. Both of its locks held. */
void lb_report_end(struct lb_link *link);
/* Reports a link, at the end of the process; a callback of lb_nic_each(). */
void lb_report_link(struct lb_link *link, void *arg);

#endif /* LB_WIRE_REPORT_H */
