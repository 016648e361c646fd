/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The form without a library, as fast as possible: each thread has a single
 * CQ; after a round of completions all posts go out in chains of up to 32; few
 * sends are signaled, and the completion of a signaled send frees all sends
 * before; the work requests are made once and differ in address and flags; a
 * server sends from the slot of the receive.
 *
 * The form "split" divides the same work as a busy poller and a worker do: a
 * thread polls the CQ, and hands the ends of the received messages to the
 * worker through a ring; the worker posts for both ends. The form shows the
 * most that a library can reach in that arrangement.
 */

#include "e2e.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"

/* A thread's, used for every post: they stay in the cache. */
struct chains {
	struct ibv_cq *cq;
	uint32_t signal_mask; /* one send in signal_mask + 1 is signaled */
	struct ibv_send_wr sends[E2E_BATCH];
	struct ibv_sge send_sges[E2E_BATCH];
	struct ibv_recv_wr recvs[E2E_BATCH];
	struct ibv_sge recv_sges[E2E_BATCH];
};

static struct bare bare;

static void must_post(int ret)
{
	if (__builtin_expect(ret != 0, 0))
		bench_fail("a post was refused");
}

static void post_recvs(struct chains *chains, struct e2e_end *end)
{
	struct ibv_recv_wr *bad;
	int count = e2e_batch(end->recvs);
	int i;

	for (i = 0; i < count; i++) {
		chains->recv_sges[i].addr =
			(uintptr_t)e2e_in(end, end->received++);
		chains->recvs[i].wr_id = (uintptr_t)end;
	}
	chains->recvs[count - 1].next = NULL;
	must_post(ibv_post_recv(end->handle, chains->recvs, &bad));
	if (count < E2E_BATCH)
		chains->recvs[count - 1].next = &chains->recvs[count];
	end->recvs -= (uint32_t)count;
}

static void post_sends(struct chains *chains, struct e2e_end *end)
{
	struct ibv_send_wr *bad;
	int count = e2e_batch(end->sends);
	int i;

	for (i = 0; i < count; i++) {
		chains->send_sges[i].addr = (uintptr_t)e2e_out(end, end->sent);
		chains->sends[i].send_flags =
			(end->sent++ & chains->signal_mask) == 0
				? IBV_SEND_SIGNALED
				: 0;
	}
	chains->sends[count - 1].next = NULL;
	must_post(ibv_post_send(end->handle, chains->sends, &bad));
	if (count < E2E_BATCH)
		chains->sends[count - 1].next = &chains->sends[count];
	end->sends -= (uint32_t)count;
}

static bool post_bare(struct e2e_end *end)
{
	struct chains *chains = end->thread->form;

	while (e2e_posts_recvs(end))
		post_recvs(chains, end);
	while (end->sends > 0)
		post_sends(chains, end);
	return true;
}

static int poll_bare(struct chains *chains)
{
	struct ibv_wc wcs[E2E_BATCH];
	int got = ibv_poll_cq(chains->cq, E2E_BATCH, wcs);
	int i;

	for (i = 0; i < got; i++) {
		if (__builtin_expect(wcs[i].status != IBV_WC_SUCCESS, 0))
			bench_fail(ibv_wc_status_str(wcs[i].status));
		if (wcs[i].opcode & IBV_WC_RECV)
			e2e_got((struct e2e_end *)(uintptr_t)wcs[i].wr_id);
	}
	return got;
}

static void run_bare(struct e2e *e2e, struct e2e_thread *thread)
{
	struct chains *chains = thread->form;

	e2e_begin(e2e, thread);
	do {
		e2e_post_all(thread, post_bare);
		while (e2e_polls_again(e2e, poll_bare(chains)))
			;
	} while (!e2e_is_over(e2e, thread));
}

static struct chains *make_chains(struct e2e_thread *thread, uint32_t sq_size,
				  uint32_t lkey)
{
	struct chains *chains =
		aligned_alloc(64, (sizeof(*chains) + 63) / 64 * 64);
	int i;

	if (chains == NULL)
		bench_fail("no memory");
	memset(chains, 0, sizeof(*chains));
	thread->form = chains;
	chains->cq = bare_cq(&bare, 2 * thread->end_count * sq_size);
	for (i = 0; i < E2E_BATCH; i++) {
		chains->send_sges[i].length = E2E_SIZE;
		chains->send_sges[i].lkey = lkey;
		chains->sends[i].sg_list = &chains->send_sges[i];
		chains->sends[i].num_sge = 1;
		chains->sends[i].opcode = IBV_WR_SEND;
		chains->sends[i].next = &chains->sends[i + 1];
		chains->recv_sges[i].length = E2E_SIZE;
		chains->recv_sges[i].lkey = lkey;
		chains->recvs[i].sg_list = &chains->recv_sges[i];
		chains->recvs[i].num_sge = 1;
		chains->recvs[i].next = &chains->recvs[i + 1];
	}
	return chains;
}

static void open_bare(struct e2e *e2e)
{
	uint32_t signal_each = e2e_sends_a_signal(e2e);
	/* twice the depth may be outstanding before a completion is seen */
	uint32_t sq_size = 2 * e2e->depth + signal_each;
	struct rdma_cm_id *ids[2];
	struct ibv_cq *cqs[2];
	struct ibv_mr *mr;
	uint32_t i;
	int side;

	bare_open(&bare);
	mr = ibv_reg_mr(bare.pd, e2e->memory, e2e->memory_size,
			IBV_ACCESS_LOCAL_WRITE);
	if (mr == NULL)
		bench_fail("ibv_reg_mr");
	for (i = 0; i < e2e->thread_count; i++)
		make_chains(&e2e->threads[i], sq_size, mr->lkey)->signal_mask =
			signal_each - 1;
	for (i = 0; i < e2e->conns; i++) {
		struct e2e_end *ends = &e2e->ends[2 * i];

		for (side = 0; side < 2; side++)
			cqs[side] =
				((struct chains *)ends[side].thread->form)->cq;
		bare_connect(&bare, cqs, sq_size, e2e_recvs(e2e), ids);
		for (side = 0; side < 2; side++) {
			ends[side].handle = ids[side]->qp;
			post_bare(&ends[side]);
		}
	}
}

const struct e2e_form e2e_bare = {
	.name = "bare",
	.open = open_bare,
	.run = run_bare,
};

/* ---------------------------------------------------------------- split --- */

#define RING 8192 /* more than the messages outstanding */

/* Between a poller and its worker. Each reads the index of the other thread
 * once for a batch. */
struct split {
	struct chains *chains; /* first: the worker posts by the chains */
	int poller_cpu;
	E2E_APART _Atomic uint32_t tail;
	E2E_APART struct e2e_end *ends[RING];
};

static struct split *splits[BENCH_CPUS];

static void *poll_split(void *arg)
{
	struct split *split = arg;
	struct ibv_wc wcs[E2E_BATCH];
	uint32_t tail = 0;
	int got;
	int i;

	for (;;) {
		got = ibv_poll_cq(split->chains->cq, E2E_BATCH, wcs);
		for (i = 0; i < got; i++) {
			if (__builtin_expect(wcs[i].status != IBV_WC_SUCCESS,
					     0))
				bench_fail(ibv_wc_status_str(wcs[i].status));
			if (wcs[i].opcode & IBV_WC_RECV)
				split->ends[tail++ % RING] =
					(struct e2e_end *)(uintptr_t)wcs[i]
						.wr_id;
		}
		/* release: the ends below the tail are written. There is room:
		 * the worker has taken the end of a message before it sends the
		 * next */
		atomic_store_explicit(&split->tail, tail, memory_order_release);
	}
	return NULL;
}

static void run_split(struct e2e *e2e, struct e2e_thread *thread)
{
	struct split *split = splits[thread->number];
	uint32_t head = 0;
	uint32_t tail;

	bench_start(split->poller_cpu, poll_split, split);
	e2e_begin(e2e, thread);
	do {
		e2e_post_all(thread, post_bare);
		/* acquire: the ends below the tail are written */
		tail = atomic_load_explicit(&split->tail, memory_order_acquire);
		if (tail - head > E2E_BATCH)
			tail = head + E2E_BATCH;
		while (head != tail)
			e2e_got(split->ends[head++ % RING]);
	} while (!e2e_is_over(e2e, thread));
}

static void open_split(struct e2e *e2e)
{
	struct split *split;
	uint32_t i;

	if (2 * e2e->conns * e2e->depth > RING)
		bench_fail("the ring of a split is too small");
	open_bare(e2e);
	for (i = 0; i < e2e->thread_count; i++) {
		split = aligned_alloc(128, (sizeof(*split) + 127) / 128 * 128);
		if (split == NULL)
			bench_fail("no memory");
		memset(split, 0, sizeof(*split));
		split->chains = e2e->threads[i].form;
		split->poller_cpu = e2e->args.cpus[i];
		splits[i] = split;
	}
}

const struct e2e_form e2e_split = {
	.name = "split",
	.has_pollers = true,
	.open = open_split,
	.run = run_split,
};
