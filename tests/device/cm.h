/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rdma_cm for the tests: ids and event channels that are destroyed after the
 * test, events awaited and copied, a listener and a client in one process.
 */

#ifndef DEVICE_CM_H
#define DEVICE_CM_H

#include <rdma/rdma_cma.h>
#include "fixture.h"

/* An event after its acknowledgement. */
struct cm_seen {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id;
	struct rdma_conn_param param; /* its private_data is data below */
	struct rdma_ud_param ud;      /* the same of datagrams */
	uint8_t data[256];
};

/* An end of a connection. */
struct cm_end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* 4096 bytes */
};

struct cm_link {
	struct rdma_cm_id *listener;
	struct cm_end server;
	struct cm_end client;
};

struct rdma_event_channel *cm_channel(void);
struct rdma_cm_id *cm_id(struct rdma_event_channel *channel);
void cm_keep_id(struct rdma_cm_id *id);

/* Return the next event, of any type, or asserted to be of the type. */
struct cm_seen cm_next(struct rdma_event_channel *channel);
struct cm_seen cm_expect(struct rdma_event_channel *channel,
			 enum rdma_cm_event_type type);

/* The device's address with a port, in host order. */
struct sockaddr_in cm_addr(uint16_t port);
uint16_t cm_port(struct rdma_cm_id *id);

/* Listens on a port the device chooses. */
struct rdma_cm_id *cm_listen(struct rdma_event_channel *channel);
/* Resolves address and route to the port. */
void cm_resolve(struct rdma_cm_id *id, uint16_t port);
/* Make a PD, a CQ, a region and a QP for an id; destroy the QP and the id. */
void cm_make_qp(struct cm_end *end);
void cm_destroy(struct cm_end *end);
struct rdma_conn_param cm_param(const void *data, uint8_t len);

/* The steps of a connection: a listener, and a client resolved, with a QP; */
struct cm_link *cm_link_init(void);
/* Returns a request that has reached the server, which has no QP yet. */
struct cm_seen cm_request(struct cm_link *l, const void *data, uint8_t len);
/* Accepts the request; waits until both ends are ESTABLISHED. */
void cm_accept(struct cm_link *l, const void *data, uint8_t len);
void cm_established(struct cm_link *l);
/* All of them, at the device's address or at another, whose port is 0. */
struct cm_link *cm_link_new(void);
struct cm_link *cm_link_new_at(struct sockaddr *addr);
/* Until both ends are DISCONNECTED, by the client. */
void cm_hang_up(struct cm_link *l);

void cm_post_recv(const struct cm_end *end, uint64_t id);
void cm_post_send(const struct cm_end *end, uint64_t id);
/* A message each way. */
void cm_check(struct cm_link *l);

#endif
