/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * port.h -- names that one process of a network namespace has, and the question
 * which one that is. doc/protocols/cm_wire.md.
 */

#ifndef LB_WIRE_PORT_H
#define LB_WIRE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process.h"

struct lb_nic;
struct lb_port;
struct lb_ask;

enum { LB_PORT_NAME = 48 };

/*
 * Have a name. None of these waits, and all take a leaf. NULL with errno:
 * EADDRINUSE if another process has it.
 */
struct lb_port *lb_port_hold(const char *name);
/* Returns true if a process, this or another, has the name. */
bool lb_port_is_held(const char *name);
/*
 * Questions for it are answered from now on, with the number of nic, whose
 * thread runs. 0 or an errno.
 */
int lb_port_listen(struct lb_port *port, struct lb_nic *nic);
void lb_port_release(struct lb_port *port); /* NULL is fine */

/*
 * By the link thread, no lock held, once for each question that was not
 * cancelled before: the number of the process that has the name, or 0: it has
 * gone, or is no such process. *ask ends with the call.
 */
typedef void lb_port_fn(struct lb_ask *ask, uint32_t token, unsigned number);

/*
 * Ask for the process that listens at one of these names; NULL ends them. NULL
 * with errno, ECONNREFUSED: none does.
 */
struct lb_ask *lb_port_ask(struct lb_nic *nic, const char *const names[],
			   lb_port_fn *fn, uint32_t token);
/* Before fn has returned. It may still be called. */
void lb_port_cancel(struct lb_ask *ask);

void lb_port_fork(enum lb_fork_step step);

#endif /* LB_WIRE_PORT_H */
