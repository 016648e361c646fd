/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The kinds of owners of a CQ's channel; see shared_channel.h. */

#define _GNU_SOURCE /* RTLD_NEXT */

#include "shared_channel.h"

#include <dlfcn.h>

static int owner;

/* --- librpma's own connections: fire, take */

static void set_server(struct scene *scene)
{
	scene->conn = scene->pair.server.conn;
	scene->cq[0] = cq_of(&scene->pair.server);
	scene->cq[1] = rcq_of(&scene->pair.server);
	scene->is_rcq[1] = true;
	scene->cqs = CQS;
}

static void open_server(struct scene *scene, const struct rpma_conn_cfg *cfg)
{
	struct pair_how how = {.server_cfg = cfg};

	pair_open_how(&scene->pair, &how);
}

static void fire_plain(struct scene *scene, int cq)
{
	struct rpma_conn *client = scene->pair.client.conn;
	struct rpma_conn *server = scene->pair.server.conn;

	if (!scene->is_rcq[cq])
		ok(rpma_recv(client, NULL, 0, 0, NULL));
	else if (scene->srq)
		ok(rpma_srq_recv(scene->srq, NULL, 0, 0, (void *)RECV_ID));
	else
		ok(rpma_recv(server, NULL, 0, 0, (void *)RECV_ID));
	ok(rpma_send(scene->is_rcq[cq] ? client : server, NULL, 0, 0, SIGNALED,
		     (void *)SEND_ID));
}

void scene_expect_wc(const struct scene *scene, int cq, const struct ibv_wc *wc)
{
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->wr_id, scene->is_rcq[cq] ? RECV_ID : SEND_ID);
}

static void poll_one(struct scene *scene, int cq)
{
	struct ibv_wc wc;

	ok(rpma_cq_get_wc(scene->cq[cq], 1, &wc, NULL));
	scene_expect_wc(scene, cq, &wc);
}

void scene_take_by_cq_wait(struct scene *scene, int cq)
{
	ok(rpma_cq_wait(scene->cq[cq]));
	poll_one(scene, cq);
}

void scene_take_by_conn_wait(struct scene *scene, int cq)
{
	struct rpma_cq *fired = NULL;
	bool is_rcq = !scene->is_rcq[cq];

	ok(rpma_conn_wait(scene->conn, 0, &fired, &is_rcq));
	assert_ptr_equal(fired, scene->cq[cq]);
	assert_int_equal(is_rcq, scene->is_rcq[cq]);
	poll_one(scene, cq);
}

/* --- its own channel */

static void open_own(struct scene *scene)
{
	struct rpma_conn_cfg *cfg = NULL;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 10));
	open_server(scene, cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	set_server(scene);
}

static void close_plain(struct scene *scene)
{
	pair_close(&scene->pair);
}

/* --- one connection's CQ and RCQ */

static void open_both(struct scene *scene)
{
	struct rpma_conn_cfg *cfg = NULL;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 10));
	ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	open_server(scene, cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	set_server(scene);
}

/* --- an SRQ's own RCQ */

static void open_srq(struct scene *scene)
{
	struct rpma_conn_cfg *cfg = NULL;

	ok(rpma_srq_new(the_peer, NULL, &scene->srq));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_srq(cfg, scene->srq));
	open_server(scene, cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	scene->conn = scene->pair.server.conn;
	ok(rpma_srq_get_rcq(scene->srq, &scene->cq[0]));
	scene->is_rcq[0] = true;
	/* for its sends the connection has one too, with its own channel */
	scene->cq[1] = cq_of(&scene->pair.server);
	scene->cqs = CQS;
}

static void close_srq(struct scene *scene)
{
	pair_close(&scene->pair);
	ok(rpma_srq_delete(&scene->srq));
}

/* --- a channel object of the application */

static void open_object(struct scene *scene)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct ibv_context *ctx = NULL;
	int i;

	ok(rpma_peer_get_ibv_context(the_peer, &ctx));
	ok(rpma_channel_new(ctx, &scene->channel));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 10));
	ok(rpma_conn_cfg_set_channel(cfg, scene->channel));
	open_server(scene, cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	set_server(scene);
	for (i = 0; i < scene->cqs; i++)
		ok(rpma_cq_arm(scene->cq[i], false));
}

static void close_object(struct scene *scene)
{
	pair_close(&scene->pair);
	ok(rpma_channel_delete(&scene->channel));
}

static void take_from_object(struct scene *scene, int cq)
{
	struct rpma_cq *fired = NULL;

	ok(rpma_channel_wait(scene->channel, &fired));
	assert_ptr_equal(fired, scene->cq[cq]);
	poll_one(scene, cq);
}

/* --- adopted: claimed by an owner that polls them with verbs */

static void claim_all(struct scene *scene)
{
	int i;

	for (i = 0; i < scene->cqs; i++)
		ok(rpma_cq_claim(scene->cq[i], &owner));
}

static void release_all(struct scene *scene)
{
	int i;

	for (i = 0; i < scene->cqs; i++)
		ok(rpma_cq_release(scene->cq[i], &owner));
}

static void open_claimed_own(struct scene *scene)
{
	open_own(scene);
	claim_all(scene);
}

static void open_claimed_both(struct scene *scene)
{
	open_both(scene);
	claim_all(scene);
}

static void open_claimed_srq(struct scene *scene)
{
	open_srq(scene);
	claim_all(scene);
}

static void close_claimed(struct scene *scene)
{
	release_all(scene);
	if (scene->srq)
		close_srq(scene);
	else
		close_plain(scene);
}

static void take_raw(struct scene *scene, int cq)
{
	struct ibv_cq *ibv_cq = NULL;
	struct ibv_wc wc;
	int got;

	ok(rpma_cq_get_ibv_cq(scene->cq[cq], &ibv_cq));
	do
		got = ibv_poll_cq(ibv_cq, 1, &wc);
	while (got == 0);
	assert_int_equal(got, 1);
	scene_expect_wc(scene, cq, &wc);
}

/* --- adopted by a runtime */

static void start_runtime(struct scene *scene)
{
	scene->world = (struct world){.addr = the_addr, .peer = the_peer};
	world_start(&scene->world, 1, RPMA_RT_MODE_EVENT);
	ok(rpma_rt_queue_new(scene->world.rt, NULL, &scene->queue[0]));
}

static void adopt_conn(struct scene *scene)
{
	ok(rpma_rt_adopt(scene->world.rt, scene->conn, 0, scene->queue[0], NULL,
			 &scene->adopted[0]));
}

static void open_adopted_own(struct scene *scene)
{
	open_own(scene);
	start_runtime(scene);
	adopt_conn(scene);
}

static void open_adopted_both(struct scene *scene)
{
	open_both(scene);
	start_runtime(scene);
	adopt_conn(scene);
}

static void open_adopted_srq(struct scene *scene)
{
	open_srq(scene);
	start_runtime(scene);
	ok(rpma_rt_adopt_srq(scene->world.rt, scene->srq, 0, scene->queue[0],
			     NULL, &scene->adopted[1]));
	adopt_conn(scene);
}

static void close_adopted(struct scene *scene)
{
	ok(rpma_rt_adopted_release(&scene->adopted[0]));
	ok(rpma_rt_adopted_release(&scene->adopted[1]));
	ok(rpma_rt_stop(scene->world.rt));
	ok(rpma_rt_queue_delete(&scene->queue[0]));
	ok(rpma_rt_delete(&scene->world.rt));
	if (scene->srq)
		close_srq(scene);
	else
		close_plain(scene);
}

static void take_adopted(struct scene *scene, int cq)
{
	struct rpma_rt_completion item = world_next(scene->queue[0]);

	assert_int_equal(item.kind, RPMA_RT_COMPLETION);
	assert_int_equal(item.status, IBV_WC_SUCCESS);
	assert_int_equal(item.context, scene->is_rcq[cq] ? RECV_ID : SEND_ID);
}

/* --- a poller's channel */

/* librpma's connection below the runtime's that connected last. The runtime
 * has no call that gives it; this comes before librpma's own. */
static struct rpma_conn *below;

__attribute__((visibility("default"))) int
rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
		      const struct rpma_conn_private_data *pdata,
		      struct rpma_conn **conn_ptr)
{
	int (*real)(struct rpma_conn_req **,
		    const struct rpma_conn_private_data *, struct rpma_conn **);
	int ret;

	*(void **)&real = dlsym(RTLD_NEXT, "rpma_conn_req_connect");
	ret = real(req_ptr, pdata, conn_ptr);
	if (ret == 0)
		below = *conn_ptr;
	return ret;
}

void scene_open_poller(struct scene *scene)
{
	int i;

	scene->world = (struct world){.addr = the_addr, .peer = the_peer};
	below = NULL;
	world_start(&scene->world, 1, RPMA_RT_MODE_ADAPTIVE);
	for (i = 0; i < 2; i++)
		ok(rpma_rt_queue_new(scene->world.rt, NULL, &scene->queue[i]));
	/* the passive end connects last */
	world_connect(&scene->world, NULL, 0, scene->queue[0], scene->queue[1],
		      &scene->rt_pair);
	scene->conn = below;
	assert_non_null(below);
	ok(rpma_conn_get_cq(scene->conn, &scene->cq[0]));
	scene->is_rcq[0] = true;
	scene->cqs = 1;
}

void scene_close_poller(struct scene *scene)
{
	ok(rpma_rt_stop(scene->world.rt));
	ok(rpma_rt_conn_unref(&scene->rt_pair.active));
	ok(rpma_rt_conn_unref(&scene->rt_pair.passive));
	ok(rpma_rt_queue_delete(&scene->queue[0]));
	ok(rpma_rt_queue_delete(&scene->queue[1]));
	ok(rpma_rt_delete(&scene->world.rt));
}

void scene_fire_poller(struct scene *scene, int cq)
{
	(void)cq;
	ok(rpma_rt_recv(scene->rt_pair.passive, NULL, 0, 0, RECV_ID));
	ok(rpma_rt_send(scene->rt_pair.active, NULL, 0, 0,
			RPMA_F_COMPLETION_ON_ERROR, SEND_ID));
}

/* Waiting has become a call of the runtime's. */
void scene_take_from_queue(struct scene *scene, int cq)
{
	struct rpma_rt_completion item = world_next(scene->queue[1]);

	(void)cq;
	assert_int_equal(item.kind, RPMA_RT_COMPLETION);
	assert_int_equal(item.status, IBV_WC_SUCCESS);
	assert_int_equal(item.context, RECV_ID);
}

/* --- the rows, and what the calls of each column answer */

const struct row scene_rows[] = {
	{
		.name = "own_channel",
		.open = open_own,
		.close = close_plain,
		.fire = fire_plain,
		.take = scene_take_by_cq_wait,
		.conn_wait = RPMA_E_NOT_SHARED_CHNL,
		.conn_get_compl_fd = RPMA_E_NOT_SHARED_CHNL,
	},
	{
		.name = "cq_and_rcq",
		.open = open_both,
		.close = close_plain,
		.fire = fire_plain,
		.take = scene_take_by_conn_wait,
		.cq_wait = RPMA_E_SHARED_CHANNEL,
	},
	{
		/* conn_wait: as the connection's, which has its own */
		.name = "srq_rcq",
		.open = open_srq,
		.close = close_srq,
		.fire = fire_plain,
		.take = scene_take_by_cq_wait,
		.conn_wait = RPMA_E_NOT_SHARED_CHNL,
		.conn_get_compl_fd = RPMA_E_NOT_SHARED_CHNL,
	},
	{
		.name = "channel_object",
		.open = open_object,
		.close = close_object,
		.fire = fire_plain,
		.take = take_from_object,
		.cq_wait = RPMA_E_SHARED_CHANNEL,
		.conn_wait = RPMA_E_SHARED_CHANNEL,
		.cq_get_fd = RPMA_E_SHARED_CHANNEL,
		.conn_get_compl_fd = RPMA_E_SHARED_CHANNEL,
	},
#define ADOPTED(what, open_it, close_it, take_it)           \
	{                                                   \
		.name = what,                               \
		.open = open_it,                            \
		.close = close_it,                          \
		.fire = fire_plain,                         \
		.take = take_it,                            \
		.cq_wait = RPMA_E_SHARED_CHANNEL,           \
		.conn_wait = RPMA_E_SHARED_CHANNEL,         \
		.cq_get_fd = RPMA_E_SHARED_CHANNEL,         \
		.conn_get_compl_fd = RPMA_E_SHARED_CHANNEL, \
		.cq_get_wc = RPMA_E_SHARED_CHANNEL,         \
	}
#define CLAIMED(what, open_it) ADOPTED(what, open_it, close_claimed, take_raw)
#define BY_RUNTIME(what, open_it) \
	ADOPTED(what, open_it, close_adopted, take_adopted)
	CLAIMED("adopted_own_channel", open_claimed_own),
	CLAIMED("adopted_cq_and_rcq", open_claimed_both),
	CLAIMED("adopted_srq_rcq", open_claimed_srq),
	BY_RUNTIME("adopted_by_runtime_own_channel", open_adopted_own),
	BY_RUNTIME("adopted_by_runtime_cq_and_rcq", open_adopted_both),
	BY_RUNTIME("adopted_by_runtime_srq_rcq", open_adopted_srq),
	{
		.name = "poller_channel",
		.open = scene_open_poller,
		.close = scene_close_poller,
		.fire = scene_fire_poller,
		.take = scene_take_from_queue,
		.cq_wait = RPMA_E_SHARED_CHANNEL,
		.conn_wait = RPMA_E_SHARED_CHANNEL,
		.cq_get_fd = RPMA_E_SHARED_CHANNEL,
		.conn_get_compl_fd = RPMA_E_SHARED_CHANNEL,
		.cq_get_wc = RPMA_E_SHARED_CHANNEL,
	},
};
const size_t scene_row_count = sizeof(scene_rows) / sizeof(scene_rows[0]);
