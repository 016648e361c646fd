/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * quorum.h: the number, such as the end of a log or a version, that a quorum of
 * replicas has reached. Meant to be copied: needs nothing but this file.
 */

#ifndef EXAMPLES_QUORUM_H
#define EXAMPLES_QUORUM_H

#include <stdint.h>

/* Returns the size of a quorum: any two quorums share a replica. */
static inline int quorum_of(int replicas)
{
	return replicas / 2 + 1;
}

/* Returns the largest number that a quorum of the replicas has reached, where
 * reached[i] is the number of replica i. */
static inline uint64_t quorum_reached(const uint64_t *reached, int replicas)
{
	uint64_t best = 0;
	int i, k, have;

	for (i = 0; i < replicas; i++) {
		for (k = have = 0; k < replicas; k++)
			have += reached[k] >= reached[i];
		if (have >= quorum_of(replicas) && reached[i] > best)
			best = reached[i];
	}
	return best;
}

#endif /* EXAMPLES_QUORUM_H */
