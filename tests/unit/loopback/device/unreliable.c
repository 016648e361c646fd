/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * unreliable.c -- unreliable connections, datagrams and multicast, in
 * situations only of this device: dropped by a fault rule, torn down under
 * load, with members that fail all at once, in the strict mode.
 */

#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRH    40u
#define ROUNDS 20

static const enum rpma_loopback_mode modes[] = {RPMA_LOOPBACK_INLINE,
						RPMA_LOOPBACK_THREAD};

static void fault(const char *rule)
{
	assert_int_equal(rpma_loopback_fault(rule), 0);
}

/* --- multicast */

/* a group that no other process has at the same time: main() */
static union ibv_gid group = {.raw = {0xff, 0x15}};

static struct pair *ud_new(void)
{
	struct pair *p = pair_new(0);

	end_swap_qp(&p->a, IBV_QPT_UD);
	end_swap_qp(&p->b, IBV_QPT_UD);
	end_to_rts(&p->a, 0);
	end_to_rts(&p->b, 0);
	return p;
}

static struct ibv_ah *group_ah(const struct end *e)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	attr.grh.dgid = group;
	ah = ibv_create_ah(e->pd, &attr);
	assert_non_null(ah);
	return ah;
}

static int mail(const struct end *e, struct ibv_ah *ah, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, 8, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.ud = {.ah = ah,
						   .remote_qpn = 0xffffff,
						   .remote_qkey = QKEY},
				 };

	return ibv_post_send(e->qp, &wr, &bad);
}

struct mailer {
	const struct end *e;
	struct ibv_ah *ah;
	_Atomic int stop;
	int failed;
};

/*
 * A datagram of the child does not reach the copies of the members of its
 * parent.
 */
static bool child_reaches_nobody(const struct pair *parents)
{
	struct pair *p = ud_new();
	struct ibv_ah *ah = group_ah(&p->a);

	memset(parents->b.buf, 'x', GRH + 8);
	assert_int_equal(ibv_attach_mcast(p->b.qp, &group, 0), 0);
	assert_int_equal(end_recv(&p->b, 5, 0, GRH + 8), 0);
	assert_int_equal(mail(&p->a, ah, 1), 0);
	end_expect(&p->b, 5, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < GRH + 8; i++) {
		if (parents->b.buf[i] != 'x')
			return false;
	}
	return true;
}

/* The first case: the case forks, and other cases start threads. */
FRESH(fork__child_is_in_no_group)
{
	struct pair *p = ud_new();
	int status;
	pid_t child;

#ifdef __SANITIZE_THREAD__
	pair_delete(p);
	print_message("skipped: the thread sanitizer ends children of fork\n");
	skip();
#endif
	assert_int_equal(ibv_attach_mcast(p->b.qp, &group, 0), 0);
	assert_int_equal(end_recv(&p->b, 5, 0, GRH + 8), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(child_reaches_nobody(p) ? 42 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_int_equal(ibv_detach_mcast(p->b.qp, &group, 0), 0);
	pair_delete(p);
}

/* --- unreliable connections */

FRESH(wr__uc_without_a_receive_DROPPED)
{
	struct rpma_loopback_stats before, after;
	struct pair *p = pair_new_uc();
	struct ibv_wc wc;

	fault("wr:op=send,rnr=1,count=1");
	rpma_loopback_get_stats(&before);
	assert_int_equal(end_recv(&p->b, 5, 0, 8), 0);
	assert_int_equal(end_send(&p->a, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(p->b.cq, 1, &wc), 0);
	assert_int_equal(end_send(&p->a, 2, 0, 8), 0);
	end_expect(&p->a, 2, IBV_WC_SUCCESS);
	end_expect(&p->b, 5, IBV_WC_SUCCESS);
	rpma_loopback_get_stats(&after);
	assert_int_equal(after.rnr, before.rnr);
	pair_delete(p);
}

FRESH(wr__uc_status_FAILS_THE_SENDER_ONLY)
{
	struct pair *p = pair_new_uc();

	fault("wr:op=send,status=loc_qp_op_err,when=after,count=1");
	assert_int_equal(end_recv(&p->b, 5, 0, 8), 0);
	assert_int_equal(end_send(&p->a, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_LOC_QP_OP_ERR);
	end_expect(&p->b, 5, IBV_WC_SUCCESS);
	assert_int_equal(p->b.qp->state, IBV_QPS_RTS);
	pair_delete(p);
}

static void to_state(const struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
}

struct writer {
	struct pair *p;
	_Atomic int stop;
	int failed; /* completions without success */
};

/* Writes all of b's memory, again and again; reports instead of asserting. */
static void *write_on(void *arg)
{
	struct writer *w = arg;
	const struct end *a = &w->p->a;
	struct ibv_wc wc;

	/* relaxed: only ends the loop */
	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		if (end_write(a, &w->p->b, 1, 0, BUF_SIZE))
			w->failed++;
		while (!ibv_poll_cq(a->cq, 1, &wc))
			;
		w->failed += wc.status != IBV_WC_SUCCESS;
	}
	return NULL;
}

/* In slices or not: a cut-off message is dropped, and the sender goes on. */
FRESH(peer__reset_under_load_SENDER_SUCCEEDS)
{
	for (int m = 0; m < 2; m++) {
		struct writer w = {.p = pair_new_uc()};
		struct pair *p = w.p;
		pthread_t t;

		rpma_loopback_set_mode(modes[m]);
		assert_int_equal(pthread_create(&t, NULL, write_on, &w), 0);
		for (int i = 0; i < ROUNDS; i++) {
			to_state(&p->b, i & 1 ? IBV_QPS_ERR : IBV_QPS_RESET);
			to_state(&p->b, IBV_QPS_RESET);
			end_to_rts(&p->b, p->a.qp->qp_num);
		}
		/* relaxed: as in write_on() */
		atomic_store_explicit(&w.stop, 1, memory_order_relaxed);
		assert_int_equal(pthread_join(t, NULL), 0);
		assert_int_equal(w.failed, 0);
		assert_int_equal(end_recv(&p->b, 5, 0, 8), 0);
		assert_int_equal(end_send(&p->a, 1, 0, 8), 0);
		end_expect(&p->a, 1, IBV_WC_SUCCESS);
		end_expect(&p->b, 5, IBV_WC_SUCCESS);
		pair_delete(p);
	}
}

/* --- multicast under load */

static void *mail_on(void *arg)
{
	struct mailer *m = arg;
	struct ibv_wc wc;

	/* relaxed: only ends the loop */
	while (!atomic_load_explicit(&m->stop, memory_order_relaxed)) {
		if (mail(m->e, m->ah, 1))
			m->failed++;
		while (!ibv_poll_cq(m->e->cq, 1, &wc))
			;
		m->failed += wc.status != IBV_WC_SUCCESS;
	}
	return NULL;
}

/* A member destroyed after its detach gets nothing any more. */
FRESH(member__leaves_under_load_MEMORY_IS_ITS_OWN)
{
	for (int m = 0; m < 2; m++) {
		struct pair *p = ud_new();
		struct mailer mailer = {.e = &p->a, .ah = group_ah(&p->a)};
		pthread_t t;

		rpma_loopback_set_mode(modes[m]);
		assert_int_equal(pthread_create(&t, NULL, mail_on, &mailer), 0);
		for (int i = 0; i < ROUNDS; i++) {
			struct ibv_wc wc;

			assert_int_equal(ibv_attach_mcast(p->b.qp, &group, 0),
					 0);
			assert_int_equal(end_recv(&p->b, 5, 0, GRH + 8), 0);
			end_expect(&p->b, 5, IBV_WC_SUCCESS);
			assert_int_equal(end_recv(&p->b, 6, 0, GRH + 8), 0);
			assert_int_equal(ibv_detach_mcast(p->b.qp, &group, 0),
					 0);
			end_swap_qp(&p->b, IBV_QPT_UD);
			memset(p->b.buf, 1, GRH + 8);
			while (ibv_poll_cq(p->b.cq, 1, &wc))
				;
			end_to_rts(&p->b, 0);
		}
		/* relaxed: as in mail_on() */
		atomic_store_explicit(&mailer.stop, 1, memory_order_relaxed);
		assert_int_equal(pthread_join(t, NULL), 0);
		assert_int_equal(mailer.failed, 0);
		assert_int_equal(ibv_destroy_ah(mailer.ah), 0);
		pair_delete(p);
	}
}

/* More queue pairs break than a thread can look after at once. */
FRESH(members__fail_together_ALL_ARE_FLUSHED)
{
	enum { N = 8 };
	struct pair *p = ud_new();
	struct ibv_ah *ah = group_ah(&p->a);
	struct end member[N] = {0};

	for (int i = 0; i < N; i++) {
		end_init(&member[i], 0);
		end_swap_qp(&member[i], IBV_QPT_UD);
		end_to_rts(&member[i], 0);
		assert_int_equal(ibv_attach_mcast(member[i].qp, &group, 0), 0);
		/* too short, and the flushed receive */
		assert_int_equal(end_recv(&member[i], 5, 0, GRH), 0);
		assert_int_equal(end_recv(&member[i], 6, 64, GRH), 0);
	}
	assert_int_equal(mail(&p->a, ah, 1), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
	for (int i = 0; i < N; i++) {
		end_expect(&member[i], 5, IBV_WC_LOC_LEN_ERR);
		end_expect(&member[i], 6, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(ibv_detach_mcast(member[i].qp, &group, 0), 0);
		end_fini(&member[i]);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
	pair_delete(p);
}

FRESH(call__attach_and_detach_FAIL)
{
	struct pair *p = ud_new();

	fault("call:verb=ibv_attach_mcast,errno=EIO,count=1");
	fault("call:verb=ibv_detach_mcast,errno=EIO,count=1");
	errno = 0;
	assert_int_equal(ibv_attach_mcast(p->a.qp, &group, 0), EIO);
	assert_int_equal(errno, EIO);
	assert_int_equal(ibv_attach_mcast(p->a.qp, &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(p->a.qp, &group, 0), EIO);
	assert_int_equal(ibv_detach_mcast(p->a.qp, &group, 0), 0);
	pair_delete(p);
}

/* --- the strict mode */

static uint64_t misuses(void)
{
	struct rpma_loopback_stats stats;

	rpma_loopback_get_stats(&stats);
	return stats.misuses;
}

FRESH(strict__attached_or_a_foreign_handle_MISUSE)
{
	struct pair *p = ud_new();
	struct ibv_ah *ah = group_ah(&p->b);
	uint64_t before;

	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_WARN);
	before = misuses();
	assert_int_equal(mail(&p->a, ah, 1), 0);
	assert_int_equal(misuses(), before + 1);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_attach_mcast(p->a.qp, &group, 0), 0);
	assert_int_equal(ibv_destroy_qp(p->a.qp), EBUSY);
	assert_int_equal(misuses(), before + 2);
	assert_int_equal(ibv_detach_mcast(p->a.qp, &group, 0), 0);
	pair_delete(p);
}

FRESH(strict__wr_start_too_early_MISUSE)
{
	struct pair *p = pair_new(0);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = p->a.cq,
		.recv_cq = p->a.cq,
		.pd = p->a.pd,
		.cap = {DEPTH, DEPTH, 1, 1, 0},
		.qp_type = IBV_QPT_UC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(p->a.ctx, &init);
	struct ibv_qp_ex *ex;
	uint64_t before;

	assert_non_null(qp);
	ex = ibv_qp_to_qp_ex(qp);
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_WARN);
	before = misuses();
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	assert_int_equal(misuses(), before + 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	pair_delete(p);
}

int main(void)
{
	memcpy(group.raw + 12, &(pid_t){getpid()}, sizeof(pid_t));
	return tests_run(NULL, NULL);
}
