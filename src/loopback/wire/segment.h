/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * segment.h -- the memory of one direction of a link: all that its maker
 * writes, and nothing else. The peer maps it read-only.
 */

#ifndef LB_WIRE_SEGMENT_H
#define LB_WIRE_SEGMENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/base.h"
#include "base/process.h"

enum {
	LB_SEGMENT_RING = 256 * 1024,
	LB_SEGMENT_PAGE = 4096,
};

/* Each line has one lock in its maker's process, under which it is written. */
struct lb_segment {
	/* link.out: of the rings below */
	LB_ALIGNED _Atomic uint64_t req_tail;
	_Atomic uint64_t ans_tail;
	_Atomic uint32_t want; /* odd: requests wait for room */
	uint32_t spare;
	/* a bit for each of lb_record_group() that has members here, or all */
	_Atomic uint64_t groups;
	/* link.in: of the peer's rings */
	LB_ALIGNED _Atomic uint64_t req_head;
	_Atomic uint64_t ans_head;
	_Atomic uint32_t sleep; /* odd: nobody promised to look */

	alignas(LB_SEGMENT_PAGE) uint8_t requests[LB_SEGMENT_RING];
	uint8_t answers[LB_SEGMENT_RING];
};

_Static_assert(sizeof(struct lb_segment) ==
		       LB_SEGMENT_PAGE + 2 * LB_SEGMENT_RING,
	       "the same in each process");

/* A segment, all zero, and its descriptor, sealed. NULL with errno. */
struct lb_segment *lb_segment_new(int *fd);
/*
 * The segment of a peer, behind a descriptor that came from it. NULL with
 * errno, EBADF if it is not what lb_segment_new() makes. One that this process
 * has made itself is not mapped a second time: so a sanitizer sees both ends of
 * a link.
 */
const struct lb_segment *lb_segment_map(int fd);
/* What one of these two gave; NULL is allowed. */
void lb_segment_unmap(const struct lb_segment *segment);

/* A child has none: it knows of them no more, and maps none. */
void lb_segment_fork(enum lb_fork_step step);

#endif /* LB_WIRE_SEGMENT_H */
