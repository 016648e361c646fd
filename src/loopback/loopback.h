/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loopback.h -- the inside of the loopback device: its objects, the owner of
 * each word of them, and the order of its locks. doc/protocols/loopback.md
 * gives the reasons, and the argument why an object may go away while others
 * execute.
 *
 * Lock order (take only downwards, never two of one line at a time):
 *   1 lb.big         tables, reference counts, create and destroy
 *   2 sq.lock        of one QP: its send queue, and the right to execute it
 *   3 rq.pop         of one QP: its responder, and taking from its RQ
 *   4 rq.post        of the same QP: adding to its RQ
 *   5 srq.pop, then srq.post
 *   6 cq.push, then cq.poll
 *   7 channel.lock, context.lock, the service's and the faults' own mutexes,
 *     the lock of a row of the table of keys
 * A thread holds no lock while it runs a hook, waits for events to be
 * acknowledged, or calls into the rdma_cm half.
 *
 * struct lb_qp never returns to malloc: a pointer to one may be kept by
 * anybody, but means something only after its lock is held and its number
 * compared. The handle that the application has (struct lb_qp_handle) does
 * return, so that a sanitizer sees its late use.
 */

#ifndef LB_LOOPBACK_H
#define LB_LOOPBACK_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#include "base/list.h"
#include "base/lock.h"
#include "rpma_loopback.h"

/* verbs.h makes these macros; here they are functions to define */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define LB_EXPORT    __attribute__((visibility("default")))
#define LB_ALIGNED   alignas(LB_CACHE_LINE)
#define lb_likely(x) __builtin_expect(!!(x), 1)

/* the limits that the device advertises and enforces */
enum {
	LB_MAX_DEVICES = 8,
	LB_MAX_GIDS = 16,
	LB_MAX_QP = 65000, /* of the process */
	LB_MAX_QP_WR = 16384,
	LB_MAX_SGE = 16,
	LB_MAX_INLINE = 256,
	LB_MAX_CQ = 4096,
	LB_MAX_CQE = 65535,
	LB_ROWS =
		65536, /* of the table of keys; regions and windows have one */
	LB_MAX_MR = 49152,
	LB_MAX_MW = 16383,
	LB_MAX_PD = 4096,
	LB_MAX_SRQ = 1024,
	LB_MAX_SRQ_WR = 16384,
	LB_MAX_AH = 4096,
	LB_MAX_MCAST_GRP = 8192,  /* of the process, as the next */
	LB_MAX_MCAST_ATTACH = 56, /* QPs of one group */
	LB_MAX_RD_ATOM = 16,
	LB_MAX_MSG = 1 << 30,
	LB_MAX_PKEYS = 1,
	LB_COMP_VECTORS = 4,
};

enum lb_type {
	LB_NONE,
	LB_CONTEXT = 0x4c420001, /* these are the magic words of the objects */
	LB_PD,
	LB_MR,
	LB_CHANNEL,
	LB_CQ,
	LB_SRQ,
	LB_QP,
	LB_AH,
	LB_MW,
	LB_TD,
};

/*
 * What every object has: its place in the registry of live handles, and how
 * many others refer to it. Under lb.big.
 */
struct lb_obj {
	struct lb_obj *next;
	void *handle; /* what the application holds */
	/* in the handle, and damaged if not the same any more: */
	struct ibv_context *context;
	uint32_t *word;	 /* the number, NULL if it has none */
	uint32_t number; /* what it must be */
	enum lb_type type;
	enum lb_type was; /* before lb_obj_del() */
	int refs;
	struct lb_device *dev;
};

/* ---- device and context ------------------------------------------------ */

struct lb_device {
	struct ibv_device ibv; /* first: the handle */
	int index;
	_Atomic int removed;
	/* immutable after lb_start() */
	int ngids;
	union ibv_gid gids[LB_MAX_GIDS];
	uint64_t guid; /* network byte order */
	char homes[IBV_QPT_UD + 1];
	/* under lb.big */
	int counts[LB_TD - LB_CONTEXT + 1];
	struct lb_list contexts; /* of struct lb_context */
};

/*
 * Where the queue pairs of a type are on a device: of this address only the
 * identity counts, which an executor compares. NULL: nowhere.
 */
static inline const char *lb_home(const struct lb_device *dev,
				  enum ibv_qp_type type)
{
	return dev ? &dev->homes[type] : NULL;
}

/* Asynchronous events of a QP, CQ or SRQ. Under context.lock. */
struct lb_asyncs {
	struct lb_list queued;
	uint32_t reported; /* given out by ibv_get_async_event() */
};

/* An asynchronous event on its way to ibv_get_async_event(). */
struct lb_async {
	struct lb_list node;	  /* of the context */
	struct lb_list of_object; /* of its QP, CQ or SRQ */
	struct lb_asyncs *of;	  /* of that; NULL: it is the context's */
	struct ibv_async_event event;
};

struct lb_context {
	struct lb_obj obj;
	struct lb_list node;   /* of the device; under lb.big */
	pthread_mutex_t lock;  /* the list, and the events of its objects */
	struct lb_list asyncs; /* queued, of struct lb_async */
	/* its end is struct ibv_context, as verbs_get_ctx() expects */
	struct verbs_context vctx;
};

struct lb_pd {
	struct ibv_pd ibv; /* first: the handle */
	struct lb_obj obj;
	struct lb_pd *parent; /* of a parent domain */
};

/* ---- memory regions ---------------------------------------------------- */

/*
 * One row of the table that keys index, of a region or of a window. The row
 * of a region is valid for a key while lkey or rkey is that key; its other
 * fields do not change meanwhile. The row of a window has no lkey, and all of
 * it but window is under its lock: see mw.c.
 */
struct lb_mr_row {
	_Atomic uint32_t lkey; /* 0: nobody's */
	_Atomic uint32_t rkey;
	uint32_t access;
	uint32_t tag;  /* of its last keys; under lb.big */
	uint64_t iova; /* what the keys' addresses count from */
	uint64_t length;
	uint8_t *base; /* where iova is in this process */
	struct ibv_pd *pd;
	struct lb_mw *window; /* NULL: a region's row, or free */
	struct lb_lock lock;
	uint32_t windows; /* that are bound to this region; under lock */
};

struct lb_mr {
	struct ibv_mr ibv; /* first: the handle */
	struct lb_obj obj;
	struct lb_mr_row *row;
};

/* A memory window. Under the lock of its row, but for the handle. */
struct lb_mw {
	struct ibv_mw ibv; /* first: the handle */
	struct lb_obj obj;
	uint32_t magic;
	uint32_t key; /* the rkey it has, or had when it was last bound */
	struct lb_mr_row *row;
	struct lb_mr_row *region; /* NULL: not bound */
	uint64_t qp_order;	  /* of the only QP that may use it; 0: any */
};

/* A run of local memory. */
struct lb_span {
	uint8_t *addr;
	uint64_t len;
};

/* ---- completion queues and channels ------------------------------------ */

struct lb_channel {
	struct ibv_comp_channel ibv; /* first: the handle */
	struct lb_obj obj;
	uint32_t magic;
	pthread_mutex_t lock; /* the list, and pending of its CQs */
	struct lb_cq *first;  /* CQs with events, in the order of events */
	struct lb_cq **last;
};

/* One completion, one cache line. */
struct lb_cqe {
	struct ibv_wc wc;
	_Atomic uint32_t seq; /* position + 1 when full; see cq.c */
	uint32_t pos;	      /* the slot that its request has */
	/*
	 * What the poll of this moves on behind pos: the queue's word, or
	 * lb_cq_no_slot; NULL: cleaned, skip. Of a queue pair's slot, which
	 * is never freed.
	 */
	_Atomic uint32_t *freed;
};

/* When a completion was added, of a CQ that was asked to keep it. */
struct lb_stamp {
	uint64_t raw;  /* nanoseconds of lb_now() */
	uint64_t wall; /* nanoseconds since 1970 */
};

/* The CQs with events that a thread has made and not yet handed over. */
struct lb_due {
	struct lb_cq *first;
};

enum lb_arm {
	LB_ARM_NONE,
	LB_ARM_SOLICITED,
	LB_ARM_ANY,
};

struct lb_cq {
	union {
		struct ibv_cq ibv; /* first: the handle */
		struct ibv_cq_ex ex;
	};
	uint8_t slack[64]; /* for callers built with a longer ibv_cq_ex */
	struct lb_obj obj;
	uint32_t magic;
	bool has_ex;
	uint64_t wc_flags;
	struct lb_channel *channel;
	uint32_t cap; /* entries; under both locks */
	uint32_t mask;
	struct lb_cqe *ring;
	struct lb_stamp *stamps; /* one for each entry; NULL: not kept */

	/* under push: by executors that complete, and by arming */
	LB_ALIGNED struct lb_lock push;
	uint32_t tail;
	uint32_t head_seen; /* head as of the last look */
	enum lb_arm armed;
	bool dead;
	uint32_t due;		/* events made, not yet handed to the channel */
	uint32_t delivering;	/* being handed to the channel */
	struct lb_cq *due_next; /* by the thread that made due 1 */

	/* under poll: by the poller */
	LB_ALIGNED struct lb_lock poll;
	_Atomic uint32_t head;
	struct lb_cqe cur; /* of ibv_start_poll() */
	struct lb_stamp cur_stamp;

	/* under the channel's lock */
	LB_ALIGNED struct lb_cq *next;
	bool queued;
	uint32_t pending;  /* events in the channel */
	uint32_t reported; /* events given out by ibv_get_cq_event() */
	pthread_t reader;  /* the thread that got the last one */

	struct lb_asyncs asyncs;
};

/* ---- receive queues ---------------------------------------------------- */

struct lb_rqe {
	_Atomic uint32_t seq; /* position + 1 when posted */
	uint32_t nsge;
	uint64_t wr_id;
	struct ibv_sge sge[];
};

/* Receives of a QP or of an SRQ. */
struct lb_rq {
	uint8_t *slots;
	uint32_t stride;
	uint32_t mask;
	uint32_t cap;
	uint32_t max_sge;

	LB_ALIGNED struct lb_lock post; /* to post receives */
	uint32_t tail;
	uint32_t freed_seen; /* freed as of the last look */

	LB_ALIGNED struct lb_lock pop; /* to execute towards this QP */
	uint32_t head;

	/* slots before this may be reused; set by the poll (QP), pop (SRQ) */
	LB_ALIGNED _Atomic uint32_t freed;
};

struct lb_srq {
	struct ibv_srq ibv; /* first: the handle */
	uint8_t slack[64];
	struct lb_obj obj;
	uint32_t magic;
	struct lb_pd *pd;
	struct lb_rq rq;
	uint32_t limit; /* under rq.pop; 0: not armed */
	struct lb_asyncs asyncs;
};

/* ---- queue pairs ------------------------------------------------------- */

/* Where a datagram goes, as its address handle says. */
struct lb_route {
	uint8_t sgid; /* index in the table of the sender's device */
	bool is_multicast;
	uint8_t device;	  /* index, unless it is multicast */
	uint8_t dgid[16]; /* of bytes, for a work request has room for those */
};

/* A work request in the send queue. */
struct lb_wqe {
	uint64_t wr_id;
	union {
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
		};
		struct {
			uint32_t qkey;
			struct lb_route route;
		};
	};
	uint32_t length; /* of the message */
	uint32_t rkey;
	uint32_t imm;	/* network byte order, or rkey to invalidate */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags;	/* enum ibv_send_flags */
	uint8_t nsge;
	uint8_t is_inline;
	union {
		struct ibv_sge sge[1]; /* as many as the QP may have */
		uint8_t data[1];
	};
};

/* What a fault rule wants of a work request. */
struct lb_wr_fault {
	int status;   /* enum ibv_wc_status, 0: none */
	bool after;   /* fail after the data moved */
	uint32_t rnr; /* times to find no receive */
	uint32_t delay_us;
};

/* How far the oldest work request is. Under sq.lock. */
struct lb_exec {
	bool begun;   /* the fields below are valid */
	bool claimed; /* the peer's responder works for it */
	bool silent;  /* the peer has not answered the last attempt */
	struct lb_wr_fault fault;
	uint32_t epoch; /* of the peer's responder when claimed */
	uint64_t done;	/* bytes moved */
	uint32_t rnr_left;
	uint32_t retry_left;
	uint64_t wait_until; /* nanoseconds of lb_now(); 0: not waiting */
};

/* The receive that the responder is filling. Under rq.pop. */
struct lb_resp {
	uint32_t epoch; /* grows when the responder loses its work */
	bool busy;	/* rqe is taken and not completed */
	bool comm_est;	/* said that the first message came */
	bool last_wqe;	/* said LAST_WQE_REACHED */
	uint32_t pos;
	uint32_t nsge;
	uint64_t wr_id;
	uint64_t flushed; /* a counter */
	struct ibv_sge sge[LB_MAX_SGE];
};

struct lb_qp {
	/*
	 * Written with sq.lock, rq.pop and rq.post held; read with any of
	 * them. The one exception: state becomes ERR with rq.pop and rq.post,
	 * and whoever did it sees to the SQ after that.
	 */
	LB_ALIGNED _Atomic uint32_t qpn; /* 0: nobody's */
	_Atomic uint32_t state;		 /* enum ibv_qp_state */
	uint32_t peer_qpn;
	uint32_t access;
	struct lb_cq *send_cq;
	struct lb_cq *recv_cq;
	struct lb_srq *srq;
	struct ibv_pd *pd;
	const char *home; /* see lb_home() */
	const char *peer_home;
	struct lb_device *dev;
	struct lb_qp_handle *handle; /* for events only */
	struct lb_context *ctx;
	struct ibv_qp_attr attr; /* what ibv_query_qp() tells */
	struct ibv_qp_cap cap;
	uint32_t max_sge;
	enum ibv_qp_type type;
	uint64_t order;		 /* of creation, from 1 */
	struct lb_qp *next;	 /* of all slots; under lb.big */
	struct lb_qp *free_next; /* under lb.big */
	bool sig_all;

	/* under sq.lock: by posters and executors */
	LB_ALIGNED struct lb_lock sq_lock;
	uint32_t sq_tail; /* next to post */
	uint32_t sq_exec; /* next to execute */
	uint32_t sq_freed_seen;
	uint32_t sq_mask;
	uint32_t sq_stride;
	uint8_t *sq;
	uint64_t
		*sq_checks; /* hashes of the buffers when posted; strict only */
	bool sq_drained_wanted;
	struct lb_exec exec;
	struct rpma_loopback_stats stats;

	/* slots before this may be reused; set by the poll of send_cq */
	LB_ALIGNED _Atomic uint32_t sq_freed;

	struct lb_rq rq;
	LB_ALIGNED struct lb_resp resp;

	bool run_queued; /* thread.c: has work */
};

/* What the application's struct ibv_qp * points to. */
struct lb_qp_handle {
	union {
		struct ibv_qp ibv; /* first: the handle */
		struct ibv_qp_ex ex;
	};
	uint8_t slack[256]; /* for callers built with a longer ibv_qp_ex */
	struct lb_obj obj;
	uint32_t magic;
	struct lb_qp *qp;
	uint32_t qpn;
	struct ibv_qp_init_attr init;
	uint64_t send_ops; /* 0: no ibv_wr_ interface */
	struct lb_asyncs asyncs;
	/* between wr_start and wr_complete, under sq.lock */
	uint32_t wr_tail;
	int wr_error;
	struct lb_wqe *wr_last;
};

/*
 * What a thread owes once it holds no lock: events to hand over, and a QP to
 * look after. Made by lb_run_begin(), paid by lb_run_end().
 */
struct lb_run {
	struct lb_due due;
	struct lb_qp *kick;
	struct lb_qp *kick2;
	/* Look at qp after a while, in the service thread. 0 or ENOMEM. */
	int (*later)(struct lb_qp *qp, uint64_t delay_ns);
};

/* ---- the process ------------------------------------------------------- */

struct lb_globals {
	pthread_mutex_t big;
	_Atomic int mode;	/* enum rpma_loopback_mode */
	_Atomic int strict;	/* enum rpma_loopback_strict */
	_Atomic int log;	/* 0 silent, 1 faults and misuse, 2 objects */
	_Atomic uint64_t seed;
};

extern struct lb_globals lb;

/* ---- lb_: calls between the files -------------------------------------- */

/* config.c */
void lb_start(void); /* once, by whoever comes first; cheap afterwards */
void lb_log(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
uint64_t lb_now(void);	  /* nanoseconds; virtual under the scheduler */
uint64_t lb_random(void); /* any thread; follows from the seed */
void lb_draw(void *buf, size_t size); /* any thread; nobody can foretell */
/* Complain about a misuse: nothing, a line, or abort. */
void lb_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline bool lb_is_strict(void)
{
	/* relaxed: an option, orders nothing */
	return atomic_load_explicit(&lb.strict, memory_order_relaxed) !=
	       RPMA_LOOPBACK_STRICT_OFF;
}

/* object.c: the registry of handles. All but lb_obj_check under lb.big */
/*
 * 0, and *word (may be NULL) is a number of the type's own, or ENOMEM when
 * the device's table is full.
 */
int lb_obj_add(struct lb_obj *obj, void *handle, enum lb_type type,
	       struct lb_device *dev, uint32_t *word);
struct lb_obj *lb_obj_find(const void *handle, enum lb_type type);
void lb_obj_del(struct lb_obj *obj);
void lb_obj_put_back(struct lb_obj *obj); /* undoes it */
/* The object if handle is a live one, else NULL with errno ENOENT. */
struct lb_obj *lb_obj_check(const void *handle, enum lb_type type);
/*
 * Destroy's first half: faults, the handle, references. 0 with lb.big held
 * and *obj unregistered, or an errno, which is set.
 */
int lb_obj_retire(const char *verb, const void *handle, enum lb_type type,
		  struct lb_obj **obj);

/* device.c, query.c */
extern int lb_ndevices;
extern struct lb_device lb_devices[LB_MAX_DEVICES];
struct lb_context *lb_context_of(struct ibv_context *context);
struct lb_device *lb_device_by_gid(const union ibv_gid *gid);
int lb_query_device_ex(struct ibv_context *context,
		       const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int lb_query_rt_values(struct ibv_context *context,
		       struct ibv_values_ex *values);
int lb_query_port(struct ibv_context *context, uint8_t port_num,
		  struct ibv_port_attr *attr, size_t attr_size);

/* mr.c */
extern struct lb_mr_row *lb_rows; /* LB_ROWS */
/* Keys to memory; between lb_barrier_enter() and _leave() */
int lb_mr_local(uint32_t lkey, uint64_t addr, uint64_t len, uint32_t access,
		const struct ibv_pd *pd, uint8_t **mem);
/* A queue pair, as the owner of regions and windows sees it. */
struct lb_mr_user {
	const struct ibv_pd *pd;
	uint64_t order; /* of its creation */
};
/*
 * Access by a peer of user. *window is the row of a window, whose lock is held then
 * until lb_mr_done(), else NULL.
 */
int lb_mr_remote(uint32_t rkey, uint64_t addr, uint64_t len, uint32_t access,
		 const struct lb_mr_user *user, uint8_t **mem,
		 struct lb_mr_row **window);
static inline void lb_mr_done(struct lb_mr_row **window)
{
	if (lb_likely(!*window))
		return;
	lb_lock_put(&(*window)->lock);
	*window = NULL;
}
int lb_reg_mr_check(const void *addr, size_t length, int access);
/* Rows, under lb.big: a free one, or NULL; and the keys of its next use. */
struct lb_mr_row *lb_mr_row_new(void);
void lb_mr_row_free(struct lb_mr_row *row);
uint32_t lb_mr_row_key(struct lb_mr_row *row);
static inline struct lb_mr_row *lb_mr_row_of(uint32_t key)
{
	return &lb_rows[key >> 16];
}

/* mw.c */
struct ibv_mw *lb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int lb_dealloc_mw(struct ibv_mw *mw);
/* What a bind work request asks for. */
struct lb_mw_bind {
	uint32_t rkey; /* the new one */
	uint32_t lkey;
	uint32_t access;
	uint64_t addr;
	uint64_t length;
};
/* 0, and *bind is what to ask for, or EINVAL. */
int lb_mw_ask(struct lb_mw_bind *bind, struct ibv_mw *mw, uint32_t rkey,
	      const struct ibv_mw_bind_info *info);
bool lb_mw_bind(const struct lb_mw_bind *bind, const struct lb_mr_user *user);
/* The window with this rkey is not bound any more; false: there is none. */
bool lb_mw_invalidate(uint32_t rkey, const struct ibv_pd *pd);

/* cq.c, channel.c */
extern _Atomic uint32_t lb_cq_no_slot; /* its address counts: nothing to free */
int lb_cq_push(struct lb_due *due, struct lb_cq *cq, const struct ibv_wc *wc,
	       _Atomic uint32_t *freed, uint32_t pos, bool solicited);
/* due.c: an event of cq is made, push held; all are handed over, no lock */
void lb_due_add(struct lb_due *due, struct lb_cq *cq);
void lb_due_pay(struct lb_due *due);
void lb_cq_clean(struct lb_cq *cq, uint32_t qpn);
int lb_cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int lb_cq_arm(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *lb_create_cq_ex(struct ibv_context *context,
				  struct ibv_cq_init_attr_ex *attr);
void lb_channel_deliver(struct lb_cq *cq, uint32_t events);
void lb_channel_forget(struct lb_cq *cq);

/* fd.c */
void lb_fd_ring(int fd, uint64_t n);
/* Take n units back, if no reader was faster: a reader then finds nothing. */
void lb_fd_unring(int fd, uint32_t n);
/* One unit, waiting unless the fd is O_NONBLOCK. 0, or -1 with errno. */
int lb_fd_wait(int fd);

/* async.c */
enum lb_async_target {
	LB_ASYNC_CONTEXT,
	LB_ASYNC_QP,
	LB_ASYNC_CQ,
	LB_ASYNC_SRQ,
};
enum lb_async_target lb_async_target(enum ibv_event_type type);
/*
 * An event of element, whose events of is; of ctx if that is NULL. The caller
 * keeps the element from being destroyed, a QP by a lock of it. Any lock but
 * context.lock may be held.
 */
void lb_async_add(struct lb_context *ctx, struct lb_asyncs *of,
		  enum ibv_event_type type, void *element);
void lb_async_init(struct lb_asyncs *asyncs);
/* Withdraw the events that are queued. */
void lb_async_forget(struct lb_context *ctx, struct lb_asyncs *asyncs);
void lb_async_fini(struct lb_context *ctx);

/* rq.c: the ring of receives */
int lb_rq_init(struct lb_rq *rq, uint32_t cap, uint32_t max_sge);
/* To a size that holds what is posted: 0 or ENOMEM; post and pop held. */
int lb_rq_resize(struct lb_rq *rq, uint32_t cap);
void lb_rq_fini(struct lb_rq *rq);
void lb_rq_reset(struct lb_rq *rq); /* all locks of its owner held */
int lb_rq_post(struct lb_rq *rq, const struct ibv_recv_wr *wr);
struct lb_rqe *lb_rq_pop(struct lb_rq *rq, uint32_t *pos);
uint32_t lb_rq_count(const struct lb_rq *rq); /* post and pop held */
void lb_advance(_Atomic uint32_t *word, uint32_t to);

/* srq.c */
bool lb_srq_take(struct lb_srq *srq, struct lb_resp *resp);
int lb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad);
struct ibv_srq *lb_create_srq_ex(struct ibv_context *context,
				 struct ibv_srq_init_attr_ex *attr);
int lb_get_srq_num(struct ibv_srq *srq, uint32_t *num);

/* qp.c, modify.c */
void lb_qp_event(struct lb_qp *qp, enum ibv_event_type type); /* any lock */
struct ibv_qp *lb_create_qp_ex(struct ibv_context *context,
			       struct ibv_qp_init_attr_ex *attr);
void lb_qp_lock(struct lb_qp *qp);
void lb_qp_unlock(struct lb_qp *qp);
void lb_qp_fail(struct lb_run *run, struct lb_qp *qp);	 /* to ERR; sq.lock */
void lb_resp_fail(struct lb_run *run, struct lb_qp *qp); /* rq.pop */
void lb_sq_flush(struct lb_run *run, struct lb_qp *qp);	 /* sq.lock */
void lb_rq_flush(struct lb_run *run, struct lb_qp *qp);	 /* rq.pop, rq.post */
/* kick.c: a queue pair to look after; the next of those, or NULL */
void lb_kick_add(struct lb_run *run, struct lb_qp *qp);
struct lb_qp *lb_kick_next(struct lb_run *run);
/* The object that ibv_create_qp() makes; NULL with errno. */
struct lb_qp_handle *lb_qp_new(struct ibv_pd *pd,
			       const struct ibv_qp_init_attr *init);

/* post.c, wr.c */
int lb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad);
int lb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *ask);
int lb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);
struct lb_wqe *lb_sq_slot(const struct lb_qp *qp, uint32_t pos);
bool lb_sq_has_room(struct lb_qp *qp, uint32_t pos);
void lb_wr_init(struct lb_qp_handle *handle);

/* exec.c, run.c */
enum lb_step {
	LB_DONE,  /* nothing left to execute */
	LB_AGAIN, /* call again: the budget is used up */
	LB_WAIT,  /* a timer or the peer will call again */
};
enum lb_step lb_sq_run(struct lb_run *run, struct lb_qp *qp, uint64_t budget);
void lb_run_submit(struct lb_run *run, struct lb_qp *qp); /* sq.lock */
void lb_run_again(struct lb_qp *qp);			  /* no lock held */
void lb_run_begin(struct lb_run *run);
void lb_run_end(struct lb_run *run);

/* thread.c */
void lb_thread_add(struct lb_qp *qp,
		   void (*fn)(struct lb_qp *qp, uint64_t budget));
bool lb_thread_step(void); /* one slice of one QP; false: nothing to do */
bool lb_thread_has_work(void);

/* hook.c */
extern _Atomic uint32_t lb_hooks; /* how many want to be called */
void lb_hook_call(enum rpma_loopback_point point, const void *object);
static inline void lb_hook(enum rpma_loopback_point point, const void *object)
{
	/* relaxed: lb_hook_call() looks again, and properly */
	if (!lb_likely(!atomic_load_explicit(&lb_hooks, memory_order_relaxed)))
		lb_hook_call(point, object);
}

/*
 * The deterministic scheduler, which attaches itself while it runs. All that is
 * below it knows it by this table only.
 */
struct lb_scheduler {
	bool (*is_scheduled)(void); /* is this thread one that it schedules? */
	/* Let it switch, if so, and if that is a point where it may. */
	void (*yield)(enum rpma_loopback_point point);
	bool (*block)(bool (*pred)(void *arg), void *arg); /* lb_block() */
};
void lb_hook_attach(const struct lb_scheduler *scheduler);
void lb_hook_detach(void);
bool lb_hook_is_scheduled(void); /* is this thread one that it schedules? */

/* ---- also for the rdma_cm half (cm/) --------------------------------- */

/*
 * service.c: run fn(arg) in the service thread once delay_ns have passed
 * (lb_now() time). Jobs that are due run in the order of their times, one at
 * a time, with no lock held; a job may post others, and may call verbs. There
 * is no cancelling: let arg name something that can be looked up. Returns 0
 * or ENOMEM.
 */
int lb_service_post(void (*fn)(void *arg), void *arg, uint64_t delay_ns);
bool lb_service_step(void); /* the scheduler: run the earliest job now */
bool lb_service_has_work(void);

/*
 * The device that owns an address: 127.a.b.c is device b modulo the number
 * of devices (so 127.0.0.1 is loop0, 127.0.1.1 is loop1 if there is one),
 * any other address of this machine is loop0. NULL: not of this machine, or
 * the device was removed. IPv4-mapped IPv6 counts as IPv4, the wildcard as
 * nobody's.
 */
struct lb_device *lb_device_by_addr(const struct sockaddr *addr);
struct lb_device *lb_device_of(struct ibv_context *context);
struct lb_device *lb_device_at(int index);
/* The GID index under which the device has addr; 0 if it is only routed. */
int lb_device_gid_index(const struct lb_device *dev,
			const struct sockaddr *addr);

/* fn is called, in the thread that removes it, when a device is removed. */
void lb_on_removal(void (*fn)(struct lb_device *dev));

/*
 * fault.c. lb_fail("rdma_connect"): the errno that a rule asks for this call
 * of the verb, or 0. lb_fault_event("cm.established"): what to do with this
 * event. Both cost one load when there are no rules.
 */
extern _Atomic uint32_t lb_faults;
int lb_fail_slow(const char *verb);
static inline int lb_fail(const char *verb)
{
	/* relaxed: rules apply to calls that come after them in some order */
	if (lb_likely(!atomic_load_explicit(&lb_faults, memory_order_relaxed)))
		return 0;
	return lb_fail_slow(verb);
}

enum lb_event_action {
	LB_EVENT_PASS,
	LB_EVENT_DROP,
	LB_EVENT_DOUBLE,
	LB_EVENT_LATE, /* after *delay_us */
};
enum lb_event_action lb_fault_event(const char *event, uint32_t *delay_us);
/* The work request that rules are asked about. */
struct lb_fault_of {
	uint32_t qpn;
	uint64_t order; /* of creation of its queue pair */
	uint32_t opcode;
	uint64_t wr_id;
};
void lb_fault_wr(const struct lb_fault_of *of, struct lb_wr_fault *fault);

/* Ways to behave that real devices differ in; set by "knob:" rules. */
enum lb_knob {
	LB_KNOB_QPN_REUSE,	/* a new QP gets the number freed last */
	LB_KNOB_DESTROY_CLEANS, /* destroy_qp removes its CQEs */
	LB_KNOB_ARM_PENDING,  /* arming a CQ that is not empty makes an event */
	LB_KNOB_AFTER_CQ_ERR, /* a dead CQ still takes completions */
	LB_KNOB_PLAIN_ERRORS, /* error completions are filled in full */
	LB_KNOB_SPURIOUS,     /* every n-th poll makes an event */
	LB_KNOB_NO_LAST_WQE,  /* 1: LAST_WQE_REACHED never comes, 2: twice */
	LB_KNOB_RETRY_US,     /* a retry of a silent peer takes at most this */
	LB_KNOBS,
};
uint32_t lb_knob(enum lb_knob knob);

/*
 * hook.c: wait in a verb or rdma_cm call for something that another thread
 * brings. Under the deterministic scheduler it lets the others run until
 * pred(arg), and returns true; without it returns false at once, and the
 * caller blocks its own way. No lock held. pred is called with none held.
 */
bool lb_block(bool (*pred)(void *arg), void *arg);

#endif /* LB_LOOPBACK_H */
