/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Fakes of all that the runtime uses: a device whose completion queues hold
 * the completions that the test puts there, librpma's objects as counters, an
 * allocator and system calls that fail on demand. And a runtime without
 * threads: the test runs the inboxes of the device's threads and the poller's
 * rounds by hand, so that every interleaving of them is a plain sequence of
 * calls.
 */

#ifndef RT_FAKE_H
#define RT_FAKE_H

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "rpma_rt.h"
#include "conn/conn.h"
#include "conn/cfg.h"
#include "poller/cq_pool.h"
#include "conn/listener.h"
#include "poller/poller.h"
#include "queue/queue.h"
#include "conn/route.h"
#include "conn/slots.h"
#include "base/runtime.h"
#include "events/events.h"

/* a call that must answer 0 */
#define ok(call) assert_int_equal(call, 0)

#define FAKE_QUEUE 512 /* WRs, WCs, events that a fake holds */

/* a queue pair: what was posted to it */
struct fake_qp {
	struct ibv_qp ibv; /* first */
	uint64_t sq[FAKE_QUEUE];
	uint64_t rq[FAKE_QUEUE];
	bool signaled[FAKE_QUEUE];
	uint32_t sq_count;
	uint32_t rq_count;
	/* the last ones posted, and their first pieces */
	struct ibv_send_wr last_send;
	struct ibv_recv_wr last_recv;
	struct ibv_sge last_sge;
};

/* librpma's objects, as the runtime never sees them */
struct rpma_peer {
	struct ibv_context *ibv_ctx;
};

struct rpma_cq {
	struct ibv_cq ibv; /* first */
	int vector;
	struct rpma_channel *channel;
	void *context;
	const void *owner;
	struct ibv_wc wcs[FAKE_QUEUE];
	uint32_t head;
	uint32_t tail;
	int poll_answer;   /* < 0: instead of completions */
	int notify_answer; /* errno of ibv_req_notify_cq() */
	uint32_t arms;
	uint32_t events; /* read */
	uint32_t acked;
	/* one completion that appears while the CQ is being armed */
	bool on_arm;
	struct ibv_wc wc_on_arm;
};

struct rpma_channel {
	struct ibv_comp_channel ibv; /* first */
	int cqs;
	struct rpma_cq *events[FAKE_QUEUE];
	uint32_t head;
	uint32_t tail;
	int errno_next;	 /* of the next reading, once */
	int errno_empty; /* when there is none: EAGAIN, or another */
};

struct rpma_conn_req {
	struct fake_qp *qp;
	const void *owner;
	struct rdma_cm_id *id;
};

struct rpma_conn {
	struct fake_qp *qp;
	const void *owner;
	/* one made elsewhere */
	struct rpma_cq *cq;
	struct rpma_cq *rcq;
	bool direct_write; /* of the peer: a persistent flush may be posted */
};

struct rpma_srq {
	struct ibv_srq ibv;  /* first */
	struct rpma_cq *rcq; /* of one made elsewhere */
	uint64_t posted[FAKE_QUEUE];
	uint32_t count;
	uint32_t limit;
	uint32_t max_sge; /* that its configuration asked for */
};

extern struct ibv_context fake_ctx;
extern struct rpma_peer fake_peer;
/* regions of this side and of the other */
#define FAKE_LKEY 77
#define FAKE_RKEY 88
#define FAKE_ADDR 0x10000
extern struct rpma_mr_local *const fake_local;
extern struct rpma_mr_remote *const fake_remote;
extern struct ibv_device_attr fake_attr;
/* The most bytes inline that a queue pair may be asked for. */
extern uint32_t fake_max_inline;
/* With which reading asynchronous events fails; 0: it does not. */
extern _Atomic int fake_async_errno;

/* The nth call of that name from now on, counted from 1, fails once: with
 * that return value of librpma, with that errno of verbs and the system.
 * Reading a CM event fails with an errno. */
void fake_fail(const char *call, int nth, int value);
/* What a call leaves in errno that fails with RPMA_E_PROVIDER: EIO at first. */
extern int fake_errno;
/* Has every failure that was asked for happened? */
bool fake_failed(void);
/* Messages of the runtime since the last look, of trouble; the last one that is
 * only news. */
int fake_logged(void);
const char *fake_news(void);
/* How many messages of any level came since they were forgotten, and the
 * last. */
int fake_messages(enum rpma_log_level *level, char *text, size_t size);
void fake_forget_messages(void);
/* Does the calling thread hold what librpma logs? */
bool fake_log_is_held(void);
/* Librpma may write a message: as where one is written. */
void fake_may_log(void);
/* From now on no lock of this runtime and its connections may be held where a
 * message is logged. No other thread may hold one. NULL: no runtime. */
void fake_watch_locks(struct rpma_rt *rt);
/* Are these words in the last of them? */
bool fake_said(const char *words);
/* Calls that make, move or unmake something, in order, a space between. */
const char *fake_trace(void);
void fake_forget_trace(void);
/* Pieces of memory, and objects of librpma, that exist. */
int fake_memory(void);
int fake_objects(void);

/* ---- what happens on the device ---- */

void fake_wc(struct rt_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
	     enum ibv_wc_opcode opcode, uint32_t qp_num);
/* While a CQ is made next: fn is called, once, by its maker. */
void fake_when_made(void (*fn)(void *arg), void *arg);
/* While a listener is put on the network next: likewise. */
void fake_when_listening(void (*fn)(void *arg), void *arg);
/* A completion event of the CQ, to be read from its channel. */
void fake_cq_event(struct rt_cq *cq);
struct rpma_cq *fake_cq(struct rt_cq *cq);
struct rpma_channel *fake_channel(struct rt_channel *channel);
/* The id of what has none of its own: tests give it an address. */
extern struct rdma_cm_id fake_id;
/* The number that the next queue pair gets. */
extern uint32_t fake_qp_num;
struct fake_qp *fake_qp(const struct rpma_rt_conn *conn);
/* The next async event; element is the ibv_cq or ibv_qp. */
void fake_async_event(enum ibv_event_type type, void *element);
uint32_t fake_async_acked(void);
/* The next CM event of the runtime's channel. */
void fake_cm_event(struct rpma_rt *rt, int type, void *context);
/* The same, of an id. */
void fake_cm_event_of(struct rpma_rt *rt, int type, void *context,
		      struct rdma_cm_id *id);
uint32_t fake_cm_acked(void);

/* ---- a runtime without threads ---- */

struct fake {
	struct rpma_rt *rt;
	struct rt_device *device; /* of fake_ctx */
	struct rt_poller *poller; /* the first */
	struct rpma_rt_queue *queue;
	struct rpma_rt_listener listener; /* closed when set */
	struct rdma_cm_id id;
	struct rpma_rt_conn_cfg rt_cfg; /* of the next request, or connection */
	struct rpma_rt_completion items[FAKE_QUEUE];
	int got;
};

#define FAKE_SQ 8
#define FAKE_RQ 8

/* One poller, one queue; sizes FAKE_SQ and FAKE_RQ for connections. */
int fake_setup(void **state);
/* Nothing may be left. */
int fake_teardown(void **state);
#define fake_test(test) \
	cmocka_unit_test_setup_teardown(test, fake_setup, fake_teardown)

/* Runs the inboxes of the device's threads, control and destroyer, until both
 * are empty. */
void fake_control(struct fake *f);
/* The control thread: reads the CM events that are there. */
void fake_cm_ready(struct fake *f);
/* When a poller has answered next, fn is called, once, before the caller that
 * waits goes on. That caller may hold the runtime's lock. */
void fake_when_answered(void (*fn)(void *arg), void *arg);
/* When an inbox is found empty next, before its owner goes on: likewise. Set
 * before the owner's thread begins. */
void fake_when_empty(void (*fn)(void *arg), void *arg);
/* One round of the poller. */
int fake_round(struct fake *f);
/* Both, until neither has anything to do. */
void fake_finish_down(struct fake *f);
/* Everything in the queue into items, got = how many. */
int fake_take(struct fake *f, struct rpma_rt_queue *queue);

/* The listener takes rt_cfg over, as fake_request() lets it. */
void fake_configure(struct fake *f);
/* A request of the other side; its handle, from EVENT_REQUEST. */
struct rpma_rt_conn *fake_request(struct fake *f);
/* The same, accepted and established; nothing is in the queue. */
struct rpma_rt_conn *fake_established(struct fake *f);
void fake_conn_event(struct rpma_rt_conn *conn, int type, int status);
/* Lets it die, asserts that CLOSED is the last item, puts the handle. */
void fake_bury(struct fake *f, struct rpma_rt_conn **conn);

/* One work request: 0 or an error. */
int fake_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr);
int fake_post_recv(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr);
int fake_send(struct rpma_rt_conn *conn, uint64_t context, int flags);
int fake_recv(struct rpma_rt_conn *conn, uint64_t context);
/* The wr_id that a send or receive of that context got. */
uint64_t fake_sq_id(const struct rpma_rt_conn *conn, uint32_t index);
uint64_t fake_rq_id(const struct rpma_rt_conn *conn, uint32_t index);
/* When the device is given work requests next, fn is called, once, before the
 * device takes the first: what other threads do while one is in the verb. */
void fake_when_posting(void (*fn)(void *arg), void *arg);
/* When the device has the sends that it is given next: likewise, while the
 * thread has not come back from the verb. */
void fake_when_posted(void (*fn)(void *arg), void *arg);
/* When librpma prepares a send next: likewise, while one has not posted yet. */
void fake_when_preparing(void (*fn)(void *arg), void *arg);
/* Completion of what was posted there as the index-th. */
void fake_sent(struct rpma_rt_conn *conn, uint32_t index,
	       enum ibv_wc_status status);
void fake_received(struct rpma_rt_conn *conn, uint32_t index,
		   enum ibv_wc_status status);
/* That queue pair took what was posted to the SRQ as the index-th. */
void fake_srq_wc(const struct rpma_rt_conn *conn, const struct rpma_rt_srq *srq,
		 uint32_t index, enum ibv_wc_status status);
/* What happens elsewhere before a post to an SRQ returns from the device; NULL,
 * the default: nothing. */
extern void (*fake_srq_posted)(void);
int fake_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
/* The device says that the limit was passed. */
void fake_srq_limit(struct rpma_rt_srq *srq);
/* What it waits for to drain has not come in time. */
void fake_drain_time_over(struct fake *f, struct rpma_rt_conn *conn);
/* The device takes no receive of its SRQ any more. */
void fake_last_wqe(struct rpma_rt_conn *conn);
/* Both markers come in, as flushed. */
void fake_markers(struct rpma_rt_conn *conn);
/* The newest connection of struct fake *arg is closed, until its last items are
 * written and the control thread is about to be told. */
void fake_die(void *arg);

/* Another thread, which does something and then stays until it is ended. */
struct fake_thread {
	pthread_t thread;
	sem_t stays;
	sem_t ends;
};

/* Starts fn(arg) and waits until it stays. */
void fake_thread_begin(struct fake_thread *thread, void *(*fn)(void *),
		       void *arg);
/* Stays, in the thread, until fake_thread_end(). */
void fake_thread_stay(struct fake_thread *thread);
void fake_thread_end(struct fake_thread *thread);

/* ---- for the fakes themselves ---- */

/* The value that this call is to fail with, or 0; the second writes it down. */
int fake_failing(const char *call);
/* Calls what fake_when_posting() was given. */
void fake_in_verb(void);
int fake_enter(const char *call);
void *fake_object_new(size_t size);
void fake_object_free(void *object);

#endif /* RT_FAKE_H */
