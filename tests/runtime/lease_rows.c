/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lease_rows.c -- rpma_rt_post_leases(): a row of messages, one of each lease,
 * arrives in order and completes once, for any length of the row, any pools of
 * the leases and any room; a refused row posts nothing; a row that fails
 * completes with errors.
 */

#include <string.h>

#include "stage.h"

#define DEPTH	  64
#define SLOTS	  200
#define SLOT_SIZE 64

struct rows {
	struct stage s;
	struct rpma_rt_pool *to_send;
	struct rpma_rt_pool *other;
	struct rpma_rt_pool *to_receive; /* NULL: messages find no receive */
	struct world_pair pair;
	uint64_t sent; /* numbers the messages */
	uint64_t received;
	struct rpma_rt_lease leases[SLOTS];
	const struct rpma_rt_lease *row[SLOTS];
};

static void set_up(struct rows *r, bool has_receives)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};

	memset(r, 0, sizeof(*r));
	stage_open(&r->s, &cfg);
	r->to_send = stage_pool(&r->s, NULL, SLOTS, SLOT_SIZE,
				RPMA_RT_POOL_NO_SENDS);
	r->other = stage_pool(&r->s, NULL, SLOTS, SLOT_SIZE,
			      RPMA_RT_POOL_NO_SENDS);
	if (has_receives)
		r->to_receive = stage_pool(&r->s, NULL, 4 * DEPTH, SLOT_SIZE,
					   RPMA_RT_POOL_NO_SENDS);
	r->s.cfg->pool = r->to_receive;
	stage_connect(&r->s, &r->pair);
}

static void tear_down(struct rows *r)
{
	stage_all_free(r->to_send, SLOTS);
	MUST(rpma_rt_pool_delete(&r->to_send));
	MUST(rpma_rt_pool_delete(&r->other));
	if (r->to_receive != NULL)
		MUST(rpma_rt_pool_delete(&r->to_receive));
	stage_close(&r->s);
}

/* Takes leases, of both pools in turn if is_mixed, and writes the next numbers
 * into the slots. */
static void take_row(struct rows *r, int count, bool is_mixed)
{
	int i;

	for (i = 0; i < count; i++) {
		MUST(rpma_rt_pool_take(is_mixed && i % 2 ? r->other
							 : r->to_send,
				       &r->leases[i]));
		memcpy(r->leases[i].data, &r->sent, sizeof(r->sent));
		r->leases[i].len = 8 + (uint32_t)(r->sent % 8);
		r->sent++;
		r->row[i] = &r->leases[i];
	}
}

static int post(struct rows *r, int count, uint32_t flags, uint64_t context)
{
	return rpma_rt_post_leases(r->pair.active, r->row, count, flags,
				   context);
}

/* The next message has the next number, and the length of that number. */
static void receive_one(struct rows *r)
{
	struct rpma_rt_completion item = world_next(r->s.pq);
	struct rpma_rt_lease lease;
	uint64_t number;

	CHECK(rpma_rt_completion_lease(&item, &lease));
	memcpy(&number, lease.data, sizeof(number));
	CHECK(number == r->received && lease.len == 8 + number % 8);
	r->received++;
	MUST(rpma_rt_lease_release(&lease));
}

/* Returns the length of the next message, whatever the number. */
static uint32_t received_len(struct rows *r)
{
	struct rpma_rt_completion item = world_next(r->s.pq);
	struct rpma_rt_lease lease;

	CHECK(rpma_rt_completion_lease(&item, &lease));
	MUST(rpma_rt_lease_release(&lease));
	return lease.len;
}

static void receive_all(struct rows *r)
{
	while (r->received < r->sent)
		receive_one(r);
}

/* The next item is the completion of the row, whose leases go back. */
static void complete(struct rows *r, int count, uint64_t context)
{
	struct rpma_rt_completion item = world_next_but_writable(r->s.aq);

	CHECK(item.kind == RPMA_RT_COMPLETION && item.status == 0);
	CHECK(item.opcode == IBV_WC_SEND && item.context == context);
	MUST(rpma_rt_leases_release(r->row, (uint32_t)count));
}

static void row__of_any_length_COMPLETES_ONCE(struct rows *r)
{
	const int lengths[] = {1, 2, 31, 32, 33, 64, 1, 7};
	uint64_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		take_row(r, lengths[i], false);
		MUST_ANSWER(lengths[i],
			    post(r, lengths[i], RPMA_F_COMPLETION_ALWAYS, i));
		receive_all(r);
		complete(r, lengths[i], i);
	}
}

/* Silent rows of all lengths, more than the queue has room for: the room comes
 * back, and the next row with a completion completes all. */
static void row__on_error_only_SILENT(struct rows *r)
{
	uint64_t i;
	int count;

	for (i = 0; i < 600; i++) {
		count = 1 + (int)(i % 40);
		take_row(r, count, false);
		MUST_ANSWER(count,
			    post(r, count, RPMA_F_COMPLETION_ON_ERROR, 100));
		receive_all(r);
		if (i % 100 != 99) {
			/* the device has read the bytes of all messages */
			MUST(rpma_rt_leases_release(r->row, (uint32_t)count));
			continue;
		}
		memcpy(r->leases[0].data, &r->sent, sizeof(r->sent));
		r->leases[0].len = 8 + (uint32_t)(r->sent % 8);
		r->sent++;
		MUST_ANSWER(1, post(r, 1, 0, i));
		receive_all(r);
		complete(r, count, i);
	}
}

/* The bytes are where mr, offset and len say, in each way. */
static void row__of_parts_of_slots_ARRIVES(struct rows *r)
{
	const int lengths[] = {2, 33};
	int count;
	int way;
	int i;

	for (way = 0; way < 2; way++) {
		count = lengths[way];
		take_row(r, count, false);
		for (i = 0; i < count; i++) {
			memmove((char *)r->leases[i].data + 16,
				r->leases[i].data, 16);
			memset(r->leases[i].data, 0xff, 16);
			r->leases[i].offset += 16;
		}
		MUST_ANSWER(count, post(r, count, 0, 20));
		receive_all(r);
		complete(r, count, 20);
	}
}

/* Each message is read with the key of its pool, also while slots of the same
 * number are held in both pools. */
static void row__of_two_pools_ARRIVES(struct rows *r)
{
	uint64_t i;

	for (i = 0; i < 3; i++) {
		take_row(r, 30, true);
		MUST_ANSWER(30, post(r, 30, 0, i));
		receive_all(r);
		complete(r, 30, i);
	}
}

/* A message that waits for a receive holds the first slot beside the program:
 * RPMA_RT_F_KEEP. */
static void row__lease_with_another_holder_ARRIVES(void)
{
	struct rpma_rt_completion item;
	struct rows r;
	int i;

	set_up(&r, false);
	take_row(&r, 3, false);
	for (i = 0; i < 2; i++) {
		MUST(rpma_rt_recv(r.pair.passive, r.s.mr, 0, 64, 1));
		MUST(rpma_rt_send(r.pair.active, r.s.mr, 0, 8, 0, 2));
		stage_completion(r.s.pq, 1, IBV_WC_SUCCESS);
		stage_completion(r.s.aq, 2, IBV_WC_SUCCESS);
	}
	MUST(rpma_rt_send_lease(r.pair.active, r.row[0], r.row[0]->len,
				RPMA_RT_F_KEEP));
	MUST_ANSWER(3, post(&r, 3, RPMA_F_COMPLETION_ON_ERROR, 8));
	MUST_ANSWER(1, rpma_rt_post_leases(r.pair.active, &r.row[2], 1, 0, 9));
	for (i = 0; i < 5; i++)
		MUST(rpma_rt_recv(r.pair.passive, r.s.mr, 0, 64, 1));
	for (i = 0; i < 5; i++)
		stage_completion(r.s.pq, 1, IBV_WC_SUCCESS);
	item = world_next_but_writable(r.s.aq);
	CHECK(item.status == 0 && item.context == 9);
	MUST(rpma_rt_leases_release(r.row, 3));
	stage_disconnect(&r.s, &r.pair);
	tear_down(&r);
}

/* The row is longer than queue and line together, and is posted in parts. */
static void row__without_room_GOES_ON(struct rows *r)
{
	int done = 0;
	int ret;

	take_row(r, SLOTS, false);
	while (done < SLOTS) {
		ret = rpma_rt_post_leases(r->pair.active, &r->row[done],
					  SLOTS - done, 0, 9);
		if (ret == RPMA_E_AGAIN) {
			CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
			if (r->received < r->sent - (uint64_t)(SLOTS - done))
				receive_one(r);
			continue;
		}
		CHECK(ret > 0);
		done += ret;
	}
	receive_all(r);
	complete(r, SLOTS, 9);
}

/* What is wrong is seen in a short row, and in a row of two chains. */
static void row__wrong_REFUSED(struct rows *r)
{
	const int lengths[] = {4, 40};
	const struct rpma_rt_lease *held;
	struct rpma_rt_lease wild;
	int count;
	int way;

	take_row(r, 40, false);
	MUST_ANSWER(0, post(r, 0, 0, 0));
	MUST_ANSWER(RPMA_E_INVAL, post(r, -1, 0, 0));
	MUST_ANSWER(RPMA_E_INVAL,
		    rpma_rt_post_leases(r->pair.active, NULL, 1, 0, 0));
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_post_leases(NULL, r->row, 1, 0, 0));
	held = r->row[3];
	wild = *held;
	wild.slot = UINT32_MAX;
	wild.offset = (uint64_t)wild.slot * SLOT_SIZE; /* of such a slot */
	for (way = 0; way < 2; way++) {
		count = lengths[way];
		MUST_ANSWER(RPMA_E_INVAL, post(r, count, RPMA_RT_F_FENCE, 0));
		MUST_ANSWER(
			RPMA_E_INVAL,
			post(r, count, 0, UINT64_C(1) << RPMA_RT_CONTEXT_BITS));
		r->row[3] = NULL;
		MUST_ANSWER(RPMA_E_INVAL, post(r, count, 0, 0));
		r->row[3] = &wild;
		MUST_ANSWER(RPMA_E_INVAL, post(r, count, 0, 0));
		r->row[3] = held;
	}
	MUST(rpma_rt_lease_release(held));
	for (way = 0; way < 2; way++)
		MUST_ANSWER(RPMA_E_INVAL, post(r, lengths[way], 0, 0));
	r->row[3] = r->row[39];
	MUST(rpma_rt_leases_release(r->row, 39));
	r->sent -= 40; /* no message was posted */
	take_row(r, 1, false);
	MUST_ANSWER(1, post(r, 1, 0, 10));
	receive_all(r);
	complete(r, 1, 10);
}

/* Refuses a row whose fourth lease names bytes outside of the slot, and a
 * work request with such a lease. */
static void refuse_outside(struct rows *r, const struct rpma_rt_lease *wrong)
{
	const int lengths[] = {4, 40};
	const struct rpma_rt_lease *right = r->row[3];
	struct rpma_rt_wr wr;
	int way;

	r->row[3] = wrong;
	for (way = 0; way < 2; way++)
		MUST_ANSWER(RPMA_E_INVAL, post(r, lengths[way], 0, 12));
	rpma_rt_prep_send_lease(&wr, wrong, wrong->len, 0);
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_post_send(r->pair.active, &wr, 1));
	r->row[3] = right;
}

/* The next slots have messages of other clients. The lengths are of
 * snprintf(), which returns what the text without a limit needs. */
static void row__outside_of_the_slot_REFUSED(struct rows *r)
{
	struct rpma_rt_lease wrong;

	take_row(r, 40, false);
	wrong = *r->row[3];
	wrong.len = SLOT_SIZE + 1;
	refuse_outside(r, &wrong);
	wrong.len = UINT32_MAX;
	refuse_outside(r, &wrong);
	wrong.len = 2;
	wrong.offset = r->row[3]->offset + SLOT_SIZE - 1;
	refuse_outside(r, &wrong);
	wrong.offset = r->row[3]->offset - 1;
	refuse_outside(r, &wrong);
	wrong.offset = r->row[4]->offset;
	refuse_outside(r, &wrong);
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_send_lease(r->pair.active, r->row[3],
						     UINT64_C(1) << 32, 0));
	/* all of the slot, and the last byte of the slot, are sent */
	r->leases[0].len = SLOT_SIZE;
	r->leases[1].offset += SLOT_SIZE - 1;
	r->leases[1].len = 1;
	MUST_ANSWER(2, rpma_rt_post_leases(r->pair.active, r->row, 2, 0, 13));
	CHECK(received_len(r) == SLOT_SIZE && received_len(r) == 1);
	complete(r, 40, 13);
	r->sent -= 40;
}

/* The messages wait for receives, and the close flushes the messages. */
static void row__of_a_dying_connection_FAILS(void)
{
	struct rpma_rt_completion item;
	struct rows r;
	int failed = 0;

	set_up(&r, false);
	take_row(&r, 5, false);
	MUST_ANSWER(5, post(&r, 5, 0, 11));
	MUST(rpma_rt_conn_close(r.pair.active));
	for (;;) {
		item = world_next_but_writable(r.s.aq);
		if (item.kind == RPMA_RT_EVENT)
			break;
		CHECK(item.status != 0 && item.context == 11);
		failed++;
	}
	CHECK(rpma_rt_completion_event(&item) == RPMA_RT_EVENT_CLOSED);
	CHECK(failed == 5);
	MUST(rpma_rt_leases_release(r.row, 5));
	/* also with leases that are not held any more */
	MUST_ANSWER(RPMA_RT_E_CLOSED, post(&r, 5, 0, 11));
	world_event(r.s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&r.pair);
	tear_down(&r);
}

int main(void)
{
	struct rows r;

	set_up(&r, true);
	row__of_two_pools_ARRIVES(&r); /* while both pools are alike */
	row__of_any_length_COMPLETES_ONCE(&r);
	row__on_error_only_SILENT(&r);
	row__of_parts_of_slots_ARRIVES(&r);
	row__without_room_GOES_ON(&r);
	row__wrong_REFUSED(&r);
	row__outside_of_the_slot_REFUSED(&r);
	stage_disconnect(&r.s, &r.pair);
	tear_down(&r);
	row__lease_with_another_holder_ARRIVES();
	row__of_a_dying_connection_FAILS();
	puts("ok");
	return 0;
}
