/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A CQ, and the channel its events come on: its own, the one of a connection's
 * CQ and RCQ, or a channel object. Waiters enter its claim; a claimer
 * polls it raw. Destroying a CQ of verbs waits for each event to be
 * acknowledged, so those that the library gave away unacknowledged are counted.
 */

#ifndef RPMA_CQ_H
#define RPMA_CQ_H 1

#include "claim.h"
#include "fork.h"
#include "librpma.h"

struct rpma_cq {
	/* immutable after new */
	struct ibv_cq *cq;
	struct ibv_comp_channel *ibv_channel; /* where its events come */
	struct rpma_channel *channel; /* NULL, or the object around it */
	void *context;
	bool owns_channel;
	bool standalone; /* made by rpma_cq_new() */

	unsigned forks;
	struct rpma_cq *next; /* of the table, under its lock */
	bool leaving;	      /* under the lock of the channel object */
	struct rpma__claim claim;
	/* events of rpma_*_wait_event() that nobody has acknowledged */
	atomic_uint unacked;
};

/* True: not NULL, and made in this process. */
static inline bool rpma__cq_is_valid(const struct rpma_cq *cq)
{
	return cq && rpma__is_here(cq->forks);
}

/* The error of a call that has refused its arguments. */
static inline int rpma__cq_refusal(const struct rpma_cq *cq)
{
	return rpma__fork_refusal(cq ? &cq->forks : NULL);
}

/* How to make a CQ. At most one of the two channels is given. */
struct rpma__cq_attr {
	struct ibv_context *ibv_ctx;
	uint32_t cqe; /* more than INT_MAX is INT_MAX */
	int comp_vector;
	struct rpma_channel *channel;
	struct ibv_comp_channel *ibv_channel; /* of a connection */
	void *context;
	bool standalone;
};

/*
 * Armed, unless it is on a channel object. E_NOMEM, E_PROVIDER (logged).
 */
int rpma__cq_new(const struct rpma__cq_attr *attr, struct rpma_cq **cq_ptr);
/* *ptr may be NULL. E_PROVIDER, logged: the CQ is deleted all the same. */
int rpma__cq_delete(struct rpma_cq **cq_ptr);

/* A CQ of another process: frees the memory, and nothing else. */
void rpma__cq_abandon(struct rpma_cq **cq_ptr);

/* Do its events belong to whoever waits on a channel object or claimed it? */
bool rpma__cq_is_taken(const struct rpma_cq *cq);

/* Waits for one event of a channel. Why it failed as an RPMA_E_*. A thread that
 * is cancelled while it waits runs cancelled(arg), and ends. */
int rpma__cq_get_event(struct ibv_comp_channel *ibv_channel,
		       struct ibv_cq **ibv_cq, void (*cancelled)(void *arg),
		       void *arg);
/* An event is the caller's to acknowledge, with rpma_cq_ack(). */
void rpma__cq_event_given(struct rpma_cq *cq);
/* E_PROVIDER, logged. */
int rpma__cq_arm(struct ibv_cq *ibv_cq, bool solicited_only);

#endif /* RPMA_CQ_H */
