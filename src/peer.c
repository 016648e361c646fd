/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The peer object: protection domain, capabilities, access flags. */

#include "peer.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "cancel.h"
#include "err.h"
#include "log.h"
#include "mr.h"

static int peer_flush_access(const struct rpma_peer *peer,
			     enum rpma_flush_type type)
{
	/*
	 * The other side may flush natively or by a read, and this side cannot
	 * know which, so a flush by read is always allowed.
	 */
	int access = IBV_ACCESS_REMOTE_READ;

	if (peer->caps.native_flush)
		access |= rpma__access_flush(type);
	return access;
}

static bool peer_is_iwarp(const struct rpma_peer *peer)
{
	return peer->pd->context->device->transport_type == IBV_TRANSPORT_IWARP;
}

static int peer_usage_to_access(const struct rpma_peer *peer, int usage)
{
	int access = 0;

	if (usage & RPMA_MR_USAGE_READ_SRC)
		access |= IBV_ACCESS_REMOTE_READ;
	if (usage & RPMA_MR_USAGE_READ_DST) {
		access |= IBV_ACCESS_LOCAL_WRITE;
		/* the response to a read is a remote write there */
		if (peer_is_iwarp(peer))
			access |= IBV_ACCESS_REMOTE_WRITE;
	}
	if (usage & (RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_RECV))
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (usage & RPMA_MR_USAGE_WRITE_DST)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	if (usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)
		access |= peer_flush_access(peer, RPMA_FLUSH_TYPE_VISIBILITY);
	if (usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
		access |= peer_flush_access(peer, RPMA_FLUSH_TYPE_PERSISTENT);
	if (usage & RPMA__MR_USAGE_ATOMIC_BIT)
		access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	return access;
}

bool rpma__peer_has_atomics(const struct rpma_peer *peer)
{
	if (!peer->caps.atomics)
		RPMA_LOG_ERROR("device %s has no remote atomics",
			       peer->pd->context->device->name);
	return peer->caps.atomics;
}

/* Returns true if the limit may be the reason: the kernel fails with ENOMEM at
 * the limit, and with EPERM if the limit is 0; both errors have other reasons
 * as well. */
static bool peer_may_be_limit(int err, const struct rlimit *limit)
{
	return limit->rlim_cur == 0
		       ? err == ENOMEM || err == EPERM
		       : err == ENOMEM && limit->rlim_cur != RLIM_INFINITY;
}

static void peer_log_reg_failed(size_t size, int access)
{
	int err = errno;
	const char *text = rpma__errno_2str(-1);
	struct rlimit limit;

	if (err == EINVAL &&
	    (access & rpma__access_flush(RPMA_FLUSH_TYPE_PERSISTENT)))
		RPMA_LOG_ERROR("ibv_reg_mr(size %zu, access 0x%x) failed: %s: "
			       "a device that flushes itself may take only "
			       "persistent memory for "
			       "RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT; register "
			       "such memory, or leave the usage out",
			       size, (unsigned)access, text);
	else if (getrlimit(RLIMIT_MEMLOCK, &limit) ||
		 !peer_may_be_limit(err, &limit))
		RPMA_LOG_ERROR("ibv_reg_mr(size %zu, access 0x%x) failed: %s",
			       size, (unsigned)access, text);
	else
		RPMA_LOG_ERROR("ibv_reg_mr(size %zu, access 0x%x) failed: %s: "
			       "this process may lock %ju KiB; raise that "
			       "(ulimit -l, LimitMEMLOCK= of systemd, --ulimit "
			       "memlock= of a container), or give it "
			       "CAP_IPC_LOCK",
			       size, (unsigned)access, text,
			       (uintmax_t)limit.rlim_cur / 1024);
}

int rpma__peer_reg_mr(const struct rpma_peer *peer, void *ptr, size_t size,
		      int usage, struct ibv_mr **ibv_mr_ptr)
{
	int access = peer_usage_to_access(peer, usage);
	struct ibv_mr *mr;

	if ((access & IBV_ACCESS_REMOTE_ATOMIC) &&
	    !rpma__peer_has_atomics(peer))
		return RPMA_E_NOSUPP;
	mr = ibv_reg_mr(peer->pd, ptr, size, access);
	/* files of a DAX file system cannot be pinned */
	if (mr == NULL && errno == EOPNOTSUPP && peer->caps.odp) {
		access |= IBV_ACCESS_ON_DEMAND;
		mr = ibv_reg_mr(peer->pd, ptr, size, access);
	}
	if (mr == NULL) {
		peer_log_reg_failed(size, access);
		return RPMA_E_PROVIDER;
	}
	*ibv_mr_ptr = mr;
	return 0;
}

static void peer_log_emulated(const struct rpma__caps *caps)
{
	if (!caps->native_atomic_write)
		RPMA_LOG_INFO(
			"no native atomic write: atomic writes are emulated");
	if (!caps->native_flush)
		RPMA_LOG_INFO("no native flush: flushes are emulated");
}

static int peer_alloc_pd(struct ibv_context *ibv_ctx, struct ibv_pd **pd_ptr)
{
	struct ibv_pd *pd;

	errno = 0;
	pd = ibv_alloc_pd(ibv_ctx);
	if (pd) {
		*pd_ptr = pd;
		return 0;
	}
	if (errno == ENOMEM)
		return RPMA_REFUSE_NOMEM("a protection domain");
	if (errno == 0) {
		RPMA_LOG_ERROR("ibv_alloc_pd() failed and did not say why");
		return RPMA_E_UNKNOWN;
	}
	RPMA_LOG_CALL("ibv_alloc_pd", -1);
	return RPMA_E_PROVIDER;
}

static int peer_dealloc_pd(struct ibv_pd *pd)
{
	int ret = ibv_dealloc_pd(pd);

	if (ret) {
		RPMA_LOG_ERROR(
			"ibv_dealloc_pd() failed: %s%s", rpma__errno_2str(ret),
			ret == EBUSY ? ": delete regions, connections, "
				       "requests and SRQs of the peer first"
				     : "");
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma__caps caps;
	struct rpma_peer *peer;
	struct ibv_pd *pd;
	int ret;

	if (ibv_ctx == NULL || peer_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", ibv_ctx, peer_ptr);

	ret = rpma__caps_query(ibv_ctx, &caps);
	if (ret)
		return ret;
	peer_log_emulated(&caps);
	ret = peer_alloc_pd(ibv_ctx, &pd);
	if (ret)
		return ret;
	peer = malloc(sizeof(*peer));
	if (peer == NULL) {
		ret = RPMA_REFUSE_NOMEM("a peer");
		goto err_dealloc_pd;
	}

	*peer = (struct rpma_peer){
		.pd = pd,
		.caps = caps,
		.forks = rpma__forks_now(),
	};
	*peer_ptr = peer;
	return 0;

err_dealloc_pd:
	(void)ibv_dealloc_pd(pd);
	return ret;
}

int rpma_peer_delete(struct rpma_peer **peer_ptr)
{
	RPMA_NOT_CANCELLED;
	struct rpma_peer *peer;
	int ret;

	if (peer_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", peer_ptr);
	peer = *peer_ptr;
	if (peer == NULL)
		return 0;

	if (rpma__is_here(peer->forks))
		ret = peer_dealloc_pd(peer->pd);
	else
		ret = RPMA_E_FORKED;
	free(peer);
	*peer_ptr = NULL;
	return ret;
}

int rpma_peer_get_ibv_pd(const struct rpma_peer *peer, struct ibv_pd **ibv_pd)
{
	if (ibv_pd == NULL || !rpma__peer_is_valid(peer))
		return RPMA_REFUSE_NULL(rpma__peer_refusal(peer), "", ibv_pd,
					peer);

	*ibv_pd = peer->pd;
	return 0;
}

int rpma_peer_get_ibv_context(const struct rpma_peer *peer,
			      struct ibv_context **ibv_ctx)
{
	if (ibv_ctx == NULL || !rpma__peer_is_valid(peer))
		return RPMA_REFUSE_NULL(rpma__peer_refusal(peer), "", ibv_ctx,
					peer);

	*ibv_ctx = peer->pd->context;
	return 0;
}
