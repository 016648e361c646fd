/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reason.c -- each verb in the life of a connection fails with each errno, on
 * either side: the reason in CLOSED, the errno beside the reason, and the log
 * line agree with the tables here, which are independent of the table in the
 * runtime. Only failures that say something about the peer or the network get
 * such a reason. Each handful of failures has a separate process, because the
 * log lets few lines pass per second.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heard.h"
#include "loop.h"
#include "stage.h"

#define DEPTH	 8
#define SIZE	 8
#define HANDFUL	 9 /* fewer than a place of the log may say in a second */
#define SKIPPED	 77
#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define NO_ERRNO (-1)
/* of an accepting queue pair: the states, and the timer */
#define PEER_MOVES 4

/* --------------------------------------------------------- the tables --- */

/* Each errno: the reason where peer and network have a part in the step, and
 * words of the advice; NULL: no advice, or advice that depends on the step. */
static const struct failure {
	int err;
	enum rpma_rt_reason far;
	const char *far_words;
	const char *words;
} failures[] = {
	{ENOMEM, RPMA_RT_REASON_FAILED, NULL, "no memory"},
	{EPERM, RPMA_RT_REASON_FAILED, NULL, "setuid()"},
	{EACCES, RPMA_RT_REASON_FAILED, NULL, "/dev/infiniband"},
	{EMFILE, RPMA_RT_REASON_FAILED, NULL, "ulimit -n"},
	{ENFILE, RPMA_RT_REASON_FAILED, NULL, "fs.file-max"},
	{ENODEV, RPMA_RT_REASON_FAILED, NULL, "rdma link"},
	{EIO, RPMA_RT_REASON_FAILED, NULL, "dmesg"},
	{ENOENT, RPMA_RT_REASON_FAILED, NULL, NULL},
	{EINVAL, RPMA_RT_REASON_FAILED, NULL, NULL},
	{EFAULT, RPMA_RT_REASON_FAILED, NULL, NULL},
	{EBUSY, RPMA_RT_REASON_FAILED, NULL, NULL},
	{EAGAIN, RPMA_RT_REASON_FAILED, NULL, NULL},
	{ENOSYS, RPMA_RT_REASON_FAILED, NULL, NULL},
	{EOPNOTSUPP, RPMA_RT_REASON_FAILED, NULL, NULL},
	{EAFNOSUPPORT, RPMA_RT_REASON_FAILED, NULL, NULL},
	{EADDRINUSE, RPMA_RT_REASON_FAILED, NULL, NULL},
	{EISCONN, RPMA_RT_REASON_FAILED, NULL, NULL},
	{ECONNABORTED, RPMA_RT_REASON_FAILED, NULL, NULL},
	{ENETUNREACH, RPMA_RT_REASON_UNREACHABLE, "ip route", NULL},
	{ENETDOWN, RPMA_RT_REASON_UNREACHABLE, "ip link", NULL},
	{EHOSTUNREACH, RPMA_RT_REASON_UNREACHABLE, "nothing answers there",
	 NULL},
	{EHOSTDOWN, RPMA_RT_REASON_UNREACHABLE, "nothing answers there", NULL},
	{ETIMEDOUT, RPMA_RT_REASON_UNREACHABLE, "nothing answers there", NULL},
	{EADDRNOTAVAIL, RPMA_RT_REASON_UNREACHABLE, "ip addr", NULL},
	{ECONNREFUSED, RPMA_RT_REASON_REJECTED, "no program listens", NULL},
	{ECONNRESET, RPMA_RT_REASON_DISCONNECTED, "gave up", NULL},
};
#define FAILURES ((int)(sizeof(failures) / sizeof(failures[0])))

/* The ends with a part in a step. */
enum place {
	HERE, /* this machine alone */
	FAR,  /* peer and network, too */
};

struct verb;
/* Lets a verb fail, with the named fault. */
typedef void play_fn(struct stage *s, const struct verb *verb,
		     const struct failure *failure);

struct verb {
	const char *name; /* of the fault */
	play_fn *play;
	const char *step; /* how the log calls the step */
	enum place place;
};

/* -------------------------------------------------------------- the log --- */

/* Returns true if a line has all of the words; NULL words are ignored. */
static bool is_said(const char *const words[4])
{
	const char *line = heard_text();
	const char *at;
	const char *end;
	int found;
	int i;

	for (; *line != '\0'; line = end + 1) {
		end = strchrnul(line, '\n');
		for (i = 0, found = 0; i < 4; i++) {
			at = words[i] == NULL ? line : strstr(line, words[i]);
			found += at != NULL && at <= end;
		}
		if (found == 4)
			return true;
		if (*end == '\0')
			break;
	}
	return false;
}

static void expect_said(const char *name, int err, const char *const words[4])
{
	if (is_said(words))
		return;
	fprintf(stderr,
		"%s, %s: no line with \"%s\", \"%s\", \"%s\", \"%s\" in:\n%s\n",
		name, strerror(err), words[0], words[1],
		words[2] ? words[2] : "", words[3] ? words[3] : "",
		heard_text());
	abort();
}

/* Asserts the line of the runtime about the failed step. */
static void expect_line(const struct verb *verb, const struct failure *failure,
			const char *about)
{
	bool is_far =
		verb->place != HERE && failure->far != RPMA_RT_REASON_FAILED;
	const char *const words[4] = {about, verb->step, strerror(failure->err),
				      is_far ? failure->far_words
					     : failure->words};

	expect_said(verb->name, failure->err, words);
}

/* ------------------------------------------------------------ the fault --- */

/* The nth call of the verb from here on. */
static void set_fault(const struct verb *verb, const struct failure *failure,
		      int nth)
{
	char rule[128];

	snprintf(rule, sizeof(rule), "call:verb=%s,errno=%d,nth=%d", verb->name,
		 failure->err, nth);
	heard_forget();
	CHECK(loop_get()->fault(rule) == 0);
}

/* CLOSED is the next item, with the reason, and the errno beside. */
static void expect_closed(struct rpma_rt_queue *queue,
			  struct rpma_rt_conn **conn,
			  enum rpma_rt_reason reason, int err)
{
	struct rpma_rt_completion item =
		world_event(queue, RPMA_RT_EVENT_CLOSED);
	int value;
	enum rpma_rt_detail detail = rpma_rt_completion_detail(&item, &value);
	bool is_right = item.status == reason &&
			(err == NO_ERRNO ? detail == RPMA_RT_DETAIL_NONE
					 : detail == RPMA_RT_DETAIL_ERRNO &&
						   value == err);

	if (!is_right)
		fprintf(stderr, "%s, detail %d %d, not %s, %d\n",
			rpma_rt_reason_2str(item.status), detail, value,
			rpma_rt_reason_2str(reason), err);
	CHECK(is_right);
	CHECK(item.context == (uintptr_t)*conn);
	MUST(rpma_rt_conn_unref(conn));
}

/* CLOSED of the other end, whose reason is another matter. */
static void expect_end(struct rpma_rt_queue *queue, struct rpma_rt_conn **conn,
		       enum rpma_rt_reason reason)
{
	CHECK(world_event(queue, RPMA_RT_EVENT_CLOSED).status == reason);
	MUST(rpma_rt_conn_unref(conn));
}

static enum rpma_rt_reason reason_of(const struct verb *verb,
				     const struct failure *failure)
{
	return verb->place != HERE ? failure->far : RPMA_RT_REASON_FAILED;
}

/* ------------------------------------------------------ the active side --- */

static struct rpma_rt_conn *begin(struct stage *s)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, s->cfg, 0, s->aq, NULL, &conn));
	return conn;
}

/* Before READY. */
static void resolve(struct stage *s, const struct verb *verb,
		    const struct failure *failure)
{
	struct rpma_rt_conn *conn;

	set_fault(verb, failure, 1);
	conn = begin(s);
	expect_closed(s->aq, &conn, reason_of(verb, failure), failure->err);
	expect_line(verb, failure, "is not connected to");
}

/* An event caused by the network. The status -1 means a failed call of
 * librdmacm itself, so the status is no errno. */
static void hear_of_resolving(struct stage *s, const struct verb *verb,
			      const struct failure *failure)
{
	const char *const words[4] = {"is not connected to", verb->step,
				      "inside librdmacm", NULL};
	struct rpma_rt_conn *conn;

	if (failure->err != EPERM) {
		resolve(s, verb, failure);
		return;
	}
	set_fault(verb, failure, 1);
	conn = begin(s);
	expect_closed(s->aq, &conn, RPMA_RT_REASON_FAILED, NO_ERRNO);
	expect_said(verb->name, failure->err, words);
}

/* A subnet manager that knows no path answers EINVAL. */
static void hear_of_path(struct stage *s, const struct verb *verb,
			 const struct failure *failure)
{
	struct failure far = *failure;

	if (failure->err == EINVAL) {
		far.far = RPMA_RT_REASON_UNREACHABLE;
		far.far_words = "nothing answers there";
	}
	hear_of_resolving(s, verb, &far);
}

static struct rpma_rt_conn *begin_ready(struct stage *s)
{
	struct rpma_rt_conn *conn = begin(s);

	world_event(s->aq, RPMA_RT_EVENT_READY);
	return conn;
}

static void connect_there(struct stage *s, const struct verb *verb,
			  const struct failure *failure)
{
	struct rpma_rt_conn *conn = begin_ready(s);

	set_fault(verb, failure, 1);
	MUST(rpma_rt_conn_connect(conn, NULL));
	expect_closed(s->aq, &conn, reason_of(verb, failure), failure->err);
	expect_line(verb, failure, "is not connected to");
}

static struct rpma_rt_conn *take_request(struct stage *s)
{
	struct rpma_rt_completion item =
		world_event(s->pq, RPMA_RT_EVENT_REQUEST);

	return rpma_rt_completion_conn(&item);
}

/* The queue pair cannot be moved when librdmacm takes the answer of the peer,
 * and librdmacm hides the errno. The moves of the peer, and its timer, come
 * first: a single thread makes all moves. */
static void take_answer(struct stage *s, const struct verb *verb,
			const struct failure *failure)
{
	const char *const words[4] = {"is not connected to", verb->step,
				      "failed: a call inside librdmacm", NULL};
	struct rpma_rt_conn *active = begin_ready(s);
	struct rpma_rt_conn *passive;

	MUST(rpma_rt_conn_connect(active, NULL));
	passive = take_request(s);
	set_fault(verb, failure, PEER_MOVES + 1);
	MUST(rpma_rt_conn_accept(passive, NULL));
	expect_closed(s->aq, &active, RPMA_RT_REASON_FAILED, NO_ERRNO);
	expect_said(verb->name, failure->err, words);
	MUST(rpma_rt_conn_close(passive));
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&passive));
}

/* ----------------------------------------------------- the passive side --- */

static uint32_t count_refused(struct stage *s)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	char *text = calloc(1, 1 << 20);
	uint32_t count;
	char *at;

	CHECK(fd >= 0 && text != NULL);
	MUST(rpma_rt_dump(s->world.rt, fd, RPMA_RT_DUMP_JSON));
	CHECK(pread(fd, text, (1 << 20) - 1, 0) > 0);
	at = strstr(text, "\"requests_refused\":");
	CHECK(at != NULL);
	count = (uint32_t)strtoul(strchr(at, ':') + 1, NULL, 10);
	free(text);
	close(fd);
	return count;
}

/* The listener makes no queue pair: the client is refused, the listener's
 * program sees nothing, the dump and the log say why. */
static void refuse(struct stage *s, const struct verb *verb,
		   const struct failure *failure)
{
	struct rpma_rt_conn *conn = begin_ready(s);
	uint32_t before = count_refused(s);

	set_fault(verb, failure, 1);
	MUST(rpma_rt_conn_connect(conn, NULL));
	expect_end(s->aq, &conn, RPMA_RT_REASON_REJECTED);
	CHECK(count_refused(s) == before + 1);
	expect_line(verb, failure, "requests, the last because");
}

static void accept_with(struct stage *s, const struct verb *verb,
			const struct failure *failure)
{
	enum rpma_rt_reason reason = failure->err == ECONNRESET
					     ? RPMA_RT_REASON_DISCONNECTED
					     : RPMA_RT_REASON_FAILED;
	struct rpma_rt_conn *active = begin_ready(s);
	struct rpma_rt_conn *passive;

	MUST(rpma_rt_conn_connect(active, NULL));
	passive = take_request(s);
	set_fault(verb, failure, 1);
	MUST(rpma_rt_conn_accept(passive, NULL));
	expect_closed(s->pq, &passive, reason, failure->err);
	expect_end(s->aq, &active, RPMA_RT_REASON_REJECTED);
	/* a client that left is no error of the server */
	if (reason == RPMA_RT_REASON_FAILED)
		expect_line(verb, failure, "closes: failed: ");
}

/* ---------------------------------------------------------------- posts --- */

static void post_of(struct stage *s, const struct verb *verb,
		    const struct failure *failure, bool is_recv)
{
	struct world_pair pair;
	struct rpma_rt_completion item;

	stage_connect(s, &pair);
	set_fault(verb, failure, 1);
	if (is_recv)
		MUST(rpma_rt_recv(pair.active, s->mr, 0, SIZE, 1));
	else
		MUST(rpma_rt_send(pair.active, s->mr, 0, SIZE, ALWAYS, 1));
	item = stage_completion(s->aq, 1, IBV_WC_GENERAL_ERR);
	CHECK(item.flags == RPMA_RT_C_NOT_POSTED);
	expect_line(verb, failure, "the device refused a post of \"");
	expect_closed(s->aq, &pair.active, RPMA_RT_REASON_FAILED, failure->err);
	expect_end(s->pq, &pair.passive, RPMA_RT_REASON_DISCONNECTED);
}

static void post_send(struct stage *s, const struct verb *verb,
		      const struct failure *failure)
{
	post_of(s, verb, failure, false);
}

static void post_recv(struct stage *s, const struct verb *verb,
		      const struct failure *failure)
{
	post_of(s, verb, failure, true);
}

/* The runtime's own work request behind all others of a drain. */
static void drain(struct stage *s, const struct verb *verb,
		  const struct failure *failure)
{
	struct world_pair pair;

	stage_connect(s, &pair);
	set_fault(verb, failure, 1);
	MUST(rpma_rt_conn_drain(pair.active, 0));
	expect_closed(s->aq, &pair.active, RPMA_RT_REASON_FAILED, failure->err);
	expect_end(s->pq, &pair.passive, RPMA_RT_REASON_DISCONNECTED);
	expect_line(verb, failure, "closes: failed: ");
}

static void post_srq(struct stage *s, const struct verb *verb,
		     const struct failure *failure)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_recv_wr wr = {.dst = s->mr, .len = SIZE};
	struct rpma_rt_completion item;
	struct rpma_rt_srq *srq;

	cfg.peer = s->world.peer;
	cfg.queue = s->aq;
	MUST(rpma_rt_srq_new(s->world.rt, &cfg, &srq));
	set_fault(verb, failure, 1);
	MUST_ANSWER(1, rpma_rt_srq_post_recv(srq, &wr, 1));
	item = stage_completion(s->aq, 0, IBV_WC_GENERAL_ERR);
	CHECK(item.flags == RPMA_RT_C_NOT_POSTED);
	expect_line(verb, failure, "the device refused a receive");
	MUST(rpma_rt_srq_delete(&srq));
	world_event(s->aq, RPMA_RT_EVENT_SRQ_CLOSED);
}

/* ------------------------------------------------------------- a listener */

/* The call says so at once; librpma's line has the verb and the errno. */
static void listen_at(struct stage *s, const struct verb *verb,
		      const struct failure *failure)
{
	const char *const words[4] = {verb->name, "failed",
				      strerror(failure->err), NULL};
	struct rpma_rt_listener *listener = NULL;

	set_fault(verb, failure, 1);
	MUST_ANSWER(RPMA_E_PROVIDER,
		    world_listen_at(s->world.rt, s->world.peer, s->world.addr,
				    "0", 0, s->cfg, 0, s->pq, NULL, &listener));
	CHECK(listener == NULL);
	expect_said(verb->name, failure->err, words);
}

/* ----------------------------------------------------------------------- */

#define BEGINNING "making a CM id, or resolving the address, failed: "
static const struct verb verbs[] = {
	{"rdma_create_id", resolve, BEGINNING, FAR},
	{"rdma_resolve_addr", resolve, BEGINNING, FAR},
	{"cm.resolve_addr", hear_of_resolving,
	 "resolving the address failed: ", FAR},
	{"rdma_resolve_route", resolve, "resolving the route failed: ", FAR},
	{"cm.resolve_route", hear_of_path, "resolving the route failed: ", FAR},
	{"rdma_create_qp_ex", resolve, "making the queue pair failed: ", HERE},
	{"rdma_connect", connect_there, "connecting failed: ", FAR},
	{"ibv_modify_qp", take_answer,
	 "taking the peer's answer failed: ", HERE},
	{"rdma_create_qp_ex", refuse, "making the queue pair failed: ", HERE},
	{"rdma_accept", accept_with, "accepting failed: ", HERE},
	{"ibv_modify_qp", accept_with, "accepting failed: ", HERE},
	{"ibv_post_send", post_send, "posting failed: ", HERE},
	{"ibv_post_recv", post_recv, "posting failed: ", HERE},
	{"ibv_post_send", drain, "posting failed: ", HERE},
	{"ibv_post_srq_recv", post_srq, "posting failed: ", HERE},
	{"rdma_create_id", listen_at, "", HERE},
	{"rdma_bind_addr", listen_at, "", HERE},
	{"rdma_listen", listen_at, "", HERE},
};
#define VERBS ((int)(sizeof(verbs) / sizeof(verbs[0])))

static void play_some(const struct verb *verb, int first)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct rpma_rt_listener *listener;
	struct stage s;
	int i;

	heard_start(RPMA_LOG_LEVEL_ERROR);
	stage_open(&s, &cfg);
	listener = world_listen(&s.world, s.cfg, s.pq);
	for (i = first; i < first + HANDFUL && i < FAILURES; i++) {
		verb->play(&s, verb, &failures[i]);
		if (loop_get()->fault_count() != 1)
			fprintf(stderr, "%s, %s: not failed\n", verb->name,
				strerror(failures[i].err));
		CHECK(loop_get()->fault_count() == 1);
		loop_get()->fault_clear();
	}
	world_unlisten(&listener, s.pq);
	stage_close(&s);
}

static void expect_child(const struct verb *verb, int first)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		play_some(verb, first);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status != 0)
		fprintf(stderr, "%s, %s to %s: in \"%s\"\n", verb->name,
			strerror(failures[first].err),
			strerror(failures[first + HANDFUL < FAILURES
						  ? first + HANDFUL - 1
						  : FAILURES - 1]
					 .err),
			verb->step);
	CHECK(status == 0);
}

int main(void)
{
	int verb;
	int i;

	if (loop_get() == NULL) {
		printf("skipped: another device than loopback\n");
		return SKIPPED;
	}
	for (verb = 0; verb < VERBS; verb++) {
		for (i = 0; i < FAILURES; i += HANDFUL)
			expect_child(&verbs[verb], i);
	}
	printf("ok: %d verbs fail with %d errnos\n", VERBS, FAILURES);
	return 0;
}
