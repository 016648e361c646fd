/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * handles.c -- every verb off the data path refuses a destroyed handle, a
 * handle with a damaged number, and a handle with the context of another: the
 * verb fails with ENOENT or EINVAL, in errno too, before following the handle,
 * as the address sanitizer would see. Other failures are in errno as well.
 */

#include "fixture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Other arguments of the calls. */
static struct end e;
static struct ibv_context *other;
static const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};

static int of_pointer(const void *made)
{
	return made ? 0 : errno;
}

/* Returns the errno of verbs that return -1. */
static int of_errno(int ret)
{
	return ret ? errno : 0;
}

/*
 * Returns the functions of the device for inline verbs: the inline part would
 * follow the handle.
 */
static const struct verbs_context *ops(void)
{
	return verbs_get_ctx(e.ctx);
}

/* --- how each kind of object is made, and where its number is */

static void *make_context(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);

	ibv_free_device_list(list);
	return context;
}

static int end_context(void *h)
{
	return of_errno(ibv_close_device(h));
}

static void *make_pd(void)
{
	return ibv_alloc_pd(e.ctx);
}

static int end_pd(void *h)
{
	return ibv_dealloc_pd(h);
}

static void *make_mr(void)
{
	return ibv_reg_mr(e.pd, e.buf, 64, IBV_ACCESS_LOCAL_WRITE);
}

static int end_mr(void *h)
{
	return ibv_dereg_mr(h);
}

static void *make_mw(void)
{
	return ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
}

static int end_mw(void *h)
{
	return ops()->context.ops.dealloc_mw(h);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	assert_int_equal(ibv_query_gid(e.ctx, 1, 0, &attr.grh.dgid), 0);
	return ibv_create_ah(e.pd, &attr);
}

static int end_ah(void *h)
{
	return ibv_destroy_ah(h);
}

static void *make_channel(void)
{
	return ibv_create_comp_channel(e.ctx);
}

static int end_channel(void *h)
{
	return ibv_destroy_comp_channel(h);
}

static void *make_cq(void)
{
	return ibv_create_cq(e.ctx, 8, NULL, NULL, 0);
}

static int end_cq(void *h)
{
	return ibv_destroy_cq(h);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};

	return ibv_create_srq(e.pd, &init);
}

static int end_srq(void *h)
{
	return ibv_destroy_srq(h);
}

static struct ibv_qp *qp_of(struct ibv_pd *pd, struct ibv_cq *cq,
			    struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.srq = srq,
					.cap = {8, 8, 1, 1, 0},
					.qp_type = IBV_QPT_UD};

	return ibv_create_qp(pd, &init);
}

static void *make_qp(void)
{
	return qp_of(e.pd, e.cq, NULL);
}

static int end_qp_of(void *h)
{
	return ibv_destroy_qp(h);
}

enum kind { CONTEXT, PD, MR, MW, AH, CHANNEL, CQ, SRQ, QP };

static const struct {
	void *(*make)(void);
	int (*end)(void *h);
	int number; /* offset of the number; -1: the kind has no number */
} kinds[] = {
	[CONTEXT] = {make_context, end_context, -1},
	[PD] = {make_pd, end_pd, offsetof(struct ibv_pd, handle)},
	[MR] = {make_mr, end_mr, offsetof(struct ibv_mr, handle)},
	[MW] = {make_mw, end_mw, offsetof(struct ibv_mw, handle)},
	[AH] = {make_ah, end_ah, offsetof(struct ibv_ah, handle)},
	[CHANNEL] = {make_channel, end_channel, -1},
	[CQ] = {make_cq, end_cq, offsetof(struct ibv_cq, handle)},
	[SRQ] = {make_srq, end_srq, offsetof(struct ibv_srq, handle)},
	[QP] = {make_qp, end_qp_of, offsetof(struct ibv_qp, handle)},
};

/* --- the calls */

static int query_device(void *h)
{
	struct ibv_device_attr attr;

	return ibv_query_device(h, &attr);
}

static int query_device_ex(void *h)
{
	struct ibv_device_attr_ex attr;

	return ops()->query_device_ex(h, NULL, &attr, sizeof(attr));
}

static int query_port(void *h)
{
	struct ibv_port_attr attr;

	return ops()->query_port(h, 1, &attr, sizeof(attr));
}

static int query_gid(void *h)
{
	union ibv_gid gid;

	return of_errno(ibv_query_gid(h, 1, 0, &gid));
}

static int query_gid_ex(void *h)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(h, 1, 0, &entry, 0);
}

static int query_gid_table(void *h)
{
	struct ibv_gid_entry entries[16];
	ssize_t n = ibv_query_gid_table(h, entries, 16, 0);

	return n < 0 ? (int)-n : 0;
}

static int query_rt_values(void *h)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	return ops()->query_rt_values(h, &values);
}

static int query_pkey(void *h)
{
	__be16 pkey;

	return of_errno(ibv_query_pkey(h, 1, 0, &pkey));
}

static int get_pkey_index(void *h)
{
	return of_errno(ibv_get_pkey_index(h, 1, 0xffff));
}

static int alloc_pd(void *h)
{
	return of_pointer(ibv_alloc_pd(h));
}

static int alloc_parent(void *h)
{
	struct ibv_parent_domain_init_attr attr = {.pd = h};

	return of_pointer(ibv_alloc_parent_domain(e.ctx, &attr));
}

static int create_channel(void *h)
{
	return of_pointer(ibv_create_comp_channel(h));
}

static int create_cq(void *h)
{
	return of_pointer(ibv_create_cq(h, 8, NULL, NULL, 0));
}

static int get_async_event(void *h)
{
	struct ibv_async_event event;

	return of_errno(ibv_get_async_event(h, &event));
}

static int init_ah_from_wc(void *h)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {0};
	struct ibv_ah_attr attr;

	return of_errno(ibv_init_ah_from_wc(h, 1, &wc, &grh, &attr));
}

static int reg_mr(void *h)
{
	return of_pointer(ibv_reg_mr(h, e.buf, 64, IBV_ACCESS_LOCAL_WRITE));
}

static int alloc_mw(void *h)
{
	return of_pointer(ops()->context.ops.alloc_mw(h, IBV_MW_TYPE_1));
}

static int create_ah(void *h)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	assert_int_equal(ibv_query_gid(e.ctx, 1, 0, &attr.grh.dgid), 0);
	errno = 0;
	return of_pointer(ibv_create_ah(h, &attr));
}

static int create_ah_from_wc(void *h)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {0};

	return of_pointer(ibv_create_ah_from_wc(h, &wc, &grh, 1));
}

static int create_srq(void *h)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};

	return of_pointer(ibv_create_srq(h, &init));
}

static int create_qp(void *h)
{
	return of_pointer(qp_of(h, e.cq, NULL));
}

static int create_qp_ex(void *h)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e.cq,
		.recv_cq = e.cq,
		.pd = h,
		.cap = {8, 8, 1, 1, 0},
		.qp_type = IBV_QPT_UD,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return of_pointer(ibv_create_qp_ex(e.ctx, &init));
}

static int bind_mw(void *h)
{
	struct ibv_mw_bind bind = {.bind_info = {.mr = NULL}};

	return ibv_bind_mw(e.qp, h, &bind);
}

static int create_cq_on(void *h)
{
	return of_pointer(ibv_create_cq(e.ctx, 8, NULL, h, 0));
}

static int resize_cq(void *h)
{
	return ibv_resize_cq(h, 16);
}

static int create_qp_on_cq(void *h)
{
	return of_pointer(qp_of(e.pd, h, NULL));
}

static int query_srq(void *h)
{
	struct ibv_srq_attr attr;

	return ibv_query_srq(h, &attr);
}

static int modify_srq(void *h)
{
	struct ibv_srq_attr attr = {.srq_limit = 1};

	return ibv_modify_srq(h, &attr, IBV_SRQ_LIMIT);
}

static int create_qp_on_srq(void *h)
{
	return of_pointer(qp_of(e.pd, e.cq, h));
}

static int query_qp(void *h)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(h, &attr, IBV_QP_STATE, &init);
}

static int modify_qp(void *h)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	return ibv_modify_qp(h, &attr, IBV_QP_STATE);
}

static int attach(void *h)
{
	return ibv_attach_mcast(h, &group, 0);
}

static int detach(void *h)
{
	return ibv_detach_mcast(h, &group, 0);
}

/* The destroying verbs are in the other table. */
static const struct {
	enum kind kind;
	const char *name;
	int (*call)(void *h);
	bool is_inline; /* the inline part follows the handle */
} calls[] = {
	{CONTEXT, "query_device", query_device, false},
	{CONTEXT, "query_device_ex", query_device_ex, false},
	{CONTEXT, "query_port", query_port, false},
	{CONTEXT, "query_gid", query_gid, false},
	{CONTEXT, "query_gid_ex", query_gid_ex, false},
	{CONTEXT, "query_gid_table", query_gid_table, false},
	{CONTEXT, "query_rt_values_ex", query_rt_values, false},
	{CONTEXT, "query_pkey", query_pkey, false},
	{CONTEXT, "get_pkey_index", get_pkey_index, false},
	{CONTEXT, "alloc_pd", alloc_pd, false},
	{CONTEXT, "create_comp_channel", create_channel, false},
	{CONTEXT, "create_cq", create_cq, false},
	{CONTEXT, "get_async_event", get_async_event, false},
	{CONTEXT, "init_ah_from_wc", init_ah_from_wc, false},
	{PD, "reg_mr", reg_mr, false},
	{PD, "alloc_mw", alloc_mw, false},
	{PD, "create_ah", create_ah, false},
	{PD, "create_ah_from_wc", create_ah_from_wc, false},
	{PD, "create_srq", create_srq, false},
	{PD, "create_qp", create_qp, false},
	{PD, "create_qp_ex", create_qp_ex, false},
	{PD, "alloc_parent_domain", alloc_parent, false},
	{MW, "bind_mw", bind_mw, true},
	{CHANNEL, "create_cq", create_cq_on, false},
	{CQ, "resize_cq", resize_cq, false},
	{CQ, "create_qp", create_qp_on_cq, false},
	{SRQ, "query_srq", query_srq, false},
	{SRQ, "modify_srq", modify_srq, false},
	{SRQ, "create_qp", create_qp_on_srq, false},
	{QP, "query_qp", query_qp, false},
	{QP, "modify_qp", modify_qp, false},
	{QP, "attach_mcast", attach, false},
	{QP, "detach_mcast", detach, false},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* --- tests */

static void begin(void)
{
	end_init(&e, 0);
	other = make_context();
	assert_non_null(other);
}

static void finish(void)
{
	assert_int_equal(ibv_close_device(other), 0);
	end_fini(&e);
}

static void refuse(const char *name, int (*call)(void *h), void *h)
{
	int err;

	errno = 0;
	err = call(h);
	if ((err != ENOENT && err != EINVAL) || errno != err)
		fail_msg("%s gives %d, errno %d", name, err, errno);
}

/* Makes all calls with a handle of the kind, and the destroying verb. */
static void refuse_all(enum kind kind, void *h, bool inline_too)
{
	for (size_t i = 0; i < CALLS; i++) {
		if (calls[i].kind == kind &&
		    (inline_too || !calls[i].is_inline))
			refuse(calls[i].name, calls[i].call, h);
	}
	refuse("the end", kinds[kind].end, h);
}

FRESH(handle__gone_REFUSED)
{
	begin();
	for (size_t k = 0; k < KINDS; k++) {
		void *h = kinds[k].make();

		assert_non_null(h);
		assert_int_equal(kinds[k].end(h), 0);
		refuse_all((enum kind)k, h, false);
	}
	finish();
}

FRESH(handle__damaged_REFUSED)
{
	begin();
	for (size_t k = 0; k < KINDS; k++) {
		uint8_t *h;

		if (kinds[k].number < 0)
			continue;
		h = kinds[k].make();
		assert_non_null(h);
		h[kinds[k].number] ^= 1;
		refuse_all((enum kind)k, h, true);
		h[kinds[k].number] ^= 1;
		assert_int_equal(kinds[k].end(h), 0);
	}
	finish();
}

/* Each kind except contexts begins with the pointer to its context. */
FRESH(handle__of_another_context_REFUSED)
{
	begin();
	for (size_t k = CONTEXT + 1; k < KINDS; k++) {
		struct ibv_context **h = kinds[k].make();

		assert_non_null(h);
		*h = other;
		refuse_all((enum kind)k, h, true);
		*h = e.ctx;
		assert_int_equal(kinds[k].end(h), 0);
	}
	finish();
}

/* --- calls that fail for other reasons */

static int query_device_for_more(void)
{
	const struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex attr;

	return ops()->query_device_ex(e.ctx, &input, &attr, sizeof(attr));
}

static int query_gid_of_no_port(void)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(e.ctx, 2, 0, &entry, 0);
}

static int query_gid_with_a_flag(void)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(e.ctx, 1, 0, &entry, 1);
}

/* The last row is empty: no machine of a test has 16 addresses. */
static int query_gid_of_no_address(void)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(e.ctx, 1, 15, &entry, 0);
}

static int query_gid_table_of_0(void)
{
	struct ibv_gid_entry entry;

	return -(int)ibv_query_gid_table(e.ctx, &entry, 0, 0);
}

static int set_ece(void)
{
	struct ibv_ece ece = {0};

	return ibv_set_ece(e.qp, &ece);
}

static int resolve_eth(void)
{
	struct ibv_ah_attr attr = {0};
	uint8_t mac[6];
	uint16_t vid;

	return ibv_resolve_eth_l2_from_gid(e.ctx, &attr, mac, &vid);
}

static int get_srq_num(void)
{
	uint32_t num;

	return ibv_get_srq_num(e.srq, &num);
}

FRESH(call__that_fails_SETS_ERRNO)
{
	static const struct {
		const char *name;
		int (*call)(void);
		int err;
	} rows[] = {
		{"query_device_ex", query_device_for_more, EINVAL},
		{"query_gid_ex of no port", query_gid_of_no_port, EINVAL},
		{"query_gid_ex, a flag", query_gid_with_a_flag, EINVAL},
		{"query_gid_ex, empty", query_gid_of_no_address, ENODATA},
		{"query_gid_table", query_gid_table_of_0, EINVAL},
		{"set_ece", set_ece, EOPNOTSUPP},
		{"resolve_eth_l2_from_gid", resolve_eth, EOPNOTSUPP},
		{"get_srq_num", get_srq_num, EOPNOTSUPP},
	};

	end_init(&e, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int err;

		errno = 0;
		err = rows[i].call();
		if (err != rows[i].err || errno != err)
			fail_msg("%s gives %d, errno %d", rows[i].name, err,
				 errno);
	}
	end_fini(&e);
	e = (struct end){0};
}

TEST_MAIN()
