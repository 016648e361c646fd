/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- the way of a call through the line: slots, then publication. Any
 * thread. doc/protocols/ledger.md.
 */

#include "poller/post.h"

#include "base/log.h"
#include "base/wr.h"

/* ---------------------------------------------------------------- links --- */

static int post_last_of_link(const struct rt_post *post,
			     const struct rt_post_ops *ops, int index)
{
	return ops->last_of_link != NULL ? ops->last_of_link(post, index)
					 : index;
}

/* Returns the end of the links that have at most `count` work requests
 * together. */
static int post_end_of_links(const struct rt_post *post,
			     const struct rt_post_ops *ops, uint32_t count)
{
	int index = post->done;
	int last;

	while (index < post->count) {
		last = post_last_of_link(post, ops, index);
		if ((uint32_t)(last + 1 - post->done) > count)
			break;
		index = last + 1;
	}
	return index;
}

/* Notes that the work requests from `from` on need places: the work request at
 * `from`, with its link, needs `count` places. */
static void post_refuse_credit(struct rt_post *post,
			       const struct rt_post_ops *ops, int from)
{
	post->refusal = (struct rt_post_refusal){
		.reason = RPMA_RT_AGAIN_CREDIT,
		.count = (uint32_t)(post_last_of_link(post, ops, from) + 1 -
				    from)};
}

int rt_post_end_of_room(struct rt_post *post, const struct rt_post_ops *ops,
			uint32_t depth, uint32_t room)
{
	int end;

	if (rt_line_waits(post->turn, depth))
		return post->done;
	end = post_end_of_links(post, ops, room);
	post_refuse_credit(post, ops, end);
	return end;
}

/* ---------------------------------------------------------------- slots --- */

/* Gives the first `count` slots of a chain back, unposted. Returns the first
 * slot of the remaining chain. */
static uint16_t post_give_slots(const struct rt_post *post,
				const struct rt_post_ops *ops, uint16_t first,
				uint32_t count)
{
	struct rt_freelist *list = &post->turn->free;
	uint16_t last = first;
	uint16_t rest;
	uint32_t i;

	if (count == 0)
		return first;
	for (i = 1; i < count; i++)
		last = rt_freelist_next(list, last);
	rest = rt_freelist_next(list, last);
	rt_freelist_give(list, first, last, (uint16_t)count);
	ops->object->tell_places(post);
	return rest;
}

/*
 * Takes slots for as many work requests as there are places for. Returns the
 * first slot of a chain; *end: work requests before this index have a slot.
 * Returns 0 if there are no places. While a thread has slots, the queue pair
 * may go, but the connection keeps everything that librpma and the futures
 * need.
 */
static uint16_t post_take_slots(struct rt_post *post,
				const struct rt_post_ops *ops, int *end)
{
	uint16_t slots = 0;
	uint32_t count;

	*end = post_end_of_links(post, ops, RT_FREELIST_MAX);
	while (*end > post->done) {
		count = (uint32_t)(*end - post->done);
		slots = rt_line_take(post->turn, count,
				     ops->object->limit(post));
		/* a cancelled work request takes no place from others */
		if (slots == 0 && ops->object->sweep != NULL &&
		    ops->object->sweep(post))
			slots = rt_line_take(post->turn, count,
					     ops->object->limit(post));
		if (slots != 0)
			break;
		/* another thread may have been faster: try with a link less */
		*end = post_end_of_links(
			post, ops,
			rt_post_places(post->turn, ops->object->limit(post)));
	}
	if (*end < post->count)
		post_refuse_credit(post, ops, *end);
	return slots;
}

/* ---------------------------------------------------------- publication --- */

/* Publishes the work requests before `end`, in the chain of slots that begins
 * with `first`; the last slot of the chain is for the oldest work request.
 * Returns 0 if the work requests are posted or published. Otherwise the caller
 * keeps the slots. */
static int post_publish(struct rt_post *post, const struct rt_post_ops *ops,
			uint64_t seen, int end, uint16_t first)
{
	int ret = ops->fill(post, end, first);
	enum rt_turn_answer answer;
	uint16_t last = first;
	uint16_t next;

	if (ret)
		return ret;
	while ((next = rt_freelist_next(&post->turn->free, last)) != 0)
		last = next;
	answer = rt_turn_publish(post->turn, seen, first, last);
	if (answer == RT_TURN_STALE)
		return RT_POST_STALE;
	if (answer != RT_TURN_LEFT && answer != RT_TURN_HOLDS)
		return RPMA_RT_E_CLOSED; /* the word was open before */
	post->done = end;
	if (answer == RT_TURN_HOLDS)
		ops->object->hold(post);
	return 0;
}

int rt_post_by_line(struct rt_post *post, const struct rt_post_ops *ops,
		    uint64_t seen)
{
	int begin = post->done;
	uint16_t slots;
	int ret = 0;
	int ready;
	int end;

	/* forgets why the call could not post alone */
	post->refusal.reason = RPMA_RT_AGAIN_NONE;
	slots = post_take_slots(post, ops, &end);
	if (slots == 0)
		return 0;
	ready = ops->take(post, seen, end, &ret);
	slots = post_give_slots(post, ops, slots, (uint32_t)(end - ready));
	if (ret == 0 && ready > begin)
		ret = post_publish(post, ops, seen, ready, slots);
	if (ret == 0)
		return 0;
	if (ops->undo != NULL)
		ops->undo(post, begin, ready);
	post_give_slots(post, ops, slots, (uint32_t)(ready - begin));
	return ret;
}

int rt_post_fill_recvs(const struct rt_post *post, int end, uint16_t slot,
		       uint64_t (*wr_id)(const struct rt_post *post, int index))
{
	struct ibv_sge sge[RT_WR_MAX_SGE];
	struct rpma_recv_wr out;
	int ret;
	int i;

	/* the first slot of the chain is for the last work request */
	for (i = end - 1; i >= post->done; i--) {
		ret = rt_wr_prepare_recv(&post->recvs[i], wr_id(post, i), sge,
					 &out);
		if (ret)
			return rt_wr_refuse_for(i, ret);
		rt_line_put_recv(post->turn, slot, &out);
		slot = rt_freelist_next(&post->turn->free, slot);
	}
	return 0;
}

int rt_post_answer(int taken, int ret)
{
	if (taken > 0)
		rt_refuse_forget();
	if (taken > 0 || ret == RPMA_E_AGAIN)
		return taken > 0 ? taken : ret;
	return RT_REFUSED(ret, "nothing is posted");
}
