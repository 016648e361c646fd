/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wr.c -- the features of work requests, on a device: messages of several
 * pieces on both sides, atomics of remote memory, inline bytes, links whose
 * parts complete together, or fail together.
 */

#include <string.h>

#include "stage.h"

#define DEPTH  16
#define HEADER 64
#define TAIL   1000

/* offsets in the page: sent, received */
#define FROM 0
#define TO   2048

static void fill_page(struct stage *s)
{
	int i;

	memset(s->memory, 0, STAGE_SIZE);
	for (i = 0; i < TO; i++)
		s->memory[FROM + i] = (char)(i * 7 + 1);
}

/* A header and a payload from two places of the page, to two others. */
static void send__of_two_pieces_into_two(struct stage *s,
					 struct world_pair *pair)
{
	const struct rpma_sge from[] = {{s->mr, FROM + 512, HEADER},
					{s->mr, FROM, TAIL}};
	const struct rpma_sge to[] = {{s->mr, TO + 1024, HEADER + 8},
				      {s->mr, TO, TAIL}};
	struct rpma_rt_completion cmpl;
	struct rpma_rt_recv_wr recv;
	struct rpma_rt_wr send;

	fill_page(s);
	rpma_rt_prep_recv(&recv, NULL, 0, 0, 1);
	rpma_rt_recv_wr_set_pieces(&recv, to, 2);
	MUST(world_post_recv(pair->passive, &recv));
	rpma_rt_prep_send_with_imm(&send, NULL, 0, 0, 77, 0, 2);
	rpma_rt_wr_set_pieces(&send, from, 2);
	MUST(world_post_send(pair->active, &send));
	stage_completion(s->aq, 2, IBV_WC_SUCCESS);
	cmpl = stage_completion(s->pq, 1, IBV_WC_SUCCESS);
	CHECK(cmpl.byte_len == HEADER + TAIL);
	CHECK(!memcmp(s->memory + TO + 1024, s->memory + FROM + 512, HEADER));
	CHECK(!memcmp(s->memory + TO + 1024 + HEADER, s->memory + FROM, 8));
	CHECK(!memcmp(s->memory + TO, s->memory + FROM + 8, TAIL - 8));
}

/* A header without a payload: the second piece of each side has no bytes. */
static void send__a_piece_of_no_bytes(struct stage *s, struct world_pair *pair)
{
	const struct rpma_sge from[] = {{s->mr, FROM, HEADER}, {s->mr, 0, 0}};
	const struct rpma_sge to[] = {{s->mr, TO, HEADER}, {s->mr, 0, 0}};
	struct rpma_rt_recv_wr recv;
	struct rpma_rt_wr send;

	fill_page(s);
	rpma_rt_prep_recv(&recv, NULL, 0, 0, 1);
	rpma_rt_recv_wr_set_pieces(&recv, to, 2);
	MUST(world_post_recv(pair->passive, &recv));
	rpma_rt_prep_send(&send, NULL, 0, 0, 0, 2);
	rpma_rt_wr_set_pieces(&send, from, 2);
	MUST(world_post_send(pair->active, &send));
	stage_completion(s->aq, 2, IBV_WC_SUCCESS);
	CHECK(stage_completion(s->pq, 1, IBV_WC_SUCCESS).byte_len == HEADER);
	CHECK(!memcmp(s->memory + TO, s->memory + FROM, HEADER));
}

static void write_and_read__of_two_pieces(struct stage *s,
					  struct world_pair *pair)
{
	const struct rpma_sge from[] = {{s->mr, FROM + 512, HEADER},
					{s->mr, FROM, TAIL}};
	const struct rpma_sge back[] = {{s->mr, FROM + 1500, HEADER},
					{s->mr, FROM + 1600, 8}};
	struct rpma_rt_wr wr;

	fill_page(s);
	rpma_rt_prep_write(&wr, s->remote, TO, NULL, 0, 0, 0, 3);
	rpma_rt_wr_set_pieces(&wr, from, 2);
	MUST(world_post_send(pair->active, &wr));
	stage_completion(s->aq, 3, IBV_WC_SUCCESS);
	CHECK(!memcmp(s->memory + TO, s->memory + FROM + 512, HEADER));
	CHECK(!memcmp(s->memory + TO + HEADER, s->memory + FROM, TAIL));
	rpma_rt_prep_read(&wr, NULL, 0, s->remote, TO, 0, 0, 4);
	rpma_rt_wr_set_pieces(&wr, back, 2);
	MUST(world_post_send(pair->active, &wr));
	stage_completion(s->aq, 4, IBV_WC_SUCCESS);
	CHECK(!memcmp(s->memory + FROM + 1500, s->memory + FROM + 512, HEADER));
	CHECK(!memcmp(s->memory + FROM + 1600, s->memory + FROM, 8));
}

/* More pieces in a call than a chain has room for. */
static void write__many_pieces_in_one_call(struct stage *s,
					   struct world_pair *pair)
{
	struct rpma_sge pieces[DEPTH][16];
	struct rpma_rt_wr wrs[DEPTH];
	int i, j;

	fill_page(s);
	for (i = 0; i < DEPTH; i++) {
		for (j = 0; j < 16; j++)
			pieces[i][j] = (struct rpma_sge){
				s->mr, FROM + (size_t)(i * 16 + j) * 4, 4};
		rpma_rt_prep_write(&wrs[i], s->remote, TO + (size_t)i * 64,
				   NULL, 0, 0, 0, (uint64_t)i);
		rpma_rt_wr_set_pieces(&wrs[i], pieces[i], 16);
	}
	MUST_ANSWER(DEPTH, rpma_rt_post_send(pair->active, wrs, DEPTH));
	for (i = 0; i < DEPTH; i++)
		stage_completion(s->aq, (uint64_t)i, IBV_WC_SUCCESS);
	CHECK(!memcmp(s->memory + TO, s->memory + FROM, DEPTH * 64));
}

static void atomics__answer_what_was_there(struct stage *s,
					   struct world_pair *pair)
{
	uint64_t *there = (uint64_t *)(s->memory + TO);
	uint64_t *old = (uint64_t *)(s->memory + FROM);

	*there = 40;
	MUST(rpma_rt_fetch_add(pair->active, s->mr, FROM, s->remote, TO, 2, 0,
			       5));
	CHECK(stage_completion(s->aq, 5, IBV_WC_SUCCESS).opcode ==
	      IBV_WC_FETCH_ADD);
	CHECK(*old == 40 && *there == 42);
	MUST(rpma_rt_compare_swap(pair->active, s->mr, FROM, s->remote, TO, 41,
				  7, 0, 6));
	CHECK(stage_completion(s->aq, 6, IBV_WC_SUCCESS).opcode ==
	      IBV_WC_COMP_SWAP);
	CHECK(*old == 42 && *there == 42);
	MUST(rpma_rt_compare_swap(pair->active, s->mr, FROM, s->remote, TO, 42,
				  7, RPMA_RT_F_FENCE, 7));
	stage_completion(s->aq, 7, IBV_WC_SUCCESS);
	CHECK(*old == 42 && *there == 7);
}

/* Inline bytes are taken during the post. */
static void inline__the_region_is_free_at_once(struct stage *s,
					       struct world_pair *pair)
{
	MUST(rpma_rt_recv(pair->passive, s->mr, TO, HEADER, 8));
	memset(s->memory + FROM, 'a', HEADER);
	MUST(rpma_rt_send(pair->active, s->mr, FROM, HEADER,
			  RPMA_RT_F_INLINE | RPMA_RT_F_SOLICITED, 9));
	memset(s->memory + FROM, 'b', HEADER);
	stage_completion(s->aq, 9, IBV_WC_SUCCESS);
	stage_completion(s->pq, 8, IBV_WC_SUCCESS);
	CHECK(s->memory[TO] == 'a' && s->memory[TO + HEADER - 1] == 'a');
	CHECK(rpma_rt_send(pair->active, s->mr, FROM, STAGE_SIZE,
			   RPMA_RT_F_INLINE, 9) == RPMA_E_INVAL);
}

#define PART (RPMA_RT_F_LINKED | RPMA_RT_F_PART)

/*
 * Prepares a write, a flush, and the pointer to the data: the transaction of
 * storage.
 */
static void prepare_transaction(struct rpma_rt_wr *wrs, struct stage *s,
				const struct rpma_mr_remote *remote)
{
	rpma_rt_prep_write(&wrs[0], remote, TO, s->mr, FROM, HEADER, PART, 0);
	rpma_rt_prep_flush(&wrs[1], s->remote, TO, HEADER,
			   RPMA_FLUSH_TYPE_VISIBILITY, PART, 0);
	rpma_rt_prep_atomic_write(&wrs[2], s->remote, TO + 512, "pointer", 0,
				  10);
}

static void link__parts_complete_as_one(struct stage *s,
					struct world_pair *pair)
{
	struct rpma_rt_completion item;
	struct rpma_rt_wr wrs[3];
	int i;

	for (i = 0; i < 10 * DEPTH; i++) {
		fill_page(s);
		prepare_transaction(wrs, s, s->remote);
		MUST_ANSWER(3, rpma_rt_post_send(pair->active, wrs, 3));
		stage_completion(s->aq, 10, IBV_WC_SUCCESS);
		CHECK(!memcmp(s->memory + TO, s->memory + FROM, HEADER));
		CHECK(!memcmp(s->memory + TO + 512, "pointer", 8));
		MUST_ANSWER(0, rpma_rt_queue_poll(s->aq, &item, 1));
	}
}

/* Takes completions with contexts from 0 on, and a WRITABLE if there is one. */
static void take_writable_among(struct stage *s, uint64_t completions)
{
	struct rpma_rt_completion item;
	uint64_t writable = 0;
	uint64_t i;

	for (i = 0; i < completions + 1; i++) {
		item = world_next(s->aq);
		if (item.kind == RPMA_RT_WRITABLE)
			writable++;
		else
			CHECK(rpma_rt_completion_is_ok(&item) &&
			      item.context == i - writable);
	}
	CHECK(writable == 1);
}

/* With places for three, a write and a link of three: the write is posted, and
 * the link finds no room, for in manual mode nothing retires before a thread
 * waits. */
static void link__all_or_none(struct stage *s, struct world_pair *pair)
{
	struct rpma_rt_wr wrs[4];
	uint64_t i;

	for (i = 0; i < DEPTH - 3; i++)
		MUST(rpma_rt_write(pair->active, s->remote, TO, s->mr, FROM, 8,
				   0, i));
	for (i = 0; i < 4; i++)
		rpma_rt_prep_write(&wrs[i], s->remote, TO, s->mr, FROM, 8,
				   i == 1 || i == 2 ? RPMA_RT_F_LINKED : 0,
				   DEPTH - 3 + i);
	MUST_ANSWER(1, rpma_rt_post_send(pair->active, wrs, 4));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
	MUST_ANSWER(RPMA_E_AGAIN, rpma_rt_post_send(pair->active, wrs + 1, 3));
	take_writable_among(s, DEPTH - 2);
	MUST_ANSWER(3, rpma_rt_post_send(pair->active, wrs + 1, 3));
	for (i = 1; i < 4; i++)
		stage_completion(s->aq, DEPTH - 3 + i, IBV_WC_SUCCESS);
}

/*
 * The first part of a link fails: a single completion, with the status; then
 * CLOSED.
 */
static void link__fails_as_one(struct stage *s)
{
	struct rpma_mr_remote *nowhere = stage_vanished(s);
	struct rpma_rt_completion item;
	struct world_pair pair;
	struct rpma_rt_wr wrs[3];

	world_connect(&s->world, s->cfg, 0, s->aq, s->pq, &pair);
	prepare_transaction(wrs, s, nowhere);
	MUST_ANSWER(3, rpma_rt_post_send(pair.active, wrs, 3));
	item = stage_completion(s->aq, 10, IBV_WC_REM_ACCESS_ERR);
	item = world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	CHECK(item.status == RPMA_RT_REASON_ERROR);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&pair);
	MUST(rpma_mr_remote_delete(&nowhere));
}

int main(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct world_pair pair;
	struct stage s;

	stage_open(&s, &cfg);
	/* from now on the poller belongs to this thread: its waits run the
	 * poller */
	MUST(rpma_rt_poller_attach(s.world.rt, 0));
	stage_register_all(&s);
	s.cfg->max_sge = 16;
	s.cfg->waiting = RPMA_RT_NO_WAITING;
	s.cfg->max_inline = HEADER;
	stage_connect(&s, &pair);
	send__of_two_pieces_into_two(&s, &pair);
	send__a_piece_of_no_bytes(&s, &pair);
	write_and_read__of_two_pieces(&s, &pair);
	write__many_pieces_in_one_call(&s, &pair);
	atomics__answer_what_was_there(&s, &pair);
	inline__the_region_is_free_at_once(&s, &pair);
	link__parts_complete_as_one(&s, &pair);
	link__all_or_none(&s, &pair);
	stage_disconnect(&s, &pair);
	link__fails_as_one(&s);
	stage_close(&s);
	return 0;
}
