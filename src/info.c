/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Address resolution over rdma_getaddrinfo(). No state. */

#include "info.h"

#include <errno.h>
#include <netdb.h>

#include "err.h"
#include "log.h"

/* Returns the text of an error of rdma_getaddrinfo(): the resolver has its own
 * errors; -1 and EAI_SYSTEM have set errno. */
static const char *info_error_2str(int ret)
{
	return ret == -1 || ret == EAI_SYSTEM ? rpma__errno_2str(-1)
					      : gai_strerror(ret);
}

/* Returns the errno nearest to an error of the resolver. */
static int info_error_errno(int ret)
{
	switch (ret) {
	case -1:
	case EAI_SYSTEM:
		return errno;
	case EAI_MEMORY:
		return ENOMEM;
	case EAI_AGAIN:
		return EAGAIN;
	default:
		return EINVAL;
	}
}

int rpma__info_get(const char *addr, const char *port,
		   enum rpma__info_side side, struct rdma_addrinfo **info_ptr)
{
	struct rdma_addrinfo hints = {
		.ai_flags = side == RPMA__INFO_PASSIVE ? RAI_PASSIVE : 0,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *info = NULL;
	int ret = rdma_getaddrinfo(addr, port, &hints, &info);

	if (ret) {
		RPMA_LOG_ERROR("rdma_getaddrinfo(%s, %s) failed: %s%s", addr,
			       port ? port : "", info_error_2str(ret),
			       ret == -1 ? rpma__cm_advice() : "");
		errno = info_error_errno(ret);
		return RPMA_E_PROVIDER;
	}
	*info_ptr = info;
	return 0;
}

void rpma__info_free(struct rdma_addrinfo *info)
{
	int err = errno; /* the caller may have failed */

	rdma_freeaddrinfo(info);
	errno = err;
}

int rpma__info_resolve_addr(const struct rdma_addrinfo *info,
			    struct rdma_cm_id *id, int timeout_ms)
{
	if (rdma_resolve_addr(id, info->ai_src_addr, info->ai_dst_addr,
			      timeout_ms)) {
		RPMA_LOG_ADDR_CALL("rdma_resolve_addr");
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma__info_bind_addr(const struct rdma_addrinfo *info,
			 struct rdma_cm_id *id)
{
	if (rdma_bind_addr(id, info->ai_src_addr)) {
		RPMA_LOG_ADDR_CALL("rdma_bind_addr");
		return RPMA_E_PROVIDER;
	}
	return 0;
}
