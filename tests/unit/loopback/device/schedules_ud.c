/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * schedules_ud.c -- datagrams and multicast under the scheduler: a datagram
 * meets its receive, the end of its receiver, the end of its address handle,
 * and a receiver that joins and leaves a group, in every order of the steps,
 * and at random in the thread mode.
 */

#include "fixture.h"

#include <stdbool.h>
#include <string.h>

#define GRH  40u
#define LEN  8u
#define SENT 3 /* datagrams to a group */

static const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};

struct world {
	struct pair *p;
	struct ibv_ah *ah;
	bool is_threaded;
	/* of a run */
	uint32_t qpn;	 /* of b, which may be gone */
	bool posted;	 /* the receive, */
	bool was_posted; /* before the datagram was */
	bool is_own;	 /* the memory is, again, end b's */
	bool is_member;	 /* the attach of b is over, and the detach not begun */
	bool is_past;	 /* b's detach is over */
	uint64_t must;	 /* bits: datagrams due at b */
	uint64_t must_not;
	unsigned ways[2]; /* runs with missing datagrams, and without */
	unsigned musts, must_nots; /* runs with such datagrams */
};

static struct ibv_ah *ah_to(const struct end *e, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	if (gid)
		attr.grh.dgid = *gid;
	else
		ibv_query_gid(e->ctx, 1, 0, &attr.grh.dgid);
	ah = ibv_create_ah(e->pd, &attr);
	assert_non_null(ah);
	return ah;
}

static void end_world(struct world *w)
{
	if (!w->p)
		return;
	if (w->ah)
		assert_int_equal(ibv_destroy_ah(w->ah), 0);
	pair_delete(w->p);
}

static void begin_to(struct world *w, const union ibv_gid *gid)
{
	struct world next = {.is_threaded = w->is_threaded,
			     .ways = {w->ways[0], w->ways[1]},
			     .musts = w->musts,
			     .must_nots = w->must_nots};

	end_world(w);
	*w = next;
	w->p = pair_new(0);
	end_swap_qp(&w->p->a, IBV_QPT_UD);
	end_swap_qp(&w->p->b, IBV_QPT_UD);
	end_to_rts(&w->p->a, 0);
	end_to_rts(&w->p->b, 0);
	w->ah = ah_to(&w->p->a, gid);
	w->qpn = gid ? 0xffffff : w->p->b.qp->qp_num;
	memset(w->p->a.buf, 2, LEN);
}

static void begin(void *arg)
{
	begin_to(arg, NULL);
}

static void recv_one(const struct end *e, uint64_t id)
{
	end_recv(e, id, 0, GRH + LEN);
}

static int mail_by(const struct world *w, struct ibv_ah *ah, uint64_t id)
{
	const struct end *e = &w->p->a;
	struct ibv_sge sge = {(uintptr_t)e->buf, LEN, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .imm_data = (uint32_t)id,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.ud = {.ah = ah,
						   .remote_qpn = w->qpn,
						   .remote_qkey = QKEY},
				 };

	return ibv_post_send(e->qp, &wr, &bad);
}

static void search(struct world *w, struct rpma_loopback_sched *sched)
{
	sched->arg = w;
	w->is_threaded = false;
	search_inline(sched);
	w->is_threaded = true;
	search_thread(sched);
}

/* Returns true if all sends succeeded, which must happen in every case. */
static bool all_left(const struct world *w, uint64_t n)
{
	for (uint64_t id = 1; id <= n; id++) {
		struct ibv_wc wc = end_wait(&w->p->a);

		if (wc.wr_id != id || wc.status != IBV_WC_SUCCESS)
			return false;
	}
	return true;
}

/* --- a datagram and the receive */

static void mail_one(void *arg)
{
	struct world *w = arg;

	w->was_posted = w->posted;
	mail_by(w, w->ah, 1);
}

static void post_one(void *arg)
{
	struct world *w = arg;

	recv_one(&w->p->b, 5);
	w->posted = true;
}

static int check_one(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;
	int n;

	if (!all_left(w, 1))
		return 1;
	n = ibv_poll_cq(w->p->b.cq, 1, &wc);
	if (n && (wc.status != IBV_WC_SUCCESS || wc.wr_id != 5 ||
		  wc.byte_len != GRH + LEN))
		return 1;
	w->ways[n]++;
	return w->was_posted && !n;
}

FRESH(ud__datagram_meets_its_receive_ARRIVES_OR_IS_DROPPED)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {mail_one, post_one},
		.setup = begin,
		.check = check_one,
	};

	search(&w, &sched);
	assert_true(w.ways[0] && w.ways[1]);
	end_world(&w);
}

/* --- a datagram and the end of its receiver */

static void begin_receiver(void *arg)
{
	struct world *w = arg;

	begin_to(w, NULL);
	recv_one(&w->p->b, 5);
	recv_one(&w->p->b, 6);
}

static void mail_two(void *arg)
{
	struct world *w = arg;

	mail_by(w, w->ah, 1);
	mail_by(w, w->ah, 2);
}

/*
 * After the call the memory belongs to the program, and the successor gets
 * nothing.
 */
static void replace_receiver(void *arg)
{
	struct world *w = arg;

	end_swap_qp(&w->p->b, IBV_QPT_UD);
	memset(w->p->b.buf, 1, GRH + LEN);
	end_to_rts(&w->p->b, 0);
	recv_one(&w->p->b, 7);
	w->is_own = true;
}

static int check_replaced(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;
	int arrived = 0;

	if (!all_left(w, 2))
		return 1;
	/* completions of a destroyed receiver may stay */
	while (ibv_poll_cq(w->p->b.cq, 1, &wc)) {
		if (wc.wr_id == 7 || wc.status != IBV_WC_SUCCESS)
			return 1;
		arrived++;
	}
	w->ways[arrived == 2]++;
	for (unsigned i = 0; i < GRH + LEN; i++) {
		if (w->p->b.buf[i] != 1)
			return 1;
	}
	return 0;
}

FRESH(ud__datagrams_meet_a_destroy_NO_BYTE_MOVES_AFTER_IT)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {mail_two, replace_receiver},
		.setup = begin_receiver,
		.check = check_replaced,
		/* with many internal steps */
		.points = 1u << RPMA_LOOPBACK_POST_SEND |
			  1u << RPMA_LOOPBACK_POST_SEND_DONE |
			  1u << RPMA_LOOPBACK_DESTROY |
			  1u << RPMA_LOOPBACK_DESTROY_DONE |
			  1u << RPMA_LOOPBACK_MODIFY_DONE,
	};

	search(&w, &sched);
	assert_true(w.ways[0] && w.ways[1]);
	end_world(&w);
}

/* --- a datagram and the end of its address handle */

static void mail_with_own_handle(struct world *w, uint64_t id)
{
	struct ibv_ah *ah = ah_to(&w->p->a, NULL);

	rpma_loopback_sched_point("a handle");
	mail_by(w, ah, id);
	ibv_destroy_ah(ah);
}

static void mail_first(void *arg)
{
	mail_with_own_handle(arg, 1);
}

static void mail_second(void *arg)
{
	mail_with_own_handle(arg, 2);
}

/* Both arrive, in either order. */
static int check_both(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;
	uint64_t seen = 0;

	for (int i = 0; i < 2; i++) {
		wc = end_wait(&w->p->a);
		if (wc.status != IBV_WC_SUCCESS)
			return 1;
	}
	while (ibv_poll_cq(w->p->b.cq, 1, &wc)) {
		if (wc.status != IBV_WC_SUCCESS ||
		    wc.src_qp != w->p->a.qp->qp_num)
			return 1;
		w->ways[wc.wr_id == 5 && wc.imm_data == 1]++;
		seen |= 1u << wc.imm_data;
	}
	return seen != (1u << 1 | 1u << 2);
}

FRESH(ud__handle_destroyed_behind_the_post_ARRIVES)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {mail_first, mail_second},
		.setup = begin_receiver,
		.check = check_both,
	};

	search(&w, &sched);
	assert_true(w.ways[0] && w.ways[1]);
	end_world(&w);
}

/* --- datagrams to a group, and a joining and leaving member */

static void begin_group(void *arg)
{
	struct world *w = arg;

	begin_to(w, &group);
	for (uint64_t i = 0; i < SENT; i++)
		recv_one(&w->p->b, i);
}

/* In the thread mode a post says nothing about the time of sending. */
static void mail_group(void *arg)
{
	struct world *w = arg;

	for (uint64_t id = 1; id <= SENT; id++) {
		bool was_member = w->is_member, was_past = w->is_past;

		mail_by(w, w->ah, id);
		if (was_past)
			w->must_not |= 1u << id;
		if (was_member && w->is_member && !w->is_threaded)
			w->must |= 1u << id;
	}
}

static void come_and_go(void *arg)
{
	struct world *w = arg;

	if (ibv_attach_mcast(w->p->b.qp, &group, 0))
		return;
	w->is_member = true;
	rpma_loopback_sched_point("a member");
	w->is_member = false;
	if (ibv_detach_mcast(w->p->b.qp, &group, 0))
		return;
	w->is_past = true;
	rpma_loopback_sched_point("no member");
}

static int check_group(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;
	uint64_t seen = 0;

	if (!w->is_past || !all_left(w, SENT))
		return 1;
	while (ibv_poll_cq(w->p->b.cq, 1, &wc)) {
		if (wc.status != IBV_WC_SUCCESS || seen >> wc.imm_data)
			return 1; /* or twice, or not in order */
		seen |= 1u << wc.imm_data;
	}
	w->ways[seen != 0]++;
	w->musts += w->must != 0;
	w->must_nots += w->must_not != 0;
	return (seen & w->must) != w->must || seen & w->must_not;
}

FRESH(mcast__member_comes_and_goes_GETS_WHAT_IS_BETWEEN)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {mail_group, come_and_go},
		.setup = begin_group,
		.check = check_group,
	};

	search(&w, &sched);
	assert_true(w.ways[0] && w.ways[1]);
	assert_true(w.musts && w.must_nots);
	end_world(&w);
}

/* --- a group whose only member goes while another comes */

/* Leaves the group as the last member, while another group is made. */
static void swap_members(void *arg)
{
	struct world *w = arg;

	if (ibv_detach_mcast(w->p->a.qp, &group, 0))
		return;
	rpma_loopback_sched_point("a group less");
	if (ibv_attach_mcast(w->p->b.qp, &group, 0))
		return;
	w->is_member = true;
	rpma_loopback_sched_point("a group more");
}

static void begin_swap(void *arg)
{
	struct world *w = arg;

	/* both have left: a queue pair in a group cannot be destroyed */
	if (w->p && w->is_member)
		assert_int_equal(ibv_detach_mcast(w->p->b.qp, &group, 0), 0);
	begin_group(arg);
	assert_int_equal(ibv_attach_mcast(w->p->a.qp, &group, 0), 0);
}

static int check_swap(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;
	uint64_t seen = 0;

	/* a posts no receive: datagrams for a are dropped */
	if (!w->is_member || !all_left(w, SENT))
		return 1;
	while (ibv_poll_cq(w->p->b.cq, 1, &wc)) {
		if (wc.status != IBV_WC_SUCCESS || seen >> wc.imm_data)
			return 1;
		seen |= 1u << wc.imm_data;
	}
	w->ways[seen != 0]++;
	return (seen & w->must) != w->must;
}

FRESH(mcast__last_member_goes_and_another_comes_GETS_THE_REST)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {mail_group, swap_members},
		.setup = begin_swap,
		.check = check_swap,
	};

	search(&w, &sched);
	assert_true(w.ways[0] && w.ways[1]);
	assert_int_equal(ibv_detach_mcast(w.p->b.qp, &group, 0), 0);
	end_world(&w);
}

TEST_MAIN()
