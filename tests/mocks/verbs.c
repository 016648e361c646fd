/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* libibverbs: objects that count their references. */

#include "mocks.h"

#include <errno.h>
#include <string.h>

#include "objects.h"

#undef ibv_reg_mr

static struct ibv_device the_device = {
	.transport_type = IBV_TRANSPORT_IB,
	.name = "mock0",
};
static struct ibv_device other_device = {
	.transport_type = IBV_TRANSPORT_IB,
	.name = "other0",
};

struct ibv_device_attr_ex mock_attr = {
	.orig_attr = {.atomic_cap = IBV_ATOMIC_HCA, .max_srq_sge = 4},
};
int mock_poll_answer;
struct ibv_wc mock_wc;
struct ibv_cq mock_strange_cq;
struct ibv_send_wr mock_sent[MOCK_POSTED_MAX];
struct ibv_sge mock_sent_sge[MOCK_POSTED_MAX];
int mock_sent_count;
struct ibv_recv_wr mock_received[MOCK_POSTED_MAX];
struct ibv_sge mock_received_sge[MOCK_POSTED_MAX];
int mock_received_count;
struct ibv_qp_attr mock_qp_modified;
struct ibv_srq_init_attr mock_srq_attr;
int mock_access;
struct ibv_mr *mock_mr;
struct ibv_qp_ex *mock_qpx;

static struct ibv_cq *next_event;

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	(void)status;
	return "status";
}

static int query_device_ex(struct ibv_context *ctx,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	int err = mock_enter("query_device", "%s", "");

	(void)ctx;
	(void)input;
	if (err)
		return err;
	memcpy(attr, &mock_attr, size < sizeof(*attr) ? size : sizeof(*attr));
	return 0;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		     uint32_t flags, struct ibv_sge *sge, uint32_t count)
{
	(void)pd;
	(void)count;
	return mock_enter("advise_mr", "(%d, %u, %u bytes)", advice, flags,
			  sge->length);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq;
	return mock_enter("notify", solicited_only ? "(solicited)" : "%s", "");
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	int i;

	(void)cq;
	(void)mock_enter("poll", "(%d)", count);
	for (i = 0; i < mock_poll_answer && i < count; i++) {
		wc[i] = mock_wc;
		wc[i].wr_id += (uint64_t)i + 1;
	}
	return mock_poll_answer;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	const struct ibv_send_wr *last;
	int count = 1;
	int err;

	(void)qp;
	for (last = wr; last->next; last = last->next)
		count++;
	if (count > 1)
		err = mock_enter("post_send", "(%d)", count);
	else
		err = mock_enter("post_send", "%s", "");
	mock_sent_count = 0;
	for (; wr; wr = wr->next) {
		mock_sent[mock_sent_count] = *wr;
		if (wr->num_sge)
			mock_sent_sge[mock_sent_count] = *wr->sg_list;
		mock_sent_count++;
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	return err;
}

static int receive(const char *name, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	int err = mock_enter(name, "%s", "");

	mock_received_count = 0;
	for (; wr; wr = wr->next) {
		mock_received[mock_received_count] = *wr;
		if (wr->num_sge)
			mock_received_sge[mock_received_count] = *wr->sg_list;
		mock_received_count++;
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	return err;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	(void)qp;
	return receive("post_recv", wr, bad_wr);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr)
{
	(void)srq;
	return receive("post_srq_recv", wr, bad_wr);
}

struct verbs_context mock_device = {
	.sz = sizeof(struct verbs_context),
	.query_device_ex = query_device_ex,
	.advise_mr = advise_mr,
	.context =
		{
			.device = &the_device,
			.num_comp_vectors = 2,
			.abi_compat = (void *)UINTPTR_MAX,
			.ops =
				{
					.req_notify_cq = req_notify_cq,
					.poll_cq = poll_cq,
					.post_send = post_send,
					.post_recv = post_recv,
					.post_srq_recv = post_srq_recv,
				},
		},
};

struct verbs_context mock_other_device;

__attribute__((constructor)) static void make_other_device(void)
{
	mock_other_device = mock_device;
	mock_other_device.context.device = &other_device;
}

/* What verbs.h falls back to on devices older than this one. */
int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	(void)attr;
	return ENOSYS;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	int err = mock_enter("alloc_pd", "%s", "");
	struct mock_pd *pd;

	if (err) {
		/* a provider may fail and not say why */
		errno = err > 0 ? err : 0;
		return NULL;
	}
	pd = mock_alloc(sizeof(*pd));
	pd->pd.context = ctx;
	return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct mock_pd *mock = (struct mock_pd *)pd;
	int err = mock_enter("dealloc_pd", "%s", "");

	if (mock->users)
		return EBUSY;
	mock_free(mock);
	return err;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	struct ibv_mr *mr;

	(void)iova;
	errno = mock_enter("reg_mr", "(%zu, 0x%x)", length, access);
	mock_access = (int)access;
	if (errno)
		return NULL;
	mr = mock_alloc(sizeof(*mr));
	*mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.lkey = 0x11,
		.rkey = 0x22334455,
	};
	((struct mock_pd *)pd)->users++;
	mock_mr = mr;
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr,
				(unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int err = mock_enter("dereg_mr", "%s", "");

	((struct mock_pd *)mr->pd)->users--;
	mock_free(mr);
	return err;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel;

	errno = mock_enter("create_ch", "%s", "");
	if (errno)
		return NULL;
	channel = mock_alloc(sizeof(*channel));
	channel->context = ctx;
	channel->fd = 50;
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	int err = mock_enter("destroy_ch", "%s", "");

	if (channel->refcnt)
		return EBUSY;
	mock_free(channel);
	return err;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct mock_cq *cq;

	errno = mock_enter("create_cq", "(%d%s, %d)", cqe,
			   context ? ", context" : "", comp_vector);
	if (errno)
		return NULL;
	cq = mock_alloc(sizeof(*cq));
	cq->cq.context = ctx;
	cq->cq.cq_context = context;
	cq->cq.channel = channel;
	cq->cq.cqe = cqe;
	channel->refcnt++;
	return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct mock_cq *mock = (struct mock_cq *)cq;
	int err = mock_enter("destroy_cq", "(%d)", cq->cqe);

	if (mock->users)
		return EBUSY;
	/* a device would wait for ever */
	assert_int_equal(mock->unacked, 0);
	cq->channel->refcnt--;
	mock_free(mock);
	return err;
}

void mock_cq_event(struct rpma_cq *cq)
{
	next_event = &mock_strange_cq;
	if (cq)
		ok(rpma_cq_get_ibv_cq(cq, &next_event));
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **context)
{
	(void)channel;
	errno = mock_enter("get_cq_event", "%s", "");
	if (errno)
		return -1;
	if (next_event == NULL) {
		errno = EAGAIN;
		return -1;
	}
	*cq = next_event;
	*context = next_event->cq_context;
	if (next_event != &mock_strange_cq)
		((struct mock_cq *)next_event)->unacked++;
	next_event = NULL;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	(void)mock_enter("ack_cq", "(%u)", count);
	if (cq != &mock_strange_cq)
		((struct mock_cq *)cq)->unacked -= count;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq;

	errno = mock_enter("create_srq", "(%u, %u, %u)", attr->attr.max_wr,
			   attr->attr.max_sge, attr->attr.srq_limit);
	mock_srq_attr = *attr;
	if (errno)
		return NULL;
	srq = mock_alloc(sizeof(*srq));
	srq->context = pd->context;
	srq->pd = pd;
	((struct mock_pd *)pd)->users++;
	return srq;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	(void)srq;
	return mock_enter("modify_srq", "(%u, %d)", attr->srq_limit, mask);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	int err = mock_enter("destroy_srq", "%s", "");

	((struct mock_pd *)srq->pd)->users--;
	mock_free(srq);
	return err;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	mock_qp_modified = *attr;
	return mock_enter("modify_qp", "(%d, 0x%x)", attr->qp_state,
			  (unsigned)mask);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	(void)qp;
	return mock_qpx;
}
