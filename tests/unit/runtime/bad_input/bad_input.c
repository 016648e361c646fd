/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Every function of the runtime and the arguments that it has to refuse: NULL
 * in each pointer, values out of range, objects in the wrong state or of
 * another runtime (bad_objects.c), calls that wait where none may, objects
 * from before a fork, mistakes that only an assertion reports (bad_place.c), a
 * system that refuses (bad_system.c).
 * Here: configurations and runtimes. The last test names the functions that
 * were forgotten.
 */

#include "bad_input.h"

union bad_out out;

static void forget(void)
{
	fake_forget_trace();
	fake_forget_messages();
}

static enum rpma_log_level level_of(int error)
{
	if (error >= 0 || error == RPMA_E_AGAIN)
		return RPMA_LOG_DISABLED;
	return error == RPMA_RT_E_CLOSED ? RPMA_LOG_LEVEL_INFO
					 : RPMA_LOG_LEVEL_ERROR;
}

static const char *const headers[] = {
	RPMA_RT_HEADERS "core.h",   RPMA_RT_HEADERS "pool.h",
	RPMA_RT_HEADERS "post.h",   RPMA_RT_HEADERS "connection.h",
	RPMA_RT_HEADERS "future.h", RPMA_RT_HEADERS "srq.h",
	RPMA_RT_HEADERS "shard.h",  NULL};

static const char *const refuse_none[] = {
	/* texts, of any number */
	"rpma_rt_err_2str",
	"rpma_rt_reason_2str",
	"rpma_rt_status_2str",
	"rpma_rt_again_2str",
	"rpma_rt_completion_2str",
	/* answers no */
	"rpma_rt_completion_lease",
	/* asserts its arguments */
	"rpma_rt_completion_to_wc",
	/* of the calling thread, without arguments */
	"rpma_rt_again_reason",
	/* NULL of NULL */
	"rpma_rt_conn_get_name",
	/* is for handlers of signals, which may not log */
	"rpma_rt_queue_wake",
	NULL,
};

const struct sweep_ground sweep_ground = {
	.map = RPMA_RT_MAP,
	.least = 55,
	.out = &out,
	.out_size = sizeof(out),
	.forget = forget,
	.trace = fake_trace,
	.text = rpma_rt_err_2str,
	.heard = fake_messages,
	.level = level_of,
	.names_parameters = true,
	.headers = headers,
	.refuse_none = refuse_none,
};

int bad_setup(void **state)
{
	int ret = fake_setup(state);
	struct fake *f = *state;

	fake_watch_locks(f->rt);
	return ret;
}

int bad_teardown(void **state)
{
	fake_watch_locks(NULL);
	return fake_teardown(state);
}

void bad_hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	(void)cmpl;
	(void)arg;
}

void bad_refill(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	(void)srq;
	(void)room;
	(void)arg;
}

struct rpma_rt_queue *foreign_queue(struct rpma_rt **rt)
{
	struct rpma_rt_queue *queue = NULL;

	ok(rpma_rt_new(NULL, rt));
	ok(rpma_rt_queue_new(*rt, NULL, &queue));
	return queue;
}

void foreign_end(struct rpma_rt *rt, struct rpma_rt_queue *queue)
{
	ok(rpma_rt_queue_delete(&queue));
	ok(rpma_rt_delete(&rt));
}

/* ------------------------------------------------------- configurations --- */

/* A size that no initializer writes. */
#define INITS(type)                                                          \
	BAD(RPMA_E_INVAL, type##_cfg_init, NULL, sizeof(struct type##_cfg)); \
	BAD(RPMA_E_INVAL, type##_cfg_init, (void *)&out, 0);                 \
	BAD(RPMA_E_INVAL, type##_cfg_init, (void *)&out,                     \
	    sizeof(struct type##_cfg) - 1);                                  \
	BAD(RPMA_E_INVAL, type##_cfg_init, (void *)&out, 4097);              \
	BAD(RPMA_E_INVAL, type##_cfg_init, (void *)&out, SIZE_MAX)

static void configurations(void **state)
{
	(void)state;
	INITS(rpma_rt);
	INITS(rpma_rt_queue);
	INITS(rpma_rt_srq);
	INITS(rpma_rt_pool);
	INITS(rpma_rt_conn);
}

/* One field each that cannot be. */
static void configurations_of_runtimes(void **state)
{
	struct rpma_rt_cfg cfg;

	(void)state;
#define WRONG(field, value)                                                 \
	do {                                                                \
		cfg = (struct rpma_rt_cfg)RPMA_RT_CFG_INIT;                 \
		cfg.field = value;                                          \
		BAD_SAYS(#field, RPMA_E_INVAL, rpma_rt_new, &cfg, &out.rt); \
	} while (0)
	WRONG(size, 0);
	WRONG(size, sizeof(cfg) - 1);
	WRONG(size, UINT32_MAX);
	WRONG(mode, RPMA_RT_MODE_MANUAL + 1);
	WRONG(mode, UINT32_MAX);
	WRONG(pollers, RPMA_RT_MAX_POLLERS + 1);
	WRONG(pollers, UINT32_MAX);
	WRONG(cq_size, INT32_MAX + UINT32_C(1));
	WRONG(spin_us, 1000001);
	WRONG(backstop_ms, 60001);
	WRONG(teardown_ms, 600001);
	WRONG(cpu_count, 1);
	WRONG(cpus, &out.number);
	WRONG(async_feed, 2);
	WRONG(reserved[0], 1);
	WRONG(reserved[3], UINT64_C(1) << 63);
#undef WRONG
}

static void configurations_of_queues(void **state)
{
	char name[RPMA_RT_NAME_MAX + 2] = {0};
	struct rpma_rt_queue_cfg cfg;
	struct fake *f = *state;

#define WRONG(field, value)                                                    \
	do {                                                                   \
		cfg = (struct rpma_rt_queue_cfg)RPMA_RT_QUEUE_CFG_INIT;        \
		cfg.field = value;                                             \
		BAD_SAYS(#field, RPMA_E_INVAL, rpma_rt_queue_new, f->rt, &cfg, \
			 &out.queue);                                          \
	} while (0)
	WRONG(size, 0);
	WRONG(size, sizeof(cfg) - 1);
	WRONG(size, UINT32_MAX);
	WRONG(lane_size, 32);
	WRONG(lane_size, 65);
	WRONG(lane_size, 1 << 21);
	WRONG(lane_size, 1u << 31);
	WRONG(backlog_limit, 1048577);
	WRONG(spin_us, 1000001);
	WRONG(shared, 2);
	WRONG(name, memset(name, 'n', sizeof(name) - 1));
	WRONG(name, "a line\n");
	WRONG(name, "\xc3\xa9");
	WRONG(reserved32, 1);
	WRONG(reserved[1], 1);
#undef WRONG
}

static void configurations_of_connections(void **state)
{
	struct rpma_conn_cfg *theirs = NULL;
	struct rpma_rt_conn_cfg cfg;
	struct fake *f = *state;
	void *any = &cfg;

#define WRONG(field, value)                                                    \
	do {                                                                   \
		cfg = f->rt_cfg;                                               \
		cfg.field = value;                                             \
		BAD_SAYS(#field, RPMA_E_INVAL, rpma_rt_conn_new, f->rt, "::1", \
			 "1", &cfg, &out.conn);                                \
		BAD_SAYS(#field, RPMA_E_INVAL, rpma_rt_listen, f->rt, "::1",   \
			 "1", &cfg, &out.listener);                            \
	} while (0)
	WRONG(size, 0);
	WRONG(size, sizeof(cfg) - 1);
	WRONG(size, UINT32_MAX);
	WRONG(poller, 1);
	WRONG(poller, -3);
	WRONG(poller, INT32_MIN);
	WRONG(peer, NULL);
	WRONG(queue, NULL);
	WRONG(queues, &f->queue);
	WRONG(queue_count, 1);
	WRONG(srq_count, 1);
	WRONG(srq_count, UINT32_MAX);
	WRONG(sq_size, INT32_MAX);
	WRONG(rq_size, UINT32_MAX);
	WRONG(max_sge, UINT32_MAX);
	WRONG(max_inline, 7);
	WRONG(max_inline, UINT32_MAX);
	WRONG(timeout_ms, UINT32_MAX);
	WRONG(keepalive_ms, 3600001);
	WRONG(backlog, UINT32_MAX);
	WRONG(min_rnr_timer, 32);
	WRONG(ack_timeout, 254);
	WRONG(reserved16, 1);
	WRONG(futures, 1048577);
	WRONG(waiting, 1048577);
	WRONG(reserved[1], 1);
	/* what is the runtime's to choose: each such pointer */
#define OURS(name, value)                                    \
	do {                                                 \
		ok(rpma_conn_cfg_new(&theirs));              \
		ok(rpma_conn_cfg_set_##name(theirs, value)); \
		WRONG(more, theirs);                         \
		ok(rpma_conn_cfg_delete(&theirs));           \
	} while (0)
	OURS(cq, any);
	OURS(rcq, any);
	OURS(channel, any);
	OURS(cm_channel, any);
	OURS(srq, any);
	OURS(compl_channel, true);
#undef OURS
#undef WRONG
}

static void configurations_of_srqs(void **state)
{
	struct rpma_rt_srq_cfg cfg;
	struct fake *f = *state;

#define WRONG(field, value)                                                  \
	do {                                                                 \
		cfg = bad_srq_cfg(f->queue);                                 \
		cfg.field = value;                                           \
		BAD_SAYS(#field, RPMA_E_INVAL, rpma_rt_srq_new, f->rt, &cfg, \
			 &out.srq);                                          \
	} while (0)
	WRONG(size, 0);
	WRONG(size, sizeof(cfg) - 1);
	WRONG(size, UINT32_MAX);
	WRONG(poller, 1);
	WRONG(poller, UINT32_MAX);
	WRONG(peer, NULL);
	WRONG(queue, NULL);
	WRONG(srq_size, 1048577);
	WRONG(limit, cfg.srq_size + 1);
	WRONG(max_sge, 33);
	WRONG(max_sge, UINT32_MAX);
	WRONG(futures, 1048577);
	WRONG(waiting, 1048577);
	WRONG(reserved32, 1);
#undef WRONG
	cfg = bad_srq_cfg(f->queue);
	cfg.futures = 1;
	BAD_SAYS("pool is missing", RPMA_E_INVAL, rpma_rt_srq_new, f->rt, &cfg,
		 &out.srq);
	cfg = bad_srq_cfg(f->queue);
	cfg.pool = (void *)&out;
	cfg.refill = bad_refill;
	BAD_SAYS("pool and refill", RPMA_E_INVAL, rpma_rt_srq_new, f->rt, &cfg,
		 &out.srq);
}

/* -------------------------------------------------------------- runtime --- */

/* CPUs that do not exist, and fewer or more than pollers. */
static void cpus(void **state)
{
	const int32_t none_such[1] = {1 << 20};
	const int32_t negative[1] = {-2};
	const int32_t two[2] = {RPMA_RT_CPU_ANY, RPMA_RT_CPU_ANY};
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	(void)state;
	NULLS(rpma_rt_new, 0, &out.rt);
	cfg.cpu_count = 1;
	cfg.cpus = none_such;
	BAD_SAYS("cpu", RPMA_E_INVAL, rpma_rt_new, &cfg, &out.rt);
	cfg.cpus = negative;
	BAD_SAYS("cpu", RPMA_E_INVAL, rpma_rt_new, &cfg, &out.rt);
	cfg.cpus = two;
	cfg.cpu_count = 2;
	BAD_SAYS("cpu", RPMA_E_INVAL, rpma_rt_new, &cfg, &out.rt);
	cfg.pollers = 3;
	BAD_SAYS("cpu", RPMA_E_INVAL, rpma_rt_new, &cfg, &out.rt);
}

static void runtimes(void **state)
{
	const struct ibv_async_event event = {.event_type = 1};
	struct fake *f = *state;
	struct rpma_rt_completion item;
	bool busy;

	BAD(RPMA_E_INVAL, rpma_rt_stop, NULL);
	DELETES(rpma_rt_delete, rpma_rt);
	BAD(RPMA_E_INVAL, rpma_rt_dump, NULL, 1, RPMA_RT_DUMP_HUMAN);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, -1, RPMA_RT_DUMP_HUMAN);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, 1, (enum rpma_rt_dump_format)3);
	NULLS(rpma_rt_poller_run, f->rt, 0, 1);
	BAD(RPMA_E_INVAL, rpma_rt_poller_run, f->rt, 0, 0);
	BAD(RPMA_E_INVAL, rpma_rt_poller_run, f->rt, 1, 1);
	BAD(RPMA_E_INVAL, rpma_rt_poller_run, f->rt, UINT32_MAX, 1);
	NULLS(rpma_rt_poller_take, f->rt, 0, f->queue, &item, 1, &busy);
	BAD_SAYS("max is 0", RPMA_E_INVAL, rpma_rt_poller_take, f->rt, 0,
		 f->queue, &item, 0, &busy);
	BAD(RPMA_E_INVAL, rpma_rt_poller_take, f->rt, 1, f->queue, &item, 1,
	    &busy);
	NULLS(rpma_rt_poller_arm, f->rt, 0);
	BAD(RPMA_E_INVAL, rpma_rt_poller_arm, f->rt, 1);
	BAD(RPMA_E_INVAL, rpma_rt_poller_arm, f->rt, UINT32_MAX);
	NULLS(rpma_rt_poller_attach, f->rt, 0);
	BAD(RPMA_E_INVAL, rpma_rt_poller_attach, f->rt, 1);
	BAD(RPMA_E_INVAL, rpma_rt_poller_attach, f->rt, UINT32_MAX);
	NULLS(rpma_rt_poller_release, f->rt, 0);
	BAD(RPMA_E_INVAL, rpma_rt_poller_release, f->rt, 1);
	BAD(RPMA_E_INVAL, rpma_rt_poller_release, f->rt, UINT32_MAX);
	NULLS(rpma_rt_poller_get_fd, f->rt, 0, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_poller_get_fd, f->rt, 1, &out.number);
	BAD(RPMA_E_INVAL, rpma_rt_poller_get_fd, f->rt, UINT32_MAX,
	    &out.number);
	NULLS(rpma_rt_poller_get_stats, f->rt, 0, &out.poller_stats,
	      sizeof(out.poller_stats));
	BAD(RPMA_E_INVAL, rpma_rt_poller_get_stats, f->rt, 1, &out.poller_stats,
	    sizeof(out.poller_stats));
	BAD(RPMA_E_INVAL, rpma_rt_poller_get_stats, f->rt, UINT32_MAX,
	    &out.poller_stats, sizeof(out.poller_stats));
	NULLS(rpma_rt_dump, f->rt, 2, RPMA_RT_DUMP_HUMAN);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, -1, RPMA_RT_DUMP_HUMAN);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, 2, 3);
	BAD(RPMA_E_INVAL, rpma_rt_dump, f->rt, 2, -1);
	BAD_SAYS("write()", RPMA_E_PROVIDER, rpma_rt_dump, f->rt, INT_MAX,
		 RPMA_RT_DUMP_JSON);
	NULLS(rpma_rt_feed_async_event, f->rt, &fake_ctx, &event);
	BAD_SAYS("async_feed", RPMA_E_NOSUPP, rpma_rt_feed_async_event, f->rt,
		 &fake_ctx, &event);
}

/* With threads there is nothing to run by hand. */
static void manual_mode(void **state)
{
	struct rpma_rt *rt = NULL;

	(void)state;
	ok(rpma_rt_new(NULL, &rt));
	BAD_SAYS("RPMA_RT_MODE_MANUAL", RPMA_E_NOSUPP, rpma_rt_poller_run, rt,
		 0, 1);
	BAD_SAYS("RPMA_RT_MODE_MANUAL", RPMA_E_NOSUPP, rpma_rt_poller_arm, rt,
		 0);
	BAD_SAYS("RPMA_RT_MODE_MANUAL", RPMA_E_NOSUPP, rpma_rt_poller_attach,
		 rt, 0);
	BAD_SAYS("RPMA_RT_MODE_MANUAL", RPMA_E_NOSUPP, rpma_rt_poller_release,
		 rt, 0);
	BAD_SAYS("RPMA_RT_MODE_MANUAL", RPMA_E_NOSUPP, rpma_rt_poller_get_fd,
		 rt, 0, &out.number);
	ok(rpma_rt_delete(&rt));
}

static void texts(void **state)
{
	(void)state;
	sweep_begin("rpma_rt_err_2str");
	assert_string_equal(rpma_rt_err_2str(1), "Unknown error");
	assert_string_equal(rpma_rt_err_2str(INT_MIN), "Unknown error");
	assert_string_equal(rpma_rt_err_2str(RPMA_RT_E_FAILED - 1),
			    "Unknown error");
}

static void names(void **state)
{
	const struct rpma_rt_completion none = {.kind = UINT8_MAX};
	char text[8] = "";

	(void)state;
	sweep_begin("rpma_rt_reason_2str");
	assert_string_equal(rpma_rt_reason_2str((enum rpma_rt_reason)INT_MIN),
			    "unknown");
	sweep_begin("rpma_rt_status_2str");
	assert_string_equal(rpma_rt_status_2str((enum ibv_wc_status)INT_MIN),
			    "unknown");
	sweep_begin("rpma_rt_again_2str");
	assert_string_equal(rpma_rt_again_2str((enum rpma_rt_again)INT_MAX),
			    "unknown");
	sweep_begin("rpma_rt_completion_2str");
	assert_ptr_equal(rpma_rt_completion_2str(&none, text, 0), text);
	assert_string_equal(text, "");
	rpma_rt_completion_2str(&none, text, sizeof(text));
	assert_string_equal(text, "no item");
}

/* The last one: it knows what the others did. */
static void every_function_WAS_SWEPT(void **state)
{
	(void)state;
	sweep_expect_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(configurations),
		cmocka_unit_test(configurations_of_runtimes),
		bad_test(configurations_of_queues),
		bad_test(configurations_of_connections),
		bad_test(configurations_of_srqs),
		cmocka_unit_test(cpus),
		bad_test(runtimes),
		cmocka_unit_test(manual_mode),
		bad_test(queues),
		bad_test(a_closed_queue),
		bad_test(a_queue_in_use),
		bad_test(making_connections),
		bad_test(adoption),
		bad_test(connections),
		bad_test(connections_too_early_or_late),
		bad_test(routes_to_be_closed),
		bad_test(a_closed_connection),
		bad_test(routes),
		bad_test(posts),
		bad_test(posts_in_words),
		bad_test(posts_beyond_credit),
		bad_test(making_srqs),
		bad_test(srqs),
		bad_test(pools),
		bad_test(futures),
		bad_test(no_queue),
		cmocka_unit_test(configurations_of_shards),
		cmocka_unit_test(shards),
		bad_test(waiting_on_a_poller),
		bad_test(waiting_on_the_event_thread),
		bad_test(of_before_a_fork),
		bad_test(mistakes),
		bad_test(no_memory),
		bad_test(no_resources_for_shards),
		bad_test(system_refuses),
		bad_test(a_queue_behind),
		bad_test(adoption_of_what_is_in_use),
		bad_test(a_queue_full_of_messages),
		bad_test(another_thread_owns),
		bad_test(a_runtime_with_handles),
		cmocka_unit_test(texts),
		cmocka_unit_test(names),
		cmocka_unit_test(every_function_WAS_SWEPT),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
