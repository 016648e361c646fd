/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kill.c -- a client is killed while sending: every outstanding work request of
 * the connection to the client gets exactly one completion, CLOSED comes, and
 * the other client goes on. Each client is a separate process, so this needs a
 * device shared by processes.
 *
 * usage: runtime_kill [client PORT]
 */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

#define DEPTH	 32
#define SENDS	 20   /* outstanding at the kill, */
#define RECVS	 30   /* both kinds */
#define AFTER	 200  /* messages of the other client after the kill */
#define VICTIM	 1000 /* contexts of the victim begin here */
#define RECEIVES 2    /* of a client: more messages have to wait */
#define ADAPTIVE {.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH}

/* Sends a message back, and makes room for another. The bytes sent are other
 * bytes of the same length: the next message may arrive in the buffer
 * meanwhile. */
static void answer(const struct stage *s, struct rpma_rt_conn *conn,
		   const struct rpma_rt_completion *item)
{
	int ret;

	/* the last message of the server may have closed the connection */
	ret = rpma_rt_send(conn, s->mr, 64, item->byte_len,
			   RPMA_F_COMPLETION_ON_ERROR, 9);
	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
	ret = rpma_rt_recv(conn, s->mr, 0, 64, item->context);
	CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
}

/* Waits until ESTABLISHED: the server may know before, and may have sent. */
static void establish(const struct stage *s, struct rpma_rt_conn *conn)
{
	struct rpma_rt_completion early[RECEIVES];
	struct rpma_rt_completion item;
	int count = 0;
	int i;

	MUST(rpma_rt_conn_connect(conn, NULL));
	for (;;) {
		item = world_next(s->aq);
		if (item.kind == RPMA_RT_EVENT)
			break;
		CHECK(rpma_rt_completion_is_received(&item));
		CHECK(count < RECEIVES);
		early[count++] = item;
	}
	CHECK(item.opcode == RPMA_RT_EVENT_ESTABLISHED);
	for (i = 0; i < count; i++)
		answer(s, conn, &early[i]);
}

/*
 * Sends each message back, until the server closes or a signal ends the client.
 */
static int client(const char *port)
{
	static const struct stage_cfg cfg = ADAPTIVE;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;
	struct stage s;
	uint64_t i;

	stage_open(&s, &cfg);
	MUST(world_conn_new(s.world.rt, s.world.peer, s.world.addr, port, s.cfg,
			    0, s.aq, NULL, &conn));
	world_event(s.aq, RPMA_RT_EVENT_READY);
	for (i = 0; i < RECEIVES; i++)
		MUST(rpma_rt_recv(conn, s.mr, 0, 64, i));
	establish(&s, conn);
	for (;;) {
		item = world_next(s.aq);
		if (item.kind == RPMA_RT_EVENT)
			break;
		if (rpma_rt_completion_is_received(&item))
			answer(&s, conn, &item);
	}
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
	stage_close(&s);
	return 0;
}

static pid_t start_client(const struct world *w)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "runtime_kill", "client", w->port,
		      (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* The server end of the client. */
static struct rpma_rt_conn *accept_client(struct stage *s)
{
	struct rpma_rt_completion item =
		world_event(s->pq, RPMA_RT_EVENT_REQUEST);
	struct rpma_rt_conn *conn =
		(struct rpma_rt_conn *)(uintptr_t)item.context;

	MUST(rpma_rt_conn_accept(conn, NULL));
	world_event(s->pq, RPMA_RT_EVENT_ESTABLISHED);
	return conn;
}

/* Echoes a message; only these two completions come. */
static void echo(struct stage *s, struct rpma_rt_conn *conn, uint64_t context)
{
	struct rpma_rt_completion item;
	int i;

	MUST(rpma_rt_recv(conn, s->mr, 0, 64, context));
	MUST(rpma_rt_send(conn, s->mr, 64, 64, RPMA_F_COMPLETION_ALWAYS,
			  context));
	for (i = 0; i < 2; i++) {
		item = world_next(s->pq);
		CHECK(item.kind == RPMA_RT_COMPLETION);
		CHECK(item.status == IBV_WC_SUCCESS);
		CHECK(item.context == context);
	}
}

/* items of the killed client */
struct tally {
	struct rpma_rt_conn *victim;
	uint8_t sends[SENDS];
	uint8_t recvs[RECVS];
	int left;
	int closed;
};

static void count(struct tally *t, const struct rpma_rt_completion *item)
{
	uint64_t i = item->context - VICTIM;

	CHECK(!t->closed); /* CLOSED is last */
	if (item->kind == RPMA_RT_EVENT) {
		CHECK(item->opcode == RPMA_RT_EVENT_CLOSED);
		CHECK(item->context == (uintptr_t)t->victim);
		CHECK(t->left == 0); /* behind every completion */
		t->closed = 1;
		return;
	}
	CHECK(item->kind == RPMA_RT_COMPLETION);
	if (i >= 100) {
		CHECK(i - 100 < RECVS && !t->recvs[i - 100]++);
		CHECK(item->status != IBV_WC_SUCCESS || item->byte_len == 64);
	} else {
		CHECK(i < SENDS && !t->sends[i]++);
	}
	t->left--;
}

static void post_to_victim(struct stage *s, struct rpma_rt_conn *conn)
{
	uint64_t i;

	for (i = 0; i < RECVS; i++)
		MUST(rpma_rt_recv(conn, s->mr, 0, 64, VICTIM + 100 + i));
	for (i = 0; i < SENDS; i++)
		MUST(rpma_rt_send(conn, s->mr, 64, 64, RPMA_F_COMPLETION_ALWAYS,
				  VICTIM + i));
}

/* Echoes with the other client; items of the victim come in between. */
static void echo_and_count(struct stage *s, struct rpma_rt_conn *conn,
			   uint64_t context, struct tally *tally)
{
	struct rpma_rt_completion item;
	int own = 0;

	MUST(rpma_rt_recv(conn, s->mr, 0, 64, context));
	MUST(rpma_rt_send(conn, s->mr, 64, 64, RPMA_F_COMPLETION_ALWAYS,
			  context));
	while (own < 2) {
		item = world_next(s->pq);
		if (item.kind == RPMA_RT_COMPLETION &&
		    item.context == context) {
			CHECK(item.status == IBV_WC_SUCCESS);
			own++;
		} else {
			count(tally, &item);
		}
	}
}

static void wait_for(pid_t pid, int signal)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (signal)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void server(struct stage *s)
{
	struct rpma_rt_listener *listener;
	struct tally tally = {.left = SENDS + RECVS};
	struct rpma_rt_completion item;
	struct rpma_rt_conn *other;
	pid_t other_pid;
	pid_t pid;
	uint64_t i;

	listener = world_listen(&s->world, s->cfg, s->pq);
	pid = start_client(&s->world);
	tally.victim = accept_client(s);
	other_pid = start_client(&s->world);
	other = accept_client(s);
	for (i = 0; i < 20; i++) {
		echo(s, tally.victim, i);
		echo(s, other, i);
	}
	post_to_victim(s, tally.victim);
	CHECK(kill(pid, SIGKILL) == 0);
	for (i = 0; i < AFTER; i++)
		echo_and_count(s, other, i, &tally);
	wait_for(pid, SIGKILL);
	while (!tally.closed) {
		item = world_next(s->pq);
		count(&tally, &item);
	}
	echo(s, other, AFTER);
	MUST(rpma_rt_conn_unref(&tally.victim));
	MUST(rpma_rt_conn_close(other));
	item = world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	CHECK(item.context == (uintptr_t)other);
	MUST(rpma_rt_conn_unref(&other));
	wait_for(other_pid, 0);
	world_unlisten(&listener, s->pq);
}

int main(int argc, char **argv)
{
	static const struct stage_cfg cfg = ADAPTIVE;
	struct rpma_rt_poller_stats stats;
	struct stage s;

	if (argc == 3 && strcmp(argv[1], "client") == 0)
		return client(argv[2]);
	stage_open(&s, &cfg);
	server(&s);
	MUST(rpma_rt_poller_get_stats(s.world.rt, 0, &stats, sizeof(stats)));
	CHECK(stats.stale == 0);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
