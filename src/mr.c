/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Registering memory, and reading the properties of regions. */

#include "mr.h"

#include <errno.h>
#include <stdlib.h>

#include "cancel.h"
#include "err.h"
#include "log.h"
#include "peer.h"

#define USAGE_ALL 0x1ff

static bool mr_is_valid_usage(int usage)
{
	if (usage == 0 || (usage & ~USAGE_ALL))
		return false;
	/* a descriptor has no bit for atomics, only the bit for reading */
	return !(usage & RPMA__MR_USAGE_ATOMIC_BIT) ||
	       (usage & RPMA_MR_USAGE_READ_SRC);
}

int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_mr_local *mr;
	int ret;

	if (peer == NULL || ptr == NULL || size == 0 || mr_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "size is 0", peer, ptr,
					mr_ptr);
	if (!rpma__peer_is_valid(peer))
		return RPMA_REFUSE_NULL(rpma__peer_refusal(peer), "", peer);
	if (!mr_is_valid_usage(usage))
		return RPMA_REFUSE(RPMA_E_INVAL,
				   "usage has no RPMA_MR_USAGE_* bit, or an "
				   "unknown bit");

	mr = malloc(sizeof(*mr));
	if (mr == NULL)
		return RPMA_REFUSE_NOMEM("a region");
	ret = rpma__peer_reg_mr(peer, ptr, size, usage, &mr->ibv_mr);
	if (ret)
		goto err_free;

	mr->addr = (uintptr_t)mr->ibv_mr->addr;
	mr->is_callers = false;
	mr->usage = usage;
	mr->forks = rpma__forks_now();
	*mr_ptr = mr;
	return 0;

err_free:
	free(mr);
	return ret;
}

int rpma_mr_from_ibv_mr(struct rpma_peer *peer, struct ibv_mr *ibv_mr,
			uint64_t iova, int usage, struct rpma_mr_local **mr_ptr)
{
	struct rpma_mr_local *mr;

	if (ibv_mr == NULL || mr_ptr == NULL || !rpma__peer_is_valid(peer))
		return RPMA_REFUSE_NULL(rpma__peer_refusal(peer), "", ibv_mr,
					mr_ptr, peer);
	if (!mr_is_valid_usage(usage))
		return RPMA_REFUSE(RPMA_E_INVAL,
				   "usage has no RPMA_MR_USAGE_* bit, or an "
				   "unknown bit");
	if (ibv_mr->pd != peer->pd) {
		RPMA_LOG_ERROR("the region is of another protection domain "
			       "than the peer's: see rpma_peer_get_ibv_pd()");
		return RPMA_E_INVAL;
	}

	mr = malloc(sizeof(*mr));
	if (mr == NULL)
		return RPMA_REFUSE_NOMEM("a region");
	*mr = (struct rpma_mr_local){
		.ibv_mr = ibv_mr,
		.addr = iova,
		.is_callers = true,
		.usage = usage,
		.forks = rpma__forks_now(),
	};
	*mr_ptr = mr;
	return 0;
}

static int mr_dereg(const struct rpma_mr_local *mr)
{
	int ret;

	if (mr->is_callers)
		return 0;
	ret = ibv_dereg_mr(mr->ibv_mr);
	if (ret) {
		RPMA_LOG_CALL("ibv_dereg_mr", ret);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma_mr_dereg(struct rpma_mr_local **mr_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_mr_local *mr;
	int ret;

	if (mr_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", mr_ptr);
	mr = *mr_ptr;
	if (mr == NULL)
		return 0;

	if (rpma__is_here(mr->forks))
		ret = mr_dereg(mr);
	else
		ret = RPMA_E_FORKED;
	free(mr);
	*mr_ptr = NULL;
	return ret;
}

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr)
{
	if (ptr == NULL || !rpma__mr_is_valid(mr))
		return RPMA_REFUSE_NULL(rpma__mr_refusal(mr), "", ptr, mr);

	*ptr = mr->ibv_mr->addr;
	return 0;
}

int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size)
{
	if (size == NULL || !rpma__mr_is_valid(mr))
		return RPMA_REFUSE_NULL(rpma__mr_refusal(mr), "", size, mr);

	*size = mr->ibv_mr->length;
	return 0;
}

int rpma_mr_get_lkey(const struct rpma_mr_local *mr, uint32_t *lkey)
{
	if (lkey == NULL || !rpma__mr_is_valid(mr))
		return RPMA_REFUSE_NULL(rpma__mr_refusal(mr), "", lkey, mr);

	*lkey = mr->ibv_mr->lkey;
	return 0;
}

int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len,
		   int advice, uint32_t flags)
{
	struct ibv_sge sge;
	int ret;

	if (!rpma__mr_is_valid(mr))
		return RPMA_REFUSE_NULL(rpma__mr_refusal(mr), "", mr);

	sge = (struct ibv_sge){
		.addr = mr->addr + offset,
		.length = (uint32_t)len,
		.lkey = mr->ibv_mr->lkey,
	};
	ret = ibv_advise_mr(mr->ibv_mr->pd, advice, flags, &sge, 1);
	if (ret == 0)
		return 0;

	RPMA_LOG_CALL("ibv_advise_mr", ret);
	switch (ret) {
	case EOPNOTSUPP:
#if ENOTSUP != EOPNOTSUPP
	case ENOTSUP:
#endif
		return RPMA_E_NOSUPP;
	case EFAULT:
	case EINVAL:
		return RPMA_E_INVAL;
	default:
		return RPMA_E_PROVIDER;
	}
}
