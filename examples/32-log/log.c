/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* log.c: see log.h, and README.md for why nothing is lost. */

#include "log.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>

#include <rpma_rt.h>

#include "../common/clock.h"
#include "../common/durable.h"
#include "../common/peer.h"
#include "../common/reconnect.h"
#include "format.h"

#define KEEPALIVE_MS 1000
#define ROUND	     64	     /* completions */
#define SPIN_NS	     1000000 /* of a wait, before the thread sleeps */

/* The states of a connection to a replica, in order. */
enum state {
	CONNECTING,
	READING,  /* the log of the replica, into the copy */
	PROMISED, /* waits until the log is there */
	LOWERING, /* cuts off what the log does not have */
	LIVE,	  /* gets all that is missing */
	OUT	  /* ends */
};

struct replica {
	struct log *log;
	struct reconnect link;
	struct log_request request;
	struct rpma_mr_remote *region;
	enum state state;
	bool is_damaged;	      /* not used any more */
	bool is_refusing;	      /* has promised a later term */
	bool is_tailed;		      /* a tail of this term was posted */
	struct rpma_rt_future closed; /* held while there is a connection */
	struct rpma_rt_future step;   /* what the state waits for, or zero */
	char *copy;		      /* of the replica's log, in our region */
	uint64_t tail;		      /* when the replica promised */
	uint64_t sent;		      /* posted, or in common with the log */
	uint64_t durable;	      /* persistent, with a tail of this term */
	struct durable appends;
};

struct log {
	struct log_cfg cfg;
	struct rpma_peer *peer;
	struct rpma_rt *rt;
	struct rpma_mr_local *mr;
	struct rpma_peer_cfg *pmem;
	char *records; /* the log; behind, a copy for each replica */
	uint64_t term;
	uint64_t writer;   /* a random number */
	bool is_recovered; /* end is valid */
	bool is_taken;
	uint64_t end;
	uint64_t acknowledged;
	struct replica replicas[LOG_MAX_REPLICAS];
};

static bool is_held(const struct rpma_rt_future *future)
{
	return future->opaque[0] | future->opaque[1];
}

static int quorum(const struct log *log)
{
	return log->cfg.replicas / 2 + 1;
}

/* ------------------------------------------------------------ replica --- */

/* Ends the connection; with a reason, the replica is not used any more. */
static void turn_out(struct replica *r, const char *why)
{
	if (why != NULL)
		fprintf(stderr, "replica %s port %s: %s\n", r->link.address,
			r->link.port, why);
	r->is_damaged |= why != NULL;
	r->state = OUT;
	rpma_rt_conn_close(r->link.conn);
}

/* Drops all futures and the region, when the connection has ended. */
static void drop(struct replica *r)
{
	durable_drop(&r->appends);
	rpma_rt_future_drop(&r->step); /* may be zero */
	rpma_rt_future_drop(&r->closed);
	rpma_mr_remote_delete(&r->region);
}

/* Posts a step with all that the replica misses, if there is room. */
static void post_missing(struct replica *r)
{
	uint64_t end = r->log->end;

	if ((r->sent == end && r->is_tailed) ||
	    durable_post(&r->appends, LOG_RECORDS + r->sent, r->sent,
			 end - r->sent, log_word(r->log->term, end)))
		return; /* no room yet, or the connection ends */
	r->sent = end;
	r->is_tailed = true;
}

/* Takes the steps that are complete. */
static void collect(struct replica *r)
{
	uint64_t tail = 0;

	if (durable_collect(&r->appends, &tail)) {
		turn_out(r, NULL);
		return;
	}
	if (log_term(tail) == r->log->term)
		r->durable = log_low(tail);
	if (r->state == LOWERING && r->appends.count == 0)
		r->state = LIVE;
}

/* Keeps the first bytes of the replica's log. The tail is lowered before
 * anything above is overwritten. */
static void keep(struct replica *r, uint64_t common)
{
	r->sent = common;
	r->is_tailed = false;
	r->state = common == log_low(r->tail) ? LIVE : LOWERING;
	if (r->state == LOWERING &&
	    durable_post(&r->appends, 0, 0, 0,
			 log_word(log_term(r->tail), common)))
		turn_out(r, NULL);
}

/* Keeps the records that the log has too. */
static void compare(struct replica *r)
{
	const char *ours = r->log->records, *theirs = r->copy;
	uint64_t common = 0, end = log_low(r->tail), size;

	while (common < end && common < r->log->end) {
		size = record_size(record_at(theirs, common, end)->len);
		if (size > r->log->end - common ||
		    memcmp(ours + common, theirs + common, size) != 0)
			break;
		common += size;
	}
	keep(r, common);
}

/* Takes the answer of a replica; returns -1 if there is none. */
static int take_answer(struct replica *r, struct log_answer *answer)
{
	struct rpma_conn_private_data pdata = {NULL, 0};

	if (rpma_rt_conn_get_private_data(r->link.conn, &pdata) ||
	    pdata.ptr == NULL || pdata.len < sizeof(*answer))
		return -1;
	memcpy(answer, pdata.ptr, sizeof(*answer));
	return answer->magic == LOG_MAGIC ? 0 : -1;
}

/* Makes the region, and allows persistent flushes: a replica has persistent
 * memory, or is a test. */
static int take_region(struct replica *r, struct log_answer *answer)
{
	size_t size = 0;

	if (answer->region_len > sizeof(answer->region) ||
	    rpma_rt_conn_apply_remote_peer_cfg(r->link.conn, r->log->pmem) ||
	    rpma_mr_remote_from_descriptor(answer->region, answer->region_len,
					   &r->region) ||
	    rpma_mr_remote_get_size(r->region, &size))
		return -1;
	r->appends = (struct durable){.conn = r->link.conn,
				      .region = r->region,
				      .mr = r->log->mr,
				      .word_at = LOG_TAIL};
	return size == LOG_REGION ? 0 : -1;
}

static void on_accepted(struct replica *r)
{
	struct log_answer answer;
	struct rpma_rt_wr wr;

	if (take_answer(r, &answer) || take_region(r, &answer)) {
		turn_out(r, "no replica of a log of this size");
		return;
	}
	r->tail = answer.tail;
	r->is_refusing = false;
	if (log_low(r->tail) > LOG_SIZE ||
	    (r->durable > 0 && r->tail < log_word(r->log->term, r->durable))) {
		turn_out(r, "has lost what the replica had acknowledged");
		return;
	}
	if (log_term(r->tail) == r->log->term) {
		keep(r, log_low(r->tail));
		return;
	}
	r->state = log_low(r->tail) == 0 ? PROMISED : READING;
	if (r->state == PROMISED)
		return;
	rpma_rt_prep_read(&wr, r->log->mr, (size_t)(r->copy - r->log->records),
			  r->region, LOG_RECORDS, log_low(r->tail), 0, 0);
	wr.future = &r->step;
	if (rpma_rt_post_send(r->link.conn, &wr, 1) != 1)
		turn_out(r, NULL);
}

/* Goes on with what the state has waited for. */
static void on_step(struct replica *r, const struct rpma_rt_completion *cmpl,
		    uint64_t now)
{
	unsigned event = rpma_rt_completion_event(cmpl);

	if (event == RPMA_RT_EVENT_CLOSED ||
	    (event == 0 && !rpma_rt_completion_is_ok(cmpl)))
		return; /* the future of CLOSED is complete, too, or soon */
	if (r->state == CONNECTING) {
		if (reconnect_event(&r->link, cmpl, now) == RECONNECT_UP)
			on_accepted(r);
		else if (rpma_rt_conn_future(r->link.conn,
					     RPMA_RT_EVENT_ESTABLISHED,
					     &r->step))
			turn_out(r, NULL);
	} else if (r->state == READING) {
		r->state = PROMISED;
		if (records_whole(r->copy, log_low(r->tail)) !=
		    log_low(r->tail))
			turn_out(r, "a record is damaged");
	}
}

/* Begins again with a later term, or, where the log is there already, ends
 * if no quorum is left. */
static void on_refused(struct replica *r, uint64_t term)
{
	struct log *log = r->log;
	int i, left = log->cfg.replicas;

	if (term < log->term)
		return;
	r->is_refusing = log->is_recovered;
	for (i = 0; i < log->cfg.replicas; i++) {
		left -= log->replicas[i].is_refusing;
		if (!log->is_recovered && log->replicas[i].link.conn != NULL)
			turn_out(&log->replicas[i], NULL);
	}
	if (!log->is_recovered)
		log->term = term + 1;
	log->is_taken = left < quorum(log);
}

static void on_closed(struct replica *r,
		      const struct rpma_rt_completion *closed, uint64_t now)
{
	struct log_answer answer;

	if (closed->status == RPMA_RT_REASON_REJECTED &&
	    take_answer(r, &answer) == 0) {
		if (answer.identity != r->request.identity)
			turn_out(r, "another number, or another quorum");
		else if (answer.promise != r->request.promise)
			on_refused(r, log_term(answer.promise));
	}
	drop(r);
	reconnect_event(&r->link, closed, now);
}

/* Connects if the time has come; returns when to call again. */
static uint64_t connect_again(struct replica *r, uint64_t now)
{
	uint64_t next;

	if (r->is_damaged || r->log->is_taken)
		return RECONNECT_NEVER;
	r->request.promise = log_word(r->log->term, r->log->writer);
	next = reconnect_tick(&r->link, now);
	if (r->link.conn == NULL)
		return next;
	r->state = CONNECTING;
	if (rpma_rt_conn_future(r->link.conn, RPMA_RT_EVENT_CLOSED,
				&r->closed) ||
	    rpma_rt_conn_future(r->link.conn, RPMA_RT_EVENT_READY, &r->step))
		turn_out(r, "no future");
	return next;
}

/* Does all that needs no waiting; returns when to call again, unless a
 * future is complete before. */
static uint64_t replica_turn(struct replica *r, uint64_t now)
{
	struct rpma_rt_completion cmpl;

	if (r->link.conn == NULL)
		return connect_again(r, now);
	if (rpma_rt_future_poll(&r->closed, &cmpl) == 1) {
		on_closed(r, &cmpl, now);
		return now;
	}
	if (is_held(&r->step) && r->state != OUT &&
	    rpma_rt_future_poll(&r->step, &cmpl) == 1) {
		rpma_rt_future_drop(&r->step);
		on_step(r, &cmpl, now);
	}
	if (r->state == PROMISED && r->log->is_recovered)
		compare(r);
	if (r->state == LOWERING || r->state == LIVE)
		collect(r);
	if (r->state == LIVE)
		post_missing(r);
	return RECONNECT_NEVER;
}

/* ---------------------------------------------------------------- log --- */

/* Takes the log with the largest tail once a quorum has promised. */
static void recover(struct log *log)
{
	struct replica *r, *best = NULL;
	int count = 0;

	for (r = log->replicas; r < log->replicas + log->cfg.replicas; r++) {
		if (r->link.conn == NULL || r->state != PROMISED)
			continue;
		count++;
		if (best == NULL || r->tail > best->tail)
			best = r;
	}
	if (count < quorum(log))
		return;
	log->end = log_low(best->tail);
	memcpy(log->records, best->copy, log->end);
	log->is_recovered = true;
}

/* Finds the largest end that a quorum has. */
static void acknowledge(struct log *log)
{
	uint64_t end;
	int i, k, have;

	for (i = 0; i < log->cfg.replicas; i++) {
		end = log->replicas[i].durable;
		for (k = have = 0; k < log->cfg.replicas; k++)
			have += log->replicas[k].durable >= end;
		if (have >= quorum(log) && end > log->acknowledged)
			log->acknowledged = end;
	}
}

static uint64_t log_turn(struct log *log)
{
	uint64_t now = clock_now(), next = RECONNECT_NEVER, at;
	int i;

	while (rpma_rt_poller_run(log->rt, 0, ROUND) > 0)
		; /* the completions that are there */
	for (i = 0; i < log->cfg.replicas; i++) {
		at = replica_turn(&log->replicas[i], now);
		next = at < next ? at : next;
	}
	if (!log->is_recovered)
		recover(log);
	acknowledge(log);
	return next;
}

/* Sleeps until any future is complete, or until the time. */
static void sleep_until(struct log *log, uint64_t time)
{
	struct rpma_rt_future futures[3 * LOG_MAX_REPLICAS];
	uint64_t now = clock_now(), ms;
	struct replica *r;
	int count = 0;

	for (r = log->replicas; r < log->replicas + log->cfg.replicas; r++) {
		if (r->link.conn == NULL)
			continue;
		futures[count++] = r->closed;
		if (r->state != OUT && is_held(&r->step))
			futures[count++] = r->step;
		if (r->state != OUT && r->appends.count > 0)
			futures[count++] = *durable_next(&r->appends);
	}
	ms = time <= now ? 0 : (time - now) / CLOCK_MS + 1;
	ms = ms > 1000 ? 1000 : ms;
	if (count == 0 ||
	    rpma_rt_future_wait_some(futures, count, 1, (int)ms) < 0)
		poll(NULL, 0, (int)ms);
}

static int wait_until(struct log *log, uint64_t position, uint64_t deadline)
{
	uint64_t begun = clock_now(), next;

	for (;;) {
		next = log_turn(log);
		if (log->is_taken)
			return LOG_TAKEN;
		if (log->is_recovered && log->acknowledged >= position)
			return LOG_OK;
		if (clock_now() >= deadline)
			return LOG_LATE;
		if (clock_now() - begun > SPIN_NS)
			sleep_until(log, next < deadline ? next : deadline);
	}
}

int log_wait(struct log *log, uint64_t position, int timeout_ms)
{
	return wait_until(log, position,
			  clock_now() + (uint64_t)timeout_ms * CLOCK_MS);
}

int log_append(struct log *log, const void *data, uint32_t len)
{
	if (log->is_taken)
		return LOG_TAKEN;
	if (record_size(len) > LOG_SIZE - log->end)
		return LOG_FULL;
	log->end = record_write(log->records, log->end, data, len);
	log_turn(log);
	return LOG_OK;
}

uint64_t log_end(const struct log *log)
{
	return log->end;
}

uint64_t log_acknowledged(const struct log *log)
{
	return log->acknowledged;
}

const char *log_read(const struct log *log, uint64_t *position, uint32_t *len)
{
	const struct record *record = (void *)(log->records + *position);

	*position += record_size(record->len);
	*len = record->len;
	return record->data;
}

static void replica_init(struct log *log, int i)
{
	struct replica *r = &log->replicas[i];

	r->log = log;
	r->copy = log->records + (size_t)(i + 1) * LOG_SIZE;
	r->request.magic = LOG_MAGIC;
	r->request.identity = log_identity(i + 1, log->cfg.replicas);
	r->link.rt = log->rt;
	r->link.address = log->cfg.addresses[i];
	r->link.port = log->cfg.ports[i];
	r->link.cfg = (struct rpma_rt_conn_cfg)RPMA_RT_CONN_CFG_INIT;
	r->link.cfg.peer = log->peer;
	r->link.cfg.futures = DURABLE_FUTURES;
	r->link.cfg.sq_size = DURABLE_SQ_SIZE;
	r->link.cfg.rq_size = 1;
	r->link.cfg.keepalive_ms = KEEPALIVE_MS;
	r->link.pdata.ptr = &r->request;
	r->link.pdata.len = sizeof(r->request);
	r->link.first_ms = 2;
	r->link.most_ms = 200;
	r->link.random = log->writer + (uint64_t)i;
}

static int log_init(struct log *log)
{
	const int usage = RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST;
	size_t size = (size_t)(log->cfg.replicas + 1) * LOG_SIZE;
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	int i;

	cfg.mode = RPMA_RT_MODE_MANUAL; /* the log works inside its calls */
	log->term = 1;
	if (posix_memalign((void **)&log->records, LOG_PAGE, size) ||
	    getrandom(&log->writer, sizeof(log->writer), 0) < 0 ||
	    open_peer(log->cfg.addresses[0], RPMA_UTIL_IBV_CONTEXT_REMOTE,
		      &log->peer) ||
	    rpma_mr_reg(log->peer, log->records, size, usage, &log->mr) ||
	    rpma_peer_cfg_new(&log->pmem) ||
	    rpma_peer_cfg_set_direct_write_to_pmem(log->pmem, true) ||
	    rpma_rt_new(&cfg, &log->rt))
		return LOG_FAILED;
	for (i = 0; i < log->cfg.replicas; i++)
		replica_init(log, i);
	return LOG_OK;
}

void log_close(struct log **log_ptr)
{
	struct log *log = *log_ptr;
	struct replica *r;

	*log_ptr = NULL;
	if (log->rt != NULL)
		rpma_rt_stop(log->rt);
	for (r = log->replicas; r < log->replicas + log->cfg.replicas; r++) {
		drop(r);
		if (r->link.conn != NULL)
			rpma_rt_conn_unref(&r->link.conn);
	}
	rpma_rt_delete(&log->rt);
	rpma_peer_cfg_delete(&log->pmem);
	rpma_mr_dereg(&log->mr);
	rpma_peer_delete(&log->peer);
	free(log->records);
	free(log);
}

int log_open(const struct log_cfg *cfg, int timeout_ms, struct log **log_ptr)
{
	uint64_t deadline = clock_now() + (uint64_t)timeout_ms * CLOCK_MS;
	struct log *log = calloc(1, sizeof(*log));
	int ret;

	if (log == NULL)
		return LOG_FAILED;
	log->cfg = *cfg;
	ret = log_init(log);
	if (ret == LOG_OK)
		ret = wait_until(log, 0, deadline);
	if (ret == LOG_OK)
		ret = wait_until(log, log->end, deadline);
	if (ret == LOG_OK)
		*log_ptr = log;
	else
		log_close(&log);
	return ret;
}
