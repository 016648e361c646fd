/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The structs of the public headers as programs were compiled with them: sizes
 * and offsets, which never change, here where pointers have 8 bytes. And
 * configurations of programs with fewer or more fields than the library's.
 */

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "librpma_legacy.h"
#include "rpma_rt.h"

#define SIZE(type, bytes) \
	static_assert(sizeof(struct type) == (bytes), "the size of " #type)
#define AT(type, field, offset)                                 \
	static_assert(offsetof(struct type, field) == (offset), \
		      "where " #field " is in " #type)

SIZE(rpma_conn_private_data, 16);
AT(rpma_conn_private_data, ptr, 0);
AT(rpma_conn_private_data, len, 8);

SIZE(rpma_completion, 32);
AT(rpma_completion, op_context, 0);
AT(rpma_completion, op, 8);
AT(rpma_completion, byte_len, 12);
AT(rpma_completion, op_status, 16);
AT(rpma_completion, flags, 20);
AT(rpma_completion, imm, 24);

SIZE(rpma_cm_event, 312);
AT(rpma_cm_event, type, 0);
AT(rpma_cm_event, status, 4);
AT(rpma_cm_event, context, 8);
AT(rpma_cm_event, id, 16);
AT(rpma_cm_event, private_data_len, 24);
AT(rpma_cm_event, responder_resources, 25);
AT(rpma_cm_event, initiator_depth, 26);
AT(rpma_cm_event, reserved, 27);
AT(rpma_cm_event, private_data, 48);
AT(rpma_cm_event, raw, 304);

SIZE(rpma_send_wr, 176);
AT(rpma_send_wr, wr, 0);
AT(rpma_send_wr, sge, 128);
AT(rpma_send_wr, data, 144);
AT(rpma_send_wr, native, 152);
AT(rpma_send_wr, native_arg, 156);
AT(rpma_send_wr, reserved, 160);

SIZE(rpma_recv_wr, 64);
AT(rpma_recv_wr, wr, 0);
AT(rpma_recv_wr, sge, 32);
AT(rpma_recv_wr, reserved, 48);

SIZE(rpma_sge, 24);
AT(rpma_sge, mr, 0);
AT(rpma_sge, offset, 8);
AT(rpma_sge, len, 16);

SIZE(rpma_rt_completion, 32);
AT(rpma_rt_completion, context, 0);
AT(rpma_rt_completion, user, 8);
AT(rpma_rt_completion, byte_len, 16);
AT(rpma_rt_completion, imm, 20);
AT(rpma_rt_completion, qp_num, 24);
AT(rpma_rt_completion, kind, 28);
AT(rpma_rt_completion, status, 29);
AT(rpma_rt_completion, opcode, 30);
AT(rpma_rt_completion, flags, 31);

SIZE(rpma_rt_wr, 104);
AT(rpma_rt_wr, op, 0);
AT(rpma_rt_wr, flush_type, 1);
AT(rpma_rt_wr, piece_count, 2);
AT(rpma_rt_wr, flags, 4);
AT(rpma_rt_wr, context, 8);
AT(rpma_rt_wr, route, 16);
AT(rpma_rt_wr, future, 24);
AT(rpma_rt_wr, lease, 32);
AT(rpma_rt_wr, local, 40);
AT(rpma_rt_wr, pieces, 40);
AT(rpma_rt_wr, local_offset, 48);
AT(rpma_rt_wr, len, 56);
AT(rpma_rt_wr, remote, 64);
AT(rpma_rt_wr, remote_offset, 72);
AT(rpma_rt_wr, imm, 80);
AT(rpma_rt_wr, reserved32, 84);
AT(rpma_rt_wr, data, 88);
AT(rpma_rt_wr, compare_add, 88);
AT(rpma_rt_wr, swap, 96);

SIZE(rpma_rt_recv_wr, 56);
AT(rpma_rt_recv_wr, context, 0);
AT(rpma_rt_recv_wr, route, 8);
AT(rpma_rt_recv_wr, future, 16);
AT(rpma_rt_recv_wr, dst, 24);
AT(rpma_rt_recv_wr, pieces, 24);
AT(rpma_rt_recv_wr, offset, 32);
AT(rpma_rt_recv_wr, len, 40);
AT(rpma_rt_recv_wr, piece_count, 48);
AT(rpma_rt_recv_wr, reserved32, 52);

SIZE(rpma_rt_cfg, 96);
AT(rpma_rt_cfg, size, 0);
AT(rpma_rt_cfg, mode, 4);
AT(rpma_rt_cfg, pollers, 8);
AT(rpma_rt_cfg, cq_size, 12);
AT(rpma_rt_cfg, spin_us, 16);
AT(rpma_rt_cfg, backstop_ms, 20);
AT(rpma_rt_cfg, teardown_ms, 24);
AT(rpma_rt_cfg, timing, 28);
AT(rpma_rt_cfg, cpus, 32);
AT(rpma_rt_cfg, cpu_count, 40);
AT(rpma_rt_cfg, async_feed, 44);
AT(rpma_rt_cfg, async_fn, 48);
AT(rpma_rt_cfg, async_arg, 56);
AT(rpma_rt_cfg, reserved, 64);

SIZE(rpma_rt_poller_stats, 136);
AT(rpma_rt_poller_stats, polls, 0);
AT(rpma_rt_poller_stats, empty_polls, 8);
AT(rpma_rt_poller_stats, completions, 16);
AT(rpma_rt_poller_stats, delivered, 24);
AT(rpma_rt_poller_stats, batches, 32);
AT(rpma_rt_poller_stats, doorbells, 40);
AT(rpma_rt_poller_stats, sleeps, 48);
AT(rpma_rt_poller_stats, events, 56);
AT(rpma_rt_poller_stats, acks, 64);
AT(rpma_rt_poller_stats, spilled, 72);
AT(rpma_rt_poller_stats, lost, 80);
AT(rpma_rt_poller_stats, stale, 88);
AT(rpma_rt_poller_stats, lost_events_recovered, 96);
AT(rpma_rt_poller_stats, keepalives, 104);
AT(rpma_rt_poller_stats, spinning_ns, 112);
AT(rpma_rt_poller_stats, sleeping_ns, 120);
AT(rpma_rt_poller_stats, last_wqe_missing, 128);

SIZE(rpma_rt_histogram, 264);
AT(rpma_rt_histogram, buckets, 0);
AT(rpma_rt_histogram, sum_ns, 256);

SIZE(rpma_rt_queue_stats, 608);
AT(rpma_rt_queue_stats, polls, 0);
AT(rpma_rt_queue_stats, waits, 8);
AT(rpma_rt_queue_stats, empty, 16);
AT(rpma_rt_queue_stats, busy, 24);
AT(rpma_rt_queue_stats, batches, 32);
AT(rpma_rt_queue_stats, taken, 40);
AT(rpma_rt_queue_stats, messages, 48);
AT(rpma_rt_queue_stats, sleeps, 56);
AT(rpma_rt_queue_stats, wakes, 64);
AT(rpma_rt_queue_stats, backlog, 72);
AT(rpma_rt_queue_stats, dispatch, 80);
AT(rpma_rt_queue_stats, wakeup, 344);

SIZE(rpma_rt_queue_cfg, 48);
AT(rpma_rt_queue_cfg, size, 0);
AT(rpma_rt_queue_cfg, lane_size, 4);
AT(rpma_rt_queue_cfg, backlog_limit, 8);
AT(rpma_rt_queue_cfg, spin_us, 12);
AT(rpma_rt_queue_cfg, name, 16);
AT(rpma_rt_queue_cfg, shared, 24);
AT(rpma_rt_queue_cfg, reserved32, 28);
AT(rpma_rt_queue_cfg, reserved, 32);

SIZE(rpma_rt_conn_cfg, 128);
AT(rpma_rt_conn_cfg, size, 0);
AT(rpma_rt_conn_cfg, poller, 4);
AT(rpma_rt_conn_cfg, peer, 8);
AT(rpma_rt_conn_cfg, queue, 16);
AT(rpma_rt_conn_cfg, queues, 24);
AT(rpma_rt_conn_cfg, user, 32);
AT(rpma_rt_conn_cfg, srqs, 40);
AT(rpma_rt_conn_cfg, more, 48);
AT(rpma_rt_conn_cfg, queue_count, 56);
AT(rpma_rt_conn_cfg, srq_count, 60);
AT(rpma_rt_conn_cfg, sq_size, 64);
AT(rpma_rt_conn_cfg, rq_size, 68);
AT(rpma_rt_conn_cfg, max_sge, 72);
AT(rpma_rt_conn_cfg, max_inline, 76);
AT(rpma_rt_conn_cfg, timeout_ms, 80);
AT(rpma_rt_conn_cfg, keepalive_ms, 84);
AT(rpma_rt_conn_cfg, backlog, 88);
AT(rpma_rt_conn_cfg, min_rnr_timer, 92);
AT(rpma_rt_conn_cfg, ack_timeout, 93);
AT(rpma_rt_conn_cfg, reserved16, 94);
AT(rpma_rt_conn_cfg, pool, 96);
AT(rpma_rt_conn_cfg, futures, 104);
AT(rpma_rt_conn_cfg, waiting, 108);
AT(rpma_rt_conn_cfg, reserved, 112);

SIZE(rpma_rt_srq_cfg, 80);
AT(rpma_rt_srq_cfg, size, 0);
AT(rpma_rt_srq_cfg, poller, 4);
AT(rpma_rt_srq_cfg, peer, 8);
AT(rpma_rt_srq_cfg, queue, 16);
AT(rpma_rt_srq_cfg, user, 24);
AT(rpma_rt_srq_cfg, refill, 32);
AT(rpma_rt_srq_cfg, refill_arg, 40);
AT(rpma_rt_srq_cfg, srq_size, 48);
AT(rpma_rt_srq_cfg, limit, 52);
AT(rpma_rt_srq_cfg, max_sge, 56);
AT(rpma_rt_srq_cfg, futures, 60);
AT(rpma_rt_srq_cfg, pool, 64);
AT(rpma_rt_srq_cfg, waiting, 72);
AT(rpma_rt_srq_cfg, reserved32, 76);

SIZE(rpma_rt_pool_cfg, 64);
AT(rpma_rt_pool_cfg, size, 0);
AT(rpma_rt_pool_cfg, count, 4);
AT(rpma_rt_pool_cfg, slot_size, 8);
AT(rpma_rt_pool_cfg, usage, 12);
AT(rpma_rt_pool_cfg, peer, 16);
AT(rpma_rt_pool_cfg, name, 24);
AT(rpma_rt_pool_cfg, sends, 32);
AT(rpma_rt_pool_cfg, futures, 36);
AT(rpma_rt_pool_cfg, reserved, 40);

SIZE(rpma_rt_future, 16);
AT(rpma_rt_future, opaque, 0);

SIZE(rpma_rt_shards_cfg, 80);
AT(rpma_rt_shards_cfg, size, 0);
AT(rpma_rt_shards_cfg, lane_size, 4);
AT(rpma_rt_shards_cfg, spin_us, 8);
AT(rpma_rt_shards_cfg, arg_count, 12);
AT(rpma_rt_shards_cfg, item_fn, 16);
AT(rpma_rt_shards_cfg, message_fn, 24);
AT(rpma_rt_shards_cfg, args, 32);
AT(rpma_rt_shards_cfg, queue, 40);
AT(rpma_rt_shards_cfg, reserved, 48);

SIZE(rpma_rt_shard_message, 32);
AT(rpma_rt_shard_message, context, 0);
AT(rpma_rt_shard_message, words, 8);
AT(rpma_rt_shard_message, code, 24);
AT(rpma_rt_shard_message, from, 28);
AT(rpma_rt_shard_message, kind, 30);
AT(rpma_rt_shard_message, reserved8, 31);

SIZE(rpma_rt_shard_stats, 72);
AT(rpma_rt_shard_stats, items, 0);
AT(rpma_rt_shard_stats, messages, 8);
AT(rpma_rt_shard_stats, sent, 16);
AT(rpma_rt_shard_stats, refused, 24);
AT(rpma_rt_shard_stats, timers, 32);
AT(rpma_rt_shard_stats, sleeps, 40);
AT(rpma_rt_shard_stats, rings, 48);
AT(rpma_rt_shard_stats, unanswered, 56);
AT(rpma_rt_shard_stats, owed, 64);

SIZE(rpma_rt_timer, 64);
AT(rpma_rt_timer, fn, 0);
AT(rpma_rt_timer, arg, 8);
AT(rpma_rt_timer, opaque, 16);

SIZE(rpma_rt_lease, 48);
AT(rpma_rt_lease, pool, 0);
AT(rpma_rt_lease, data, 8);
AT(rpma_rt_lease, mr, 16);
AT(rpma_rt_lease, offset, 24);
AT(rpma_rt_lease, len, 32);
AT(rpma_rt_lease, slot, 36);
AT(rpma_rt_lease, generation, 40);
AT(rpma_rt_lease, reserved32, 44);

#define CHECK(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                    \
			exit(1);                                           \
		}                                                          \
	} while (0)

/* The struct of a later release. */
struct later {
	struct rpma_rt_cfg known;
	uint64_t more[2];
};

static char said[256];

static void hear(enum rpma_log_level level, const char *file, const int line,
		 const char *function, const char *format, ...)
{
	va_list args;

	(void)level;
	(void)file;
	(void)line;
	(void)function;
	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

static int make(struct rpma_rt_cfg *cfg)
{
	struct rpma_rt *rt = NULL;
	int ret;

	said[0] = '\0';
	cfg->mode = RPMA_RT_MODE_MANUAL;
	ret = rpma_rt_new(cfg, &rt);
	CHECK((rt == NULL) == (ret != 0));
	CHECK(rpma_rt_delete(&rt) == 0);
	return ret;
}

/* A program of the first release, on whatever library comes later. */
static void first_release(void)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.size = 96;
	CHECK(make(&cfg) == 0);
	cfg.size = 95;
	CHECK(make(&cfg) == RPMA_E_INVAL);
	CHECK(strstr(said, "rpma_rt_cfg.size is 95"));
	cfg.size = 0;
	CHECK(make(&cfg) == RPMA_E_INVAL);
	CHECK(strstr(said, "rpma_rt_cfg.size is 0"));
}

static void later_release(void)
{
	struct later cfg;

	CHECK(rpma_rt_cfg_init(&cfg.known, sizeof(cfg)) == 0);
	CHECK(cfg.known.size == sizeof(cfg));
	CHECK(cfg.more[0] == 0 && cfg.more[1] == 0);
	CHECK(make(&cfg.known) == 0);
	cfg.more[1] = 1;
	CHECK(make(&cfg.known) == RPMA_E_INVAL);
	CHECK(strstr(said, "offset 104"));
}

int main(void)
{
	CHECK(rpma_log_set_function(hear) == 0);
	first_release();
	later_release();
	return 0;
}
