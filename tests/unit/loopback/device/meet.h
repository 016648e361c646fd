/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * meet.h -- a queue pair in each of two processes, connected to each other,
 * with much registered memory, and what a test posts to them.
 */

#ifndef LOOPBACK_MEET_H
#define LOOPBACK_MEET_H

#include "fixture.h"
#include "two.h"

#define MEET_SIZE (5u << 20) /* bytes of memory that are registered */

struct meet_opts {
	int with_srq;
	uint8_t rnr_retry; /* 7: without end */
	int is_endless;	   /* it tries again for ever */
	uint8_t timeout;   /* of a try, as verbs have it; 0: 14 */
	uint32_t psn_gap;  /* more than what the other one sends */
	int is_uc;
	int is_threaded; /* the mode of the device */
};

/* What the other process has to know. */
struct meet_side {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
};

struct meet {
	const struct two_process *self;
	struct end end;
	uint8_t *mem; /* MEET_SIZE */
	struct ibv_mr *mr;
	struct meet_side other;
};

/* Connected both ways when it returns, in both processes. */
void meet_begin(struct meet *m, const struct two_process *self,
		const struct meet_opts *opts);
/* Begin in steps: meet_make() does not connect, meet_connect() connects this
 * end. */
void meet_make(struct meet *m, const struct two_process *self,
	       const struct meet_opts *opts);
void meet_connect(struct meet *m, const struct meet_opts *opts);
void meet_end(struct meet *m);

/* Signaled, of length bytes from offset `at`, to offset `to` of the other's. */
int meet_post(struct meet *m, enum ibv_wr_opcode opcode, uint64_t id,
	      uint32_t at, uint32_t length, uint32_t to, unsigned flags);
int meet_recv(struct meet *m, uint64_t id, uint32_t at, uint32_t length);
/* Bytes that depend on the seed; are they there? */
void meet_fill(struct meet *m, uint32_t at, uint32_t length, uint32_t seed);
void meet_check(struct meet *m, uint32_t at, uint32_t length, uint32_t seed);

#endif /* LOOPBACK_MEET_H */
