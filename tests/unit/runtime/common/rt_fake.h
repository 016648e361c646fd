/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Fakes of everything that the runtime uses: a device whose completion queues
 * hold the completions put there by the test, objects of librpma as counters,
 * an allocator and system calls that fail on demand. And a runtime without
 * threads: the test runs the inboxes of the threads of the device and the
 * rounds of the poller by hand, so every interleaving is a plain sequence of
 * calls.
 */

#ifndef RT_FAKE_H
#define RT_FAKE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "../../../cases.h"
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

/* a call that must return 0 */
#define ok(call) assert_int_equal(call, 0)

#define FAKE_QUEUE 512 /* WRs, WCs, events in a fake */

/* a queue pair: the work requests posted */
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
	/* a completion that appears while the CQ is being armed */
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
	int errno_empty; /* without an event: EAGAIN, or another error */
};

struct rpma_conn_req {
	struct fake_qp *qp;
	const void *owner;
	struct rdma_cm_id *id;
};

struct rpma_conn {
	struct fake_qp *qp;
	const void *owner;
	/* a connection made elsewhere */
	struct rpma_cq *cq;
	struct rpma_cq *rcq;
	bool direct_write; /* of the peer: a persistent flush may be posted */
};

struct rpma_srq {
	struct ibv_srq ibv;  /* first */
	struct rpma_cq *rcq; /* of a connection made elsewhere */
	uint64_t posted[FAKE_QUEUE];
	uint32_t count;
	uint32_t limit;
	uint32_t max_sge; /* as requested by the configuration */
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
/* The most inline bytes that a queue pair may have. */
extern uint32_t fake_max_inline;
/* The error of reading asynchronous events; 0: no error. */
extern _Atomic int fake_async_errno;

/* Makes the nth call of the name from now on, counted from 1, fail once: with
 * value as result of librpma, as errno of verbs and the system. Reading a CM
 * event fails with an errno. */
void fake_fail(const char *call, int nth, int value);
/* The errno left by calls failing with RPMA_E_PROVIDER: EIO at first. */
extern int fake_errno;
/* Returns true if every requested failure has happened. */
bool fake_failed(void);
/* The number of messages of trouble since the last call, and the last message
 * of mere news. */
int fake_logged(void);
const char *fake_news(void);
/* How many messages of any level came since they were forgotten, and the
 * last. */
int fake_messages(enum rpma_log_level *level, char *text, size_t size);
void fake_forget_messages(void);
/* Returns true if the calling thread holds log messages of librpma. */
bool fake_log_is_held(void);
/* Checks that librpma may write a message, as where a message is written. */
void fake_may_log(void);
/* Checks from now on that no lock of this runtime and its connections is held
 * where a message is logged. No other thread may hold such a lock. NULL: no
 * runtime. */
void fake_watch_locks(struct rpma_rt *rt);
/* Returns true if the last message has the words. */
bool fake_said(const char *words);
/* Returns a dump, valid until the next dump. */
const char *fake_dump(struct rpma_rt *rt, enum rpma_rt_dump_format format);
/* Asserts that a dump has the words. */
void fake_dumped(struct rpma_rt *rt, enum rpma_rt_dump_format format,
		 const char *words);
/*
 * The calls that make, move or delete an object, in order, separated by a
 * space.
 */
const char *fake_trace(void);
void fake_forget_trace(void);
/* The number of pieces of memory, and of objects of librpma. */
int fake_memory(void);
int fake_objects(void);

/* ---- events of the device ---- */

void fake_wc(struct rt_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
	     enum ibv_wc_opcode opcode, uint32_t qp_num);
/* Calls fn once, from the maker, while the next CQ is made. */
void fake_when_made(void (*fn)(void *arg), void *arg);
/* While a listener is put on the network next: likewise. */
void fake_when_listening(void (*fn)(void *arg), void *arg);
/* A completion event of the CQ, to be read from its channel. */
void fake_cq_event(struct rt_cq *cq);
struct rpma_cq *fake_cq(struct rt_cq *cq);
struct rpma_channel *fake_channel(struct rt_channel *channel);
/* The id for events without an id: tests give the address. */
extern struct rdma_cm_id fake_id;
/* The number of the next queue pair. */
extern uint32_t fake_qp_num;
struct fake_qp *fake_qp(const struct rpma_rt_conn *conn);
/* The next async event; element is the ibv_cq or ibv_qp. */
void fake_async_event(enum ibv_event_type type, void *element);
uint32_t fake_async_acked(void);
/* The next CM event of the runtime's channel. */
void fake_cm_event(struct rpma_rt *rt, int type, void *context);
/* A CM event, of an id. */
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

#define FAKE_SQ	  8
#define FAKE_RQ	  8
#define FAKE_SLOT 32 /* bytes of a pool's slot */

/* Makes one poller, one queue; sizes FAKE_SQ and FAKE_RQ for connections. */
int fake_setup(void **state);
/* Nothing may be left. */
int fake_teardown(void **state);
/* Begins a case that has the fake f. */
#define FAKE_TEST(name) TEST_OF(struct fake *f, name, fake_setup, fake_teardown)

/* Runs the inboxes of the device's threads, control and destroyer, until both
 * are empty. */
void fake_control(struct fake *f);
/* Runs the control thread: reads the pending CM events. */
void fake_cm_ready(struct fake *f);
/* Calls fn once, after the next answer of a poller, before the waiting caller
 * goes on. The caller may hold the lock of the runtime. */
void fake_when_answered(void (*fn)(void *arg), void *arg);
/* Calls fn once when an inbox is next found empty, before its owner goes on.
 * Set before the thread of the owner begins. */
void fake_when_empty(void (*fn)(void *arg), void *arg);
/* Runs a round of the poller. */
int fake_round(struct fake *f);
/* Both, until neither has anything to do. */
void fake_finish_down(struct fake *f);
/* Everything in the queue into items, got = how many. */
int fake_take(struct fake *f, struct rpma_rt_queue *queue);

/* Makes a pool; sends: as in rpma_rt_pool_cfg. */
struct rpma_rt_pool *fake_pool(struct fake *f, uint32_t count, uint32_t sends);

/* Returns a configuration of shards that hear items and messages, and do
 * nothing. */
struct rpma_rt_shards_cfg fake_shards_cfg(void);

/* Lets the listener take rt_cfg over, as in fake_request(). */
void fake_configure(struct fake *f);
/* A request of the other side; returns its handle, from EVENT_REQUEST. */
struct rpma_rt_conn *fake_request(struct fake *f);
/* A request, accepted and established; the queue is empty. */
struct rpma_rt_conn *fake_established(struct fake *f);
void fake_conn_event(struct rpma_rt_conn *conn, int type, int status);
/*
 * Lets the connection die, asserts that CLOSED is the last item, puts the
 * handle.
 */
void fake_bury(struct fake *f, struct rpma_rt_conn **conn);

/* Posts a single work request: 0 or an error. */
int fake_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr);
int fake_post_recv(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr);
int fake_send(struct rpma_rt_conn *conn, uint64_t context, int flags);
int fake_recv(struct rpma_rt_conn *conn, uint64_t context);
/* Returns the wr_id of a send or receive, by index. */
uint64_t fake_sq_id(const struct rpma_rt_conn *conn, uint32_t index);
uint64_t fake_rq_id(const struct rpma_rt_conn *conn, uint32_t index);
/* Calls fn once when the device next gets work requests, before the device
 * takes the first: stands for other threads while a thread is in the verb. */
void fake_when_posting(void (*fn)(void *arg), void *arg);
/* Calls fn once when the device has the next sends, before the thread returns
 * from the verb. */
void fake_when_posted(void (*fn)(void *arg), void *arg);
/*
 * Calls fn once when librpma next prepares a send, before the send is posted.
 */
void fake_when_preparing(void (*fn)(void *arg), void *arg);
/* Completes the index-th work request posted there. */
void fake_sent(struct rpma_rt_conn *conn, uint32_t index,
	       enum ibv_wc_status status);
void fake_received(struct rpma_rt_conn *conn, uint32_t index,
		   enum ibv_wc_status status);
/* Completes the index-th receive of the SRQ, taken by the queue pair. */
void fake_srq_wc(const struct rpma_rt_conn *conn, const struct rpma_rt_srq *srq,
		 uint32_t index, enum ibv_wc_status status);
/* Called before a post to an SRQ returns from the device; NULL, the default:
 * nothing is called. */
extern void (*fake_srq_posted)(void);
int fake_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
/* Reports that the limit of the SRQ was passed. */
void fake_srq_limit(struct rpma_rt_srq *srq);
/* Reports that draining took too long. */
void fake_drain_time_over(struct fake *f, struct rpma_rt_conn *conn);
/* Reports that the device takes no further receive of the SRQ. */
void fake_last_wqe(struct rpma_rt_conn *conn);
/* Both markers come in, as flushed. */
void fake_markers(struct rpma_rt_conn *conn);
/* Closes the newest connection of struct fake *arg, until its last items are
 * written and the control thread is about to be told. */
void fake_die(void *arg);

/*
 * Another thread, which does something and then stays until the test ends the
 * thread.
 */
struct fake_thread {
	pthread_t thread;
	sem_t stays;
	sem_t ends;
};

/* Starts fn(arg) and waits until the thread stays. */
void fake_thread_begin(struct fake_thread *thread, void *(*fn)(void *),
		       void *arg);
/* Stays, in the thread, until fake_thread_end(). */
void fake_thread_stay(struct fake_thread *thread);
void fake_thread_end(struct fake_thread *thread);

/* ---- for the fakes themselves ---- */

/*
 * fake_failing() returns the value for the call to fail with, or 0;
 * fake_enter() also records the call.
 */
int fake_failing(const char *call);
/* Calls the function given to fake_when_posting(). */
void fake_in_verb(void);
int fake_enter(const char *call);
void *fake_object_new(size_t size);
void fake_object_free(void *object);

#endif /* RT_FAKE_H */
