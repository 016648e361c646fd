/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The made-up device and librpma's objects on it; see rt_fake.h. */

#include "rt_fake.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"

struct ibv_device_attr fake_attr = {.max_cqe = 1 << 20,
				    .max_qp_wr = 1 << 15,
				    .max_sge = 4,
				    .max_qp_rd_atom = 16,
				    .max_qp_init_rd_atom = 8};
uint32_t fake_max_inline = 256;
_Atomic int fake_async_errno;

/* not one of the calls that may be told to fail */
int __real_eventfd(unsigned value, int flags);

/* what threads of a runtime share with the test */
static struct {
	pthread_mutex_t lock;
	struct ibv_async_event async[FAKE_QUEUE];
	uint32_t async_head;
	uint32_t async_tail;
	uint32_t async_acked;
	uint32_t cm_acked;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---------------------------------------------------------------- verbs --- */

static int poll_cq(struct ibv_cq *ibv_cq, int max, struct ibv_wc *wcs)
{
	struct rpma_cq *cq = (struct rpma_cq *)ibv_cq;
	int n;

	if (cq->poll_answer < 0)
		return cq->poll_answer;
	for (n = 0; n < max && cq->head != cq->tail; n++)
		wcs[n] = cq->wcs[cq->head++ % FAKE_QUEUE];
	return n;
}

static int req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct rpma_cq *cq = (struct rpma_cq *)ibv_cq;

	assert_false(solicited_only);
	cq->arms++;
	if (cq->on_arm)
		cq->wcs[cq->tail++ % FAKE_QUEUE] = cq->wc_on_arm;
	cq->on_arm = false;
	return cq->notify_answer;
}

static struct {
	void (*fn)(void *arg);
	void *arg;
} posting, posted;

void fake_when_posting(void (*fn)(void *arg), void *arg)
{
	posting.fn = fn;
	posting.arg = arg;
}

void fake_when_posted(void (*fn)(void *arg), void *arg)
{
	posted.fn = fn;
	posted.arg = arg;
}

static void end_verb(void)
{
	void (*fn)(void *arg) = posted.fn;

	posted.fn = NULL;
	if (fn != NULL)
		fn(posted.arg);
}

void fake_in_verb(void)
{
	void (*fn)(void *arg) = posting.fn;

	posting.fn = NULL;
	if (fn != NULL)
		fn(posting.arg);
}

static int post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	int err;

	fake_in_verb();
	for (; wr != NULL; wr = wr->next) {
		err = fake_failing("post_send");
		*bad = wr;
		if (err)
			return err;
		qp->last_send = *wr;
		if (wr->num_sge > 0)
			qp->last_sge = wr->sg_list[0];
		qp->signaled[qp->sq_count] = wr->send_flags & IBV_SEND_SIGNALED;
		qp->sq[qp->sq_count++] = wr->wr_id;
	}
	end_verb();
	return 0;
}

static int post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	int err;

	fake_in_verb();
	for (; wr != NULL; wr = wr->next) {
		err = fake_failing("post_recv");
		*bad = wr;
		if (err)
			return err;
		qp->last_recv = *wr;
		if (wr->num_sge > 0)
			qp->last_sge = wr->sg_list[0];
		qp->rq[qp->rq_count++] = wr->wr_id;
	}
	return 0;
}

static struct ibv_device fake_device = {.name = "fake0"};

struct ibv_context fake_ctx = {
	.device = &fake_device,
	.ops = {.poll_cq = poll_cq,
		.req_notify_cq = req_notify_cq,
		.post_send = post_send,
		.post_recv = post_recv,
		.post_srq_recv = fake_post_srq_recv},
	.num_comp_vectors = 3,
	.async_fd = -1,
};

struct rpma_peer fake_peer = {.ibv_ctx = &fake_ctx};

static struct ibv_mr fake_ibv_mr = {.lkey = FAKE_LKEY};
static const struct rpma_mr_local_head local_head = {.ibv_mr = &fake_ibv_mr,
						     .addr = FAKE_ADDR};
static const struct rpma_mr_remote_head remote_head = {.addr = FAKE_ADDR,
						       .rkey = FAKE_RKEY};
struct rpma_mr_local *const fake_local = (struct rpma_mr_local *)&local_head;
struct rpma_mr_remote *const fake_remote =
	(struct rpma_mr_remote *)&remote_head;

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_SUCCESS ? "success"
					: "transport retry counter "
					  "exceeded";
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	*attr = fake_attr;
	return fake_failing("ibv_query_device");
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq,
		     void **context)
{
	struct rpma_channel *channel = (struct rpma_channel *)ibv;
	struct rpma_cq *source;

	if (channel->errno_next) {
		errno = channel->errno_next;
		channel->errno_next = 0;
		return -1;
	}
	if (channel->head == channel->tail) {
		errno = channel->errno_empty;
		return -1;
	}
	source = channel->events[channel->head++ % FAKE_QUEUE];
	source->events++;
	*cq = &source->ibv;
	*context = source;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	((struct rpma_cq *)cq)->acked += count;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	int err = fake_failing("get_async_event");
	uint64_t one;

	if (err == 0)
		/* relaxed: the test's own */
		err = atomic_load_explicit(&fake_async_errno,
					   memory_order_relaxed);
	assert_ptr_equal(ctx, &fake_ctx);
	if (err) {
		errno = err;
		return -1;
	}
	if (read(ctx->async_fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	pthread_mutex_lock(&fake.lock);
	*event = fake.async[fake.async_head++ % FAKE_QUEUE];
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	pthread_mutex_lock(&fake.lock);
	fake.async_acked++;
	pthread_mutex_unlock(&fake.lock);
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	(void)id;
	(void)data;
	(void)len;
	return fake_enter("rdma_reject");
}

/* what a handshake that goes on answers; one that is over fails */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr,
		      int *qp_attr_mask)
{
	(void)id;
	assert_int_equal(qp_attr->qp_state, IBV_QPS_RTR);
	*qp_attr_mask = IBV_QP_STATE;
	return fake_enter("rdma_init_qp_attr");
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	assert_non_null(id);
	assert_int_equal(event, IBV_EVENT_COMM_EST);
	return fake_enter("rdma_notify");
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_ADDR_CHANGE ? "address change" : "other";
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	(void)id;
	return fake_enter("rdma_destroy_id");
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	if (fake_enter("rdma_create_event_channel"))
		return NULL;
	return fake_object_new(sizeof(struct rdma_event_channel));
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	fake_enter("rdma_destroy_event_channel");
	fake_object_free(channel);
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	(void)id;
	assert_non_null(channel);
	return fake_enter("rdma_migrate_id");
}

/* what is made to learn whether the device makes it */

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq;

	(void)cqe;
	(void)context;
	(void)channel;
	(void)vector;
	errno = fake_failing("ibv_create_cq");
	if (errno)
		return NULL;
	cq = fake_object_new(sizeof(*cq));
	cq->context = ctx;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	fake_object_free(cq);
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp;

	errno = fake_failing("ibv_create_qp");
	if (errno == 0 && init->cap.max_inline_data > fake_max_inline)
		errno = EINVAL;
	if (errno)
		return NULL;
	init->cap.max_inline_data = fake_max_inline; /* what it got */
	qp = fake_object_new(sizeof(*qp));
	qp->context = pd->context;
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	fake_object_free(qp);
	return 0;
}

int rpma_peer_get_ibv_pd(const struct rpma_peer *peer, struct ibv_pd **ibv_pd)
{
	static struct ibv_pd pd;

	pd.context = peer->ibv_ctx;
	*ibv_pd = &pd;
	return fake_failing("peer_get_ibv_pd");
}

/* what the device brings */

void fake_wc(struct rt_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
	     enum ibv_wc_opcode opcode, uint32_t qp_num)
{
	struct rpma_cq *to = fake_cq(cq);

	to->wcs[to->tail++ % FAKE_QUEUE] = (struct ibv_wc){
		.wr_id = wr_id,
		.status = status,
		.opcode = opcode,
		.vendor_err = status ? 77 : 0,
		.byte_len = 100,
		.imm_data = 1234,
		.wc_flags = IBV_WC_WITH_IMM,
		.qp_num = qp_num,
	};
}

void fake_cq_event(struct rt_cq *cq)
{
	struct rpma_channel *channel = fake_cq(cq)->channel;

	channel->events[channel->tail++ % FAKE_QUEUE] = fake_cq(cq);
}

struct rpma_cq *fake_cq(struct rt_cq *cq)
{
	return cq->cq;
}

struct rpma_channel *fake_channel(struct rt_channel *channel)
{
	return channel->channel;
}

struct fake_qp *fake_qp(const struct rpma_rt_conn *conn)
{
	return (struct fake_qp *)conn->qp;
}

void fake_async_event(enum ibv_event_type type, void *element)
{
	uint64_t one = 1;

	pthread_mutex_lock(&fake.lock);
	fake.async[fake.async_tail++ % FAKE_QUEUE] = (struct ibv_async_event){
		.element.cq = element, .event_type = type};
	pthread_mutex_unlock(&fake.lock);
	assert_int_equal(write(fake_ctx.async_fd, &one, sizeof(one)),
			 sizeof(one));
}

uint32_t fake_async_acked(void)
{
	uint32_t acked;

	pthread_mutex_lock(&fake.lock);
	acked = fake.async_acked;
	pthread_mutex_unlock(&fake.lock);
	return acked;
}

/* ----------------------------------------------------- librpma: objects --- */

/* nothing is logged */
_Atomic int rpma__log_thresholds[RPMA_LOG_THRESHOLD_MAX] = {
	[RPMA_LOG_THRESHOLD] = RPMA_LOG_DISABLED,
};

void rpma__log_refuse(const char *file, int line, const char *function,
		      const char *words)
{
	(void)file;
	(void)line;
	(void)function;
	(void)words;
}

void rpma__log_refuse_null(const char *file, int line, const char *function,
			   int err, const char *words, const char *names,
			   const void *const *pointers)
{
	(void)err;
	(void)names;
	(void)pointers;
	rpma__log_refuse(file, line, function, words);
}

rpma__log_function *rpma__log_get_function(void)
{
	return NULL;
}

int rpma_peer_get_ibv_context(const struct rpma_peer *peer,
			      struct ibv_context **ibv_ctx)
{
	int ret = fake_failing("peer_get_ibv_context");

	if (ret == 0)
		*ibv_ctx = peer->ibv_ctx;
	return ret;
}

int rpma_channel_new(struct ibv_context *ctx, struct rpma_channel **channel_ptr)
{
	struct rpma_channel *channel;
	int ret = fake_enter("channel_new");

	if (ret)
		return ret;
	channel = fake_object_new(sizeof(*channel));
	channel->ibv.context = ctx;
	channel->ibv.fd = __real_eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	channel->errno_empty = EAGAIN;
	*channel_ptr = channel;
	return 0;
}

int rpma_channel_delete(struct rpma_channel **channel_ptr)
{
	int ret = fake_enter("channel_delete");

	assert_int_equal((*channel_ptr)->cqs, 0);
	close((*channel_ptr)->ibv.fd);
	fake_object_free(*channel_ptr);
	*channel_ptr = NULL;
	return ret;
}

int rpma_channel_get_fd(const struct rpma_channel *channel, int *fd)
{
	*fd = channel->ibv.fd;
	return 0;
}

int rpma_channel_get_ibv_channel(const struct rpma_channel *channel,
				 struct ibv_comp_channel **ibv_channel)
{
	*ibv_channel = (struct ibv_comp_channel *)(uintptr_t)&channel->ibv;
	return 0;
}

static struct {
	void (*fn)(void *arg);
	void *arg;
} made;

void fake_when_made(void (*fn)(void *arg), void *arg)
{
	made.fn = fn;
	made.arg = arg;
}

int rpma_cq_new(struct ibv_context *ctx, int cqe, struct rpma_channel *channel,
		int comp_vector, void *context, struct rpma_cq **cq_ptr)
{
	void (*fn)(void *arg) = made.fn;
	struct rpma_cq *cq;
	int ret = fake_enter("cq_new");

	made.fn = NULL;
	if (fn != NULL)
		fn(made.arg);
	if (ret)
		return ret;
	assert_true(comp_vector >= 0);
	assert_true(comp_vector < ctx->num_comp_vectors || comp_vector == 0);
	cq = fake_object_new(sizeof(*cq));
	cq->ibv.context = ctx;
	cq->ibv.cqe = cqe;
	cq->vector = comp_vector;
	cq->channel = channel;
	cq->ibv.channel = &channel->ibv;
	cq->context = context;
	channel->cqs++;
	*cq_ptr = cq;
	return 0;
}

int rpma_cq_delete(struct rpma_cq **cq_ptr)
{
	int ret = fake_enter("cq_delete");
	struct rpma_cq *cq = *cq_ptr;

	if (ret == RPMA_E_AGAIN)
		return ret;
	/* more or fewer: ibv_destroy_cq() would hang */
	assert_int_equal(cq->acked, cq->events);
	assert_null(cq->owner);
	cq->channel->cqs--;
	fake_object_free(cq);
	*cq_ptr = NULL;
	return ret;
}

int rpma_cq_claim(struct rpma_cq *cq, const void *owner)
{
	int ret = fake_failing("cq_claim");

	if (ret)
		return ret;
	cq->owner = owner;
	return 0;
}

int rpma_cq_release(struct rpma_cq *cq, const void *owner)
{
	assert_ptr_equal(cq->owner, owner);
	cq->owner = NULL;
	return 0;
}

int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd)
{
	if (cq->owner != NULL)
		return RPMA_E_SHARED_CHANNEL;
	*fd = cq->channel->ibv.fd;
	return 0;
}

int rpma_cq_get_ibv_cq(const struct rpma_cq *cq, struct ibv_cq **ibv_cq)
{
	*ibv_cq = (struct ibv_cq *)(uintptr_t)&cq->ibv;
	return 0;
}

int rpma_cq_get_context(const struct rpma_cq *cq, void **context)
{
	int ret = fake_failing("cq_get_context");

	if (ret == 0)
		*context = cq->context;
	return ret;
}

/* the CM channel: an eventfd semaphore and events behind it */
struct rpma_cm_channel {
	int fd;
	struct rpma_cm_event events[FAKE_QUEUE];
	uint32_t head;
	uint32_t tail;
};

int rpma_cm_channel_new(struct rpma_cm_channel **channel_ptr)
{
	struct rpma_cm_channel *channel;
	int ret = fake_enter("cm_channel_new");

	if (ret)
		return ret;
	channel = fake_object_new(sizeof(*channel));
	channel->fd =
		__real_eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
	*channel_ptr = channel;
	return 0;
}

int rpma_cm_channel_delete(struct rpma_cm_channel **channel_ptr)
{
	int ret = fake_enter("cm_channel_delete");

	close((*channel_ptr)->fd);
	fake_object_free(*channel_ptr);
	*channel_ptr = NULL;
	return ret;
}

int rpma_cm_channel_get_fd(const struct rpma_cm_channel *channel, int *fd)
{
	*fd = channel->fd;
	return 0;
}

int rpma_cm_channel_get_event(struct rpma_cm_channel *channel,
			      struct rpma_cm_event *event)
{
	int ret = fake_failing("cm_channel_get_event");
	uint64_t one;

	if (ret > 0) { /* librdmacm's */
		errno = ret;
		return RPMA_E_PROVIDER;
	}
	if (read(channel->fd, &one, sizeof(one)) != sizeof(one))
		return RPMA_E_NO_EVENT;
	pthread_mutex_lock(&fake.lock);
	*event = channel->events[channel->head++ % FAKE_QUEUE];
	pthread_mutex_unlock(&fake.lock);
	if (event->id != NULL && event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		event->id->context = event->context; /* as librdmacm */
	else if (event->id != NULL)
		event->context = event->id->context;
	return 0;
}

int rpma_cm_event_ack(struct rpma_cm_event *event)
{
	(void)event;
	pthread_mutex_lock(&fake.lock);
	fake.cm_acked++;
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

void fake_cm_event(struct rpma_rt *rt, int type, void *context)
{
	fake_cm_event_of(rt, type, context, NULL);
}

void fake_cm_event_of(struct rpma_rt *rt, int type, void *context,
		      struct rdma_cm_id *id)
{
	/* relaxed: one thread */
	const struct rt_device *device =
		atomic_load_explicit(&rt->devices, memory_order_relaxed);
	struct rpma_cm_channel *channel = device->cm->channel;
	uint64_t one = 1;

	pthread_mutex_lock(&fake.lock);
	channel->events[channel->tail++ % FAKE_QUEUE] = (struct rpma_cm_event){
		.type = type, .context = context, .id = id};
	pthread_mutex_unlock(&fake.lock);
	assert_int_equal(write(channel->fd, &one, sizeof(one)), sizeof(one));
}

uint32_t fake_cm_acked(void)
{
	uint32_t acked;

	pthread_mutex_lock(&fake.lock);
	acked = fake.cm_acked;
	pthread_mutex_unlock(&fake.lock);
	return acked;
}

struct rpma_ep {
	uint16_t port;
};

static struct {
	void (*fn)(void *arg);
	void *arg;
} listening;

void fake_when_listening(void (*fn)(void *arg), void *arg)
{
	listening.fn = fn;
	listening.arg = arg;
}

int rpma_ep_listen_ex(struct rpma_peer *peer, const char *addr,
		      const char *port, int backlog, struct rpma_cm_channel *cm,
		      void *context, struct rpma_ep **ep_ptr)
{
	void (*fn)(void *arg) = listening.fn;
	int ret = fake_enter("ep_listen");

	(void)peer;
	(void)addr;
	(void)backlog;
	assert_non_null(cm);
	assert_non_null(context);
	if (ret)
		return ret;
	listening.fn = NULL;
	if (fn != NULL)
		fn(listening.arg);
	*ep_ptr = fake_object_new(sizeof(**ep_ptr));
	(*ep_ptr)->port = (uint16_t)atoi(port);
	return 0;
}

int rpma_ep_get_port(const struct rpma_ep *ep, uint16_t *port)
{
	*port = ep->port;
	return 0;
}

int rpma_ep_shutdown(struct rpma_ep **ep_ptr)
{
	int ret = fake_enter("ep_shutdown");

	fake_object_free(*ep_ptr);
	*ep_ptr = NULL;
	return ret;
}
