/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fd.h -- an eventfd that counts events, one unit each.
 */

#ifndef LB_BASE_FD_H
#define LB_BASE_FD_H

#include <stdint.h>

void lb_fd_ring(int fd, uint64_t n);
/* Take n units back, if no reader was faster: a reader then finds nothing. */
void lb_fd_unring(int fd, uint32_t n);
/* One unit, waiting unless the fd is O_NONBLOCK. 0, or -1 with errno. */
int lb_fd_wait(int fd);

/* An eventfd that a parent process has too becomes one of this process. */
void lb_fd_renew(int fd);

#endif /* LB_BASE_FD_H */
