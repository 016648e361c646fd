/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * processes.c -- two processes, each with a device of its own. They exchange
 * the number of a queue pair, or a port, over a socket, as programs do between
 * two machines: both fail, and the log says why.
 */

#include "fixture.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG 4096

enum { LISTENER, CLIENT };

/* One of two processes; the test is the parent of both. */
struct process {
	int number;
	int socket; /* to the other one */
	int other;  /* the other one's end of it */
	int log;    /* the parent's end of its stderr */
	pid_t pid;
	char said[LOG];
};

typedef void body_fn(const struct process *self);

/* The child: exits with 0 once its body has returned. */
static void run(const struct process *self, int log, body_fn *body)
{
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	close(log);
	close(self->other); /* or it would not see the other one's end */
	body(self);
	_exit(0);
}

static void start(struct process *p, body_fn *body)
{
	int log[2];

	assert_int_equal(pipe(log), 0);
	p->log = log[0];
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0)
		run(p, log[1], body);
	close(log[1]);
}

/* Reads what it says until it ends; it must end well. */
static void finish(struct process *p)
{
	size_t len = 0;
	ssize_t got;
	int status;

	while ((got = read(p->log, p->said + len, LOG - 1 - len)) > 0)
		len += (size_t)got;
	p->said[len] = '\0';
	close(p->log);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("process %d: status %#x: %s", p->number, status,
			 p->said);
}

/* Two processes, at the same time. */
static void run_two(struct process p[2], body_fn *body)
{
	int sockets[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	for (int i = 0; i < 2; i++) {
		p[i] = (struct process){
			.number = i,
			.socket = sockets[i],
			.other = sockets[!i],
		};
		start(&p[i], body);
	}
	close(sockets[0]);
	close(sockets[1]);
	finish(&p[0]);
	finish(&p[1]);
}

/* How often the text is in what the process said. */
static int count(const struct process *p, const char *text)
{
	const char *at = p->said;
	int n = 0;

	while ((at = strstr(at, text))) {
		at += strlen(text);
		n++;
	}
	return n;
}

static uint32_t exchange(const struct process *self, uint32_t mine)
{
	uint32_t other = 0;

	assert_int_equal(write(self->socket, &mine, sizeof(mine)),
			 sizeof(mine));
	assert_int_equal(read(self->socket, &other, sizeof(other)),
			 sizeof(other));
	return other;
}

/* Connects to the queue pair of the other process, and sends to it. */
static void connect_and_send(const struct process *self, struct end *end)
{
	struct ibv_qp other = {.qp_num = exchange(self, end->qp->qp_num)};
	const struct end peer = {.ctx = end->ctx, .qp = &other};

	assert_int_equal(end_move(end, &peer, IBV_QPS_INIT), 0);
	assert_int_equal(end_recv(end, 1, 0, 64), 0);
	assert_int_equal(end_move(end, &peer, IBV_QPS_RTR), 0);
	assert_int_equal(end_move(end, &peer, IBV_QPS_RTS), 0);
	assert_int_equal(end_send(end, 2, 64, 64), 0);
	end_expect(end, 2, IBV_WC_RETRY_EXC_ERR);
	end_expect(end, 1, IBV_WC_WR_FLUSH_ERR);
}

/* Both do the same, and their queue pairs have different numbers. */
static void send_to_the_other(const struct process *self)
{
	struct end end = {0};

	end_init(&end, 0);
	connect_and_send(self, &end);
	end_fini(&end);
}

static void assert_both_say(const struct process p[2], const char *text)
{
	assert_int_equal(count(&p[0], text), 1);
	assert_int_equal(count(&p[1], text), 1);
}

static void qp__of_another_process_BOTH_FAIL_AND_SAY_WHY(void **state)
{
	struct process p[2];

	(void)state;
	run_two(p, send_to_the_other);
	assert_both_say(p, "no queue pair 0x");
	assert_both_say(p, "have to be in one process");
}

/* The event that comes next on the id's channel, acknowledged. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	assert_int_equal(rdma_get_cm_event(id->channel, &event), 0);
	type = event->event;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return type;
}

static void listen_until_refused(const struct process *self,
				 struct rdma_cm_id *id)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
	assert_int_equal(rdma_listen(id, 1), 0);
	exchange(self, ntohs(rdma_get_src_port(id)));
	exchange(self, 0);
}

static void connect_to_listener(const struct process *self,
				struct rdma_cm_id *id)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	struct rdma_conn_param param = {.qp_num = 77};

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)exchange(self, 0));
	assert_int_equal(
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000), 0);
	assert_int_equal(next_event(id), RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_int_equal(next_event(id), RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(next_event(id), RDMA_CM_EVENT_REJECTED);
	exchange(self, 0);
}

static void listen_or_connect(const struct process *self)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	assert_non_null(channel);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	if (self->number == LISTENER)
		listen_until_refused(self, id);
	else
		connect_to_listener(self, id);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void port__of_another_process_REFUSED_AND_SAYS_WHY(void **state)
{
	struct process p[2];

	(void)state;
	run_two(p, listen_or_connect);
	assert_int_equal(count(&p[CLIENT],
			       "nobody in this process listens at 127.0.0.1"),
			 1);
	assert_int_equal(count(&p[CLIENT], "have to be in one process"), 1);
	assert_string_equal(p[LISTENER].said, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp__of_another_process_BOTH_FAIL_AND_SAY_WHY),
		cmocka_unit_test(port__of_another_process_REFUSED_AND_SAYS_WHY),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
