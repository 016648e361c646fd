/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * peer.c -- a connection's peer: its address, on both sides, also after the
 * end; a persistent flush is posted once the peer's configuration was applied,
 * also while others post, with a lock and for one declared poster.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../vm/pmem.h"
#include "stage.h"

#define DEPTH	8
#define FLUSHES 200

struct told {
	struct rpma_rt_conn *conn;
	_Atomic bool over;
};

static struct rpma_peer_cfg *a_pcfg(bool direct_write)
{
	struct rpma_peer_cfg *pcfg;

	MUST(rpma_peer_cfg_new(&pcfg));
	MUST(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write));
	return pcfg;
}

static void apply(struct rpma_rt_conn *conn, bool direct_write)
{
	struct rpma_peer_cfg *pcfg = a_pcfg(direct_write);

	MUST(rpma_rt_conn_apply_remote_peer_cfg(conn, pcfg));
	MUST(rpma_peer_cfg_delete(&pcfg));
}

static int flush(struct rpma_rt_conn *conn, struct rpma_mr_remote *remote)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_FLUSH,
				.flags = RPMA_F_COMPLETION_ALWAYS,
				.flush_type = RPMA_FLUSH_TYPE_PERSISTENT,
				.remote = remote,
				.len = 64,
				.context = 7};

	return world_post_send(conn, &wr);
}

static struct rpma_mr_local *register_at(struct stage *s, void *at)
{
	const int usage =
		RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	struct rpma_mr_local *mr = NULL;

	if (at == NULL ||
	    rpma_mr_reg(s->world.peer, at, STAGE_SIZE, usage, &mr))
		return NULL;
	return mr;
}

/* Of ordinary memory, or of persistent memory where the device wants that. */
static struct rpma_mr_local *register_persistent(struct stage *s, void *pmem)
{
	struct rpma_mr_local *mr = register_at(s, s->memory);

	if (mr == NULL)
		mr = register_at(s, pmem);
	if (mr == NULL) {
		puts("skipped: the device takes no ordinary memory for "
		     "persistent memory, and RPMA_TEST_PMEM names none");
		exit(77);
	}
	return mr;
}

static void flush__not_told_NOSUPP_told_completes(struct stage *s,
						  struct world_pair *pair,
						  struct rpma_mr_remote *remote)
{
	CHECK(flush(pair->active, remote) == RPMA_E_NOSUPP);
	apply(pair->active, false);
	CHECK(flush(pair->active, remote) == RPMA_E_NOSUPP);
	apply(pair->active, true);
	MUST(flush(pair->active, remote));
	stage_completion(s->aq, 7, IBV_WC_SUCCESS);
}

static void *tell(void *arg)
{
	struct told *told = arg;

	/* relaxed: only the end of the test */
	while (!atomic_load_explicit(&told->over, memory_order_relaxed))
		apply(told->conn, true);
	return NULL;
}

/* Any thread may tell while another posts. */
static void apply__while_another_posts(struct stage *s, struct world_pair *pair,
				       struct rpma_mr_remote *remote)
{
	struct told told = {.conn = pair->active};
	pthread_t thread;
	int i;

	MUST(pthread_create(&thread, NULL, tell, &told));
	for (i = 0; i < FLUSHES; i++) {
		MUST(flush(pair->active, remote));
		stage_completion(s->aq, 7, IBV_WC_SUCCESS);
	}
	/* relaxed: as above */
	atomic_store_explicit(&told.over, true, memory_order_relaxed);
	MUST(pthread_join(thread, NULL));
}

/* Before connect on one side, and after the connection is closed. */
static void apply__at_any_time(struct stage *s, struct rpma_mr_remote *remote)
{
	struct rpma_rt_listener *listener =
		world_listen(&s->world, s->cfg, s->pq);
	struct world_pair pair;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, s->cfg, 0, s->aq, NULL,
			    &pair.active));
	apply(pair.active, true);
	world_event(s->aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(pair.active, NULL));
	pair.passive = world_request(s->pq);
	stage_accept(s, &pair);
	MUST(flush(pair.active, remote));
	stage_completion(s->aq, 7, IBV_WC_SUCCESS);
	MUST(rpma_rt_conn_close(pair.active));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	apply(pair.active, true);
	CHECK(flush(pair.active, remote) == RPMA_RT_E_CLOSED);
	world_unref(&pair);
	world_unlisten(&listener, s->pq);
}

/* The address is the device's own, for both ends are on it. */
static void expect_peer(const struct stage *s, const struct rpma_rt_conn *conn,
			struct sockaddr_in *addr)
{
	char text[INET_ADDRSTRLEN];
	socklen_t len = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	MUST(rpma_rt_conn_get_peer_addr(conn, (struct sockaddr *)addr, &len));
	CHECK(len == sizeof(*addr) && addr->sin_family == AF_INET);
	CHECK(inet_ntop(AF_INET, &addr->sin_addr, text, sizeof(text)));
	CHECK(strcmp(text, s->world.addr) == 0);
}

static void get_peer_addr__both_sides_also_closed(struct stage *s)
{
	struct sockaddr_in active;
	struct sockaddr_in passive;
	struct sockaddr_in again;
	struct world_pair pair;
	struct rpma_rt_conn *held;

	stage_connect(s, &pair);
	held = pair.active;
	MUST(rpma_rt_conn_ref(held));
	expect_peer(s, pair.active, &active);
	expect_peer(s, pair.passive, &passive);
	CHECK(ntohs(active.sin_port) == atoi(s->world.port));
	CHECK(passive.sin_port != active.sin_port);
	stage_disconnect(s, &pair);
	expect_peer(s, held, &again);
	CHECK(memcmp(&again, &active, sizeof(active)) == 0);
	MUST(rpma_rt_conn_unref(&held));
}

int main(void)
{
	const struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	void *pmem = pmem_map(STAGE_SIZE);
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct world_pair pair;
	struct stage s;

	stage_open(&s, &cfg);
	mr = register_persistent(&s, pmem);
	remote = world_remote_of(mr);
	stage_connect(&s, &pair);
	flush__not_told_NOSUPP_told_completes(&s, &pair, remote);
	apply__while_another_posts(&s, &pair, remote);
	stage_disconnect(&s, &pair);
	apply__at_any_time(&s, remote);
	get_peer_addr__both_sides_also_closed(&s);
	MUST(rpma_mr_remote_delete(&remote));
	MUST(rpma_mr_dereg(&mr));
	if (pmem != NULL)
		MUST(pmem_unmap(pmem, STAGE_SIZE));
	stage_close(&s);
	return 0;
}
