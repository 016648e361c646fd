/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * config.h -- what starts at the first use of the device.
 */

#ifndef LB_VERBS_CONFIG_H
#define LB_VERBS_CONFIG_H

void lb_config_start(void); /* once, by whoever comes first; cheap afterwards */

#endif /* LB_VERBS_CONFIG_H */
