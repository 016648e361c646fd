/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A CQ, and the channel of its events: a channel of its own, the channel that
 * CQ and RCQ of a connection share, or a channel object. Threads that wait
 * enter the claim of the CQ; the owner of the claim polls the CQ raw. Verbs
 * destroy a CQ only after each event was acknowledged, so the library counts
 * the events that callers received unacknowledged.
 */

#ifndef RPMA_CQ_H
#define RPMA_CQ_H 1

#include "claim.h"
#include "fork.h"
#include "librpma.h"

enum rpma__cq_life {
	RPMA__CQ_STAYS,
	RPMA__CQ_LEAVING, /* ibv_destroy_cq() is called, outcome unknown */
	RPMA__CQ_GONE,
};

struct rpma_cq {
	/* immutable after new */
	struct ibv_cq *cq;
	struct ibv_comp_channel *ibv_channel; /* where events arrive */
	struct rpma_channel *channel;	      /* NULL, or the channel object */
	void *context;
	bool owns_channel;
	bool standalone; /* made by rpma_cq_new() */

	unsigned forks;
	/* under the lock of the table */
	struct rpma_cq *next;
	enum rpma__cq_life life;
	unsigned pins; /* readers of a channel that hold an event */

	struct rpma__claim claim;
	/* events returned by rpma_*_wait_event(), not yet acknowledged */
	atomic_uint unacked;
};

/* Returns true if cq is not NULL and was made in this process. */
static inline bool rpma__cq_is_valid(const struct rpma_cq *cq)
{
	return cq && rpma__is_here(cq->forks);
}

/* Returns the error of a call that has refused its arguments. */
static inline int rpma__cq_refusal(const struct rpma_cq *cq)
{
	return rpma__fork_refusal(cq ? &cq->forks : NULL);
}

/* How to make a CQ. At most one of the two channels is set. */
struct rpma__cq_attr {
	struct ibv_context *ibv_ctx;
	uint32_t cqe; /* more than INT_MAX counts as INT_MAX */
	int comp_vector;
	struct rpma_channel *channel;
	struct ibv_comp_channel *ibv_channel; /* of a connection */
	void *context;
	bool standalone;
};

/*
 * Makes a CQ, armed unless the CQ is on a channel object. Returns E_NOMEM or
 * E_PROVIDER (logged) on failure.
 */
int rpma__cq_new(const struct rpma__cq_attr *attr, struct rpma_cq **cq_ptr);
/*
 * Deletes a CQ; *ptr may be NULL. After E_PROVIDER, logged, the CQ is deleted
 * all the same.
 */
int rpma__cq_delete(struct rpma_cq **cq_ptr);

/* Frees the memory of a CQ made by another process, and nothing else. */
void rpma__cq_abandon(struct rpma_cq **cq_ptr);

/*
 * Returns true if the events belong to the reader of a channel object, or to
 * the owner of a claim.
 */
bool rpma__cq_is_taken(const struct rpma_cq *cq);

/* Waits for an event of a channel. Returns an RPMA_E_* on failure. A thread
 * cancelled while waiting runs cancelled(arg), and ends. */
int rpma__cq_get_event(struct ibv_comp_channel *ibv_channel,
		       struct ibv_cq **ibv_cq, void (*cancelled)(void *arg),
		       void *arg);
/*
 * Counts an event; the caller of the library acknowledges the event with
 * rpma_cq_ack().
 */
void rpma__cq_event_given(struct rpma_cq *cq);
/* Arms a CQ. Returns E_PROVIDER, logged, on failure. */
int rpma__cq_arm(struct ibv_cq *ibv_cq, bool solicited_only);

#endif /* RPMA_CQ_H */
