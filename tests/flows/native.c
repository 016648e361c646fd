/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Flushes and atomic writes that the device does itself, through librpma, where
 * rdma-core and the device have them: the completion says that they were not
 * made of reads and writes. Alone, in a chain with others, and refused.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void flush__of_a_write_IS_NATIVE(void **state)
{
	struct pair pair;
	struct side *client = &pair.client;

	(void)state;
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

static void flush__of_everything(void **state)
{
	struct pair pair;
	struct side *client = &pair.client;

	(void)state;
	open_native(&pair);
	ok(rpma_flush(client->conn, client->remote, 0, PAIR_MEM, VISIBLE,
		      SIGNALED, (void *)1));
	expect_done(client, 1, IBV_WC_FLUSH);
	pair_close(&pair);
}

static void flush__of_another_s_memory_ERROR(void **state)
{
	struct pair pair;
	struct side *client = &pair.client;

	(void)state;
	open_native(&pair);
	ok(rpma_flush(client->conn, client->remote, 0, PAIR_MEM + 1, VISIBLE,
		      SIGNALED, (void *)1));
	assert_int_equal(next_wc(cq_of(client)).status, IBV_WC_REM_ACCESS_ERR);
	pair_close(&pair);
}

static void atomic_write__IS_NATIVE(void **state)
{
	const char word[8] = "8 bytes";
	struct pair pair;
	struct side *client = &pair.client;

	(void)state;
	open_native(&pair);
	ok(rpma_atomic_write(client->conn, client->remote, 64, word, SIGNALED,
			     (void *)1));
	expect_done(client, 1, IBV_WC_ATOMIC_WRITE);
	assert_memory_equal(pair.server.mem + 64, word, 8);
	pair_close(&pair);
}

/* A log: an entry, what makes it safe, and the word that points behind it. */
static void chain__write_flush_atomic_write(void **state)
{
	const char word[8] = "pointer";
	struct rpma_send_wr wrs[4];
	struct rpma_send_wr *bad = NULL;
	struct pair pair;
	struct side *client = &pair.client;

	(void)state;
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

/* Memory that survives is for the device to know: some refuse any other. */
static void flush__persistent_IS_NATIVE(void **state)
{
	struct rpma_mr_local *mr = NULL;
	struct rpma_mr_remote *remote = NULL;
	char *mem = aligned_alloc(SIZE, SIZE);
	struct pair pair;
	char desc[32];
	size_t size = 0;

	(void)state;
	open_native(&pair);
	assert_non_null(mem);
	if (rpma_mr_reg(the_peer, mem, SIZE,
			RPMA_MR_USAGE_WRITE_DST |
				RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
			&mr) == RPMA_E_PROVIDER) {
		pair_close(&pair);
		free(mem);
		puts("skipped: the device takes no ordinary memory for "
		     "persistent memory");
		skip();
	}
	ok(rpma_mr_get_descriptor_size(mr, &size));
	ok(rpma_mr_get_descriptor(mr, desc));
	ok(rpma_mr_remote_from_descriptor(desc, size, &remote));
	/* persistent flushes want the server's word for its memory */
	{
		struct rpma_peer_cfg *pcfg = NULL;

		ok(rpma_peer_cfg_new(&pcfg));
		ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
		ok(rpma_conn_apply_remote_peer_cfg(pair.client.conn, pcfg));
		ok(rpma_peer_cfg_delete(&pcfg));
	}
	ok(rpma_flush(pair.client.conn, remote, 0, SIZE,
		      RPMA_FLUSH_TYPE_PERSISTENT, SIGNALED, (void *)1));
	expect_done(&pair.client, 1, IBV_WC_FLUSH);
	pair_close(&pair);
	ok(rpma_mr_remote_delete(&remote));
	ok(rpma_mr_dereg(&mr));
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flush__of_a_write_IS_NATIVE),
		cmocka_unit_test(flush__of_everything),
		cmocka_unit_test(flush__of_another_s_memory_ERROR),
		cmocka_unit_test(flush__persistent_IS_NATIVE),
		cmocka_unit_test(atomic_write__IS_NATIVE),
		cmocka_unit_test(chain__write_flush_atomic_write),
	};

	return PAIR_RUN(tests);
}

#endif
