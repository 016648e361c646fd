/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * migrated server ADDRESS | migrated client ADDRESS PORT SECONDS: verbs.c after
 * doc/MIGRATION.md. One thread, with the poller in manual mode. Each end talks
 * to either end of verbs.c.
 */

#include <rpma_rt.h>

#include "echo.h"

struct link {
	struct rpma_rt *rt;
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_rt_queue *queue;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;
	const char *seconds;
	int refused[SLOTS]; /* messages that the server could not send back */
	int refused_count;
	bool is_closed;
	struct echo echo;
};

static struct link link;

static int check(const char *what, int ret)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, rpma_rt_err_2str(ret));
		exit(1);
	}
	return ret;
}
#define TRY(call) check(#call, call)

/* -------------------------------------------------------------- posting --- */

static void post_recv(int slot)
{
	int ret = rpma_rt_recv(link.conn, link.mr, (size_t)slot * SIZE, SIZE,
			       (uintptr_t)&link.echo.requests[slot]);

	if (ret != RPMA_RT_E_CLOSED)
		check("rpma_rt_recv", ret);
}

/* A message behind a refused one waits too: the order stays. */
static void post_send(const char *from, int slot)
{
	int ret = RPMA_E_AGAIN;

	if (link.refused_count == 0)
		ret = rpma_rt_send(
			link.conn, link.mr,
			(size_t)(from - link.echo.memory[0]), SIZE,
			RPMA_F_COMPLETION_ALWAYS,
			(uintptr_t)&link.echo.requests[SLOTS + slot]);
	if (ret == RPMA_E_AGAIN) /* WRITABLE comes */
		link.refused[link.refused_count++] = slot;
	else if (ret != RPMA_RT_E_CLOSED)
		link.echo.unsent += check("rpma_rt_send", ret) == 0;
}

/* A message can come before ESTABLISHED, and its echo is refused until then. */
static void post_refused(void)
{
	int slots[SLOTS], count = link.refused_count;

	memcpy(slots, link.refused, sizeof(slots));
	link.refused_count = 0;
	for (int i = 0; i < count; i++)
		post_send(link.echo.memory[slots[i]], slots[i]);
}

/* ---------------------------------------------------------- completions --- */

/* The server sends a message back from the slot that the message is in. */
static void on_completion(const struct rpma_rt_completion *item)
{
	const struct request *request = rpma_rt_completion_ptr(item);
	struct echo *echo = &link.echo;
	int slot = request->slot;

	if (item->status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (item->status != IBV_WC_SUCCESS)
		die(rpma_rt_status_2str(item->status));
	if (!request->is_recv) {
		echo->unsent--;
		if (echo->is_server)
			post_recv(slot);
	} else if (echo->is_server) {
		post_send(echo->memory[slot], slot);
	} else {
		echo_check(echo, slot);
		post_recv(slot);
	}
}

static void post_receives(void)
{
	for (int i = 0; i < SLOTS; i++)
		post_recv(i);
}

static void on_event(const struct rpma_rt_completion *item)
{
	switch (rpma_rt_completion_event(item)) {
	case RPMA_RT_EVENT_REQUEST:
		link.conn = rpma_rt_completion_conn(item);
		post_receives();
		TRY(rpma_rt_conn_accept(link.conn, NULL));
		TRY(rpma_rt_listener_delete(&link.listener)); /* one client */
		break;
	case RPMA_RT_EVENT_READY:
		post_receives();
		TRY(rpma_rt_conn_connect(link.conn, NULL));
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		if (!link.echo.is_server)
			echo_begin(&link.echo, link.seconds);
		break;
	case RPMA_RT_EVENT_CLOSED:
		link.is_closed = true;
		break;
	}
}

/* Runs the poller, sleeps if there is nothing, handles what comes. */
static void turn(void)
{
	struct rpma_rt_completion items[16];
	int got = TRY(rpma_rt_queue_wait(link.queue, items, 16, -1));

	for (int i = 0; i < got; i++)
		if (items[i].kind == RPMA_RT_COMPLETION)
			on_completion(&items[i]);
		else if (items[i].kind == RPMA_RT_WRITABLE)
			post_refused();
		else
			on_event(&items[i]);
}

/* ------------------------------------------------------- the connection --- */

static void open_link(const char *address, struct rpma_rt_conn_cfg *cfg)
{
	struct rpma_rt_cfg rt_cfg = RPMA_RT_CFG_INIT;
	struct ibv_context *device;

	rt_cfg.mode = RPMA_RT_MODE_MANUAL;
	TRY(rpma_utils_get_ibv_context(address,
				       link.echo.is_server
					       ? RPMA_UTIL_IBV_CONTEXT_LOCAL
					       : RPMA_UTIL_IBV_CONTEXT_REMOTE,
				       &device));
	TRY(rpma_peer_new(device, &link.peer));
	TRY(rpma_mr_reg(link.peer, link.echo.memory, sizeof(link.echo.memory),
			RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &link.mr));
	TRY(rpma_rt_new(&rt_cfg, &link.rt));
	TRY(rpma_rt_queue_new(link.rt, NULL, &link.queue));
	cfg->peer = link.peer;
	cfg->queue = link.queue;
	cfg->sq_size = SLOTS;
	cfg->rq_size = SLOTS;
}

static void close_link(void)
{
	TRY(rpma_rt_conn_close(link.conn));
	while (!link.is_closed)
		turn();
	TRY(rpma_rt_stop(link.rt));
	TRY(rpma_rt_conn_unref(&link.conn));
	TRY(rpma_rt_queue_delete(&link.queue));
	TRY(rpma_rt_delete(&link.rt));
	TRY(rpma_mr_dereg(&link.mr));
	TRY(rpma_peer_delete(&link.peer));
}

static void serve(const char *address)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	uint16_t port;

	open_link(address, &cfg);
	TRY(rpma_rt_listen(link.rt, address, "0", &cfg, &link.listener));
	TRY(rpma_rt_listener_get_port(link.listener, &port));
	printf("port %d\n", port);
	fflush(stdout);
	while (!link.is_closed)
		turn();
}

static void ask(const char *address, const char *port, const char *seconds)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct echo *echo = &link.echo;
	int slot;

	open_link(address, &cfg);
	link.seconds = seconds;
	TRY(rpma_rt_conn_new(link.rt, address, port, &cfg, &link.conn));
	while (echo->begin == 0 && !link.is_closed)
		turn();
	while (!echo_is_over(echo) && !link.is_closed) {
		while (echo_may_send(echo)) {
			slot = echo_write(echo);
			post_send(echo->memory[SLOTS + slot], slot);
		}
		turn();
	}
	if (link.is_closed)
		die("the connection is closed");
	echo_print(echo);
}

int main(int argc, char **argv)
{
	bool is_server = argc == 3 && !strcmp(argv[1], "server");

	if (!is_server && (argc != 5 || strcmp(argv[1], "client") != 0)) {
		fprintf(stderr, "usage: %s " USAGE "\n", argv[0]);
		return 2;
	}
	echo_init(&link.echo, is_server);
	if (is_server)
		serve(argv[2]);
	else
		ask(argv[2], argv[3], argv[4]);
	close_link();
	return 0;
}
