/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The log function of a program that sets no log function. */

#ifndef RPMA_LOG_DEFAULT_H
#define RPMA_LOG_DEFAULT_H 1

#include "log.h"

/*
 * Writes a message to syslog (facility LOCAL7) in any case, and to stderr if
 * the level passes the auxiliary threshold or RPMA_LOG. Errors go to stderr
 * also where no syslog listens, unless the program has set the auxiliary
 * threshold. file_name NULL: the message has no place.
 */
rpma__log_function rpma__log_default;

/*
 * Locks and unlocks the writing of messages. A fork takes the lock too, so that
 * no other thread is inside syslog() meanwhile: the child would find the lock
 * of syslog taken.
 */
void rpma__log_default_lock(void);
void rpma__log_default_unlock(void);

#endif /* RPMA_LOG_DEFAULT_H */
