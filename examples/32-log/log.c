/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* log.c: see log.h, and README.md for why nothing is lost. */

#include "log.h"

#include <stdlib.h>
#include <sys/random.h>

#include "../common/clock.h"
#include "../common/durable.h"
#include "../common/futures.h"
#include "../common/peer.h"
#include "../common/quorum.h"
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
	bool is_damaged;	    /* not used any more */
	bool is_refusing;	    /* has promised a later term */
	bool is_tailed;		    /* a tail of this term was posted */
	struct rpma_rt_future read; /* of the replica's log into the copy */
	char *copy;		    /* of the replica's log, in our region */
	uint64_t tail;		    /* when the replica promised */
	uint64_t sent;		    /* posted, or in common with the log */
	uint64_t durable;	    /* persistent, with a tail of this term */
	struct durable appends;
};

struct log {
	struct log_cfg cfg;
	struct rpma_peer *peer;
	struct rpma_rt *rt;
	struct rpma_mr_local *mr;
	char *records; /* the log; behind, a copy for each replica */
	uint64_t term;
	uint64_t writer;   /* a random number */
	bool is_recovered; /* end is valid */
	bool is_taken;
	uint64_t end;
	uint64_t acknowledged;
	struct replica replicas[LOG_MAX_REPLICAS];
};

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

/* Gives back all that is held of a connection that has ended. */
static void leave(struct replica *r, uint64_t now)
{
	durable_drop(&r->appends);
	rpma_rt_future_drop(&r->read); /* may be zero */
	rpma_mr_remote_delete(&r->region);
	reconnect_leave(&r->link, now);
	r->state = CONNECTING;
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

static void on_accepted(struct replica *r)
{
	struct log_answer answer;
	struct rpma_rt_wr wr;

	if (!handshake_read(r->link.conn, LOG_MAGIC, &answer, sizeof(answer)) ||
	    !handshake_take(&answer.region, LOG_REGION, &r->region) ||
	    durable_begin(&r->appends, r->link.conn, r->region, r->log->mr,
			  LOG_TAIL)) {
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
	wr.future = &r->read;
	if (rpma_rt_post_send(r->link.conn, &wr, 1) != 1)
		turn_out(r, NULL);
}

/* Checks the log of the replica when the copy is there. */
static void take_copy(struct replica *r)
{
	struct rpma_rt_completion cmpl;

	if (rpma_rt_future_poll(&r->read, &cmpl) != 1)
		return;
	if (!rpma_rt_completion_is_ok(&cmpl))
		turn_out(r, NULL);
	else if (records_whole(r->copy, log_low(r->tail)) != log_low(r->tail))
		turn_out(r, "a record is damaged");
	else
		r->state = PROMISED;
	rpma_rt_future_drop(&r->read);
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
	log->is_taken = left < quorum_of(log->cfg.replicas);
}

static void on_closed(struct replica *r,
		      const struct rpma_rt_completion *closed, uint64_t now)
{
	struct log_answer answer;

	if (closed->status == RPMA_RT_REASON_REJECTED &&
	    handshake_read(r->link.conn, LOG_MAGIC, &answer, sizeof(answer))) {
		if (answer.identity != r->request.identity)
			turn_out(r, "another number, or another quorum");
		else if (answer.promise != r->request.promise)
			on_refused(r, log_term(answer.promise));
	}
	leave(r, now);
}

/* Does all that needs no waiting; returns when to call again, unless a
 * future is complete before. */
static uint64_t replica_turn(struct replica *r, uint64_t now)
{
	struct rpma_rt_completion closed;
	enum reconnect_change change;

	if (r->link.conn == NULL) {
		if (r->is_damaged || r->log->is_taken)
			return RECONNECT_NEVER;
		r->request.promise = log_word(r->log->term, r->log->writer);
	}
	change = reconnect_poll(&r->link, now, &closed);
	if (change == RECONNECT_DOWN)
		on_closed(r, &closed, now);
	if (r->link.conn == NULL)
		return r->link.retry_ns;
	if (change == RECONNECT_UP && r->state == CONNECTING)
		on_accepted(r);
	if (r->state == READING)
		take_copy(r);
	if (r->state == PROMISED && r->log->is_recovered)
		keep(r, records_common(r->log->records, r->log->end, r->copy,
				       log_low(r->tail)));
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
		if (r->state != PROMISED)
			continue;
		count++;
		if (best == NULL || r->tail > best->tail)
			best = r;
	}
	if (count < quorum_of(log->cfg.replicas))
		return;
	log->end = log_low(best->tail);
	memcpy(log->records, best->copy, log->end);
	log->is_recovered = true;
}

static void acknowledge(struct log *log)
{
	uint64_t ends[LOG_MAX_REPLICAS];
	int i;

	for (i = 0; i < log->cfg.replicas; i++)
		ends[i] = log->replicas[i].durable;
	log->acknowledged = quorum_reached(ends, log->cfg.replicas);
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
	struct futures set = {0};
	struct replica *r;

	for (r = log->replicas; r < log->replicas + log->cfg.replicas; r++) {
		futures_add(&set, &r->link.closed);
		futures_add(&set, &r->link.step);
		if (r->state == OUT)
			continue; /* the others have failed, or will fail */
		futures_add(&set, &r->read);
		futures_add(&set, durable_next(&r->appends));
	}
	futures_sleep(&set, time);
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
		if (!futures_spin(log->rt, 0, begun + SPIN_NS))
			sleep_until(log, next < deadline ? next : deadline);
	}
}

int log_wait(struct log *log, uint64_t position, int timeout_ms)
{
	return wait_until(log, position, clock_in(timeout_ms));
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
	r->link = (struct reconnect){
		.rt = log->rt,
		.address = log->cfg.addresses[i],
		.port = log->cfg.ports[i],
		.cfg = RPMA_RT_CONN_CFG_INIT,
		.pdata = {&r->request, sizeof(r->request)},
		.first_ms = 2,
		.most_ms = 200,
		.random = log->writer + (uint64_t)i,
	};
	r->link.cfg.peer = log->peer;
	r->link.cfg.futures = DURABLE_FUTURES;
	r->link.cfg.sq_size = DURABLE_SQ_SIZE;
	r->link.cfg.rq_size = 1;
	r->link.cfg.keepalive_ms = KEEPALIVE_MS;
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
	for (r = log->replicas; r < log->replicas + log->cfg.replicas; r++)
		if (r->link.conn != NULL)
			leave(r, 0);
	rpma_rt_delete(&log->rt);
	rpma_mr_dereg(&log->mr);
	rpma_peer_delete(&log->peer);
	free(log->records);
	free(log);
}

int log_open(const struct log_cfg *cfg, int timeout_ms, struct log **log_ptr)
{
	uint64_t deadline = clock_in(timeout_ms);
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
