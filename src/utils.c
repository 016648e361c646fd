/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Finds the device of an address (local, or on the way to a remote address),
 * reads capabilities of a device, and names events. No state.
 */

#include "cancel.h"
#include "librpma.h"

#include "info.h"
#include "log.h"
#include "err.h"
#include "verbs_compat.h"

/* Binds or resolves an id only to learn the device of the id. */
static int utils_find_device(const struct rdma_addrinfo *info,
			     enum rpma_util_ibv_context_type type,
			     struct ibv_context **ibv_ctx_ptr)
{
	struct rdma_cm_id *id;
	int ret;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) {
		RPMA_LOG_CM_CALL("rdma_create_id");
		return RPMA_E_PROVIDER;
	}

	if (type == RPMA_UTIL_IBV_CONTEXT_LOCAL)
		ret = rpma__info_bind_addr(info, id);
	else
		ret = rpma__info_resolve_addr(info, id,
					      RPMA_DEFAULT_TIMEOUT_MS);
	if (ret == 0)
		*ibv_ctx_ptr = id->verbs;
	(void)rdma_destroy_id(id);
	return ret;
}

int rpma_utils_get_ibv_context(const char *addr,
			       enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr)
{
	RPMA_NOT_CANCELLED;
	enum rpma__info_side side = RPMA__INFO_ACTIVE;
	struct rdma_addrinfo *info;
	int ret;

	if (addr == NULL || ibv_ctx_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", addr, ibv_ctx_ptr);
	if (type != RPMA_UTIL_IBV_CONTEXT_LOCAL &&
	    type != RPMA_UTIL_IBV_CONTEXT_REMOTE)
		return RPMA_REFUSE(
			RPMA_E_INVAL,
			"type is not in enum rpma_util_ibv_context_type");

	if (type == RPMA_UTIL_IBV_CONTEXT_LOCAL)
		side = RPMA__INFO_PASSIVE;
	ret = rpma__info_get(addr, NULL, side, &info);
	if (ret)
		return ret;

	ret = utils_find_device(info, type, ibv_ctx_ptr);
	rpma__info_free(info);
	return ret;
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx,
					  int *is_odp_capable)
{
	struct rpma__caps caps;
	int ret;

	if (ibv_ctx == NULL || is_odp_capable == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", ibv_ctx,
					is_odp_capable);

	/* release 1.3 sets 0 here also on failure */
	*is_odp_capable = 0;
	ret = rpma__caps_query(ibv_ctx, &caps);
	if (ret)
		return ret;
	*is_odp_capable = caps.odp;
	return 0;
}

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event)
{
	switch (conn_event) {
	case RPMA_CONN_UNDEFINED:
		return "Undefined connection event";
	case RPMA_CONN_ESTABLISHED:
		return "Connection established";
	case RPMA_CONN_CLOSED:
		return "Connection closed";
	case RPMA_CONN_LOST:
		return "Connection lost";
	case RPMA_CONN_REJECTED:
		return "Connection rejected";
	case RPMA_CONN_UNREACHABLE:
		return "Connection unreachable";
	default:
		return "Unsupported connection event";
	}
}
