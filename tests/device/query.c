/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The queries of a device: the list, its limits, port, GIDs and P_Keys, and
 * that queries of ports and indexes that it does not have are refused.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "wire.h"

FX_TEST(device_list__counts_its_devices)
{
	int n = -1;
	int counted = 0;
	bool found = false;
	struct ibv_device **list = ibv_get_device_list(&n);

	assert_non_null(list);
	for (; list[counted]; ++counted)
		found |= !strcmp(ibv_get_device_name(list[counted]),
				 ibv_get_device_name(dut.verbs->device));
	ibv_free_device_list(list);
	assert_int_equal(counted, n);
	assert_true(found);
}

FX_TEST(device__outlives_the_list)
{
	char name[IBV_SYSFS_NAME_MAX];
	struct ibv_context *verbs = fx_context();

	snprintf(name, sizeof(name), "%s", ibv_get_device_name(verbs->device));
	ibv_free_device_list(ibv_get_device_list(NULL));
	assert_string_equal(ibv_get_device_name(verbs->device), name);
}

FX_TEST(open_device__twice_gives_two_contexts)
{
	struct ibv_context *one = fx_context();
	struct ibv_context *two = fx_context();
	struct ibv_pd *pd;

	assert_ptr_not_equal(one, two);
	assert_int_not_equal(one->async_fd, two->async_fd);
	assert_int_equal(fx_destroy(one), 0);
	pd = ibv_alloc_pd(two);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

FX_TEST(device__has_name_type_and_guid)
{
	struct ibv_device *dev = dut.verbs->device;

	assert_true(strlen(ibv_get_device_name(dev)) > 0);
	assert_int_equal(dev->node_type, IBV_NODE_CA);
	assert_int_equal(dev->transport_type, IBV_TRANSPORT_IB);
	assert_true(ibv_get_device_guid(dev) == dut.attr.node_guid);
}

FX_TEST(query_device__limits_are_positive)
{
	const struct ibv_device_attr *a = &dut.attr;

	assert_true(a->phys_port_cnt >= 1);
	assert_true(a->max_mr_size > FX_BUF);
	assert_true(a->max_qp > 1);
	assert_true(a->max_qp_wr >= 16);
	assert_true(a->max_sge >= 1);
	assert_true(a->max_cq > 1);
	assert_true(a->max_cqe >= 32);
	assert_true(a->max_mr > 1);
	assert_true(a->max_pd > 1);
	assert_true(a->max_qp_rd_atom >= 1);
	assert_true(a->max_qp_init_rd_atom >= 1);
	assert_true(a->max_srq >= 1);
	assert_true(a->max_srq_wr >= 16);
	assert_true(a->max_srq_sge >= 1);
	assert_true(a->max_pkeys >= 1);
	assert_int_not_equal(a->atomic_cap, IBV_ATOMIC_NONE);
	assert_true(dut.verbs->num_comp_vectors >= 1);
}

FX_TEST(query_device_ex__agrees_with_query_device)
{
	struct ibv_device_attr_ex ex;

	memset(&ex, 0, sizeof(ex));
	assert_int_equal(ibv_query_device_ex(dut.verbs, NULL, &ex), 0);
	assert_int_equal(ex.orig_attr.max_qp, dut.attr.max_qp);
	assert_int_equal(ex.orig_attr.max_qp_wr, dut.attr.max_qp_wr);
	assert_int_equal(ex.orig_attr.max_cqe, dut.attr.max_cqe);
	assert_int_equal(ex.orig_attr.max_mr, dut.attr.max_mr);
	assert_int_equal(ex.orig_attr.atomic_cap, dut.attr.atomic_cap);
	assert_string_equal(ex.orig_attr.fw_ver, dut.attr.fw_ver);
}

FX_TEST(query_device_ex__has_no_extended_atomics)
{
	struct ibv_device_attr_ex ex;

	memset(&ex, 0, sizeof(ex));
	assert_int_equal(ibv_query_device_ex(dut.verbs, NULL, &ex), 0);
	assert_int_equal(ex.pci_atomic_caps.fetch_add, 0);
	assert_int_equal(ex.pci_atomic_caps.swap, 0);
	assert_int_equal(ex.pci_atomic_caps.compare_swap, 0);
}

FX_TEST(query_port__is_active_ethernet)
{
	assert_int_equal(dut.port.state, IBV_PORT_ACTIVE);
	assert_int_equal(dut.port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(dut.port.gid_tbl_len >= 1);
	assert_true(dut.port.pkey_tbl_len >= 1);
	assert_true(dut.port.active_mtu >= IBV_MTU_256);
	assert_true(dut.port.active_mtu <= dut.port.max_mtu);
	assert_true(dut.port.max_msg_sz >= 1u << 20);
}

FX_TEST(query_port__no_such_port_EINVAL)
{
	struct ibv_port_attr attr;
	uint8_t beyond = (uint8_t)(dut.attr.phys_port_cnt + 1);

	assert_int_equal(ibv_query_port(dut.verbs, 0, &attr), EINVAL);
	assert_int_equal(ibv_query_port(dut.verbs, beyond, &attr), EINVAL);
}

FX_TEST(query_gid__is_the_address)
{
	union ibv_gid gid;
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid(dut.verbs, 1, dut.gid_index, &gid), 0);
	assert_memory_equal(gid.raw, dut.gid.raw, sizeof(gid.raw));
	assert_int_equal(
		ibv_query_gid_ex(dut.verbs, 1, dut.gid_index, &entry, 0), 0);
	assert_memory_equal(entry.gid.raw, dut.gid.raw, sizeof(gid.raw));
	assert_int_equal(entry.gid_index, dut.gid_index);
	assert_int_equal(entry.port_num, 1);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
}

FX_TEST(query_gid__beyond_table_refused)
{
	union ibv_gid gid;
	struct ibv_gid_entry entry;

	assert_int_not_equal(
		ibv_query_gid(dut.verbs, 1, dut.port.gid_tbl_len, &gid), 0);
	assert_int_not_equal(ibv_query_gid(dut.verbs, 1, -1, &gid), 0);
	assert_int_not_equal(
		ibv_query_gid_ex(dut.verbs, 1, dut.port.gid_tbl_len, &entry, 0),
		0);
}

FX_TEST(query_gid_table__short_array_refused)
{
	struct ibv_gid_entry one;

	assert_true(ibv_query_gid_table(dut.verbs, &one, 0, 0) < 0);
}

FX_TEST(query_pkey__first_is_the_default)
{
	__be16 pkey;

	assert_int_equal(ibv_query_pkey(dut.verbs, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_get_pkey_index(dut.verbs, 1, pkey), 0);
	assert_int_not_equal(
		ibv_query_pkey(dut.verbs, 1, dut.port.pkey_tbl_len, &pkey), 0);
}

FX_TEST(query_qp__reset_has_caps)
{
	struct end e;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	wire_end(NULL, &e);
	assert_int_equal(ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RESET);
	assert_int_equal(attr.cap.max_send_wr, e.cap.max_send_wr);
	assert_int_equal(attr.cap.max_recv_wr, e.cap.max_recv_wr);
	assert_int_equal(attr.cap.max_send_sge, e.cap.max_send_sge);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_ptr_equal(init.send_cq, e.scq);
	assert_ptr_equal(init.recv_cq, e.rcq);
	assert_null(init.srq);
	assert_int_equal(init.sq_sig_all, 0);
}

FX_TEST(query_qp__rts_has_what_was_given)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct wire *w;
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN |
		   IBV_QP_RNR_RETRY | IBV_QP_RETRY_CNT | IBV_QP_TIMEOUT |
		   IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS |
		   IBV_QP_PATH_MTU | IBV_QP_PORT;

	opts.rnr_retry = 5;
	opts.retry_cnt = 6;
	opts.timeout = 13;
	opts.min_rnr_timer = 12;
	w = wire_new(&opts);
	assert_int_equal(ibv_query_qp(w->a.qp, &attr, mask, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, w->b.qp->qp_num);
	assert_int_equal(attr.rnr_retry, 5);
	assert_int_equal(attr.retry_cnt, 6);
	assert_int_equal(attr.timeout, 13);
	assert_int_equal(attr.min_rnr_timer, 12);
	assert_int_equal(attr.path_mtu, dut.port.active_mtu);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.qp_access_flags & FX_REMOTE_ACCESS,
			 FX_REMOTE_ACCESS);
	assert_memory_equal(attr.ah_attr.grh.dgid.raw, dut.gid.raw, 16);
}

FX_MAIN("query")
