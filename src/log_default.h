/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The log function used unless the program brings its own. */

#ifndef RPMA_LOG_DEFAULT_H
#define RPMA_LOG_DEFAULT_H 1

#include "log.h"

/*
 * To stderr if the level passes the auxiliary threshold, and always to syslog
 * (facility LOCAL7). file_name NULL: no place is given.
 */
rpma__log_function rpma__log_default;

/*
 * Messages are written under this lock, so that no other thread is inside
 * syslog() while a process forks: its child would find syslog's lock taken.
 */
void rpma__log_default_lock(void);
void rpma__log_default_unlock(void);

#endif /* RPMA_LOG_DEFAULT_H */
