/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * durable.h: writes bytes into persistent memory of another machine, and a word
 * that says so: a tail, a count, a version. Meant to be copied: needs durable.c
 * and nothing else.
 *
 * A step is one link of four work requests:
 *
 *	write         the bytes
 *	flush         the bytes, persistent
 *	atomic write  the word, with a fence: begins after the flush completed
 *	flush         the word, persistent; completes the step
 *
 * So whenever the other machine loses power, the word names no bytes that are
 * not whole, and a step that is complete survives. Steps are pipelined, and
 * complete in order. Thread: one at a time.
 */

#ifndef EXAMPLES_DURABLE_H
#define EXAMPLES_DURABLE_H

#include <rpma_rt.h>

/* Outstanding at most: while the word of the first step is on the way, so are
 * the bytes of the second. A third step would only wait for the fence of the
 * second, so what comes meanwhile belongs in the next step, all at once. */
#define DURABLE_STEPS 2
/* for the configuration of the connection; a dropped future counts until the
 * poller has seen the drop */
#define DURABLE_FUTURES (2 * DURABLE_STEPS)
#define DURABLE_SQ_SIZE (4 * DURABLE_STEPS)

/* durable_begin() fills the first part, the rest is zero. */
struct durable {
	struct rpma_rt_conn *conn;
	struct rpma_mr_remote *region;
	const struct rpma_mr_local *mr;
	size_t word_at; /* the offset of the word in the region */

	struct durable_step {
		struct rpma_rt_future future;
		uint64_t word;
	} steps[DURABLE_STEPS];
	uint32_t first, count;
};

/* Begins on a connection that is up, and allows persistent flushes there: the
 * other machine has persistent memory, or is a test. word_at: the offset of the
 * word in the region. Returns 0, or an error. */
int durable_begin(struct durable *durable, struct rpma_rt_conn *conn,
		  struct rpma_mr_remote *region, const struct rpma_mr_local *mr,
		  size_t word_at);
/* Posts a step: len bytes from an offset of mr to an offset of the region,
 * where len may be 0, and the word. Returns 0, or an error; RPMA_E_AGAIN: too
 * many steps are outstanding. */
int durable_post(struct durable *durable, size_t to, size_t from, size_t len,
		 uint64_t word);
/* Takes the steps that are complete. Returns 0, or -1 if a step has failed;
 * *word is the word of the last step taken, unchanged if no step was. */
int durable_collect(struct durable *durable, uint64_t *word);
/* Returns the future of the oldest step, or NULL if no step is outstanding. */
const struct rpma_rt_future *durable_next(const struct durable *durable);
/* Drops all steps, for instance when the connection has ended. */
void durable_drop(struct durable *durable);

#endif /* EXAMPLES_DURABLE_H */
