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

/* of a step of a call: the routes were led elsewhere, all is looked at again;
 * there is not the room to post alone */
#define RT_POST_STALE	1
#define RT_POST_NO_ROOM 2

/* work requests a doorbell, at most */
#define RT_POST_CHUNK 32
/* most work requests of other threads that one hold posts */
#define RT_POST_BUDGET 64

/* what keeps the first work request that was not taken out */
struct rt_post_refusal {
	enum rpma_rt_again reason; /* NONE: nothing does */
	/* of BACKLOG: the connection's route; of CREDIT: so many, of a link,
	 * need places */
	const void *route;
	uint32_t count;
};

struct rt_post {
	struct rt_turn *turn;
	void *object; /* what has the turn: a connection or an SRQ */
	union {
		const struct rpma_rt_wr *sends;
		const struct rpma_rt_recv_wr *recvs;
	};
	int count;
	int done;	/* those before it were taken */
	int error;	/* of librpma, which has refused one */
	bool goes_line; /* of sends: librpma may refuse one, and logs then */
	enum rpma_rt_side side; /* of a connection */
	struct rt_post_refusal refusal;
};

/* what a call does with the object that has the turn */
struct rt_post_object_ops {
	/* Returns how many slots may be in use. */
	uint32_t (*limit)(const struct rt_post *post);
	/* Takes what was cancelled out of line: true: places may have come
	 * back. NULL: nothing is cancelled. */
	bool (*sweep)(const struct rt_post *post);
	/* The right came with the publication: posts, and gives it back. */
	void (*hold)(const struct rt_post *post);
	/* Slots were given back unposted. */
	void (*tell_places)(const struct rt_post *post);
	/* Leaves what the caller wants, so that exactly one WRITABLE follows,
	 * also where the reason has gone meanwhile. The caller holds nothing.
	 * RPMA_E_AGAIN */
	int (*refuse)(const struct rt_post *post);
};

/* what a call does with its work requests; end: an index of the call */
struct rt_post_ops {
	const struct rt_post_object_ops *object;
	/* Validates those that were not taken: 0, or the error of the call. */
	int (*check)(struct rt_post *post);
	/* The caller has the right, having seen that word: posts from its own
	 * arrays, and gives the right back. 0; RT_POST_NO_ROOM; ERRORS */
	int (*alone)(struct rt_post *post, uint64_t seen);
	/* Returns the last of the link that begins there, or itself. NULL:
	 * there are no links. */
	int (*last_of_link)(const struct rt_post *post, int index);
	/* Behind the taking of slots: takes what the links before end need
	 * besides (futures, leases); returns the end of those that have all and
	 * whose consumers are not behind. *ret: RT_POST_STALE, or an error. */
	int (*take)(struct rt_post *post, uint64_t seen, int end, int *ret);
	/* Gives back what those from one to before the other have taken. NULL:
	 * nothing is. */
	void (*undo)(const struct rt_post *post, int from, int to);
	/* Copies those before end into slots, the last one first. */
	int (*fill)(const struct rt_post *post, int end, uint16_t slot);
};

/* Of a word of the turn: 0: open. ERRORS: RPMA_RT_E_CLOSED; RPMA_E_AGAIN: not
 * open yet */
static inline int rt_post_check_word(uint64_t word)
{
	if (unlikely(word & (RT_TURN_CLOSED | RT_TURN_DRAINED)))
		return RPMA_RT_E_CLOSED;
	return likely(word & RT_TURN_OPEN) ? 0 : RPMA_E_AGAIN;
}

/* Returns how many places are free; limit: slots that may be in use. */
static inline uint32_t rt_post_places(const struct rt_turn *turn,
				      uint32_t limit)
{
	uint32_t used = rt_freelist_used(&turn->free);

	return limit > used ? limit - used : 0;
}

/* Returns how many work requests of other threads one hold posts. In manual
 * mode nobody may run the poller for a while. */
static inline uint32_t rt_post_budget(bool is_threaded)
{
	return is_threaded ? RT_POST_BUDGET : UINT32_MAX;
}

/* A lane behind which the route's consumer is keeps the rest out. */
static inline void rt_post_refuse_backlog(struct rt_post *post,
					  const void *route)
{
	post->refusal = (struct rt_post_refusal){
		.reason = RPMA_RT_AGAIN_BACKLOG, .route = route};
}

/* Returns the end of those that a caller posts alone where the queue, of that
 * depth, has not the room for all: none, if work requests may stand in line;
 * else as many whole links as fit. */
__attribute__((cold)) int rt_post_end_of_room(struct rt_post *post,
					      const struct rt_post_ops *ops,
					      uint32_t depth, uint32_t room);
/* As many as there are places for, through the line. 0, with a reason in the
 * refusal if not all were taken; RT_POST_STALE; ERRORS: of the call */
int rt_post_by_line(struct rt_post *post, const struct rt_post_ops *ops,
		    uint64_t seen);
/* One piece a receive, into slots; wr_id(): of that index. ERRORS: librpma's,
 * noted */
int rt_post_fill_recvs(const struct rt_post *post, int end, uint16_t slot,
		       uint64_t (*wr_id)(const struct rt_post *post,
					 int index));
/* The end of a call that was not taken whole: how many were taken; if none, the
 * error. */
int rt_post_answer(int taken, int ret);

/* One try of the rest of the call: as rt_post_by_line(). */
__attribute__((always_inline)) static inline int
rt_post_try(struct rt_post *post, const struct rt_post_ops *ops)
{
	/* before routes are looked at */
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
	return unlikely(ret == RT_POST_NO_ROOM)
		       ? rt_post_by_line(post, ops, seen)
		       : ret;
}

/* The whole call: 0: all were taken; else the error for the rest. */
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
