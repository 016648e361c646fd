/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bare.h -- connections by verbs and rdma_cm alone, both ends in this process:
 * what the runtime is compared with. Failures end the program.
 */

#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

struct bare {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct sockaddr_in addr; /* the listener's */
	struct ibv_pd *pd;
};

/* Opens the device at RPMA_TEST_ADDR, or 127.0.0.1, and listens. */
void bare_open(struct bare *bare);
/* Returns a CQ, without a channel. */
struct ibv_cq *bare_cq(const struct bare *bare, uint32_t size);
/* Connects: the client's end, then the server's, each with one CQ for both of
 * its queues, of so many sends and receives. */
void bare_connect(struct bare *bare, struct ibv_cq *const cqs[2],
		  uint32_t sends, uint32_t recvs, struct rdma_cm_id *ids[2]);

#endif /* BENCH_BARE_H */
