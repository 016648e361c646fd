/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * format.h: the file of a replica, and the private data of a connection.
 *
 *	0	struct log_head	 written by the replica alone, not registered
 *	4096	tail		 from here on registered, for writers
 *	8192	records (record.h) LOG_SIZE bytes
 *
 * Positions are bytes from the first record on. Tails and promises are words of
 * 8 bytes, which are never torn, with a term in the upper 24 bits: so words of
 * later terms are larger numbers.
 */

#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H

#include "../common/handshake.h"
#include "../common/record.h"

#define LOG_PAGE    4096
#define LOG_SIZE    ((uint64_t)4 << 20)
#define LOG_TAIL    0	     /* in the region */
#define LOG_RECORDS LOG_PAGE /* likewise */
#define LOG_REGION  (LOG_PAGE + LOG_SIZE)
#define LOG_FILE    (LOG_PAGE + LOG_REGION)
#define LOG_MAGIC   0x31676f6c616d7072u

struct log_head {
	uint64_t magic;
	uint64_t identity; /* log_identity(); 0: of no log yet */
	uint64_t promise;  /* term and writer; 0: none */
};

/* What a writer asks for when connecting. */
struct log_request {
	uint64_t magic;
	uint64_t identity; /* of the replica, as configured at the writer */
	uint64_t promise;  /* the term, and a number of the writer */
};

/* With what a replica accepts, or refuses. */
struct log_answer {
	uint64_t magic;
	uint64_t identity;
	uint64_t promise;
	uint64_t tail;
	struct handshake_region region;
};

/* Makes a tail of a term and an end, or a promise of a term and a writer. */
static inline uint64_t log_word(uint64_t term, uint64_t low)
{
	return term << 40 | (low & 0xffffffffff);
}

static inline uint64_t log_term(uint64_t word)
{
	return word >> 40;
}

static inline uint64_t log_low(uint64_t word)
{
	return word & 0xffffffffff;
}

/* Returns the identity of the replica with the number, 1.., of a log. */
static inline uint64_t log_identity(int number, int replicas)
{
	return (uint64_t)number << 32 | (uint32_t)replicas;
}

#endif /* LOG_FORMAT_H */
