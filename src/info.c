/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Address resolution over rdma_getaddrinfo(). No state. */

#include "info.h"

#include "err.h"
#include "log.h"

int rpma__info_get(const char *addr, const char *port,
		   enum rpma__info_side side, struct rdma_addrinfo **info_ptr)
{
	struct rdma_addrinfo hints = {
		.ai_flags = side == RPMA__INFO_PASSIVE ? RAI_PASSIVE : 0,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *info = NULL;

	if (rdma_getaddrinfo(addr, port, &hints, &info)) {
		RPMA_LOG_ERROR("rdma_getaddrinfo(%s, %s) failed: %s", addr,
			       port ? port : "", rpma__errno_2str(-1));
		return RPMA_E_PROVIDER;
	}
	*info_ptr = info;
	return 0;
}

int rpma__info_resolve_addr(const struct rdma_addrinfo *info,
			    struct rdma_cm_id *id, int timeout_ms)
{
	if (rdma_resolve_addr(id, info->ai_src_addr, info->ai_dst_addr,
			      timeout_ms)) {
		RPMA_LOG_CALL("rdma_resolve_addr", -1);
		return RPMA_E_PROVIDER;
	}
	return 0;
}

int rpma__info_bind_addr(const struct rdma_addrinfo *info,
			 struct rdma_cm_id *id)
{
	if (rdma_bind_addr(id, info->ai_src_addr)) {
		RPMA_LOG_CALL("rdma_bind_addr", -1);
		return RPMA_E_PROVIDER;
	}
	return 0;
}
