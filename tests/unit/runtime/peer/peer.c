/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A connection's peer: its address, and when a persistent flush may be posted.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "rt_fake.h"

/* -------------------------------------------------------------- address --- */

static const struct sockaddr_in peer_in = {
	.sin_family = AF_INET, .sin_port = 0x1234, .sin_addr = {0x04030201}};

static void set_peer(const void *addr, size_t size)
{
	memset(&fake_id, 0, sizeof(fake_id));
	memcpy(&fake_id.route.addr.dst_storage, addr, size);
}

/* Not known while it resolves; len stays what it was. */
FAKE_TEST(get_peer_addr__before_ready_INVAL)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	struct rpma_rt_conn *conn;

	set_peer(&peer_in, sizeof(peer_in));
	ok(rpma_rt_conn_new(f->rt, "::1", "1", &f->rt_cfg, &conn));
	fake_finish_down(f);
	assert_int_equal(rpma_rt_conn_get_peer_addr(
				 conn, (struct sockaddr *)&addr, &len),
			 RPMA_E_INVAL);
	assert_int_equal(len, sizeof(addr));
	fake_conn_event(conn, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	ok(rpma_rt_conn_get_peer_addr(conn, (struct sockaddr *)&addr, &len));
	assert_int_equal(len, sizeof(peer_in));
	assert_memory_equal(&addr, &peer_in, sizeof(peer_in));
	ok(rpma_rt_conn_close(conn));
	fake_bury(f, &conn);
}

/* As getpeername(): cut, and told what it would take. */
FAKE_TEST(get_peer_addr__little_room_cut)
{
	struct sockaddr_storage addr;
	socklen_t len = 4;
	struct rpma_rt_conn *conn;

	set_peer(&peer_in, sizeof(peer_in));
	conn = fake_request(f);
	memset(&addr, 0xff, sizeof(addr));
	ok(rpma_rt_conn_get_peer_addr(conn, (struct sockaddr *)&addr, &len));
	assert_int_equal(len, sizeof(peer_in));
	assert_memory_equal(&addr, &peer_in, 4);
	assert_int_equal(((uint8_t *)&addr)[4], 0xff);
	ok(rpma_rt_conn_close(conn));
	fake_bury(f, &conn);
}

/* The address of each other family is copied whole; an unknown family has the
 * longest address of the connection manager. */
FAKE_TEST(get_peer_addr__other_families_whole)
{
	static const struct {
		sa_family_t family;
		socklen_t len;
	} families[] = {{AF_INET6, sizeof(struct sockaddr_in6)},
			{AF_IB, RT_ADDR_IB}};
	struct sockaddr_storage peer;
	struct sockaddr_storage addr;
	struct rpma_rt_conn *conn;
	socklen_t len;
	size_t i;

	for (i = 0; i < 2; i++) {
		memset(&peer, 7, sizeof(peer));
		peer.ss_family = families[i].family;
		set_peer(&peer, sizeof(peer));
		conn = fake_request(f);
		len = sizeof(addr);
		ok(rpma_rt_conn_get_peer_addr(conn, (struct sockaddr *)&addr,
					      &len));
		assert_int_equal(len, families[i].len);
		assert_memory_equal(&addr, &peer, len);
		fake_bury(f, &conn);
	}
}

/* --------------------------------------------------------------- memory --- */

/* What a peer would have sent. */
static struct rpma_peer_cfg *a_pcfg(bool direct_write)
{
	struct rpma_peer_cfg *pcfg;

	ok(rpma_peer_cfg_new(&pcfg));
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write));
	return pcfg;
}

/* The object is the caller's: it is gone when the call has returned. */
static void apply(struct rpma_rt_conn *conn, bool direct_write)
{
	struct rpma_peer_cfg *pcfg = a_pcfg(direct_write);

	ok(rpma_rt_conn_apply_remote_peer_cfg(conn, pcfg));
	ok(rpma_peer_cfg_delete(&pcfg));
}

static int flush(struct rpma_rt_conn *conn, enum rpma_flush_type type)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_FLUSH,
				.flags = RPMA_F_COMPLETION_ALWAYS,
				.flush_type = type,
				/* compared with NULL only */
				.remote = fake_remote,
				.context = 1};

	return fake_post_send(conn, &wr);
}

FAKE_TEST(apply__again_replaces)
{
	struct rpma_rt_conn *conn = fake_established(f);

	apply(conn, false);
	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT),
			 RPMA_E_NOSUPP);
	apply(conn, true);
	ok(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT));
	apply(conn, false);
	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT),
			 RPMA_E_NOSUPP);
	fake_bury(f, &conn);
}

FAKE_TEST(apply__no_memory_NOMEM)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_peer_cfg *pcfg = a_pcfg(true);

	fake_fail("malloc", 1, 1);
	assert_int_equal(rpma_rt_conn_apply_remote_peer_cfg(conn, pcfg),
			 RPMA_E_NOMEM);
	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT),
			 RPMA_E_NOSUPP);
	ok(rpma_rt_conn_apply_remote_peer_cfg(conn, pcfg));
	ok(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT));
	ok(rpma_peer_cfg_delete(&pcfg));
	fake_bury(f, &conn);
}

/* librpma refuses: so does the post, which keeps no place. */
FAKE_TEST(flush__cannot_be_applied_fails)
{
	struct rpma_rt_conn *conn = fake_established(f);
	int i;

	apply(conn, true);
	fake_fail("apply_remote_peer_cfg", 1, RPMA_E_INVAL);
	assert_int_equal(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT), RPMA_E_INVAL);
	assert_int_equal(fake_qp(conn)->sq_count, 0);
	for (i = 0; i < FAKE_SQ; i++)
		ok(flush(conn, RPMA_FLUSH_TYPE_PERSISTENT));
	fake_bury(f, &conn);
}

TEST_MAIN()
