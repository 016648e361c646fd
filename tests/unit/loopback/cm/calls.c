/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* calls.c -- bad arguments, options, QPs, attributes, unsupported calls. */

#include "fixture.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

/* what a newer rdma-core calls IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT */
#define FLUSH_RIGHTS 0x300u

/* every call: a handle that is none is refused, not followed */
TEST_WITH(calls__bad_handle_EINVAL, reset, reset)
{
	_Alignas(16) char junk[4096];
	struct rdma_cm_id *bad[] = {NULL, (void *)junk, (void *)(junk + 1)};
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp_init_attr_ex init = {0};
	uint8_t tos = 0;
	int mask;

	memset(junk, 0x5a, sizeof(junk));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rdma_cm_id *id = bad[i];

		assert_fails(rdma_destroy_id(id), EINVAL);
		assert_fails(rdma_migrate_id(id, NULL), EINVAL);
		assert_fails(rdma_bind_addr(id, SA(addr)), EINVAL);
		assert_fails(rdma_resolve_addr(id, NULL, SA(addr), 1), EINVAL);
		assert_fails(rdma_resolve_route(id, 1), EINVAL);
		assert_fails(rdma_listen(id, 0), EINVAL);
		assert_fails(rdma_connect(id, NULL), EINVAL);
		assert_fails(rdma_accept(id, NULL), EINVAL);
		assert_fails(rdma_reject(id, NULL, 0), EINVAL);
		assert_fails(rdma_establish(id), EINVAL);
		assert_fails(rdma_disconnect(id), EINVAL);
		assert_fails(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
		assert_fails(rdma_create_qp_ex(id, &init), EINVAL);
		assert_fails(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
		assert_fails(rdma_set_option(id, RDMA_OPTION_ID,
					     RDMA_OPTION_ID_TOS, &tos, 1),
			     EINVAL);
		rdma_destroy_qp(id);
		rdma_destroy_srq(id);
		rdma_destroy_ep(id);
	}
}

/* create_id: what it can make */
TEST_WITH(create_id__port_spaces_CHECKED, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = NULL;

	assert_fails(rdma_create_id(ch, &id, NULL, RDMA_PS_IPOIB), EOPNOTSUPP);
	assert_fails(rdma_create_id(ch, &id, NULL, 0), EOPNOTSUPP);
	assert_fails(rdma_create_id(ch, NULL, NULL, RDMA_PS_TCP), EINVAL);
	assert_null(id);
	assert_int_equal(rdma_create_id(ch, &id, &id, RDMA_PS_TCP), 0);
	assert_ptr_equal(id->context, &id);
	assert_ptr_equal(id->channel, ch);
	assert_int_equal(id->ps, RDMA_PS_TCP);
	assert_int_equal(id->qp_type, IBV_QPT_RC);
	assert_null(id->verbs);
	rdma_destroy_id(id);
	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(id->qp_type, IBV_QPT_UD);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* what the device does not have says so */
TEST_WITH(calls__not_there_EOPNOTSUPP, reset, reset)
{
	struct ibv_ece ece = {.vendor_id = 1};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_client(ch, 1);
	char path[64] = {0};

	assert_fails(rdma_set_local_ece(id, &ece), EOPNOTSUPP);
	assert_fails(rdma_get_remote_ece(id, &ece), EOPNOTSUPP);
	assert_fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
				     path, sizeof(path)),
		     EOPNOTSUPP);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* join, leave: only datagrams, only with an address */
TEST_WITH(multicast__CHECKED, reset, reset)
{
	const uint32_t all =
		RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	struct sockaddr_in group = v4("224.0.0.9", 0);
	struct sockaddr_in here = v4("127.0.0.1", 0);
	struct rdma_cm_join_mc_attr_ex join = {.comp_mask = all,
					       .addr = SA(group)};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_client(ch, 1);

	assert_fails(rdma_join_multicast(id, SA(group), NULL), EINVAL);
	assert_fails(rdma_join_multicast_ex(id, &join, NULL), EINVAL);
	assert_fails(rdma_leave_multicast(id, SA(group)), EADDRNOTAVAIL);
	rdma_destroy_id(id);
	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(id, SA(here)), 0);
	assert_fails(rdma_join_multicast(id, NULL, NULL), EINVAL);
	assert_fails(rdma_leave_multicast(id, NULL), EADDRNOTAVAIL);
	join.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	assert_fails(rdma_join_multicast_ex(id, &join, NULL), EINVAL);
	join.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED | all;
	assert_fails(rdma_join_multicast_ex(id, &join, NULL), ENOTSUP);
	join.comp_mask = all;
	join.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	assert_fails(rdma_join_multicast_ex(id, &join, NULL), EINVAL);
	join.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	assert_int_equal(rdma_join_multicast_ex(id, &join, NULL), 0);
	/* with its event unread */
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

TEST_WITH(set_option__CHECKED, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch);
	uint8_t tos = 0x40;
	int on = 1;

#define SET(opt, val, len) rdma_set_option(id, RDMA_OPTION_ID, opt, val, len)
	assert_int_equal(SET(RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(SET(RDMA_OPTION_ID_ACK_TIMEOUT, &tos, 1), 0);
	assert_int_equal(SET(RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(SET(RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), 0);
	assert_fails(SET(RDMA_OPTION_ID_TOS, &on, sizeof(on)), EINVAL);
	assert_fails(SET(RDMA_OPTION_ID_ACK_TIMEOUT, &tos, 0), EINVAL);
	assert_fails(SET(RDMA_OPTION_ID_REUSEADDR, &tos, 1), EINVAL);
	assert_fails(SET(RDMA_OPTION_ID_TOS, NULL, 1), EFAULT);
	assert_fails(SET(99, &tos, 1), ENOSYS);
	assert_fails(rdma_set_option(id, 99, 0, &tos, 1), ENOSYS);
	assert_int_equal(rdma_listen(id, 0), 0);
	assert_fails(SET(RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), EINVAL);
	assert_fails(SET(RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), EINVAL);
#undef SET
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* init_qp_attr: what a QP made by hand needs, as far as it is known */
TEST_WITH(init_qp_attr__by_state_MASK, reset, reset)
{
	struct rdma_conn_param param = {
		.qp_num = 5, .initiator_depth = 1, .responder_resources = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	unsigned rights;
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *idle = new_id(ch);
	struct pair p;
	int mask;

	assert_fails(rdma_init_qp_attr(idle, &attr, &mask), EINVAL);
	rdma_destroy_id(idle);
	rdma_destroy_event_channel(ch);
	pair_setup(&p);
	assert_int_equal(rdma_init_qp_attr(p.client, &attr, &mask), 0);
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.qp_access_flags, 0);
	drop_qp(p.client, p.ccq);
	assert_int_equal(rdma_connect(p.client, &param), 0);
	assert_int_equal(rdma_init_qp_attr(p.client, &attr, &mask), 0);
	/* and the rights to flush, both or none, as rdma-core knows them */
	rights = attr.qp_access_flags & FLUSH_RIGHTS;
	assert_true(rights == 0 || rights == FLUSH_RIGHTS);
	assert_int_equal(attr.qp_access_flags & ~FLUSH_RIGHTS,
			 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_ATOMIC);
	attr.qp_state = IBV_QPS_RTR;
	assert_fails(rdma_init_qp_attr(p.client, &attr, &mask), EINVAL);
	pair_teardown(&p);
	pair_request(&p);
	assert_int_equal(rdma_init_qp_attr(p.server, &attr, &mask), 0);
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(attr.dest_qp_num, p.client->qp->qp_num);
	assert_int_equal(attr.ah_attr.is_global, 1);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(rdma_init_qp_attr(p.server, &attr, &mask), 0);
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC);
	attr.qp_state = IBV_QPS_SQD;
	assert_fails(rdma_init_qp_attr(p.server, &attr, &mask), EINVAL);
	attr.qp_state = 99;
	assert_fails(rdma_init_qp_attr(p.server, &attr, &mask), EINVAL);
	pair_teardown(&p);
}

/* create_qp: an identifier without device, or with a QP already */
TEST_WITH(create_qp__wrong_id_EINVAL, reset, reset)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch);
	struct ibv_cq *cq;

	assert_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	assert_fails(rdma_create_qp(id, NULL, NULL), EINVAL);
	assert_fails(rdma_create_qp_ex(id, NULL), EINVAL);
	assert_fails(rdma_disconnect(id), EINVAL);
	rdma_destroy_id(id);
	id = new_client(ch, 1);
	cq = add_qp(id);
	assert_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	drop_qp(id, cq);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* create_qp: the protection domain must be of the identifier's device */
TEST_WITH(create_qp__pd_of_other_context_EINVAL, reset, reset)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_client(ch, 1);
	struct ibv_context *verbs = ibv_open_device(id->verbs->device);
	struct ibv_pd *pd;

	assert_non_null(verbs);
	pd = ibv_alloc_pd(verbs);
	assert_non_null(pd);
	assert_fails(rdma_create_qp(id, pd, &attr), EINVAL);
	assert_null(id->qp);
	ibv_dealloc_pd(pd);
	ibv_close_device(verbs);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* get_devices: those whose contexts identifiers have */
TEST_WITH(get_devices__ids_SAME_contexts, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_client(ch, 1);
	struct ibv_context **list;
	bool found = false;
	int n = -1;

	list = rdma_get_devices(&n);
	assert_non_null(list);
	assert_true(n >= 1);
	assert_null(list[n]);
	for (int i = 0; i < n; i++)
		found |= list[i] == id->verbs;
	assert_true(found);
	rdma_free_devices(list);
	list = rdma_get_devices(NULL);
	assert_non_null(list);
	rdma_free_devices(list);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

TEST_MAIN()
