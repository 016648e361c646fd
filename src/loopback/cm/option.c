/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * option.c -- rdma_set_option(), and the calls of librdmacm that this
 * device does not support, which fail with an errno. Any thread.
 */

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "cm/cm.h"
#include "cm/table.h"

/* [lock] */
static int set_reuseaddr(struct lb_cm_id *id, int on)
{
	if (id->state != LB_CM_IDLE && (!on || id->state == LB_CM_LISTEN))
		return EINVAL;
	id->reuseaddr = on;
	return 0;
}

/* [lock] */
static int set_afonly(struct lb_cm_id *id, int on)
{
	if (id->state != LB_CM_IDLE && id->state != LB_CM_BOUND)
		return EINVAL;
	id->afonly = on;
	id->afonly_set = true;
	return 0;
}

/* [lock] 0 or an errno */
static int set_option(struct lb_cm_id *id, int optname, const void *optval,
		      size_t optlen)
{
	size_t want = sizeof(uint8_t);
	int flag = 0;

	if (optname == RDMA_OPTION_ID_REUSEADDR ||
	    optname == RDMA_OPTION_ID_AFONLY)
		want = sizeof(int);
	if (optlen != want)
		return EINVAL;
	if (want == sizeof(int))
		memcpy(&flag, optval, want);
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		id->tos = *(const uint8_t *)optval;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return set_reuseaddr(id, !!flag);
	case RDMA_OPTION_ID_AFONLY:
		return set_afonly(id, !!flag);
	default:
		id->ack_timeout = *(const uint8_t *)optval;
		return 0;
	}
}

LB_EXPORT int rdma_set_option(struct rdma_cm_id *cm_id, int level, int optname,
			      void *optval, size_t optlen)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_set_option", cm_id);
	int err;

	if (!id)
		return -1;
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return lb_cm_leave(cm_id, lb_cm_err(EOPNOTSUPP));
	if (level != RDMA_OPTION_ID || optname < 0 ||
	    optname > RDMA_OPTION_ID_ACK_TIMEOUT)
		return lb_cm_leave(cm_id, lb_cm_err(ENOSYS));
	if (!optval)
		return lb_cm_leave(cm_id, lb_cm_err(EFAULT));
	lb_cm_lock();
	err = id->state == LB_CM_GONE ? ENXIO
				      : set_option(id, optname, optval, optlen);
	lb_cm_unlock();
	return lb_cm_leave(cm_id, err ? lb_cm_err(err) : 0);
}

/* No enhanced connection establishment: there is one vendor here. */

LB_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id;
	(void)ece;
	return lb_cm_err(EOPNOTSUPP);
}

LB_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id;
	(void)ece;
	return lb_cm_err(EOPNOTSUPP);
}
