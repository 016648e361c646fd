/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump_text.h -- dumps as strings, at a time that the test chooses: the clocks
 * of the process are those of this file.
 */

#ifndef DUMP_TEXT_H
#define DUMP_TEXT_H

#include <stdint.h>

#include "rpma_rt.h"

/* The clocks of the calling thread, or of all, are so many ms ahead. */
void dump_text_set_ahead(uint32_t ms);
void dump_text_add_ahead_all(uint32_t ms);

/* Returns a dump as a string; freed by the caller. */
char *dump_text(struct rpma_rt *rt, enum rpma_rt_dump_format format);
/* Returns a dump as if so many ms had passed without events. */
char *dump_text_later(struct rpma_rt *rt, enum rpma_rt_dump_format format,
		      uint32_t ms);

/* Aborts with the text unless the words are there. */
void dump_text_expect(const char *text, const char *words);

/* How many of that kind look wrong, in a text of Prometheus. */
uint64_t dump_text_count(const char *text, const char *kind);

/* Returns a dump as dump_text_later() does, but of a moment in which every
 * poller sleeps. A sleeping poller wakes now and then for a moment; in a dump
 * of such a moment the poller would look stuck, because the poller has not read
 * the clock since before the ms that the dump pretends to have passed. */
char *dump_text_asleep(struct rpma_rt *rt, enum rpma_rt_dump_format format,
		       uint32_t ms);

/* Until every poller sleeps. */
void dump_text_await_sleep(struct rpma_rt *rt);

/* Until every poller sleeps, or has read the clock within so many ms: it does
 * so every 1,024 rounds, which is nothing in a second of its time, but not in a
 * second of the test's. */
void dump_text_await_clock(struct rpma_rt *rt, uint32_t ms);

#endif /* DUMP_TEXT_H */
