/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * verbs server ADDRESS | verbs client ADDRESS PORT SECONDS: an echo on rdma_cm
 * and verbs, in the usual form: a CQ, polled until the CQ is empty; armed and
 * polled again before poll(2) sleeps. The server prints its port, serves a
 * single client and ends; the client checks each echo and prints the rate.
 * migrated.c is this program after doc/MIGRATION.md.
 */

#include <poll.h>

#include <rdma/rdma_cma.h>

#include "echo.h"

#define RESOLVE_MS 2000

struct link {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	bool is_closed;
	struct echo echo;
};

static struct link link;

/* -------------------------------------------------------------- posting --- */

static void post_recv(int slot)
{
	struct ibv_sge sge = {(uintptr_t)link.echo.memory[slot], SIZE,
			      link.mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {
			.wr_id = (uintptr_t)&link.echo.requests[slot],
			.sg_list = &sge,
			.num_sge = 1,
		};

	if (ibv_post_recv(link.id->qp, &wr, &bad))
		die("ibv_post_recv");
}

static void post_send(const char *from, int slot)
{
	struct ibv_sge sge = {(uintptr_t)from, SIZE, link.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = (uintptr_t)&link.echo.requests[SLOTS + slot],
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};

	if (ibv_post_send(link.id->qp, &wr, &bad))
		die("ibv_post_send");
	link.echo.unsent++;
}

/* ---------------------------------------------------------- completions --- */

/* The server sends a message back from the slot that the message is in. */
static void on_completion(const struct ibv_wc *wc)
{
	const struct request *request = (void *)(uintptr_t)wc->wr_id;
	struct echo *echo = &link.echo;
	int slot = request->slot;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		die(ibv_wc_status_str(wc->status));
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

static int drain(void)
{
	struct ibv_wc wc[16];
	int got, all = 0;

	while ((got = ibv_poll_cq(link.cq, 16, wc)) > 0) {
		for (int i = 0; i < got; i++)
			on_completion(&wc[i]);
		all += got;
	}
	if (got < 0)
		die("ibv_poll_cq");
	return all;
}

static void on_event(void)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(link.events, &event))
		die("rdma_get_cm_event");
	link.is_closed |= event->event == RDMA_CM_EVENT_DISCONNECTED;
	rdma_ack_cm_event(event);
}

/* Arms the CQ, looks once more, and sleeps until there is something. */
static void sleep_on_channel(void)
{
	struct pollfd fds[] = {{.fd = link.channel->fd, .events = POLLIN},
			       {.fd = link.events->fd, .events = POLLIN}};
	struct ibv_cq *cq;
	void *context;

	if (ibv_req_notify_cq(link.cq, 0))
		die("ibv_req_notify_cq");
	if (drain() > 0)
		return;
	if (poll(fds, 2, -1) < 0)
		die("poll");
	if (fds[0].revents) {
		if (ibv_get_cq_event(link.channel, &cq, &context))
			die("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
	if (fds[1].revents)
		on_event();
}

/* ------------------------------------------------------- the connection --- */

static void open_link(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {SLOTS, SLOTS, 1, 1, 0},
	};

	link.id = id;
	link.pd = ibv_alloc_pd(id->verbs);
	link.channel = ibv_create_comp_channel(id->verbs);
	if (!link.pd || !link.channel)
		die("device");
	link.cq = ibv_create_cq(id->verbs, 2 * SLOTS, NULL, link.channel, 0);
	link.mr = ibv_reg_mr(link.pd, link.echo.memory,
			     sizeof(link.echo.memory), IBV_ACCESS_LOCAL_WRITE);
	attr.send_cq = attr.recv_cq = link.cq;
	if (!link.cq || !link.mr || rdma_create_qp(id, link.pd, &attr))
		die("queue pair");
	for (int i = 0; i < SLOTS; i++)
		post_recv(i);
}

static void close_link(void)
{
	rdma_disconnect(link.id);
	while (!link.is_closed)
		on_event();
	drain();
	rdma_destroy_qp(link.id);
	ibv_dereg_mr(link.mr);
	ibv_destroy_cq(link.cq);
	ibv_destroy_comp_channel(link.channel);
	ibv_dealloc_pd(link.pd);
	rdma_destroy_id(link.id);
	if (link.listener)
		rdma_destroy_id(link.listener);
	rdma_destroy_event_channel(link.events);
}

/* Returns the event's id; the event has to be this one. */
static struct rdma_cm_id *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(link.events, &event))
		die("rdma_get_cm_event");
	if (event->event != type)
		die(rdma_event_str(event->event));
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static struct rdma_cm_id *open_id(const char *address, const char *port,
				  struct rdma_addrinfo **at)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
	struct rdma_cm_id *id;

	hints.ai_flags = link.echo.is_server ? RAI_PASSIVE : 0;
	link.events = rdma_create_event_channel();
	if (!link.events || rdma_getaddrinfo(address, port, &hints, at) ||
	    rdma_create_id(link.events, &id, NULL, RDMA_PS_TCP))
		die("address");
	return id;
}

static void serve(const char *address)
{
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	struct rdma_addrinfo *at;

	link.listener = open_id(address, "0", &at);
	if (rdma_bind_addr(link.listener, at->ai_src_addr) ||
	    rdma_listen(link.listener, 1))
		die("rdma_listen");
	rdma_freeaddrinfo(at);
	printf("port %d\n", ntohs(rdma_get_src_port(link.listener)));
	fflush(stdout);
	open_link(expect(RDMA_CM_EVENT_CONNECT_REQUEST));
	if (rdma_accept(link.id, &param))
		die("rdma_accept");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	while (!link.is_closed)
		if (drain() == 0)
			sleep_on_channel();
}

static void ask(const char *address, const char *port, const char *seconds)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct echo *echo = &link.echo;
	struct rdma_addrinfo *at;
	struct rdma_cm_id *id = open_id(address, port, &at);
	int slot;

	if (rdma_resolve_addr(id, NULL, at->ai_dst_addr, RESOLVE_MS))
		die("rdma_resolve_addr");
	rdma_freeaddrinfo(at);
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		die("rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	open_link(id);
	if (rdma_connect(id, &param))
		die("rdma_connect");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	echo_begin(echo, seconds);
	while (!echo_is_over(echo)) {
		while (echo_may_send(echo)) {
			slot = echo_write(echo);
			post_send(echo->memory[SLOTS + slot], slot);
		}
		if (drain() == 0)
			sleep_on_channel();
	}
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
