/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ud.h -- executes a datagram.
 */

#ifndef LB_EXEC_UD_H
#define LB_EXEC_UD_H

#include "exec/work.h"

/* 0 or the status of a datagram that cannot be sent */
int lb_ud_execute(struct lb_work *w);

#endif /* LB_EXEC_UD_H */
