/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The made-up shared receive queue, and memory; see rt_fake.h. */

#include "rt_fake.h"

#include "srq/srq.h"

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg,
		 struct rpma_srq **srq_ptr)
{
	int ret = fake_enter("srq_new");
	uint32_t rcq_size;

	(void)peer;
	rpma_srq_cfg_get_rcq_size(cfg, &rcq_size);
	assert_int_equal(rcq_size, 0);
	if (ret)
		return ret;
	*srq_ptr = fake_object_new(sizeof(**srq_ptr));
	(*srq_ptr)->ibv.context = &fake_ctx;
	rpma_srq_cfg_get_max_sge(cfg, &(*srq_ptr)->max_sge);
	return 0;
}

int rpma_srq_delete(struct rpma_srq **srq_ptr)
{
	int ret = fake_enter("srq_delete");

	fake_object_free(*srq_ptr);
	*srq_ptr = NULL;
	return ret;
}

int rpma_srq_get_ibv_srq(const struct rpma_srq *srq, struct ibv_srq **ibv_srq)
{
	*ibv_srq = (struct ibv_srq *)(uintptr_t)&srq->ibv;
	return 0;
}

void (*fake_srq_posted)(void);

static int take_chain(struct rpma_srq *srq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr)
{
	int err;

	for (; wr != NULL; wr = wr->next) {
		err = fake_failing("srq_post");
		*bad_wr = wr;
		if (err)
			return err;
		assert_true(srq->count < FAKE_QUEUE);
		srq->posted[srq->count++] = wr->wr_id;
	}
	return 0;
}

int fake_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	int ret = take_chain((struct rpma_srq *)ibv_srq, wr, bad_wr);

	if (fake_srq_posted != NULL)
		fake_srq_posted();
	return ret;
}

int ibv_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr, int mask)
{
	int ret = fake_enter("modify_srq");

	assert_int_equal(mask, IBV_SRQ_LIMIT);
	if (ret == 0)
		((struct rpma_srq *)ibv_srq)->limit = attr->srq_limit;
	return ret;
}

void fake_srq_wc(const struct rpma_rt_conn *conn, const struct rpma_rt_srq *srq,
		 uint32_t index, enum ibv_wc_status status)
{
	assert_true(index < srq->srq->count);
	fake_wc(conn->cq, srq->srq->posted[index], status,
		status == IBV_WC_SUCCESS ? IBV_WC_RECV : IBV_WC_DRIVER1,
		conn->qp_num);
}

void fake_srq_limit(struct rpma_rt_srq *srq)
{
	srq->async.event(&srq->async, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/* --------------------------------------------------------------- memory --- */

struct rpma_mr_local {
	struct rpma_mr_local_head head;
};

static struct ibv_mr fake_ibv_mr = {.lkey = FAKE_LKEY};

int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr)
{
	int ret = fake_enter("mr_reg");

	(void)peer;
	(void)size;
	assert_true(usage & RPMA_MR_USAGE_RECV);
	assert_true(usage & RPMA_MR_USAGE_SEND);
	if (ret)
		return ret;
	*mr_ptr = fake_object_new(sizeof(**mr_ptr));
	(*mr_ptr)->head = (struct rpma_mr_local_head){.ibv_mr = &fake_ibv_mr,
						      .addr = (uintptr_t)ptr};
	return 0;
}

int rpma_mr_dereg(struct rpma_mr_local **mr_ptr)
{
	int ret;

	if (*mr_ptr == NULL)
		return 0;
	ret = fake_enter("mr_dereg");
	fake_object_free(*mr_ptr);
	*mr_ptr = NULL;
	return ret;
}
