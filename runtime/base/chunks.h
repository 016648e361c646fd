/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * chunks.h -- how a call posts its work requests: in chains with one doorbell
 * each. Inline, for sends, receives and receives of an SRQ, whose steps are
 * arguments. All work requests are validated before the first is posted: calls
 * that need more than one chain validate ahead of it, the others while they
 * fill it. Inside the gate, or under the lock of the SRQ.
 */

#ifndef RT_BASE_CHUNKS_H
#define RT_BASE_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wr.h"

#define RT_POST_CHUNK 32 /* work requests a doorbell, at most */

/* of append: the chain's list has no room for its pieces, the next one's has */
#define RT_CHUNKS_FULL 1
/* of append: from this one on work requests wait for room */
#define RT_CHUNKS_WAIT 2

/* a call; first member of what the steps know of it */
struct rt_chunks {
	int count;
	int checked;	 /* those before it were validated ahead */
	int posted;	 /* those before it are the device's, or refused */
	int n;		 /* so many after these are in the chain */
	uint32_t pieces; /* of these, in the chain's list */
};

struct rt_chunks_ops {
	/* Is that one valid? 0, or the error of the call. */
	int (*check)(struct rt_chunks *chunks, int index);
	/* Puts that one into the chain, as its nth; validates it, if it is not
	 * among those checked. 0, RT_CHUNKS_FULL, RT_CHUNKS_WAIT, RPMA_E_AGAIN,
	 * or the error of the call. */
	int (*append)(struct rt_chunks *chunks, int index, int n);
	/* Posts the chain: how many the device took. Of the refused ones those
	 * are added to posted here for which a completion follows. */
	int (*ring)(struct rt_chunks *chunks);
	/* The chain is not posted. */
	void (*drop)(struct rt_chunks *chunks);
};

static inline void rt_chunks_begin(struct rt_chunks *chunks, int count)
{
	*chunks = (struct rt_chunks){.count = count};
}

static inline bool rt_chunks_is_full(const struct rt_chunks *chunks,
				     uint32_t pieces)
{
	return pieces != 0 && chunks->pieces + pieces > RT_WR_MAX_SGE;
}

/* Validates those from index on, ahead of the chain, unless it was done: an
 * error of a later one comes before the lack of credit of an earlier one. */
static inline int rt_chunks_check_rest(struct rt_chunks *chunks,
				       int (*check)(struct rt_chunks *chunks,
						    int index),
				       int index)
{
	int ret = 0;

	if (chunks->checked == chunks->count)
		return 0;
	for (; index < chunks->count && ret == 0; index++)
		ret = check(chunks, index);
	chunks->checked = chunks->count;
	return ret;
}

/* Fills the chain, as far as it has room. */
__attribute__((always_inline)) static inline int
rt_chunks_fill(struct rt_chunks *chunks, const struct rt_chunks_ops *ops)
{
	const int first = chunks->posted;
	int most = chunks->count - first;
	int ret = 0;
	int n;

	chunks->pieces = 0;
	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	for (n = 0; n < most; n++) {
		ret = ops->append(chunks, first + n, n);
		if (ret)
			break;
	}
	chunks->n = n;
	if (ret != RT_CHUNKS_FULL)
		return ret;
	return rt_chunks_check_rest(chunks, ops->check, first + n);
}

/* Posts what can be, in chunks->posted: 0 if that is all, else why it is not;
 * RPMA_E_PROVIDER: the device refused one. RPMA_E_AGAIN and RT_CHUNKS_WAIT end
 * a call that has posted the others. */
__attribute__((always_inline)) static inline int
rt_chunks_post(struct rt_chunks *chunks, const struct rt_chunks_ops *ops)
{
	int refused = 0;
	int taken;

	if (chunks->count > RT_POST_CHUNK)
		refused = rt_chunks_check_rest(chunks, ops->check, 0);
	while (refused == 0 && chunks->posted < chunks->count) {
		refused = rt_chunks_fill(chunks, ops);
		if (refused < 0 && refused != RPMA_E_AGAIN &&
		    chunks->posted == 0) {
			ops->drop(chunks);
			return refused;
		}
		taken = chunks->n > 0 ? ops->ring(chunks) : 0;
		chunks->posted += taken;
		/* there was room: a full queue is the provider's fault */
		if (taken < chunks->n)
			return RPMA_E_PROVIDER;
	}
	return refused;
}

#endif /* RT_BASE_CHUNKS_H */
