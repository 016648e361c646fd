/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_turn_loop [WHAT [CONNECTIONS]]: turns of a shard with so many
 * connections (one, if none is given), in manual mode; prints how many turns.
 * bench_turn runs it under callgrind, which counts the instructions of
 * measured_turns(). WHAT:
 *   empty  a round of its poller and a look into its queue find nothing
 *   shard  likewise rpma_rt_shard_run() of a shard that has met another shard
 *   sends  likewise, of two shards in turn: each sends 8 messages to the other
 *          shard, and takes 8
 *   busy   they find the completion of a send on the first connection, and the
 *          next one is posted
 *   bare   the same as busy with verbs: ibv_poll_cq(), ibv_post_send()
 */

#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define DEPTH	    64
#define BURST	    32 /* messages between two looks at the receiving end */
#define SIZE	    64 /* bytes of a message */
#define BURSTS	    30
#define WARM_BURSTS 40
#define SENT	    8 /* messages of a shard in a turn */

struct loop {
	struct stage stage;
	struct world_pair pair;
	struct world_pair *beside; /* the other connections */
	long beside_count;
	struct pair_bare bare[2];
	struct rpma_rt_shards *shards;
	struct rpma_rt_shard *ends[2]; /* of pollers 0 and 1 */
	/* the stage's, while the connections lead to the shards' queues */
	struct rpma_rt_queue *queues[2];
};

struct what {
	const char *name;
	void (*open)(struct loop *loop);
	void (*close)(struct loop *loop);
	/* the receiving end: gives BURST receives, takes their completions */
	void (*give)(struct loop *loop);
	void (*take)(struct loop *loop);
	/* the sending end: work before the first turn, the turns, work after
	 * the last turn */
	void (*begin)(struct loop *loop);
	void (*turns)(struct loop *loop, long turns);
	void (*end)(struct loop *loop);
};

/* ---------------------------------------------------------- the runtime --- */

static void open_pair(struct loop *loop)
{
	long i;

	pair_connect(&loop->stage, loop->stage.cfg, &loop->pair);
	for (i = 0; i < loop->beside_count; i++)
		pair_connect(&loop->stage, loop->stage.cfg, &loop->beside[i]);
}

static void close_pair(struct loop *loop)
{
	long i;

	for (i = 0; i < loop->beside_count; i++)
		stage_disconnect(&loop->stage, &loop->beside[i]);
	stage_disconnect(&loop->stage, &loop->pair);
}

static void empty_turns(struct loop *loop, long turns)
{
	struct stage *s = &loop->stage;
	struct rpma_rt_completion items[8];

	while (--turns > 0) {
		MUST(rpma_rt_poller_run(s->world.rt, 0, 32));
		CHECK(rpma_rt_queue_poll(s->aq, items, 8) == 0);
	}
}

static void ignore_item(struct rpma_rt_shard *shard,
			const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void ignore_message(struct rpma_rt_shard *shard,
			   const struct rpma_rt_shard_message *message,
			   void *arg)
{
	(void)shard;
	(void)message;
	(void)arg;
}

static void send_some(struct loop *loop, uint32_t from, int count)
{
	const struct rpma_rt_shard_message message = {0};

	while (count-- > 0)
		MUST(rpma_rt_shard_post(loop->ends[from], 1 - from, &message));
}

static void open_shards(struct loop *loop)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct stage *s = &loop->stage;
	uint32_t i;

	cfg.item_fn = ignore_item;
	cfg.message_fn = ignore_message;
	MUST(rpma_rt_shards_new(s->world.rt, &cfg, &loop->shards));
	for (i = 0; i < 2; i++)
		MUST(rpma_rt_shards_get(loop->shards, i, &loop->ends[i]));
	loop->queues[0] = s->aq;
	loop->queues[1] = s->pq;
	MUST(rpma_rt_shard_get_queue(loop->ends[0], &s->aq));
	MUST(rpma_rt_shard_get_queue(loop->ends[1], &s->pq));
	open_pair(loop);
	/* lanes lead both ways from here on */
	for (i = 0; i < 2; i++) {
		send_some(loop, i, 1);
		CHECK(rpma_rt_shard_run(loop->ends[i], 0) >= 0);
	}
	CHECK(rpma_rt_shard_run(loop->ends[0], 0) >= 1);
}

static void close_shards(struct loop *loop)
{
	struct stage *s = &loop->stage;

	close_pair(loop);
	s->aq = loop->queues[0];
	s->pq = loop->queues[1];
	MUST(rpma_rt_shards_delete(&loop->shards));
}

static void shard_turns(struct loop *loop, long turns)
{
	while (--turns > 0)
		CHECK(rpma_rt_shard_run(loop->ends[0], 0) == 0);
}

static void begin_sends(struct loop *loop)
{
	send_some(loop, 1, SENT);
	CHECK(rpma_rt_shard_run(loop->ends[1], 0) == 0);
}

static void sending_turns(struct loop *loop, long turns)
{
	uint32_t i;

	for (i = 0; --turns > 0; i = 1 - i) {
		send_some(loop, i, SENT);
		CHECK(rpma_rt_shard_run(loop->ends[i], 0) == SENT);
	}
}

static void end_sends(struct loop *loop)
{
	int taken = 0;
	uint32_t i;

	for (i = 0; i < 4; i++)
		taken += rpma_rt_shard_run(loop->ends[i % 2], 0);
	CHECK(taken == SENT);
}

static void give_recvs(struct loop *loop)
{
	int i;

	for (i = 0; i < BURST; i++)
		MUST(rpma_rt_recv(loop->pair.passive, loop->stage.mr, 0, SIZE,
				  7));
}

static void take_recvs(struct loop *loop)
{
	int i;

	for (i = 0; i < BURST; i++)
		stage_completion(loop->stage.pq, 7, IBV_WC_SUCCESS);
}

static inline void send_one(struct loop *loop, uint64_t context)
{
	MUST(rpma_rt_send(loop->pair.active, loop->stage.mr, SIZE, SIZE,
			  RPMA_F_COMPLETION_ALWAYS, context));
}

/* Takes the only completion. */
static inline void take_one(struct loop *loop, uint64_t context)
{
	struct stage *s = &loop->stage;
	struct rpma_rt_completion items[8];

	/* with several CQs not in the first round, after others' rounds */
	while (rpma_rt_poller_run(s->world.rt, 0, 32) == 0)
		;
	CHECK(rpma_rt_queue_poll(s->aq, items, 8) == 1);
	CHECK(items[0].status == IBV_WC_SUCCESS && items[0].context == context);
}

static void begin_busy(struct loop *loop)
{
	send_one(loop, BURST - 1);
}

static void busy_turns(struct loop *loop, long turns)
{
	while (--turns > 0) {
		take_one(loop, (uint64_t)turns);
		send_one(loop, (uint64_t)turns - 1);
	}
}

static void end_busy(struct loop *loop)
{
	take_one(loop, 0);
}

/* ----------------------------------------------------------------- bare --- */

static void open_bare(struct loop *loop)
{
	pair_bare_open(&loop->stage, DEPTH, loop->bare);
}

static void close_bare(struct loop *loop)
{
	pair_bare_close(loop->bare);
}

static void give_bare_recvs(struct loop *loop)
{
	struct ibv_sge sge = {(uintptr_t)loop->stage.memory, SIZE,
			      loop->bare[1].lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int i;

	for (i = 0; i < BURST; i++)
		CHECK(ibv_post_recv(loop->bare[1].qp, &wr, &bad) == 0);
}

static void take_bare_recvs(struct loop *loop)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < BURST; i++)
		CHECK(ibv_poll_cq(loop->bare[1].cq, 1, &wc) == 1 &&
		      wc.status == IBV_WC_SUCCESS);
}

/* Made once: only the number changes from message to message. */
static struct ibv_sge bare_sge = {.length = SIZE};
static struct ibv_send_wr bare_wr = {
	.sg_list = &bare_sge,
	.num_sge = 1,
	.opcode = IBV_WR_SEND,
	.send_flags = IBV_SEND_SIGNALED,
};

static inline void send_one_bare(struct loop *loop, uint64_t context)
{
	struct ibv_send_wr *bad;

	bare_wr.wr_id = context;
	CHECK(ibv_post_send(loop->bare[0].qp, &bare_wr, &bad) == 0);
}

static inline void take_one_bare(struct loop *loop, uint64_t context)
{
	struct ibv_wc wcs[8];

	CHECK(ibv_poll_cq(loop->bare[0].cq, 8, wcs) == 1);
	CHECK(wcs[0].status == IBV_WC_SUCCESS && wcs[0].wr_id == context);
}

static void begin_bare(struct loop *loop)
{
	bare_sge.addr = (uintptr_t)loop->stage.memory + SIZE;
	bare_sge.lkey = loop->bare[0].lkey;
	send_one_bare(loop, BURST - 1);
}

static void bare_turns(struct loop *loop, long turns)
{
	while (--turns > 0) {
		take_one_bare(loop, (uint64_t)turns);
		send_one_bare(loop, (uint64_t)turns - 1);
	}
}

static void end_bare(struct loop *loop)
{
	take_one_bare(loop, 0);
}

/* ------------------------------------------------------------ measuring --- */

static void nothing(struct loop *loop)
{
	(void)loop;
}

static const struct what kinds[] = {
	{"empty", open_pair, close_pair, nothing, nothing, nothing, empty_turns,
	 nothing},
	{"shard", open_shards, close_shards, nothing, nothing, nothing,
	 shard_turns, nothing},
	{"sends", open_shards, close_shards, nothing, nothing, begin_sends,
	 sending_turns, end_sends},
	{"busy", open_pair, close_pair, give_recvs, take_recvs, begin_busy,
	 busy_turns, end_busy},
	{"bare", open_bare, close_bare, give_bare_recvs, take_bare_recvs,
	 begin_bare, bare_turns, end_bare},
};

static const struct what *find_what(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	fprintf(stderr, "usage: bench_turn_loop empty|shard|sends|busy|bare "
			"[CONNECTIONS]\n");
	exit(2);
}

__attribute__((noinline)) void measured_turns(const struct what *what,
					      struct loop *loop);

/* A turn less than BURST. */
void measured_turns(const struct what *what, struct loop *loop)
{
	what->turns(loop, BURST);
}

static void burst(const struct what *what, struct loop *loop, bool is_measured)
{
	what->give(loop);
	what->begin(loop);
	if (is_measured)
		measured_turns(what, loop);
	else
		what->turns(loop, BURST);
	what->end(loop);
	what->take(loop);
}

int main(int argc, char **argv)
{
	const struct what *what = find_what(argc > 1 ? argv[1] : "empty");
	struct loop loop = {0};
	long i;

	loop.beside_count = argc > 2 ? atol(argv[2]) - 1 : 0;
	loop.beside =
		calloc((size_t)loop.beside_count + 1, sizeof(*loop.beside));
	CHECK(loop.beside != NULL);

	pair_stage_open(&loop.stage, DEPTH);
	what->open(&loop);
	/* symbols are bound, queues wrapped; what a single thread uses is kept
	 * for the thread, as in a program that runs for more than a moment */
	for (i = 0; i < WARM_BURSTS; i++)
		burst(what, &loop, false);
	for (i = 0; i < BURSTS; i++)
		burst(what, &loop, true);
	printf("turns %d\n", BURSTS * (BURST - 1));
	what->close(&loop);
	stage_close(&loop.stage);
	free(loop.beside);
	return 0;
}
