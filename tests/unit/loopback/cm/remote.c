/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote.c -- connections between two processes: process 0 listens, process 1
 * connects. Each process reads the same events as with a peer in the same
 * process, also when the other process is killed.
 */

#include "fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/two.h"

enum { SERVER, CLIENT };

#define FORK_PORT 7533 /* of no other test */

static const struct rdma_conn_param param = {
	.responder_resources = 3,
	.initiator_depth = 2,
	.retry_count = 7,
	.rnr_retry_count = 7,
};

/* The state of either side. */
struct side {
	const struct two_process *self;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id; /* the listener, or the client */
	struct rdma_cm_id *server;
	struct ibv_cq *cq;
};

/* ---- steps ------------------------------------------------------------- */

/* Begins: the server listens, the client has the port. */
static void begin(struct side *s, const struct two_process *self, int backlog)
{
	uint16_t port = 0, theirs = 0;

	memset(s, 0, sizeof(*s));
	s->self = self;
	s->ch = new_channel();
	if (self->number == SERVER) {
		s->id = new_listener(s->ch, backlog);
		port = port_of(s->id);
	}
	two_swap(self, &port, &theirs, sizeof(port));
	if (self->number == CLIENT) {
		s->id = new_client(s->ch, theirs);
		s->cq = add_qp(s->id);
	}
}

static void ask(struct side *s, const char *words)
{
	struct rdma_conn_param p = param;

	p.private_data = words;
	p.private_data_len = (uint8_t)strlen(words);
	assert_int_equal(rdma_connect(s->id, &p), 0);
}

static void take_request(struct side *s, const char *words)
{
	struct rdma_cm_event *event =
		next_event(s->ch, RDMA_CM_EVENT_CONNECT_REQUEST);

	assert_ptr_equal(event->listen_id, s->id);
	assert_memory_equal(event->param.conn.private_data, words,
			    strlen(words));
	assert_int_equal(event->param.conn.private_data_len, REQ_PRIV);
	assert_int_equal(event->param.conn.responder_resources, 2);
	assert_int_equal(event->param.conn.initiator_depth, 3);
	s->server = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	s->cq = add_qp(s->server);
}

static void take_words(struct side *s, enum rdma_cm_event_type type, int status,
		       const char *words, int len)
{
	struct rdma_cm_event *event = next_event(s->ch, type);

	assert_int_equal(event->status, status);
	assert_memory_equal(event->param.conn.private_data, words,
			    strlen(words));
	assert_int_equal(event->param.conn.private_data_len, len);
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

static void accept_with(struct side *s, const char *words)
{
	struct rdma_conn_param p = param;

	p.private_data = words;
	p.private_data_len = (uint8_t)strlen(words);
	assert_int_equal(rdma_accept(s->server, &p), 0);
}

static void connect_both(struct side *s)
{
	if (s->self->number == SERVER) {
		take_request(s, "hello");
		accept_with(s, "welcome");
		take_event(s->ch, RDMA_CM_EVENT_ESTABLISHED);
	} else {
		ask(s, "hello");
		take_words(s, RDMA_CM_EVENT_ESTABLISHED, 0, "welcome",
			   REP_PRIV);
	}
}

static void end(struct side *s)
{
	if (s->server) {
		drop_qp(s->server, s->cq);
		assert_int_equal(rdma_destroy_id(s->server), 0);
	} else if (s->cq) {
		drop_qp(s->id, s->cq);
	}
	assert_int_equal(rdma_destroy_id(s->id), 0);
	rdma_destroy_event_channel(s->ch);
}

static struct rdma_cm_id *mine(const struct side *s)
{
	return s->server ? s->server : s->id;
}

/* ---- bytes ------------------------------------------------------------- */

/* Sends a message from the client to the server. */
static void move_bytes(struct side *s)
{
	char memory[8] = "8 bytes";
	struct rdma_cm_id *id = mine(s);
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, sizeof(memory));
	struct ibv_wc wc;

	assert_non_null(mr);
	if (s->self->number == SERVER) {
		memset(memory, 0, sizeof(memory));
		assert_int_equal(
			rdma_post_recv(id, NULL, memory, sizeof(memory), mr),
			0);
	}
	two_wait(s->self);
	if (s->self->number == CLIENT)
		assert_int_equal(rdma_post_send(id, NULL, memory,
						sizeof(memory), mr,
						IBV_SEND_SIGNALED),
				 0);
	while (!ibv_poll_cq(s->cq, 1, &wc))
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(memory, "8 bytes");
	assert_int_equal(rdma_dereg_mr(mr), 0);
}

/* ---- tests ------------------------------------------------------------- */

static void run(two_body_fn *body)
{
	struct two_process p[2] = {0};

	two_run(p, body);
	assert_string_equal(p[SERVER].said, "");
	assert_string_equal(p[CLIENT].said, "");
}

static void disconnect_body(const struct two_process *self)
{
	struct side s;

	begin(&s, self, 0);
	connect_both(&s);
	move_bytes(&s);
	two_wait(self);
	if (self->number == CLIENT)
		assert_int_equal(rdma_disconnect(s.id), 0);
	take_event(s.ch, RDMA_CM_EVENT_DISCONNECTED);
	if (self->number == SERVER)
		assert_int_equal(rdma_disconnect(s.server), 0);
	take_event(s.ch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	end(&s);
}

TEST(connection__between_two_MOVES_BYTES_AND_ENDS)
{
	run(disconnect_body);
}

static void reject_body(const struct two_process *self)
{
	struct side s;

	begin(&s, self, 0);
	if (self->number == SERVER) {
		take_request(&s, "please");
		assert_int_equal(rdma_reject(s.server, "no", 2), 0);
	} else {
		ask(&s, "please");
		take_words(&s, RDMA_CM_EVENT_REJECTED, 28, "no", REJ_PRIV);
	}
	end(&s);
}

TEST(reject__by_another_REJECTED_WITH_WORDS)
{
	run(reject_body);
}

/* The listener goes with a read, an unread and a waiting request. */
static void listener_body(const struct two_process *self)
{
	struct rdma_cm_id *more[2];
	uint16_t port = 0;
	struct side s;
	int i;

	begin(&s, self, 1);
	if (self->number == SERVER) {
		two_wait(self);
		take_request(&s, "");
		two_wait(self);
		end(&s);
		return;
	}
	port = ntohs(rdma_get_dst_port(s.id));
	ask(&s, "");
	two_wait(self);
	for (i = 0; i < 2; i++) {
		more[i] = new_client(s.ch, port);
		assert_int_equal(
			rdma_connect(more[i], &(struct rdma_conn_param){0}), 0);
	}
	two_wait(self);
	for (i = 0; i < 3; i++) {
		struct rdma_cm_event *event =
			next_event(s.ch, RDMA_CM_EVENT_REJECTED);

		assert_true(event->status == 28 || event->status == 8);
		assert_int_equal(rdma_ack_cm_event(event), 0);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(rdma_destroy_id(more[i]), 0);
	end(&s);
}

TEST(listener__that_goes_REFUSES_ALL_REQUESTS)
{
	struct two_process p[2] = {0};

	two_run(p, listener_body); /* a late client finds no listener, and says
				    * so */
}

/* Makes stderr a pipe without room, which nobody reads. */
static void fill_stderr(void)
{
	char bytes[4096] = "";
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	while (write(ends[1], bytes, sizeof(bytes)) > 0)
		;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
}

/* Connects in vain to a port near the port of the listener. */
static void knock(struct side *s, uint16_t port)
{
	struct rdma_cm_id *id = new_client(s->ch, port);
	struct rdma_conn_param p = param;

	p.qp_num = 3;
	assert_int_equal(rdma_connect(id, &p), 0);
	take_status(s->ch, RDMA_CM_EVENT_REJECTED, 8);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/*
 * The process that connects in vain has a line, not the process that refuses: a
 * peer does not fill the server's stderr, and no process waits for a reader.
 */
static void knocks_body(const struct two_process *self)
{
	struct side s;
	uint16_t port;

	begin(&s, self, 0);
	if (self->number == CLIENT) {
		port = ntohs(rdma_get_dst_port(s.id));
		knock(&s, port ^ 1);
		knock(&s, port ^ 1);
		fill_stderr();
		knock(&s, port ^ 2);
		knock(&s, port ^ 3);
	}
	connect_both(&s);
	two_wait(self);
	end(&s);
}

TEST(connect__to_ports_of_another_in_vain_A_LINE_OF_THE_CLIENT)
{
	struct two_process p[2] = {0};

	two_run(p, knocks_body);
	assert_string_equal(p[SERVER].said, "");
	assert_int_equal(two_count(&p[CLIENT], "nobody listens"), 1);
}

/* A program that tries many addresses has a line for the first addresses. */
static void addresses_body(const struct two_process *self)
{
	struct side s;
	int i, port;

	begin(&s, self, 0);
	for (i = 0; self->number == CLIENT && i < 2; i++) {
		for (port = 1; port <= 40; port++)
			knock(&s, (uint16_t)port);
	}
	two_wait(self);
	for (port = 41; self->number == CLIENT && port <= 100; port++)
		knock(&s, (uint16_t)port);
	two_wait(self);
	end(&s);
}

TEST(connect__to_many_addresses_in_vain_A_LINE_FOR_EACH_OF_64)
{
	struct two_process p[2] = {0};

	two_run(p, addresses_body);
	assert_int_equal(two_count(&p[CLIENT], "nobody listens"), 64);
}

/* A port of another process cannot be bound, nor chosen by chance. */
static void port_body(const struct two_process *self)
{
	struct rdma_cm_id *id;
	uint16_t port = 0, theirs = 0;
	struct sockaddr_in addr;
	struct side s;
	int i;

	begin(&s, self, 0);
	if (self->number == SERVER)
		port = port_of(s.id);
	two_swap(self, &port, &theirs, sizeof(port));
	if (self->number == CLIENT) {
		addr = v4("127.0.0.1", theirs);
		id = new_id(s.ch);
		assert_fails(rdma_bind_addr(id, SA(addr)), EADDRINUSE);
		addr = v4("0.0.0.0", theirs);
		assert_fails(rdma_bind_addr(id, SA(addr)), EADDRINUSE);
		assert_int_equal(rdma_destroy_id(id), 0);
		for (i = 0; i < 100; i++) {
			id = new_id(s.ch);
			addr = v4("127.0.0.1", 0);
			assert_int_equal(rdma_bind_addr(id, SA(addr)), 0);
			assert_int_not_equal(port_of(id), theirs);
			assert_int_equal(rdma_destroy_id(id), 0);
		}
	}
	two_wait(self);
	end(&s);
}

TEST(port__of_another_process_EADDRINUSE)
{
	run(port_body);
}

/* The server has a port of the first block before the client has the block, and
 * releases the port later. */
static void block_body(const struct two_process *self)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in addr = v4("0.0.0.0", 32768 + 7);
	struct rdma_cm_id *id = new_id(ch), *any = new_id(ch);

	if (self->number == SERVER)
		assert_int_equal(rdma_bind_addr(id, SA(addr)), 0);
	two_wait(self);
	if (self->number == CLIENT) {
		struct sockaddr_in none = v4("0.0.0.0", 0);

		assert_int_equal(rdma_bind_addr(any, SA(none)), 0);
		assert_int_equal(port_of(any) / 64, 32768 / 64);
		assert_fails(rdma_bind_addr(id, SA(addr)), EADDRINUSE);
	}
	two_wait(self);
	if (self->number == SERVER)
		assert_int_equal(rdma_destroy_id(id), 0);
	two_wait(self);
	if (self->number == CLIENT) {
		assert_int_equal(rdma_bind_addr(id, SA(addr)), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	two_wait(self);
	assert_int_equal(rdma_destroy_id(any), 0);
	rdma_destroy_event_channel(ch);
}

TEST(port__of_a_block_released_by_another_FREE)
{
	run(block_body);
}

static void v6_body(const struct two_process *self)
{
	uint16_t port = 0, theirs = 0;
	struct sockaddr_in6 addr;
	struct side s = {.self = self};

	s.ch = new_channel();
	s.id = new_id(s.ch);
	if (self->number == SERVER) {
		addr = v6("::1", 0);
		assert_int_equal(rdma_bind_addr(s.id, SA(addr)), 0);
		assert_int_equal(rdma_listen(s.id, 0), 0);
		port = port_of(s.id);
	}
	two_swap(self, &port, &theirs, sizeof(port));
	if (self->number == CLIENT) {
		addr = v6("::1", theirs);
		assert_int_equal(
			rdma_resolve_addr(s.id, NULL, SA(addr), TIMEOUT_MS), 0);
		take_event(s.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_int_equal(rdma_resolve_route(s.id, TIMEOUT_MS), 0);
		take_event(s.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
		s.cq = add_qp(s.id);
	}
	connect_both(&s);
	if (self->number == SERVER) {
		addr = *(struct sockaddr_in6 *)rdma_get_peer_addr(s.server);
		assert_int_equal(addr.sin6_family, AF_INET6);
		assert_true(IN6_IS_ADDR_LOOPBACK(&addr.sin6_addr));
	}
	move_bytes(&s);
	two_wait(self);
	end(&s);
}

TEST(connection__over_v6_MOVES_BYTES)
{
	run(v6_body);
}

static struct rdma_cm_id *new_ep(int flags, uint16_t port)
{
	struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP};
	struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 8}};
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", service, &hints, &res),
			 0);
	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	return id;
}

/* Each call waits for the other process. */
static void ep_body(const struct two_process *self)
{
	struct rdma_cm_id *listener = NULL, *id = NULL;
	uint16_t port = 0, theirs = 0;
	char memory[8] = "";
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (self->number == SERVER) {
		listener = new_ep(RAI_PASSIVE, 0);
		assert_int_equal(rdma_listen(listener, 0), 0);
		port = port_of(listener);
	}
	two_swap(self, &port, &theirs, sizeof(port));
	if (self->number == SERVER)
		assert_int_equal(rdma_get_request(listener, &id), 0);
	else
		id = new_ep(0, theirs);
	mr = rdma_reg_msgs(id, memory, sizeof(memory));
	assert_non_null(mr);
	if (self->number == SERVER) {
		assert_int_equal(
			rdma_post_recv(id, NULL, memory, sizeof(memory), mr),
			0);
		assert_int_equal(rdma_accept(id, NULL), 0);
		assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
		assert_string_equal(memory, "8 bytes");
	} else {
		strcpy(memory, "8 bytes");
		assert_int_equal(rdma_connect(id, NULL), 0);
		assert_int_equal(rdma_post_send(id, NULL, memory,
						sizeof(memory), mr,
						IBV_SEND_SIGNALED),
				 0);
		assert_int_equal(rdma_get_send_comp(id, &wc), 1);
	}
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	rdma_destroy_ep(id);
	if (listener)
		rdma_destroy_ep(listener);
}

TEST(endpoint__of_two_processes_WAITS_FOR_THE_OTHER)
{
	run(ep_body);
}

/*
 * Makes a child that does nothing until its parent closes the pipe. Returns
 * when the child is alive: until its fork handlers have run, the child holds
 * the names of ports of its parent.
 */
static pid_t new_child(int pipes[2])
{
	int there[2];
	pid_t pid;
	char c = 0;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(there), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(pipes[1]);
		_exit(write(there[1], &c, 1) != 1 || read(pipes[0], &c, 1));
	}
	close(pipes[0]);
	close(there[1]);
	assert_int_equal(read(there[0], &c, 1), 1);
	close(there[0]);
	return pid;
}

static void end_child(pid_t pid, int pipes[2])
{
	int status;

	close(pipes[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static struct rdma_cm_id *bind_to(struct rdma_event_channel *ch, uint16_t port)
{
	struct sockaddr_in addr = v4("127.0.0.1", port);
	struct rdma_cm_id *id = new_id(ch);

	assert_int_equal(rdma_bind_addr(id, SA(addr)), 0);
	return id;
}

/* Each has a child, first while the server listens, then while connected. */
static void fork_body(const struct two_process *self)
{
	pid_t at_start, connected;
	int start_pipe[2], pipes[2];
	struct rdma_cm_id *named = NULL;
	struct side s;

	begin(&s, self, 0);
	if (self->number == SERVER)
		named = bind_to(s.ch, FORK_PORT);
	at_start = new_child(start_pipe);
	connect_both(&s);
	connected = new_child(pipes);
	move_bytes(&s);
	if (self->number == SERVER)
		assert_int_equal(rdma_destroy_id(named), 0);
	two_wait(self);
	if (self->number == CLIENT) { /* the port is free: no child has the
				       * port */
		named = bind_to(s.ch, FORK_PORT);
		assert_int_equal(rdma_destroy_id(named), 0);
	}
	two_wait(self);
	end(&s);
	end_child(connected, pipes); /* first: the child has both pipes */
	end_child(at_start, start_pipe);
}

TEST(fork__of_both_CONNECTION_LIVES_AND_PORT_IS_FREED)
{
	run(fork_body);
}

/* ---- a child of the server's -------------------------------------------- */

static int child_connects(uint16_t port)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_client(ch, port);
	struct rdma_conn_param p = param;
	struct rdma_cm_event *event;
	int ret;

	add_qp(id);
	if (rdma_connect(id, &p) || rdma_get_cm_event(ch, &event))
		return 1;
	ret = event->event == RDMA_CM_EVENT_ESTABLISHED ? 0 : 2;
	rdma_ack_cm_event(event);
	return ret;
}

/* The child has what was its parent's, and can only destroy that. */
static int be_child(struct side *s, uint16_t port)
{
	struct rdma_conn_param p = param;

	alarm(300);
	if (!rdma_listen(s->id, 1) || errno != ENXIO)
		return 3;
	if (s->server && (!rdma_disconnect(s->server) || errno != ENXIO))
		return 4;
	if (s->server && !rdma_accept(s->server, &p))
		return 5;
	if (port % 2 && rdma_destroy_id(s->id))
		return 6;
	return child_connects(port);
}

static void parent_body(const struct two_process *self)
{
	struct rdma_event_channel *ch = new_channel();
	struct side s = {.self = self, .ch = ch};
	struct rdma_cm_event *event;
	uint16_t port;
	int status;
	pid_t pid;

	if (self->number == CLIENT)
		return;
	s.id = new_listener(ch, 0);
	port = port_of(s.id);
	for (int i = 0; i < 4; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			_exit(be_child(&s, port));
		event = next_event(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		s.server = event->id;
		assert_int_equal(rdma_ack_cm_event(event), 0);
		s.cq = add_qp(s.server);
		accept_with(&s, "welcome");
		take_event(ch, RDMA_CM_EVENT_ESTABLISHED);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		take_event(ch, RDMA_CM_EVENT_DISCONNECTED);
	}
}

TEST(fork__child_REACHES_THE_LISTENER_OF_ITS_PARENT)
{
	struct two_process p[2] = {0};

	/* the child starts threads: the thread sanitizer ends such a child, and
	 * the address sanitizer's allocator may be locked there for ever */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	print_message("skipped: sanitizers forbid threads behind a fork\n");
	skip();
#endif
	two_run(p, parent_body);
	assert_int_equal(two_count(&p[SERVER], "the parent process's"), 7);
}

/* ---- a daemon that listens as root and becomes another user -------------- */

#define NOBODY 65534

static void become_nobody(void)
{
	assert_int_equal(setgid(NOBODY), 0);
	assert_int_equal(setuid(NOBODY), 0);
}

static void root_only(void)
{
	if (!geteuid())
		return;
	print_message("skipped: only root becomes another user\n");
	skip();
}

static void both_drop_body(const struct two_process *self)
{
	struct side s;

	begin(&s, self, 0);
	become_nobody();
	two_wait(self);
	connect_both(&s);
	move_bytes(&s);
	two_wait(self);
	end(&s);
}

TEST(setuid__behind_listen_NEW_USER_CONNECTS)
{
	root_only();
	run(both_drop_body);
}

/* The client stays root. */
static void server_drops_body(const struct two_process *self)
{
	struct side s;

	begin(&s, self, 0);
	if (self->number == SERVER)
		become_nobody();
	two_wait(self);
	if (self->number == CLIENT) {
		ask(&s, "hello");
		take_status(s.ch, RDMA_CM_EVENT_REJECTED, 8);
	}
	two_wait(self);
	assert_false(is_readable(s.ch));
	end(&s);
}

TEST(setuid__behind_listen_FORMER_USER_REFUSED)
{
	struct two_process p[2] = {0};

	root_only();
	two_run(p, server_drops_body);
	assert_int_equal(two_count(&p[CLIENT], "is a process of user 65534: "
					       "not connected to by user 0"),
			 1);
}

/* ---- a stopped process ---------------------------------------------- */

static void wait_until_stopped(pid_t pid)
{
	char name[32], text[256];
	ssize_t size;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	do {
		poll(NULL, 0, 1);
		fd = open(name, O_RDONLY);
		assert_true(fd >= 0);
		size = read(fd, text, sizeof(text) - 1);
		assert_true(size > 0);
		text[size] = '\0';
		close(fd);
	} while (!strstr(text, ") T "));
}

/*
 * The server gets the second request, once the process goes on, and no other.
 */
static void stopped_body(const struct two_process *self)
{
	pid_t pid = getpid(), theirs;
	struct rdma_cm_id *gone;
	struct side s;

	begin(&s, self, 0);
	two_swap(self, &pid, &theirs, sizeof(pid));
	if (self->number == SERVER) {
		/* or the process would stay if the client fails */
		assert_int_equal(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
		assert_int_equal(raise(SIGSTOP), 0);
		take_request(&s, "hello");
		accept_with(&s, "welcome");
		take_event(s.ch, RDMA_CM_EVENT_ESTABLISHED);
	} else {
		wait_until_stopped(theirs);
		gone = new_client(s.ch, ntohs(rdma_get_dst_port(s.id)));
		assert_int_equal(
			rdma_connect(gone, &(struct rdma_conn_param){0}), 0);
		ask(&s, "hello");
		assert_int_equal(rdma_destroy_id(gone), 0);
		assert_false(is_readable(s.ch));
		assert_int_equal(kill(theirs, SIGCONT), 0);
		take_words(&s, RDMA_CM_EVENT_ESTABLISHED, 0, "welcome",
			   REP_PRIV);
	}
	move_bytes(&s);
	assert_false(is_readable(s.ch));
	two_wait(self);
	end(&s);
}

TEST(connect__to_one_who_is_stopped_WAITS)
{
	run(stopped_body);
}

/* ---- death ------------------------------------------------------------- */

enum step {
	STEP_LISTENING, /* the server: the request is not read */
	STEP_REQUESTED, /* the server: has read the request */
	STEP_ACCEPTED,	/* the server: RTU is not there yet, or is */
	STEP_ESTABLISHED,
	STEP_DISCONNECTED,
	STEPS,
};

static enum step step;
static int victim;

static void die(void)
{
	kill(getpid(), SIGKILL);
}

static void be_server(struct side *s)
{
	if (step == STEP_LISTENING)
		die();
	take_request(s, "hello");
	if (step == STEP_REQUESTED)
		die();
	accept_with(s, "welcome");
	if (step == STEP_ACCEPTED)
		die();
	take_event(s->ch, RDMA_CM_EVENT_ESTABLISHED);
	if (step == STEP_DISCONNECTED)
		take_event(s->ch, RDMA_CM_EVENT_DISCONNECTED);
	die();
}

/*
 * Reads the events of a client whose server dies at a step; 0: no more events.
 */
static void survive_server(struct side *s)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	int status;

	ask(s, "hello");
	assert_int_equal(rdma_get_cm_event(s->ch, &event), 0);
	type = event->event;
	status = event->status;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	if (step == STEP_LISTENING || step == STEP_REQUESTED) {
		assert_int_equal(type, RDMA_CM_EVENT_REJECTED);
		assert_true(status == 28 || status == 8);
		return;
	}
	if (step == STEP_ACCEPTED && type == RDMA_CM_EVENT_CONNECT_ERROR)
		return;
	assert_int_equal(type, RDMA_CM_EVENT_ESTABLISHED);
	if (step == STEP_DISCONNECTED)
		assert_int_equal(rdma_disconnect(s->id), 0);
	take_event(s->ch, RDMA_CM_EVENT_DISCONNECTED);
}

static void be_client(struct side *s)
{
	ask(s, "hello");
	if (step <= STEP_REQUESTED) {
		two_wait(s->self);
		die();
	}
	take_words(s, RDMA_CM_EVENT_ESTABLISHED, 0, "welcome", REP_PRIV);
	if (step == STEP_DISCONNECTED)
		assert_int_equal(rdma_disconnect(s->id), 0);
	die();
}

/* Reads the events of a server whose client dies at a step. */
static void survive_client(struct side *s)
{
	take_request(s, "hello");
	if (step <= STEP_REQUESTED) {
		struct rdma_conn_param p = param;

		two_wait(s->self);
		/* an accept before the news is refused later */
		if (!rdma_accept(s->server, &p))
			take_status(s->ch, RDMA_CM_EVENT_REJECTED, 28);
		else
			assert_int_equal(errno, EINVAL);
		return;
	}
	accept_with(s, "welcome");
	take_event(s->ch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(s->ch, RDMA_CM_EVENT_DISCONNECTED);
}

static void death_body(const struct two_process *self)
{
	struct side s;

	begin(&s, self, 0);
	if (victim == SERVER && self->number == SERVER)
		be_server(&s);
	else if (victim == SERVER)
		survive_server(&s);
	else if (self->number == CLIENT)
		be_client(&s);
	else
		survive_client(&s);
	end(&s);
}

TEST(death__of_the_peer_at_a_step_IS_TOLD)
{
	for (victim = SERVER; victim <= CLIENT; victim++) {
		for (step = 0; step < STEPS; step++) {
			struct two_process p[2] = {0};

			p[victim].signal = SIGKILL;
			two_run(p, death_body);
		}
	}
}

TEST_MAIN()
