/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.c -- the configurations that programs give; see cfg.h. The file has a
 * table of fields for each struct, a function that checks a configuration
 * against the table, then the rules that involve two fields.
 */

#include "base/cfg.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/wr.h"

/* No initializer writes a larger size. */
#define MAX_SIZE 4096

/* --------------------------------------------------------- the tables --- */

#define FIELD(type, member, rule, min, max)     \
	{#member,                               \
	 offsetof(struct type, member),         \
	 sizeof(((struct type *)NULL)->member), \
	 rule,                                  \
	 min,                                   \
	 max}
#define RANGE(type, member, min, max) \
	FIELD(type, member, RT_CFG_RANGE, min, max)
#define POWER(type, member, min, max) \
	FIELD(type, member, RT_CFG_POWER, min, max)
#define ANY(type, member)    FIELD(type, member, RT_CFG_ANY, 0, 0)
#define ZERO(type, member)   FIELD(type, member, RT_CFG_ZERO, 0, 0)
#define NEEDED(type, member) FIELD(type, member, RT_CFG_NEEDED, 0, 0)
#define END		     {NULL, 0, 0, RT_CFG_ANY, 0, 0}

static const struct rt_cfg_field runtime_fields[] = {
	RANGE(rpma_rt_cfg, mode, RPMA_RT_MODE_ADAPTIVE, RPMA_RT_MODE_MANUAL),
	RANGE(rpma_rt_cfg, pollers, 1, RPMA_RT_MAX_POLLERS),
	RANGE(rpma_rt_cfg, cq_size, 1, INT32_MAX),
	RANGE(rpma_rt_cfg, spin_us, 0, 1000000),
	RANGE(rpma_rt_cfg, backstop_ms, 0, 60000),
	RANGE(rpma_rt_cfg, teardown_ms, 1, 600000),
	ANY(rpma_rt_cfg, timing),
	ANY(rpma_rt_cfg, cpus),
	RANGE(rpma_rt_cfg, cpu_count, 0, RPMA_RT_MAX_POLLERS),
	RANGE(rpma_rt_cfg, async_feed, 0, 1),
	ANY(rpma_rt_cfg, async_fn),
	ANY(rpma_rt_cfg, async_arg),
	ZERO(rpma_rt_cfg, reserved),
	END,
};
static const struct rpma_rt_cfg runtime_init = RPMA_RT_CFG_INIT;
static const struct rt_cfg_type runtime = {
	"rpma_rt_cfg", runtime_fields, &runtime_init, sizeof(runtime_init), 96};

static const struct rt_cfg_field queue_fields[] = {
	POWER(rpma_rt_queue_cfg, lane_size, 64, 1048576),
	RANGE(rpma_rt_queue_cfg, backlog_limit, 1, 1048576),
	RANGE(rpma_rt_queue_cfg, spin_us, 0, 1000000),
	ANY(rpma_rt_queue_cfg, name),
	RANGE(rpma_rt_queue_cfg, shared, 0, 1),
	ZERO(rpma_rt_queue_cfg, reserved32),
	ZERO(rpma_rt_queue_cfg, reserved),
	END,
};
static const struct rpma_rt_queue_cfg queue_init = RPMA_RT_QUEUE_CFG_INIT;
static const struct rt_cfg_type queue = {"rpma_rt_queue_cfg", queue_fields,
					 &queue_init, sizeof(queue_init), 48};

static const struct rt_cfg_field srq_fields[] = {
	RANGE(rpma_rt_srq_cfg, poller, 0, RPMA_RT_MAX_POLLERS - 1),
	NEEDED(rpma_rt_srq_cfg, peer),
	ANY(rpma_rt_srq_cfg, queue),
	ANY(rpma_rt_srq_cfg, user),
	ANY(rpma_rt_srq_cfg, refill),
	ANY(rpma_rt_srq_cfg, refill_arg),
	RANGE(rpma_rt_srq_cfg, srq_size, 0, 1048576),
	RANGE(rpma_rt_srq_cfg, limit, 0, 1048576),
	RANGE(rpma_rt_srq_cfg, max_sge, 1, 32),
	RANGE(rpma_rt_srq_cfg, futures, 0, RT_CFG_FUTURES),
	ANY(rpma_rt_srq_cfg, pool),
	ANY(rpma_rt_srq_cfg, waiting),
	ZERO(rpma_rt_srq_cfg, reserved32),
	END,
};
static const struct rpma_rt_srq_cfg srq_init = RPMA_RT_SRQ_CFG_INIT;
static const struct rt_cfg_type srq = {"rpma_rt_srq_cfg", srq_fields, &srq_init,
				       sizeof(srq_init), 80};

static const struct rt_cfg_field pool_fields[] = {
	RANGE(rpma_rt_pool_cfg, count, 1, 1048576),
	RANGE(rpma_rt_pool_cfg, slot_size, 1, 1073741824),
	ANY(rpma_rt_pool_cfg, usage),
	NEEDED(rpma_rt_pool_cfg, peer),
	ANY(rpma_rt_pool_cfg, name),
	ANY(rpma_rt_pool_cfg, sends),
	RANGE(rpma_rt_pool_cfg, futures, 1, RT_CFG_FUTURES),
	ZERO(rpma_rt_pool_cfg, reserved),
	END,
};
static const struct rpma_rt_pool_cfg pool_init = RPMA_RT_POOL_CFG_INIT;
static const struct rt_cfg_type pool = {"rpma_rt_pool_cfg", pool_fields,
					&pool_init, sizeof(pool_init), 64};

static const struct rt_cfg_field shards_fields[] = {
	POWER(rpma_rt_shards_cfg, lane_size, 2, 65536),
	RANGE(rpma_rt_shards_cfg, spin_us, 0, 1000000),
	RANGE(rpma_rt_shards_cfg, arg_count, 0, RPMA_RT_MAX_POLLERS),
	NEEDED(rpma_rt_shards_cfg, item_fn),
	NEEDED(rpma_rt_shards_cfg, message_fn),
	ANY(rpma_rt_shards_cfg, args),
	ANY(rpma_rt_shards_cfg, queue),
	ZERO(rpma_rt_shards_cfg, reserved),
	END,
};
static const struct rpma_rt_shards_cfg shards_init = RPMA_RT_SHARDS_CFG_INIT;
static const struct rt_cfg_type shards = {"rpma_rt_shards_cfg", shards_fields,
					  &shards_init, sizeof(shards_init),
					  80};

/* the largest code that InfiniBand defines for the field */
#define CODE_MAX 31

static const struct rt_cfg_field conn_fields[] = {
	RANGE(rpma_rt_conn_cfg, poller, RPMA_RT_POLLER_LEAST,
	      RPMA_RT_MAX_POLLERS - 1),
	NEEDED(rpma_rt_conn_cfg, peer),
	ANY(rpma_rt_conn_cfg, queue),
	ANY(rpma_rt_conn_cfg, queues),
	ANY(rpma_rt_conn_cfg, user),
	ANY(rpma_rt_conn_cfg, srqs),
	ANY(rpma_rt_conn_cfg, more),
	RANGE(rpma_rt_conn_cfg, queue_count, 0, RPMA_RT_MAX_POLLERS),
	RANGE(rpma_rt_conn_cfg, srq_count, 0, RPMA_RT_MAX_POLLERS),
	RANGE(rpma_rt_conn_cfg, sq_size, 1, INT32_MAX / 4),
	RANGE(rpma_rt_conn_cfg, rq_size, 0, INT32_MAX / 4),
	RANGE(rpma_rt_conn_cfg, max_sge, 1, RT_WR_MAX_SGE),
	RANGE(rpma_rt_conn_cfg, max_inline, 8, INT32_MAX),
	RANGE(rpma_rt_conn_cfg, timeout_ms, 1, INT32_MAX),
	RANGE(rpma_rt_conn_cfg, keepalive_ms, 0, 3600000),
	RANGE(rpma_rt_conn_cfg, backlog, 0, INT32_MAX),
	RANGE(rpma_rt_conn_cfg, min_rnr_timer, 0, CODE_MAX),
	RANGE(rpma_rt_conn_cfg, ack_timeout, 0, CODE_MAX),
	ZERO(rpma_rt_conn_cfg, reserved16),
	ANY(rpma_rt_conn_cfg, pool),
	RANGE(rpma_rt_conn_cfg, futures, 0, RT_CFG_FUTURES),
	ANY(rpma_rt_conn_cfg, waiting),
	ZERO(rpma_rt_conn_cfg, reserved),
	END,
};
static const struct rpma_rt_conn_cfg conn_init = RPMA_RT_CONN_CFG_INIT;
static const struct rt_cfg_type conn = {"rpma_rt_conn_cfg", conn_fields,
					&conn_init, sizeof(conn_init), 128};

/* -------------------------------------------------------- going through --- */

int rt_cfg_refuse(const char *type, const char *field, int64_t value,
		  int64_t min, int64_t max)
{
	RT_LOG_ERROR("%s.%s is %" PRId64 ", it may be %" PRId64 "..%" PRId64,
		     type, field, value, min, max);
	return RPMA_E_INVAL;
}

static uint32_t cfg_size_of(const void *cfg)
{
	uint32_t size;

	memcpy(&size, cfg, sizeof(size));
	return size;
}

/* Returns the index of the first byte that is not 0, or len if every byte is
 * 0. */
static size_t cfg_first_set(const void *cfg, size_t offset, size_t len)
{
	const unsigned char *bytes = cfg;

	while (offset < len && bytes[offset] == 0)
		offset++;
	return offset;
}

/* Reads a number of 1, 4 or 8 bytes, or a signed number of 4 bytes where the
 * range begins below 0. */
static int64_t cfg_value_of(const struct rt_cfg_field *field, const void *cfg)
{
	const char *at = (const char *)cfg + field->offset;
	uint8_t u8;
	uint32_t u32;
	int32_t i32;

	if (field->size == sizeof(u8)) {
		memcpy(&u8, at, sizeof(u8));
		return u8;
	}
	if (field->min < 0) {
		memcpy(&i32, at, sizeof(i32));
		return i32;
	}
	memcpy(&u32, at, sizeof(u32));
	return u32;
}

static int cfg_check_size(const struct rt_cfg_type *type, const void *given)
{
	uint32_t size = cfg_size_of(given);
	size_t extra;

	if (size == 0) {
		RT_LOG_ERROR("%s.size is 0: begin with its _INIT or _init()",
			     type->name);
		return RPMA_E_INVAL;
	}
	if (size < type->first_size || size > MAX_SIZE)
		return rt_cfg_refuse(type->name, "size", size,
				     (int64_t)type->first_size, MAX_SIZE);
	extra = cfg_first_set(given, type->size, size);
	if (extra < size) {
		RT_LOG_ERROR("%s has a byte that is not 0 at offset %zu, and "
			     "this library knows %zu bytes: what is set there "
			     "needs a newer one",
			     type->name, extra, type->size);
		return RPMA_E_INVAL;
	}
	return 0;
}

static int cfg_check_range(const struct rt_cfg_type *type,
			   const struct rt_cfg_field *field, void *cfg)
{
	int64_t value = cfg_value_of(field, cfg);
	int64_t preset = cfg_value_of(field, type->init);
	bool is_odd = field->rule == RT_CFG_POWER && (value & (value - 1)) != 0;

	if (value == preset)
		return 0;
	if (value >= field->min && value <= field->max && !is_odd)
		return 0;
	if (value == 0) {
		memcpy((char *)cfg + field->offset,
		       (const char *)type->init + field->offset, field->size);
		return 0;
	}
	if (field->rule == RT_CFG_RANGE)
		return rt_cfg_refuse(type->name, field->name, value, field->min,
				     field->max);
	RT_LOG_ERROR("%s.%s is %" PRId64 ", it may be a power of two, %" PRId64
		     "..%" PRId64,
		     type->name, field->name, value, field->min, field->max);
	return RPMA_E_INVAL;
}

static int cfg_check_field(const struct rt_cfg_type *type,
			   const struct rt_cfg_field *field, void *cfg)
{
	size_t end = field->offset + field->size;

	switch (field->rule) {
	case RT_CFG_RANGE:
	case RT_CFG_POWER:
		return cfg_check_range(type, field, cfg);
	case RT_CFG_ZERO:
		if (cfg_first_set(cfg, field->offset, end) == end)
			return 0;
		RT_LOG_ERROR("%s.%s has to be 0", type->name, field->name);
		return RPMA_E_INVAL;
	case RT_CFG_NEEDED:
		if (cfg_first_set(cfg, field->offset, end) < end)
			return 0;
		RT_LOG_ERROR("%s.%s is missing", type->name, field->name);
		return RPMA_E_INVAL;
	default:
		return 0;
	}
}

int rt_cfg_read(const struct rt_cfg_type *type, const void *given, void *cfg)
{
	const struct rt_cfg_field *field;
	size_t size = type->size;
	uint32_t whole = (uint32_t)size;
	int ret;

	if (given == NULL)
		given = type->init;
	ret = cfg_check_size(type, given);
	if (ret)
		return ret;
	if (cfg_size_of(given) < size)
		size = cfg_size_of(given);
	/* fields that the program's struct does not have keep their defaults */
	memset(cfg, 0, type->size);
	memcpy(cfg, given, size);
	memcpy(cfg, &whole, sizeof(whole));
	for (field = type->fields; field->name != NULL && ret == 0; field++)
		ret = cfg_check_field(type, field, cfg);
	return ret;
}

int rt_cfg_init(const struct rt_cfg_type *type, void *cfg, size_t size)
{
	uint32_t written = (uint32_t)size;

	int ret = RT_REFUSE_NULL(cfg);

	if (ret)
		return ret;
	if (size < type->first_size || size > MAX_SIZE)
		return rt_cfg_refuse(type->name, "size", (int64_t)size,
				     (int64_t)type->first_size, MAX_SIZE);
	memset(cfg, 0, size);
	memcpy(cfg, type->init, size < type->size ? size : type->size);
	memcpy(cfg, &written, sizeof(written));
	return 0;
}

/* --------------------------------------------------------- each of them --- */

int rpma_rt_cfg_init(struct rpma_rt_cfg *cfg, size_t size)
{
	return rt_cfg_init(&runtime, cfg, size);
}

int rt_cfg_read_runtime(const struct rpma_rt_cfg *given,
			struct rpma_rt_cfg *cfg)
{
	int ret = rt_cfg_read(&runtime, given, cfg);
	uint32_t i;

	if (ret)
		return ret;
	if ((cfg->cpus == NULL) != (cfg->cpu_count == 0)) {
		RT_LOG_ERROR("%s.cpus and cpu_count: one is 0, not the other",
			     runtime.name);
		return RPMA_E_INVAL;
	}
	if (cfg->cpus == NULL)
		return 0;
	if (cfg->cpu_count != cfg->pollers)
		return rt_cfg_refuse(runtime.name, "cpu_count", cfg->cpu_count,
				     cfg->pollers, cfg->pollers);
	for (i = 0; i < cfg->cpu_count && ret == 0; i++) {
		ret = rt_cpu_check(cfg->cpus[i]);
		if (ret == RPMA_E_INVAL)
			RT_LOG_ERROR("%s.cpus[%" PRIu32 "] is %" PRId32
				     ": no CPU that this process may use",
				     runtime.name, i, cfg->cpus[i]);
	}
	return ret;
}

int rpma_rt_queue_cfg_init(struct rpma_rt_queue_cfg *cfg, size_t size)
{
	return rt_cfg_init(&queue, cfg, size);
}

/* Checks a name: NULL, or text for a line of the log and for a dump. */
static int cfg_check_name(const struct rt_cfg_type *type, const char *name)
{
	size_t len = name == NULL ? 0 : strnlen(name, RPMA_RT_NAME_MAX + 1);
	size_t i;

	if (len > RPMA_RT_NAME_MAX) {
		RT_LOG_ERROR("%s.name has more than %d characters", type->name,
			     RPMA_RT_NAME_MAX);
		return RPMA_E_INVAL;
	}
	for (i = 0; i < len; i++) {
		if (name[i] >= ' ' && name[i] <= '~')
			continue;
		RT_LOG_ERROR("%s.name[%zu] is %d: no printable ASCII character",
			     type->name, i, name[i]);
		return RPMA_E_INVAL;
	}
	return 0;
}

int rt_cfg_read_queue(const struct rpma_rt_queue_cfg *given,
		      struct rpma_rt_queue_cfg *cfg)
{
	int ret = rt_cfg_read(&queue, given, cfg);

	return ret ? ret : cfg_check_name(&queue, cfg->name);
}

int rpma_rt_pool_cfg_init(struct rpma_rt_pool_cfg *cfg, size_t size)
{
	return rt_cfg_init(&pool, cfg, size);
}

int rt_cfg_read_pool(const struct rpma_rt_pool_cfg *given,
		     struct rpma_rt_pool_cfg *cfg)
{
	int ret = rt_cfg_read(&pool, given, cfg);

	if (ret == 0 && cfg->sends == 0)
		cfg->sends = cfg->count / 2;
	else if (ret == 0 && cfg->sends == RPMA_RT_POOL_NO_SENDS)
		cfg->sends = 0;
	else if (ret == 0 && cfg->sends >= cfg->count)
		ret = rt_cfg_refuse(pool.name, "sends", cfg->sends, 0,
				    (int64_t)cfg->count - 1);
	return ret ? ret : cfg_check_name(&pool, cfg->name);
}

int rpma_rt_shards_cfg_init(struct rpma_rt_shards_cfg *cfg, size_t size)
{
	return rt_cfg_init(&shards, cfg, size);
}

int rt_cfg_read_shards(const struct rpma_rt_shards_cfg *given, uint32_t pollers,
		       struct rpma_rt_shards_cfg *cfg)
{
	int ret = rt_cfg_read(&shards, given, cfg);

	if (ret)
		return ret;
	if ((cfg->args == NULL) != (cfg->arg_count == 0)) {
		RT_LOG_ERROR("%s.args and arg_count: one is 0, not the other",
			     shards.name);
		return RPMA_E_INVAL;
	}
	if (cfg->args != NULL && cfg->arg_count != pollers)
		return rt_cfg_refuse(shards.name, "arg_count", cfg->arg_count,
				     pollers, pollers);
	return 0;
}

/* Checks how many work requests may stand in line: at most 1048576, or no line
 * at all. */
static int cfg_check_waiting(const struct rt_cfg_type *type, uint32_t waiting)
{
	return waiting <= RT_CFG_WAITING || waiting == RPMA_RT_NO_WAITING
		       ? 0
		       : rt_cfg_refuse(type->name, "waiting", waiting, 0,
				       RT_CFG_WAITING);
}

int rpma_rt_srq_cfg_init(struct rpma_rt_srq_cfg *cfg, size_t size)
{
	return rt_cfg_init(&srq, cfg, size);
}

/* Checks the rules for an SRQ: an SRQ without a queue needs futures, and an SRQ
 * with futures needs a pool. */
static int cfg_check_srq_futures(const struct rpma_rt_srq_cfg *cfg)
{
	if (cfg->queue == NULL && cfg->futures == 0) {
		RT_LOG_ERROR("%s.queue is missing, and so are futures, with "
			     "which an SRQ may have none",
			     srq.name);
		return RPMA_E_INVAL;
	}
	if (cfg->futures > 0 && cfg->pool == NULL) {
		RT_LOG_ERROR("%s.pool is missing: futures are of messages that "
			     "come out of one",
			     srq.name);
		return RPMA_E_INVAL;
	}
	return 0;
}

int rt_cfg_read_srq(const struct rpma_rt_srq_cfg *given, uint32_t pollers,
		    struct rpma_rt_srq_cfg *cfg)
{
	int ret = rt_cfg_read(&srq, given, cfg);

	if (ret)
		return ret;
	if (cfg->poller >= pollers)
		return rt_cfg_refuse(srq.name, "poller", cfg->poller, 0,
				     (int64_t)pollers - 1);
	if (cfg->pool != NULL && cfg->refill != NULL) {
		RT_LOG_ERROR("%s.pool and refill: give one of them", srq.name);
		return RPMA_E_INVAL;
	}
	ret = cfg_check_waiting(&srq, cfg->waiting);
	return ret ? ret : cfg_check_srq_futures(cfg);
}

int rpma_rt_conn_cfg_init(struct rpma_rt_conn_cfg *cfg, size_t size)
{
	return rt_cfg_init(&conn, cfg, size);
}

/* Checks a connection without a queue: everything then reaches the program
 * through futures and routes. */
static int cfg_check_no_queue(const struct rpma_rt_conn_cfg *cfg)
{
	if (cfg->futures == 0) {
		RT_LOG_ERROR("%s.queue is missing, and so are futures, with "
			     "which a connection may have none",
			     conn.name);
		return RPMA_E_INVAL;
	}
	return 0;
}

/* Checks the queues: a single queue, a queue for each poller, or no queue. */
static int cfg_check_queues(const struct rpma_rt_conn_cfg *cfg,
			    uint32_t pollers)
{
	if (cfg->queues == NULL && cfg->queue_count != 0) {
		RT_LOG_ERROR("%s.queues is missing, queue_count is %" PRIu32,
			     conn.name, cfg->queue_count);
		return RPMA_E_INVAL;
	}
	if (cfg->queue != NULL && cfg->queues != NULL) {
		RT_LOG_ERROR("%s.queue and queues: give one of them",
			     conn.name);
		return RPMA_E_INVAL;
	}
	if (cfg->queue == NULL && cfg->queues == NULL)
		return cfg_check_no_queue(cfg);
	if (cfg->queues != NULL && cfg->queue_count != pollers)
		return rt_cfg_refuse(conn.name, "queue_count", cfg->queue_count,
				     pollers, pollers);
	return 0;
}

int rt_cfg_read_conn(const struct rpma_rt_conn_cfg *given, uint32_t pollers,
		     struct rpma_rt_conn_cfg *cfg)
{
	int ret = rt_cfg_read(&conn, given, cfg);

	if (ret)
		return ret;
	if (cfg->poller >= (int64_t)pollers)
		return rt_cfg_refuse(conn.name, "poller", cfg->poller,
				     RPMA_RT_POLLER_LEAST,
				     (int64_t)pollers - 1);
	if (cfg->srqs == NULL && cfg->srq_count != 0) {
		RT_LOG_ERROR("%s.srqs is missing, srq_count is %" PRIu32,
			     conn.name, cfg->srq_count);
		return RPMA_E_INVAL;
	}
	if (cfg->srqs != NULL && cfg->pool != NULL) {
		RT_LOG_ERROR("%s.pool and srqs: give one of them; an SRQ has a "
			     "pool of its own",
			     conn.name);
		return RPMA_E_INVAL;
	}
	ret = cfg_check_waiting(&conn, cfg->waiting);
	return ret ? ret : cfg_check_queues(cfg, pollers);
}
