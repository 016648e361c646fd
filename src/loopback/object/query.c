/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * query.c -- the queries of a device: attributes, port, GIDs, P_Keys. Reads
 * immutable state; any thread.
 */

#include "object/query.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/newer.h"
#include "fault/fault.h"
#include "object/device.h"
#include "object/limits.h"
#include "object/object.h"

/* verbs.h makes it a macro; here it is a function to define */
#undef ibv_query_port

#define PORTS	  1
#define PKEY	  0xffff
#define VENDOR_ID 0x4c42
#define CLOCK_KHZ 1000000 /* nanoseconds */

/* struct ibv_port_attr as the exported ibv_query_port() knows it */
#define OLD_PORT_ATTR offsetof(struct ibv_port_attr, port_cap_flags2)

static void fill_device(const struct lb_device *dev, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof(*a));
	strcpy(a->fw_ver, "1.4.0");
	a->node_guid = dev->guid;
	a->sys_image_guid = dev->guid;
	a->max_mr_size = UINT64_MAX >> 1;
	a->page_size_cap = (uint64_t)sysconf(_SC_PAGESIZE);
	a->vendor_id = VENDOR_ID;
	a->hw_ver = 1;
	a->max_qp = LB_MAX_QP;
	a->max_qp_wr = LB_MAX_QP_WR;
	a->device_cap_flags =
		IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
		IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_MEM_WINDOW |
		IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
		IBV_DEVICE_MEM_MGT_EXTENSIONS;
	a->max_sge = LB_MAX_SGE;
	a->max_sge_rd = LB_MAX_SGE;
	a->max_cq = LB_MAX_CQ;
	a->max_cqe = LB_MAX_CQE;
	a->max_mr = LB_MAX_MR;
	a->max_mw = LB_MAX_MW;
	a->max_ah = LB_MAX_AH;
	a->max_mcast_grp = LB_MAX_MCAST_GRP;
	a->max_mcast_qp_attach = LB_MAX_MCAST_ATTACH;
	a->max_total_mcast_qp_attach = LB_MAX_MCAST_GRP * LB_MAX_MCAST_ATTACH;
	a->max_pd = LB_MAX_PD;
	a->max_qp_rd_atom = LB_MAX_RD_ATOM;
	a->max_qp_init_rd_atom = LB_MAX_RD_ATOM;
	a->max_res_rd_atom = LB_MAX_RD_ATOM * LB_MAX_QP;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_srq = LB_MAX_SRQ;
	a->max_srq_wr = LB_MAX_SRQ_WR;
	a->max_srq_sge = LB_MAX_SGE;
	a->max_pkeys = LB_MAX_PKEYS;
	a->phys_port_cnt = PORTS;
}

LB_EXPORT int ibv_query_device(struct ibv_context *context,
			       struct ibv_device_attr *attr)
{
	int err = lb_fault_errno("ibv_query_device");

	if (!err && !lb_object_check(context, LB_CONTEXT))
		err = EINVAL;
	if (err)
		return lb_error(err);
	fill_device(lb_device_of(context), attr);
	return 0;
}

int lb_query_device_ex(struct ibv_context *context,
		       const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex full;
	int err;

	if ((input && input->comp_mask) || attr_size < sizeof(attr->orig_attr))
		return lb_error(EINVAL);
	memset(&full, 0, sizeof(full));
	err = ibv_query_device(context, &full.orig_attr);
	if (err)
		return err;
	full.phys_port_cnt_ex = PORTS;
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags |
				   LB_CAPS_FLUSH | LB_CAPS_ATOMIC_WRITE;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = CLOCK_KHZ;
	memset(attr, 0, attr_size);
	memcpy(attr, &full,
	       attr_size < sizeof(full) ? attr_size : sizeof(full));
	return 0;
}

/* The clock of the completions' times, in its own units as drivers give it. */
int lb_query_rt_values(struct ibv_context *context,
		       struct ibv_values_ex *values)
{
	bool wanted = values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK;

	if (!lb_object_check(context, LB_CONTEXT))
		return lb_error(EINVAL);
	values->comp_mask = wanted ? IBV_VALUES_MASK_RAW_CLOCK : 0;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = wanted ? (long)lb_clock_now() : 0;
	return 0;
}

int lb_query_port(struct ibv_context *context, uint8_t port_num,
		  struct ibv_port_attr *attr, size_t attr_size)
{
	struct ibv_port_attr full;
	int err = lb_fault_errno("ibv_query_port");

	if (!err &&
	    (port_num != PORTS || !lb_object_check(context, LB_CONTEXT)))
		err = EINVAL;
	if (err)
		return lb_error(err);
	memset(&full, 0, sizeof(full));
	full.state = lb_device_at(lb_device_of(context)->index)
			     ? IBV_PORT_ACTIVE
			     : IBV_PORT_DOWN;
	full.max_mtu = LB_MTU;
	full.active_mtu = LB_MTU;
	full.gid_tbl_len = LB_MAX_GIDS;
	full.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	full.max_msg_sz = LB_MAX_MSG;
	full.pkey_tbl_len = LB_MAX_PKEYS;
	full.max_vl_num = 1;
	full.active_width = 2;	/* 4x */
	full.active_speed = 32; /* EDR */
	full.phys_state = 5;	/* link up */
	full.link_layer = IBV_LINK_LAYER_ETHERNET;
	memset(attr, 0, attr_size);
	memcpy(attr, &full,
	       attr_size < sizeof(full) ? attr_size : sizeof(full));
	return 0;
}

LB_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			     struct _compat_ibv_port_attr *port_attr)
{
	return lb_query_port(context, port_num,
			     (struct ibv_port_attr *)port_attr, OLD_PORT_ATTR);
}

/* --- GIDs and P_Keys */

/* The GID, &lb_gid_none of an empty row; or NULL with errno set. */
static const union ibv_gid *gid_at(struct ibv_context *context,
				   uint32_t port_num, uint32_t index)
{
	if (!lb_object_check(context, LB_CONTEXT))
		return NULL;
	if (port_num != PORTS || index >= LB_MAX_GIDS) {
		errno = EINVAL;
		return NULL;
	}
	lb_gid_refresh();
	return lb_gid_at(lb_device_of(context), (int)index);
}

LB_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num,
			    int index, union ibv_gid *gid)
{
	const union ibv_gid *found = gid_at(context, port_num, (uint32_t)index);

	if (!found)
		return -1;
	*gid = *found;
	return 0;
}

static void fill_entry(struct ibv_gid_entry *entry, const union ibv_gid *gid,
		       uint32_t index)
{
	memset(entry, 0, sizeof(*entry));
	entry->gid = *gid;
	entry->gid_index = index;
	entry->port_num = PORTS;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
}

LB_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
				uint32_t gid_index, struct ibv_gid_entry *entry,
				uint32_t flags, size_t entry_size)
{
	const union ibv_gid *gid;

	if (flags || entry_size < sizeof(*entry))
		return lb_error(EINVAL);
	gid = gid_at(context, port_num, gid_index);
	if (!gid)
		return errno;
	if (gid == &lb_gid_none)
		return lb_error(ENODATA);
	fill_entry(entry, gid, gid_index);
	return 0;
}

LB_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
				       struct ibv_gid_entry *entries,
				       size_t max_entries, uint32_t flags,
				       size_t entry_size)
{
	const struct lb_device *dev;
	size_t n = 0;
	int i;

	if (flags || entry_size < sizeof(*entries))
		return -lb_error(EINVAL);
	if (!lb_object_check(context, LB_CONTEXT))
		return -errno;
	dev = lb_device_of(context);
	lb_gid_refresh();
	for (i = 0; i < LB_MAX_GIDS; i++) {
		const union ibv_gid *gid = lb_gid_at(dev, i);
		void *at = (char *)entries + n * entry_size;

		if (gid == &lb_gid_none)
			continue;
		if (n++ == max_entries)
			return -lb_error(EINVAL);
		fill_entry(at, gid, (uint32_t)i);
	}
	return (ssize_t)n;
}

/*
 * Belongs to a private version of the real library, but its tools call the
 * function.
 */
LB_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
				 unsigned int index, unsigned int *type)
{
	const union ibv_gid *gid = gid_at(context, port_num, index);

	if (!gid)
		return -1;
	if (gid == &lb_gid_none) {
		errno = EINVAL;
		return -1;
	}
	*type = 1; /* RoCE v2, in that private numbering */
	return 0;
}

LB_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num,
			     int index, __be16 *pkey)
{
	if (!lb_object_check(context, LB_CONTEXT))
		return -1;
	if (port_num != PORTS || index < 0 || index >= LB_MAX_PKEYS) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(PKEY);
	return 0;
}

LB_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
				 __be16 pkey)
{
	__be16 have;

	if (!ibv_query_pkey(context, port_num, 0, &have) && have == pkey)
		return 0;
	errno = EINVAL;
	return -1;
}

LB_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
				  size_t size)
{
	(void)dir, (void)file, (void)buf, (void)size;
	errno = ENOENT; /* the device has no files */
	return -1;
}
