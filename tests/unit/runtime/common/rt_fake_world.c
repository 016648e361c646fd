/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* A runtime without threads, and a connection's life by hand; see rt_fake.h. */

#define _GNU_SOURCE
#include "rt_fake.h"
#include "conn/listener.h"

#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/wait.h"
#include "future/future.h"
#include "poller/round.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

int __real_rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
			int (*fn)(void *arg), void *arg);
int __wrap_rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
			int (*fn)(void *arg), void *arg);
int __real_rt_call_wait(struct rt_call *call, struct rt_owned *poller);
int __wrap_rt_call_wait(struct rt_call *call, struct rt_owned *poller);
int __real_rt_async_watch(struct rt_async_device *device);
int __wrap_rt_async_watch(struct rt_async_device *device);

int __real_rt_inbox_run_owner(struct rt_inbox *inbox, void *owner);
int __wrap_rt_inbox_run_owner(struct rt_inbox *inbox, void *owner);

static struct rpma_rt *by_hand; /* the runtime that has no threads */
/* what a failed test before this one left */
static int objects_before;
static int memory_before;

static void (*answered_fn)(void *arg); /* NULL: nothing happens then */
static void *answered_arg;

void fake_when_answered(void (*fn)(void *arg), void *arg)
{
	answered_fn = fn;
	answered_arg = arg;
}

/* A poller has answered: what was asked for happens before the caller knows. */
int __wrap_rt_call_wait(struct rt_call *call, struct rt_owned *poller)
{
	int ret = __real_rt_call_wait(call, poller);
	void (*answered)(void *arg) = answered_fn;

	answered_fn = NULL;
	if (answered != NULL)
		answered(answered_arg);
	return ret;
}

static bool is_of_device(const struct rt_device *device,
			 const struct rt_inbox *inbox)
{
	return inbox == &device->control.inbox ||
	       inbox == &device->destroyer.inbox;
}

static struct rt_device *device_of(const struct rpma_rt *rt)
{
	/* relaxed: one thread */
	return atomic_load_explicit(&rt->devices, memory_order_relaxed);
}

/* Its control thread and its destroyer are the caller. */
int __wrap_rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
			int (*fn)(void *arg), void *arg)
{
	if (by_hand == NULL || !is_of_device(device_of(by_hand), inbox))
		return __real_rt_call_sync(rt, inbox, fn, arg);
	while (rt_inbox_run_owner(inbox, by_hand) > 0)
		;
	return fn(arg);
}

static void (*empty_fn)(void *arg); /* NULL: nothing happens then */
static void *empty_arg;

void fake_when_empty(void (*fn)(void *arg), void *arg)
{
	empty_arg = arg;
	empty_fn = fn;
}

int __wrap_rt_inbox_run_owner(struct rt_inbox *inbox, void *owner)
{
	int count = __real_rt_inbox_run_owner(inbox, owner);
	void (*empty)(void *arg) = empty_fn;

	if (count == 0 && empty != NULL) {
		empty_fn = NULL;
		empty(empty_arg);
	}
	return count;
}

/* There is no event thread either. */
int __wrap_rt_async_watch(struct rt_async_device *device)
{
	if (by_hand == NULL)
		return __real_rt_async_watch(device);
	return fake_enter("async_watch");
}

/* ---------------------------------------------------- a runtime by hand --- */

static void thread_init(struct rt_thread *thread, struct rpma_rt *rt)
{
	ok(rt_bell_init(&thread->bell));
	ok(rt_inbox_init(&thread->inbox, &thread->bell));
	ok(rt_inbox_init(&thread->later, &thread->bell));
	thread->rt = rt;
	thread->epfd = epoll_create1(EPOLL_CLOEXEC);
}

static void thread_fini(struct rt_thread *thread)
{
	rt_inbox_fini(&thread->later);
	rt_inbox_fini(&thread->inbox);
	rt_bell_fini(&thread->bell);
	close(thread->epfd);
}

static struct rt_device *device_new(struct rpma_rt *rt)
{
	struct rt_device *device = calloc(1, sizeof(*device));

	assert_non_null(device);
	device->rt = rt;
	device->ibv_ctx = &fake_ctx;
	thread_init(&device->control, rt);
	thread_init(&device->destroyer, rt);
	ok(rt_cm_new(device, &device->cm));
	return device;
}

static void device_free(struct rt_device *device)
{
	rt_cm_end_control(device->cm); /* it may be resting */
	rt_cm_delete(device->cm);
	thread_fini(&device->destroyer);
	thread_fini(&device->control);
	free(device);
}

static struct rpma_rt *rt_new(void)
{
	struct rpma_rt *rt = calloc(1, sizeof(*rt));

	assert_non_null(rt);
	by_hand = rt;
	ok(rpma_rt_cfg_init(&rt->cfg, sizeof(rt->cfg)));
	rt->cfg.mode = RPMA_RT_MODE_MANUAL;
	rt->cfg.cq_size = 64;
	rt->drop_item = rt_conn_drop_item;
	rt->device_ops = &rt_lost_ops;
	pthread_mutex_init(&rt->lock, NULL);
	pthread_mutex_init(&rt->ask_lock, NULL);
	pthread_mutex_init(&rt->directory, NULL);
	CDS_INIT_LIST_HEAD(&rt->listed_listeners);
	CDS_INIT_LIST_HEAD(&rt->listed_srqs);
	CDS_INIT_LIST_HEAD(&rt->listed_adopted);
	CDS_INIT_LIST_HEAD(&rt->listed_pools);
	CDS_INIT_LIST_HEAD(&rt->listed_shards);
	rt_wait_cond_init(&rt->quiet);
	rt_wait_cond_init(&rt->changed);
	/* relaxed: nobody else knows it */
	atomic_store_explicit(&rt->devices, device_new(rt),
			      memory_order_relaxed);
	rt->pollers = aligned_alloc(RT_CACHE_LINE, sizeof(*rt->pollers));
	assert_non_null(rt->pollers);
	ok(rt_poller_init(&rt->pollers[0], rt, 0, RPMA_RT_CPU_ANY));
	ok(rt_internal_new(&rt->pollers[0]));
	return rt;
}

static void rt_free(struct rpma_rt *rt)
{
	struct rt_channel *channel;
	struct rt_cq *cq;

	for (channel = rt->pollers[0].channels; channel != NULL;
	     channel = channel->next) {
		for (cq = channel->cqs; cq != NULL; cq = cq->next)
			rt_async_disown(&cq->async);
	}
	rt_conn_free_left(rt);
	rt_future_finish_all(rt); /* as a stop does */
	assert_int_equal(rt_future_held(rt), 0);
	rt_future_free_all(rt);
	rt_queue_free_idle(rt);
	assert_true(rt_owner_close(&rt->pollers[0].owned));
	ok(rt_cq_pool_fini(&rt->pollers[0]));
	rt_internal_delete(&rt->pollers[0]);
	rt_poller_fini(&rt->pollers[0]);
	rt_queue_free_idle(rt);
	free(rt->pollers);
	device_free(device_of(rt));
	pthread_cond_destroy(&rt->changed);
	pthread_cond_destroy(&rt->quiet);
	pthread_mutex_destroy(&rt->directory);
	pthread_mutex_destroy(&rt->ask_lock);
	pthread_mutex_destroy(&rt->lock);
	free(rt);
}

struct rpma_rt_pool *fake_pool(struct fake *f, uint32_t count, uint32_t sends)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool;

	cfg.peer = &fake_peer;
	cfg.count = count;
	cfg.slot_size = FAKE_SLOT;
	cfg.sends = sends;
	ok(rpma_rt_pool_new(f->rt, &cfg, &pool));
	return pool;
}

static void hear_item(struct rpma_rt_shard *shard,
		      const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void hear_message(struct rpma_rt_shard *shard,
			 const struct rpma_rt_shard_message *message, void *arg)
{
	(void)shard;
	(void)message;
	(void)arg;
}

struct rpma_rt_shards_cfg fake_shards_cfg(void)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;

	cfg.item_fn = hear_item;
	cfg.message_fn = hear_message;
	return cfg;
}

void fake_configure(struct fake *f)
{
	rt_conn_cfg_fini(&f->listener.cfg);
	ok(rt_conn_cfg_read(&f->rt_cfg, f->rt, &f->listener.cfg));
}

int fake_setup(void **state)
{
	struct fake *f;

	objects_before = fake_objects();
	memory_before = fake_memory();
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->rt = rt_new();
	f->device = device_of(f->rt);
	f->poller = &f->rt->pollers[0];
	ok(rpma_rt_queue_new(f->rt, NULL, &f->queue));
	ok(rpma_rt_conn_cfg_init(&f->rt_cfg, sizeof(f->rt_cfg)));
	f->rt_cfg.poller = 0;
	f->rt_cfg.peer = &fake_peer;
	f->rt_cfg.queue = f->queue;
	f->rt_cfg.user = f;
	f->rt_cfg.sq_size = FAKE_SQ;
	f->rt_cfg.rq_size = FAKE_RQ;
	f->rt_cfg.waiting = RPMA_RT_NO_WAITING;
	/* relaxed: the test's own */
	atomic_store_explicit(&f->listener.target.count, 1,
			      memory_order_relaxed);
	f->listener.rt = f->rt;
	f->listener.device = f->device;
	f->listener.is_listed = true;
	fake_configure(f);
	fake_forget_trace();
	*state = f;
	return 0;
}

int fake_teardown(void **state)
{
	struct fake *f = *state;

	assert_true(fake_failed());
	assert_null(f->rt->conns);
	assert_int_equal(f->rt->in_use, 0);
	ok(rpma_rt_queue_delete(&f->queue));
	/* relaxed: no other thread */
	assert_int_equal(
		atomic_load_explicit(&f->rt->handles, memory_order_relaxed), 0);
	rt_conn_cfg_fini(&f->listener.cfg);
	rt_free(f->rt);
	by_hand = NULL;
	free(f);
	assert_int_equal(fake_objects(), objects_before);
	assert_int_equal(fake_memory(), memory_before);
	return 0;
}

static int run_device(struct fake *f)
{
	return rt_thread_run_messages(&f->device->control) +
	       rt_thread_run_messages(&f->device->destroyer);
}

void fake_control(struct fake *f)
{
	while (run_device(f) > 0)
		;
}

void fake_cm_ready(struct fake *f)
{
	f->device->cm->source.ready(&f->device->cm->source);
}

int fake_round(struct fake *f)
{
	int done;

	/* as the poller: what it calls may not wait */
	ok(rt_poller_enter(f->poller));
	/* each CQ is polled, whatever rounds of other tests found */
	rt_cqs_wake_all_poller(f->poller);
	done = rt_round_run(f->poller, INT_MAX);
	rt_poller_leave(f->poller);
	return done;
}

void fake_finish_down(struct fake *f)
{
	int done;

	do {
		done = run_device(f);
		done += fake_round(f);
	} while (done > 0 || !rt_thread_is_idle(&f->device->control) ||
		 !rt_thread_is_idle(&f->device->destroyer));
}

int fake_take(struct fake *f, struct rpma_rt_queue *queue)
{
	memset(f->items, 0, sizeof(f->items));
	f->got = rpma_rt_queue_poll(queue, f->items, FAKE_QUEUE);
	if (f->got < 0) /* closed, and nothing in it */
		f->got = 0;
	return f->got;
}

/* -------------------------------------------------- a connection's life --- */

static struct rpma_rt_conn *handle_of(const struct rpma_rt_completion *item)
{
	return (struct rpma_rt_conn *)(uintptr_t)item->context;
}

struct rpma_rt_conn *fake_request(struct fake *f)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_CONNECT_REQUEST,
				      .id = &f->id};

	fake_configure(f);
	rt_conn_request_control(&f->listener, &event);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_EVENT);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_REQUEST);
	return handle_of(&f->items[0]);
}

void fake_conn_event(struct rpma_rt_conn *conn, int type, int status)
{
	struct rpma_cm_event event = {.type = type, .status = status};

	rt_conn_cm_event_control(conn, &event);
}

struct rpma_rt_conn *fake_established(struct fake *f)
{
	struct rpma_rt_conn *conn = fake_request(f);

	ok(rpma_rt_conn_accept(conn, NULL));
	fake_finish_down(f);
	fake_conn_event(conn, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_ESTABLISHED);
	fake_forget_trace();
	return conn;
}

void fake_drain_time_over(struct fake *f, struct rpma_rt_conn *conn)
{
	assert_int_equal(conn->poll.state, RT_PS_DRAINING);
	conn->poll.deadline_ns = 0;
	rt_schedule_ready(f->poller, &conn->poll.dying);
}

void fake_die(void *arg)
{
	struct fake *f = arg;
	struct rpma_rt_conn *conn = f->rt->conns;

	ok(rpma_rt_conn_close(conn));
	while (rt_slots_of(f->poller)->conns[conn->slot] != NULL) {
		fake_control(f);
		fake_round(f);
		if (conn->poll.state == RT_PS_DRAINING)
			fake_markers(conn);
	}
}

void fake_bury(struct fake *f, struct rpma_rt_conn **conn)
{
	const struct rpma_rt_completion *last;

	if (*conn != NULL)
		ok(rpma_rt_conn_close(*conn));
	fake_finish_down(f);
	if ((*conn)->poll.state == RT_PS_DRAINING)
		fake_markers(*conn);
	fake_finish_down(f);
	assert_true(fake_take(f, f->queue) > 0);
	last = &f->items[f->got - 1];
	assert_int_equal(last->kind, RPMA_RT_EVENT);
	assert_int_equal(last->opcode, RPMA_RT_EVENT_CLOSED);
	assert_ptr_equal(handle_of(last), *conn);
	ok(rpma_rt_conn_unref(conn));
}

int fake_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr)
{
	int ret = rpma_rt_post_send(conn, wr, 1);

	return ret < 0 ? ret : 0;
}

int fake_post_recv(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr)
{
	int ret = rpma_rt_post_recv(conn, wr, 1);

	return ret < 0 ? ret : 0;
}

int fake_send(struct rpma_rt_conn *conn, uint64_t context, int flags)
{
	return rpma_rt_send(conn, fake_local, 0, 8, flags, context);
}

int fake_recv(struct rpma_rt_conn *conn, uint64_t context)
{
	return rpma_rt_recv(conn, fake_local, 0, 8, context);
}

uint64_t fake_sq_id(const struct rpma_rt_conn *conn, uint32_t index)
{
	assert_true(index < fake_qp(conn)->sq_count);
	return fake_qp(conn)->sq[index];
}

uint64_t fake_rq_id(const struct rpma_rt_conn *conn, uint32_t index)
{
	assert_true(index < fake_qp(conn)->rq_count);
	return fake_qp(conn)->rq[index];
}

/* On an error the opcode is not valid. */
static enum ibv_wc_opcode opcode_of(enum ibv_wc_status status,
				    enum ibv_wc_opcode opcode)
{
	return status == IBV_WC_SUCCESS ? opcode : IBV_WC_DRIVER1;
}

void fake_sent(struct rpma_rt_conn *conn, uint32_t index,
	       enum ibv_wc_status status)
{
	fake_wc(conn->cq, fake_sq_id(conn, index), status,
		opcode_of(status, IBV_WC_SEND), conn->qp_num);
}

void fake_received(struct rpma_rt_conn *conn, uint32_t index,
		   enum ibv_wc_status status)
{
	fake_wc(conn->cq, fake_rq_id(conn, index), status,
		opcode_of(status, IBV_WC_RECV), conn->qp_num);
}

void fake_last_wqe(struct rpma_rt_conn *conn)
{
	conn->ctl.async.event(&conn->ctl.async, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void fake_markers(struct rpma_rt_conn *conn)
{
	if (rt_conn_srq(conn) != NULL)
		fake_last_wqe(conn);
	fake_wc(conn->cq, rt_wr_id_internal(RT_SQ_MARKER, conn->slot),
		IBV_WC_WR_FLUSH_ERR, IBV_WC_DRIVER1, conn->qp_num);
	fake_wc(conn->cq, rt_wr_id_internal(RT_RQ_MARKER, conn->slot),
		IBV_WC_WR_FLUSH_ERR, IBV_WC_DRIVER1, conn->qp_num);
}

const char *fake_dump(struct rpma_rt *rt, enum rpma_rt_dump_format format)
{
	static char text[1 << 16];
	int fd = memfd_create("dump", MFD_CLOEXEC);
	ssize_t len;

	assert_true(fd >= 0);
	ok(rpma_rt_dump(rt, fd, format));
	len = pread(fd, text, sizeof(text), 0);
	assert_in_range(len, 1, sizeof(text) - 1);
	text[len] = '\0';
	close(fd);
	return text;
}

void fake_dumped(struct rpma_rt *rt, enum rpma_rt_dump_format format,
		 const char *words)
{
	const char *text = fake_dump(rt, format);

	if (strstr(text, words) == NULL)
		fail_msg("not there: %s\n%s", words, text);
}

void fake_thread_begin(struct fake_thread *thread, void *(*fn)(void *),
		       void *arg)
{
	sem_init(&thread->stays, 0, 0);
	sem_init(&thread->ends, 0, 0);
	ok(pthread_create(&thread->thread, NULL, fn, arg));
	sem_wait(&thread->stays);
}

void fake_thread_stay(struct fake_thread *thread)
{
	sem_post(&thread->stays);
	sem_wait(&thread->ends);
}

void fake_thread_end(struct fake_thread *thread)
{
	sem_post(&thread->ends);
	pthread_join(thread->thread, NULL);
	sem_destroy(&thread->stays);
	sem_destroy(&thread->ends);
}
