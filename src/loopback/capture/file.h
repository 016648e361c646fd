/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * file.h -- the file that packets are written to, in the form of pcapng. Each
 * is written by one write(), so the file is whole whenever the process is
 * killed. Any thread.
 */

#ifndef LB_CAPTURE_FILE_H
#define LB_CAPTURE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/packet.h"

extern _Atomic bool lb_file_wanted;

static inline bool lb_file_is_wanted(void)
{
	/* relaxed: set before the first queue pair is made, and an option */
	return __builtin_expect(
		atomic_load_explicit(&lb_file_wanted, memory_order_relaxed),
		false);
}

/*
 * From now on: into name.PID.pcapng, which the first packet makes. What goes
 * wrong is said on stderr, once.
 */
void lb_file_start(const char *name);
/* A child has a file of its own. */
void lb_file_forked(void);
void lb_file_write(const struct lb_packet *packet);

#endif /* LB_CAPTURE_FILE_H */
