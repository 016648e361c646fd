/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote_kill.c -- of two processes that load each other with everything, one
 * is killed at a moment that chance chose. All that the other one had posted
 * completes, in order and once, and it ends well.
 */

#include "meet.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define HALF	 (MEET_SIZE / 2)
#define MAX_SIZE 100000u
#define MAX_US	 20000 /* of a life */

static unsigned rounds = 10;
static unsigned turn; /* from 0 to rounds */

/* What one side has posted, and what came back of it. */
struct load {
	struct meet m;
	unsigned seed;
	uint64_t sent, done; /* sends, by wr_id */
	bool is_over;	     /* something failed */
	unsigned receives;   /* that are posted */
};

static void post_receive(struct load *l)
{
	assert_int_equal(meet_recv(&l->m, UINT64_MAX, HALF, MAX_SIZE), 0);
	l->receives++;
}

static void post_some(struct load *l)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	for (;;) {
		unsigned chance = (unsigned)rand_r(&l->seed);
		enum ibv_wr_opcode opcode = opcodes[chance % 6];
		uint32_t length = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
					  ? 8
					  : (chance >> 8) % MAX_SIZE;

		if (chance & 0x40)
			length = length < 64 ? length : 8;
		if (meet_post(&l->m, opcode, l->sent, 0, length, HALF,
			      chance & 0x80 ? IBV_SEND_FENCE : 0))
			return; /* the queue is full */
		l->sent++;
	}
}

/* Sends complete in order; receives are posted again until the end. */
static void take(struct load *l, const struct ibv_wc *wc)
{
	if (wc->wr_id == UINT64_MAX)
		l->receives--;
	else
		assert_int_equal(wc->wr_id, l->done++);
	if (wc->status != IBV_WC_SUCCESS) {
		assert_true(
			wc->status == IBV_WC_WR_FLUSH_ERR ||
			(!l->is_over && wc->status == IBV_WC_RETRY_EXC_ERR));
		l->is_over = true;
	} else if (wc->wr_id == UINT64_MAX && !l->is_over) {
		post_receive(l);
	}
}

static void load_until_the_end(struct load *l)
{
	struct ibv_wc wc;

	while (!l->is_over) {
		post_some(l);
		while (ibv_poll_cq(l->m.end.cq, 1, &wc))
			take(l, &wc);
	}
	while (l->done != l->sent || l->receives) {
		if (ibv_poll_cq(l->m.end.cq, 1, &wc))
			take(l, &wc);
	}
}

static bool is_victim(const struct two_process *self)
{
	return self->number == (int)(turn % 2);
}

static void body(const struct two_process *self)
{
	const struct meet_opts opts = {.rnr_retry = 7,
				       .is_threaded = turn / 2 % 2};
	struct load l = {.seed = turn * 2 + (unsigned)self->number};
	struct itimerval life = {0};
	int i;

	meet_begin(&l.m, self, &opts);
	for (i = 0; i < DEPTH; i++)
		post_receive(&l);
	if (is_victim(self)) {
		life.it_value.tv_usec = 1 + rand_r(&l.seed) % MAX_US;
		assert_int_equal(setitimer(ITIMER_REAL, &life, NULL), 0);
	}
	load_until_the_end(&l);
	meet_end(&l.m);
}

TEST(killed__at_any_time_ALL_COMPLETES)
{
	for (turn = 0; turn < rounds; turn++) {
		struct two_process p[2] = {0};

		p[turn % 2].signal = SIGALRM;
		two_run(p, body);
		/* it may have been killed before there was a link to it */
		assert_int_equal(two_count(&p[!(turn % 2)], " is wrong"), 0);
	}
}

int main(int argc, char *argv[])
{
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	return tests_run(NULL, NULL);
}
