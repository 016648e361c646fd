/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wrong.h -- what looks wrong in a snapshot: each with the object, how
 * long, and what to do. Pure functions of the snapshot.
 */

#ifndef RT_DUMP_WRONG_H
#define RT_DUMP_WRONG_H

#include <stdint.h>

#include "dump/snapshot.h"

/* after so long something that should go on looks wrong */
#define RT_DUMP_LONG_MS 5000
/* a finding that has lasted less long than the above, but this long, is listed
 * apart as a younger finding: a dump is often taken soon after a mistake */
#define RT_DUMP_YOUNG_MS 500
/* what happens again and again is told for so long after the last time */
#define RT_DUMP_RECENT_MS 60000

#define RT_DUMP_EACH 16 /* of a kind are told, the others counted */

enum rt_dump_kind {
	RT_DUMP_QUEUE_NOT_POLLED,
	RT_DUMP_WORKER_STUCK,
	RT_DUMP_FUNCTION_LONG,
	RT_DUMP_POLLER_STUCK,
	RT_DUMP_POLLER_NOT_RUN,
	RT_DUMP_REQUEST_IGNORED,
	RT_DUMP_CONNECT_MISSING,
	RT_DUMP_NO_ANSWER,
	RT_DUMP_SEND_WAITS,
	RT_DUMP_RECEIVES_MISSING,
	RT_DUMP_CREDIT_USED_UP,
	RT_DUMP_CLOSING_LONG,
	RT_DUMP_DELETE_BUSY,
	RT_DUMP_SRQ_DRY,
	RT_DUMP_POOL_DRY,
	RT_DUMP_POOL_SHORT,
	RT_DUMP_LISTENER_REFUSES,
	RT_DUMP_CM_DEAF,
	RT_DUMP_KINDS
};

struct rt_dump_wrong {
	enum rt_dump_kind kind;
	uint32_t for_ms; /* or ago; 0: the words do not say when */
	char object[RT_DUMP_LABEL];
	char text[384];
};

struct rt_dump_findings {
	uint32_t counts[RT_DUMP_KINDS];
	uint32_t count; /* in the list */
	struct rt_dump_wrong list[RT_DUMP_KINDS * RT_DUMP_EACH];
};

struct rt_dump_wrongs {
	struct rt_dump_findings old;   /* what looks wrong */
	struct rt_dump_findings young; /* what may look wrong soon */
};

/* Fills dump->wrongs, which the caller frees. ERRORS: RPMA_E_NOMEM */
int rt_dump_wrong_judge(struct rt_dump *dump);
const char *rt_dump_wrong_name(enum rt_dump_kind kind);

/* Adds a finding: to the young findings if for_ms is under RT_DUMP_LONG_MS and
 * is the time for which the finding has lasted. */
__attribute__((format(printf, 5, 6))) void
rt_dump_wrong_add(struct rt_dump *dump, enum rt_dump_kind kind,
		  const char *object, uint32_t for_ms, const char *format, ...);

/* The connections: wrong_conn.c. */
void rt_dump_wrong_conn(struct rt_dump *dump, const struct rt_dump_conn *conn);

/* Does its poller run? Else what waits, waits for that. */
static inline bool rt_dump_wrong_runs(const struct rt_dump_poller *poller)
{
	return poller->function == NULL &&
	       (poller->asleep || poller->clock_age_ms < RT_DUMP_LONG_MS);
}

/* Seconds with a tenth, for "%u.%u". */
#define RT_DUMP_SECONDS(ms) (ms) / 1000, (ms) % 1000 / 100

#endif /* RT_DUMP_WRONG_H */
