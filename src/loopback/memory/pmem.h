/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pmem.h -- files that stand for persistent memory: their words, and where the
 * words are in the memory of this process. Used only while the device knows
 * power failure; doc/protocols/power.md.
 */

#ifndef LB_MEMORY_PMEM_H
#define LB_MEMORY_PMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LB_PMEM_WORD	   8u
#define LB_PMEM_PAGE_WORDS 512u

/*
 * A file. Everything but the struct is shared with the child that ends the
 * process. owner and counts of a word change by lb_pmem_own() and
 * lb_pmem_release() alone.
 */
struct lb_pmem {
	struct lb_pmem *next;
	dev_t dev;
	ino_t ino;
	size_t words;	  /* whole pages */
	uint64_t *now;	  /* the file */
	uint64_t *image;  /* persistent values of the volatile words */
	uint32_t *owner;  /* 0: persistent, or the queue pair of the word */
	uint32_t *counts; /* volatile words of each page */
};

/* All files, the youngest first; they never end. */
extern struct lb_pmem *lb_pmem_files;

/* The files named by the user, separated by colons; NULL: none. */
void lb_pmem_start(const char *names);
/*
 * Adds the places of a region: shared mappings of files that are named, or of
 * any files. The region is known by its handle.
 */
void lb_pmem_add(const void *region, const void *addr, size_t len, bool any);
void lb_pmem_remove(const void *region);
/* Calls fn for the words of every file that lie in the range, as an interval of
 * words of the file. */
void lb_pmem_each(const void *addr, uint64_t len,
		  void (*fn)(struct lb_pmem *file, size_t from, size_t to,
			     void *arg),
		  void *arg);
/* In a child: the files have no volatile words. */
void lb_pmem_forked(void);

void lb_pmem_own(struct lb_pmem *file, size_t word, uint32_t owner);
static inline void lb_pmem_release(struct lb_pmem *file, size_t word)
{
	if (!file->owner[word])
		return;
	file->owner[word] = 0;
	file->counts[word / LB_PMEM_PAGE_WORDS]--;
}

#endif /* LB_MEMORY_PMEM_H */
