/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Getters of a connection, its claim, and the steps of closing that the owner
 * of the claim may do separately.
 */

#include "cancel.h"
#include "conn.h"
#include "log.h"

int rpma_conn_get_private_data(const struct rpma_conn *conn,
			       struct rpma_conn_private_data *pdata)
{
	if (pdata == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", pdata,
					conn);

	rpma__private_data_get(&conn->data, pdata);
	return 0;
}

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn,
				    const struct rpma_peer_cfg *pcfg)
{
	RPMA_NOT_CANCELLED;
	bool direct_write;
	int ret;

	if (!rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", conn);
	/* refuses NULL */
	ret = rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct_write);
	if (ret)
		return ret;
	/* relaxed: a flag by itself */
	atomic_store_explicit(&conn->direct_write_to_pmem, direct_write,
			      memory_order_relaxed);
	return 0;
}

int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num)
{
	if (qp_num == NULL || !rpma__conn_is_valid(conn) ||
	    conn->id->qp == NULL)
		return RPMA_REFUSE_NULL(
			rpma__conn_refusal(conn),
			"the connection has no queue pair any more", qp_num,
			conn);

	*qp_num = conn->id->qp->qp_num;
	return 0;
}

int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr)
{
	if (cq_ptr == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", cq_ptr,
					conn);

	*cq_ptr = conn->cq;
	return 0;
}

int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr)
{
	if (rcq_ptr == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", rcq_ptr,
					conn);

	*rcq_ptr = conn->rcq;
	return 0;
}

int rpma_conn_get_qp(const struct rpma_conn *conn, struct ibv_qp **qp)
{
	if (qp == NULL || !rpma__conn_is_valid(conn) || conn->id->qp == NULL)
		return RPMA_REFUSE_NULL(
			rpma__conn_refusal(conn),
			"the connection has no queue pair any more", qp, conn);

	*qp = conn->id->qp;
	return 0;
}

int rpma_conn_get_cm_id(const struct rpma_conn *conn, struct rdma_cm_id **id)
{
	if (id == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", id, conn);

	*id = conn->id;
	return 0;
}

int rpma_conn_claim(struct rpma_conn *conn, const void *owner)
{
	if (owner == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", owner,
					conn);
	return rpma__claim_take(&conn->claim, owner);
}

int rpma_conn_release(struct rpma_conn *conn, const void *owner)
{
	if (owner == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", owner,
					conn);
	return rpma__claim_drop(&conn->claim, owner);
}

int rpma_conn_qp_to_err(struct rpma_conn *conn, const void *owner)
{
	RPMA_NOT_CANCELLED;
	int ret;

	if (!rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", conn);
	ret = rpma__claim_check(&conn->claim, owner);
	return ret ? ret : rpma__conn_qp_to_err(conn);
}

int rpma_conn_destroy_qp(struct rpma_conn *conn, const void *owner)
{
	RPMA_NOT_CANCELLED;
	int ret;

	if (!rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", conn);
	ret = rpma__claim_check(&conn->claim, owner);
	if (ret == 0)
		rpma__conn_destroy_qp(conn);
	return ret;
}
