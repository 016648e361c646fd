/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Flushes and atomic writes that the device does itself, through librpma, where
 * rdma-core and the device have them: the completion says that they were not
 * made of reads and writes. Alone, in a chain with others, and refused.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../vm/pmem.h"
#include "pair.h"

#if !defined(RPMA_HAVE_NATIVE_ATOMIC_WRITE) || !defined(RPMA_HAVE_NATIVE_FLUSH)

int main(void)
{
	puts("skipped: the rdma-core that this is built with knows neither "
	     "ibv_wr_flush() nor the capability of atomic writes; 56 does");
	return 77;
}

#else

#define SIGNALED RPMA_F_COMPLETION_ALWAYS
#define SIZE	 4096
#define VISIBLE	 RPMA_FLUSH_TYPE_VISIBILITY
#define CAPS                                                             \
	(IB_UVERBS_DEVICE_ATOMIC_WRITE | IB_UVERBS_DEVICE_FLUSH_GLOBAL | \
	 IB_UVERBS_DEVICE_FLUSH_PERSISTENT)

static void need_native(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_pd *pd = NULL;

	ok(rpma_peer_get_ibv_pd(the_peer, &pd));
	ok(ibv_query_device_ex(pd->context, NULL, &attr));
	if ((attr.device_cap_flags_ex & CAPS) == CAPS)
		return;
	puts("skipped: the device has no native atomic writes or flushes");
	skip();
}

static void open_native(struct pair *pair)
{
	need_native();
	pair_open(pair);
}

TEST(flush__of_a_write_IS_NATIVE)
{
	struct pair pair;
	struct side *client = &pair.client;

	open_native(&pair);
	memcpy(client->mem, "written", 8);
	ok(rpma_write(client->conn, client->remote, 128, client->mr, 0, 8,
		      RPMA_F_COMPLETION_ON_ERROR, NULL));
	ok(rpma_flush(client->conn, client->remote, 128, 8, VISIBLE, SIGNALED,
		      (void *)2));
	expect_done(client, 2, IBV_WC_FLUSH);
	assert_string_equal(pair.server.mem + 128, "written");
	pair_close(&pair);
}

TEST(flush__of_everything)
{
	struct pair pair;
	struct side *client = &pair.client;

	open_native(&pair);
	ok(rpma_flush(client->conn, client->remote, 0, PAIR_MEM, VISIBLE,
		      SIGNALED, (void *)1));
	expect_done(client, 1, IBV_WC_FLUSH);
	pair_close(&pair);
}

TEST(flush__of_another_s_memory_ERROR)
{
	struct pair pair;
	struct side *client = &pair.client;

	open_native(&pair);
	ok(rpma_flush(client->conn, client->remote, 0, PAIR_MEM + 1, VISIBLE,
		      SIGNALED, (void *)1));
	assert_int_equal(next_wc(cq_of(client)).status, IBV_WC_REM_ACCESS_ERR);
	pair_close(&pair);
}

TEST(atomic_write__IS_NATIVE)
{
	const char word[8] = "8 bytes";
	struct pair pair;
	struct side *client = &pair.client;

	open_native(&pair);
	ok(rpma_atomic_write(client->conn, client->remote, 64, word, SIGNALED,
			     (void *)1));
	expect_done(client, 1, IBV_WC_ATOMIC_WRITE);
	assert_memory_equal(pair.server.mem + 64, word, 8);
	pair_close(&pair);
}

/* A log: an entry, what makes it safe, and the word that points behind it. */
TEST(chain__write_flush_atomic_write)
{
	const char word[8] = "pointer";
	struct rpma_send_wr wrs[4];
	struct rpma_send_wr *bad = NULL;
	struct pair pair;
	struct side *client = &pair.client;

	open_native(&pair);
	memcpy(client->mem, "entry", 6);
	ok(rpma_wr_write(client->conn, client->remote, 512, client->mr, 0, 6,
			 SIGNALED, 1, &wrs[0]));
	ok(rpma_wr_flush(client->conn, client->remote, 512, 6, VISIBLE,
			 SIGNALED, 2, &wrs[1]));
	ok(rpma_wr_atomic_write(client->conn, client->remote, 0, word, SIGNALED,
				3, &wrs[2]));
	ok(rpma_wr_flush(client->conn, client->remote, 0, 8, VISIBLE, SIGNALED,
			 4, &wrs[3]));
	for (int i = 0; i < 3; i++)
		wrs[i].wr.next = &wrs[i + 1].wr;
	ok(rpma_conn_post_send(client->conn, NULL, wrs, &bad));
	expect_done(client, 1, IBV_WC_RDMA_WRITE);
	expect_done(client, 2, IBV_WC_FLUSH);
	expect_done(client, 3, IBV_WC_ATOMIC_WRITE);
	expect_done(client, 4, IBV_WC_FLUSH);
	assert_string_equal(pair.server.mem + 512, "entry");
	assert_memory_equal(pair.server.mem, word, 8);
	pair_close(&pair);
}

/* ---- memory that survives ---- */

/* Some memory of the server besides what a pair has, and how to reach it. */
struct store {
	char *mem;
	void *pmem; /* NULL: mem is ordinary memory */
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
};

static int store_reg(struct store *store)
{
	return rpma_mr_reg(the_peer, store->mem, SIZE,
			   RPMA_MR_USAGE_WRITE_DST |
				   RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
				   RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
			   &store->mr);
}

/* Some devices want persistent memory for it, which not every machine has. */
static bool store_open(struct store *store)
{
	char desc[32];
	size_t size = 0;

	*store = (struct store){.mem = aligned_alloc(SIZE, SIZE)};
	assert_non_null(store->mem);
	if (store_reg(store)) {
		free(store->mem);
		store->mem = store->pmem = pmem_map(SIZE);
		if (!store->pmem)
			return false;
		ok(store_reg(store));
	}
	memset(store->mem, 0, SIZE);
	ok(rpma_mr_get_descriptor_size(store->mr, &size));
	assert_true(size <= sizeof(desc));
	ok(rpma_mr_get_descriptor(store->mr, desc));
	ok(rpma_mr_remote_from_descriptor(desc, size, &store->remote));
	return true;
}

static void store_close(struct store *store)
{
	ok(rpma_mr_remote_delete(&store->remote));
	ok(rpma_mr_dereg(&store->mr));
	if (store->pmem)
		ok(pmem_unmap(store->pmem, SIZE));
	else
		free(store->mem);
}

/* A persistent flush wants the server's word for its memory. */
static void give_word(struct rpma_conn *conn)
{
	struct rpma_peer_cfg *pcfg = NULL;

	ok(rpma_peer_cfg_new(&pcfg));
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	ok(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
	ok(rpma_peer_cfg_delete(&pcfg));
}

static void open_persistent(struct pair *pair, struct store *store)
{
	open_native(pair);
	if (!store_open(store)) {
		pair_close(pair);
		puts("skipped: the device takes no ordinary memory for "
		     "persistent memory, and RPMA_TEST_PMEM names none");
		skip();
	}
	give_word(pair->client.conn);
}

TEST(flush__persistent_IS_NATIVE)
{
	static const enum rpma_flush_type types[] = {
		RPMA_FLUSH_TYPE_PERSISTENT, RPMA_FLUSH_TYPE_VISIBILITY};
	struct store store;
	struct pair pair;
	struct side *client = &pair.client;

	open_persistent(&pair, &store);
	for (int i = 0; i < 2; i++) {
		client->mem[0] = (char)(i + 1);
		ok(rpma_write(client->conn, store.remote, 128, client->mr, 0, 1,
			      RPMA_F_COMPLETION_ON_ERROR, NULL));
		ok(rpma_flush(client->conn, store.remote, 0, SIZE, types[i],
			      SIGNALED, (void *)1));
		expect_done(client, 1, IBV_WC_FLUSH);
		assert_int_equal(store.mem[128], i + 1);
	}
	pair_close(&pair);
	store_close(&store);
}

TEST(flush__persistent_of_another_s_memory_ERROR)
{
	struct store store;
	struct pair pair;

	open_persistent(&pair, &store);
	ok(rpma_flush(pair.client.conn, store.remote, 8, SIZE,
		      RPMA_FLUSH_TYPE_PERSISTENT, SIGNALED, (void *)1));
	assert_int_equal(next_wc(cq_of(&pair.client)).status,
			 IBV_WC_REM_ACCESS_ERR);
	pair_close(&pair);
	store_close(&store);
}

/* A log that survives: the entry first, and then the word that points at it. */
TEST(chain__both_flushes_persistent)
{
	const int persistent = RPMA_FLUSH_TYPE_PERSISTENT;
	const char word[8] = "pointer";
	struct rpma_send_wr wrs[4];
	struct rpma_send_wr *bad = NULL;
	struct store store;
	struct pair pair;
	struct side *client = &pair.client;

	open_persistent(&pair, &store);
	memcpy(client->mem, "entry", 6);
	ok(rpma_wr_write(client->conn, store.remote, 512, client->mr, 0, 6,
			 SIGNALED, 1, &wrs[0]));
	ok(rpma_wr_flush(client->conn, store.remote, 512, 6, persistent,
			 SIGNALED, 2, &wrs[1]));
	ok(rpma_wr_atomic_write(client->conn, store.remote, 0, word, SIGNALED,
				3, &wrs[2]));
	ok(rpma_wr_flush(client->conn, store.remote, 0, 8, persistent, SIGNALED,
			 4, &wrs[3]));
	for (int i = 0; i < 3; i++)
		wrs[i].wr.next = &wrs[i + 1].wr;
	ok(rpma_conn_post_send(client->conn, NULL, wrs, &bad));
	expect_done(client, 1, IBV_WC_RDMA_WRITE);
	expect_done(client, 2, IBV_WC_FLUSH);
	expect_done(client, 3, IBV_WC_ATOMIC_WRITE);
	expect_done(client, 4, IBV_WC_FLUSH);
	assert_string_equal(store.mem + 512, "entry");
	assert_memory_equal(store.mem, word, 8);
	pair_close(&pair);
	store_close(&store);
}

PAIR_MAIN()

#endif
