/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * advice.h: commands that the user should type, collected while the machine is
 * examined, and printed at the end in two lists.
 */

#ifndef CHECK_ADVICE_H
#define CHECK_ADVICE_H

enum advice {
	ADVICE_NEEDED, /* without the command an RDMA program does not run */
	ADVICE_SLOW    /* a program runs, but slower than possible */
};

/* Adds a sentence, and the command to type, on a separate line. */
__attribute__((format(printf, 3, 4))) void
advise(enum advice kind, const char *type, const char *why, ...);

/* Prints both lists, or that there is nothing to do. */
void advice_print(void);

#endif /* CHECK_ADVICE_H */
