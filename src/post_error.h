/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* post_error.h -- the error of a post that the device refused. */

#ifndef RPMA_POST_ERROR_H
#define RPMA_POST_ERROR_H 1

/*
 * The error of a refused post: E_AGAIN, the queue is full; else E_PROVIDER,
 * logged.
 */
int rpma__post_error(const char *name, int ret);

#endif /* RPMA_POST_ERROR_H */
