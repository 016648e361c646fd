/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * note.h -- who writes which cache line: the calls that a compiler makes for
 * ThreadSanitizer, as our own, which note thread and line of each store.
 */

#ifndef WRITERS_NOTE_H
#define WRITERS_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The calling thread, from 1; 0: its stores are not noted. */
void note_thread(unsigned thread);
/* From now on, or no more. */
void note_stores(bool yes);
/* Lines in which there may be any writers. Before note_stores(). */
void note_except(const void *from, size_t size);
/* How many stores were noted, and how many lines had a second writer; those
 * are printed. */
uint64_t note_count(void);
unsigned note_conflicts(void);
void note_forget(void);

#endif /* WRITERS_NOTE_H */
