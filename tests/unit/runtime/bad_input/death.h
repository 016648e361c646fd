/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Mistakes of a program that assertions report where those are compiled: made
 * in a child, whose last message must name file and line.
 */

#ifndef RT_DEATH_H
#define RT_DEATH_H

/* The child calls mistake(arg) and must die of an assertion in that file. */
void death_expect(const char *file, void (*mistake)(void *arg), void *arg);

#endif /* RT_DEATH_H */
