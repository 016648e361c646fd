/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hold.c -- posts the line; closes and pauses a gate; see hold.h, gate.h. With
 * the right only ledger and verb are used, and only the verb may sleep.
 */

#include "conn/hold.h"

#include <errno.h>

#include <infiniband/verbs.h>

#include "base/failure.h"
#include "base/log.h"
#include "base/order.h"
#include "conn/conn.h"
#include "poller/future.h"
#include "poller/poller.h"

/* ---------------------------------------------------------------- gate --- */

void rt_gate_close(struct rt_gate *gate)
{
	rt_turn_close(&gate->turn);
	/* a thread that paused the gate before reads the ledger */
	rt_turn_await(&gate->turn, RT_TURN_HELD | RT_TURN_PAUSED);
}

void rt_gate_pause(struct rt_gate *gate)
{
	while (!rt_turn_pause(&gate->turn))
		rt_turn_await(&gate->turn, RT_TURN_PAUSED);
	rt_turn_await(&gate->turn, RT_TURN_HELD);
}

bool rt_gate_resume(struct rt_gate *gate)
{
	return rt_turn_resume(&gate->turn);
}

/* ---------------------------------------------------------------- look --- */

void rt_look_send(struct rpma_rt_conn *conn)
{
	/* acq_rel: pairs with the exchange in rt_answer_look(): either that
	 * exchange sees what this thread left, or this thread sends the message
	 * again */
	if (atomic_exchange_explicit(&conn->look_sent, true,
				     memory_order_acq_rel))
		return;
	/* relaxed: the caller has a handle */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	rt_inbox_push_mt(&conn->poller->inbox, &conn->look_msg);
}

/* -------------------------------------------------------------- append --- */

void rt_hold_append_end(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			uint64_t wr_id, uint8_t opcode, uint32_t tick)
{
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, side);

	rt_ledger_append(&pen, wr_id, opcode, true, tick);
	rt_hold_end_row(conn, side, &pen);
}

/* ---------------------------------------------------------------- hold --- */

/* a hold of the right by a thread */
struct rt_hold {
	struct rpma_rt_conn *conn;
	enum rpma_rt_side side;
	/* the device refused a work request: the connection closes */
	bool is_refused;
	/* librpma may log inside the verb, so the log is held */
	bool is_log_held;
	bool has_places; /* slots of the line were given back */
};

/* ------------------------------------------------------------- the line --- */

static struct rt_gate *hold_gate_of(const struct rt_hold *hold)
{
	return &hold->conn->gate[hold->side];
}

static struct rt_ledger *hold_ledger_of(const struct rt_hold *hold)
{
	return &hold_gate_of(hold)->ledger;
}

/* the words of a slot that the holder needs, for sends and receives */
struct rt_line_head {
	uint64_t wr_id;
	bool is_waited;
	uint8_t completes;
	uint8_t link;
};

/* Returns the words of a slot of either kind, of the slot at that place in
 * line. */
static inline struct rt_line_head hold_head_of(const struct rt_hold *hold,
					       uint32_t place)
{
	const struct rt_turn *turn = &hold_gate_of(hold)->turn;
	const void *slot = rt_line_slot(turn, rt_turn_at(turn, place));
	const struct rt_line_recv *recv = slot;
	const struct rt_line_send *send = slot;

	if (hold->side == RPMA_RT_RECV_SIDE)
		return (struct rt_line_head){.wr_id = recv->wr_id,
					     .is_waited = recv->is_waited != 0,
					     .completes = IBV_WC_RECV};
	return (struct rt_line_head){.wr_id = send->wr_id,
				     .is_waited = send->is_waited != 0,
				     .completes = send->completes,
				     .link = send->link};
}

/* Returns the length of the link that begins at the place, 1 without a link;
 * *last: the link's last slot. */
static inline uint32_t hold_link_length(const struct rt_hold *hold,
					uint32_t place,
					struct rt_line_head *last)
{
	uint32_t length = 1;

	*last = hold_head_of(hold, place);
	while (unlikely(last->link & RT_LINK_GOES_ON))
		*last = hold_head_of(hold, place + length++);
	return length;
}

/* Takes the future off the line. Returns false if the future was cancelled
 * meanwhile, so that the work request is not posted. */
static bool hold_claim(const struct rt_line_head *last)
{
	return !last->is_waited || rt_future_leave_line(rt_future_of_cookie(
					   rt_wr_id_cookie(last->wr_id)));
}

static bool hold_is_cancelled(const struct rt_line_head *last)
{
	return last->is_waited && !rt_future_is_in_line(rt_future_of_cookie(
					  rt_wr_id_cookie(last->wr_id)));
}

/* Appends the entries of a link of that length, or of a single work request. */
static inline void hold_append(const struct rt_hold *hold, uint32_t place,
			       uint32_t length, uint32_t tick,
			       struct rt_ledger_pen *pen)
{
	struct rt_line_head head;

	for (; length > 0; length--, place++) {
		head = hold_head_of(hold, place);
		rt_hold_append(pen, head.wr_id, head.completes, tick);
		if (likely(head.link == 0))
			continue;
		rt_hold_end_row(hold->conn, hold->side, pen);
		rt_ledger_link(hold_ledger_of(hold), head.link);
		*pen = rt_hold_begin_row(hold->conn, hold->side);
	}
}

/*
 * Appends entries for as many work requests at the front as are posted next:
 * whole links, as far as the queue has room. Returns their number; 0: there is
 * no room, or the front was cancelled, and *cancelled is the length of the
 * cancelled link.
 */
static uint32_t hold_append_run(const struct rt_hold *hold, uint32_t *cancelled)
{
	uint32_t tick = rt_poller_date(hold->conn->poller);
	uint32_t end = rt_turn_length(&hold_gate_of(hold)->turn);
	struct rt_line_head last;
	struct rt_ledger_pen pen;
	uint32_t count = 0;
	uint32_t length;
	uint32_t room;

	*cancelled = 0;
	rt_hold_has_room(hold->conn, hold->side, end); /* or as much as is */
	room = rt_ledger_room(hold_ledger_of(hold));
	pen = rt_hold_begin_row(hold->conn, hold->side);
	for (; count < end && count < RT_POST_CHUNK; count += length) {
		length = hold_link_length(hold, count, &last);
		if (length > room - count)
			break;
		if (!hold_claim(&last)) {
			*cancelled = length;
			break;
		}
		hold_append(hold, count, length, tick, &pen);
	}
	rt_hold_end_row(hold->conn, hold->side, &pen);
	return count;
}

/* ------------------------------------------------------------- the verb --- */

static bool hold_is_signaled(const struct rt_hold *hold, uint32_t at)
{
	const struct rt_ledger *ledger = hold_ledger_of(hold);

	return ledger->entries[at & ledger->mask].signaled;
}

/* Gives a chain with native operations to librpma. The log's function is the
 * program's, and may post itself, so messages of librpma are kept until nothing
 * is held. */
static uint32_t hold_give_native(struct rt_hold *hold,
				 struct rpma_send_wr *chain, uint32_t n)
{
	RT_NOT_CANCELLED;
	struct rpma_rt_conn *conn = hold->conn;
	struct rpma_send_wr *bad = NULL;
	uint32_t i;
	int ret;

	for (i = 1; i < n; i++)
		chain[i - 1].wr.next = &chain[i].wr;
	if (!hold->is_log_held)
		rpma_log_hold();
	hold->is_log_held = true;
	ret = rpma_conn_post_send(conn->conn, conn, chain, &bad);
	if (ret == 0)
		return n;
	/* RPMA_E_AGAIN: the device has no memory */
	rt_reason_refused(conn,
			  ret == RPMA_E_AGAIN ? ENOMEM : rt_failure_errno(ret));
	return bad != NULL ? (uint32_t)(bad - chain) : 0;
}

/* Posts n work requests of the line from the place on. Returns how many the
 * device took; fewer than n: the device refused a work request. entry: index of
 * the first entry in the ledger. */
static uint32_t hold_post_sends(struct rt_hold *hold, uint32_t place,
				uint32_t entry, uint32_t n)
{
	const struct rt_turn *turn = &hold_gate_of(hold)->turn;
	struct rpma_send_wr chain[RT_POST_CHUNK];
	bool has_native = false;
	uint32_t i;

	for (i = 0; i < n; i++) {
		rt_line_get_send(turn, rt_turn_at(turn, place + i), &chain[i]);
		if (hold_is_signaled(hold, entry + i))
			chain[i].wr.send_flags |= IBV_SEND_SIGNALED;
		has_native |= chain[i].native != 0;
	}
	return has_native ? hold_give_native(hold, chain, n)
			  : (uint32_t)rt_hold_give_sends(hold->conn, chain,
							 (int)n);
}

static uint32_t hold_post_recvs(const struct rt_hold *hold, uint32_t place,
				uint32_t n)
{
	const struct rt_turn *turn = &hold_gate_of(hold)->turn;
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	uint32_t i;

	for (i = 0; i < n; i++)
		rt_line_get_recv(turn, rt_turn_at(turn, place + i), &chain[i]);
	return (uint32_t)rt_hold_give_recvs(hold->conn, chain, (int)n);
}

/* Gives the first `count` work requests of the line, which are appended, to the
 * device. */
static void hold_post_run(struct rt_hold *hold, uint32_t count)
{
	struct rt_ledger *ledger = hold_ledger_of(hold);
	uint32_t done = 0;
	uint32_t taken;
	uint32_t n;

	while (done < count) {
		n = count - done < RT_POST_CHUNK ? count - done : RT_POST_CHUNK;
		taken = hold->side == RPMA_RT_SEND_SIDE
				? hold_post_sends(hold, done,
						  ledger->tail - count + done,
						  n)
				: hold_post_recvs(hold, done, n);
		done += taken;
		if (taken < n) {
			hold->is_refused = true;
			rt_ledger_refuse(ledger, count - done);
			rt_turn_close(&hold_gate_of(hold)->turn);
			return;
		}
	}
}

static uint32_t hold_post(struct rt_turn *turn, void *arg)
{
	struct rt_hold *hold = arg;
	uint32_t cancelled;
	uint32_t count = hold_append_run(hold, &cancelled);

	if (count > 0) {
		hold_post_run(hold, count);
		rt_turn_leave_line(turn, (uint16_t)count);
		rt_hold_show_posted(hold->conn, hold->side);
	}
	if (cancelled > 0)
		rt_turn_leave_line(turn, (uint16_t)cancelled);
	/* the device may have completed what was posted before the slots were
	 * given back: then no completion tells a thread that was refused
	 * meanwhile */
	hold->has_places |= count + cancelled > 0;
	return count + cancelled;
}

static uint32_t hold_needs(struct rt_turn *turn, void *arg)
{
	struct rt_line_head last;

	(void)turn;
	return hold_link_length(arg, 0, &last);
}

static bool hold_has_room(struct rt_turn *turn, uint32_t count, void *arg)
{
	const struct rt_hold *hold = arg;
	const struct rt_ledger *ledger = hold_ledger_of(hold);

	(void)turn;
	/* acquire [LEDGER-1]: pairs with the release in rt_side_publish();
	 * relaxed: this thread sees its own store at least */
	return ledger->depth - (atomic_load_explicit(&ledger->posted,
						     memory_order_relaxed) -
				atomic_load_explicit(
					&hold->conn->side[hold->side].retired,
					memory_order_acquire)) >=
	       count;
}

static void hold_say(struct rt_turn *turn, bool waits, void *arg)
{
	const struct rt_hold *hold = arg;

	(void)turn;
	rt_want_line(&hold->conn->side[hold->side].want, waits);
}

static const struct rt_turn_ops ops = {
	.post = hold_post,
	.needs = hold_needs,
	.has_room = hold_has_room,
	.say = hold_say,
};

bool rt_hold_find_last(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		       uint32_t route, uint32_t *retired)
{
	const struct rt_hold hold = {.conn = conn, .side = side};
	struct rt_ledger *ledger = &conn->gate[side].ledger;
	struct rt_turn *turn = &conn->gate[side].turn;
	uint32_t index = ledger->tail;
	struct rt_line_head head;
	uint32_t place;
	bool is_found;

	/* acquire [LEDGER-1]: pairs with the release in rt_side_publish() */
	rt_ledger_reap(ledger, atomic_load_explicit(&conn->side[side].retired,
						    memory_order_acquire));
	is_found = rt_ledger_find_last(ledger, route, retired);
	rt_turn_gather(turn);
	/* if a work request in front is cancelled before the post, the work
	 * requests behind retire earlier than counted: then the number comes
	 * back late, never early */
	for (place = 0; place < rt_turn_length(turn); place++) {
		head = hold_head_of(&hold, place);
		index++;
		if (rt_wr_id_route(head.wr_id) != route)
			continue;
		is_found = true;
		*retired = index;
	}
	return is_found;
}

/* ------------------------------------------------------------- the end --- */

bool rt_hold_take_unposted(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			   struct rt_ledger_entry *entry)
{
	const struct rt_hold hold = {.conn = conn, .side = side};
	struct rt_turn *turn = &conn->gate[side].turn;
	struct rt_line_head head;

	rt_turn_gather(turn);
	while (rt_turn_length(turn) > 0) {
		head = hold_head_of(&hold, 0);
		rt_turn_leave_line(turn, 1);
		/* a part has the outcome of its link's last work request */
		if (head.link & RT_LINK_PART || !hold_claim(&head))
			continue;
		*entry = (struct rt_ledger_entry){.wr_id = head.wr_id,
						  .opcode = head.completes};
		return true;
	}
	return false;
}

/* ---------------------------------------------------------- the right --- */

/* Closes the connection: a verb refused a work request for which there was
 * room. */
static void hold_give_up(struct rpma_rt_conn *conn)
{
	char name[RPMA_RT_NAME_MAX + 1];
	char words[RT_FAILURE_WORDS];

	rt_name_copy(conn, name);
	RT_LOG_ERROR(
		"the device refused a post of \"%s\" (queue pair 0x%x), "
		"which closes: %s",
		name, conn->qp_num,
		rt_failure_2str(RT_STEP_POST, rt_reason_refusal(conn), words));
	rt_conn_close_for(conn, RT_CTL_REFUSED);
}

/* Ends a hold, when the right is given back. is_left: the poller goes on. */
static void hold_finish(const struct rt_hold *hold, bool is_left)
{
	if (hold->is_log_held)
		rpma_log_release();
	rt_fence_warn();
	if (is_left)
		rt_look_send(hold->conn);
	if (hold->has_places)
		rt_hold_tell_places(hold->conn, hold->side);
	if (hold->is_refused)
		hold_give_up(hold->conn);
}

static void hold_on(struct rt_hold *hold)
{
	uint32_t budget = rt_post_budget(hold->conn->poller->threaded);

	hold_finish(hold, rt_turn_hold(&hold_gate_of(hold)->turn, &ops, hold,
				       budget));
}

void rt_hold_published(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	struct rt_hold hold = {.conn = conn, .side = side};

	hold_on(&hold);
}

void rt_hold_refused(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		     uint64_t seen)
{
	struct rt_hold hold = {.conn = conn, .side = side, .is_refused = true};

	rt_turn_close(&conn->gate[side].turn);
	rt_hold_show_posted(conn, side);
	if (rt_turn_leave_alone(&conn->gate[side].turn, seen))
		hold_finish(&hold, false);
	else
		hold_on(&hold);
}

/* Takes cancelled work requests out of the line; returns their number. */
static uint32_t hold_sweep(const struct rt_hold *hold)
{
	struct rt_turn *turn = &hold_gate_of(hold)->turn;
	struct rt_line_head last;
	uint32_t place = 0;
	uint32_t swept = 0;
	uint32_t length;

	rt_turn_gather(turn);
	while (place < rt_turn_length(turn)) {
		length = hold_link_length(hold, place, &last);
		if (!hold_is_cancelled(&last)) {
			place += length;
			continue;
		}
		hold_claim(&last); /* takes the future off the line */
		rt_turn_cut_line(turn, place, (uint16_t)length);
		swept += length;
	}
	return swept;
}

bool rt_hold_sweep(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	struct rt_hold hold = {.conn = conn, .side = side};

	if (!rt_hold_has_cancelled(conn, side) ||
	    !rt_turn_try_take(&conn->gate[side].turn))
		return false;
	hold.has_places = hold_sweep(&hold) > 0;
	hold_on(&hold);
	return hold.has_places;
}

void rt_hold_poller(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	if (rt_turn_take_waiting(&conn->gate[side].turn))
		rt_hold_published(conn, side);
}

/* ------------------------------------------------------- kept rights --- */

#define HOLD_ASKED 64 /* sides for one fence */

struct hold_asked {
	struct rpma_rt_conn *conn;
	enum rpma_rt_side side;
	uint64_t asked;
};

/* The keepers that are outside give their rights up, with a fence for all. */
static void hold_recall_asked(const struct hold_asked *sides, uint32_t count)
{
	uint32_t i;

	if (count > 0)
		rt_fence_heavy();
	for (i = 0; i < count; i++) {
		if (rt_turn_recall_asked(
			    &sides[i].conn->gate[sides[i].side].turn,
			    sides[i].asked))
			rt_hold_let_go(sides[i].conn, sides[i].side);
	}
}

void rt_hold_recall(struct rpma_rt_conn *conn)
{
	struct hold_asked sides[HOLD_ASKED];
	uint32_t count = 0;
	int i;

	for (; conn != NULL; conn = conn->next) {
		for (i = 0; i < 2; i++) {
			sides[count].conn = conn;
			sides[count].side = (enum rpma_rt_side)i;
			count += rt_turn_ask_keeper(&conn->gate[i].turn,
						    &sides[count].asked);
		}
		if (count < HOLD_ASKED - 1)
			continue;
		hold_recall_asked(sides, count);
		count = 0;
	}
	hold_recall_asked(sides, count);
}

void rt_hold_tell_places(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	/* pairs with the fence in post_refuse() [LEDGER-2]: either this look
	 * sees what the refused thread wants, or that thread sees the places */
	rt_fence_dekker();
	if (rt_side_wants(&conn->side[side], RT_WANT_CREDIT))
		rt_look_send(conn);
}
