/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A connection, from the moment its request has a CM id: a request holds a
 * connection that is not open yet. The connection owns the id, its QP, the CQs
 * it made and their channel. Life:
 *
 *	new    the id is taken
 *	make   CQs and QP exist: receives may be posted
 *	open   its CM events arrive where they will be read; it can flush
 *	delete everything goes, whatever of the above was reached
 */

#ifndef RPMA_CONN_H
#define RPMA_CONN_H 1

#include <rdma/rdma_cma.h>

#include "claim.h"
#include "conn_cfg.h"
#include "flush.h"
#include "fork.h"
#include "librpma.h"

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

	/* one of the two, once open */
	struct rdma_event_channel *evch;
	struct rpma_cm_channel *cm_channel; /* counted */

	/* written by the thread that handles the event that brings it */
	struct rpma_conn_private_data data;
	bool had_event;
	int event_status; /* of the last event */
};

/* True: not NULL, and made in this process. */
static inline bool rpma__conn_is_valid(const struct rpma_conn *conn)
{
	return conn && rpma__is_here(conn->forks);
}

/* The error of a call that has refused its arguments. */
static inline int rpma__conn_refusal(const struct rpma_conn *conn)
{
	return rpma__fork_refusal(conn ? &conn->forks : NULL);
}

/* Takes the id, counts it on the CM channel. E_NOMEM: nothing is taken. */
int rpma__conn_new(struct rpma_peer *peer, struct rdma_cm_id *id,
		   struct rpma_cm_channel *cm_channel,
		   struct rpma_conn **conn_ptr);
/* E_NOMEM, E_PROVIDER, E_INVAL (the cfg contradicts itself): nothing made. */
int rpma__conn_make(struct rpma_conn *conn, const struct rpma__conn_cfg *cfg);
/* E_NOMEM, E_PROVIDER; delete is all that may follow a failure. */
int rpma__conn_open(struct rpma_conn *conn);

/* The private data with which a deleted request refuses the other side. */
struct rpma__refusal {
	const void *ptr; /* private data */
	uint8_t len;
};

/*
 * refusal NULL: there is nobody to refuse. Returns the first error; nothing of
 * the connection is left either way.
 */
int rpma__conn_delete(struct rpma_conn **conn_ptr,
		      const struct rpma__refusal *refusal);
/* A connection of another process: frees the memory, and nothing else. */
void rpma__conn_abandon(struct rpma_conn **conn_ptr);
/* Undoes new: leaves the id to the caller, frees the connection's memory. */
void rpma__conn_forget(struct rpma_conn **conn_ptr);

/* QP into the error state, QP destroyed. Without a QP: 0. */
int rpma__conn_qp_to_err(struct rpma_conn *conn);
void rpma__conn_destroy_qp(struct rpma_conn *conn);

/*
 * The timer of the configuration, once the QP can send. If that fails the
 * connection works with the timer it has, and a warning is logged.
 */
void rpma__conn_apply_rnr_timer(struct rpma_conn *conn);

/* Posts one work request; checks the claim, and that there is a QP. */
int rpma__conn_send(struct rpma_conn *conn, struct rpma_send_wr *wr);
int rpma__conn_recv(struct rpma_conn *conn, struct rpma_mr_local *dst,
		    size_t offset, size_t len, const void *op_context);

bool rpma__conn_is_direct_write(const struct rpma_conn *conn);
/*
 * Logged: E_NOSUPP, the region or the connection does not allow the flush;
 * E_INVAL, it is longer than a native one can be.
 */
int rpma__conn_check_flush(const struct rpma_conn *conn,
			   const struct rpma_mr_remote *dst, size_t len,
			   enum rpma_flush_type type);

#endif /* RPMA_CONN_H */
