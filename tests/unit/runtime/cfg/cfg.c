/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Configurations: defaults, ranges, the message about a wrong field; and
 * structs that are shorter or longer than the library's, as an older or newer
 * program has them.
 */

#include "base/cfg.h"

#include <limits.h>
#include <string.h>

#include "rt_fake.h"

#define RUNTIME ((struct rpma_rt_cfg)RPMA_RT_CFG_INIT)
#define QUEUE	((struct rpma_rt_queue_cfg)RPMA_RT_QUEUE_CFG_INIT)
#define SRQ	((struct rpma_rt_srq_cfg)RPMA_RT_SRQ_CFG_INIT)
#define CONN	((struct rpma_rt_conn_cfg)RPMA_RT_CONN_CFG_INIT)
#define POOL	((struct rpma_rt_pool_cfg)RPMA_RT_POOL_CFG_INIT)

static int setup(void **state)
{
	(void)state;
	fake_logged();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return fake_failed() && fake_memory() == 0 ? 0 : -1;
}

/* The call answers INVAL, and a line in the log explains the answer. */
static void refused(int ret, const char *words)
{
	assert_int_equal(ret, RPMA_E_INVAL);
	assert_int_equal(fake_logged(), 1);
	assert_true(fake_said(words));
}

/* ------------------------------------------------------------ defaults --- */

TEST_WITH(init__as_the_initializer, setup, teardown)
{
	struct rpma_rt_cfg cfg;

	memset(&cfg, 0xff, sizeof(cfg));
	ok(rpma_rt_cfg_init(&cfg, sizeof(cfg)));
	assert_memory_equal(&cfg, &RUNTIME, sizeof(cfg));
	assert_int_equal(cfg.size, sizeof(cfg));
	assert_int_equal(cfg.mode, RPMA_RT_MODE_ADAPTIVE);
	assert_int_equal(cfg.pollers, 1);
	assert_int_equal(cfg.cq_size, RPMA_RT_DEFAULT_CQ_SIZE);
	assert_int_equal(cfg.spin_us, RPMA_RT_DEFAULT_SPIN_US);
	assert_int_equal(cfg.backstop_ms, RPMA_RT_DEFAULT_BACKSTOP_MS);
	assert_int_equal(cfg.teardown_ms, RPMA_RT_DEFAULT_TEARDOWN_MS);
}

TEST_WITH(queue_init__as_the_initializer, setup, teardown)
{
	struct rpma_rt_queue_cfg cfg;

	ok(rpma_rt_queue_cfg_init(&cfg, sizeof(cfg)));
	assert_memory_equal(&cfg, &QUEUE, sizeof(cfg));
	assert_int_equal(cfg.size, sizeof(cfg));
	assert_int_equal(cfg.lane_size, RPMA_RT_DEFAULT_LANE_SIZE);
	assert_int_equal(cfg.backlog_limit, RPMA_RT_DEFAULT_BACKLOG_LIMIT);
	assert_int_equal(cfg.spin_us, RPMA_RT_DEFAULT_QUEUE_SPIN_US);
	assert_int_equal(cfg.shared, 0);
	assert_null(cfg.name);
}

TEST_WITH(srq_init__as_the_initializer, setup, teardown)
{
	struct rpma_rt_srq_cfg cfg;

	ok(rpma_rt_srq_cfg_init(&cfg, sizeof(cfg)));
	assert_memory_equal(&cfg, &SRQ, sizeof(cfg));
	assert_int_equal(cfg.size, sizeof(cfg));
	assert_int_equal(cfg.srq_size, 0);
	assert_int_equal(cfg.limit, 0);
	assert_int_equal(cfg.max_sge, 1);
}

TEST_WITH(conn_init__as_the_initializer, setup, teardown)
{
	struct rpma_rt_conn_cfg cfg;

	ok(rpma_rt_conn_cfg_init(&cfg, sizeof(cfg)));
	assert_memory_equal(&cfg, &CONN, sizeof(cfg));
	assert_int_equal(cfg.size, sizeof(cfg));
	assert_int_equal(cfg.poller, RPMA_RT_POLLER_ANY);
	assert_int_equal(cfg.sq_size, RPMA_RT_DEFAULT_SQ_SIZE);
	assert_int_equal(cfg.rq_size, 0);
	assert_int_equal(cfg.max_sge, 1);
	assert_int_equal(cfg.max_inline, RPMA_RT_DEFAULT_INLINE);
	assert_int_equal(cfg.timeout_ms, RPMA_DEFAULT_TIMEOUT_MS);
	assert_int_equal(cfg.min_rnr_timer, RPMA_MIN_RNR_TIMER_UNSET);
	assert_int_equal(cfg.ack_timeout, RPMA_ACK_TIMEOUT_UNSET);
}

TEST_WITH(init__wrong_size_INVAL, setup, teardown)
{
	struct rpma_rt_cfg cfg = {.size = 7};

	refused(rpma_rt_cfg_init(NULL, sizeof(cfg)), "cfg is NULL");
	refused(rpma_rt_cfg_init(&cfg, sizeof(cfg) - 1),
		"rpma_rt_cfg.size is 95");
	refused(rpma_rt_cfg_init(&cfg, 4097), "96..4096");
	assert_int_equal(cfg.size, 7);
}

TEST_WITH(read__none_given_the_defaults, setup, teardown)
{
	struct rpma_rt_cfg cfg;

	ok(rt_cfg_read_runtime(NULL, &cfg));
	assert_memory_equal(&cfg, &RUNTIME, sizeof(cfg));
}

/* A 0 means the default where 0 is out of the range. */
TEST_WITH(read__all_zero, setup, teardown)
{
	const struct rpma_rt_cfg given = {.size = sizeof(given)};
	struct rpma_rt_cfg cfg;

	ok(rt_cfg_read_runtime(&given, &cfg));
	assert_int_equal(cfg.pollers, 1);
	assert_int_equal(cfg.cq_size, RPMA_RT_DEFAULT_CQ_SIZE);
	assert_int_equal(cfg.teardown_ms, RPMA_RT_DEFAULT_TEARDOWN_MS);
	assert_int_equal(cfg.spin_us, 0);
	assert_int_equal(cfg.backstop_ms, 0);
}

/* ------------------------------------------------------------ ranges --- */

/* a field of 32 bits, and its range */
struct number {
	const char *name;
	size_t offset;
	uint32_t min;
	uint32_t max;
};

static uint32_t *at(void *cfg, const struct number *n)
{
	return (uint32_t *)((char *)cfg + n->offset);
}

/* the words of the log: type.field, VALUE, MIN..MAX */
static void refused_number(int ret, const char *type, const struct number *n,
			   uint32_t value)
{
	char text[128];

	snprintf(text, sizeof(text), "%s.%s is %u, it may be %u..%u", type,
		 n->name, value, n->min, n->max);
	refused(ret, text);
}

#define NUMBER(type, field, min, max) \
	{#field, offsetof(struct type, field), min, max}

static const struct number runtime_numbers[] = {
	NUMBER(rpma_rt_cfg, mode, RPMA_RT_MODE_ADAPTIVE, RPMA_RT_MODE_MANUAL),
	NUMBER(rpma_rt_cfg, pollers, 1, RPMA_RT_MAX_POLLERS),
	NUMBER(rpma_rt_cfg, cq_size, 1, INT32_MAX),
	NUMBER(rpma_rt_cfg, spin_us, 0, 1000000),
	NUMBER(rpma_rt_cfg, backstop_ms, 0, 60000),
	NUMBER(rpma_rt_cfg, teardown_ms, 1, 600000),
	NUMBER(rpma_rt_cfg, async_feed, 0, 1),
};

/* Reads a configuration with the value; asserts the value in the copy, or that
 * the value is refused. */
typedef void range_fn(const struct number *n, uint32_t value, bool is_refused);

static void check_ranges(const struct number *n, size_t count, range_fn *read)
{
	for (; count > 0; count--, n++) {
		read(n, n->min, false);
		read(n, n->max, false);
		read(n, n->max + 1, true);
	}
	assert_int_equal(fake_logged(), 0);
}

#define RANGES(numbers, read) \
	check_ranges(numbers, sizeof(numbers) / sizeof(numbers[0]), read)

/* Defines a range_fn for a type whose defaults are given; call reads given. */
#define RANGE_FN(name, type, defaults, call)                     \
	static void name(const struct number *n, uint32_t value, \
			 bool is_refused)                        \
	{                                                        \
		struct type given = defaults;                    \
		struct type cfg;                                 \
		int ret;                                         \
                                                                 \
		*at(&given, n) = value;                          \
		ret = call;                                      \
		if (is_refused) {                                \
			refused_number(ret, #type, n, value);    \
			return;                                  \
		}                                                \
		ok(ret);                                         \
		assert_int_equal(*at(&cfg, n), value);           \
	}

RANGE_FN(read_runtime, rpma_rt_cfg, RUNTIME, rt_cfg_read_runtime(&given, &cfg))

TEST_WITH(read_runtime__ranges, setup, teardown)
{
	RANGES(runtime_numbers, read_runtime);
}

TEST_WITH(read_runtime__reserved_INVAL, setup, teardown)
{
	struct rpma_rt_cfg given = RUNTIME;
	struct rpma_rt_cfg cfg;

	given.reserved[2] = 1;
	refused(rt_cfg_read_runtime(&given, &cfg),
		"rpma_rt_cfg.reserved has to be 0");
}

TEST_WITH(read_runtime__cpus, setup, teardown)
{
	int32_t cpus[] = {RPMA_RT_CPU_ANY, INT32_MAX};
	struct rpma_rt_cfg given = RUNTIME;
	struct rpma_rt_cfg cfg;

	given.cpus = cpus;
	refused(rt_cfg_read_runtime(&given, &cfg), "rpma_rt_cfg.cpus");
	given.cpus = NULL;
	given.cpu_count = 1;
	refused(rt_cfg_read_runtime(&given, &cfg), "rpma_rt_cfg.cpus");
	given.cpus = cpus;
	given.cpu_count = 2;
	refused(rt_cfg_read_runtime(&given, &cfg),
		"rpma_rt_cfg.cpu_count is 2, it may be 1..1");
	given.pollers = 2;
	refused(rt_cfg_read_runtime(&given, &cfg),
		"rpma_rt_cfg.cpus[1] is 2147483647");
	given.cpu_count = RPMA_RT_MAX_POLLERS + 1;
	refused(rt_cfg_read_runtime(&given, &cfg),
		"rpma_rt_cfg.cpu_count is 65, it may be 0..64");
	given.cpu_count = 1;
	given.pollers = 1;
	ok(rt_cfg_read_runtime(&given, &cfg));
	assert_ptr_equal(cfg.cpus, cpus);
}

static const struct number queue_numbers[] = {
	NUMBER(rpma_rt_queue_cfg, backlog_limit, 1, 1048576),
	NUMBER(rpma_rt_queue_cfg, spin_us, 0, 1000000),
	NUMBER(rpma_rt_queue_cfg, shared, 0, 1),
};

RANGE_FN(read_queue, rpma_rt_queue_cfg, QUEUE, rt_cfg_read_queue(&given, &cfg))

TEST_WITH(read_queue__ranges, setup, teardown)
{
	RANGES(queue_numbers, read_queue);
}

TEST_WITH(read_queue__lane_size, setup, teardown)
{
	static const uint32_t bad[] = {32, 65, 1u << 21, 1u << 31, UINT32_MAX};
	struct rpma_rt_queue_cfg given = QUEUE;
	struct rpma_rt_queue_cfg cfg;
	size_t i;

	for (given.lane_size = 64; given.lane_size <= 1048576;
	     given.lane_size *= 2)
		ok(rt_cfg_read_queue(&given, &cfg));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		given.lane_size = bad[i];
		refused(rt_cfg_read_queue(&given, &cfg),
			"it may be a power of two, 64..1048576");
	}
	given.lane_size = 0;
	ok(rt_cfg_read_queue(&given, &cfg));
	assert_int_equal(cfg.lane_size, RPMA_RT_DEFAULT_LANE_SIZE);
}

TEST_WITH(read_queue__name, setup, teardown)
{
	char name[RPMA_RT_NAME_MAX + 2] = {0};
	struct rpma_rt_queue_cfg given = QUEUE;
	struct rpma_rt_queue_cfg cfg;

	given.name = name;
	memset(name, '~', RPMA_RT_NAME_MAX);
	ok(rt_cfg_read_queue(&given, &cfg));
	name[RPMA_RT_NAME_MAX] = ' ';
	refused(rt_cfg_read_queue(&given, &cfg),
		"rpma_rt_queue_cfg.name has more than 31 characters");
	name[3] = '\n';
	name[4] = '\0';
	refused(rt_cfg_read_queue(&given, &cfg),
		"rpma_rt_queue_cfg.name[3] is 10");
	given.name = "";
	ok(rt_cfg_read_queue(&given, &cfg));
}

TEST_WITH(read_srq__ranges, setup, teardown)
{
	struct rpma_rt_srq_cfg given = SRQ;
	struct rpma_rt_srq_cfg cfg;

	refused(rt_cfg_read_srq(&given, 2, &cfg),
		"rpma_rt_srq_cfg.peer is missing");
	given.peer = &fake_peer;
	refused(rt_cfg_read_srq(&given, 2, &cfg),
		"rpma_rt_srq_cfg.queue is missing");
	given.queue = (struct rpma_rt_queue *)&given;
	given.poller = 1;
	given.srq_size = 1048576;
	given.limit = 1048576;
	ok(rt_cfg_read_srq(&given, 2, &cfg));
	refused(rt_cfg_read_srq(&given, 1, &cfg),
		"rpma_rt_srq_cfg.poller is 1, it may be 0..0");
	given.srq_size++;
	refused(rt_cfg_read_srq(&given, 2, &cfg),
		"rpma_rt_srq_cfg.srq_size is 1048577, it may be 0..1048576");
	given.srq_size = 1048575;
	given.limit = 0;
	given.max_sge = 32;
	ok(rt_cfg_read_srq(&given, 2, &cfg));
	assert_int_equal(cfg.max_sge, 32);
	given.max_sge = 33;
	refused(rt_cfg_read_srq(&given, 2, &cfg),
		"rpma_rt_srq_cfg.max_sge is 33, it may be 1..32");
	given.max_sge = 0;
	given.srq_size = 0;
	ok(rt_cfg_read_srq(&given, 2, &cfg));
	assert_int_equal(cfg.max_sge, 1);
	assert_int_equal(cfg.srq_size, 0);
}

static const struct number conn_numbers[] = {
	NUMBER(rpma_rt_conn_cfg, sq_size, 1, INT32_MAX / 4),
	NUMBER(rpma_rt_conn_cfg, rq_size, 0, INT32_MAX / 4),
	NUMBER(rpma_rt_conn_cfg, max_sge, 1, 128),
	NUMBER(rpma_rt_conn_cfg, max_inline, 8, INT32_MAX),
	NUMBER(rpma_rt_conn_cfg, timeout_ms, 1, INT32_MAX),
	NUMBER(rpma_rt_conn_cfg, keepalive_ms, 0, 3600000),
	NUMBER(rpma_rt_conn_cfg, backlog, 0, INT32_MAX),
	NUMBER(rpma_rt_conn_cfg, futures, 0, 1048576),
	NUMBER(rpma_rt_conn_cfg, waiting, 0, 1048576),
};

static struct rpma_rt_conn_cfg given_conn(void)
{
	struct rpma_rt_conn_cfg given = CONN;

	given.peer = &fake_peer;
	given.queue = (struct rpma_rt_queue *)&fake_peer;
	return given;
}

RANGE_FN(read_conn, rpma_rt_conn_cfg, given_conn(),
	 rt_cfg_read_conn(&given, 1, &cfg))

TEST_WITH(read_conn__ranges, setup, teardown)
{
	RANGES(conn_numbers, read_conn);
}

TEST_WITH(read_conn__codes_of_timers, setup, teardown)
{
	struct rpma_rt_conn_cfg given = given_conn();
	struct rpma_rt_conn_cfg cfg;

	given.min_rnr_timer = 0; /* a value: 655 ms */
	given.ack_timeout = 31;
	ok(rt_cfg_read_conn(&given, 1, &cfg));
	assert_int_equal(cfg.min_rnr_timer, 0);
	assert_int_equal(cfg.ack_timeout, 31);
	given.min_rnr_timer = 32;
	refused(rt_cfg_read_conn(&given, 1, &cfg),
		"rpma_rt_conn_cfg.min_rnr_timer is 32, it may be 0..31");
	given.min_rnr_timer = 31;
	given.ack_timeout = 32;
	refused(rt_cfg_read_conn(&given, 1, &cfg),
		"rpma_rt_conn_cfg.ack_timeout is 32, it may be 0..31");
}

TEST_WITH(read_conn__what_is_missing, setup, teardown)
{
	struct rpma_rt_conn_cfg given = given_conn();
	struct rpma_rt_conn_cfg cfg;

	given.queue = NULL;
	refused(rt_cfg_read_conn(&given, 1, &cfg),
		"rpma_rt_conn_cfg.queue is missing");
	given.peer = NULL;
	refused(rt_cfg_read_conn(&given, 1, &cfg),
		"rpma_rt_conn_cfg.peer is missing");
}

static const struct number pool_numbers[] = {
	NUMBER(rpma_rt_pool_cfg, count, 1, 1048576),
	NUMBER(rpma_rt_pool_cfg, slot_size, 1, 1073741824),
	NUMBER(rpma_rt_pool_cfg, futures, 1, 1048576),
};

static struct rpma_rt_pool_cfg given_pool(void)
{
	struct rpma_rt_pool_cfg given = POOL;

	given.peer = &fake_peer;
	return given;
}

RANGE_FN(read_pool, rpma_rt_pool_cfg, given_pool(),
	 rt_cfg_read_pool(&given, &cfg))

TEST_WITH(read_pool__ranges, setup, teardown)
{
	struct rpma_rt_pool_cfg given = POOL;
	struct rpma_rt_pool_cfg cfg;

	RANGES(pool_numbers, read_pool);
	refused(rt_cfg_read_pool(&given, &cfg),
		"rpma_rt_pool_cfg.peer is missing");
}

/* Slots that receives never take: half of them, none, or a number. */
TEST_WITH(read_pool__sends, setup, teardown)
{
	struct rpma_rt_pool_cfg given = given_pool();
	struct rpma_rt_pool_cfg cfg;

	given.count = 9;
	ok(rt_cfg_read_pool(&given, &cfg));
	assert_int_equal(cfg.sends, 4);
	given.sends = RPMA_RT_POOL_NO_SENDS;
	ok(rt_cfg_read_pool(&given, &cfg));
	assert_int_equal(cfg.sends, 0);
	given.sends = 8;
	ok(rt_cfg_read_pool(&given, &cfg));
	assert_int_equal(cfg.sends, 8);
	given.sends = 9;
	refused(rt_cfg_read_pool(&given, &cfg),
		"rpma_rt_pool_cfg.sends is 9, it may be 0..8");
}

static const struct number shards_numbers[] = {
	NUMBER(rpma_rt_shards_cfg, spin_us, 0, 1000000),
};

RANGE_FN(read_shards, rpma_rt_shards_cfg, fake_shards_cfg(),
	 rt_cfg_read_shards(&given, 1, &cfg))

TEST_WITH(read_shards__ranges, setup, teardown)
{
	struct rpma_rt_shards_cfg given = fake_shards_cfg();
	struct rpma_rt_shards_cfg cfg;

	RANGES(shards_numbers, read_shards);
	for (given.lane_size = 2; given.lane_size <= 65536;
	     given.lane_size *= 2)
		ok(rt_cfg_read_shards(&given, 1, &cfg));
	refused(rt_cfg_read_shards(&given, 1, &cfg),
		"lane_size is 131072, it may be a power of two, 2..65536");
	given.lane_size = 1;
	refused(rt_cfg_read_shards(&given, 1, &cfg), "lane_size is 1,");
}

/* ------------------------------------------ older and newer programs --- */

/* A struct as of a later release: two fields more than the first struct. */
struct grown {
	uint32_t size;
	uint32_t old;
	uint32_t later;
	uint32_t latest;
};

static const struct rt_cfg_field grown_fields[] = {
	{"old", 4, 4, RT_CFG_RANGE, 1, 9},
	{"later", 8, 4, RT_CFG_RANGE, 0, 9},
	{"latest", 12, 4, RT_CFG_POWER, 4, 64},
	{NULL, 0, 0, RT_CFG_ANY, 0, 0},
};
static const struct grown grown_init = {sizeof(grown_init), 5, 0, 16};
static const struct rt_cfg_type grown = {"grown", grown_fields, &grown_init,
					 sizeof(grown_init), 8};

/* The bytes behind the struct are the program's: no field. */
TEST_WITH(read__shorter_what_is_missing_as_before, setup, teardown)
{
	const struct grown given = {8, 7, 77, 77};
	struct grown cfg;

	ok(rt_cfg_read(&grown, &given, &cfg));
	assert_int_equal(cfg.size, sizeof(cfg));
	assert_int_equal(cfg.old, 7);
	assert_int_equal(cfg.later, 0);
	assert_int_equal(cfg.latest, 16); /* 0 is no value of the field */
}

TEST_WITH(read__shorter_than_the_first_INVAL, setup, teardown)
{
	const struct grown given = {7, 7, 0, 0};
	struct grown cfg;

	refused(rt_cfg_read(&grown, &given, &cfg),
		"grown.size is 7, it may be 8..4096");
}

TEST_WITH(read__size_0_names_the_initializer, setup, teardown)
{
	const struct grown given = {0, 7, 0, 0};
	struct grown cfg;

	refused(rt_cfg_read(&grown, &given, &cfg), "_INIT");
}

TEST_WITH(read__longer_and_nothing_set, setup, teardown)
{
	const struct {
		struct grown known;
		char more[12];
	} given = {{sizeof(given), 7, 8, 32}, {0}};
	struct grown cfg;

	ok(rt_cfg_read(&grown, &given, &cfg));
	assert_int_equal(cfg.size, sizeof(cfg));
	assert_int_equal(cfg.old, 7);
	assert_int_equal(cfg.later, 8);
	assert_int_equal(cfg.latest, 32);
}

TEST_WITH(read__longer_and_something_set_INVAL, setup, teardown)
{
	const struct {
		struct grown known;
		char more[12];
	} given = {{sizeof(given), 7, 8, 32}, {[6] = 1}};
	struct grown cfg;

	refused(rt_cfg_read(&grown, &given, &cfg), "offset 22");
}

TEST_WITH(read__no_power_of_two_INVAL, setup, teardown)
{
	struct grown given = {sizeof(given), 7, 8, 33};
	struct grown cfg;

	refused(rt_cfg_read(&grown, &given, &cfg),
		"grown.latest is 33, it may be a power of two, 4..64");
	given.latest = 2;
	refused(rt_cfg_read(&grown, &given, &cfg), "grown.latest is 2,");
	given.latest = 128;
	refused(rt_cfg_read(&grown, &given, &cfg), "grown.latest is 128,");
}

/* A program newer than the library, and a program older than the library. */
TEST_WITH(init__writes_so_many_bytes, setup, teardown)
{
	struct {
		struct grown known;
		char more[8];
		char beyond[8];
	} cfg;

	memset(&cfg, 0xff, sizeof(cfg));
	ok(rt_cfg_init(&grown, &cfg, 24));
	assert_int_equal(cfg.known.size, 24);
	assert_int_equal(cfg.known.latest, 16);
	assert_memory_equal(cfg.more, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal((unsigned char)cfg.beyond[0], 0xff);
	memset(&cfg, 0xff, sizeof(cfg));
	ok(rt_cfg_init(&grown, &cfg, 12));
	assert_int_equal(cfg.known.size, 12);
	assert_int_equal(cfg.known.old, 5);
	assert_int_equal(cfg.known.later, 0);
	assert_int_equal(cfg.known.latest, UINT32_MAX);
}

TEST_MAIN()
