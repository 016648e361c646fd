/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bytes.h -- the bytes of a file of persistent memory, and what a power failure
 * left of these bytes.
 */

#ifndef POWER_BYTES_H
#define POWER_BYTES_H

#include <stdint.h>

#define FILE_SIZE 16384u
#define RANGE	  256u /* bytes that most scenarios write */

/* What a failure left of a range: a set. */
enum {
	LOST = 1,  /* the values before */
	THERE = 2, /* the values written last */
	TORN = 4,  /* some words of each */
	ANY = LOST | THERE | TORN,
};

/* Makes the file, with version 0. */
void bytes_make_file(const char *path);
/* Reads the file, whose FILE_SIZE bytes go to bytes. */
void bytes_read_file(const char *path, uint8_t *bytes);
/* Writes the bytes of a version, which depend on the place in the file. */
void bytes_fill(uint8_t *mem, uint32_t at, uint32_t len, unsigned version);
/* Returns what is left of a range in which a version followed another. */
int bytes_judge(const uint8_t *file, uint32_t at, uint32_t len, unsigned before,
		unsigned after);

#endif /* POWER_BYTES_H */
