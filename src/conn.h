/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A connection, from the moment its request has a CM id: a request holds a
 * connection that is not open yet. The connection owns the id, its QP, the CQs
 * made for the connection, and their channel. Life:
 *
 *	new    takes the id
 *	make   makes CQs and QP: receives may be posted
 *	move   moves CM events to the channel where they are read: an incoming
 *	       request at once, because the channel of its listener does not
 *	       count the request; an outgoing request when opened
 *	open   moves CM events, if they are not moved yet; flushes work
 *	delete removes everything, whichever step above was reached
 */

#ifndef RPMA_CONN_H
#define RPMA_CONN_H 1

#include <rdma/rdma_cma.h>

#include "claim.h"
#include "conn_cfg.h"
#include "flush.h"
#include "fork.h"
#include "librpma.h"
#include "private_data.h"

struct rpma_conn {
	/* immutable once open; the QP (id->qp) goes with destroy_qp */
	struct rdma_cm_id *id;
	struct rpma_peer *peer;
	struct rpma__flush *flush;
	bool has_atomic_write;
	unsigned forks;
	struct rpma__claim claim;
	/* set by any thread, read when flushing */
	atomic_bool direct_write_to_pmem;

	/* immutable once made */
	struct rpma_cq *cq;
	struct rpma_cq *rcq; /* NULL: receives complete elsewhere */
	bool owns_cq;
	bool owns_rcq;
	struct ibv_comp_channel *channel; /* of CQ and RCQ; NULL: not shared */
	uint8_t min_rnr_timer;
	uint32_t max_send_sge; /* as the device granted them */
	uint32_t max_recv_sge;
	uint32_t max_inline_data;

	/* one of the two channels is set, once open */
	struct rdma_event_channel *evch;
	struct rpma_cm_channel *cm_channel; /* counted */

	/* written by the thread that handles the events */
	struct rpma__private_data data;
	bool had_event;
	int event_status; /* of the last event */
};

/* Returns true if conn is not NULL and was made in this process. */
static inline bool rpma__conn_is_valid(const struct rpma_conn *conn)
{
	return conn && rpma__is_here(conn->forks);
}

/* Returns the error of a call that has refused its arguments. */
static inline int rpma__conn_refusal(const struct rpma_conn *conn)
{
	return rpma__fork_refusal(conn ? &conn->forks : NULL);
}

/*
 * Makes a connection: takes the id and counts the id on the CM channel. On
 * E_NOMEM nothing is taken.
 */
int rpma__conn_new(struct rpma_peer *peer, struct rdma_cm_id *id,
		   struct rpma_cm_channel *cm_channel,
		   struct rpma_conn **conn_ptr);
/*
 * Makes CQs and QP. On E_NOMEM, E_PROVIDER or E_INVAL (the cfg contradicts
 * itself) nothing is made.
 */
int rpma__conn_make(struct rpma_conn *conn, const struct rpma__conn_cfg *cfg);
/* Undoes make; keeps errno. */
void rpma__conn_unmake(struct rpma_conn *conn);
/*
 * Moves the id to the channel where the events of the connection are read, if
 * the id is elsewhere. On E_PROVIDER the id stays where the id is.
 */
int rpma__conn_move_events(struct rpma_conn *conn);
/* Opens the connection. After E_NOMEM or E_PROVIDER only delete may follow. */
int rpma__conn_open(struct rpma_conn *conn);

/* The private data with which a deleted request refuses the other side. */
struct rpma__refusal {
	const void *ptr; /* private data */
	uint8_t len;
};

/*
 * Deletes the connection. refusal NULL: no other side waits for a refusal.
 * Returns the first error; nothing of the connection is left either way.
 */
int rpma__conn_delete(struct rpma_conn **conn_ptr,
		      const struct rpma__refusal *refusal);
/*
 * Frees the memory of a connection that another process made, and nothing else.
 */
void rpma__conn_abandon(struct rpma_conn **conn_ptr);
/*
 * Undoes new: leaves the id to the caller, frees the memory of the connection.
 */
void rpma__conn_forget(struct rpma_conn **conn_ptr);

/*
 * Returns true if a CQ owned by the connection is claimed: the owner of the
 * claim polls the CQ, so the CQ must stay.
 */
bool rpma__conn_has_claimed_cq(const struct rpma_conn *conn);
/* Returns true if the connection, or a CQ owned by the connection, is
 * claimed. */
bool rpma__conn_is_claimed(const struct rpma_conn *conn);

/*
 * Moves the QP into the error state; destroys the QP. Without a QP: does
 * nothing, returns 0.
 */
int rpma__conn_qp_to_err(struct rpma_conn *conn);
void rpma__conn_destroy_qp(struct rpma_conn *conn);

/*
 * Sets the RNR timer of the configuration, once the QP can send. If setting the
 * timer fails, the connection works with its present timer, and a warning is
 * logged.
 */
void rpma__conn_apply_rnr_timer(struct rpma_conn *conn);

/* Posts a single work request; checks the claim, and that a QP exists. */
int rpma__conn_send(struct rpma_conn *conn, struct rpma_send_wr *wr);
int rpma__conn_recv(struct rpma_conn *conn, struct rpma_mr_local *dst,
		    size_t offset, size_t len, const void *op_context);

bool rpma__conn_is_direct_write(const struct rpma_conn *conn);
/*
 * Checks a flush, and logs a failure: E_NOSUPP if the region or the connection
 * does not allow the flush, E_INVAL if the flush is longer than a native flush
 * can be.
 */
int rpma__conn_check_flush(const struct rpma_conn *conn,
			   const struct rpma_mr_remote *dst, size_t len,
			   enum rpma_flush_type type);

#endif /* RPMA_CONN_H */
