/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * advice.h: what somebody should type, collected while the machine is looked
 * at, and printed at the end in two lists.
 */

#ifndef CHECK_ADVICE_H
#define CHECK_ADVICE_H

enum advice {
	ADVICE_NEEDED, /* without it an RDMA program does not run */
	ADVICE_SLOW    /* it runs, slower than it could */
};

/* One sentence, then what to type, on a line of its own each. */
__attribute__((format(printf, 3, 4))) void
advise(enum advice kind, const char *type, const char *why, ...);

/* Prints both lists, or that there is nothing to do. */
void advice_print(void);

#endif /* CHECK_ADVICE_H */
