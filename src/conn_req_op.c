/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Calls on a request before the request becomes a connection: receives, claims,
 * getters, steps of closing. Most call the function of the same name on the
 * future connection.
 */

#include "cancel.h"
#include "conn_req.h"
#include "log.h"

int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst,
		       size_t offset, size_t len, const void *op_context)
{
	if (dst == NULL || !rpma__conn_req_is_valid(req))
		return RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", dst,
					req);
	if (rpma__conn_req_is_resolving(req))
		return RPMA_E_AGAIN;
	return rpma__conn_recv(req->conn, dst, offset, len, op_context);
}

int rpma_conn_req_post_recv(struct rpma_conn_req *req, const void *owner,
			    struct rpma_recv_wr *wr,
			    struct rpma_recv_wr **bad_wr)
{
	int ret;

	if (!rpma__conn_req_is_valid(req))
		ret = RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", req);
	else if (rpma__conn_req_is_resolving(req))
		ret = RPMA_E_AGAIN;
	else
		return rpma_conn_post_recv(req->conn, owner, wr, bad_wr);
	if (bad_wr)
		*bad_wr = wr;
	return ret;
}

int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
				   struct rpma_conn_private_data *pdata)
{
	if (pdata == NULL || !rpma__conn_req_is_valid(req))
		return RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", pdata,
					req);
	return rpma_conn_get_private_data(req->conn, pdata);
}

int rpma_conn_req_get_qp(const struct rpma_conn_req *req, struct ibv_qp **qp)
{
	if (qp == NULL || !rpma__conn_req_is_valid(req))
		return RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", qp,
					req);
	if (rpma__conn_req_is_resolving(req))
		return RPMA_E_AGAIN;
	return rpma_conn_get_qp(req->conn, qp);
}

int rpma_conn_req_get_cm_id(const struct rpma_conn_req *req,
			    struct rdma_cm_id **id)
{
	if (id == NULL || !rpma__conn_req_is_valid(req))
		return RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", id,
					req);

	*id = req->conn->id;
	return 0;
}

int rpma_conn_req_claim(struct rpma_conn_req *req, const void *owner)
{
	if (!rpma__conn_req_is_valid(req))
		return RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", req);
	return rpma_conn_claim(req->conn, owner);
}

int rpma_conn_req_release(struct rpma_conn_req *req, const void *owner)
{
	if (!rpma__conn_req_is_valid(req))
		return RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", req);
	return rpma_conn_release(req->conn, owner);
}

int rpma_conn_req_qp_to_err(struct rpma_conn_req *req, const void *owner)
{
	RPMA_NOT_CANCELLED;
	if (!rpma__conn_req_is_valid(req))
		return RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", req);
	return rpma_conn_qp_to_err(req->conn, owner);
}

int rpma_conn_req_destroy_qp(struct rpma_conn_req *req, const void *owner)
{
	RPMA_NOT_CANCELLED;
	if (!rpma__conn_req_is_valid(req))
		return RPMA_REFUSE_NULL(rpma__conn_req_refusal(req), "", req);
	return rpma_conn_destroy_qp(req->conn, owner);
}
