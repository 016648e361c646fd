/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Shared receive queues. Any thread may post: verbs lock the queue. */

#include "srq.h"

#include <errno.h>
#include <stdlib.h>

#include "cancel.h"
#include "channel.h"
#include "cq.h"
#include "device.h"
#include "err.h"
#include "log.h"
#include "mr_post.h"
#include "peer.h"
#include "post_error.h"
#include "srq_cfg.h"
#include "wr.h"
#include "tsan/tsan.h"

static int srq_create(struct rpma_srq *srq, const struct rpma_peer *peer,
		      const struct rpma__srq_cfg *cfg)
{
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = cfg->rq_size, .max_sge = cfg->max_sge},
	};

	srq->ibv_srq = ibv_create_srq(peer->pd, &attr);
	if (srq->ibv_srq == NULL) {
		RPMA_LOG_ERROR("ibv_create_srq(max_wr %u, max_sge %u) failed: "
			       "%s",
			       cfg->rq_size, cfg->max_sge,
			       rpma__errno_2str(-1));
		return RPMA_E_PROVIDER;
	}
	srq->max_wr = attr.attr.max_wr;
	srq->max_sge = attr.attr.max_sge;
	return 0;
}

static int srq_init_rcq(struct rpma_srq *srq, const struct rpma_peer *peer,
			const struct rpma__srq_cfg *cfg)
{
	struct rpma__cq_attr attr = {
		.ibv_ctx = peer->pd->context,
		.cqe = cfg->rcq_size,
		.channel = cfg->channel,
	};
	int ret;

	if (cfg->rcq) {
		srq->rcq = cfg->rcq;
		return 0;
	}
	if (cfg->rcq_size == 0)
		return 0;

	ret = rpma__cq_new(&attr, &srq->rcq);
	srq->owns_rcq = ret == 0;
	return ret;
}

/*
 * Checks the objects named by the configuration: all must belong to the device
 * of the peer.
 */
static int srq_check_devices(const struct rpma_peer *peer,
			     const struct rpma__srq_cfg *cfg)
{
	const struct ibv_context *ctx = peer->pd->context;
	int ret = 0;

	if (cfg->rcq)
		ret = rpma__device_check("the SRQ", ctx, "the RCQ",
					 cfg->rcq->cq->context);
	if (ret == 0 && cfg->channel)
		ret = rpma__device_check(
			"the SRQ", ctx, "the channel",
			rpma__channel_get_ibv(cfg->channel)->context);
	return ret;
}

/*
 * Checks max_sge, but for 1, which release 1.3 always uses and leaves to the
 * device.
 */
static int srq_check_max_sge(const struct rpma_peer *peer,
			     const struct rpma__srq_cfg *cfg)
{
	if (cfg->max_sge == 1 || cfg->max_sge <= peer->caps.max_srq_sge)
		return 0;
	RPMA_LOG_ERROR("max_sge: 1 to %u for an SRQ on device %s, not %u",
		       peer->caps.max_srq_sge, peer->pd->context->device->name,
		       cfg->max_sge);
	return RPMA_E_INVAL;
}

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg,
		 struct rpma_srq **srq_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma__srq_cfg values;
	struct rpma_srq *srq;
	int ret;

	if (srq_ptr == NULL || !rpma__peer_is_valid(peer))
		return RPMA_REFUSE_NULL(rpma__peer_refusal(peer), "", srq_ptr,
					peer);

	rpma__srq_cfg_read(cfg, &values);
	if ((values.rcq && !rpma__cq_is_valid(values.rcq)) ||
	    (values.channel && !rpma__channel_is_valid(values.channel)))
		return RPMA_E_FORKED;
	ret = srq_check_devices(peer, &values);
	if (ret == 0)
		ret = srq_check_max_sge(peer, &values);
	if (ret)
		return ret;
	srq = calloc(1, sizeof(*srq));
	if (srq == NULL) {
		ret = RPMA_REFUSE_NOMEM("an SRQ");
		goto err_free;
	}
	srq->forks = rpma__forks_now();
	ret = srq_create(srq, peer, &values);
	if (ret)
		goto err_free;
	ret = srq_init_rcq(srq, peer, &values);
	if (ret)
		goto err_destroy_srq;

	*srq_ptr = srq;
	return 0;

err_destroy_srq:
	(void)ibv_destroy_srq(srq->ibv_srq);
err_free:
	free(srq);
	/* written also when there is no memory, as in release 1.3 */
	if (ret == RPMA_E_NOMEM)
		*srq_ptr = NULL;
	return ret;
}

static int srq_destroy(struct rpma_srq *srq)
{
	int ret = 0;
	int err;

	if (srq->owns_rcq)
		ret = rpma__cq_delete(&srq->rcq);
	err = ibv_destroy_srq(srq->ibv_srq);
	if (err) {
		RPMA_LOG_CALL("ibv_destroy_srq", err);
		rpma__err_first(&ret, RPMA_E_PROVIDER);
	}
	return ret;
}

static int srq_abandon(struct rpma_srq *srq)
{
	if (srq->owns_rcq)
		rpma__cq_abandon(&srq->rcq);
	return RPMA_E_FORKED;
}

int rpma_srq_delete(struct rpma_srq **srq_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_srq *srq;
	int ret;

	if (srq_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", srq_ptr);
	srq = *srq_ptr;
	if (srq == NULL)
		return 0;
	if (rpma__is_here(srq->forks) && srq->owns_rcq &&
	    rpma__claim_is_held(&srq->rcq->claim))
		return RPMA_REFUSE(
			RPMA_E_CLAIMED,
			"another owner has claimed the RCQ of the SRQ: release "
			"the claim first"); /* the owner polls */

	ret = rpma__is_here(srq->forks) ? srq_destroy(srq) : srq_abandon(srq);
	free(srq);
	*srq_ptr = NULL;
	return ret;
}

int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst,
		  size_t offset, size_t len, const void *op_context)
{
	struct rpma_recv_wr wr;
	struct ibv_recv_wr *bad_wr;
	int ret;

	if (!rpma__srq_is_valid(srq))
		return RPMA_REFUSE_NULL(rpma__srq_refusal(srq), "", srq);
	ret = rpma__mr_recv_wr(dst, offset, len, (uintptr_t)op_context, &wr);
	if (ret)
		return ret;

	tsan_posts(srq->ibv_srq);
	ret = ibv_post_srq_recv(srq->ibv_srq, &wr.wr, &bad_wr);
	return ret ? rpma__recv_refused("ibv_post_srq_recv", &wr.wr, ret) : 0;
}

int rpma_srq_post_recv(struct rpma_srq *srq, struct rpma_recv_wr *wr,
		       struct rpma_recv_wr **bad_wr)
{
	struct ibv_recv_wr *bad = NULL;
	int ret;

	if (wr == NULL || bad_wr == NULL || !rpma__srq_is_valid(srq))
		ret = RPMA_REFUSE_NULL(rpma__srq_refusal(srq), "", wr, bad_wr,
				       srq);
	else
		ret = rpma__wr_check_recv(wr, srq->max_sge);
	if (ret) {
		if (bad_wr)
			*bad_wr = wr;
		return ret;
	}
	tsan_posts(srq->ibv_srq);
	ret = ibv_post_srq_recv(srq->ibv_srq, &wr->wr, &bad);
	if (ret == 0)
		return 0;
	*bad_wr = bad ? (struct rpma_recv_wr *)bad : wr;
	return rpma__recv_chain_refused("ibv_post_srq_recv", *bad_wr, ret);
}

int rpma_srq_set_limit(struct rpma_srq *srq, uint32_t limit)
{
	RPMA_NOT_CANCELLED;
	struct ibv_srq_attr attr = {.srq_limit = limit};
	int ret;

	if (!rpma__srq_is_valid(srq))
		return RPMA_REFUSE_NULL(rpma__srq_refusal(srq), "", srq);
	if (limit > srq->max_wr) {
		RPMA_LOG_ERROR("limit: 0 to %u, as the SRQ has, not %u",
			       srq->max_wr, limit);
		return RPMA_E_INVAL;
	}
	ret = ibv_modify_srq(srq->ibv_srq, &attr, IBV_SRQ_LIMIT);
	if (ret == 0)
		return 0;
	ret = rpma__err_errno(ret); /* before a log function changes errno */
	RPMA_LOG_ERROR("ibv_modify_srq(srq_limit %u) failed: %s", limit,
		       rpma__errno_2str(ret));
	return ret == EOPNOTSUPP || ret == ENOSYS ? RPMA_E_NOSUPP
						  : RPMA_E_PROVIDER;
}

int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr)
{
	if (rcq_ptr == NULL || !rpma__srq_is_valid(srq))
		return RPMA_REFUSE_NULL(rpma__srq_refusal(srq), "", rcq_ptr,
					srq);

	*rcq_ptr = srq->rcq;
	return 0;
}

int rpma_srq_get_ibv_srq(const struct rpma_srq *srq, struct ibv_srq **ibv_srq)
{
	if (ibv_srq == NULL || !rpma__srq_is_valid(srq))
		return RPMA_REFUSE_NULL(rpma__srq_refusal(srq), "", ibv_srq,
					srq);

	*ibv_srq = srq->ibv_srq;
	return 0;
}
