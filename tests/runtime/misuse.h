/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* misuse.h -- shared by the files of runtime_misuse. */

#ifndef MISUSE_H
#define MISUSE_H

#include "stage.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

#define REFUSED(expected, call) CHECK((call) == (expected))

/* misuse_connect.c */
void connect__too_much_private_data_FAILED(struct stage *s);
void answer__too_much_private_data(struct stage *s, bool accepts);

/* misuse_wait.c: in functions that the library calls nothing waits */
void wait__inside_a_callback_INVAL(struct stage *s);
void wait__inside_a_refill_INVAL(struct stage *s);
void wait__inside_an_async_handler_INVAL(struct stage *s);

#endif /* MISUSE_H */
