/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * segment.h -- the memory of a direction of a link: everything written by the
 * maker, and nothing else. The peer maps the segment read-only.
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

/* Each line is written under a lock in the process of the maker. */
struct lb_segment {
	/* link.out: of the rings below */
	LB_ALIGNED _Atomic uint64_t req_tail;
	_Atomic uint64_t ans_tail;
	_Atomic uint32_t want; /* odd: requests wait for room */
	uint32_t spare;
	/* a bit for each lb_record_group() with members here, or all bits */
	_Atomic uint64_t groups;
	/* link.in: of the peer's rings */
	LB_ALIGNED _Atomic uint64_t req_head;
	_Atomic uint64_t ans_head;
	_Atomic uint32_t sleep; /* odd: no thread promised to look */

	alignas(LB_SEGMENT_PAGE) uint8_t requests[LB_SEGMENT_RING];
	uint8_t answers[LB_SEGMENT_RING];
};

_Static_assert(sizeof(struct lb_segment) ==
		       LB_SEGMENT_PAGE + 2 * LB_SEGMENT_RING,
	       "the same in each process");

/*
 * Makes a segment, all zero, and a sealed descriptor. Returns NULL with errno.
 */
struct lb_segment *lb_segment_new(int *fd);
/*
 * Maps the segment of a peer, from a received descriptor. Returns NULL with
 * errno, EBADF if the descriptor is not of the kind of lb_segment_new(). A
 * segment made by this process is not mapped a second time: so a sanitizer sees
 * both ends of a link.
 */
const struct lb_segment *lb_segment_map(int fd);
/* Unmaps the result of either function; NULL is allowed. */
void lb_segment_unmap(const struct lb_segment *segment);

/* Forgets segments in a child, which has no mappings. */
void lb_segment_fork(enum lb_fork_step step);

#endif /* LB_WIRE_SEGMENT_H */
