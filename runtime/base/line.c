/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* line.c -- copies of work requests that stand in line; see line.h. */

#include "base/line.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* ----------------------------------------------------------- the memory --- */

size_t rt_line_round_up(size_t bytes)
{
	return (bytes + RT_CACHE_LINE - 1) / RT_CACHE_LINE * RT_CACHE_LINE;
}

static uint32_t line_slots_of(uint32_t places)
{
	return places < RT_FREELIST_MAX ? places : RT_FREELIST_MAX;
}

/* Returns the bytes of the line's ring, which is in front. */
static size_t line_ring_bytes(uint32_t slots)
{
	return rt_line_round_up(rt_turn_line_size((uint16_t)slots) *
				sizeof(uint16_t));
}

size_t rt_line_bytes(const struct rt_line_size *size)
{
	uint32_t slots = line_slots_of(size->places);

	return line_ring_bytes(slots) + sizeof(struct rt_line) +
	       rt_line_round_up((size_t)slots * size->stride);
}

/* Uses calloc(), which knows which pages are zeroed already; the pointer that
 * calloc() returned is stored in front of the memory. */
void *rt_line_alloc(size_t bytes)
{
	char *whole = calloc(1, bytes + RT_CACHE_LINE);
	void **memory;

	if (whole == NULL)
		return NULL;
	memory = (void **)(void *)(whole + RT_CACHE_LINE -
				   (uintptr_t)whole % RT_CACHE_LINE);
	memory[-1] = whole;
	return memory;
}

void rt_line_release(void *memory)
{
	if (memory != NULL)
		free(((void **)memory)[-1]);
}

void rt_line_init(struct rt_turn *turn, const struct rt_line_size *size,
		  void *memory)
{
	uint32_t slots = line_slots_of(size->places);
	struct rt_line *line =
		(struct rt_line *)(void *)((char *)memory +
					   line_ring_bytes(slots));

	line->places = size->places;
	line->slots = (uint16_t)slots;
	rt_turn_init(turn, memory, line->memory, size->stride, line->slots);
}

int rt_line_new(struct rt_turn *turn, const struct rt_line_size *size)
{
	void *memory = rt_line_alloc(rt_line_bytes(size));

	if (memory == NULL)
		return RPMA_E_NOMEM;
	rt_line_init(turn, size, memory);
	return 0;
}

void rt_line_free(struct rt_turn *turn)
{
	rt_line_release(turn->line);
	turn->line = NULL;
}

uint32_t rt_line_limit(const struct rt_turn *turn, uint32_t posted,
		       uint32_t retired)
{
	const struct rt_line *line = rt_line_of(turn);
	/* work requests may leave the queue before the holder has stored the
	 * count of posted work requests */
	uint32_t out = posted - retired <= line->places ? posted - retired : 0;
	uint32_t limit = line->places - out;

	return limit < line->slots ? limit : line->slots;
}

/* ---------------------------------------------------------------- sends --- */

static void *line_behind(const void *slot, size_t size)
{
	return (char *)(uintptr_t)slot + size;
}

/* Copies the bytes of all pieces, so that the memory is the caller's again. */
static void line_put_inline(struct rt_line_send *slot,
			    const struct ibv_send_wr *wr)
{
	char *to = (char *)&slot->data;
	uint32_t length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	slot->bytes = RT_LINE_DATA;
	if (length > sizeof(slot->data)) {
		slot->bytes = RT_LINE_BEHIND;
		to = line_behind(slot, sizeof(*slot));
	}
	slot->length = length;
	for (i = 0; i < wr->num_sge; i++) {
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static void line_put_bytes(struct rt_line_send *slot,
			   const struct ibv_send_wr *wr)
{
	slot->pieces = (uint8_t)wr->num_sge;
	if (wr->num_sge == 0)
		return;
	if (wr->send_flags & IBV_SEND_INLINE) {
		slot->pieces = 1;
		line_put_inline(slot, wr);
	} else if (wr->num_sge == 1) {
		slot->bytes = RT_LINE_PIECE;
		slot->addr = wr->sg_list->addr;
		slot->length = wr->sg_list->length;
		slot->lkey = wr->sg_list->lkey;
	} else {
		slot->bytes = RT_LINE_LIST;
		memcpy(line_behind(slot, sizeof(*slot)), wr->sg_list,
		       (size_t)wr->num_sge * sizeof(*wr->sg_list));
	}
}

static bool line_is_atomic(unsigned opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

void rt_line_put_send(const struct rt_turn *turn, uint16_t at,
		      const struct rpma_send_wr *out)
{
	struct rt_line_send *slot = rt_line_slot(turn, at);
	const struct ibv_send_wr *wr = &out->wr;

	/* every word but next, at which other threads may look */
	slot->is_waited = 0;
	slot->bytes = RT_LINE_NONE;
	slot->length = 0;
	slot->wr_id = wr->wr_id;
	slot->data = out->data;
	slot->opcode = (uint8_t)wr->opcode;
	slot->flags = (uint8_t)(wr->send_flags & ~(unsigned)IBV_SEND_SIGNALED);
	slot->completes = 0;
	slot->link = 0;
	slot->native = (uint8_t)out->native;
	slot->native_arg = (uint8_t)out->native_arg;
	slot->pieces = 0;
	if (out->native != 0) /* a flush has a length and no piece */
		slot->length = out->sge.length;
	else
		line_put_bytes(slot, wr);
	if (line_is_atomic(wr->opcode)) {
		slot->remote_addr = wr->wr.atomic.remote_addr;
		slot->rkey = wr->wr.atomic.rkey;
		slot->data = wr->wr.atomic.compare_add;
		slot->swap = wr->wr.atomic.swap;
		return;
	}
	slot->remote_addr = wr->wr.rdma.remote_addr;
	slot->rkey = wr->wr.rdma.rkey;
	slot->swap = wr->imm_data;
}

static void line_get_bytes(const struct rt_line_send *slot,
			   struct rpma_send_wr *out)
{
	out->wr.sg_list = &out->sge;
	out->wr.num_sge = slot->pieces;
	out->sge = (struct ibv_sge){slot->addr, slot->length, slot->lkey};
	if (slot->bytes == RT_LINE_DATA)
		out->sge.addr = (uintptr_t)&out->data;
	else if (slot->bytes == RT_LINE_BEHIND)
		out->sge.addr = (uintptr_t)line_behind(slot, sizeof(*slot));
	else if (slot->bytes == RT_LINE_LIST)
		out->wr.sg_list = line_behind(slot, sizeof(*slot));
	else if (slot->bytes == RT_LINE_NONE)
		out->wr.sg_list = NULL;
}

void rt_line_get_send(const struct rt_turn *turn, uint16_t at,
		      struct rpma_send_wr *out)
{
	const struct rt_line_send *slot = rt_line_slot(turn, at);
	struct ibv_send_wr *wr = &out->wr;

	*out = (struct rpma_send_wr){
		.wr = {.wr_id = slot->wr_id,
		       .opcode = (enum ibv_wr_opcode)slot->opcode,
		       .send_flags = slot->flags},
		.data = slot->data,
		.native = slot->native,
		.native_arg = slot->native_arg,
	};
	line_get_bytes(slot, out);
	if (line_is_atomic(slot->opcode)) {
		wr->wr.atomic.remote_addr = slot->remote_addr;
		wr->wr.atomic.rkey = slot->rkey;
		wr->wr.atomic.compare_add = slot->data;
		wr->wr.atomic.swap = slot->swap;
		return;
	}
	wr->wr.rdma.remote_addr = slot->remote_addr;
	wr->wr.rdma.rkey = slot->rkey;
	wr->imm_data = (uint32_t)slot->swap;
}

/* ------------------------------------------------------------- receives --- */

void rt_line_put_recv(const struct rt_turn *turn, uint16_t at,
		      const struct rpma_recv_wr *out)
{
	struct rt_line_recv *slot = rt_line_slot(turn, at);
	const struct ibv_recv_wr *wr = &out->wr;

	/* every word but next, as in rt_line_put_send() */
	slot->is_waited = 0;
	slot->pieces = (uint8_t)wr->num_sge;
	slot->length = 0;
	slot->wr_id = wr->wr_id;
	if (wr->num_sge == 1) {
		slot->addr = wr->sg_list->addr;
		slot->length = wr->sg_list->length;
		slot->lkey = wr->sg_list->lkey;
	} else if (wr->num_sge > 1) {
		memcpy(line_behind(slot, sizeof(*slot)), wr->sg_list,
		       (size_t)wr->num_sge * sizeof(*wr->sg_list));
	}
}

void rt_line_get_recv(const struct rt_turn *turn, uint16_t at,
		      struct rpma_recv_wr *out)
{
	const struct rt_line_recv *slot = rt_line_slot(turn, at);

	*out = (struct rpma_recv_wr){
		.wr = {.wr_id = slot->wr_id, .num_sge = (int)slot->pieces},
		.sge = {slot->addr, slot->length, slot->lkey},
	};
	if (slot->pieces == 1)
		out->wr.sg_list = &out->sge;
	else if (slot->pieces > 1)
		out->wr.sg_list = line_behind(slot, sizeof(*slot));
}
