/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Work requests that only rpma_wr_*() makes, on a device: messages, writes and
 * reads of several pieces, and remote atomics.
 */

#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define SIGNALED RPMA_F_COMPLETION_ALWAYS
#define PIECES	 3
#define ADDS	 8

/* Connections both of whose ends take that many pieces. */
static void open_pieces(struct pair *pair)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct pair_how how = {0};

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_max_send_sge(cfg, PIECES));
	ok(rpma_conn_cfg_set_max_recv_sge(cfg, PIECES));
	how.client_cfg = cfg;
	how.server_cfg = cfg;
	pair_open_how(pair, &how);
	ok(rpma_conn_cfg_delete(&cfg));
}

/* "abc", "defgh", "ijklmnop", in this order but not in one row. */
static void fill_list(struct side *side, struct rpma_sge *list)
{
	memcpy(side->mem + 100, "abc", 3);
	memcpy(side->mem + 7, "defgh", 5);
	memcpy(side->mem + 1000, "ijklmnop", 8);
	list[0] = (struct rpma_sge){side->mr, 100, 3};
	list[1] = (struct rpma_sge){side->mr, 7, 5};
	list[2] = (struct rpma_sge){side->mr, 1000, 8};
}

static void post(struct side *side, struct rpma_send_wr *wr)
{
	struct rpma_send_wr *bad = NULL;

	ok(rpma_conn_post_send(side->conn, NULL, wr, &bad));
}

TEST(send__of_pieces_INTO_PIECES)
{
	struct rpma_recv_wr *bad = NULL;
	struct rpma_recv_wr recv_wr;
	struct rpma_sge from[PIECES];
	struct ibv_sge recv_sge[2];
	struct ibv_sge sge[PIECES];
	struct rpma_sge to[2];
	struct rpma_send_wr wr;
	struct pair pair;

	open_pieces(&pair);
	to[0] = (struct rpma_sge){pair.server.mr, 200, 4};
	to[1] = (struct rpma_sge){pair.server.mr, 50, 100};
	ok(rpma_wr_recv(NULL, 0, 0, 2, &recv_wr));
	ok(rpma_wr_recv_set_sge_list(to, 2, recv_sge, &recv_wr));
	ok(rpma_conn_post_recv(pair.server.conn, NULL, &recv_wr, &bad));

	fill_list(&pair.client, from);
	ok(rpma_wr_send(pair.client.conn, NULL, 0, 0, SIGNALED, 1, &wr));
	ok(rpma_wr_set_sge_list(from, PIECES, sge, &wr));
	post(&pair.client, &wr);
	expect_done(&pair.client, 1, IBV_WC_SEND);
	expect_done(&pair.server, 2, IBV_WC_RECV);
	assert_memory_equal(pair.server.mem + 200, "abcd", 4);
	assert_memory_equal(pair.server.mem + 50, "efghijklmnop", 12);
	pair_close(&pair);
}

TEST(write__of_pieces_IN_ONE_ROW)
{
	struct rpma_sge list[PIECES];
	struct ibv_sge sge[PIECES];
	struct rpma_send_wr wr;
	struct pair pair;

	open_pieces(&pair);
	fill_list(&pair.client, list);
	ok(rpma_wr_write(pair.client.conn, pair.client.remote, 16,
			 pair.client.mr, 0, 1, SIGNALED, 1, &wr));
	ok(rpma_wr_set_sge_list(list, PIECES, sge, &wr));
	post(&pair.client, &wr);
	expect_done(&pair.client, 1, IBV_WC_RDMA_WRITE);
	assert_memory_equal(pair.server.mem + 16, "abcdefghijklmnop", 16);
	pair_close(&pair);
}

TEST(read__into_pieces)
{
	struct rpma_sge list[2];
	struct ibv_sge sge[2];
	struct rpma_send_wr wr;
	struct pair pair;

	open_pieces(&pair);
	memcpy(pair.server.mem + 32, "headerpayload", 13);
	list[0] = (struct rpma_sge){pair.client.mr, 512, 6};
	list[1] = (struct rpma_sge){pair.client.mr, 64, 7};
	ok(rpma_wr_read(pair.client.conn, pair.client.mr, 0, pair.client.remote,
			32, 1, SIGNALED, 1, &wr));
	ok(rpma_wr_set_sge_list(list, 2, sge, &wr));
	post(&pair.client, &wr);
	expect_done(&pair.client, 1, IBV_WC_RDMA_READ);
	assert_memory_equal(pair.client.mem + 512, "header", 6);
	assert_memory_equal(pair.client.mem + 64, "payload", 7);
	pair_close(&pair);
}

/* More than any device grants: the chain before it is not posted either. */
TEST(post_send__too_many_pieces_INVAL)
{
	enum { TOO_MANY = 1024 };
	struct rpma_sge *list = calloc(TOO_MANY, sizeof(*list));
	struct ibv_sge *sge = calloc(TOO_MANY, sizeof(*sge));
	struct rpma_send_wr *bad = NULL;
	struct rpma_send_wr wr[2];
	struct ibv_wc wc;
	struct pair pair;
	int i;

	assert_non_null(list);
	assert_non_null(sge);
	open_pieces(&pair);
	for (i = 0; i < TOO_MANY; i++)
		list[i] = (struct rpma_sge){pair.client.mr, 0, 1};
	ok(rpma_wr_write(pair.client.conn, pair.client.remote, 0,
			 pair.client.mr, 0, 1, SIGNALED, 1, &wr[0]));
	wr[1] = wr[0];
	wr[0].wr.sg_list = &wr[0].sge;
	wr[0].wr.next = &wr[1].wr;
	ok(rpma_wr_set_sge_list(list, TOO_MANY, sge, &wr[1]));
	assert_int_equal(rpma_conn_post_send(pair.client.conn, NULL, wr, &bad),
			 RPMA_E_INVAL);
	assert_ptr_equal(bad, wr);
	/* what comes first is what is posted now */
	ok(rpma_write(pair.client.conn, pair.client.remote, 0, pair.client.mr,
		      0, 1, SIGNALED, (void *)7));
	expect_done(&pair.client, 7, IBV_WC_RDMA_WRITE);
	assert_int_equal(rpma_cq_get_wc(cq_of(&pair.client), 1, &wc, NULL),
			 RPMA_E_NO_COMPLETION);
	pair_close(&pair);
	free(sge);
	free(list);
}

/* Words that mean nothing yet are 0, in every one of a chain. */
TEST(post__reserved_words_INVAL)
{
	struct rpma_recv_wr *bad_recv = NULL;
	struct rpma_send_wr *bad = NULL;
	struct rpma_recv_wr recv_wr;
	struct rpma_send_wr wr[2];
	struct pair pair;

	pair_open(&pair);
	ok(rpma_wr_recv(NULL, 0, 0, 2, &recv_wr));
	recv_wr.reserved[1] = 1;
	assert_int_equal(rpma_conn_post_recv(pair.server.conn, NULL, &recv_wr,
					     &bad_recv),
			 RPMA_E_INVAL);
	recv_wr.reserved[1] = 0;
	ok(rpma_conn_post_recv(pair.server.conn, NULL, &recv_wr, &bad_recv));

	ok(rpma_wr_write(pair.client.conn, NULL, 0, NULL, 0, 0, SIGNALED, 3,
			 &wr[0]));
	ok(rpma_wr_send(pair.client.conn, NULL, 0, 0, SIGNALED, 4, &wr[1]));
	wr[0].wr.next = &wr[1].wr;
	wr[1].reserved[0] = 1;
	assert_int_equal(rpma_conn_post_send(pair.client.conn, NULL, wr, &bad),
			 RPMA_E_INVAL);
	assert_ptr_equal(bad, wr);
	wr[1].reserved[0] = 0;
	post(&pair.client, wr);
	expect_done(&pair.client, 3, IBV_WC_RDMA_WRITE);
	expect_done(&pair.client, 4, IBV_WC_SEND);
	expect_done(&pair.server, 2, IBV_WC_RECV);
	pair_close(&pair);
}

/* A word at the server that the client works on, and what it was before. */
struct counter {
	struct pair pair;
	uint64_t *word;
	uint64_t *old; /* ADDS of them */
	struct rpma_mr_local *word_mr;
	struct rpma_mr_local *old_mr;
	struct rpma_mr_remote *remote;
};

static void open_counter(struct counter *c, int usage)
{
	char desc[32];

	pair_open(&c->pair);
	c->word = aligned_alloc(64, 64);
	c->old = aligned_alloc(64, 64);
	assert_non_null(c->word);
	assert_non_null(c->old);
	*c->word = 40;
	ok(rpma_mr_reg(the_peer, c->word, 8, usage, &c->word_mr));
	ok(rpma_mr_reg(the_peer, c->old, ADDS * 8, RPMA_MR_USAGE_READ_DST,
		       &c->old_mr));
	ok(rpma_mr_get_descriptor(c->word_mr, desc));
	ok(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &c->remote));
}

static void close_counter(struct counter *c)
{
	pair_close(&c->pair);
	ok(rpma_mr_remote_delete(&c->remote));
	ok(rpma_mr_dereg(&c->word_mr));
	ok(rpma_mr_dereg(&c->old_mr));
	free(c->word);
	free(c->old);
}

static uint64_t cmp_swp(struct counter *c, uint64_t compare, uint64_t swap)
{
	struct rpma_send_wr wr;

	ok(rpma_wr_atomic_cmp_swp(c->pair.client.conn, c->old_mr, 0, c->remote,
				  0, compare, swap, SIGNALED, 5, &wr));
	post(&c->pair.client, &wr);
	expect_done(&c->pair.client, 5, IBV_WC_COMP_SWAP);
	return c->old[0];
}

TEST(cmp_swp__swaps_IF_EQUAL)
{
	struct counter c;

	open_counter(&c, RPMA_MR_USAGE_ATOMIC);
	assert_int_equal(cmp_swp(&c, 40, UINT64_MAX - 1), 40);
	assert_int_equal(*c.word, UINT64_MAX - 1);
	assert_int_equal(cmp_swp(&c, 40, 7), UINT64_MAX - 1);
	assert_int_equal(*c.word, UINT64_MAX - 1);
	close_counter(&c);
}

/* A chain of them, each with its own place for what was there before. */
TEST(fetch_add__chain_ADDS_UP)
{
	struct rpma_send_wr wr[ADDS];
	struct counter c;
	uint64_t i;

	open_counter(&c, RPMA_MR_USAGE_ATOMIC);
	for (i = 0; i < ADDS; i++) {
		ok(rpma_wr_atomic_fetch_add(c.pair.client.conn, c.old_mr, i * 8,
					    c.remote, 0, i + 1, SIGNALED, i,
					    &wr[i]));
		if (i)
			wr[i - 1].wr.next = &wr[i].wr;
	}
	post(&c.pair.client, wr);
	for (i = 0; i < ADDS; i++) {
		expect_done(&c.pair.client, i, IBV_WC_FETCH_ADD);
		assert_int_equal(c.old[i], 40 + i * (i + 1) / 2);
	}
	assert_int_equal(*c.word, 40 + ADDS * (ADDS + 1) / 2);
	close_counter(&c);
}

/* It may be read, as the usage of an atomic says, and no more. */
TEST(atomic__region_not_for_it_ACCESS_ERROR)
{
	struct rpma_send_wr wr;
	struct counter c;
	struct ibv_wc wc;

	open_counter(&c, RPMA_MR_USAGE_READ_SRC);
	ok(rpma_wr_atomic_fetch_add(c.pair.client.conn, c.old_mr, 0, c.remote,
				    0, 1, SIGNALED, 5, &wr));
	post(&c.pair.client, &wr);
	wc = next_wc(cq_of(&c.pair.client));
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(*c.word, 40);
	close_counter(&c);
}

PAIR_MAIN()
