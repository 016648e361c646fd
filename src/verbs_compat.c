/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The only file that depends on the version of rdma-core. The build probes
 * for RPMA_HAVE_NATIVE_ATOMIC_WRITE and RPMA_HAVE_NATIVE_FLUSH.
 */

#include "verbs_compat.h"

#include <errno.h>

#include "err.h"
#include "log.h"

#define ODP_RC_NEEDED (IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ)

static bool verbs_has_odp(const struct ibv_device_attr_ex *attr)
{
	const struct ibv_odp_caps *odp = &attr->odp_caps;

	return (odp->general_caps & IBV_ODP_SUPPORT) &&
	       (odp->per_transport_caps.rc_odp_caps & ODP_RC_NEEDED) ==
		       ODP_RC_NEEDED;
}

int rpma__caps_query(struct ibv_context *ibv_ctx, struct rpma__caps *caps)
{
	struct ibv_device_attr_ex attr = {0};
	int ret = ibv_query_device_ex(ibv_ctx, NULL, &attr);

	if (ret) {
		RPMA_LOG_CALL("ibv_query_device_ex", ret);
		return RPMA_E_PROVIDER;
	}

	*caps = (struct rpma__caps){
		.odp = verbs_has_odp(&attr),
		.atomics = attr.orig_attr.atomic_cap != IBV_ATOMIC_NONE,
		.max_srq_sge = (uint32_t)attr.orig_attr.max_srq_sge,
		.max_qp_wr = (uint32_t)attr.orig_attr.max_qp_wr,
		.max_sge = (uint32_t)attr.orig_attr.max_sge,
	};
#ifdef RPMA_HAVE_NATIVE_ATOMIC_WRITE
	caps->native_atomic_write =
		(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_ATOMIC_WRITE) != 0;
#endif
#ifdef RPMA_HAVE_NATIVE_FLUSH
	caps->native_flush =
		(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_GLOBAL) &&
		(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_PERSISTENT);
#endif
	return 0;
}

int rpma__access_flush(enum rpma_flush_type type)
{
#ifdef RPMA_HAVE_NATIVE_FLUSH
	return type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_ACCESS_FLUSH_PERSISTENT
						  : IBV_ACCESS_FLUSH_GLOBAL;
#else
	(void)type;
	return 0;
#endif
}

void rpma__qp_attr_set_ops(const struct rpma__caps *caps,
			   struct ibv_qp_init_attr_ex *attr)
{
	uint64_t ops = 0;

#ifdef RPMA_HAVE_NATIVE_ATOMIC_WRITE
	if (caps->native_atomic_write)
		ops |= IBV_QP_EX_WITH_ATOMIC_WRITE;
#endif
#ifdef RPMA_HAVE_NATIVE_FLUSH
	if (caps->native_flush)
		ops |= IBV_QP_EX_WITH_FLUSH;
#endif
	(void)caps;
	/* many providers refuse the mask bit, so the bit is set only if
	 * needed */
	if (ops == 0)
		return;
	attr->send_ops_flags = ops;
	attr->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
}

bool rpma__qp_has_atomic_write(struct ibv_qp *qp)
{
#ifdef RPMA_HAVE_NATIVE_ATOMIC_WRITE
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	return qpx && qpx->wr_atomic_write;
#else
	(void)qp;
	return false;
#endif
}

bool rpma__qp_has_flush(struct ibv_qp *qp)
{
#ifdef RPMA_HAVE_NATIVE_FLUSH
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	return qpx && qpx->wr_flush;
#else
	(void)qp;
	return false;
#endif
}

enum ibv_wc_opcode rpma__wc_emulated(enum ibv_wc_opcode opcode)
{
#ifdef RPMA_HAVE_NATIVE_ATOMIC_WRITE
	if (opcode == IBV_WC_ATOMIC_WRITE)
		return IBV_WC_RDMA_WRITE;
#endif
#ifdef RPMA_HAVE_NATIVE_FLUSH
	if (opcode == IBV_WC_FLUSH)
		return IBV_WC_RDMA_READ;
#endif
	return opcode;
}

#if defined(RPMA_HAVE_NATIVE_ATOMIC_WRITE) || defined(RPMA_HAVE_NATIVE_FLUSH)

#ifdef RPMA_HAVE_NATIVE_FLUSH
/*
 * Converts the type of a flush; an unknown type requests no placement at all,
 * as in release 1.3.
 */
static uint8_t verbs_flush_type(uint32_t type)
{
	switch (type) {
	case RPMA_FLUSH_TYPE_PERSISTENT:
		return IBV_FLUSH_PERSISTENT;
	case RPMA_FLUSH_TYPE_VISIBILITY:
		return IBV_FLUSH_GLOBAL;
	default:
		return 0;
	}
}
#endif

static void verbs_add_native(struct ibv_qp_ex *qpx,
			     const struct rpma_send_wr *wr)
{
	uint64_t raddr = wr->wr.wr.rdma.remote_addr;
	uint32_t rkey = wr->wr.wr.rdma.rkey;

	qpx->wr_id = wr->wr.wr_id;
	qpx->wr_flags = wr->wr.send_flags;
#ifdef RPMA_HAVE_NATIVE_ATOMIC_WRITE
	if (wr->native == RPMA__NATIVE_ATOMIC_WRITE)
		ibv_wr_atomic_write(qpx, rkey, raddr, &wr->data);
#endif
#ifdef RPMA_HAVE_NATIVE_FLUSH
	if (wr->native == RPMA__NATIVE_FLUSH)
		ibv_wr_flush(qpx, rkey, raddr, wr->sge.length,
			     verbs_flush_type(wr->native_arg), IBV_FLUSH_RANGE);
#endif
}

int rpma__post_native(struct ibv_qp *qp, const struct rpma_send_wr *first,
		      const struct rpma_send_wr *end)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	const struct rpma_send_wr *wr;

	ibv_wr_start(qpx);
	for (wr = first; wr != end;
	     wr = (const struct rpma_send_wr *)wr->wr.next)
		verbs_add_native(qpx, wr);
	return ibv_wr_complete(qpx);
}

#else

int rpma__post_native(struct ibv_qp *qp, const struct rpma_send_wr *first,
		      const struct rpma_send_wr *end)
{
	(void)qp;
	(void)first;
	(void)end;
	return EOPNOTSUPP;
}

#endif
