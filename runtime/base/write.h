/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * write.h -- writes to a descriptor of the program. A reader that has gone, or
 * a file at its limit, is an error of the call; the signal that the kernel
 * sends as well, SIGPIPE or SIGXFSZ, does not reach the program. Any thread.
 */

#ifndef RT_BASE_WRITE_H
#define RT_BASE_WRITE_H

#include <stddef.h>

/* Writes all of the text. ERRORS: RPMA_E_PROVIDER, noted for the log */
int rt_write_all(int fd, const char *text, size_t len);

#endif /* RT_BASE_WRITE_H */
