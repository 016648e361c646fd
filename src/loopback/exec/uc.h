/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * uc.h -- executes a message of an unreliable connection.
 */

#ifndef LB_EXEC_UC_H
#define LB_EXEC_UC_H

#include "exec/work.h"

/* LB_EXEC_OK, also if the message was dropped, or LB_EXEC_AGAIN */
int lb_uc_execute(struct lb_work *w);

#endif /* LB_EXEC_UC_H */
