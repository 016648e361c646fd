/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * waiting.c -- see waiting.h. An array of twice as many as may wait: what is
 * posted next lies together, as a post wants it, and is moved to the beginning
 * when the end is reached, which costs no more than what was added since.
 */

#include "poller/waiting.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct rt_waiting *rt_waiting_new(enum rpma_rt_side side, uint32_t limit,
				  uint32_t max_sge)
{
	struct rt_waiting *waiting = calloc(1, sizeof(*waiting));
	const size_t room = 2 * (size_t)limit;

	if (waiting == NULL)
		return NULL;
	waiting->limit = limit;
	waiting->max_sge = max_sge;
	if (side == RPMA_RT_SEND_SIDE)
		waiting->sends = calloc(room, sizeof(*waiting->sends));
	else
		waiting->recvs = calloc(room, sizeof(*waiting->recvs));
	waiting->futures = calloc(room, sizeof(*waiting->futures));
	waiting->pieces = calloc(room * max_sge, sizeof(*waiting->pieces));
	if ((waiting->sends == NULL && waiting->recvs == NULL) ||
	    waiting->futures == NULL || waiting->pieces == NULL) {
		rt_waiting_delete(waiting);
		return NULL;
	}
	return waiting;
}

void rt_waiting_delete(struct rt_waiting *waiting)
{
	if (waiting == NULL)
		return;
	free(waiting->sends);
	free(waiting->recvs);
	free(waiting->futures);
	free(waiting->pieces);
	free(waiting);
}

uint32_t rt_waiting_last(const struct rt_waiting *waiting, uint32_t index)
{
	while (waiting->sends != NULL &&
	       (waiting->sends[index].flags & RPMA_RT_F_LINKED))
		index++;
	return index;
}

struct rt_future *rt_waiting_slot(const struct rt_waiting *waiting,
				  uint32_t index)
{
	const struct rpma_rt_future *future = &waiting->futures[index];
	struct rt_future *slot = rt_future_slot(future);

	return rt_future_is_waiting(slot, future->opaque[1]) ? slot : NULL;
}

/* -------------------------------------------------------------- entries --- */

static struct rpma_sge *pieces_of(const struct rt_waiting *waiting,
				  uint32_t index)
{
	return &waiting->pieces[(size_t)index * waiting->max_sge];
}

static void put_send(struct rt_waiting *waiting, uint32_t index,
		     const struct rpma_rt_wr *wr)
{
	struct rpma_rt_wr *to = &waiting->sends[index];

	*to = *wr;
	if (wr->future != NULL)
		to->future = &waiting->futures[index];
	if (wr->piece_count == 0)
		return;
	memmove(pieces_of(waiting, index), wr->pieces,
		wr->piece_count * sizeof(*wr->pieces));
	to->pieces = pieces_of(waiting, index);
}

static void put_recv(struct rt_waiting *waiting, uint32_t index,
		     const struct rpma_rt_recv_wr *wr)
{
	struct rpma_rt_recv_wr *to = &waiting->recvs[index];

	*to = *wr;
	to->future = &waiting->futures[index];
	if (wr->piece_count == 0)
		return;
	memmove(pieces_of(waiting, index), wr->pieces,
		wr->piece_count * sizeof(*wr->pieces));
	to->pieces = pieces_of(waiting, index);
}

void rt_waiting_add_send(struct rt_waiting *waiting,
			 const struct rpma_rt_wr *wr, bool has_future)
{
	uint32_t index = waiting->end;

	assert(index - waiting->first < waiting->limit);
	if (has_future)
		waiting->futures[index] = *wr->future;
	put_send(waiting, index, wr);
	waiting->end++;
}

void rt_waiting_add_recv(struct rt_waiting *waiting,
			 const struct rpma_rt_recv_wr *wr)
{
	uint32_t index = waiting->end;

	assert(index - waiting->first < waiting->limit);
	waiting->futures[index] = *wr->future;
	put_recv(waiting, index, wr);
	waiting->end++;
}

/* ----------------------------------------------------------------- room --- */

static void move(struct rt_waiting *waiting, uint32_t to, uint32_t from)
{
	struct rpma_rt_recv_wr recv;
	struct rpma_rt_wr send;

	waiting->futures[to] = waiting->futures[from];
	if (waiting->sends != NULL) {
		send = waiting->sends[from];
		put_send(waiting, to, &send);
	} else {
		recv = waiting->recvs[from];
		put_recv(waiting, to, &recv);
	}
}

/* What still waits, from the beginning of the memory on. */
static void squeeze(struct rt_waiting *waiting)
{
	uint32_t from = waiting->first;
	uint32_t to = 0;
	uint32_t last;
	bool stays;

	while (from < waiting->end) {
		last = rt_waiting_last(waiting, from);
		stays = rt_waiting_slot(waiting, last) != NULL;
		for (; from <= last; from++) {
			if (stays && to != from)
				move(waiting, to, from);
			to += stays;
		}
	}
	waiting->first = 0;
	waiting->end = to;
}

static bool has_room(const struct rt_waiting *waiting, uint32_t count)
{
	return waiting->end - waiting->first + count <= waiting->limit &&
	       waiting->end + count <= 2 * waiting->limit;
}

bool rt_waiting_has_room(struct rt_waiting *waiting, uint32_t count)
{
	if (!has_room(waiting, count))
		squeeze(waiting);
	return has_room(waiting, count);
}
