/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * internal.h -- small calls between the verbs files of the loopback device;
 * the rdma_cm half does not use them.
 */

#ifndef LB_INTERNAL_H
#define LB_INTERNAL_H

#include <errno.h>

#include "loopback.h"

static inline void lb_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The smallest power of 2 that is at least n, n <= 2^31. */
static inline uint32_t lb_pow2(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

/* What a verb returns: err, which is in errno too if it is not 0. */
static inline int lb_error(int err)
{
	if (err)
		errno = err;
	return err;
}

/* Memory in whole cache lines, zeroed; free() gives it back. */
void *lb_zalloc(size_t size);

uint64_t lb_mix(uint64_t x); /* a bijection that scatters */
uint64_t lb_real_now(void);
bool lb_clock_is_virtual(uint64_t *now); /* *now is the time then */
void lb_clock_start(uint64_t now);	 /* virtual time from now on */
void lb_clock_stop(void);
void lb_clock_advance(uint64_t now); /* virtual time is at least now */
void lb_random_restart(void);	     /* draw the numbers of the seed again */
/* A detached thread that no signal interrupts. 0 or an errno. */
int lb_spawn(void *(*fn)(void *), const char *name);
/* Look again whether the scheduler has gone. */
void lb_service_wake(void);
void lb_thread_wake(void);
/* Wait until it sees that the scheduler is on, and does nothing. */
void lb_service_rest(void);
void lb_thread_rest(void);
enum lb_fork_step {
	LB_FORK_BEFORE,
	LB_FORK_PARENT,
	LB_FORK_CHILD,
};
/* A child has neither the threads nor the work of its parent. */
void lb_service_fork(enum lb_fork_step step);
void lb_thread_fork(enum lb_fork_step step);
uint64_t lb_misuse_count(void);
uint64_t lb_event_count(void);
uint64_t lb_async_count(void);
uint64_t lb_overrun_count(void);
void lb_mr_start(void);
void lb_device_start(void);
void lb_gid_start(void);
void lb_fill_ops(struct verbs_context *vctx);
/* The domain that keys are compared by: pd, or the one it is a child of. */
struct ibv_pd *lb_pd_root(struct ibv_pd *pd);
struct ibv_pd *lb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr);
/* A QP of dev to ERR as if its device had gone; lb.big held. */
void lb_qp_break(struct lb_run *run, struct lb_qp *qp,
		 const struct lb_device *dev);

/* barrier.c: a thread that executes */
struct lb_executor {
	_Atomic uint32_t word; /* odd: the thread may hold a key */
	bool is_listed;
	struct lb_list node;
};
extern _Thread_local struct lb_executor lb_executor;
/* Without membarrier() the fence is the executor's, too. */
extern bool lb_barrier_is_heavy;
void lb_barrier_start(void);
void lb_barrier_fork(enum lb_fork_step step);
void lb_barrier_join(struct lb_executor *self);
/* Returns when nobody holds a key that was taken away before the call. */
void lb_barrier_wait(void);

static inline void lb_barrier_fence(void)
{
#ifdef __SANITIZE_THREAD__
	_Atomic int orders_only = 0;

	/* seq_cst: stands for the fence below, unseen by the sanitizer */
	atomic_fetch_add_explicit(&orders_only, 1, memory_order_seq_cst);
#else
	/* seq_cst: pairs with the fence of the other side */
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* From here to lb_barrier_leave() this thread may look keys up. */
static inline struct lb_executor *lb_barrier_enter(void)
{
	struct lb_executor *self = &lb_executor;
	uint32_t word;

	if (!lb_likely(self->is_listed))
		lb_barrier_join(self);
	/* relaxed: only this thread writes it; the fence orders the store */
	word = atomic_load_explicit(&self->word, memory_order_relaxed);
	/* relaxed: as above */
	atomic_store_explicit(&self->word, word + 1, memory_order_relaxed);
	if (!lb_likely(!lb_barrier_is_heavy))
		lb_barrier_fence();
	else
		/* the compiler's half; membarrier() is the processor's */
		atomic_signal_fence(memory_order_seq_cst);
	return self;
}

static inline void lb_barrier_leave(struct lb_executor *self)
{
	/* relaxed: only this thread writes it */
	uint32_t word = atomic_load_explicit(&self->word, memory_order_relaxed);

	/* release: pairs with the acquire in lb_barrier_wait() */
	atomic_store_explicit(&self->word, word + 1, memory_order_release);
}

/* The next completion; cq.poll held. */
/* From now on completions have times. 0 or ENOMEM; nobody uses it yet. */
int lb_cq_keep_times(struct lb_cq *cq);
bool lb_cq_take(struct lb_cq *cq, struct lb_cqe *out);
struct lb_cq *lb_cq_new(struct ibv_context *context, int cqe, void *cq_context,
			struct ibv_comp_channel *channel, int vector);
/* Fill resp from the oldest receive; false if there is none. */
static inline void lb_resp_set(struct lb_resp *resp, const struct lb_rqe *rqe,
			       uint32_t pos)
{
	uint32_t i;

	resp->busy = true;
	resp->pos = pos;
	resp->nsge = rqe->nsge;
	resp->wr_id = rqe->wr_id;
	for (i = 0; i < rqe->nsge; i++)
		resp->sge[i] = rqe->sge[i];
}

/* One event to the channel of cq, as the fault rules want it. */
void lb_deliver_event(struct lb_cq *cq);
/* The first of all slots; lb.big held. */
struct lb_qp *lb_qp_slots(void);

/* qp_number.c: those that are given and taken, under lb.big */
uint32_t lb_qp_number_new(struct lb_qp *qp);
void lb_qp_number_drop(uint32_t qpn);
/* The slot that number qpn is of, NULL if this process has no such QP. */
struct lb_qp *lb_qp_at(uint32_t qpn);
/* A child has none of its parent's. */
void lb_qp_number_fork(enum lb_fork_step step);

/* mcast.c: nor is a child a member of its parent's groups */
void lb_mcast_fork(enum lb_fork_step step);

/* Both are called with all locks of the QP held. */
void lb_qp_reset(struct lb_qp *qp);
void lb_qp_set_error(struct lb_run *run, struct lb_qp *qp);
/* Raise SQ_DRAINED if it is due; sq.lock held. */
void lb_sq_drained(struct lb_qp *qp);
int lb_sq_enqueue(struct lb_qp *qp, const struct ibv_send_wr *wr);
/* Of the request at pos, for the strict mode: what its buffers hash to. */
void lb_sq_remember(struct lb_qp *qp, uint32_t pos);
/* Hash of the buffers of a request, 0 if not to be read; barrier entered. */
uint64_t lb_wqe_hash(const struct lb_qp *qp, const struct lb_wqe *wqe);

/* RoCE MTU of the only port */
#define LB_MTU	     IBV_MTU_4096
#define LB_MTU_BYTES 4096u

#endif /* LB_INTERNAL_H */
