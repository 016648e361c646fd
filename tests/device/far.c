/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Verbs of objects in another process. The linker leads the verbs of libibverbs
 * called by tests to __wrap_*; a call on an object of this process goes on to
 * __real_*, and a call on an object of the other process is made there. Verbs
 * called through a context need no such detour. For an object over there, the
 * test holds a copy with the fields that programs read.
 */

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "far.h"
#include "far_call.h"

#undef ibv_reg_mr

#define MAX_WC	   64
#define MAX_WR	   128
#define MAX_SGE	   1024
#define MAX_INLINE (64u << 10)

/* A verb and both its ends. */
#define WRAPPED(type, name, ...)         \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

/* The copy, first, so that the pointer of the test is a pointer to the copy. */
struct copy {
	union {
		struct ibv_pd pd;
		struct ibv_mr mr;
		struct ibv_mw mw;
		struct ibv_comp_channel channel;
		struct ibv_cq cq;
		struct ibv_qp qp;
		struct ibv_ah ah;
	} of;
	void *real; /* over there */
};

/*
 * The context of the other process, as seen by the test; NULL fields: not open.
 */
static struct ibv_context context;
/* Only over there. */
static struct ibv_context *real_context;

static bool is_far(const struct ibv_context *of)
{
	return of == &context;
}

static void *real(const void *copy)
{
	return copy ? ((const struct copy *)copy)->real : NULL;
}

static struct copy *copy_of(void *object)
{
	struct copy *copy = NULL;

	if (object)
		copy = calloc(1, sizeof(*copy));
	if (copy)
		copy->real = object;
	return copy;
}

/* A verb with one object and no more arguments, and its result. */
struct plain {
	void *object;
	int ret;
};

static int call_plain(int (*fn)(void *args), void *copy)
{
	struct plain c = {.object = real(copy)};

	far_call(fn, &c, sizeof(c));
	return c.ret;
}

static int destroy(int (*fn)(void *args), void *copy)
{
	int ret = call_plain(fn, copy);

	if (ret == 0)
		free(copy);
	return ret;
}

/* --- protection domains, memory */

static int do_alloc_pd(void *args)
{
	((struct plain *)args)->object = ibv_alloc_pd(real_context);
	return -1;
}

WRAPPED(struct ibv_pd *, ibv_alloc_pd, struct ibv_context *of)
{
	struct plain c = {NULL, 0};
	struct copy *copy;

	if (!is_far(of))
		return __real_ibv_alloc_pd(of);
	far_call(do_alloc_pd, &c, sizeof(c));
	copy = copy_of(c.object);
	if (!copy)
		return NULL;
	copy->of.pd.context = &context;
	return &copy->of.pd;
}

static int do_dealloc_pd(void *args)
{
	struct plain *c = args;

	c->ret = ibv_dealloc_pd(c->object);
	return -1;
}

WRAPPED(int, ibv_dealloc_pd, struct ibv_pd *pd)
{
	return is_far(pd->context) ? destroy(do_dealloc_pd, pd)
				   : __real_ibv_dealloc_pd(pd);
}

struct reg {
	struct ibv_pd *pd;
	void *addr;
	size_t length;
	unsigned access;
	struct ibv_mr *real;
	struct ibv_mr mr;
};

static int do_reg_mr(void *args)
{
	struct reg *c = args;

	c->real = ibv_reg_mr(c->pd, c->addr, c->length, (int)c->access);
	if (c->real)
		c->mr = *c->real;
	return -1;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			     unsigned access)
{
	struct reg c = {real(pd), addr, length, access, NULL, {0}};
	struct copy *copy;

	if (length && !far_has(addr)) {
		fprintf(stderr, "only fx_alloc() is memory of both\n");
		abort();
	}
	far_call(do_reg_mr, &c, sizeof(c));
	copy = copy_of(c.real);
	if (!copy)
		return NULL;
	copy->of.mr = c.mr;
	copy->of.mr.context = &context;
	copy->of.mr.pd = pd;
	return &copy->of.mr;
}

WRAPPED(struct ibv_mr *, ibv_reg_mr, struct ibv_pd *pd, void *addr,
	size_t length, int access)
{
	return is_far(pd->context)
		       ? reg_mr(pd, addr, length, (unsigned)access)
		       : __real_ibv_reg_mr(pd, addr, length, access);
}

WRAPPED(struct ibv_mr *, ibv_reg_mr_iova2, struct ibv_pd *pd, void *addr,
	size_t length, uint64_t iova, unsigned access)
{
	return is_far(pd->context) ? reg_mr(pd, addr, length, access)
				   : __real_ibv_reg_mr_iova2(pd, addr, length,
							     iova, access);
}

static int do_dereg_mr(void *args)
{
	struct plain *c = args;

	c->ret = ibv_dereg_mr(c->object);
	return -1;
}

WRAPPED(int, ibv_dereg_mr, struct ibv_mr *mr)
{
	return is_far(mr->context) ? destroy(do_dereg_mr, mr)
				   : __real_ibv_dereg_mr(mr);
}

/* --- memory windows */

struct window {
	struct ibv_pd *pd;
	enum ibv_mw_type type;
	struct ibv_mw *real;
	uint32_t rkey;
};

static int do_alloc_mw(void *args)
{
	struct window *c = args;

	c->real = ibv_alloc_mw(c->pd, c->type);
	if (c->real)
		c->rkey = c->real->rkey;
	return -1;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct window c = {real(pd), type, NULL, 0};
	struct copy *copy;

	far_call(do_alloc_mw, &c, sizeof(c));
	copy = copy_of(c.real);
	if (!copy)
		return NULL;
	copy->of.mw.context = &context;
	copy->of.mw.pd = pd;
	copy->of.mw.type = type;
	copy->of.mw.rkey = c.rkey;
	return &copy->of.mw;
}

static int do_dealloc_mw(void *args)
{
	struct plain *c = args;

	c->ret = ibv_dealloc_mw(c->object);
	return -1;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	return destroy(do_dealloc_mw, mw);
}

struct bind {
	struct ibv_qp *qp;
	struct ibv_mw *mw;
	struct ibv_mw_bind bind;
	uint32_t rkey;
	int ret;
};

static int do_bind_mw(void *args)
{
	struct bind *c = args;

	c->mw->rkey = c->rkey;
	c->ret = ibv_bind_mw(c->qp, c->mw, &c->bind);
	c->rkey = c->mw->rkey;
	return -1;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		   struct ibv_mw_bind *bind)
{
	struct bind c = {real(qp), real(mw), *bind, mw->rkey, 0};

	c.bind.bind_info.mr = real(bind->bind_info.mr);
	far_call(do_bind_mw, &c, sizeof(c));
	mw->rkey = c.rkey;
	return c.ret;
}

/* --- completion channels and queues */

struct channel {
	struct ibv_comp_channel *channel;
	void *cq; /* the copy */
	int ret;
};

static int do_create_channel(void *args)
{
	struct channel *c = args;

	c->channel = ibv_create_comp_channel(real_context);
	return c->channel ? c->channel->fd : -1;
}

WRAPPED(struct ibv_comp_channel *, ibv_create_comp_channel,
	struct ibv_context *of)
{
	struct channel c = {NULL, NULL, 0};
	struct copy *copy;
	int fd;

	if (!is_far(of))
		return __real_ibv_create_comp_channel(of);
	fd = far_call(do_create_channel, &c, sizeof(c));
	copy = copy_of(c.channel);
	if (!copy)
		return NULL;
	copy->of.channel.context = &context;
	copy->of.channel.fd = fd;
	return &copy->of.channel;
}

static int do_destroy_channel(void *args)
{
	struct plain *c = args;

	c->ret = ibv_destroy_comp_channel(c->object);
	return -1;
}

WRAPPED(int, ibv_destroy_comp_channel, struct ibv_comp_channel *channel)
{
	int ret;

	if (!is_far(channel->context))
		return __real_ibv_destroy_comp_channel(channel);
	ret = call_plain(do_destroy_channel, channel);
	if (ret == 0) {
		close(channel->fd);
		free(channel);
	}
	return ret;
}

static int do_get_event(void *args)
{
	struct channel *c = args;
	struct ibv_cq *cq;

	c->ret = ibv_get_cq_event(c->channel, &cq, &c->cq);
	return -1;
}

WRAPPED(int, ibv_get_cq_event, struct ibv_comp_channel *channel,
	struct ibv_cq **cq, void **cq_context)
{
	struct pollfd in = {.fd = channel->fd, .events = POLLIN};
	struct channel c = {NULL, NULL, 0};

	if (!is_far(channel->context))
		return __real_ibv_get_cq_event(channel, cq, cq_context);
	if (!(fcntl(channel->fd, F_GETFL) & O_NONBLOCK) &&
	    poll(&in, 1, -1) != 1)
		return -1; /* a signal */
	c.channel = real(channel);
	far_call(do_get_event, &c, sizeof(c));
	if (c.ret)
		return c.ret;
	*cq = c.cq;
	*cq_context = (*cq)->cq_context;
	return 0;
}

struct number {
	void *object;
	int number;
	int ret;
};

static int do_ack_events(void *args)
{
	struct number *c = args;

	ibv_ack_cq_events(c->object, (unsigned)c->number);
	return -1;
}

WRAPPED(void, ibv_ack_cq_events, struct ibv_cq *cq, unsigned n)
{
	struct number c = {NULL, (int)n, 0};

	if (!is_far(cq->context)) {
		__real_ibv_ack_cq_events(cq, n);
		return;
	}
	c.object = real(cq);
	far_call(do_ack_events, &c, sizeof(c));
}

struct make_cq {
	int cqe;
	int vector;
	struct ibv_comp_channel *channel;
	void *copy;
	struct ibv_cq *real;
};

static int do_create_cq(void *args)
{
	struct make_cq *c = args;

	c->real = ibv_create_cq(real_context, c->cqe, c->copy, c->channel,
				c->vector);
	if (c->real)
		c->cqe = c->real->cqe;
	return -1;
}

WRAPPED(struct ibv_cq *, ibv_create_cq, struct ibv_context *of, int cqe,
	void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	struct make_cq c = {cqe, vector, NULL, NULL, NULL};
	struct copy *copy;

	if (!is_far(of))
		return __real_ibv_create_cq(of, cqe, cq_context, channel,
					    vector);
	copy = copy_of(&context); /* events name the context */
	c.copy = copy;
	c.channel = real(channel);
	if (copy)
		far_call(do_create_cq, &c, sizeof(c));
	if (!c.real) {
		free(copy);
		return NULL;
	}
	copy->real = c.real;
	copy->of.cq.context = &context;
	copy->of.cq.channel = channel;
	copy->of.cq.cq_context = cq_context;
	copy->of.cq.cqe = c.cqe;
	return &copy->of.cq;
}

static int do_resize_cq(void *args)
{
	struct number *c = args;

	c->ret = ibv_resize_cq(c->object, c->number);
	c->number = ((struct ibv_cq *)c->object)->cqe;
	return -1;
}

WRAPPED(int, ibv_resize_cq, struct ibv_cq *cq, int cqe)
{
	struct number c = {NULL, cqe, 0};

	if (!is_far(cq->context))
		return __real_ibv_resize_cq(cq, cqe);
	c.object = real(cq);
	far_call(do_resize_cq, &c, sizeof(c));
	cq->cqe = c.number;
	return c.ret;
}

static int do_destroy_cq(void *args)
{
	struct plain *c = args;

	c->ret = ibv_destroy_cq(c->object);
	return -1;
}

WRAPPED(int, ibv_destroy_cq, struct ibv_cq *cq)
{
	return is_far(cq->context) ? destroy(do_destroy_cq, cq)
				   : __real_ibv_destroy_cq(cq);
}

struct polled {
	struct ibv_cq *cq;
	int n;
	struct ibv_wc wc[MAX_WC];
};

static int do_poll(void *args)
{
	struct polled *c = args;

	c->n = ibv_poll_cq(c->cq, c->n, c->wc);
	return -1;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct polled c = {.cq = real(cq), .n = n < MAX_WC ? n : MAX_WC};

	far_call(do_poll, &c, sizeof(c));
	if (c.n > 0)
		memcpy(wc, c.wc, (size_t)c.n * sizeof(*wc));
	return c.n;
}

static int do_arm(void *args)
{
	struct number *c = args;

	c->ret = ibv_req_notify_cq(c->object, c->number);
	return -1;
}

static int arm(struct ibv_cq *cq, int solicited_only)
{
	struct number c = {real(cq), solicited_only, 0};

	far_call(do_arm, &c, sizeof(c));
	return c.ret;
}

/* --- queue pairs */

struct make_qp {
	struct ibv_pd *pd;
	struct ibv_qp_init_attr attr;
	struct ibv_qp *real;
	struct ibv_qp qp;
};

static int do_create_qp(void *args)
{
	struct make_qp *c = args;

	c->real = ibv_create_qp(c->pd, &c->attr);
	if (c->real)
		c->qp = *c->real;
	return -1;
}

WRAPPED(struct ibv_qp *, ibv_create_qp, struct ibv_pd *pd,
	struct ibv_qp_init_attr *attr)
{
	struct make_qp c;
	struct copy *copy;

	if (!is_far(pd->context))
		return __real_ibv_create_qp(pd, attr);
	c = (struct make_qp){.pd = real(pd), .attr = *attr};
	c.attr.send_cq = real(attr->send_cq);
	c.attr.recv_cq = real(attr->recv_cq);
	far_call(do_create_qp, &c, sizeof(c));
	attr->cap = c.attr.cap;
	copy = copy_of(c.real);
	if (!copy)
		return NULL;
	copy->of.qp.context = &context;
	copy->of.qp.qp_context = attr->qp_context;
	copy->of.qp.pd = pd;
	copy->of.qp.send_cq = attr->send_cq;
	copy->of.qp.recv_cq = attr->recv_cq;
	copy->of.qp.qp_num = c.qp.qp_num;
	copy->of.qp.state = c.qp.state;
	copy->of.qp.qp_type = c.qp.qp_type;
	return &copy->of.qp;
}

struct of_qp {
	struct ibv_qp *qp;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int mask;
	int ret;
	enum ibv_qp_state state;
};

static int do_modify_qp(void *args)
{
	struct of_qp *c = args;

	c->ret = ibv_modify_qp(c->qp, &c->attr, c->mask);
	c->state = c->qp->state;
	return -1;
}

WRAPPED(int, ibv_modify_qp, struct ibv_qp *qp, struct ibv_qp_attr *attr,
	int mask)
{
	struct of_qp c;

	if (!is_far(qp->context))
		return __real_ibv_modify_qp(qp, attr, mask);
	c = (struct of_qp){.qp = real(qp), .attr = *attr, .mask = mask};
	far_call(do_modify_qp, &c, sizeof(c));
	qp->state = c.state;
	return c.ret;
}

static int do_query_qp(void *args)
{
	struct of_qp *c = args;

	c->ret = ibv_query_qp(c->qp, &c->attr, c->mask, &c->init);
	c->state = c->qp->state;
	return -1;
}

WRAPPED(int, ibv_query_qp, struct ibv_qp *qp, struct ibv_qp_attr *attr,
	int mask, struct ibv_qp_init_attr *init)
{
	struct of_qp c;

	if (!is_far(qp->context))
		return __real_ibv_query_qp(qp, attr, mask, init);
	c = (struct of_qp){.qp = real(qp), .attr = *attr, .mask = mask};
	far_call(do_query_qp, &c, sizeof(c));
	qp->state = c.state;
	*attr = c.attr;
	*init = c.init;
	init->qp_context = qp->qp_context;
	init->send_cq = qp->send_cq;
	init->recv_cq = qp->recv_cq;
	return c.ret;
}

static int do_destroy_qp(void *args)
{
	struct plain *c = args;

	c->ret = ibv_destroy_qp(c->object);
	return -1;
}

WRAPPED(int, ibv_destroy_qp, struct ibv_qp *qp)
{
	return is_far(qp->context) ? destroy(do_destroy_qp, qp)
				   : __real_ibv_destroy_qp(qp);
}

/* --- address handles */

struct make_ah {
	struct ibv_pd *pd;
	struct ibv_ah_attr attr;
	struct ibv_ah *real;
};

static int do_create_ah(void *args)
{
	struct make_ah *c = args;

	c->real = ibv_create_ah(c->pd, &c->attr);
	return -1;
}

WRAPPED(struct ibv_ah *, ibv_create_ah, struct ibv_pd *pd,
	struct ibv_ah_attr *attr)
{
	struct make_ah c = {NULL, *attr, NULL};
	struct copy *copy;

	if (!is_far(pd->context))
		return __real_ibv_create_ah(pd, attr);
	c.pd = real(pd);
	far_call(do_create_ah, &c, sizeof(c));
	copy = copy_of(c.real);
	if (!copy)
		return NULL;
	copy->of.ah.context = &context;
	copy->of.ah.pd = pd;
	return &copy->of.ah;
}

static int do_destroy_ah(void *args)
{
	struct plain *c = args;

	c->ret = ibv_destroy_ah(c->object);
	return -1;
}

WRAPPED(int, ibv_destroy_ah, struct ibv_ah *ah)
{
	return is_far(ah->context) ? destroy(do_destroy_ah, ah)
				   : __real_ibv_destroy_ah(ah);
}

/* --- posting */

struct sends {
	struct ibv_qp *qp;
	int n;
	int bad; /* number of the first refused work request */
	int ret;
	struct ibv_send_wr wr[MAX_WR];
	struct ibv_sge sge[MAX_SGE];
	uint32_t mw_rkey; /* of the window named by the last bind */
	size_t bytes;
	uint8_t inlined[MAX_INLINE];
};

struct receives {
	struct ibv_qp *qp;
	int n;
	int bad;
	int ret;
	struct ibv_recv_wr wr[MAX_WR];
	struct ibv_sge sge[MAX_SGE];
};

static void fits(bool it_does)
{
	if (it_does)
		return;
	fprintf(stderr, "too much in one post to another process\n");
	abort();
}

static int do_post_send(void *args)
{
	struct sends *c = args;
	struct ibv_sge *sge = c->sge;
	struct ibv_send_wr *bad = c->wr;
	uint8_t *bytes = c->inlined;

	for (int i = 0; i < c->n; i++) {
		struct ibv_send_wr *wr = &c->wr[i];

		wr->next = i + 1 < c->n ? wr + 1 : NULL;
		wr->sg_list = sge;
		sge += wr->num_sge;
		if (wr->opcode == IBV_WR_BIND_MW)
			wr->bind_mw.mw->rkey = c->mw_rkey;
		if (!(wr->send_flags & IBV_SEND_INLINE))
			continue;
		for (int k = 0; k < wr->num_sge; k++) {
			wr->sg_list[k].addr = (uintptr_t)bytes;
			bytes += wr->sg_list[k].length;
		}
	}
	c->ret = ibv_post_send(c->qp, c->wr, &bad);
	c->bad = (int)(bad - c->wr);
	return -1;
}

static void copy_inline(struct sends *c, const struct ibv_send_wr *wr)
{
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return;
	for (int k = 0; k < wr->num_sge; k++) {
		const struct ibv_sge *sge = &wr->sg_list[k];

		fits(sge->length <= MAX_INLINE - c->bytes);
		memcpy(c->inlined + c->bytes, (void *)(uintptr_t)sge->addr,
		       sge->length);
		c->bytes += sge->length;
	}
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *list,
		     struct ibv_send_wr **bad)
{
	struct sends *c = calloc(1, sizeof(*c));
	int sges = 0;
	int ret;

	fits(c != NULL);
	c->qp = real(qp);
	for (struct ibv_send_wr *from = list; from; from = from->next) {
		struct ibv_send_wr *wr = &c->wr[c->n];

		fits(c->n < MAX_WR && from->num_sge <= MAX_SGE - sges);
		*wr = *from;
		if (wr->num_sge > 0)
			memcpy(&c->sge[sges], from->sg_list,
			       (size_t)wr->num_sge * sizeof(c->sge[0]));
		sges += wr->num_sge;
		copy_inline(c, from);
		if (qp->qp_type == IBV_QPT_UD)
			wr->wr.ud.ah = real(from->wr.ud.ah);
		if (wr->opcode == IBV_WR_BIND_MW) {
			c->mw_rkey = from->bind_mw.mw->rkey;
			wr->bind_mw.mw = real(from->bind_mw.mw);
			wr->bind_mw.bind_info.mr =
				real(from->bind_mw.bind_info.mr);
		}
		c->n++;
	}
	far_call(do_post_send, c, offsetof(struct sends, inlined) + c->bytes);
	ret = c->ret;
	for (; ret && c->bad-- > 0; list = list->next)
		;
	if (ret)
		*bad = list;
	free(c);
	return ret;
}

static int do_post_recv(void *args)
{
	struct receives *c = args;
	struct ibv_sge *sge = c->sge;
	struct ibv_recv_wr *bad = c->wr;

	for (int i = 0; i < c->n; i++) {
		struct ibv_recv_wr *wr = &c->wr[i];

		wr->next = i + 1 < c->n ? wr + 1 : NULL;
		wr->sg_list = sge;
		sge += wr->num_sge;
	}
	c->ret = ibv_post_recv(c->qp, c->wr, &bad);
	c->bad = (int)(bad - c->wr);
	return -1;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *list,
		     struct ibv_recv_wr **bad)
{
	struct receives *c = calloc(1, sizeof(*c));
	int sges = 0;
	int ret;

	fits(c != NULL);
	c->qp = real(qp);
	for (struct ibv_recv_wr *from = list; from; from = from->next) {
		fits(c->n < MAX_WR && from->num_sge <= MAX_SGE - sges);
		c->wr[c->n++] = *from;
		if (from->num_sge > 0)
			memcpy(&c->sge[sges], from->sg_list,
			       (size_t)from->num_sge * sizeof(c->sge[0]));
		sges += from->num_sge;
	}
	far_call(do_post_recv, c, sizeof(*c));
	ret = c->ret;
	for (; ret && c->bad-- > 0; list = list->next)
		;
	if (ret)
		*bad = list;
	free(c);
	return ret;
}

/* --- the device */

struct opened {
	char name[64];
	int ret;
};

static int do_open(void *args)
{
	struct opened *c = args;
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (struct ibv_device **dev = list; list && *dev; dev++) {
		if (strcmp(ibv_get_device_name(*dev), c->name) == 0)
			real_context = ibv_open_device(*dev);
	}
	if (list)
		ibv_free_device_list(list);
	c->ret = real_context ? 0 : -1;
	return -1;
}

static int do_close(void *args)
{
	struct plain *c = args;

	c->ret = ibv_close_device(real_context);
	return -1;
}

int far_open(const char *name)
{
	struct opened c = {.ret = -1};

	snprintf(c.name, sizeof(c.name), "%s", name);
	far_call(do_open, &c, sizeof(c));
	if (c.ret)
		return c.ret;
	context.ops.alloc_mw = alloc_mw;
	context.ops.dealloc_mw = dealloc_mw;
	context.ops.bind_mw = bind_mw;
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = arm;
	context.ops.post_send = post_send;
	context.ops.post_recv = post_recv;
	context.num_comp_vectors = 1;
	return 0;
}

int far_close(void)
{
	return call_plain(do_close, NULL);
}

struct ibv_context *far_context(void)
{
	return context.num_comp_vectors ? &context : NULL;
}
