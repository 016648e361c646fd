/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * small_cq.h -- a device whose CQs have few entries, for tests in which
 * connections have CQs of their own: a poller makes each CQ twice as large as
 * the last, up to what the device has.
 */

#ifndef RUNTIME_SMALL_CQ_H
#define RUNTIME_SMALL_CQ_H

/* Devices say from here on that a CQ has no more entries. */
void small_cq_limit(int entries);

#endif /* RUNTIME_SMALL_CQ_H */
