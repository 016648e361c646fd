/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Connection requests inside the library. */

#ifndef RPMA_CONN_REQ_H
#define RPMA_CONN_REQ_H 1

#include <rdma/rdma_cma.h>

#include "conn.h"
#include "conn_cfg.h"
#include "librpma.h"

enum rpma__conn_req_state {
	RPMA__RESOLVING_ADDR,
	RPMA__RESOLVING_ROUTE,
	RPMA__READY,  /* CQs and QP exist */
	RPMA__FAILED, /* only delete is allowed */
};

struct rpma_conn_req {
	struct rpma_conn *conn;
	struct rpma__conn_cfg cfg;
	bool is_passive;
	enum rpma__conn_req_state state;
};

/* Returns true if req is not NULL and was made in this process. */
static inline bool rpma__conn_req_is_valid(const struct rpma_conn_req *req)
{
	return req && rpma__conn_is_valid(req->conn);
}

/* Returns the error of a call that has refused its arguments. */
static inline int rpma__conn_req_refusal(const struct rpma_conn_req *req)
{
	return rpma__fork_refusal(req ? &req->conn->forks : NULL);
}

/* Returns true if the request has no QP yet. */
static inline bool rpma__conn_req_is_resolving(const struct rpma_conn_req *req)
{
	return req->state == RPMA__RESOLVING_ADDR ||
	       req->state == RPMA__RESOLVING_ROUTE;
}

/* The parameters of a CONNECT_REQUEST. */
struct rpma__request {
	struct rdma_cm_id *id;
	void *context; /* for the id */
	const void *data;
	uint8_t data_len;
};

/*
 * Makes a request from a request of the other side. On failure (E_NOMEM,
 * E_PROVIDER, E_INVAL, logged) the id still belongs to the caller; on E_FORKED
 * the id is untouched.
 */
int rpma__conn_req_from_request(struct rpma_peer *peer,
				const struct rpma__request *request,
				const struct rpma_conn_cfg *cfg,
				struct rpma_conn_req **req_ptr);
/* Refuses the other side and destroys the id. */
void rpma__conn_req_refuse_id(struct rdma_cm_id *id);

#endif /* RPMA_CONN_REQ_H */
