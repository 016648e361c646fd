/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * peer.h: the common start of small examples, and their error messages.
 */

#ifndef EXAMPLES_PEER_H
#define EXAMPLES_PEER_H

#include <stdio.h>

#include <librpma.h>

/*
 * Prints the name of the failed call on stderr if ret is an error; returns ret.
 */
static inline int check(const char *what, int ret)
{
	if (ret)
		fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
	return ret;
}

/* Makes a peer on the device that has, or leads to, the address. */
static inline int open_peer(const char *address,
			    enum rpma_util_ibv_context_type type,
			    struct rpma_peer **peer)
{
	struct ibv_context *device;
	int ret = rpma_utils_get_ibv_context(address, type, &device);

	if (ret) {
		fprintf(stderr, "%s: no RDMA device %s it\n", address,
			type == RPMA_UTIL_IBV_CONTEXT_LOCAL ? "has"
							    : "leads to");
		return ret;
	}
	return check("rpma_peer_new", rpma_peer_new(device, peer));
}

/* Waits for the next event of a connection, and checks the event. */
static inline int expect(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;
	int ret = check("rpma_conn_next_event",
			rpma_conn_next_event(conn, &event));

	if (ret)
		return ret;
	if (event == wanted)
		return 0;
	fprintf(stderr, "the connection is %s\n",
		rpma_utils_conn_event_2str(event));
	return RPMA_E_UNKNOWN;
}

/* Waits until the CQ has a completion, and takes the completion. */
static inline int wait_wc(struct rpma_cq *cq, struct ibv_wc *wc)
{
	int ret;

	/* an event may belong to a completion that was taken before */
	while ((ret = rpma_cq_get_wc(cq, 1, wc, NULL)) == RPMA_E_NO_COMPLETION)
		if (check("rpma_cq_wait", rpma_cq_wait(cq)))
			return RPMA_E_PROVIDER;
	if (check("rpma_cq_get_wc", ret))
		return ret;
	if (wc->status == IBV_WC_SUCCESS)
		return 0;
	fprintf(stderr, "a work request failed: %s\n",
		ibv_wc_status_str(wc->status));
	return RPMA_E_UNKNOWN;
}

#endif /* EXAMPLES_PEER_H */
