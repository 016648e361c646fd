/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The log function used unless the program brings its own. */

#ifndef RPMA_LOG_DEFAULT_H
#define RPMA_LOG_DEFAULT_H 1

#include "log.h"

/*
 * Always to syslog (facility LOCAL7), and to stderr if the level passes the
 * auxiliary threshold or RPMA_LOG; errors also where no syslog listens, unless
 * the program has set that threshold. file_name NULL: no place is given.
 */
rpma__log_function rpma__log_default;

/*
 * Messages are written under this lock, so that no other thread is inside
 * syslog() while a process forks: its child would find syslog's lock taken.
 */
void rpma__log_default_lock(void);
void rpma__log_default_unlock(void);

#endif /* RPMA_LOG_DEFAULT_H */
