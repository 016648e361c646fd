/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Every function that the release had, so that the program asks for each; the
 * list is made from src/legacy/releases.txt.
 */

#ifndef OLD_FUNCTIONS_H
#define OLD_FUNCTIONS_H

/* ends with NULL */
extern const void *const functions[];

#endif /* OLD_FUNCTIONS_H */
