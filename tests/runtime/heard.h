/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * heard.h -- the log of both libraries, kept for a test that looks at the
 * words. Any thread may log; a poller may log later than the poller delivers.
 */

#ifndef HEARD_H
#define HEARD_H

#include "world.h"

/* Keeps messages from now on, up to the level; each is a line. */
void heard_start(enum rpma_log_level most);
/* Forgets all messages. */
void heard_forget(void);

/* Returns how often the kept messages have the words. */
int heard_count(const char *words);
/* Waits until a message has the words. */
void heard_await(const char *words);
/* Ends the test, with all messages, unless a message has the words. */
void heard_expect(const char *words);
/* Returns a copy of all messages, which the next call changes. */
const char *heard_text(void);

#endif /* HEARD_H */
