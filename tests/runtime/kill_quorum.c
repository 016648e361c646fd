/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kill_quorum.c -- records that are written to two replicas, each a process of
 * its own, with a future each: one of two is enough. One replica is killed with
 * writes under way. Every record gets its quorum, before and behind; every
 * future is complete; and the last record is in the memory of the other one.
 *
 * Needs a device that processes share.
 *
 * usage: runtime_kill_quorum [replica FD]
 */

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

#define REPLICAS 2
#define DEPTH	 32
#define RECORDS	 200 /* before the kill, and behind it */
#define LEN	 64
#define PATIENT	 WORLD_PATIENCE_MS
#define ADAPTIVE {.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH}

/* what a replica says first */
struct hello {
	char port[8];
	uint64_t size; /* of the descriptor */
	char descriptor[128];
};

/* ---------------------------------------------------------- a replica --- */

static void say_hello(int fd, const struct stage *s)
{
	struct hello hello = {{0}, 0, {0}};
	size_t size;

	snprintf(hello.port, sizeof(hello.port), "%s", s->world.port);
	MUST(rpma_mr_get_descriptor_size(s->mr, &size));
	CHECK(size <= sizeof(hello.descriptor));
	hello.size = size;
	MUST(rpma_mr_get_descriptor(s->mr, hello.descriptor));
	CHECK(write(fd, &hello, sizeof(hello)) == sizeof(hello));
}

/* Until its connection is closed; then it says what was written to it. */
static int replica(int fd)
{
	static const struct stage_cfg cfg = ADAPTIVE;
	struct rpma_rt_listener *listener;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;
	struct stage s;

	stage_open(&s, &cfg);
	listener = world_listen(&s.world, s.cfg, s.pq);
	say_hello(fd, &s);
	item = world_event(s.pq, RPMA_RT_EVENT_REQUEST);
	conn = (struct rpma_rt_conn *)(uintptr_t)item.context;
	MUST(rpma_rt_conn_accept(conn, NULL));
	world_event(s.pq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(s.pq, RPMA_RT_EVENT_CLOSED);
	CHECK(write(fd, s.memory, LEN) == LEN);
	MUST(rpma_rt_conn_unref(&conn));
	world_unlisten(&listener, s.pq);
	stage_close(&s);
	return 0;
}

/* --------------------------------------------------------- the writer --- */

struct target {
	pid_t pid;
	int fd;
	struct rpma_rt_conn *conn;
	struct rpma_mr_remote *remote;
	bool is_closed; /* for posts */
};

static void start_replica(struct target *t)
{
	char number[16];
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	snprintf(number, sizeof(number), "%d", fds[1]);
	t->pid = fork();
	CHECK(t->pid >= 0);
	if (t->pid == 0) {
		close(fds[0]);
		execl("/proc/self/exe", "runtime_kill_quorum", "replica",
		      number, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	t->fd = fds[0];
}

static void connect_to(struct stage *s, struct target *t)
{
	struct hello hello;

	CHECK(recv(t->fd, &hello, sizeof(hello), MSG_WAITALL) == sizeof(hello));
	MUST(rpma_mr_remote_from_descriptor(hello.descriptor, hello.size,
					    &t->remote));
	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    hello.port, s->cfg, 0, s->aq, NULL, &t->conn));
	world_event(s->aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(t->conn, NULL));
	world_event(s->aq, RPMA_RT_EVENT_ESTABLISHED);
}

/* To each that is there; how many. */
static int write_record(struct stage *s, struct target *targets, uint64_t value,
			struct rpma_rt_future *futures)
{
	struct rpma_rt_wr wr;
	int posted = 0;
	int ret;
	int i;

	memcpy(s->memory, &value, sizeof(value));
	for (i = 0; i < REPLICAS; i++) {
		if (targets[i].is_closed)
			continue;
		rpma_rt_prep_write(&wr, targets[i].remote, 0, s->mr, 0, LEN, 0,
				   value);
		wr.future = &futures[posted];
		ret = world_post_send(targets[i].conn, &wr);
		CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
		targets[i].is_closed = ret != 0;
		posted += ret == 0;
	}
	return posted;
}

/* One is enough; then all are waited for, so that the bytes are free again.
 * How many have succeeded. */
static int complete(struct rpma_rt_future *futures, int count, uint64_t value)
{
	struct rpma_rt_completion cmpl;
	int succeeded = 0;
	int i;

	CHECK(rpma_rt_future_wait_some(futures, count, 1, PATIENT) >= 1);
	for (i = 0; i < count; i++) {
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[i], &cmpl, PATIENT));
		CHECK(cmpl.context == value);
		succeeded += cmpl.status == IBV_WC_SUCCESS;
		MUST(rpma_rt_future_drop(&futures[i]));
	}
	return succeeded;
}

static void write_all(struct stage *s, struct target *targets)
{
	struct rpma_rt_future futures[REPLICAS];
	uint64_t value;
	int posted;
	int both = 0;

	for (value = 1; value <= RECORDS; value++) {
		posted = write_record(s, targets, value, futures);
		CHECK(posted == REPLICAS);
		CHECK(complete(futures, posted, value) == REPLICAS);
	}
	for (; value <= 2 * RECORDS; value++) {
		posted = write_record(s, targets, value, futures);
		if (value == RECORDS + 1)
			CHECK(kill(targets[1].pid, SIGKILL) == 0);
		both += complete(futures, posted, value) == REPLICAS;
	}
	CHECK(both < RECORDS);
	CHECK(targets[1].is_closed && !targets[0].is_closed);
}

static void check_memory(const struct target *t)
{
	char record[LEN];
	uint64_t value;

	CHECK(recv(t->fd, record, LEN, MSG_WAITALL) == LEN);
	memcpy(&value, record, sizeof(value));
	CHECK(value == 2 * RECORDS);
}

static void wait_for(const struct target *t, int signal)
{
	int status;

	CHECK(waitpid(t->pid, &status, 0) == t->pid);
	if (signal)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void writer(struct stage *s)
{
	struct target targets[REPLICAS] = {0};
	struct rpma_rt_completion item;
	int i;

	s->cfg->futures = DEPTH;
	for (i = 0; i < REPLICAS; i++)
		start_replica(&targets[i]);
	for (i = 0; i < REPLICAS; i++)
		connect_to(s, &targets[i]);
	write_all(s, targets);
	item = world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	CHECK(item.context == (uintptr_t)targets[1].conn);
	wait_for(&targets[1], SIGKILL);
	MUST(rpma_rt_conn_close(targets[0].conn));
	item = world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	CHECK(item.context == (uintptr_t)targets[0].conn);
	check_memory(&targets[0]);
	wait_for(&targets[0], 0);
	for (i = 0; i < REPLICAS; i++) {
		MUST(rpma_rt_conn_unref(&targets[i].conn));
		MUST(rpma_mr_remote_delete(&targets[i].remote));
		close(targets[i].fd);
	}
}

int main(int argc, char **argv)
{
	static const struct stage_cfg cfg = ADAPTIVE;
	struct stage s;

	if (argc == 3 && strcmp(argv[1], "replica") == 0)
		return replica(atoi(argv[2]));
	stage_open(&s, &cfg);
	writer(&s);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
