/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.h -- a call that posts work requests, from any thread, to an object that
 * has a turn: sends or receives of a connection, or receives of an SRQ. A call
 * that finds the turn idle takes the right and posts from the caller's own
 * arrays; any other call copies its work requests into slots and publishes
 * them. Inline for a table of operations that the compiler knows.
 * doc/protocols/ledger.md.
 */

#ifndef RT_POLLER_POST_H
#define RT_POLLER_POST_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/lang.h"
#include "base/line.h"
#include "base/turn.h"
#include "poller/side.h"

/* results of a step of a call. STALE: a route was redirected, so the whole call
 * is looked at again. NO_ROOM: there is no room to post alone */
#define RT_POST_STALE	1
#define RT_POST_NO_ROOM 2

/* most work requests for a single doorbell */
#define RT_POST_CHUNK 32
/* most work requests of other threads that one hold posts */
#define RT_POST_BUDGET 64

/* why the first work request that was not taken was refused */
struct rt_post_refusal {
	enum rpma_rt_again reason; /* NONE: nothing was refused */
	/* BACKLOG: the connection's route. CREDIT: `count` places are needed,
	 * for a link more than one */
	const void *route;
	uint32_t count;
};

struct rt_post {
	struct rt_turn *turn;
	void *object; /* owner of the turn: a connection or an SRQ */
	union {
		const struct rpma_rt_wr *sends;
		const struct rpma_rt_recv_wr *recvs;
	};
	int count;
	int done;  /* work requests before this index were taken */
	int error; /* error of librpma, which has refused a work request */
	/* for sends: librpma may refuse a work request, and logs then */
	bool goes_line;
	enum rpma_rt_side side; /* for a connection */
	struct rt_post_refusal refusal;
};

/* functions of a call for the owner of the turn */
struct rt_post_object_ops {
	/* returns how many slots may be in use */
	uint32_t (*limit)(const struct rt_post *post);
	/* takes cancelled work requests out of line; returns true if places may
	 * have come back. NULL: nothing is ever cancelled */
	bool (*sweep)(const struct rt_post *post);
	/* posts the line, and gives back the right, which came with the
	 * publication */
	void (*hold)(const struct rt_post *post);
	/* tells the poller that slots were given back unposted */
	void (*tell_places)(const struct rt_post *post);
	/* notes what the caller wants, so that a single WRITABLE
	 * follows, also where the reason has gone meanwhile. The caller holds
	 * nothing. Returns RPMA_E_AGAIN */
	int (*refuse)(const struct rt_post *post);
};

/* functions of a call for its work requests; end: an index of the call */
struct rt_post_ops {
	const struct rt_post_object_ops *object;
	/* validates the work requests that were not taken. Returns 0, or the
	 * error of the call */
	int (*check)(struct rt_post *post);
	/* posts from the caller's own arrays and gives the right back. The
	 * caller has the right, and saw the word `seen` before. Returns 0;
	 * RT_POST_NO_ROOM; ERRORS */
	int (*alone)(struct rt_post *post, uint64_t seen);
	/* returns the last index of the link that begins at `index`; without a
	 * link returns `index`. NULL: there are no links */
	int (*last_of_link)(const struct rt_post *post, int index);
	/* takes what the links before `end` need besides slots (futures,
	 * leases). Returns the end of the links that have everything and whose
	 * consumers are not behind. *ret: RT_POST_STALE, or an error. Called
	 * after slots were taken */
	int (*take)(struct rt_post *post, uint64_t seen, int end, int *ret);
	/* gives back what the work requests from `from` to before `to` have
	 * taken. NULL: there is nothing to give back */
	void (*undo)(const struct rt_post *post, int from, int to);
	/* copies the work requests before `end` into slots, the last work
	 * request first */
	int (*fill)(const struct rt_post *post, int end, uint16_t slot);
};

/* Checks a word of the turn. Returns 0 if the word is open. ERRORS:
 * RPMA_RT_E_CLOSED; RPMA_E_AGAIN: not open yet */
static inline int rt_post_check_word(uint64_t word)
{
	if (unlikely(word & (RT_TURN_CLOSED | RT_TURN_DRAINED)))
		return RPMA_RT_E_CLOSED;
	return likely(word & RT_TURN_OPEN) ? 0 : RPMA_E_AGAIN;
}

/* Returns the number of free places. limit: number of slots that may be in
 * use. */
static inline uint32_t rt_post_places(const struct rt_turn *turn,
				      uint32_t limit)
{
	uint32_t used = rt_freelist_used(&turn->free);

	return limit > used ? limit - used : 0;
}

/* Returns how many work requests of other threads a single hold posts. In
 * manual mode no thread may run the poller for a while, so there is no
 * limit. */
static inline uint32_t rt_post_budget(bool is_threaded)
{
	return is_threaded ? RT_POST_BUDGET : UINT32_MAX;
}

/* Notes the refusal of the remaining work requests: the consumer of the route's
 * lane is behind. */
static inline void rt_post_refuse_backlog(struct rt_post *post,
					  const void *route)
{
	post->refusal = (struct rt_post_refusal){
		.reason = RPMA_RT_AGAIN_BACKLOG, .route = route};
}

/* Returns the end of the work requests that a caller posts alone where the
 * queue, of that depth, has no room for the whole call: no work request, if
 * work requests may stand in line; otherwise as many whole links as fit. */
__attribute__((cold)) int rt_post_end_of_room(struct rt_post *post,
					      const struct rt_post_ops *ops,
					      uint32_t depth, uint32_t room);
/* Takes as many work requests through the line as there are places. Returns 0,
 * with a reason in the refusal if not all were taken; RT_POST_STALE; ERRORS of
 * the call */
int rt_post_by_line(struct rt_post *post, const struct rt_post_ops *ops,
		    uint64_t seen);
/* Writes receives with a piece each into slots; wr_id() returns the wr_id for
 * an index. ERRORS: errors of librpma, noted */
int rt_post_fill_recvs(const struct rt_post *post, int end, uint16_t slot,
		       uint64_t (*wr_id)(const struct rt_post *post,
					 int index));
/* Returns the result of a call that was not taken whole: the number of taken
 * work requests or, if no work request was taken, the error. */
int rt_post_answer(int taken, int ret);

/* Tries to post the remaining work requests of the call, with the results of
 * rt_post_by_line(). */
__attribute__((always_inline)) static inline int
rt_post_try(struct rt_post *post, const struct rt_post_ops *ops)
{
	/* the word is read before routes are looked at */
	uint64_t seen = rt_turn_look(post->turn);
	int ret = rt_post_check_word(seen);

	post->refusal = (struct rt_post_refusal){RPMA_RT_AGAIN_NONE, NULL, 0};
	if (unlikely(ret == RPMA_E_AGAIN)) {
		post->refusal.reason = RPMA_RT_AGAIN_NOT_YET;
		return 0;
	}
	if (ret == 0)
		ret = ops->check(post);
	if (ret)
		return ret;
	ret = RT_POST_NO_ROOM;
	if (!post->goes_line && rt_turn_take_alone(post->turn, seen))
		ret = ops->alone(post, seen);
	else if (!post->goes_line && rt_turn_answer_recall(post->turn, seen)) {
		ops->object->hold(post);
		ret = RT_POST_STALE;
	}
	return unlikely(ret == RT_POST_NO_ROOM)
		       ? rt_post_by_line(post, ops, seen)
		       : ret;
}

/* Runs the whole call. Returns 0 if all work requests were taken, otherwise the
 * error for the remaining work requests. */
__attribute__((always_inline)) static inline int
rt_post_run(struct rt_post *post, const struct rt_post_ops *ops)
{
	int ret;

	do {
		ret = rt_post_try(post, ops);
		if (unlikely(ret == 0 &&
			     post->refusal.reason != RPMA_RT_AGAIN_NONE))
			ret = ops->object->refuse(post);
	} while (unlikely(ret == RT_POST_STALE ||
			  (ret == 0 && post->done < post->count)));
	return ret;
}

#endif /* RT_POLLER_POST_H */
